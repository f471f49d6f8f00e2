"""What every engine keeps of its epochs: their log, its plans, the segments that nobody needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

Manifest = dict[str, Any]


class Versioned(Protocol):
    """A plan, as far as it is written down."""

    @property
    def version(self) -> int:
        """Grows with every change."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        ...


class Epochs:
    """The committed epochs of a run's directory; engines build on it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log = EpochLog(store)
        self._dropped: frozenset[str] = frozenset()
        self.last: int | None = None

    def manifest(self, epoch: int) -> Manifest:
        """What a committed epoch did."""
        return self._log.manifest(epoch)

    def is_committed(self, epoch: int) -> bool:
        """Whether the epoch counts already."""
        return self.last is not None and epoch <= self.last

    def _collect_garbage(self, before: frozenset[str], live: frozenset[str]) -> None:
        """Delete segments that the last *two* manifests do without: a straggling attempt of the
        epoch just committed may still read what its task named."""
        for name in self._dropped - live:
            self._store.delete(name)
        self._dropped = before - live


def write_plan(store: Store, plan: Versioned) -> None:
    """Write a plan down under its version."""
    store.write_json(_plan_name(plan.version), plan.to_dict())


def read_plan(store: Store, version: int) -> dict[str, Any]:
    """The plain values of a plan."""
    values: dict[str, Any] = store.read_json(_plan_name(version))
    return values


def begun_with(store: Store, first_plan: Callable[[], Versioned]) -> dict[str, Any]:
    """The plan of a directory without epochs; made, and written down, only once."""
    if not store.exists(_plan_name(1)):
        write_plan(store, first_plan())
    return read_plan(store, 1)


def _plan_name(version: int) -> str:
    return f"plans/{version:08d}.json"
