"""The server as a process: one per run's directory, by itself or as a child of the run.

``geoflux run --serve`` starts it as a child process, not as a thread: the driver's thread that
waits for Spark and a server with a thousand streams would hold each other up (one interpreter
lock), and one that falls over must not take the other with it. The child has a session of its own,
so that an interrupt from the keyboard, which lets the run finish its epoch, does not end it first;
it ends when the run ends, and when its parent is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib.util
import multiprocessing
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from geoflux.config import Config
from geoflux.errors import ConfigError, EnvironmentProblem
from geoflux.sections_serve import ServeConfig
from geoflux.serve.served_run import NAME, ServedRun
from geoflux.serve.view_run import queries_directory
from geoflux.settings import seconds

_BACKLOG = 2048
_MOST_CONNECTIONS, _OWN_FILES = 20_000, 512
_PARENT_SECONDS = 1.0


def check_installed() -> None:
    """Say what to install, where the packages are missing."""
    for package in ("fastapi", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise EnvironmentProblem(
                f"the HTTP API needs the package {package}; install it with "
                'pip install "geoflux[serve]"'
            )


def listening(settings: ServeConfig) -> socket.socket:
    """A socket at the address of the settings; :class:`ConfigError` where it is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host.strip("[]"), settings.port))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        raise ConfigError(
            f"{settings.host}:{settings.port} cannot be listened on: {error.strerror}; choose "
            "another --port, or 0 for one that is free"
        ) from None
    return found


def address(listener: socket.socket) -> str:
    """Where a server can be reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Be the only server of a directory: two would not know of each other's subscriptions."""
    folder = directory / NAME
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{directory} is served already; one server serves one run, stop the other first"
            ) from None
        yield
    finally:
        os.close(descriptor)


def serve(
    directory: Path, settings: ServeConfig, listener: socket.socket, config: Config | None = None
) -> None:  # fmt: skip
    """Serve a run's directory until the process is told to end."""
    import uvicorn

    from geoflux.serve.app import create_app

    most = _allow_many_streams()
    run = ServedRun(queries_directory(directory))
    if run.is_there:
        assert run.store  # says so where it cannot be served
    with contextlib.ExitStack() as locks:
        for place in {directory.resolve(), run.directory.resolve()}:
            locks.enter_context(alone(place))
        options: dict[str, Any] = {
            "log_level": "warning", "access_log": False, "server_header": False, "lifespan": "on",
            "timeout_graceful_shutdown": 1, "timeout_keep_alive": 30, "ws": "none",
            "http": _patient(seconds(settings.patience)), "limit_concurrency": most,
        }  # fmt: skip
        app = create_app(directory, settings, config)
        server = uvicorn.Server(uvicorn.Config(app, **options))
        server.run(sockets=[listener])


def _patient(longest: float) -> Any:
    """The protocol that takes no headers without end, waits so long for a whole one, and so long
    for somebody who takes nothing of what is sent."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        _heading: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._await_request()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._await_request()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            for timer in (self._heading, self._stuck):
                if timer is not None:
                    timer.cancel()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stuck = self.loop.call_later(longest, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._stuck is not None:
                self._stuck.cancel()
                self._stuck = None

        def _await_request(self) -> None:
            """Between two requests: the next one has so long to come, from its first byte on."""
            request: Any = self.cycle  # there is none before the first
            if request is not None and not request.response_complete:
                if self._heading is not None:
                    self._heading.cancel()
                    self._heading = None
            elif self._heading is None:
                self._heading = self.loop.call_later(longest, self.transport.abort)

    return Patient


@contextlib.contextmanager
def beside(directory: Path, config: Config) -> Iterator[str]:
    """A server as a child while a run goes on; gives its address."""
    check_installed()
    directory.mkdir(parents=True, exist_ok=True)
    with listening(config.serve) as listener:
        child = multiprocessing.get_context("spawn").Process(
            target=_child, args=(directory, config, listener, os.getpid()), daemon=True
        )
        child.start()
        try:
            yield address(listener)
        finally:
            child.terminate()
            child.join(5)
            if child.is_alive():
                child.kill()


def _child(directory: Path, config: Config, listener: socket.socket, parent: int) -> None:
    os.setsid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    serve(directory, config.serve, listener, config)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _allow_many_streams() -> int:
    """Every stream is an open file; allow as many as the system does, and say how many connections
    leave some for the server's own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(64, min(_MOST_CONNECTIONS, most - _OWN_FILES))
