"""Geohashes as integers: the cell of a place, its prefixes, its bounds, its text.

A code of ``bits`` bits is an integer whose first bit halves the longitudes, the second the
latitudes, and so on in turn. So the cell that contains a cell is its prefix, ``code >> k``, and
all cells within a prefix are one range of codes. A cell contains its western and southern edge;
those at 180 and 90 degrees contain their other edge too. What lies outside is put into the
nearest cell.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.spatial.space import FloatArray

Codes = npt.NDArray[np.int64]

MAX_BITS = 60
"""More would not fit into an integer beside its sign, and 60 bits are a few centimetres."""

LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"


def codes(lon: FloatArray, lat: FloatArray, bits: int) -> Codes:
    """The cell of every place; equal to halving bit by bit, whatever the rounding.

    >>> to_text(codes(np.array([-5.603]), np.array([42.605]), 25)[0], 25)
    'ezs42'
    """
    _check_bits(bits)
    return _codes(
        np.ascontiguousarray(lon, np.float64), np.ascontiguousarray(lat, np.float64), bits
    )


def prefix(code: Any, bits: int, shorter: int) -> Any:
    """The first ``shorter`` bits of codes of ``bits`` bits; of one code or of an array."""
    _check_bits(bits)
    if not 0 <= shorter <= bits:
        raise ValueError(f"a prefix of {bits} bits has 0 to {bits} bits, not {shorter}")
    return code >> (bits - shorter)


def cells(code: Codes, bits: int) -> tuple[Codes, Codes]:
    """Column (west to east) and row (south to north) of every cell."""
    _check_bits(bits)
    return _cells(np.atleast_1d(np.asarray(code, np.int64)), bits)


def bounds(code: Codes, bits: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """West, south, east and north of every cell, exactly.

    >>> [float(side[0]) for side in bounds(np.array([0b01]), 2)]
    [-180.0, 0.0, 0.0, 90.0]
    """
    column, row = cells(code, bits)
    width, height = 360.0 / (1 << (bits + 1) // 2), 180.0 / (1 << bits // 2)
    west = column * np.float64(width) - 180.0
    south = row * np.float64(height) - 90.0
    return west, south, west + width, south + height


def to_text(code: int, bits: int) -> str:
    """A code as base-32 letters of 5 bits each.

    >>> to_text(0b01101, 5)
    'e'
    """
    _check_bits(bits)
    if bits % 5:
        raise ValueError(f"a letter has 5 bits, so {bits} bits are no text; use a multiple of 5")
    if not 0 <= int(code) < 1 << bits:
        raise ValueError(f"{code} is no code of {bits} bits")
    return "".join(LETTERS[(int(code) >> shift) & 31] for shift in range(bits - 5, -1, -5))


def from_text(text: str) -> tuple[int, int]:
    """Code and bits of a text, in whichever case.

    >>> from_text("ezs42")
    (14672002, 25)
    """
    if 5 * len(text) > MAX_BITS:
        raise ValueError(f"{text!r} has {len(text)} letters; a geohash has at most {MAX_BITS // 5}")
    code = 0
    for letter in text.lower():
        place = LETTERS.find(letter)
        if place < 0:
            raise ValueError(f"{text!r} is no geohash: {letter!r} is none of {LETTERS}")
        code = code << 5 | place
    return code, 5 * len(text)


def neighbours(code: int, bits: int) -> list[int]:
    """The cells around a cell, in ascending order: round the date line, but not over a pole."""
    (column,), (row,) = cells(np.array([code]), bits)
    columns, rows = 1 << (bits + 1) // 2, 1 << bits // 2
    around = {
        int(_interleaved((column + dx) % columns, row + dy, bits))
        for dx in (-1, 0, 1)
        for dy in (-1, 0, 1)
        if 0 <= row + dy < rows
    }
    return sorted(around - {int(code)})


def cover(west: float, south: float, east: float, north: float, bits: int) -> tuple[Codes, Codes]:
    """The fewest prefixes whose cells are exactly the cells of ``bits`` bits that touch a box.

    The box is closed; ``west > east`` goes over the date line. Returns codes and their bits,
    ascending and without overlap: every place in the box lies in one of them.

    >>> [part.tolist() for part in cover(1.0, 1.0, 80.0, 80.0, 4)]
    [[6], [3]]
    >>> [part.tolist() for part in cover(-180.0, 1.0, 180.0, 80.0, 4)]
    [[1, 3], [2, 2]]
    """
    _check_bits(bits)
    if not (south <= north):
        raise ValueError(f"a box reaches from south to north, not from {south} to {north}")
    if north < -90.0 or south > 90.0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    columns, rows = (bits + 1) // 2, bits // 2
    edges = _places(np.array([west, east], np.float64), -180.0, 360.0, columns)
    low, high = _places(np.array([south, north], np.float64), -90.0, 180.0, rows)
    spans = [(edges[0], edges[1])]
    if west > east:
        spans = [(edges[0], (1 << columns) - 1), (0, edges[1])]
        if edges[0] <= edges[1] + 1:  # they meet: every longitude
            spans = [(0, (1 << columns) - 1)]
    elif east < -180.0 or west > 180.0:
        spans = []
    parts = [_cover(int(first), int(last), int(low), int(high), bits) for first, last in spans]
    found = np.concatenate([part[0] for part in parts] or [np.empty(0, np.int64)])
    length = np.concatenate([part[1] for part in parts] or [np.empty(0, np.int64)])
    order = np.argsort(found << (bits - length), kind="stable")
    return found[order], length[order]


def ranges(code: Codes, length: Codes, bits: int) -> tuple[Codes, Codes]:
    """Prefixes in ascending order as ranges of codes of ``bits`` bits, both ends included; what
    lies side by side is one range.

    >>> [side.tolist() for side in ranges(np.array([0, 1, 5]), np.array([2, 2, 3]), 4)]
    [[0, 10], [7, 11]]
    """
    first = code << (bits - length)
    last = first + (np.int64(1) << (bits - length)) - 1
    begins = np.ones(code.size, np.bool_)
    begins[1:] = first[1:] != last[:-1] + 1
    ends = np.ones(code.size, np.bool_)
    ends[:-1] = begins[1:]
    return first[begins], last[ends]


def _check_bits(bits: int) -> None:
    if not 0 <= bits <= MAX_BITS:
        raise ValueError(f"a geohash has 0 to {MAX_BITS} bits here, not {bits}")


@numba.njit(cache=True, inline="always")
def _place(value: float, low: float, width: float, bits: int) -> Any:
    """Which of ``2**bits`` equal parts a value lies in.

    The product may round over an edge; edges themselves are exact, so a look at them mends it.
    """
    count = np.int64(1) << bits
    scaled = (value - low) / width * count
    if not scaled > 0.0:
        return np.int64(0)
    if scaled >= count:
        place = count - 1
    else:
        place = np.int64(scaled)
    if value < place * width / count + low:
        return place - 1
    if place + 1 < count and value >= (place + 1) * width / count + low:
        return place + 1
    return place


@numba.njit(cache=True, inline="always")
def _spread(value: Any) -> Any:
    """The low 30 bits, with a zero before each."""
    v = value & 0x3FFFFFFF
    v = (v | (v << 16)) & 0x0000FFFF0000FFFF
    v = (v | (v << 8)) & 0x00FF00FF00FF00FF
    v = (v | (v << 4)) & 0x0F0F0F0F0F0F0F0F
    v = (v | (v << 2)) & 0x3333333333333333
    return (v | (v << 1)) & 0x5555555555555555


@numba.njit(cache=True, inline="always")
def _gathered(value: Any) -> Any:
    """Every second bit, the lowest first: the opposite of ``_spread``."""
    v = value & 0x5555555555555555
    v = (v | (v >> 1)) & 0x3333333333333333
    v = (v | (v >> 2)) & 0x0F0F0F0F0F0F0F0F
    v = (v | (v >> 4)) & 0x00FF00FF00FF00FF
    v = (v | (v >> 8)) & 0x0000FFFF0000FFFF
    return (v | (v >> 16)) & 0x00000000FFFFFFFF


@numba.njit(cache=True)
def _interleaved(column: Any, row: Any, bits: int) -> Any:
    if bits % 2:  # the last bit is one of the longitude
        return _spread(column) | (_spread(row) << 1)
    return (_spread(column) << 1) | _spread(row)


@numba.njit(cache=True)
def _places(values: Any, low: float, width: float, bits: int) -> Any:
    out = np.empty(values.size, np.int64)
    for i in range(values.size):
        out[i] = _place(values[i], low, width, bits)
    return out


@numba.njit(cache=True)
def _codes(lon: Any, lat: Any, bits: int) -> Any:
    out = np.empty(lon.size, np.int64)
    for i in range(lon.size):
        column = _place(lon[i], -180.0, 360.0, (bits + 1) // 2)
        row = _place(lat[i], -90.0, 180.0, bits // 2)
        out[i] = _interleaved(column, row, bits)
    return out


@numba.njit(cache=True)
def _cells(code: Any, bits: int) -> Any:
    columns, rows = np.empty(code.size, np.int64), np.empty(code.size, np.int64)
    for i in range(code.size):
        even, odd = _gathered(code[i]), _gathered(code[i] >> 1)
        columns[i], rows[i] = (even, odd) if bits % 2 else (odd, even)
    return columns, rows


@numba.njit(cache=True)
def _cover(first: int, last: int, low: int, high: int, bits: int) -> Any:
    """Halve cells until they lie within the box's columns and rows, or outside."""
    found, length = [np.int64(0) for _ in range(0)], [np.int64(0) for _ in range(0)]
    stack: Any = [(np.int64(0), 0)]
    while stack:
        code, size = stack.pop()
        even, odd = _gathered(code), _gathered(code >> 1)
        column, row = (even, odd) if size % 2 else (odd, even)
        wide, tall = (bits + 1) // 2 - (size + 1) // 2, bits // 2 - size // 2
        c0, c1 = column << wide, ((column + 1) << wide) - 1
        r0, r1 = row << tall, ((row + 1) << tall) - 1
        if c1 < first or c0 > last or r1 < low or r0 > high:
            continue
        if c0 >= first and c1 <= last and r0 >= low and r1 <= high:
            found.append(code)
            length.append(np.int64(size))
            continue
        stack.append((code << 1 | 1, size + 1))  # taken off second: codes come out ascending
        stack.append((code << 1, size + 1))
    return np.array(found), np.array(length)
