"""`geoflux run` that kills itself (SIGKILL) at a named point of an epoch; for test_crashes.

Usage: killed_run.py POINT EPOCH ARGUMENTS-OF-GEOFLUX...
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from geoflux.cli import main
from geoflux.engine import engine as engine_module
from geoflux.engine import staging
from geoflux.engine.engine import Engine
from geoflux.spark import outbox, stream
from geoflux.state.epoch_log import EpochLog

point, epoch, arguments = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
out = Path(arguments[arguments.index("--out") + 1])


def die() -> None:
    print(f"killed at {point} in epoch {epoch}", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def when(name: str, number: int) -> None:
    if name == point and number == epoch:
        die()


def around(owner: Any, name: str, before: str, after: str, number: Any) -> None:
    """Die before or after a call."""
    real = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        when(before, number(*args))
        result = real(*args, **kwargs)
        when(after, number(*args))
        return result

    setattr(owner, name, wrapped)


def watch(condition: Any) -> None:
    """Die as soon as something is there, from a thread."""

    def look() -> None:
        while not condition():
            time.sleep(0.001)
        die()

    threading.Thread(target=look, daemon=True).start()


current = [-1]


def opened(self: Engine, number: int, final: bool = False) -> Any:
    current[0] = number
    return real_open(self, number, final)


real_open = Engine.open
Engine.open = opened  # type: ignore[method-assign]
around(EpochLog, "open", "before-intent", "after-intent", lambda _, number, *__: number)
around(EpochLog, "commit", "before-manifest", "after-manifest", lambda _, number, *__: number)
around(engine_module, "write_deltas", "before-delta", "after-delta", lambda *_: current[0])
around(engine_module, "publish", "before-publish", "after-publish", lambda *_: current[0])
around(stream, "run_job", "before-job", "after-job", lambda *_: current[0])
around(Engine, "commit", "before-commit", "after-commit", lambda *_: current[0])
around(stream.EpochStream, "_run_epoch", "never", "before-offset-commit", lambda *a: a[2])
around(outbox.Outbox, "_send_epoch", "before-send", "after-send", lambda _, number: number)
around(staging.Store, "move", "never", "mid-publish", lambda *_: current[0])

if point == "routing":
    real_job = stream.run_job

    def job(*args: Any) -> Any:
        if current[0] == epoch:
            threading.Timer(0.05, die).start()
        return real_job(*args)

    stream.run_job = job
if point == "executing":
    watch(lambda: current[0] == epoch and any((out / "staging").glob(f"matches-e{epoch:08d}*")))
if point == "after-offset-commit":
    watch(lambda: (out / f"checkpoint/commits/{epoch}").exists())

sys.argv = ["geoflux", *arguments]
main.main()
