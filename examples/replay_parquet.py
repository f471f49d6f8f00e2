"""Replay a Parquet file of positions at a chosen speed, against squares where its points are.

    python examples/replay_parquet.py taxis.parquet --time ts --id @position --speed 3600

The tutorial in docs/tutorial-replay.md walks through it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import geoflux


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", nargs="?", metavar="PATH", type=Path, help="a Parquet file")
    parser.add_argument("--id", default="@position", help="column of ids; @position numbers rows")
    parser.add_argument("--time", default="time", help="column of the event time")
    parser.add_argument("--time-unit", default="s", help="unit of numeric times: s, ms, us, ns")
    parser.add_argument("--lon", default="lon", help="column of the longitude")
    parser.add_argument("--lat", default="lat", help="column of the latitude")
    parser.add_argument("--bounds", default="-180,-90,180,90", help="west,south,east,north")
    parser.add_argument("--speed", type=float, default=0.0, help="0: as fast as possible")
    parser.add_argument("--rows", type=int, default=0, help="only so many rows; 0: all")
    parser.add_argument("--queries", type=int, default=50, help="squares to register")
    parser.add_argument("--where", default="", help="a predicate that every query asks for")
    parser.add_argument("--verify", action="store_true", help="recompute all by brute force")
    parser.add_argument("--out", type=Path, help="keep the queries and the run in this folder")
    return parser.parse_args()


def main() -> int:
    """Replay, show, verify on demand."""
    given = arguments()
    if given.path is None:
        print("replay_parquet.py: give the PATH of a Parquet file to replay", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="replay-") as name:
        folder = given.out or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        out = folder / "run"
        try:
            summary = geoflux.run(settings(given, folder), out)
        except (geoflux.GeofluxError, OSError) as error:
            print(f"replay_parquet.py: {error}", file=sys.stderr)
            return 2
        print_results(summary, out)
        if not given.verify:
            return 0
        found = geoflux.verify(out)
        print(
            f"verified {found.matches} matches: {found.missing} missing, "
            f"{found.duplicate} duplicate, {found.extra} wrong"
        )
        return 0 if found.is_clean else 1


def settings(given: argparse.Namespace, folder: Path) -> geoflux.Config:
    """The settings of the replay; writes its queries, and the cut file where one is asked for."""
    bounds = [float(edge) for edge in given.bounds.split(",")]
    path = given.path
    if given.rows:
        path = folder / "events.parquet"
        write_first_rows(given.path, given.rows, path)
    write_queries(given, path, bounds, folder / "queries.ndjson")
    return geoflux.Config.from_dict(
        {
            "space": {"bounds": bounds},
            "source": {
                "kind": "files", "path": str(path), "format": "parquet", "id": given.id,
                "time": given.time, "time_unit": given.time_unit, "x": given.lon, "y": given.lat,
                "speed": given.speed,
            },
            "control": {"path": str(folder / "queries.ndjson")},
        }
    )  # fmt: skip


def write_first_rows(source: Path, rows: int, target: Path) -> None:
    """The beginning of a file as a file of its own."""
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches():
            writer.write_batch(batch.slice(0, rows))
            rows -= batch.num_rows
            if rows <= 0:
                return


def write_queries(given: argparse.Namespace, path: Path, bounds: list[float], target: Path) -> None:
    """Squares of 1 % of the space's side around rows of the file: they lie where its crowds are."""
    with pq.ParquetFile(path) as file:
        batch = next(file.iter_batches(100_000, columns=[given.lon, given.lat]))
    lons, lats = (batch.column(name).to_pylist() for name in (given.lon, given.lat))
    west, south, east, north = bounds
    inside = [
        (x, y)
        for x, y in zip(lons, lats, strict=True)
        if x is not None and y is not None and west <= x <= east and south <= y <= north
    ]
    half_x, half_y = (east - west) / 200, (north - south) / 200
    draw = random.Random(1)
    lines = []
    for number in range(given.queries if inside else 0):
        x, y = draw.choice(inside)
        shape = {"type": "rectangle", "west": max(x - half_x, west), "east": min(x + half_x, east),
                 "south": max(y - half_y, south), "north": min(y + half_y, north)}  # fmt: skip
        record: dict[str, Any] = {"op": "register", "id": f"square-{number}", "shape": shape}
        if given.where:
            record["where"] = given.where
        lines.append(json.dumps(record) + "\n")
    target.write_text("".join(lines), encoding="utf-8")


def print_results(summary: Any, out: Path) -> None:
    """How much, how fast, what was put aside, and the busiest squares."""
    print(
        f"{summary.received:,} rows in {summary.epochs} epochs and {summary.seconds:.1f} s: "
        f"{summary.processed:,} processed, {summary.quarantined:,} quarantined, "
        f"{summary.matches:,} matches"
    )
    for reason, count in summary.reasons.items():
        print(f"quarantined as {reason}: {count:,}")
    if (out / "quarantine").exists():
        for row in pq.read_table(out / "quarantine").slice(0, 3).to_pylist():
            print(f"  for example {row['row']}")
    if (out / "matches").exists():
        counts = Counter(pq.read_table(out / "matches").column("query_id").to_pylist())
        for name, count in counts.most_common(5):
            print(f"{name:<12}{count:>10,} matches")


if __name__ == "__main__":
    sys.exit(main())
