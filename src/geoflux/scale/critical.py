"""How much the whole tree waits for each operator.

Along one way every second at an operator is a second of the input's time, as often as that is
visited. Where tuples fork, the tree waits for the slowest branch: an operator's weight is by how
much the time of the tree falls when waiting there falls, found by trying.
"""

from __future__ import annotations

from collections.abc import Sequence

from geoflux.scale.forms import Model
from geoflux.scale.network import Network
from geoflux.scale.sojourn import parts_of, total_of

_LESS = 0.9
_LEAST = 0.02
"""No operator counts for nothing: who waits for nobody today may tomorrow."""


def weights_of(network: Network, counts: Sequence[int], model: Model) -> list[float]:
    """Seconds of the tree's time per second of a tuple's time at each operator.

    >>> from geoflux.scale.network import Edge, Operator
    >>> fork = Network(
    ...     (Operator("a", 9.0, 1.0, everything=True), Operator("b", 2.0), Operator("c", 9.0)),
    ...     (Edge("a", "b", 1.0), Edge("a", "c", 1.0)),
    ... )
    >>> [round(w, 1) for w in weights_of(fork, (1, 1, 1), "mmk")]
    [1.0, 1.0, 0.2]
    """
    visits = [float(v) for v in network.visits]
    if not network.forks:
        return visits
    parts = parts_of(network, counts, model)
    whole = total_of(network, parts)
    out = []
    for i, visited in enumerate(visits):
        wait = parts[i].wait
        if visited <= 0 or wait <= 0:
            out.append(visited)
            continue
        gained = whole - total_of(network, [*parts[:i], parts[i].waiting(_LESS), *parts[i + 1 :]])
        out.append(min(max(gained / (wait * (1 - _LESS)), _LEAST * visited), visited))
    return out
