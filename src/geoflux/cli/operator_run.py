"""An operator's run as a person starts it: a display while it goes, if wanted, and a report.

    geoflux.run_operator(operator, config, out="out", display=True)

What runs is :func:`geoflux.keyed_api.operated`; here is only what is shown of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from geoflux.cli.display import Display
from geoflux.cli.operator_report import write_operator_report
from geoflux.cli.operator_summary import print_operator_summary
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_task import Emulated
from geoflux.keyed_api import OperatorSummary, operated
from geoflux.operators.keyed import Operator
from geoflux.state.keys import store_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_operator(
    operator: Operator[Any],
    config: Config,
    out: str | Path,
    events: DataFrame | None = None,
    spark: SparkSession | None = None,
    on_epoch: Callable[[Manifest], None] | None = None,
    on_results: Callable[[DataFrame, int], None] | None = None,
    emulated: Emulated | None = None,
    display: bool | Console = False,
    on_start: Callable[[Any], None] | None = None,
) -> OperatorSummary:
    """Run an operator until the stream is drained or its duration is over.

    Like :func:`geoflux.run`: ``out`` is the run's directory, and the same call on a directory that
    a crash left behind goes on where it was. The results are in ``out/results``, and
    ``on_results`` gets those of each epoch; ``out/report.html`` says how the run went, and with
    ``display`` a terminal (or the console that is given) shows how it goes. ``emulated`` makes
    slots slow or short of memory on purpose, for benchmarks. ``on_start`` gets the stream, whose
    ``stop()`` ends the run after the epoch under way.
    """
    from geoflux.spark.stream import Listener

    console = display if isinstance(display, Console) else Console()
    shown = Display(console, Path(out)) if display else None

    def heard(manifest: Manifest) -> None:
        if shown is not None:
            shown.epoch(manifest)
        if on_epoch is not None:
            on_epoch(manifest)

    with shown or nullcontext():
        listener = Listener(heard, on_results)
        summary = operated(operator, config, out, listener, events, spark, emulated, on_start)
    report = write_operator_report(config, store_of(out), summary, type(operator).__name__)
    if display:
        print_operator_summary(console, summary, Path(out), report)
    return summary
