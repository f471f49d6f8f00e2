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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from geoflux.errors import SourceError

T = TypeVar("T")
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
    _handing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _disk: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "journal"))
    """A thread of its own: nobody's answer waits behind somebody's long question."""

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
                lines = b"".join(data for data, _ in batch)
                before = await self._on_disk(append_durably, self.path, lines, self.end)
                async with self._handing:
                    if before == self.end:  # nobody else wrote meanwhile
                        self._hand_over(self.end, lines)
                    else:
                        await self._catch_up()
            except OSError as error:
                problem = SourceError(f"{self.path} cannot be written: {error.strerror}")
                _fail(batch, problem)
                continue
            except SourceError as error:
                _fail(batch, error)
                continue
            except BaseException as error:  # whoever waits must not wait for ever
                _fail(batch, error)
                raise
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    async def catch_up(self) -> None:
        """Hand over the lines that are in the file and were not seen."""
        async with self._handing:
            await self._catch_up()

    async def _catch_up(self) -> None:
        while data := await self._on_disk(whole_lines, self.path, self.end):
            self._hand_over(self.end, data)

    async def _on_disk(self, work: Callable[..., T], *values: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work, *values)

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


def whole_lines(path: Path, offset: int) -> bytes:
    """Some of the whole lines of a file from a place on; none where there are no more."""
    if not path.exists():
        return b""
    with open(path, "rb") as file:
        file.seek(offset)
        data = file.read(_BLOCK)
        while b"\n" not in data and (more := file.read(_BLOCK)):
            data += more
    return data[: data.rfind(b"\n") + 1]


def append_durably(path: Path, data: bytes, known: int = 0) -> int:
    """Append to a file and sync it, and its folder where it is new; returns where it began.

    A file that has become shorter than what is ``known`` of it is not appended to: whoever reads it
    by places would skip what is written."""
    created = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        end = os.fstat(descriptor).st_size
        if end < known:
            raise SourceError(
                f"{path} was cut to {end:,} bytes, of which {known:,} were read; put back what was "
                "there, and start the server again"
            )
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
