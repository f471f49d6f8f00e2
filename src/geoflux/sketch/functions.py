"""The functions of a query: what each is given, and what it answers.

One table for SQL, JSON and values made in Python, so that a mistake gets the same sentence
wherever it is made. Nothing is evaluated here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from geoflux.errors import QueryError

Kind = Literal["relational", "statistical", "density", "set", "inferential", "synthetic", "mixed"]
MAX_FEATURES = 20
MAX_POINTS = 10_000


@dataclass(frozen=True, slots=True)
class Function:
    """``features`` and ``numbers`` are the fewest and the most that it takes; ``defaults`` stand
    for the last numbers where they are left away. ``pairs``: each feature comes with a number.
    ``scalar``: it answers with one number, so it may be sorted by and calculated with."""

    name: str
    kind: Kind
    usage: str
    features: tuple[int, int]
    numbers: tuple[int, int] = (0, 0)
    defaults: tuple[float, ...] = ()
    scalar: bool = True
    pairs: bool = False


_ONE, _TWO = (1, 1), (2, 2)
_ALL = (
    Function("count", "statistical", "count(*) or count(feature)", (0, 1)),
    Function("mean", "statistical", "mean(feature)", _ONE),
    Function("sum", "statistical", "sum(feature)", _ONE),
    Function("min", "statistical", "min(feature)", _ONE),
    Function("max", "statistical", "max(feature)", _ONE),
    Function("stddev", "statistical", "stddev(feature)", _ONE),
    Function("variance", "statistical", "variance(feature)", _ONE),
    Function("corr", "statistical", "corr(feature, feature)", _TWO),
    Function("covar", "statistical", "covar(feature, feature)", _TWO),
    Function("outliers", "statistical", "outliers(feature, k)", _ONE, (0, 1), (3.0,), False),
    Function("density", "density", "density(feature [, points])", _ONE, (0, 1), (64.0,), False),
    Function(
        "probability",
        "density",
        "probability(feature, value) or probability(feature, low, high)",
        _ONE,
        (1, 2),
    ),
    Function("quantile", "density", "quantile(feature, q)", _ONE, (1, 1)),
    Function("median", "density", "median(feature)", _ONE),
    Function("quartiles", "density", "quartiles(feature)", _ONE, scalar=False),
    Function("deciles", "density", "deciles(feature)", _ONE, scalar=False),
    Function(
        "contains",
        "set",
        "contains(feature = value, ...)",
        (1, MAX_FEATURES),
        (1, MAX_FEATURES),
        scalar=False,
        pairs=True,
    ),
    Function("distinct", "set", "count(DISTINCT *) or cardinality()", (0, 0)),
    Function(
        "frequency",
        "set",
        "frequency(feature = value, ...)",
        (1, MAX_FEATURES),
        (1, MAX_FEATURES),
        pairs=True,
    ),
    Function("regress", "inferential", "regress(y, x)", _TWO, scalar=False),
    Function(
        "forecast",
        "inferential",
        "forecast(y, x, at [, confidence])",
        _TWO,
        (1, 2),
        (0.95,),
    ),
)
FUNCTIONS = {function.name: function for function in _ALL}
ALIASES = {
    "avg": "mean",
    "std": "stddev",
    "stddev_samp": "stddev",
    "var": "variance",
    "var_samp": "variance",
    "covar_samp": "covar",
    "approx_distinct": "distinct",
    "cardinality": "distinct",
}
# What a query may call besides: these are values of their own, not of the table.
OTHERS = ("contrast", "synthetic", "geohash")


def nearest(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` or nothing, for a name that is not known."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name[:100].lower(), by_lower, 1, 0.5)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def function(name: str) -> Function:
    """The function of that name (in any case, or an alias of it).

    >>> function("AVG").name
    'mean'
    """
    lower = name[:100].lower()
    found = FUNCTIONS.get(ALIASES.get(lower, lower))
    if found is None:
        known = (*FUNCTIONS, *OTHERS)
        hint = nearest(name, (*known, *ALIASES)) or ";"
        raise QueryError(f"unknown function {name[:100]!r}{hint} functions: {', '.join(known)}")
    return found


def check_arguments(made: Function, features: tuple[str, ...], numbers: tuple[float, ...]) -> None:
    """Whether a function may be given these; one sentence if not."""
    if not all(features):
        raise QueryError(f"{made.name} was given a feature without a name: {made.usage}")
    fewest, most = made.features
    if not fewest <= len(features) <= most:
        raise QueryError(
            f"{made.name} takes {_amount(fewest, most, 'feature')}, it was given "
            f"{len(features)}: {made.usage}"
        )
    fewest, most = made.numbers
    if not fewest <= len(numbers) <= most:
        raise QueryError(
            f"{made.name} takes {_amount(fewest, most, 'number')}, it was given "
            f"{len(numbers)}: {made.usage}"
        )
    if made.pairs and len(features) != len(numbers):
        raise QueryError(f"{made.name} takes one value for each feature: {made.usage}")
    if made.pairs and len(set(features)) < len(features):
        raise QueryError(f"{made.name} was given a feature twice: {made.usage}")
    _check_numbers(made, numbers)


def _check_numbers(made: Function, numbers: tuple[float, ...]) -> None:
    name = made.name
    if name == "outliers" and numbers and not numbers[0] > 1:
        raise QueryError(
            f"outliers: k is {numbers[0]:g}; expected more than 1 (Chebyshev's inequality says "
            "nothing below)"
        )
    if name == "density" and numbers:
        points = numbers[0]
        if points != int(points) or not 2 <= points <= MAX_POINTS:
            raise QueryError(
                f"density: points is {points:g}; expected a whole number from 2 to {MAX_POINTS}"
            )
    if name == "quantile" and not 0 <= numbers[0] <= 1:
        raise QueryError(f"quantile: q is {numbers[0]:g}; expected 0 to 1 (0.5 is the median)")
    if name == "probability" and len(numbers) == 2 and numbers[0] > numbers[1]:
        raise QueryError(f"probability: low {numbers[0]:g} is above high {numbers[1]:g}")
    if name == "forecast" and len(numbers) == 2 and not 0 < numbers[1] < 1:
        raise QueryError(
            f"forecast: the confidence is {numbers[1]:g}; expected between 0 and 1, such as 0.95"
        )


def _amount(fewest: int, most: int, thing: str) -> str:
    words = ("no", "one", "two")
    if fewest == most:
        return f"{words[fewest]} {thing}{'' if fewest == 1 else 's'}"
    if most == fewest + 1:
        return f"{words[fewest]} or {words[most]} {thing}{'' if most == 1 else 's'}"
    return f"{words[fewest]} to {most} {thing}s"
