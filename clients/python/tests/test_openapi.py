"""The API against its OpenAPI document, with requests that schemathesis makes of it.

FANTASIA_API_EXAMPLES is how many requests each call gets at most.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import fantasia_hpo as fantasia

pytestmark = pytest.mark.slow

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)


@pytest.fixture
def server(program: str, tmp_path: Path) -> Iterator[str]:
    """Start `fantasia serve` on a port, and return its URL."""
    command = [program, "serve", "--state", str(tmp_path / "state"), "--exit-with-parent"]
    with (tmp_path / "log").open("wb") as log:
        serving = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    assert serving.stdin is not None
    assert serving.stdout is not None
    try:
        yield json.loads(serving.stdout.readline())["url"]
    finally:
        serving.stdin.close()  # it ends with its parent
        serving.wait(60)
        serving.stdout.close()


def test_answers_are_as_documented(server: str, tmp_path: Path) -> None:
    fantasia.create_study(
        name="api", storage=server, direction="minimize", parameters={"x": fantasia.Float(0, 1)}
    )
    with urllib.request.urlopen(f"{server}/openapi.json", timeout=30) as answer:
        document = json.load(answer)
    assert "/fantasia.v1.StudyService/SuggestTrials" in document["paths"]
    options = {
        "url": server,
        "checks": ",".join(CHECKS),
        "phases": "coverage,fuzzing",
        "max-examples": os.environ.get("FANTASIA_API_EXAMPLES", "10"),
        "seed": "1",
        "request-timeout": "30",
        "warnings": "off",
        "header": "Connect-Timeout-Ms: 30000",  # with 0, which is valid, each call is late
        "generation-database": "none",
    }
    command = [
        str(Path(sys.executable).with_name("st")),
        "run",
        f"{server}/openapi.json",
        "--continue-on-failure",
    ]
    command += [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-3000:]
