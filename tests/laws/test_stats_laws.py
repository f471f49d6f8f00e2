"""Laws of the statistics: they equal brute-force counts after whatever happened."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoflux.plan import Partition
from geoflux.spatial.grid import CellRanges
from geoflux.stats import KnownQueries, TrioStat, inherited, stats_from_arrays, stats_to_arrays

Box = tuple[int, int, int, int]
Steps = list[tuple[object, ...]]
COLUMNS, ROWS = 7, 6


@dataclass
class Query:
    box: Box
    came: int
    went: int | None = None


@dataclass
class Point:
    column: int
    row: int
    came: int
    work: float
    went: int | None = None


@dataclass
class World:
    """Statistics of some partitions, and everything that ever happened, to count it by hand.

    Points count by what they were when they came: a list per partition would not survive splits.
    """

    retained: bool
    stats: dict[int, TrioStat]
    partitions: dict[int, Partition]
    round: int = 0
    next_id: int = 2
    queries: list[Query] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    shared: dict[int, set[str]] = field(default_factory=dict)
    """Axes of each partition on which points were shared out."""

    @classmethod
    def new(cls, retained: bool) -> World:
        whole = Partition(1, 0, 0, COLUMNS, ROWS, 0)
        return cls(retained, {1: TrioStat.empty(whole)}, {1: whole}, shared={1: set()})

    def points_in(self, box: Box) -> list[Point]:
        """All that ever came into a box of cells, its upper ends excluded."""
        return [
            p for p in self.points if box[0] <= p.column < box[2] and box[1] <= p.row < box[3]
        ]  # fmt: skip

    def register(self, box: Box) -> None:
        self.queries.append(Query(box, self.round))
        for stat in self.stats.values():
            stat.register(ranges([box]))

    def end(self, which: int) -> None:
        alive = [q for q in self.queries if q.went is None]
        if alive:
            query = alive[which % len(alive)]
            query.went = self.round
            for stat in self.stats.values():
                stat.end(ranges([query.box]))

    def receive(self, cells: list[tuple[int, int]]) -> None:
        for p in self.partitions.values():
            mine = [(c, r) for c, r in cells if p.col0 <= c < p.col1 and p.row0 <= r < p.row1]
            columns = np.array([c for c, _ in mine], np.int32)
            rows = np.array([r for _, r in mine], np.int32)
            self.stats[p.id].receive(columns, rows, 1.0 + rows.astype(float))
        self.points += [Point(c, r, self.round, 1.0 + r) for c, r in cells]

    def expire(self, count: int) -> None:
        gone = [p for p in self.points if p.went is None][:count]
        for point in gone:
            point.went = self.round
        columns = np.array([p.column for p in gone], np.int32)
        rows = np.array([p.row for p in gone], np.int32)
        for stat in self.stats.values():
            stat.expire(columns, rows, np.ones(len(gone)))

    def close(self) -> None:
        for stat in self.stats.values():
            stat.close_round(self.retained)
        self.round += 1

    def split(self, which: int, axis: str, at: int) -> None:
        old = self.partitions[sorted(self.partitions)[which % len(self.partitions)]]
        low, high = (old.col0, old.col1) if axis == "columns" else (old.row0, old.row1)
        if high - low < 2:
            return
        at = low + 1 + at % (high - low - 1)
        ends = ({"col1": at}, {"col0": at}) if axis == "columns" else ({"row1": at}, {"row0": at})
        other = "rows" if axis == "columns" else "columns"
        children = [replace(old, id=self.next_id + i, **end) for i, end in enumerate(ends)]
        self._replaced([old], children, self.shared[old.id] | {other})

    def merge(self) -> None:
        for a in self.partitions.values():
            for b in self.partitions.values():
                box = (
                    min(a.col0, b.col0),
                    min(a.row0, b.row0),
                    max(a.col1, b.col1),
                    max(a.row1, b.row1),
                )
                merged = Partition(self.next_id, *box, 0)
                if a.id < b.id and merged.cells == a.cells + b.cells:
                    self._replaced([a, b], [merged], self.shared[a.id] | self.shared[b.id])
                    return

    def _replaced(self, old: list[Partition], new: list[Partition], shared: set[str]) -> None:
        sources = [self.stats.pop(p.id) for p in old]
        for p in old:
            del self.partitions[p.id]
        for p in new:
            self.partitions[p.id] = p
            self.stats[p.id] = inherited(p, sources, self.known())
            self.shared[p.id] = shared
        self.next_id += len(new)

    def known(self) -> KnownQueries:
        """All queries; what ended before the last round counts nowhere any more."""
        told = [q for q in self.queries if q.went is None or q.went >= self.round - 1]
        came = [min(2, self.round - q.came) for q in told]
        went = [-1 if q.went is None else self.round - q.went for q in told]
        return KnownQueries(
            ranges([q.box for q in told]), np.array(came, np.int8), np.array(went, np.int8)
        )


def ranges(boxes: list[Box]) -> CellRanges:
    return CellRanges(*(np.array([b[i] for b in boxes], np.int32) for i in range(4)))


def touches(q: Query, box: Box) -> bool:
    """``box`` with its upper ends excluded."""
    return q.box[0] < box[2] and q.box[2] >= box[0] and q.box[1] < box[3] and q.box[3] >= box[1]


def strips(stat: TrioStat) -> list[tuple[str, int, int, Box]]:
    found = []
    for axis in ("columns", "rows"):
        low, high = stat.bounds(axis)
        for first in range(low, high):
            for last in range(first + 1, high + 1):
                box = list(stat.box)
                box[0 if axis == "columns" else 1] = first
                box[2 if axis == "columns" else 3] = last
                found.append((axis, first, last, tuple(box)))
    return found


boxes = st.tuples(
    st.integers(0, COLUMNS - 1), st.integers(0, ROWS - 1),
    st.integers(0, COLUMNS - 1), st.integers(0, ROWS - 1),
).map(lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3])))  # fmt: skip
cells = st.tuples(st.integers(0, COLUMNS - 1), st.integers(0, ROWS - 1))
steps = st.one_of(
    st.tuples(st.just("register"), boxes),
    st.tuples(st.just("register"), boxes),
    st.tuples(st.just("end"), st.integers(0, 50)),
    st.tuples(st.just("receive"), st.lists(cells, max_size=8)),
    st.tuples(st.just("expire"), st.integers(0, 5)),
    st.tuples(st.just("close")),
    st.tuples(st.just("split"), st.integers(0, 9), st.sampled_from(["columns", "rows"]), st.integers(0, 9)),
    st.tuples(st.just("merge")),
)  # fmt: skip

changes = st.lists(steps.filter(lambda step: step[0] in ("split", "merge")), max_size=4)


def run(world: World, happened: Steps) -> None:
    for name, *values in happened:
        getattr(world, name)(*values)


def closed_world(retained: bool, happened: Steps, changed: Steps) -> World:
    """After a round in which something happened, and changes that follow it."""
    world = World.new(retained)
    run(world, happened)
    world.close()
    run(world, changed)
    return world


@given(st.booleans(), st.lists(steps, max_size=25), changes)
def test_queries_equal_a_count_by_hand_in_every_strip_whatever_happened(
    retained: bool, happened: Steps, changed: Steps
) -> None:
    world = closed_world(retained, happened, changed)
    last = world.round - 1
    for stat in world.stats.values():
        for axis, first, last_line, box in strips(stat):
            found = stat.strip(axis, first, last_line)
            here = [q for q in world.queries if touches(q, box)]
            assert found.queries == sum(q.went is None for q in here)
            points = sum(p.came == last for p in world.points_in(box))
            arrived = sum(q.came == last for q in here)
            if axis not in world.shared[_id(world, stat)]:
                assert found.received == pytest.approx(points + arrived)
        spans = [stat.along(axis)[0, 3:5] for axis in ("columns", "rows")]
        assert all((span == 0).all() for span in spans), "nothing spans into the first row"


@given(st.booleans(), st.lists(steps, max_size=25), changes)
def test_points_and_work_are_exact_on_axes_that_nothing_was_shared_out_on(
    retained: bool, happened: Steps, changed: Steps
) -> None:
    world = closed_world(retained, happened, changed)
    for partition, stat in world.stats.items():
        for axis, first, last, box in strips(stat):
            if axis in world.shared[partition]:
                continue
            inside = world.points_in(box)
            if retained:
                n = float(sum(p.went is None for p in inside))
            else:
                n = sum(0.5 ** (world.round - 1 - p.came) for p in inside)
            found = stat.strip(axis, first, last)
            assert found.points == pytest.approx(n, abs=1e-9)
            work = sum(p.work for p in inside if p.came == world.round - 1)
            assert found.work == pytest.approx(work, abs=1e-9)


@given(st.booleans(), st.lists(steps, max_size=25), changes)
def test_both_axes_and_all_partitions_add_up_to_the_same(
    retained: bool, happened: Steps, changed: Steps
) -> None:
    world = closed_world(retained, happened, changed)
    for stat in world.stats.values():
        by_row, by_column = (
            stat.strip("rows", *stat.bounds("rows")),
            stat.strip("columns", *stat.bounds("columns")),
        )
        assert by_row == pytest.approx(by_column, abs=1e-9)
        assert by_row == stat.total
    totals = [stat.total for stat in world.stats.values()]
    work = sum(p.work for p in world.points if p.came == world.round - 1)
    assert sum(t.work for t in totals) == pytest.approx(work)
    if retained:
        alive = sum(p.went is None for p in world.points)
        # a piece of the world that sharing-out left without a count may owe what expired in it
        assert sum(t.points for t in totals) == pytest.approx(alive, abs=1e-6)


@given(st.booleans(), st.lists(steps, max_size=25))
def test_when_all_queries_have_ended_nothing_is_left_of_them(
    retained: bool, happened: Steps
) -> None:
    world = World.new(retained)
    run(world, happened)
    while any(q.went is None for q in world.queries):
        world.end(0)
    world.close()
    world.close()
    for stat in world.stats.values():
        assert not stat.table[:, 1:6].any()


@given(st.lists(steps, max_size=20))
def test_statistics_survive_being_stored_and_copies_do_not_touch_them(
    happened: Steps,
) -> None:
    world = World.new(retained=True)
    run(world, happened)
    arrays = stats_to_arrays(world.stats)
    back = stats_from_arrays({name: values.copy() for name, values in arrays.items()})
    assert list(back) == list(world.stats)
    for partition, stat in world.stats.items():
        assert back[partition].box == stat.box
        assert (back[partition].table == stat.table).all()
        copied = stat.copy()
        copied.close_round()
        copied.table[:] += 1
        assert (back[partition].table == stat.table).all()


@given(st.lists(cells, min_size=1, max_size=60))
def test_events_counted_per_cell_are_the_same_as_one_by_one(
    given_cells: list[tuple[int, int]],
) -> None:
    whole = Partition(1, 0, 0, COLUMNS, ROWS, 0)
    one, other = TrioStat.empty(whole), TrioStat.empty(whole)
    columns = np.array([c for c, _ in given_cells], np.int32)
    rows = np.array([r for _, r in given_cells], np.int32)
    one.receive(columns, rows, np.array([2.0]))
    numbers, counts = np.unique(rows * COLUMNS + columns, return_counts=True)
    other.receive_cells(numbers.astype(np.int32), counts, counts * 2.0)
    assert (one.table == other.table).all()


def _id(world: World, stat: TrioStat) -> int:
    return next(p for p, s in world.stats.items() if s is stat)
