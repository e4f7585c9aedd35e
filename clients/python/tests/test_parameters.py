from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fantasia_hpo import (
    Bool,
    Categorical,
    Fidelity,
    Fixed,
    Float,
    Int,
    Normal,
    Ordinal,
    Parameter,
    SpaceError,
)
from fantasia_hpo.parameters import decode_point, encode_point, parameter_of

SPACE: dict[str, Parameter] = {
    "lr": Float(1e-5, 1e-1, scale="log", prior=Normal(1e-3, 0.5)),
    "dropout": Float(0, 0.5, step=0.1),
    "decay": Float(0.9, 0.999, scale="logit"),
    "layers": Int(1, 4),
    "width": Int(16, 512, scale="log"),
    "batch": Int(8, 64, step=8),
    "solver": Categorical(["adam", "sgd"], weights=[3, 1]),
    "momentum": Float(0.0, 0.99, when={"solver": ["sgd"]}),
    "nesterov": Bool(when={"solver": "sgd"}),
    "precision": Ordinal([8, 16, 32]),
    "mixed": Categorical([1, True, 2.5]),
    "epochs": Fixed(10),
    "steps": Fidelity(1, 81),
}


def test_program_accepts_every_parameter(program: str, tmp_path: Path) -> None:
    study = {
        "apiVersion": "fantasia.dev/v1",
        "kind": "Study",
        "metadata": {"name": "space"},
        "spec": {
            "objective": {"metric": "loss", "direction": "minimize"},
            "parameters": [p.document(name) for name, p in SPACE.items()],
            "budget": {"maxTrials": 5},
            "trial": {"command": ["true"]},
        },
    }
    path = tmp_path / "space.json"
    path.write_text(json.dumps(study))
    subprocess.run([program, "check", str(path)], check=True, capture_output=True)


@pytest.mark.parametrize("name", SPACE)
def test_document_describes_the_parameter(name: str) -> None:
    document = json.loads(json.dumps(SPACE[name].document(name)))
    assert parameter_of(document).document(name) == document


def test_points_keep_pythons_types() -> None:
    # A server may write a float that is whole, and an int, either way.
    point = {"mixed": True, "lr": 1, "width": 64.0, "precision": 16.0, "epochs": 10, "nesterov": False}
    decoded = decode_point(SPACE, point)
    assert list(decoded) == ["lr", "width", "nesterov", "precision", "mixed", "epochs"]
    assert [type(v) for v in decoded.values()] == [float, int, bool, int, bool, int]
    assert type(decode_point(SPACE, {"mixed": 1})["mixed"]) is int


def test_texts_of_values() -> None:
    # A command has 1, 1.0 and "1" in the same way, and the server wants different values.
    values = [1, 1.0, "1", True, "true", None, "None", 2**60, float("nan"), (1,), test_levels_of_a_fidelity]
    mixed = Categorical(values)
    assert mixed.document("x")["values"] == [
        *(1, "1.0", "1 (2)", True, "true (2)", "None", "None (2)"),
        *(str(2**60), "nan", "(1,)", "<function test_levels_of_a_fidelity>"),
    ]
    for value in values:
        assert mixed.decode(json.loads(json.dumps(mixed.encode(value)))) is value
    copied = (*(1,),)  # what a copy of a storage has
    assert mixed.decode(mixed.encode(copied)) == (1,)
    assert mixed.encode(np.int64(1)) == 1
    with pytest.raises(SpaceError, match=r"expected one of .* got 5"):
        mixed.encode(5)


def test_levels_of_a_fidelity() -> None:
    assert Fidelity(1, 81).levels == (1, 3, 9, 27, 81)
    assert Fidelity(2, 90, reduction=4).levels == (2, 8, 90)
    assert encode_point({"epochs": Fidelity(1, 9)}, {"epochs": np.int64(3)}) == {"epochs": 3}
    with pytest.raises(SpaceError, match="'epochs': expected one of 1, 3, 9, got 4"):
        encode_point({"epochs": Fidelity(1, 9)}, {"epochs": 4})


def test_points_accept_numpys_scalars() -> None:
    encoded = encode_point(SPACE, {"lr": np.float32(0.01), "width": np.int64(64), "nesterov": np.bool_(True)})
    assert json.loads(json.dumps(encoded)) == {"lr": pytest.approx(0.01), "width": 64, "nesterov": True}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(1, 0), r"high: expected a number above low, 1\.0, got 0\.0"),
        (lambda: Fidelity(0, 9), "low: expected a whole number of at least 1, got 0"),
        (lambda: Fidelity(1, 2), "high: expected a whole number of at least 3 times low, 3, got 2"),
        (lambda: Fidelity(1, 9, 1), "reduction: expected a whole number of at least 2, got 1"),
        (lambda: Float(0, 1, scale="log"), r"low: expected a number above 0 for scale='log', got 0\.0"),
        (lambda: Float(0, 1, scale="Log"), r"scale: expected one of 'linear', 'log', 'logit', got 'Log'"),  # type: ignore[arg-type]
        (lambda: Float("0", 1), r"low: expected a finite number, got '0'"),  # type: ignore[arg-type]
        (lambda: Float(0, float("inf")), r"high: expected a finite number, got inf"),
        (lambda: Float(0, 1, step=0), r"step: expected a number above 0, got 0\.0"),
        (lambda: Int(1, 2.5), r"high: expected a whole number, got 2\.5"),  # type: ignore[arg-type]
        (lambda: Int(True, 2), r"low: expected a whole number, got True"),
        (lambda: Categorical("adam"), r"values: expected a list of values, got the string 'adam'"),
        (lambda: Categorical(["adam"]), r"values: expected at least two, got \['adam'\]"),
        (lambda: Categorical(["adam", None, None]), r"values: expected different values, got None twice"),
    ],
)
def test_invalid_parameters_say_what_is_accepted(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        make()


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"lr": 1.0}, r"parameter 'lr': expected a number from 1e-05 to 0\.1, got 1\.0"),
        ({"width": 8}, r"parameter 'width': expected a whole number from 16 to 512, got 8"),
        ({"solver": "lbfgs"}, r"parameter 'solver': expected one of 'adam', 'sgd', got 'lbfgs'"),
        ({"precision": True}, r"parameter 'precision': expected one of 8, 16, 32, got True"),
        ({"nesterov": 1}, r"parameter 'nesterov': expected True or False, got 1"),
        ({"depth": 1}, r"parameter 'depth' is not declared; declared are lr, dropout, "),
    ],
)
def test_invalid_points_say_what_is_accepted(point: dict[str, Any], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        encode_point(SPACE, point)
