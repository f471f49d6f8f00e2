"""The operators of an application made ready: their directories, inputs and engines."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from geoflux import keyed_api, run_inputs, run_notes, run_plan
from geoflux.config import Config
from geoflux.engine.engine import Engine
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.keyed_task import Emulated
from geoflux.engine.rooted import Sampling
from geoflux.engine.setting import Setting
from geoflux.engine.summary import summarised
from geoflux.engine.wanted import WantedSlots
from geoflux.errors import ConfigError, StateError
from geoflux.operators.keyed import ID, Operator
from geoflux.operators.pass_on import PassOn
from geoflux.state.keys import RUN, TOPOLOGY, store_for
from geoflux.state.store import Store
from geoflux.topology import Ingest, Node, Topology
from geoflux.topology.columns import read_columns, with_ids
from geoflux.topology.written import noted


@dataclass(frozen=True)
class Part:
    """An operator of an application with all that it runs with."""

    node: Node
    config: Config
    store: Store
    inputs: run_inputs.Inputs
    operator: Operator[Any] | None
    """``None``: standing queries."""

    def engine(
        self, emulated: Emulated | None = None, wanted_slots: WantedSlots | None = None,
        sampling: Sampling | None = None,
    ) -> Engine | KeyedEngine:  # fmt: skip
        """Its engine, as its directory left it."""
        config, store = self.config, self.store
        operator = self.operator
        if operator is None:
            setting = Setting(
                config, store, self.inputs.schema, self.inputs.control, run_plan.policy_of(config),
                wanted_slots=wanted_slots, sampling=sampling,
            )  # fmt: skip
            return Engine.recovered(
                setting, lambda: run_plan.first_plan(setting, self.inputs.events)
            )
        keyed = keyed_api.setting_of(operator, config, store, emulated, wanted_slots, sampling)
        return KeyedEngine.recovered(keyed, lambda: keyed_api.first_plan(config, operator))

    @property
    def idle_seconds(self) -> float:
        """After how much silence an epoch without events is wanted."""
        if self.operator is not None:
            return 1.0 if self.config.flux.budget else 0.0
        inputs = self.inputs
        return Setting(self.config, self.store, inputs.schema, inputs.control).idle_seconds or 0.0

    def summary(self) -> dict[str, Any]:
        """The run so far in numbers."""
        if self.operator is None:
            return summarised(self.config, self.store).as_dict()
        return asdict(keyed_api.summarised(self.config, self.store))


def opened(topology: Topology, configs: Mapping[str, Config], out: str | Path) -> dict[str, Part]:
    """The operators with their inputs, of a new application or of the one that ``out`` holds;
    refused where that is another."""
    started = _note(topology, out)
    stores = {n: store_for(Path(out) / n, configs[n].security) for n in topology.by_name}
    outside = {
        node.name: run_inputs.opened_inputs(
            run_notes.checked(configs[node.name], stores[node.name], False, _work_name(node)),
            stores[node.name], None, _work_name(node), started,
        )
        for node in topology.nodes
        if node.is_outer
    }  # fmt: skip
    columns, problems = read_columns(
        topology, configs, {name: inputs.schema for name, inputs in outside.items()}
    )
    if problems:
        raise ConfigError.of(problems)
    settled = {n.name: with_ids(n, configs[n.name], columns[n.name]) for n in topology.nodes}
    for node in topology.nodes:
        if not node.is_outer:
            _note_reader(topology, node, settled[node.name], stores[node.name],
                         {"schema": columns[node.name].schema, "started": started})  # fmt: skip
    parts = {}
    for node in topology.nodes:
        name, store = node.name, stores[node.name]
        inputs = outside.get(name) or run_inputs.noted_inputs(
            settled[name], store, store.read_json(RUN)
        )
        parts[name] = Part(
            node, settled[name], store, inputs, operator_of(node, inputs, settled[name])
        )
    return parts


def operator_of(node: Node, inputs: run_inputs.Inputs, config: Config) -> Operator[Any] | None:
    """The keyed operator that does an operator's work; ``None``: standing queries."""
    if isinstance(node.work, Operator):
        return node.work
    if not isinstance(node.work, Ingest):
        return None
    timed = config.source.time in inputs.schema.names
    return PassOn(inputs.schema, node.work.key or ID, timed)


def _work_name(node: Node) -> str:
    if isinstance(node.work, Operator):
        return type(node.work).__name__
    return "ingest" if isinstance(node.work, Ingest) else ""


def _note(topology: Topology, out: str | Path) -> float:
    """Write the application down, once; returns since when it goes."""
    store, now = Store(str(out)), noted(topology)
    if not store.is_local:
        raise ConfigError(
            f"{out}: an application's directory must be on a file system of this host"
        )
    if store.exists(RUN):
        raise StateError(f"{out} holds a run that is no application; use a new directory")
    if not store.exists(TOPOLOGY):
        store.write_json(TOPOLOGY, now | {"started": time.time()})
    before = store.read_json(TOPOLOGY)
    if _work(before) != _work(now):
        raise StateError(
            f"{out} holds another application ({_difference(before, now)}); use a new directory, "
            "or the operators that it was started with"
        )
    return float(before["started"])


def _work(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What must stay as it is; settings are compared operator by operator."""
    tables = json.loads(json.dumps(values["operators"]))
    return [{k: v for k, v in table.items() if k != "settings"} for table in tables]


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    old = {table["name"]: table for table in _work(before)}
    new = {table["name"]: table for table in _work(now)}
    if list(old) != list(new):
        return f"of {', '.join(old)}, and not {', '.join(new)}"
    return "other in " + ", ".join(name for name in old if old[name] != new[name])


def _note_reader(
    topology: Topology, node: Node, config: Config, store: Store, about: Mapping[str, Any]
) -> None:
    """Write down what a reader of streams reads, as for any run."""
    run_notes.checked(config, store, False, _work_name(node))
    if store.exists(RUN):
        store.write_json(RUN, store.read_json(RUN) | run_notes.settings_note(config))
        return
    streams: dict[str, list[str]] = {}
    for stream in topology.inputs(node.name):
        streams.setdefault(stream.operator, []).append(stream.name)
    reads = [[name, some] for name, some in streams.items()]
    noted_about = {"started": about["started"], "lane": "fast", "streams": reads}
    run_notes.note_run(config, store, _work_name(node), about["schema"], noted_about)
