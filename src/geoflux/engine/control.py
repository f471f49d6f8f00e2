"""Reading a range of control records, whatever form it comes in."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from geoflux.engine.record_rules import RecordRules
from geoflux.engine.records import Records, parse_lines, parse_table
from geoflux.operators.queries import no_queries


def read_records(parts: Iterable[pa.Table | list[bytes]], rules: RecordRules) -> Records:
    """All records of a range, in order."""
    found = [
        parse_lines([line for line in part if line.strip()], rules)
        if isinstance(part, list)
        else parse_table(part, rules)
        for part in parts
    ]
    if not found:
        return Records(np.empty(0, np.uint8), no_queries(), [])
    return Records(
        np.concatenate([records.op for records in found]),
        pa.concat_tables([records.rows for records in found]).combine_chunks(),
        [bad for records in found for bad in records.rejected],
        [query for records in found for query in records.snapshots],
    )
