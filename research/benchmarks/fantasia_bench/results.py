"""Results: a file of JSON, a line a run, only ever added to.

A line has task, optimizer (the tuner's label), mode, seed and program (a digest of Fantasia's, null for peers), and what
play.play returns, or `error`.
"""

import hashlib
import json
import lzma
import os
import sys


def label(tuner, settings=None):
    """A tuner's name in results: with settings, they follow it."""
    return tuner + (json.dumps(settings, separators=(",", ":"), sort_keys=True) if settings else "")


def digest(binary):
    """What tells one build of a program from another."""
    with open(binary, "rb") as program:
        return hashlib.sha256(program.read()).hexdigest()[:12]


def key(run):
    return run["task"], run["optimizer"], run["mode"], run["seed"]


def load(*paths):
    """The runs of some files, which xz may have compressed. A line that was cut off by an interruption is left out."""
    runs = []
    for path in paths:
        with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    runs.append(json.loads(line))
                except ValueError:
                    print(f"{path}:{number} is no run, and left out", file=sys.stderr)
    return runs


def latest(runs, mixed=False):
    """{key: run}, the last of each key. Of Fantasia's only those of the program that ran last, unless programs may be mixed."""
    programs = [r["program"] for r in runs if r.get("program")]
    kept = {key(r): r for r in runs if mixed or r.get("program") in (None, *programs[-1:])}
    older = {key(r) for r in runs} - set(kept)
    if older:
        print(f"{len(older)} runs of Fantasia are of an older program, and left out; --mixed keeps them", file=sys.stderr)
    return kept


def done(path):
    """The keys, each with its program, of the runs in a file that need no repetition."""
    return {(*key(r), r.get("program")) for r in load(path) if "error" not in r} if os.path.exists(path) else set()


def append(path):
    """Opens a file to add lines to, on a line of their own even if the last one was cut off."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    out = open(path, "a+b")
    if out.tell() > 0:
        out.seek(-1, os.SEEK_END)
        if out.read(1) != b"\n":
            out.write(b"\n")
    return out


def write(out, run):
    out.write(json.dumps(run, separators=(",", ":")).encode() + b"\n")
    out.flush()
