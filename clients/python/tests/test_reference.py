"""Every public name is on a page of the reference, has an example that runs, and says what it raises."""

from __future__ import annotations

import ast
import doctest
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import fantasia_hpo as fantasia
from fantasia_hpo._heartbeat import Heartbeat

SOURCE = ROOT / "clients/python/src/fantasia_hpo"
PAGES = ROOT / "clients/python/reference"

# The public modules whose names are not in the package itself, with what their examples need.
MODULES = {
    "aio": "",
    "hydra": "hydra",
    "keras": "keras",
    "lightgbm": "lightgbm",
    "lightning": "torch",
    "logging": "",
    "mlflow": "mlflow",
    "optuna": "optuna",
    "pruners": "",
    "ray": "ray",
    "sklearn": "sklearn",
    "transformers": "transformers",
    "wandb": "wandb",
    "xgboost": "xgboost",
}
NEEDS = {"Results.trials_dataframe": "pandas", "Study.to_mlflow": "mlflow", "Study.to_wandb": "wandb"}
MARKS = {
    "hydra": [pytest.mark.integrations, pytest.mark.slow],
    "ray": [pytest.mark.integrations, pytest.mark.slow],
    "wandb": [pytest.mark.integrations, pytest.mark.slow],
    "torch": [pytest.mark.torch, pytest.mark.slow],
    "": [],
}
GIVEN = {
    "Evaluator",
    "FantasiaSearchCV",
    "ServerError",
    "Trial",
    "WorkerTrial",
}  # made by the client, or like a library's
SEE = r"See (?:fantasia_hpo\.)?`?(\w[\w.]*\w)"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
TREES = {path.stem: ast.parse(path.read_text()) for path in sorted(SOURCE.glob("*.py"))}


def definitions(module: str) -> dict[str, Definition]:
    """Return the classes and functions of a module; of overloads, the implementation."""
    return {node.name: node for node in TREES[module].body if isinstance(node, Definition)}


CLASSES = {n: (m, c) for m in TREES for n, c in definitions(m).items() if isinstance(c, ast.ClassDef)}


@dataclass(frozen=True)
class Public:
    """A public name: a class, a function, or a method or property with its class."""

    module: str
    node: Definition
    owner: ast.ClassDef | None = None

    @property
    def name(self) -> str:
        """The name as people say it, such as Study.ask."""
        return f"{self.owner.name}.{self.node.name}" if self.owner else self.node.name

    @property
    def doc(self) -> str:
        """The docstring."""
        return ast.get_docstring(self.node) or ""

    @property
    def needs(self) -> str:
        """The library that its examples need."""
        return NEEDS.get(self.name, MODULES.get(self.module, ""))


def bases(node: ast.ClassDef) -> list[str]:
    return [base.id for base in node.bases if isinstance(base, ast.Name)]


def members(module: str, node: ast.ClassDef) -> Iterator[Public]:
    """Yield what is public in a class, also in classes of this package that it extends."""
    for child in node.body:
        if isinstance(child, Function) and not child.name.startswith("_"):
            yield Public(module, child, node)
    for base in bases(node):
        if base in CLASSES:
            yield from members(*CLASSES[base])


def public() -> dict[str, Public]:
    """Return every public name, by module and name."""
    found: dict[str, Public] = {}
    for module in TREES:
        for name, node in definitions(module).items():
            if name in fantasia.__all__ or (module in MODULES and not name.startswith("_")):
                one = Public(module, node)
                inner = members(module, node) if isinstance(node, ast.ClassDef) else iter(())
                found |= {f"{p.module}.{p.name}": p for p in (one, *inner)}
    return found


PUBLIC = public()


def examples(doc: str) -> str:
    return "\n".join(example.source for example in doctest.DocTestParser().get_examples(doc))


def of_library(p: Public) -> bool:
    """Whether a library calls a method: its class extends one of a library."""
    if p.owner is None:
        return False
    libraries = ast.unparse(ast.Tuple(p.owner.bases, ast.Load()))
    return p.module in MODULES and MODULES[p.module] != "" and libraries != "()"


def test_every_public_name_is_found() -> None:
    aliases = {"Parameter", "logging", "pruners"}
    assert set(fantasia.__all__) - aliases <= {p.name for p in PUBLIC.values()}
    exported = {p.module for p in PUBLIC.values()}
    internal = {"transport"}  # what a study calls the server with
    assert {m for m in TREES if not m.startswith("_")} - internal - exported == set()
    assert len(PUBLIC) > 180


def test_every_public_name_is_on_a_page() -> None:
    pages = "".join(page.read_text() for page in PAGES.glob("*.md"))
    listed = re.findall(r"^::: (\S+)$", pages, re.M)
    assert len(listed) == len(set(listed))
    wanted = {f"fantasia_hpo.{name}" for name in {*fantasia.__all__, *MODULES} - {"Parameter"}}
    assert set(listed) == wanted


@pytest.mark.parametrize("name", PUBLIC)
def test_name_has_an_example(name: str) -> None:
    p = PUBLIC[name]
    assert p.doc, "no docstring"
    if examples(p.doc) or of_library(p):
        return
    if p.owner and re.search(rf"\b{p.node.name}\b", examples(ast.get_docstring(p.owner) or "")):
        return
    seen = re.search(SEE, p.doc)
    assert seen, f"no example, neither its own nor its class's, and no other name to see, in {p.doc!r}"
    others = [other for other in named(seen[1]) if other.doc != p.doc]
    assert any(examples(other.doc) for other in others), f"no example in {seen[1]}"


def named(name: str) -> list[Public]:
    """Return what a docstring calls by a name; the members of Study are in several classes."""
    names = {
        name,
        *(re.sub(r"^Study\.", f"{part}.", name) for part in ("Asking", "Telling", "Results", "Reading")),
    }
    return [p for p in PUBLIC.values() if p.name in names or f"{p.module}.{p.name}" in names]


def arguments(node: Definition) -> list[str]:
    """Return the names of a function's arguments; of a class those of its constructor, and its fields."""
    if isinstance(node, ast.ClassDef):
        fields = [
            c.target.id for c in node.body if isinstance(c, ast.AnnAssign) and isinstance(c.target, ast.Name)
        ]
        made = next((c for c in node.body if isinstance(c, Function) and c.name == "__init__"), None)
        found = (arguments(made) if made else []) + fields
    else:
        given = node.args
        found = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in found if name != "self" and not name.startswith("_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_name_says_what_its_arguments_are(name: str) -> None:
    p = PUBLIC[name]
    if of_library(p) or p.name in GIVEN:
        return
    said = p.doc + (ast.get_docstring(p.owner) or "" if p.owner else "")
    for seen in re.findall(SEE, p.doc):
        said += "".join(other.doc for other in named(seen))
    assert [one for one in arguments(p.node) if not re.search(rf"\b{one}\b", said)] == []


def raised(node: ast.AST) -> Iterator[str]:
    """Yield the exceptions that a function itself raises by name."""
    for child in ast.walk(node):
        if isinstance(child, ast.Raise) and isinstance(child.exc, ast.Call):
            error = ast.unparse(child.exc.func).rpartition(".")[2]
            if error[0].isupper():
                yield error


@pytest.mark.parametrize("name", [n for n, p in PUBLIC.items() if isinstance(p.node, Function)])
def test_name_says_what_it_raises(name: str) -> None:
    p = PUBLIC[name]
    said = p.doc + (ast.get_docstring(p.owner) or "" if p.owner else "")
    assert [error for error in raised(p.node) if error not in said] == []


def runnable() -> list[Any]:
    return [
        pytest.param(p, id=name, marks=MARKS.get(p.needs, [pytest.mark.slow]))
        for name, p in PUBLIC.items()
        if examples(p.doc)
    ]


@pytest.fixture
def example(storage: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Yield the names that examples have: what the first page of the reference makes."""
    opened: list[tuple[Heartbeat, fantasia.Trial]] = []
    add = Heartbeat.add

    def noted(self: Heartbeat, trial: fantasia.Trial, lease: float) -> None:
        opened.append((self, trial))
        add(self, trial, lease)

    monkeypatch.setattr(Heartbeat, "add", noted)
    monkeypatch.chdir(storage)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("FANTASIA_PROGRAM", os.environ["FANTASIA_PROGRAM"])  # an example changes it
    (code,) = re.findall(r"^```python\n(.*?)^```$", (PAGES / "index.md").read_text(), re.M | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    yield names
    monkeypatch.undo()
    for heartbeat, trial in opened:
        heartbeat.remove(trial)
    for study in fantasia.study_names(storage / ".fantasia"):  # else the server would go on with all of them
        fantasia.delete_study(study, storage / ".fantasia")


@pytest.mark.parametrize("p", runnable())
def test_example_runs(p: Public, example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    if p.needs and p.needs != "torch":
        pytest.importorskip(p.needs)
    level = fantasia.logging.get_verbosity()
    try:
        test = doctest.DocTestParser().get_doctest(p.doc, example, p.name, f"{p.module}.py", p.node.lineno)
        result = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
    finally:
        fantasia.logging.set_verbosity(level)
    assert result.attempted > 0
    assert result.failed == 0, capsys.readouterr().out
