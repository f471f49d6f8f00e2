"""Getting processors from whoever has them, and giving them back.

A negotiator is asked again and again, at every look of the scaling: ``want`` never waits. It says
what the cluster manager is to have, ends what is idle or lets it leave gracefully, and answers with
what is there. What an executor had shuffled is lost with it; Spark computes it again in the same
epoch, and epochs count by their manifests alone, so results stay exact.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from pyspark.sql import SparkSession

from geoflux.scale.executors import Answer, Room, Steps, answer_to, have, room_of, steps_for
from geoflux.spark.allocation import Allocation, SparkAllocation

Clock = Callable[[], float]


class Negotiator(Protocol):
    """Who gets or releases processors."""

    def have(self) -> int:
        """Processors that take tasks now."""

    def most(self) -> int | None:
        """As many as there can ever be; ``None``: only the cluster knows."""

    def want(self, processors: int) -> Answer:
        """Have at least so many from now on, as few more as possible; returns at once."""


class LocalCores:
    """``local[N]``: the cores are what they are, and none is given back."""

    def __init__(self, room: Room) -> None:
        self._room = room

    def have(self) -> int:
        """All that there are."""
        return self._room.per_executor

    def most(self) -> int | None:
        """No more than that."""
        return self._room.most

    def want(self, processors: int) -> Answer:
        """Enough, or a sentence that says what to do.

        >>> LocalCores(Room("local", 2, 2, "local[2]")).want(3).reason
        'local[2] has 2 processors and 3 were wanted; start it with local[3], or use a cluster'
        """
        _check(processors)
        there, master = self.have(), self._room.because
        if processors <= there:
            return Answer(processors, there, "met", f"{master} has {there} processors")
        return Answer(
            processors, there, "short", f"{master} has {there} processors and {processors} were "
            f"wanted; start it with local[{processors}], or use a cluster",
        )  # fmt: skip


class SparkExecutors:
    """Executors of ``local-cluster``, standalone, YARN and Kubernetes. A wish that is not met
    ``patience`` seconds after it was first uttered is answered as ``short``."""

    def __init__(
        self, allocation: Allocation, room: Room, patience: float = 60.0,
        clock: Clock = time.monotonic,
    ) -> None:  # fmt: skip
        self._allocation, self._room, self._patience = allocation, room, patience
        self._clock = clock
        self._wanted: int | None = None
        self._since = 0.0
        self._asked: int | None = None

    def have(self) -> int:
        """Processors of executors that stay."""
        return have(self._allocation.executors())

    def most(self) -> int | None:
        """As the settings allow for."""
        return self._room.most

    def want(self, processors: int) -> Answer:
        """Ask for what lacks, let go what is too much, and say what is there."""
        _check(processors)
        before = self._allocation.executors()
        steps = steps_for(processors, before, self._room, self._allocation.graceful)
        if processors != self._wanted:
            self._wanted, self._since = processors, self._clock()
        refused = self._carry_out(steps)
        now = self._allocation.executors()
        waited = self._clock() - self._since
        told = answer_to(processors, now, self._room, waited, self._patience)
        if refused and told.state == "waiting":
            reason = (
                f"Spark did not take the wish for {steps.total} executors; work goes on with "
                f"{told.have} processors, and it is asked again"
            )
            told = replace(told, state="short", reason=reason)
        return replace(told, steps=steps)

    def _carry_out(self, steps: Steps) -> bool:
        """Whether the total was refused; nobody is let go then."""
        if steps.total != self._asked:
            if not self._allocation.request(steps.total):
                self._asked = None
                return True
            self._asked = steps.total
        if steps.end:
            self._allocation.end_idle(steps.end)
        if steps.retire:
            self._allocation.retire(steps.retire)
        return False


def negotiator_for(spark: SparkSession, patience: float = 60.0) -> Negotiator:
    """The one for a session, by its master; a :class:`~geoflux.errors.ConfigError` where executors
    cannot be negotiated for."""
    allocation = SparkAllocation(spark)
    room = room_of(allocation.master, allocation.settings, os.cpu_count() or 1)
    if room.manager == "local":
        return LocalCores(room)
    return SparkExecutors(allocation, room, patience)


def settled(
    negotiator: Negotiator, processors: int, longest: float,
    pause: Callable[[float], None] = time.sleep, clock: Clock = time.monotonic,
) -> Answer:  # fmt: skip
    """Ask until the wish is met or will not be, at most ``longest`` seconds; the last answer."""
    end = clock() + longest
    while True:
        answer = negotiator.want(processors)
        if answer.state != "waiting" or clock() >= end:
            return answer
        pause(0.1)


def _check(processors: int) -> None:
    if processors < 1:
        raise ValueError(f"{processors} processors were wanted; at least 1 is needed to go on")
