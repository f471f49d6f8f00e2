"""Decisions in words, for the live display, the report and ``geoflux plan`` alike."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.wording import plural
from geoflux.plan import change_from_dict
from geoflux.plan.prefixes import named

Change = dict[str, Any]


def changes_of(m: Manifest) -> list[Change]:
    """What applies before the epoch that follows."""
    return list(m.get("decision", {}).get("changes", ()))


def reason_of(m: Manifest) -> str:
    """Why it was decided so."""
    return str(m.get("decision", {}).get("reason", ""))


def is_decision(m: Manifest) -> bool:
    """Whether anything was decided; between rounds nothing is."""
    return bool(changes_of(m) or m.get("round") or reason_of(m))


def told_change(change: Change) -> str:
    """One change.

    >>> told_change({"kind": "move", "partition": 7, "to": 2})
    'move partition 7 to slot 2'
    >>> told_change({"kind": "resize", "slots": 6})
    'have 6 slots'
    >>> told_change({"kind": "splitprefix", "partition": 7, "pieces": [[1, 2, 0], [6, 3, 1]]})
    'cut off partition 7: 01 to slot 0, 110 to slot 1'
    """
    match change:
        case {"kind": "move", "partition": partition, "to": to}:
            return f"move partition {partition} to slot {to}"
        case {"kind": "split", "partition": partition, "axis": axis, "at": at}:
            line = f"{str(axis).removesuffix('s')} {at}"
            owners = f"slots {change.get('first_to')} and {change.get('second_to')}"
            return f"split partition {partition} at {line}, to {owners}"
        case {"kind": "merge", "first": first, "second": second, "to": to}:
            return f"merge partitions {first} and {second}, to slot {to}"
        case {"kind": "splitprefix", "partition": partition, "pieces": pieces}:
            told = ", ".join(f"{named((code, bits))} to slot {to}" for code, bits, to in pieces)
            return f"cut off partition {partition}: {told}"
        case {"kind": "mergeprefix", "code": code, "bits": bits, "to": to}:
            return f"merge all of {named((code, bits))}, to slot {to}"
        case {"kind": "resize", "slots": slots}:
            return f"have {plural(slots, 'slot')}"
    return json.dumps(change)


def told_with_owners(change: Change, owners: Mapping[int, int]) -> str:
    """One change, by one who knows which slot had which partition before.

    >>> split = {"kind": "split", "partition": 41, "axis": "rows", "at": 512,
    ...     "first_to": 3, "second_to": 6}
    >>> told_with_owners(split, {41: 3})
    'split partition 41 of slot 3 at row 512 and gave the upper half to slot 6'
    >>> told_with_owners({"kind": "move", "partition": 7, "to": 2}, {7: 5})
    'moved partition 7 from slot 5 to slot 2'
    """
    match change:
        case {"kind": "move", "partition": partition, "to": to} if partition in owners:
            return f"moved partition {partition} from slot {owners[partition]} to slot {to}"
        case {"kind": "split", "partition": partition, "axis": axis, "at": at} if (
            partition in owners
        ):
            owner, line = owners[partition], f"{str(axis).removesuffix('s')} {at}"
            halves = ("lower", "upper") if axis == "rows" else ("left", "right")
            given = [
                f"the {half} half to slot {to}"
                for half, to in zip(
                    halves, (change.get("first_to"), change.get("second_to")), strict=True
                )
                if to != owner
            ]
            words = f"split partition {partition} of slot {owner} at {line}"
            return f"{words} and gave {' and '.join(given)}" if given else words
    return told_change(change)


def told_in_turn(changes: Sequence[Change], plan: Any) -> list[str]:
    """Changes of one decision, each by the owners after those before it; ``plan`` is the one that
    they change (``None``: it is gone, and nobody knows the owners).
    """
    words = []
    for change in changes:
        if plan is None:
            words.append(told_change(change))
            continue
        words.append(told_with_owners(change, {p.id: p.slot for p in plan.partitions}))
        plan = plan.apply(change_from_dict(change))
    return words


def told_changes(changes: Sequence[Change]) -> str:
    """How many of which kind.

    >>> told_changes([{"kind": "move"}, {"kind": "split"}, {"kind": "move"}])
    '2 moves, 1 split'
    """
    kinds = Counter(str(change.get("kind")).removesuffix("prefix") for change in changes)
    return ", ".join(plural(number, kind) for kind, number in kinds.items())


def told_round(closed: dict[str, Any]) -> str:
    """A SWARM round.

    >>> told_round({"number": 3, "stage": "good", "rebalancing": True})
    'round 3, stage good, rebalancing'
    """
    doing = "rebalancing" if closed.get("rebalancing") else "leaving the plan as it is"
    return f"round {closed.get('number')}, stage {closed.get('stage')}, {doing}"
