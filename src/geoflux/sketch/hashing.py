"""Values and their combinations as 64-bit items, the same on every machine and for ever.

Values are rounded to some significant digits first, so that what is printed alike is found alike;
-0.0 is 0.0, and a missing value has a mark of its own. Up to six digits fit a single-precision
number, the word of a value; more take a double. Items are what the set structures count.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.extending import intrinsic

Words = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]

SINGLE_DIGITS = 6
"""So many significant digits survive in a single-precision number."""
_FIRST_POWER = -330
_POWERS = np.array([float(f"1e{power}") for power in range(_FIRST_POWER, 309)])
_TENS = np.array([math.floor((e - 1023) * math.log10(2.0)) for e in range(2048)])
"""The power of ten below 2**(e - 1023), by e; a number of that exponent may have one more."""
_COMBINATION = 0x9E3779B97F4A7C15
_FEATURE = 0xC2B2AE3D27D4EB4F


def _high_product(typing: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the product of two unsigned 64-bit numbers, as one instruction."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = args[0].type.__class__(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), args[0].type)

    return types.uint64(types.uint64, types.uint64), generate


high_product: Any = intrinsic(_high_product)


@numba.njit(cache=True)
def remainder(value: Any, divisor: Any, reciprocal: Any) -> Any:
    """``value % divisor``, with ``reciprocal = 2**64 // divisor``: no slow division."""
    left = value - high_product(value, reciprocal) * divisor
    return left - divisor if left >= divisor else left


@numba.njit(cache=True)
def _spread(value: Any) -> Any:
    """The finaliser of MurmurHash3: every bit of the input changes half of the output's."""
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ (value >> np.uint64(33))


@numba.njit(cache=True)
def murmur(item: Any, seed: Any) -> Any:
    """MurmurHash3 (x64, 128 bits) of an item's eight bytes: both halves."""
    word = item * np.uint64(0x87C37B91114253D5)
    word = (word << np.uint64(31)) | (word >> np.uint64(33))
    first = (seed ^ (word * np.uint64(0x4CF5AD432745937F))) ^ np.uint64(8)
    second = seed ^ np.uint64(8)
    first = first + second
    second = second + first
    first = _spread(first)
    second = _spread(second)
    first = first + second
    return first, second + first


@numba.njit(cache=True)
def rounded(value: float, exponent: int, digits: int) -> float:
    """A value to some significant digits, with its binary exponent; NaN and infinities stay."""
    if exponent == 0 or exponent == 2047:  # 0, too small to be rounded, or not finite
        return value
    size = abs(value)
    ten = _TENS[exponent]
    if size >= _POWERS[ten + 1 - _FIRST_POWER]:
        ten += 1
    after = digits - 1 - ten
    if after > 308:
        return value
    if after >= 0:
        power = _POWERS[after - _FIRST_POWER]
        size = np.rint(size * power) / power
    else:
        power = _POWERS[-after - _FIRST_POWER]
        size = np.rint(size / power) * power
    return math.copysign(size, value)


def words_of(values: npt.NDArray[np.float64], digits: int) -> Words:
    """The words of values [n, F]: equal exactly where the rounded values are, or are missing.

    >>> words = words_of(np.array([[287.12301, 0.0], [287.12304, -0.0]]), 6)
    >>> bool((words[0] == words[1]).all())
    True
    """
    rows = np.ascontiguousarray(values, np.float64)
    if digits <= SINGLE_DIGITS:
        single = np.empty(rows.shape, np.float32)
        _round_into(rows, rows.view(np.uint64), digits, single)
        return single.view(np.uint32)
    double = np.empty(rows.shape)
    _round_into(rows, rows.view(np.uint64), digits, double)
    return double.view(np.uint64)


def missing_word(digits: int) -> np.uint64:
    """The word of a value that is not there."""
    return np.uint64(words_of(np.array([[np.nan]]), digits)[0, 0])


@numba.njit(cache=True)
def _round_into(values: Any, bits: Any, digits: int, out: Any) -> None:
    for i in range(values.shape[0]):
        for f in range(values.shape[1]):
            value = values[i, f]
            if value != value:
                out[i, f] = np.nan  # one NaN of the many
            else:
                exponent: Any = np.int64((bits[i, f] >> np.uint64(52)) & np.uint64(2047))
                out[i, f] = rounded(value, exponent, digits)
                if out[i, f] == 0.0:
                    out[i, f] = 0.0  # not -0.0


@numba.njit(cache=True)
def value_item(feature: Any, word: Any) -> Any:
    """The item of one feature's value."""
    return _spread(np.uint64(word) + np.uint64(feature + 1) * np.uint64(_FEATURE))


@numba.njit(cache=True)
def combination_item(words: Any) -> Any:
    """The item of a row's words: of the sum of their items, which can be found side by side."""
    state = np.uint64(0)
    for f in range(words.size):
        state += value_item(f, words[f])
    return _spread(state + np.uint64(_COMBINATION))
