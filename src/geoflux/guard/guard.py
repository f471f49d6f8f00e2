"""Guard as one thing to hold: requests and hotspots in, refusals and verdicts out.

Nothing here knows a clock, a source of chance or Spark: what it says follows from what it was
handed and from its state, which is plain values. A restarted driver that reads the state back
judges exactly as the one before would have.

Source: Guard 5.2, figure 5.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.guard.blocks import Block, BlockList
from geoflux.guard.features import FeatureTable
from geoflux.guard.gathering import Gathered, gathered
from geoflux.guard.parts import is_entered
from geoflux.guard.published import PublishedState, judge_published
from geoflux.guard.receiver import stamp
from geoflux.guard.robust import RobustState, judge_robust
from geoflux.guard.rounds import Rounds
from geoflux.guard.sensor import Summary
from geoflux.guard.sightings import Sighting
from geoflux.guard.tuning import GuardTuning
from geoflux.guard.verdicts import Accusation, Verdict


class Guard:
    """Watches who is behind the hotspots.

    Guarantee: only :meth:`close` blocks, and an operator; a block of Guard's own always has its
    evidence; the same calls in the same order give the same verdicts, also when the state went
    through :meth:`to_dict` in between.

    >>> guard = Guard(GuardTuning())
    >>> guard.receive([0, 0], ["a", None], now=0.0, next_number=0).tolist()
    [False, False]
    >>> guard.is_due(60.0), guard.close(60.0, next_number=2).reason
    (True, 'warming up: everything is new')
    """

    def __init__(self, tuning: GuardTuning) -> None:
        self.tuning = tuning
        self.rounds = Rounds()
        self.blocks = BlockList()
        self._table = FeatureTable(tuning)
        self._next_hotspot = 1
        self._sightings: list[Sighting] = []
        self._keys: list[list[Any]] = []
        """Of the hotspots of this round and the one before, to know a summary that came twice."""
        self._published = PublishedState()
        self._robust = RobustState()

    @property
    def suspects(self) -> dict[str, tuple[dict[str, Any], ...]]:
        """Who is suspected, with the hotspots that speak against them, as plain values."""
        if self.tuning.mode == "robust":
            return {
                name: tuple(one.to_dict() for one in suspect.evidence)
                for name, suspect in self._robust.suspects.items()
            }
        return {
            name: tuple({"hotspot": h, "round": cluster.round} for h in cluster.hotspots)
            for cluster in self._published.clusters
            for name in cluster.users
        }

    def receive(
        self, op: Any, users: Any, now: float, next_number: int, at: Any = None
    ) -> npt.NDArray[np.bool_]:  # fmt: skip
        """Take in a batch of requests in columns; says which are refused. ``next_number`` is the
        number of the first query that the batch may register; ``at`` is x and y of every query in
        cells, also of those that end: without it nobody is seen to move in."""
        self.rounds = self.rounds.started(now, next_number)
        self.blocks = self.blocks.at(now)
        requests = stamp(op, users, self.rounds.current, at)
        blocked = self.blocks.blocked
        refused = requests.refused(blocked)
        if blocked:
            names = requests.users
            theirs = np.array([name in blocked for name in names] + [False], np.bool_)
            requests = requests.only(~theirs[requests.user])
        self._table.count(requests)
        return refused

    def sense(self, summary: Summary) -> int | None:
        """Take in a hotspot; gives its id, or ``None`` if it was known already."""
        key = [*summary.key]
        if any(known[:3] == key for known in self._keys):
            return None
        hotspot = self._next_hotspot
        self._next_hotspot += 1
        now = self.rounds.current
        self._keys.append([*key, now])
        summary = _without(summary, self.blocks.blocked)
        involved = self._table.involve(hotspot, summary, now)
        self._table.mark_low(involved.rows[involved.recent > 0], summary.kind)
        self._sightings.append(Sighting.of(hotspot, summary, involved, now))
        return hotspot

    def is_due(self, now: float) -> bool:
        """Whether there is something to judge: the detection round has lasted its time, or users
        were seen moving into a hotspot that is about to be relieved."""
        return self.rounds.is_due(now, self.tuning.round_seconds) or self._is_early(now)

    def _is_early(self, now: float) -> bool:
        """Whether to judge before the round is over; there is no reason to wait while a plan is
        being chased."""
        return (
            self.tuning.mode == "robust" and self.tuning.judge_early
            and not self.rounds.is_due(now, self.tuning.round_seconds)
            and self.rounds.current >= self.tuning.warm_up_rounds
            and any(is_entered(one.sighting, self.tuning) for one in self._gathered())
        )  # fmt: skip

    def _gathered(self) -> list[Gathered]:
        """The hotspots of the round so far, pieces put together."""
        limits = [self.tuning.least_rate] * len(self._sightings)
        return gathered(self._sightings, limits, self.tuning)

    def close(self, now: float, next_number: int) -> Verdict:
        """Judge the round, block who is accused, begin the next one. Where it is only judged early,
        the round goes on; its hotspots have been judged then."""
        round, early = self.rounds.current, self._is_early(now)
        features = self._table.so_far() if early else self._table.close()
        if self.tuning.mode == "robust":
            verdict, self._robust = judge_robust(
                features, self._sightings, self._robust, round, self.tuning
            )
        else:
            verdict, self._published = judge_published(
                features, self._sightings, self._published, round, self.tuning
            )
        self.blocks = self.blocks.at(now)
        for accusation in verdict.accused:
            self.blocks = self.blocks.add(self._block(accusation, now))
        self._sightings = []
        self._forget(self.blocks.blocked)
        if early:
            return verdict
        self._table.forget_idle(self._robust.suspects)
        self.rounds = self.rounds.next(now, next_number)
        self._keys = [known for known in self._keys if known[3] >= round]
        return verdict

    def block(self, user: str, now: float, reason: str, seconds: float | None = None) -> None:
        """An operator's block."""
        until = None if seconds is None else now + seconds
        self.blocks = self.blocks.add(Block(user, now, until, "operator", reason))
        self._forget({user})

    def lift(self, user: str) -> bool:
        """Lift a block; the user begins anew. Says whether there was one."""
        before, self.blocks = self.blocks, self.blocks.lift(user)
        self._forget({user})
        return self.blocks != before

    def _block(self, accusation: Accusation, now: float) -> Block:
        seconds = self.tuning.block_seconds
        return Block(
            accusation.user, now, None if seconds is None else now + seconds, "guard",
            accusation.reason, accusation.to_dict(), self.tuning.observe_only,
        )  # fmt: skip

    def _forget(self, users: frozenset[str] | set[str]) -> None:
        """Nobody who is blocked takes part in what is normal, or is tried twice."""
        known = users & set(self._table.users)
        if known:
            self._table.forget(known)
            self._robust = self._robust.without(known)
            self._sightings = [_unseen(sighting, known) for sighting in self._sightings]

    def to_dict(self) -> dict[str, Any]:
        """All that is remembered, as plain values, for the manifest."""
        return {
            "mode": self.tuning.mode, "rounds": self.rounds.to_dict(),
            "blocks": self.blocks.to_dict(), "table": self._table.to_dict(),
            "next_hotspot": self._next_hotspot, "keys": [list(key) for key in self._keys],
            "sightings": [sighting.to_dict() for sighting in self._sightings],
            "published": self._published.to_dict(), "robust": self._robust.to_dict(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, tuning: GuardTuning, values: Mapping[str, Any]) -> Guard:
        """What :meth:`to_dict` gave, also by way of JSON; of nothing, Guard at the start. If the
        mode was changed meanwhile, blocks and rounds stay and the rest begins anew."""
        guard = cls(tuning)
        if not values:
            return guard
        guard.rounds = Rounds.from_dict(values["rounds"])
        guard.blocks = BlockList.from_dict(values["blocks"])
        guard._next_hotspot = values["next_hotspot"]
        guard._keys = [list(key) for key in values["keys"]]
        if values["mode"] == tuning.mode:
            guard._table = FeatureTable.from_dict(tuning, values["table"])
            guard._sightings = [Sighting.from_dict(s) for s in values["sightings"]]
            guard._published = PublishedState.from_dict(values["published"])
            guard._robust = RobustState.from_dict(values["robust"])
        return guard


def _without(summary: Summary, users: Collection[str]) -> Summary:
    """A summary without users whose old queries are still there."""
    kept = [i for i, name in enumerate(summary.users) if name not in users]
    if len(kept) == len(summary.users):
        return summary
    places = None if summary.places is None else summary.places[kept]
    names = tuple(summary.users[i] for i in kept)
    return replace(summary, users=names, counts=summary.counts[kept], places=places)


def _unseen(sighting: Sighting, users: Collection[str]) -> Sighting:
    return sighting.only([i for i, name in enumerate(sighting.users) if name not in users])
