"""Where a run keeps its files: a directory, HDFS or S3, behind ``pyarrow.fs``.

Small files are written atomically (a reader sees the whole file or none); large immutable ones get
unique names and are memory-mapped where the file system is this machine's. With a seal, all that
the run keeps for itself is encrypted here and nowhere else; such a file is decrypted into memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from geoflux.errors import StateError
from geoflux.state.seal import MARK, Seal, SealedOutput

PRIVATE = ("state/", "epochs/", "plans/", "guard/")
"""Folders of what a run keeps for itself; the others hold what the user asked for."""


@dataclass(frozen=True)
class Store:
    """A directory on any file system, by path or URI; picklable, so that workers have it too.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.write_json("a/b.json", {"x": 1}); store.read_json("a/b.json")
    {'x': 1}
    """

    root: str
    seal: Seal | None = None

    @cached_property
    def _where(self) -> tuple[Any, str]:
        if "://" in self.root:
            filesystem, path = pafs.FileSystem.from_uri(self.root)
            return filesystem, path
        return pafs.LocalFileSystem(), str(Path(self.root).absolute())

    def __getstate__(self) -> dict[str, Any]:
        return {"root": self.root, "seal": self.seal}

    def is_sealed(self, name: str) -> bool:
        """Whether a file is encrypted here."""
        return self.seal is not None and name.startswith(PRIVATE)

    @property
    def is_local(self) -> bool:
        """Whether files are this machine's, so that they can be mapped and synced."""
        return isinstance(self._where[0], pafs.LocalFileSystem)

    def path(self, name: str) -> str:
        """The path of a file as the file system has it."""
        return f"{self._where[1]}/{name}"

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        kind: Any = self._where[0].get_file_info(self.path(name)).type
        return bool(kind != pafs.FileType.NotFound)

    def names(self, folder: str) -> list[str]:
        """The files directly in a folder, sorted; none where there is no such folder. What a crash
        left half written (its name starts with a dot) is no file."""
        selector = pafs.FileSelector(self.path(folder), allow_not_found=True)
        infos = self._where[0].get_file_info(selector)
        files = (i.base_name for i in infos if i.type == pafs.FileType.File)
        return sorted(name for name in files if not name.startswith("."))

    def make_folder(self, name: str) -> None:
        """Make sure that a folder is there."""
        self._where[0].create_dir(self.path(name), recursive=True)

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a whole file atomically, and durably where the file system lets us say so."""
        if self.seal is not None and self.is_sealed(name):
            data = self.seal.sealed(name, data)
        if self.is_local:
            target = Path(self.path(name))
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
            return
        with self._where[0].open_output_stream(self.path(name)) as stream:
            stream.write(data)

    def read_bytes(self, name: str) -> bytes:
        """A whole file."""
        try:
            with self._where[0].open_input_stream(self.path(name)) as stream:
                data = bytes(stream.read())
        except FileNotFoundError:
            raise self._missing(name) from None
        if self.seal is not None and self.is_sealed(name):
            return bytes(self.seal.unsealed(name, data, self.path(name)))
        self._check_plain(name, data[: len(MARK)])
        return data

    def write_json(self, name: str, value: Any) -> None:
        """A JSON file, atomically."""
        self.write_bytes(name, json.dumps(value, separators=(",", ":")).encode())

    def read_json(self, name: str) -> Any:
        """A JSON file."""
        try:
            return json.loads(self.read_bytes(name))
        except ValueError as error:
            raise StateError(
                f"{self.path(name)} is damaged ({error}); restore it or use a new directory"
            ) from None

    def move(self, old: str, new: str) -> None:
        """Rename a file; if it is at its new place already, that is fine."""
        try:
            self._where[0].move(self.path(old), self.path(new))
        except FileNotFoundError:
            if not self.exists(new):
                raise StateError(
                    f"{self.path(old)} is missing though it was committed; restore the directory"
                ) from None

    def delete(self, name: str) -> None:
        """Delete a file; if it is gone already, that is fine."""
        with contextlib.suppress(FileNotFoundError):
            self._where[0].delete_file(self.path(name))

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return int(self._where[0].get_file_info(self.path(name)).size or 0)

    @contextlib.contextmanager
    def output(self, name: str) -> Iterator[Any]:
        """A stream to write a new file to."""
        self.make_folder(str(Path(name).parent))
        with self._where[0].open_output_stream(self.path(name)) as stream:
            if self.seal is None or not self.is_sealed(name):
                yield stream
                return
            sealed = SealedOutput(self.seal, name, stream)
            yield sealed
            sealed.finish()

    def open(self, name: str) -> Any:
        """A file to read from: mapped where it is local, so that processes share its pages; one
        that is sealed is decrypted into memory."""
        try:
            if self.is_local:
                file = pa.memory_map(self.path(name))
            else:
                file = self._where[0].open_input_file(self.path(name))
        except FileNotFoundError:
            raise self._missing(name) from None
        if self.seal is not None and self.is_sealed(name):
            with file:
                return pa.BufferReader(
                    self.seal.unsealed(name, file.read_buffer(), self.path(name))
                )
        if name.startswith(PRIVATE):
            self._check_plain(name, file.read_at(min(len(MARK), file.size()), 0))
        return file

    def _check_plain(self, name: str, head: bytes) -> None:
        if head == MARK:
            raise StateError(
                f"{self.path(name)} is encrypted; name the file with its key in security.key_file "
                "or GEOFLUX_SECURITY_KEY_FILE"
            )

    def _missing(self, name: str) -> StateError:
        return StateError(f"{self.path(name)} is missing; restore it or use a new directory")
