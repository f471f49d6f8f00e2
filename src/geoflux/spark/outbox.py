"""Results out through Kafka, after their epoch was committed and from its files.

``outbox.json`` says how far they were sent, per topic. A crash between sending and noting that
sends the epoch again, message by message with the same keys; nothing is left out. The run's name,
which keys begin with, is written down before the first message.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from geoflux.config import Config
from geoflux.engine.outgoing import MESSAGES, Parcelled, amounts, closing, messages, parcelled
from geoflux.spark.kafka import asked, options_of
from geoflux.spark.session import default_parallelism
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

_NOTE = "outbox.json"
_SCHEMA = from_arrow_schema(MESSAGES)
_NUMBER = "number long"

Rows = Iterator[pa.RecordBatch]


class Outbox:
    """Sends the committed results of a run to a topic, epoch after epoch."""

    def __init__(self, spark: SparkSession, config: Config, store: Store) -> None:
        self._spark = spark
        self._store = store
        self._log = EpochLog(store)
        self._kafka = config.kafka
        self._topic = config.output.topic
        self._arrow = config.output.topic_format == "arrow"
        self._options = options_of(config.kafka)
        if not store.exists(_NOTE):
            store.write_json(_NOTE, {"run": uuid.uuid4().hex[:16], "sent": {}})
        self._note: dict[str, Any] = store.read_json(_NOTE)

    @property
    def sent(self) -> int:
        """The last epoch that was sent; -1 before the first."""
        return int(self._note["sent"].get(self._topic, -1))

    def send(self, upto: int | None) -> None:
        """Send what is committed and was not sent, up to an epoch."""
        for epoch in range(self.sent + 1, -1 if upto is None else upto + 1):
            self._send_epoch(epoch)
            self._note["sent"][self._topic] = epoch
            self._store.write_json(_NOTE, self._note)

    def _send_epoch(self, epoch: int) -> None:
        run, manifest = self._note["run"], self._log.manifest(epoch)
        named = parcelled(manifest["files"], run, epoch)
        files = [replace(file, path=self._store.path(file.path)) for file in named]
        if files:
            tasks = min(len(files), default_parallelism(self._spark))
            names = self._spark.createDataFrame([(f,) for f in range(len(files))], _NUMBER)
            self._write(names.repartition(tasks).mapInArrow(_sender(files, self._arrow), _SCHEMA))
        end = closing(run, epoch, *amounts(files, self._arrow))
        self._write(self._spark.createDataFrame(pa.Table.from_batches([end]), _SCHEMA))

    def _write(self, frame: DataFrame) -> None:
        writer = frame.write.format("kafka").options(**self._options, topic=self._topic)
        asked(self._kafka, writer.save)


def _sender(files: list[Parcelled], arrow: bool) -> Callable[[Rows], Rows]:
    """Makes messages of the files that a task has the numbers of, where the task runs."""

    def stage(rows: Rows) -> Rows:
        for batch in rows:
            for number in batch.column(0).to_pylist():
                yield from messages(files[number], arrow)

    return stage
