"""The section for Kafka, and what must fit together where events, control or matches go through it.

Secrets belong into a file of their own: everything else here is written down with the run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from geoflux.sections import ControlConfig, OutputConfig, SourceConfig
from geoflux.settings import setting

OURS = ("kafka.bootstrap.servers", "subscribe", "subscribepattern", "assign", "startingoffsets",
        "endingoffsets", "maxoffsetspertrigger", "topic", "includeheaders")  # fmt: skip
"""Options of Spark's connector that the other settings decide."""
COLUMN_TYPES = ("long", "double", "text", "boolean", "timestamp")
_SECRET = re.compile(r"password|secret|token|jaas|credential|\.key\b|private", re.IGNORECASE)


@dataclass(frozen=True)
class KafkaConfig:
    """The Kafka that events, control or matches go through ([kafka.md](kafka.md))."""

    servers: str = setting("", "Brokers to begin with: `host:port`, several with commas.")
    connector: str = setting(
        "", "Spark's connector: Maven coordinates, or paths of jars, with commas. Empty: "
        "`spark-sql-kafka-0-10` of the Spark version that runs, fetched by Spark; `given`: the "
        "session or Spark's own settings have it.")  # fmt: skip
    options: tuple[str, ...] = setting(
        (), 'Further options of the connector, as `"name=value"`: '
        '`"kafka.security.protocol=SASL_SSL"`, `"minPartitions=8"`. No secrets.')  # fmt: skip
    options_file: str = setting(
        "", "File of such options, one `name=value` a line, readable by its owner alone; for "
        "secrets: it is read when a run starts and written down nowhere.")  # fmt: skip


def split_option(text: str) -> tuple[str, str] | None:
    """Name and value of an option; ``None`` where it is none.

    >>> split_option("kafka.sasl.mechanism = PLAIN"), split_option("PLAIN")
    (('kafka.sasl.mechanism', 'PLAIN'), None)
    """
    name, equals, value = text.partition("=")
    return (name.strip(), value.strip()) if equals and name.strip() else None


def unfit(
    kafka: KafkaConfig, source: SourceConfig, control: ControlConfig, output: OutputConfig
) -> list[str]:
    """Mistakes that show only when these sections are read together."""
    problems = [p for text in kafka.options if (p := _wrong_option(text))]
    events, queries = source.kind == "kafka", control.kind == "kafka"
    if (events or queries or output.topic) and not kafka.servers:
        problems.append("kafka.servers is empty: expected the brokers, for example localhost:9092")
    if queries and not control.topic:
        problems.append('control.topic is empty: control.kind = "kafka" needs a topic')
    if source.format in ("json", "arrow") and not events:
        problems.append(
            f"source.format = {source.format!r}: that is for kafka; use parquet or ndjson"
        )
    return problems + (_unfit_source(source) if events else [])


def _wrong_option(text: str) -> str | None:
    split = split_option(text)
    if split is None:
        return f'kafka.options: {text!r} is no option; expected "name=value"'
    if split[0].lower() in OURS:
        return f"kafka.options: {split[0]} follows from other settings; leave it out"
    if _SECRET.search(split[0]):  # the value is not told again
        return f"kafka.options: {split[0]} may be a secret; put it into kafka.options_file"
    return None


def _unfit_source(source: SourceConfig) -> list[str]:
    problems = []
    if not source.topics:
        problems.append('source.topics is empty: source.kind = "kafka" needs at least one topic')
    if len(set(source.topics)) < len(source.topics):
        problems.append(f"source.topics = {list(source.topics)}: a topic is named twice")
    if source.format not in ("auto", "json", "arrow"):
        problems.append(f"source.format = {source.format!r}: expected json or arrow for kafka")
    if not source.columns:
        problems.append(
            'source.columns is empty: a topic does not tell its columns; expected ["id long", '
            '"lon double", "lat double", "time long"] and what queries ask for'
        )
    names = [text.split()[0] for text in source.columns if text.split()]
    for text in source.columns:
        words = text.split()
        if len(words) != 2 or words[1] not in COLUMN_TYPES:
            problems.append(
                f"source.columns: {text!r}: expected a name and one of {', '.join(COLUMN_TYPES)}"
            )
    if len(set(names)) < len(names):
        problems.append(f"source.columns = {list(source.columns)}: a column is named twice")
    if source.speed > 0:
        problems.append(f"source.speed = {source.speed:g}: a topic cannot be replayed at a speed")
    if source.format == "arrow" and source.id == "@position":
        problems.append(
            'source.id = "@position": the rows of an Arrow value share one offset; name a column'
        )
    return problems
