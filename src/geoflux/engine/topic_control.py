"""Control records from a topic: in the run's directory before anybody acts on them.

What is new in the topic is written as one file of lines, atomically, named by the offsets that it
stands for; the next look goes on where the last name ends. From there on the records are those of a
folder like any other, whose log fixes their order, and the topic is not needed to read them again:
neither after a crash, nor to verify the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from geoflux.engine.control_files import ControlFiles
from geoflux.engine.ndjson_rows import record
from geoflux.state.store import Store

FOLDER = "control.kafka"
"""Where the records of the topic are kept."""

Fetched = tuple[int, Sequence[bytes | None]]
"""The offset to go on at, and the values up to there."""


@dataclass(eq=False)
class TopicControl:
    """The records of a topic, ``fetch(offset)`` of which gives what is there from an offset on;
    ``None`` asks from the topic's beginning.

    >>> import tempfile; from pathlib import Path
    >>> store = Store(tempfile.mkdtemp())
    >>> files = ControlFiles(Path(store.path(FOLDER)), Path(store.path("control.log")), True)
    >>> topic = [b'{"op": "register"}', None]
    >>> control = TopicControl(files, store, lambda at: (len(topic), topic[at or 0 :]))
    >>> control.poll({})
    {'position': 24}
    >>> control.poll({"position": 24}), store.names(FOLDER)
    ({'position': 24}, ['000000000000000002.ndjson'])
    """

    files: ControlFiles
    store: Store
    fetch: Callable[[int | None], Fetched]

    def poll(self, after: dict[str, Any]) -> dict[str, Any]:
        """The offset of all that is there now, once it is here too."""
        names = self.store.names(FOLDER)
        upto, values = self.fetch(int(names[-1].split(".")[0]) if names else None)
        if values:
            lines = b"".join(as_line(value) + b"\n" for value in values)
            self.store.write_bytes(f"{FOLDER}/{upto:018d}.ndjson", lines)
        return self.files.poll(after)

    def read(self, after: dict[str, Any], upto: dict[str, Any]) -> Iterator[pa.Table | list[bytes]]:
        """The records between two offsets."""
        return self.files.read(after, upto)


def as_line(value: bytes | None) -> bytes:
    r"""A value on one line, so that none is lost: what cannot be one as it is becomes a JSON text,
    which is refused like any record that is no object.

    >>> as_line(b'{"op":\n1}'), as_line(b"{\n"), as_line(None)
    (b'{"op": 1}', b'"{\\n"', b'null')
    """
    if value is None:
        return b"null"
    if value.strip() and b"\n" not in value:
        return value
    try:
        record(value)
    except ValueError:
        return json.dumps(value.decode(errors="replace")).encode()
    return value.replace(b"\n", b" ")
