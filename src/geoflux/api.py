"""geoflux from Python: run a stream, verify a run, ask about the events it retains.

    import geoflux
    geoflux.run(geoflux.Config.load(Path("geofence.toml")), out="out")

or over a streaming DataFrame that is there already:

    geoflux.run(config, out="out", events=spark.readStream.table("positions"),
                on_matches=lambda matches, epoch: matches.show())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoflux.config import Config
from geoflux.engine.answers import Answer
from geoflux.engine.engine import Engine
from geoflux.engine.epochs import Manifest
from geoflux.engine.setting import Setting
from geoflux.engine.snapshot_reader import Snapshots
from geoflux.engine.summary import Summary, summarised
from geoflux.engine.verify import Verification, verified
from geoflux.errors import StateError
from geoflux.run_inputs import noted_inputs, opened_inputs, rows_of, with_topic
from geoflux.run_notes import checked, config_of, operator_of
from geoflux.run_plan import first_plan, policy_of
from geoflux.state.keys import RUN, store_for, store_of
from geoflux.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run(
    config: Config,
    out: str | Path,
    events: DataFrame | None = None,
    spark: SparkSession | None = None,
    on_epoch: Callable[[Manifest], None] | None = None,
    on_matches: Callable[[DataFrame, int], None] | None = None,
    on_start: Callable[[Any], None] | None = None,
) -> Summary:
    """Run until the stream is drained, its duration is over, or somebody stops it.

    ``out`` is the run's directory; the same call on a directory that a crash left behind goes on
    where it was. Without ``events`` the settings say where events come from. ``on_start`` gets the
    stream, whose ``stop()`` ends the run after the epoch under way.
    """
    from geoflux.spark.session import session_for
    from geoflux.spark.stream import EpochStream, Listener, Pace
    from geoflux.spark.warm import warm_up

    store = store_for(out, config.security)
    config = checked(config, store, events is not None)
    if spark is None and events is None:
        warm_up()  # once for all workers: they find the kernels compiled
    with session_for(config, events, spark) as session:
        inputs = with_topic(opened_inputs(config, store, events), config, store, session)
        setting = Setting(config, store, inputs.schema, inputs.control, policy_of(config))
        engine = Engine.recovered(setting, lambda: first_plan(setting, inputs.events))
        on_commit = _sender(config, store, session, engine.last)
        rows = rows_of(config, inputs, events, session)
        listener = Listener(on_epoch, on_matches, on_commit)
        stream = EpochStream(session, engine, store, rows, listener)
        if on_start is not None:
            on_start(stream)
        stream.run(Pace.of(config, setting.idle_seconds or 0.0))
    summary = summarised(config, store)
    store.write_json("summary.json", summary.as_dict())
    return summary


def _sender(
    config: Config, store: Store, session: SparkSession, last: int | None
) -> Callable[[Manifest], None] | None:
    """Who sends the results of committed epochs on; those that a crash kept back go first."""
    if not config.output.topic:
        return None
    from geoflux.spark.outbox import Outbox

    outbox = Outbox(session, config, store)
    outbox.send(last)
    return lambda manifest: outbox.send(manifest["epoch"])


def verify(out: str | Path, progress: Callable[[int, int], None] | None = None) -> Verification:
    """Recompute a run's matches by brute force and compare."""
    config, operator = config_of(out), operator_of(out)
    if operator:
        raise StateError(
            f"{out} holds a run of the operator {operator}, whose code is not in it; "
            "verify it from Python: geoflux.verify_operator(operator, out)"
        )
    store = store_of(out)
    noted = store.read_json(RUN)
    inputs = noted_inputs(config, store, noted)
    if noted["lane"] != "fast" and not config.output.record_input:
        raise StateError(
            f"{out} did not keep what it received, so it cannot be verified; run it with "
            "output.record_input = true"
        )
    setting = Setting(config, store, inputs.schema, inputs.control)
    return verified(setting, None if config.output.record_input else inputs.events, progress)


def snapshot(out: str | Path, query: Mapping[str, Any]) -> Answer:
    """Ask once about the events that a run retains; :class:`Snapshots` stays ready for more.

    ``query`` has what a ``snapshot`` record has: ``shape``, ``where``, ``from``, ``to``,
    ``aggregate``, ``nearest``; all optional. The run may be stopped or going on.
    """
    return Snapshots(out).ask(query)
