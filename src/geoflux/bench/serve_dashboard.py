"""How fluently the dashboard draws: frames a second while epochs stream in and somebody pans.

A real Chromium without a screen, rendering in software; 22 slots, 500 partitions, four epochs a
second, the map dragged all the time. The figure is the median of ``requestAnimationFrame``.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geoflux.bench.serve_browser import browser, lacking
from geoflux.bench.serve_story import MadeUpRun
from geoflux.errors import EnvironmentProblem

LEAST_FPS = 30.0
_EPOCHS_PER_SECOND = 4.0
_FRAMES = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const frame = (now) => {
    window.frames_ms.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""


@dataclass(frozen=True)
class Fluency:
    """What was measured; ``dashboard_fps`` is the median, ``dashboard_fps_p5`` what the slowest
    twentieth of frames had."""

    dashboard_fps: float
    dashboard_fps_p5: float
    dashboard_fps_ok: bool
    dashboard_frames: int
    dashboard_epochs: int
    """Committed while frames were counted, and seen by the page."""
    dashboard_slots: int
    dashboard_partitions: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def dashboard_fluency(seconds: float = 8.0, slots: int = 22, partitions: int = 500) -> Fluency:
    """Measure it; :class:`EnvironmentProblem` where there is no browser."""
    missing = lacking()
    if missing:
        raise EnvironmentProblem(f"the dashboard cannot be looked at: {missing}")
    with tempfile.TemporaryDirectory() as folder:
        run = MadeUpRun(Path(folder), slots, partitions)
        for _ in range(40):
            run.epoch()
        with served(run.directory) as address, streaming(run), browser() as chromium:
            page = chromium.new_page(viewport={"width": 1440, "height": 900})
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            first = _last_epoch(page)
            page.evaluate(_FRAMES)
            _drag(page, seconds)
            frames = np.array(page.evaluate("window.frames_ms"))[1:]
            seen = _last_epoch(page) - first
    fps = 1000.0 / float(np.median(frames))
    slow = 1000.0 / float(np.percentile(frames, 95))
    return Fluency(
        round(fps, 1), round(slow, 1), fps >= LEAST_FPS and seen > 0, len(frames), seen, slots,
        partitions,
    )  # fmt: skip


def _drag(page: Any, seconds: float) -> None:
    """Drag the map in circles with the mouse."""
    box = page.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.wheel(0, -400)
    page.mouse.down()
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        page.mouse.move(x + 150 * np.sin(2 * passed), y + 90 * np.cos(2 * passed))
        time.sleep(0.012)
    page.mouse.up()


def _last_epoch(page: Any) -> int:
    return int(page.locator("#slider").get_attribute("max"))


@contextlib.contextmanager
def streaming(run: MadeUpRun) -> Iterator[None]:
    """Epochs are committed in the background meanwhile."""
    with _thread(run.epoch, 1 / _EPOCHS_PER_SECOND):
        yield


@contextlib.contextmanager
def _thread(action: Callable[[], None], every_seconds: float) -> Iterator[None]:
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(every_seconds):
            action()

    worker = threading.Thread(target=repeat, daemon=True)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


@contextlib.contextmanager
def served(directory: Path) -> Iterator[str]:
    """The dashboard of a directory at an address of this machine, open to whoever asks."""
    from fastapi import FastAPI

    from geoflux.serve.page import page_router
    from geoflux.serve.problems import install
    from geoflux.serve.view_routes import view_router

    app = FastAPI(docs_url=None, redoc_url=None)
    install(app)
    app.include_router(view_router(directory, lambda: None, lambda _: True))
    app.include_router(page_router())
    with listening(app) as address:
        yield address


@contextlib.contextmanager
def listening(app: Any) -> Iterator[str]:
    """An application in a thread of this process, at a port that is free."""
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="error", ws="none", timeout_graceful_shutdown=1)
    )
    worker = threading.Thread(target=server.run, daemon=True)
    worker.start()
    while not server.started:
        if not worker.is_alive():
            raise EnvironmentProblem("the server did not start; its log says why")
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        worker.join(10)
