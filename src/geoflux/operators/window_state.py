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

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators import partials as pt
from geoflux.operators.clock import END
from geoflux.operators.count_windows import NUMBER, cut_off
from geoflux.operators.partials import Longs, Partials
from geoflux.operators.windows import Homed, closed, last_end
from geoflux.state.refs import Ref
from geoflux.state.segments import reopened, unique_name, write_segment
from geoflux.state.store import Store

_FOLD_AFTER = 64
"""References of a partition after which its windows are written anew as one segment."""
_ROW = "row."


@dataclass(frozen=True)
class Kept:
    """For a home: partials of panes, and matches that wait for windows of events."""

    partials: Partials
    rows: pa.Table


@dataclass(frozen=True)
class HomeState:
    """The windows of one partition as its references tell them: partials of panes in several
    parts, and matches that wait. ``horizons`` says of each reference until when something in it
    may be needed."""

    refs: tuple[Ref, ...] = ()
    parts: tuple[Partials, ...] = ()
    rows: pa.Table = field(default_factory=lambda: no_rows())
    horizons: Mapping[Ref, int] = field(default_factory=dict)


def no_rows() -> pa.Table:
    """No matches that wait."""
    return pa.table({NUMBER: pa.array([], pa.int64())})


def write_windows(store: Store, name: str, parts: Sequence[tuple[int, Kept]]) -> int:
    """Write what is addressed to homes as one segment; returns its bytes."""
    rows = pa.concat_tables([kept.rows for _, kept in parts], promote_options="permissive")
    arrays, about = pt.to_arrays([kept.partials for _, kept in parts])
    arrays |= {
        "partitions": np.array([home for home, _ in parts], np.int64),
        "rows.offsets": pt.offsets_of([len(kept.rows) for _, kept in parts]),
        **{_ROW + n: rows.column(n).combine_chunks() for n in rows.schema.names},
    }
    return write_segment(store, name, arrays, {"kind": "windows", **about})


def read_windows(store: Store, ref: Ref) -> list[Kept]:
    """What a segment has for one home, as views into it."""
    segment = reopened(store, ref.segment)
    names = [n for n in segment.columns if n.startswith(_ROW)]
    rows = pa.table({n.removeprefix(_ROW): segment.columns[n] for n in names})
    found = []
    for place in np.flatnonzero(segment.array("partitions") == ref.partition).tolist():
        start, stop = segment.array("rows.offsets")[place : place + 2]
        found.append(Kept(pt.from_segment(segment, place), rows.slice(start, stop - start)))
    return found


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
        state, ranks = self._opened(homed, refs, known)
        tables = [closed(homed, state.parts, ranks)] if timed else []
        rows = state.rows
        still = np.ones(len(rows), np.bool_)
        if waits and len(rows):
            table, still = cut_off(homed.asked, rows, homed.upto)
            tables.append(table)
        after = _without(state, homed, ranks, still)
        if not (after.parts or len(after.rows)):
            after = HomeState()
        elif not (settled and still.all()):
            after = self._folded(home, homed, after)
        return Closing([t for t in tables if len(t)], after.refs, after)

    def _opened(
        self, homed: Homed, refs: tuple[Ref, ...], known: HomeState
    ) -> tuple[HomeState, list[Longs]]:
        """The state of all references, and the rank of the query of each group; what ``known``
        has merged is not read again. What a later window needs too is merged at once."""
        old = known if known.refs == refs[: len(known.refs)] else HomeState()
        parts, fresh, rows, horizons = [], [], [old.rows], dict(old.horizons)
        for part in old.parts:
            parts.append(_alive(homed, part))
        for ref in refs[len(old.refs) :]:
            kept = read_windows(self.store, ref)
            horizons[ref] = max(_horizon(homed, some) for some in kept)
            rows += [some.rows for some in kept]
            fresh += [_alive(homed, some.partials) for some in kept]
        if any(_needed(homed, part, rank).any() for part, rank in fresh):
            one = pt.merged([part for part, _ in fresh])
            fresh = [(one, np.searchsorted(homed.asked.numbers, one.number))]
        parts = [(part, rank) for part, rank in (*parts, *fresh) if len(part)]
        waiting = pa.concat_tables(rows, promote_options="permissive")
        if len(waiting):
            _, mine = _ranked(homed, waiting.column(NUMBER).to_numpy())
            waiting = waiting if mine.all() else waiting.filter(pa.array(mine))
        state = HomeState(refs, tuple(part for part, _ in parts), waiting, horizons)
        return state, [rank for _, rank in parts]

    def _folded(self, home: int, homed: Homed, state: HomeState) -> HomeState:
        name = unique_name("state", f"windows-p{home}")
        kept = Kept(pt.merged(state.parts), state.rows)
        write_windows(self.store, name, [(home, kept)])
        ref = Ref("windows", name, home)
        return HomeState((ref,), (kept.partials,), kept.rows, {ref: _horizon(homed, kept)})


def _needed(homed: Homed, part: Partials, rank: Longs) -> npt.NDArray[np.bool_]:
    """Which groups a later window needs."""
    return last_end(homed.asked, rank, part.key) > homed.upto[rank]


def _without(
    state: HomeState, homed: Homed, ranks: list[Longs], still: npt.NDArray[np.bool_]
) -> HomeState:
    """The state without what no later window needs."""
    parts = []
    for part, rank in zip(state.parts, ranks, strict=True):
        needed = _needed(homed, part, rank)
        if needed.any():
            parts.append(part if needed.all() else part.taken(np.flatnonzero(needed)))
    rows = state.rows if still.all() else state.rows.filter(pa.array(still))
    refs = tuple(ref for ref in state.refs if state.horizons[ref] > homed.floor)
    return HomeState(refs, tuple(parts), rows, {ref: state.horizons[ref] for ref in refs})


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
