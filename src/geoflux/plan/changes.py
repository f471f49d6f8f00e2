"""Changes of a plan, as values: what a policy decides and the epoch log records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Move:
    """Give a partition to another slot."""

    partition: int
    to: int


@dataclass(frozen=True)
class Split:
    """Cut a partition in two before column (or row) ``at``; name the owner of each half."""

    partition: int
    axis: Literal["columns", "rows"]
    at: int
    first_to: int
    second_to: int


@dataclass(frozen=True)
class Merge:
    """Join two partitions that form a rectangle."""

    first: int
    second: int
    to: int


@dataclass(frozen=True)
class Resize:
    """Have so many slots from now on. A hash plan deals its partitions out by itself; in a grid,
    slots that go must own nothing any more and slots that come own nothing yet
    (:func:`geoflux.plan.resizing.resized` has the changes before and after)."""

    slots: int


@dataclass(frozen=True)
class SplitPrefix:
    """Cut one or several longer prefixes off a partition at once, each given as code, bits and the
    slot that gets it; the fewest prefixes that tile what is left stay with the owner."""

    partition: int
    pieces: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class MergePrefix:
    """Make one partition of all that lie in a prefix: the inverse of any splits of it."""

    code: int
    bits: int
    to: int


Change = Move | Split | Merge | Resize | SplitPrefix | MergePrefix

_KINDS: dict[str, Any] = {
    kind.__name__.lower(): kind for kind in (Move, Split, Merge, Resize, SplitPrefix, MergePrefix)
}


def change_to_dict(change: Change) -> dict[str, Any]:
    """Plain values, for the epoch log.

    >>> change_to_dict(Move(3, to=1))
    {'kind': 'move', 'partition': 3, 'to': 1}
    """
    return {"kind": type(change).__name__.lower(), **asdict(change)}


def change_from_dict(values: Mapping[str, Any]) -> Change:
    """The change that :func:`change_to_dict` wrote, also by way of JSON."""
    given = {k: v for k, v in values.items() if k != "kind"}
    if "pieces" in given:
        given["pieces"] = tuple(tuple(piece) for piece in given["pieces"])
    change: Change = _KINDS[values["kind"]](**given)
    return change
