"""What each part of Fantasia's hebo is worth: the optimiser as it is, and with one part changed at a time."""

from . import results

ALGORITHM = "fantasia:hebo"
SEEDS = (0, 1, 2)

# The settings that change a part, and what the table calls it.
VARIANTS = (
    ({}, "as it is"),
    ({"warp": False}, "no input warping"),
    ({"transform": False}, "no output transform"),
    ({"kernel": "matern52"}, "Matérn-5/2 for Matérn-3/2"),
    ({"linear": False}, "no linear kernel"),
    ({"acquisition": "ucb"}, "UCB alone"),
    ({"fantasy": "none"}, "pending points ignored"),
    ({"replicate": False}, "no replication"),
)


def names(algorithm=ALGORITHM):
    """{label in results: name in tables}."""
    return {results.label(algorithm, settings): name for settings, name in VARIANTS}
