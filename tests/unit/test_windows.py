"""Windows where it hurts: types that turn out otherwise, jumps in time, very many windows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoflux.engine.event_time import EventTime
from geoflux.errors import RejectedRecord
from geoflux.operators import count_windows, windows
from geoflux.operators.aggregate_rows import aggregate_rows
from geoflux.operators.aggregates import aggregate_of, check_aggregate, parse_aggregate
from geoflux.operators.clock import Clock
from geoflux.operators.selection import Naming, Selection

SECOND = 1_000_000


def told(asked: dict[str, Any], times: list[float], **columns: Any) -> list[tuple[Any, ...]]:
    """Start and end (seconds), function, value and count of every window."""
    time = np.array([round(t * SECOND) for t in times], np.int64)
    given = {name: column if isinstance(column, pa.Array) else pa.array(column)
             for name, column in columns.items()}  # fmt: skip
    aggregate = parse_aggregate(asked, needs_window=False)
    rows = aggregate_rows(aggregate, time, pa.array(np.arange(time.size)), given).to_pylist()
    return sorted(
        (
            None if r["window_start"] is None else r["window_start"] / SECOND,
            None if r["window_end"] is None else r["window_end"] / SECOND,
            r["function"], r["value"], r["count"],
        )
        for r in rows
    )  # fmt: skip


def test_sliding_windows_and_what_lies_in_them() -> None:
    #  0    1    2    3    4    5
    #  |--a-|-b--|----|-c--|
    #  [---------)            0..2: a b
    #       [---------)       1..3: b
    #            [---------)  2..4: c
    asked = {"functions": ["sum(v)"], "window": "2s", "slide": "1s"}
    found = told(asked, [0.5, 1.2, 3.1], v=[1.0, 10.0, 100.0])
    assert found == [
        (-1.0, 1.0, "sum(v)", 1.0, 1), (0.0, 2.0, "sum(v)", 11.0, 2), (1.0, 3.0, "sum(v)", 10.0, 1),
        (2.0, 4.0, "sum(v)", 100.0, 1), (3.0, 5.0, "sum(v)", 100.0, 1),
    ]  # fmt: skip


def test_a_slide_that_does_not_divide_the_window() -> None:
    found = told({"functions": ["count"], "window": "5s", "slide": "3s"}, [0, 1, 2, 3, 4, 5, 6])
    assert found == [
        (-3.0, 2.0, "count", 2.0, 2), (0.0, 5.0, "count", 5.0, 5), (3.0, 8.0, "count", 4.0, 4),
        (6.0, 11.0, "count", 1.0, 1),
    ]  # fmt: skip


def test_a_text_where_numbers_were_expected_is_no_value() -> None:
    asked = {"functions": ["avg(v)", "median(v)", "distinct(v)"]}
    assert told(asked, [1, 2], v=["bus", "3"]) == [
        (None, None, "avg(v)", None, 2), (None, None, "distinct(v)", 2.0, 2),
        (None, None, "median(v)", None, 2),
    ]  # fmt: skip


def test_nested_values_are_not_told_apart() -> None:
    assert told({"functions": ["distinct(v)"]}, [1], v=pa.array([[1, 2]])) == [
        (None, None, "distinct(v)", 0.0, 1)
    ]


def test_decimals_are_rounded_correctly() -> None:
    column = pa.array([Decimal("0.2"), Decimal("0.7")], pa.decimal128(20, 4))
    assert told({"functions": ["sum(v)"]}, [1, 2], v=column)[0][3] == 0.2 + 0.7


def test_a_jump_in_time_tells_only_the_newest_empty_windows(monkeypatch: Any) -> None:
    monkeypatch.setattr(windows, "MOST_EMPTY", 5)
    found = told({"functions": ["count"], "window": "1s", "empty": True}, [0, 1, 4e9])
    assert len(found) == 2 + 5
    assert found[-1][:2] == (4e9, 4e9 + 1)


def test_many_windows_are_made_in_blocks(monkeypatch: Any) -> None:
    times = list(range(40))
    by_time = {"functions": ["count"], "window": "20s", "slide": "1s"}
    by_count = {"functions": ["count"], "window": 7, "slide": 2}
    whole = told(by_time, times), told(by_count, times)
    monkeypatch.setattr(windows, "_ROOM", 10)
    monkeypatch.setattr(count_windows, "_ROOM", 10)
    assert (told(by_time, times), told(by_count, times)) == whole
    assert len(whole[0]) == 59
    assert len(whole[1]) == 17


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("count", "expected an object"),
        ({"functions": [], "window": "1s"}, "expected a list of 1 to"),
        ({"functions": ["cont"], "window": "1s"}, "is not known"),
        ({"functions": ["avg"], "window": "1s"}, "expected avg(column)"),
        ({"functions": ["count(x)"], "window": "1s"}, "expected count"),
        ({"functions": ["quantile(x)"], "window": "1s"}, "a share from 0 to 1"),
        ({"functions": ["quantile(x, 2)"], "window": "1s"}, "a share from 0 to 1"),
        ({"functions": ["count", "count"], "window": "1s"}, "twice"),
        ({"functions": ["count"]}, "no window"),
        ({"functions": ["count"], "window": "soon"}, "expected a duration"),
        ({"functions": ["count"], "window": 0}, "1 to 10,000,000"),
        ({"functions": ["count"], "window": "1s", "slide": "2s"}, "longer than window"),
        ({"functions": ["count"], "window": "1s", "slide": 3}, "both be durations"),
        ({"functions": ["count"], "window": "1 day", "slide": "1 us"}, "would lie in"),
        ({"functions": ["count"], "window": 5, "empty": True}, "never empty"),
        ({"functions": ["count"], "window": "1s", "widnow": 1}, "widnow"),
    ],
)
def test_an_aggregate_that_cannot_be_gets_a_sentence(asked: Any, said: str) -> None:
    with pytest.raises(RejectedRecord) as caught:
        parse_aggregate(asked)
    assert caught.value.code == "bad_aggregate"
    assert said in caught.value.detail


def test_columns_are_checked_against_the_events() -> None:
    schema = pa.schema([("speed", pa.float64()), ("kind", pa.string())])
    with pytest.raises(RejectedRecord, match="did you mean 'speed'"):
        check_aggregate(parse_aggregate({"functions": ["avg(sped)"], "window": "1s"}), schema)
    with pytest.raises(RejectedRecord, match="expected numbers"):
        check_aggregate(parse_aggregate({"functions": ["avg(kind)"], "window": "1s"}), schema)
    check_aggregate(parse_aggregate({"functions": ["distinct(kind)"], "window": "1s"}), schema)


def test_the_canonical_text_keeps_everything() -> None:
    given = {"functions": ["count", 'avg("my speed")', "quantile(v, 0.9999999)", "quantile(v, 1)"],
             "window": "1h30m", "slide": "30 minutes", "empty": True}  # fmt: skip
    asked = parse_aggregate(given)
    assert aggregate_of(asked.to_text()) == asked
    assert [f.text for f in asked.functions] == [
        "count", 'avg("my speed")', "quantile(v, 0.9999999)", "quantile(v, 1)"
    ]  # fmt: skip


def test_silence_moves_time_on_only_after_a_while_and_not_for_the_time_before_the_start() -> None:
    known = EventTime().after(Clock(), [(0, 100 * SECOND)], None, 1000.0)
    assert known.silence(None, 5000.0, 0.0) == 0
    assert known.silence(30.0, 1029.0, 0.0) == 0
    assert known.silence(30.0, 1031.0, 0.0) == 31 * SECOND
    assert known.silence(30.0, 5000.0, started=4990.0) == 0
    assert known.clock(10 * SECOND, 31 * SECOND).watermark == 121 * SECOND


def test_columns_called_like_our_own_do_not_clash() -> None:
    naming = Naming(("time", "distance", "speed"), {}, pa.schema([]), pa.int64())
    assert Selection((), naming).table().schema.names == ["id", "x", "y", "time", "speed"]
