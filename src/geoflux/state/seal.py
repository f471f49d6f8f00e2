"""Sealed files: AES-256-GCM, in chunks, so that neither content nor order can be changed unnoticed.

A sealed file is a mark, 32 random bytes, and chunks of 1 MiB with their tags. From the run's key
and the random bytes comes a key for this one file: attempts at the same work, also two at a time,
never share one, and the nonce of a chunk can simply be its number. The file's name, the chunk's
number and whether it is the last one are authenticated with it.

Guarantee: what is read back is what was written under this name with this key, from the first byte
to the last; anything else is a :class:`StateError`. That an older file of the same name was put in
its place is not noticed; segments never have the same name twice.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from geoflux.errors import EnvironmentProblem, StateError

MARK = b"geoflux\x01"
"""What every sealed file begins with; the last byte is the version."""
CHUNK = 1 << 20
KEY_BYTES = 32
INSTALL = 'install it with pip install "geoflux[security]"'
_SALT, _TAG, _NONCE = 32, 16, 12
_HEAD = len(MARK) + _SALT


@dataclass(frozen=True)
class Seal:
    """The key of a run, which never shows in text; picklable, so that workers have it too.

    >>> seal = Seal.new(bytes(32))
    >>> seal.note() == Seal.noted(bytes(32), seal.note(), "out").note()
    True
    """

    key: bytes = field(repr=False)
    salt: bytes
    """What the run's key was made with; public, and in ``run.json``."""

    @classmethod
    def new(cls, master: bytes) -> Seal:
        """A key for a new run, from the one in the user's file."""
        salt = os.urandom(_SALT)
        return cls(_derived(master, salt, b"geoflux run"), salt)

    @classmethod
    def noted(cls, master: bytes, note: Mapping[str, str], out: str) -> Seal:
        """The key of a run that noted its seal; :class:`StateError` where ``master`` is another
        than it was encrypted with."""
        salt = bytes.fromhex(note["salt"])
        seal = cls(_derived(master, salt, b"geoflux run"), salt)
        if seal.note() != dict(note):
            raise StateError(
                f"{out} was encrypted with another key; name the file of the right one in "
                "security.key_file or GEOFLUX_SECURITY_KEY_FILE"
            )
        return seal

    def note(self) -> dict[str, str]:
        """What a run notes of its seal: enough to tell a wrong key, useless to guess the right."""
        check = _derived(self.key, self.salt, b"geoflux check")
        return {"salt": self.salt.hex(), "check": check[:16].hex()}

    def sealed(self, name: str, data: bytes) -> bytes:
        """A whole file."""
        sink = pa.BufferOutputStream()
        output = SealedOutput(self, name, sink)
        output.write(data)
        output.finish()
        return bytes(sink.getvalue())

    def unsealed(self, name: str, data: Any, path: str) -> pa.Buffer:
        """What was sealed under a name, in memory; ``path`` is for the message where it was not."""
        given = _bytes(data)
        if bytes(given[: len(MARK)]) != MARK:
            raise StateError(
                f"{path} is not encrypted, though its run is; restore it or use a new directory"
            )
        body = given[_HEAD:]
        chunks = max(-(-len(body) // (CHUNK + _TAG)), 1)
        if len(body) - (chunks - 1) * (CHUNK + _TAG) < _TAG:
            raise _changed(path)
        aes = self._cipher(bytes(given[len(MARK) : _HEAD]))
        from cryptography.exceptions import InvalidTag

        plain = pa.allocate_buffer(len(body) - chunks * _TAG)
        into = _bytes(plain)
        for number in range(chunks):
            first, last = number * (CHUNK + _TAG), number == chunks - 1
            piece = body[first : first + CHUNK + _TAG]
            room = into[number * CHUNK : number * CHUNK + len(piece) - _TAG]
            try:
                aes.decrypt_into(_nonce(number), piece, _about(name, number, last), room)
            except InvalidTag:
                raise _changed(path) from None
        return plain

    def _cipher(self, salt: bytes) -> Any:
        """The cipher of one file."""
        key = _derived(
            self.key, salt, b"geoflux file"
        )  # first: it says where the package is missing
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(key)


class SealedOutput:
    """A stream that seals what is written to it. Nothing but :meth:`finish` ends the file: one that
    broke off halfway cannot be taken for a whole one."""

    closed = False

    def __init__(self, seal: Seal, name: str, sink: Any) -> None:
        salt = os.urandom(_SALT)
        self._aes = seal._cipher(salt)
        self._name = name
        self._sink = sink
        self._number = self._written = 0
        self._held = bytearray()  # the last chunk is known by what comes after it: nothing
        self._room = bytearray(CHUNK + _TAG)
        sink.write(MARK + salt)

    def write(self, data: Any) -> int:
        """Take bytes; full chunks are sealed at once."""
        view = _bytes(data)
        size = len(view)
        self._written += size
        if self._held:
            more = min(CHUNK - len(self._held), size)
            self._held += view[:more]
            view = view[more:]
            if not view:
                return size
            self._seal(self._held, last=False)
            self._held = bytearray()
        while len(view) > CHUNK:
            self._seal(view[:CHUNK], last=False)
            view = view[CHUNK:]
        self._held += view
        return size

    def finish(self) -> None:
        """Seal the last chunk."""
        self._seal(self._held, last=True)

    def tell(self) -> int:
        """Bytes taken."""
        return self._written

    def flush(self) -> None:
        """Nothing leaves before its chunk is full."""

    def _seal(self, chunk: Any, last: bool) -> None:
        room = memoryview(self._room)[: len(chunk) + _TAG]
        about = _about(self._name, self._number, last)
        self._aes.encrypt_into(_nonce(self._number), chunk, about, room)
        self._sink.write(room)
        self._number += 1


def _bytes(data: Any) -> memoryview:
    """Unsigned bytes, whatever Arrow calls its own."""
    view = memoryview(data)
    return view.cast("B") if len(view) else memoryview(bytearray())


def _nonce(number: int) -> bytes:
    return number.to_bytes(_NONCE, "big")


def _about(name: str, number: int, last: bool) -> bytes:
    return name.encode() + struct.pack(">QB", number, last)


def _derived(key: bytes, salt: bytes, purpose: bytes) -> bytes:
    try:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise EnvironmentProblem(
            f"the run is encrypted, which needs the package cryptography; {INSTALL}"
        ) from None
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=purpose).derive(key)


def _changed(path: str) -> StateError:
    return StateError(
        f"{path} is not as it was written (changed, cut short, or from elsewhere); restore it or "
        "use a new directory"
    )
