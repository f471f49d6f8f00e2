"""Workers that leave quietly when Spark has hung up: nobody is left to tell.

Spark ends Python workers by closing their sockets, idle ones and those of a query that is stopped,
and whether a worker then meets the end of its input or a broken pipe is a matter of chance; the
latter prints a stack trace on the user's terminal though nothing is wrong.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any


class _Told:
    """The module ``traceback`` as Spark's daemon uses it, but silent about a pipe that is closed.

    >>> try:
    ...     raise BrokenPipeError
    ... except BrokenPipeError:
    ...     _Told().print_exc()
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)

    def print_exc(self) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            traceback.print_exc()


def hush(daemon: Any = None) -> None:
    """Have a daemon's workers leave without a word when their sockets are closed. Without one it is
    that of this process, if Spark forked it from its own: those that plan a Python source are,
    whatever ``spark.python.daemon.module`` says."""
    if daemon is None:
        daemon = sys.modules.get("__main__")
        spec = getattr(daemon, "__spec__", None)
        if spec is None or spec.name != "pyspark.daemon":
            return
    daemon.traceback = _Told()
