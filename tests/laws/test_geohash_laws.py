"""Laws of geohashes: halving bit by bit gives the same, and prefixes contain what they should."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoflux.spatial import geohash

lons = st.floats(-180.0, 180.0)
lats = st.floats(-90.0, 90.0)
sizes = st.integers(0, geohash.MAX_BITS)


def by_hand(lon: float, lat: float, bits: int) -> int:
    """Halve, bit by bit."""
    code, ranges, place = 0, [[-180.0, 180.0], [-90.0, 90.0]], (lon, lat)
    for bit in range(bits):
        low, high = ranges[bit % 2]
        middle = (low + high) / 2
        above = place[bit % 2] >= middle
        ranges[bit % 2][0 if above else 1] = middle
        code = code << 1 | above
    return code


def near_edges(axis: st.SearchStrategy[float], span: float) -> st.SearchStrategy[float]:
    """Edges of cells, and the numbers just beside them, where rounding shows."""
    edge = st.builds(
        lambda bits, share: round(share * 2**bits) * span / 2**bits - span / 2,
        st.integers(0, 30), st.floats(0, 1),
    )  # fmt: skip
    beside = st.builds(np.nextafter, edge, st.sampled_from([-np.inf, np.inf]))
    return axis | edge | beside.map(float).filter(lambda v: abs(v) <= span / 2)


@given(near_edges(lons, 360.0), near_edges(lats, 180.0), sizes)
def test_equals_halving_bit_by_bit(lon: float, lat: float, bits: int) -> None:
    assert geohash.codes(np.array([lon]), np.array([lat]), bits)[0] == by_hand(lon, lat, bits)


@given(near_edges(lons, 360.0), near_edges(lats, 180.0), sizes)
def test_bounds_contain_the_place(lon: float, lat: float, bits: int) -> None:
    code = geohash.codes(np.array([lon]), np.array([lat]), bits)
    (west,), (south,), (east,), (north,) = geohash.bounds(code, bits)
    assert west <= lon < east or (lon == east == 180.0)
    assert south <= lat < north or (lat == north == 90.0)


@given(lons, lats, sizes, st.data())
def test_prefix_is_the_cell_around(lon: float, lat: float, bits: int, data: st.DataObject) -> None:
    shorter = data.draw(st.integers(0, bits))
    place = np.array([lon]), np.array([lat])
    found = geohash.prefix(geohash.codes(*place, bits), bits, shorter)
    assert found[0] == geohash.codes(*place, shorter)[0]


@given(
    st.integers(0, 12).flatmap(
        lambda n: st.tuples(st.just(5 * n), st.integers(0, 2 ** (5 * n) - 1))
    )
)
def test_text_both_ways(given_code: tuple[int, int]) -> None:
    bits, code = given_code
    text = geohash.to_text(code, bits)
    assert geohash.from_text(text) == (code, bits)
    assert geohash.from_text(text.upper()) == (code, bits)


@given(lons, lons, lats, lats, st.integers(0, 11))
def test_cover_is_exactly_the_cells_that_touch(
    west: float, east: float, lat1: float, lat2: float, bits: int
) -> None:
    """``west > east`` goes over the date line."""
    south, north = sorted((lat1, lat2))
    code, length = geohash.cover(west, south, east, north, bits)
    first, last = geohash.ranges(code, length, bits)
    covered = [c for a, b in zip(first, last, strict=True) for c in range(a, b + 1)]
    assert len(set(covered)) == len(covered) == int((2 ** (bits - length)).sum())
    w, s, e, n = geohash.bounds(np.arange(2**bits), bits)
    # A cell has its western edge, not its eastern one, unless the world ends there.
    beside = [(west, east)] if west <= east else [(west, 180.0), (-180.0, east)]
    touch = np.zeros(2**bits, np.bool_)
    for a, b in beside:
        touch |= (w <= b) & ((e > a) | (e == 180.0) & (a == 180.0))
    touch &= (s <= north) & ((n > south) | (n == 90.0) & (south == 90.0))
    assert covered == np.flatnonzero(touch).tolist()
    siblings = {(c >> 1, k) for c, k in zip(code.tolist(), length.tolist(), strict=True)}
    assert len(siblings) == code.size, "two halves of a cell would be one prefix"


def test_neighbours() -> None:
    assert (
        geohash.to_text(geohash.neighbours(geohash.from_text("ezs42")[0], 25)[0], 25)[:4] == "ezef"
    )
    corner = geohash.codes(np.array([-180.0]), np.array([-90.0]), 10)[0]
    around = geohash.neighbours(int(corner), 10)
    assert len(around) == 5, "none beyond the pole, but those beyond the date line"
    for code in (0, 77, 1023):
        assert all(code in geohash.neighbours(other, 10) for other in geohash.neighbours(code, 10))


@pytest.mark.parametrize("bits", [-1, 61])
def test_bits_out_of_range(bits: int) -> None:
    with pytest.raises(ValueError, match="0 to 60 bits"):
        geohash.codes(np.zeros(1), np.zeros(1), bits)


def test_mistakes_in_text() -> None:
    with pytest.raises(ValueError, match="'a' is none of"):
        geohash.from_text("9qa")
    with pytest.raises(ValueError, match="multiple of 5"):
        geohash.to_text(1, 7)
    with pytest.raises(ValueError, match="no code of 5 bits"):
        geohash.to_text(32, 5)


def test_outside_is_the_nearest_cell() -> None:
    out = geohash.codes(np.array([-999.0, 999.0]), np.array([-999.0, 999.0]), 20)
    assert out.tolist() == [0, 2**20 - 1]
