"""Simulated cities and events: where they are, when, and that the day moves them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from geoflux.errors import ConfigError
from geoflux.sections import HotspotConfig, SimulateConfig, SpaceConfig
from geoflux.workload.cities import cities
from geoflux.workload.density import activity
from geoflux.workload.draws import Floats, normal, words
from geoflux.workload.events import KINDS, SCHEMA, CityEvents
from geoflux.workload.hotspots import Hotspot
from geoflux.workload.scenario import START_US, Scenario

WORLD = (-180.0, -90.0, 180.0, 90.0)
US = (-125.0, 24.0, -66.0, 50.0)
N = 200_000


def column(table: pa.Table, name: str) -> Floats:
    return table[name].to_numpy()


def test_cities_are_sorted_inside_and_know_their_time() -> None:
    us = cities("us", US)
    assert len(us) > 2500
    assert (np.diff(us.population) <= 0).all()
    assert ((us.lon >= US[0]) & (us.lon < US[2]) & (us.lat >= US[1]) & (us.lat < US[3])).all()
    assert set(us.utc_offset_hours.tolist()) <= {-5.0, -6.0, -7.0, -8.0}
    assert cities("us", US) is us
    spread_lon, spread_lat = us.spread()
    assert (np.diff(spread_lat) <= 0).all()
    assert (spread_lon >= spread_lat).all()


def test_bounds_without_a_city_are_a_config_error() -> None:
    with pytest.raises(ConfigError, match="holds no city"):
        cities("us", (0.0, 0.0, 1.0, 1.0))


def test_activity_is_smooth_and_lowest_at_four() -> None:
    curve = [activity(hour) for hour in np.arange(0, 24, 0.25)]
    assert min(range(96), key=curve.__getitem__) == 16
    assert max(abs(a - b) for a, b in zip(curve, curve[1:] + curve[:1], strict=True)) < 0.05


def test_normal_draws_are_standard_normal() -> None:
    drawn = normal(words(1, 2, 0, N) >> np.uint64(32))
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.std() - 1) < 0.01
    assert abs((np.abs(drawn) < 1.96).mean() - 0.95) < 0.003
    assert np.abs(drawn).max() < 4


def test_schema_and_values() -> None:
    table = CityEvents(Scenario(SimulateConfig(rate=1000), duration_seconds=60)).table(0, N)
    assert table.schema == SCHEMA
    assert table["id"].to_numpy().tolist() == list(range(N))
    assert all(col.null_count == 0 for col in table.columns)
    assert column(table, "speed").min() >= 0
    assert set(pc.unique(table["kind"]).to_pylist()) == set(KINDS)
    times = table["time"].cast(pa.int64()).to_numpy()
    assert times[0] == START_US
    assert (np.diff(times) >= 0).all()
    assert times[60_000 - 1000] == START_US + 59 * 1440 * 1_000_000


def test_an_object_stays_in_its_city_and_of_its_kind() -> None:
    table = CityEvents(Scenario(SimulateConfig(rate=10_000_000))).table(0, N)
    kinds = table.group_by("object").aggregate([("kind", "count_distinct"), ("lat", "max"),
                                                ("lat", "min"), ("id", "count")])  # fmt: skip
    assert pc.max(kinds["kind_count_distinct"]).as_py() == 1
    # Seven standard deviations of the largest city are three degrees.
    assert pc.max(pc.subtract(kinds["lat_max"], kinds["lat_min"])).as_py() < 3
    assert pc.max(kinds["id_count"]).as_py() > 20


def test_population_decides_where_events_are() -> None:
    table = CityEvents(Scenario(SimulateConfig(region="us", time_speed=0.0))).table(0, N)
    lon, lat = column(table, "lon"), column(table, "lat")
    new_york = ((np.abs(lon + 74.0) < 0.7) & (np.abs(lat - 40.7) < 0.7)).mean()
    cheyenne = ((np.abs(lon + 104.8) < 0.7) & (np.abs(lat - 41.1) < 0.3)).mean()
    assert new_york > 20 * cheyenne > 0


def test_day_and_night_move_the_events() -> None:
    hour = 250_000  # events an hour at 100,000 a second and a day a minute
    events = CityEvents(Scenario())

    def ratio(utc_hour: int) -> float:
        lon = column(events.table(utc_hour * hour, utc_hour * hour + 40_000), "lon")
        return float((lon > 60).mean() / (lon < -30).mean())

    # 06 UTC: afternoon in Asia, night in America; 20 UTC: the other way round.
    assert ratio(6) > 5 * ratio(20)


def test_time_can_stand_still() -> None:
    table = CityEvents(Scenario(SimulateConfig(time_speed=0.0))).table(10**9, 10**9 + 10)
    assert table["time"].cast(pa.int64()).to_pylist() == [START_US] * 10


@pytest.mark.parametrize("bounds", [(-74.01, 40.71, -74.0, 40.72), (2.0, 48.0, 3.0, 49.0), WORLD])
def test_every_event_is_inside_however_small_the_space(
    bounds: tuple[float, float, float, float],
) -> None:
    spot = HotspotConfig(at=(0.9, 0.9), start=0.0, stop=1.0, inside="normal")
    scenario = Scenario(SimulateConfig(hotspots=(spot,)), SpaceConfig(bounds=bounds), 2.0)
    table = CityEvents(scenario).table(0, N)
    lon, lat = column(table, "lon"), column(table, "lat")
    assert bounds[0] <= lon.min() <= lon.max() < bounds[2]
    assert bounds[1] <= lat.min() <= lat.max() < bounds[3]


def inside(table: pa.Table, spot: HotspotConfig) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    west, south, east, north = Hotspot(spot, WORLD).region
    lon, lat = column(table, "lon"), column(table, "lat")
    return (lon >= west) & (lon < east) & (lat >= south) & (lat < north)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_a_hotspot_draws_its_peak_in_the_middle(kind: str) -> None:
    spot = HotspotConfig(at=(0.0, 0.0), start=0.4, stop=0.8, peak=0.4, inside=kind)  # nobody there
    events = CityEvents(Scenario(SimulateConfig(hotspots=(spot,)), duration_seconds=60))
    share = [inside(events.table(n, n + 50_000), spot).mean() for n in (2_390_000 - 50_000,
             2_400_000, 3_575_000, 4_800_000)]  # fmt: skip
    assert share[0] == 0
    assert share[1] < 0.02
    assert share[2] == pytest.approx(0.4, abs=0.01)
    assert share[3] == 0


def test_a_step_hotspot_is_there_at_once_and_events_outside_it_stay() -> None:
    spot = HotspotConfig(start=0.5, stop=1.0, peak=0.3, intensity="step")
    run = Scenario(SimulateConfig(rate=1000, hotspots=(spot,)), duration_seconds=100)
    table = CityEvents(run).table(50_000, 100_000)
    drawn = inside(table, spot)
    assert drawn[:5000].mean() == pytest.approx(0.3, abs=0.03)
    assert drawn.mean() == pytest.approx(0.3, abs=0.01)
    calm = CityEvents(Scenario(SimulateConfig(rate=1000), duration_seconds=100))
    assert table.filter(~drawn) == calm.table(50_000, 100_000).filter(~drawn)


def test_hotspots_at_once_each_draw_their_share_and_in_sequence_take_turns() -> None:
    low = HotspotConfig(at=(0, 0), side=0.1, start=0.0, stop=0.6, peak=0.2, intensity="step")
    high = HotspotConfig(at=(0.9, 0.9), side=0.1, start=0.4, stop=1, peak=0.2, intensity="step")
    run = Scenario(SimulateConfig(rate=1000, hotspots=(low, high)), duration_seconds=100)
    table = CityEvents(run).table(0, 100_000)
    first, second = (inside(table, spot).reshape(5, -1).mean(axis=1) for spot in (low, high))
    assert first == pytest.approx([0.2, 0.2, 0.2, 0, 0], abs=0.015)
    assert second == pytest.approx([0, 0, 0.2, 0.2, 0.2], abs=0.015)


def test_a_normal_hotspot_has_a_deviation_of_a_fifth_of_its_side() -> None:
    spot = Hotspot(HotspotConfig(side=0.1, inside="normal"), (0.0, 0.0, 100.0, 100.0))
    lon, lat = spot.points(words(3, 4, 0, N))
    assert lon.mean() == pytest.approx(5.0, abs=0.02)
    assert lat.std() == pytest.approx(2.0, abs=0.06)
