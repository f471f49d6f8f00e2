"""What bodies look like, for the OpenAPI document; what they mean is judged by the run's rules."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
_RECTANGLE: Any = {"type": "rectangle", "west": 2.2, "south": 48.8, "east": 2.5, "north": 48.95}
_CIRCLE: Any = {"type": "circle", "lon": 4.8594, "lat": 45.7606, "radius_m": 1500}
_POLYGON: Any = {
    "type": "Polygon",
    "coordinates": [[[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0], [0.0, 0.0]]],
}
_AGGREGATE: Any = {"functions": ["count"], "window": "5 minutes"}
Instant = str | int | float | None


class Asked(BaseModel):
    """A body: fields that are not known are refused, so that a slip of the pen is told."""

    model_config = ConfigDict(extra="forbid")


class NewSubscription(Asked):
    """A standing query: an area, and of the events in it those that are wanted."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"id": "station", "shape": _CIRCLE, "where": "speed < 10"},
                {"shape": _RECTANGLE, "valid_until": "2027-01-01T00:00:00Z"},
                {"id": "field", "shape": _POLYGON, "aggregate": _AGGREGATE},
            ]
        },
    )  # fmt: skip

    id: Annotated[
        str | None, Field(description="Your own name for it; made up if none.", pattern=ID)
    ] = None
    shape: Annotated[
        dict[str, Any],
        Field(description="A rectangle, a circle, or a GeoJSON Polygon or MultiPolygon."),
    ]
    where: Annotated[str | None, Field(description="A predicate over event columns.")] = None
    valid_from: Annotated[Instant, Field(description="ISO 8601, or seconds since 1970.")] = None
    valid_until: Annotated[Instant, Field(description="ISO 8601, or seconds since 1970.")] = None
    aggregate: Annotated[
        dict[str, Any] | None, Field(description="Functions over windows of the matches.")
    ] = None


class NewSubscriptions(Asked):
    """Several at once: all of them are placed, or none."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"subscriptions": [{"id": "station", "shape": _CIRCLE}]}]},
    )

    subscriptions: Annotated[list[NewSubscription], Field(min_length=1, max_length=10_000)]


class Subscription(BaseModel):
    """A subscription and how far it is: `placed` (durable, the next epoch takes it in), `live`,
    `ending`, `ended` or `refused`."""

    id: str
    state: str
    shape: dict[str, Any] | None = None
    where: str | None = None
    valid_from: Instant = None
    valid_until: Instant = None
    aggregate: dict[str, Any] | None = None
    reason: str | None = None


class SubscriptionList(BaseModel):
    """Some of a user's subscriptions, by id; `next` is the `after` of those that follow."""

    subscriptions: list[Subscription]
    next: str | None = None


class PlacedSubscriptions(BaseModel):
    """Which of a batch were created, and which were there already."""

    created: list[str]
    existing: list[str]


class TakenEvents(BaseModel):
    """How many events are on disk; `again`: this batch was there before."""

    accepted: int
    again: bool


class Snapshot(Asked):
    """A question about the events that the run retains."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"shape": _RECTANGLE, "where": "speed > 30"},
                {"nearest": {"lon": 2.35, "lat": 48.86, "k": 10}},
                {"aggregate": {"functions": ["count", "avg(speed)"]}},
            ]
        },
    )

    shape: dict[str, Any] | None = None
    where: str | None = None
    from_: Annotated[Instant, Field(alias="from")] = None
    to: Instant = None
    aggregate: dict[str, Any] | None = None
    nearest: dict[str, Any] | None = None


class SketchQuery(Asked):
    """A query to the sketch: `sql`, or the same as a JSON object in `query`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"sql": "SELECT mean(speed), count(*) GROUP BY geohash(3)"}]
        },
    )

    sql: Annotated[str | None, Field(max_length=100_000)] = None
    query: dict[str, Any] | None = None


class Session(Asked):
    """A token, to be exchanged for a cookie."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"token": "gfx_0123abcd_…"}]}
    )

    token: Annotated[str, Field(max_length=200)]


class Lift(Asked):
    """Whose block is to be lifted."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"user": "ann"}]})

    user: Annotated[str, Field(min_length=1, max_length=1000)]


class ProblemDetails(BaseModel):
    """What went wrong, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
