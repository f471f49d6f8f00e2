"""What settings are made of: durations and amounts, ranges, and frozen sections from tables.

A section is a frozen dataclass whose fields were made with :func:`setting`. Mistakes are collected,
not raised one by one.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, get_args, get_type_hints

Check = Callable[[Any], str | None]

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT_NAMES = {
    "microsecond": "us", "millisecond": "ms", "second": "s", "sec": "s", "minute": "m", "min": "m",
    "hour": "h", "day": "d",
}  # fmt: skip


def seconds(text: str) -> float:
    """A duration such as ``90s``, ``5 minutes`` or ``1h30m`` in seconds.

    >>> seconds("1h30m"), seconds("250 ms"), seconds("5 minutes")
    (5400.0, 0.25, 300.0)
    """
    total, rest = 0.0, text.strip()
    if not rest:
        raise ValueError(f"{text!r} is not a duration; write for example 90s, 5 minutes or 1h30m")
    while rest:
        found = re.match(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", rest)
        unit = found and (_UNIT_NAMES.get(found[2].lower().rstrip("s"), found[2].lower()))
        if not found or unit not in _UNITS:
            raise ValueError(
                f"{text!r} is not a duration; write for example 90s, 5 minutes or 1h30m"
            )
        total += float(found[1]) * _UNITS[unit]
        rest = rest[found.end() :]
    return total


def one_of(*choices: str) -> Check:
    """The value is one of a few words."""

    def check(value: Any) -> str | None:
        return None if value in choices else f"expected one of {', '.join(choices)}"

    check.__doc__ = f"The value is one of {', '.join(f'`{choice}`' for choice in choices)}."
    return check


def between(low: float, high: float) -> Check:
    """The value is a number in a closed range."""

    def check(value: Any) -> str | None:
        return None if low <= value <= high else f"expected a number from {low:g} to {high:g}"

    check.__doc__ = f"The value is {_figure(low)} to {_figure(high)}."
    return check


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def duration(value: Any) -> str | None:
    """The value is a duration, or empty for none."""
    try:
        if value:
            seconds(value)
    except ValueError as error:
        return str(error)
    return None


_BYTES = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4,
          "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4}  # fmt: skip


def bytes_of(text: str) -> int:
    """An amount of memory such as ``2 GB`` or ``512MiB`` in bytes.

    >>> bytes_of("2 GB"), bytes_of("1.5KiB")
    (2000000000, 1536)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if not found or found[2].lower() not in _BYTES:
        raise ValueError(f"{text!r} is not an amount of memory; write for example 2 GB or 512 MiB")
    return round(float(found[1]) * _BYTES[found[2].lower()])


def amount(value: Any) -> str | None:
    """The value is an amount of memory, or empty for none."""
    try:
        if value:
            bytes_of(value)
    except ValueError as error:
        return str(error)
    return None


def setting(default: Any, doc: str, check: Check | None = None) -> Any:
    """A field of a section: its default, its sentence for the reference, its range."""
    metadata = {"doc": doc, "check": check}
    if isinstance(default, list | dict):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


def build(cls: Any, values: Any, where: str, problems: list[str]) -> Any:
    """A section from a table; what is wrong is added to ``problems``."""
    if not isinstance(values, Mapping):
        problems.append(f"[{where}] is {values!r}; expected a table of settings")
        return None
    before = len(problems)
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls)}
    prefix = f"{where}." if where else ""
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known: {', '.join(known)}"
            problems.append(f"{prefix}{name} is not a setting; {hint}")
    built = {}
    for name, spec in known.items():
        if name not in values:
            continue
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            section = build(hint, values[name], f"{prefix}{name}", problems)
            if section is not None:  # else its default stands in, so that the rest can be judged
                built[name] = section
            continue
        given = values[name]
        value, problem = _convert(hint, given, f"{prefix}{name}", problems)
        check = spec.metadata.get("check")
        if problem is None and check is not None:
            problem = check(value)
        if problem is not None:
            problems.append(f"{prefix}{name} = {given!r}: {problem}")
        built[name] = value
    return cls(**built) if not where or len(problems) == before else None


def _convert(hint: Any, value: Any, where: str, problems: list[str]) -> tuple[Any, str | None]:
    if hint is bool:
        return (value, None) if isinstance(value, bool) else (value, "expected true or false")
    if hint is int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return (value, None) if whole else (value, "expected a whole number")
    if hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return (float(value), None) if number else (value, "expected a number")
    if hint is str:
        return (value, None) if isinstance(value, str) else (value, "expected a text in quotes")
    items = get_args(hint)
    if len(items) == 2 and items[1] is Ellipsis and items[0] is str:
        texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        return (tuple(value), None) if texts else (value, "expected a list of texts")
    if len(items) == 2 and items[1] is Ellipsis:
        if not isinstance(value, list | tuple):
            return value, "expected a list of tables"
        return tuple(
            build(items[0], item, f"{where}[{i}]", problems) for i, item in enumerate(value)
        ), None
    if not isinstance(value, list | tuple) or len(value) != len(items):
        return value, f"expected a list of {len(items)} numbers"
    converted = [
        _convert(kind, item, where, problems) for kind, item in zip(items, value, strict=True)
    ]
    bad = next((problem for _, problem in converted if problem), None)
    return tuple(item for item, _ in converted), bad
