"""Windows of the engine against the oracle, without Spark: every kind of window and function, over
every plan, through plan changes, late events, restarts and silence."""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_engine_laws import LAT, LON, WHERE, Shuffling, shapes

import handmade
import windows_by_hand
from geoflux.balance.policy import Static
from geoflux.config import Config
from geoflux.engine.control_files import ControlFiles
from geoflux.engine.engine import Engine
from geoflux.engine.files import FileEvents
from geoflux.engine.inline import drain, run_epoch
from geoflux.engine.setting import Setting
from geoflux.engine.verify import Verification, verified
from geoflux.plan import GridPlan, ReplicatedPlan
from geoflux.state.seal import Seal
from geoflux.state.store import Store

PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
WORLD = {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90}
WRAPPING = {"type": "rectangle", "west": 90, "south": -90, "east": 60, "north": 90}
FUNCTIONS = [
    "count", "sum(speed)", "avg(speed)", "min(speed)", "max(speed)", "stddev(speed)",
    "stddev_pop(speed)", "median(speed)", "quantile(speed, 0.95)", "quantile(speed, 0)",
    "distinct(speed)", "distinct(kind)", "distinct(object)", "sum(n)", "avg(n)", "stddev(n)",
    "max(n)", "quantile(n, 0.3)", "distinct(n)",
]  # fmt: skip
SPEEDS = st.one_of(
    st.none(), st.floats(-40, 40),
    st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 1.0, 1e-9, -0.0, 0.0, -3.5, 5e-324, 1e300,
                     math.nan, math.inf, -math.inf]),
)  # fmt: skip
NUMBERS = st.one_of(  # for Shuffling: anything, or splits (2, 5) and merges (1, 4) in turn
    st.lists(st.integers(0, 99), min_size=1, max_size=8),
    st.sampled_from([[2, 1], [2, 5, 1, 4], [5, 3, 4], [2, 2, 2, 1, 1, 1]]),
)


@st.composite
def aggregates(draw: st.DrawFn) -> dict[str, Any]:
    functions = draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=4, unique=True))
    if draw(st.integers(0, 2)) == 0:
        window = draw(st.integers(1, 6))
        asked: dict[str, Any] = {"functions": functions, "window": window}
        if draw(st.booleans()):
            asked["slide"] = draw(st.integers(1, window))
        return asked
    lengths = ["1500 ms", "7s", "10s", "45s", "2 minutes"]
    window = draw(st.sampled_from(lengths))
    asked = {"functions": functions, "window": window}
    if draw(st.booleans()):
        slides = ["700 ms", *(["3s", "5s"] if window != "1500 ms" else [])]
        asked["slide"] = draw(st.sampled_from([*slides, *lengths[: lengths.index(window) + 1]]))
    if draw(st.integers(0, 2)) == 0:
        asked["empty"] = draw(st.booleans())
    return asked


@st.composite
def records(draw: st.DrawFn, most: int = 12) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, most))):
        name = f"q{draw(st.integers(0, 8))}"
        if draw(st.integers(0, 5)) == 0:
            out.append({"op": "terminate", "id": name})
            continue
        shape = draw(st.one_of(st.sampled_from([WORLD, WRAPPING]), shapes()))
        record: dict[str, Any] = {"op": "register", "id": name, "shape": shape}
        if draw(st.integers(0, 4)):
            record["aggregate"] = draw(aggregates())
        if draw(st.integers(0, 2)) == 0:
            record["where"] = draw(WHERE)
        if draw(st.integers(0, 3)) == 0:
            record["valid_from"] = draw(st.integers(0, 100))
            record["valid_until"] = record["valid_from"] + draw(st.integers(0, 100))
        elif draw(st.integers(0, 3)) == 0:
            record["valid_until"] = draw(st.integers(-5, 120))
        out.append(record)
    return out


@st.composite
def events(draw: st.DrawFn) -> pa.Table:
    """Roughly in order of time, with late ones, and with several at one instant and id."""
    of_text = draw(st.booleans())
    objects: Any = st.sampled_from([*"abcd", None]) if of_text else st.integers(-2, 5)
    span, disorder = draw(st.sampled_from([(4, 1), (12, 0), (150, 5), (150, 40), (150, 150)]))
    rows = []
    for _ in range(draw(st.integers(1, 60))):
        time = draw(st.integers(0, span)), draw(st.integers(-disorder, disorder))
        rows.append(
            {
                "order": time[0],
                "id": draw(st.integers(0, 6)), "lon": draw(LON), "lat": draw(LAT),
                "time": max(sum(time), -3) + draw(st.sampled_from([0, 0, 0, 0.25])),
                "speed": draw(SPEEDS), "kind": draw(st.sampled_from(["taxi", "bus", None])),
                "object": draw(objects),
                "n": draw(st.one_of(st.none(), st.sampled_from([-7, 0, 1, 2**53 + 1, 2**62 + 1]))),
            }
        )  # fmt: skip
    rows.sort(key=lambda row: row["order"])
    floats = {name: pa.float64() for name in ("lon", "lat", "time", "speed")}
    types = {"id": pa.int64(), **floats, "kind": pa.string(), "n": pa.int64()}
    types["object"] = pa.string() if of_text else pa.int64()
    return pa.Table.from_pylist(rows, pa.schema(list(types.items())))


@dataclass
class Run:
    """A run in a folder of its own; ``tick`` moves its clock."""

    folder: Path
    config: dict[str, Any]
    plan: Any
    policy: Any
    now: float = 1000.0
    seal: Seal | None = None
    wanted: Any = None

    def start(self, table: pa.Table, queries: list[dict[str, Any]]) -> None:
        pq.write_table(table, self.folder / "events.parquet")
        (self.folder / "queries.ndjson").write_text("")
        self.tell(queries)
        types = dict(zip(table.schema.names, table.schema.types, strict=True))
        self.source = FileEvents(
            self.folder / "events.parquet", self.folder / "out/source.log", complete=True, types=types
        )  # fmt: skip
        self.end = self.source.latest(0, None)
        control = ControlFiles(self.folder / "queries.ndjson", self.folder / "out/control.log")
        given = {"space": {"grid": [20, 10]}, "source": {"kind": "files", "path": "/"}}
        self.setting = Setting(
            Config.from_dict(given | self.config), Store(str(self.folder / "out"), self.seal),
            self.source.schema(), control, self.policy, lambda: self.now,
            self.wanted,
        )  # fmt: skip
        self.recover()

    def tell(self, queries: list[dict[str, Any]]) -> None:
        with open(self.folder / "queries.ndjson", "a") as file:
            file.writelines(json.dumps(record) + "\n" for record in queries)

    def recover(self) -> None:
        self.engine = Engine.recovered(self.setting, lambda: self.plan)

    def epoch(self, number: int, span: tuple[int, int], final: bool = False) -> None:
        run_epoch(self.engine, self.source, number, span, final=final)

    def verified(self) -> Verification:
        return verified(self.setting, self.source)

    def windows(self) -> Counter[Any]:
        return windows_by_hand.written(self.folder / "out")


def drained(
    table: pa.Table, queries: list[dict[str, Any]], config: dict[str, Any], plan: Any,
    policy: Any = None, epoch_events: int = 7,
) -> Counter[Any]:  # fmt: skip
    """The windows of a run that was found to be right."""
    with tempfile.TemporaryDirectory() as name:
        run = Run(Path(name), config, plan, policy or Static())
        run.start(table, queries)
        drain(run.engine, run.source, epoch_events)
        report = run.verified()
        assert report.is_clean, report
        assert report.events == len(table)
        found = run.windows()
        assert report.windows == found.total()
        return found


@settings(max_examples=30, phases=PHASES, deadline=None)
@given(
    records(), events(), NUMBERS, st.sampled_from(["", "0s", "30s"]), st.sampled_from([4, 22]), st.sampled_from(["rows", "counts"]),
)  # fmt: skip
def test_windows_equal_brute_force_on_every_plan_and_through_changes(
    queries: list[dict[str, Any]], table: pa.Table, numbers: list[int], lateness: str,
    slots: int, mode: str,
) -> None:  # fmt: skip
    def config(slots: int) -> dict[str, Any]:
        return {"engine": {"slots": slots, "lateness": lateness}, "output": {"matches": mode}}

    one = drained(table, queries, config(1), GridPlan.initial(20, 10, 1))
    many = drained(table, queries, config(slots), GridPlan.initial(20, 10, slots))
    copies = drained(table, queries, config(4), ReplicatedPlan(20, 10, 4))
    shuffled = drained(
        table, queries, config(slots), GridPlan.initial(20, 10, slots), Shuffling(numbers)
    )
    assert bits(one) == bits(many) == bits(copies) == bits(shuffled)


def bits(windows: Counter[Any]) -> Counter[Any]:
    """With values as texts: all NaN are one, and -0.0 is not 0.0."""
    return Counter({(*row[:4], repr(row[4]), row[5]): n for row, n in windows.items()})


@settings(max_examples=20, phases=PHASES, deadline=None)
@given(records(), events(), st.integers(1, 60))
def test_without_lateness_the_cut_into_epochs_does_not_matter(
    queries: list[dict[str, Any]], table: pa.Table, epoch_events: int
) -> None:
    found = [
        drained(table, queries, {"engine": {"slots": 4}}, GridPlan.initial(20, 10, 4), None, size)
        for size in (epoch_events, 60)
    ]
    # Which windows without events are reported depends on the first epoch: on what is known then.
    filled = [Counter({r: n for r, n in bits(rows).items() if r[5]}) for rows in found]
    assert filled[0] == filled[1]


class Workers:
    """Several workers with a memory each: any of them may get any slot, and has then missed the
    epochs in between."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._memories: defaultdict[Any, OrderedDict[Any, Any]] = defaultdict(OrderedDict)

    def become(self, worker: int) -> None:
        for module in ("execute", "slot_windows"):
            memory = self._memories[worker, module]
            self._patch.setattr(f"geoflux.engine.{module}._cache", memory)


class Crash(Exception):
    """What ends an attempt."""


def crash(*_: Any) -> None:
    raise Crash


def crashing(run: Run, number: int, span: tuple[int, int], late: bool) -> None:
    """An epoch that is begun and not finished, or finished but not committed."""
    if not late:
        run.engine.open(number)
    else:
        run.engine.commit = crash  # type: ignore[method-assign]
        with pytest.raises(Crash):
            run.epoch(number, span)
    run.recover()


@settings(max_examples=30, phases=PHASES, deadline=None)
@given(
    st.lists(records(5), min_size=2, max_size=8), events(), st.sampled_from([1, 4]),
    NUMBERS, st.sampled_from(["", "0s", "30s"]),
    st.dictionaries(st.integers(0, 9), st.sampled_from(["restart", "opened", "executed", "final"])),
    st.sampled_from(["", "5s"]), st.lists(st.integers(0, 20), min_size=8, max_size=8),
    st.sampled_from([(1, 2), (4, 3), (1024, 16)]), st.lists(st.integers(0, 2), min_size=1),
)  # fmt: skip
def test_windows_while_queries_come_and_go_with_restarts_and_silence(
    batches: list[list[dict[str, Any]]], table: pa.Table, slots: int, numbers: list[int],
    lateness: str, incidents: dict[int, str], idle: str, ticks: list[int],
    limits: tuple[int, int], workers: list[int],
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.operators.pubsub._SMALL", limits[0])
        patch.setattr("geoflux.operators.pubsub._FOLD_AFTER", limits[1])
        patch.setattr("geoflux.operators.window_state._FOLD_AFTER", limits[1])
        engine = {"slots": slots, "lateness": lateness, "idle": idle}
        config = {"engine": engine, "run": {"mode": "follow"}}
        run = Run(Path(name), config, GridPlan.initial(20, 10, slots), Shuffling(numbers))
        run.start(table, [])
        memories = Workers(patch)
        number = 0
        for k, batch in enumerate(batches):
            memories.become(workers[k % len(workers)])
            run.now += ticks[k]
            run.tell(batch)
            # Every third epoch has no events, so that the source is silent for a while.
            first, last = (run.end * min(j - j // 3, 6) // 6 for j in (k, k + 1))
            happens = incidents.get(k)
            if happens == "final":
                run.epoch(number, (first, first), final=True)
                number += 1
            elif happens == "restart":
                run.recover()
            elif happens is not None:
                crashing(run, number, (first, last), late=happens == "executed")
            run.epoch(number, (first, last))
            number += 1
        report = run.verified()
        assert report.is_clean, report


def test_what_two_halves_inherit_is_not_counted_twice_when_they_merge(tmp_path: Path) -> None:
    """The west cuts a window of events off what both halves inherited, the east does not."""
    queries = [
        {"op": "register", "id": name, "aggregate": {"functions": ["count"], "window": window},
         "shape": {"type": "rectangle", "west": west, "south": -90, "east": west + 9, "north": 90}}
        for name, window, west in (("west", 2, -180), ("east", 100, 0))
    ]  # fmt: skip
    places = [-175, -175, -175, 5, -175, 5, -175, -175]
    rows = [{"id": k, "lon": lon, "lat": 0, "time": k} for k, lon in enumerate(places)]
    config = {"engine": {"slots": 1, "lateness": "0s"}}
    run = Run(tmp_path, config, GridPlan.initial(20, 10, 1), Shuffling([2, 1]))
    run.start(pa.Table.from_pylist(rows), queries)
    with pytest.MonkeyPatch.context() as patch:
        workers = Workers(patch)
        for number, span in enumerate([(0, 4), (4, 6), (6, 8), (8, 8)]):
            workers.become(number)
            run.epoch(number, span, final=number == 3)
    assert run.verified().is_clean
    assert run.windows() == Counter({("west", a, b, "count", 2.0, 2): 1 for a, b in ((0, 1), (2, 4), (6, 7))})  # fmt: skip


def by_hand(tmp_path: Path, lateness: str, slots: int) -> tuple[Run, list[list[dict[str, Any]]]]:
    rows = handmade.events(400)
    rows.sort(key=lambda row: (row["time"] // 100, row["id"] * 7919 % 100))
    config = {"engine": {"slots": slots, "lateness": lateness}}
    run = Run(tmp_path, config, GridPlan.initial(20, 10, slots), Shuffling([5, 7, 12]))
    run.start(pa.Table.from_pylist(rows), windows_by_hand.asking(handmade.queries()))
    drain(run.engine, run.source, 30)
    return run, [rows[k : k + 30] for k in range(0, len(rows), 30)]


@pytest.mark.parametrize(("lateness", "seconds"), [("", None), ("0s", 0), ("1 minute", 60)])
def test_windows_by_hand(tmp_path: Path, lateness: str, seconds: int | None) -> None:
    run, epochs = by_hand(tmp_path, lateness, 4)
    queries = windows_by_hand.asking(handmade.queries())
    assert run.windows() == windows_by_hand.expected(queries, epochs, seconds)
    assert run.verified().is_clean


def test_wrong_windows_are_noticed(tmp_path: Path) -> None:
    run, _ = by_hand(tmp_path, "1 minute", 2)
    assert run.verified().late > 0
    name = max((tmp_path / "out/aggregates").glob("*.parquet"), key=lambda p: p.stat().st_size)
    right = pq.read_table(name)
    value = right.schema.get_field_index("value")
    nudged = pc.multiply(right.column("value"), 1 + 2**-52)
    for wrong in (
        right.set_column(value, right.schema.field("value"), nudged),
        right.slice(1),
        pa.concat_tables([right, right.slice(0, 1)]),
    ):
        pq.write_table(wrong, name)
        report = run.verified()
        assert not report.is_clean
        assert report.wrong_windows > 0
        assert (report.missing, report.extra) == (0, 0)
        assert "should be" in report.examples[0]
    pq.write_table(right, name)
    assert run.verified().is_clean
