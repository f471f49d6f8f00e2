"""What a run reads from: events and control records, as its settings name them and as its directory
has noted them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from geoflux.config import Config
from geoflux.engine.control_files import ControlFiles
from geoflux.engine.files import FileEvents
from geoflux.engine.intake import EventColumns
from geoflux.engine.joined_control import JoinedControl
from geoflux.engine.source import ControlSource, EventSource
from geoflux.engine.stream_events import StreamEvents, Upstream, stream_events
from geoflux.engine.topic_control import FOLDER, TopicControl
from geoflux.engine.topic_values import declared
from geoflux.run_notes import note_run, settings_note
from geoflux.settings import seconds
from geoflux.state.keys import RUN, store_of
from geoflux.state.store import Store
from geoflux.workload import Scenario, SimulatedControl, Simulator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_DEFAULT_SIMULATION_SECONDS = 30.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Inputs:
    """What a run reads from: events (``None``: a DataFrame, whose schema is given) and control."""

    events: EventSource | None
    control: ControlSource
    schema: pa.Schema


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
