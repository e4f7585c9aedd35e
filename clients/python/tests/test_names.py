"""The rules for names of parameters and constraints, which the program `fantasia` has too."""

import json
from pathlib import Path

import pytest

TABLE = Path(__file__).parents[3] / "internal/exchange/migrate/testdata/names.json"
CONSTRAINTS = TABLE.with_name("constraints.json")


@pytest.mark.parametrize("case", json.loads(TABLE.read_text()), ids=lambda case: repr(case["name"]))
def test_names_are_those_of_the_program(case: dict[str, str]) -> None:
    pytest.importorskip("optuna")
    from fantasia_hpo.optuna import parameter_name

    assert parameter_name(case["name"]) == case["want"]


@pytest.mark.parametrize("case", json.loads(CONSTRAINTS.read_text()), ids=lambda case: repr(case["name"]))
def test_metrics_of_constraints_are_those_of_the_program(case: dict[str, str]) -> None:
    pytest.importorskip("optuna")
    from fantasia_hpo._constraints import constraint_metric

    assert constraint_metric(case["name"]) == case["want"]
