"""How the run is doing, for operators: plan, slots, rounds, decisions in words, Guard's blocks."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from geoflux.chronicle.decision_words import (
    changes_of,
    reason_of,
    told_change,
    told_round,
)
from geoflux.chronicle.plan_view import PlanView
from geoflux.engine.guard_orders import Order
from geoflux.engine.guard_reader import give_order, guard_view
from geoflux.serve.epoch_facts import Manifest, facts_of
from geoflux.serve.models import Lift, Session
from geoflux.serve.parts import Parts
from geoflux.serve.problems import Json, Problem
from geoflux.serve.tokens import Token

_MOST_READ = 600
"""Epochs that one request looks back at."""
Limit = Annotated[int, Query(ge=1, le=500)]
Before = Annotated[int | None, Query(ge=0, le=1 << 53, description="Only epochs before this one.")]


def state_router(parts: Parts) -> APIRouter:
    """The routes that look at the whole run."""
    router = APIRouter(prefix="/v1", tags=["the run"])
    Operating = Annotated[Token, Depends(parts.access.operator)]
    run, follower = parts.run, parts.follower

    @router.get("/plan")
    async def plan(
        _: Operating, epoch: Annotated[int | None, Query(ge=0, le=1 << 53)] = None
    ) -> Any:
        """Who owns which part of the space in an epoch (of the next one, if none is named), and
        what it cost."""
        if run.operator:
            raise Problem(
                409, f"this run is of the operator {run.operator}; keys have no map", "no_map"
            )
        return await asyncio.to_thread(lambda: PlanView.of(run.directory, epoch).as_dict())

    @router.get("/slots")
    async def slots(_: Operating) -> Any:
        """What every slot did in the newest epoch."""
        newest = _newest(parts)
        return {
            "epoch": newest["epoch"],
            "committed": newest["committed"],
            "slots": newest["slots"],
        }

    @router.get("/rounds")
    async def rounds(_: Operating, limit: Limit = 50, before: Before = None) -> Any:
        """Rounds of the balancer, the newest first."""
        found = await _looked_back(parts, before, lambda m: bool(m.get("round")), limit)
        return {"rounds": [_round(m) for m in found]}

    @router.get("/decisions")
    async def decisions(_: Operating, limit: Limit = 50, before: Before = None) -> Any:
        """What was decided and why, the newest first."""
        found = await _looked_back(parts, before, _decides, limit)
        return {"decisions": [_decision(m) for m in found]}

    @router.get("/blocks")
    async def blocks(_: Operating) -> Any:
        """Whom Guard refuses, since when and on what evidence; and orders that wait."""
        run.check_begun()
        view = await asyncio.to_thread(guard_view, run.directory)
        listed = [{**block.to_dict(), "words": str(block)} for block in view.blocks.listed()]
        return {**view.as_dict(), "blocks": listed}

    @router.post("/blocks/lift", status_code=202)
    async def lift(_: Operating, asked: Lift) -> Any:
        """Let a blocked user in again from the next epoch on. The order is on disk when this is
        answered."""
        run.check_begun()
        view = await asyncio.to_thread(guard_view, run.directory)
        waits = any(order.op == "block" and order.user == asked.user for order in view.waiting)
        if asked.user not in view.blocks.entries and not waits:
            raise Problem(404, f"{asked.user[:80]!r} is not blocked", "not_blocked")
        await asyncio.to_thread(give_order, run.directory, Order("lift", asked.user))
        return {"user": asked.user, "op": "lift", "state": "waiting for the next epoch"}

    @router.get("/me", tags=["users"])
    async def me(asking: Annotated[Token, Depends(parts.access.user)]) -> Any:
        """Whose token this is, and what it may have."""
        most, has = parts.settings.subscriptions, len(follower.registry.of(asking.user))
        return {
            "user": asking.user,
            "role": asking.role,
            "subscriptions": {"most": most, "has": has},
        }

    return router


def session_router(parts: Parts) -> APIRouter:
    """The routes that exchange a token for a cookie, and give it back."""
    from fastapi import Request

    from geoflux.serve.access import COOKIE, SESSION_SECONDS

    router = APIRouter(prefix="/v1", tags=["users"])

    async def open_session(asked: Session, request: Request) -> Json:
        """Exchange a token for a cookie, for browsers."""
        secret, token = parts.access.open_session(asked.token)
        answer = Json({"user": token.user, "role": token.role})
        answer.set_cookie(
            COOKIE, secret, max_age=SESSION_SECONDS, httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return answer

    async def close_session(request: Request) -> Response:
        """Give the cookie back."""
        parts.access.close_session(request)
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    router.add_api_route("/session", open_session, methods=["POST"], response_model=None)
    router.add_api_route(
        "/session", close_session, methods=["DELETE"], status_code=204, response_model=None
    )
    return router


def _newest(parts: Parts) -> Manifest:
    parts.run.check_begun()
    if not parts.follower.recent:
        raise Problem(
            503, "the run has committed no epoch yet; ask again", "no_epoch", {"Retry-After": "1"}
        )
    return parts.follower.recent[-1]


async def _looked_back(parts: Parts, before: int | None, wanted: Any, limit: int) -> list[Manifest]:
    """The newest epochs before one of which something is true; what is not remembered is read."""
    parts.run.check_begun()
    known = {m["epoch"]: m for m in parts.follower.recent}
    first = parts.follower.last if before is None else min(before - 1, parts.follower.last)
    found: list[Manifest] = []
    for epoch in range(first, max(first - _MOST_READ, -1), -1):
        m = known.get(epoch)
        if m is None:
            m = facts_of(await asyncio.to_thread(parts.run.log.manifest, epoch))
        if wanted(m):
            found.append(m)
            if len(found) == limit:
                break
    return found


def _decides(m: Manifest) -> bool:
    return bool(changes_of(m) or m.get("round"))


def _round(m: Manifest) -> dict[str, Any]:
    closed = m["round"]
    return {
        "epoch": m["epoch"], "committed": m["committed"], "words": told_round(closed), **closed,
    }  # fmt: skip


def _decision(m: Manifest) -> dict[str, Any]:
    changes = changes_of(m)
    closed = m.get("round")
    return {
        "epoch": m["epoch"], "committed": m["committed"], "reason": reason_of(m),
        "changes": [{**change, "words": told_change(change)} for change in changes],
        "round": {**closed, "words": told_round(closed)} if closed else None,
        "plan": m.get("plan"), "next_plan": m.get("next_plan"),
    }  # fmt: skip
