"""How far the source of a run reaches: what will ever come of it, and what is due and unread.

Only looked at, never advanced: a source that would have to be asked, or that would write down what
it found, tells nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from geoflux import run_inputs
from geoflux.config import Config
from geoflux.engine.files import FileEvents
from geoflux.engine.source import EventSource
from geoflux.state.keys import RUN
from geoflux.state.store import Store
from geoflux.workload import Simulator


@dataclass(frozen=True)
class Reach:
    """The source of a run, as far as anybody who looks on may know it."""

    source: EventSource | None = None

    @classmethod
    def of(cls, out: str | Path) -> Reach:
        """Of the run in a directory, as far as it has begun."""
        store = Store(str(out))
        if not store.exists(RUN):
            return cls()
        noted = store.read_json(RUN)
        config = Config.restored(noted["config"])
        if noted["lane"] == "dataframe" or "streams" in noted:
            return cls()
        if config.source.kind not in ("simulate", "files"):
            return cls()
        return cls(run_inputs.configured_inputs(config, store, noted["started"]).events)

    def total(self) -> int | None:
        """Positions that will ever come, where that is known."""
        known = isinstance(self.source, Simulator | FileEvents)
        return self.source.total() if known and self.source is not None else None

    def unread(self, position: int) -> int | None:
        """Rows that are due and were not read; ``None`` where nobody keeps time."""
        if isinstance(self.source, Simulator) and self.source.scenario.simulate.paced:
            return self.source.latest(position, None) - position
        return None
