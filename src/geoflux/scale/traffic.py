"""The traffic equations: what arrives at each operator is what comes from outside plus what the
others (and it itself) derive. They have a solution exactly if no loop makes more tuples than go in.

Source: DRS III-A; Jackson (1963).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoflux.errors import UnstableLoop

Floats = npt.NDArray[np.float64]


def solved(names: tuple[str, ...], derived: Floats, outside: Floats) -> Floats:
    """Arrival rates of all operators; ``derived[i, j]`` tuples for j come out of one that i did.

    >>> solved(("a", "b"), np.array([[0.0, 1.0], [0.5, 0.0]]), np.array([2.0, 0.0])).tolist()
    [4.0, 4.0]
    """
    for loop in loops(derived):
        gain = float(np.abs(np.linalg.eigvals(derived[np.ix_(loop, loop)])).max())
        if gain >= 1 - 1e-12:
            raise UnstableLoop(tuple(names[i] for i in loop), gain)
    rates = np.linalg.solve(np.eye(len(names)) - derived.T, outside)
    return np.maximum(rates, 0.0)  # where nothing arrives, rounding may leave -1e-17


def loops(derived: Floats) -> list[list[int]]:
    """Groups of operators that tuples can go round in, each in an order in which they do.

    >>> loops(np.array([[0, 1, 0], [0, 0, 1], [0, 0.5, 0]]))
    [[1, 2]]
    """
    size = len(derived)
    reach = derived > 0
    for k in range(size):
        reach |= np.outer(reach[:, k], reach[k])
    groups: list[list[int]] = []
    for i in range(size):
        if reach[i, i] and not any(i in group for group in groups):
            groups.append(
                _in_order([j for j in range(size) if reach[i, j] and reach[j, i]], derived)
            )
    return groups


def _in_order(group: list[int], derived: Floats) -> list[int]:
    """Along the edges, as far as one path goes."""
    path, left = [group[0]], set(group[1:])
    while left:
        onward = [j for j in sorted(left) if derived[path[-1], j] > 0]
        path.append(onward[0] if onward else min(left))
        left.discard(path[-1])
    return path
