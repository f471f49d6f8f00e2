"""The written forms of an application: tables ``[[operator]]`` of a TOML file, and JSON.

An operator of the user's own is written as ``class = "module:Class"`` with its arguments in
``with``; the module is looked for beside the file, too.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from geoflux.errors import ConfigError
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.operators.keyed import Operator
from geoflux.topology.nodes import SOURCE, Ingest, Node, Queries, Work
from geoflux.topology.topology import Topology

_KINDS = ("ingest", "queries", "group-by")
_GROUP_BY = tuple(field.name for field in dataclasses.fields(WindowedGroupBy))
_ALWAYS = ("name", "kind", "class", "with", "reads", "slots")
_SECTIONS = ("source", "control", "engine", "swarm", "guard", "flux", "retention", "output")
"""What an operator may set for itself; space, run, security and the simulation are of all."""
_FORMAT = 1


def topology_of(tables: Any, beside: Path | None = None) -> Topology:
    """The application that tables ``[[operator]]`` describe; every mistake in one error.

    >>> tables = [{"name": "in", "kind": "ingest"}, {"name": "q", "kind": "queries", "reads": "in"}]
    >>> [node.kind for node in topology_of(tables).nodes]
    ['ingest', 'queries']
    """
    if not isinstance(tables, list) or not all(isinstance(t, Mapping) for t in tables):
        raise ConfigError("operator: expected tables, each under a line [[operator]]")
    nodes, problems = [], []
    for number, table in enumerate(tables, 1):
        named = table.get("name")
        called = f"operator {named!r}" if isinstance(named, str) else f"operator number {number}"
        try:
            nodes.append(_node(table, beside))
        except ConfigError as error:
            problems.append(f"{called}: {error}")
    if problems:
        raise ConfigError.of(problems)
    return Topology(tuple(nodes))


def _node(table: Mapping[str, Any], beside: Path | None) -> Node:
    name, reads, slots = table.get("name"), table.get("reads", SOURCE), table.get("slots")
    if not isinstance(name, str) or not name:
        raise ConfigError('it has no name; write name = "..."')
    if not isinstance(reads, str) and not (
        isinstance(reads, Sequence) and all(isinstance(one, str) for one in reads)
    ):
        raise ConfigError(f'reads = {reads!r}: expected names, as in ["ingest"]')
    settings = {section: table[section] for section in _SECTIONS if section in table}
    for section, values in settings.items():
        if not isinstance(values, Mapping):
            raise ConfigError(f"{section} = {values!r}: expected a table of settings")
    return Node(
        name, _work(table, beside), reads if isinstance(reads, str) else tuple(reads), slots,
        settings,
    )  # fmt: skip


def _work(table: Mapping[str, Any], beside: Path | None) -> Work:
    kind, named = table.get("kind"), table.get("class")
    if (kind is None) == (named is None):
        raise ConfigError(
            f'expected either kind = {", ".join(_KINDS)}, or class = "module:Class" for an '
            "operator of your own"
        )
    if kind not in (None, *_KINDS):
        raise ConfigError(f'kind = "{kind}": expected {", ".join(_KINDS)}')
    own = {"ingest": ("key",), "queries": (), "group-by": _GROUP_BY}.get(str(kind), ())
    strange = sorted(set(table) - {*_ALWAYS, *_SECTIONS, *own})
    if strange:
        known = sorted({*own, *_SECTIONS, "name", "reads", "slots"})
        raise ConfigError(f"{', '.join(strange)} is unknown here; known are {', '.join(known)}")
    if named is not None:
        return imported(named, table.get("with", {}), beside)
    given = {name: table[name] for name in own if name in table}
    if kind == "queries":
        return Queries()
    return Ingest(**given) if kind == "ingest" else _made(WindowedGroupBy, given, "a group-by")


def imported(named: str, arguments: Any, beside: Path | None = None) -> Operator[Any]:
    """An operator of the user's own, by module and class."""
    module, _, name = str(named).partition(":")
    if not module or not name:
        raise ConfigError(f'class = "{named}": expected "module:Class"')
    if not isinstance(arguments, Mapping):
        raise ConfigError(f"with = {arguments!r}: expected a table of arguments")
    if module == "__main__":
        raise ConfigError(
            f"{name} was defined in a script that ran by itself; put it into a module, or hand the "
            "application over from Python"
        )
    if beside is not None and str(beside.resolve()) not in sys.path:
        sys.path.insert(0, str(beside.resolve()))
    try:
        kind = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise ConfigError(
            f'class = "{named}": {error}; install the module, or put it beside the file or '
            "where you are"
        ) from error
    except AttributeError:
        raise ConfigError(f'class = "{named}": {module} has no {name}') from None
    if not (isinstance(kind, type) and issubclass(kind, Operator)):
        raise ConfigError(f'class = "{named}": expected a class derived from geoflux.Operator')
    return _made(kind, arguments, named)


def folders_of(topology: Topology) -> list[str]:
    """Where the modules of the user's own operators lie, as far as they are not installed."""
    found: dict[str, None] = {}
    for node in topology.nodes:
        if node.kind == "own" and type(node.work).__module__ != "__main__":
            module = sys.modules[type(node.work).__module__]
            file = Path(module.__file__ or "").resolve()
            depth = module.__name__.count(".") + hasattr(module, "__path__")
            if not file.is_relative_to(Path(sys.prefix).resolve()):
                found[str(file.parents[depth])] = None
    return list(found)


def _made(kind: type[Any], arguments: Mapping[str, Any], called: str) -> Operator[Any]:
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()}
    try:
        operator: Operator[Any] = kind(**given)
    except TypeError as error:
        raise ConfigError(f"{called} does not take what was given: {error}") from None
    return operator


def noted(topology: Topology) -> dict[str, Any]:
    """Plain values, to be written down with the run."""
    return {"format": _FORMAT, "operators": [_noted(topology, node) for node in topology.nodes]}


def _noted(topology: Topology, node: Node) -> dict[str, Any]:
    streams = [str(stream) for stream in topology.inputs(node.name)]
    work = node.work
    table: dict[str, Any] = {"name": node.name, "reads": streams or [SOURCE]}
    table["settings"] = {section: dict(values) for section, values in node.settings.items()}
    table["kind"], table["streams"] = node.kind, list(work.streams)
    if isinstance(work, Ingest):
        table["key"] = work.key
    if isinstance(work, Operator):
        table["class"] = f"{type(work).__module__}:{type(work).__qualname__}"
        table["with"] = _arguments(work)
    return table


def _arguments(operator: Operator[Any]) -> dict[str, Any] | None:
    """What an operator was made with, where it says so and that is plain values."""
    kind: Any = type(operator)
    if not dataclasses.is_dataclass(kind):
        return {} if not vars(operator) else None
    fields = dataclasses.fields(kind)
    values = {f.name: getattr(operator, f.name) for f in fields if f.init}
    return values if all(_is_plain(value) for value in values.values()) else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(one) for one in value)
    return value is None or isinstance(value, bool | int | float | str)


def restored(
    values: Mapping[str, Any], own: Mapping[str, Operator[Any]] | None = None,
    beside: Path | None = None,
) -> Topology:  # fmt: skip
    """The application that was noted; ``own`` gives operators that cannot be made from a note,
    ``beside`` is where else modules are looked for."""
    nodes = []
    for table in values["operators"]:
        name, work = table["name"], _restored(table, own or {}, beside)
        nodes.append(Node(name, work, tuple(table["reads"]), None, table["settings"]))
    return Topology(tuple(nodes))


def _restored(
    table: Mapping[str, Any], own: Mapping[str, Operator[Any]], beside: Path | None
) -> Work:
    if table["kind"] == "ingest":
        return Ingest(table["key"])
    if table["kind"] == "queries":
        return Queries()
    if table["name"] in own:
        return own[table["name"]]
    if table["with"] is None:
        raise ConfigError(
            f"operator {table['name']!r}: {table['class']} was made in a way that is not noted; "
            "hand it over from Python: operators={name: operator}"
        )
    return imported(table["class"], table["with"], beside)
