"""Everything public has a type that type checkers know, except what comes from libraries without types."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow

# Modules whose classes extend one of a library that has no types.
EXTENDING = ("hydra", "keras", "lightgbm", "lightning", "optuna", "ray", "sklearn", "transformers", "xgboost")


def test_public_types_are_complete() -> None:
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "--verifytypes", "fantasia_hpo", "--ignoreexternal"]
    done = subprocess.run(
        [*command, "--outputjson", "--pythonpath", sys.executable],
        cwd=ROOT / "clients/python/src",
        capture_output=True,
        text=True,
        timeout=300,
    )
    report = json.loads(done.stdout)["typeCompleteness"]
    assert report["pyTypedPath"].endswith("py.typed")
    symbols = report["symbols"]
    assert len(symbols) > 300, "pyright has not found the package"
    unknown = [s["name"] for s in symbols if s["isExported"] and not s["isTypeKnown"]]
    assert [n for n in unknown if n.split(".")[1] not in EXTENDING] == []
