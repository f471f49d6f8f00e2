"""The aggregating queries of a partition: those matched in it, and those that are at home in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.operators import queries
from geoflux.operators.clock import BEGINNING, END, Clock
from geoflux.operators.collecting import Asked, asked_of
from geoflux.operators.windows import Homed
from geoflux.plan.plan import Plan
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import IntArray

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Asking:
    """Rows of live queries that aggregate, ordered by number; ``ranks`` gives for every layer the
    rank of each of its queries (-1: does not aggregate), or ``None`` where none does."""

    rows: pa.Table
    ranks: tuple[IntArray | None, ...]

    def ranked(self, layer: int, event: IntArray, query: IntArray) -> tuple[IntArray, IntArray]:
        """Those of a layer's matches whose queries aggregate: their events, and their ranks."""
        ranks = self.ranks[layer]
        if ranks is None:
            return event[:0], query[:0]
        if self._is_same[layer]:
            return event, query
        rank = ranks[query]
        asks = rank >= 0
        return (event, rank) if asks.all() else (event[asks], rank[asks])

    @cached_property
    def _is_same(self) -> list[bool]:
        """Layers whose queries all aggregate and are ranked as they lie."""
        return [r is not None and bool((r == np.arange(r.size)).all()) for r in self.ranks]

    @classmethod
    def among(cls, layers: Sequence[tuple[pa.Table, Mask | None]]) -> Asking:
        """Those of several layers' queries (with the mask of the living ones)."""
        found = []
        for rows, alive in layers:
            asks: Any = pc.is_valid(rows.column("aggregate")).to_numpy()
            found.append(np.flatnonzero(asks if alive is None else asks & alive))
        picked = [
            rows.take(pa.array(which)) for (rows, _), which in zip(layers, found, strict=True)
        ]
        below = pa.concat_tables(picked) if picked else queries.no_queries()
        order = np.argsort(queries.numeric(below, "number"), kind="stable")
        place = np.empty(order.size, np.int32)
        place[order] = np.arange(order.size)
        ranks: list[IntArray | None] = []
        first = 0
        for (rows, _), which in zip(layers, found, strict=True):
            rank = np.full(len(rows), -1, np.int32)
            rank[which] = place[first : first + which.size]
            ranks.append(rank if which.size else None)
            first += which.size
        return cls(below.take(pa.array(order)).combine_chunks(), tuple(ranks))

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def asked(self) -> Asked:
        """What they ask."""
        return asked_of(queries.numeric(self.rows, "number"), self.rows.column("aggregate"))

    def has_due(self, clock: Clock) -> bool:
        """Whether a window of any of them may close now."""
        if clock.final:
            return True
        before, floor = clock.floor_before, clock.floor
        for a in self.asked.specs:
            if a.window_micros is None and floor > before:
                return True
            if a.window_micros is not None:
                ends = ((before - a.window_micros) // a.slide, (floor - a.window_micros) // a.slide)
                if ends[1] > ends[0]:
                    return True
        return False

    def homes(self, grid: Grid, plan: Plan) -> npt.NDArray[np.int64]:
        """The id of the home of each; looked up once for the same partitions, since an id stands
        for the same cells for ever."""
        ids = tuple(p.id for p in plan.partitions)
        if self._homes.get("ids") != ids:
            self._homes.update(ids=ids, homes=homes_of(self.rows, grid, plan))
        found: npt.NDArray[np.int64] = self._homes["homes"]
        return found

    @cached_property
    def _homes(self) -> dict[str, Any]:
        return {}


def homes_of(rows: pa.Table, grid: Grid, plan: Plan) -> npt.NDArray[np.int64]:
    """The id of the partition where each query's windows are put together."""
    ids = np.array([p.id for p in plan.partitions], np.int64)
    return ids[plan.homes(*queries.anchors(rows, grid))]


def homed(live: pa.Table, ended: pa.Table, clock: Clock) -> Homed:
    """Live queries at home in a partition, and those that ended with this epoch, with the windows
    that close now: of queries that expired all that are left, of terminated ones those that were
    closed before the termination took effect."""
    rows = pa.concat_tables([live, ended])
    order = np.argsort(queries.numeric(rows, "number"), kind="stable")
    rows = rows.take(pa.array(order)).combine_chunks()
    has_ended = order >= len(live)
    until = _filled(rows, "valid_until", END)
    watermark = BEGINNING if clock.watermark is None else clock.watermark
    expired = has_ended & (until < watermark)
    upto = np.full(len(rows), clock.floor, np.int64)
    upto[expired | (~has_ended & clock.final)] = END
    since = _filled(rows, "since", END if clock.origin is None else clock.origin)
    asked = asked_of(queries.numeric(rows, "number"), rows.column("aggregate"))
    last = until.copy()
    if clock.final and clock.max_time is not None:
        reached = np.maximum(clock.max_time, clock.floor - asked.windows[0])
        last = np.where(expired, until, np.minimum(until, reached))
    return Homed(
        asked,
        rows.column("id").combine_chunks(),
        np.full(len(rows), clock.floor_before, np.int64),
        upto,
        np.maximum(since, _filled(rows, "valid_from", BEGINNING)),
        last,
        END if clock.final else clock.floor,
        clock.floor,
    )


def _filled(rows: pa.Table, name: str, value: int) -> npt.NDArray[np.int64]:
    column: npt.NDArray[np.int64] = rows.column(name).fill_null(value).to_numpy()
    return column
