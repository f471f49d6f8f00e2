"""The oracle's values: what each function must give over a window's events, computed exactly.

Numbers are taken as float64 and counted with fractions, so that no order of events and no way of
adding up partial results can matter. What is null, NaN or infinite does not enter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from geoflux.operators.aggregates import Function


def value_of(function: Function, given: Sequence[Any]) -> float | None:
    """What a function gives over the values of its column; ``None``: nothing to say.

    >>> value_of(Function("sum", "speed"), [0.1] * 10), value_of(Function("min", "speed"), [])
    (1.0, None)
    """
    if function.kind == "count":
        return float(len(given))
    if function.kind == "distinct":
        return float(len({value for value in given if value is not None and not _is_nan(value)}))
    finite = [number for number in map(_number, given) if math.isfinite(number)]
    if function.kind in ("stddev", "stddev_pop"):
        return _deviation(finite, of_sample=function.kind == "stddev")
    if not finite:
        return None
    if function.kind in ("median", "quantile"):
        with np.errstate(all="ignore"):
            return float(np.quantile(np.array(finite), function.share))
    return _PLAIN[function.kind](finite)


def place_of(value: Any) -> tuple[int, Any]:
    """Where a value comes in the order of a column: NaN after the others, a missing one last."""
    if value is None:
        return 2, 0
    return (1, 0) if _is_nan(value) else (0, value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _number(value: Any) -> float:
    """A value as a number, never a negative zero; NaN for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return math.nan
    return float(value) + 0.0


def _sum(numbers: list[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:  # perhaps only on the way
        return _rounded(sum(map(Fraction, numbers), Fraction(0)))


def _deviation(numbers: list[float], of_sample: bool) -> float | None:
    count = len(numbers)
    divisor = count * (count - 1) if of_sample else count * count
    if divisor == 0:
        return None
    exact = [Fraction(number) for number in numbers]
    total = sum(exact, Fraction(0))
    squares = sum((number * number for number in exact), Fraction(0))
    return math.sqrt(_rounded((count * squares - total * total) / divisor))


def _rounded(exact: Fraction) -> float:
    """The nearest float; infinite where all are too small."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_PLAIN: dict[str, Callable[[list[float]], float]] = {
    "sum": _sum,
    "avg": lambda numbers: _sum(numbers) / len(numbers),
    "min": min,
    "max": max,
}
