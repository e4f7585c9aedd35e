"""Registers `hydra/sweeper=fantasia`. Hydra takes plugins only from this package."""

from __future__ import annotations

from hydra.core.config_store import ConfigStore

from fantasia_hpo import hydra as _fantasia


class FantasiaSweeper(_fantasia.FantasiaSweeper):
    """See fantasia_hpo.hydra.FantasiaSweeper."""


ConfigStore.instance().store(
    group="hydra/sweeper", name="fantasia", node=_fantasia.SweeperConfig, provider="fantasia"
)
