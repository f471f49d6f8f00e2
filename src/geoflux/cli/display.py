"""What a person sees while a run goes: a live view on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from rich.console import Console, Group

from geoflux.chronicle.guard_words import blocks_of
from geoflux.chronicle.plan_history import plan_of
from geoflux.chronicle.wording import plural
from geoflux.cli.live import LiveView
from geoflux.cli.reach import Reach
from geoflux.cli.run_view import Beside, run_line, run_view
from geoflux.cli.watched import Watched
from geoflux.engine.epochs import Manifest
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import store_of

LINE_SECONDS = 5.0
_MOST_BLOCKS = 3


class Display:
    """Shows a run of standing queries or of an operator. What earlier starts of the same run did
    counts, too: totals are the run's, not this process's."""

    def __init__(self, console: Console, out: Path) -> None:
        self._console = console
        self._out = out
        self._watched = Watched()
        self._reach: Reach | None = None
        self._note = ""
        self._partitions: tuple[int, int] | None = None
        self._told_plan: int | None = None
        self._said = 0.0
        self._started = time.time()
        self._lock = threading.Lock()
        self._live: LiveView | None = None
        self._entered = False

    def __enter__(self) -> Display:
        self._entered = True
        self._tell(f"geoflux: starting Spark; results go to {self._out}")
        return self

    def __exit__(self, kind: Any, *problem: Any) -> None:
        if self._live is not None:
            self._live.stop(keep=kind is not None)

    def say(self, note: str) -> None:
        """Tell the person something."""
        self._note = note
        if self._live is None:
            self._tell(f"geoflux: {note}")

    def epoch(self, manifest: Manifest) -> None:
        """An epoch was committed."""
        with self._lock:
            if self._watched.last is None and manifest["epoch"]:
                log = EpochLog(store_of(self._out))
                before = [log.manifest(n) for n in range(manifest["epoch"]) if log.is_committed(n)]
                self._watched = Watched.of(before)
            self._watched.hear(manifest)
            if self._reach is None:
                self._reach = Reach.of(self._out)
            self._know_plan(manifest["next_plan"])
        self._draw()
        if self._live is None:
            self._tell_of_blocks(manifest)
            if time.time() - self._said > LINE_SECONDS:
                self._said = time.time()
                self._tell(f"{self._line()}{self._new_plan(manifest)}")

    def _draw(self) -> None:
        """From the first epoch on there is a view: while Spark starts, others write there, too."""
        watches = self._entered and self._console.is_terminal and not self._console.quiet
        if watches and self._live is None:
            self._live = LiveView(self._console, self._view)
            self._live.start()

    def _line(self) -> str:
        return run_line(self._watched, time.time(), self._unread())

    def _unread(self) -> int | None:
        return None if self._reach is None else self._reach.unread(self._watched.position)

    def _tell(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _tell_of_blocks(self, manifest: Manifest) -> None:
        """Who is blocked is said at once."""
        new = blocks_of(manifest)
        for block in new[:_MOST_BLOCKS]:
            self._tell(f"geoflux: {block.told()}")
        if len(new) > _MOST_BLOCKS:
            rest = plural(len(new) - _MOST_BLOCKS, "more user")
            self._tell(f"geoflux: and {rest}; geoflux guard list {self._out}")

    def _new_plan(self, manifest: Manifest) -> str:
        """That the plan is another one than when a line was last printed."""
        before, self._told_plan = self._told_plan, manifest["next_plan"]
        same = before in (None, self._told_plan) and manifest["plan"] == self._told_plan
        return "" if same else f"; plan {self._told_plan} from now on"

    def _know_plan(self, version: int) -> None:
        """How many partitions the plan has; a plan is read once."""
        if self._partitions is None or self._partitions[0] != version:
            plan = plan_of(store_of(self._out), version)
            self._partitions = None if plan is None else (version, len(plan.partitions))

    def _view(self, width: int) -> Group:
        now = time.time()
        with self._lock:
            reach = self._reach
            beside = Beside(
                now, now - self._started,
                total=None if reach is None else reach.total(),
                unread=self._unread(),
                partitions=None if self._partitions is None else self._partitions[1],
                note=self._note,
            )  # fmt: skip
            return run_view(self._watched, beside, width)
