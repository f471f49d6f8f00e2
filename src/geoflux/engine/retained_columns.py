"""Which columns are retained beside place, time and id, and by which names they are asked about."""

from __future__ import annotations

import difflib
from dataclasses import replace

import pyarrow as pa

from geoflux.config import Config
from geoflux.engine.intake import POSITION_ID, EventColumns
from geoflux.engine.record_rules import RecordRules
from geoflux.errors import ConfigError
from geoflux.operators.selection import Naming, Own


def naming_of(config: Config, schema: pa.Schema) -> Naming:
    """What the settings say about events of a schema; :class:`ConfigError` for unknown columns.

    The user's columns of place, time and id are not stored twice where what the engine keeps of
    them says the same.
    """
    columns = EventColumns.of(config.source, config.space)
    wanted = config.retention.columns or tuple(schema.names)
    unknown = [name for name in wanted if name not in schema.names] if len(schema) else []
    if unknown:
        near = difflib.get_close_matches(unknown[0], schema.names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(schema.names)}"
        raise ConfigError(f"retention.columns: the events have no column {unknown[0]!r}; {hint}")
    own = _own(columns, schema)
    stored = tuple(name for name in dict.fromkeys(wanted) if name not in own)
    names = [name for name in schema.names if name in own or name in stored]
    visible = pa.schema([schema.field(name) for name in names])
    return Naming(stored, own, visible, columns.id_type(schema))


def snapshot_rules(rules: RecordRules, naming: Naming) -> RecordRules:
    """The rules by which snapshots are judged: they ask about what is retained."""
    return replace(rules, events=naming.schema)


def _own(columns: EventColumns, schema: pa.Schema) -> dict[str, Own]:
    """The user's columns whose values are just what the engine keeps."""
    own: dict[str, Own] = {}

    def kind(name: str) -> pa.DataType:
        return schema.field(name).type if name in schema.names else pa.null()

    if pa.types.is_float64(kind(columns.x)):
        own[columns.x] = "x"
    if pa.types.is_float64(kind(columns.y)):
        own[columns.y] = "y"
    time = kind(columns.time)
    if pa.types.is_timestamp(time) and time.unit == "us":
        own[columns.time] = "time"
    if columns.id != POSITION_ID and kind(columns.id) == columns.id_type(schema):
        own[columns.id] = "id"
    return own
