"""Optuna's own tests of samplers, run on FantasiaSampler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase

from fantasia_hpo import optuna as fantasia_optuna

pytestmark = pytest.mark.slow


class _Fantasia:
    """Makes the sampler that Optuna's tests use."""

    @pytest.fixture
    def sampler(self, storage: Path) -> Callable[[], BaseSampler]:
        return lambda: fantasia_optuna.FantasiaSampler(storage=storage, algorithm="random")


class TestBasic(_Fantasia, BasicSamplerTestCase):
    """What Optuna expects of every sampler."""


class TestSeveralObjectives(_Fantasia, MultiObjectiveSamplerTestCase):
    """What Optuna expects with several objectives."""
