"""The oracle's windows, case by case, each drawn beside what it must give.

In the drawings a digit or letter is an event at its second, ``|`` the floor at which an epoch was
opened, ``[..)`` a window.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handmade
import windows_by_hand
from geoflux.config import Config
from geoflux.engine.oracle import Oracle
from geoflux.engine.oracle_values import value_of
from geoflux.engine.oracle_windows import Clock, WindowRow
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.verify_windows import clock_problems, compared
from geoflux.operators.aggregates import Function
from geoflux.operators.events import Events
from geoflux.spatial.space import Space

SECOND = 1_000_000
SCHEMA = pa.schema([("id", pa.int64()), ("speed", pa.float64()), ("kind", pa.string())])
WORLD = {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90}


def watching(lateness: int | None = None) -> Oracle:
    space = Space.of(Config.from_dict({}).space)
    seconds = None if lateness is None else lateness * SECOND
    return Oracle(RecordRules(space, SCHEMA, 10_000), seconds)


def asks(window: Any, *functions: str, **more: Any) -> dict[str, Any]:
    """A registration of ``q`` for the whole world."""
    aggregate = {"functions": list(functions or ["count"]), "window": window}
    aggregate |= {name: more.pop(name) for name in ("slide", "empty") if name in more}
    return {"op": "register", "id": "q", "shape": WORLD, "aggregate": aggregate} | more


END = {"op": "terminate", "id": "q"}


def epoch(
    oracle: Oracle, events: Sequence[Any] = (), control: Sequence[dict[str, Any]] = (),
    final: bool = False, silence: int = 0,
) -> list[tuple[Any, ...]]:  # fmt: skip
    """(start, end, value, count) of all that an epoch reports; an event is its second, or
    (second, id, speed)."""
    oracle.control([[json.dumps(record).encode() for record in control]], silence * SECOND)
    rows = [event if isinstance(event, tuple) else (event, k, None) for k, event in enumerate(events)]  # fmt: skip
    times, ids, speeds = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"speed": pa.array(speeds, pa.float64()), "kind": pa.nulls(len(rows), pa.string())}
    nowhere = np.zeros(len(rows))
    micros = np.array(times, np.float64) * SECOND
    oracle.matches(
        Events(nowhere, nowhere, micros.astype(np.int64), pa.array(ids, pa.int64()), columns)
    )
    return [
        (row.window_start / SECOND, row.window_end / SECOND, row.value, row.events)
        for row in oracle.windows(final)
    ]


def test_tumbling_windows_close_when_the_floor_reaches_their_end() -> None:
    """
    seconds   0    5   10   15   20
    epoch 0   a  b       c
    windows   [--------)[--------)     lateness 2: floor 11 in epoch 1, 20 in epoch 2
    epoch 1              |d         e
    """
    oracle = watching(lateness=2)
    assert epoch(oracle, [0, 3, 13], [asks("10s")]) == []
    assert epoch(oracle, [12, 22]) == [(0, 10, 2.0, 2)]
    assert epoch(oracle) == [(10, 20, 2.0, 2)]
    assert epoch(oracle) == []


def test_a_window_is_closed_at_its_end_and_an_event_there_belongs_to_the_next() -> None:
    oracle = watching(lateness=0)
    assert epoch(oracle, [0, 9.999999, 10], [asks("10s")]) == []
    assert epoch(oracle) == [(0, 10, 2.0, 2)]
    assert epoch(oracle, [10, 20]) == []
    assert epoch(oracle) == [(10, 20, 2.0, 2)]


def test_sliding_windows_whose_slide_does_not_divide_them() -> None:
    """
    seconds  -6   -3    0    3    6    9   12
    event                      a                 at 4
    windows        [----------)                  -3 to 4: does not hold it
                        [----------)              0 to 7
                             [----------)         3 to 10
    """
    oracle = watching()
    assert epoch(oracle, [4], [asks("7s", slide="3s")]) == []
    assert epoch(oracle, final=True) == [(0, 7, 1.0, 1), (3, 10, 1.0, 1)]
    oracle = watching()
    epoch(oracle, [-1], [asks("7s", slide="3s")])
    assert epoch(oracle, final=True) == [(-6, 1, 1.0, 1), (-3, 4, 1.0, 1)]


def test_a_late_event_enters_the_windows_that_are_still_open() -> None:
    """
    seconds   0    5   10   15
    epoch 0        a     b             floor 13 in epoch 1
    epoch 1            c     |         c at 9 is late; 0 to 10 and 3 to 13 are closed for it
    windows   [--------) closed        6 to 16 is open and takes it
                 [---------) closed
                    [---------) open
    """
    oracle = watching(lateness=0)
    epoch(oracle, [5, 13], [asks("10s", slide="3s")])
    closed = epoch(oracle, [9])
    assert closed == [(-3, 7, 1.0, 1), (0, 10, 1.0, 1), (3, 13, 1.0, 1)]
    assert oracle.clock.late == 1
    assert epoch(oracle, final=True) == [(6, 16, 2.0, 2), (9, 19, 2.0, 2), (12, 22, 1.0, 1)]


def test_what_an_epoch_receives_does_not_move_its_own_floor() -> None:
    """
    seconds   0    5   10   15   20
    epoch 0                       a b   b at 1 comes after a at 20, in the same epoch: not late
    """
    oracle = watching(lateness=0)
    assert epoch(oracle, [20, 1], [asks("10s")]) == []
    assert oracle.clock.late == 0
    assert epoch(oracle, [1]) == [(0, 10, 1.0, 1)]
    assert oracle.clock.late == 1


def test_count_windows_go_by_time_then_id_then_value() -> None:
    """
    seconds   1      2           5   6
    events    c(9)   a(1) b(2)   d   e     b twice: 3.0 before 7.0, null last
    window 3, slide 2:  c a b3 | b3 b7 b- | b- d e
    """
    oracle = watching()
    came = [(2, 2, None), (2, 2, 7.0), (6, 5, 6.0), (1, 9, 9.0), (2, 2, 3.0), (2, 1, 1.0), (5, 4, 5.0)]  # fmt: skip
    epoch(oracle, came, [asks(3, "sum(speed)", slide=2)])
    assert epoch(oracle, final=True) == [
        (1, 2, 13.0, 3), (2, 2, 10.0, 3), (2, 6, 11.0, 3)
    ]  # fmt: skip


def test_count_windows_take_events_when_they_are_sealed_and_never_a_late_one() -> None:
    """
    seconds   0    5   10
    epoch 0     a  b    c         window 2
    epoch 1      x     | d        floor 10: a b are sealed; x at 3 is too late for ever
    epoch 2            | e   |    floor 12: c, and then e at 11
    """
    oracle = watching(lateness=0)
    assert epoch(oracle, [2, 5, 10], [asks(2)]) == []
    assert epoch(oracle, [3, 12]) == [(2, 5, 2.0, 2)]
    assert epoch(oracle, [11]) == []  # only c lies before 12; an epoch's events come after it
    assert epoch(oracle, final=True) == [(10, 12, 2.0, 2)]
    oracle = watching(lateness=5)
    assert epoch(oracle, [2, 5, 10], [asks(2)]) == []
    assert epoch(oracle, [5, 11]) == []  # floor 5: only a is sealed
    assert epoch(oracle) == [(2, 5, 2.0, 2)]  # floor 6: both at 5
    assert epoch(oracle, final=True) == [(5, 10, 2.0, 2)]  # and 11 is left over


def test_empty_windows_from_the_first_event_on() -> None:
    """
    seconds   0    5   10   15   20   25   30
    epoch 0               a    b               origin 12
    windows            [----)[----)
    epoch 1                          c         floor 18: 10 to 15
    final                                      20 to 25 has none in it; up to that of c
    """
    oracle = watching(lateness=0)
    assert epoch(oracle, [18, 12], [asks("5s", "count", "avg(speed)", empty=True)]) == []
    assert epoch(oracle, [27]) == [(10, 15, 1.0, 1), (10, 15, None, 1)]
    assert epoch(oracle) == [
        (15, 20, 1.0, 1), (15, 20, None, 1), (20, 25, 0.0, 0), (20, 25, None, 0)
    ]  # fmt: skip
    assert epoch(oracle, final=True) == [(25, 30, 1.0, 1), (25, 30, None, 1)]


def test_empty_windows_begin_with_the_registration_and_the_validity() -> None:
    """
    seconds   0    5   10   15   20   25
    floor              |                      at 11, where q is registered
    windows            [----)[----)           the first that ends after 11
    valid                     ~~~             16 to 18: the first that ends after 16
    """
    oracle = watching(lateness=0)
    epoch(oracle, [11])
    epoch(oracle, control=[asks("5s", empty=True)])
    assert epoch(oracle, [25]) == []
    assert epoch(oracle) == [(10, 15, 0.0, 0), (15, 20, 0.0, 0), (20, 25, 0.0, 0)]
    oracle = watching(lateness=0)
    epoch(oracle, [11])
    epoch(oracle, control=[asks("5s", empty=True, valid_from=16, valid_until=18)])
    epoch(oracle, [41])
    assert epoch(oracle) == [(15, 20, 0.0, 0)]
    assert epoch(oracle, final=True) == []


def test_empty_windows_of_a_stream_without_events() -> None:
    oracle = watching(lateness=0)
    assert epoch(oracle, control=[asks("5s", empty=True)]) == []
    assert epoch(oracle, final=True) == []


def test_when_the_validity_is_over_the_rest_is_reported() -> None:
    """
    seconds   0    5   10   15   20
    valid     ~~~~~~~~~~~~                  until 12
    epoch 0   a         b     c             c is not matched; floor 14 in epoch 1
    epoch 1                  |              10 to 20 is told at once, 4 events of time 11 too late
    """
    oracle = watching(lateness=0)
    assert epoch(oracle, [0, 11, 14], [asks("10s", valid_until=12)]) == []
    assert epoch(oracle, [11] * 4) == [(0, 10, 1.0, 1), (10, 20, 1.0, 1)]
    assert epoch(oracle, final=True) == []
    oracle = watching(lateness=0)
    epoch(oracle, [0, 11, 12, 14], [asks(2, valid_until=12)])
    assert epoch(oracle) == [(0, 11, 2.0, 2)]


def test_a_termination_drops_what_is_open_and_a_new_registration_starts_from_nothing() -> None:
    """
    seconds   0    5   10   15   20
    epoch 0   a         b     c             floor 14 in epoch 1
    epoch 1                  | end, again   0 to 10 was closed before; b and c are forgotten
    epoch 2                     d
    """
    oracle = watching(lateness=0)
    epoch(oracle, [0, 11, 14], [asks("10s")])
    assert epoch(oracle, [16], [END, asks("10s")]) == [(0, 10, 1.0, 1)]
    assert epoch(oracle, final=True) == [(10, 20, 1.0, 1)]
    oracle = watching(lateness=0)
    epoch(oracle, [0, 1, 14], [asks(2)])
    assert epoch(oracle, [16], [END, asks(2)]) == [(0, 1, 2.0, 2)]
    assert epoch(oracle, [17]) == []
    assert epoch(oracle, final=True) == [(16, 17, 2.0, 2)]


def test_a_registration_that_is_refused_changes_nothing() -> None:
    oracle = watching()
    epoch(oracle, [1], [asks("10s")])
    epoch(oracle, [2], [asks("5s")])
    assert oracle.refused == 1
    assert epoch(oracle, final=True) == [(0, 10, 2.0, 2)]


def test_after_the_final_epoch_all_that_was_told_stays_closed() -> None:
    """
    seconds   0    5   10   15   20   25
    epoch 0     a        b
    final              [------)|            closed at 20: the largest end that was told
    epoch 2                 c     d         c at 15 is late
    """
    oracle = watching()
    assert epoch(oracle, [2, 11], [asks("10s")]) == []
    assert epoch(oracle, final=True) == [(0, 10, 1.0, 1), (10, 20, 1.0, 1)]
    assert oracle.clock.floor == 20 * SECOND
    assert epoch(oracle, [15, 21]) == []
    assert oracle.clock.late == 1
    assert epoch(oracle, final=True) == [(20, 30, 1.0, 1)]


def test_without_lateness_only_the_final_epoch_closes() -> None:
    oracle = watching()
    assert epoch(oracle, [1], [asks("10s"), END, asks(1)]) == []
    assert epoch(oracle, [1000]) == []
    assert epoch(oracle, [2]) == []
    assert oracle.clock.late == 0
    assert epoch(oracle, final=True) == [(1, 1, 1.0, 1), (2, 2, 1.0, 1), (1000, 1000, 1.0, 1)]
    assert oracle.clock.floor == 1000 * SECOND + 1


def test_a_silent_source_lets_time_go_on() -> None:
    oracle = watching(lateness=5)
    epoch(oracle, [4], [asks("10s")])
    assert epoch(oracle, silence=10) == []
    assert epoch(oracle, silence=11) == [(0, 10, 1.0, 1)]
    assert epoch(oracle, [9]) == []
    assert oracle.clock.watermark == -1 * SECOND
    assert (oracle.clock.floor, oracle.clock.late) == (10 * SECOND, 1)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (Function("count"), [1, None], 2.0),
        (Function("sum", "c"), [1e16, 1.0, 1.0, -1e16, None, math.nan, math.inf], 2.0),
        (Function("sum", "c"), [1e308, 1e308, -1e308], 1e308),
        (Function("sum", "c"), [-1e308, -1e308], -math.inf),
        (Function("avg", "c"), [0.1] * 10, 0.1),
        (Function("avg", "c"), [None], None),
        (Function("min", "c"), [-0.0], 0.0),
        (Function("max", "c"), [3, 2**53 + 1], 2.0**53),
        (Function("stddev", "c"), [1, 2, 3, 4], math.sqrt(5 / 3)),
        (Function("stddev", "c"), [1e16 + 2, 1e16], math.sqrt(2)),
        (Function("stddev", "c"), [1], None),
        (Function("stddev_pop", "c"), [1], 0.0),
        (Function("stddev_pop", "c"), [], None),
        (Function("distinct", "c"), ["a", "b", "a", None], 2.0),
        (Function("distinct", "c"), [0.0, -0.0, math.nan, math.inf], 2.0),
        (Function("distinct", "c"), [], 0.0),
        (Function("median", "c"), [3, 1, 2, None], 2.0),
        (Function("quantile", "c", 0.25), [1, 2], 1.25),
        (Function("quantile", "c", 0.5), [], None),
    ],
)
def test_values(function: Function, values: list[Any], expected: float | None) -> None:
    found = value_of(function, values)
    assert found == expected
    assert found is None or math.copysign(1, found) == math.copysign(1, expected or 0.0)


def test_a_difference_is_told_with_both_values() -> None:
    row = WindowRow("q", 0, 10 * SECOND, "avg(speed)", 0.1 + 0.2, 2)
    good = compared(3, [row, row], [row, row])
    assert (good.rows, good.wrong, good.differences) == (2, 0, [])
    bad = compared(3, [row], [row._replace(value=0.3)])
    assert (bad.rows, bad.wrong) == (1, 1)
    assert bad.differences == [
        "epoch 3: query q, window 1970-01-01T00:00:00+00:00 to 1970-01-01T00:00:10+00:00, "
        "avg(speed) should be 0.30000000000000004 of 2 events, is 0.3 of 2 events"
    ]
    for should, there, told in (
        ([row], [], "of 2 events, is absent"),
        ([], [row._replace(value=None, events=1)], "should be absent, is null of 1 event"),
        ([row], [row, row], "should be absent, is 0.30000000000000004 of 2 events"),
        ([row._replace(value=0.0)], [row._replace(value=-0.0)], "is -0.0 of 2 events"),
        ([row._replace(value=None)], [row._replace(value=math.nan)], "is nan of 2 events"),
    ):
        found = compared(0, should, there)
        assert found.wrong == 1
        assert told in found.differences[0]


def test_a_manifest_that_tells_another_time_is_noticed() -> None:
    clock = Clock(lateness_micros=2)
    clock.open()
    clock.see(np.array([5, 9]))
    good = {"epoch": 0, "late": 0, "watermark": None, "closed": None, "origin": 5, "max_time": 9}
    assert clock_problems(good, clock) == []
    clock.open()
    clock.see(np.array([6, 7]))
    assert clock_problems({"epoch": 1, "late": 0, "watermark": 7, "closed": 7}, clock) == [
        "epoch 1: late should be 1, is 0"
    ]


@pytest.mark.parametrize("lateness", [None, 0, 30, 120])
@pytest.mark.parametrize("final", [True, False])
def test_the_oracle_agrees_with_windows_by_hand(lateness: int | None, final: bool) -> None:
    rows = handmade.events(600)
    random.Random(3).shuffle(rows)
    rows.sort(key=lambda row: row["time"] // 100)  # out of order by up to 100 seconds
    epochs = [rows[k : k + 40] for k in range(0, len(rows), 40)]
    queries = windows_by_hand.asking(handmade.queries())
    found: Counter[Any] = Counter()
    oracle = watching(lateness)
    for number, came in enumerate([*epochs, []] if final else epochs):
        records = queries if number == 0 else []
        oracle.control([[json.dumps(record).encode() for record in records]])
        table = pa.Table.from_pylist(came, pa.schema([("lon", pa.float64()), ("lat", pa.float64()), ("time", pa.int64()), *SCHEMA])).combine_chunks()  # fmt: skip
        columns = {name: table.column(name).combine_chunks() for name in table.schema.names}
        x, y, time = (columns[name].to_numpy() for name in ("lon", "lat", "time"))
        oracle.matches(Events(x, y, time * SECOND, columns["id"], columns))
        for row in oracle.windows(final and not came):
            found[row._replace(window_start=row.window_start / SECOND, window_end=row.window_end / SECOND)] += 1  # fmt: skip
    should = windows_by_hand.expected(queries, epochs, lateness, final)
    assert (len(should) > 1000) == (final or lateness is not None)
    assert found == should
