"""What browsers are told to be careful about, and by which names the server may be called.

A page of another site could have its name point here (DNS rebinding); a request that calls the
server by a name that is not its own is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from geoflux.sections_serve import ServeConfig
from geoflux.serve.limits import ASGI, Message, Receive, Scope, Send
from geoflux.serve.problems import told

LOCAL = ("127.0.0.1", "localhost", "::1", "[::1]")
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'self'; img-src 'self' data: blob:; "
    b"style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'",
}


def allowed_hosts(settings: ServeConfig) -> frozenset[str]:
    """The names that requests may use; none: any.

    >>> sorted(allowed_hosts(ServeConfig(hosts=("map.example",))))[-1]
    'map.example'
    >>> allowed_hosts(ServeConfig(host="0.0.0.0"))
    frozenset()
    """
    if settings.hosts:
        return frozenset((*settings.hosts, *LOCAL))
    return frozenset(LOCAL) if is_local(settings.host) else frozenset()


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class HostCheck:
    """Refuses requests that call the server by another name."""

    app: ASGI
    hosts: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] == "http" and self.hosts:
            host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
            if name.lower() not in self.hosts:
                detail = "the server is not called by this name; name it in serve.hosts"
                await told(421, detail, "host")(scope, receive, send)
                return
        await self.app(scope, receive, send)


@dataclass(frozen=True)
class CarefulHeaders:
    """Adds headers that a route has not set itself."""

    app: ASGI

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                names = {name.lower() for name, _ in given}
                given += [(n, v) for n, v in _HEADERS.items() if n not in names]
                message["headers"] = given
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)
