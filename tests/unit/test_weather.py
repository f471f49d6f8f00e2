"""Weather for sketches: features that go together, and a stream that goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux.errors import ConfigError
from geoflux.workload.weather import (
    FEATURES,
    WeatherStream,
    made_up_weather,
    read_weather,
    with_derived,
)

START = 1_774_396_800
DAY = 86_400


def test_the_wind_has_a_speed_and_comes_from_somewhere() -> None:
    measured = np.array([[280.0, 3.0, -4.0, 101_000.0, 0.0], [280.0, 0.0, 5.0, 101_000.0, 0.001]])
    found = with_derived(np.zeros(2), np.zeros(2), np.zeros(2, np.int64), measured)
    assert found.values[:, FEATURES.index("wind_ms")].tolist() == [5.0, 5.0]
    # From the north-west, and from the south.
    assert found.values[:, FEATURES.index("wind_deg")].tolist() == [323.0, 180.0]
    dry, wet = found.values[:, FEATURES.index("dew_k")]
    assert dry < wet <= 280.0


def test_made_up_weather_has_seasons_days_and_latitudes() -> None:
    found = made_up_weather(3, 40_000, START, 10 * DAY)
    again = made_up_weather(3, 40_000, START, 10 * DAY)
    np.testing.assert_array_equal(found.values, again.values)
    assert np.isfinite(found.values).all()
    air = found.values[:, 0]
    assert air[np.abs(found.lat) < 10].mean() > air[np.abs(found.lat) > 60].mean() + 15
    assert 0.1 < (found.values[:, 4] == 0).mean() < 0.9
    assert found.table().schema.names == ["lon", "lat", "time", *FEATURES]


def test_a_stream_advances_and_changes_a_little() -> None:
    stream = WeatherStream(made_up_weather(3, 5_000, START, 7 * DAY), seed=1)
    assert stream.days == 7
    first, summer = stream.step(0), stream.step(13)
    assert (summer.time - first.time == 13 * 7 * DAY).all()
    north = first.lat > 50
    change = (summer.values[:, 0] - first.values[:, 0])[north].mean()
    assert abs(change) > 5, "another season"
    np.testing.assert_array_equal(summer.values, stream.step(13).values)
    assert len({step.values[0, 0] for step in stream.steps(4)}) == 4
    assert (summer.values[:, 4] >= 0).all()


def test_a_file_is_read_in_its_order(tmp_path: Path) -> None:
    ts = pa.array([1_774_396_800_000, 1_774_400_400_000], pa.timestamp("ms", "UTC"))
    columns = {"ts": ts, "lat": [1.0, 2.0], "lon": [3.0, 4.0], "t2m_k": [280.0, 281.0],
               "u10_ms": [1.0, 2.0], "v10_ms": [1.0, 2.0], "msl_pa": [1e5, 1e5],
               "tp_m": [0.0, 0.0]}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "w.parquet")
    found = read_weather(tmp_path / "w.parquet")
    assert found.time.tolist() == [START, START + 3600]
    assert (found.lon.tolist(), found.lat.tolist()) == ([3.0, 4.0], [1.0, 2.0])
    pq.write_table(pa.table({"lat": [1.0]}), tmp_path / "other.parquet")
    with pytest.raises(ConfigError, match="has no column lon, msl_pa"):
        read_weather(tmp_path / "other.parquet")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_weather(tmp_path / "none.parquet")
