"""Who asks: a token in the Authorization header, or a session that a browser got for one.

A browser's EventSource cannot send headers, so ``POST /v1/session`` exchanges a token for a cookie
that scripts cannot read and other sites cannot send. A request that changes something and comes
with the cookie must in addition say that it comes from this very origin. Tokens never travel in
addresses, where logs would keep them.

Whoever sends something is known before a byte of it is read (:class:`Door`).
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
from geoflux.serve.limits import ASGI, Buckets, Receive, Scope, Send
from geoflux.serve.problems import Problem, told
from geoflux.serve.tokens import Token, TokenFile

COOKIE = "geoflux_session"
SESSION_SECONDS = 12 * 3600
SESSION_PATH = "/v1/session"
_MOST_SESSIONS = 20
"""Of a token at once; a new one ends its oldest."""
_TOKEN = "geoflux.token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_LONGEST_TOKEN = 200
_log = logging.getLogger("geoflux.serve")


@dataclass
class Access:
    """Tokens, sessions and rates; its methods ``user`` and ``operator`` are dependencies."""

    tokens: TokenFile
    buckets: Buckets
    clock: Callable[[], float] = time.time
    _sessions: dict[str, OrderedDict[str, float]] = field(default_factory=dict)
    """By a token's id: the hashes of its sessions, and until when each counts."""

    async def user(self, request: Request) -> Token:
        """Whoever asks, with any role; refused where they are not known or ask too often."""
        known = request.scope.get(_TOKEN)
        return known if isinstance(known, Token) else self.enter(request)

    def enter(self, request: Request) -> Token:
        """The same, at the first look at a request."""
        token = self._asking(request)
        self.buckets.take(token.id)
        return token

    async def operator(self, request: Request) -> Token:
        """The same, of an operator."""
        token = await self.user(request)
        if not token.is_operator:
            raise Problem(403, "this is for operators; use a token with that role", "role")
        return token

    def still(self, request: Request) -> bool:
        """Whether whoever made a request would be let in now: neither is the token revoked nor the
        session over."""
        try:
            self._asking(request)
        except Problem as problem:
            return problem.status != 401
        return True

    def open_session(self, given: str) -> tuple[str, Token]:
        """A session for a token: its secret for the cookie, and whose it is."""
        token = self._found(given)
        self.buckets.take(token.id)
        secret = f"{token.id}.{secrets.token_urlsafe(32)}"
        mine = self._sessions.setdefault(token.id, OrderedDict())
        while len(mine) >= _MOST_SESSIONS:
            mine.popitem(last=False)
        mine[_hashed(secret)] = self.clock() + SESSION_SECONDS
        return secret, token

    def close_session(self, request: Request) -> None:
        """End the session of a request, if it has one."""
        secret = request.cookies.get(COOKIE, "")
        self._of(secret.partition(".")[0]).pop(_hashed(secret), None)

    def _asking(self, request: Request) -> Token:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and given:
            return self._found(given.strip())
        cookie = request.cookies.get(COOKIE)
        if cookie is None:
            raise _unknown("no token was given")
        public = cookie.partition(".")[0]
        until = self._of(public).get(_hashed(cookie), 0.0)
        token = self._known(public) if until > self.clock() else None
        if token is None:
            raise _unknown("the session is over")
        if request.method not in _SAFE and not comes_from_here(request):
            raise Problem(403, "the request does not come from this server's own pages", "origin")
        return token

    def _of(self, public: str) -> OrderedDict[str, float]:
        return self._sessions.get(public, OrderedDict())

    def _found(self, given: str) -> Token:
        with _readable():
            token = self.tokens.find(given) if len(given) <= _LONGEST_TOKEN else None
        if token is None:
            raise _unknown("the token is not known here, or was revoked")
        return token

    def _known(self, public: str) -> Token | None:
        with _readable():
            return self.tokens.known(public)


@dataclass(frozen=True)
class Door:
    """Lets only those send something who are known and do not ask too often.

    An ASGI application around another. The routes ask who it is as well, but by then the framework
    has read and parsed the body, whoever sent it.
    """

    app: ASGI
    access: Access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or say why not."""
        sends = scope["type"] == "http" and scope["method"] not in _SAFE
        if sends and scope["path"].startswith("/v1/") and scope["path"] != SESSION_PATH:
            try:
                scope[_TOKEN] = self.access.enter(Request(scope))
            except Problem as problem:
                answer = told(problem.status, problem.detail, problem.code, problem.headers)
                await answer(scope, receive, send)
                return
        await self.app(scope, receive, send)


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
