"""Flux's three policies: what the paper says, and what its text leaves open."""

from __future__ import annotations

import pytest

from geoflux.balance.flux_loads import SiteReport, rate_when_full
from geoflux.balance.flux_moves import hybrid_moves, load_moves, memory_moves, moves
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.errors import ConfigError
from geoflux.plan import Move

LOAD = FluxTuning.published(kind="load")


def site(slot: int, tuples: dict[int, int], used: float | None = None) -> SiteReport:
    """A site that needs a millisecond per tuple, after a phase of one second."""
    busy = sum(tuples.values()) / 1000 if used is None else used
    return SiteReport(slot, 1 - busy, tuples)


def store(
    slot: int, sizes: dict[int, int], capacity: int, spilled: tuple[int, ...] = ()
) -> SiteReport:
    return SiteReport(
        slot, 0.0, dict.fromkeys(sizes, 0), capacity, sizes, dict.fromkeys(spilled, 1)
    )


def test_the_example_of_figure_5() -> None:
    # Site 1 with 4 and 2 with 3. Partition 9 is the largest of site 2, but 40 % is more than the
    # 30 % between the two: moving it would increase the imbalance.
    reports = [
        site(1, {5: 300, 1: 250, 2: 200, 3: 200}),
        site(2, {9: 400, 8: 200, 7: 150}),
        site(3, {10: 250, 11: 200}),
        site(4, {13: 150, 14: 100}),
    ]
    assert load_moves(reports, 1.0, LOAD) == (Move(5, to=4), Move(8, to=3))
    assert load_moves(reports[::-1], 1.0, LOAD) == (Move(5, to=4), Move(8, to=3))


def test_a_receiver_that_did_nothing_is_taken_to_be_as_fast_as_the_donor() -> None:
    # At the donor's rate 600 tuples leave 0.4 and 0.6. A lone partition would only change its place.
    assert load_moves([site(0, {0: 600, 1: 400}), site(1, {2: 0})], 1.0, LOAD) == (Move(0, 1),)
    assert load_moves([site(0, {0: 1000}), site(1, {})], 1.0, LOAD) == ()


def test_a_slow_receiver_is_judged_by_its_own_rate() -> None:
    # The receiver needs 5 ms per tuple. 100 tuples would fill it beyond 1, 90 would bring the two
    # closer (0.81 and 0.85 apart from 0.9 and 0.4), 20 would as well.
    donor = site(0, {0: 100, 1: 90, 2: 20, 3: 690}, used=0.9)
    slow = site(1, {9: 80}, used=0.4)
    assert load_moves([donor, slow], 1.0, LOAD) == (Move(1, to=1),)


def test_a_move_that_lifts_the_receiver_above_the_donor_is_not_made() -> None:
    # 0.8 and 0.2 would become 0.4 and 0.92: closer together, and yet worse.
    donor = site(0, {0: 400, 1: 400}, used=0.8)
    slow = site(1, {9: 111}, used=0.2)
    assert load_moves([donor, slow], 1.0, LOAD) == ()


def test_a_move_that_leaves_the_donor_far_below_a_fast_receiver_is_not_made() -> None:
    # 0.9 and 0.7 would become 0.1 and 0.74: lower, and yet further apart.
    donor = site(0, {0: 800, 1: 100})
    fast = site(1, {9: 14_000}, used=0.7)
    assert load_moves([donor, fast], 1.0, LOAD) == (Move(1, to=1),)


@pytest.mark.parametrize(
    ("donor", "receiver", "moved"),
    [
        (0.60, 0.49, True),
        (0.60, 0.51, False),  # not unlike enough: 0.6 is less than 1.2 times 0.51
        (1.00, 0.80, True),
        (1.00, 0.92, False),  # the receiver is busy already
        (0.01, 0.00, True),  # idle: unlike by any factor
        (0.00, 0.00, False),
    ],
)
def test_the_threshold_test(donor: float, receiver: float, moved: bool) -> None:
    reports = [site(0, dict.fromkeys(range(100), 10), donor), site(1, {200: 900}, receiver)]
    assert bool(load_moves(reports, 1.0, LOAD)) is moved


def test_the_receiver_s_bound_holds_whatever_the_imbalance() -> None:
    reports = [site(0, dict.fromkeys(range(100), 10)), site(1, {200: 800})]
    assert load_moves(reports, 1.0, FluxTuning.published(imbalance=1.0)) != ()
    assert load_moves(reports, 1.0, FluxTuning.published(imbalance=1.0, receiver_below=0.7)) == ()


def test_a_pair_that_fails_the_test_ends_the_round() -> None:
    # 0.95 with 0.1, then 0.6 with 0.55, which are alike.
    reports = [
        site(0, {0: 500, 1: 450}), site(1, {2: 300, 3: 300}), site(2, {4: 550}), site(3, {5: 100}),
    ]  # fmt: skip
    assert load_moves(reports, 1.0, LOAD) == (Move(0, to=3),)
    assert load_moves(reports[1:3], 1.0, LOAD) == ()


def test_a_pair_without_a_fitting_partition_does_not_end_the_round() -> None:
    reports = [site(0, {0: 1000}), site(1, {1: 400, 2: 400}), site(2, {3: 100}), site(3, {4: 50})]
    assert load_moves(reports, 1.0, LOAD) == (Move(1, to=2),)


def test_the_middle_site_and_a_lonely_one_do_nothing() -> None:
    assert load_moves([], 1.0, LOAD) == ()
    assert load_moves([site(0, {0: 9})], 1.0, LOAD) == ()
    reports = [site(0, {0: 300, 1: 300}), site(1, {2: 400}), site(2, {3: 10})]
    assert load_moves(reports, 1.0, LOAD) == (Move(0, to=2),)


def test_memory_goes_from_the_least_to_the_most_excess() -> None:
    # Excess -256, 20, 200, 256 (mean 55): site 0 to 3 and 1 to 2. Of site 0 the partition in memory
    # is as large as the difference, so the one on disk goes; of site 1 the largest that is smaller.
    first = store(0, {0: 256, 1: 512}, 512, spilled=(0,))
    second = store(1, {2: 900, 3: 60, 4: 50}, 1030)
    others = [store(2, {5: 600}, 800), store(3, {6: 768}, 1024)]
    assert memory_moves([first, second, *others], LOAD) == (Move(0, to=3), Move(3, to=2))
    # With 100 left, above the mean of 75, the second site gives nothing.
    second = store(1, {2: 900, 3: 60, 4: 50}, 1110)
    assert memory_moves([first, second, *others], LOAD) == (Move(0, to=3),)


def test_partitions_in_memory_go_before_larger_ones_on_disk() -> None:
    full = store(0, {0: 40, 1: 30, 2: 20}, 60, spilled=(0, 1))
    assert memory_moves([full, store(1, {}, 100)], LOAD) == (Move(2, to=1),)
    only_disk = store(0, {0: 40, 1: 30}, 10, spilled=(0, 1))
    assert memory_moves([only_disk, store(1, {}, 100)], LOAD) == (Move(0, to=1),)


def test_a_site_that_does_not_fit_is_relieved_however_alike_the_two_are() -> None:
    reports = [store(0, {0: 55, 1: 50}, 100, spilled=(0,)), store(1, {2: 90, 3: 6}, 150)]
    assert memory_moves(reports, LOAD) == (Move(1, to=1),)
    reports = [store(0, {0: 5, 1: 100}, 100, spilled=(0,)), store(1, {2: 93}, 100)]
    assert memory_moves(reports, LOAD) == (Move(0, to=1),)


def test_a_partition_without_a_state_relieves_no_memory() -> None:
    full = store(0, {0: 0, 1: 120}, 100, spilled=(1,))
    assert memory_moves([full, store(1, {}, 200)], LOAD) == (Move(1, to=1),)
    assert memory_moves([full, store(1, {}, 100)], LOAD) == ()  # it would only change its place


def test_with_all_memory_exhausted_what_is_on_disk_is_shared_out() -> None:
    reports = [
        store(0, dict.fromkeys(range(9), 10), 30, tuple(range(3, 9))),
        store(1, {9: 40}, 30, (9,)),
    ]
    assert memory_moves(reports, LOAD) == (Move(0, to=1),)


def test_a_site_without_a_limit_takes_only_what_fits_nowhere_else() -> None:
    free = SiteReport(1, 0.0, {})
    assert memory_moves([store(0, {0: 90}, 100), free], LOAD) == ()
    assert memory_moves([store(0, {0: 90, 1: 20}, 100, (1,)), free], LOAD) == (Move(0, to=1),)
    assert memory_moves([free, SiteReport(2, 0.0, {})], LOAD) == ()


def test_hybrid_looks_at_memory_as_long_as_anything_is_on_disk() -> None:
    busy = SiteReport(0, 0.0, {0: 60, 1: 30}, 200, {0: 100, 1: 50})
    calm = SiteReport(1, 0.9, {2: 10}, 100, {2: 40})
    assert hybrid_moves([busy, calm], 1.0, LOAD) == (Move(1, to=1),)  # 0 is too large
    spilling = SiteReport(1, 0.9, {2: 10}, 30, {2: 40}, {2: 7})
    assert hybrid_moves([busy, spilling], 1.0, LOAD) == (Move(2, to=0),)


def test_the_kind_chooses_the_policy() -> None:
    reports = [
        SiteReport(0, 0.0, {0: 60, 1: 30}, 200, {0: 100, 1: 50}),
        SiteReport(1, 0.9, {2: 10}, 100, {2: 10}),
    ]
    assert moves(reports, 1.0, FluxTuning(kind="load")) == (Move(0, to=1),)
    assert moves(reports, 1.0, FluxTuning(kind="memory")) == ()
    assert moves(reports, 1.0, FluxTuning()) == (Move(1, to=1),)


def test_a_phase_needs_a_duration() -> None:
    with pytest.raises(ValueError, match="collection phase"):
        load_moves([site(0, {}), site(1, {})], 0.0, LOAD)


def test_idle_times_that_were_measured_a_little_wrong_are_clipped() -> None:
    assert SiteReport(0, 1.1, {}).utilisation(1.0) == 0
    assert SiteReport(0, -0.1, {}).utilisation(1.0) == 1
    assert rate_when_full([SiteReport(0, 1.1, {})], 1.0) is None


def test_all_that_is_wrong_with_a_tuning_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match=r"(?s)imbalance = 0.9.*receiver_below = 0"):
        FluxTuning(imbalance=0.9, receiver_below=0.0)


def test_hybrid_passes_over_idle_sites_that_have_no_memory() -> None:
    """Else the two busy ones would be paired with the two that can take nothing."""
    busy = [SiteReport(n, 0.0, {n: 60, n + 10: 40}, 100, {n: 10, n + 10: 10}) for n in (0, 1)]
    poor = [SiteReport(n, 0.9, {n: 10}, 100, {n: 95}) for n in (2, 3)]
    roomy = [SiteReport(n, 0.7, {n: 30}, 100, {n: 10}) for n in (4, 5)]
    chosen = hybrid_moves([*busy, *poor, *roomy], 1.0, LOAD)
    assert {move.to for move in chosen} == {4, 5}
    assert {move.to for move in load_moves([*busy, *poor, *roomy], 1.0, LOAD)} == {2, 3}
