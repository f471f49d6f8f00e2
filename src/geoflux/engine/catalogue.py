"""The catalogue of live queries: which id is live, and where its row is.

The driver keeps 16 bytes per live query (a hash, and a pointer into a committed segment); the rows
themselves stay on disk. Hashes only narrow the search: ids are always compared as they are, so a
collision costs time, never a wrong answer. Rebuilt from the segments after a restart.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.engine.records import REGISTER, Records
from geoflux.engine.source import Rejected
from geoflux.operators import queries
from geoflux.operators.aggregates import aggregate_of
from geoflux.operators.clock import Clock
from geoflux.operators.where_parse import parse
from geoflux.state.segments import reopened
from geoflux.state.store import Store

Numbers = npt.NDArray[np.int64]
_MERGE_AT = 20_000
"""Recent ids after which they are merged into the sorted arrays."""


@dataclass(frozen=True)
class Applied:
    """What a batch of records changed: rows that came (with their numbers), rows that ended (as
    they were registered), and records that were refused."""

    came: pa.Table
    ended: pa.Table
    refused: list[Rejected]


@dataclass
class Catalogue:
    """Live queries by id. Segments are appended in order; a row is (segment, row)."""

    store: Store
    next_number: int = 0
    segments: list[str] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    """Event columns that any live or past ``where`` of this run names."""
    has_validity: bool = False
    has_windows: bool = False
    _tables: list[pa.Table] = field(default_factory=list)
    _hashes: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    _places: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _recent: dict[str, int] = field(default_factory=dict)
    _ending: list[tuple[int, int, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return int((self._places >= 0).sum()) + len(self._recent)

    @property
    def nbytes(self) -> int:
        """Bytes that the sorted arrays take."""
        return int(self._hashes.nbytes + self._places.nbytes)

    def decide(
        self, records: Records, clock: Clock, removed: npt.NDArray[np.int64] | None = None
    ) -> Applied:
        """What the records come to, given what is live. First the queries end whose validity the
        watermark has passed, and those that are ``removed`` (by place), so that their ids are
        free. Takes effect with :meth:`absorb`."""
        ids = records.rows.column("id").combine_chunks()
        op = records.op
        refused: list[Rejected] = []
        expired = self._expired(clock.watermark)
        if removed is not None:
            expired = np.union1d(expired, removed)
        live = self._find(ids)
        live[np.isin(live, expired)] = -1
        hashes = _hashed(ids)
        order = np.argsort(hashes, kind="stable")
        same = hashes[order][1:] == hashes[order][:-1]
        several = np.zeros(len(ids), np.bool_)
        several[order[1:][same]] = True
        several[order[:-1][same]] = True
        comes = (op == REGISTER) & (live < 0) & ~several
        ends = (op != REGISTER) & (live >= 0) & ~several
        ended = [live[ends]]
        for row in np.flatnonzero(~several & ~comes & ~ends):
            refused.append(_refusal(records, int(row)))
        if several.any():
            ended.append(self._in_turn(records, np.flatnonzero(several), live, comes, refused))
        came = records.rows.filter(pa.array(comes))
        places = np.unique(np.concatenate([*ended, expired]).astype(np.int64))
        numbers = np.arange(self.next_number, self.next_number + len(came), dtype=np.int64)
        came = came.set_column(0, queries.QUERY_SCHEMA.field("number"), pa.array(numbers))
        return Applied(_stamped(came, clock), self._rows(places), refused)

    def _in_turn(
        self, records: Records, rows: npt.NDArray[np.int64], live: npt.NDArray[np.int64],
        comes: npt.NDArray[np.bool_], refused: list[Rejected],
    ) -> npt.NDArray[np.int64]:  # fmt: skip
        """Records that share an id (or a hash) one after another; returns places that ended."""
        ids = records.rows.column("id").take(pa.array(rows)).to_pylist()
        pending: dict[str, int | None] = {}
        ended: set[int] = set()
        for row, name in zip(rows, ids, strict=True):
            place = int(live[row])
            if name not in pending:
                pending[name] = None
                alive = place >= 0
            else:
                alive = pending[name] is not None or (place >= 0 and place not in ended)
            if records.op[row] == REGISTER:
                if alive:
                    refused.append(_refusal(records, int(row)))
                else:
                    pending[name] = int(row)
                    comes[row] = True
            elif not alive:
                refused.append(_refusal(records, int(row)))
            elif pending[name] is not None:
                comes[pending[name]] = False
                pending[name] = None
            else:
                ended.add(place)
        return np.array(sorted(ended), np.int64)

    def absorb(self, segment: str) -> None:
        """Take over a committed segment of changes: first what ended, then what came."""
        stored = reopened(self.store, segment)  # others read it in the same epoch
        rows = queries.from_arrays(stored.columns)
        self._remove(stored.columns["ended.id"])
        index = len(self.segments)
        self.segments.append(segment)
        self._tables.append(rows)
        if len(rows) == 0:
            return
        ids = rows.column("id").combine_chunks()
        places = (np.int64(index) << 32) + np.arange(len(rows), dtype=np.int64)
        self.next_number = int(queries.numeric(rows, "number")[-1]) + 1
        self._note_filters(rows, places)
        if len(rows) + len(self._recent) < _MERGE_AT:
            self._recent.update(zip(ids.to_pylist(), places.tolist(), strict=True))
        else:
            self._merge(ids, places)

    def _note_filters(self, rows: pa.Table, places: npt.NDArray[np.int64]) -> None:
        for text in pc.unique(rows.column("where")).to_pylist():
            if text is not None:
                self.columns |= parse(text).columns
        for text in pc.unique(rows.column("aggregate")).to_pylist():
            if text is not None:
                self.columns |= set(aggregate_of(text).columns)
                self.has_windows = True
        until = rows.column("valid_until")
        if until.null_count < len(rows) or rows.column("valid_from").null_count < len(rows):
            self.has_validity = True
        for row in np.flatnonzero(pc.is_valid(until).to_numpy()):
            entry = (until[int(row)].as_py(), int(places[row]), rows.column("id")[int(row)].as_py())
            heapq.heappush(self._ending, entry)

    def _merge(self, ids: pa.Array, places: npt.NDArray[np.int64]) -> None:
        """Into the sorted arrays; ids whose hash is taken by another id stay in the dictionary."""
        recent = pa.array(list(self._recent), pa.string())
        ids = pa.concat_arrays([recent, ids.cast(pa.string())])
        places = np.concatenate((np.array(list(self._recent.values()), np.int64), places))
        alive = self._places >= 0
        hashes = np.concatenate((self._hashes[alive], _hashed(ids)))
        all_places = np.concatenate((self._places[alive], places))
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        first = np.concatenate(([True], hashes[1:] != hashes[:-1])) if hashes.size else order < 0
        taken = order[~first]
        self._recent = {ids[int(k - alive.sum())].as_py(): int(all_places[k]) for k in taken}
        self._hashes, self._places = hashes[first], all_places[order][first]

    def _find(self, ids: pa.Array) -> npt.NDArray[np.int64]:
        """The place of each id that is live, or -1."""
        found = np.full(len(ids), -1, np.int64)
        if self._hashes.size:
            hashes = _hashed(ids)
            at = np.minimum(np.searchsorted(self._hashes, hashes), self._hashes.size - 1)
            hits = np.flatnonzero((self._hashes[at] == hashes) & (self._places[at] >= 0))
            if hits.size:
                places = self._places[at[hits]]
                same = pc.equal(self._ids(places), ids.take(pa.array(hits))).to_numpy(
                    zero_copy_only=False
                )
                found[hits[same]] = places[same]
        if self._recent:
            recent = pa.array(list(self._recent), pa.string())
            where = pc.index_in(ids, value_set=recent)
            hits = np.flatnonzero(pc.is_valid(where).to_numpy(zero_copy_only=False))
            if hits.size:
                places = np.array(list(self._recent.values()), np.int64)
                found[hits] = places[where.take(pa.array(hits)).to_numpy()]
        return found

    def _remove(self, ids: pa.Array) -> None:
        if len(ids) == 0:
            return
        places = self._find(ids)
        gone = {name for name in ids.to_pylist() if name in self._recent}
        for name in gone:
            del self._recent[name]
        if self._places.size:
            hit = np.isin(self._places, places[places >= 0])
            if hit.any() and not self._places.flags.writeable:
                self._places = self._places.copy()
            self._places[hit] = -1

    def _expired(self, watermark: int | None) -> npt.NDArray[np.int64]:
        """Places of live queries whose validity the watermark has passed."""
        if watermark is None:
            return np.empty(0, np.int64)
        due: list[tuple[int, str]] = []
        while self._ending and self._ending[0][0] < watermark:
            _, place, name = heapq.heappop(self._ending)
            due.append((place, name))
        if not due:
            return np.empty(0, np.int64)
        live = self._find(pa.array([name for _, name in due], pa.string()))
        return np.array([p for (p, _), now in zip(due, live, strict=True) if p == now], np.int64)

    def places_of(self, users: Iterable[str]) -> npt.NDArray[np.int64]:
        """Places of the live queries of some users; goes through all that are known."""
        wanted = pa.array(sorted(users), pa.string())
        found = [
            (np.int64(index) << 32)
            + np.flatnonzero(
                pc.is_in(table.column("user"), value_set=wanted).to_numpy(zero_copy_only=False)
            )
            for index, table in enumerate(self._tables)
            if len(wanted) and table.column("user").null_count < len(table)
        ]
        theirs = np.concatenate([np.empty(0, np.int64), *found])
        alive = np.isin(theirs, self._places) | np.isin(theirs, list(self._recent.values()))
        return theirs[alive]

    def _ids(self, places: npt.NDArray[np.int64]) -> pa.Array:
        return self._rows(places, ["id"]).column("id").combine_chunks()

    def _rows(self, places: npt.NDArray[np.int64], names: list[str] | None = None) -> pa.Table:
        """The rows at places, in the order of the places given."""
        wanted = names or queries.QUERY_SCHEMA.names
        if places.size == 0:
            return queries.no_queries().select(wanted)
        segment, row = places >> 32, places & 0xFFFFFFFF
        order = np.argsort(segment, kind="stable")
        parts = []
        for index in np.unique(segment):
            rows = row[order][segment[order] == index]
            parts.append(self._tables[int(index)].select(wanted).take(pa.array(rows)))
        back = np.empty(order.size, np.int64)
        back[order] = np.arange(order.size)
        return pa.concat_tables(parts).take(pa.array(back)).combine_chunks()

    def _live(self) -> npt.NDArray[np.int64]:
        """Places of all that is live, in order."""
        recent = np.array(list(self._recent.values()), np.int64)
        return np.sort(np.concatenate((self._places[self._places >= 0], recent)))

    def live_rows(self) -> pa.Table:
        """All live queries by number."""
        return self._rows(self._live())

    def layers(self) -> list[tuple[pa.Table, npt.NDArray[np.bool_]]]:
        """The rows of all segments as they lie there, and which of them are live."""
        places = self._live()
        ends = np.searchsorted(places, np.arange(len(self._tables) + 1, dtype=np.int64) << 32)
        out = []
        for index, table in enumerate(self._tables):
            alive = np.zeros(len(table), np.bool_)
            alive[places[ends[index] : ends[index + 1]] & 0xFFFFFFFF] = True
            out.append((table, alive))
        return out

    @property
    def has_users(self) -> bool:
        """Whether any query, live or not, has a user."""
        return any(table.column("user").null_count < len(table) for table in self._tables)

    @property
    def rows_on_disk(self) -> int:
        """Rows in all segments, live or not."""
        return sum(len(table) for table in self._tables)


def _stamped(came: pa.Table, clock: Clock) -> pa.Table:
    """Queries that aggregate, with what was closed when they came."""
    asks = pc.is_valid(came.column("aggregate"))
    since = pc.if_else(asks, pa.scalar(clock.closed, pa.int64()), pa.scalar(None, pa.int64()))
    place = queries.QUERY_SCHEMA.get_field_index("since")
    return came.set_column(place, queries.QUERY_SCHEMA.field(place), since)


def rebuilt(store: Store, segments: Iterable[str]) -> Catalogue:
    """The catalogue as the segments tell it."""
    catalogue = Catalogue(store)
    for segment in segments:
        catalogue.absorb(segment)
    return catalogue


def _hashed(ids: Any) -> npt.NDArray[np.uint64]:
    values = ids.to_numpy(zero_copy_only=False)
    return pd.util.hash_array(values, categorize=False) if len(values) else np.empty(0, np.uint64)


def _refusal(records: Records, row: int) -> Rejected:
    name = records.rows.column("id")[row].as_py()
    if records.op[row] == REGISTER:
        return Rejected("duplicate_id", f"query {name!r} is live already; terminate it first", name)
    return Rejected("unknown_id", f"there is no live query {name!r} to terminate", name)
