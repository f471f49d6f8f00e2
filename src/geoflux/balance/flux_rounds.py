"""The rounds of Flux's controller: how long it collects before it decides again.

A collection phase takes as long as the moves before it did, half as long as the last one when
nothing moved, and never less than a minimum. So at most half the time goes into moving. Ours takes
twice as long instead when nothing moved only because what was seen could be chance.

The minimum is what keeps the policy from overreacting: with short phases and skewed input it sees
noise, shifts the popular partitions about, and is slower than doing nothing. The paper leaves
tuning it to future work. Ours learns it from two signs that moves were made on noise: most of the
work that moves now had moved lately already, or the stage did not gain what was promised, by more
than chance explains. Either doubles the minimum; moves that hold lower it a little, quiet rounds
hardly.

Source: Flux 5.3 (duration), 5.4 and 8 (overreaction, automatic tuning as future work).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from geoflux.balance.flux_loads import SiteReport, any_spilled, rate_when_full
from geoflux.balance.flux_moves import Site, utilisation_after
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.plan.changes import Move

_GROWTH = 2.0
_AFTER_GOOD_MOVES = 0.9
_AFTER_QUIET = 0.99
_SIGMAS = 2.0


@dataclass(frozen=True)
class Promise:
    """What moves were to bring: the rate of the stage before them, the factor by which it was to
    grow (1: not at all), and the chance error of that rate, as a share."""

    rate: float
    factor: float
    error: float


@dataclass(frozen=True)
class FluxRounds:
    """All that the controller remembers between rounds.

    >>> reports = [SiteReport(0, 0.0, {3: 90, 4: 90}), SiteReport(1, 0.01, {})]
    >>> rounds = FluxRounds.first(FluxTuning())
    >>> rounds = rounds.after([Move(3, 1)], 0.08, reports, 0.01, FluxTuning())
    >>> rounds.collect
    0.08
    >>> rounds.after([], 0.0, [], 0.08, FluxTuning()).collect
    0.04
    """

    collect: float
    """Seconds of the collection phase under way."""
    minimum: float
    """What a collection phase takes at least, at present."""
    recent: tuple[tuple[int, ...], ...] = ()
    """The partitions that moved in each of the last rounds, the latest first."""
    promise: Promise | None = None
    """Of the last round's moves; ``None`` when there were none or none that can be held to it."""

    @classmethod
    def first(cls, tuning: FluxTuning) -> FluxRounds:
        """Before the first round."""
        return cls(tuning.collect_min, tuning.collect_min)

    def after(
        self, moved: Sequence[Move], move_seconds: float, reports: Sequence[SiteReport],
        elapsed: float, tuning: FluxTuning,
    ) -> FluxRounds:  # fmt: skip
        """The next round: ``reports`` on a phase of ``elapsed`` seconds led to these moves, which
        took ``move_seconds``."""
        partitions = tuple(move.partition for move in moved)
        minimum = self._minimum(partitions, reports, elapsed, tuning)
        wanted = move_seconds if moved else self._after_nothing(reports, elapsed, tuning)
        return FluxRounds(
            max(minimum, wanted), minimum,
            (partitions, *self.recent)[: tuning.again_within],
            promise_of(moved, reports, elapsed) if moved else None,
        )  # fmt: skip

    def _minimum(
        self, moved: tuple[int, ...], reports: Sequence[SiteReport], elapsed: float,
        tuning: FluxTuning,
    ) -> float:  # fmt: skip
        if not tuning.self_tuning:
            return tuning.collect_min
        if self._again(moved, reports) or self._is_broken(reports, elapsed):
            factor = _GROWTH
        else:
            factor = _AFTER_GOOD_MOVES if self.promise is not None else _AFTER_QUIET
        highest = max(tuning.collect_min, tuning.collect_max)
        return min(highest, max(tuning.collect_min, self.minimum * factor))

    def _after_nothing(
        self, reports: Sequence[SiteReport], elapsed: float, tuning: FluxTuning
    ) -> float:
        """Half of the last phase, as published. Ours looks twice as long instead where sites
        differ enough to be acted on, but so few tuples were counted that it may be chance."""
        used = [r.utilisation(elapsed) for r in reports]
        differ = max(used, default=0.0) >= tuning.strictest * min(used, default=0.0) > 0
        fewest = min((r.processed for r in reports), default=0)
        if tuning.self_tuning and differ and tuning.bounds(fewest)[0] > tuning.strictest:
            return min(2 * self.collect, max(tuning.collect_max, self.collect / 2))
        return self.collect / 2

    def _again(self, moved: tuple[int, ...], reports: Sequence[SiteReport]) -> bool:
        """Whether at least half of the work that moves now had moved lately."""
        lately = {partition for partitions in self.recent for partition in partitions}
        tuples = {p: count for report in reports for p, count in report.tuples.items()}
        work = sum(tuples.get(p, 0) for p in moved)
        again = sum(tuples.get(p, 0) for p in moved if p in lately)
        return any(p in lately for p in moved) and 2 * again >= work

    def _is_broken(self, reports: Sequence[SiteReport], elapsed: float) -> bool:
        """Whether not even half of the promised gain is there, beyond what chance explains."""
        now = promise_of((), reports, elapsed)
        if self.promise is None or now is None:
            return False
        expected = (1 + self.promise.factor) / 2
        chance = _SIGMAS * math.hypot(self.promise.error, now.error)
        return now.rate < self.promise.rate * (expected - chance)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {**asdict(self), "recent": [list(partitions) for partitions in self.recent]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FluxRounds:
        """What :meth:`to_dict` gave, also by way of JSON."""
        promise = values["promise"]
        return cls(
            values["collect"], values["minimum"],
            tuple(tuple(partitions) for partitions in values["recent"]),
            None if promise is None else Promise(**promise),
        )  # fmt: skip


def promise_of(
    moved: Sequence[Move], reports: Sequence[SiteReport], elapsed: float
) -> Promise | None:
    """What moves are expected to bring: the rate grows as the highest utilisation falls. ``None``
    when nothing was processed, or when partitions are on disk: then time goes into reading and
    writing, and utilisation tells nothing.

    >>> reports = [SiteReport(0, 0.0, {0: 300, 1: 100}), SiteReport(1, 1.0, {})]
    >>> promise_of([Move(1, 1)], reports, 1.0)
    Promise(rate=400.0, factor=1.3333333333333333, error=0.05)
    """
    rate = rate_when_full(reports, elapsed)
    if rate is None or any_spilled(reports):
        return None
    sites = {report.slot: Site.of(report, elapsed) for report in reports}
    owner = {p: report.slot for report in reports for p in (*report.sizes, *report.tuples)}
    used = {slot: site.used for slot, site in sites.items()}
    for move in moved:
        donor, receiver = sites[owner[move.partition]], sites[move.to]
        tuples = donor.report.tuples.get(move.partition, 0)
        given, got = utilisation_after(donor, receiver, tuples)
        used[donor.report.slot], used[move.to] = given, got
    highest = max(site.used for site in sites.values())
    busiest = max(site.processed for site in sites.values() if site.used == highest)
    ahead = max(used.values())
    factor = highest / ahead if ahead > 0 else 1.0
    return Promise(rate, factor, 1 / math.sqrt(max(busiest, 1)))
