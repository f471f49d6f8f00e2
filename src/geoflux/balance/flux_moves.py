"""Which partitions move after a collection phase: Flux's load, memory and hybrid policies.

Sites are sorted and paired from both ends, the fullest with the emptiest. A pair moves at most one
partition a round: the first in the donor's list that makes the two more alike. The walk over the
pairs ends with the first one that is not unlike enough. A partition never goes where it is
predicted to be worse off: neither above full utilisation nor above what the donor has now.

Source: Flux 5.3 (load), 6.1 (memory), 6.3 (hybrid); seeds' trap 16 for the lost formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from geoflux.balance.flux_loads import SiteReport, any_spilled
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.plan.changes import Move

T = TypeVar("T")

_LEAST = 1e-9  # a smaller fall is rounding: two sites could swap a partition for ever


@dataclass(frozen=True)
class Site:
    """A site's utilisation and tuples in a phase, and what a tuple more or less would change."""

    report: SiteReport
    used: float
    processed: int

    @classmethod
    def of(cls, report: SiteReport, elapsed: float) -> Site:
        """What a report says of a phase of ``elapsed`` seconds."""
        return cls(report, report.utilisation(elapsed), report.processed)

    @property
    def per_tuple(self) -> float | None:
        """Utilisation by one tuple; ``None`` for a site that did nothing: it has no rate."""
        return self.used / self.processed if self.processed and self.used > 0 else None


def moves(
    reports: Sequence[SiteReport], elapsed: float, tuning: FluxTuning
) -> tuple[Move, ...]:  # fmt: skip
    """What moves after a phase of ``elapsed`` seconds, by the policy that is set."""
    if tuning.kind == "load":
        return load_moves(reports, elapsed, tuning)
    if tuning.kind == "memory":
        return memory_moves(reports, tuning)
    return hybrid_moves(reports, elapsed, tuning)


def load_moves(
    reports: Sequence[SiteReport], elapsed: float, tuning: FluxTuning
) -> tuple[Move, ...]:  # fmt: skip
    """Even out utilisation.

    >>> busy, calm = SiteReport(0, 0.0, {0: 60, 1: 40}), SiteReport(1, 0.8, {2: 20})
    >>> load_moves([busy, calm], 1.0, FluxTuning())
    (Move(partition=0, to=1),)
    """
    return _load_moves(reports, elapsed, tuning, lambda partition, donor, receiver: True)


def hybrid_moves(
    reports: Sequence[SiteReport], elapsed: float, tuning: FluxTuning
) -> tuple[Move, ...]:  # fmt: skip
    """Even out memory as long as anything is on disk, and otherwise utilisation, where the
    receiver has memory for what it gets. A site that has none for any partition is passed over
    when pairs are made: the least busy sites may be just those that are short of memory, and
    nobody would ever be relieved."""
    if any_spilled(reports):
        return memory_moves(reports, tuning)
    smallest = min((size for r in reports for size in r.sizes.values() if size), default=0)
    return _load_moves(
        reports, elapsed, tuning,
        lambda partition, donor, receiver: donor.sizes.get(partition, 0) <= receiver.excess,
        smallest,
    )  # fmt: skip


def memory_moves(reports: Sequence[SiteReport], tuning: FluxTuning) -> tuple[Move, ...]:
    """Even out excess memory; partitions in memory go before those on disk.

    The receiver may be full as well: then what is on disk is shared out evenly. The text does not
    say what the imbalance factor compares, since the excess may be negative: ours compares how full
    the two memories are, and a site whose states do not fit is relieved whatever the factor.

    >>> full = SiteReport(0, 0.0, {}, capacity=100, sizes={0: 70, 1: 50}, spilled={0: 8})
    >>> memory_moves([full, SiteReport(1, 0.0, {}, capacity=100)], FluxTuning())
    (Move(partition=1, to=1),)
    """
    if not reports:
        return ()
    order = sorted(reports, key=lambda report: (report.excess, report.slot))
    mean = fmean(report.excess for report in order)
    chosen = []
    for donor, receiver in _pairs(order):
        if donor.excess >= mean or not _fuller(donor, receiver, tuning):
            break
        for partition in _by_size(donor):
            if 0 < donor.sizes[partition] < receiver.excess - donor.excess:
                chosen.append(Move(partition, receiver.slot))
                break
    return tuple(chosen)


def utilisation_after(donor: Site, receiver: Site, tuples: int) -> tuple[float, float]:
    """The utilisations of a pair once a partition with so many tuples has moved, when neither its
    tuples nor the sites' rates change. A receiver without a rate is taken to be like the donor.

    >>> pair = Site.of(SiteReport(0, 0.0, {0: 8}), 1.0), Site.of(SiteReport(1, 1.0, {}), 1.0)
    >>> utilisation_after(*pair, 2)
    (0.75, 0.25)
    """
    if donor.per_tuple is None:
        return donor.used, receiver.used
    rate = receiver.per_tuple if receiver.per_tuple is not None else donor.per_tuple
    return donor.used - tuples * donor.per_tuple, receiver.used + tuples * rate


def _load_moves(
    reports: Sequence[SiteReport], elapsed: float, tuning: FluxTuning,
    allowed: Callable[[int, SiteReport, SiteReport], bool], room: int = 0,
) -> tuple[Move, ...]:  # fmt: skip
    if not reports:
        return ()
    sites = [Site.of(report, elapsed) for report in reports]
    order = sorted(sites, key=lambda site: (-site.used, site.report.slot))
    mean = fmean(site.used for site in order)
    receivers = [site for site in reversed(order) if room == 0 or site.report.excess >= room]
    chosen = []
    for donor, receiver in zip(order, receivers, strict=False):
        if donor.used < mean or donor.used <= receiver.used:
            break
        factor, below = tuning.bounds(min(donor.processed, receiver.processed))
        if receiver.used > below or donor.used < factor * receiver.used:
            break
        for partition, tuples in _by_tuples(donor.report.tuples):
            if _evens_out(donor, receiver, tuples) and allowed(
                partition, donor.report, receiver.report
            ):
                chosen.append(Move(partition, receiver.report.slot))
                break
    return tuple(chosen)


def _evens_out(donor: Site, receiver: Site, tuples: int) -> bool:
    """Whether a move brings the two closer and lowers the higher of them, so that no receiver gets
    above 1. With equal rates the one is the other; a receiver that is much slower could be closer
    and yet higher than the donor."""
    given, got = utilisation_after(donor, receiver, tuples)
    closer = abs(given - got) < donor.used - receiver.used
    return closer and max(given, got) < donor.used - _LEAST


def _fuller(donor: SiteReport, receiver: SiteReport, tuning: FluxTuning) -> bool:
    """The threshold test for memory."""
    if donor.excess < 0:
        return True
    return receiver.excess < math.inf and donor.fullness > tuning.imbalance * receiver.fullness


def _pairs(order: Sequence[T]) -> Iterator[tuple[T, T]]:
    """The first with the last, the second with the last but one, and so on to the middle."""
    return ((order[i], order[-1 - i]) for i in range(len(order) // 2))


def _by_tuples(tuples: Mapping[int, int]) -> list[tuple[int, int]]:
    return sorted(tuples.items(), key=lambda item: (-item[1], item[0]))


def _by_size(report: SiteReport) -> list[int]:
    """Partitions in memory by size, largest first, then those on disk."""
    sizes = report.sizes
    return sorted(sizes, key=lambda p: (p in report.spilled, -sizes[p], p))
