"""Features of frames that are like a logo's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.errors import ConfigError
from logos.extractor import DESCRIPTOR, Bytes
from logos.frames import FRAME, ROW, Forgetful
from logos.library import Library, library_of


@dataclass(frozen=True)
class Matcher(Forgetful):
    """Features of frames against those of a ``library`` of logos (a folder with a picture of each):
    pairs that are alike.

    A pair is a feature of the frame and the nearest one of the library, if they are closer than
    ``distance`` (L2) and than ``ratio`` times the nearest one of any other logo. One row per frame
    and logo with at least ``least`` pairs: x and y in the frame, x and y in the logo (float32).
    """

    library: str
    distance: float = 250.0
    ratio: float = 0.85
    least: int = 5
    key = "id"
    columns = ("camera", "time", "points", "descriptors")
    output = pa.schema([*FRAME, ("logo", pa.string()), ("pairs", pa.binary()), ROW])

    def __post_init__(self) -> None:
        # Workers, and whoever verifies later, may be somewhere else.
        object.__setattr__(self, "library", str(Path(self.library).resolve()))
        if not any(Path(self.library).glob("*.png")):
            raise ConfigError(
                f"library = {self.library!r}: there are no pictures (*.png) in this folder; "
                "give one with a picture of every logo, named as the logo"
            )

    def process(self, state: None, rows: pa.Table) -> tuple[None, pa.Table]:
        """Compare the features of all frames at once, some thousand at a time."""
        known = library_of(self.library)
        vectors, row = _flat(rows.column("descriptors"), np.uint8, DESCRIPTOR)
        points, _ = _flat(rows.column("points"), np.float32, 2)
        step = 2048
        parts = [self._alike(known, vectors[at : at + step]) for at in range(0, len(vectors), step)]
        nearest, logo = (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else (
            np.empty(0, np.int64), np.empty(0, np.int64)
        )  # fmt: skip
        paired = np.flatnonzero(nearest >= 0)
        group = row[paired] * len(known.names) + logo[paired]
        order = np.argsort(group, kind="stable")
        paired, (groups, firsts, counts) = paired[order], _runs(group[order])
        pairs = np.hstack([points[paired], known.places[nearest[paired]]])
        kept = counts >= self.least
        frames, logos = np.divmod(groups[kept], len(known.names))
        blobs = [
            pairs[first : first + count].tobytes()
            for first, count in zip(firsts[kept], counts[kept], strict=True)
        ]
        chosen = rows.select([name for name, _ in FRAME]).take(pa.array(frames))
        columns = [*chosen.columns, pa.array([known.names[i] for i in logos], pa.string())]
        columns += [pa.array(blobs, pa.binary()), pa.array(frames)]
        return None, pa.table(columns, schema=self.output)

    def _alike(self, known: Library, vectors: Bytes) -> tuple[Any, Any]:
        """For each descriptor the nearest one of the library (-1: none), and its logo."""
        given = vectors.astype(np.float32)
        squares = known.norms - 2 * (given @ known.vectors.T) + (given**2).sum(axis=1)[:, None]
        best = np.minimum.reduceat(squares, known.starts[:-1], axis=1)
        logo = best.argmin(axis=1)
        nearest = squares.argmin(axis=1)
        at = np.arange(len(given))
        closest = best[at, logo]
        best[at, logo] = np.inf
        good = (closest < self.distance**2) & (closest < self.ratio**2 * best.min(axis=1))
        return np.where(good, nearest, -1), logo


def _flat(column: Any, kind: Any, width: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The vectors in a column of bytes, without copying, and the row that each is of."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    plain = array.cast(pa.large_binary())
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    each = np.dtype(kind).itemsize * width
    values = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].view(kind)
    rows = np.repeat(np.arange(len(plain)), np.diff(ends) // each)
    return values.reshape(-1, width), rows


def _runs(values: npt.NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """Of sorted values: each once, where it begins, how often it is there."""
    firsts = np.flatnonzero(np.diff(values, prepend=-1))
    return values[firsts], firsts, np.diff(firsts, append=len(values))
