"""What `optimize` shows while it runs, on a real terminal and in a log."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

SCRIPT = """
import sys
import fantasia_hpo as fantasia

if "plain" in sys.argv:
    sys.modules["tqdm"] = None  # as if it was not installed
if "quiet" in sys.argv:
    fantasia.logging.set_verbosity("WARNING")
if "own" in sys.argv:
    import logging
    logging.basicConfig(format="own: %(message)s", level="INFO")

study = fantasia.create_study(
    storage=sys.argv[1],
    direction="minimize",
    parameters={"x": fantasia.Float(0, 1)},
    algorithm="random",
    seed=1,
)

def objective(trial):
    if trial.number == 3:
        raise fantasia.TrialInfeasible("too large")
    return trial.number / 8

study.optimize(objective, n_trials=6, show_progress_bar=False if "hidden" in sys.argv else None)
"""


def on_a_terminal(storage: Path, *words: str) -> str:
    """Run the script with a terminal as standard error, and return what it showed."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
    command = [sys.executable, "-c", SCRIPT, str(storage), *words]
    with subprocess.Popen(command, stderr=child, stdout=child) as process:
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 4096)
            except OSError:  # the program has ended
                break
            if not part:
                break
            shown += part
        assert process.wait(60) == 0, shown.decode()
    os.close(parent)
    return shown.decode()


LINE = re.compile(r"\[I \d{4}-.*\] trial (\d) (completed|infeasible)")


@pytest.mark.parametrize("plain", ["", "plain"])
def test_terminal_shows_a_bar_and_a_line_a_trial(storage: Path, plain: str) -> None:
    shown = on_a_terminal(storage, plain)
    assert [int(number) for number, _ in LINE.findall(shown)] == [1, 2, 3, 4, 5, 6]
    assert "6/6" in shown
    last = re.split(r"[\r\n]+", shown.strip())[-1]
    assert "best 0.125" in last
    assert "infeasible 1" in last
    assert "running 0" in last
    if not plain:
        assert "100%" in last  # of tqdm
    # Each line is whole: the bar is cleared before it.
    assert all(row.startswith(("[I", "\x1b[K[I")) for row in re.split(r"[\r\n]+", shown) if "[I" in row)


@pytest.mark.parametrize("words", [("hidden",), ("quiet",), ("own",)])
def test_what_is_shown_can_be_set(storage: Path, words: tuple[str, ...]) -> None:
    shown = on_a_terminal(storage, *words)
    assert ("6/6" in shown) == (words != ("hidden",))
    assert len(LINE.findall(shown)) == (6 if words == ("hidden",) else 0)
    assert shown.count("own: trial") == (6 if words == ("own",) else 0)


def test_log_file_has_lines_without_a_bar(storage: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(storage)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 6
    assert all(LINE.match(line) for line in lines)
    assert "trial 3 infeasible (too large), {'x': " in lines[2]
    assert "; best 0.125" in lines[5]
