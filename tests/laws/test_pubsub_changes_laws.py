"""Standing queries through any changes of the plan, against a plain dictionary.

Partitions are opened now and then, as slots do, so that some of what they hold is still written
for a partition that is no more.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from counted_matches import Told
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.operators.deltas import write_deltas
from geoflux.operators.events import Events
from geoflux.operators.matching import SortedEvents
from geoflux.operators.pubsub import PubSub
from geoflux.operators.queries import QUERY_SCHEMA
from geoflux.plan import Change, GridPlan, Merge, Split
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.refs import Ref, StateMap
from geoflux.state.segments import unique_name
from geoflux.state.store import Store

SIDE = 6
GRID = Grid(Space("plane", 0.0, 0.0, float(SIDE), float(SIDE)), SIDE, SIDE)
Box = tuple[int, int, int, int]


def table(queries: dict[int, Box]) -> pa.Table:
    """Queries over the insides of some cells."""
    edges = {
        name: np.array([box[i] + inwards for box in queries.values()], np.float64)
        for i, (name, inwards) in enumerate(
            (("x0", 0.25), ("y0", 0.25), ("x1", -0.25), ("y1", -0.25))
        )
    }
    columns = {
        "number": np.array(list(queries), np.int64), "id": pa.array([str(n) for n in queries]),
        "kind": np.zeros(len(queries), np.uint8), **edges,
    }  # fmt: skip
    arrays = [
        pa.array(columns[f.name]) if f.name in columns else pa.nulls(len(queries), f.type)
        for f in QUERY_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=QUERY_SCHEMA)


class Holder:
    """Partitions with their references, as engine and slots treat them; and the plain truth."""

    def __init__(self, folder: str, draw: Random) -> None:
        self.store, self.draw = Store(folder), draw
        self.operator = PubSub(GRID, self.store, counting=True)
        self.plan, self.state = GridPlan.initial(SIDE, SIDE, 2), StateMap({})
        self.living: dict[int, Box] = {}
        self.last = 0

    def control(self, came: int, share: float) -> None:
        """Some queries come, a share of the living ones end."""
        news = {self.last + i: self._box() for i in range(came)}
        self.last += came
        over = {n: b for n, b in self.living.items() if self.draw.random() < share}
        name = unique_name("state", "control")
        concerned = write_deltas(self.store, name, (GRID, self.plan), table(news), table(over))
        self.state = self.state.appended({p: Ref("delta", name, p) for p in concerned})
        self.living = {n: b for n, b in (self.living | news).items() if n not in over}

    def _box(self) -> Box:
        col, row = self.draw.randrange(SIDE), self.draw.randrange(SIDE)
        width, height = self.draw.choice([(1, 1), (1, 2), (3, 1), (4, 4)])
        return col, row, min(col + width, SIDE), min(row + height, SIDE)

    def change(self) -> None:
        """Split, or merge, somewhere; where neither can be, nothing."""
        choices: list[Change] = []
        for p in self.plan.partitions:
            choices += [
                Split(p.id, "columns", at, p.slot, p.slot) for at in range(p.col0 + 1, p.col1)
            ]
            choices += [Split(p.id, "rows", at, p.slot, p.slot) for at in range(p.row0 + 1, p.row1)]
        merges: list[Change] = [
            Merge(one.id, other.id, one.slot)
            for one in self.plan.partitions
            for other in self.plan.partitions
            if one.id < other.id and _form_a_rectangle(one, other)
        ]
        wanted = merges if merges and self.draw.random() < 0.5 else choices or merges
        change = self.draw.choice(wanted)
        self.plan = self.plan.apply(change)
        self.state = self.state.changed(change, self.plan)
        self.state = StateMap.from_dict(self.state.to_dict())

    def open_some(self, share: float) -> None:
        """Open partitions and compare them with the truth."""
        for p in self.plan.partitions:
            if self.draw.random() < share:
                opened = self.operator.open(p, self.state.of(p.id))
                self.state = self.state.replaced({p.id: opened.refs})
                touching = [n for n, b in self.living.items() if _overlap(b, p.box)]
                assert opened.queries == len(touching)
                cells = [(c, r) for c in range(p.col0, p.col1) for r in range(p.row0, p.row1)]
                x, y = (np.array([cell[i] + 0.5 for cell in cells]) for i in (0, 1))
                events = Events(x, y, np.zeros(len(cells), np.int64), None, {})
                told = Told()
                self.operator.process(opened, SortedEvents.of(events, GRID, p), told)
                wanted = {n: _overlap(self.living[n], p.box) for n in touching}
                assert told.found == Counter(wanted)
                assert self.operator.open(p, opened.refs).refs == opened.refs


def _form_a_rectangle(one: Partition, other: Partition) -> bool:
    beside = (one.row0, one.row1) == (other.row0, other.row1)
    above = (one.col0, one.col1) == (other.col0, other.col1)
    touch_x = one.col1 == other.col0 or other.col1 == one.col0
    touch_y = one.row1 == other.row0 or other.row1 == one.row0
    return (beside and touch_x) or (above and touch_y)


def _overlap(one: Box, other: Box) -> int:
    """How many cells two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0) * max(height, 0)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 12), st.floats(0, 0.4), st.integers(0, 3), st.sampled_from([0, 0.5, 1])
        ),
        min_size=1, max_size=14,
    ),
    st.sampled_from([0, 3, 20]), st.randoms(use_true_random=False),
)  # fmt: skip
def test_each_partition_holds_the_living_queries_that_touch_it(
    steps: list[tuple[int, float, int, float]], small: int, draw: Random
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.operators.pubsub._SMALL", small)
        holder = Holder(folder, draw)
        for came, share, changes, opened in steps:
            holder.control(came, share)
            holder.open_some(opened)
            for _ in range(changes):
                holder.change()
        holder.open_some(1)
