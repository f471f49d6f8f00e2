"""What a micro-batch adds: waiting for the epoch to open, for the slowest slot, for the commit.

A record that comes while an epoch runs waits until the next one opens; its results can be seen when
the slowest slot of that epoch is done and the commit is written. With a trigger interval epochs
open so far apart, as long as they are done by then; else they follow one another, and then an epoch
is as long as it takes to do what came during the one before: that is an equation for its length.

All of it is a function of measured values. Records of an epoch are taken as a Poisson number; the
work of a slot as a gamma distributed time (Wilson and Hilferty's cube root makes it a normal one).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_GRID = 512
_LONGEST = 1e7
"""An epoch beyond so many of its fixed costs never ends."""


@dataclass(frozen=True)
class Epochs:
    """How a query makes its epochs; all in seconds, at least 0."""

    trigger: float = 0.0
    """Between the starts of two epochs; 0: one after the other."""
    overhead: float = 0.0
    """From the start of an epoch until its slots begin to work."""
    commit: float = 0.0
    """From when the slowest slot is done until results can be seen."""


@dataclass(frozen=True)
class SlotWork:
    """What the slots of an operator get: records a second in all, the busiest slot's share, how
    long one record takes (mean and squared coefficient of variation). ``dealt``: slots take the
    next record when they are free, instead of having their own."""

    rate: float
    slots: int
    service: float
    service_scv: float = 1.0
    heaviest: float | None = None
    """Share of the busiest slot; ``None``: all the same."""
    dealt: bool = False

    @property
    def shares(self) -> tuple[float, float]:
        """Of the busiest slot, and of any other."""
        if self.slots == 1:
            return 1.0, 0.0
        heavy = 1 / self.slots if self.heaviest is None else self.heaviest
        return heavy, (1 - heavy) / (self.slots - 1)

    @property
    def utilisation(self) -> float:
        """Of the busiest slot, if epochs cost nothing beside the work."""
        share = 1 / self.slots if self.dealt else self.shares[0]
        return self.rate * share * self.service


@dataclass(frozen=True)
class EpochDelay:
    """Where the time of a record goes, on average, in seconds."""

    open: float
    """Until an epoch opens."""
    overhead: float
    own: float
    """Until its own slot is done."""
    slowest: float
    """From then until the slowest slot is."""
    commit: float
    length: float
    """Mean length of an epoch."""

    @property
    def total(self) -> float:
        """From arrival until its results can be seen."""
        return self.open + self.overhead + self.own + self.slowest + self.commit


def epoch_delay(work: SlotWork, epochs: Epochs) -> EpochDelay | None:
    """What a record waits for; ``None`` if the slots do not keep up.

    >>> timed = epoch_delay(SlotWork(100.0, 2, 0.001), Epochs(1.0, overhead=0.1, commit=0.05))
    >>> timed.open, round(timed.total, 2)
    (0.5, 0.71)
    """
    if work.utilisation >= 1 or work.slots < 1:
        return None
    found = _rhythm(work, epochs)
    if found is None:
        return None
    length, spread, took = found
    share = 1.0
    if epochs.trigger == 0:
        # While nothing runs, the next record opens an epoch itself.
        during = work.rate * length
        share = during / (during + math.exp(-during))
    opens = share * length * (1 + spread) / 2
    came = work.rate * length * (1 + spread)
    slowest = share * _seen(work, came) + (1 - share) * work.service
    own = min(share * _own(work, came) + (1 - share) * work.service, slowest)
    return EpochDelay(opens, epochs.overhead, own, slowest - own, epochs.commit, took)


def slowest_slot(work: SlotWork, records: float) -> float:
    """Mean time until the last slot is done with so many records (a Poisson number of them).

    >>> round(slowest_slot(SlotWork(1.0, 1, 0.5), 10.0), 2)
    5.0
    """
    return _slowest(work, records)[0]


def _slowest(work: SlotWork, records: float) -> tuple[float, float]:
    """The mean and the variance of that time."""
    if records <= 0:
        return 0.0, 0.0
    if work.dealt:
        taken = records * (1 + work.service_scv) / work.slots**2
        last = work.service_scv * sum(1 / n**2 for n in range(1, work.slots + 1))
        return _dealt(work, records), (taken + last * -math.expm1(-records)) * work.service**2
    parts = list(zip(work.shares, (1, work.slots - 1), strict=True))
    means = [share * records * work.service for share, _ in parts]
    sds = [math.sqrt(share * records * (1 + work.service_scv)) * work.service for share, _ in parts]
    if work.slots == 1:
        return means[0], sds[0] ** 2
    end = max(m + 8 * sd for m, sd in zip(means, sds, strict=True)) + 8 * work.service
    times = np.linspace(0.0, end, _GRID)
    done = np.ones(_GRID)
    for mean, sd, (share, count) in zip(means, sds, parts, strict=True):
        if mean > 0:
            done *= _slot_done(times, mean, sd, math.exp(-share * records)) ** count
    left = 1 - done
    left[0] /= 2
    left[-1] /= 2
    step = end / (_GRID - 1)
    first, second = step * float(left.sum()), 2 * step * float(left @ times)
    return first, max(second - first**2, 0.0)


def _seen(work: SlotWork, records: float) -> float:
    """What a record sees that is in the epoch itself, beside those who came with it: of a Poisson
    number, one more adds the derivative."""
    if records <= 0:
        return work.service
    step = max(0.01 * records, 1e-3)
    low = max(records - step, 0.0)
    more = (slowest_slot(work, records + step) - slowest_slot(work, low)) / (records + step - low)
    return slowest_slot(work, records) + more


def _slot_done(times: Floats, mean: float, sd: float, nothing: float) -> Floats:
    """The chance that a slot is done by then; with chance ``nothing`` it had nothing to do."""
    some = 1 - nothing
    mean_some = mean / some
    variance = (sd**2 + mean**2) / some - mean_some**2
    shape = mean_some**2 / variance
    root = np.cbrt(times / mean_some)
    normal = (root - (1 - 1 / (9 * shape))) * 3 * math.sqrt(shape)
    return nothing + some * 0.5 * (1 + _erf(normal / math.sqrt(2)))


def _erf(x: Floats) -> Floats:
    """To 2e-7 (Abramowitz and Stegun 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    series = sum(c * t ** (n + 1) for n, c in enumerate(terms))
    return np.sign(x) * (1 - series * np.exp(-x * x))


def _dealt(work: SlotWork, records: float) -> float:
    """Slots take record after record: all are busy until the last one is taken, and then the last
    ``k`` come to an end; exact for exponential services."""
    k = work.slots
    counts = np.arange(1, int(records + 8 * math.sqrt(records)) + 10, dtype=np.float64)
    if records > 200:
        counts, weights = np.array([records]), np.ones(1)
    else:
        weights = np.exp(counts * math.log(records) - records - np.cumsum(np.log(counts)))
    busy = np.minimum(counts, k)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, k + 1))])
    last = np.interp(busy, np.arange(k + 1), harmonic) - 1
    ragged = 0.5 * (1 - min(work.service_scv, 1.0)) * (k - 1) / k * (counts > k)
    spans = (counts - busy) / k + 1 + math.sqrt(work.service_scv) * last + ragged
    return float(weights @ spans) * work.service


def _own(work: SlotWork, others: float) -> float:
    """Until the slot of a record is done, if so many others came with it."""
    if work.dealt:
        return (1 + others / work.slots) * work.service
    heavy, light = work.shares
    return (1 + others * (heavy**2 + (work.slots - 1) * light**2)) * work.service


def _rhythm(work: SlotWork, epochs: Epochs) -> tuple[float, float, float] | None:
    """The time between the starts of two epochs that repeats itself, its squared coefficient of
    variation, and how long an epoch takes.

    An epoch takes its fixed costs and the work that came since the one before started; the next
    starts when it is done, and not before the trigger. The slowest slot's time is not linear in
    what came, so variation counts: the mean is taken at three points."""
    fixed = epochs.overhead + epochs.commit
    length, variance = max(epochs.trigger, fixed + work.service), 0.0
    for _ in range(200):
        came = work.rate * length
        away = math.sqrt(3 * min(variance / length**2, 0.3))
        at = [_slowest(work, came * (1 + x)) for x in (-away, 0.0, away)]
        alone = math.exp(-came) * work.service if epochs.trigger == 0 else 0.0
        took = fixed + at[0][0] / 6 + 2 * at[1][0] / 3 + at[2][0] / 6 + alone
        slope = (at[2][0] - at[0][0]) / (2 * away * length) if away > 0 else work.utilisation
        slope = min(max(slope - work.rate * alone, 0.0), 0.999)
        varied = at[1][1] + slope**2 * variance
        new, new_variance, late = _after(took, varied, epochs.trigger)
        if abs(new - length) < 1e-9 * new and abs(new_variance - variance) < 1e-6 * new**2:
            return new, new_variance / new**2, took
        if new > _LONGEST * (fixed + work.service + epochs.trigger):
            return None
        # Newton's step: just going on would take as long as the slots are busy.
        length = max(length + (new - length) / (1 - slope * late), fixed, epochs.trigger)
        variance = new_variance
    return length, variance / length**2, took


def _after(took: float, variance: float, trigger: float) -> tuple[float, float, float]:
    """When the next epoch starts: mean and variance of the later of the trigger and the end, taken
    as normal, and the chance that it is the end."""
    sd = math.sqrt(variance)
    if trigger == 0 or sd == 0:
        return max(took, trigger), variance if took > trigger else 0.0, float(took > trigger)
    over = took - trigger
    late = 0.5 * (1 + math.erf(over / sd / math.sqrt(2)))
    density = math.exp(-((over / sd) ** 2) / 2) / math.sqrt(2 * math.pi)
    first = over * late + sd * density
    second = (over**2 + variance) * late + over * sd * density
    return trigger + first, max(second - first**2, 0.0), late
