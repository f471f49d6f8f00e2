"""Schemathesis over the OpenAPI document: whatever the document allows, and much that it does not,
is sent to a server; none of it may end in a server error."""

from __future__ import annotations

import importlib.util
from typing import Any

from geoflux.bench.serve_world import World
from geoflux.errors import EnvironmentProblem
from geoflux.serve.event_inbox import ARROW, NDJSON


def server_errors(at: World, examples: int) -> dict[str, int]:
    """How many requests were made, and how many of them failed the server."""
    if importlib.util.find_spec("schemathesis") is None:
        raise EnvironmentProblem(
            'this part needs the package schemathesis; install it with pip install "geoflux[dev]", '
            "or leave it out with --only subscribe,kills,outsiders"
        )
    import schemathesis
    from hypothesis import HealthCheck, given, settings

    @schemathesis.serializer(NDJSON[0], ARROW)
    def as_it_is(_: Any, value: Any) -> bytes:
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")

    headers = {"Authorization": f"Bearer {at.tokens(['thesis'], 'operator')['thesis']}"}
    base = f"http://127.0.0.1:{at.port}"
    schema: Any = schemathesis.openapi.from_url(f"{base}/openapi.json")
    for endless in ("/v1/matches", "/v1/view/stream"):
        schema = schema.exclude(path=endless, method="GET")
    found = {"schemathesis_requests": 0, "schemathesis_server_errors": 0}
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy())
        def check(case: Any) -> None:
            response = case.call(base_url=base, headers=headers)
            found["schemathesis_requests"] += 1
            found["schemathesis_server_errors"] += response.status_code >= 500

        check()
    return found
