"""The catalogue: what is noted of filters, updates in bulk, and compaction under the engine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux.config import Config
from geoflux.engine import engine as engine_module
from geoflux.engine.catalogue import Catalogue, rebuilt
from geoflux.engine.engine import Engine
from geoflux.engine.inline import run_epoch
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.records import parse_lines
from geoflux.engine.setting import Setting
from geoflux.engine.source import RawBatch, Slice
from geoflux.operators import pubsub
from geoflux.operators.clock import Clock
from geoflux.operators.deltas import write_deltas
from geoflux.plan import GridPlan
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.store import Store

SPACE = Space("lonlat", -180.0, -90.0, 180.0, 90.0)
SCHEMA = pa.schema(
    [("id", pa.int64()), ("lon", pa.float64()), ("lat", pa.float64()), ("time", pa.int64()),
     ("speed", pa.float64())]
)  # fmt: skip
RULES = RecordRules(SPACE, SCHEMA, 10_000)
BOX = {"type": "rectangle", "west": 0, "south": 0, "east": 10, "north": 10}


def register(name: str, **more: Any) -> dict[str, Any]:
    return {"op": "register", "id": name, "shape": BOX, **more}


def terminate(name: str) -> dict[str, Any]:
    return {"op": "terminate", "id": name}


def lines(*records: dict[str, Any]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def absorbed(catalogue: Catalogue, name: str, *records: dict[str, Any]) -> None:
    applied = catalogue.decide(parse_lines(lines(*records), RULES), Clock())
    where = (Grid(SPACE, 8, 8), GridPlan.initial(8, 8, 2))
    write_deltas(catalogue.store, name, where, applied.came, applied.ended)
    catalogue.absorb(name)


def test_filters_are_noted_and_noted_again_after_a_restart(tmp_path: Path) -> None:
    catalogue = Catalogue(Store(str(tmp_path)))
    assert (catalogue.columns, catalogue.has_validity, len(catalogue)) == (set(), False, 0)
    absorbed(catalogue, "state/a.arrow", register("a"), register("b", where="speed > 1"))
    assert (catalogue.columns, catalogue.has_validity) == ({"speed"}, False)
    absorbed(catalogue, "state/b.arrow", register("c", where="lat > 1", valid_from=5))
    for one in (catalogue, rebuilt(catalogue.store, catalogue.segments)):
        assert (one.columns, one.has_validity) == ({"speed", "lat"}, True)
        assert (len(one), one.rows_on_disk, one.next_number) == (3, 3, 3)


def test_updating_very_many_queries_at_once_takes_linear_time(tmp_path: Path) -> None:
    catalogue = Catalogue(Store(str(tmp_path)))
    names = [f"q{i}" for i in range(40_000)]
    absorbed(catalogue, "state/a.arrow", *(register(name) for name in names))
    updates = lines(*(r for n in names for r in (terminate(n), register(n))))
    records = parse_lines(updates, RULES)
    started = time.perf_counter()
    applied = catalogue.decide(records, Clock())
    seconds = time.perf_counter() - started
    assert (len(applied.came), len(applied.ended), applied.refused) == (40_000, 40_000, [])
    assert seconds < 4, "an update by terminating and registering again is quadratic"


class Script:
    """Control records that come epoch by epoch."""

    def __init__(self, *epochs: list[dict[str, Any]]) -> None:
        self._epochs = epochs

    def poll(self, after: dict[str, Any]) -> dict[str, Any]:
        return {"epoch": min(after.get("epoch", 0) + 1, len(self._epochs))}

    def read(self, after: dict[str, Any], upto: dict[str, Any]) -> Iterator[pa.Table | list[bytes]]:
        for epoch in range(after.get("epoch", 0), upto["epoch"]):
            yield lines(*self._epochs[epoch])


class OneEvent:
    """The same event, in every epoch."""

    def schema(self) -> pa.Schema:
        return SCHEMA

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        return [Slice(0, start, stop)]

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        table = pa.table(
            {"id": [piece.start], "lon": [5.0], "lat": [5.0], "time": [3], "speed": [9.0]},
            schema=SCHEMA,
        )
        yield RawBatch(table, np.array([piece.start]))

    def latest(self, start: int, limit: int | None) -> int:
        return start + 1

    def span(self, pieces: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
        return pieces[0][1], pieces[-1][2]

    def arrivals(self, start: int, stop: int) -> None:
        return None

    def total(self) -> None:
        return None


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize(
    "more", [{"valid_until": 1e9}, {"where": "speed > 1"}], ids=["validity", "where"]
)
def test_filters_of_ended_queries_are_still_served_after_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], restart: bool
) -> None:
    """A base layer holds its ended queries until it is rewritten, and asks for their columns."""
    monkeypatch.setattr(engine_module, "_MOST_SEGMENTS", 1)
    monkeypatch.setattr(pubsub, "_SMALL", 0)
    config = Config.from_dict(
        {"space": {"grid": [8, 8]}, "source": {"kind": "files", "path": "/"},
         "engine": {"slots": 1}, "run": {"mode": "follow"}}
    )  # fmt: skip
    many = [register(f"q{i}") for i in range(40)]
    control = Script([register("old", **more), *many], [terminate("old")], [], [])
    setting = Setting(config, Store(str(tmp_path)), SCHEMA, control)

    def recovered() -> Engine:
        return Engine.recovered(setting, lambda: GridPlan.initial(8, 8, 1))

    engine = recovered()
    for epoch in range(4):
        run_epoch(engine, OneEvent(), epoch, (epoch, epoch + 1), 1)
        engine = recovered() if restart else engine
    found = pq.read_table(tmp_path / "matches").select(["query_id", "event_id"]).to_pylist()
    assert len(found) == 4 * 40 + 1
    assert [row["event_id"] for row in found if row["query_id"] == "old"] == [0]
