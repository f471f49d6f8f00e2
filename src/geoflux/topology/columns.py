"""Which columns streams have, and whether operators find in them what they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from geoflux.config import Config
from geoflux.engine.intake import POSITION_ID, EventColumns
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_streams import stream_schema
from geoflux.engine.row_types import merged
from geoflux.engine.slot_windows import AGGREGATE_SCHEMA
from geoflux.operators.keyed import Operator
from geoflux.topology.nodes import Ingest, Node, Queries, Stream
from geoflux.topology.topology import Topology


@dataclass(frozen=True)
class Columns:
    """What an operator reads: the columns of all its inputs together, and the names of those that
    every one of them has."""

    schema: pa.Schema
    common: frozenset[str]

    @classmethod
    def of(cls, schemas: Sequence[pa.Schema]) -> Columns:
        """Of inputs with these columns."""
        names = [frozenset(schema.names) for schema in schemas]
        return cls(merged(schemas), frozenset.intersection(*names) if names else frozenset())


NOTHING = Columns.of(())


def written(node: Node, stream: str, config: Config, read: Columns) -> pa.Schema:
    """The columns of a stream of an operator that reads the columns ``read``."""
    if isinstance(node.work, Operator):
        return stream_schema(node.work)
    if isinstance(node.work, Ingest):
        return read.schema
    if stream == "aggregates":
        return pa.schema([field for field in AGGREGATE_SCHEMA if field.name != "epoch"])
    if stream == "counts":
        return pa.schema([("query_id", pa.string()), ("count", pa.int64())])
    config = with_ids(node, config, read)
    ids = EventColumns.of(config.source, config.space).id_type(read.schema)
    return pa.schema([("query_id", pa.string()), ("event_id", ids)])


def read_columns(
    topology: Topology, configs: Mapping[str, Config], outside: Mapping[str, pa.Schema]
) -> tuple[dict[str, Columns], list[str]]:
    """By operator the columns that it reads, given those that come from outside; and what is
    wrong with them."""
    read = {name: Columns.of([schema]) for name, schema in outside.items()}
    problems: list[str] = []
    waiting = [node for node in topology.nodes if node.name not in read]
    while waiting:
        # Matches have the ids that their queries read: those come first, as far as loops allow.
        ready = (n for n in waiting if all(_is_known(topology, s, read) for s in _in(topology, n)))
        node = next(ready, waiting[0])
        waiting.remove(node)
        streams = _in(topology, node)
        schemas = [
            written(
                topology.node(s.operator), s.name, configs[s.operator],
                read.get(s.operator, NOTHING),
            )
            for s in streams
        ]  # fmt: skip
        problems += _clashes(node.name, streams, schemas)
        read[node.name] = Columns.of(schemas)
    return read, problems + _lacking(topology, configs, read)


def _in(topology: Topology, node: Node) -> tuple[Stream, ...]:
    return topology.inputs(node.name)


def _is_known(topology: Topology, stream: Stream, read: Mapping[str, Columns]) -> bool:
    is_fixed = isinstance(topology.node(stream.operator).work, Operator)
    return is_fixed or stream.operator in read


def _clashes(name: str, streams: Sequence[Stream], schemas: Sequence[pa.Schema]) -> list[str]:
    """Columns of one name that cannot be one column."""
    seen: dict[str, tuple[Stream, pa.DataType]] = {}
    found = []
    for stream, schema in zip(streams, schemas, strict=True):
        for field in schema:
            other, kind = seen.setdefault(field.name, (stream, field.type))
            if not _alike(kind, field.type):
                found.append(
                    f"operator {name!r}: column {field.name!r} is {kind} in {other} and "
                    f"{field.type} in {stream}; give one of them another name or type"
                )
    return found


def _alike(one: pa.DataType, other: pa.DataType) -> bool:
    is_number = [pa.types.is_integer(t) or pa.types.is_floating(t) for t in (one, other)]
    is_time = [pa.types.is_timestamp(t) for t in (one, other)]
    return one == other or all(is_number) or all(is_time) or pa.null() in (one, other)


def needed(node: Node, config: Config) -> tuple[frozenset[str], frozenset[str]]:
    """The columns without which an operator refuses a row, and those that it reads besides."""
    source = config.source
    columns = EventColumns.of(source, config.space)
    if isinstance(node.work, Operator):
        all_of_them = KeyedIntake(node.work, source.id, source.time, source.time_unit).needed
        besides = frozenset(node.work.columns) - {node.work.key, source.id}
        if node.work.needs_time:
            besides -= {source.time}
        return all_of_them - besides, besides
    if isinstance(node.work, Queries):
        return columns.needed, frozenset()
    return frozenset({node.work.key or columns.id}) - {POSITION_ID}, frozenset()


def with_ids(node: Node, config: Config, columns: Columns) -> Config:
    """The settings with ids that the rows have: their positions where not all streams have a
    column of ids and none was asked for."""
    asked = "id" in node.settings.get("source", {})
    if node.is_outer or asked or config.source.id in columns.common:
        return config
    return replace(config, source=replace(config.source, id=POSITION_ID))


def _lacking(
    topology: Topology, configs: Mapping[str, Config], read: Mapping[str, Columns]
) -> list[str]:
    found = []
    unknown = {n.name for n in topology.nodes if n.is_outer and not len(read[n.name].schema)}
    for node in topology.nodes:
        columns = read[node.name]
        if any(stream.operator in unknown for stream in topology.inputs(node.name)):
            continue
        if not len(columns.schema) and node.is_outer:
            found.append(
                f"operator {node.name!r}: {configs[node.name].source.path} holds no rows yet, so "
                "that nobody knows the columns of its stream; put a file there, or wait for one "
                'with run.mode = "follow"'
            )
            continue
        config = with_ids(node, configs[node.name], columns)
        always, besides = needed(node, config)
        missing = (always - columns.common) | (besides - set(columns.schema.names))
        for name in sorted(missing):
            inputs = " or ".join(node.reading)
            every = "not every one of " if name in columns.schema.names else ""
            found.append(
                f"operator {node.name!r} needs the column {name!r}, which {every}{inputs} has"
                f"{'' if every else ' not'}; there are {', '.join(columns.schema.names)}"
            )
    return found
