"""Plain values of JSON, each of the type that is expected, or a sentence with the path to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from geoflux.errors import QueryError
from geoflux.sketch.functions import nearest


@contextmanager
def at(path: str) -> Iterator[None]:
    """Mistakes found inside are at this path, unless they know better."""
    try:
        yield
    except QueryError as error:
        if error.placed:
            raise
        raise QueryError(error.sentence, path=path) from None


def kept(given: object) -> str:
    """A value in a sentence, cut where it is long."""
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."


def obj(given: object, allowed: tuple[str, ...], path: str) -> Mapping[str, Any]:
    """An object with no other names than those allowed (any, if there are none)."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise QueryError(f"{kept(given)} is no object; expected names and values", path=path)
    for name in given:
        if allowed and name not in allowed:
            hint = nearest(name, allowed) or ";"
            raise QueryError(
                f"unknown name {name[:100]!r}{hint} possible: {', '.join(allowed)}", path=path
            )
    return given


def array(given: object, path: str, length: int | None = None) -> list[Any]:
    """A list, of that length if one is given."""
    if isinstance(given, list | tuple) and length in (None, len(given)):
        return list(given)
    wanted = "a list" if length is None else f"a list of {length}"
    raise QueryError(f"{kept(given)} was given; expected {wanted}", path=path)


def number(given: object, path: str) -> float:
    """A finite number."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        try:
            value = float(given)
        except OverflowError:
            value = math.inf
        if math.isfinite(value):
            return value
    raise QueryError(f"{kept(given)} is no finite number", path=path)


def whole(given: object, path: str) -> int:
    """A whole number."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    raise QueryError(f"{kept(given)} is no whole number", path=path)


def text(given: object, path: str) -> str:
    """A text that is not empty."""
    if isinstance(given, str) and given:
        return given
    raise QueryError(f"{kept(given)} was given; expected a text", path=path)
