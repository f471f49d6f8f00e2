"""Geofences over a day of taxis: one query of each shape, run and verified.

Makes a few thousand positions and a few standing queries in a temporary folder, runs geoflux over
them, prints what each query saw, and recomputes everything by brute force. The tutorial in
docs/tutorial-geofence.md walks through it.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import geoflux

START = 1_750_000_000
TAXIS, STEPS = 40, 100


def events(seed: int = 1) -> list[dict[str, Any]]:
    """Taxis that wander around Lyon and report every minute; two of the rows are useless."""
    draw = random.Random(seed)
    places = [[draw.gauss(4.84, 0.05), draw.gauss(45.76, 0.03)] for _ in range(TAXIS)]
    rows: list[dict[str, Any]] = []
    for step in range(STEPS):
        for taxi, place in enumerate(places):
            place[0] += draw.gauss(0, 0.003)
            place[1] += draw.gauss(0, 0.002)
            rows.append(
                {"id": len(rows), "lon": place[0], "lat": place[1], "time": START + 60 * step,
                 "object": f"taxi-{taxi}", "speed": round(draw.uniform(0, 25), 1),
                 "free": draw.random() < 0.4}
            )  # fmt: skip
    rows[7]["lat"] = float("nan")
    rows[8]["lon"] = 48.4
    return rows


def queries() -> list[dict[str, Any]]:
    """The four shapes, a filter, a validity interval; and two records that cannot be accepted."""
    centre = {"type": "rectangle", "west": 4.82, "south": 45.74, "east": 4.86, "north": 45.78}
    station = {"type": "circle", "lon": 4.8594, "lat": 45.7606, "radius_m": 1500}
    ring = [[4.78, 45.71], [4.90, 45.71], [4.90, 45.81], [4.78, 45.81], [4.78, 45.71]]
    hole = [[4.82, 45.74], [4.86, 45.74], [4.86, 45.78], [4.82, 45.78], [4.82, 45.74]]
    west = [[[4.70, 45.70], [4.78, 45.70], [4.74, 45.80], [4.70, 45.70]]]
    east = [[[4.90, 45.70], [5.00, 45.70], [4.95, 45.80], [4.90, 45.70]]]
    noon = START + 60 * (STEPS // 2)
    return [
        _register("centre", centre),
        _register("station", station, where="free and speed < 10"),
        _register("suburbs", {"type": "Polygon", "coordinates": [ring, hole]}),
        _register("outskirts", {"type": "MultiPolygon", "coordinates": [west, east]}),
        _register("centre-after-noon", centre, valid_from=noon),
        _register("typo", station, where="sped < 10"),
        _register("centre", station),
    ]


def _register(name: str, shape: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"op": "register", "id": name, "user": "dispatch", "shape": shape, **more}


def write_inputs(folder: Path) -> None:
    """Half of the events as Parquet, half as NDJSON: a folder may hold both."""
    rows = events()
    half = len(rows) // 2
    (folder / "events").mkdir()
    pq.write_table(pa.Table.from_pylist(rows[:half]), folder / "events" / "morning.parquet")
    _write_lines(folder / "events" / "noon.ndjson", rows[half:])
    _write_lines(folder / "queries.ndjson", queries())


def _write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def settings(folder: Path) -> geoflux.Config:
    """What geofence.toml would say."""
    return geoflux.Config.from_dict(
        {
            "space": {"bounds": [4.5, 45.5, 5.2, 46.0], "grid": [200, 200]},
            "source": {"kind": "files", "path": str(folder / "events")},
            "control": {"path": str(folder / "queries.ndjson")},
            "engine": {"slots": 4, "epoch_events": 2000, "memory": "1g"},
        }
    )


def print_results(out: Path) -> None:
    """Matches per query, and what was put aside."""
    matches = Counter(pq.read_table(out / "matches").column("query_id").to_pylist())
    print(f"{'query':<20}{'matches':>8}")
    for name, count in sorted(matches.items()):
        print(f"{name:<20}{count:>8}")
    for row in pq.read_table(out / "quarantine").to_pylist():
        print(f"quarantined {row['origin']}: {row['reason']}: {row['detail']}")


def main() -> int:
    """Run, show, verify; 0 when every match is right."""
    with tempfile.TemporaryDirectory(prefix="geofence-") as name:
        folder, out = Path(name), Path(name) / "out"
        write_inputs(folder)
        summary = geoflux.run(settings(folder), out)
        print(f"{summary.received} events in {summary.epochs} epochs, {summary.matches} matches")
        print_results(out)
        found = geoflux.verify(out)
        print(
            f"verified {found.matches} matches: {found.missing} missing, "
            f"{found.duplicate} duplicate, {found.extra} wrong"
        )
        return 0 if found.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
