"""Guard's simulated slots: what their work costs, what they could carry, what they had to shed."""

from __future__ import annotations

from dataclasses import dataclass, replace

SLOTS = 22


@dataclass(frozen=True)
class Costs:
    """Seconds of a slot: per event, per query that an event is compared with, per query that is
    registered or ended, and per query that comes with a partition. A snapshot is compared with the
    events of its cell that are ``retained``, in seconds."""

    event: float = 8e-8
    check: float = 1.6e-9
    request: float = 5e-6
    moved: float = 1e-6
    retained: float = 15.0

    def of_scale(self, scale: float) -> Costs:
        """For a population of which each member stands for several: ``scale`` of them are there."""
        return replace(
            self, check=self.check / scale, request=self.request / scale, moved=self.moved / scale
        )


@dataclass(frozen=True)
class Sensed:
    """A hotspot as it was: who had placed how much there of late (in all, and in ``aimed`` by
    attackers at their targets), and whether it was made: most of what the donor had above the
    others was what attackers had placed there of late."""

    hotspot: int | None
    round: int
    now: float
    occasion: int
    donor: int
    box: tuple[int, int, int, int]
    recent: dict[str, int]
    aimed: dict[str, int]
    made: bool


@dataclass(frozen=True)
class Carried:
    """What the slots could have carried in an epoch, and what was offered."""

    now: float
    capability: float
    """Events a second."""
    offered: float

    @property
    def available(self) -> float:
        """The share of the events that is processed without delay."""
        return min(1.0, self.capability / self.offered)


@dataclass(frozen=True)
class Size:
    """Of a simulated cluster. ``load`` is the share of the slots' time that the events take which
    are offered, if the work were even."""

    slots: int = SLOTS
    side: int = 250
    load: float = 0.7
    epochs_between: int = 3
    """Epochs after which cities move on."""
