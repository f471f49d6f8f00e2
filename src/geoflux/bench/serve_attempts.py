"""What somebody may try who has no business here: requests byte by byte, since a decent client
would mend the worst of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_PLACES = "/v1/subscriptions"
_SHAPE = {"type": "circle", "lon": 2.0, "lat": 48.0, "radius_m": 10}
_CROSSED = [[[0, 0], [1, 1], [0, 1], [1, 0], [0, 0]]]
_SHAPES: dict[str, Any] = {
    "a circle off the earth": {"type": "circle", "lon": 999, "lat": 0, "radius_m": 1},
    "a circle of no number": {"type": "circle", "lon": "1; drop", "lat": None, "radius_m": []},
    "a circle of infinity": {"type": "circle", "lon": 0, "lat": 0, "radius_m": float("inf")},
    "a ring that crosses itself": {"type": "Polygon", "coordinates": _CROSSED},
    "a ring of one point": {"type": "Polygon", "coordinates": [[[0, 0]]]},
    "coordinates that are none": {"type": "Polygon", "coordinates": {"0": "x"}},
    "a shape of another kind": {"type": "GeometryCollection", "geometries": []},
}
_PATHS = (
    "/../../etc/passwd", "/v1/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
    "/v1/subscriptions/..%2f..%2fserve%2ftokens.json", "/static/..%2f..%2ftokens.json", "/v1/%00",
)  # fmt: skip
_RAW = {
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",
    "two lengths": b"POST /v1/subscriptions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n"
    b"Content-Length: 9\r\nConnection: close\r\n\r\n{}GET /metrics",
    "a header without end": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
    + b"x" * 200_000 + b"\r\n\r\n",
}  # fmt: skip


@dataclass(frozen=True)
class Attempt:
    """What is tried: a name, and the bytes that are sent."""

    name: str
    sent: bytes


def request(method: str, path: str, headers: dict[str, str], body: Any = None) -> bytes:
    """A request, as it travels; a body that is no bytes is sent as JSON."""
    data = b"" if body is None else body if isinstance(body, bytes) else _json(body)
    given = {"Host": "127.0.0.1", "Connection": "close", **headers}
    if data and "Transfer-Encoding" not in given:
        given.setdefault("Content-Length", str(len(data)))
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + data


def bearing(token: str) -> dict[str, str]:
    """The headers of whoever has a token."""
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def attempts(mallory: str, most_bytes: int) -> Iterator[Attempt]:
    """All of them; ``mallory`` is the token of a user without any role."""
    for name, sent in _RAW.items():
        yield Attempt(name, sent)
    for name, (method, path, headers) in _asked(mallory).items():
        yield Attempt(name, request(method, path, headers))
    mine = bearing(mallory)
    for name, body in _placed(most_bytes).items():
        yield Attempt(name, request("POST", _PLACES, mine, body))
    place = {"id": "x", "shape": _SHAPE}
    yield Attempt("no token", request("POST", _PLACES, {"Content-Type": "application/json"}, place))
    lift = {"user": "mallory"}
    yield Attempt("a user lifts a block", request("POST", "/v1/blocks/lift", mine, lift))
    lines = {**mine, "Content-Type": "application/x-ndjson"}
    yield Attempt("a user sends events", request("POST", "/v1/events", lines, b"{}\n"))
    for length, name in (
        ("99999999999", "a body said to be huge"),
        ("-1", "a length that is none"),
    ):
        yield Attempt(name, request("POST", _PLACES, {**mine, "Content-Length": length}, b"{}"))
    chunk = b"%x\r\n" % 65536 + b"x" * 65536 + b"\r\n"
    chunks = chunk * (most_bytes // 65536 + 2) + b"0\r\n\r\n"
    unsaid = request("POST", _PLACES, {**mine, "Transfer-Encoding": "chunked"}, chunks)
    yield Attempt("a huge body whose length is not said", unsaid)


def _asked(mallory: str) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Requests without a body."""
    mine = bearing(mallory)
    public, secret = mallory.split("_", 2)[1:]
    found = {
        "a token of nobody": ("GET", "/v1/me", bearing("gfx_00000000_guess")),
        "a token without its end": ("GET", "/v1/me", bearing(f"gfx_{public}_{secret[:-1]}")),
        "a token in the address": ("GET", f"/v1/me?token={mallory}", {}),
        "a cookie that was made up": ("GET", "/v1/me", {"Cookie": "geoflux_session=guess"}),
        "another's subscription is read": ("GET", f"{_PLACES}/secret", mine),
        "another's subscription is ended": ("DELETE", f"{_PLACES}/secret", mine),
        "by its name in the run": ("DELETE", f"{_PLACES}/@alice%2Fsecret", mine),
        "a user reads the plan": ("GET", "/v1/plan", mine),
        "a user reads the metrics": ("GET", "/metrics", mine),
        "another method": ("TRACE", "/v1/me", mine),
        "another server's name": ("GET", "/v1/me", {**mine, "Host": "evil.example"}),
        "a place that no stream had": ("GET", "/v1/matches?from=999999999-1", mine),
        "a place that is none": ("GET", "/v1/matches", {**mine, "Last-Event-ID": "1 or 1=1"}),
    }
    return found | {f"the path {path}": ("GET", path, mine) for path in _PATHS}


def _placed(most_bytes: int) -> dict[str, Any]:
    """Bodies of subscriptions."""
    place = {"id": "x", "shape": _SHAPE}
    return {
        "a user claims to be another": {**place, "user": "alice"},
        "an id that leads elsewhere": {**place, "id": "../alice/secret"},
        "an id with a newline": {**place, "id": 'x\n{"op":"terminate"}'},
        "a body that is huge": b'{"id": "' + b"x" * most_bytes + b'"}',
        "brackets without end": b'{"shape":' + b"[" * 200_000,
        "no JSON": b"\xff\xfe{",
        "half a surrogate pair": {"shape": {**_SHAPE, "note": "\ud800"}},
        "a predicate without end": {"shape": _SHAPE, "where": " and ".join(["speed > 1"] * 5000)},
        "a predicate that is code": {"shape": _SHAPE, "where": "__import__('os').system('id')"},
        **{name: {"shape": shape} for name, shape in _SHAPES.items()},
    }


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()
