"""The lines that the client writes: one for each trial of `optimize`, and warnings.

They go to the logger `fantasia_hpo`. If the program has not set up logging, they are written to
standard error, above a progress bar if there is one. In a notebook that shows the progress, the line
about the latest trial replaces the one before.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

_FORMAT = "[%(levelname).1s %(asctime)s] %(message)s"

WARNING = logging.WARNING
logger: logging.Logger = logging.getLogger("fantasia_hpo")
Writer = Callable[[str, int], None]  # writes a line of a level

_writers: list[Writer] = []  # of the progress that is shown; the last one writes


class _Handler(logging.Handler):
    """Writes lines to standard error as long as the program has no handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless the root logger has handlers, which get it too."""
        if logging.getLogger().handlers:
            return
        try:
            line = self.format(record)
            if _writers:
                _writers[-1](line, record.levelno)
            else:
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
        except Exception:
            self.handleError(record)


_handler = _Handler()
_handler.setFormatter(logging.Formatter(_FORMAT))


def set_verbosity(level: int | str) -> None:
    """Set the least level of the lines that are written, such as `logging.WARNING`; at first, INFO.

    Examples:
        >>> import logging
        >>> fantasia.logging.set_verbosity(logging.WARNING)  # no line for each trial
    """
    logger.setLevel(level)


def get_verbosity() -> int:
    """Return the least level of the lines that are written.

    Examples:
        >>> fantasia.logging.set_verbosity("WARNING")
        >>> fantasia.logging.get_verbosity()
        30
    """
    return logger.getEffectiveLevel()


def enable_default_handler() -> None:
    """Write lines to standard error, as at first.

    Examples:
        >>> fantasia.logging.enable_default_handler()
    """
    logger.addHandler(_handler)


def disable_default_handler() -> None:
    """Leave writing to the handlers of the program.

    Examples:
        >>> fantasia.logging.disable_default_handler()
        >>> fantasia.logging.enable_default_handler()
    """
    logger.removeHandler(_handler)


def _write_by(writer: Writer) -> None:
    """Have lines written by what shows the progress, so that it stays below them."""
    _writers.append(writer)


def _write_no_longer_by(writer: Writer) -> None:
    """Take back `_write_by`."""
    _writers.remove(writer)


enable_default_handler()
if logger.level == logging.NOTSET:
    logger.setLevel(logging.INFO)
