"""Who asks: a token in the Authorization header, or a session that a browser got for one.

A browser's EventSource cannot send headers, so ``POST /v1/session`` exchanges a token for a cookie
that scripts cannot read and other sites cannot send. A request that changes something and comes
with the cookie must in addition say that it comes from this very origin. Tokens never travel in
addresses, where logs would keep them.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fastapi import Request

from geoflux.errors import ConfigError
from geoflux.serve.limits import Buckets
from geoflux.serve.problems import Problem
from geoflux.serve.tokens import Token, TokenFile

COOKIE = "geoflux_session"
SESSION_SECONDS = 12 * 3600
_MOST_SESSIONS = 10_000
_SAFE = ("GET", "HEAD", "OPTIONS")
_LONGEST_TOKEN = 200
_log = logging.getLogger("geoflux.serve")


@dataclass
class Access:
    """Tokens, sessions and rates; its methods ``user`` and ``operator`` are dependencies."""

    tokens: TokenFile
    buckets: Buckets
    clock: Callable[[], float] = time.time
    _sessions: OrderedDict[str, tuple[str, float]] = field(default_factory=OrderedDict)

    async def user(self, request: Request) -> Token:
        """Whoever asks, with any role; refused where they are not known or ask too often."""
        token = self._asking(request)
        self.buckets.take(token.id)
        return token

    async def operator(self, request: Request) -> Token:
        """The same, of an operator."""
        token = await self.user(request)
        if not token.is_operator:
            raise Problem(403, "this is for operators; use a token with that role", "role")
        return token

    def still(self, token: Token) -> bool:
        """Whether a token has not been revoked since."""
        return self._known(token.id) is not None

    def open_session(self, given: str) -> tuple[str, Token]:
        """A session for a token: its secret for the cookie, and whose it is."""
        token = self._found(given)
        self.buckets.take(token.id)
        secret = secrets.token_urlsafe(32)
        while len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        self._sessions[_hashed(secret)] = token.id, self.clock() + SESSION_SECONDS
        return secret, token

    def close_session(self, request: Request) -> None:
        """End the session of a request, if it has one."""
        self._sessions.pop(_hashed(request.cookies.get(COOKIE, "")), None)

    def _asking(self, request: Request) -> Token:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and given:
            return self._found(given.strip())
        cookie = request.cookies.get(COOKIE)
        if cookie is None:
            raise _unknown("no token was given")
        public, until = self._sessions.get(_hashed(cookie), ("", 0.0))
        token = self._known(public) if until > self.clock() else None
        if token is None:
            raise _unknown("the session is over")
        if request.method not in _SAFE and not comes_from_here(request):
            raise Problem(403, "the request does not come from this server's own pages", "origin")
        return token

    def _found(self, given: str) -> Token:
        with _readable():
            token = self.tokens.find(given) if len(given) <= _LONGEST_TOKEN else None
        if token is None:
            raise _unknown("the token is not known here, or was revoked")
        return token

    def _known(self, public: str) -> Token | None:
        with _readable():
            return self.tokens.known(public)


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """What is wrong with the file of tokens is for the log, not for whoever asks."""
    try:
        yield
    except ConfigError as error:
        _log.error("%s", error)
        raise Problem(503, "tokens cannot be read; the server's log says why") from None


def comes_from_here(request: Request) -> bool:
    """Whether a browser says that a page of this server made the request."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


def _unknown(why: str) -> Problem:
    detail = f"{why}; send Authorization: Bearer TOKEN, which geoflux token create makes"
    return Problem(401, detail, "token", {"WWW-Authenticate": 'Bearer realm="geoflux"'})


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
