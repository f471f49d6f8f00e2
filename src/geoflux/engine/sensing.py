"""The sensors of Guard: who has queries in a slot's costliest partition, or in all of an operator
when its slots become more or fewer; and from which round.

Users are kept with the queries, and rounds follow from their numbers: nothing is collected before
it is asked for, and where queries have no users there is nothing to tell. Most queries are older
than the last rounds; of those only how many each user has is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.engine.catalogue import Catalogue
from geoflux.guard import Found, Summary, sense
from geoflux.guard.rounds import Rounds
from geoflux.guard.sensor import Kind
from geoflux.guard.tuning import ROUNDS_SEEN
from geoflux.operators import queries
from geoflux.operators.pubsub import PartitionState
from geoflux.spatial.grid import Grid

_BOX = ["x0", "y0", "x1", "y1"]
_OPERATOR = 0
"""Who sheds load when an operator is scaled: there is only the one."""
Codes = npt.NDArray[Any]
Layers = Sequence[tuple[pa.Table, npt.NDArray[np.bool_] | None]]
"""Rows of queries by number, and which of them are alive (``None``: all)."""


def sensed(
    state: PartitionState, grid: Grid, rounds: Rounds, donor: int, occasion: int
) -> str | None:  # fmt: skip
    """The summary of a partition as JSON; ``None`` where nobody is known."""
    layers = [(matcher.layer.rows, alive) for matcher, alive in state.matchers]
    if all(rows.column("user").null_count == len(rows) for rows, _ in layers):
        return None
    names, older, recent = _dated(layers, rounds, grid)
    p = state.partition
    box = (float(p.col0), float(p.row0), float(p.col1), float(p.row1))
    summary = sense(Found(names, *recent), donor, occasion, box=box, round=rounds.current)
    return _told(_with_older(replace(summary, rows=state.queries), names, older))


def sensed_scaling(
    catalogue: Catalogue, rounds: Rounds, before: int, after: int, occasion: int
) -> str | None:  # fmt: skip
    """The summary of all that an operator holds when its slots become more or fewer, as JSON: every
    query once, in however many partitions it lies. ``None`` where the slots stay or nobody is
    known."""
    if before == after or not catalogue.has_users:
        return None
    names, older, recent = _dated(catalogue.layers(), rounds)
    kind: Kind = "scale_out" if after > before else "scale_in"
    summary = sense(Found(names, *recent), _OPERATOR, occasion, kind=kind, round=rounds.current)
    return _told(_with_older(replace(summary, rows=len(catalogue)), names, older))


def _dated(
    layers: Layers, rounds: Rounds, grid: Grid | None = None
) -> tuple[tuple[str, ...], Codes, list[Codes]]:  # fmt: skip
    """Everybody's name, how many older queries each has, and of the recent ones user and round;
    with a grid also where they lie."""
    columns = [chunk for rows, _ in layers for chunk in rows.column("user").chunks]
    users = pa.chunked_array(columns, pa.string()).combine_chunks().dictionary_encode()
    codes = users.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = tuple(users.dictionary.to_pylist())
    older, recent, start = np.zeros(len(names), np.int64), [], 0
    for rows, alive in layers:
        numbers = queries.numeric(rows, "number")  # always ascending
        first = int(np.searchsorted(numbers, rounds.marks[0]))
        mine = codes[start : start + len(rows)]
        older += _counts(mine[:first], None if alive is None else alive[:first], len(names))
        kept = (
            np.arange(first, len(rows)) if alive is None else first + np.flatnonzero(alive[first:])
        )
        at: Any = ()
        if grid is not None:
            at = queries.middles(rows.select(_BOX).take(pa.array(kept)), grid)
        recent.append((mine[kept].astype(np.int64), rounds.of(numbers[kept]), *at))
        start += len(rows)
    return names, older, [np.concatenate(parts) for parts in zip(*recent, strict=True)]


def _told(summary: Summary) -> str:
    return json.dumps(summary.to_dict(), separators=(",", ":"))


def _counts(codes: Codes, alive: npt.NDArray[np.bool_] | None, names: int) -> Codes:
    """How many rows of each user are alive; -1 is nobody."""
    counts = np.bincount(codes + 1, minlength=names + 1)
    if alive is not None:
        counts -= np.bincount(codes[~alive] + 1, minlength=names + 1)
    return counts[1:]


def _with_older(summary: Summary, names: tuple[str, ...], older: Codes) -> Summary:
    """A summary of recent queries with the older ones of everybody."""
    place = {name: row for row, name in enumerate(summary.users)}
    more = [name for name, count in zip(names, older, strict=True) if count and name not in place]
    users = (*summary.users, *more)
    counts = np.vstack((summary.counts, np.zeros((len(more), ROUNDS_SEEN + 1), np.int64)))
    of = dict(zip(names, older.tolist(), strict=True))
    counts[:, ROUNDS_SEEN] += np.array([of[name] for name in users], np.int64)
    places = summary.places
    if places is not None:
        places = np.vstack((places, np.zeros((len(more), 4))))
    return replace(summary, users=users, counts=counts, places=places)
