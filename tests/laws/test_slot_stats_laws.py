"""Statistics that slots keep while a run goes, against brute force: through changes of the plan,
queries that come and end, retention, restarts, crashes, and workers that forget."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_laws import records
from test_retention_laws import (
    PHASES,
    RETENTIONS,
    events,
    is_in_degrees,
    shapes_over_the_antimeridian,
)
from test_window_laws import Crash, Run, Workers, crash, crashing
from watched_run import COLUMNS, NOWHERE, ROWS, crash_before_the_manifest, table_of

from geoflux.balance.policy import Decision, Observed, Orders, Policy
from geoflux.balance.requests import Ask, Receiver
from geoflux.balance.tuning import Tuning
from geoflux.engine.engine import Manifest
from geoflux.engine.slot_stats import Weights
from geoflux.plan import GridPlan, Merge, Move, Partition, Split, plan_from_dict
from geoflux.state.segments import read_segment
from geoflux.stats import KnownQueries, TrioStat, inherited, stats_from_arrays
from geoflux.stats import trio_kernels as k

Lines = npt.NDArray[np.float64]
Box = tuple[int, int, int, int]
"""Columns and rows of cells: col0, row0, col1, row1, all included."""
SHARED = (k.N, k.LAST_N, k.WORK, k.N_IN, k.WORK_IN, k.N_OUT)
CUMULATIVE = (k.N, k.Q, k.R, k.WORK, k.LAST_N)


class Restless(Policy):
    """Closes a round every so many epochs, asks a slot in the others, and changes the plan after
    most epochs, several times; by a list of numbers. It uses none of the answers."""

    def __init__(self, numbers: list[list[int]], every: int, memory: float) -> None:
        self.tuning = Tuning(memory=memory)
        self._numbers = numbers
        self._every = every

    def orders(self, now: float, state: Mapping[str, Any]) -> Orders:
        epoch = state.get("epochs", 0)
        marks = state.get("marks", [0, 0])
        asks = (Ask(epoch % 2, (Receiver(0, 0.0),)),)
        return Orders((epoch + 1) % self._every == 0, asks, (marks[0], marks[1]))

    def decide(self, seen: Observed, plan: GridPlan, state: dict[str, Any]) -> Any:
        marks = state.get("marks", [0, 0])
        if seen.closed:
            marks = [marks[1], seen.next_number]
        changes: list[Any] = []
        for number in self._numbers[seen.epoch % len(self._numbers)]:
            for change in _change(plan, number):
                with contextlib.suppress(ValueError, KeyError):
                    plan = plan.apply(change)
                    changes.append(change)
        state = {"epochs": state.get("epochs", 0) + 1, "marks": marks}
        return Decision(tuple(changes), "restless"), state


def _change(plan: GridPlan, number: int) -> Iterable[Any]:
    """A change, or a split that is taken back at once, whole or in another way."""
    p, to = plan.partitions[number % len(plan.partitions)], number % plan.slots
    columns = Split(p.id, "columns", p.col0 + 1 + number % max(p.columns - 1, 1), to, p.slot)
    rows = Split(p.id, "rows", p.row0 + 1 + number % max(p.rows - 1, 1), p.slot, to)
    kind = number % 6
    if kind == 0:
        return [Move(p.id, to)]
    if kind == 1:
        return [Merge(p.id, other.id, to) for other in plan.partitions][:: number % 2 or -1]
    if kind == 2:
        return [columns, Merge(plan.next_id, plan.next_id + 1, to)]
    if kind == 3:
        low = plan.next_id  # cut in four, and put together in two the other way
        mine = Split(low, "rows", rows.at, to, p.slot), Split(low + 1, "rows", rows.at, to, to)
        return [columns, *mine, Merge(low + 2, low + 4, to), Merge(low + 3, low + 5, p.slot)]
    return [columns] if kind == 4 else [rows]


@dataclass(frozen=True)
class Query:
    came: int
    parts: tuple[Box, ...]
    went: int | None = None


@dataclass(frozen=True)
class Event:
    came: int
    column: int
    row: int
    expired: int | None = None


def cell(value: float, low: float, high: float, count: int) -> int:
    return min(max(int((value - low) * (count / (high - low))), 0), count - 1)


def cells(x0: float, y0: float, x1: float, y1: float) -> tuple[Box, ...]:
    """The cells of a box; two boxes of them where it goes over the antimeridian."""
    spans = [(x0, x1)] if x0 <= x1 else [(x0, 180.0), (-180.0, x1)]
    rows = cell(y0, -90, 90, ROWS), cell(y1, -90, 90, ROWS)
    return tuple(
        (cell(west, -180, 180, COLUMNS), rows[0], cell(east, -180, 180, COLUMNS), rows[1])
        for west, east in spans
    )


def clipped(query: Query, p: Partition) -> Box | None:
    """The part of a query that lies in a partition, as one box."""
    parts = [
        (max(c0, p.col0), max(r0, p.row0), min(c1, p.col1 - 1), min(r1, p.row1 - 1))
        for c0, r0, c1, r1 in query.parts
    ]
    inside = [b for b in parts if b[0] <= b[2] and b[1] <= b[3]]
    if not inside:
        return None
    return min(b[0] for b in inside), inside[0][1], max(b[2] for b in inside), inside[0][3]


def spread(queries: Iterable[Query], p: Partition) -> tuple[Lines, Lines]:
    """Per row, then per column: queries that begin there, and that reach into it."""
    starts, spans = np.zeros(p.rows + p.columns), np.zeros(p.rows + p.columns)
    for query in queries:
        box = clipped(query, p)
        if box is not None:
            col0, row0, col1, row1 = box
            rows = range(row0 - p.row0, row1 - p.row0 + 1)
            columns = range(p.rows + col0 - p.col0, p.rows + col1 - p.col0 + 1)
            for lines in (rows, columns):
                starts[lines[0]] += 1
                spans[lines[1:]] += 1
    return starts, spans


def counted(events: Iterable[Event], p: Partition, weight: Callable[[Event], float]) -> Lines:
    """Per row, then per column of a partition: what the events in it come to."""
    lines = np.zeros(p.rows + p.columns)
    for event in events:
        if p.col0 <= event.column < p.col1 and p.row0 <= event.row < p.row1:
            lines[event.row - p.row0] += weight(event)
            lines[p.rows + event.column - p.col0] += weight(event)
    return lines


def per_line(stat: TrioStat, what: int) -> Lines:
    """A number of each row, then of each column, by itself."""
    axes = [stat.along("rows")[:, what], stat.along("columns")[:, what]]
    if what in CUMULATIVE:
        axes = [np.diff(axis, prepend=0.0) for axis in axes]
    return np.concatenate(axes)


@dataclass
class Counting:
    """A run, and all that happened in it, to be counted by hand."""

    run: Run
    rows: list[dict[str, Any]]
    retains: bool
    memory: float
    weights: Weights
    plans: list[GridPlan] = field(default_factory=list)
    born: dict[int, int] = field(default_factory=dict)
    """The epoch in which each partition was first there."""
    estimated: dict[int, frozenset[str]] = field(default_factory=dict)
    """Axes of each partition on which points were shared out."""
    queries: dict[int, Query] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    closings: list[int] = field(default_factory=list)
    done: list[float] = field(default_factory=list)
    """The work of each epoch, as the slots reported it."""
    named: list[set[str]] = field(default_factory=list)

    def epoch(self, number: int, span: tuple[int, int]) -> None:
        """One epoch, and all that must hold after it."""
        earlier = self._on_disk()
        self.run.epoch(number, span)
        manifest = self.run.engine.manifest(number)
        self._note(number, span, manifest)
        stats = self._read(manifest)
        plan = self.plans[-1]
        assert set(stats) == {p.id for p in plan.partitions}
        for p in plan.partitions:
            assert stats[p.id].box == (p.col0, p.row0, p.col1, p.row1)
            self._check_queries(number, p, stats[p.id])
            self._check_points(number, p, stats[p.id])
        self._check_totals(number, stats)
        self._check_reports(manifest, stats)
        self._check_garbage(earlier)

    def _note(self, number: int, span: tuple[int, int], manifest: Manifest) -> None:
        store = self.run.setting.store
        plan = plan_from_dict(store.read_json(f"plans/{manifest['plan']:08d}.json"))
        assert isinstance(plan, GridPlan)
        for p in plan.partitions:
            if p.id not in self.born:
                self.born[p.id] = number
                self.estimated[p.id] = self._axes_lost(p)
        self.plans.append(plan)
        self._note_queries(number)
        for row in self.rows[slice(*span)]:
            if row["lat"] != NOWHERE:
                place = cell(row["lon"], -180, 180, COLUMNS), cell(row["lat"], -90, 90, ROWS)
                self.events[row["serial"]] = Event(number, *place)
        if self.retains:
            self._note_expiry(number, manifest)
        if (number + 1) % self.run.policy._every == 0:
            self.closings.append(number)
        self.done.append(self._work(manifest))
        gone = {name for name, *_ in manifest["expired_segments"]}
        stats = {ref[1] for refs in manifest["stats"].values() for ref in refs}
        self.named.append({held[0] for held in manifest["held"]} | stats | gone)

    def _work(self, manifest: Manifest) -> float:
        """What the slots reported; in comparisons, of which some may count several times."""
        for slot in manifest["slots"]:
            events = self.weights.event * slot["processed"]
            assert slot["checks"] + events <= slot["work"]
            told = self.weights.query * slot["queries"]
            assert slot["work"] <= slot["checks"] * self.weights.refined + events + told
        return sum(slot["work"] for slot in manifest["slots"])

    def _axes_lost(self, p: Partition) -> frozenset[str]:
        """The axes on which a new partition knows its points by estimate only."""
        lost: set[str] = set()
        for old in self.plans[-1].partitions if self.plans else ():
            columns = range(max(p.col0, old.col0), min(p.col1, old.col1))
            rows = range(max(p.row0, old.row0), min(p.row1, old.row1))
            if columns and rows:
                lost |= self.estimated[old.id]
                lost |= {"rows"} if len(columns) < old.columns else set()
                lost |= {"columns"} if len(rows) < old.rows else set()
        return frozenset(lost)

    def _note_queries(self, number: int) -> None:
        live = {row["number"]: row for row in self.run.engine.catalogue.live_rows().to_pylist()}
        for name, query in self.queries.items():
            if query.went is None and name not in live:
                self.queries[name] = Query(query.came, query.parts, number)
        for name in sorted(set(live) - set(self.queries)):
            edges = [live[name][edge] for edge in ("x0", "y0", "x1", "y1")]
            self.queries[name] = Query(number, cells(*edges))

    def _note_expiry(self, number: int, manifest: Manifest) -> None:
        store, left = self.run.setting.store, set()
        for held in manifest["held"]:
            left |= set(read_segment(store, held[0]).columns["column.serial"].to_pylist())
        assert left <= set(self.events)
        for serial, event in self.events.items():
            if event.expired is None and serial not in left:
                self.events[serial] = Event(event.came, event.column, event.row, number)

    def _read(self, manifest: Manifest) -> dict[int, TrioStat]:
        """What the slots saved; the manifest's references are those of the *next* plan."""
        refs = {tuple(ref) for refs in manifest["stats"].values() for ref in refs}
        found: dict[int, TrioStat] = {}
        for kind, segment, partition in refs:
            assert kind == "stats"
            assert partition not in found
            arrays = read_segment(self.run.setting.store, segment).arrays("trio.")
            found[partition] = stats_from_arrays(arrays)[partition]
        return found

    @property
    def last(self) -> int:
        """The epoch that closed the last round."""
        return self.closings[-1] if self.closings else -1

    @property
    def before(self) -> int:
        return self.closings[-2] if len(self.closings) > 1 else -1

    def _check_queries(self, number: int, p: Partition, stat: TrioStat) -> None:
        """Whatever was cut or merged, queries are counted exactly. A partition knows of those
        that were alive when it was made, and of those that came since."""
        known = [q for q in self.queries.values() if q.went is None or q.went > self.born[p.id]]
        ended = [q for q in known if q.went is not None and q.went > self.last]
        fields = {
            (k.Q, k.SPAN): [q for q in known if q.came <= self.last and (not q.went or q in ended)],
            (k.Q_IN, k.SPAN_IN): [q for q in known if q.came > self.last],
            (k.Q_OUT, k.SPAN_OUT): ended,
        }
        for names, expected in fields.items():
            for name, lines in zip(names, spread(expected, p), strict=True):
                assert per_line(stat, name).tolist() == lines.tolist(), (number, p, name)
        live = spread((q for q in known if q.went is None), p)
        for (now, come, gone), lines in zip(
            ((k.Q, k.Q_IN, k.Q_OUT), (k.SPAN, k.SPAN_IN, k.SPAN_OUT)), live, strict=True
        ):
            found = per_line(stat, now) + per_line(stat, come) - per_line(stat, gone)
            assert found.tolist() == lines.tolist(), (number, p, now)
        starts, spans = spread((q for q in known if self.before < q.came <= self.last), p)
        received = per_line(stat, k.R) - per_line(stat, k.LAST_N)
        assert received == pytest.approx(starts, abs=1e-6)
        assert per_line(stat, k.PRE_SPAN).tolist() == spans.tolist(), (number, p)

    def _expected(self, number: int) -> dict[int, Callable[[Event], float]]:
        """What each event counts in each field. What expired with an epoch is counted out in the
        next one; without retention points fade, and are never counted out."""
        last, before = self.last, self.before

        def points(e: Event) -> float:
            if not self.retains:
                rounds = [c for c in self.closings if c >= e.came]
                return 0.5 ** (len(rounds) - 1) if rounds else 0.0
            return e.came <= last and (e.expired is None or e.expired >= last)

        return {
            k.N: points,
            k.LAST_N: lambda e: before < e.came <= last,
            k.N_IN: lambda e: e.came > last,
            k.N_OUT: lambda e: self.retains and e.expired is not None
            and last <= e.expired < number,
        }  # fmt: skip

    def _check_points(self, number: int, p: Partition, stat: TrioStat) -> None:
        for name, weight in self._expected(number).items():
            found = per_line(stat, name)
            expected = counted(self.events.values(), p, weight)
            if "rows" not in self.estimated[p.id]:
                assert found[: p.rows] == pytest.approx(expected[: p.rows], abs=1e-6), (number, p)
            if "columns" not in self.estimated[p.id]:
                assert found[p.rows :] == pytest.approx(expected[p.rows :], abs=1e-6), (number, p)

    def _check_totals(self, number: int, stats: dict[int, TrioStat]) -> None:
        expected = {
            name: sum(weight(event) for event in self.events.values())
            for name, weight in self._expected(number).items()
        }
        rounds = zip([-1, *self.closings], self.closings, strict=False)
        work = 0.0
        for first, last in rounds:
            work = self.memory * work + (1 - self.memory) * sum(self.done[first + 1 : last + 1])
        expected |= {k.WORK: work, k.WORK_IN: sum(self.done[self.last + 1 :])}
        for name in SHARED:
            totals = [
                (per_line(stat, name)[: stat.height].sum(), per_line(stat, name)[stat.height :].sum())
                for stat in stats.values()
            ]  # fmt: skip
            for rows, columns in totals:
                assert rows == pytest.approx(columns, abs=1e-6), (number, name)
            assert sum(rows for rows, _ in totals) == pytest.approx(expected[name], abs=1e-6)

    def _check_reports(self, manifest: Manifest, stats: dict[int, TrioStat]) -> None:
        """The two numbers of a round that was closed, and nothing else."""
        for slot in manifest["slots"]:
            mine = [stats[p.id].total for p in self.plans[-1].partitions if p.slot == slot["slot"]]
            if manifest["epoch"] == self.last:
                assert slot["cost"] == pytest.approx(sum(trio.work for trio in mine))
                assert slot["round_received"] == pytest.approx(sum(trio.received for trio in mine))
            else:
                assert slot["cost"] is None
                assert slot["round_received"] is None

    def _on_disk(self) -> set[str]:
        folder = self.run.folder / "out/state"
        return {f"state/{f.name}" for kind in ("kept", "stats") for f in folder.glob(f"{kind}-*")}

    def _check_garbage(self, earlier: set[str]) -> None:
        """Whatever two manifests did without is gone."""
        assert self._on_disk() & earlier <= set().union(*self.named[-2:]), "never deleted"


@st.composite
def batches(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Control records of every shape, some over the antimeridian."""
    found = draw(records()) if draw(st.integers(0, 3)) else []
    for record in found:
        if record["op"] == "register" and draw(st.integers(0, 3)) == 0:
            record["shape"] = draw(shapes_over_the_antimeridian())
        if record["op"] == "register" and draw(st.integers(0, 5)) == 0:
            record["aggregate"] = {"functions": ["count"], "window": "20s"}
    return [r for r in found if r["op"] != "register" or is_in_degrees(r["shape"])]


CRASHES = ("opened", "collected", "executed", "decided")


def crashed(run: Run, number: int, span: tuple[int, int], when: str) -> None:
    """An epoch that ends in the middle: when statistics are collected but not saved, when slots
    have done their work, when all is decided."""
    if when == "decided":
        crash_before_the_manifest(run, number, span)
    elif when == "collected":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("geoflux.engine.slot_stats.SlotStats.finish", crash)
            with pytest.raises(Crash):
                run.epoch(number, span)
        run.recover()
    else:
        crashing(run, number, span, late=when == "executed")


@st.composite
def stories(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "rows": draw(events()), "slots": draw(st.sampled_from([2, 4, 7])),
        "batches": draw(st.lists(batches(), min_size=3, max_size=9)),
        "retention": draw(RETENTIONS) if draw(st.booleans()) else None,
        "changes": draw(st.lists(st.lists(st.integers(0, 99), max_size=3), min_size=1, max_size=9)),
        "every": draw(st.integers(1, 4)), "memory": draw(st.sampled_from([0.0, 0.0, 0.5])),
        "incidents": draw(st.dictionaries(
            st.integers(0, 8), st.sampled_from(["restart", *CRASHES]))),
        "workers": draw(st.lists(st.integers(0, 2), min_size=1, max_size=4)),
        "tiers": draw(st.sampled_from([(2, 2, 1 << 20), (3, 4, 20), (8, 8192, 1 << 20)])),
        "weights": Weights(draw(st.sampled_from([1.0, 3.0])), 16.0, draw(st.sampled_from([0.0, 5.0]))),
        "mode": draw(st.sampled_from(["rows", "counts"])),
    }  # fmt: skip


class Forgetful(Workers):
    """Workers whose memory of statistics is their own as well."""

    def become(self, worker: int) -> None:
        super().become(worker)
        memory = self._memories[worker, "slot_stats"]
        self._patch.setattr("geoflux.engine.slot_stats._cache", memory)


def counting(folder: Path, story: dict[str, Any]) -> Counting:
    config: dict[str, Any] = {
        "engine": {"slots": story["slots"], "lateness": "30s"}, "run": {"mode": "follow"},
        "output": {"matches": story["mode"]},
    }  # fmt: skip
    if story["retention"]:
        config["retention"] = story["retention"]
    policy = Restless(story["changes"], story["every"], story["memory"])
    run = Run(folder, config, GridPlan.initial(COLUMNS, ROWS, story["slots"]), policy)
    run.start(table_of(story["rows"], pa.int64()), [])
    return Counting(run, story["rows"], bool(story["retention"]), story["memory"], story["weights"])


@settings(max_examples=30, phases=PHASES, deadline=None)
@given(stories())
def test_statistics_equal_brute_force_through_changes_expiry_restarts_and_crashes(
    story: dict[str, Any],
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for limit, value in zip(
            ("FAN_IN", "SMALLEST_TIER", "MOST_ROWS"), story["tiers"], strict=True
        ):
            patch.setattr(f"geoflux.operators.compaction.{limit}", value)
        weights = dict.fromkeys(("rows", "counts"), story["weights"])
        patch.setattr("geoflux.engine.slot_stats.WEIGHTS", weights)
        workers = Forgetful(patch)
        watch = counting(Path(name), story)
        run, count = watch.run, len(story["batches"])
        for number, batch in enumerate(story["batches"]):
            run.tell(batch)
            first, last = (run.end * j // count for j in (number, number + 1))
            workers.become(story["workers"][number % len(story["workers"])])
            happens = story["incidents"].get(number)
            if happens == "restart":
                run.recover()
            elif happens is not None:
                crashed(run, number, (first, last), happens)
            watch.epoch(number, (first, last))
        report = run.verified()
        assert report.is_clean, report


def test_what_expired_before_a_restart_is_counted_out_and_deleted_after_it(tmp_path: Path) -> None:
    rows = [
        {"id": k, "lon": 20.0 * (k % 4), "lat": 0.0, "time": 100 * (k // 4), "speed": 1.0,
         "kind": "bus", "serial": k}
        for k in range(24)
    ]  # fmt: skip
    story = {
        "rows": rows, "slots": 2, "retention": {"time": "10s"}, "changes": [[]], "every": 2,
        "memory": 0.0, "mode": "rows", "weights": Weights(2.0, 4.0, 0.0),
    }  # fmt: skip
    watch = counting(tmp_path, story)
    for number in range(6):
        if number == 3:
            watch.run.recover()
        watch.epoch(number, (4 * number, 4 * number + 4))


@settings(max_examples=60, phases=PHASES, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=30),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5)), min_size=4, max_size=12),
)
def test_estimates_from_which_points_expire_stay_of_the_size_of_the_points(
    points: list[tuple[int, int]], steps: list[tuple[int, int]]
) -> None:
    """What was shared out may be less than what then expires; it is shared out all the same."""
    plan = GridPlan.initial(6, 6, 1)
    stats = {p.id: TrioStat.empty(p) for p in plan.partitions}
    (whole,) = stats.values()
    whole.receive(*columns_and_rows(points), np.ones(1))
    whole.close_round(retained=True)
    left, most = list(points), len(points)
    for number, count in steps:
        before = stats
        for change in _change(plan, number):
            with contextlib.suppress(ValueError, KeyError):
                plan = plan.apply(change)
        none = KnownQueries.none()
        stats = {
            p.id: before[p.id] if p.id in before else inherited(p, before.values(), none)
            for p in plan.partitions
        }
        gone, left = left[:count], left[count:]
        for stat in stats.values():
            stat.expire(*columns_and_rows(gone), np.ones(len(gone)))
            stat.close_round(retained=True)
            assert stat.along("rows")[-1, k.N] == pytest.approx(
                stat.along("columns")[-1, k.N], abs=1e-6
            )
            assert np.abs(per_line(stat, k.N)).max() <= 2 * most
        total = sum(stat.total.points for stat in stats.values())
        assert total == pytest.approx(len(left), abs=1e-6)


def columns_and_rows(cells: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([c for c, _ in cells], np.int32), np.array([r for _, r in cells], np.int32)
