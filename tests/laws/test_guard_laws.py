"""Laws of Guard: features equal brute force, restarts change nothing, crowds are never blocked."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.guard import Found, Guard, GuardTuning, sense
from geoflux.guard.clusters import divide
from geoflux.guard.features import Features, FeatureTable
from geoflux.guard.receiver import REGISTER, SNAPSHOT, TERMINATE, stamp
from guard_by_hand import Stage

USERS = ("a", "b", "c", "d")
MODES = {"published": GuardTuning.published(), "robust": GuardTuning()}

requests = st.lists(
    st.tuples(st.sampled_from((*USERS, None)), st.sampled_from((REGISTER, TERMINATE, SNAPSHOT))),
    max_size=12,
)
hotspot = st.lists(st.tuples(st.sampled_from(USERS), st.integers(0, 8)), max_size=10)
"""Queries in a partition: whose, and how many rounds ago they were placed."""
rounds = st.lists(st.tuples(requests, st.lists(hotspot, max_size=3)), min_size=1, max_size=7)


def brute_force(history: list[Any], mode: str) -> dict[str, list[float]]:
    """Table 5.1 by its words, over the whole history, for the last round."""
    tuning = MODES[mode]
    robust = mode == "robust"
    ids, number = [], 1
    for _, hotspots in history:
        ids.append(list(range(number, number + len(hotspots))))
        number += len(hotspots)
    seen = {
        u
        for asked, hotspots in history
        for u in [a[0] for a in asked] + [q[0] for h in hotspots for q in h]
    }

    def mark(of: int) -> float:
        if not robust:
            return float(of)
        return float(np.random.default_rng((tuning.seed, of)).uniform(0.1, 1.0))

    def basic(user: str, t: int) -> list[float]:
        asked, hotspots = history[t]
        mine = [
            (h, of) for h, of in zip(hotspots, ids[t], strict=True) if user in [q[0] for q in h]
        ]
        return [
            sum(a == (user, REGISTER) or a == (user, SNAPSHOT) for a in asked),
            sum(a == (user, TERMINATE) for a in asked),
            len(mine),
            sum(q[0] == user and q[1] < 5 for h, _ in mine for q in h),
            sum(mark(of) for _, of in mine),
        ]

    def faded(user: str, feature: int, t: int) -> float:
        return sum(basic(user, t - i)[feature] / 2**i for i in range(t + 1))

    def weighted(user: str, t: int) -> float:
        return sum(0.5 ** q[1] for h in history[t][1] for q in h if q[0] == user and q[1] < 5)

    def rate(user: str, t: int) -> float:
        below = faded(user, 0, t)
        value = weighted(user, t) / below if below else 0.0
        return min(value, 1.0) if robust else value

    def first(user: str) -> int:
        return next(
            t
            for t, (asked, hotspots) in enumerate(history)
            if user in [a[0] for a in asked] or user in [q[0] for h in hotspots for q in h]
        )

    out = {}
    last = len(history) - 1
    for user in seen - {None}:
        memory = tuning.memory if robust else 1.0
        sequence = sum(
            mark(of) * memory ** (last - t)
            for t in range(last + 1)
            for h, of in zip(history[t][1], ids[t], strict=True)
            if (user, 0) in h
        )
        rates = [(rate(user, t), memory ** (last - t)) for t in range(first(user), last + 1)]
        counted = [(r, w) for r, w in rates if robust or r != 0]
        average = sum(r * w for r, w in counted) / sum(w for _, w in counted) if counted else 0.0
        now = basic(user, last)
        out[user] = [
            *now,
            *(faded(user, f, last) for f in range(5)),
            sequence,
            weighted(user, last),
            rate(user, last),
            average,
        ]
    return out


def fed(history: list[Any], mode: str, cuts: int = 1, restart: bool = False) -> Features:
    """The same by the table; batches are cut into pieces, the table goes through JSON."""
    table = FeatureTable(MODES[mode])
    number = 1
    features = None
    for t, (asked, hotspots) in enumerate(history):
        for piece in range(cuts):
            some = asked[piece::cuts]
            table.count(stamp([a[1] for a in some], [a[0] for a in some], round=t))
        for queries in hotspots:
            names = tuple(USERS)
            found = Found(
                names,
                np.array([names.index(q[0]) for q in queries], np.int64),
                np.array([t - q[1] for q in queries], np.int64),
            )
            table.involve(number, sense(found, 0, number, round=t), t)
            number += 1
            if restart:
                table = FeatureTable.from_dict(MODES[mode], json.loads(json.dumps(table.to_dict())))
        features = table.close()
    assert features is not None
    return features


@pytest.mark.parametrize("mode", MODES)
@given(history=rounds, cuts=st.integers(1, 3), restart=st.booleans())
@settings(deadline=None, max_examples=60)
def test_features_equal_brute_force(
    mode: str, history: list[Any], cuts: int, restart: bool
) -> None:
    got = fed(history, mode, cuts, restart)
    expected = brute_force(history, mode)
    assert set(expected) <= set(got.users)
    for k, user in enumerate(got.users):
        assert got.values[k] == pytest.approx(expected.get(user, [0.0] * 14)), user
    normal = got.normalised()
    assert ((normal >= 0) & (normal <= 1)).all()
    for raw, scaled in zip(got.values.T, normal.T, strict=True):
        assert scaled.max(initial=0) == (1 if len(set(raw.tolist())) > 1 else 0)


@given(
    queries=st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 20)), max_size=40),
    late=st.integers(0, 7),
)
@settings(deadline=None)
def test_a_summary_counts_every_query_once(queries: list[tuple[int, int]], late: int) -> None:
    found = Found(
        USERS,
        np.array([q[0] for q in queries], np.int64),
        np.array([q[1] for q in queries], np.int64),
    )
    told = sense(found, 0, 1)
    newest = max((q[1] for q in queries), default=0)
    counted = Counter((USERS[u], min(newest + late - r, 5)) for u, r in queries if u >= 0)
    counts = told.as_of(told.round + late)
    for k, user in enumerate(told.users):
        assert counts[k].tolist() == [counted[user, age] for age in range(6)]
    assert counts.sum() == sum(u >= 0 for u, _ in queries)
    assert told.rows == len(queries)


@given(
    values=st.lists(
        st.lists(st.sampled_from((0.0, 0.5, 1.0, 7.0)), min_size=14, max_size=14), max_size=12
    ),
    seed=st.integers(0, 9),
)
@settings(deadline=None, max_examples=40)
def test_clusters_share_everybody_out_and_end(values: list[list[float]], seed: int) -> None:
    features = Features(tuple(map(str, range(len(values)))), np.array(values).reshape(-1, 14))
    found = divide(features, GuardTuning.published(), seed)
    assert sorted([*found.suspicious.tolist(), *found.normal.tolist()]) == list(range(len(values)))
    assert found.splits <= max(len(values) - 1, 0)
    again = divide(features, GuardTuning.published(), seed)
    assert again.suspicious.tolist() == found.suspicious.tolist()


spots = st.tuples(st.integers(1, 9), st.integers(1, 9)).map(
    lambda at: (at[0] * 100.0, at[1] * 100.0)
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from(("m", "n", "o")), st.integers(1, 60), spots),
        st.tuples(st.just("end"), st.sampled_from(("m", "n", "o")), st.integers(1, 60)),
        st.tuples(st.just("hotspot"), spots),
        st.tuples(st.just("close")),
        st.tuples(st.just("lift"), st.sampled_from(("m", "n", "o"))),
    ),
    max_size=25,
)


def acted(stage: Stage, action: tuple[Any, ...]) -> Any:
    if action[0] == "place":
        return stage.place(*action[1:])
    if action[0] == "end":
        return stage.end(*action[1:])
    if action[0] == "hotspot":
        return stage.hotspot(action[1])
    if action[0] == "lift":
        return stage.guard.lift(action[1])
    return stage.close()


@pytest.mark.parametrize("mode", MODES)
@given(script=actions)
@settings(deadline=None, max_examples=25)
def test_a_restart_anywhere_changes_nothing(mode: str, script: list[tuple[Any, ...]]) -> None:
    """Verdicts, refusals and the state are the same when it goes through JSON after every step."""
    steady, restarted = Stage(MODES[mode], normals=8), Stage(MODES[mode], normals=8)
    steady.warm_up(4)
    restarted.warm_up(4)
    for action in [*script, ("close",), ("hotspot", (100.0, 100.0)), ("close",)]:
        restarted.guard = Guard.from_dict(
            MODES[mode], json.loads(json.dumps(restarted.guard.to_dict()))
        )
        assert acted(steady, action) == acted(restarted, action)
        as_json = [json.loads(json.dumps(s.guard.to_dict())) for s in (steady, restarted)]
        assert as_json[0] == as_json[1]


@given(
    visitors=st.integers(1, 40), each=st.integers(1, 40), waves=st.integers(1, 6),
    walking=st.booleans(), pieces=st.integers(1, 4), seed=st.integers(0, 99),
)  # fmt: skip
@settings(deadline=None, max_examples=40)
def test_a_crowd_at_one_place_is_never_blocked(
    visitors: int, each: int, waves: int, walking: bool, pieces: int, seed: int
) -> None:
    """However many come, in however many waves, standing still or walking about, and however the
    plan cuts the place up while it chases them."""
    stage = Stage(GuardTuning(), normals=15, seed=seed)
    stage.warm_up(5)
    for wave in range(waves):
        for visitor in range(visitors):
            if walking or visitor % waves == wave:
                name = f"visitor-{visitor}"
                stage.place(name, each, (500.0, 500.0))
                if walking and wave:
                    stage.end(name, each)
        for piece in range(pieces):
            stage.hotspot((494.0 + 12.0 * piece / pieces, 500.0), reach=12.0 / pieces, donor=piece)
        stage.close()
    assert not stage.blocked


@given(
    members=st.integers(2, 6), share=st.sampled_from((0.5, 0.7, 1.0)), seed=st.integers(0, 99),
)  # fmt: skip
@settings(deadline=None, max_examples=25)
def test_whoever_made_two_hotspots_is_blocked_however_they_rotate(
    members: int, share: float, seed: int
) -> None:
    """And nobody else."""
    stage = Stage(GuardTuning(removal_rounds=(30, 30)), normals=15, seed=seed)
    stage.warm_up(5)
    places = [
        (100.0, 100.0),
        (500.0, 100.0),
        (900.0, 100.0),
        (100.0, 900.0),
        (500.0, 900.0),
        (900.0, 900.0),
    ]
    took_part: Counter[str] = Counter()
    for at in places:
        crew = [f"crew-{i}" for i in range(members)]
        now = [m for m in crew if m not in stage.blocked and stage.rng.random() < share]
        for member in now:
            stage.place(member, 40, at)
            took_part[member] += 1
        stage.hotspot(at)
        stage.close()
        for member in now:
            stage.end(member, 40)
    assert stage.blocked == {member for member, times in took_part.items() if times >= 2}
