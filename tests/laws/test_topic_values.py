"""Law: of a topic's values none is lost, doubled or changed by its neighbours, however they are cut."""

from __future__ import annotations

import io
import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from geoflux.engine.topic_control import as_line
from geoflux.engine.topic_values import TopicValues

COLUMNS = ("id long", "lon double")


def _stream(ids: list[int]) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"id": pa.array(ids, pa.int64())})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


OBJECTS = st.dictionaries(
    st.sampled_from(["id", "lon", "x"]), st.none() | st.integers() | st.floats() | st.text()
)
JSON = OBJECTS.map(lambda row: json.dumps(row).encode()) | OBJECTS.map(
    lambda row: json.dumps(row, indent=1).encode()
)
ARROW = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(_stream)
NOISE = st.none() | st.binary(max_size=30) | st.sampled_from([b"\n", b"{}\n{}", b'{"id":\n', b"[]"])
PLACES = st.tuples(st.sampled_from("ab"), st.integers(0, 3))


def _told(values: TopicValues, records: pa.Table) -> list[tuple[str, ...]]:
    """Rows with their positions, and rejections, as a bag."""
    out: list[tuple[str, ...]] = []
    for batch in values.batches(records):
        rows = batch.table.select(["id", "lon"]).to_pylist()
        out += [(str(p), repr(row)) for p, row in zip(batch.positions, rows, strict=True)]
        out += [("", bad.code, bad.row) for bad in batch.rejected]
    return sorted(out)


@given(
    st.booleans(), st.lists(st.tuples(PLACES, JSON | ARROW | NOISE), min_size=1), st.data()
)  # fmt: skip
def test_every_value_for_itself(
    arrow: bool, given_values: list[tuple[tuple[str, int], bytes | None]], data: st.DataObject
) -> None:
    values = TopicValues(("a", "b"), COLUMNS, arrow, 200)
    records = pa.table(
        {"topic": [place[0] for place, _ in given_values],
         "partition": pa.array([place[1] for place, _ in given_values], pa.int32()),
         "offset": pa.array(range(len(given_values)), pa.int64()),
         "value": pa.array([value for _, value in given_values], pa.binary())}
    )  # fmt: skip
    alone = [_told(values, records.slice(i, 1)) for i in range(len(records))]
    assert arrow or all(len(told) == 1 for told in alone), "a row or a rejection"
    cut = data.draw(st.integers(0, len(records)))
    together = _told(values, records.slice(0, cut)) + _told(values, records.slice(cut))
    assert sorted(together) == sorted(item for told in alone for item in told)


@given(JSON | NOISE)
def test_a_control_value_is_one_line(value: bytes | None) -> None:
    line = as_line(value)
    assert b"\n" not in line
    assert line.strip()
