"""The sensor in a slot tells what counting its queries one by one tells."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from statistics import fmean, pstdev
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from geoflux.engine.sensing import sensed
from geoflux.guard.rounds import Rounds
from geoflux.plan.plan import Partition
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space

GRID = Grid(Space("planar", 0.0, 0.0, 40.0, 20.0), 80, 10)
PART = Partition(3, 2, 1, 9, 8, slot=1)
BOX = st.tuples(*[st.integers(0, 19)] * 2, *[st.integers(0, 5)] * 2)


@st.composite
def states(draw: st.DrawFn) -> tuple[Any, list[tuple[str | None, int, Any]]]:
    """Layers of queries with some that have ended, and those that live, one by one."""
    rows, layers, number = [], [], draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 3))):
        mine = []
        for user, box, step in draw(
            st.lists(
                st.tuples(st.sampled_from([None, "a", "b", "c"]), BOX, st.integers(1, 3)),
                max_size=12,
            )
        ):
            number += step
            mine.append((user, number, box))
        alive = draw(st.lists(st.booleans(), min_size=len(mine), max_size=len(mine)))
        if draw(st.booleans()):
            alive = None
        x0, y0, wide, high = (np.array([r[2][k] for r in mine], float) for k in range(4))
        table = pa.table(
            {"number": pa.array([r[1] for r in mine], pa.int64()),
             "user": pa.array([r[0] for r in mine], pa.string()),
             "x0": x0, "y0": y0, "x1": x0 + wide, "y1": np.minimum(y0 + high, 20.0)}
        )  # fmt: skip
        mask = None if alive is None else np.array(alive, np.bool_)
        layers.append((SimpleNamespace(layer=SimpleNamespace(rows=table)), mask))
        rows += [row for k, row in enumerate(mine) if alive is None or alive[k]]
    state = SimpleNamespace(matchers=layers, partition=PART, queries=len(rows))
    return state, rows


@given(states(), st.lists(st.integers(0, 12), min_size=1, max_size=5), st.integers(5, 9))
def test_a_summary_equals_counting(
    given_state: tuple[Any, list[Any]], steps: list[int], current: int
) -> None:
    state, rows = given_state
    rounds = Rounds(current, 0.0, tuple(np.cumsum(steps).tolist()))
    told = sensed(state, GRID, rounds, donor=1, occasion=7)
    if all(m.layer.rows.column("user").null_count == len(m.layer.rows) for m, _ in state.matchers):
        assert told is None
        return
    assert told is not None
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    middles: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for user, number, (x, y, wide, high) in rows:
        if user is None:
            continue
        begun = sum(number >= mark for mark in rounds.marks)  # of the rounds that are known
        age = len(rounds.marks) - begun if begun else 5
        counts[user][age] += 1
        if age < 5:
            middles[user].append(((x + wide / 2) * 2, (y + min(y + high, 20)) / 4))
    found = json.loads(told)
    assert (found["donor"], found["occasion"], found["round"]) == (1, 7, current)
    assert (found["rows"], found["box"]) == (len(rows), [2, 1, 9, 8])
    assert sorted(found["users"]) == sorted(counts)
    for user, row, place in zip(found["users"], found["counts"], found["places"], strict=True):
        assert row == [counts[user][age] for age in range(6)]
        wanted = [0.0] * 4
        if middles[user]:
            xs, ys = zip(*middles[user], strict=True)
            wanted = [fmean(xs), fmean(ys), pstdev(xs), pstdev(ys)]
        assert np.allclose(place, wanted)
