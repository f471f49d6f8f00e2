"""What is wrong with the description of an application, all at once, one sentence each."""

from __future__ import annotations

import re

from geoflux.errors import ConfigError, OperatorError
from geoflux.operators.keyed import Operator
from geoflux.topology.nodes import SOURCE, Ingest, Node, Queries
from geoflux.topology.topology import Topology

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TAKEN = (SOURCE, "scale", "topology", "summary", "report")
"""Names that the application's directory uses itself, or that mean something else."""


def check(topology: Topology) -> None:
    """Raise :class:`ConfigError` with every problem of a description."""
    found = problems(topology)
    if found:
        raise ConfigError.of(found)


def problems(topology: Topology) -> list[str]:
    """What is wrong with names, streams and loops; columns are looked at when they are known."""
    if not topology.nodes:
        return ["the application has no operators; describe one with a table [[operator]]"]
    found = _names(topology)
    if found:
        return found  # nothing else can be told apart
    for node in topology.nodes:
        found += [f"operator {node.name!r}: {told}" for told in _alone(node)]
        found += [f"operator {node.name!r}: {told}" for told in _reading(topology, node)]
    if found:
        return found
    return _unfed(topology) + _loops(topology)


def _names(topology: Topology) -> list[str]:
    names = [node.name for node in topology.nodes]
    found = []
    for name in dict.fromkeys(names):
        if not _NAME.fullmatch(name):
            found.append(
                f"operator {name!r}: a name begins with a letter and has letters, digits, - and _"
            )
        elif name.lower() in _TAKEN:
            found.append(f"operator {name!r}: this name means something else; choose another")
        if names.count(name) > 1:
            found.append(f"two operators are called {name!r}; every name is there once")
    return found


def _alone(node: Node) -> list[str]:
    """What is wrong with an operator whatever it reads."""
    found = []
    if node.slots is not None and not (
        isinstance(node.slots, int) and not isinstance(node.slots, bool) and 1 <= node.slots <= 4096
    ):
        found.append(f"slots = {node.slots!r}: expected a number from 1 to 4096")
    if isinstance(node.work, Operator):
        from geoflux.engine.keyed_streams import check_streams

        try:
            check_streams(node.work)
        except OperatorError as error:
            found.append(str(error))
        if "epoch" in node.work.output.names:
            found.append(
                "its output has a column epoch, which is the engine's; call it something else"
            )
    return found


def _reading(topology: Topology, node: Node) -> list[str]:
    reads = node.reading
    if not reads:
        return [
            f'it reads nothing; say reads = ["{SOURCE}"] for events from outside, or name operators'
        ]
    if isinstance(node.work, Ingest) and reads != (SOURCE,):
        return [f"an ingest reads from outside; leave reads away, or say reads = [{SOURCE!r}]"]
    found = []
    if SOURCE in reads and len(reads) > 1:
        found.append(
            "it reads from outside and from operators; let an operator of kind ingest bring the "
            "outside events in, and read that"
        )
    named = [text for text in reads if text != SOURCE]
    streams = [topology.stream(text) for text in named]
    found += [
        f'reads "{text}": {told}'
        for text, told in zip(named, streams, strict=True)
        if isinstance(told, str)
    ]
    twice = {str(stream) for stream in streams if streams.count(stream) > 1}
    found += [f"it reads {name} twice; once is enough" for name in sorted(twice)]
    return found


def _unfed(topology: Topology) -> list[str]:
    """Operators that nothing can ever come to."""
    if not any(node.is_outer for node in topology.nodes):
        return [
            "no operator reads from outside, so that nothing ever happens; let one read "
            f'"{SOURCE}", for example one of kind ingest'
        ]
    lost = [node.name for node in topology.nodes if node.name not in topology.reached()]
    return [
        f"operator {name!r}: nothing from outside ever comes to it; it only reads what "
        f"{' and '.join(sorted(topology.loop(name) | topology.before({name})))} write"
        for name in lost
    ]


def _loops(topology: Topology) -> list[str]:
    """Windows close when a stream is over: what reads them cannot be before that."""
    return [
        f"operator {node.name!r}: it reads {stream}, and what it writes comes back to "
        f"{stream.operator!r}; windows close at the end of a stream, which a loop would not have"
        for node in topology.nodes
        for stream in topology.inputs(node.name)
        if isinstance(topology.node(stream.operator).work, Queries)
        and stream.name == "aggregates"
        and stream.operator in topology.loop(node.name)
    ]
