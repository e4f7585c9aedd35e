"""One run of one tuner on one task."""

import json
import math
import statistics
import subprocess
import tempfile
import time

from . import clock, definitions

CHECKPOINTS = (24, 48, 128)
REPEATS = 20  # evaluations of an incumbent


def noise_seed(seed, evaluation):
    """The noise of a run's n-th evaluation, n from 0: the same for every tuner."""
    return seed * 1_000_003 + evaluation


def fresh_seed(repeat):
    """The noise of the n-th repeated evaluation of an incumbent, n from 0: the same for all runs, and none that a run has seen."""
    return 7_000_000 + repeat


class Evaluation:
    """A task's evaluator, as a process with a Python of its own. Use it as a context."""

    def __init__(self, task, python):
        script = definitions.study(task, "random")["spec"]["trial"]["command"][1:]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([python, *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.known = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()

    def loss(self, point, seed):
        """The loss, or None where the model could not be fitted."""
        request = {"study": "benchmark", "trial": 1, "attempt": 1, "seed": seed, "parameters": point}
        try:
            self.process.stdin.write(json.dumps({"fantasia": request}) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.log.seek(0)
            raise RuntimeError(f"the evaluator has ended with {self.process.wait()}: {self.log.read()[-300:].strip() or 'it said nothing'}")
        return json.loads(answer)["fantasia"].get("metrics", {}).get("loss")

    def again(self, point):
        """[mean, standard deviation, number] of repeated losses of a point, or None; a loss without noise is seen thrice."""
        key = json.dumps(point, sort_keys=True)
        if key not in self.known:
            losses = [self.loss(point, fresh_seed(i)) for i in range(3)]
            if len(set(losses)) > 1:
                losses += [self.loss(point, fresh_seed(i)) for i in range(3, REPEATS)]
            held = [y for y in losses if y is not None]
            self.known[key] = [statistics.fmean(held), statistics.pstdev(held), len(held)] if held else None
        return self.known[key]


def play(tuner, evaluation, mode, task, seed, trials=definitions.TRIALS, workers=definitions.WORKERS):
    """What a results line holds of a run:

    losses  in the order in which the tuner was told, null where the model could not be fitted
    times   virtual, of the same tells
    asks    seconds that each ask took
    fresh   {evaluations: [mean, sd, n]} of the incumbent, evaluated again: the tuner's recommendation, or the best seen
    """
    losses, times, asks, fresh, evaluated = [], [], [], {}, 0
    best, incumbent = math.inf, None

    def ask(n):
        nonlocal evaluated
        start = time.perf_counter()
        suggestions = tuner.ask(n)
        asks.append(round(time.perf_counter() - start, 5))
        batch = []
        for key, point in suggestions:
            batch.append((key, evaluation.loss(point, noise_seed(seed, evaluated)), point))
            evaluated += 1
        return batch

    def tell(batch):
        tuner.tell([(key, loss) for key, loss, _ in batch])

    def look():
        if incumbent is not None:
            fresh[len(losses)] = evaluation.again(tuner.recommend() or incumbent)

    for now, told in clock.turns(mode, ask, tell, clock.durations(task, seed), trials, workers):
        for _, loss, point in told:
            losses.append(loss)
            times.append(round(now, 4))
            if loss is not None and loss < best:
                best, incumbent = loss, point
        if len(losses) in CHECKPOINTS:
            look()
    if losses and len(losses) not in fresh:
        look()  # a run that ran out of points, or was to be shorter
    return {"losses": losses, "times": times, "asks": asks, "fresh": fresh}


def thread_variables(count):
    """The environment that bounds the threads of numerical libraries and of Go."""
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GOMAXPROCS"), str(count))
