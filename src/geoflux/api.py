"""geoflux from Python: run a stream, verify a run, ask about the events it retains.

    import geoflux
    geoflux.run(geoflux.Config.load(Path("geofence.toml")), out="out")

or over a streaming DataFrame that is there already:

    geoflux.run(config, out="out", events=spark.readStream.table("positions"),
                on_matches=lambda matches, epoch: matches.show())
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from geoflux.balance.history import Sample, history_plan
from geoflux.balance.policy import Policy, Static
from geoflux.balance.swarm_policy import SwarmPolicy
from geoflux.balance.tuning import Tuning
from geoflux.config import Config
from geoflux.engine.answers import Answer
from geoflux.engine.control import read_records
from geoflux.engine.control_files import ControlFiles
from geoflux.engine.engine import AnyPlan, Engine
from geoflux.engine.epochs import Manifest
from geoflux.engine.files import FileEvents
from geoflux.engine.intake import POSITION_ID, EventColumns, Intake
from geoflux.engine.joined_control import JoinedControl
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.setting import Setting
from geoflux.engine.snapshot_reader import Snapshots
from geoflux.engine.source import ControlSource, EventSource
from geoflux.engine.stream_events import StreamEvents, Upstream, stream_events
from geoflux.engine.summary import Summary, summarised
from geoflux.engine.topic_control import FOLDER, TopicControl
from geoflux.engine.topic_values import declared
from geoflux.engine.verify import Verification, verified
from geoflux.errors import ConfigError, StateError
from geoflux.operators.queries import boxes_as_parts
from geoflux.plan import GridPlan, ReplicatedPlan
from geoflux.settings import seconds
from geoflux.state.keys import RUN, TOPOLOGY, store_for, store_of
from geoflux.state.store import Store
from geoflux.workload import Scenario, SimulatedControl, Simulator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIXED = ("space", "source.kind", "source.path", "source.topics", "source.columns", "control.kind",
          "control.path", "control.topic", "engine.slots", "output.matches",
          "retention.columns", "simulate", "flux.partitions", "synopsis.partitions",
          "sketch.features", "sketch.tree_bits", "sketch.region_bits", "sketch.finest",
          "sketch.bins", "sketch.sets", "security.encrypt")  # fmt: skip
_DEFAULT_SIMULATION_SECONDS = 30.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Inputs:
    """What a run reads from: events (``None``: a DataFrame, whose schema is given) and control."""

    events: EventSource | None
    control: ControlSource
    schema: pa.Schema


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


def config_of(out: str | Path) -> Config:
    """The settings that a run was started with."""
    store = Store(str(out))
    if not store.exists(RUN) and store.exists(TOPOLOGY):
        names = [table["name"] for table in store.read_json(TOPOLOGY)["operators"]]
        raise StateError(
            f"{out} holds an application; name the directory of one of its operators: "
            f"{', '.join(f'{out}/{name}' for name in names)}"
        )
    if not store.exists(RUN):
        raise StateError(f"{out} holds no run; give the directory that geoflux run wrote")
    return Config.restored(store.read_json(RUN)["config"])


def operator_of(out: str | Path) -> str:
    """The operator that a run is of; empty: it is of standing queries."""
    config_of(out)  # says so where there is no run
    return str(Store(str(out)).read_json(RUN).get("operator", ""))


def checked(config: Config, store: Store, has_frame: bool, operator: str = "") -> Config:
    """The settings as the run will use them; refused where its directory belongs to another."""
    config = _checked_lane(config, has_frame)
    if store.exists(RUN):
        noted = store.read_json(RUN)
        _check_same_work(noted.get("operator", ""), operator, store.root)
        _check_same_run(Config.restored(noted["config"]), config, store.root)
    return config


def _check_same_work(before: str, now: str, root: str) -> None:
    if before != now:
        names = [f"the operator {name}" if name else "standing queries" for name in (before, now)]
        raise StateError(
            f"{root} holds a run of {names[0]}, and this one is of {names[1]}; use a new directory"
        )


def _checked_lane(config: Config, has_frame: bool) -> Config:
    """The settings with the source that is really used; what a lane cannot do is refused."""
    if has_frame:
        config = replace(config, source=replace(config.source, kind="dataframe"))
    problems = []
    if config.source.kind == "dataframe" and not has_frame:
        problems.append('source.kind = "dataframe": give the DataFrame to geoflux.run(events=...)')
    general = config.engine.lane == "general" and config.source.kind == "files"
    if (has_frame or general) and config.source.id == POSITION_ID:
        problems.append(
            f'source.id = "{POSITION_ID}": rows of a DataFrame have no position; name a column'
        )
    if (has_frame or config.source.kind == "kafka") and config.engine.balance == "history":
        problems.append(
            'engine.balance = "history": a stream cannot be sampled beforehand; use "uniform"'
        )
    if problems:
        raise ConfigError.of(problems)
    return config


def rows_of(config: Config, inputs: Inputs, events: DataFrame | None, session: SparkSession) -> Any:
    """What the stream runs over: the source itself (fast lane) or a DataFrame (general lane)."""
    if events is not None:
        return events
    if config.source.kind == "kafka":
        from geoflux.spark.kafka import event_stream

        return event_stream(session, config)
    if config.engine.lane == "general" and config.source.kind == "files":
        from geoflux.spark.files import file_stream

        return file_stream(session, config, inputs.schema)
    return inputs.events


def opened_inputs(
    config: Config, store: Store, events: DataFrame | None, operator: str = "",
    started: float | None = None,
) -> Inputs:  # fmt: skip
    """The inputs of a new run, of an operator or of standing queries, or of the run that the
    directory holds; ``started`` says since when a new one goes, where that is not now."""
    if store.exists(RUN):
        noted = store.read_json(RUN)
        inputs = noted_inputs(config, store, noted)
        # Whoever asks the run later goes by the settings that it went on with.
        store.write_json(RUN, noted | settings_note(config))
        return inputs
    lane = "fast"
    started = time.time() if started is None else started
    if events is not None:
        from pyspark.sql.pandas.types import to_arrow_schema

        lane = "dataframe"
        inputs = Inputs(
            None, _control_files(config, store), to_arrow_schema(events.schema, timezone="UTC")
        )
    elif config.source.kind == "kafka":
        lane = "kafka"
        inputs = Inputs(None, _control_files(config, store), declared(config.source.columns))
    else:
        inputs = configured_inputs(config, store, started)
        if config.engine.lane == "general":
            lane = "general"
    note_run(config, store, operator, inputs.schema, {"started": started, "lane": lane})
    return inputs


def note_run(
    config: Config, store: Store, operator: str, schema: pa.Schema, about: Mapping[str, Any]
) -> None:
    """Write down what a new run is: ``about`` says since when it goes, its lane, and, within an
    application, which streams it reads."""
    noted = {**settings_note(config), **about}
    noted["schema"] = schema.serialize().to_pybytes().hex()
    noted |= {"operator": operator} if operator else {}
    noted |= {"seal": store.seal.note()} if store.seal is not None else {}
    store.write_json(RUN, noted)


def settings_note(config: Config) -> dict[str, Any]:
    """The settings as a run notes them, with the folder from which their relative paths count."""
    return {"config": config.as_dict(), "folder": os.getcwd()}


def noted_inputs(config: Config, store: Store, noted: dict[str, Any]) -> Inputs:
    """The inputs of the run that the directory holds."""
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(noted["schema"])))
    if noted["lane"] in ("dataframe", "kafka"):
        return Inputs(None, _control_files(config, store), schema)
    if "streams" in noted:
        return Inputs(
            noted_streams(store, noted["streams"], schema),
            _control(config, store, noted["started"]), schema,
        )  # fmt: skip
    return replace(configured_inputs(config, store, noted["started"]), schema=schema)


def configured_inputs(config: Config, store: Store, started: float) -> Inputs:
    """The inputs that the settings name."""
    if config.source.kind == "files":
        columns = EventColumns.of(config.source, config.space)
        files = FileEvents(
            Path(config.source.path), Path(store.path("source.log")), config.source.format,
            config.source.max_record_bytes, config.source.speed, columns.time, columns.time_unit,
            types={columns.x: pa.float64(), columns.y: pa.float64()},
            complete=config.run.mode == "drain",
        )  # fmt: skip
        _await_first_file(config, files)
        return Inputs(files, _control(config, store, started), files.schema())
    simulator = Simulator(_scenario(config), started)
    return Inputs(simulator, _control(config, store, started), simulator.schema())


def _scenario(config: Config) -> Scenario:
    text = config.run.duration
    endless = config.run.mode == "follow" and not text
    length = None if endless else seconds(text) if text else _DEFAULT_SIMULATION_SECONDS
    return Scenario(config.simulate, config.space, length)


def _control(config: Config, store: Store, started: float) -> ControlSource:
    """Who registers queries: whoever writes files, and those who are simulated with the events."""
    files = _control_files(config, store)
    named = config.control.path or config.control.kind == "kafka"
    if config.source.kind == "simulate" and not named:
        return JoinedControl(SimulatedControl(_scenario(config), started), files)
    return files


def with_topic(inputs: Inputs, config: Config, store: Store, session: SparkSession) -> Inputs:
    """The inputs of a run whose control records come from a topic: fetched before they are read."""
    if config.control.kind != "kafka":
        return inputs
    from geoflux.spark.kafka import control_fetch

    assert isinstance(inputs.control, ControlFiles), "a topic is read from its copy in files"
    control = TopicControl(inputs.control, store, control_fetch(session, config))
    return replace(inputs, control=control)


def noted_streams(store: Store, reads: list[list[Any]], columns: pa.Schema) -> StreamEvents:
    """The streams that the run of an operator within an application reads: ``[[operator, [stream,
    ...]], ...]``, whose directories lie beside its own."""
    folder = Path(store.path(".")).parent
    upstreams = [Upstream(n, store_of(folder / n), tuple(streams)) for n, streams in reads]
    return stream_events(str(folder), Path(store.path("source.log")), upstreams, columns)


def _await_first_file(config: Config, files: FileEvents) -> None:
    """In `follow`, wait for the file that tells the columns: queries are checked against them."""
    limit = seconds(config.run.duration) if config.run.duration else math.inf
    waited = 0.0
    while config.run.mode == "follow" and not len(files.schema()) and waited < limit:
        time.sleep(_LOOK_SECONDS)
        waited += _LOOK_SECONDS


def _control_files(config: Config, store: Store) -> ControlFiles:
    if config.control.kind == "kafka":
        path = Path(store.path(FOLDER))
    else:
        path = Path(config.control.path or store.path("control.ndjson"))
    log = Path(store.path("control.log"))
    return ControlFiles(path, log, complete=config.run.mode == "drain")


def _check_same_run(old: Config, new: Config, root: str) -> None:
    """A directory belongs to one run: what its state depends on cannot change."""
    changed = []
    for name in _FIXED:
        section, _, key = name.partition(".")
        before, after = getattr(old, section), getattr(new, section)
        if key:
            before, after = getattr(before, key), getattr(after, key)
        if before != after:
            changed.append(name)
    if changed:
        raise ConfigError(
            f"{root} holds a run with other settings ({', '.join(changed)}); use a new directory, "
            "or the settings that it was started with"
        )


def policy_of(config: Config) -> Policy:
    """Who changes the plan."""
    if config.engine.balance == "swarm":
        return SwarmPolicy(Tuning.of(config.swarm))
    return Static()


def first_plan(setting: Setting, events: EventSource | None) -> AnyPlan:
    """The plan that a new run begins with."""
    config = setting.config
    columns, rows = config.space.grid
    slots = config.engine.slots
    if config.engine.balance == "replicated":
        return ReplicatedPlan(columns, rows, slots)
    balance = config.engine.balance
    if balance == "swarm":
        balance = config.swarm.start
    if balance == "uniform" or events is None:
        return GridPlan.initial(columns, rows, slots)
    return history_plan(columns, rows, slots, _sample(setting, events))


def _sample(setting: Setting, events: EventSource) -> Sample:
    """The beginning of the stream and of the control records, as cells."""
    config, grid = setting.config, setting.grid
    names = EventColumns.of(config.source, config.space)
    intake = Intake(names, grid.space, names.id_type(setting.schema), frozenset())
    xs, ys = [], []
    for batch in _first_batches(events, config.engine.history_events, names.needed):
        accepted, _, _ = intake.accept(batch)
        xs.append(accepted.x)
        ys.append(accepted.y)
    rules = RecordRules(grid.space, setting.schema, config.source.max_record_bytes)
    records = read_records(setting.control.read({}, setting.control.poll({})), rules)
    queries = records.rows.slice(0, config.engine.history_queries)
    _, edges = boxes_as_parts(queries)
    x = np.concatenate(xs) if xs else np.empty(0)
    y = np.concatenate(ys) if ys else np.empty(0)
    return Sample(grid.columns_of(x), grid.rows_of(y), grid.ranges(*edges))


def _first_batches(events: EventSource, count: int, columns: frozenset[str]) -> Iterator[Any]:
    end = events.latest(0, count)
    if end == 0 and events.total():
        end = min(count, events.total() or 0)
    for piece in events.slices(0, end, 1):
        yield from events.read(piece, columns)
