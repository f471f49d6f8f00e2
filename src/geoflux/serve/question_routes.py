"""Questions that are asked once: of retained events, and of a sketch; and events that come in.

Answers are computed in threads, a few at a time; who comes when all are busy is told to wait.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request

from geoflux.engine.sketch_reader import OpenSketch, open_sketch
from geoflux.engine.snapshot_reader import Snapshots
from geoflux.serve.event_inbox import ARROW, NDJSON
from geoflux.serve.models import SketchQuery, Snapshot, TakenEvents
from geoflux.serve.parts import Parts
from geoflux.serve.problems import Problem
from geoflux.serve.tokens import Token


@dataclass
class Questions:
    """Answers questions about what a run has committed, so many at a time."""

    parts: Parts
    _busy: int = 0
    _readers: list[Snapshots] = field(default_factory=list)
    _sketch: OpenSketch | None = None

    async def snapshot(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer to a snapshot, with as many rows as are told."""
        return await self._answered(lambda: self._snapshot(asked))

    async def sketch(self, asked: Any) -> dict[str, Any]:
        """The answer of the sketch as of the newest epoch."""
        return await self._answered(lambda: self._ask_sketch(asked))

    async def _answered(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        with self._one_of_few():
            return await asyncio.to_thread(work)

    @contextmanager
    def _one_of_few(self) -> Iterator[None]:
        most = self.parts.settings.questions
        if self._busy >= most:
            raise Problem(
                503, f"{most} questions are being answered; ask again", "busy", {"Retry-After": "1"}
            )
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def _snapshot(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.parts.run.check_begun()
        reader = self._readers.pop() if self._readers else Snapshots(self.parts.run.directory)
        try:
            answer = reader.ask(asked)
        finally:
            self._readers.append(reader)
        most = self.parts.settings.answer_rows
        told = replace(answer, rows=answer.rows.slice(0, most)).as_dict()
        return {**told, "rows_left_out": max(0, len(answer.rows) - most)}

    def _ask_sketch(self, asked: Any) -> dict[str, Any]:
        self.parts.run.check_begun()
        if self._sketch is None or self._sketch.epoch != self.parts.follower.last:
            self._sketch = open_sketch(self.parts.run.directory)
        return {"epoch": self._sketch.epoch, **self._sketch.query(asked).to_dict()}


def question_router(parts: Parts) -> APIRouter:
    """The routes for questions and events."""
    router = APIRouter(prefix="/v1", tags=["questions and events"])
    Asking = Annotated[Token, Depends(parts.access.user)]
    questions = Questions(parts)

    @router.post("/snapshots")
    async def snapshot(asking: Asking, asked: Snapshot) -> dict[str, Any]:
        """Ask once about the events that the run retains, as of its newest epoch."""
        parts.follower.check_not_blocked(asking.user)
        return await questions.snapshot(asked.model_dump(by_alias=True, exclude_none=True))

    @router.post("/sketch/query")
    async def ask_sketch(asking: Asking, asked: SketchQuery) -> dict[str, Any]:
        """Ask the sketch, in SQL or as JSON; every number comes with its error."""
        if (asked.sql is None) == (asked.query is None):
            raise Problem(422, "expected sql or query, one of them", "bad_query")
        return await questions.sketch(asked.sql if asked.sql is not None else asked.query)

    @router.post(
        "/events", status_code=202, response_model=TakenEvents,
        openapi_extra={"requestBody": {"required": True, "content": {
            NDJSON[0]: {"schema": {"type": "string"}, "example": _EXAMPLE},
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        }}},
    )  # fmt: skip
    async def send_events(
        asking: Asking,
        request: Request,
        idempotency_key: Annotated[
            str | None, Header(max_length=200, description="Of the batch: sent again it is found.")
        ] = None,
    ) -> Any:
        """Send a batch of events, as NDJSON or as an Arrow IPC stream. All of it is on disk when
        this is answered; the run takes it in with its next epochs."""
        if parts.settings.ingest == "operator" and not asking.is_operator:
            raise Problem(
                403, "events come from operators here; use a token with that role", "role"
            )
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        return await parts.events.take(await request.body(), media, idempotency_key, asking.user)

    return router


_EXAMPLE = '{"id": 17, "lon": 2.3522, "lat": 48.8566, "time": "2025-06-15T15:06:40Z"}\n'
