"""Laws of what is stored and sent: segments and blobs give back what was put in."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.engine.blobs import Run, joined, pack, unpack
from geoflux.operators.events import Events
from geoflux.state.segments import read_segment, unique_name, write_segment
from geoflux.state.store import Store

COLUMNS = st.one_of(
    st.lists(st.integers(-(2**31), 2**31 - 1)).map(lambda v: np.array(v, np.int32)),
    st.lists(st.floats(allow_nan=False)).map(lambda v: np.array(v, np.float64)),
    st.lists(st.integers(0, 255)).map(lambda v: np.array(v, np.uint8)),
    st.lists(st.one_of(st.none(), st.text())).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.one_of(st.none(), st.binary())).map(lambda v: pa.array(v, pa.binary())),
    st.lists(st.one_of(st.none(), st.integers(-9, 9))).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.lists(st.integers(0, 9)), max_size=3).map(
        lambda chunks: pa.chunked_array([pa.array(c, pa.int64()) for c in chunks], pa.int64())
    ),
)
ABOUT = st.dictionaries(st.text(), st.one_of(st.none(), st.integers(), st.text()), max_size=3)


@settings(max_examples=60)
@given(st.dictionaries(st.text(min_size=1, max_size=8), COLUMNS, min_size=1, max_size=5), ABOUT)
def test_a_segment_gives_back_its_arrays(arrays: dict[str, Any], about: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        name = unique_name("state", "base")
        assert write_segment(store, name, arrays, about) == store.size(name) > 0
        segment = read_segment(store, name)
        assert dict(segment.about) == about
        assert set(segment.columns) == set(arrays)
        for key, given in arrays.items():
            values = given.tolist() if isinstance(given, np.ndarray) else given.to_pylist()
            assert segment.columns[key].to_pylist() == values
            if isinstance(given, np.ndarray):
                assert segment.array(key).dtype == given.dtype
                assert segment.array(key).tolist() == values


@given(st.integers(0, 5))
def test_names_are_never_used_twice(count: int) -> None:
    names = {unique_name("state", "base") for _ in range(count)}
    assert len(names) == count
    assert all(n.startswith("state/base-") and n.endswith(".arrow") for n in names)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Events, list[Run]]:
    """Events in the order of their partitions, and the runs that tell which is whose."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    count = sum(lengths)
    runs = [Run(7 * i + 1, rows) for i, rows in enumerate(lengths)]

    def many(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    time = many(st.integers(-(2**62), 2**62)) if draw(st.booleans()) else []
    kind = draw(st.sampled_from(["none", "numbers", "texts"]))
    ids = None
    if kind != "none":
        ids = pa.array(many(st.integers(0, 9) if kind == "numbers" else st.text()))
    columns = {}
    if draw(st.booleans()):
        columns["kind"] = pa.array(many(st.one_of(st.none(), st.text())), pa.string())
    x, y = (np.array(many(st.floats(allow_nan=False)), np.float64) for _ in range(2))
    return Events(x, y, np.array(time, np.int64), ids, columns), runs


def values(events: Events) -> list[Any]:
    return [
        events.x.tolist(),
        events.y.tolist(),
        events.time.tolist(),
        None if events.id is None else events.id.to_pylist(),
        {name: column.to_pylist() for name, column in events.columns.items()},
    ]


@given(batches(), st.data())
def test_blobs_give_back_their_rows_and_runs(
    packed: tuple[Events, list[Run]], data: st.DataObject
) -> None:
    """Cut between any two runs into two blobs; the pieces joined are the events again."""
    events, runs = packed
    cut = data.draw(st.integers(0, len(runs) - 1))
    middle = sum(run.rows for run in runs[:cut])
    pieces, seen = [], []
    for start, stop, mine in ((0, middle, runs[:cut]), (middle, len(events), runs[cut:])):
        if start == stop:
            continue
        batch, told = unpack(pack(events, start, stop, mine))
        assert told == mine
        assert batch.num_rows == sum(run.rows for run in mine)
        first = 0
        for run in told:
            pieces.append(batch.slice(first, run.rows))
            seen.append(run)
            first += run.rows
    assert seen == runs
    assert values(joined(pieces)) == values(events)
