"""What each part of Fantasia's hebo is worth: the optimiser as it is, and with one part changed at a time."""

import os

from . import results

ALGORITHM = "fantasia:hebo"
SEEDS = (0, 1, 2)

# Settings of a part, and what tables call them. What is the default is left out.
_PARTS = (
    ({"warp": False}, "no input warping"),
    ({"warp": True}, "input warping"),
    ({"transform": False}, "no output transform"),
    ({"transform": True}, "output transform"),
    ({"kernel": "matern52"}, "Matérn-5/2 kernel"),
    ({"kernel": "matern32"}, "Matérn-3/2 kernel"),
    ({"linear": False}, "no linear kernel"),
    ({"linear": True}, "linear kernel"),
    ({"acquisition": "logei"}, "LogEI"),
    ({"acquisition": "mace"}, "MACE"),
    ({"acquisition": "mace", "robust": False}, "MACE, not robust"),
    ({"initial": 16}, "16 initial points"),  # two batches; by default 4 to 10, by the number of parameters
    ({"replicate": False}, "no replication"),
    ({"replicate": True}, "replication"),
    ({"plateaus": False}, "plateaus not left"),
)

# Settings that hebo no longer has: they gained nothing. Tables of kept runs still show them.
_GONE = (
    ({"acquisition": "logpi"}, "LogPI"),
    ({"acquisition": "ucb"}, "UCB"),
    ({"acquisition": "portfolio"}, "LogEI, every fourth time UCB"),
    ({"fantasy": "none"}, "pending points ignored"),
    ({"escape": False}, "no escape"),
    ({"escape": True}, "escape"),
)

_DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "internals", "optimiser.md")


def defaults(path=_DOCUMENT):
    """{setting: default, as text} of hebo, from the documentation, which a test of the Go code holds to the program."""
    with open(path) as file:
        page = file.read()
    rows = []
    for table in ("<!-- settings of hebo:", "<!-- experimental settings of hebo:"):
        for line in page.partition(table)[2].split("\n")[3:]:
            if not line.startswith("|"):
                break
            rows.append([cell.strip(" `") for cell in line.strip("| ").split(" | ")])
    return {name: default for name, default, *_ in rows}


def variants(known=None):
    """[(settings, name), ...], the optimiser as it is first."""
    known = defaults() if known is None else known
    changed = [(s, name) for s, name in _PARTS if any(known.get(k) != str(v).lower() for k, v in s.items())]
    return [({}, "as it is"), *changed]


def names(algorithm=ALGORITHM):
    """{label in results: name in tables} of all variants, whatever the defaults are."""
    return {results.label(algorithm, settings): name for settings, name in [({}, "as it is"), *_PARTS, *_GONE]}
