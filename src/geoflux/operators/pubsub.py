"""Publish/subscribe: every event to every standing query whose area it lies in.

A partition's state is some base layers (mapped segments with their index), a few of about the same
size at most, a small layer of what came since, and the numbers of what ended since. When changes
outgrow the bases, the slot writes a new one. A partition that was cut out of another goes on with
the layers of that one, as long as they are mostly about itself. The operator never knows who owns
what: it is given a partition and references.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators import queries
from geoflux.operators.asking import Asking
from geoflux.operators.collecting import Collector
from geoflux.operators.deltas import Delta, Numbers, joined, once, read_delta, write_folded
from geoflux.operators.events import Events
from geoflux.operators.layer import Layer
from geoflux.operators.matching import LayerMatcher, SortedEvents, Work
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import IntArray
from geoflux.state.refs import Ref, common
from geoflux.state.segments import unique_name
from geoflux.state.store import Store

_FOLD_AFTER = 16
"""Deltas of a partition after which they are folded into one segment."""
_ALIKE = 6
"""Layers of about the same size that are written as one. A burst of a million registrations costs a
quarter less than with 4."""
_OWN = 2
"""A layer of which less than one in so many queries is the partition's is written anew. With 4 less
is written, and matching takes a tenth longer."""
_SMALL = 1024
"""Changes that a partition may always carry beside its base."""

Mask = npt.NDArray[np.bool_]


class MatchSink(Protocol):
    """Where matches go."""

    def pairs(self, query_ids: pa.Array, query: IntArray, events: Events, event: IntArray) -> None:
        """Matches one by one: rows of ``query_ids`` and of ``events``."""
        ...

    def counts(self, query_ids: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        """Matches per query; zeros are included."""
        ...


@dataclass(frozen=True)
class PartitionState:
    """A partition's queries, ready to match: matchers with the rows of each that are alive
    (``None``: all), and the references that stand for this state from now on."""

    partition: Partition
    matchers: tuple[tuple[LayerMatcher, Mask | None], ...]
    refs: tuple[Ref, ...]
    queries: int
    written: tuple[str, ...] = ()

    @cached_property
    def asking(self) -> Asking:
        """Its queries that aggregate."""
        return Asking.among([(matcher.layer.rows, alive) for matcher, alive in self.matchers])


@dataclass(frozen=True)
class _Base:
    """A base layer of a partition. One that was written for a partition that this one was cut out
    of serves as it is, for those queries that are ``touching`` this one."""

    ref: Ref
    layer: Layer
    touching: Mask | None
    """``None``: it was written for this partition, and all do."""
    size: int
    """How many of its queries are the partition's."""

    @property
    def rows(self) -> pa.Table:
        """The partition's queries."""
        rows = self.layer.rows
        return rows if self.touching is None else rows.filter(pa.array(self.touching))

    @property
    def is_wasteful(self) -> bool:
        """Whether to write it anew: most of it is others', or some of it is elsewhere too."""
        return self.ref.area is not None or _OWN * self.size < len(self.layer)


class PubSub:
    """The operator: opens partitions and matches events against them.

    Source: SWARM 2 (location-aware publish/subscribe), TrioStat/SWARM 4.5.2 (state moves with the
    partition); layout of the index from geoflux itself.
    """

    def __init__(self, grid: Grid, store: Store, counting: bool) -> None:
        self._grid = grid
        self._store = store
        self._counting = counting

    def open(self, partition: Partition, refs: tuple[Ref, ...]) -> PartitionState:
        """Make a partition's state ready; rewrites it where that pays."""
        delta = joined([self._delta(ref, partition) for ref in refs if ref.kind == "delta"])
        bases = [self._base(ref, partition) for ref in refs if ref.kind == "base"]
        deltas = [ref for ref in refs if ref.kind == "delta"]
        few = max(_SMALL, sum(base.size for base in bases) // 8)
        if delta.ended.size > few:
            return self._rebased(partition, bases, delta)
        wasteful = [base for base in bases if base.is_wasteful]
        if len(delta.rows) > few or wasteful:
            others = [base for base in bases if not base.is_wasteful]
            return self._layered(partition, others, wasteful, delta)
        if len(refs) > _FOLD_AFTER or any(ref.partition != partition.id for ref in deltas):
            kept = [base.ref for base in bases]
            if len(delta.rows) == delta.ended.size == 0:
                return self._composed(partition, bases, delta, tuple(kept), ())
            name = unique_name("state", f"delta-p{partition.id}")
            write_folded(self._store, name, partition.id, delta)
            folded = Ref("delta", name, partition.id)
            return self._composed(partition, bases, delta, (*kept, folded), (name,))
        return self._composed(partition, bases, delta, refs, ())

    def process(
        self, state: PartitionState, ready: SortedEvents, sink: MatchSink,
        collector: Collector | None = None,
    ) -> Work:  # fmt: skip
        """Match a batch of a partition's events; matches of queries that aggregate are collected
        as well."""
        work = Work()
        events = ready.events
        for place, (matcher, alive) in enumerate(state.matchers):
            ids = matcher.layer.rows.column("id").chunk(0)
            ranks = None if collector is None else state.asking.ranks[place]
            if self._counting and ranks is None:
                counts = matcher.counts(ready, work)
                if alive is not None:
                    counts[~alive] = 0
                sink.counts(ids, counts)
                continue
            counts = np.zeros(len(matcher.layer), np.int64)
            for event, query in _living(matcher.pairs(ready, work), alive):
                if collector is not None and ranks is not None:
                    collector.add(*state.asking.ranked(place, event, query))
                if self._counting:
                    counts += np.bincount(query, minlength=counts.size)
                else:
                    sink.pairs(ids, query, events, event)
            if self._counting:
                sink.counts(ids, counts)
        return work

    def _delta(self, ref: Ref, partition: Partition) -> Delta:
        delta = read_delta(self._store, ref.segment, ref.partition)
        if ref.partition == partition.id:
            return delta
        if len(delta.rows) == 0:
            return delta
        touching = queries.touching(delta.rows, self._grid, common(partition.box, ref.area))
        return Delta(delta.rows.filter(pa.array(touching)), delta.ended)

    def _base(self, ref: Ref, partition: Partition) -> _Base:
        layer = Layer.open(self._store, ref.segment)
        if ref.partition == partition.id:
            return _Base(ref, layer, None, len(layer))
        touching = queries.touching(layer.rows, self._grid, common(partition.box, ref.area))
        return _Base(ref, layer, touching, int(touching.sum()))

    def _rebased(self, partition: Partition, bases: list[_Base], delta: Delta) -> PartitionState:
        """Everything as one layer."""
        alive = once([delta.rows, *(base.rows for base in bases)], delta.ended)
        if len(alive) == 0:
            return PartitionState(partition, (), (), 0)
        base = self._written(partition, alive)
        nothing = Delta(queries.no_queries(), np.empty(0, np.int64))
        return self._composed(partition, [base], nothing, (base.ref,), (base.ref.segment,))

    def _layered(
        self, partition: Partition, bases: list[_Base], renewed: list[_Base], delta: Delta
    ) -> PartitionState:  # fmt: skip
        """What came since, and bases that must be written anew, as a layer of its own; together
        with those that are not much larger, once there are several: each query is written a few
        times only, however many come in a row."""
        rows = [delta.rows, *(base.rows for base in renewed)]
        size, written = sum(len(some) for some in rows), []
        bases = sorted(bases, key=lambda base: -base.size)
        while sum(base.size <= 2 * size for base in bases) >= _ALIKE - 1:
            small = [base for base in bases if base.size <= 2 * size]
            bases = bases[: len(bases) - len(small)]
            rows += [base.rows for base in small]
            size += sum(base.size for base in small)
        alive = once(rows, delta.ended)
        left = Delta(queries.no_queries(), delta.ended if bases else delta.ended[:0])
        if len(alive):
            bases.append(self._written(partition, alive))
            written.append(bases[-1].ref.segment)
        refs = [base.ref for base in bases]
        if left.ended.size:
            name = unique_name("state", f"delta-p{partition.id}")
            write_folded(self._store, name, partition.id, left)
            refs.append(Ref("delta", name, partition.id))
            written.append(name)
        return self._composed(partition, bases, left, tuple(refs), tuple(written))

    def _written(self, partition: Partition, rows: pa.Table) -> _Base:
        layer = Layer.build(rows, self._grid, partition)
        name = unique_name("state", f"base-p{partition.id}")
        layer.write(self._store, name, {"kind": "base", "partition": partition.id})
        ref = Ref("base", name, partition.id)
        return _Base(ref, Layer.open(self._store, name), None, len(layer))

    def _composed(
        self, partition: Partition, bases: list[_Base], delta: Delta,
        refs: tuple[Ref, ...], written: tuple[str, ...],
    ) -> PartitionState:  # fmt: skip
        matchers: list[tuple[LayerMatcher, Mask | None]] = []
        count = 0
        for base in bases:
            alive = _alive(queries.numeric(base.layer.rows, "number"), delta.ended)
            if base.touching is not None:
                alive = base.touching if alive is None else alive & base.touching
            matchers.append((LayerMatcher(base.layer, self._grid), alive))
            count += base.size if alive is None else int(alive.sum())
        if len(delta.rows):
            recent = Layer.build(delta.rows, self._grid, partition)
            matchers.append((LayerMatcher(recent, self._grid), None))
            count += len(recent)
        return PartitionState(partition, tuple(matchers), refs, count, written)


def checks_per_cell(
    state: PartitionState, ready: SortedEvents, refined: float = 1.0
) -> npt.NDArray[np.float64]:
    """The boxes that the events of each cell are compared with, those of queries that ask for more
    than a box ``refined`` times; with 1 their sum is ``Work.checks``."""
    checks = np.zeros(ready.groups[0].size)
    for matcher, _ in state.matchers:
        matcher.add_checks(ready, checks, refined)
    return checks


def _alive(numbers: Numbers, ended: Numbers) -> Mask | None:
    """Which rows have not ended; ``None`` where none of them has."""
    if ended.size == 0:
        return None
    place = np.searchsorted(numbers, ended)
    within = place < numbers.size
    hits = place[within][numbers[place[within]] == ended[within]]
    if hits.size == 0:
        return None
    alive = np.ones(numbers.size, np.bool_)
    alive[hits] = False
    return alive


def _living(
    pairs: Iterator[tuple[IntArray, IntArray]], alive: Mask | None
) -> Iterator[tuple[IntArray, IntArray]]:
    for event, query in pairs:
        if alive is not None:
            kept = alive[query]
            event, query = event[kept], query[kept]
        if query.size:
            yield event, query
