"""A view that is drawn again and again below what was printed so far, while a run goes.

It is drawn whole, in one write, four times a second, so that clocks run while nothing happens.
Where the terminal has become narrower, the lines that were drawn are broken by now and cannot be
found again: the screen is cleared once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.live import Live

_EVERY_SECONDS = 0.25
_ECHO_COLUMNS = 3
"""Left free on the right: an interrupt is echoed there as ``^C``, and must not begin a line."""


class LiveView:
    """Shows ``view(width)`` on a terminal between :meth:`start` and :meth:`stop`."""

    def __init__(self, console: Console, view: Callable[[int], RenderableType]) -> None:
        self._console = console
        self._view = view
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go, name="live view", daemon=True)
        self._live = self._made()
        self._width = console.width

    def _made(self) -> Live:
        return Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

    def start(self) -> None:
        """Draw it from now on."""
        self._live.start()
        self._thread.start()

    def stop(self, keep: bool) -> None:
        """No more; what was drawn last stays where a run failed, else its summary is enough."""
        self._over.set()
        self._thread.join()
        if keep:
            self.draw()
        self._live.transient = not keep
        self._live.stop()

    def draw(self) -> None:
        """Draw it now."""
        width = self._console.width
        if width < self._width:
            self._live.stop()
            self._console.clear()
            self._live = self._made()
            self._live.start()
        self._width = width
        room = width - _ECHO_COLUMNS
        self._live.update(Constrain(self._view(room), room), refresh=True)

    def _go(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            self.draw()
