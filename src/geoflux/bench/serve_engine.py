"""A run without Spark that goes on for ever, as a process that can be killed at any moment.

    python -m geoflux.bench.serve_engine OUT < settings.json

The same sources, engine and epochs as on Spark, one task after another, so that a restart takes a
second instead of ten: the server beside it sees no difference.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from geoflux import run_inputs, run_plan
from geoflux.config import Config
from geoflux.engine.engine import Engine
from geoflux.engine.epochs import Manifest
from geoflux.engine.inline import run_epoch
from geoflux.engine.setting import Setting
from geoflux.engine.source import EventSource
from geoflux.state.store import Store

_LOOK_SECONDS = 0.02


class InlineRun:
    """A run in a directory, begun or gone on with; ``step`` runs an epoch."""

    def __init__(self, config: Config, out: Path) -> None:
        store = Store(str(out))
        inputs = run_inputs.opened_inputs(config, store, None)
        assert inputs.events is not None
        self.source: EventSource = inputs.events
        self.setting = Setting(
            config, store, inputs.schema, inputs.control, run_plan.policy_of(config)
        )
        self.engine = Engine.recovered(
            self.setting, lambda: run_plan.first_plan(self.setting, self.source)
        )
        last = self.engine.last
        noted: Any = {} if last is None else self.engine.manifest(last)
        self.position = int(noted.get("position", 0))
        self._control = noted.get("control", {})

    def step(self, always: bool = True) -> Manifest | None:
        """The next epoch over all that is there; without ``always`` only if there is something."""
        end = self.source.latest(self.position, self.engine.epoch_events)
        if not (always or end > self.position or self._is_told()):
            return None
        number = 0 if self.engine.last is None else self.engine.last + 1
        about = {"position": end, "arrivals": None}
        manifest = run_epoch(self.engine, self.source, number, (self.position, end), about=about)
        self.position, self._control = end, manifest["control"]
        return manifest

    def _is_told(self) -> bool:
        return bool(self.setting.control.poll(self._control) != self._control)


def main() -> None:
    """Run until killed."""
    run = InlineRun(Config.from_dict(json.load(sys.stdin)), Path(sys.argv[1]))
    print("ready", flush=True)
    while True:
        if run.step(always=False) is None:
            time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    main()
