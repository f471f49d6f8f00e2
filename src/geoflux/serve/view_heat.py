"""Where the events of an epoch were, as counts in a coarse raster.

Manifests hold which positions of the source an epoch read, and positions never change their
meaning: so a sample of the epoch's own rows is read again. Where that cannot be (a DataFrame, a
stream whose files were dropped after all had read them) the counts of the partitions stand in.
Nothing is written, and nothing is asked of the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.config import Config
from geoflux.engine.intake import EventColumns
from geoflux.engine.source import EventSource, Slice
from geoflux.errors import GeofluxError
from geoflux.run_inputs import noted_inputs
from geoflux.serve.view_run import OperatorPlace
from geoflux.spatial.space import Space
from geoflux.state.keys import RUN

WIDE = 256
"""Cells of the raster from west to east."""
MOST_ROWS = 40_000
_BYTES_A_ROW = 120

Floats = npt.NDArray[np.float64]


def heat_view(operator: OperatorPlace, epoch: int) -> dict[str, Any]:
    """Counts of a sample of an epoch's events: ``cell`` (row by row from the south-west) and
    ``count``; ``of`` says what they are of: ``events``, or ``partitions`` (no cells then)."""
    config = operator.config
    manifest = operator.log.manifest(epoch)
    empty = {"epoch": epoch, "of": "partitions", "cell": [], "count": [], "sampled": 0}
    if config is None:
        return empty
    try:
        x, y = _sample(operator, config, manifest["slices"])
    except (GeofluxError, OSError, KeyError):
        return empty  # the rows are not there to be read any more
    return {"epoch": epoch, "of": "events", **raster(Space.of(config.space), x, y)}


def raster(space: Space, x: Floats, y: Floats) -> dict[str, Any]:
    """Counts of points in a raster over the space; points outside are left out.

    >>> square = Space("planar", 0.0, 0.0, 1.0, 1.0)
    >>> found = raster(square, np.array([0.0, 1.0, 1.0, 7.0]), np.array([0.0, 1.0, 1.0, 0.0]))
    >>> found["cell"], found["count"], found["columns"], found["rows"]
    ([0, 65535], [1, 2], 256, 256)
    """
    rows = int(np.clip(round(WIDE * space.height / space.width), 16, WIDE))
    inside = space.inside(x, y)
    column = ((x[inside] - space.west) / space.width * WIDE).astype(np.int64)
    row = ((y[inside] - space.south) / space.height * rows).astype(np.int64)
    cell = np.minimum(row, rows - 1) * WIDE + np.minimum(column, WIDE - 1)
    cells, counts = np.unique(cell, return_counts=True)
    return {
        "columns": WIDE, "rows": rows, "cell": cells.tolist(), "count": counts.tolist(),
        "sampled": int(inside.sum()),
    }  # fmt: skip


def _sample(operator: OperatorPlace, config: Config, pieces: Any) -> tuple[Floats, Floats]:
    """Coordinates of the first rows of each slice, all slices with about as many."""
    store = operator.log.store
    events = noted_inputs(config, store, store.read_json(RUN)).events
    if events is None:
        raise KeyError("a DataFrame cannot be read twice")
    names = EventColumns.of(config.source, config.space)
    found = [
        read
        for stream, start, stop in pieces
        for read in _read(events, Slice(stream, start, stop), names, MOST_ROWS // len(pieces))
    ]
    columns = np.concatenate(found, axis=1) if found else np.zeros((2, 0))
    return columns[0], columns[1]


def _read(events: EventSource, piece: Slice, names: EventColumns, most: int) -> list[Floats]:
    # Positions are rows, or bytes of text: whichever they are, this is enough and not too much.
    end = min(piece.stop, piece.start + max(most, 1) * _BYTES_A_ROW)
    some, got = [], 0
    for batch in events.read(Slice(piece.stream, piece.start, end), frozenset({names.x, names.y})):
        table = batch.table.slice(0, most - got).select([names.x, names.y]).to_pandas()
        some.append(table.to_numpy(np.float64).T)
        got += len(table)
        if got >= most:
            break
    return some
