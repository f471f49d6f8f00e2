"""The process that Spark forks its Python workers from, with everything loaded beforehand.

Spark starts this module instead of its own daemon (``spark.python.daemon.module``). Workers then
share the imported libraries and the compiled kernels, and start in milliseconds. What is loaded is
frozen: after every task a worker collects garbage, and going through all objects of all libraries
each time cost more than the rest of a small task (37 ms against 3 ms).
"""

from __future__ import annotations

import gc

from pyspark import daemon

from geoflux.spark.hush import hush
from geoflux.spark.warm import keep_memory, warm_up

if __name__ == "__main__":
    hush(daemon)
    keep_memory()
    warm_up()
    gc.collect()
    gc.freeze()
    daemon.manager()
