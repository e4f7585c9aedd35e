"""What the tests share: the program, and a directory with a server of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fantasia_hpo import _server

ROOT = Path(__file__).resolve().parents[3]
os.environ["PYTHONPATH"] = str(ROOT / "clients/python/src")  # for the programs that tests start


@pytest.fixture(scope="session")
def program() -> str:
    """Return the path of the program `fantasia`."""
    found = shutil.which("fantasia", path=f"{ROOT / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert found, "run make build first: bin/fantasia is missing"
    return found


@pytest.fixture(scope="session", autouse=True)
def _program(program: str) -> None:
    """Have the client start the program that was built here."""
    os.environ["FANTASIA_PROGRAM"] = program
    os.environ.pop("FANTASIA_SERVER", None)
    os.environ.pop("FANTASIA_TOKEN", None)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a directory whose server the tests of a module share."""
    yield tmp_path_factory.mktemp("storage")
    _server.close_servers()


@pytest.fixture
def storage(shared: Path) -> Path:
    """Return where a test keeps its studies."""
    return shared
