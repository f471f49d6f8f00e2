"""What the windows of hand-made queries must give, window by window in plain Python.

Shares no code with geoflux, and does not go through time as it does: which floor was there when an
event came follows from the epochs before it, and then each window is what lies in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from handmade import SPEEDS, _tester

Windows = Counter[tuple[str, float, float, str, float | None, int]]
"""How often (query, start and end in seconds, function, value, count) was reported."""

_UNITS = {"ms": Fraction(1, 1000), "s": 1, "second": 1, "m": 60, "minute": 60, "h": 3600, "hour": 3600}  # fmt: skip


def asking(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hand-made queries, each with one of several aggregates; every fifth without."""
    aggregates: list[Any] = [
        {"functions": ["count", "avg(speed)", "stddev(speed)"], "window": "1 minute"},
        {"functions": ["sum(speed)", "quantile(speed, 0.9)"], "window": "70s", "slide": "30s"},
        {"functions": ["count", "max(speed)", "distinct(kind)"], "window": "2 minutes",
         "slide": "1 minute", "empty": True},
        {"functions": ["median(speed)", "min(speed)", "stddev_pop(speed)"], "window": 7, "slide": 3},
        None,
    ]  # fmt: skip
    out = []
    for number, record in enumerate(records):
        given = aggregates[number % len(aggregates)]
        asks = record["op"] == "register" and given is not None
        out.append(record | {"aggregate": given} if asks else record)
    return out


def expected(
    records: list[dict[str, Any]], epochs: list[list[dict[str, Any]]],
    lateness: float | None = None, final: bool = True,
) -> Windows:  # fmt: skip
    """Every row of queries that are all registered before the first event.

    ``epochs``: the events of each, times in seconds; ``lateness`` in seconds, ``None`` in a run
    without a watermark; ``final``: after them comes the epoch that closes everything.
    """
    live: dict[str, dict[str, Any]] = {}
    for record in records:
        if record["op"] == "register":
            live.setdefault(record["id"], record)
        else:
            live.pop(record["id"], None)
    floors = list(_floors(epochs if not final else [*epochs, []], lateness))
    found: Windows = Counter()
    for query in live.values():
        if query.get("aggregate"):
            for start, end, rows in _windows(query, epochs, floors, final):
                for function in query["aggregate"]["functions"]:
                    value = _value(function, rows)
                    found[query["id"], start, end, function, value, len(rows)] += 1
    return found


def watermarks(epochs: list[list[dict[str, Any]]], lateness: float) -> dict[int, float]:
    """The watermark that was there when an event came, by its id."""
    floors = zip(epochs, _floors(epochs, lateness), strict=True)
    return {row["id"]: floor for rows, floor in floors for row in rows}


def _floors(epochs: list[list[dict[str, Any]]], lateness: float | None) -> Iterator[float]:
    """The floor at the opening of each epoch."""
    seen = -math.inf
    for rows in epochs:
        yield -math.inf if lateness is None else seen - lateness
        seen = max([seen, *(row["time"] for row in rows)])


def _windows(
    query: dict[str, Any], epochs: list[list[dict[str, Any]]], floors: list[float], final: bool
) -> Iterator[tuple[float, float, list[dict[str, Any]]]]:
    """Start, end and events of each window that is reported."""
    asked = query["aggregate"]
    since, until = (
        _seconds(query, "valid_from", -math.inf),
        _seconds(query, "valid_until", math.inf),
    )
    ended = next((k for k, floor in enumerate(floors) if until < floor), None)
    inside, where = _tester(query["shape"]), SPEEDS.get(query.get("where", ""), lambda _: True)
    matched = [
        (event, floor)
        for rows, floor in list(zip(epochs, floors, strict=False))[:ended]
        for event in rows
        if since <= event["time"] <= until and inside(event["lon"], event["lat"]) and where(event)
    ]
    reported = math.inf if final or ended is not None else floors[-1]
    if isinstance(asked["window"], int):
        for rows in _runs(asked, [e for e, floor in matched if floor <= e["time"] < reported]):
            yield rows[0]["time"], rows[-1]["time"], rows
        return
    window, slide = _length(asked["window"]), _length(asked.get("slide", asked["window"]))
    every = [event["time"] for rows in epochs for event in rows]
    if not every:
        return
    origin = next(min(event["time"] for event in rows) for rows in epochs if rows)
    start = (min(every) - window) // slide * slide
    while start <= max(every):
        end = start + window
        rows = [e for e, floor in matched if start <= e["time"] < end and end > floor]
        is_due = asked.get("empty") and end > max(since, origin) and start <= until
        if (rows or is_due) and end <= reported:
            yield start, end, rows
        start += slide


def _runs(asked: dict[str, Any], events: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Windows of so many events, in order of time, id and values."""
    columns = [f[f.index("(") + 1 : -1].split(",")[0] for f in asked["functions"] if "(" in f]
    events = sorted(
        events, key=lambda e: (e["time"], e["id"], *((e[c] is None, e[c] or 0) for c in columns))
    )
    for first in range(0, len(events), asked.get("slide", asked["window"])):
        if first + asked["window"] <= len(events):
            yield events[first : first + asked["window"]]


def _value(function: str, rows: list[dict[str, Any]]) -> float | None:
    if function == "count":
        return float(len(rows))
    kind, _, rest = function[:-1].partition("(")
    column, _, share = rest.partition(", ")
    values = [row[column] for row in rows if row[column] is not None]
    if kind == "distinct":
        return float(len(set(values)))
    count, total = len(values), sum(map(Fraction, values))
    if kind.startswith("stddev"):
        divisor = count * (count if kind == "stddev_pop" else count - 1)
        spread = count * sum(Fraction(v) ** 2 for v in values) - total**2
        return math.sqrt(float(spread / divisor)) if divisor else None
    if not values:
        return None
    if kind in ("median", "quantile"):
        return float(np.quantile(values, float(share or "0.5")))
    plain = {"sum": total, "avg": float(total) / count, "min": min(values), "max": max(values)}
    return float(plain[kind])


def _length(text: str) -> Any:
    """A duration in seconds: a number and a unit."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(digits) :].strip()
    return int(digits) * _UNITS[unit if unit in _UNITS else unit.rstrip("s")]


def _seconds(query: dict[str, Any], name: str, otherwise: float) -> float:
    given = query.get(name, otherwise)
    return datetime.fromisoformat(given).timestamp() if isinstance(given, str) else given


def written(out: Path) -> Windows:
    """What a run reported."""
    found: Windows = Counter()
    for name in (out / "aggregates").glob("*.parquet"):
        for row in pq.read_table(name).to_pylist():
            start, end = (row[side].timestamp() for side in ("window_start", "window_end"))
            found[row["query_id"], start, end, row["function"], row["value"], row["count"]] += 1
    return found
