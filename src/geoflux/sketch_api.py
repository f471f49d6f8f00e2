"""Sketches from Python: run one over a stream, and ask what it knows, also while it runs.

    geoflux.run_sketch(config, out="out")           # [sketch] has features = ["speed", …]
    sketch = geoflux.open_sketch("out")
    sketch.query("SELECT mean(speed) WHERE region IN bbox(2, 48, 3, 49)")

The same sources, epochs and directories as for any operator.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.sketch_reader import sketch_of
from geoflux.keyed_api import OperatorSummary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rich.console import Console


def run_sketch(
    config: Config,
    out: str | Path,
    events: DataFrame | None = None,
    spark: SparkSession | None = None,
    on_epoch: Callable[[Manifest], None] | None = None,
    display: bool | Console = False,
    on_start: Callable[[Any], None] | None = None,
) -> OperatorSummary:
    """Keep a sketch of a stream until it is drained or its duration is over, as
    :func:`geoflux.run_operator` does for any operator."""
    from geoflux.cli.operator_run import run_operator

    return run_operator(
        sketch_of(config), config, out, events, spark, on_epoch=on_epoch, display=display,
        on_start=on_start,
    )  # fmt: skip
