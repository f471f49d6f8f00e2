"""Applications from Python: operators joined by streams, run together, and checked.

    topology = geoflux.Topology((
        geoflux.Node("ingest", geoflux.Ingest(key="car")),
        geoflux.Node("speeds", geoflux.WindowedGroupBy("car", "speed", rows=100), reads="ingest"),
        geoflux.Node("places", geoflux.Queries(), reads="ingest", slots=4),
    ))
    geoflux.run_topology(topology, config, out="out")
    assert geoflux.verify_topology("out").is_clean

Every operator has a run's directory of its own, ``out/NAME``; a stream is what it has committed
there. The same call on a directory that a crash left behind goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoflux import api, keyed_api, run_inputs, run_notes
from geoflux.config import OPERATOR, Config, read_tables
from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_task import Emulated
from geoflux.engine.rooted import Sampling
from geoflux.engine.stream_check import StreamCheck, check_streams_of
from geoflux.engine.stream_events import StreamEvents
from geoflux.engine.verify import Verification
from geoflux.errors import StateError
from geoflux.operators.keyed import Operator
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import RUN, TOPOLOGY, store_of
from geoflux.state.store import Store
from geoflux.topology import Topology
from geoflux.topology.checks import check
from geoflux.topology.draining import Draining, Progress
from geoflux.topology.dropping import Dropping
from geoflux.topology.following import samplings
from geoflux.topology.scaling import OnDecision, Scaling
from geoflux.topology.settings import configs_of
from geoflux.topology.written import folders_of, restored, topology_of
from geoflux.topology_parts import Part, opened, operator_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from geoflux.spark.application import Application

_SEED = 20_171
"""Of the ids of inputs that are followed."""
OnEpoch = Callable[[str, Manifest], None]


@dataclass(frozen=True)
class TopologySummary:
    """What an application did: how long it took, and by operator what an ordinary run tells."""

    seconds: float
    operators: Mapping[str, Mapping[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"seconds": self.seconds, "operators": {**self.operators}}


def load_topology(path: Path, flags: Mapping[str, Any] | None = None) -> tuple[Topology, Config]:
    """The application that a TOML file describes with tables ``[[operator]]``, and the settings
    for all of it; ``flags`` (``section.name``) win over the file."""
    values = read_tables(path)
    topology = topology_of(values.pop(OPERATOR, []), path.parent)
    check(topology)
    config = Config.loaded(values, flags)
    configs_of(topology, config)
    return topology, config


def run_topology(
    topology: Topology,
    config: Config,
    out: str | Path,
    spark: SparkSession | None = None,
    on_epoch: OnEpoch | None = None,
    on_start: Callable[[Application, Draining], None] | None = None,
    emulated: Mapping[str, Emulated] | None = None,
    on_decision: OnDecision | None = None,
) -> TopologySummary:
    """Run an application until all that comes from outside is drained and every stream is read to
    its end, its duration is over, or somebody stops it.

    ``config`` holds for all operators, as far as their own settings do not differ. ``on_epoch``
    gets the name of an operator and the manifest of an epoch that it committed; ``on_start`` gets
    the application, whose ``stop()`` ends it after the epochs under way, and what tells how many
    rows wait where. ``emulated`` makes slots of operators slow on purpose, for benchmarks. With
    ``[scale]``, ``on_decision`` gets what was decided at every look, and what the cluster manager
    answered.
    """
    from geoflux.spark.application import Application, Member, let_import, settings
    from geoflux.spark.negotiator import negotiator_for
    from geoflux.spark.session import session_for
    from geoflux.spark.stream import EpochStream, Listener, Pace
    from geoflux.spark.warm import warm_up

    began = time.time()
    check(topology)
    configs = configs_of(topology, config)
    if spark is None and any(node.kind == "queries" for node in topology.nodes):
        warm_up()
    folders = folders_of(topology)
    with session_for(config, None, spark, settings(folders)) as session:
        let_import(session, folders)
        parts = opened(topology, configs, out)
        draining = Draining(topology, _readers(parts))
        scaling, following = None, dict[str, Sampling]()
        if config.scale.mode != "off":
            logs = {name: EpochLog(part.store) for name, part in parts.items()}
            scaling = Scaling(
                topology, configs, Store(str(out)), logs, negotiator_for(session), on_decision
            )
            following = samplings(topology, _SEED, config.scale.sample)
        members = []
        for name, part in parts.items():
            wanted = None if scaling is None else scaling.wanted(name)
            engine = part.engine((emulated or {}).get(name), wanted, following.get(name))
            if engine.last is not None:
                draining.progress[name] = Progress.of(engine.manifest(engine.last))
            assert part.inputs.events is not None, "applications read sources and streams"
            listener = Listener(_heard(name, draining, on_epoch))
            stream = EpochStream(session, engine, part.store, part.inputs.events, listener)
            pace = Pace.of(part.config, part.idle_seconds)
            if not part.node.is_outer:  # streams come as they are written, to an end that is told
                pace = replace(pace, paced=True)
            members.append(Member(name, stream, pace))
        application = Application(session, members)
        dropping = None
        if config.output.streams == "drop":
            dropping = Dropping(topology, _readers(parts), Store(str(out)), draining.progress)
        if on_start is not None:
            on_start(application, draining)

        def look(over: frozenset[str]) -> None:
            draining.look(over)
            if scaling is not None:
                scaling.step(time.time(), draining.waiting)
            if dropping is not None:
                dropping.look()

        application.run(look)
        if dropping is not None:
            dropping.look()
    return _summarised(parts, out, began)


def _readers(parts: Mapping[str, Part]) -> dict[str, StreamEvents]:
    sources = {name: part.inputs.events for name, part in parts.items()}
    return {name: s for name, s in sources.items() if isinstance(s, StreamEvents)}


def _heard(name: str, draining: Draining, on_epoch: OnEpoch | None) -> Callable[[Manifest], None]:
    def heard(manifest: Manifest) -> None:
        draining.progress[name] = Progress.of(manifest)
        if on_epoch is not None:
            on_epoch(name, manifest)

    return heard


def _summarised(parts: Mapping[str, Part], out: str | Path, began: float) -> TopologySummary:
    told = {}
    for name, part in parts.items():
        told[name] = part.summary()
        part.store.write_json("summary.json", told[name])
    summary = TopologySummary(time.time() - began, told)
    Store(str(out)).write_json("summary.json", summary.as_dict())
    return summary


@dataclass(frozen=True)
class TopologyVerification:
    """By operator what its single-threaded oracle found, by reader how its streams came over."""

    operators: Mapping[str, Verification | keyed_api.OperatorVerification]
    streams: Mapping[str, StreamCheck]

    @property
    def is_clean(self) -> bool:
        """Whether every operator gave what it should on what it received, and received what was
        committed, each row once."""
        told = (*self.operators.values(), *self.streams.values())
        return all(one.is_clean for one in told)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "clean": self.is_clean,
            "operators": {n: _plain(found) for n, found in self.operators.items()},
            "streams": {n: _plain(found) for n, found in self.streams.items()},
        }


def _plain(found: Any) -> dict[str, Any]:
    values: dict[str, Any] = found.as_dict() if hasattr(found, "as_dict") else asdict(found)
    return values | {"clean": found.is_clean}


def verify_topology(
    out: str | Path, operators: Mapping[str, Operator[Any]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> TopologyVerification:  # fmt: skip
    """Check every operator against its oracle on what it received, and every stream from writer to
    reader. Operators of the user's own are made again as they were noted (their modules must be
    installed, or be where this is called), unless they are given by name; ``progress`` hears the
    name of the operator that is looked at."""
    topology = topology_of_run(out, operators)
    dropped = [
        n for n in topology.by_name if run_notes.config_of(Path(out) / n).output.streams == "drop"
    ]
    if dropped:
        raise StateError(
            f"{out}: the streams between operators were deleted as they were read; only a run with "
            'output.streams = "keep" can be verified'
        )
    found: dict[str, Any] = {}
    streams = {}
    for node in topology.nodes:
        if progress is not None:
            progress(node.name)
        folder = Path(out) / node.name
        store, config = store_of(folder), run_notes.config_of(folder)
        inputs = run_inputs.noted_inputs(config, store, store.read_json(RUN))
        operator = operator_of(node, inputs, config)
        found[node.name] = (
            api.verify(folder) if operator is None else keyed_api.verify_operator(operator, folder)
        )
        if isinstance(inputs.events, StreamEvents):
            streams[node.name] = check_streams_of(inputs.events, store)
    return TopologyVerification(found, streams)


def topology_of_run(
    out: str | Path, operators: Mapping[str, Operator[Any]] | None = None
) -> Topology:
    """The application that a directory holds."""
    store = Store(str(out))
    if not store.exists(TOPOLOGY):
        raise StateError(f"{out} holds no application; give the directory that geoflux run wrote")
    return restored(store.read_json(TOPOLOGY), operators, Path.cwd())
