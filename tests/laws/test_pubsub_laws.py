"""A partition's layers through bursts of registrations and terminations, against a plain set."""

from __future__ import annotations

import tempfile
from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from counted_matches import Told
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from geoflux.operators.deltas import Delta, write_folded
from geoflux.operators.events import Events
from geoflux.operators.matching import SortedEvents
from geoflux.operators.pubsub import _ALIKE, PartitionState, PubSub
from geoflux.operators.queries import QUERY_SCHEMA
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.refs import Ref
from geoflux.state.segments import unique_name
from geoflux.state.store import Store

GRID = Grid(Space("plane", 0.0, 0.0, 8.0, 8.0), 8, 8)
WHOLE = Partition(1, 0, 0, 8, 8, slot=0)
POINT = (3.5, 3.5)


def boxes(numbers: range) -> pa.Table:
    """Queries of which two in three hold :data:`POINT`."""
    low = np.array([0.0 if n % 3 else 4.0 for n in numbers])
    columns = {
        "number": np.array(numbers, np.int64), "id": pa.array([str(n) for n in numbers]),
        "kind": np.zeros(len(numbers), np.uint8), "x0": low, "y0": low, "x1": low + 4, "y1": low + 4,
    }  # fmt: skip
    arrays = [
        pa.array(columns[f.name]) if f.name in columns else pa.nulls(len(numbers), f.type)
        for f in QUERY_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=QUERY_SCHEMA)


def matched(operator: PubSub, state: PartitionState) -> Counter[int]:
    x, y = (np.array([at]) for at in POINT)
    events = Events(x, y, np.zeros(1, np.int64), None, {})
    told = Told()
    operator.process(state, SortedEvents.of(events, GRID, WHOLE), told)
    return told.found


@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(st.tuples(st.integers(0, 60), st.floats(0, 0.5)), min_size=1, max_size=25),
    st.sampled_from([0, 5, 40]), st.sampled_from([3, 16]), st.randoms(use_true_random=False),
)  # fmt: skip
def test_layers_hold_each_living_query_once_and_are_few(
    steps: list[tuple[int, float]], small: int, fold_after: int, draw: Random
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.operators.pubsub._SMALL", small)
        patch.setattr("geoflux.operators.pubsub._FOLD_AFTER", fold_after)
        store, living, last = Store(folder), set[int](), 0
        refs: tuple[Ref, ...] = ()
        operator = PubSub(GRID, store, counting=True)
        for came, share in steps:
            ended = {n for n in living if draw.random() < share}
            rows = boxes(range(last, last + came))
            living = (living - ended) | set(range(last, last + came))
            last += came
            name = unique_name("state", "delta")
            write_folded(store, name, WHOLE.id, Delta(rows, np.array(sorted(ended), np.int64)))
            state = operator.open(WHOLE, (*refs, Ref("delta", name, WHOLE.id)))
            refs = state.refs
            assert state.queries == len(living)
            assert matched(operator, state) == Counter(n for n in living if n % 3)
            reopened = operator.open(WHOLE, refs)
            assert matched(operator, reopened) == matched(operator, state)
            bases = sum(ref.kind == "base" for ref in refs)
            sizes = [len(matcher.layer) for matcher, _ in state.matchers[:bases]]
            assert all(sum(n <= 2 * size for n in sizes) < _ALIKE for size in sizes[-1:])
            assert len(sizes) < _ALIKE * (1 + np.log2(max(last, 1)))


def test_a_burst_is_written_a_few_times_only() -> None:
    """Forty batches of a thousand queries: rebuilding everything each time would write half a
    million rows."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.operators.pubsub._SMALL", 0)
        store, written = Store(folder), 0
        refs: tuple[Ref, ...] = ()
        operator = PubSub(GRID, store, counting=True)
        for step in range(40):
            name = unique_name("state", "delta")
            rows = boxes(range(1000 * step, 1000 * (step + 1)))
            write_folded(store, name, WHOLE.id, Delta(rows, np.empty(0, np.int64)))
            state = operator.open(WHOLE, (*refs, Ref("delta", name, WHOLE.id)))
            made = {ref.segment for ref in state.refs} - {ref.segment for ref in refs}
            refs = state.refs
            for matcher, _ in state.matchers:
                if made and matcher.layer.rows.column("number")[-1].as_py() == 1000 * step + 999:
                    written += len(matcher.layer)
        assert state.queries == 40_000
        assert written <= 40_000 * 4


@settings(max_examples=30)
@given(
    st.integers(1, 60), st.integers(0, 60), st.integers(0, 30), st.randoms(use_true_random=False)
)
def test_a_part_goes_on_with_the_layers_of_the_whole_while_they_are_mostly_its_own(
    low: int, high: int, both: int, draw: Random
) -> None:
    """Queries of the lower left, of the upper right, and of both quarters."""
    corners = [(0.0, 3.0)] * low + [(5.0, 8.0)] * high + [(2.0, 6.0)] * both
    rows = boxes(range(len(corners)))
    for name, side in (("x0", 0), ("y0", 0), ("x1", 1), ("y1", 1)):
        edges = pa.array([corner[side] for corner in corners], pa.float64())
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), edges)
    ended = {n for n in range(len(corners)) if draw.random() < 0.1}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.operators.pubsub._SMALL", 0)
        store = Store(folder)
        operator = PubSub(GRID, store, counting=True)
        write_folded(store, "state/all", WHOLE.id, Delta(rows, np.empty(0, np.int64)))
        whole = operator.open(WHOLE, (Ref("delta", "state/all", WHOLE.id),))
        patch.setattr("geoflux.operators.pubsub._SMALL", 100)
        gone = Delta(rows.slice(0, 0), np.array(sorted(ended), np.int64))
        write_folded(store, "state/gone", WHOLE.id, gone)
        refs = (*whole.refs, Ref("delta", "state/gone", WHOLE.id))
        halves = {2: (0, 4, low, 1.5), 3: (4, 8, high, 6.5)}
        for number, (col0, col1, mine, at) in halves.items():
            part = Partition(number, col0, 0, col1, 8, slot=0, parents=(WHOLE.id,))
            state = operator.open(part, refs)
            theirs = range(low) if number == 2 else range(low, low + high)
            wanted = {*theirs, *range(low + high, len(corners))} - ended
            assert state.queries == len(wanted)
            x, y = np.array([at]), np.array([at])
            events = Events(x, y, np.zeros(1, np.int64), None, {})
            told = Told()
            operator.process(state, SortedEvents.of(events, GRID, part), told)
            assert told.found == Counter(set(theirs) - ended)
            kept = [ref for ref in state.refs if ref in whole.refs]
            assert bool(kept) == (2 * (mine + both) >= len(corners))
            assert operator.open(part, state.refs).refs == state.refs
