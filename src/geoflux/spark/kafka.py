"""Kafka through Spark's own connector: events in, control in. Nothing else here talks to a broker.

Events are a streaming DataFrame whose offsets Spark logs before an epoch begins, so that the same
records come again after a crash. A control topic is read by the driver from where its copy ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from geoflux.config import Config
from geoflux.engine.topic_control import Fetched
from geoflux.engine.topic_values import TopicValues
from geoflux.errors import ConfigError, EnvironmentProblem, SourceError
from geoflux.sections_kafka import OURS, KafkaConfig, split_option

_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
Result = TypeVar("Result")
_COLUMNS = ("topic", "partition", "offset", "value")


@dataclass(frozen=True)
class TopicStream:
    """Records of topics as they come, and what makes rows of them."""

    frame: DataFrame
    values: TopicValues


def is_used(config: Config) -> bool:
    """Whether anything of a run goes through Kafka."""
    return "kafka" in (config.source.kind, config.control.kind) or bool(config.output.topic)


def connector_settings(config: Config) -> dict[str, str]:
    """What a session of our own needs to find the connector.

    >>> used = Config.from_dict({"control": {"kind": "kafka", "topic": "c"},
    ...                          "kafka": {"servers": "s:1", "connector": "a.jar, org:b_2.13:1"}})
    >>> connector_settings(used)
    {'spark.jars': 'a.jar', 'spark.jars.packages': 'org:b_2.13:1'}
    """
    if not is_used(config) or config.kafka.connector == "given":
        return {}
    named = config.kafka.connector or _CONNECTOR.format(version=pyspark.__version__)
    parts = [part.strip() for part in named.split(",") if part.strip()]
    jars = [part for part in parts if part.endswith(".jar")]
    packages = [part for part in parts if not part.endswith(".jar")]
    return {
        name: ",".join(values)
        for name, values in (("spark.jars", jars), ("spark.jars.packages", packages))
        if values
    }


def unresolved(config: Config) -> EnvironmentProblem:
    """What to say where Spark did not start with the connector."""
    named = config.kafka.connector or _CONNECTOR.format(version=pyspark.__version__)
    return EnvironmentProblem(
        f"Spark did not start with its Kafka connector ({named}); what it wrote above tells "
        "whether it could not be fetched. Name a repository in Spark's own settings "
        "(spark.jars.repositories or spark.jars.ivySettings), or jars in kafka.connector"
    )


def options_of(kafka: KafkaConfig) -> dict[str, str]:
    """The options for the connector, those of the file included."""
    options = {"kafka.bootstrap.servers": kafka.servers}
    lines = [*kafka.options, *(_secrets(Path(kafka.options_file)) if kafka.options_file else ())]
    return options | dict(split for line in lines if (split := split_option(line)))


def _secrets(path: Path) -> list[str]:
    """The lines of the file of options; no message repeats any of them."""
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            f"kafka.options_file = {str(path)!r} cannot be read; name a file of name=value lines"
        ) from None
    if mode & 0o077:
        raise ConfigError(f"kafka.options_file = {str(path)!r} can be read by others; chmod 600 it")
    lines = [line.strip() for line in text.splitlines()]
    for number, line in enumerate(lines, 1):
        split = split_option(line)
        if line and not line.startswith("#") and (split is None or split[0].lower() in OURS):
            raise ConfigError(
                f"kafka.options_file = {str(path)!r}, line {number}: expected name=value, of an "
                "option that no other setting decides"
            )
    return [line for line in lines if line and not line.startswith("#")]


def event_stream(spark: SparkSession, config: Config) -> TopicStream:
    """The configured topics as a stream; an epoch has at most about ``engine.epoch_events``
    records. That records were deleted before they were read is an error."""
    source = config.source
    reader: DataStreamReader = spark.readStream.format("kafka")
    options = options_of(config.kafka) | {
        "subscribe": ",".join(source.topics),
        "startingOffsets": source.offsets,
        "maxOffsetsPerTrigger": str(config.engine.epoch_events),
    }
    frame = asked(config.kafka, lambda: reader.options(**options).load())
    return TopicStream(frame.select(*_COLUMNS), TopicValues.of(source))


def control_fetch(spark: SparkSession, config: Config) -> Callable[[int | None], Fetched]:
    """Reads what is new in the control topic."""
    topic, options = config.control.topic, options_of(config.kafka)

    def fetch(offset: int | None) -> Fetched:
        begin = "earliest" if offset is None else json.dumps({topic: {"0": offset}})
        reader: DataFrameReader = spark.read.format("kafka").options(
            **options, subscribe=topic, startingOffsets=begin, endingOffsets="latest"
        )
        table = asked(
            config.kafka, lambda: reader.load().select("partition", "offset", "value").toArrow()
        ).sort_by("offset")
        partitions = set(table.column("partition").to_pylist())
        if partitions - {0}:
            raise SourceError(
                f"control.topic = {topic!r} has several partitions, between which records have no "
                "order; use a topic with one"
            )
        upto = table.column("offset")[-1].as_py() + 1 if len(table) else offset or 0
        return upto, table.column("value").to_pylist()

    return fetch


def asked(kafka: KafkaConfig, ask: Callable[[], Result]) -> Result:
    """What the connector answers; its complaints in one sentence."""
    try:
        return ask()
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        if "Failed to find data source: kafka" in text or "DATA_SOURCE_NOT_FOUND" in text:
            raise EnvironmentProblem(
                "the Spark session has no Kafka connector; start it with spark.jars.packages = "
                f"{_CONNECTOR.format(version=pyspark.__version__)}"
            ) from error
        lines = [line for line in text.splitlines() if "Exception: " in line] or text.splitlines()
        raise SourceError(
            f"Kafka at {kafka.servers} could not be asked: {lines[-1].strip()[:300]}; see that it "
            "is up and that its topics exist, and run again"
        ) from error
