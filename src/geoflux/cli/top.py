"""``geoflux top``: look on while a run goes, from another terminal; also when it is over."""

from __future__ import annotations

import contextlib
import json
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.live import Live

from geoflux.cli.attached import Attached, AttachedApplication, attached

_TICK_SECONDS = 0.25
_QUIT = ("q", "Q", "\x1b", "\x03", "\x04")


def look_on(directory: Path, every: float, once: bool, as_json: bool) -> None:
    """Show a run until somebody has seen enough: ``q`` or an interrupt. Once where that is asked
    for or nobody watches; as JSON a line whenever something was committed, until it is over."""
    run = attached(directory)
    run.look()
    console = Console(highlight=False)
    try:
        if as_json:
            _tell(run, every, once)
        elif once or not console.is_terminal:
            console.print(run.view(time.time(), console.width))
        else:
            _watch(run, every, console)
    except KeyboardInterrupt:
        return


def _tell(run: Attached | AttachedApplication, every: float, once: bool) -> None:
    """NDJSON: one object now, and then one whenever there is news."""
    before = ""
    while True:
        now = time.time()
        news, told = run.look(), run.told(now)
        if news or told["state"] != before:
            print(json.dumps(told), flush=True)
        before = told["state"]
        if once or before == "over":
            return
        time.sleep(every)


def _watch(run: Attached | AttachedApplication, every: float, console: Console) -> None:
    looked = time.monotonic()
    with keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(run.view(time.time(), console.width), refresh=True)
            if pressed(_TICK_SECONDS) in _QUIT:
                return
            if time.monotonic() - looked >= every:
                looked = time.monotonic()
                run.look()


def _wait(seconds: float) -> str:
    time.sleep(seconds)
    return ""


@contextlib.contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """What is typed, key by key and unseen: call it with how long to wait; nothing typed is empty.
    Without a terminal to type at it only waits."""
    if not sys.stdin.isatty():
        yield _wait
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def pressed(seconds: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return sys.stdin.read(1) if ready else ""

    try:
        tty.setcbreak(descriptor)
        yield pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
