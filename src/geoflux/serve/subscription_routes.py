"""Subscriptions over HTTP, and the matches of one's own as they come."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from geoflux.serve.match_stream import Listener, MatchStream, cursor_of
from geoflux.serve.models import (
    ID,
    NewSubscription,
    NewSubscriptions,
    PlacedSubscriptions,
    Subscription,
    SubscriptionList,
)
from geoflux.serve.parts import Parts
from geoflux.serve.problems import Json, Problem
from geoflux.serve.tokens import Token

Name = Annotated[str, Path(description="The id that you gave, or were given.", pattern=ID)]


def subscription_router(parts: Parts) -> APIRouter:
    """The routes under ``/v1/subscriptions`` and ``/v1/matches``."""
    router = APIRouter(prefix="/v1", tags=["subscriptions"])
    Asking = Annotated[Token, Depends(parts.access.user)]
    subscriptions = parts.subscriptions

    @router.post(
        "/subscriptions", status_code=201, response_model=Subscription,
        response_model_exclude_none=True,
        responses={200: {"model": Subscription, "description": "It was there already."}},
    )  # fmt: skip
    async def subscribe(asking: Asking, asked: NewSubscription) -> Any:
        """Place a subscription. It is on disk when this is answered; the run's next epoch takes it
        in. Placed again with the same id and content it is found, with another content refused."""
        wanted = asked.model_dump(exclude_none=True)
        [placed] = await subscriptions.place(asking.user, [wanted])
        told = subscriptions.just_placed(asking.user, placed.id, wanted)
        where = {"Location": f"/v1/subscriptions/{placed.id}"}
        return Json(told, 201 if placed.created else 200, where)

    @router.post("/subscriptions/batch", status_code=201, response_model=PlacedSubscriptions)
    async def subscribe_many(asking: Asking, asked: NewSubscriptions) -> Any:
        """Place many at once. All of them are accepted, or none; only a server that dies while it
        writes may leave a part. Sent again with the same ids, the batch is completed."""
        items = [item.model_dump() for item in asked.subscriptions]
        placed = await subscriptions.place(asking.user, items)
        return {
            "created": [item.id for item in placed if item.created],
            "existing": [item.id for item in placed if not item.created],
        }

    @router.get("/subscriptions", response_model=SubscriptionList, response_model_exclude_none=True)
    async def list_subscriptions(
        asking: Asking,
        after: Annotated[str | None, Query(description="Begin after this id.", pattern=ID)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Any:
        """Your subscriptions, by id."""
        await parts.follower.opened()
        found = await subscriptions.listed(asking.user, after, limit)
        return {"subscriptions": found, "next": found[-1]["id"] if len(found) == limit else None}

    @router.get(
        "/subscriptions/{name}", response_model=Subscription, response_model_exclude_none=True
    )
    async def read_subscription(asking: Asking, name: Name) -> Any:
        """One of your subscriptions; why it was refused, where it was."""
        await parts.follower.opened()
        return subscriptions.one(asking.user, name)

    @router.delete("/subscriptions/{name}", status_code=202)
    async def end_subscription(asking: Asking, name: Name) -> dict[str, str]:
        """End one. The termination is on disk when this is answered; matches of epochs that have
        begun may still come."""
        await subscriptions.end(asking.user, name)
        return {"id": name, "state": "ending"}

    @router.get(
        "/matches",
        response_class=Response,
        responses={200: {"content": {"text/event-stream": {"example": _EXAMPLE}}}},
    )
    async def matches(
        asking: Asking,
        request: Request,
        from_: Annotated[
            str | None,
            Query(alias="from", description="The id of the last message that you got, or start."),
        ] = None,
        subscription: Annotated[str | None, Query(description="Only this one.", pattern=ID)] = None,
        last_event_id: Annotated[str | None, Header(description="As from, and before it.")] = None,
    ) -> MatchStream:
        """Matches of your subscriptions as server-sent events, epoch by epoch as they count. Each
        message has an id; a stream that begins with it goes on after it, with none missing and none
        doubled."""
        given = last_event_id or from_
        cursor = None if given is None else cursor_of(given)
        if cursor is not None and cursor[0] > parts.follower.last + 1:
            raise Problem(
                422, f"the run has not come to epoch {cursor[0]} yet; expected an id that it sent",
                "bad_cursor",
            )  # fmt: skip
        listener = Listener(asking.user, subscription, lambda: parts.access.still(request))
        parts.seats.take(asking.user)
        source = parts.follower, parts.history
        leave = partial(parts.seats.leave, asking.user)
        return MatchStream(source, listener, cursor, parts.tempo, leave)

    return router


_EXAMPLE = (
    'event: matches\nid: 12-345\ndata: {"epoch":12,"matches":'
    '[{"row":345,"subscription":"station","event":17}]}\n\n'
)
