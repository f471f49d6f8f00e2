"""A run whose retained events are watched: what every manifest must come to, counted from the
events themselves, and what a snapshot can see.

Of the engine it reads the manifests' lists of segments and the rows of these; which events must be
there, and which may be seen, follows from the events.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_window_laws import Crash, Run, crash

import snapshots_by_hand
from geoflux.balance.policy import Static
from geoflux.plan import GridPlan, ReplicatedPlan
from geoflux.state.held import Held
from geoflux.state.segments import read_segment

COLUMNS, ROWS = 20, 10
NOWHERE = 90.5
"""The latitude of an event that is not accepted."""
TYPES = {
    "id": pa.int64(), "lon": pa.float64(), "lat": pa.float64(), "time": pa.int64(),
    "speed": pa.float64(), "kind": pa.string(), "serial": pa.int64(),
}  # fmt: skip


def table_of(rows: list[dict[str, Any]], time: pa.DataType) -> pa.Table:
    """The events as a file has them, their time in one of the forms that are understood."""

    def told(seconds: int) -> Any:
        instant = datetime.fromtimestamp(seconds, UTC)
        if pa.types.is_string(time):
            return instant.isoformat()
        return instant if pa.types.is_timestamp(time) else seconds

    given = [row | {"time": told(row["time"])} for row in rows]
    types = TYPES | {"time": time}
    if isinstance(rows[0]["id"], str):
        types["id"] = pa.string()
    return pa.Table.from_pylist(given, pa.schema(list(types.items())))


@dataclass
class Watched:
    """A run, and what its manifests must come to: counted from the events themselves."""

    run: Run
    rows: list[dict[str, Any]]
    limits: dict[str, Any]
    epochs: list[list[dict[str, Any]]] = field(default_factory=list)
    held: list[list[Held]] = field(default_factory=lambda: [[]])
    contents: dict[str, frozenset[int]] = field(default_factory=dict)
    expired: int = 0
    newest_dropped: int = -1

    def start(self, table: pa.Table, queries: list[dict[str, Any]]) -> None:
        self.run.start(table, queries)
        setting = self.run.setting
        schema = setting.schema.serialize().to_pybytes().hex()
        noted = {"started": 0, "lane": "fast", "schema": schema}
        setting.store.write_json("run.json", {"config": setting.config.as_dict(), **noted})

    @property
    def out(self) -> Path:
        return self.run.folder / "out"

    def epoch(self, span: tuple[int, int]) -> None:
        """One epoch, and all that must hold after it."""
        number = len(self.epochs)
        earlier = self.on_disk()
        self.run.epoch(number, span)
        self.epochs.append([row for row in self.rows[slice(*span)] if row["lat"] != NOWHERE])
        manifest = self.run.engine.manifest(number)
        self.held.append([Held(*given) for given in manifest["held"]])
        self._read_segments(number)
        self.expired += sum(manifest["expired"].values())
        processed = sum(map(len, self.epochs))
        assert sum(held.rows for held in self.held[-1]) + self.expired == processed
        self._check_limits()
        assert self.on_disk() & earlier <= self.named(-1) | self.named(-2), "never deleted"
        self._check_lineage()

    def named(self, place: int = -1) -> set[str]:
        """The segments of a manifest, counted from the last one (-1)."""
        return {held.segment for held in self.held[place]}

    def on_disk(self) -> set[str]:
        return {f"state/{path.name}" for path in (self.out / "state").glob("kept-*")}

    def _read_segments(self, number: int) -> None:
        """Every event is in one segment at most, in one that says what it holds."""
        for held in self.held[-1]:
            if held.segment in self.contents:
                continue
            segment = read_segment(self.run.setting.store, held.segment)
            serials = segment.columns["column.serial"].to_pylist()
            self.contents[held.segment] = frozenset(serials)
            rows = [self.rows[serial] for serial in serials]
            times = [row["time"] * 1_000_000 for row in rows]
            assert held.rows == len(rows)
            assert (held.first_time, held.last_time) == (min(times), max(times))
            came = [self._came(serial) for serial in serials]
            assert (held.first_epoch, held.last_epoch) == (min(came), max(came))
        assert len(self.kept()) == sum(held.rows for held in self.held[-1])
        before, kept = self.held[-2], self.kept()
        gone = {held.last_epoch for held in before if not self.contents[held.segment] <= kept}
        if not {row["serial"] for row in self.epochs[-1]} <= kept:
            gone.add(number)
        self.newest_dropped = max([self.newest_dropped, *gone])

    def _came(self, serial: int) -> int:
        return next(k for k, rows in enumerate(self.epochs) if self.rows[serial] in rows)

    def kept(self) -> set[int]:
        """The serials of all events in the segments of the last manifest."""
        return {serial for held in self.held[-1] for serial in self.contents[held.segment]}

    def visible(self) -> list[dict[str, Any]]:
        """What a question sees that is asked now."""
        if set(self.limits) - {"columns"} == {"time"}:
            rows = snapshots_by_hand.visible(self.epochs, self._seconds())
            assert {row["serial"] for row in rows} <= self.kept()
            return rows
        rows = [self.rows[serial] for serial in sorted(self.kept())]
        newest = max((row["time"] for part in self.epochs for row in part), default=0)
        return [row for row in rows if row["time"] >= newest - self._seconds()]

    def _seconds(self) -> float:
        text = self.limits.get("time")
        if text is None:
            return math.inf
        number, _, unit = text.partition(" ")
        return float(number) * 60 if unit else float(text[:-1])

    def _check_limits(self) -> None:
        held, received = self.held[-1], sum(map(len, self.epochs))
        rows, size = sum(h.rows for h in held), sum(h.bytes for h in held)
        if "bytes" in self.limits:
            value, unit = self.limits["bytes"].split()
            assert size <= int(value) * {"KB": 1000, "B": 1}[unit]
        elif set(self.limits) - {"columns"} == {"events"}:
            least = self.limits["events"]
            assert rows >= min(least, received)
            after = sum(map(len, self.epochs[self.newest_dropped + 1 :]))
            assert self.newest_dropped < 0 or after >= least
            newer = sum(h.rows for h in held if h.first_epoch > held[0].last_epoch)
            assert newer < least
        if "time" not in self.limits:
            # The oldest go first: whatever came after the newest segment that was dropped is there.
            assert all(h.last_epoch >= self.newest_dropped for h in held)
            after = self.epochs[self.newest_dropped + 1 :]
            assert {row["serial"] for part in after for row in part} <= self.kept()

    def _check_lineage(self) -> None:
        """Who holds events is in the plan, and a retired partition only as long as needed."""
        plan = self.run.engine.plan
        if not isinstance(plan, GridPlan):
            return
        holding = {held.partition for held in self.held[-1]}
        retired = {p.id for p in plan.retired}
        assert holding <= retired | {p.id for p in plan.partitions}
        for p in plan.retired:
            assert p.id in holding or retired.intersection(p.parents)

    def sight(self) -> Sight:
        """What a question that is asked now can see."""
        return Sight(self.visible(), self.held[-1])


@dataclass(frozen=True)
class Sight:
    """Events, and the segments that they lie in."""

    rows: list[dict[str, Any]]
    held: list[Held]

    def check(self, query: dict[str, Any], told: snapshots_by_hand.Told) -> None:
        """One answer."""
        snapshots_by_hand.check(query, told, self.rows)
        assert told.reads[0] <= len({h.partition for h in self.held})
        assert told.reads[1] <= len(self.held)
        assert all(told.reads) or not told.matched[0]


def crash_before_the_manifest(run: Run, number: int, span: tuple[int, int]) -> None:
    """An epoch of which all is done except that it does not count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.state.epoch_log.EpochLog.commit", crash)
        with pytest.raises(Crash):
            run.epoch(number, span)
    run.recover()


def watched(folder: Path, story: dict[str, Any], policy: Any) -> Watched:
    slots = story["slots"]
    plan: Any = GridPlan.initial(COLUMNS, ROWS, slots)
    if policy is None:
        plan = ReplicatedPlan(COLUMNS, ROWS, slots)
    config = {
        "engine": {"slots": slots, "lateness": "30s"}, "run": {"mode": "follow"},
        "retention": story["retention"], "output": {"matches": story["mode"]},
    }  # fmt: skip
    run = Run(folder, config, plan, policy or Static())
    return Watched(run, story["rows"], story["retention"])
