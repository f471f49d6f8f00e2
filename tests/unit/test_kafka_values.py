"""Kafka without a broker: values, control from a topic, messages, settings."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux.config import Config
from geoflux.engine.control_files import ControlFiles
from geoflux.engine.outgoing import KEY, amounts, closing, messages, parcelled
from geoflux.engine.topic_control import FOLDER, TopicControl
from geoflux.engine.topic_values import TopicValues
from geoflux.errors import ConfigError, IntegrityError
from geoflux.state.store import Store

COLUMNS = ("id long", "lon double", "kind text")


def _records(values: list[Any], topic: str = "a", partition: int = 0, first: int = 0) -> pa.Table:
    count = len(values)
    return pa.table(
        {"topic": [topic] * count, "partition": pa.array([partition] * count, pa.int32()),
         "offset": pa.array(range(first, first + count), pa.int64()),
         "value": pa.array(values, pa.binary())}
    )  # fmt: skip


def _stream(rows: list[dict[str, Any]]) -> bytes:
    table, sink = pa.Table.from_pylist(rows), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_json_values_keep_the_position_of_their_record() -> None:
    values = [b'{"id": 1, "lon": 2.5, "kind": "bus"}', b"{", None, b" ", b'{"id":\n2}\n',
              b'{"kind": "a\nb"}', b'{"id": 3, "other": 1}']  # fmt: skip
    (batch,) = TopicValues(("a",), COLUMNS, False, 1000).batches(_records(values, first=10))
    assert batch.table.column("id").to_pylist() == [1, 2, 3]
    assert batch.positions.tolist() == [10, 14, 16]
    assert sorted(bad.code for bad in batch.rejected) == [
        "empty_value", "empty_value", "malformed_json", "malformed_json",
    ]  # fmt: skip


def test_an_arrow_value_holds_many_rows_and_is_rejected_as_a_whole() -> None:
    good = _stream([{"lon": 1, "id": 7, "more": "x"}, {"lon": None, "id": 8, "more": "y"}])
    values = [good, b"no arrow", good[:-40], None, _stream([{"id": "text", "lon": 2.0}])]
    (batch,) = TopicValues(("a",), COLUMNS, True, 1000).batches(_records(values))
    assert batch.table.to_pylist() == [
        {"id": 7, "lon": 1.0, "kind": None}, {"id": 8, "lon": None, "kind": None},
        {"id": None, "lon": 2.0, "kind": None},
    ]  # fmt: skip
    assert batch.positions.tolist() == [0, 0, 4]
    codes = [bad.code for bad in batch.rejected]
    assert codes == ["malformed_arrow", "malformed_arrow", "empty_value"]


def test_positions_tell_topics_partitions_and_offsets_apart() -> None:
    values = TopicValues(("a", "b"), COLUMNS, False, 1000)
    records = pa.concat_tables(
        [_records([b"{}"] * 2, topic, part, 5) for topic in "ab" for part in (0, 3)]
    )
    batches = list(values.batches(records))
    assert [len(batch.table) for batch in batches] == [2, 2, 2, 2]
    positions = np.concatenate([batch.positions for batch in batches])
    assert len(set(positions.tolist())) == 8
    assert (np.diff(positions) > 0).all()
    with pytest.raises(IntegrityError, match="begin a new topic"):
        list(values.batches(_records([b"{}"], first=1 << 40)))


def test_control_is_here_before_it_is_read_and_is_fetched_once(tmp_path: Path) -> None:
    store, topic = Store(str(tmp_path)), [b'{"op": "register"}', b"\n", None, b'{"op":\n"end"}']
    asked: list[int | None] = []

    def fetch(offset: int | None) -> tuple[int, list[bytes | None]]:
        asked.append(offset)
        return len(topic), list(topic[offset or 0 :])

    def control() -> TopicControl:
        files = ControlFiles(tmp_path / FOLDER, tmp_path / "control.log", True)
        return TopicControl(files, store, fetch)

    first = control().poll({})
    topic.append(b'{"op": "more"}')
    second = control().poll(first)  # as after a crash: nothing is remembered but the files
    assert asked == [None, 4]
    lines = [line for part in control().read({}, second) for line in part]
    assert lines == [b'{"op": "register"}', b'"\\n"', b"null", b'{"op": "end"}', b'{"op": "more"}']
    assert [line for part in control().read(first, second) for line in part] == lines[4:]


@pytest.mark.parametrize("arrow", [False, True])
def test_messages_are_the_same_whenever_they_are_made(tmp_path: Path, arrow: bool) -> None:
    rows = {"query_id": [f"q{i % 3}" for i in range(5000)], "event_id": range(5000)}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet", row_group_size=700)
    (file,) = parcelled(["matches/a.parquet"], "run", 4)
    file = type(file)(str(tmp_path / "a.parquet"), file.kind, file.run, file.epoch, file.number)
    made = [[m for batch in messages(file, arrow) for m in batch.to_pylist()] for _ in range(2)]
    assert made[0] == made[1]
    keys = [{h["key"]: h["value"] for h in m["headers"]}[KEY] for m in made[0]]
    assert len(set(keys)) == len(keys) == amounts([file], arrow)[0] == (2 if arrow else 5000)
    if not arrow:
        assert keys[7] == b"run.4.0.7"
        assert json.loads(made[0][7]["value"]) == {"query_id": "q1", "event_id": 7}
        assert made[0][7]["key"] == b"q1"
    (end,) = closing("run", 4, *amounts([file], arrow)).to_pylist()
    assert json.loads(end["value"])["rows"] == 5000


def test_mistakes_are_told_together_and_secrets_are_not_repeated() -> None:
    with pytest.raises(ConfigError) as told:
        Config.from_dict(
            {"source": {"kind": "kafka", "columns": ["id number"], "format": "ndjson"},
             "control": {"kind": "kafka"}, "kafka": {"options": ["kafka.ssl.key.password=hush"]}}
        )  # fmt: skip
    text = str(told.value)
    for name in ("kafka.servers", "source.topics", "'id number'", "source.format", "control.topic",
                 "kafka.options_file"):  # fmt: skip
        assert name in text
    assert "hush" not in text


def test_the_file_of_options_is_for_its_owner_alone(tmp_path: Path) -> None:
    from geoflux.sections_kafka import KafkaConfig
    from geoflux.spark.kafka import options_of

    path = tmp_path / "secrets"
    path.write_text('# who we are\nkafka.sasl.jaas.config=Login required password="a=b";\n')
    kafka = KafkaConfig("s:1", "", ("minPartitions=8",), str(path))
    os.chmod(path, 0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        options_of(kafka)
    os.chmod(path, 0o600)
    assert options_of(kafka) == {
        "kafka.bootstrap.servers": "s:1", "minPartitions": "8",
        "kafka.sasl.jaas.config": 'Login required password="a=b";',
    }  # fmt: skip
