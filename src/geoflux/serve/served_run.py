"""The run that is served, as far as its directory tells: settings, columns, where it reads from.

The server may be there before its run: until ``run.json`` is written, what needs it is refused
with a sentence. ``geoflux run --serve`` hands its settings over, so that events can be sent to a
run that waits for its first ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from geoflux.config import Config
from geoflux.engine.record_rules import RecordRules
from geoflux.errors import StateError
from geoflux.serve.problems import Problem
from geoflux.spatial.space import Space
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import RUN, TOPOLOGY, store_of
from geoflux.state.store import Store

NAME = "serve"
"""What the server's own files are called, beside those of others."""
_LINES = (".ndjson", ".jsonl", ".json")


@dataclass
class ServedRun:
    """The run in a directory; ``started_with`` are its settings where they are known before it
    has written them down."""

    directory: Path
    started_with: Config | None = None
    _noted: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def is_there(self) -> bool:
        """Whether the run has begun."""
        return self._noted is not None or Store(str(self.directory)).exists(RUN)

    @property
    def noted(self) -> dict[str, Any]:
        """What the run wrote down of itself."""
        if self._noted is None:
            plain = Store(str(self.directory))
            if plain.exists(TOPOLOGY) and not plain.exists(RUN):
                names = [table["name"] for table in plain.read_json(TOPOLOGY)["operators"]]
                raise StateError(
                    f"{self.directory} holds an application; serve one of its operators: "
                    f"{', '.join(str(self.directory / name) for name in names)}"
                )
            if not plain.exists(RUN):
                raise Problem(
                    503, "the run has not begun yet; start it with geoflux run, or send it its "
                    "first events", "no_run", {"Retry-After": "1"},
                )  # fmt: skip
            self._noted = plain.read_json(RUN)
        return self._noted

    def check_begun(self) -> None:
        """Say so where there is no run yet."""
        assert self.noted is not None

    @cached_property
    def store(self) -> Store:
        """The run's files."""
        self.check_begun()
        return store_of(self.directory)

    @cached_property
    def log(self) -> EpochLog:
        """The run's epochs."""
        return EpochLog(self.store)

    @property
    def _folder(self) -> Path:
        """From where the run's relative paths count, wherever the server was started."""
        return Path(self.noted.get("folder", "")) if self.is_there else Path()

    @property
    def config(self) -> Config:
        """The run's settings."""
        if self._noted is None and self.started_with is not None and not self.is_there:
            return self.started_with
        return self._config

    @cached_property
    def _config(self) -> Config:
        return Config.restored(self.noted["config"])

    @property
    def operator(self) -> str:
        """The operator that the run is of; empty: standing queries."""
        named = str(self.noted.get("operator", ""))
        return named or ("Sketch" if self._config.sketch.features else "")

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of its events."""
        return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(self.noted["schema"])))

    @cached_property
    def rules(self) -> RecordRules:
        """What its control records are judged by."""
        space = Space.of(self.config.space)
        return RecordRules(space, self.schema, self.config.source.max_record_bytes)

    def control_inbox(self) -> Path:
        """The file that subscriptions are appended to; refused where the run reads none."""
        config = self.config
        if self.is_there and self.operator:
            raise Problem(
                409, f"this run is of the operator {self.operator}, which has no standing queries",
                "no_subscriptions",
            )  # fmt: skip
        if config.run.mode == "drain" and config.source.kind != "simulate":
            raise Problem(
                409, "this run reads its control records once, at its start; run it with run.mode "
                '= "follow" to subscribe while it goes', "no_subscriptions",
            )  # fmt: skip
        if config.control.kind != "files":
            raise Problem(
                409, f"this run reads its control records from {config.control.kind}; write them "
                "there, or let control.path name a folder", "no_subscriptions",
            )  # fmt: skip
        if not config.control.path:
            return Path(Store(str(self.directory)).path("control.ndjson"))
        path = self._folder / config.control.path
        if path.is_dir() or (not path.exists() and not path.suffix):
            return path / f"{NAME}.ndjson"
        if path.suffix.lower() not in _LINES:
            raise Problem(
                409, f"this run reads its control records from {path.name}, to which nothing can "
                "be appended; let control.path name a folder", "no_subscriptions",
            )  # fmt: skip
        return path

    def event_inbox(self) -> Path:
        """The folder that events are put into; refused where the run does not look there."""
        config = self.config
        path = self._folder / config.source.path
        reasons = {
            "events come from the simulator" if config.source.kind == "simulate" else
            "events come from a DataFrame": config.source.kind != "files",
            f"events come from the one file {path.name}": not path.is_dir(),
            "it takes in what is there and then stops": config.run.mode == "drain",
            "it reads its files by Spark, each once": config.engine.lane == "general",
            "it replays its files": config.source.speed > 0,
        }  # fmt: skip
        for reason, holds in reasons.items():
            if holds:
                raise Problem(
                    409, f"this run takes no events from here: {reason}; it needs source.kind = "
                    '"files" with a folder as source.path, and run.mode = "follow"', "no_events",
                )  # fmt: skip
        return path / NAME
