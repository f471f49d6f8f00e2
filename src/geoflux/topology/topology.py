"""An application as a graph: who feeds whom, and which operators feed themselves."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from geoflux.topology.nodes import SOURCE, Node, Stream


@dataclass(frozen=True)
class Topology:
    """Operators in the order in which they are shown; :func:`geoflux.topology.checks.problems`
    says what is wrong with one.

    >>> from geoflux.topology.nodes import Ingest, Queries
    >>> some = Topology((Node("in", Ingest()), Node("places", Queries(), reads="in")))
    >>> [str(stream) for stream in some.inputs("places")]
    ['in.results']
    """

    nodes: tuple[Node, ...]

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """The operators by their names."""
        return {node.name: node for node in self.nodes}

    def node(self, name: str) -> Node:
        """The operator of a name."""
        return self.by_name[name]

    def inputs(self, name: str) -> tuple[Stream, ...]:
        """The streams that an operator reads; none where it reads from outside. What names no
        stream is left out: checks tell."""
        found = (self.stream(text) for text in self.node(name).reading if text != SOURCE)
        return tuple(stream for stream in found if isinstance(stream, Stream))

    def stream(self, text: str) -> Stream | str:
        """The stream that a text names, or what is wrong with it."""
        name, _, stream = text.partition(".")
        node = self.by_name.get(name)
        if node is None:
            names = [*self.by_name, SOURCE]
            return f"there is no operator {name!r}{_meant(name, names)}"
        known = node.work.streams
        if not stream and len(known) == 1:
            return Stream(name, known[0])
        if not stream:
            said = " or ".join(f'"{name}.{one}"' for one in known)
            return f"{name!r} writes {_and(known)}; say which: {said}"
        if stream not in known:
            return f"{name!r} writes no stream {stream!r}, only {_and(known)}"
        return Stream(name, stream)

    def readers(self, stream: Stream) -> tuple[str, ...]:
        """The operators that read a stream, in order."""
        return tuple(name for name in self.by_name if stream in self.inputs(name))

    @cached_property
    def feeds(self) -> dict[str, frozenset[str]]:
        """By operator those that read what it writes."""
        names = self.by_name
        return {
            name: frozenset(n for n in names if any(s.operator == name for s in self.inputs(n)))
            for name in names
        }

    @cached_property
    def _reach(self) -> dict[str, frozenset[str]]:
        """By operator all that its results can come to, itself only through a loop."""
        reach = {}
        for name in self.by_name:
            found: set[str] = set()
            front = set(self.feeds[name])
            while front:
                found |= front
                front = {n for at in front for n in self.feeds[at]} - found
            reach[name] = frozenset(found)
        return reach

    def loop(self, name: str) -> frozenset[str]:
        """The operators that feed an operator and are fed by it; with itself always."""
        back = {n for n in self._reach[name] if name in self._reach[n]}
        return frozenset(back | {name})

    def before(self, names: Iterable[str]) -> frozenset[str]:
        """The operators outside of a group that write what somebody in it reads."""
        group = frozenset(names)
        feeding = {stream.operator for name in group for stream in self.inputs(name)}
        return frozenset(feeding - group)

    def reached(self) -> frozenset[str]:
        """The operators that something from outside can come to."""
        outer = [node.name for node in self.nodes if node.is_outer]
        return frozenset(outer).union(*(self._reach[name] for name in outer))


def _and(names: Iterable[str]) -> str:
    """
    >>> _and(("a", "b", "c"))
    'a, b and c'
    """
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last


def _meant(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {_and(sorted(known))}"
