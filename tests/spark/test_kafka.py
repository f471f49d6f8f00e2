"""Events and control in, matches out, through a real broker that is killed, as the driver is."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import handmade
import kafka_broker
from geoflux import api
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

SCRIPT = str(Path(__file__).parent / "killed_run.py")
RECORDS = [r for r in handmade.queries() if "valid_from" not in r]
MORE = [
    {"op": "terminate", "id": "q0"},
    {"op": "register", "id": "new", "shape": RECORDS[0]["shape"]},
]
ROWS = handmade.events(1200, seed=5)
BROKEN = [b"no json", b'{"id": 1', b"", None, b"[1]", b"\xff\xfe", b'{"id": 9, "lon": 999}']
REASONS = {"malformed_json": 4, "empty_value": 2, "bad_coordinates": 1}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[kafka_broker.Broker]:
    try:
        kafka_broker.any_connector()
        found = kafka_broker.Broker(tmp_path / "kafka")
    except kafka_broker.Unreachable as problem:
        pytest.skip(str(problem))
    found.start()
    yield found
    found.kill()


def test_the_connector_of_this_spark_can_be_fetched() -> None:
    """What users get by default. Where it cannot be reached, the other tests here run with another
    version, and this one says so."""
    try:
        jars = kafka_broker.connector_jars(kafka_broker.CONNECTOR)
    except kafka_broker.Unreachable as problem:
        instead = ", ".join(kafka_broker.STAND_IN)
        pytest.skip(f"{problem}; tests of Kafka ran with {instead} instead")
    assert "spark-sql-kafka" in jars


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_broker_and_driver_killed_and_every_match_once(
    broker: kafka_broker.Broker, tmp_path: Path
) -> None:
    """The driver dies when an epoch was sent and that was not noted, the broker in mid-run."""
    _topics(broker, events=3, control=1, matches=2)
    half = len(ROWS) // 2
    _send(broker, "control", [json.dumps(r).encode() for r in RECORDS])
    _send(broker, "events", [*_as_json(ROWS[:half]), *BROKEN])
    _toml(tmp_path, broker, "follow", "json", "epoch_events = 150\n")
    killed = subprocess.run(_command(tmp_path, SCRIPT, "after-send", "1"), capture_output=True,
                            text=True, timeout=300)  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, (killed.stdout[-2000:], killed.stderr[-3000:])
    out = tmp_path / "out"
    with subprocess.Popen(_command(tmp_path, "-m", "geoflux.cli"), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:  # fmt: skip
        try:
            _await(process, lambda: _received(out) == half + len(BROKEN))
            broker.kill()
            time.sleep(2)
            assert process.poll() is None
            broker.start()
            _send(broker, "control", [json.dumps(r).encode() for r in MORE])
            _send(broker, "events", _as_json(ROWS[half:]))
            _await(process, lambda: _received(out) == len(ROWS) + len(BROKEN))
            _await(process, lambda: _sent(out) == EpochLog(Store(str(out))).last())
            process.send_signal(signal.SIGINT)
            told, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode in (0, 130), told[-3000:]
    expected = handmade.expected(RECORDS, ROWS[:half])
    expected += handmade.expected([*RECORDS, *MORE], ROWS[half:])
    assert handmade.matches(out) == expected
    _check_conserved(out, len(ROWS) + len(BROKEN), REASONS)
    rows, seen = _read_matches(broker, out, _json_rows)
    assert seen > len(rows), "an epoch was sent twice"
    assert Counter((r["query_id"], r["event_id"]) for r in rows) == expected
    assert api.verify(out).is_clean


@pytest.mark.slow
def test_arrow_values_in_and_out(broker: kafka_broker.Broker, tmp_path: Path) -> None:
    _topics(broker, events=2, control=1, matches=1)
    _send(broker, "control", [json.dumps(r).encode() for r in RECORDS])
    values = [_stream(ROWS[i : i + 100]) for i in range(0, 600, 100)]
    _send(broker, "events", [*values, b"no arrow", values[0][:-50]])
    _toml(tmp_path, broker, "drain", "arrow", "epoch_events = 3\n")
    done = subprocess.run(_command(tmp_path, "-m", "geoflux.cli"), capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-3000:])
    out, expected = tmp_path / "out", handmade.expected(RECORDS, ROWS[:600])
    assert handmade.matches(out) == expected
    _check_conserved(out, 602, {"malformed_arrow": 2})
    rows, _ = _read_matches(broker, out, _arrow_rows)
    assert Counter((r["query_id"], r["event_id"]) for r in rows) == expected
    assert api.verify(out).is_clean


def _topics(broker: kafka_broker.Broker, **partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.servers})
    made = admin.create_topics([NewTopic(name, count, 1) for name, count in partitions.items()])
    for future in made.values():
        future.result(60)


def _send(broker: kafka_broker.Broker, topic: str, values: list[bytes | None]) -> None:
    """All of them, acknowledged."""
    producer = Producer({"bootstrap.servers": broker.servers, "enable.idempotence": True})
    failed: list[Any] = []
    for i, value in enumerate(values):
        partition = 0 if topic == "control" else i % 2
        producer.produce(topic, value, partition=partition,
                         on_delivery=lambda error, _: failed.append(error) if error else None)  # fmt: skip
    assert producer.flush(120) == 0
    assert failed == []


def _as_json(rows: list[dict[str, Any]]) -> list[bytes | None]:
    """Some of them on several lines."""
    return [json.dumps(row, indent=2 if row["id"] % 50 == 0 else None).encode() for row in rows]


def _stream(rows: list[dict[str, Any]]) -> bytes:
    table, sink = pa.Table.from_pylist(rows), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _toml(folder: Path, broker: kafka_broker.Broker, mode: str, form: str, engine: str) -> None:
    columns = ["id long", "lon double", "lat double", "time long", "speed double", "kind text"]
    (folder / "kafka.toml").write_text(
        f'[space]\ngrid = [100, 100]\n[kafka]\nservers = "{broker.servers}"\n'
        f'connector = "{kafka_broker.any_connector()}"\n'
        f'[source]\nkind = "kafka"\ntopics = ["events"]\nformat = "{form}"\ncolumns = {columns}\n'
        '[control]\nkind = "kafka"\ntopic = "control"\n'
        f'[output]\ntopic = "matches"\ntopic_format = "{form}"\nrecord_input = true\n'
        f'[run]\nmode = "{mode}"\n[engine]\nmemory = "1g"\n{engine}'
    )


def _command(folder: Path, *before: str) -> list[str]:
    settings, out = str(folder / "kafka.toml"), str(folder / "out")
    return [sys.executable, *before, "run", settings, "--out", out]


def _received(out: Path) -> int:
    return sum(m["received"] for m in EpochLog(Store(str(out))).manifests())


def _sent(out: Path) -> int:
    return int(json.loads((out / "outbox.json").read_text())["sent"].get("matches", -1))


def _await(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 400
    while not condition():
        if process.poll() is not None or time.monotonic() > limit:
            process.kill()
            raise AssertionError(process.communicate()[0][-3000:])
        time.sleep(0.1)


def _check_conserved(out: Path, received: int, reasons: dict[str, int]) -> None:
    manifests = list(EpochLog(Store(str(out))).manifests())
    assert sum(m["received"] for m in manifests) == received
    assert sum(m["processed"] + m["quarantined"] for m in manifests) == received
    told: Counter[str] = Counter()
    for manifest in manifests:
        told.update(manifest["reasons"])
    assert told == reasons


def _json_rows(value: bytes) -> list[dict[str, Any]]:
    return [json.loads(value)]


def _arrow_rows(value: bytes) -> list[dict[str, Any]]:
    return list(pa.ipc.open_stream(value).read_all().to_pylist())


def _read_matches(
    broker: kafka_broker.Broker, out: Path, rows_of: Callable[[bytes], list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], int]:
    """The rows as a reader has them who drops keys that it has seen, and the messages read."""
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "reader"})
    partitions = consumer.list_topics("matches", 60).topics["matches"].partitions
    consumer.assign([TopicPartition("matches", p, 0) for p in partitions])
    left = {
        p: consumer.get_watermark_offsets(TopicPartition("matches", p), 60)[1] for p in partitions
    }
    kept: dict[bytes, bytes] = {}
    ends: dict[int, dict[str, int]] = {}
    seen = 0
    while sum(left.values()):
        message = consumer.poll(60)
        assert message is not None, "the topic ends too early"
        assert message.error() is None
        left[message.partition()] -= 1
        headers = dict(message.headers())
        key, epoch = headers["geoflux.key"], int(headers["geoflux.epoch"])
        if headers["geoflux.kind"] == b"epoch":
            ends[epoch] = json.loads(message.value())
            continue
        seen += 1
        assert kept.setdefault(key, message.value()) == message.value(), "sent again as it was"
    consumer.close()
    assert sorted(ends) == list(range(len(ends)))
    assert len(ends) - 1 == EpochLog(Store(str(out))).last()
    assert sum(end["messages"] for end in ends.values()) == len(kept)
    rows = [row for value in kept.values() for row in rows_of(value)]
    assert sum(end["rows"] for end in ends.values()) == len(rows)
    return rows, seen
