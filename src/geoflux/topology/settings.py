"""The settings of every operator: those of all, with its own laid over them."""

from __future__ import annotations

import copy

from geoflux.config import Config
from geoflux.errors import ConfigError
from geoflux.topology.nodes import Node
from geoflux.topology.topology import Topology


def configs_of(topology: Topology, config: Config) -> dict[str, Config]:
    """By operator its settings; every mistake in one :class:`ConfigError`."""
    configs, problems = {}, []
    if config.source.kind in ("dataframe", "kafka"):
        problems.append(
            f'source.kind = "{config.source.kind}": an application reads files or the simulator; '
            "write the stream to a folder of Parquet and name that"
        )
    if config.control.kind == "kafka" or config.output.topic:
        problems.append("an application is controlled by files and writes files; leave topics out")
    for node in topology.nodes:
        try:
            configs[node.name] = _config(node, config)
        except ConfigError as error:
            problems.append(f"operator {node.name!r}: {error}")
            continue
        problems += [f"operator {node.name!r}: {p}" for p in _unfit(node, configs[node.name])]
    if problems:
        raise ConfigError.of(problems)
    return configs


def _config(node: Node, config: Config) -> Config:
    values = copy.deepcopy(config.as_dict())
    for section, table in node.settings.items():
        if section not in values:
            raise ConfigError(f"there are no settings [{section}]")
        values[section] |= dict(table)
    if node.slots is not None:
        values["engine"]["slots"] = node.slots
    return Config.from_dict(values)


def _unfit(node: Node, config: Config) -> list[str]:
    """What an operator within an application cannot do."""
    problems = []
    engine = config.engine
    if engine.lane == "general":
        problems.append('engine.lane = "general": streams are read in the fast lane; use "auto"')
    plan = config.swarm.start if engine.balance == "swarm" else engine.balance
    if not node.is_outer and node.kind == "queries" and plan == "history":
        named = "swarm.start" if engine.balance == "swarm" else "engine.balance"
        problems.append(
            f'{named} = "history": a stream cannot be sampled before it is there; use "uniform"'
        )
    if not node.is_outer and {"kind", "path", "speed"} & set(node.settings.get("source", {})):
        problems.append("source: it reads streams; only columns and ids can be named here")
    return problems
