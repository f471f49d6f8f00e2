"""A week of weather as a sketch that is asked in SQL; see docs/tutorial-sketch.md."""

import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import geoflux
from geoflux.workload.weather import FEATURES, made_up_weather

START, ROWS = 1_774_396_800, 30_000  # 25 March 2026
NORTH = "region IN geohash('u')"  # 0 to 45 degrees east, north of 45
seen = made_up_weather(seed=1, rows=ROWS, start=START, seconds=7 * 86_400)

with tempfile.TemporaryDirectory(prefix="sketch-") as folder:
    out, weather = Path(folder, "out"), Path(folder, "weather")
    weather.mkdir()
    pq.write_table(seen.table(), weather / "week.parquet", row_group_size=5000)
    settings = {
        "source": {"kind": "files", "path": str(weather)},
        "engine": {"epoch_events": 10_000, "slots": 2, "memory": "1g"},
        "sketch": {
            "features": FEATURES, "tree_bits": 6, "region_bits": 10, "steady_rows": 300,
            "continuous": [{"name": "storms", "query": "SELECT count(*) WHERE wind_ms > 12"}],
        },
    }  # fmt: skip
    geoflux.run_sketch(geoflux.Config.from_dict(settings), out)
    sketch = geoflux.open_sketch(out)
    print(f"{sketch.observations} observations of {len(FEATURES)} features")

    def told(name, answer, row=0):
        """A number and its error."""
        found = answer[name]
        return f"{found.value[row]:.4g} ± {found.error[row]:.2g}"

    asked = f"SELECT mean(t2m_k), stddev(t2m_k), corr(t2m_k, dew_k) WHERE {NORTH}"
    answer = sketch.query(asked)
    print("whole regions:", *(f"{name} {told(name, answer)}" for name in answer.names), sep="\n  ")

    answer = sketch.query("SELECT mean(t2m_k), count(*) WHERE region IN bbox(5, 47, 40, 65)")
    print("cut through regions:", *(f"{n} {told(n, answer)}" for n in answer.names), sep="\n  ")
    low, high = answer["mean(t2m_k)"].low[0], answer["mean(t2m_k)"].high[0]
    print(f"  the mean is certainly between {low:.1f} and {high:.1f}")

    days = sketch.query(f"SELECT day, max(t2m_k) AS high WHERE {NORTH} GROUP BY day ORDER BY day")
    for row in days.to_table().to_pylist():
        print(f"{row['day']:%A}: {row['high']:.1f} K")

    answer = sketch.query(
        "SELECT deciles(wind_ms), forecast(dew_k, t2m_k, 290), regress(dew_k, t2m_k)"
    )
    print("median wind", told("deciles(wind_ms)_0.5", answer), "m/s")
    print("a day of 290 K has a dew point of", told("forecast(dew_k, t2m_k, 290)", answer), "K")

    wind = float(seen.values[0, FEATURES.index("wind_ms")])
    answer = sketch.query(
        f"SELECT contains(wind_ms = {wind}), contains(wind_ms = 99.9), cardinality()"
    )
    first, second, many = (answer[name].value[0] for name in answer.names)
    words = {0.0: "no", 1.0: "yes"}
    print(f"wind of {wind} m/s: {words[first]}; of 99.9 m/s: {words[second]}")
    print(f"different observations: about {many:.0f}")

    rows = sketch.query(f"SELECT synthetic(2000, 7) WHERE {NORTH}").to_pandas()
    print(f"synthetic rows: {len(rows)}, mean {rows.t2m_k.mean():.2f} K")

    for one in geoflux.continuous_answers(out, "storms"):
        count = one["rows"][0]
        print(f"after epoch {one['epoch']}: about {count['count(*)']:.0f} storms")
    found = geoflux.verify_sketch(out)
    print(f"verified {found.observations} observations: {found.missing} missing, "
          f"{found.doubled} doubled, {found.wrong_bins} of {found.bins} bins wrong")  # fmt: skip
    raise SystemExit(0 if found.is_clean else 1)
