"""A divisible operator over places, and what must come of it, without geoflux code: per region how
many rows there were, the sum of their values, and a trail that tells their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.engine.source import RawBatch, Slice
from geoflux.operators.keyed import ID, Divisible

CODE_BITS = 6
PRIME = 1_000_003
Region = tuple[int, float, int, int]
"""Rows, sum, trail, and in how many batches they came."""
Place = tuple[float, float, float]
"""Longitude, latitude, value."""


def code_of(lon: float, lat: float) -> int:
    """Three bits of each, the longitude's first."""
    x, y = int((lon + 180) / 45), int((lat + 90) / 22.5)
    return sum(
        ((x >> (2 - i)) & 1) << (5 - 2 * i) | ((y >> (2 - i)) & 1) << (4 - 2 * i) for i in range(3)
    )


@dataclass(frozen=True)
class Regions(Divisible[dict[int, Region]]):
    """Tells of each row what its region has come to; its state is changed in place."""

    code_bits: int = CODE_BITS
    columns: tuple[str, ...] = ("lon", "lat", "value")
    told: bool = True
    """Whether it tells the bytes of parts of a state."""

    refusals = {"outside": "the place lies outside of the world"}  # noqa: RUF012
    output = pa.schema(
        [("id", pa.string()), ("code", pa.int64()), ("count", pa.int64()), ("trail", pa.int64())]
    )

    def judged(self, rows: pa.Table) -> npt.NDArray[np.uint8]:
        lon, lat = rows.column("lon").to_numpy(), rows.column("lat").to_numpy()
        return (~((lon >= -180) & (lon < 180) & (lat >= -90) & (lat < 90))).astype(np.uint8)

    def place(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        x = ((rows.column("lon").to_numpy() + 180) / 45).astype(np.int64)
        y = ((rows.column("lat").to_numpy() + 90) / 22.5).astype(np.int64)
        code = np.zeros(len(rows), np.int64)
        for bit in (2, 1, 0):
            code = code << 2 | ((x >> bit) & 1) << 1 | (y >> bit) & 1
        return code

    def empty(self) -> dict[int, Region]:
        return {}

    def process(
        self, state: dict[int, Region], rows: pa.Table
    ) -> tuple[dict[int, Region], pa.Table]:  # fmt: skip
        found = []
        codes = self.place(rows).tolist()
        for code in set(codes):
            count, total, trail, batches = state.get(code, (0, 0.0, 1, 0))
            state[code] = count, total, trail, batches + 1
        for code, row in zip(codes, rows.to_pylist(), strict=True):
            count, total, trail, batches = state[code]
            trail = trailed(trail, row[ID])
            state[code] = count + 1, total + row["value"], trail, batches
            found.append((row[ID], code, count + 1, trail))
        columns = zip(*found, strict=True)
        return state, pa.table([pa.array(c) for c in columns], schema=self.output)

    def extract(self, state: dict[int, Region]) -> dict[str, Any]:
        columns = list(zip(*state.values(), strict=True)) or [(), (), (), ()]
        kinds = (np.int64, np.float64, np.int64, np.int64)
        names = ("count", "total", "trail", "batches")
        arrays = {
            name: np.array(column, kind)
            for name, column, kind in zip(names, columns, kinds, strict=True)
        }
        return {"code": np.array(list(state), np.int64), **arrays}

    def install(self, arrays: Mapping[str, Any]) -> dict[int, Region]:
        names = ("code", "count", "total", "trail", "batches")
        rows = zip(*(arrays[name].to_pylist() for name in names), strict=True)
        return {code: (count, total, trail, batches) for code, count, total, trail, batches in rows}

    def size(self, state: dict[int, Region]) -> int:
        return 40 * len(state)

    def cut(self, state: dict[int, Region], code: int, bits: int) -> dict[int, Region]:
        shift = self.code_bits - bits
        return {c: region for c, region in state.items() if c >> shift == code}

    def joined(self, states: Sequence[dict[int, Region]]) -> dict[int, Region]:
        whole: dict[int, Region] = {}
        for state in states:
            assert not whole.keys() & state.keys(), "nothing in common"
            whole |= state
        return whole

    def measured(
        self, state: dict[int, Region], bits: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        if not self.told:
            return None
        codes = np.array(list(state), np.int64) >> (self.code_bits - bits)
        found, counts = np.unique(codes, return_counts=True)
        return found, 40 * counts


def trailed(trail: int, row: str) -> int:
    """The trail with one more row at its end."""
    return (trail * 31 + int(row) + 1) % PRIME


def expected(rows: Sequence[Place]) -> dict[str, tuple[int, int, int]]:
    """By position what is told of each row that lies in the world."""
    counts: dict[int, int] = {}
    trails: dict[int, int] = {}
    told = {}
    for position, (lon, lat, _) in enumerate(rows):
        if -180 <= lon < 180 and -90 <= lat < 90:
            code = code_of(lon, lat)
            counts[code] = counts.get(code, 0) + 1
            trails[code] = trailed(trails.get(code, 1), str(position))
            told[str(position)] = code, counts[code], trails[code]
    return told


def sums(rows: Sequence[Place]) -> dict[int, tuple[int, float]]:
    """By region how many rows there are, and their sum."""
    found: dict[int, tuple[int, float]] = {}
    for lon, lat, value in rows:
        if -180 <= lon < 180 and -90 <= lat < 90:
            count, total = found.get(code_of(lon, lat), (0, 0.0))
            found[code_of(lon, lat)] = count + 1, total + value
    return found


class Places:
    """A source of given rows."""

    def __init__(self, rows: Sequence[Place]) -> None:
        lon, lat, value = zip(*rows, strict=True) if rows else ((), (), ())
        self._table = pa.table(
            {"lon": pa.array(lon, pa.float64()), "lat": pa.array(lat, pa.float64()),
             "value": pa.array(value, pa.float64())}
        )  # fmt: skip

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        edges = np.linspace(start, stop, parts + 1).astype(int)
        return [Slice(0, int(a), int(b)) for a, b in pairwise(edges) if a < b]

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        for first in range(piece.start, piece.stop, 7):
            last = min(first + 7, piece.stop)
            yield RawBatch(self._table.slice(first, last - first), np.arange(first, last))
