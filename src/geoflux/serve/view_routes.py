"""What a page asks of a run, by HTTP: only looking, all of it for the operator's eyes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from geoflux.errors import StateError
from geoflux.serve.problems import plain_json
from geoflux.serve.view_epochs import EpochRows
from geoflux.serve.view_guard import guard_values
from geoflux.serve.view_heat import heat_view
from geoflux.serve.view_places import places_view
from geoflux.serve.view_plan import plan_view
from geoflux.serve.view_run import OperatorPlace, chosen, operators, run_view
from geoflux.serve.view_scaling import scaling_view

LOOK_SECONDS = 0.5
"""How often an open stream looks for new epochs."""
_QUIET_SECONDS = 15.0
"""After so long without an epoch a stream says that it is still there."""

Require = Callable[..., Any]
Still = Callable[[Request], bool]
Operator = Annotated[str | None, Query(max_length=200, description="Of an application: which.")]
_LARGEST = 1 << 53
Epoch = Annotated[
    int | None, Query(ge=0, le=_LARGEST, description="Which epoch; without it the newest.")
]
After = Annotated[int, Query(ge=-1, le=_LARGEST, description="Only epochs beyond this one.")]


def view_router(directory: str | Path, require: Require, still: Still) -> APIRouter:
    """The routes; ``require`` is a dependency that lets the operator through and nobody else,
    ``still`` says whether it would do so again."""
    router = APIRouter(prefix="/v1/view", dependencies=[Depends(require)], tags=["view"])
    rows: dict[str, EpochRows] = {}

    def epochs_of(name: str | None) -> EpochRows:
        place = chosen(directory, name)
        return rows.setdefault(place.name, EpochRows(place))

    @lru_cache(maxsize=64)
    def heat_of(place: OperatorPlace, epoch: int) -> dict[str, Any]:
        return heat_view(place, epoch)

    @router.get("/run")
    def run() -> dict[str, Any]:
        """What the directory holds."""
        return run_view(directory)

    @router.get("/epochs")
    def epochs(after: After = -1, operator: Operator = None) -> dict[str, Any]:
        """Rows of the epochs beyond one, in order."""
        return {"rows": epochs_of(operator).after(after)}

    @router.get("/plan")
    def plan(epoch: Epoch = None, operator: Operator = None) -> dict[str, Any]:
        """Who owns what in an epoch."""
        return plan_view(chosen(directory, operator), epoch)

    @router.get("/heat")
    def heat(epoch: Epoch = None, operator: Operator = None) -> dict[str, Any]:
        """Where the events of an epoch were."""
        place = chosen(directory, operator)
        number = place.log.last() if epoch is None else epoch
        if number is None or not place.log.is_committed(number):
            raise StateError(f"epoch {number} is not there; ask for one that was committed")
        return heat_of(place, number)

    @router.get("/places")
    def places() -> dict[str, Any]:
        """Populated places of the space."""
        config = chosen(directory).config
        if config is None or config.space.kind != "lonlat":
            return {"name": [], "lon": [], "lat": [], "population": []}
        west, south, east, north = (float(edge) for edge in config.space.bounds)
        return places_view((west, south, east, north))

    @router.get("/decisions")
    def decisions(
        upto: Epoch = None, most: Annotated[int, Query(ge=1, le=1000)] = 100,
        operator: Operator = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What was decided and why, newest first."""
        return {"decisions": epochs_of(operator).decisions(upto, most)}

    @router.get("/guard")
    def guard(operator: Operator = None) -> dict[str, Any]:
        """Who is blocked or suspected."""
        return guard_values(chosen(directory, operator))

    @router.get("/scaling")
    def scaling() -> dict[str, Any]:
        """What was measured and predicted about how long an input takes."""
        return scaling_view(directory)

    @router.get("/stream", response_class=StreamingResponse)
    async def stream(request: Request) -> StreamingResponse:
        """Server-sent events: one small message per committed epoch, from now on."""

        async def goes_on() -> bool:
            return still(request) and not await request.is_disconnected()

        return StreamingResponse(
            _messages(goes_on, [o.name for o in operators(directory)], epochs_of),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    return router


async def _messages(
    goes_on: Callable[[], Awaitable[bool]],
    names: list[str],
    epochs_of: Callable[[str | None], EpochRows],
) -> AsyncIterator[str]:
    """Epochs of all operators as they are committed; a comment where there are none for long."""
    last = {name: await asyncio.to_thread(_newest, epochs_of(name)) for name in names}
    yield f"event: hello\ndata: {plain_json(last)}\n\n"
    quiet = 0.0
    while await goes_on():
        told = 0
        for name in names:
            for row in await asyncio.to_thread(epochs_of(name).after, last[name]):
                last[name], told = row["epoch"], told + 1
                yield f"event: epoch\ndata: {plain_json({'operator': name, **row})}\n\n"
        quiet = 0.0 if told else quiet + LOOK_SECONDS
        if quiet >= _QUIET_SECONDS:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(LOOK_SECONDS)


def _newest(rows: EpochRows) -> int:
    known = rows.after(-1)
    return int(known[-1]["epoch"]) if known else -1
