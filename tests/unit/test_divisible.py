"""Operators over places in the engine: what a split costs, what slots tell, what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest

from geoflux.balance.parts import Part
from geoflux.balance.policy import Decision, Observed, Policy
from geoflux.balance.synopsis_policy import SynopsisPolicy
from geoflux.balance.synopsis_tuning import SynopsisTuning
from geoflux.engine import keyed_states
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_heirs import inherited, shared_out
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_task import Budget, Emulated
from geoflux.engine.source import EventSource
from geoflux.errors import OperatorError
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.plan import Change, MergePrefix, PrefixPlan, SplitPrefix, succession
from geoflux.state.refs import Ref, StateMap
from geoflux.state.store import Store
from regions_by_hand import CODE_BITS, Place, Places, Regions, code_of, expected

ROWS: list[Place] = [
    (float(-180 + 37 * i % 360), float(-90 + 11 * i % 180), 1.0) for i in range(120)
]


class Scripted(Policy):
    """Changes the plan after given epochs."""

    measures = True

    def __init__(self, script: dict[int, Sequence[Change]]) -> None:
        self._script = script
        self.seen: list[Observed] = []

    def decide(
        self, seen: Observed, plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        self.seen.append(seen)
        return Decision(tuple(self._script.get(seen.epoch, ())), "as written"), state


def engine_of(
    folder: Path, policy: Policy, operator: Any = None, slots: int = 2, **setting: Any
) -> KeyedEngine:
    operator = operator or Regions()
    given = KeyedSetting(
        Store(str(folder)), operator, KeyedIntake(operator, "@position", "time", "s"), policy,
        **setting,
    )  # fmt: skip
    return KeyedEngine.recovered(given, lambda: PrefixPlan.initial(slots, CODE_BITS, per_slot=1))


def run(engine: KeyedEngine, rows: list[Place], each: int, first: int = 0) -> list[dict[str, Any]]:
    source = cast("EventSource", Places(rows))
    return [
        run_epoch(engine, source, first + n, (start, min(start + each, len(rows))))
        for n, start in enumerate(range(0, len(rows), each))
    ]


def test_a_state_is_got_back_in_the_batches_of_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geoflux.engine.keyed_execute._CHUNK", 3)
    monkeypatch.setattr(Regions, "size", lambda self, state: 100_000)
    store = Store(str(tmp_path))
    run(engine_of(tmp_path, Scripted({})), [(1.0, 1.0, 1.0)] * 30, 10)
    (refs, state), (partition,) = (
        keyed_states._cache[store.root, 1], [p for r, p in keyed_states._cache if r == store.root]
    )  # fmt: skip
    assert partition == 1
    assert [ref.kind for ref in refs] == ["journal"] * 3
    assert state[code_of(1.0, 1.0)][3] == 12, "each epoch in four batches"
    assert keyed_states.opened(store, Regions(), refs) == state


def test_a_split_writes_nothing_and_undone_it_leaves_no_trace(tmp_path: Path) -> None:
    """A split, then a merge of the same, before anybody opened what came of it."""
    cut = SplitPrefix(0, ((0b00, 2, 1), (0b0111, 4, 1)))
    rows = [row for row in ROWS if code_of(*row[:2]) >> 5 == 1]
    script = {0: [cut], 1: [MergePrefix(0, 1, 0)]}
    engine = engine_of(tmp_path, Scripted(script))
    before = run(engine, ROWS[:60], 60)[0]
    written = sorted(p.name for p in (tmp_path / "state").iterdir())
    names = {ref[1].removeprefix("state/") for refs in before["states"].values() for ref in refs}
    assert names <= set(written)
    assert len(written) == 2, "one for each slot"
    known = {int(p): refs for p, refs in before["states"].items()}
    assert set(known) == {1, 2, 3, 4, 5}
    assert {tuple(ref[4]) for p, refs in known.items() if p > 1 for ref in refs} == {
        (0b00, 2), (0b010, 3), (0b0110, 4), (0b0111, 4),
    }  # fmt: skip
    after = run(engine, rows[:5], 5, first=1)[0]
    assert after["states"]["6"] == [["state", known[2][0][1], 0, None, (0, 1)]]


def test_states_of_retired_partitions_leave_the_memory(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, Scripted({0: [SplitPrefix(0, ((0, 2, 1),))]}))
    run(engine, ROWS, 60)
    root = Store(str(tmp_path)).root
    assert {p for r, p in keyed_states._cache if r == root} == {1, 2, 3}


def test_slots_tell_what_parts_got_and_hold(tmp_path: Path) -> None:
    policy = Scripted({})
    manifest = run(engine_of(tmp_path, policy), ROWS, len(ROWS))[0]
    parts = [part for load in policy.seen[0].loads for some in load.parts.values() for part in some]
    codes, counts = np.unique([code_of(*row[:2]) for row in ROWS], return_counts=True)
    assert sorted(parts) == [
        Part(code, CODE_BITS, n, 40) for code, n in zip(codes.tolist(), counts.tolist(), strict=True)
    ]  # fmt: skip
    assert sum(load.arrivals for load in policy.seen[0].loads) == len(ROWS)
    assert "parts" not in manifest["slots"][0], "for who decides, not for the log"


def test_sizes_are_shared_out_by_what_was_measured_or_by_area() -> None:
    plan = PrefixPlan.initial(1, 4, per_slot=1)
    after = plan.apply(SplitPrefix(0, ((0b11, 2, 0),)))
    gone, new = succession(plan, after)
    parts = {0: [Part(0b1100, 4, 5, 60), Part(0b0000, 4, 15, 20)]}
    assert shared_out({0: 80.0}, gone, new, parts) == pytest.approx({1: 20, 2: 0, 3: 60}, abs=1e-3)
    assert shared_out({0: 80.0}, gone, new, parts, "rows")[3] == pytest.approx(20)
    assert shared_out({0: 80.0, 9: 1.0}, gone, new, {}) == {9: 1, 1: 40, 2: 20, 3: 20}
    back = after.apply(MergePrefix(0, 0, 0))
    assert shared_out({1: 1.0, 2: 2.0, 3: 3.0}, *succession(after, back), {}) == {4: 6}


def test_what_is_inherited_keeps_what_it_stands_for() -> None:
    plan = PrefixPlan.initial(1, 4, per_slot=2)
    base, journal = Ref("state", "a", 0), Ref("journal", "b", 0)
    refs, steps = StateMap({0: (base, journal)}), []
    for change in (SplitPrefix(0, ((0b00, 2, 0),)), SplitPrefix(2, ((0b001, 3, 0),)),
                   MergePrefix(0, 0, 0)):  # fmt: skip
        after = plan.apply(change)
        refs, plan = inherited(refs, *succession(plan, after)), after
        steps.append({p: [ref.prefix for ref in some] for p, some in refs.refs.items()})
    assert steps == [
        {2: [(0, 2)] * 2, 3: [(1, 2)] * 2},
        {3: [(1, 2)] * 2, 4: [(0, 3)] * 2, 5: [(1, 3)] * 2},
        {6: [(0, 1)] * 2},
    ]
    assert StateMap.from_dict(refs.to_dict()) == refs


def test_rows_that_an_operator_refuses_are_quarantined_with_its_sentence(tmp_path: Path) -> None:
    manifest = run(engine_of(tmp_path, Scripted({})), [(1.0, 1.0, 1.0), (200.0, 1.0, 1.0)], 2)[0]
    assert manifest["reasons"] == {"outside": 1}
    (file,) = (tmp_path / "quarantine").iterdir()
    (row,) = pq.read_table(file).to_pylist()
    assert row["detail"] == "the place lies outside of the world"


def test_an_operator_that_does_not_fit_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        OperatorError, match=r"WindowedGroupBy is partitioned by its key.*Divisible"
    ):
        engine_of(tmp_path, Scripted({}), WindowedGroupBy("lon", "value", "mean", rows=2))
    engine_of(tmp_path, Scripted({}))
    with pytest.raises(OperatorError, match=r"Regions.code_bits is 8, and .* of 6 bits"):
        engine_of(tmp_path, Scripted({}), Regions(code_bits=8))

    class Astray(Regions):
        def place(self, rows: Any) -> Any:
            return super().place(rows) + 64

    with pytest.raises(OperatorError, match=r"Astray.place: codes from .* expected 6 bits"):
        run(engine_of(tmp_path, Scripted({}), Astray()), ROWS, 10)


@dataclass(frozen=True)
class Hot:
    """A hot eighth of the world, for a while, and then as much everywhere."""

    epochs: int
    rows: int

    def places(self) -> list[Place]:
        draw = np.random.default_rng(4)
        lon = -180 + 90 * draw.random(self.epochs * self.rows)
        lat = -90 + 90 * draw.random(self.epochs * self.rows)
        return [(float(x), float(y), 1.0) for x, y in zip(lon, lat, strict=True)]


def test_a_slow_slot_gives_regions_away_and_takes_them_back(tmp_path: Path) -> None:
    """The policy in the engine: slots that sleep a millisecond for every row and have 20 of them
    get 40 rows an epoch, then 4."""
    tuning = SynopsisTuning(observe=0.0, hold=2, calm=2, rest=2)
    seconds = count()
    engine = engine_of(
        tmp_path, SynopsisPolicy(tuning), slots=4, budget=Budget(0.02, 1 << 20),
        emulated=Emulated(seconds_elsewhere=1e-3), clock=lambda: float(next(seconds)),
    )  # fmt: skip
    first = [(p.area, p.slot) for p in cast("PrefixPlan", engine.plan).partitions]
    rows = Hot(10, 40).places()
    manifests = run(engine, rows, 40)
    while engine.wants_closing():
        source = cast("EventSource", Places(rows))
        manifests.append(run_epoch(engine, source, len(manifests), (len(rows), len(rows))))
    told = [m["decision"]["reason"] for m in manifests if m["decision"]["changes"]]
    assert told[0].startswith("scale out: slot 0 has a backlog of ")
    assert len({s["slot"] for m in manifests[-4:] for s in m["slots"] if s["processed"]}) > 1
    later = Hot(30, 2).places()
    source = cast("EventSource", Places(rows + later))
    start = len(rows)
    for _ in range(30):
        span = (start, start + 2)
        manifests.append(run_epoch(engine, source, len(manifests), span))
        start += 2
    told = [m["decision"]["reason"] for m in manifests if m["decision"]["changes"]]
    assert told[-1].startswith("scale in: slot ")
    assert [(p.area, p.slot) for p in cast("PrefixPlan", engine.plan).partitions] == first
    files = [pq.read_table(file).to_pylist() for file in (tmp_path / "results").iterdir()]
    found = {row["id"]: (row["code"], row["count"], row["trail"]) for rows in files for row in rows}
    assert found == expected(rows + later)


def test_a_policy_is_chosen_by_the_operator() -> None:
    from geoflux.balance.flux_policy import FluxPolicy
    from geoflux.balance.policy import Static
    from geoflux.config import Config
    from geoflux.errors import ConfigError
    from geoflux.keyed_api import first_plan, policy_of

    config = Config.from_dict(
        {"engine": {"slots": 3}, "synopsis": {"most_slots": 9}, "flux": {"budget": "2s"}}
    )
    assert isinstance(policy_of(config, WindowedGroupBy("a", "b", "mean", rows=2)), FluxPolicy)
    chosen = policy_of(config, Regions())
    assert isinstance(chosen, SynopsisPolicy)
    assert chosen._tuning.most_slots == 9
    scaled = policy_of(config, Regions(), is_scaled=True)
    assert isinstance(scaled, SynopsisPolicy)
    assert scaled._tuning.most_slots is None
    still = replace(config, synopsis=replace(config.synopsis, policy="static"))
    assert isinstance(policy_of(still, Regions()), Static)
    assert first_plan(config, Regions()) == PrefixPlan.initial(3, CODE_BITS, 4)
    with pytest.raises(ConfigError, match=r"synopsis.memory_low = 0.9: expected less than"):
        Config.from_dict({"synopsis": {"memory_low": 0.9}})
