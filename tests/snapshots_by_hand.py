"""What snapshots must answer, event by event in plain Python, and what a run answered.

Shares no code with geoflux: which events are asked for follows from the records as written.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from handmade import SPEEDS, _metres, _tester
from windows_by_hand import _value, _windows

Rows = list[dict[str, Any]]

WORLD = {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90}
ATTRIBUTES = ("speed", "kind")
_METRES = 1.0
"""Two distances that differ by less may be told in either order: rounding is not the same."""


@dataclass
class Told:
    """An answer: how many events matched; the events, in order, each with its distance; how often
    (start, end, function, value, count) was told; how many partitions and segments were read."""

    matched: list[int] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    aggregates: Counter[Any] = field(default_factory=Counter)
    reads: tuple[int, int] = (0, 0)
    epochs: set[int] = field(default_factory=set)

    def take(self, row: dict[str, Any]) -> None:
        """One more row."""
        if row.get("function") is not None:
            span = (_seconds(row["window_start"]), _seconds(row["window_end"]))
            self.aggregates[*span, row["function"], row["value"], row["count"]] += 1
            return
        self.events.append(_event(row | {"time": _seconds(row["time"])}))
        if row.get("distance") is not None:
            self.distances.append(row["distance"])


def asked_of_everything() -> Rows:
    """One snapshot of every kind, over hand-made events."""
    ring = [[-20, 40], [20, 40], [20, 60], [-20, 60], [-20, 40]]
    functions = ["count", "avg(speed)", "stddev(speed)", "distinct(kind)", "quantile(speed, 0.9)"]
    queries: Rows = [
        {},
        {"shape": {"type": "rectangle", "west": 170, "south": -5, "east": -170, "north": 30}},
        {"shape": {"type": "circle", "lon": 179.9, "lat": 10, "radius_m": 2_000_000},
         "where": "speed > 10"},
        {"shape": {"type": "Polygon", "coordinates": [ring]}, "where": "not (kind = 'bus')"},
        {"aggregate": {"functions": functions}, "where": "kind = 'taxi'"},
        {"aggregate": {"functions": functions, "window": "1 minute", "slide": "30s"},
         "shape": {"type": "circle", "lon": 2, "lat": 48, "radius_m": 3_000_000}},
        {"aggregate": {"functions": functions, "window": 7, "slide": 3}, "shape": WORLD},
        {"nearest": {"lon": -179.5, "lat": 3, "k": 9}},
        {"nearest": {"lon": 2, "lat": 48, "k": 5}, "where": "speed <= 20 and kind in ('bus', 'taxi')",
         "aggregate": {"functions": ["count"]}},
        {"from": 1_700_000_060, "to": "2023-11-14T22:16:20Z"},
    ]  # fmt: skip
    return [{"op": "snapshot", "id": f"s{k}", "user": "u", **q} for k, q in enumerate(queries)]


def visible(epochs: list[Rows], seconds: float) -> Rows:
    """What is retained by time after some epochs."""
    rows = [row for part in epochs for row in part]
    newest = max((row["time"] for row in rows), default=0)
    return [row for row in rows if row["time"] >= newest - seconds]


def answers(out: Path) -> dict[str, Told]:
    """What a run answered, by the id of the snapshot."""
    found: dict[str, Told] = {}
    for name in sorted((out / "snapshots").glob("*.parquet")):
        for row in pq.read_table(name).to_pylist():
            told = found.setdefault(row["snapshot_id"], Told())
            told.epochs.add(row["epoch"])
            if row["kind"] == "summary":
                told.matched.append(row["count"])
                told.reads = row["partitions"], row["segments"]
                continue
            assert row["kind"] == ("event" if row["function"] is None else "aggregate")
            told.take(row | json.loads(row["attributes"] or "{}") | {"id": row["event_id"]})
    return found


def answer_of(answer: Any) -> Told:
    """What a reader answered."""
    told = Told([answer.matched], reads=(answer.partitions_read, answer.segments_read))
    for row in answer.rows.to_pylist():
        told.take(row)
    return told


def chosen(query: dict[str, Any], rows: Rows) -> Rows:
    """The events that fulfil a query's conditions, of those that can be seen."""
    inside = _tester(query.get("shape") or WORLD)
    where = SPEEDS.get(query.get("where", ""), lambda _: True)
    low, high = _instant(query.get("from"), -math.inf), _instant(query.get("to"), math.inf)
    return [
        row
        for row in rows
        if low <= row["time"] <= high and inside(row["lon"], row["lat"]) and where(row)
    ]


def check(query: dict[str, Any], told: Told, rows: Rows) -> None:
    """Compare an answer with all that can be seen."""
    should = chosen(query, rows)
    possible = Counter(map(_event, should))
    is_clear = True
    if "nearest" in query:
        should, away, is_clear = _nearest(query["nearest"], should)
        if "aggregate" not in query:
            assert told.distances == sorted(told.distances), query
            pairs = zip(told.distances, away, strict=True)
            assert all(abs(a - b) < _METRES for a, b in pairs), (query, told.distances, away)
    assert told.matched == [len(should)], (query, told.matched, len(should))
    if "aggregate" in query:
        assert not told.events
        assert not is_clear or told.aggregates == _aggregated(query["aggregate"], should), query
        return
    assert not told.aggregates
    there, wanted = Counter(told.events), Counter(map(_event, should))
    assert there == wanted if is_clear else there <= possible, (query, there - wanted)


def _nearest(point: dict[str, Any], rows: Rows) -> tuple[Rows, list[float], bool]:
    """The nearest, how far away they are, and whether it is clear which these are."""
    far = [(_metres(point["lon"], point["lat"], r["lon"], r["lat"]), r) for r in rows]
    far.sort(key=lambda item: (item[0], -item[1]["time"], item[1]["id"]))
    k = point["k"]
    is_clear = k >= len(far) or far[k][0] - far[k - 1][0] > _METRES
    return [row for _, row in far[:k]], [metres for metres, _ in far[:k]], is_clear


def _aggregated(asked: dict[str, Any], rows: Rows) -> Counter[Any]:
    windows: Any = [(None, None, rows)]
    if "window" in asked:
        every = {"aggregate": asked, "shape": WORLD}
        found = _windows(every, [rows], [-math.inf, -math.inf], final=True)
        windows = ((float(start), float(end), inside) for start, end, inside in found)
    return Counter(
        (start, end, function, _value(function, inside), len(inside))
        for start, end, inside in windows
        for function in asked["functions"]
    )


def _event(row: dict[str, Any]) -> tuple[Any, ...]:
    x, y = (row["x"], row["y"]) if "x" in row else (row["lon"], row["lat"])
    return str(row["id"]), x, y, row["time"], *(row[name] for name in ATTRIBUTES)


def _seconds(instant: Any) -> float | None:
    return None if instant is None else instant.timestamp()


def _instant(given: Any, otherwise: float) -> float:
    if isinstance(given, str):
        return datetime.fromisoformat(given).timestamp()
    return otherwise if given is None else given
