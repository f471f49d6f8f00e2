"""A reader beside a run: asks about its retained events without disturbing it.

It reads what the newest manifest names and writes nothing, so the run may be stopped or going on
in another process. New manifests are noticed by looking for the next one. Where the run has moved
on and deleted a segment meanwhile, the question is asked again of the newest manifest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from geoflux.config import Config
from geoflux.engine.answers import Answer
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.retained_columns import naming_of, snapshot_rules
from geoflux.engine.snapshot_records import parse_snapshot
from geoflux.engine.snapshots import View, answered
from geoflux.errors import ConfigError, RejectedRecord, StateError
from geoflux.operators.snapshot import SnapshotQuery
from geoflux.plan import plan_from_dict
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.epoch_log import EpochLog
from geoflux.state.held import Limits, Retained
from geoflux.state.keys import RUN, store_of
from geoflux.state.lineage import AnyPlan

_ATTEMPTS = 5


class Snapshots:
    """Answers questions about the retained events of a run's directory.

    ``ask`` takes what a ``snapshot`` record has (``shape``, ``where``, ``from``, ``to``,
    ``aggregate``, ``nearest``; all optional) and sees the epochs committed by then. Segments stay
    open between questions, so a reader that is kept answers faster than a new one.

        reader = geoflux.Snapshots("out")
        reader.ask({"where": "speed > 30", "aggregate": {"functions": ["count", "avg(speed)"]}})
    """

    def __init__(self, out: str | Path) -> None:
        self._store = store_of(out)
        if not self._store.exists(RUN):
            raise StateError(f"{out} holds no run; give the directory that geoflux run wrote")
        noted = self._store.read_json(RUN)
        config = Config.restored(noted["config"])
        if noted.get("operator"):
            raise StateError(
                f"{out} holds a run of the operator {noted['operator']}, which retains no events; "
                "its results are in the folder results"
            )
        if not config.retention.is_on:
            raise StateError(
                f"{out} retains no events, so there is nothing to ask about; run it with "
                'retention.time = "1 hour" (or retention.events, retention.bytes)'
            )
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(noted["schema"])))
        self._limits = Limits.of(config.retention)
        self._grid = Grid(Space.of(config.space), *config.space.grid)
        self._naming = naming_of(config, schema)
        rules = RecordRules(self._grid.space, schema, config.source.max_record_bytes)
        self._rules = snapshot_rules(rules, self._naming)
        self._log = EpochLog(self._store)
        self._plan: tuple[int, AnyPlan] | None = None
        self._view: View | None = None
        self._epoch = -1

    def ask(self, query: Mapping[str, Any]) -> Answer:
        """The answer as of the newest committed epoch."""
        parsed = self._parsed(query)
        for attempt in range(_ATTEMPTS):
            view = self._newest()
            try:
                return answered(view, parsed)
            except StateError:
                # A segment is dropped only after a manifest that does without it was written.
                if attempt == _ATTEMPTS - 1 or not self._has_manifest(self._epoch + 1):
                    raise
        raise AssertionError("an attempt either answers or raises")

    def _parsed(self, query: Mapping[str, Any]) -> SnapshotQuery:
        given = {"id": "snapshot", **query} if isinstance(query, Mapping) else query
        try:
            return parse_snapshot(given, self._rules)
        except RejectedRecord as error:
            raise ConfigError(f"the query cannot be answered: {error.detail}") from None

    def _newest(self) -> View:
        """The view of the newest manifest; read only when there is a new one."""
        newest = self._epoch
        if newest < 0:
            last = self._log.last()
            if last is None:
                raise StateError(f"{self._store.root} has committed no epoch yet; ask again later")
            newest = last
        while self._has_manifest(newest + 1):
            newest += 1
        if self._view is None or newest != self._epoch:
            manifest = self._log.manifest(newest)
            self._view = View(
                self._store, self._grid, self._plan_of(manifest["next_plan"]),
                Retained.from_list(manifest["held"]), self._limits.cut(manifest["max_time"]),
                self._naming,
            )  # fmt: skip
            self._epoch = newest
        return self._view

    def _has_manifest(self, epoch: int) -> bool:
        return self._store.exists(f"epochs/manifests/{epoch:012d}.json")

    def _plan_of(self, version: int) -> AnyPlan:
        if self._plan is None or self._plan[0] != version:
            name = f"plans/{version:08d}.json"
            self._plan = version, plan_from_dict(self._store.read_json(name))
        return self._plan[1]


def query_of(text: str) -> dict[str, Any]:
    """A query from its JSON text; :class:`ConfigError` says what is wrong with it.

    >>> query_of('{"where": "speed > 30"}')
    {'where': 'speed > 30'}
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the query is not JSON: {error}; expected an object {{...}}") from None
    if not isinstance(given, dict):
        raise ConfigError("the query is no object; expected {...} with shape, where, from, to, ...")
    return given
