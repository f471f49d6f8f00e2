"""Simulated standing queries: where they are, whose they are, and what they say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from geoflux.operators.where_parse import parse
from geoflux.sections import HotspotConfig, SimulateConfig, SpaceConfig
from geoflux.spatial.shapes import parse_shape
from geoflux.spatial.space import Space
from geoflux.workload.events import CityEvents
from geoflux.workload.hotspots import Hotspot
from geoflux.workload.queries import EXPIRES_EVERY, SCHEMA, WHERES, StandingQueries
from geoflux.workload.scenario import Scenario

US = (-125.0, 24.0, -66.0, 50.0)
N = 100_000


def us(**simulate: object) -> Scenario:
    settings = SimulateConfig(region="us", queries=N, **simulate)  # type: ignore[arg-type]
    return Scenario(settings, SpaceConfig(bounds=US), 60.0)


def edges(table: pa.Table) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    shape = table["shape"].combine_chunks()
    return {name: shape.field(name).to_numpy() for name in ("west", "south", "east", "north")}


def test_queries_are_squares_of_the_side_clipped_to_the_space() -> None:
    table = StandingQueries(us(query_side=0.01)).registrations(0, N)
    assert table.schema == SCHEMA
    box = edges(table)
    west, south, east, north = US
    assert (box["west"] >= west).all()
    assert (box["east"] <= east).all()
    assert (box["south"] >= south).all()
    assert (box["north"] <= north).all()
    whole = (box["west"] > west) & (box["east"] < east)
    assert (box["east"] - box["west"])[whole] == pytest.approx(0.01 * (east - west))
    assert (box["north"] - box["south"]).max() == pytest.approx(0.01 * (north - south))
    assert whole.mean() > 0.98


def test_focal_points_follow_the_density_of_events() -> None:
    scenario = us()
    pieces = [CityEvents(scenario).table(n, n + 10_000) for n in range(0, 6_000_000, 600_000)]
    table = pa.concat_tables(pieces)
    lon, lat = StandingQueries(scenario).focal_points(0, N)
    bins = [np.linspace(US[0], US[2], 21), np.linspace(US[1], US[3], 11)]
    of_events = np.histogram2d(table["lon"].to_numpy(), table["lat"].to_numpy(), bins)[0].ravel()
    of_queries = np.histogram2d(lon, lat, bins)[0].ravel()
    rank = [np.argsort(np.argsort(counts)) for counts in (of_events, of_queries)]
    assert np.corrcoef(rank[0], rank[1])[0, 1] > 0.97
    assert np.corrcoef(of_events, of_queries)[0, 1] > 0.99


def test_a_fifth_of_the_users_place_four_fifths_of_the_queries() -> None:
    users = StandingQueries(us()).registrations(0, N)["user"].value_counts()
    counts = np.sort(pc.struct_field(users, "counts").to_numpy(zero_copy_only=False))[::-1]
    assert len(counts) == 100
    assert counts[:20].sum() / N == pytest.approx(0.8, abs=0.01)


def test_a_small_share_has_a_where_and_the_engine_understands_all() -> None:
    table = StandingQueries(us()).registrations(0, N)
    assert 1 - table["where"].null_count / N == pytest.approx(0.05, abs=0.005)
    for text in filter(None, WHERES):
        assert parse(text).columns <= {"speed", "kind"}
    space = Space("lonlat", *US)
    for shape in table["shape"].slice(0, 50).to_pylist():
        parse_shape(shape, space)


def test_every_fiftieth_query_ends_by_itself_and_is_never_terminated() -> None:
    queries = StandingQueries(us())
    table = queries.registrations(0, 1000)
    ending = table.filter(pc.is_valid(table["valid_until"]))
    assert ending["id"].to_pylist() == [f"q{n}" for n in range(49, 1000, EXPIRES_EVERY)]
    assert all(
        a < b
        for a, b in zip(
            ending["valid_from"].to_pylist(), ending["valid_until"].to_pylist(), strict=True
        )
    )
    gone = queries.terminations(0, 980)
    lasting = table.filter(pc.is_null(table["valid_until"]))
    assert gone["id"] == lasting["id"]
    assert gone["user"] == lasting["user"]
    assert gone["shape"].null_count == gone["where"].null_count == 980


def test_nothing_ends_where_time_stands_still() -> None:
    table = StandingQueries(us(time_speed=0.0)).registrations(0, 100)
    assert table["valid_until"].null_count == 100


def test_hotspot_queries_lie_in_their_hotspot() -> None:
    spots = (HotspotConfig(), HotspotConfig(at=(0.85, 0.85), queries=10, inside="normal"))
    table = StandingQueries(us(hotspots=spots, query_side=0.0)).hotspot_registrations(1, 0, 1000)
    west, south, east, north = Hotspot(spots[1], US).region
    box = edges(table)
    assert west <= box["west"].min() <= box["east"].max() < east
    assert south <= box["south"].min() <= box["north"].max() < north
    assert table["id"][3].as_py() == "h1-3"
