"""The example notebook runs in a real kernel, and an interrupt of a kernel leaves no trial open."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import fantasia_hpo as fantasia

pytestmark = pytest.mark.slow

NOTEBOOK = ROOT / "examples/notebook/digits.ipynb"
WAIT = 120  # seconds for a step that takes a few


def outputs(notebook: Any, line: str) -> list[Any]:
    """Return the outputs of the only code cell with this line."""
    (cell,) = (c for c in notebook.cells if c.cell_type == "code" and line in c.source.splitlines())
    return list(cell.outputs)


def test_example_runs(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(c.get("outputs") for c in notebook.cells), "keep the notebook without outputs"
    client.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()

    # Progress is one output with the picture in it, however many trials end.
    shown = outputs(notebook, "def error(trial):")
    assert [o.output_type for o in shown] == ["display_data"]
    assert "24/24" in shown[0].data["text/plain"]
    assert "<svg" in shown[0].data["text/html"]
    (summary,) = outputs(notebook, "study")
    assert "notebook" in summary.data["text/html"]
    for picture in ('study.picture("importances")', 'study.picture("dependence", "gamma")'):
        (made,) = outputs(notebook, picture)
        assert made.data["image/svg+xml"].lstrip().startswith("<svg")

    study = fantasia.load_study("notebook", tmp_path / ".fantasia")
    assert len(study.trials) == 24
    assert study.note.startswith("small gamma")
    assert study.best_value < 0.1  # of ten digits, a constant answer is wrong nine times in ten


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """Return a kernel that runs in a directory of its own, and its client."""
    manager_of = pytest.importorskip("jupyter_client.manager")
    manager, client = manager_of.start_new_kernel(
        kernel_name="python3", cwd=str(tmp_path), startup_timeout=WAIT
    )
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_interrupt_leaves_no_trial_open(kernel: tuple[Any, Any], tmp_path: Path) -> None:
    manager, client = kernel
    request = client.execute(
        "import threading\n"
        "import fantasia_hpo as fantasia\n"
        "both = threading.Barrier(3)\n"
        "def slow(trial):\n"
        "    both.wait()\n"
        "    threading.Event().wait(600)\n"
        "space = {'x': fantasia.Float(0, 1)}\n"
        "study = fantasia.create_study(name='n', direction='minimize', parameters=space)\n"
        "threading.Thread(target=lambda: (both.wait(), print('begun', flush=True)), daemon=True).start()\n"
        "study.optimize(slow, n_trials=4, n_jobs=2)\n"
    )
    begun = False
    while not begun:
        message = client.get_iopub_msg(timeout=WAIT)
        begun = "begun" in message["content"].get("text", "")
    manager.interrupt_kernel()
    while True:
        try:
            reply = client.get_shell_msg(timeout=WAIT)
        except queue.Empty:
            pytest.fail("the cell did not end")
        if reply["parent_header"].get("msg_id") == request:
            break
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    states = {t.number: t.state for t in fantasia.load_study("n", tmp_path / ".fantasia").trials}
    assert list(states) == [1, 2]
    assert set(states.values()) == {fantasia.TrialState.PENDING}
