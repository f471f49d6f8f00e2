"""The sketch as an operator: what a run keeps is what all rows come to at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from geoflux.config import Config
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.sketch_reader import open_sketch, sketch_of
from geoflux.engine.source import EventSource, RawBatch, Slice
from geoflux.errors import ConfigError, StateError
from geoflux.keyed_api import first_plan, setting_of
from geoflux.operators.sketching import Sketch
from geoflux.sketch.forest import Forest, Observations
from geoflux.sketch.leaves import Leaves
from geoflux.state.store import Store
from geoflux.workload.weather import FEATURES, made_up_weather

START = 1_774_396_800
WEATHER = made_up_weather(5, 6_000, START, 6 * 3600)
CONFIG = Config.from_dict(
    {
        "source": {"kind": "dataframe", "id": "@position", "time_unit": "s"},
        "engine": {"slots": 3},
        "run": {"mode": "follow"},
        "sketch": {"features": FEATURES, "tree_bits": 6, "region_bits": 10, "steady_rows": 100},
    }
)


class Rows:
    """A source of one table."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        return [Slice(0, start, stop)] if stop > start else []

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        some = self.table.slice(piece.start, piece.stop - piece.start)
        yield RawBatch(some, np.arange(piece.start, piece.stop))


def ran(folder: Path, table: pa.Table, config: Config = CONFIG, epochs: int = 3) -> dict[str, Any]:
    store, operator = Store(str(folder)), sketch_of(config)
    store.write_json("run.json", {"format": 1, "config": config.as_dict()})
    setting = setting_of(operator, config, store)
    engine = KeyedEngine.recovered(setting, lambda: first_plan(config, operator))
    ends = [len(table) * n // epochs for n in range(epochs + 1)]
    told: dict[str, Any] = {}
    for epoch in range(epochs):
        span = (ends[epoch], ends[epoch + 1])
        told = run_epoch(engine, cast("EventSource", Rows(table)), epoch, span)
    return told


def same(one: Leaves, other: Leaves) -> None:
    for name in ("region", "time", "grain", "bins", "count", "low", "high"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("mean", "m2", "cross"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-6, err_msg=name
        )


def test_a_run_keeps_what_was_observed(tmp_path: Path) -> None:
    manifest = ran(tmp_path, WEATHER.table(), epochs=1)
    found = open_sketch(tmp_path)
    assert found.observations == len(WEATHER) == manifest["processed"]
    assert found.epoch == 0
    whole = Forest.empty(found.schema).ingest(
        Observations(WEATHER.lon, WEATHER.lat, WEATHER.time, WEATHER.values)
    )
    same(found.whole().leaves(), whole.leaves())
    assert len(found.forests) > 3, "one for every partition"


def test_it_goes_on_from_what_was_saved_and_journalled(tmp_path: Path) -> None:
    ran(tmp_path, WEATHER.table(), epochs=12)
    found = open_sketch(tmp_path)
    leaves = found.whole().leaves()
    assert leaves.count.sum() == len(WEATHER)
    total = (leaves.mean * leaves.count[:, None]).sum(axis=0)
    np.testing.assert_allclose(total, WEATHER.values.sum(axis=0), rtol=1e-9)
    assert found.epoch == 11


def test_what_is_nowhere_or_out_of_time_is_refused_and_missing_values_are_welcome(
    tmp_path: Path,
) -> None:
    table = WEATHER.table().slice(0, 100).to_pandas()
    table.loc[3, "lon"], table.loc[4, "lat"], table.loc[5, "lat"] = 181.0, np.nan, -90.0
    table.loc[6, "t2m_k"] = np.nan
    table.loc[7, "time"] = 86_400.0 * 365 * 80
    sketch = replace(CONFIG.sketch, until="2030-01-01", since="2026-01-01")
    told = ran(tmp_path, pa.Table.from_pandas(table), replace(CONFIG, sketch=sketch), 1)
    assert told["reasons"] == {"bad_place": 2, "outside_time": 1}
    assert told["processed"] == 97
    leaves = open_sketch(tmp_path).whole().leaves()
    assert leaves.count.sum() == 97
    assert (leaves.bins == 255).sum() == 1


def test_old_hours_fold_as_time_goes_by() -> None:
    operator = Sketch(sketch_of(CONFIG).schema)
    state = operator.empty()
    for day in range(0, 60, 5):
        some = made_up_weather(day, 500, START + day * 86_400, 3600)
        rows = some.table().append_column("@time", pa.array(some.time * 1_000_000))
        state, results = operator.process(state, rows)
        assert results.num_rows == 0
    levels = set((state.leaves().time & 7).tolist())
    assert levels == {1, 2}, "hours, and hours of a week"
    assert state.leaves().count.sum() == 6_000


def test_a_directory_without_a_sketch_is_told(tmp_path: Path) -> None:
    Store(str(tmp_path)).write_json("run.json", {"format": 1, "config": Config().as_dict()})
    with pytest.raises(StateError, match="holds no sketch"):
        open_sketch(tmp_path)
    with pytest.raises(ConfigError, match=r"sketch\.features is empty"):
        sketch_of(Config())
    with pytest.raises(ConfigError, match="no date or time"):
        Config.from_dict({"sketch": {"features": ["a"], "since": "yesterday"}})
