"""Laws of prefixes: a plan tiles all codes whatever changes, and an operator over places gives the
same whether its partitions are split, merged and moved or not, through crashes and carry-over."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_keyed_laws import Resizing, after_one_that_dies, after_one_unheard

from geoflux.balance.policy import Decision, Observed, Policy
from geoflux.engine import keyed_states
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_execute import execute
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_task import Budget
from geoflux.engine.rooted import Sampling
from geoflux.engine.source import EventSource
from geoflux.engine.work import work_of
from geoflux.plan import (
    Change,
    MergePrefix,
    Move,
    PrefixPlan,
    Resize,
    SplitPrefix,
    change_from_dict,
    change_to_dict,
    plan_from_dict,
    resized,
)
from geoflux.plan.prefixes import both, fused, inside, rest, shared
from geoflux.state.epoch_log import EpochLog
from geoflux.state.refs import StateMap
from geoflux.state.store import Store
from regions_by_hand import CODE_BITS, Place, Places, Region, Regions, expected, sums

SEED = 5
NUMBERS = st.integers(0, (1 << 30) - 1)


def some_change(plan: PrefixPlan, number: int) -> Change | None:
    """A split, merge or move that the plan can apply, as a number says; of 8 numbers one gives
    none."""
    kind, number = number % 8, number // 8
    p = plan.partitions[number % len(plan.partitions)]
    number //= 64
    to = number % plan.slots
    if kind in (0, 1, 2) and p.bits < plan.code_bits:
        pieces = []
        for k in range(1 + number % 3):
            bits = min(p.bits + 1 + (number >> (2 * k)) % 4, plan.code_bits)
            code = (p.code << (bits - p.bits)) | (number >> (3 * k)) % (1 << (bits - p.bits))
            if not any(both((code, bits), (c, b)) for c, b, _ in pieces):
                pieces.append((code, bits, (to + k) % plan.slots))
        return SplitPrefix(p.id, tuple(pieces))
    if kind in (3, 4) and p.bits > 0:
        bits = p.bits - 1 - (number % min(p.bits, 3))
        return MergePrefix(p.code >> (p.bits - bits), bits, to)
    return Move(p.id, to) if kind in (5, 6) else None


@st.composite
def plans(draw: st.DrawFn, most_bits: int = 12) -> PrefixPlan:
    """A prefix plan after random splits, merges, moves and resizes."""
    bits = draw(st.integers(2, most_bits))
    plan = PrefixPlan.initial(draw(st.integers(1, 4)), bits, draw(st.integers(1, 3)))
    for number in draw(st.lists(NUMBERS, max_size=12)):
        if number % 5 == 0:
            slots = 1 + number // 5 % min(plan.most_slots, 6)
            for change in resized(
                plan, slots, {p.id: number % (7 + p.id) for p in plan.partitions}
            ):
                plan = plan.apply(change)
        elif (change := some_change(plan, number // 5)) is not None:
            plan = plan.apply(change)
    return plan


@given(plans(), st.lists(NUMBERS, min_size=1, max_size=40))
def test_every_code_lies_in_exactly_one_partition_and_is_found_there(
    plan: PrefixPlan, numbers: list[int]
) -> None:
    codes = np.array([number % (1 << plan.code_bits) for number in numbers])
    places = plan.locate(codes)
    for code, place in zip(codes.tolist(), places.tolist(), strict=True):
        holding = [
            at
            for at, p in enumerate(plan.partitions)
            if code >> (plan.code_bits - p.bits) == p.code
        ]
        assert holding == [place]
    sizes = sum(1 << (plan.code_bits - p.bits) for p in plan.partitions)
    assert sizes == 1 << plan.code_bits
    assert plan.owners.tolist() == [p.slot for p in plan.partitions]
    assert len({p.id for p in plan.partitions}) == len(plan.partitions)


@given(plans(40), st.lists(NUMBERS, min_size=1, max_size=40))
def test_a_table_and_a_search_find_the_same(plan: PrefixPlan, numbers: list[int]) -> None:
    codes = np.array([(n * 0x9E3779B97F4A7C15) % (1 << plan.code_bits) for n in numbers])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.plan.prefix_plan._TABLE_BITS", -1)
        searched = replace(plan).locate(codes)
    assert replace(plan).locate(codes).tolist() == searched.tolist()


@given(plans(), NUMBERS)
def test_a_merge_is_the_inverse_of_a_split(plan: PrefixPlan, number: int) -> None:
    old = plan.partitions[number % len(plan.partitions)]
    change = some_change(plan, 8 * number)
    if not isinstance(change, SplitPrefix):
        return
    old = plan.partition(change.partition)
    after = plan.apply(change)
    given_away = {(code, bits): to for code, bits, to in change.pieces}
    children = [p for p in after.partitions if p.parents == (old.id,)]
    assert set(given_away) <= {p.area for p in children}
    assert all(p.slot == given_away.get(p.area, old.slot) for p in children)
    assert all(p.id >= plan.next_id and p.previous_slot == old.slot for p in children)
    left = [p.area for p in children if p.area not in given_away]
    assert tuple(left) == rest(old.area, given_away) == fused(left), "the fewest that tile the rest"
    back = after.apply(MergePrefix(old.code, old.bits, old.slot))
    assert layout(back) == layout(plan)
    assert back.version == plan.version + 2


def layout(plan: PrefixPlan) -> list[tuple[int, int, int]]:
    return [(p.code, p.bits, p.slot) for p in plan.partitions]


@given(plans(), NUMBERS)
def test_plans_and_changes_survive_the_log(plan: PrefixPlan, number: int) -> None:
    assert plan_from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    change = some_change(plan, number)
    if change is not None:
        assert change_from_dict(json.loads(json.dumps(change_to_dict(change)))) == change


@given(plans(), st.integers(1, 8))
def test_slots_that_come_own_something_and_those_that_go_nothing(
    plan: PrefixPlan, slots: int
) -> None:
    slots = min(slots, plan.most_slots)
    loads = {p.id: float(p.id % 5) for p in plan.partitions}
    after = plan
    for change in resized(plan, slots, loads):
        after = after.apply(change)
    assert after.slots == slots
    assert set(range(plan.slots, slots)) <= set(after.owners.tolist())
    stays = {p.id: p.slot for p in plan.partitions if p.slot < slots}
    moved = [p for p in after.partitions if p.id in stays and p.slot != stays[p.id]]
    assert all(p.slot >= plan.slots for p in moved)


prefixes = st.integers(0, 8).flatmap(
    lambda bits: st.tuples(st.integers(0, (1 << bits) - 1), st.just(bits))
)


@given(prefixes, prefixes)
def test_prefixes_are_sets_of_codes(a: tuple[int, int], b: tuple[int, int]) -> None:
    codes = [
        {c for c in range(256) if c >> (8 - bits) == code} for code, bits in (a, b)
    ]  # fmt: skip
    assert inside(a, b) == (codes[0] <= codes[1])
    common = both(a, b)
    assert codes[0] & codes[1] == (
        set() if common is None else {c for c in range(256) if c >> (8 - common[1]) == common[0]}
    )
    texts = [f"{code:0{bits}b}" if bits else "" for code, bits in (a, b)]
    alike = 0
    while alike < min(map(len, texts)) and texts[0][alike] == texts[1][alike]:
        alike += 1
    assert shared(a, b) == alike


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (SplitPrefix(0, ()), "needs a piece"),
        (SplitPrefix(0, ((0, 1, 0),)), "no part of partition 0"),
        (SplitPrefix(0, ((0, 9, 0),)), "at most 8 bits"),
        (SplitPrefix(0, ((0, 4, 0), (0, 3, 0))), "must not overlap"),
        (SplitPrefix(0, ((0, 3, 7),)), "slot 7 does not exist"),
        (MergePrefix(0, 2, 0), "has 1 partitions"),
        (MergePrefix(0, 4, 0), "has 0 partitions"),
        (Resize(1), "still owns"),
    ],
)
def test_a_change_that_cannot_be_says_why(change: Change, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrefixPlan.initial(2, 8, per_slot=2).apply(change)


def test_codes_out_of_range_are_told() -> None:
    with pytest.raises(ValueError, match="expected 8 bits, 0 to 255"):
        PrefixPlan.initial(1, 8).locate(np.array([3, 256]))


class Shuffling(Policy):
    """Changes the plan after nearly every epoch, several times at once."""

    measures = True

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers

    def decide(
        self, seen: Observed, plan: Any, state: dict[str, Any]
    ) -> tuple[Decision, dict[str, Any]]:  # fmt: skip
        number = self._numbers[seen.epoch % len(self._numbers)]
        changes: list[Change] = []
        for step in range(number % 4):
            change = some_change(plan, number // 4 + 977 * step + 13 * seen.epoch)
            if change is not None:
                plan = plan.apply(change)
                changes.append(change)
        return Decision(tuple(changes), "shuffled"), state


class Crash(Exception):
    """The driver dies."""


def killed(engine: KeyedEngine, where: str, *given: Any) -> None:
    """An epoch whose driver dies before its manifest is written, or before it is published."""

    def die(*args: Any) -> None:
        raise Crash

    with pytest.MonkeyPatch.context() as patch:
        if where == "before":
            patch.setattr(EpochLog, "commit", die)
        else:
            patch.setattr("geoflux.engine.keyed_engine.publish", die)
        with pytest.raises(Crash):
            run_epoch(engine, *given)


PLACES = st.lists(
    st.tuples(
        st.one_of(st.floats(-180, 179), st.floats(0, 30), st.just(200.0)),
        st.one_of(st.floats(-90, 89), st.floats(40, 60)),
        st.integers(0, 99).map(float),
    ),
    min_size=12,
    max_size=50,
)


@settings(max_examples=35, phases=[Phase.explicit, Phase.reuse, Phase.generate], deadline=None)
@given(
    PLACES, st.lists(st.integers(1, 20), min_size=1, max_size=8), st.sampled_from([1, 3]),
    st.lists(NUMBERS, min_size=1, max_size=6), st.sampled_from([None, 0.0]),
    st.sampled_from([None, None, 0, 150]),
    st.lists(st.sampled_from(["", "", "cold", "restart", "before", "after"]), min_size=1, max_size=5),
    st.booleans(), st.booleans(), st.sampled_from([execute, after_one_that_dies, after_one_unheard]),
    st.lists(st.sampled_from([None, None, 1, 2, 3, 5]), min_size=1, max_size=5),
)  # fmt: skip
def test_splits_and_merges_change_nothing_of_what_comes_out(
    rows: list[Place], steps: list[int], slots: int, numbers: list[int], seconds: float | None,
    memory: int | None, happenings: list[str], journals: bool, told: bool, attempts: Any,
    wanted: list[int | None],
) -> None:  # fmt: skip
    operator = Regions(told=told)
    intake = KeyedIntake(operator, "@position", "time", "s")
    budget = Budget(seconds, 1 << 20, memory)
    budgets = {0: replace(budget, seconds=0.0)}
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.engine.keyed_execute._CHUNK", 3)
        patch.setattr("geoflux.engine.keyed_states._MOST_JOURNALS", 3)
        if journals:
            patch.setattr(Regions, "size", lambda self, state: 100_000)
        patch.setattr(
            "geoflux.engine.inline.work_of", lambda task: replace(work_of(task), execute=attempts)
        )
        setting = KeyedSetting(
            Store(name), operator, intake, Shuffling(numbers), budgets, budget, Resizing(wanted),
            sampling=Sampling(SEED, 0, 1),
        )  # fmt: skip

        def recovered() -> KeyedEngine:
            return KeyedEngine.recovered(
                setting, lambda: PrefixPlan.initial(slots, CODE_BITS, per_slot=2)
            )

        engine, source = recovered(), cast("EventSource", Places(rows))
        position = epoch = 0
        while position < len(rows) or engine.wants_closing():
            end = min(len(rows), position + steps[epoch % len(steps)])
            happens = happenings[epoch % len(happenings)]
            if happens in ("before", "after"):
                killed(engine, happens, source, epoch, (position, end))
                engine = recovered()
                assert engine.is_committed(epoch) == (happens == "after")
            if not engine.is_committed(epoch):
                run_epoch(engine, source, epoch, (position, end))
            position, epoch = end, epoch + 1
            if happens == "restart":
                engine = recovered()
            if happens == "cold":
                keyed_states._cache.clear()
        check_rows(Path(name), rows, EpochLog(Store(name)))
        check_states(Store(name), operator, rows)


def check_rows(folder: Path, rows: list[Place], log: EpochLog) -> None:
    """Every row once, in the order of its region, and acknowledged in the epoch that had it."""
    found: dict[str, tuple[int, int, int]] = {}
    followed: dict[int, int] = {}
    for manifest in log.manifests():
        done = set()
        for file in manifest["files"]:
            table = pq.read_table(folder / file)
            if file.startswith("results/"):
                for row in table.to_pylist():
                    assert row["id"] not in found
                    found[row["id"]] = row["code"], row["count"], row["trail"]
                    done.add(int(row["id"]))
        followed |= {root: position for root, _, position in manifest["roots"]}
        acked = {followed[root] for root, ack in manifest["acks"]}
        assert all(root == ack for root, ack in manifest["acks"]), "nothing derives from a row"
        refused = {n for n in acked if rows[n][0] == 200}
        assert len(refused) == manifest["quarantined"]
        assert acked - refused == done
    assert found == expected(rows)


def check_states(store: Store, operator: Regions, rows: list[Place]) -> None:
    """The states of all partitions are those of all regions, and what is in memory is what can be
    read, to the number of batches."""
    log = EpochLog(store)
    last = log.last()
    assert last is not None
    whole: dict[int, Region] = {}
    for partition, refs in StateMap.from_dict(log.manifest(last)["states"]).refs.items():
        known = keyed_states._cache.pop((store.root, partition), None)
        state = keyed_states.opened(store, operator, refs)
        if known is not None and known[0] == refs:
            assert known[1] == state
        assert not whole.keys() & state.keys()
        whole |= state
    assert {code: region[:2] for code, region in whole.items()} == sums(rows)


def test_such_runs_split_and_merge_what_waits() -> None:
    """What the law rests on: partitions with rows that wait and with journals are split and merged,
    and states are opened that were cut and joined."""
    rows = [(float(-180 + 37 * i % 360), float(-90 + 11 * i % 180), 1.0) for i in range(200)]
    operator, kinds, heirs, waited = Regions(), set(), 0, 0
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.engine.keyed_execute._CHUNK", 3)
        patch.setattr(Regions, "size", lambda self, state: 100_000)
        setting = KeyedSetting(
            Store(name), operator, KeyedIntake(operator, "@position", "time", "s"),
            Shuffling([3, 4 * 3 + 3, 4 * 8 + 7, 4 * 11 + 3]), budget=Budget(0.0, 1 << 20),
            sampling=Sampling(SEED, 0, 1),
        )  # fmt: skip
        engine = KeyedEngine.recovered(setting, lambda: PrefixPlan.initial(3, CODE_BITS, 2))
        source, epoch = cast("EventSource", Places(rows)), 0
        while epoch * 10 < len(rows) or engine.wants_closing():
            start = min(epoch * 10, len(rows))
            manifest = run_epoch(engine, source, epoch, (start, min(start + 10, len(rows))))
            kinds |= {change["kind"] for change in manifest["decision"]["changes"]}
            for kind in ("states", "carried"):
                refs = [ref for some in manifest[kind].values() for ref in some]
                heirs += kind == "states" and sum(len(ref) == 5 for ref in refs)
                waited += kind == "carried" and sum(len(ref) == 5 for ref in refs)
            epoch += 1
        check_rows(Path(name), rows, EpochLog(Store(name)))
        check_states(Store(name), operator, rows)
    assert {"splitprefix", "mergeprefix", "move"} <= kinds
    assert heirs > 50
    assert waited > 10
