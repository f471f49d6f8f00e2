"""A keyed operator through moves, carry-over, spilling, restarts and cold workers: every row once,
in the order of its group, with the very results of one plain loop."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from geoflux.balance.flux_policy import FluxPolicy
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.balance.policy import Decision, Observed, Policy
from geoflux.engine import keyed_states
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_execute import execute
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_task import Budget
from geoflux.engine.source import EventSource, RawBatch, Slice
from geoflux.engine.wanted import Wanted
from geoflux.engine.work import work_of
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.operators.keyed import Operator
from geoflux.plan import HashPlan, Move
from geoflux.state.store import Store

Row = tuple[str | None, float, int]
ROWS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from("abcdefgh"), st.none()), st.floats(-100, 100), st.integers(0, 99)
    ),
    min_size=12,
    max_size=60,
)


class Rows:
    """A source of given rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        keys, values, times = zip(*rows, strict=True) if rows else ((), (), ())
        self._table = pa.table(
            {"car": pa.array(keys, pa.string()), "speed": pa.array(values, pa.float64()),
             "time": pa.array(times, pa.int64())}
        )  # fmt: skip

    def slices(self, start: int, stop: int, parts: int) -> list[Slice]:
        edges = np.linspace(start, stop, parts + 1).astype(int)
        return [Slice(0, int(a), int(b)) for a, b in pairwise(edges) if a < b]

    def read(self, piece: Slice, columns: frozenset[str] | None = None) -> Iterator[RawBatch]:
        for first in range(piece.start, piece.stop, 7):
            last = min(first + 7, piece.stop)
            yield RawBatch(self._table.slice(first, last - first), np.arange(first, last))


class Totals(Operator[dict[str, float]]):
    """The sum of a key's values so far, in a state that is changed in place."""

    key, columns = "car", ("speed",)
    output = pa.schema([("id", pa.string()), ("value", pa.float64())])

    def empty(self) -> dict[str, float]:
        return {}

    def process(
        self, state: dict[str, float], rows: pa.Table
    ) -> tuple[dict[str, float], pa.Table]:  # fmt: skip
        found = []
        for row in rows.to_pylist():
            state[row["car"]] = state.get(row["car"], 0.0) + row["speed"]
            found.append({"id": row["@id"], "value": state[row["car"]]})
        return state, pa.Table.from_pylist(found, schema=self.output)

    def extract(self, state: dict[str, float]) -> dict[str, Any]:
        return {
            "keys": pa.array(state, pa.string()),
            "sums": pa.array(state.values(), pa.float64()),
        }

    def install(self, arrays: Any) -> dict[str, float]:
        return dict(zip(arrays["keys"].to_pylist(), arrays["sums"].to_pylist(), strict=True))

    def size(self, state: dict[str, float]) -> int:
        return 20 * len(state)


class Restless(Policy):
    """Moves a partition after nearly every epoch."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers

    def decide(
        self, seen: Observed, plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        number = self._numbers[seen.epoch % len(self._numbers)]
        if number % 5 == 0:
            return Decision((), "nothing"), state
        move = Move(number % len(plan.partitions), to=(number // 7) % plan.slots)
        return Decision((move,), "restless"), state


class Hasty(FluxPolicy):
    """Flux that looks after every epoch, whatever the times of this machine."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(FluxTuning(collect_min=1e-9, collect_max=1e-9, receiver_below=1.0))

    def decide(
        self, seen: Observed, plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        assert {load.slot for load in seen.loads} == set(range(plan.slots))
        busy = [replace(load, busy_seconds=1e-3 * (1 + load.events)) for load in seen.loads]
        decision, state = super().decide(replace(seen, loads=tuple(busy)), plan, state)
        assert all(move.to < plan.slots for move in decision.changes if isinstance(move, Move))
        return decision, state


class Resizing:
    """Wants other slots after nearly every epoch; one of them and back, also more than can be."""

    def __init__(self, numbers: Sequence[int | None]) -> None:
        self._numbers = numbers
        self._asked = 0

    def __call__(self) -> int | Wanted | None:
        number = self._numbers[self._asked % len(self._numbers)]
        self._asked += 1
        return Wanted(number, "a test") if number and self._asked % 2 else number


def plain(rows: Sequence[Row], most: int | None) -> dict[str, float]:
    """Per row (by its position) the mean of the last rows of the same car, or the sum of all."""
    histories: dict[str, list[float]] = {}
    found = {}
    for position, (key, value, _) in enumerate(rows):
        if key is not None:
            mine = histories.setdefault(key, [])
            mine.append(value)
            found[str(position)] = sum(mine[-most:]) / len(mine[-most:]) if most else sum(mine)
    return found


def after_one_that_dies(task: Any, slot: int, parcels: list[Any]) -> Any:
    """An attempt that breaks off before it has saved anything, and the one that counts."""
    with pytest.MonkeyPatch.context() as patch, suppress(InterruptedError):
        patch.setattr("geoflux.engine.keyed_execute.saved", dies)
        execute(task, slot, parcels)
    return execute(task, slot, parcels)


def after_one_unheard(task: Any, slot: int, parcels: list[Any]) -> Any:
    """An attempt that nobody hears of, and the one that counts."""
    execute(task, slot, parcels)
    return execute(task, slot, parcels)


def dies(*given: Any) -> None:
    raise InterruptedError


@settings(max_examples=50, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    ROWS, st.lists(st.integers(1, 20), min_size=1, max_size=8), st.sampled_from([1, 3]),
    st.lists(st.integers(0, 99), min_size=1, max_size=6),
    st.sampled_from([None, 0.0]), st.sampled_from([0, 200, 1 << 20]),
    st.sampled_from([None, None, 0, 150]), st.booleans(), st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from([execute, after_one_that_dies, after_one_unheard]),
    st.lists(st.sampled_from([None, 1, 2, 3, 5, 30]), min_size=1, max_size=5),
    st.sampled_from([Restless, Hasty]),
)  # fmt: skip
def test_every_row_is_processed_once_and_in_order(
    rows: list[Row], steps: list[int], slots: int, numbers: list[int], seconds: float | None,
    buffer_bytes: int, memory: int | None, restarts: bool, cold: bool,
    totals: bool, journals: bool, attempts: Any, wanted: list[int | None], policy: Any,
) -> None:  # fmt: skip
    operator: Any = Totals() if totals else WindowedGroupBy("car", "speed", "mean", rows=3)
    intake = KeyedIntake(operator, "@position", "time", "s")
    budget = Budget(seconds, buffer_bytes, memory)
    budgets = {0: replace(budget, seconds=0.0)}
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.engine.keyed_execute._CHUNK", 2)
        patch.setattr("geoflux.engine.keyed_states._MOST_JOURNALS", 3)
        if journals:
            patch.setattr(type(operator), "size", lambda self, state: 100_000)
        patch.setattr(
            "geoflux.engine.inline.work_of", lambda task: replace(work_of(task), execute=attempts)
        )
        setting = KeyedSetting(
            Store(name), operator, intake, policy(numbers), budgets, budget, Resizing(wanted)
        )

        def recovered() -> KeyedEngine:
            return KeyedEngine.recovered(setting, lambda: HashPlan.initial(slots, per_slot=4))

        engine, source = recovered(), cast("EventSource", Rows(rows))
        position = epoch = carried = 0
        while position < len(rows) or engine.wants_closing():
            end = min(len(rows), position + steps[epoch % len(steps)])
            manifest = run_epoch(engine, source, epoch, (position, end))
            assert manifest["received"] == end - position
            assert manifest["carried_in"] == carried
            carried = manifest["carried_out"]
            held = sum(s["carried_bytes"] for s in manifest["slots"])
            assert held <= len(manifest["slots"]) * buffer_bytes
            check_slots(manifest, engine.plan)
            position, epoch = end, epoch + 1
            if restarts:
                engine = recovered()
            if cold:
                keyed_states._cache.clear()
        found = [row for file in sorted(Path(name, "results").glob("*")) for row in read(file)]
        assert len(found) == len({row["id"] for row in found})
        assert {row["id"]: row["value"] for row in found} == pytest.approx(
            plain(rows, None if totals else 3)
        )
        for number, (key, _, _) in enumerate(rows):
            assert (str(number) in {row["id"] for row in found}) == (key is not None)


def check_slots(manifest: Any, plan: HashPlan) -> None:
    """The decision says how many slots come next, and why; every partition has an owner."""
    sizes = [c["slots"] for c in manifest["decision"]["changes"] if c["kind"] == "resize"]
    assert plan.slots == (sizes[-1] if sizes else len(manifest["slots"]))
    assert ("slots" in manifest["decision"]["reason"]) == bool(sizes)
    assert 1 <= plan.slots <= plan.most_slots
    assert [p.id for p in plan.partitions] == list(range(plan.most_slots))
    assert plan.owners.max() < plan.slots


def read(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return rows


def test_a_full_buffer_makes_epochs_smaller_and_an_empty_one_larger_again() -> None:
    rows: list[Row] = [(f"k{i % 50}", 1.0, i) for i in range(4000)]
    operator = Totals()
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.engine.keyed_execute._CHUNK", 10)
        setting = KeyedSetting(
            Store(name), operator, KeyedIntake(operator, "@position", "time", "s"),
            budgets={0: Budget(0.0, 4_000)}, epoch_events=400,
        )  # fmt: skip
        engine = KeyedEngine.recovered(setting, lambda: HashPlan.initial(1, per_slot=4))
        source, position, sizes = cast("EventSource", Rows(rows)), 0, []
        for epoch in range(12):
            end = position + engine.epoch_events
            sizes.append(run_epoch(engine, source, epoch, (position, end))["received"])
            position = end
        assert sizes[0] == 400
        assert min(sizes) < 50
        for epoch in range(12, 80):
            run_epoch(engine, source, epoch, (position, position))
        assert engine.epoch_events == 400
        assert not engine.wants_closing()
        engine = KeyedEngine.recovered(setting, lambda: HashPlan.initial(1, per_slot=4))
        assert engine.epoch_events == 400
