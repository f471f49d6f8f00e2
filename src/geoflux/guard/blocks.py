"""The block list: whose requests are refused, since when, until when, and on what evidence.

A value: adding, lifting and expiry give a new list. What has ended is kept for a while, so that it
can still be explained.

Source: Guard 5.5 (Blocked Users); expiry, lifting and observing are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

By = Literal["guard", "operator"]

_PAST = 1000


@dataclass(frozen=True)
class Block:
    """One block. An ``observed`` one is only noted: it says what would have been done."""

    user: str
    since: float
    until: float | None
    by: By
    reason: str
    evidence: Mapping[str, Any] | None = None
    observed: bool = False
    ended: str | None = None
    """How it came to its end: ``lifted`` or ``expired``."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def told(self) -> str:
        """In one sentence."""
        verb = "would be blocked" if self.observed else "is blocked"
        if self.ended is not None:
            verb = f"was blocked ({self.ended})"
        return f"{self.user} {verb} by {self.by}: {self.reason}"


@dataclass(frozen=True)
class BlockList:
    """Blocks by user, and those that have ended.

    >>> blocks = BlockList().add(Block("a", 10.0, 70.0, "operator", "asked to"))
    >>> blocks.blocked, blocks.at(70.0).blocked
    (frozenset({'a'}), frozenset())
    >>> BlockList.from_dict(blocks.to_dict()) == blocks
    True
    """

    entries: Mapping[str, Block] = field(default_factory=dict)
    past: tuple[Block, ...] = ()

    @property
    def blocked(self) -> frozenset[str]:
        """Whose requests are refused."""
        return frozenset(name for name, block in self.entries.items() if not block.observed)

    def listed(self) -> list[Block]:
        """All blocks, also those that are only observed, oldest first."""
        return sorted(self.entries.values(), key=lambda block: (block.since, block.user))

    def add(self, block: Block) -> BlockList:
        """With one more. A block that holds is not replaced by one that is only observed, nor an
        operator's by Guard's."""
        known = self.entries.get(block.user)
        if known is not None and _holds_against(known, block):
            return self
        return BlockList({**self.entries, block.user: block}, self.past)

    def lift(self, user: str) -> BlockList:
        """Without the block of a user, if there is one."""
        return self._without({user: "lifted"})

    def at(self, now: float) -> BlockList:
        """Without the blocks that have expired by ``now``."""
        gone = {
            name: "expired"
            for name, block in self.entries.items()
            if block.until is not None and block.until <= now
        }
        return self._without(gone)

    def explain(self, user: str) -> list[Block]:
        """All that is known about a user's blocks, the newest first."""
        now = [self.entries[user]] if user in self.entries else []
        return now + [block for block in reversed(self.past) if block.user == user]

    def _without(self, gone: Mapping[str, str]) -> BlockList:
        ended = [
            Block(**{**_fields(block), "ended": gone[name]})
            for name, block in self.entries.items()
            if name in gone
        ]
        if not ended:
            return self
        kept = {name: block for name, block in self.entries.items() if name not in gone}
        return BlockList(kept, (*self.past, *ended)[-_PAST:])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "entries": [block.to_dict() for block in self.entries.values()],
            "past": [block.to_dict() for block in self.past],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BlockList:
        """What :meth:`to_dict` gave, also by way of JSON."""
        entries = [Block(**block) for block in values["entries"]]
        past = tuple(Block(**block) for block in values["past"])
        return cls({block.user: block for block in entries}, past)


def _holds_against(known: Block, block: Block) -> bool:
    if block.observed:
        return True
    return known.by == "operator" and block.by == "guard" and not known.observed


def _fields(block: Block) -> dict[str, Any]:
    return dict(vars(block))
