"""Retained segments: written by cell, opened, searched, compacted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from geoflux.errors import StateError
from geoflux.operators.area import TAKE, Area, covers
from geoflux.operators.compaction import FAN_IN, MOST_ROWS, retain, to_compact
from geoflux.operators.events import Events
from geoflux.operators.retained import concatenated, open_retained, write_retained
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.shapes import Shape, parse_shape
from geoflux.spatial.space import Space
from geoflux.state.held import Held, Retained
from geoflux.state.store import Store

SPACE = Space("planar", 0.0, 0.0, 100.0, 100.0)
GRID = Grid(SPACE, 50, 50)
HALF = Partition(3, 25, 0, 50, 50, 0)
ALWAYS = (-(2**63), 2**63 - 1)


def batch(count: int, seed: int = 1) -> Events:
    draw = np.random.default_rng(seed)
    return Events(
        draw.uniform(50, 100, count), draw.uniform(0, 100, count), draw.integers(0, 1000, count),
        pa.array([f"e{i}" for i in range(count)]),
        {"kind": pa.array(["taxi", None] * (count // 2)).dictionary_encode(), "tags": pa.array([[1], None] * (count // 2))},
    )  # fmt: skip


def rectangle(west: float, south: float, east: float, north: float) -> Shape:
    return parse_shape(
        {"type": "rectangle", "west": west, "south": south, "east": east, "north": north}, SPACE
    )


@pytest.mark.parametrize("count", [2, 40, 5000])
def test_what_is_written_is_found_by_cell(tmp_path: Path, count: int) -> None:
    store, events = Store(str(tmp_path)), batch(count)
    held = write_retained(store, GRID, HALF, events, (4, 4))
    assert (held.partition, held.rows, held.first_epoch) == (3, count, 4)
    assert (held.first_time, held.last_time) == (events.time.min(), events.time.max())
    opened = open_retained(store, held.segment)
    assert (np.diff(opened.keys) > 0).all()
    assert sorted(opened.id.to_pylist()) == sorted(events.id.to_pylist())
    assert opened.columns["kind"].type == pa.string()
    order = [int(text[1:]) for text in opened.id.to_pylist()]
    assert opened.columns["tags"].to_pylist() == [events.columns["tags"][i].as_py() for i in order]
    for box in (
        (0, 0, 100, 100),
        (60, 10, 61, 90),
        (55.5, 0, 100, 3.3),
        (0, 0, 49, 99),
        (73, 73, 73, 73),
    ):
        found = opened.find(Area.of(GRID, rectangle(*box)), *ALWAYS)
        rows = np.arange(count) if found.rows is None else found.rows
        inside = (
            (opened.x >= box[0])
            & (opened.x <= box[2])
            & (opened.y >= box[1])
            & (opened.y <= box[3])
        )
        assert sorted(rows.tolist()) == np.flatnonzero(inside).tolist()
        assert rows.size <= found.read <= count


def test_times_are_compared_only_where_they_differ(tmp_path: Path) -> None:
    store, events = Store(str(tmp_path)), batch(500)
    opened = open_retained(store, write_retained(store, GRID, HALF, events, (0, 0)).segment)
    whole = Area.of(GRID, None)
    assert opened.find(whole, *ALWAYS).rows is None
    rows = opened.find(whole, 200, 300).rows
    assert rows is not None
    assert rows.size == int(((events.time >= 200) & (events.time <= 300)).sum())


def test_a_part_tells_which_cells_are_inside() -> None:
    (part,) = Area.of(GRID, rectangle(10, 10, 20, 20)).parts
    assert (part.verdict[1:-1, 1:-1] == TAKE).all()
    assert not (part.verdict[0] == TAKE).any()
    (whole,) = Area.of(GRID, rectangle(0, 0, 100, 100)).parts
    assert (whole.verdict == TAKE).all()
    assert Area.of(GRID, rectangle(0, 0, 9, 9), (20.0, 20.0, 30.0, 30.0)).parts == ()
    assert covers(SPACE, (-5.0, -5.0, 200.0, 200.0), None)
    assert not covers(SPACE, (1.0, -5.0, 200.0, 200.0), None)


def test_a_missing_segment_is_a_state_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="is missing"):
        open_retained(Store(str(tmp_path)), "state/none.arrow")


def holding(*rows: int) -> list[Held]:
    return [Held(f"s{i}", 1, n, n, i, i, i, i) for i, n in enumerate(rows)]


@pytest.mark.parametrize(
    ("rows", "first", "last"),
    [
        ([10] * 7, 0, 0),
        ([10] * 8, 0, 8),
        ([100_000, *[10] * 7, 100_000], 0, 0),
        ([100_000, *[10] * 8], 1, 9),
        ([10_000, 5] * 8, 0, 15),
        ([200_000] * 30, 0, 0),
        ([130_000] * 8, 0, 8),
        ([*[140_000] * 7, 200_000, *[65_536] * 7], 2, 10),
    ],
)
def test_neighbours_of_one_size_are_compacted(rows: list[int], first: int, last: int) -> None:
    segments = holding(*rows)
    assert list(to_compact(segments)) == segments[first:last]
    assert sum(h.rows for h in to_compact(segments)) <= MOST_ROWS


@pytest.mark.parametrize("size", [3, 900, 20_000])
def test_compaction_keeps_segments_few_and_rewrites_seldom(size: int) -> None:
    """Sizes only: a thousand epochs with as many events each."""
    retained, written = Retained(), 0
    for epoch in range(1000):
        new = Held(f"e{epoch}", 1, size, 0, epoch, epoch, epoch, epoch)
        segments = [*retained.by_partition.get(1, ()), new]
        retained, written = retained.added([new]), written + size
        run = to_compact(segments)
        if run:
            total = sum(h.rows for h in run)
            assert [h.first_epoch for h in run[1:]] == [h.last_epoch + 1 for h in run[:-1]]
            joined = Held(f"c{epoch}", 1, total, 0, 0, 0, run[0].first_epoch, run[-1].last_epoch)
            gone = {h.segment for h in run}
            retained = Retained(tuple(h for h in retained.held if h.segment not in gone)).added(
                [joined]
            )
            written += total
    assert retained.rows == 1000 * size
    assert len(retained) <= 3 * FAN_IN + retained.rows // (MOST_ROWS // FAN_IN)
    if size > 100:  # tiny ones are rewritten more often, and cost nothing
        assert written <= 6 * retained.rows


def test_an_epoch_that_fills_a_tier_writes_one_segment(tmp_path: Path) -> None:
    where = (Store(str(tmp_path)), GRID, HALF)
    retained = Retained()
    assert retain(where, (), batch(0), 0) == ()
    for epoch in range(FAN_IN):
        kept = retain(where, retained.by_partition.get(3, ()), batch(10, epoch), epoch)
        assert len(kept) == 1
        retained = retained.replaced(kept)
    (held,) = retained.held
    assert (held.rows, held.first_epoch, held.last_epoch) == (80, 0, 7)
    assert len(kept[0].replaces) == FAN_IN - 1
    opened = open_retained(where[0], held.segment)
    wanted = np.sort(np.concatenate([batch(10, epoch).x for epoch in range(FAN_IN)]))
    assert np.sort(opened.x).tolist() == wanted.tolist()


def test_a_filled_tier_of_larger_ones_is_compacted_beside_the_new_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geoflux.operators.compaction.SMALLEST_TIER", 8)
    where = (Store(str(tmp_path)), GRID, HALF)
    held = [write_retained(*where, batch(10, n), (n, n)) for n in range(FAN_IN)]
    fresh, merged = retain(where, held, batch(2), FAN_IN)
    assert (fresh.held.rows, fresh.replaces) == (2, ())
    assert (merged.held.rows, len(merged.replaces)) == (80, FAN_IN)


def test_columns_whose_type_changed_are_joined() -> None:
    assert concatenated([pa.nulls(1), pa.array(["a"])]).to_pylist() == [None, "a"]
    assert concatenated([pa.array([1]), pa.array([0.5])]).to_pylist() == [1.0, 0.5]
    assert concatenated([pa.array([1]), pa.array(["a"])]).to_pylist() == ["1", "a"]
