"""Memory of a process and all its descendants together, sampled while something runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import psutil


@dataclass
class Peak:
    """The largest sum seen, in bytes; shared pages are counted once (PSS)."""

    bytes: int = 0


@contextlib.contextmanager
def peak_memory(every_seconds: float = 0.5) -> Iterator[Peak]:
    """Sample this process and its descendants until the block ends."""
    peak, done = Peak(), threading.Event()

    def sample() -> None:
        while not done.wait(every_seconds):
            peak.bytes = max(peak.bytes, _together())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _together() -> int:
    total = 0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total
