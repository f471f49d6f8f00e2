"""Trees of records through applications of several operators, without Spark: complete exactly when
nothing that derives from an input is left, through loops, carry-over, quarantine and crashes."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_keyed_laws import Resizing, Restless
from test_window_laws import WORLD, Run
from watched_run import table_of

from geoflux.balance.policy import Static
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_streams import stream_schema
from geoflux.engine.keyed_task import Budget
from geoflux.engine.rooted import Followed, Sampling
from geoflux.engine.source import EventSource, RawBatch
from geoflux.engine.stream_events import Upstream, stream_events
from geoflux.errors import OperatorError
from geoflux.plan import GridPlan, HashPlan
from geoflux.scale.acks import Trees, copies, record_ids, sampled
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from rooted_by_hand import SEED, STREAMS, Inputs, Spreading


class Crash(Exception):
    """An epoch of which all is done except that it does not count."""


@dataclass
class Node:
    """An operator of the application, with its directory."""

    setting: KeyedSetting
    source: Any
    position: int = 0
    epoch: int = 0
    engine: KeyedEngine = field(init=False)

    def __post_init__(self) -> None:
        self.recover()

    def recover(self) -> None:
        self.engine = KeyedEngine.recovered(self.setting, lambda: HashPlan.initial(2, 3))

    def step(self, limit: int, crash: bool) -> dict[str, Any] | None:
        """One epoch, if there is anything to do; one that dies first gives the same."""
        end = self.source.latest(self.position, limit)
        if end == self.position and not self.engine.wants_closing():
            return None
        span, lost = (self.position, end), None
        if crash:
            with pytest.MonkeyPatch.context() as patch:
                said: list[dict[str, Any]] = []
                patch.setattr(EpochLog, "commit", lambda log, epoch, manifest: die(said, manifest))
                with pytest.raises(Crash):
                    run_epoch(self.engine, self.source, self.epoch, span)
            lost = said[0]
            self.recover()
        manifest = run_epoch(self.engine, self.source, self.epoch, span)
        if lost is not None:
            assert [lost[key] for key in ("roots", "acks")] == [
                manifest[key] for key in ("roots", "acks")
            ]
        self.position, self.epoch = end, self.epoch + 1
        return manifest


def die(said: list[dict[str, Any]], manifest: dict[str, Any]) -> None:
    said.append(manifest)
    raise Crash


@dataclass
class Ledger:
    """What is left of every input: counted from the files that manifests name."""

    readers: list[dict[str, tuple[int, ...]]]
    live: Counter[int] = field(default_factory=Counter)
    begun: set[int] = field(default_factory=set)
    trees: Trees = field(default_factory=Trees)
    done: dict[int, int] = field(default_factory=dict)

    def take(self, number: int, node: Node, manifest: dict[str, Any], step: int) -> None:
        store = node.setting.store
        for stream, files in manifest["streams"].items():
            for name, rows in files:
                table = pq.read_table(store.path(name))
                assert len(table) == rows
                readers = len(self.readers[number].get(stream, ()))
                assert table.schema.names == ["key", "origin", "left", "epoch"]
                for origin in table.column("origin").to_pylist():
                    self.live[origin] += -1 if stream == "log" else readers
        for name in manifest["files"]:
            if name.startswith("quarantine/"):
                for row in pq.read_table(store.path(name)).column("row").to_pylist():
                    assert not any(name.startswith("@") for name in json.loads(row))
                    self.live[json.loads(row)["origin"]] -= 1
        times = np.full(len(manifest["roots"]), float(step))
        roots, ids, positions = _columns(manifest["roots"], 3)
        self.trees, done = self.trees.begun(roots, ids, times)
        self._ended(done.roots)
        for root, position in zip(roots.tolist(), positions.tolist(), strict=True):
            assert root == record_ids(SEED, 0, position, 1)[0]
        roots, values = _columns(manifest["acks"], 2)
        assert len(set(roots.tolist())) == len(roots)
        self.trees, done = self.trees.acknowledged(roots, values, np.full(len(roots), float(step)))
        self._ended(done.roots)

    def _ended(self, roots: Any) -> None:
        for root in roots.tolist():
            assert root not in self.done
            self.done[root] = 1

    def check(self, one_in: int, read: int) -> None:
        """Complete are exactly the followed inputs of which nothing is left."""
        ids = record_ids(SEED, 0, 0, read)
        kept = sampled(SEED, 0, np.arange(read), one_in)
        expected = {int(ids[n]) for n in range(read) if kept[n] and self.live[n] == 0}
        assert set(self.done) == expected


def _columns(pairs: list[list[int]], width: int) -> Any:
    return np.array(pairs, np.uint64).reshape(-1, width).T


@st.composite
def applications(draw: st.DrawFn) -> list[dict[str, tuple[int, ...]]]:
    """By operator and stream who reads it: any but the first, which reads from outside; loops are
    allowed."""
    count = draw(st.integers(1, 4))
    others = st.sets(st.integers(1, count - 1)) if count > 1 else st.just(set())
    return [
        {stream: tuple(sorted(draw(others))) for stream in STREAMS} for _ in range(count)
    ]  # fmt: skip


def built(
    folder: Path, readers: list[dict[str, tuple[int, ...]]], one_in: int, budget: Budget,
    wanted: list[int | None],
) -> list[Node]:  # fmt: skip
    stores = [Store(str(folder / f"op{n}")) for n in range(len(readers))]
    operator = Spreading()
    columns = stream_schema(operator)
    nodes = []
    for number, store in enumerate(stores):
        source: Any = Inputs(24)
        if number:
            upstreams = [
                Upstream(f"op{n}", stores[n], tuple(s for s in STREAMS if number in given[s]))
                for n, given in enumerate(readers)
            ]
            read = [upstream for upstream in upstreams if upstream.streams]
            source = stream_events(str(folder), folder / f"op{number}/source.log", read, columns)
        sampling = Sampling(SEED, number, None if number else one_in, readers[number])
        nodes.append(
            Node(
                KeyedSetting(
                    store, operator, KeyedIntake(operator, "@position", "time", "s"),
                    Restless([3, 8, 14]), budget=budget, wanted_slots=Resizing(wanted),
                    sampling=sampling,
                ),
                source,
            )
        )  # fmt: skip
    return nodes


@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None)
@given(
    applications(), st.sampled_from([1, 2]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9),
                       st.sampled_from(["", "", "crash", "restart"])), min_size=4, max_size=10),
    st.sampled_from([None, 0.0]), st.lists(st.sampled_from([None, 1, 2, 3]), min_size=1, max_size=4),
)  # fmt: skip
def test_a_tree_is_complete_exactly_when_nothing_of_it_is_left(
    readers: list[dict[str, tuple[int, ...]]], one_in: int,
    steps: list[tuple[int, int, str]], seconds: float | None, wanted: list[int | None],
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.engine.keyed_execute._CHUNK", 2)
        budget = Budget(seconds, 1 << 20)
        nodes = built(Path(name), readers, one_in, budget, wanted)
        ledger = Ledger(readers)
        idle = step = 0
        while idle <= len(nodes) * len(steps):
            which, limit, happens = steps[step % len(steps)]
            number = (which + step // len(steps)) % len(nodes)
            node = nodes[number]
            if happens == "restart":
                node.recover()
            before = node.position
            manifest = node.step(limit, happens == "crash")
            step, idle = step + 1, idle + 1 if manifest is None else 0
            if manifest is None:
                continue
            if number == 0:
                ledger.live.update(range(before, node.position))
            ledger.take(number, node, manifest, step)
            ledger.check(one_in, nodes[0].position)
        assert nodes[0].position == 24
        assert all(ledger.live[origin] == 0 for origin in range(24))
        assert len(ledger.trees) == 0


def test_such_applications_have_loops_and_carry_rows_over() -> None:
    """What the law rests on."""
    readers = [{"a": (1,), "b": (1, 2)}, {"a": (1, 2), "b": (2,)}, {"a": (1,), "b": ()}]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.engine.keyed_execute._CHUNK", 1)
        nodes = built(Path(name), readers, 1, Budget(0.0, 1 << 20), [None, 3, 1])
        carried = quarantined = derived = 0
        for step in range(120):
            manifest = nodes[step % 3].step(8, crash=False)
            if manifest is not None:
                carried += manifest["carried_out"]
                quarantined += manifest["quarantined"] if step % 3 else 0
                derived += len(manifest["acks"]) if step % 3 else 0
        assert carried > 20
        assert quarantined > 0
        assert derived > 20


def test_ids_of_a_stream_whose_positions_begin_anew_differ_by_epoch() -> None:
    batch = RawBatch(pa.table({"n": [1, 2, 3]}), np.arange(3))
    found = Followed()
    marks = [found.marks(Sampling(SEED, 0, 1), batch, epoch) for epoch in (None, 0, 1, 1)]
    assert len({tuple(m.ids.tolist()) for m in marks}) == 3
    assert sum(map(len, found.roots)) == 12


def test_readers_get_copies_of_their_own() -> None:
    records = record_ids(SEED, 3, 0, 100)
    mine, theirs = copies(records, 0), copies(records, 1)
    assert len({*records.tolist(), *mine.tolist(), *theirs.tolist()}) == 300


def test_a_wrong_row_is_told() -> None:
    class Wrong(Spreading):
        def process(self, state: int, rows: pa.Table) -> tuple[int, pa.Table]:
            row = {"key": "k", "origin": 0, "@row": len(rows), "left": 0, "@stream": "a"}
            return state, pa.Table.from_pylist([row], schema=self.output)

    class Typed(Spreading):
        output = Spreading.output.set(2, pa.field("@row", pa.int32()))

    with tempfile.TemporaryDirectory() as name:
        setting = KeyedSetting(
            Store(name), Wrong(), KeyedIntake(Wrong(), "@position", "time", "s"),
            sampling=Sampling(SEED, 0, 1),
        )  # fmt: skip
        engine = KeyedEngine.recovered(setting, lambda: HashPlan.initial(1, 1))
        with pytest.raises(OperatorError, match="row 3, as @row says; expected 0 to 2"):
            run_epoch(engine, cast("EventSource", Inputs(3)), 0, (0, 3))
        typed = KeyedSetting(Store(name), Typed(), KeyedIntake(Typed(), "@position", "time", "s"))
        with pytest.raises(OperatorError, match="expected int64"):
            KeyedEngine.recovered(typed, lambda: HashPlan.initial(1, 1))


def test_events_of_standing_queries_are_done_with_their_epoch(tmp_path: Path) -> None:
    rows = [
        {"id": n, "lon": 1.0, "lat": 90.5 if n % 4 == 1 else 2.0, "time": n, "speed": 1.0,
         "kind": "a", "serial": n}
        for n in range(30)
    ]  # fmt: skip
    config = {"engine": {"slots": 2}, "run": {"mode": "follow"}}
    run = Run(tmp_path, config, GridPlan.initial(20, 10, 2), Static())
    run.start(table_of(rows, pa.int64()), [{"op": "register", "id": "q", "shape": WORLD}])
    assert "acks" not in run_epoch(run.engine, run.source, 0, (0, 10))
    run.setting = replace(run.setting, sampling=Sampling(SEED, 4, 2))
    run.recover()
    manifest = run_epoch(run.engine, run.source, 1, (10, 30))
    ids = record_ids(SEED, 4, 10, 20)
    followed = np.flatnonzero(sampled(SEED, 4, np.arange(10, 30), 2))
    assert len(followed) == 10
    assert {root[0] for root in manifest["roots"]} == set(ids[followed].tolist())
    assert [root[2] for root in manifest["roots"]] == (followed + 10).tolist()
    assert [ack[:2] for ack in manifest["acks"]] == sorted(r[:2] for r in manifest["roots"])
    assert manifest["quarantined"] == 5
