"""Plays many runs, some at a time, and keeps what came out."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field

from . import definitions, results, tuners
from .play import thread_variables


def home():
    """Where the environments are."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("BENCHMARKS_HOME") or os.path.join(cache, "fantasia-benchmarks")


def tasks_python():
    """The Python that evaluates tasks; it exits where `setup` has not been run."""
    python = os.path.join(home(), "tasks", "bin", "python")
    if not os.path.exists(python):
        sys.exit(f"there is no {python}: run `research/benchmarks/setup tasks`")
    return python


@dataclass(frozen=True)
class Job:
    """A run to play."""

    task: str
    tuner: str
    mode: str
    seed: int
    trials: int = definitions.TRIALS
    settings: dict = field(default_factory=dict)
    binary: str = ""
    program: str | None = None

    def head(self):
        """The fields of its line that are known before it is played."""
        return {"task": self.task, "optimizer": results.label(self.tuner, self.settings), "mode": self.mode, "seed": self.seed, "program": self.program}


def jobs(names, tuner_names, modes, seeds, binary, settings=None, trials=definitions.TRIALS):
    """Every combination, seed by seed. It exits where a tuner cannot be had."""
    program = None
    for tuner in tuner_names:
        try:
            tuners.check(tuner, binary)
        except tuners.UnavailableError as problem:
            sys.exit(str(problem))
        if tuner.startswith(tuners.FANTASIA):
            program = program or results.digest(binary)
    made = []
    for seed in seeds:
        for mode in modes:
            for tuner in tuner_names:
                own = {"settings": settings or {}, "binary": binary, "program": program} if tuner.startswith(tuners.FANTASIA) else {}
                made += [Job(task, tuner, mode, seed, trials, **own) for task in names]
    return made


def _play(job, python):
    """A run in a process of its own: what a tuner leaves behind changes no other run, and one that dies is this run's failure."""
    start = time.perf_counter()
    request = json.dumps({"job": asdict(job), "python": python})
    environment = os.environ | thread_variables(1) | {"PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
    child = subprocess.run([sys.executable, "-m", "fantasia_bench.one"], input=request, env=environment, capture_output=True, text=True)
    try:
        outcome = json.loads(child.stdout.splitlines()[-1])  # libraries may print before it
    except (IndexError, ValueError):
        outcome = {"error": f"the run's process ended with {child.returncode}: {child.stderr.strip()[-400:]}"}
    return job.head() | outcome, time.perf_counter() - start


def run(todo, path, at_once, out=sys.stderr):
    """Plays the jobs that a results file lacks and adds them to it; returns how many failed."""
    python, known = tasks_python(), results.done(path)
    left = [j for j in todo if (*results.key(j.head()), j.program) not in known]
    print(f"{len(todo) - len(left)} of {len(todo)} runs are in {path}, {len(left)} to go", file=out, flush=True)
    failed, start = 0, time.monotonic()
    with ThreadPoolExecutor(at_once) as pool, results.append(path) as kept:
        waiting = [pool.submit(_play, job, python) for job in left]
        try:
            for count, future in enumerate(as_completed(waiting), 1):
                line, took = future.result()
                results.write(kept, line)
                failed += "error" in line
                remaining = (time.monotonic() - start) / count * (len(left) - count)
                print(f"{count}/{len(left)} {' '.join(map(str, results.key(line)))}: {_outcome(line)}, {took:.0f} s; {_span(remaining)} left", file=out, flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what runs was interrupted as well, or ends in vain
            raise
    return failed


def _outcome(line):
    held = [y for y in line.get("losses", []) if y is not None]
    return line["error"] if "error" in line else f"best {min(held):.5g}" if held else "no evaluation succeeded"


def _span(seconds):
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else f"{seconds:.0f} s"
