"""The application: all routes, behind limits, with headers that keep browsers careful.

    app = create_app(Path("out"), ServeConfig())

Nothing is fetched from elsewhere: the OpenAPI document is at ``/openapi.json``, without the pages
that would load scripts from another host.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse

from geoflux.config import Config
from geoflux.errors import GeofluxError
from geoflux.sections_serve import ServeConfig
from geoflux.serve.access import SESSION_PATH, Door
from geoflux.serve.headers import CarefulHeaders, HostCheck, allowed_hosts
from geoflux.serve.limits import BodyLimit
from geoflux.serve.metrics import Counting, HttpCounts, health, metrics
from geoflux.serve.models import ProblemDetails
from geoflux.serve.page import page_router
from geoflux.serve.parts import Parts
from geoflux.serve.problems import Json, install
from geoflux.serve.question_routes import question_router
from geoflux.serve.state_routes import session_router, state_router
from geoflux.serve.subscription_routes import subscription_router
from geoflux.serve.view_routes import view_router
from geoflux.settings import bytes_of

_SESSION_BYTES = 4096
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": ProblemDetails, "description": text}
    for code, text in {
        401: "No token, or one that is not known.", 403: "Not allowed.", 404: "Nothing of yours.",
        408: "The body does not come.",
        409: "The run cannot do this.", 413: "The body is too long.", 415: "Another media type.",
        422: "What was asked cannot be done; the detail says why.", 429: "Too often.",
        503: "Not now; ask again.",
    }.items()
}  # fmt: skip


def create_app(directory: Path, settings: ServeConfig, config: Config | None = None) -> FastAPI:
    """The API over a run's directory; ``config`` are the run's settings before it has begun.

    ``app.state.parts`` has what routes of others need: ``parts.access.operator`` is the dependency
    that lets operators through and nobody else.
    """
    parts = Parts.of(directory, settings, config)
    counts = HttpCounts()
    app = FastAPI(
        title="geoflux", version="1", docs_url=None, redoc_url=None, lifespan=_following,
        default_response_class=Json, responses=_PROBLEMS,
        description="Standing location queries over a stream: subscribe, and be told.",
    )  # fmt: skip
    app.state.parts = parts
    install(app)
    _observing(app, parts, counts)
    for router in (subscription_router, question_router, state_router, session_router):
        app.include_router(router(parts))
    app.include_router(view_router(directory, parts.access.operator, parts.access.still))
    app.include_router(page_router())
    app.add_middleware(
        BodyLimit, most=bytes_of(settings.body), less={SESSION_PATH: _SESSION_BYTES},
        patience_seconds=parts.tempo.patience_seconds,
    )  # fmt: skip
    app.add_middleware(Door, access=parts.access)
    app.add_middleware(CarefulHeaders)
    app.add_middleware(HostCheck, hosts=allowed_hosts(settings))
    app.add_middleware(Counting, counts=counts)
    return app


def _observing(app: FastAPI, parts: Parts, counts: HttpCounts) -> None:
    @app.get("/health", tags=["the run"])
    async def get_health() -> dict[str, Any]:
        """Whether the server lives, and how old the newest epoch is; without a token."""
        return health(parts)

    async def allowed(request: Request) -> None:
        if not parts.settings.open_metrics:
            await parts.access.operator(request)

    @app.get(
        "/metrics",
        tags=["the run"],
        response_class=PlainTextResponse,
        dependencies=[Depends(allowed)],
    )
    async def get_metrics() -> PlainTextResponse:
        """Figures for Prometheus."""
        return PlainTextResponse(metrics(parts, counts), media_type="text/plain; version=0.0.4")


@contextlib.asynccontextmanager
async def _following(app: FastAPI) -> AsyncIterator[None]:
    """What is on disk is known before the first request; what comes is followed."""
    follower = app.state.parts.follower
    with contextlib.suppress(GeofluxError, OSError):  # said, and tried again, below
        while await follower.look():
            pass
    task = asyncio.create_task(follower.follow())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
