"""A run without Spark in a folder, that goes on epoch by epoch, and a server over it.

Events come from the folder that the server writes to; control records from the file that it
appends to. An epoch is run when a test says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from geoflux.bench.serve_engine import InlineRun
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.sections_serve import ServeConfig
from geoflux.serve.app import create_app
from geoflux.serve.tokens import TokenFile
from geoflux.state.store import Store

PARIS = {"type": "circle", "lon": 2.35, "lat": 48.86, "radius_m": 5000}
WORLD = {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90}


def event(number: int, lon: float = 2.35, lat: float = 48.86, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "lon": lon,
        "lat": lat,
        "time": 1_700_000_000 + number,
        "speed": 5.0,
        **more,
    }


class LiveRun:
    """A run in a folder; ``send`` puts events there, ``epoch`` takes in what is there."""

    def __init__(self, folder: Path, **sections: Any) -> None:
        self.folder, self.out = folder, folder / "out"
        self.out.mkdir(parents=True, exist_ok=True)
        (folder / "events").mkdir(exist_ok=True)
        self.sent = 0
        if not (folder / "events/first.ndjson").exists():
            (folder / "events/first.ndjson").write_text(json.dumps(event(0, 0.0, 0.0)) + "\n")
        given = {
            "space": {"grid": [20, 20]},
            "source": {"kind": "files", "path": str(folder / "events")},
            "control": {"path": str(folder / "control")},
            "engine": {"slots": 2}, "run": {"mode": "follow"}, **sections,
        }  # fmt: skip
        self.config = Config.from_dict(given)
        self.store = Store(str(self.out))
        self.start()

    def start(self) -> None:
        """Begin, or go on after a crash."""
        self.inline = InlineRun(self.config, self.out)
        self.engine = self.inline.engine

    def send(self, events: list[dict[str, Any]]) -> None:
        with open(self.folder / "events/first.ndjson", "a") as file:
            file.writelines(json.dumps(row) + "\n" for row in events)

    def epoch(self) -> Manifest:
        manifest = self.inline.step()
        assert manifest is not None
        return manifest


class Served:
    """A client of a server, and tokens of three users."""

    def __init__(self, run: LiveRun, client: TestClient, tokens: TokenFile) -> None:
        self.run, self.client, self.tokens = run, client, tokens
        self.ann, self.bob = (self._bearer(tokens.create(user, "user")) for user in ("ann", "bob"))
        self.ops = self._bearer(tokens.create("ops", "operator"))

    @staticmethod
    def _bearer(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    def epoch(self) -> Manifest:
        """Run an epoch, and wait until the server has heard of it."""
        manifest = self.run.epoch()
        follower = self.client.app.state.parts.follower  # type: ignore[attr-defined]

        async def heard() -> None:
            while follower.last < manifest["epoch"]:
                await follower.beyond(manifest["epoch"] - 1, 1.0)

        assert self.client.portal is not None
        self.client.portal.call(heard)
        return manifest


@contextmanager
def served(run: LiveRun, **settings: Any) -> Iterator[Served]:
    wanted = replace(ServeConfig(rate=10_000.0, burst=10_000), **settings)
    Config.from_dict({"serve": asdict(wanted)})
    app = create_app(run.out, wanted, run.config)
    tokens = TokenFile(run.out / "serve/tokens.json")
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield Served(run, client, tokens)


def messages(text: str) -> list[dict[str, Any]]:
    """The messages of a stream that carry data, with their ids."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in block.split("\n") if ": " in line and line[0] != ":"
        )
        if "data" in fields:
            found.append(
                {"id": fields["id"], "event": fields["event"], **json.loads(fields["data"])}
            )
    return found
