"""Who follows which inputs through an application: the numbers of its operators, and who reads
what they write."""

from __future__ import annotations

from geoflux.engine.rooted import Sampling
from geoflux.topology.nodes import Stream
from geoflux.topology.topology import Topology


def samplings(topology: Topology, seed: int, one_in: int) -> dict[str, Sampling]:
    """By operator what it follows: of inputs from outside one in so many, of streams all that
    derives from these.

    >>> from geoflux.topology.nodes import Ingest, Node, Queries
    >>> some = Topology((Node("in", Ingest()), Node("places", Queries(), reads="in")))
    >>> found = samplings(some, 7, 100)
    >>> found["in"].readers, found["places"].one_in
    ({'results': (1,)}, None)
    """
    numbers = {node.name: number for number, node in enumerate(topology.nodes)}
    found = {}
    for node in topology.nodes:
        readers = {
            stream: tuple(numbers[name] for name in topology.readers(Stream(node.name, stream)))
            for stream in node.work.streams
        }
        found[node.name] = Sampling(
            seed, numbers[node.name], one_in if node.is_outer else None,
            {stream: who for stream, who in readers.items() if who},
        )  # fmt: skip
    return found
