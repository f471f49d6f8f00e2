"""The inner loops of the set structures, compiled: the very bits that the libraries would set.

Registers are those of a DataSketches HLL sketch (HLL_8), tables those of its count-min sketch (seed
9001), bits those of an rbloom filter whose hash of an item is the item. The libraries take one item
per call from Python; these loops take whole batches, and the libraries read the result.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from geoflux.sketch.hashing import (
    combination_item,
    high_product,
    murmur,
    remainder,
    value_item,
)

SEED = 9001
"""The seed of DataSketches."""
_ADDRESS_BITS = 26
_LCG_HIGH = 47026247687942121848144207491837418733 >> 64
_LCG_LOW = 47026247687942121848144207491837418733 & (2**64 - 1)


@numba.njit(cache=True)
def coupon_of(item: Any) -> Any:
    """What an HLL keeps of an item: where it goes, and how many zeros its hash begins with."""
    first, second = murmur(item, np.uint64(SEED))
    zeros = 0
    while zeros < 62 and not (second >> np.uint64(63 - zeros)) & np.uint64(1):
        zeros += 1
    place = first & np.uint64((1 << _ADDRESS_BITS) - 1)
    return np.uint32((np.uint64(zeros + 1) << np.uint64(_ADDRESS_BITS)) | place)


@numba.njit(cache=True)
def coupons_of(words: Any) -> Any:
    """The coupon of each row's combination."""
    out = np.empty(words.shape[0], np.uint32)
    for i in range(words.shape[0]):
        out[i] = coupon_of(combination_item(words[i]))
    return out


@numba.njit(cache=True)
def register(registers: Any, coupons: Any) -> None:
    """Put coupons into the registers of an HLL."""
    mask = registers.size - 1
    for coupon in coupons:
        place = coupon & mask
        value = np.uint8(coupon >> _ADDRESS_BITS)
        if value > registers[place]:
            registers[place] = value


@numba.njit(cache=True)
def _columns(item: Any, seeds: Any, width: Any, reciprocal: Any, out: Any) -> None:
    for row in range(seeds.size):
        out[row] = remainder(murmur(item, seeds[row])[0], width, reciprocal)


@numba.njit(cache=True)
def _places(item: Any, bits: Any, reciprocal: Any, out: Any) -> None:
    """Bits of a Bloom filter: a 128-bit generator begun with the item, and its bits 32 to 95."""
    high, low = np.uint64(0), item
    for i in range(out.size):
        high = (
            high * np.uint64(_LCG_LOW)
            + low * np.uint64(_LCG_HIGH)
            + high_product(low, np.uint64(_LCG_LOW))
        )
        low = low * np.uint64(_LCG_LOW) + np.uint64(1)
        if low == np.uint64(0):
            high += np.uint64(1)
        middle = (high << np.uint64(32)) | (low >> np.uint64(32))
        out[i] = remainder(middle, bits, reciprocal)


@numba.njit(cache=True)
def add_rows(words: Any, missing: Any, seeds: Any, table: Any, bloom: Any, sizes: Any) -> int:
    """Count each row's combination and its values; returns how many items these were."""
    width, width_part, bits, bits_part = sizes[0], sizes[1], sizes[2], sizes[3]
    columns = np.empty(seeds.size, np.uint64)
    places = np.empty(np.int64(sizes[4]), np.uint64)
    items = 0
    for i in range(words.shape[0]):
        for f in range(-1, words.shape[1]):
            if f < 0:
                item = combination_item(words[i])
            elif np.uint64(words[i, f]) == missing:
                continue
            else:
                item = value_item(f, words[i, f])
            items += 1
            _columns(item, seeds, width, width_part, columns)
            for row in range(columns.size):
                table[row, np.int64(columns[row])] += 1
            _places(item, bits, bits_part, places)
            for k in range(places.size):
                place = np.int64(places[k])
                bloom[place >> 3] |= np.uint8(1 << (place & 7))
    return items


@numba.njit(cache=True)
def lookup(item: Any, seeds: Any, sizes: Any) -> Any:
    """The columns of an item in a count-min table, and its bits in a Bloom filter."""
    columns = np.empty(seeds.size, np.uint64)
    places = np.empty(np.int64(sizes[4]), np.uint64)
    _columns(item, seeds, sizes[0], sizes[1], columns)
    _places(item, sizes[2], sizes[3], places)
    return columns.astype(np.int64), places.astype(np.int64)


@numba.njit(cache=True)
def least_count(table: Any, columns: Any) -> Any:
    least = table[0, columns[0]]
    for row in range(1, columns.size):
        least = min(least, table[row, columns[row]])
    return least


@numba.njit(cache=True)
def all_set(bloom: Any, places: Any) -> bool:
    missed = 0
    for place in places:
        missed += not bloom[place >> 3] & np.uint8(1 << (place & 7))
    return missed == 0


@numba.njit(cache=True)
def count_words(words: Any, wanted: Any, feature: int) -> int:
    """How often a combination (feature -1) or a feature's value is among the rows."""
    found = 0
    for i in range(words.shape[0]):
        if feature >= 0:
            found += words[i, feature] == wanted[feature]
        else:
            alike = True
            for f in range(words.shape[1]):
                if words[i, f] != wanted[f]:
                    alike = False
                    break
            found += alike
    return found
