"""A run and its server as processes of their own, in a folder, on free ports of this machine.

They are started, killed and started again by their process, never by name. All traffic is local.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from geoflux.serve.tokens import Role, TokenFile

WORLD = {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90}
_FREE = {"rate": 1e6, "burst": 1_000_000, "subscriptions": 1_000_000, "streams": 100_000}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class World:
    """A folder with events, control records and the directory of a run; its two processes."""

    folder: Path
    on_spark: bool = False
    serve: dict[str, Any] = field(default_factory=dict)
    retention: dict[str, Any] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    engine: subprocess.Popen[bytes] | None = None
    server: subprocess.Popen[bytes] | None = None
    _logs: list[IO[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "events").mkdir(parents=True)
        self.out.mkdir()
        first = {"id": 0, "lon": 0.0, "lat": 0.0, "time": 1_700_000_000, "speed": 1.0}
        (self.folder / "events/first.ndjson").write_text(json.dumps(first) + "\n")

    @property
    def out(self) -> Path:
        """The run's directory."""
        return self.folder / "out"

    @property
    def settings(self) -> dict[str, Any]:
        """The run's settings."""
        return {
            "space": {"grid": [64, 64]},
            "source": {"kind": "files", "path": str(self.folder / "events")},
            "control": {"path": str(self.folder / "control")},
            "engine": {"slots": 2, "idle": "1s"}, "run": {"mode": "follow"},
            "serve": {**_FREE, **self.serve}, "retention": self.retention,
        }  # fmt: skip

    def tokens(self, users: list[str], role: Role = "user") -> dict[str, str]:
        """A token for each of some users."""
        made = TokenFile(self.out / "serve/tokens.json").create_all(users, role)
        return dict(zip(users, made, strict=True))

    def start_engine(self) -> None:
        """Begin the run, or go on with it."""
        if self.on_spark:
            path = self.folder / "run.json.toml"
            path.write_text(_toml(self.settings))
            command = ["-m", "geoflux.cli", "run", str(path), "--out", str(self.out)]
            self.engine = self._started(command, "engine")
            return
        self.engine = self._started(
            ["-m", "geoflux.bench.serve_engine", str(self.out)], "engine", json.dumps(self.settings)
        )

    def start_server(self) -> None:
        """Serve the run."""
        flags = [f"--set=serve.{k}={v}" for k, v in self.settings["serve"].items()]
        command = ["-m", "geoflux.cli", "serve", str(self.out), "--port", str(self.port), *flags]
        self.server = self._started(command, "server")

    def kill(self, process: subprocess.Popen[bytes] | None) -> None:
        """SIGKILL, and all that it started; at whatever it is doing."""
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _started(self, command: list[str], name: str, given: str = "") -> subprocess.Popen[bytes]:
        log = open(self.folder / f"{name}.log", "ab")  # noqa: SIM115
        self._logs.append(log)
        process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(given.encode())
        process.stdin.close()
        return process

    def close(self) -> None:
        """End both."""
        for process in (self.server, self.engine):
            self.kill(process)
        for log in self._logs:
            log.close()


@contextlib.contextmanager
def world(folder: Path, **settings: Any) -> Iterator[World]:
    """A world whose processes end with it."""
    made = World(folder, **settings)
    try:
        yield made
    finally:
        made.close()


def _toml(settings: dict[str, Any]) -> str:
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"
