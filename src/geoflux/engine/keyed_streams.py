"""Results of an operator by the stream that they go to.

Invariant: every row goes to exactly one stream, in the order in which it was given; a row that
names none is an error and never lost in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from geoflux.errors import OperatorError
from geoflux.operators.keyed import ROW, STREAM, Operator
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store


def split(
    streams: Sequence[str], table: pa.Table
) -> tuple[dict[str, pa.Table], npt.NDArray[np.int64] | None]:
    """The rows of each stream that has any, without the column that told them apart; and where
    there are several, the number of every row's.

    >>> rows = pa.table({"n": [1, 2, 3], "@stream": ["odd", "even", "odd"]})
    >>> parts, numbers = split(("odd", "even"), rows)
    >>> {name: part.column("n").to_pylist() for name, part in parts.items()}, numbers.tolist()
    ({'odd': [1, 3], 'even': [2]}, [0, 1, 0])
    """
    if len(streams) == 1:
        return ({streams[0]: table} if len(table) else {}), None
    column, rows = table.column(STREAM), table.drop_columns([STREAM])
    found = pc.index_in(column, pa.array(streams))
    if found.null_count:
        strange = pc.unique(column).to_pylist()
        named = sorted(repr(name) for name in strange if name not in streams)
        raise OperatorError(
            f"results name the stream {', '.join(named)} in {STREAM}; "
            f"expected {' or '.join(streams)}, as streams says"
        )
    numbers = found.to_numpy()
    places = {name: np.flatnonzero(numbers == place) for place, name in enumerate(streams)}
    return {name: rows.take(some) for name, some in places.items() if len(some)}, numbers


def stream_schema(operator: Operator[Any]) -> pa.Schema:
    """The columns that readers of an operator's streams see; those with ``@`` are for the
    engine."""
    return pa.schema([field for field in operator.output if not field.name.startswith("@")])


def check_streams(operator: Operator[Any]) -> None:
    """Raise :class:`OperatorError` where streams and columns do not go together."""
    name, streams = type(operator).__name__, operator.streams
    if not streams or len(set(streams)) < len(streams):
        raise OperatorError(
            f"{name}.streams = {streams!r}: expected one or several names, all different"
        )
    strange = [s for s in streams if not (s.isidentifier() and s.isascii())]
    if strange:
        raise OperatorError(
            f"{name}.streams: {strange[0]!r} is no name of a stream; use letters, digits and _"
        )
    column = operator.output.field(STREAM) if STREAM in operator.output.names else None
    if len(streams) > 1 and (column is None or not pa.types.is_string(column.type)):
        raise OperatorError(
            f"{name} has the streams {', '.join(streams)}; its output needs a text column "
            f"{STREAM} that says to which each row goes"
        )
    if len(streams) == 1 and column is not None:
        raise OperatorError(f"{name} has one stream; its output needs no column {STREAM}")


def committed_results(operator: Operator[Any], store: Store) -> Iterator[pa.Table]:
    """All results in a run's directory as the operator gave them, without ``@row``: those that a
    manifest names, stream by stream, and whatever else is there, which should be nothing."""
    strays = {f"results/{name}" for name in store.names("results")}
    for manifest in EpochLog(store).manifests():
        for stream, files in manifest["streams"].items():
            for name, _ in files:
                strays.discard(name)
                yield _as_given(operator, store, name, stream)
    for name in sorted(strays):
        yield _as_given(operator, store, name, "")


def _as_given(operator: Operator[Any], store: Store, name: str, stream: str) -> pa.Table:
    with store.open(name) as file:
        table = pq.read_table(file).drop_columns(["epoch"])
    if len(operator.streams) == 1:
        return table
    named = pa.array([stream] * len(table), pa.string())
    place = [name for name in operator.output.names if name != ROW].index(STREAM)
    return table.add_column(place, STREAM, named)
