"""Laws of sketches that are read while they run: whatever is split, merged, killed and begun again,
every epoch is answered once and rightly, and a reader that stays knows what a new one does."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_prefix_laws import Shuffling

from geoflux.config import Config
from geoflux.engine.continuous import Answering, answers, configured
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.sketch_reader import SketchReader, open_sketch, sketch_of
from geoflux.engine.sketch_verify import SketchVerification, compare
from geoflux.engine.source import EventSource, RawBatch, Slice
from geoflux.keyed_api import first_plan, setting_of
from geoflux.sections_sketch import ContinuousConfig
from geoflux.sketch.observations import Observations
from geoflux.state.store import Store

CONFIG = Config.from_dict(
    {
        "source": {"kind": "dataframe"},
        "engine": {"slots": 2},
        "run": {"mode": "follow"},
        "sketch": {"features": ["a", "b"], "tree_bits": 4, "region_bits": 6, "steady_rows": 40,
                   "leaves": 3},
    }
)  # fmt: skip
OPERATOR = sketch_of(CONFIG)
ASKED = "SELECT count(*), min(a), mean(a), corr(a, b)"
DEATHS = st.sampled_from(["", "", "before answer", "after answer"])


class Rows:
    """A source of one table."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        return [Slice(0, start, stop)] if stop > start else []

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Any:
        some = self.table.slice(piece.start, piece.stop - piece.start)
        yield RawBatch(some, np.arange(piece.start, piece.stop))


def begun(folder: str, numbers: list[int]) -> tuple[KeyedEngine, Answering]:
    """The run as its directory left it."""
    store = Store(folder)
    store.write_json("run.json", {"format": 1, "config": CONFIG.as_dict()})
    setting = replace(setting_of(OPERATOR, CONFIG, store), policy=Shuffling(numbers))
    engine = KeyedEngine.recovered(setting, lambda: first_plan(CONFIG, OPERATOR))
    asked = configured([ContinuousConfig("asked", ASKED)], OPERATOR.schema)
    answering = Answering(SketchReader(folder), asked)
    answering.catch_up()
    return engine, answering


@settings(max_examples=10, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    st.integers(0, 999), st.lists(DEATHS, min_size=2, max_size=11),
    st.lists(st.integers(0, 10_000), min_size=1, max_size=4), st.integers(1, 120),
)  # fmt: skip
def test_every_epoch_is_answered_once_whatever_is_moved_and_killed(
    seed: int, deaths: list[str], numbers: list[int], size: int
) -> None:
    random = np.random.default_rng(seed)
    total = size * len(deaths)
    a = np.round(random.normal(10, 3, total), 2)
    table = pa.table(
        {
            "lon": random.uniform(-180, 180, total), "lat": random.uniform(-90, 90, total),
            "time": 1_774_396_800.0 + np.sort(random.integers(0, 9 * 86_400, total)),
            "a": a, "b": a + random.normal(size=total),
        }
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        engine, answering = begun(folder, numbers)
        staying = SketchReader(folder)
        for epoch, death in enumerate(deaths):
            span = epoch * size, (epoch + 1) * size
            run_epoch(engine, cast("EventSource", Rows(table)), epoch, span)
            if death != "before answer":
                answering.answer(epoch)
            if epoch % 3 != 1:  # it does not look after each
                everywhere = f"{ASKED}, deciles(b), frequency(a = {a[0]}) GROUP BY geohash(1)"
                assert (
                    staying.read().query(everywhere).to_dict()
                    == open_sketch(folder).query(everywhere).to_dict()
                )
            if death:
                engine, answering = begun(folder, numbers)
        told = list(answers(Store(folder)))
        assert [one["epoch"] for one in told] == list(range(len(deaths)))
        for one in told:
            row, seen = one["rows"][0], a[: (one["epoch"] + 1) * size]
            assert (row["count(*)"], row["min(a)"]) == (seen.size, seen.min())
            assert abs(row["mean(a)"] - seen.mean()) < 1e-11
        found = SketchVerification()
        place = [table.column(name).to_numpy() for name in ("lon", "lat", "time")]
        values = np.column_stack([table.column("a").to_numpy(), table.column("b").to_numpy()])
        rows = Observations(place[0], place[1], place[2].astype(np.int64), values)
        compare(OPERATOR, rows, open_sketch(Path(folder)).forests, found)
        assert found.is_clean, found
