"""Hand-made events and queries with every shape and predicate, and what they must give.

The expectation is computed pair by pair in plain Python and shapely, from the records as written:
it shares no code with geoflux.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from shapely.geometry import Point, shape

SPEEDS = {"speed > 10": lambda e: e["speed"] is not None and e["speed"] > 10,
          "kind = 'taxi'": lambda e: e["kind"] == "taxi",
          "speed <= 20 and kind in ('bus', 'taxi')": lambda e: e["speed"] is not None
          and e["speed"] <= 20 and e["kind"] in ("bus", "taxi"),
          "not (kind = 'bus')": lambda e: e["kind"] is not None and e["kind"] != "bus"}  # fmt: skip


def events(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Events, some of them exactly on edges that the queries have."""
    draw = random.Random(seed)
    out = []
    for i in range(count):
        lon, lat = draw.uniform(-180, 180), draw.uniform(-85, 85)
        if i % 5 == 0:
            lon, lat = (
                draw.choice([-180.0, -10.0, 0.0, 20.0, 170.0, 180.0]),
                draw.choice([-5.0, 0.0, 30.0]),
            )
        if i % 7 == 0:
            lon, lat = draw.gauss(2, 3), draw.gauss(48, 3)
        out.append(
            {"id": i, "lon": lon, "lat": lat, "time": 1_700_000_000 + i,
             "speed": draw.choice([None, draw.uniform(0, 40)]),
             "kind": draw.choice(["taxi", "bus", "bike"])}
        )  # fmt: skip
    return out


def disordered(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Events in the order of their arrival: a few seconds out of order, some minutes late."""
    draw = random.Random(seed)
    rows = events(count, seed)
    delay = [draw.uniform(0, 30) + (240 if draw.random() < 0.05 else 0) for _ in rows]
    return sorted(rows, key=lambda row: row["time"] + delay[row["id"]])


def queries() -> list[dict[str, Any]]:
    """One of everything, with and without filters, and many squares."""
    draw = random.Random(2)
    hole = [
        [[-20, 40], [20, 40], [20, 60], [-20, 60], [-20, 40]],
        [[0, 45], [5, 45], [5, 50], [0, 50], [0, 45]],
    ]
    shapes = [
        {"type": "rectangle", "west": -10, "south": -5, "east": 20, "north": 30},
        {"type": "rectangle", "west": 170, "south": -5, "east": -170, "north": 30},
        {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90},
        {"type": "rectangle", "west": 0, "south": 0, "east": 0, "north": 0},
        {"type": "circle", "lon": 2, "lat": 48, "radius_m": 300_000},
        {"type": "circle", "lon": 179.9, "lat": 10, "radius_m": 2_000_000},
        {"type": "circle", "lon": 0, "lat": 89, "radius_m": 3_000_000},
        {"type": "Polygon", "coordinates": hole},
        {
            "type": "MultiPolygon",
            "coordinates": [hole, [[[100, 0], [120, 0], [110, 20], [100, 0]]]],
        },
    ]
    for _ in range(40):
        x, y, side = draw.gauss(2, 5), draw.gauss(48, 5), draw.uniform(0.1, 4)
        shapes.append(
            {"type": "rectangle", "west": x, "south": y, "east": x + side, "north": y + side}
        )
    out: list[dict[str, Any]] = []
    for i, given in enumerate(shapes):
        out.append({"op": "register", "id": f"q{i}", "user": "u1", "shape": given})
        for k, where in enumerate(SPEEDS):
            if i < 9 or i % 4 == k:
                out.append(
                    {
                        "op": "register",
                        "id": f"q{i}w{k}",
                        "user": "u2",
                        "shape": given,
                        "where": where,
                    }
                )
        if i < 9:
            out.append({"op": "register", "id": f"q{i}v", "shape": given,
                        "valid_from": 1_700_000_100, "valid_until": "2023-11-14T22:18:20Z"})  # fmt: skip
    out.append({"op": "register", "id": "gone", "shape": shapes[0]})
    out.append({"op": "terminate", "id": "gone"})
    out.append({"op": "register", "id": "again", "shape": shapes[0]})
    out.append({"op": "terminate", "id": "again"})
    out.append({"op": "register", "id": "again", "shape": shapes[3]})
    return out


def expected(
    records: list[dict[str, Any]], rows: list[dict[str, Any]],
    watermarks: Mapping[int, float] | None = None,
) -> Counter[Any]:  # fmt: skip
    """Every match by comparing each event with each query; ``watermarks`` were there when an event
    (by its id) came: a query has ended when its validity lies before."""
    passed = watermarks or {}
    live: dict[str, dict[str, Any]] = {}
    for record in records:
        if record["op"] == "register":
            live.setdefault(record["id"], record)
        else:
            live.pop(record["id"], None)
    found: Counter[Any] = Counter()
    for query in live.values():
        inside = _tester(query["shape"])
        test = SPEEDS.get(query.get("where", ""), lambda _: True)
        for event in rows:
            if "valid_from" in query and not 1_700_000_100 <= event["time"] <= 1_700_000_300:
                continue
            if "valid_from" in query and passed.get(event["id"], 0) > 1_700_000_300:
                continue
            if inside(event["lon"], event["lat"]) and test(event):
                found[query["id"], event["id"]] += 1
    return found


def _tester(given: dict[str, Any]) -> Any:
    if given["type"] == "rectangle":
        w, s, e, n = (given[k] for k in ("west", "south", "east", "north"))
        if w <= e:
            return lambda x, y: w <= x <= e and s <= y <= n
        return lambda x, y: (x >= w or x <= e) and s <= y <= n
    if given["type"] == "circle":
        return lambda x, y: _metres(given["lon"], given["lat"], x, y) <= given["radius_m"]
    polygon = shape(given)
    return lambda x, y: polygon.intersects(Point(x, y))


def _metres(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    a, b = math.radians(lat1), math.radians(lat2)
    h = math.sin((b - a) / 2) ** 2
    h += math.cos(a) * math.cos(b) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    return 2 * 6_371_008.8 * math.asin(min(1.0, math.sqrt(h)))


def write(
    folder: Path, records: list[dict[str, Any]], rows: list[dict[str, Any]], files: int = 3,
    in_turn: bool = False,
) -> None:  # fmt: skip
    """Events as Parquet and NDJSON files, and the control file; ``in_turn``: one file goes on
    where the one before it ended, so that events come in the order given."""
    (folder / "events").mkdir(parents=True)
    cuts = [len(rows) * k // files for k in range(files + 1)] if files else []
    for k in range(files):
        part = rows[cuts[k] : cuts[k + 1]] if in_turn else rows[k::files]
        if k % 2 == 0:
            pq.write_table(pa.Table.from_pylist(part), folder / f"events/part{k}.parquet")
        else:
            lines = "".join(json.dumps(row) + "\n" for row in part)
            (folder / f"events/part{k}.ndjson").write_text(lines)
    (folder / "queries.ndjson").write_text("".join(json.dumps(r) + "\n" for r in records))


def toml(
    folder: Path, slots: int = 4, balance: str = "uniform", more: str = "", mode: str = "drain"
) -> Path:
    """A settings file for them."""
    path = folder / "geofence.toml"
    path.write_text(
        f'[space]\ngrid = [100, 100]\n[source]\nkind = "files"\npath = "events"\n'
        f'[control]\npath = "queries.ndjson"\n[run]\nmode = "{mode}"\n'
        f'[engine]\nslots = {slots}\nbalance = "{balance}"\n{more}'
    )
    return path


def ask(folder: Path, records: list[dict[str, Any]]) -> None:
    """Append to the control file."""
    with open(folder / "queries.ndjson", "a") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))


def epochs(rows: list[dict[str, Any]], received: list[int]) -> list[list[dict[str, Any]]]:
    """Events in the order of their arrival, cut into epochs that received so many."""
    left = iter(rows)
    return [list(itertools.islice(left, count)) for count in received]


def matches(out: Path) -> Counter[Any]:
    """What a run wrote."""
    found: Counter[Any] = Counter()
    for name in (out / "matches").glob("*.parquet"):
        for row in pq.read_table(name).to_pylist():
            found[row["query_id"], row["event_id"]] += 1
    return found
