"""The report of a run: self-contained, complete, and robust to whatever a run left behind."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoflux.chronicle.epoch_series import MOST_POINTS, EpochSeries
from geoflux.chronicle.plan_history import layouts
from geoflux.cli import plots, plots_balance
from geoflux.cli.map import Costs
from geoflux.cli.report import verdict, write_report
from geoflux.config import Config
from geoflux.engine.engine import Engine
from geoflux.engine.inline import drain
from geoflux.engine.setting import Setting
from geoflux.engine.summary import summarised
from geoflux.plan import GridPlan, ReplicatedPlan, Split, change_to_dict
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from geoflux.workload import Scenario, SimulatedControl, Simulator

PLOTS = ("Throughput", "Latency", "Load per slot", "Where an epoch's time goes")
TABLES = (
    "Every event accounted for", "Quarantine", "Settings that differ from the defaults",
)  # fmt: skip
VOID = {"meta", "br", "path", "use", "image", "rect", "stop"}


class Balanced(HTMLParser):
    """Raises where a tag is closed that is not the innermost open one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, (tag, self.getpos())


def config_of(slots: int = 4, **sections: Any) -> Config:
    return Config.restored({"engine": {"slots": slots}, **sections})


def slot_report(slot: int, events: int, partitions: list[int]) -> dict[str, Any]:
    return {
        "slot": slot, "processed": events, "matches": 2 * events, "checks": 9 * events,
        "refined": 0, "queries": 5, "busy_seconds": 0.1 + slot / 50, "load_seconds": 0.01,
        "bytes_in": 0, "per_partition": {str(p): [events, 9 * events] for p in partitions},
    }  # fmt: skip


def epoch_of(number: int, plan: GridPlan | ReplicatedPlan, **changed: Any) -> dict[str, Any]:
    """A manifest as the engine writes it, as far as a report reads it."""
    slots = [
        slot_report(s, 1000, [p.id for p in plan.partitions if p.slot == s])
        for s in range(plan.slots)
    ]
    events = 1000 * plan.slots
    return {
        "epoch": number, "opened": 1000.0 + 2 * number, "committed": 1001.5 + 2 * number,
        "plan": plan.version, "next_plan": plan.version, "live_queries": 5, "registered": 5,
        "ended": 0, "received": events, "processed": events, "quarantined": 0, "carried_in": 0,
        "carried_out": 0, "matches": 2 * events, "late": 0, "aggregates": 0, "snapshots": 0, "held": [], "reasons": {}, "control_rejected": {},
        "slices": [[0, 0, events]], "slots": slots, "route_seconds": 0.2,
        "decision": {"reason": "static plan", "changes": []},
    } | changed  # fmt: skip


def written(
    folder: Path, config: Config, plan: GridPlan | ReplicatedPlan | None, epochs: list[Any]
) -> str:
    """The report of a run that left these epochs, after the checks that hold for every report."""
    store = Store(str(folder / "a run"))
    if plan is not None:
        store.write_json("plans/00000001.json", plan.to_dict())
    for m in epochs:
        EpochLog(store).commit(m["epoch"], m)
    path = write_report(config, store, summarised(config, store))
    assert Path(path) == folder / "a run" / "report.html"
    page = Path(path).read_text(encoding="utf-8")
    assert_self_contained(page)
    for name in TABLES:
        assert f"<h2>{name}</h2>" in page
    changed = any(m["decision"]["changes"] or m.get("round") for m in epochs)
    assert f"<h2>{'Every decision' if changed else 'Last decisions'}</h2>" in page
    return page


def assert_self_contained(page: str) -> None:
    assert not re.search(r"https?://", re.sub(r'xmlns(:\w+)?="[^"]*"', "", page))
    assert not re.search(r"<(script|link|iframe|object|embed)\b|@import|url\((?!#)", page)
    assert all(
        src.startswith(("data:", "#")) for src in re.findall(r'(?:src|href)="([^"]*)"', page)
    )
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert "#0102" not in page  # every placeholder has become a variable
    assert "nan" not in re.findall(r"[a-z]+", " ".join(re.findall(r' d="([^"]*)"', page)))
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []


def test_a_whole_run_has_all_sections(tmp_path: Path) -> None:
    config = Config.restored(
        {
            "engine": {"slots": 3}, "run": {"duration": "2s"},
            "simulate": {"rate": 1000, "paced": False, "queries": 50},
        }
    )  # fmt: skip
    scenario = Scenario.of(config)
    source, control = Simulator(scenario, 0.0), SimulatedControl(scenario, 0.0)
    store = Store(str(tmp_path))
    engine = Engine.recovered(
        Setting(config, store, source.schema(), control), lambda: GridPlan.initial(1000, 1000, 3)
    )
    drain(engine, source, 500)
    page = Path(write_report(config, store, summarised(config, store))).read_text()
    assert_self_contained(page)
    for name in (*PLOTS, "The plan on the map", "Last decisions", *TABLES):
        assert f"<h2>{name}</h2>" in page
    assert "2,000 events against 50 standing queries in " in page
    assert "; nothing lost</h1>" in page
    assert "<code>simulate.rate</code>" in page
    assert page.count("<svg") == 5
    # The same directory gives the same file.
    assert Path(write_report(config, store, summarised(config, store))).read_text() == page


@pytest.mark.parametrize("plan", [None, GridPlan.initial(1000, 1000, 4)])
def test_no_epoch_yet(tmp_path: Path, plan: GridPlan | None) -> None:
    page = written(tmp_path, config_of(), plan, [])
    assert "No epoch has been committed yet" in page
    assert page.count("<svg") == (plan is not None)


def test_one_epoch(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 4)
    page = written(tmp_path, config_of(), plan, [epoch_of(0, plan)])
    assert "4,000 events against 5 standing queries in 1.5 s; nothing lost" in page


def test_epochs_without_events_without_duration_without_reports(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 4)
    nothing = {"received": 0, "processed": 0, "matches": 0, "slots": [], "slices": []}
    epochs = [epoch_of(n, plan, opened=5.0, committed=5.0, **nothing) for n in range(3)]
    page = written(tmp_path, config_of(), plan, epochs)
    assert "0 events against 5 standing queries" in page
    assert "there is no latency" in page


def test_epochs_with_and_without_events_and_with_silent_slots(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 4)
    epochs = [epoch_of(n, plan) for n in range(4)]
    epochs[1] |= {"received": 0, "processed": 0, "slots": []}
    epochs[2]["slots"] = epochs[2]["slots"][:1]
    epochs[2] |= {"received": 1000, "processed": 1000}
    assert "nothing lost" in written(tmp_path, config_of(), plan, epochs)


def test_timings_of_a_spark_run_show_all_stages(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 4)
    timed = {"open_seconds": 0.1, "job_seconds": 1.2, "arrivals": [998.0, 999.0]}
    page = written(tmp_path, config_of(), plan, [epoch_of(n, plan, **timed) for n in range(3)])
    for stage in ("open", "route", "execute (busiest slot)", "rest", "commit"):
        assert f"></i>{stage} <b>" in page
    assert "99th percentile" in page
    assert "with the waiting between epochs" in page


def test_a_loss_is_said_aloud(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 4)
    page = written(tmp_path, config_of(), plan, [epoch_of(0, plan, received=4007)])
    assert "; 7 events lost</h1>" in page
    assert "does not add up" in page


def test_a_replicated_plan_is_described_not_drawn(tmp_path: Path) -> None:
    plan = ReplicatedPlan(1000, 1000, slots=22)
    page = written(tmp_path, config_of(22), plan, [epoch_of(0, plan)])
    assert "Replicated over 22 slots: each holds every query" in page
    assert page.count("<svg") == len(PLOTS)


@pytest.mark.parametrize(
    ("slots", "kind", "bounds"),
    [
        (1, "planar", (0.0, 0.0, 500.0, 250.0)),
        (5, "planar", (0.0, 0.0, 1e6, 1.0)),
        (5, "planar", (0.0, 0.0, 1e-3, 10.0)),
        (1, "lonlat", (-150.0, -60.0, -140.0, -50.0)),  # no city
        (5, "lonlat", (5.0, 85.0, 5.2, 90.0)),
    ],
)
def test_any_space(tmp_path: Path, slots: int, kind: str, bounds: Any) -> None:
    config = config_of(slots, space={"kind": kind, "bounds": list(bounds), "grid": [40, 30]})
    plan = GridPlan.initial(40, 30, slots)
    page = written(tmp_path, config, plan, [epoch_of(0, plan)])
    assert ("populated places" in page) == (kind == "lonlat")
    assert page.count("<title>partition ") == slots


def test_five_hundred_partitions_on_five_hundred_slots(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 500)
    page = written(tmp_path, config_of(500), plan, [epoch_of(n, plan) for n in range(3)])
    assert page.count("<title>partition ") == 500
    assert len(page) < 1_500_000


def test_a_changed_plan_is_drawn_before_and_after(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 4)
    change = {"kind": "move", "partition": plan.partitions[0].id, "to": 3}
    epochs = [epoch_of(0, plan), epoch_of(1, plan)]
    epochs[1] |= {"next_plan": 2, "decision": {"reason": "slot 3 has room", "changes": [change]}}
    moved = replace(plan, version=2)
    Store(str(tmp_path / "a run")).write_json("plans/00000002.json", moved.to_dict())
    page = written(tmp_path, config_of(), plan, epochs)
    assert "Plan 1 at the start" in page
    assert "Plan 2 at the end" in page
    assert f"move partition {change['partition']} to slot 3" in page
    assert page.count("<svg") == len(PLOTS) + 4


def changing(folder: Path, epochs: int, rounds: bool = True) -> tuple[GridPlan, list[Any]]:
    """A run that cuts a partition in two after every epoch but the last, as it goes."""
    plan = first = GridPlan.initial(1000, 1000, 4)
    store = Store(str(folder / "a run"))
    found = []
    for n in range(epochs):
        m = epoch_of(n, plan)
        if rounds:
            m["round"] = {"number": n + 1, "stage": "good", "rebalancing": True, "costs": [1.0] * 4,
                          "received": [9.0] * 4, "busy": [0.1] * 4, "asked": [3]}  # fmt: skip
        if n < epochs - 1:
            old = max(plan.partitions, key=lambda p: p.columns)
            change = Split(old.id, "columns", (old.col0 + old.col1) // 2, old.slot, n % 4)
            plan = plan.apply(change)
            store.write_json(f"plans/{plan.version:08d}.json", plan.to_dict())
            m |= {"next_plan": plan.version}
            m["decision"] = {"reason": f"cut {n}", "changes": [change_to_dict(change)]}
        found.append(m)
    return first, found


@pytest.mark.parametrize(("epochs", "shown"), [(3, [0, 1, 2]), (6, range(6)), (40, [0, 8, 16, 23, 31, 39])])  # fmt: skip
def test_many_plans_are_a_strip_of_the_first_the_last_and_some_between(
    tmp_path: Path, epochs: int, shown: Any
) -> None:
    plan, manifests = changing(tmp_path, epochs)
    page = written(tmp_path, config_of(), plan, manifests)
    titles = re.findall(r"<h3>Plan (\d+)( at the \w+)?</h3>", page)
    assert [int(version) - 1 for version, _ in titles] == list(shown)
    assert (titles[0][1], titles[-1][1]) == (" at the start", " at the end")
    assert [int(n) for n in re.findall(r">from epoch (\d+)", page)] == list(shown)
    assert f"The plan was changed {epochs - 1} times." in page
    assert page.count("<svg") == len(PLOTS) + 2 + len(shown)


def test_maps_of_a_strip_are_shaded_alike() -> None:
    plan = GridPlan.initial(1000, 1000, 2)
    one, two = (p.id for p in plan.partitions)
    epochs = [epoch_of(n, plan) for n in range(2)]
    epochs[1]["slots"] = [slot_report(0, 3000, [one]), slot_report(1, 1000, [two])]
    change = {"kind": "move", "partition": one, "to": 0}
    epochs[1] |= {"decision": {"reason": "", "changes": [change]}, "next_plan": 2}
    before, after = layouts(epochs)
    assert before.checks_per_epoch() == {one: 9 * 2000, two: 9 * 1000}
    assert (after.version, after.first_epoch, after.epochs) == (2, 2, ())
    costs = Costs(before.checks_per_epoch(), 9 * 4000.0)
    assert (costs.share(one), costs.share(two), costs.share(99)) == (0.5, 0.25, 0.0)


def test_a_version_that_only_cuts_lineage_is_no_other_plan(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 4)
    epochs = [epoch_of(0, plan, next_plan=2), epoch_of(1, replace(plan, version=2))]
    page = written(tmp_path, config_of(), plan, epochs)
    assert "<h3>" not in page
    assert page.count("<svg") == len(PLOTS) + 1


def test_every_decision_is_there_with_its_reason(tmp_path: Path) -> None:
    plan, manifests = changing(tmp_path, 40)
    manifests[5]["decision"]["reason"] = "; ".join(f"slot {n} gives to {n + 1}" for n in range(20))
    manifests[7]["decision"]["changes"] *= 5
    manifests[9] |= {"round": None, "decision": {"reason": "", "changes": []}}
    page = written(tmp_path, config_of(), plan, manifests)
    for n in {*range(39)} - {5, 9}:
        assert f"<td>cut {n}</td>" in page
    assert "<summary>27 earlier decisions</summary>" in page
    assert "<summary>5 splits</summary>" in page
    assert "slot 19 gives to 20</details>" in page
    assert "In 1 more epoch there was nothing to decide." in page
    assert '<td class="tight">3, good</td>' in page


def test_many_slots_are_a_strip_and_a_slow_first_epoch_is_cut_off() -> None:
    plan = GridPlan.initial(10, 10, 2)
    epochs = [epoch_of(n, plan) for n in range(20)]
    epochs[0]["slots"][1]["busy_seconds"] = 60.0
    series = EpochSeries.of(epochs)
    assert plots_balance.shown_busy_seconds(series, 2) < 1
    each, smooth = (series.busiest_over_mean(2, span) for span in (1, 5))
    assert each[0] == pytest.approx(2 * 59.99 / (59.99 + 0.09))
    assert [each[-1], smooth[-1]] == pytest.approx([2 * 0.11 / 0.2] * 2)
    assert smooth[4] < 1.3
    epochs[3]["slots"] = []
    series = EpochSeries.of(epochs)
    for slots in (2, 40):
        assert plots_balance.load_over_time(series, slots, [3, 4]).startswith("<svg")


def test_text_from_outside_is_escaped(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    plan = GridPlan.initial(1000, 1000, 4)
    config = config_of(source={"kind": "files", "path": f"/data/{bad}", "id": "&lt;"})
    epochs = [
        epoch_of(
            0, plan, received=4001, quarantined=1, reasons={bad: 1}, control_rejected={bad: 2},
            decision={"reason": bad, "changes": [{"kind": bad}]},
        )
    ]  # fmt: skip
    page = written(tmp_path, config, plan, epochs)
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert "&amp;lt;" in page
    assert "nothing lost, 1 quarantined" in page


def test_many_epochs_become_at_most_400_points() -> None:
    plan = GridPlan.initial(10, 10, 2)
    epochs = [epoch_of(n, plan) for n in range(1003)]
    series = EpochSeries.of(epochs)
    assert len(series) <= MOST_POINTS
    assert series.processed.sum() == sum(m["processed"] for m in epochs)
    assert series.edges.size == series.numbers.size == len(series) + 1
    assert series.numbers[-1] == 1003


def test_a_long_pause_is_left_out_of_the_axis() -> None:
    plan = GridPlan.initial(10, 10, 2)
    epochs = [epoch_of(n, plan) for n in range(6)]
    for m in epochs[3:]:
        m["opened"] += 86_400
        m["committed"] += 86_400
    series = EpochSeries.of(epochs)
    assert [round(seconds) for _, seconds in series.pauses] == [86_400]
    assert series.edges[-1] == pytest.approx(11.0)


def test_stages_add_up_to_the_epoch_whatever_was_timed() -> None:
    plan = GridPlan.initial(10, 10, 2)
    odd = {"open_seconds": 9.0, "job_seconds": 9.0, "route_seconds": 99.0}
    for about in ({}, odd, {"open_seconds": 0.2, "job_seconds": 1.0}):
        series = EpochSeries.of([epoch_of(n, plan, **about) for n in range(3)])
        stages = series.stages()
        assert all((seconds >= 0).all() for seconds in stages.values())
        assert np.allclose(sum(stages.values()), 1.5)


def test_slots_that_gave_no_report_are_told_from_idle_ones() -> None:
    plan = GridPlan.initial(10, 10, 2)
    epochs = [epoch_of(0, plan), epoch_of(1, plan)]
    epochs[1]["slots"] = epochs[1]["slots"][:1]
    busy = EpochSeries.of(epochs).busy(2)
    assert np.ma.getmaskarray(busy).tolist() == [[False, False], [False, True]]


def test_a_queue_of_queries_that_ended_is_named_by_its_peak(tmp_path: Path) -> None:
    plan = GridPlan.initial(1000, 1000, 4)
    store = Store(str(tmp_path))
    for n, live in enumerate((900, 100)):
        EpochLog(store).commit(n, epoch_of(n, plan, live_queries=live))
    summary = summarised(config_of(), store)
    assert "against up to 900 standing queries" in verdict(summary, 900)


def test_neighbouring_slots_differ_in_colour() -> None:
    colours = [plots.slot_colour(slot) for slot in range(36)]
    assert len(set(colours)) == 36
