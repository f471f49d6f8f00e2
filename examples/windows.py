"""Taxis in a city: sliding windows per zone, and snapshots; see docs/tutorial-windows.md."""

import json
import random
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import geoflux

START, TAXIS, STEPS = 1_750_003_200, 40, 120  # from 16:00, a report every 15 s for half an hour
STATION = {"type": "circle", "lon": 4.8594, "lat": 45.7606, "radius_m": 1200}
CENTRE = {"type": "rectangle", "west": 4.82, "south": 45.74, "east": 4.86, "north": 45.78}
FUNCTIONS = ["count", "avg(speed)", "distinct(object)"]
ASKED = {"functions": FUNCTIONS, "window": "10 minutes", "slide": "5 minutes"}

draw, rows, table = random.Random(1), [], {}
places = [[draw.gauss(4.84, 0.03), draw.gauss(45.76, 0.02)] for _ in range(TAXIS)]
for number in range(TAXIS * STEPS):
    step, taxi = divmod(number, TAXIS)
    place = places[taxi] = [x + draw.gauss(0, 0.001) for x in places[taxi]]
    rows.append({"id": number, "lon": place[0], "lat": place[1], "time": START + 15 * step,
                 "object": f"taxi-{taxi}", "speed": round(draw.uniform(0, 50), 1),
                 "free": draw.random() < 0.4})  # fmt: skip
rows.append(rows.pop(6))  # the first report of taxi-6 comes half an hour late
query = {"op": "register", "aggregate": ASKED}
zones = [query | {"id": "station", "shape": STATION}, query | {"id": "centre", "shape": CENTRE}]

with tempfile.TemporaryDirectory(prefix="windows-") as folder:
    out = Path(folder, "out")
    settings = {
        "space": {"bounds": [4.5, 45.5, 5.2, 46.0], "grid": [200, 200]},
        "source": {"kind": "files", "path": f"{folder}/events.ndjson"},
        "control": {"path": f"{folder}/queries.ndjson"},
        "engine": {"epoch_events": 1000, "lateness": "1 minute", "memory": "1g"},
        "retention": {"time": "20 minutes"},
    }
    for name, records in (("events.ndjson", rows), ("queries.ndjson", zones)):
        Path(folder, name).write_text("".join(json.dumps(record) + "\n" for record in records))
    geoflux.run(geoflux.Config.from_dict(settings), out)

    for row in pq.read_table(out / "aggregates").to_pylist():
        window = (row["query_id"], row["window_start"], row["window_end"])
        table.setdefault(window, {})[row["function"]] = row["value"]
    print("zone     from   to    events  speed  taxis")
    for (zone, start, end), told in sorted(table.items()):
        print(f"{zone:<9}{start:%H:%M}  {end:%H:%M}", *(f"{told[f]:>6.3g}" for f in FUNCTIONS))

    now, reader = START + 15 * (STEPS - 1), geoflux.Snapshots(out)
    seen = reader.ask({"shape": STATION, "from": now - 120}).rows["object"].unique().to_pylist()
    print("at the station in the last two minutes:", *sorted(seen))
    point = {"lon": STATION["lon"], "lat": STATION["lat"], "k": 5}
    for row in reader.ask({"nearest": point, "where": "free", "from": now}).rows.to_pylist():
        print(f"free: {row['object']:<8}{row['distance']:>6.0f} m away")
    print("kept:", geoflux.snapshot(out, {}).matched, "of", len(rows), "events")
    found = geoflux.verify(out)
    print(f"{found.windows} rows of windows: {found.wrong_windows} wrong, {found.late} late event")
    raise SystemExit(0 if found.is_clean else 1)
