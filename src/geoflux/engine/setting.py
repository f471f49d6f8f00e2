"""What an engine runs with, and what follows from the settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from geoflux.balance.policy import Policy, Static
from geoflux.config import Config
from geoflux.engine.rooted import Sampling
from geoflux.engine.source import ControlSource
from geoflux.engine.wanted import WantedSlots
from geoflux.settings import seconds
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.store import Store

_FOLLOW_LATENESS_SECONDS = 60.0


@dataclass(frozen=True)
class Setting:
    """What an engine runs with: settings, where it keeps things, what it is told by whom."""

    config: Config
    store: Store
    schema: pa.Schema
    control: ControlSource
    policy: Policy = field(default_factory=Static)
    clock: Callable[[], float] = time.time
    wanted_slots: WantedSlots | None = None
    """Asked at every commit; ``None``: the number of slots stays."""
    sampling: Sampling | None = None
    """Which rows are followed through the application; ``None``: none."""

    @property
    def grid(self) -> Grid:
        """The grid over the space."""
        columns, rows = self.config.space.grid
        return Grid(Space.of(self.config.space), columns, rows)

    @property
    def control_is_fixed(self) -> bool:
        """Whether control files are read to their end before the first event, and never again."""
        return self.config.run.mode == "drain" and self.config.source.kind != "simulate"

    @property
    def lateness_micros(self) -> int | None:
        """How far the watermark stays behind; ``None``: no watermark, queries do not expire."""
        text = self.config.engine.lateness
        if text:
            return round(seconds(text) * 1e6)
        if self.config.run.mode == "drain":
            return None
        return round(_FOLLOW_LATENESS_SECONDS * 1e6)

    @property
    def idle_seconds(self) -> float | None:
        """How long a source may be silent before time goes on without it."""
        return seconds(self.config.engine.idle) if self.config.engine.idle else None
