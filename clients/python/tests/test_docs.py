"""What the pages about Python and the README show, run as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = ["docs/tune/python.md", "docs/migrate/from-optuna.md", "clients/python/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_code_runs(page: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks
    (tmp_path / "page.py").write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout


def test_wheel_brings_the_program_and_is_reproducible(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        variables = {**os.environ, "DIST": str(tmp_path / name), "PLATFORMS": "linux/amd64"}
        subprocess.run([ROOT / "scripts/wheel"], env=variables, check=True, capture_output=True)
        (wheel,) = (tmp_path / name).glob("*.whl")
        made.append(wheel)
    assert made[0].read_bytes() == made[1].read_bytes()
    assert any(n.endswith(".data/scripts/fantasia") for n in zipfile.ZipFile(made[0]).namelist())

    home = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / "bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", made[0]], check=True)
    (code,) = BLOCK.findall((ROOT / "clients/python/README.md").read_text())
    bare = {name: v for name, v in os.environ.items() if name not in ("PYTHONPATH", "FANTASIA_PROGRAM")}
    bare["PATH"] = "/usr/bin:/bin"
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout
    assert (tmp_path / ".fantasia/_server").is_dir()
