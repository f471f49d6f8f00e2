"""The dashboard's files: a page without a build step, and nothing fetched from elsewhere.

Every answer carries a policy that lets the browser load from this server alone and run no script
that stands in the page: a name that a user chose cannot become code.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

STATIC = Path(__file__).parent / "static"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml",
}  # fmt: skip
_FILES = {path.name: path for path in STATIC.iterdir() if path.suffix in _TYPES}
"""Known when the server starts; a request names one of these or gets nothing."""


def page_router() -> APIRouter:
    """The page at ``/`` and its parts under ``/static``; they hold nothing about any run."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def index() -> Response:
        return _file(_FILES["index.html"])

    @router.get("/static/{name}")
    def part(name: str) -> Response:
        path = _FILES.get(name)
        return Response(status_code=404) if path is None else _file(path)

    return router


def _file(path: Path) -> Response:
    return FileResponse(path, media_type=_TYPES[path.suffix], headers=HEADERS)
