"""Sketches from Python: run one over a stream, and ask what it knows, also while it runs.

    geoflux.run_sketch(config, out="out")           # [sketch] has features = ["speed", …]
    sketch = geoflux.open_sketch("out")
    sketch.query("SELECT mean(speed) WHERE region IN bbox(2, 48, 3, 49)")

The same sources, epochs and directories as for any operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from geoflux.config import Config
from geoflux.engine.continuous import Answering, answers, configured, drop, place
from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_holdings import KeyedHoldings
from geoflux.engine.keyed_rows import read_carried
from geoflux.engine.sketch_reader import SketchReader, sketch_of
from geoflux.engine.sketch_verify import SketchVerification, compare
from geoflux.engine.verify import slice_problems
from geoflux.errors import StateError
from geoflux.keyed_api import OperatorSummary, received, setting_of
from geoflux.operators.keyed import ID
from geoflux.sketch.forest import Forest
from geoflux.sketch.observations import Observations
from geoflux.state.keys import RUN

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
    :func:`geoflux.run_operator` does for any operator; continuous queries are answered into
    ``out/answers``."""
    from geoflux.cli.operator_run import run_operator

    operator = sketch_of(config)
    asked = configured(config.sketch.continuous, operator.schema)
    reading: list[SketchReader] = []
    answering: list[Answering] = []

    def started(stream: Any) -> None:
        reading.append(SketchReader(out))
        answering.append(Answering(reading[0], asked))
        answering[0].catch_up()
        if on_start is not None:
            on_start(stream)

    def heard(manifest: Manifest) -> None:
        answering[0].answer(manifest["epoch"])
        if on_epoch is not None:
            on_epoch(manifest)

    summary = run_operator(
        operator, config, out, events, spark, on_epoch=heard, display=display, on_start=started
    )
    reading[0].made_ready()
    return summary


def place_query(out: str | Path, name: str, query: str, every: str | None = None) -> None:
    """Place a continuous query on a run, from its next epoch on; its answers are in
    :func:`continuous_answers`. ``every``: ``"epoch"``, or a duration such as ``"60s"``."""
    place(SketchReader(out), name, query, every)


def drop_query(out: str | Path, name: str) -> None:
    """Take a placed query away; its answers stay."""
    drop(SketchReader(out), name)


def continuous_answers(
    out: str | Path, name: str = "", after: int = -1
) -> Iterator[dict[str, Any]]:
    """What continuous queries (or one of them) were answered in epochs later than ``after``: plain
    values with ``name``, ``epoch``, ``committed``, ``query`` and ``rows``."""
    return answers(SketchReader(out).store, name, after)


def verify_sketch(
    out: str | Path, progress: Callable[[int, int], None] | None = None
) -> SketchVerification:
    """Add everything up that a run received, by brute force, and compare its sketch with that. All
    rows are held in memory: 8 bytes for every value of them."""
    reader = SketchReader(out, copies=False)
    config, store, operator = reader.config, reader.store, reader.operator
    last = reader.log.last()
    if last is None:
        return SketchVerification()
    intake = setting_of(operator, config, store).intake
    manifests = list(reader.log.manifests())
    result = SketchVerification(epochs=len(manifests), problems=slice_problems(manifests))
    total = sum(m["received"] for m in manifests)
    waiting, batches, done = _waiting(reader, manifests[-1]), [], 0
    for batch in received(config, store, intake.needed):
        some, _, rejected = intake.accept(batch)
        result.quarantined += len(rejected)
        if len(some):
            if waiting is not None:
                some = some.filter(pc.invert(pc.is_in(some.column(ID), waiting)))
            batches.append(operator.observations(some))
        done += len(batch.table)
        if progress is not None:
            progress(done, total)
    result.waiting = 0 if waiting is None else len(waiting)
    taken = sum(len(batch) for batch in batches)
    processed = sum(m["processed"] for m in manifests)
    if taken != processed:
        result.problems.append(f"{taken} valid rows were received, {processed} were processed")
    rows = Observations.joined([*batches, Observations.none(len(operator.schema.features))])
    forests = reader.read(last).forests
    compare(operator, rows, forests, result)
    for number, copy in enumerate(SketchReader(out).read(last).forests):
        if not _same(forests[number].in_one_layer(), copy.in_one_layer()):
            result.problems.append(f"what was made ready of sketchlet {number} is not the same")
    return result


def _same(one: Forest, other: Forest) -> bool:
    mine, theirs = one.to_arrays(), other.to_arrays()
    return mine.keys() == theirs.keys() and all(
        mine[name].tobytes() == theirs[name].tobytes() for name in mine
    )


def _waiting(reader: SketchReader, manifest: Manifest) -> pa.Array | None:
    """The ids of rows that slots handed back and have not got to yet."""
    if not manifest["carried_out"]:
        return None
    if reader.store.read_json(RUN)["lane"] != "fast" or reader.config.output.record_input:
        raise StateError(
            f"{manifest['carried_out']} rows were handed back and wait for their turn; run it to "
            "its end before it is verified"
        )
    refs = KeyedHoldings.from_dict(manifest).carried.refs
    return pa.concat_arrays([
        pc.cast(chunk, pa.string())
        for some in refs.values()
        for ref in some
        for chunk in read_carried(reader.store, reader.operator, ref)[0].column(ID).chunks
    ])  # fmt: skip
