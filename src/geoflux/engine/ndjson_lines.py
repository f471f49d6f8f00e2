"""Lines of a byte range of a file, so that any cut of the range gives each line exactly once.

A line belongs to the range in which its first byte lies. The ends of an entry of the file log end
a line as a newline does. No more than a block and one line of the longest legal length are held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from geoflux.errors import SourceError

BLOCK_BYTES = 1 << 22
BOM = b"\xef\xbb\xbf"
_SHOWN_BYTES = 1 << 12


@dataclass(frozen=True)
class Span:
    """The bytes ``[begin, end)`` of a file: one entry of the file log."""

    path: Path
    begin: int
    end: int


@dataclass(frozen=True)
class Block:
    """Whole lines, the first of which starts at byte ``offset`` of its file."""

    offset: int
    data: bytes


def line_blocks(
    span: Span, start: int, stop: int, max_line: int | None = None, size: int = BLOCK_BYTES
) -> Iterator[Block]:
    """The lines whose first byte is in ``[start, stop)`` of a span, in blocks of whole lines.

    A line that is longer than a block comes alone, and of one that is longer than ``max_line``
    only a beginning comes: enough to see that it is too long, and to show it.
    """
    with open(span.path, "rb", buffering=0) as file:
        at, last = span.begin + start, span.begin + stop
        if start > 0 and _read(file, span, at - 1, 1) != b"\n":
            at = _next_line(file, span, at)
        while at < last:
            data = _read(file, span, at, min(size, last - at))
            if at + len(data) < span.end:
                data = data[: data.rfind(b"\n") + 1]
            if data:
                yield Block(at, data)
                at += len(data)
                continue
            after = _next_line(file, span, at)
            length = after - at
            if max_line is not None:
                length = min(length, max(max_line, _SHOWN_BYTES) + len(BOM) + 1)
            yield Block(at, _read(file, span, at, length))
            at = after


def _next_line(file: IO[bytes], span: Span, at: int) -> int:
    """The offset after the first newline at or after ``at``, or the end of the span."""
    step = 1 << 12
    while at < span.end:
        data = _read(file, span, at, min(step, span.end - at))
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
        step = min(step * 4, BLOCK_BYTES)
    return span.end


def _read(file: IO[bytes], span: Span, at: int, length: int) -> bytes:
    file.seek(at)
    data = file.read(length)
    if len(data) < length:
        raise SourceError(
            f"{span.path} ends at byte {at + len(data)}, it had {span.end} bytes when it was "
            "logged; restore it and run again"
        )
    return data


def split_lines(block: Block, max_line: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Each line of a block without its newline, with its offset in the file; blank ones left out.

    A byte order mark at the start of a file is no part of its first line. A line longer than
    ``max_line`` never counts as blank: only its beginning may be here.
    """
    offset = block.offset
    for line in block.data.split(b"\n"):
        text = line.removeprefix(BOM) if offset == 0 else line
        if text.strip(b" \t\r") or (max_line is not None and len(text) > max_line):
            yield offset, text
        offset += len(line) + 1
