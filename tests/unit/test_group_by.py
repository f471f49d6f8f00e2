"""The windowed group-by against the plainest possible one, however rows are cut into batches."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoflux.errors import ConfigError
from geoflux.operators.group_by import WindowedGroupBy

Row = tuple[str, float, int]

ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.floats(-1e6, 1e6), st.integers(0, 50)), max_size=40
)
PLAIN: dict[str, Callable[[list[float]], float]] = {
    "count": len,
    "mean": lambda v: sum(v) / len(v),
    "stddev": lambda v: float(np.std(v, ddof=1)) if len(v) > 1 else math.nan,
    "min": min,
    "max": max,
    "quantile": lambda v: float(np.quantile(v, 0.25)),
}


def table(rows: list[Row], first: int = 0) -> pa.Table:
    return pa.table(
        {
            "@id": pa.array(range(first, first + len(rows)), pa.int64()),
            "@time": pa.array([t * 1_000_000 for _, _, t in rows], pa.int64()),
            "car": pa.array([k for k, _, _ in rows], pa.string()),
            "speed": pa.array([v for _, v, _ in rows], pa.float64()),
        }
    )


def plain(rows: list[Row], statistic: str, most: int | None, span: float | None) -> list[float]:
    histories: dict[str, list[tuple[float, int]]] = defaultdict(list)
    latest: dict[str, int] = {}
    found = []
    for key, value, time in rows:
        histories[key].append((value, time))
        latest[key] = max(latest.get(key, time), time)
        if most is not None:
            del histories[key][:-most]
        while span is not None and histories[key][0][1] <= latest[key] - span:
            del histories[key][0]
        found.append(PLAIN[statistic]([v for v, _ in histories[key]]))
    return found


def in_batches(operator: WindowedGroupBy, rows: list[Row], cuts: list[int]) -> list[Any]:
    """Process batch by batch; every state is taken apart and put together again in between."""
    state, found, first = operator.empty(), [], 0
    for last in [*sorted(cut for cut in cuts if cut <= len(rows)), len(rows)]:
        arrays = {name: pa.array(a) for name, a in operator.extract(state).items()}
        batch = table(rows[first:last], first)
        state, results = operator.process(operator.install(arrays), batch)
        assert results.schema == operator.output
        assert results.column("id").to_pylist() == [str(i) for i in range(first, last)]
        found += results.column("value").to_pylist()
        first = last
    assert operator.size(state) >= 0
    return found


@given(
    ROWS, st.sampled_from(sorted(PLAIN)), st.lists(st.integers(0, 40), max_size=4),
    st.one_of(st.tuples(st.integers(1, 6), st.none()), st.tuples(st.none(), st.floats(1, 30))),
)  # fmt: skip
def test_every_row_gets_the_statistic_of_its_group_s_history(
    rows: list[Row], statistic: str, cuts: list[int], window: tuple[int | None, float | None]
) -> None:
    most, span = window
    operator = WindowedGroupBy("car", "speed", statistic, most, span, quantile=0.25)
    found = in_batches(operator, rows, cuts)
    assert found == pytest.approx(
        plain(rows, statistic, most, span), rel=1e-9, abs=1e-6, nan_ok=True
    )
    assert found == pytest.approx(in_batches(operator, rows, []), rel=0, abs=0, nan_ok=True)


def test_a_function_of_the_user_s_own_gets_all_values_and_where_histories_are() -> None:
    def spread(values: Any, starts: Any, ends: Any) -> Any:
        return np.array([np.ptp(values[a:b]) for a, b in zip(starts, ends, strict=True)])

    operator = WindowedGroupBy("car", "speed", spread, rows=2)
    rows = [("a", 1.0, 0), ("b", 5.0, 0), ("a", 4.0, 1), ("a", 6.0, 2)]
    assert in_batches(operator, rows, [2]) == [0.0, 0.0, 3.0, 2.0]


def test_missing_values_are_told_as_missing() -> None:
    operator = WindowedGroupBy("car", "speed", "mean", rows=2)
    rows = table([("a", 1.0, 0), ("a", 2.0, 0), ("a", 3.0, 0)])
    rows = rows.set_column(3, "speed", pa.array([1.0, None, 3.0]))
    _, results = operator.process(operator.empty(), rows)
    assert np.isnan(results.column("value").to_numpy()).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"rows": 2, "seconds": 1.0}, {"rows": 0}, {"seconds": -1.0},
     {"rows": 2, "statistic": "mode"}, {"rows": 2, "quantile": 2.0}],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        WindowedGroupBy("car", "speed", **wrong)
