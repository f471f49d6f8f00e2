"""The process that Spark forks its Python workers from, with everything loaded beforehand.

Spark starts this module instead of its own daemon (``spark.python.daemon.module``). Workers then
share the imported libraries and the compiled kernels, and start in milliseconds. What is loaded is
frozen: after every task a worker collects garbage, and going through all objects of all libraries
each time cost more than the rest of a small task (37 ms against 3 ms).
"""

from __future__ import annotations

import gc
import os
from typing import Any

from pyspark import daemon

from geoflux.spark.warm import warm_up

_serve = daemon.worker


def _serve_quietly(sock: Any, authenticated: bool) -> int:
    """A worker's life; when Spark has hung up there is nobody to tell, and no trace to print."""
    try:
        return int(_serve(sock, authenticated))
    except BrokenPipeError:
        os._exit(1)


if __name__ == "__main__":
    daemon.worker = _serve_quietly
    warm_up()
    gc.collect()
    gc.freeze()
    daemon.manager()
