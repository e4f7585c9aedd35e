"""The modules of the package import each other in one direction."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter

from conftest import ROOT

PACKAGE = ROOT / "clients/python/src/fantasia_hpo"


def imported(module: str) -> set[str]:
    """Return the modules of the package that one imports, also those that it imports late."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module} if node.module else {alias.name for alias in node.names}
    return found


def test_imports_have_no_circle() -> None:
    modules = {path.stem: imported(path.stem) for path in PACKAGE.glob("*.py")}
    assert modules["study"] >= {"_ask", "_optimize", "mlflow"}
    order = list(TopologicalSorter(modules).static_order())  # raises CycleError
    assert order.index("record") < order.index("trial") < order.index("_ask") < order.index("_optimize")
