"""Laws of Flux: moves even out what they say, rounds settle, the buffer keeps order and budget."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoflux.balance.flux_loads import SiteReport
from geoflux.balance.flux_moves import hybrid_moves, load_moves, memory_moves, moves
from geoflux.balance.flux_rounds import FluxRounds
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.balance.skew_buffer import SkewBuffer
from geoflux.plan import Move

TINY = 1e-12

tunings = st.builds(
    FluxTuning,
    kind=st.sampled_from(["load", "memory", "hybrid"]),
    imbalance=st.sampled_from([1.0, 1.02, 1.2, 2.0]),
    receiver_below=st.sampled_from([0.5, 0.9, 1.0]),
    self_tuning=st.booleans(),
    collect_min=st.sampled_from([0.01, 0.25, 1.0]),
)


@st.composite
def stages(draw: st.DrawFn, spilling: bool | None = None) -> list[SiteReport]:
    """What the sites of a stage might report of a phase of one second, whatever that is."""
    reports, next_id = [], 0
    for slot in range(draw(st.integers(1, 7))):
        counts = draw(st.lists(st.integers(0, 60) | st.integers(0, 9000), max_size=7))
        owned = range(next_id, next_id + len(counts))
        next_id += len(counts)
        sizes = {p: draw(st.integers(0, 50)) for p in owned}
        capacity = draw(st.none() | st.integers(0, 300))
        held = draw(st.booleans()) if spilling is None else spilling
        spilled = {p: draw(st.integers(0, 9)) for p in owned if held and draw(st.booleans())}
        idle = draw(st.sampled_from([0.0, 1.0]) | st.floats(0, 1))
        reports.append(
            SiteReport(slot, idle, dict(zip(owned, counts, strict=True)), capacity, sizes, spilled)
        )
    return draw(st.permutations(reports))


@st.composite
def steady(draw: st.DrawFn) -> tuple[dict[int, int], dict[int, int], list[float]]:
    """Tuples per phase and owner of each partition, and the seconds per tuple of each site, none of
    which is overloaded."""
    costs = draw(st.lists(st.sampled_from([1.0, 1.0, 2.0, 3.7]), min_size=2, max_size=6))
    counts = dict(enumerate(draw(st.lists(st.integers(0, 40), min_size=1, max_size=24))))
    owners = {p: draw(st.integers(0, len(costs) - 1)) for p in counts}
    most = max(
        cost * sum(counts[p] for p in counts if owners[p] == slot)
        for slot, cost in enumerate(costs)
    )
    return counts, owners, [cost / max(most, 1.0) for cost in costs]


def donor_of(partition: int, reports: list[SiteReport]) -> SiteReport:
    return next(report for report in reports if partition in report.tuples)


def at(slot: int, reports: list[SiteReport]) -> SiteReport:
    return next(report for report in reports if report.slot == slot)


def predicted(donor: SiteReport, receiver: SiteReport, n: int) -> tuple[float, float]:
    """The paper's estimate, as trap 16 gives it: U_d - U_d*n/N_d and U_r + U_r*n/N_r."""
    u_d, u_r = 1 - donor.idle, 1 - receiver.idle
    n_d, n_r = sum(donor.tuples.values()), sum(receiver.tuples.values())
    grows = u_r * n / n_r if n_r and u_r > 0 else u_d * n / n_d
    return u_d - u_d * n / n_d, u_r + grows


@given(stages(), tunings)
def test_a_site_gives_or_gets_at_most_one_partition_a_round(
    reports: list[SiteReport], tuning: FluxTuning
) -> None:
    chosen = moves(reports, 1.0, tuning)
    touched = [donor_of(m.partition, reports).slot for m in chosen] + [m.to for m in chosen]
    assert len(set(touched)) == len(touched)
    assert len(chosen) <= len(reports) // 2


@given(stages(), tunings)
def test_a_load_move_lowers_the_higher_of_the_two_and_fills_nobody_up(
    reports: list[SiteReport], tuning: FluxTuning
) -> None:
    mean = sum(1 - r.idle for r in reports) / len(reports)
    for move in load_moves(reports, 1.0, tuning):
        donor, receiver = donor_of(move.partition, reports), at(move.to, reports)
        given_, got = predicted(donor, receiver, donor.tuples[move.partition])
        before = 1 - donor.idle, 1 - receiver.idle
        assert max(given_, got) < max(before)
        assert abs(given_ - got) < before[0] - before[1] + TINY
        assert got <= 1 + TINY
        assert before[0] >= mean - TINY
        factor, below = tuning.bounds(min(donor.processed, receiver.processed))
        assert before[0] >= factor * before[1] - TINY
        assert before[1] <= below + TINY


@given(stages(), tunings)
def test_the_largest_partition_that_helps_is_the_one_that_moves(
    reports: list[SiteReport], tuning: FluxTuning
) -> None:
    for move in load_moves(reports, 1.0, tuning):
        donor, receiver = donor_of(move.partition, reports), at(move.to, reports)
        apart = receiver.idle - donor.idle
        for n in donor.tuples.values():
            if n > donor.tuples[move.partition]:
                given_, got = predicted(donor, receiver, n)
                lower = max(given_, got) < 1 - donor.idle - 1e-8
                assert not (lower and got < 1 - TINY and abs(given_ - got) < apart - TINY)


@given(stages(), tunings, st.floats(0, 1))
def test_with_equal_load_nothing_moves(
    reports: list[SiteReport], tuning: FluxTuning, idle: float
) -> None:
    assert load_moves([replace(r, idle=idle) for r in reports], 1.0, tuning) == ()


def seen_of(stage: tuple[dict[int, int], dict[int, int], list[float]]) -> list[SiteReport]:
    """What sites with constant rates report of a second."""
    counts, owners, costs = stage
    reports = []
    for slot, cost in enumerate(costs):
        mine = {p: n for p, n in counts.items() if owners[p] == slot}
        reports.append(SiteReport(slot, 1 - cost * sum(mine.values()), mine))
    return reports


@given(steady(), tunings)
def test_with_constant_rates_rounds_settle_and_never_raise_the_highest(
    stage: tuple[dict[int, int], dict[int, int], list[float]], tuning: FluxTuning
) -> None:
    """Where all sites are equal, or as long as every one shows its rate: of an idle site that is
    slower than the donor nobody can know."""
    _, owners, costs = stage
    tuning = replace(tuning, kind="load")
    highest = math.inf
    for _ in range(500):
        reports = seen_of(stage)
        if len(set(costs)) > 1 and not all(r.processed for r in reports):
            return
        now = max(1 - r.idle for r in reports)
        assert now <= highest + TINY
        highest = now
        chosen = moves(reports, 1.0, tuning)
        if not chosen:
            break
        owners.update({move.partition: move.to for move in chosen})
    else:
        pytest.fail("500 rounds and still moving")


@given(stages(), tunings)
def test_memory_moves_even_out_the_excess_and_take_from_memory_first(
    reports: list[SiteReport], tuning: FluxTuning
) -> None:
    finite = [r.excess for r in reports]
    for move in memory_moves(reports, tuning):
        donor, receiver = donor_of(move.partition, reports), at(move.to, reports)
        size, apart = donor.sizes[move.partition], receiver.excess - donor.excess
        if apart < math.inf:
            assert abs(apart - 2 * size) < apart
        assert donor.excess < sum(finite) / len(finite)
        assert min(donor.excess + size, receiver.excess - size) > donor.excess
        helps = {p for p, other in donor.sizes.items() if 0 < other < apart}
        in_memory = helps - donor.spilled.keys()
        if in_memory:
            assert move.partition in in_memory
        same = in_memory or helps
        assert size == max(donor.sizes[p] for p in same)


@given(stages(), tunings)
def test_repeated_memory_rounds_settle(reports: list[SiteReport], tuning: FluxTuning) -> None:
    for _ in range(500):
        chosen = memory_moves(reports, tuning)
        if not chosen:
            return
        for move in chosen:
            donor, receiver = donor_of(move.partition, reports), at(move.to, reports)
            p = move.partition
            left = {q: n for q, n in donor.tuples.items() if q != p}
            reports = [r for r in reports if r.slot not in (donor.slot, receiver.slot)]
            reports += [
                replace(donor, tuples=left, sizes={q: donor.sizes[q] for q in left}),
                replace(
                    receiver,
                    tuples={**receiver.tuples, p: donor.tuples[p]},
                    sizes={**receiver.sizes, p: donor.sizes[p]},
                ),
            ]
    pytest.fail("500 rounds and still moving")


@given(stages(spilling=True), tunings)
def test_hybrid_is_memory_where_anything_is_on_disk(
    reports: list[SiteReport], tuning: FluxTuning
) -> None:
    if any(r.spilled for r in reports):
        assert hybrid_moves(reports, 1.0, tuning) == memory_moves(reports, tuning)


@given(stages(spilling=False), tunings)
def test_hybrid_is_load_with_room_at_the_destination_otherwise(
    reports: list[SiteReport], tuning: FluxTuning
) -> None:
    chosen = hybrid_moves(reports, 1.0, tuning)
    for move in chosen:
        size = donor_of(move.partition, reports).sizes[move.partition]
        receiver = at(move.to, reports)
        assert receiver.capacity is None or sum(receiver.sizes.values()) + size <= receiver.capacity
    free = [replace(r, capacity=None) for r in reports]
    assert hybrid_moves(free, 1.0, tuning) == load_moves(reports, 1.0, tuning)


@given(tunings, st.lists(st.tuples(stages(), st.floats(0, 3)), max_size=12))
def test_phases_stay_within_their_bounds_and_survive_the_manifest(
    tuning: FluxTuning, history: list[tuple[list[SiteReport], float]]
) -> None:
    rounds = FluxRounds.first(tuning)
    for reports, seconds in history:
        before = rounds
        chosen = moves(reports, 1.0, tuning)
        rounds = rounds.after(chosen, seconds, reports, 1.0, tuning)
        wanted = {seconds} if chosen else {before.collect / 2}
        if tuning.self_tuning and not chosen:
            wanted.add(min(2 * before.collect, max(tuning.collect_max, before.collect / 2)))
        assert rounds.collect in {max(some, rounds.minimum) for some in wanted}
        assert tuning.collect_min <= rounds.minimum <= max(tuning.collect_min, tuning.collect_max)
        assert rounds.minimum <= 2 * before.minimum
        if not tuning.self_tuning:
            assert rounds.minimum == tuning.collect_min
        assert len(rounds.recent) <= tuning.again_within
        assert FluxRounds.from_dict(json.loads(json.dumps(rounds.to_dict()))) == rounds


@given(steady(), st.floats(0.001, 0.4))
def test_moves_that_keep_their_promise_and_do_not_return_leave_the_minimum_alone(
    stage: tuple[dict[int, int], dict[int, int], list[float]], seconds: float
) -> None:
    _, owners, costs = stage
    tuning = FluxTuning(kind="load")
    rounds, seen = FluxRounds.first(tuning), set[int]()
    for _ in range(20):
        reports = seen_of(stage)
        if len(set(costs)) > 1 and not all(r.processed for r in reports):
            return
        chosen = moves(reports, 1.0, tuning)
        again = seen & {move.partition for move in chosen}
        rounds = rounds.after(chosen, seconds, reports, 1.0, tuning)
        if again:
            return
        assert rounds.minimum == tuning.collect_min
        seen |= {move.partition for move in chosen}
        owners.update({move.partition: move.to for move in chosen})


@given(
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 15)), max_size=80),
)
def test_the_buffer_is_a_dictionary_of_queues_within_its_budget(
    limit: int, steps: list[tuple[int, int | None]]
) -> None:
    buffer = SkewBuffer[tuple[int, int]](limit)
    model: dict[int, deque[tuple[int, int]]] = {}
    for number, (partition, size) in enumerate(steps):
        if size is None:
            queue = model.get(partition)
            assert buffer.peek(partition) == (queue[0] if queue else None)
            assert buffer.retrieve(partition) == (queue.popleft() if queue else None)
        elif buffer.has_room(size):
            buffer.insert(partition, (number, size), size)
            model.setdefault(partition, deque()).append((number, size))
        else:
            with pytest.raises(AssertionError):
                buffer.insert(partition, (number, size), size)
        held = [item for queue in model.values() for item in queue]
        assert buffer.bytes == sum(size for _, size in held) <= limit
        assert buffer.items == len(held)
        full = {p: queue for p, queue in model.items() if queue}
        assert list(buffer.waiting()) == sorted(full, key=lambda p: full[p][0][0])


def test_moves_do_not_depend_on_the_order_of_the_reports() -> None:
    reports = [SiteReport(s, 0.2 * s, {2 * s: 9 - s, 2 * s + 1: 5}) for s in range(5)]
    assert load_moves(reports, 1.0, FluxTuning()) == load_moves(reports[::-1], 1.0, FluxTuning())
    assert load_moves(reports, 1.0, FluxTuning())[0] == Move(0, to=4)
