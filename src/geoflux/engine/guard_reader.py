"""A look at Guard beside a run: who is blocked, and why, as of the newest committed epoch.

It reads what the newest manifest names and changes nothing. Orders are left for the run to take in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geoflux.config import Config
from geoflux.engine.guard_orders import Order, place, waiting
from geoflux.engine.guard_state import GuardState, tuning_of
from geoflux.errors import ConfigError, StateError
from geoflux.guard import Block, BlockList
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import store_of
from geoflux.state.store import Store

_RUN = "run.json"
_ATTEMPTS = 5


@dataclass(frozen=True)
class GuardView:
    """What Guard knew after an epoch (``None``: before the first), and orders that wait."""

    epoch: int | None
    enabled: bool
    observing: bool
    round: int
    blocks: BlockList
    waiting: tuple[Order, ...]
    suspects: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Who is suspected, with the hotspots that speak against them."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values; blocks without their evidence, which is long."""
        return {
            "epoch": self.epoch, "enabled": self.enabled, "observe_only": self.observing,
            "round": self.round, "blocks": [brief(block) for block in self.blocks.listed()],
            "ended": [brief(block) for block in self.blocks.past],
            "waiting": [order.to_dict() for order in self.waiting],
        }  # fmt: skip


def brief(block: Block) -> dict[str, Any]:
    """A block without its evidence."""
    return {name: value for name, value in block.to_dict().items() if name != "evidence"}


def guard_view(out: str | Path) -> GuardView:
    """Guard of a run's directory, stopped or not."""
    store, config = _run(out)
    grid = Grid(Space.of(config.space), *config.space.grid)
    log = EpochLog(store)
    for attempt in range(_ATTEMPTS):
        last = log.last()
        manifest = {} if last is None else log.manifest(last)
        state = GuardState.of(manifest) or GuardState()
        try:
            guard = state.guard(store, grid, tuning_of(config.guard, grid))
        except StateError:
            # A state is deleted only after a manifest that does without it was written.
            if attempt == _ATTEMPTS - 1 or log.last() == last:
                raise
            continue
        taken = (manifest.get("guard") or {}).get("taken", ())
        orders, _, _ = waiting(store, taken)
        return GuardView(
            last, config.guard.enabled, config.guard.observe_only, guard.rounds.current,
            guard.blocks, tuple(orders), guard.suspects,
        )  # fmt: skip
    raise AssertionError("an attempt either answers or raises")


def give_order(out: str | Path, order: Order) -> str:
    """Leave an order for the next epoch of a run; refused where nobody would take it in."""
    store, config = _run(out)
    if not config.guard.enabled:
        raise ConfigError(
            f"{out} runs without Guard, so nobody would take this in; run it with "
            "guard.enabled = true"
        )
    return place(store, order)


def _run(out: str | Path) -> tuple[Store, Config]:
    store = store_of(out)
    if not store.exists(_RUN):
        raise StateError(f"{out} holds no run; give the directory that geoflux run wrote")
    noted = store.read_json(_RUN)
    if noted.get("operator"):
        raise StateError(
            f"{out} holds a run of the operator {noted['operator']}, which has no users to guard"
        )
    return store, Config.restored(noted["config"])
