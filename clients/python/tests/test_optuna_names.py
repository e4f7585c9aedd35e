"""The page about Optuna has a row for each of its public names, and what is called the same is there."""

from __future__ import annotations

import enum
import re
from types import ModuleType

import pytest
from conftest import ROOT

import fantasia_hpo as fantasia

optuna = pytest.importorskip("optuna")

PAGE = (ROOT / "docs/migrate/from-optuna.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| (same|other|no) \|(.*)\|$", re.MULTILINE)


def rows(title: str) -> dict[str, str]:
    """Return the names of a table, with what the page says of each."""
    section = PAGE.split(f"### `{title}`\n")[1].split("\n#")[0]
    found = {}
    for name, here, how in ROW.findall(section):
        assert name not in found, f"{title}.{name} is listed twice"
        assert here == "same" or how.strip(), f"{title}.{name} does not say how, or why not"
        found[name] = here
    assert len(found) == len(re.findall(r"^\| `", section, re.MULTILINE)), "a row has another form"
    return found


def names(thing: object) -> set[str]:
    """Return the public names of a class or a module, of an enumeration without its base."""
    listed = set(vars(thing)) if isinstance(thing, enum.EnumMeta) else set(dir(thing))
    if isinstance(thing, ModuleType):
        listed = {n for n, v in vars(thing).items() if getattr(v, "__module__", "") == thing.__name__}
        listed |= set(getattr(thing, "__all__", ()))
    return {name for name in listed if not name.startswith("_")}


@pytest.mark.parametrize(
    ("title", "theirs", "ours"),
    [
        ("optuna.Study", optuna.Study, fantasia.Study),
        ("optuna.Trial", optuna.Trial, fantasia.Trial),
        ("optuna.trial.FrozenTrial", optuna.trial.FrozenTrial, fantasia.FrozenTrial),
        ("optuna.trial.TrialState", optuna.trial.TrialState, fantasia.TrialState),
        ("optuna.study", optuna.study, fantasia),
        ("optuna.trial", optuna.trial, fantasia),
        ("optuna.distributions", optuna.distributions, None),
        ("optuna.exceptions", optuna.exceptions, None),
        ("optuna.logging", optuna.logging, fantasia.logging),
        ("optuna.visualization", optuna.visualization, None),
        ("optuna.samplers", optuna.samplers, None),
        ("optuna.pruners", optuna.pruners, None),
        ("optuna.storages", optuna.storages, None),
    ],
)
def test_page_has_each_name(title: str, theirs: object, ours: object) -> None:
    listed = rows(title)
    assert set(listed) == names(theirs)
    assert list(listed) == sorted(listed)
    same = {name for name, here in listed.items() if here == "same"}
    if ours is not None:
        fields = set(getattr(ours, "__dataclass_fields__", ()))
        made = {"number", "params", "user_attrs", "direction"}  # set when one is made
        assert all(hasattr(ours, name) or name in fields | made for name in same)
    else:
        assert not same


def test_algorithms_and_rules_exist(storage: object) -> None:
    for option, value in re.findall(r'`(algorithm|early_stopping)="(\w+)"`', PAGE):
        settings = {"threshold": {"upper": 1}}.get(value, {})
        given = fantasia.EarlyStopping(value, settings) if option == "early_stopping" else value
        fantasia.create_study(
            direction="minimize",
            parameters={"x": fantasia.Float(0, 1)},
            storage=storage,  # type: ignore[arg-type]
            **{option: given},  # type: ignore[arg-type]
        )
