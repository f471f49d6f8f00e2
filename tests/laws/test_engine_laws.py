"""The engine against the oracle, without Spark: every shape, plan, filter; through plan changes."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from geoflux.balance.policy import Decision, Observed, Policy, Static
from geoflux.config import Config
from geoflux.engine import execute
from geoflux.engine.control_files import ControlFiles
from geoflux.engine.engine import Engine
from geoflux.engine.files import FileEvents
from geoflux.engine.inline import drain, run_epoch
from geoflux.engine.setting import Setting
from geoflux.engine.verify import verified
from geoflux.plan import GridPlan, Merge, Move, ReplicatedPlan, Split
from geoflux.state.store import Store

LON = st.one_of(
    st.sampled_from([-180.0, 180.0, 0.0, 90.0, -179.5, 179.5, 36.0]), st.floats(-180, 180)
)
LAT = st.one_of(st.sampled_from([-90.0, 90.0, 0.0, 45.0, 18.0]), st.floats(-90, 90))


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["rectangle", "rectangle", "circle", "Polygon", "MultiPolygon"]))
    if kind == "rectangle":
        low, high = sorted([draw(LAT), draw(LAT)])
        return {"type": kind, "west": draw(LON), "south": low, "east": draw(LON), "north": high}
    if kind == "circle":
        radius = draw(st.one_of(st.floats(0, 25e6), st.sampled_from([0.0, 1e5, 3e6])))
        return {"type": kind, "lon": draw(LON), "lat": draw(LAT), "radius_m": radius}
    west, south = draw(st.floats(-170, 100)), draw(st.floats(-80, 40))
    wide, high = draw(st.floats(0.01, 60)), draw(st.floats(0.01, 40))
    ring = [[west, south], [west + wide, south], [west + wide / 2, south + high], [west, south]]
    hole = [
        [west + wide * a, south + high * b]
        for a, b in ((0.4, 0.1), (0.5, 0.5), (0.6, 0.1), (0.4, 0.1))
    ]
    if kind == "Polygon":
        return {"type": kind, "coordinates": [ring, hole] if draw(st.booleans()) else [ring]}
    other = [[x + wide + 1, y] for x, y in ring]
    return {"type": kind, "coordinates": [[ring, hole], [other]]}


WHERE = st.sampled_from(["speed > 10", "kind = 'taxi'", "speed > 5 and kind in ('bus', 'taxi')",
                         "not (speed <= 3) or kind is null", "lat > 0 and speed < 30.5"])  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 25))):
        name = f"q{draw(st.integers(0, 15))}"
        if draw(st.integers(0, 5)) == 0:
            out.append({"op": "terminate", "id": name})
            continue
        record: dict[str, Any] = {
            "op": "register",
            "id": name,
            "user": "u",
            "shape": draw(shapes()),
        }
        if draw(st.booleans()):
            record["where"] = draw(WHERE)
        if draw(st.integers(0, 3)) == 0:
            record["valid_from"] = draw(st.integers(0, 100))
            record["valid_until"] = record["valid_from"] + draw(st.integers(0, 100))
        out.append(record)
    return out


@st.composite
def events(draw: st.DrawFn) -> list[dict[str, Any]]:
    count = draw(st.integers(1, 60))
    return [
        {
            "id": draw(st.integers(0, 30)), "lon": draw(LON), "lat": draw(LAT),
            "time": draw(st.integers(0, 150)),
            "speed": draw(st.one_of(st.none(), st.floats(0, 40))),
            "kind": draw(st.sampled_from(["taxi", "bus", None])),
        }
        for _ in range(count)
    ]  # fmt: skip


class Shuffling(Policy):
    """A policy that changes the plan after every epoch, by a fixed list of numbers."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def decide(self, seen: Observed, plan: GridPlan, state: dict[str, Any]) -> Any:
        n = self._numbers[seen.epoch % len(self._numbers)]
        p = plan.partitions[n % len(plan.partitions)]
        to = n % plan.slots
        if n % 3 == 0:
            return Decision((Move(p.id, to),), "move"), state
        for other in plan.partitions if n % 3 == 1 else ():
            try:
                plan.apply(Merge(p.id, other.id, to))
            except ValueError:
                continue
            return Decision((Merge(p.id, other.id, to),), "merge"), state
        if p.columns > 1:
            cut = p.col0 + 1 + n % (p.columns - 1)
            return Decision((Split(p.id, "columns", cut, to, p.slot),), "split"), state
        return Decision((), "nothing to cut"), state


def run(folder: Path, config: Config, plan: Any, policy: Any, epoch_events: int) -> dict[str, Any]:
    source = FileEvents(
        folder / "events.ndjson", folder / "out/source.log", complete=True,
        types={"lon": pa.float64(), "lat": pa.float64(), "speed": pa.float64(), "kind": pa.string()},
    )  # fmt: skip
    control = ControlFiles(folder / "queries.ndjson", folder / "out/control.log", complete=True)
    source.latest(0, None)
    setting = Setting(config, Store(str(folder / "out")), source.schema(), control, policy)
    engine = Engine.recovered(setting, lambda: plan)
    manifests = drain(engine, source, epoch_events)
    report = verified(setting, source)
    return {"report": report, "manifests": manifests}


def matches(folder: Path, kind: str = "matches") -> Counter[Any]:
    found: Counter[Any] = Counter()
    for name in sorted((folder / "out" / kind).glob("*.parquet")):
        for row in pq.read_table(name).to_pylist():
            if kind == "matches":
                found[row["query_id"], row["event_id"]] += 1
            else:
                found[row["query_id"]] += row["count"]
    return found


def config_of(mode: str, slots: int) -> Config:
    return Config.from_dict(
        {
            "space": {"grid": [20, 10]}, "source": {"kind": "files", "path": "/"},
            "engine": {"slots": slots}, "output": {"matches": mode},
        }
    )  # fmt: skip


def write(folder: Path, queries: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    (folder / "queries.ndjson").write_text("".join(json.dumps(q) + "\n" for q in queries))
    (folder / "events.ndjson").write_text("".join(json.dumps(r) + "\n" for r in rows))


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    records(),
    events(),
    st.sampled_from([1, 2, 4, 22]),
    st.lists(st.integers(0, 99), min_size=1, max_size=8),
)
def test_matches_equal_brute_force_on_every_plan_and_through_changes(
    queries: list[dict[str, Any]], rows: list[dict[str, Any]], slots: int, numbers: list[int]
) -> None:
    results = []
    for plan, policy in (
        (GridPlan.initial(20, 10, slots), Static()),
        (ReplicatedPlan(20, 10, slots), Static()),
        (GridPlan.initial(20, 10, slots), Shuffling(numbers)),
    ):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, queries, rows)
            report = run(folder, config_of("rows", slots), plan, policy, 7)["report"]
            assert report.is_clean, report
            results.append(matches(folder))
    assert results[0] == results[1] == results[2]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, queries, rows)
        counted = run(
            folder, config_of("counts", slots), GridPlan.initial(20, 10, slots), Static(), 9
        )
        assert counted["report"].is_clean, counted["report"]
        by_query: Counter[Any] = Counter()
        for (query, _), count in results[0].items():
            by_query[query] += count
        assert matches(folder, "counts") == by_query


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(records(), min_size=2, max_size=8), events(), st.sampled_from([1, 4]),
    st.lists(st.integers(0, 99), min_size=1, max_size=8), st.sampled_from(["", "0s", "30s"]),
    st.sampled_from([(1, 2), (4, 3), (1024, 16)]), st.sets(st.integers(0, 7)),
)  # fmt: skip
def test_control_while_it_runs_with_plan_changes_and_restarts(
    batches: list[list[dict[str, Any]]], rows: list[dict[str, Any]], slots: int,
    numbers: list[int], lateness: str, limits: tuple[int, int], restarts: set[int],
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.operators.pubsub._SMALL", limits[0])
        patch.setattr("geoflux.operators.pubsub._FOLD_AFTER", limits[1])
        folder = Path(name)
        write(folder, [], rows)
        config = Config.from_dict(
            {
                "space": {"grid": [20, 10]}, "source": {"kind": "files", "path": "/"},
                "engine": {"slots": slots, "lateness": lateness}, "run": {"mode": "follow"},
            }
        )  # fmt: skip
        source = FileEvents(
            folder / "events.ndjson", folder / "out/source.log", complete=True,
            types={"lon": pa.float64(), "lat": pa.float64(), "speed": pa.float64(), "kind": pa.string()},
        )  # fmt: skip
        end = source.latest(0, None)
        control = ControlFiles(folder / "queries.ndjson", folder / "out/control.log")
        setting = Setting(
            config, Store(str(folder / "out")), source.schema(), control, Shuffling(numbers)
        )
        plan = GridPlan.initial(20, 10, slots)
        engine = Engine.recovered(setting, lambda: plan)
        for epoch, batch in enumerate(batches):
            with open(folder / "queries.ndjson", "a") as file:
                file.writelines(json.dumps(record) + "\n" for record in batch)
            if epoch in restarts:
                engine.open(epoch)  # and crash
                engine = Engine.recovered(setting, lambda: plan)
            cuts = [end * k // len(batches) for k in (epoch, epoch + 1)]
            used = {partition.id for partition in engine.plan.partitions}
            run_epoch(engine, source, epoch, (cuts[0], cuts[1]))
            assert {h[2] for h in execute._cache if h[0] == setting.store.root} == used
        report = verified(setting, source)
        assert report.is_clean, report
        assert report.events == len(rows)


def test_a_broken_index_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [
        {
            "op": "register",
            "id": "q",
            "shape": {"type": "rectangle", "west": 0, "south": 0, "east": 9, "north": 9},
        }
    ]
    write(tmp_path, queries, [{"id": 1, "lon": 5.0, "lat": 5.0, "time": 0}])
    monkeypatch.setattr("geoflux.operators.matching.LayerMatcher.pairs", lambda *_: iter(()))
    report = run(tmp_path, config_of("rows", 2), GridPlan.initial(20, 10, 2), Static(), 10)[
        "report"
    ]
    assert (report.missing, report.extra) == (1, 0)
