"""The simulator's two ports: pacing by a settable clock, slices, the order of control records."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pyarrow as pa
import pytest

from geoflux.config import Config
from geoflux.engine.source import ControlSource, EventSource, Slice
from geoflux.sections import HotspotConfig, SimulateConfig
from geoflux.workload import Scenario, SimulatedControl, Simulator


@dataclass
class FakeClock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def scenario(duration_seconds: float | None = 10.0, **simulate: object) -> Scenario:
    settings = {"rate": 1000, "queries": 100, "query_rate": 20.0, **simulate}
    return Scenario(SimulateConfig(**settings), duration_seconds=duration_seconds)  # type: ignore[arg-type]


def test_both_satisfy_the_ports() -> None:
    source: EventSource = Simulator(scenario(), 0.0)
    control: ControlSource = SimulatedControl(scenario(), 0.0)
    assert source.schema().names == ["id", "lon", "lat", "time", "object", "speed", "kind"]
    assert control.poll({"record": 10**9}) == {"record": 10**9}


def test_paced_events_come_with_the_clock_and_stop_at_the_total() -> None:
    clock = FakeClock()
    source = Simulator(scenario(), started=1000.0, clock=clock)
    assert source.latest(0, None) == 0
    clock.now = 1002.5
    assert source.latest(0, None) == 2500
    assert source.latest(0, 700) == 700
    assert source.latest(2400, 700) == 2500
    assert source.latest(3000, 700) == 3000
    clock.now = 999.0
    assert source.latest(7, None) == 7
    clock.now = 5000.0
    assert source.latest(0, None) == source.total() == 10_000


def test_arrivals_tell_when_events_were_due() -> None:
    clock = FakeClock()
    source = Simulator(scenario(), started=1000.0, clock=clock)
    arrived = source.arrivals(1000, 2500)
    assert arrived == pytest.approx((1001.001, 1002.5))
    assert arrived is not None
    clock.now = arrived[1] + 1e-6
    assert source.latest(0, None) == 2500
    assert Simulator(scenario(paced=False), 0.0).arrivals(0, 10) is None


def test_unpaced_events_are_all_there() -> None:
    assert Simulator(scenario(paced=False), 0.0, FakeClock(0.0)).latest(0, None) == 10_000
    endless = Simulator(scenario(None, paced=False), 0.0)
    assert endless.latest(50, 100) == 150
    assert endless.total() is None
    with pytest.raises(ValueError, match="give a limit"):
        endless.latest(0, None)


def test_slices_cover_a_range_evenly_and_are_never_empty() -> None:
    source = Simulator(scenario(), 0.0)
    assert source.slices(5, 15, 3) == [Slice(0, 5, 8), Slice(0, 8, 11), Slice(0, 11, 15)]
    assert source.slices(5, 7, 4) == [Slice(0, 5, 6), Slice(0, 6, 7)]
    assert source.slices(5, 5, 4) == []


def test_a_pickled_simulator_reads_the_same_rows() -> None:
    source = Simulator(scenario(), 0.0)
    blob = pickle.dumps(source)
    assert len(blob) < 2000
    piece = Slice(0, 60_000, 70_000)
    ours, theirs = (list(s.read(piece)) for s in (source, pickle.loads(blob)))
    assert [batch.table for batch in ours] == [batch.table for batch in theirs]
    assert ours[0].positions.tolist() == ours[0].table["id"].to_pylist()
    assert list(source.read(Slice(0, 5, 5))) == []
    (one,) = source.read(Slice(0, 0, 3), frozenset({"lat", "unknown"}))
    assert one.table.schema.names == ["lat"]
    assert one.table.num_rows == len(one.positions) == 3


def records(control: SimulatedControl, first: int, last: int) -> pa.Table:
    return pa.concat_tables(control.read({"record": first}, {"record": last}))


def test_the_queries_of_the_start_are_there_at_once_and_churn_follows_the_clock() -> None:
    clock = FakeClock()
    control = SimulatedControl(scenario(), started=1000.0, clock=clock)
    assert control.poll({}) == {"record": 100}
    clock.now = 1000.5
    assert control.poll({"record": 100}) == {"record": 120}
    table = records(control, 0, 120)
    assert table["id"].to_pylist()[:100] == [f"q{n}" for n in range(100)]
    # A tick of 0.1 s: two registrations, then two terminations.
    assert list(zip(table["op"].to_pylist(), table["id"].to_pylist(), strict=True))[100:108] == [
        ("register", "q100"),
        ("register", "q101"),
        ("terminate", "q0"),
        ("terminate", "q1"),
        ("register", "q102"),
        ("register", "q103"),
        ("terminate", "q2"),
        ("terminate", "q3"),
    ]
    clock.now = 9999.0
    assert control.poll({}) == {"record": 100 + 2 * 200}


def test_a_hotspot_brings_its_queries_within_a_tenth_of_a_short_run() -> None:
    spot = HotspotConfig(start=0.5, stop=0.9, queries=50)
    clock = FakeClock()
    control = SimulatedControl(scenario(query_rate=0.0, hotspots=(spot,)), 1000.0, clock)
    due = {}
    for elapsed in (5.0, 5.5, 6.0, 10.0):
        clock.now = 1000.0 + elapsed
        due[elapsed] = control.poll({})["record"]
    assert due == {5.0: 100, 5.5: 125, 6.0: 150, 10.0: 150}
    assert records(control, 100, 150)["id"].to_pylist() == [f"h0-{n}" for n in range(50)]


def test_a_hotspot_brings_its_queries_within_a_minute_of_a_long_run() -> None:
    spot = HotspotConfig(start=0.5, stop=0.9, queries=60)
    clock = FakeClock(1000.0 + 5030.0)
    run = scenario(10_000.0, query_rate=0.0, hotspots=(spot,))
    assert SimulatedControl(run, 1000.0, clock).poll({}) == {"record": 130}


def test_unpaced_control_offers_the_start_and_hotspots_and_no_churn() -> None:
    spots = (HotspotConfig(queries=5), HotspotConfig(queries=7))
    control = SimulatedControl(scenario(paced=False, hotspots=spots), 0.0, FakeClock())
    assert control.poll({}) == {"record": 112}
    table = records(control, 98, 112)
    assert table["id"].to_pylist() == ["q98", "q99", *(f"h0-{n}" for n in range(5)),
                                       *(f"h1-{n}" for n in range(7))]  # fmt: skip
    assert set(table["op"].to_pylist()) == {"register"}


def test_only_registered_queries_are_terminated_and_only_once() -> None:
    for queries in (0, 3, 100):
        run = scenario(30.0, queries=queries, query_rate=50.0)
        control = SimulatedControl(run, 0.0, FakeClock(30.0))
        live: set[str] = set()
        table = records(control, 0, control.poll({})["record"])
        for op, query in zip(table["op"].to_pylist(), table["id"].to_pylist(), strict=True):
            assert (query in live) == (op == "terminate")
            live ^= {query}
        assert len(live) >= queries


def test_records_that_never_come_are_refused() -> None:
    with pytest.raises(IndexError, match="never comes"):
        records(SimulatedControl(scenario(), 0.0), 500, 501)


def test_a_scenario_comes_from_the_settings() -> None:
    config = Config.from_dict({"run": {"duration": "2 minutes"}, "simulate": {"rate": 10}})
    assert Scenario.of(config).total_events == 1200
    assert Scenario.of(Config()).total_events is None
