"""How long Flux collects: the paper's rule, and the minimum that tunes itself."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.flux_moves import load_moves, moves
from geoflux.balance.flux_rounds import FluxRounds, promise_of
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.plan import HashPlan, Move

PUBLISHED = FluxTuning.published(kind="load")
TUNING = FluxTuning(kind="load")


def reports(*counts: dict[int, int], elapsed: float = 1.0) -> list[SiteReport]:
    """Sites of equal rate, the busiest of which never waited."""
    most = max(sum(tuples.values()) for tuples in counts)
    return [
        SiteReport(slot, elapsed * (1 - sum(tuples.values()) / most), tuples)
        for slot, tuples in enumerate(counts)
    ]


UNEVEN = reports({0: 30_000, 1: 10_000}, {2: 10_000})
EVENED = reports({0: 40_000}, {2: 13_000, 1: 13_000})


def test_a_phase_takes_as_long_as_the_moves_before_it_and_halves_without_any() -> None:
    rounds = FluxRounds.first(PUBLISHED)
    collects = [rounds.collect]
    for moved, seconds in (((Move(1, 1),), 0.3), ((), 0.0), ((), 0.0), ((Move(0, 1),), 0.004)):
        rounds = rounds.after(moved, seconds, UNEVEN, rounds.collect, PUBLISHED)
        collects.append(rounds.collect)
    assert collects == [0.01, 0.3, 0.15, 0.075, 0.01]
    for _ in range(9):
        rounds = rounds.after((), 0.0, UNEVEN, rounds.collect, PUBLISHED)
    assert rounds.collect == rounds.minimum == 0.01


def test_a_published_minimum_never_tunes_itself() -> None:
    rounds = FluxRounds.first(PUBLISHED)
    for to in (1, 0, 1, 0):
        rounds = rounds.after((Move(0, to),), 0.0, UNEVEN, 1.0, PUBLISHED)
    assert rounds.minimum == 0.01


def test_a_partition_that_moves_to_and_fro_doubles_the_minimum() -> None:
    rounds = FluxRounds.first(TUNING)
    minima = []
    for at in range(8):
        here = UNEVEN if at % 2 == 0 else reports({1: 10_000}, {0: 30_000, 2: 10_000})
        rounds = rounds.after((Move(0, 1 - at % 2),), 0.0, here, 1.0, TUNING)
        minima.append(round(rounds.minimum, 6))
    assert minima == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]


def test_little_work_that_moves_again_beside_much_that_does_not_is_no_sign() -> None:
    here = reports({0: 30_000, 1: 10}, {2: 10_000})
    rounds = FluxRounds(0.01, 0.1, recent=((1,),))
    assert rounds.after((Move(1, 1), Move(0, 1)), 0.0, here, 1.0, TUNING).minimum < 0.1
    assert rounds.after((Move(1, 1),), 0.0, here, 1.0, TUNING).minimum == 0.2


def test_a_move_long_ago_is_forgotten() -> None:
    rounds = FluxRounds.first(TUNING).after((Move(0, 1),), 0.0, UNEVEN, 1.0, TUNING)
    for _ in range(TUNING.again_within):
        assert 0 in {p for moved in rounds.recent for p in moved}
        rounds = rounds.after((), 0.0, UNEVEN, 1.0, TUNING)
    before = rounds.minimum
    assert rounds.after((Move(0, 1),), 0.0, UNEVEN, 1.0, TUNING).minimum <= before


def test_a_promise_that_was_kept_lowers_the_minimum_and_a_broken_one_doubles_it() -> None:
    rounds = replace(FluxRounds.first(TUNING), minimum=0.1)
    rounds = rounds.after((Move(1, 1),), 0.0, UNEVEN, 1.0, TUNING)
    assert rounds.promise is not None
    assert rounds.promise.factor == pytest.approx(4 / 3)
    kept = rounds.after((), 0.0, EVENED, 1.0, TUNING)
    broken = rounds.after((), 0.0, UNEVEN, 1.0, TUNING)
    assert kept.minimum == pytest.approx(0.9 * rounds.minimum)
    assert broken.minimum == pytest.approx(2 * rounds.minimum)


def test_with_few_tuples_a_gain_that_is_missing_may_be_chance() -> None:
    few = reports({0: 30, 1: 10}, {2: 10})
    rounds = replace(FluxRounds.first(TUNING), minimum=0.1)
    rounds = rounds.after((Move(1, 1),), 0.0, few, 1.0, TUNING)
    assert rounds.after((), 0.0, few, 1.0, TUNING).minimum < rounds.minimum


def test_less_input_is_not_taken_for_a_broken_promise() -> None:
    rounds = FluxRounds.first(TUNING).after((Move(1, 1),), 0.0, UNEVEN, 1.0, TUNING)
    quiet = [
        SiteReport(r.slot, 1 - (1 - r.idle) / 10, {p: n // 10 for p, n in r.tuples.items()})
        for r in EVENED
    ]
    assert rounds.after((), 0.0, quiet, 1.0, TUNING).minimum == 0.01


def test_nothing_is_promised_while_partitions_are_on_disk() -> None:
    spilling = [replace(UNEVEN[0], spilled={0: 5}), UNEVEN[1]]
    assert promise_of((Move(1, 1),), spilling, 1.0) is None
    assert promise_of((), [SiteReport(0, 1.0, {})], 1.0) is None


def test_rounds_survive_the_manifest() -> None:
    rounds = FluxRounds.first(TUNING).after((Move(1, 1),), 0.3, UNEVEN, 1.0, TUNING)
    assert FluxRounds.from_dict(json.loads(json.dumps(rounds.to_dict()))) == rounds


def skewed_stage(tuning: FluxTuning | None, seconds: float = 30.0) -> float:
    """Tuples per second of 16 sites with 80/20 input that comes in bursts; ``None``: no moves.

    A fluid stage: it runs as fast as its busiest site, and what moves away from there stands still.
    The other sites see their input in bursts of about 0.2 s, so a short phase shows them idle.
    """
    rng = np.random.default_rng(5)
    plan = HashPlan.initial(slots=16, per_slot=32)
    groups = np.arange(1, 16_385) ** -0.94
    weights = np.bincount(plan.locate(np.arange(16_384)), groups / groups.sum(), 512)
    rounds, now, done = FluxRounds.first(tuning or PUBLISHED), 0.0, 0.0
    while now < seconds:
        owners, collect = plan.owners, rounds.collect
        share = np.bincount(owners, weights, 16)
        rate, busiest = 1 / (45e-6 * share.max()), int(share.argmax())
        burst = rng.gamma(collect / 0.2, 0.2 / collect)
        seen = rng.poisson(rate * collect * weights * np.where(owners == busiest, 1.0, burst))
        phase = []
        for slot in range(16):
            mine = {int(p): int(seen[p]) for p in np.flatnonzero(owners == slot)}
            busy = collect if slot == busiest else min(collect, 45e-6 * sum(mine.values()))
            phase.append(SiteReport(slot, collect - busy, mine))
        moved = moves(phase, collect, tuning) if tuning else ()
        took = 0.026 * max(1.0, len(moved) / 2) if moved else 0.0
        held = sum(weights[m.partition] for m in moved if owners[m.partition] == busiest)
        now += collect + took
        done += rate * (collect + took * (1 - held / share.max()))
        for move in moved:
            plan = plan.apply(move)
        rounds = rounds.after(moved, took, phase, collect, tuning or PUBLISHED)
    return done / now


def test_with_skewed_input_the_published_minimum_overreacts_and_ours_beats_doing_nothing() -> None:
    still = skewed_stage(None)
    assert skewed_stage(PUBLISHED) < still
    assert skewed_stage(TUNING) > 1.05 * still


def test_what_may_be_chance_is_looked_at_twice_as_long_until_it_is_not() -> None:
    def apart(tuples: int) -> list[SiteReport]:
        return [
            SiteReport(0, 0.0, {0: tuples // 2, 1: tuples // 2}),
            SiteReport(1, 0.13, {2: tuples}),
        ]

    tuning = FluxTuning(kind="load", strictest=1.1)
    few, many = apart(200), apart(20_000)
    assert load_moves(few, 1.0, tuning) == ()
    first = FluxRounds.first(tuning)
    assert first.after((), 0.0, few, 1.0, tuning).collect == 2 * first.collect
    assert load_moves(apart(2_000), 1.0, FluxTuning.published()) == ()
    published = FluxRounds.first(FluxTuning.published())
    assert published.after((), 0.0, few, 1.0, FluxTuning.published()).collect == published.collect
    # With so many tuples it is no chance: the same imbalance is acted on, as far as it helps.
    assert tuning.bounds(20_000) == (1.1, 0.95)
    assert many[0].utilisation(1.0) > 1.1 * many[1].utilisation(1.0)
    assert first.after((), 0.0, many, 1.0, tuning).collect == first.collect
