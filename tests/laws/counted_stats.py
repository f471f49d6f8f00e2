"""Statistics of a run, counted by hand: everything that happened is noted, and every number that
the slots saved is compared with a count of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from test_window_laws import Run
from watched_run import COLUMNS, NOWHERE, ROWS

from geoflux.engine.epochs import Manifest
from geoflux.engine.slot_stats import Weights
from geoflux.plan import GridPlan, Partition, plan_from_dict
from geoflux.state.segments import read_segment
from geoflux.stats import TrioStat, stats_from_arrays
from geoflux.stats import trio_kernels as k

Lines = npt.NDArray[np.float64]
Box = tuple[int, int, int, int]
"""Columns and rows of cells: col0, row0, col1, row1, all included."""
SHARED = (k.N, k.LAST_N, k.WORK, k.N_IN, k.WORK_IN, k.N_OUT)
CUMULATIVE = (k.N, k.Q, k.R, k.WORK, k.LAST_N)


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
        number, plan = manifest["epoch"], self.plans[-1]
        came = [q for q in self.queries.values() if q.came == number and number > 0]
        for slot in manifest["slots"]:
            mine = [p for p in plan.partitions if p.slot == slot["slot"]]
            taken = sum(clipped(q, p) is not None for q in came for p in mine)
            least = self.weights.event * slot["processed"] + self.weights.registered * taken
            assert slot["checks"] + least <= slot["work"]
            told = self.weights.query * slot["queries"]
            assert slot["work"] <= slot["checks"] * self.weights.refined + least + told
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
