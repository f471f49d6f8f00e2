"""A number for each row of an answer, with its error and what kind of error that is.

- ``exact``: nothing was covered in part; moments to rounding.
- ``bound``: the truth lies between low and high, always; 95 of 100 are within ``error``.
- ``standard error``: ``error`` is one deviation, low and high the ends of the confidence interval.
- ``false positive probability``: ``error`` is the probability that a yes is wrong.

Calculations carry the errors on, ends by the rules for intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Kind = Literal["exact", "bound", "standard error", "false positive probability"]
KINDS: tuple[Kind, ...] = ("exact", "bound", "standard error", "false positive probability")
EXACT, BOUND, STANDARD_ERROR, FALSE_POSITIVE = range(4)


@dataclass(frozen=True, eq=False, slots=True)
class Measure:
    """Values by row (or rows of several values); NaN inside stands for "no value", which leaves
    here as a null. ``kind`` numbers KINDS; ``truth``: values are yes (1) and no (0)."""

    value: Floats
    error: Floats
    low: Floats
    high: Floats
    kind: npt.NDArray[np.int8]
    truth: bool = False

    def taken(self, rows: Any) -> Measure:
        """Some of the rows, in that order."""
        return Measure(
            self.value[rows], self.error[rows], self.low[rows], self.high[rows], self.kind[rows],
            self.truth,
        )  # fmt: skip


def exact(value: Floats) -> Measure:
    """Numbers without an error."""
    value = np.asarray(value, float)
    zero = np.where(np.isnan(value), np.nan, 0.0)
    return Measure(value, zero, value, value, np.zeros(value.shape, np.int8))


def bounded(
    value: Floats, low: Floats, high: Floats, is_exact: Any = False, likely: Any = np.inf
) -> Measure:
    """Numbers between ends that always hold; the error is the ``likely`` one, or the distance to
    the farther end. Where both ends are the number itself, or ``is_exact``, it is exact."""
    parts = [np.asarray(value), low, high, is_exact, likely]
    shape = parts[0].shape
    if len(shape) != 1 or not all(isinstance(p, np.ndarray) and p.shape == shape for p in parts):
        parts = [np.broadcast_to(part, shape).ravel() for part in parts]
    numbers, kind = _bounded(*parts)
    if len(shape) != 1:
        numbers, kind = numbers.reshape(4, *shape), kind.reshape(shape)
    return Measure(numbers[0], numbers[1], numbers[2], numbers[3], kind)


@numba.njit(cache=True)
def _bounded(value: Any, low: Any, high: Any, is_exact: Any, likely: Any) -> Any:
    """Value, error, low and high; and the kind."""
    out, kind = np.empty((4, value.size)), np.zeros(value.size, np.int8)
    for i in range(value.size):
        at = value[i]
        if np.isnan(at):
            out[:, i] = np.nan
            continue
        least, most = (at, at) if is_exact[i] else (low[i], high[i])
        at = min(max(at, least), most)
        far = max(most - at, at - least)
        out[0, i], out[1, i], out[2, i], out[3, i] = at, min(far, likely[i]), least, most
        if far != 0.0:
            kind[i] = BOUND
    return out, kind


def uncertain(value: Floats, error: Floats, low: Floats, high: Floats) -> Measure:
    """Numbers with a standard error and the ends of a confidence interval."""
    value = np.asarray(value, float)
    return Measure(value, error, low, high, np.full(value.shape, STANDARD_ERROR, np.int8))


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
}  # fmt: skip


def calculated(operator: str, a: Measure, b: Measure) -> Measure:
    """``a + b`` and so on, with the error. A division by what may be 0 has no value if it is 0, and
    no ends if it may be.

    >>> wide = bounded(np.array([2.0]), np.array([1.0]), np.array([3.0]))
    >>> got = calculated("*", wide, exact(np.array([10.0])))
    >>> float(got.value[0]), float(got.low[0]), float(got.high[0]), KINDS[got.kind[0]]
    (20.0, 10.0, 30.0, 'bound')
    """
    apply = _OPERATIONS[operator]
    with np.errstate(all="ignore"):
        value = apply(a.value, b.value)
        corners = np.stack([apply(p, q) for p in (a.low, a.high) for q in (b.low, b.high)])
        low, high = corners.min(axis=0), corners.max(axis=0)
        if operator == "/":
            around = (b.low <= 0) & (b.high >= 0)
            value = np.where(b.value == 0, np.nan, value)
            low, high = np.where(around, -np.inf, low), np.where(around, np.inf, high)
    low, high = (np.where(np.isnan(value), np.nan, end) for end in (low, high))
    kind = np.maximum(a.kind, b.kind)
    error = np.fmax(high - value, value - low)
    # Errors add up as they are: what two answers are off may well go together.
    error = np.fmin(error, _off(operator, a, b))
    # Rounding is no error: what was exact stays so.
    error = np.where(kind == EXACT, np.where(np.isnan(value), np.nan, 0.0), error)
    low, high = (np.where(kind == EXACT, value, end) for end in (low, high))
    return Measure(value, error, low, high, kind)


def _off(operator: str, a: Measure, b: Measure) -> Floats:
    if operator in "+-":
        return a.error + b.error
    with np.errstate(all="ignore"):
        if operator == "*":
            return a.error * np.abs(b.value) + b.error * np.abs(a.value) + a.error * b.error
        off = (a.error + b.error * np.abs(a.value / b.value)) / (np.abs(b.value) - b.error)
        return np.where(np.abs(b.value) > b.error, off, np.inf)
