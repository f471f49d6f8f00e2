"""References to state: which segments make up what a partition holds.

A partition's state is a list of references, oldest first. After a plan change the children simply
refer to their parents' segments (moving ownership moves no bytes); the slot that next opens a
child keeps the rows that touch it. The list is in every manifest, so it is as durable as the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from geoflux.plan import Change, GridPlan, Merge, Split
from geoflux.plan.prefixes import Bits

Area = tuple[int, int, int, int]
"""Cells: first column, first row, and the ones after the last."""


class Ref(NamedTuple):
    """A segment, the partition whose rows are meant in it, and what kind of segment it is:
    ``base`` (rows with their index), ``delta`` (rows that came, numbers that ended), ``windows``
    (what matches came to, addressed to homes) or ``stats`` (what its slot knows of its load); of a
    keyed operator ``state`` (saved whole), ``journal`` (rows that came since) or ``carry`` (rows
    that were handed back).

    With an ``area``, only the rows that touch it are meant: those of a partition that was merged
    with another. Its rows elsewhere may be out of date, since nobody told it of their end. With a
    ``prefix`` (code, bits), only what lies in it is meant: what the partition had when it was split
    or merged.
    """

    kind: Literal["base", "delta", "windows", "stats", "state", "journal", "carry"]
    segment: str
    partition: int
    area: Area | None = None
    prefix: Bits | None = None

    @classmethod
    def of(cls, values: Sequence[Any]) -> Ref:
        """The reference that :meth:`plain` wrote."""
        kind, segment, partition, area, prefix = (*values, None, None)[:5]
        return cls(
            kind, segment, partition, tuple(area) if area else None,
            tuple(prefix) if prefix else None,
        )  # fmt: skip

    def plain(self) -> list[Any]:
        """Plain values, for reports and manifests."""
        return list(self if self.prefix else self[:4] if self.area else self[:3])

    def within(self, area: Area) -> Ref:
        """The same, of the rows that touch an area; where only rows have one."""
        if self.kind not in ("base", "delta"):
            return self
        return self._replace(area=common(area, self.area))


def common(area: Area, other: Area | None) -> Area:
    """The cells of both; a ``None`` has all.

    >>> common((0, 0, 4, 4), (2, 1, 9, 9))
    (2, 1, 4, 4)
    """
    if other is None:
        return area
    col0, row0, col1, row1 = other
    return max(area[0], col0), max(area[1], row0), min(area[2], col1), min(area[3], row1)


@dataclass(frozen=True)
class StateMap:
    """The references of every partition, by its id.

    >>> state = StateMap({1: (Ref("base", "s", 1),)})
    >>> state.appended({1: Ref("delta", "c", 1)}).of(1)[-1].segment
    'c'
    """

    refs: Mapping[int, tuple[Ref, ...]]

    def of(self, partition: int) -> tuple[Ref, ...]:
        """The references of a partition."""
        return self.refs.get(partition, ())

    def appended(self, news: Mapping[int, Ref]) -> StateMap:
        """With one more reference for some partitions."""
        refs = dict(self.refs)
        for partition, ref in news.items():
            refs[partition] = (*refs.get(partition, ()), ref)
        return StateMap(refs)

    def replaced(self, news: Mapping[int, tuple[Ref, ...]]) -> StateMap:
        """With the references that slots wrote anew."""
        return StateMap({**self.refs, **news})

    def changed(self, change: Change, after: GridPlan) -> StateMap:
        """After a plan change: children refer to what their parents had."""
        if not isinstance(change, Split | Merge):
            return self
        parents = (
            (change.partition,) if isinstance(change, Split) else (change.first, change.second)
        )
        heirlooms = [ref for p in parents for ref in self.of(p)]
        if isinstance(change, Merge):
            box = {p.id: p.box for p in after.retired}
            heirlooms = [ref.within(box[p]) for p in parents for ref in self.of(p)]
        inherited = tuple(dict.fromkeys(heirlooms))
        refs = {p: r for p, r in self.refs.items() if p not in parents}
        for child in after.partitions:
            if child.parents == parents:
                refs[child.id] = inherited
        return StateMap(refs)

    def segments(self) -> frozenset[str]:
        """All segments that are referred to."""
        return frozenset(ref.segment for refs in self.refs.values() for ref in refs)

    def to_dict(self) -> dict[str, list[list[Any]]]:
        """Plain values, for the manifest."""
        return {str(p): [ref.plain() for ref in refs] for p, refs in self.refs.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, list[list[Any]]]) -> StateMap:
        """The map that :meth:`to_dict` wrote."""
        return cls({int(p): tuple(Ref.of(ref) for ref in refs) for p, refs in values.items()})
