"""Interrupts of a run: the first one ends it between epochs, a second one abandons the epoch.

Afterwards a line says how to go on: the very same command, since the directory knows the rest.
"""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any


class Interrupts:
    """Waits for SIGINT and SIGTERM from the moment that there is something to stop."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.came = False

    def stop(self, stream: Any, *_: Any) -> None:
        """From now on an interrupt calls the ``stop()`` of what is given."""

        def interrupt(*_: Any) -> None:
            self.came = True
            self._say("stopping after this epoch; interrupt again to abandon it")
            signal.signal(signal.SIGINT, signal.default_int_handler)
            stream.stop()

        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, interrupt)

    def go_on(self) -> str:
        """What to do next, where an interrupt came; otherwise nothing."""
        return f"stopped; go on with:  {command(sys.argv)}" if self.came else ""


def command(arguments: Sequence[str]) -> str:
    """What was typed, to be typed again.

    >>> command(["/usr/bin/geoflux", "run", "--out", "my out"])
    "geoflux run --out 'my out'"
    """
    return f"geoflux {shlex.join(arguments[1:])}"
