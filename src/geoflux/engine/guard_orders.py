"""Orders of an operator to a run that goes on: a small file each, taken in by the next epoch.

The command writes a whole file under a name of its own; the driver lists what is there when it
opens an epoch, fixes it in the intent, and deletes it once the epoch counts. A file whose deletion
a crash prevented is known by its name: the manifest has those that were taken.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from geoflux.engine.source import Rejected
from geoflux.errors import StateError
from geoflux.guard import Guard
from geoflux.state.store import Store

FOLDER = "guard/requests"
Op = Literal["block", "lift"]


@dataclass(frozen=True)
class Order:
    """A user is to be blocked, for so many seconds or until lifted, or a block to be lifted.

    >>> Order.from_dict({"op": "lift", "user": "ann"})
    Order(op='lift', user='ann', reason='', seconds=None)
    """

    op: Op
    user: str
    reason: str = ""
    seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> Order:
        """What :meth:`to_dict` gave; ``ValueError`` says what is wrong with anything else."""
        if not isinstance(values, Mapping) or values.get("op") not in ("block", "lift"):
            raise ValueError("expected an object whose op is block or lift")
        user, reason = values.get("user"), values.get("reason", "")
        if not isinstance(user, str) or not isinstance(reason, str):
            raise ValueError("expected texts as user and reason")
        given = values.get("seconds")
        seconds = None if given is None else float(given)
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"seconds is {given!r}; expected a number above 0, or none")
        return cls(values["op"], user, reason, seconds)

    def give(self, guard: Guard, now: float) -> None:
        """Carry it out."""
        if self.op == "block":
            guard.block(self.user, now, self.reason or "blocked by an operator", self.seconds)
        else:
            guard.lift(self.user)


def place(store: Store, order: Order) -> str:
    """Write an order down for the next epoch; returns the name of its file."""
    name = f"{FOLDER}/{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.json"
    store.write_json(name, order.to_dict())
    return name


def waiting(
    store: Store, known: Collection[str]
) -> tuple[list[Order], list[str], list[Rejected]]:  # fmt: skip
    """Orders in the order of their names, the files that they and others were in, and what could
    not be understood; ``known`` were taken before."""
    orders, files, rejected = [], [], []
    for base in store.names(FOLDER):
        name = f"{FOLDER}/{base}"
        if name in known:
            continue
        try:
            text = store.read_bytes(name).decode("utf-8", "replace")
        except StateError as error:
            if store.exists(name):  # else it was withdrawn meanwhile, by who placed it
                files.append(name)
                rejected.append(Rejected("bad_guard_request", str(error), ""))
            continue
        files.append(name)
        try:
            orders.append(Order.from_dict(json.loads(text)))
        except (ValueError, TypeError, RecursionError) as error:
            detail = f"{name} is no order to Guard: {error}"
            rejected.append(Rejected("bad_guard_request", detail, text[:1000]))
    return orders, files, rejected
