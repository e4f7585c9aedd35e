"""Plays one run: a job on standard input, what play.play returns or an `error` as the last line of standard output."""

import json
import sys

from . import definitions, tuners
from .play import Evaluation, play


def outcome(job, python):
    """What a results line holds beside the job's head; a run that fails is a result, too."""
    try:
        with Evaluation(job["task"], python) as evaluation:
            tuner = tuners.make(job["tuner"], definitions.task(job["task"]).space, job["seed"], job["binary"], job["settings"])
            try:
                return play(tuner, evaluation, job["mode"], job["task"], job["seed"], job["trials"])
            finally:
                tuner.close()
    except Exception as problem:  # whatever a tuner raises
        return {"error": f"{type(problem).__name__}: {problem}"[:500]}


if __name__ == "__main__":
    print("\n" + json.dumps(outcome(**json.load(sys.stdin))))
