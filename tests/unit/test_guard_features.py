"""Requests and hotspots become features: table 5.1, and what the traps say of it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from geoflux.guard import Found, GuardTuning, Summary, sense
from geoflux.guard.features import FEATURES, X1, X11, Features, FeatureTable
from geoflux.guard.receiver import REGISTER, SNAPSHOT, TERMINATE, stamp
from geoflux.guard.rounds import Rounds

PUBLISHED, ROBUST = GuardTuning.published(), GuardTuning()


def summary(users: dict[str, list[int]], round: int = 0, occasion: int = 1) -> Summary:
    """Counts by age: this round, four before, older."""
    counts = np.array([row + [0] * (6 - len(row)) for row in users.values()], np.int64)
    return Summary("plan", 0, occasion, round, tuple(users), counts.reshape(-1, 6), 99)


def row(features: Features, user: str) -> dict[str, float]:
    return features.of(features.users.index(user))


# the receiver


def test_requests_are_counted_by_user_and_kind() -> None:
    ops = [REGISTER, SNAPSHOT, TERMINATE, REGISTER, REGISTER]
    batch = stamp(ops, ["a", "a", "a", None, "b"], round=4)
    assert batch.round == 4
    counted = dict(
        zip(
            batch.users,
            zip(batch.placed(), batch.registered(), batch.terminated(), strict=True),
            strict=True,
        )
    )
    assert counted == {"a": (2, 1, 1), "b": (1, 1, 0)}


def test_a_blocked_user_may_terminate_never_register_or_ask() -> None:
    batch = stamp([REGISTER, SNAPSHOT, TERMINATE, REGISTER], ["a", "a", "a", "b"], round=0)
    assert batch.refused({"a"}).tolist() == [True, True, False, False]


def test_requests_without_a_user_are_nobodys_and_never_refused() -> None:
    batch = stamp([REGISTER, REGISTER], [None, None], round=0)
    assert batch.users == ()
    assert not batch.refused({"a", ""}).any()
    assert batch.placed().tolist() == []


@pytest.mark.parametrize("form", ["list", "array", "chunked", "dictionary"])
def test_users_come_as_lists_or_columns(form: str) -> None:
    names = ["a", None, "b", "a"]
    column = {
        "list": names,
        "array": pa.array(names),
        "chunked": pa.chunked_array([names[:2], names[2:]]),
        "dictionary": pa.array(names).dictionary_encode(),
    }[form]
    batch = stamp([REGISTER] * 4, column, round=0)
    assert dict(zip(batch.users, batch.placed().tolist(), strict=True)) == {"a": 2, "b": 1}


def test_as_many_operations_as_users() -> None:
    with pytest.raises(ValueError, match="expected one each"):
        stamp([REGISTER], ["a", "b"], round=0)


# rounds by number


def test_a_query_is_dated_by_its_number() -> None:
    rounds = Rounds().started(0.0, 7)
    for k in range(1, 7):
        rounds = rounds.next(60.0 * k, 7 + 10 * k)
    assert rounds.current == 6
    numbers = np.array([0, 26, 27, 36, 37, 66, 67, 90])
    assert rounds.of(numbers).tolist() == [1, 1, 2, 2, 3, 5, 6, 6]  # 1: just too old
    assert Rounds.from_dict(json.loads(json.dumps(rounds.to_dict()))) == rounds


def test_what_was_there_before_guard_is_old() -> None:
    """Not of the first round: a run that turns Guard on later has nothing new in it."""
    rounds = Rounds().started(0.0, 1000)
    assert rounds.current - rounds.of(np.array([5, 999, 1000])) == pytest.approx([5, 5, 0])


def test_a_round_ends_by_the_clock_and_not_before_it_began() -> None:
    assert not Rounds().is_due(1e9, 60.0)
    started = Rounds().started(100.0, 0)
    assert [started.is_due(now, 60.0) for now in (159.0, 160.0)] == [False, True]


# the sensor


def test_a_summary_tells_five_rounds_apart_and_older_ones_as_one_number() -> None:
    found = Found(("a", "b"), np.array([0] * 7 + [1]), np.array([9, 8, 7, 6, 5, 4, 3, 2]))
    told = sense(found, donor=2, occasion=5)
    assert told.users == ("a", "b")
    assert told.counts.tolist() == [[1, 1, 1, 1, 1, 2], [0, 0, 0, 0, 0, 1]]
    assert (told.round, told.rows, told.key) == (9, 8, ("plan", 2, 5))


def test_a_late_summary_is_aged_by_the_true_round() -> None:
    told = summary({"a": [5, 4, 3, 2, 1, 9]}, round=3)
    assert told.as_of(3).tolist() == [[5, 4, 3, 2, 1, 9]]
    assert told.as_of(5).tolist() == [[0, 0, 5, 4, 3, 12]]
    assert told.as_of(50).tolist() == [[0, 0, 0, 0, 0, 24]]
    with pytest.raises(ValueError, match="came in round 2"):
        told.as_of(2)


def test_a_summary_travels_as_plain_values() -> None:
    found = Found(
        ("a",), np.array([0, 0]), np.array([1, 1]), np.array([3.0, 5.0]), np.array([1.0, 1.0])
    )
    told = sense(found, 0, 1, kind="scale_out", box=(0.0, 0.0, 9.0, 9.0))
    back = Summary.from_dict(json.loads(json.dumps(told.to_dict())))
    assert back.to_dict() == told.to_dict()
    assert back.places is not None
    assert back.places.tolist() == [[4.0, 1.0, 1.0, 0.0]]


def test_an_empty_partition_has_an_empty_summary() -> None:
    empty = sense(Found((), np.empty(0, np.int64), np.empty(0, np.int64)), 0, 1)
    assert empty.users == ()
    assert empty.counts.shape == (0, 6)
    assert Summary.from_dict(empty.to_dict()).counts.shape == (0, 6)


# features


def test_the_features_of_a_round_by_hand() -> None:
    """Eight queries placed, three ended; two hotspots, in one of them nothing of this round."""
    table = FeatureTable(PUBLISHED)
    table.count(stamp([REGISTER] * 8 + [TERMINATE] * 3, ["a"] * 11, round=0))
    table.involve(1, summary({"a": [4, 2, 0, 0, 8, 5]}), 0)
    table.involve(2, summary({"a": [0, 0, 0, 0, 0, 7], "b": [0, 0, 0, 0, 0, 1]}), 0)
    got = row(table.close(), "a")
    weighted = 4 + 2 / 2 + 8 / 16
    expected = [8, 3, 2, 14, 3, 8, 3, 2, 14, 3, 1, weighted, weighted / 8, weighted / 8]
    assert got == pytest.approx(dict(zip(FEATURES, expected, strict=True)))


def test_history_fades_by_half_and_the_average_counts_rounds_with_a_rate() -> None:
    table = FeatureTable(PUBLISHED)
    for placed, found in ((8, 4), (0, 0), (4, 4)):
        table.count(stamp([REGISTER] * placed, ["a"] * placed, round=0))
        if found:
            table.involve(1, summary({"a": [found]}), 0)
        last = row(table.close(), "a")
    assert last["faded_new_queries"] == 8 / 4 + 4
    assert last["lrb_queries_rate"] == pytest.approx(4 / 6)
    assert last["avg_lrb_queries_rate"] == pytest.approx((4 / 8 + 4 / 6) / 2)
    assert last["hotspot_seq_new"] == 2


def test_normalising_a_constant_feature_gives_zero_not_a_division_by_zero() -> None:
    """Trap 11a."""
    values = np.array([[1.0, 7.0, 0.0], [3.0, 7.0, 0.0], [2.0, 7.0, 0.0]])
    normal = Features(("a", "b", "c"), values).normalised()
    assert normal.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.0, 0.0]]
    assert Features((), np.zeros((0, 14))).normalised().shape == (0, 14)


def test_a_rate_without_recent_queries_is_zero() -> None:
    """Trap 11a: 0/0. Old queries lie in a hotspot, and nothing was ever placed since."""
    for tuning in (PUBLISHED, ROBUST):
        table = FeatureTable(tuning)
        involved = table.involve(1, summary({"a": [0, 0, 0, 0, 0, 9]}), 0)
        assert involved.rate.tolist() == [0.0]
        got = row(table.close(), "a")
        assert (got["lrb_queries_rate"], got["avg_lrb_queries_rate"]) == (0.0, 0.0)


def test_a_query_in_several_hotspots_takes_the_rate_above_one_as_published_only() -> None:
    """Trap 11a."""
    rates = {}
    for tuning in (PUBLISHED, ROBUST):
        table = FeatureTable(tuning)
        table.count(stamp([REGISTER] * 4, ["a"] * 4, round=0))
        for hotspot in (1, 2):
            table.involve(hotspot, summary({"a": [4]}, occasion=hotspot), 0)
        rates[tuning.mode] = row(table.close(), "a")["lrb_queries_rate"]
    assert rates == {"published": 2.0, "robust": 1.0}


def test_one_unlucky_query_marks_a_user_for_ever_as_published_only() -> None:
    """Trap 11a: x11 and x14 never fade."""
    after = {}
    for tuning in (PUBLISHED, ROBUST):
        table = FeatureTable(tuning)
        table.count(stamp([REGISTER], ["a"], round=0))
        table.involve(1, summary({"a": [1]}), 0)
        table.close()
        for _ in range(29):
            table.count(stamp([REGISTER] * 3, ["a"] * 3, round=0))
            last = row(table.close(), "a")
        after[tuning.mode] = last["hotspot_seq_new"], last["avg_lrb_queries_rate"]
    assert after["published"] == (1.0, 1.0)
    assert max(after["robust"]) < 0.01


def test_sums_of_ids_collide_as_published_only() -> None:
    """Trap 12: {1, 4} and {2, 3}."""
    spread = {}
    for tuning in (PUBLISHED, ROBUST):
        table = FeatureTable(tuning)
        for hotspot, user in ((1, "a"), (2, "b"), (3, "b"), (4, "a")):
            table.involve(hotspot, summary({user: [1]}, occasion=hotspot), 0)
        spread[tuning.mode] = float(np.ptp(table.close().values[:, X11]))
    assert spread["published"] == 0.0
    assert spread["robust"] > 0.0


def test_robust_sums_do_not_grow_with_the_ids() -> None:
    """Trap 11a: as ids grow, the normalised spread loses its meaning."""
    table = FeatureTable(ROBUST)
    table.involve(1, summary({"a": [1]}), 0)
    table.involve(1_000_000, summary({"b": [1]}), 0)
    marks = table.close().values[:, X11]
    assert ((marks >= 0.1) & (marks <= 1.0)).all()


def test_the_table_survives_json_in_the_middle_of_a_round() -> None:
    for tuning in (PUBLISHED, ROBUST):
        one, other = FeatureTable(tuning), FeatureTable(tuning)
        for k in range(4):
            for table in (one, other):
                table.count(
                    stamp(
                        [REGISTER, TERMINATE], ["a", f"u{k}"], round=k, at=([1.0, 2.0], [3.0, 4.0])
                    )
                )
            other = FeatureTable.from_dict(tuning, json.loads(json.dumps(other.to_dict())))
            for table in (one, other):
                table.involve(k, summary({"a": [1, 1], f"u{k}": [0, 2]}, round=k), k)
            left, right = one.close(), other.close()
            assert left.users == right.users
            assert left.values.tolist() == right.values.tolist()


def test_users_without_a_trace_are_forgotten_in_robust_mode_alone() -> None:
    for tuning, kept in ((PUBLISHED, ["a", "b"]), (ROBUST, ["b"])):
        table = FeatureTable(tuning)
        table.count(stamp([REGISTER] * 2, ["a", "b"], round=0))
        for _ in range(12):
            table.close()
            table.forget_idle({"b"})
        assert list(table.users) == kept


def test_forgetting_leaves_the_others_as_they_were() -> None:
    table = FeatureTable(ROBUST)
    table.count(stamp([REGISTER] * 6, list("aabbbc"), round=0))
    table.forget({"b"})
    table.count(stamp([REGISTER], ["c"], round=0))
    assert dict(zip(table.users, table.close().values[:, X1].tolist(), strict=True)) == {
        "a": 2,
        "c": 2,
    }
