"""The epoch log: an intent before the work, a manifest after it; both atomic, both numbered.

An epoch counts when its manifest is there, and only then: what the manifest does not name was
never done. After a crash the last manifest tells where to go on, and an intent without a manifest
tells what the epoch in flight had fixed for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from geoflux.errors import StateError
from geoflux.state.store import Store

FORMAT = 1


@dataclass(frozen=True)
class EpochLog:
    """Intents and manifests of a run, as JSON files in its directory."""

    store: Store

    def numbers(self) -> list[int]:
        """All committed epochs."""
        return [int(name.split(".")[0]) for name in self.store.names("epochs/manifests")]

    def last(self) -> int | None:
        """The last committed epoch, or ``None`` before the first."""
        return max(self.numbers(), default=None)

    def intent(self, epoch: int) -> dict[str, Any] | None:
        """What the epoch fixed before its work, if it got that far."""
        name = _name("intents", epoch)
        return _checked(self.store.read_json(name), name) if self.store.exists(name) else None

    def manifest(self, epoch: int) -> dict[str, Any]:
        """What a committed epoch did."""
        name = _name("manifests", epoch)
        return _checked(self.store.read_json(name), name)

    def is_committed(self, epoch: int) -> bool:
        """Whether the epoch counts."""
        return self.store.exists(_name("manifests", epoch))

    def manifests(self) -> Iterator[dict[str, Any]]:
        """All committed epochs in order."""
        for epoch in self.numbers():
            yield self.manifest(epoch)

    def open(self, epoch: int, intent: dict[str, Any]) -> None:
        """Fix what the epoch will do."""
        self.store.write_json(_name("intents", epoch), {"format": FORMAT, **intent})

    def commit(self, epoch: int, manifest: dict[str, Any]) -> None:
        """Make the epoch count; its intent has served."""
        self.store.write_json(_name("manifests", epoch), {"format": FORMAT, **manifest})
        self.store.delete(_name("intents", epoch))


def _name(kind: str, epoch: int) -> str:
    return f"epochs/{kind}/{epoch:012d}.json"


def _checked(values: Any, name: str) -> dict[str, Any]:
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise StateError(f"{name} was written by another version of geoflux; use a new directory")
    return values
