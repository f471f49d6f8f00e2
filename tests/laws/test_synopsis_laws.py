"""Laws of Synopsis's policy on a model of a stage: nothing changes under a load that is kept up
with; a step leads to regions given away, and then to rest; when it is over all is as it was."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from geoflux.balance.synopsis_policy import SynopsisPolicy
from geoflux.balance.synopsis_tuning import SynopsisTuning
from geoflux.balance.taking_back import (
    Evicted,
    left,
    outermost,
    region_of,
    still_there,
    taken_back,
)
from geoflux.plan import MergePrefix, Move, PrefixPlan, Resize, SplitPrefix
from geoflux.plan.prefixes import inside
from regions_plant import BITS, Plant

CODES = 1 << BITS
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller example tells no more
QUICK = {"observe": 0.0, "hold": 2, "calm": 3, "rest": 2}


def plant(slots: int, per_slot: int = 1, capacity: int | None = None, **tuning: Any) -> Plant:
    policy = SynopsisPolicy(SynopsisTuning(**{**QUICK, **tuning}))
    return Plant(policy, PrefixPlan.initial(slots, BITS, per_slot), capacity=capacity)


def calm_and_hot(seed: int, start: int, width: int, rows: float) -> tuple[Any, Any]:
    """A load that any slot keeps up with, and one of so many rows, with a hot stretch of codes, no
    code with more than a quarter of what a slot can do."""
    random = np.random.default_rng(seed)
    calm = random.random(CODES)
    calm *= 250 / calm.sum()
    shape = random.random(width)
    hot = calm.copy()
    hot[np.arange(start, start + width) % CODES] += shape / shape.sum() * (rows - 250)
    return calm, np.minimum(hot, 250)


SEEDS, STARTS = st.integers(0, 999), st.integers(0, CODES - 1)
WIDTHS = st.sampled_from([12, 40])


@settings(max_examples=12, phases=PHASES, deadline=None)
@given(
    SEEDS, st.lists(st.tuples(STARTS, WIDTHS), min_size=1, max_size=3), st.integers(3, 5),
    st.integers(1, 3), st.floats(0.7, 1), st.booleans(),
)  # fmt: skip
def test_steps_are_placed_then_rest_and_are_undone_when_they_are_over(
    seed: int, hot_spots: list[tuple[int, int]], slots: int, per_slot: int, share: float,
    tells: bool,
) -> None:  # fmt: skip
    """All slots together could do twice what comes; the hot spot moves about."""
    stage = plant(slots, per_slot)
    stage.tells_bytes = tells
    first = stage.layout()
    for start, width in hot_spots:
        calm, hot = calm_and_hot(seed, start, width, 520 * slots * share)
        if stage.epoch == 0:
            assert stage.run(calm, 10) == []
        owners = stage.plan.owners[stage.plan.locate(np.arange(CODES))]
        assume(not 1000 < np.bincount(owners, hot).max() < 1030)  # it would take long to grow
        stage.run(hot, 60)
    assert stage.run(hot, 20) == [], "at rest"
    assert stage.waiting.sum() <= 1, "everybody keeps up"
    stage.run(calm, 150)
    assert stage.layout() == first
    assert stage.run(calm, 10) == []
    ins = [d for d in stage.decisions if d.reason.startswith("scale in: ")]
    outs = [d for d in stage.decisions if d.reason.startswith("scale out: slot ")]
    assert len(ins) + len(outs) == len(stage.decisions)
    assert all(len(d.changes) == 1 for d in ins), "one region at a time"


@settings(max_examples=5, phases=PHASES, deadline=None)
@given(SEEDS, STARTS, WIDTHS, st.permutations([3.0, 0.0, 0.0]), st.booleans())
def test_a_load_that_comes_in_bursts_is_placed_and_rests(
    seed: int, start: int, width: int, bursts: list[float], tells: bool
) -> None:
    """An observation of three epochs, all of its rows in one of them; rates are those of all three,
    also where nothing came in the last."""
    stage = plant(3, observe=3.0)
    stage.tells_bytes = tells
    calm, hot = calm_and_hot(seed, start, width, 1400)
    first = stage.layout()

    def run(rates: Any, observations: int) -> int:
        return sum(len(stage.run(rates * burst, 1)) for burst in bursts * observations)

    assert run(calm, 5) == 0
    owners = stage.plan.owners[stage.plan.locate(np.arange(CODES))]
    assume(np.bincount(owners, hot).max() > 1100)
    assert run(hot, 40) > 0
    assert run(hot, 15) == 0, "at rest"
    run(calm, 60)
    assert stage.layout() == first


@settings(max_examples=10, phases=PHASES, deadline=None)
@given(SEEDS, STARTS, WIDTHS, st.integers(1, 3), st.integers(1, 4))
def test_slots_come_where_nobody_can_take_anything_and_go_again(
    seed: int, start: int, width: int, per_slot: int, more: int
) -> None:
    stage = plant(1, per_slot, most_slots=1 + more)
    calm, load = calm_and_hot(seed, start, width, 550 * (1 + more))
    first = stage.layout()
    assert stage.run(calm, 20) == []
    stage.run(load, 90)
    assert stage.plan.slots <= 1 + more
    assert (stage.plan.slots > 1) == (load.sum() > 1001)
    assert stage.waiting.sum() <= 1
    assert stage.run(load, 20) == []
    stage.run(calm, 150)
    assert stage.layout() == first
    assert stage.plan.slots == 1


@settings(max_examples=8, phases=PHASES, deadline=None)
@given(SEEDS, st.integers(2, 5), st.integers(40, 400), st.booleans())
def test_a_load_far_beyond_all_slots_is_shared_by_all_of_them(
    seed: int, slots: int, times: int, come: bool
) -> None:
    """Not even the least part of it is within what a slot can do."""
    stage = plant(1, 1, most_slots=slots) if come else plant(slots, 1)
    load = np.random.default_rng(seed).uniform(0.8, 1.2, CODES)
    load *= times * 1000 / load.sum()
    if not come:
        load[CODES // 4 :] = 0.01  # of the first slot
    first = stage.layout()
    stage.run(load, 15 * slots)
    owners = stage.plan.owners[stage.plan.locate(np.arange(CODES))]
    shares = np.bincount(owners, load, slots) / load.sum()
    assert shares.min() > 0.25 / slots
    assert stage.run(load, 30) == [], "at rest"
    stage.waiting[:] = 0
    stage.run(np.full(CODES, 0.5), 400)
    assert stage.layout() == first


@settings(max_examples=20, phases=PHASES, deadline=None)
@given(SEEDS, st.integers(2, 4), st.booleans())
def test_memory_is_relieved_and_nobody_gets_above_the_threshold(
    seed: int, slots: int, tells: bool
) -> None:
    random = np.random.default_rng(seed)
    stage = plant(slots, 2, capacity=10_000)
    stage.tells_bytes = tells
    stage.held = random.integers(0, 20, CODES)
    stage.held[: CODES // slots] += 30  # all of one slot's, more or less
    stage.held = (stage.held * (0.5 * slots * 10_000 / stage.held.sum())).astype(np.int64)
    rates = random.random(CODES)
    stage.run(rates, 80)
    assert stage.run(rates, 20) == []
    for slot in range(slots):
        held = sum(
            stage._of(p.area, stage.held).sum() for p in stage.plan.partitions if p.slot == slot
        )
        assert held <= 0.75 * 10_000 + (0 if tells else 2_000)


def test_one_operation_and_then_a_rest() -> None:
    stage = plant(4, hold=3, rest=7)
    rates = np.full(CODES, 1.0)
    rates[:128] = 22.0  # two slots are behind, and wait for each other
    stage.run(np.full(CODES, 1.0), 5)
    decided = [epoch for epoch in range(60) if stage.run(rates, 1)]
    assert decided[0] == 2, "held for three observations"
    assert len(decided) >= 2
    assert all(b - a >= 3 + 7 for a, b in pairwise(decided))


def test_a_region_that_has_grown_too_large_stays_where_it_is() -> None:
    stage = plant(2, capacity=10_000, most_pieces=1)
    rates = np.full(CODES, 1.0)
    rates[:64] = 16.0
    stage.held[:] = 10
    stage.run(rates, 30)
    (gone,) = [p for p in stage.plan.within((0, 1)) if p.slot == 1]
    quiet = np.full(CODES, 0.5)
    stage._of(gone.area, stage.held)[:] = 5_500 >> (BITS - gone.bits)
    assert stage.run(quiet, 40) == [], "half of the memory of the one that would take it"
    stage._of(gone.area, stage.held)[:] = 10
    assert len(stage.run(quiet, 40)) == 1


@settings(max_examples=60, phases=PHASES, deadline=None)
@given(st.lists(st.integers(0, (1 << 30) - 1), min_size=1, max_size=14), st.integers(2, 4))
def test_taken_back_in_any_order_all_is_as_it_was(numbers: list[int], slots: int) -> None:
    """Prefixes given away by whoever has them, also on and back, and taken back one by one."""
    plan = PrefixPlan.initial(slots, 6, per_slot=1)
    first = [(p.area, p.slot) for p in plan.partitions]
    evicted: tuple[Evicted, ...] = ()
    for number in [*numbers, *reversed(numbers), *[7] * len(numbers)]:
        ends = len(evicted) and (number % 3 == 0 or number == 7)
        if ends:
            chosen = (number // 3) % len(evicted)
            change, region = taken_back(evicted, chosen, plan), region_of(evicted, chosen)
            others, before = left(evicted, chosen), plan
            assert not {evicted[chosen]} & set(others[chosen:])
            if change is not None:
                plan = plan.apply(change)
            assert all(
                p in plan.partitions for p in before.partitions if p not in before.within(region)
            )
            for e in others:
                if not inside(region, e.area):
                    assert [p.slot for p in plan.within(e.area)] == [
                        p.slot for p in before.within(e.area)
                    ]
            evicted = others
        elif number != 7 and len(evicted) < 8:
            p = plan.partitions[number // 3 % len(plan.partitions)]
            bits = min(p.bits + number // 64 % 4, plan.code_bits)
            area = (p.code << (bits - p.bits)) | number // 999 % (1 << (bits - p.bits)), bits
            to = (p.slot + 1 + number // 7 % (slots - 1)) % slots
            record = Evicted(area, p.slot, outermost(evicted, p.slot, p.area))
            plan = plan.apply(
                Move(p.id, to) if area == p.area else SplitPrefix(p.id, ((*area, to),))
            )
            evicted = (*evicted, record)
        assert still_there(evicted, plan) == evicted
        assert tuple(Evicted.of(e.to_list()) for e in evicted) == evicted
    while evicted:
        change = taken_back(evicted, 0, plan)
        plan, evicted = plan if change is None else plan.apply(change), left(evicted, 0)
    assert [(p.area, p.slot) for p in plan.partitions] == first


def test_neighbours_are_kept_together_where_they_fit() -> None:
    stage = plant(4)
    rates = np.full(CODES, 1.0)
    rates[0:8] = 140.0
    stage.run(rates, 12)
    assert len(stage.decisions) >= 1
    pieces = [c for d in stage.decisions for change in d.changes if isinstance(change, SplitPrefix)
              for c in change.pieces]  # fmt: skip
    assert len({to for _, _, to in pieces}) == 1, "what one slot can take goes to one"
    assert "(a neighbour)" in stage.decisions[0].reason or len(pieces) == 1


def test_it_only_places_where_somebody_else_counts() -> None:
    stage = plant(1)
    rates = np.full(CODES, 6.0)
    assert stage.run(rates, 30) == []
    seen = stage.policy.resized(stage.state)
    assert seen["watch"]["rest"] == QUICK["rest"]
    stage.state, stage.plan = seen, stage.plan.apply(Resize(3))
    decided = stage.run(rates, 60)
    assert decided
    assert not any(isinstance(c, Resize) for d in decided for c in d.changes)
    assert stage.waiting.sum() <= 1


def test_what_was_given_on_comes_back_with_it() -> None:
    """A gives to B, B gives some of it to C: taking it back fetches both."""
    stage = plant(3)
    first = stage.layout()
    rates = np.full(CODES, 1.0)
    rates[0:64] = 22.0
    stage.run(rates, 60)
    rates[64:128] = 13.0
    stage.run(rates, 60)
    assert stage.waiting.sum() <= 1
    assert {p.slot for p in stage.plan.within((0, 1))} == {0, 1, 2}
    stage.run(np.full(CODES, 0.5), 200)
    assert stage.layout() == first
    kinds = {type(c) for d in stage.decisions for c in d.changes}
    assert SplitPrefix in kinds
    assert kinds <= {SplitPrefix, MergePrefix, Move}


@pytest.mark.parametrize(
    ("name", "value"),
    [("hold", 0), ("memory_low", 0.9), ("return_below", 0.8), ("headroom", 1.0), ("observe", -1.0)],
)
def test_thresholds_that_make_no_sense_are_told(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        SynopsisTuning(**{name: value})
