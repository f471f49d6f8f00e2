"""Sums of floats that are exact, so that partial sums can be merged in any order.

A float is a 53-bit whole number times a power of two. Sums are kept as wide whole numbers in
*limbs* of 32 bits: limb ``k`` of an array with base ``b`` counts units of 2^(32 (b + k)). Adding is
integer addition, so it is associative and commutative to the last bit; rounding happens once, when
the sum is read, and then as ``math.fsum`` rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from geoflux.spatial.space import FloatArray

_LOWEST_BIT = -1088
"""Of limb 0 with base 0: a multiple of 32 below the smallest bit of a subnormal float."""
Wide = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Terms:
    """Numbers in limbs: row ``i`` is ``parts[i, j]`` units of limb ``first[i] + j``, all of them
    within ``limbs`` limbs over ``base``. Squares have units twice as fine in the exponent."""

    first: npt.NDArray[np.int32]
    parts: Wide
    base: int
    limbs: int

    @classmethod
    def of(cls, values: FloatArray) -> Terms:
        """The values; what is not finite counts as zero."""
        return cls._made(_split, values, 3)

    @classmethod
    def squares_of(cls, values: FloatArray) -> Terms:
        """The exact squares of the values."""
        return cls._made(_split_squares, values, 5)

    @classmethod
    def _made(cls, split: Any, values: FloatArray, width: int) -> Terms:
        first = np.zeros(values.size, np.int32)
        parts = np.zeros((values.size, width), np.int64)
        low, high = split(np.ascontiguousarray(values).view(np.int64), first, parts)
        if high < low:
            return cls(first, parts, 0, 0)
        np.maximum(first - np.int32(low), 0, out=first)
        return cls(first, parts, int(low), int(high - low) + width)


@numba.njit(cache=True, inline="always")
def _decoded(bits: Any) -> Any:
    """A float's digits as a whole number, 0 for what is not finite, and the place of the last."""
    exponent = (bits >> 52) & 0x7FF
    whole = bits & ((np.int64(1) << 52) - 1)
    if exponent == 0x7FF:
        whole = np.int64(0)
    elif exponent > 0:
        whole |= np.int64(1) << 52
    return whole, max(exponent, 1) - 1075 - _LOWEST_BIT


@numba.njit(cache=True)
def _split(bits: Any, first: Any, parts: Any) -> Any:
    low, high = np.int64(1 << 30), np.int64(-(1 << 30))
    mask = np.int64(0xFFFFFFFF)
    for i in range(bits.size):
        whole, position = _decoded(bits[i])
        if whole == 0:
            continue
        limb, shift = position >> 5, position & 31
        sign = np.int64(-1) if bits[i] < 0 else np.int64(1)
        carried = (whole & mask) << shift
        parts[i, 0] = sign * (carried & mask)
        carried = (carried >> 32) + ((whole >> 32) << shift)
        parts[i, 1] = sign * (carried & mask)
        parts[i, 2] = sign * (carried >> 32)
        first[i] = limb
        low, high = min(low, limb), max(high, limb)
    return low, high


@numba.njit(cache=True)
def _split_squares(bits: Any, first: Any, parts: Any) -> Any:
    low, high = np.int64(1 << 30), np.int64(-(1 << 30))
    mask = np.uint64(0xFFFFFFFF)
    for i in range(bits.size):
        whole, once = _decoded(bits[i])
        if whole == 0:
            continue
        position = 2 * once
        limb, shift = position >> 5, np.uint64(position & 31)
        a, b = np.uint64(whole >> 32), np.uint64(whole & 0xFFFFFFFF)
        bottom, middle, top = b * b, np.uint64(2) * a * b, a * a
        carry = np.uint64(0)
        rest = np.uint64(0)
        for j in range(5):
            digit = carry
            if j == 0:
                digit += bottom & mask
            elif j == 1:
                digit += (bottom >> np.uint64(32)) + (middle & mask)
            elif j == 2:
                digit += (middle >> np.uint64(32)) + (top & mask)
            elif j == 3:
                digit += top >> np.uint64(32)
            carry = digit >> np.uint64(32)
            shifted = ((digit & mask) << shift) + rest
            parts[i, j] = np.int64(shifted & mask)
            rest = shifted >> np.uint64(32)
        first[i] = limb
        low, high = min(low, limb), max(high, limb)
    return low, high


@numba.njit(cache=True)
def normalise(sums: Any) -> None:
    """Carry, so that every limb but the highest lies in 0 to 2^32 - 1; the value stays."""
    for g in range(sums.shape[0]):
        for k in range(sums.shape[1] - 1):
            carry = sums[g, k] >> 32
            sums[g, k] -= carry << 32
            sums[g, k + 1] += carry


def aligned(sums: Wide, base: int, to_base: int, to_limbs: int) -> Wide:
    """The same numbers in an array with a lower base or more limbs."""
    if base == to_base and sums.shape[1] == to_limbs:
        return sums
    wider = np.zeros((sums.shape[0], to_limbs), np.int64)
    if sums.shape[1]:
        wider[:, base - to_base : base - to_base + sums.shape[1]] = sums
    return wider


def whole(sums: Wide, row: int) -> int:
    """A sum as a whole number of units of the array's lowest bit."""
    return sum(int(limb) << (32 * k) for k, limb in enumerate(sums[row]))


def unit_exponent(base: int, squares: bool = False) -> int:
    """The power of two that a unit of limb 0 stands for."""
    return 32 * base + (2 * _LOWEST_BIT if squares else _LOWEST_BIT)


def rounded(sums: Wide, base: int) -> FloatArray:
    """The sums as floats, correctly rounded (ties to even), infinite beyond the range."""
    if sums.shape[1] == 0:
        return np.zeros(sums.shape[0])
    wide = np.concatenate((sums, np.zeros((sums.shape[0], 2), np.int64)), axis=1)
    normalise(wide)
    out = np.empty(sums.shape[0], np.float64)
    _round(wide, unit_exponent(base), out)
    return out


@numba.njit(cache=True)
def _round(sums: Any, exponent: int, out: Any) -> None:
    limbs = sums.shape[1]
    digits = np.zeros(limbs, np.int64)
    for g in range(sums.shape[0]):
        negative = sums[g, limbs - 1] < 0
        carry = np.int64(1)
        for k in range(limbs):
            digit = sums[g, k] & np.int64(0xFFFFFFFF)
            if negative:  # two's complement: not, plus one
                digit = (digit ^ np.int64(0xFFFFFFFF)) + carry
                carry = digit >> 32
                digit &= np.int64(0xFFFFFFFF)
            digits[k] = digit
        top = limbs - 1
        while top >= 0 and digits[top] == 0:
            top -= 1
        if top < 0:
            out[g] = 0.0
            continue
        # 62 bits below the highest set bit, and whether anything lies below them
        width = 0
        while digits[top] >> width:
            width += 1
        kept = digits[top]
        bits = width
        k = top - 1
        sticky = False
        while k >= 0 and bits + 32 <= 62:
            kept = (kept << 32) | digits[k]
            bits += 32
            k -= 1
        if k >= 0 and bits < 62:
            take = 62 - bits
            kept = (kept << take) | (digits[k] >> (32 - take))
            sticky = (digits[k] & ((np.int64(1) << (32 - take)) - 1)) != 0
            bits = 62
            low_bit = 32 * k + 32 - take
            k -= 1
        else:
            low_bit = 32 * (k + 1)
        while k >= 0:
            sticky = sticky or digits[k] != 0
            k -= 1
        lowest = low_bit + exponent
        drop = max(bits - 53, -1074 - lowest)  # a subnormal has fewer bits
        if drop > 0:
            if drop > 62:
                out[g] = 0.0
                continue
            half = np.int64(1) << (drop - 1)
            rest = kept & ((half << 1) - 1)
            kept >>= drop
            if rest > half or (rest == half and (sticky or kept & 1)):
                kept += 1
            lowest += drop
        value = math.ldexp(np.float64(kept), lowest)
        out[g] = -value if negative else value
