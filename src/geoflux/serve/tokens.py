"""Who may ask: users, their tokens and roles, in a file that only its owner can read.

A token is shown once, when it is made. Kept is the SHA-256 of its secret: 256 bits of chance cannot
be guessed, so a slow hash would only slow the server down. The public part names the entry; the
secret part is compared in constant time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from geoflux.errors import ConfigError

Role = Literal["user", "operator"]
ROLES = ("user", "operator")
_PREFIX = "gfx"
_FORMAT = 1
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Token:
    """What is known of a token: whose it is and what it may do, not its secret."""

    id: str
    user: str
    role: Role
    hash: str
    created: float

    @property
    def is_operator(self) -> bool:
        """Whether it may see and do what concerns all users."""
        return self.role == "operator"


def checked_user(name: str) -> str:
    """A user's name; :class:`ConfigError` for one that cannot be told apart in an id.

    >>> checked_user("ann")
    'ann'
    >>> checked_user("a/b")
    Traceback (most recent call last):
    geoflux.errors.ConfigError: the user 'a/b' cannot have a token; expected 1 to 64 letters, \
digits, '.', '_' or '-', the first a letter or digit
    """
    if not _USER.fullmatch(name):
        raise ConfigError(
            f"the user {name[:80]!r} cannot have a token; expected 1 to 64 letters, digits, '.', "
            "'_' or '-', the first a letter or digit"
        )
    return name


class TokenFile:
    """The tokens in a file; changes of other processes are seen at the next look.

    >>> import tempfile
    >>> tokens = TokenFile(Path(tempfile.mkdtemp()) / "tokens.json")
    >>> secret = tokens.create("ann", "user")
    >>> tokens.find(secret).user, tokens.find(secret + "x")
    ('ann', None)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def create(self, user: str, role: Role) -> str:
        """A new token of a user; what is returned can never be had again."""
        [made] = self.create_all([user], role)
        return made

    def create_all(self, users: Iterable[str], role: Role) -> list[str]:
        """A new token for each of some users."""
        made = []
        with self._changing() as tokens:
            for user in users:
                secret, public = secrets.token_urlsafe(32), secrets.token_hex(4)
                while public in tokens:
                    public = secrets.token_hex(4)
                token = Token(public, checked_user(user), role, _hashed(secret), time.time())
                tokens[public] = token
                made.append(f"{_PREFIX}_{public}_{secret}")
        return made

    def revoke(self, public: str) -> Token:
        """Take a token back, by its id; who holds it is refused from now on."""
        with self._changing() as tokens:
            if public not in tokens:
                raise ConfigError(
                    f"there is no token {public!r} in {self.path}; geoflux token list says which "
                    "there are"
                )
            return tokens.pop(public)

    def listed(self) -> list[Token]:
        """All tokens, the oldest first."""
        return sorted(self._current().values(), key=lambda token: token.created)

    def find(self, given: str) -> Token | None:
        """The token that was given, if it is one; equally slow for every wrong secret."""
        prefix, _, rest = given.partition("_")
        public, _, secret = rest.partition("_")
        token = self._current().get(public) if prefix == _PREFIX else None
        good = hmac.compare_digest(_hashed(secret), token.hash if token else _hashed(""))
        return token if good and token is not None else None

    def known(self, public: str) -> Token | None:
        """The token with an id, while it is not revoked."""
        return self._current().get(public)

    def _current(self) -> dict[str, Token]:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            self._seen, self._tokens = None, {}
            return self._tokens
        seen = stat.st_ino, stat.st_mtime_ns, stat.st_size
        if seen != self._seen:
            self._tokens, self._seen = self._read(), seen
        return self._tokens

    def _read(self) -> dict[str, Token]:
        if self.path.stat().st_mode & 0o077:
            raise ConfigError(f"{self.path} can be read by others; chmod 600 it")
        try:
            noted = json.loads(self.path.read_bytes())
            assert noted["format"] == _FORMAT
            found = [Token(**values) for values in noted["tokens"]]
        except (ValueError, TypeError, KeyError, AssertionError):
            raise ConfigError(
                f"{self.path} holds no tokens that this version can read; restore it, or delete it "
                "and make new ones with geoflux token create"
            ) from None
        return {token.id: token for token in found}

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        """All tokens, to be changed and written back; one process at a time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(
            self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tokens = dict(self._read()) if self.path.exists() else {}
            yield tokens
            self._write(tokens)
        finally:
            os.close(lock)

    def _write(self, tokens: dict[str, Token]) -> None:
        noted = {"format": _FORMAT, "tokens": [asdict(token) for token in tokens.values()]}
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(noted, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
