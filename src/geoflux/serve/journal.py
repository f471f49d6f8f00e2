"""An NDJSON file that is only ever appended to, durably, for many at once.

What waits is written together and synced once (group commit): an answer is given when its lines
are on disk, whoever is killed afterwards. A crash in the middle of a write leaves a line without an
end; the next write puts a newline first, so that nothing is glued to it. Others may append to the
file as well: whatever is found is handed to ``on_lines`` in the order of the file, own lines too.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from geoflux.errors import SourceError

OnLine = Callable[[int, bytes], None]
"""Gets the offset of a line, and the line without its newline."""
_BLOCK = 1 << 22


@dataclass
class Journal:
    """The file at ``path``; one process at a time appends with it.

    >>> import tempfile
    >>> seen = []
    >>> journal = Journal(Path(tempfile.mkdtemp()) / "a.ndjson", lambda at, line: seen.append(line))
    >>> asyncio.run(journal.append(b"{}\\n"))
    >>> seen
    [b'{}']
    """

    path: Path
    on_line: OnLine
    end: int = 0
    """Up to here lines were handed over."""
    _waiting: list[tuple[bytes, asyncio.Future[None]]] = field(default_factory=list)
    _writing: asyncio.Task[None] | None = None

    async def append(self, lines: bytes) -> None:
        """Whole lines; they are on disk when this returns."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((lines, done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        await asyncio.shield(done)

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                before = await asyncio.to_thread(
                    append_durably, self.path, b"".join(d for d, _ in batch)
                )
                if before == self.end:  # nobody else wrote meanwhile
                    self._hand_over(self.end, b"".join(data for data, _ in batch))
                else:
                    self.catch_up()
            except OSError as error:
                problem = SourceError(f"{self.path} cannot be written: {error.strerror}")
                _fail(batch, problem)
                continue
            except BaseException as error:  # whoever waits must not wait for ever
                _fail(batch, error)
                raise
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    def catch_up(self) -> None:
        """Hand over the lines that are in the file and were not seen."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            file.seek(self.end)
            while data := file.read(_BLOCK):
                while not data.endswith(b"\n") and (more := file.read(_BLOCK)):
                    data += more
                self._hand_over(self.end, data[: data.rfind(b"\n") + 1])
                if not data.endswith(b"\n"):
                    return

    def _hand_over(self, offset: int, data: bytes) -> None:
        for line in data.split(b"\n")[:-1]:
            self.end = offset + len(line) + 1
            self.on_line(offset, line)
            offset = self.end

    def line(self, offset: int, length: int) -> bytes:
        """A line that was handed over."""
        with open(self.path, "rb") as file:
            return os.pread(file.fileno(), length, offset)


def _fail(batch: list[tuple[bytes, asyncio.Future[None]]], error: BaseException) -> None:
    for _, done in batch:
        if not done.done():
            done.set_exception(error)


def append_durably(path: Path, data: bytes) -> int:
    """Append to a file and sync it, and its folder where it is new; returns where it began."""
    created = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        end = os.fstat(descriptor).st_size
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            data = b"\n" + data
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    if created:
        sync_folder(path.parent)
    return end


def write_durably(path: Path, data: bytes) -> bool:
    """A whole new file, atomically, on disk when this returns; whether it is this one, and not
    another's that was there first and stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
