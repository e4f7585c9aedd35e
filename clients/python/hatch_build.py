"""Puts the program `fantasia` into a wheel, if FANTASIA_WHEEL_PROGRAM names one.

FANTASIA_WHEEL_PLATFORM is then the wheel's platform tag. Without these variables the
wheel is pure Python, and the client looks for `fantasia` on the PATH.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface[Any]):
    """Adds the program as a script, so that installing the wheel puts it on the PATH."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the platform and add the program before the wheel is built."""
        program = os.environ.get("FANTASIA_WHEEL_PROGRAM")
        if not program or version == "editable":
            return
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + os.environ["FANTASIA_WHEEL_PLATFORM"]
        build_data["shared_scripts"][program] = "fantasia"
