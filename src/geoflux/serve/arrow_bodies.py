"""What an Arrow stream says it will unfold to, before anything is unfolded.

A few bytes can claim a billion rows (a column of nulls has no buffers, nor has a list of them), or
gigabytes (a compressed buffer begins with the length that it will have; many rows may share one
value, which is written once for each). The claims are in the headers of the messages,
which are small FlatBuffers; read here by their layout (Message.fbs of the Arrow format), so that a
body is refused for what it claims and nothing is allocated for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

_CONTINUES = 0xFFFFFFFF
_DICTIONARY, _RECORDS = 2, 3
_VERSION, _HEADER_TYPE, _HEADER, _BODY_LENGTH = 0, 1, 2, 3
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3
_V5 = 4
_DATA = 1
_PLAIN = -1
"""The length that a buffer states which was not worth compressing."""


@dataclass(frozen=True)
class Claims:
    """What a stream would hold."""

    rows: int
    nbytes: int


def claims(body: bytes) -> Claims:
    """The rows and bytes that the messages of a stream claim; ``ValueError`` where their headers
    make no sense.

    >>> import pyarrow as pa
    >>> sink = pa.BufferOutputStream()
    >>> table = pa.table({"x": pa.nulls(1_000_000), "y": pa.nulls(1_000_000)})
    >>> with pa.ipc.new_stream(sink, table.schema) as writer:
    ...     writer.write_table(table)
    >>> len(sink.getvalue()) < 1000, claims(sink.getvalue().to_pybytes()).rows
    (True, 1000000)
    """
    try:
        found = [_message(header, content) for header, content in _messages(body)]
    except (struct.error, IndexError):
        raise ValueError("the headers of its messages are damaged") from None
    return Claims(sum(one.rows for one in found), sum(one.nbytes for one in found))


def check_types(schema: pa.Schema) -> None:
    """Refuse columns whose rows share values, which grow when they are written: ``ValueError``."""
    for field in schema:
        if _shares(field.type):
            raise ValueError(
                f"rows of the column {field.name[:80]!r} share values, as {field.type}"
            )


def _shares(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        value = kind.value_type
        return not (types.is_string(value) or types.is_large_string(value)
                    or types.is_primitive(value))  # fmt: skip
    views = types.is_list_view(kind) or types.is_large_list_view(kind)
    if views or types.is_run_end_encoded(kind):
        return True
    return any(_shares(kind.field(place).type) for place in range(kind.num_fields))


def _messages(body: bytes) -> Iterator[tuple[_Table, bytes]]:
    """The header of every message, and what follows it."""
    at = 0
    while at + 4 <= len(body):
        (length,) = struct.unpack_from("<I", body, at)
        at += 4
        if length == _CONTINUES:
            (length,) = struct.unpack_from("<I", body, at)
            at += 4
        if length == 0:
            return
        header = _Table.root(body[at : at + length])
        at += length
        content = header.number(_BODY_LENGTH, "<q")
        if not 0 <= content <= len(body) - at:
            raise ValueError("a message is longer than the body")
        yield header, body[at : at + content]
        at += content


def _message(header: _Table, content: bytes) -> Claims:
    kind = header.number(_HEADER_TYPE, "<B")
    batch = header.table(_HEADER)
    if kind == _DICTIONARY and batch is not None:
        batch = batch.table(_DATA)
    if kind not in (_DICTIONARY, _RECORDS) or batch is None:
        return Claims(0, 0)
    if header.number(_VERSION, "<h") < _V5:  # older ones compress without saying so here
        raise ValueError("it is of a format before Arrow 1.0")
    rows = batch.number(_LENGTH, "<q")
    lengths = [rows, *(length for length, _ in batch.pairs(_NODES))]
    if min(lengths) < 0:
        raise ValueError("a message has a negative number of rows")
    nbytes = sum(lengths[1:])  # at least a byte for each value, of nested columns too
    compressed = batch.table(_COMPRESSION) is not None
    for offset, length in batch.pairs(_BUFFERS):
        if not 0 <= offset <= offset + length <= len(content):
            raise ValueError("a buffer lies outside of its message")
        states = compressed and length
        stated = struct.unpack_from("<q", content, offset)[0] if states else _PLAIN
        nbytes += length if stated == _PLAIN else stated
        if stated < _PLAIN:
            raise ValueError("a buffer has a negative length")
    return Claims(rows if kind == _RECORDS else 0, nbytes)


@dataclass(frozen=True)
class _Table:
    """A table of a FlatBuffer: at ``at`` the distance back to its list of fields."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def place(self, field: int) -> int | None:
        """Where a field is, if it is there."""
        fields = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        if fields < 0:
            raise ValueError("a table lies outside of its message")
        (size,) = struct.unpack_from("<H", self.data, fields)
        if 4 + 2 * field >= size:
            return None
        (distance,) = struct.unpack_from("<H", self.data, fields + 4 + 2 * field)
        return self.at + distance if distance else None

    def number(self, field: int, form: str) -> int:
        place = self.place(field)
        return 0 if place is None else int(struct.unpack_from(form, self.data, place)[0])

    def table(self, field: int) -> _Table | None:
        place = self.place(field)
        return None if place is None else _Table(self.data, self._refers(place))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """The entries of a list of two long numbers each."""
        place = self.place(field)
        if place is None:
            return iter(())
        begin = self._refers(place)
        (count,) = struct.unpack_from("<I", self.data, begin)
        end = begin + 4 + 16 * count
        if end > len(self.data):
            raise ValueError("a list lies outside of its message")
        return struct.iter_unpack("<qq", self.data[begin + 4 : end])

    def _refers(self, place: int) -> int:
        return place + int(struct.unpack_from("<I", self.data, place)[0])
