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


Change = Move | Split | Merge | Resize

_KINDS: dict[str, type[Move] | type[Split] | type[Merge] | type[Resize]] = {
    "move": Move,
    "split": Split,
    "merge": Merge,
    "resize": Resize,
}


def change_to_dict(change: Change) -> dict[str, Any]:
    """Plain values, for the epoch log.

    >>> change_to_dict(Move(3, to=1))
    {'kind': 'move', 'partition': 3, 'to': 1}
    """
    return {"kind": type(change).__name__.lower(), **asdict(change)}


def change_from_dict(values: Mapping[str, Any]) -> Change:
    """The change that :func:`change_to_dict` wrote."""
    return _KINDS[values["kind"]](**{k: v for k, v in values.items() if k != "kind"})
