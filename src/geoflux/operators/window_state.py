"""Where a query's windows are kept and put together: in its *home*.

The home of a query is the partition that holds the lower left cell of its box. In every epoch each
slot collects what its matches came to and writes it as one segment, addressed to the homes; the
home's slot reads what is addressed to it when windows close, in a later epoch. So partials of a
query that lies in several partitions are merged exactly, nobody waits for anybody, and the state
moves with the home by reference, as everything does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators import partials as pt
from geoflux.operators.clock import END
from geoflux.operators.count_windows import NUMBER, cut_off
from geoflux.operators.partials import Longs, Partials
from geoflux.operators.windows import Homed, closed, last_end
from geoflux.state.refs import Ref
from geoflux.state.segments import Segment, read_segment, unique_name, write_segment
from geoflux.state.store import Store

_FOLD_AFTER = 64
"""References of a partition after which its windows are written anew as one segment."""
_ROW = "row."


@dataclass(frozen=True)
class Kept:
    """What a home keeps: partials of panes, and matches that wait for windows of events."""

    partials: Partials
    rows: pa.Table

    def __len__(self) -> int:
        return len(self.partials) + len(self.rows)


@dataclass(frozen=True)
class HomeState:
    """The windows of one partition as its references tell them. ``horizons`` says of each
    reference until when something in it may be needed."""

    refs: tuple[Ref, ...] = ()
    kept: Kept = field(default_factory=lambda: Kept(Partials.none(), no_rows()))
    horizons: Mapping[Ref, int] = field(default_factory=dict)


def no_rows() -> pa.Table:
    """No matches that wait."""
    return pa.table({NUMBER: pa.array([], pa.int64())})


def write_windows(store: Store, name: str, parts: Sequence[tuple[int, Kept]]) -> int:
    """Write what is addressed to several homes (each once) as one segment; returns its bytes."""
    below = pt.joined([kept.partials for _, kept in parts])
    rows = pa.concat_tables([kept.rows for _, kept in parts], promote_options="permissive")
    arrays, about = pt.to_arrays(below)
    arrays |= {
        "partitions": np.array([home for home, _ in parts], np.int64),
        "offsets": _offsets([len(kept.partials) for _, kept in parts]),
        "rows.offsets": _offsets([len(kept.rows) for _, kept in parts]),
        **{_ROW + n: rows.column(n).combine_chunks() for n in rows.schema.names},
    }
    return write_segment(store, name, arrays, {"kind": "windows", **about})


def together(parts: Sequence[Kept]) -> Kept:
    """Several parts for one home as one."""
    if len(parts) == 1:
        return parts[0]
    rows = pa.concat_tables([part.rows for part in parts], promote_options="permissive")
    return Kept(pt.merged([part.partials for part in parts]), rows)


def _offsets(sizes: list[int]) -> Longs:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


@lru_cache(maxsize=64)
def _segment(root: str, name: str) -> Segment:
    """A segment, opened once for all homes of a slot; it never changes."""
    return read_segment(Store(root), name)


def read_windows(store: Store, ref: Ref) -> Kept:
    """What a segment has for one home, as views into it."""
    segment = _segment(store.root, ref.segment)
    place = int(np.flatnonzero(segment.array("partitions") == ref.partition)[0])
    first, last = segment.array("offsets")[place : place + 2]
    start, stop = segment.array("rows.offsets")[place : place + 2]
    names = [n for n in segment.columns if n.startswith(_ROW)]
    rows = pa.table({n.removeprefix(_ROW): segment.columns[n] for n in names})
    partials = pt.from_segment(segment).cut(first, last)
    if place or len(segment.array("partitions")) > 1:
        partials = partials.pruned()  # the dictionary is that of all homes
    return Kept(partials, rows.slice(start, stop - start))


@dataclass(frozen=True)
class Closing:
    """The outcome of an epoch's opening for one home: results, the references from now on, and
    what has been merged of them."""

    results: list[pa.Table]
    refs: tuple[Ref, ...]
    known: HomeState


def is_settled(home: int, refs: tuple[Ref, ...]) -> bool:
    """Whether the references of a home are its own, and few enough to stay as they are."""
    return len(refs) <= _FOLD_AFTER and all(ref.partition == home for ref in refs)


@dataclass(frozen=True)
class Homes:
    """Opens and closes the windows of homes."""

    store: Store

    def close(self, home: int, homed: Homed, refs: tuple[Ref, ...], known: HomeState) -> Closing:
        """Close what is to be closed. Nothing is read where nothing can close.

        What was inherited from another partition is written anew at once: two children of a split
        refer to the same rows, and must not both bring them into a later merge.
        """
        timed, waits = homed.closes(), homed.seals()
        settled = is_settled(home, refs)
        if settled and not (timed or waits):
            return Closing([], refs, known)
        state, rank = self._opened(homed, refs, known)
        partials, rows = state.kept.partials, state.kept.rows
        tables = [closed(homed, partials, rank)] if timed else []
        needed = last_end(homed.asked, rank, partials.key) > homed.upto[rank]
        still = np.ones(len(rows), np.bool_)
        if waits and len(rows):
            table, still = cut_off(homed.asked, rows, homed.upto)
            tables.append(table)
        after = _without(state, needed, still, homed.floor)
        if not len(after.kept):
            after = HomeState()
        elif not (settled and still.all()):
            after = self._folded(home, homed, after)
        return Closing([t for t in tables if len(t)], after.refs, after)

    def _opened(
        self, homed: Homed, refs: tuple[Ref, ...], known: HomeState
    ) -> tuple[HomeState, Longs]:
        """The state of all references, and the rank of the query of each group; what ``known``
        has merged is not read again."""
        old = known if known.refs == refs[: len(known.refs)] else HomeState()
        parts, horizons = [], dict(old.horizons)
        for ref in refs[len(old.refs) :]:
            kept = read_windows(self.store, ref)
            horizons[ref] = _horizon(homed, kept)
            parts.append(kept)
        fresh, _ = _alive(homed, pt.joined([part.partials for part in parts]))
        before, rank = _alive(homed, old.kept.partials)
        if len(fresh):
            fresh = fresh.merged()
            rank = np.concatenate((rank, np.searchsorted(homed.asked.numbers, fresh.number)))
        rows = pa.concat_tables(
            [old.kept.rows, *(part.rows for part in parts)], promote_options="permissive"
        )
        if len(rows):
            _, mine = _ranked(homed, rows.column(NUMBER).to_numpy())
            rows = rows if mine.all() else rows.filter(pa.array(mine))
        return HomeState(refs, Kept(pt.joined([before, fresh]), rows), horizons), rank

    def _folded(self, home: int, homed: Homed, state: HomeState) -> HomeState:
        name = unique_name("state", f"windows-p{home}")
        kept = Kept(state.kept.partials.merged(), state.kept.rows)
        write_windows(self.store, name, [(home, kept)])
        ref = Ref("windows", name, home)
        return HomeState((ref,), kept, {ref: _horizon(homed, kept)})


def _without(
    state: HomeState, needed: npt.NDArray[np.bool_], still: npt.NDArray[np.bool_], floor: int
) -> HomeState:
    """The state without what no later window needs."""
    partials, rows = state.kept.partials, state.kept.rows
    if not needed.all():
        partials = partials.taken(np.flatnonzero(needed))
    if not still.all():
        rows = rows.filter(pa.array(still))
    refs = tuple(ref for ref in state.refs if state.horizons[ref] > floor)
    return HomeState(refs, Kept(partials, rows), {ref: state.horizons[ref] for ref in refs})


def _ranked(homed: Homed, numbers: Longs) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """The rank of each number's query, and whether it is at home here at all."""
    known = homed.asked.numbers
    rank = np.searchsorted(known, numbers)
    if known.size == 0:
        return rank, np.zeros(numbers.size, np.bool_)
    return rank, known[np.minimum(rank, known.size - 1)] == numbers


def _alive(homed: Homed, partials: Partials) -> tuple[Partials, Longs]:
    """Groups of queries that are at home here, with a window that was not closed before; and the
    rank of each."""
    rank, mine = _ranked(homed, partials.number)
    here = np.flatnonzero(mine)
    here = here[last_end(homed.asked, rank[here], partials.key[here]) > homed.after[rank[here]]]
    if here.size == len(partials):
        return partials, rank
    return partials.taken(here), rank[here]


def _horizon(homed: Homed, kept: Kept) -> int:
    """Until when something in it may be needed."""
    if len(kept.rows) and _ranked(homed, kept.rows.column(NUMBER).to_numpy())[1].any():
        return END + 1
    rank, mine = _ranked(homed, kept.partials.number)
    if not mine.any():
        return -END
    return int(last_end(homed.asked, rank[mine], kept.partials.key[mine]).max())
