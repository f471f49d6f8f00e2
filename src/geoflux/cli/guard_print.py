"""What Guard knows, for a person: the list of blocks, and the evidence of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from geoflux.chronicle.wording import plural
from geoflux.engine.guard_orders import Order
from geoflux.engine.guard_reader import GuardView
from geoflux.guard import Block

_SHOWN = 8


def print_blocks(console: Console, view: GuardView) -> None:
    """Who is blocked, oldest first, and what waits."""
    blocks = view.blocks.listed()
    where = "before the first epoch" if view.epoch is None else f"after epoch {view.epoch:,}"
    if not view.enabled:
        console.print("Guard is off: nobody is refused (guard.enabled = false)", highlight=False)
    words = f"{plural(len(blocks), 'user')} blocked" if blocks else "nobody is blocked"
    if view.observing:
        words += "; observing only, nobody is refused"
    console.print(f"{words} {where}, round {view.round}", style="bold", highlight=False)
    if blocks:
        table = Table("user", "since", "until", "by", "why")
        for block in blocks:
            why = f"(would be) {block.reason}" if block.observed else block.reason
            row = (block.user, moment(block.since), until(block), block.by, why)
            table.add_row(*map(escape, row))
        console.print(table, highlight=False)
    for order in view.waiting:
        console.print(escape(f"waits for the next epoch: {order.op} {order.user}"), highlight=False)


def print_order(console: Console, order: Order) -> None:
    """That an order was left."""
    words = "will be refused" if order.op == "block" else "will be let in again"
    told = f"{order.user} {words} from the next epoch of the run on"
    console.print(escape(told), highlight=False)


def print_explanation(console: Console, user: str, found: Sequence[Block]) -> None:
    """A user's blocks, the newest first, with what spoke against them."""
    if not found:
        console.print(escape(f"{user} is not blocked, and was not lately"), highlight=False)
    for block in found:
        console.print(escape(block.told()), style="bold", highlight=False)
        console.print(f"since {moment(block.since)}, until {until(block)}", highlight=False)
        if block.evidence is not None:
            _print_evidence(console, block.evidence)


def _print_evidence(console: Console, evidence: Mapping[str, Any]) -> None:
    names = evidence["cluster"]
    others = ", ".join(str(name) for name in names[:_SHOWN])
    more = evidence["cluster_size"] - min(len(names), _SHOWN)
    rounds = ", ".join(str(number) for number in evidence["rounds"])
    console.print(f"rounds {rounds}", highlight=False)
    with_whom = others + (f" and {more} more" if more > 0 else "")
    console.print(escape(f"found together: {with_whom}"), highlight=False)
    hotspots = Table("hotspots", "round", "queries there", "of their recent ones", "place (cells)")
    for hotspot in evidence["hotspots"]:
        hotspots.add_row(
            ", ".join(str(number) for number in _ids(hotspot)), str(hotspot.get("round", "")),
            _figure(hotspot.get("queries")), _share(hotspot.get("rate")),
            _place(hotspot),
        )  # fmt: skip
    console.print(hotspots, highlight=False)
    features = Table("feature", "value")
    for name, value in evidence["features"].items():
        features.add_row(name.replace("_", " "), _figure(value))
    console.print(features, highlight=False)


def _ids(hotspot: Mapping[str, Any]) -> list[Any]:
    given = hotspot.get("hotspots", hotspot.get("hotspot", []))
    return list(given) if isinstance(given, list | tuple) else [given]


def _place(hotspot: Mapping[str, Any]) -> str:
    """Where it was; slots that were added are added for all that there is.

    >>> _place({"kind": "plan", "place": [1.2, 0.0, 3.0, 4.0]}), _place({"kind": "scale_out"})
    ('1, 0, 3, 4', 'more slots')
    """
    if hotspot.get("kind") == "scale_out":
        return "more slots"
    place = hotspot.get("place")
    return "" if place is None else ", ".join(f"{edge:.0f}" for edge in place)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def moment(seconds: float) -> str:
    """A time for a person, in UTC.

    >>> moment(0.0)
    '1970-01-01 00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def until(block: Block) -> str:
    """When a block ends."""
    return "lifted" if block.until is None else moment(block.until)
