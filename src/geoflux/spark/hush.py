"""Workers that leave quietly when Spark has hung up: nobody is left to tell.

Spark ends idle Python workers by closing their sockets, and whether a worker then meets the end of
its input or a broken pipe is a matter of chance; the latter prints a stack trace on the user's
terminal though nothing is wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

Serve = Callable[..., int]


def quietly(serve: Serve) -> Serve:
    """A worker's life that ends without a word when its socket is closed."""

    def served(*connection: Any) -> int:
        try:
            return int(serve(*connection))
        except BrokenPipeError:
            os._exit(1)

    return served


def hush() -> None:
    """Do so in this process, if Spark forked it from its own daemon: those that plan a Python
    source are, whatever ``spark.python.daemon.module`` says."""
    main: Any = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    worker = getattr(main, "worker", None)
    if spec is None or spec.name != "pyspark.daemon" or worker is None:
        return
    if worker.__module__ != __name__:
        main.worker = quietly(worker)
