"""Intake: every reason to reject an event, in a fixed order, and every form in which one comes."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoflux.engine.intake import POSITION_ID, RAW, EventColumns, Intake
from geoflux.engine.source import RawBatch, Rejected
from geoflux.operators.events import Events
from geoflux.sections import SourceConfig, SpaceConfig
from geoflux.spatial.space import Space

SPACE = Space("lonlat", -10.0, -20.0, 10.0, 20.0)
BILLION = 1_700_000_300
"""2023-11-14T22:18:20Z in seconds."""


def accepted(
    *, unit: str = "s", id_column: str = "id", id_type: pa.DataType | None = None,
    wanted: frozenset[str] = frozenset(), rejected: tuple[Rejected, ...] = (), **columns: Any,
) -> tuple[Events, list[int], list[Rejected]]:  # fmt: skip
    """What becomes of rows; a column that is given as ``None`` is not there."""
    count = max([len(values) for values in columns.values() if values is not None], default=1)
    given = {"id": list(range(count)), "lon": [1.0] * count, "lat": [2.0] * count}
    given |= {"time": [5] * count} | columns
    table = pa.table({name: values for name, values in given.items() if values is not None})
    names = EventColumns(id_column, "lon", "lat", "time", unit)
    kind = id_type or names.id_type(table.schema)
    positions = np.arange(100, 100 + len(table))
    events, kept, bad = Intake(names, SPACE, kind, wanted).accept(
        RawBatch(table, positions, rejected)
    )
    assert len(events) == len(kept) == len(events.time)
    assert len(events) + len(bad) == len(table) + len(rejected)
    return events, kept.tolist(), bad


def codes(**columns: Any) -> list[str]:
    return [bad.code for bad in accepted(**columns)[2]]


def micros(unit: str = "s", **columns: Any) -> list[int]:
    events, _, bad = accepted(unit=unit, **columns)
    assert bad == []
    return events.time.tolist()


@pytest.mark.parametrize("name", ["id", "lon", "lat", "time"])
def test_a_missing_column(name: str) -> None:
    columns = {"note": ["x", "y"], name: None}
    events, _, bad = accepted(id_type=pa.int64(), **columns)
    assert len(events) == 0
    assert [b.code for b in bad] == ["missing_column"] * 2
    assert bad[0].detail.endswith(f": {name}")


def test_all_missing_columns_are_named() -> None:
    _, _, bad = accepted(id_type=pa.int64(), lat=None, time=None, lon=[1.0])
    assert bad[0].detail.endswith(": lat, time")


@pytest.mark.parametrize("axis", ["lon", "lat"])
@pytest.mark.parametrize(
    "values",
    [
        [float("nan")], [None], [float("inf")], [-float("inf")], ["abc"], [""], ["nan"], ["inf"],
        ["1e400"], [True], [b"1"], [[1.0]], [date(2020, 1, 1)],
        pa.array([None], pa.float64()), pa.array([None], pa.string()),
    ],
    ids=str,
)  # fmt: skip
def test_bad_coordinates(axis: str, values: Any) -> None:
    assert codes(**{axis: values}) == ["bad_coordinates"]


@pytest.mark.parametrize(
    "values",
    [
        [3], pa.array([3.0], pa.float32()), [Decimal("3.0")], ["3.0"], [" 3 "],
        pa.array([3], pa.uint8()), pa.array([3.0]).dictionary_encode(),
        pa.array(["3"], pa.large_string()), pa.chunked_array([[3.0], []]),
    ],
    ids=lambda values: str(getattr(values, "type", values)),
)  # fmt: skip
def test_coordinates_in_every_type(values: Any) -> None:
    events, _, bad = accepted(lon=values)
    assert (events.x.tolist(), bad) == ([3.0], [])


@pytest.mark.parametrize(
    ("lon", "lat"), [(10.000001, 0), (-10.1, 0), (0, 20.1), (0, -21), (1e300, 0), (-1e300, 1e300)]
)
def test_outside_the_space(lon: float, lat: float) -> None:
    assert codes(lon=[lon], lat=[lat]) == ["outside_space"]


def test_the_edges_of_the_space_are_inside() -> None:
    events, _, bad = accepted(lon=[-10.0, 10.0, -0.0], lat=[-20.0, 20.0, 0.0])
    assert (len(events), bad) == (3, [])


@pytest.mark.parametrize(
    "values",
    [
        [None], ["soon"], [""], [float("nan")], [float("inf")], [True], [[1]], [b"2020-01-01"],
        [1e300], [2**63 - 1], [-(2**63)], pa.array([2**64 - 1], pa.uint64()),
        pa.array([None], pa.timestamp("us")), pa.array([None], pa.int64()),
        ["2023-13-01"], ["2023-02-30T00:00:00Z"], ["now"], ["today"],
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_bad_time(values: Any, unit: str) -> None:
    assert codes(time=values, unit=unit) == ["bad_time"]


def test_a_missing_id() -> None:
    assert codes(id=[1, None, 3]) == ["missing_id"]
    assert codes(id=["a", None]) == ["missing_id"]
    assert codes(id=pa.array([None], pa.string())) == ["missing_id"]


def test_reasons_come_in_a_fixed_order() -> None:
    nan, far = float("nan"), 99.0
    events, kept, bad = accepted(
        id=pa.array([None, None, None, None, 4], pa.int64()),
        time=["x", "x", "x", "2020-01-01", "2020-01-01"],
        lon=[nan, far, 1.0, 1.0, 1.0],
        lat=[far, 2.0, 2.0, 2.0, 2.0],
    )
    assert [b.code for b in bad] == ["bad_coordinates", "outside_space", "bad_time", "missing_id"]
    assert (events.id.to_pylist(), kept) == ([4], [104])  # type: ignore[union-attr]
    everything = accepted(id_type=pa.int64(), lon=[nan], time=None)[2]
    assert [b.code for b in everything] == ["missing_column"]


def test_rejected_rows_are_kept_as_they_came() -> None:
    early = Rejected("malformed_json", "no JSON", "{")
    _, _, bad = accepted(
        lon=[99.0, 1.0, 98.0], rejected=(early,), **{RAW: ['{"raw": 1}', None, None]}
    )
    assert bad[0] is early
    assert bad[1].row == '{"raw": 1}'
    row = json.loads(bad[2].row)
    assert (row["lon"], row["id"]) == (98.0, 2)
    assert all(b.detail for b in bad)


@pytest.mark.parametrize(
    ("unit", "factor"), [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000)]
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()], ids=str)
def test_numeric_times_in_every_unit(unit: str, factor: int, kind: pa.DataType) -> None:
    whole = pa.array([BILLION * factor, -factor, 0], pa.int64()).cast(kind, safe=False)
    assert micros(unit, time=whole) == [BILLION * 1_000_000, -1_000_000, 0]
    events, kept, bad = accepted(unit=unit, time=pa.concat_arrays([whole, pa.nulls(1, kind)]))
    assert events.time.tolist() == [BILLION * 1_000_000, -1_000_000, 0]
    assert (kept, [b.code for b in bad]) == ([100, 101, 102], ["bad_time"])


def test_fractions_of_seconds() -> None:
    assert micros(time=[0.25, 1.000001]) == [250_000, 1_000_001]
    assert micros(time=pa.array([7], pa.int8())) == [7_000_000]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2023-11-14T22:18:20Z", 0), ("2023-11-14 22:18:20", 0), ("2023-11-14T23:18:20+01:00", 0),
        ("2023-11-14T17:18:20-0500", 0), ("2023-11-14T22:18:20.5Z", 0.5),
        ("2023-11-14T22:18:20.123456789Z", 0.123456), ("2023-11-14T22:18", -20),
    ],
)  # fmt: skip
def test_texts_with_and_without_a_zone(text: str, seconds: float) -> None:
    wanted = round((BILLION + seconds) * 1e6)
    assert micros(time=[text]) == [wanted]
    assert micros(time=pa.array([text]).dictionary_encode()) == [wanted]


def test_numbers_as_text_count_in_the_unit() -> None:
    assert micros("ms", time=["1700000300000", "1700000300000.5"]) == [
        BILLION * 10**6,
        BILLION * 10**6 + 500,
    ]
    assert codes(time=["1e300"]) == ["bad_time"]


TEXTS = [
    "2023-11-14T22:18:20Z", "2023-11-14 22:18:20", "2023-11-14", "2023-11-14T23:18:20.5+01:00",
    "2023-11-14T22:18:20.123456789", "1500-01-01T00:00:00", "9999-12-31T00:00:00Z", "0001-01-01",
    "20231114T221820", "2023-11", "now", "1700000300", "x", "", None,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_text_means_does_not_depend_on_its_neighbours(text: str | None) -> None:
    alone, _, bad = accepted(time=pa.array([text], pa.string()))
    for neighbour in TEXTS:
        beside = accepted(time=pa.array([text, neighbour], pa.string()))
        verdicts = [b for b in beside[2] if json.loads(b.row)["id"] == 0]
        assert bool(verdicts) == bool(bad), neighbour
        if not bad:
            assert beside[0].time[0] == alone.time[0], neighbour


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps(unit: str, zone: str | None) -> None:
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    times = pa.array([BILLION * scale, 0], pa.timestamp(unit, zone))
    assert micros("ms", time=times) == [BILLION * 10**6, 0]


def test_dates() -> None:
    assert micros(time=[date(1970, 1, 2)]) == [86_400_000_000]


def test_positions_as_ids() -> None:
    events, kept, bad = accepted(id_column=POSITION_ID, id=None, lon=[1.0, 99.0, 2.0])
    assert (events.id.to_pylist(), kept) == ([100, 102], [100, 102])  # type: ignore[union-attr]
    assert [b.code for b in bad] == ["outside_space"]


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        (["a", ""], ["a", ""]),
        (pa.array([1, 2], pa.int16()), [1, 2]),
        (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
        (pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        ([1.5, 2.5], ["1.5", "2.5"]),
    ],
    ids=str,
)
def test_ids_stay_the_users(ids: Any, wanted: list[Any]) -> None:
    events, _, bad = accepted(id=ids)
    assert bad == []
    assert events.id.to_pylist() == wanted  # type: ignore[union-attr]


def test_a_very_large_id_is_not_another_number() -> None:
    events, _, bad = accepted(id=pa.array([2**63 + 5], pa.uint64()))
    kept = [str(value) for value in events.id.to_pylist()]  # type: ignore[union-attr]
    assert kept == [str(2**63 + 5)] or [b.code for b in bad] == ["missing_id"]


@pytest.mark.parametrize("ids", [[[1]], [{"a": 1}], [b"\xff"]], ids=repr)
def test_ids_of_odd_types_are_no_crash(ids: Any) -> None:
    events, _, bad = accepted(id=ids)
    assert len(events.id.to_pylist()) + len(bad) == 1  # type: ignore[union-attr]


def test_further_columns_follow_their_rows() -> None:
    events, _, _ = accepted(
        wanted=frozenset({"kind", "speed", "gone"}), lon=[1.0, 99.0, 2.0],
        kind=pa.array(["bus", "car", None]).dictionary_encode(), speed=[1, 2, 3], unasked=[0, 0, 0],
    )  # fmt: skip
    found = {name: column.to_pylist() for name, column in events.columns.items()}
    assert found == {"kind": ["bus", None], "speed": [1, 3], "gone": [None, None]}


def test_no_rows() -> None:
    events, kept, bad = accepted(id=pa.array([], pa.int64()), lon=[], lat=[], time=[])
    assert (len(events), kept, bad) == (0, [], [])


def test_names_from_the_settings() -> None:
    lonlat = EventColumns.of(SourceConfig(), SpaceConfig())
    planar = EventColumns.of(SourceConfig(x="easting", id=POSITION_ID), SpaceConfig(kind="planar"))
    assert lonlat.needed == {"id", "lon", "lat", "time"}
    assert planar.needed == {"easting", "y", "time"}
    assert planar.id_type(pa.schema([])) == pa.int64()
    assert lonlat.id_type(pa.schema([("id", pa.int32())])) == pa.int64()
    assert lonlat.id_type(pa.schema([("id", pa.float64())])) == pa.string()
