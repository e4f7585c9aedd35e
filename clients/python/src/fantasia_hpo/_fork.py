"""What a forked process must not share with its parent: locks, connections and identities."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Renewable(Protocol):
    """Something of a process that a fork makes anew."""

    def _renew(self) -> None:
        """Replace what belongs to the parent. No other thread runs."""


_known: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_after_fork(thing: Renewable) -> None:
    """Have `_renew` called in each process that is forked while the thing lives."""
    _known.add(thing)


def _renew_all() -> None:
    for thing in list(_known):
        thing._renew()


os.register_at_fork(after_in_child=_renew_all)
