"""The hotspot sensor in a slot: who has queries in its costliest partition, and from which round.

Users are kept with the queries, and rounds follow from their numbers: nothing is collected before
it is asked for, and where queries have no users there is nothing to tell.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from geoflux.guard import Found, sense
from geoflux.guard.rounds import Rounds
from geoflux.operators import queries
from geoflux.operators.pubsub import PartitionState
from geoflux.spatial.grid import Grid

_WANTED = ["user", "number", "x0", "y0", "x1", "y1"]


def sensed(
    state: PartitionState, grid: Grid, rounds: Rounds, donor: int, occasion: int
) -> str | None:  # fmt: skip
    """The summary of a partition as JSON; ``None`` where nobody is known."""
    parts = []
    for matcher, alive in state.matchers:
        rows = matcher.layer.rows.select(_WANTED)
        parts.append(rows if alive is None else rows.filter(pa.array(alive)))
    if all(part.column("user").null_count == len(part) for part in parts):
        return None
    rows = pa.concat_tables(parts).combine_chunks()
    users = rows.column("user").combine_chunks().dictionary_encode()
    codes = users.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    found = Found(
        tuple(users.dictionary.to_pylist()), codes, rounds.of(queries.numeric(rows, "number")),
        *queries.middles(rows, grid),
    )  # fmt: skip
    p = state.partition
    box = (float(p.col0), float(p.row0), float(p.col1), float(p.row1))
    summary = sense(found, donor, occasion, box=box, round=rounds.current)
    return json.dumps(summary.to_dict(), separators=(",", ":"))
