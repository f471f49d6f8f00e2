"""What goes wrong, told as RFC 9457 has it: one sentence, a status, a code where there is one.

A request never ends in a stack trace; what nobody expected is logged here and told as a 500
without details.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from geoflux.errors import ConfigError, GeofluxError, QueryError, RejectedRecord, StateError

_log = logging.getLogger("geoflux.serve")
_TITLES = {
    400: "Bad request", 401: "Not authenticated", 403: "Not allowed", 404: "Not found",
    405: "Method not allowed", 408: "Too slow", 409: "Conflict", 413: "Too large",
    415: "Unsupported media type", 421: "Misdirected request", 422: "Not acceptable",
    429: "Too many requests", 500: "Internal error", 503: "Not available now",
}  # fmt: skip


class Problem(GeofluxError):
    """A request that is refused: the status, one sentence, and a code that programs can go by."""

    def __init__(
        self, status: int, detail: str, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.code = status, detail, code
        self.headers = dict(headers or {})


class Json(JSONResponse):
    """JSON that every reader can read: no NaN, no half of a surrogate pair as bytes."""

    def render(self, content: Any) -> bytes:
        """The bytes."""
        return plain_json(content).encode()


def plain_json(content: Any) -> str:
    """JSON that every reader can read; what is no number is null.

    >>> plain_json({"mean": float("nan"), "rows": 0})
    '{"mean":null,"rows":0}'
    """
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":"), default=str)
    except ValueError:
        return json.dumps(_finite(content), allow_nan=False, separators=(",", ":"), default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def told(
    status: int, detail: str, code: str = "", headers: Mapping[str, str] | None = None
) -> Json:  # fmt: skip
    """A problem as a response."""
    content = {
        "type": f"urn:geoflux:problem:{code}" if code else "about:blank",
        "title": _TITLES.get(status, "Error"), "status": status, "detail": detail,
    }  # fmt: skip
    return Json(content, status, dict(headers or {}), media_type="application/problem+json")


def install(app: FastAPI) -> None:
    """Have an application tell its problems so."""

    @app.exception_handler(Problem)
    async def refused(_: Request, problem: Problem) -> Json:
        return told(problem.status, problem.detail, problem.code, problem.headers)

    @app.exception_handler(GeofluxError)
    async def ours(_: Request, error: GeofluxError) -> Json:
        problem = as_problem(error)
        return told(problem.status, problem.detail, problem.code)

    @app.exception_handler(OSError)
    async def system(request: Request, error: OSError) -> Json:
        _log.error("%s %s failed: %s", request.method, request.url.path, error)
        return told(503, "the run's files cannot be used at the moment; the server's log says why")

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Json:
        return told(422, _sentence(error), "invalid_request")

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Json:
        detail = {
            404: "there is nothing at this path; GET /openapi.json lists what there is",
            405: "this path does not take this method; GET /openapi.json lists what it takes",
        }.get(error.status_code, str(error.detail))
        return told(error.status_code, detail, headers=error.headers)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Json:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return told(500, "the server failed on this request; its log says why")


def as_problem(error: GeofluxError) -> Problem:
    """An error of ours, as whoever asked should see it."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RejectedRecord):
        return Problem(422, error.detail, error.code)
    if isinstance(error, QueryError):
        return Problem(422, str(error), "bad_query")
    if isinstance(error, ConfigError):
        return Problem(422, str(error), "bad_request")
    if isinstance(error, StateError):
        return Problem(409, str(error), "not_in_this_run")
    _log.error("a request failed: %s", error)
    return Problem(
        503, "the run cannot be read at the moment; try again, the server's log says why"
    )


def _sentence(error: RequestValidationError) -> str:
    """The first mistakes of a body, in one sentence."""
    found = []
    for item in error.errors()[:3]:
        where = ".".join(str(part) for part in item["loc"] if part != "body") or "the body"
        found.append(f"{where}: {item['msg'][0].lower()}{item['msg'][1:]}")
    return "; ".join(found)
