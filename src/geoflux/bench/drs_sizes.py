"""How much `geoflux bench drs` tries of the model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelSizes:
    """How much is tried."""

    ks: tuple[int, ...] = (1, 2, 3, 5, 10, 30, 100, 170, 171, 300, 1000)
    networks: int = 1000
    """For the greedy."""
    simulated: int = 40
    """Of each kind."""
    trees: int = 400_000
    customers: int = 40_000
    """For ciw."""


FULL = ModelSizes()
QUICK = ModelSizes((1, 2, 10, 171, 1000), 200, 6, 60_000, 20_000)
