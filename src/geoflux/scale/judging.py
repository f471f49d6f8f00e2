"""What became of a change: what it cost, whether it helped, and what the model leaves out."""

from __future__ import annotations

from dataclasses import replace

from geoflux.scale.decisions import Look, piled_up, told
from geoflux.scale.memory import Failed, OnTrial, ScaleMemory
from geoflux.scale.sojourn import Prediction
from geoflux.scale.tuning import ScaleTuning

_WEIGHT = 0.5
"""Of what was known before, for costs and for the offset."""
_SURE = 0.9
"""Beyond this utilisation the model's time says little about a measured one."""

_PILED_SECONDS = 1.0
"""Where more than the inputs of so long have piled up, a time is that of the pile."""


def judged(known: ScaleMemory, look: Look, tuning: ScaleTuning) -> tuple[ScaleMemory, str | None]:
    """After a change: adds up what it costs while it settles, then whether it helped. The second
    says that it is still settling, or what came of it."""
    trial = known.trial
    if trial is None:
        return known, None
    if dict(trial.before) == dict(look.allocation) and not _overdue(known, look, tuning):
        # Executors take their time to come and go; until then there is nothing to settle.
        waiting = replace(trial, at=look.now, looked_at=look.now)
        return replace(known, trial=waiting), "the last change is not there yet"
    if dict(trial.after) != dict(look.allocation):
        return replace(known, trial=None), None  # somebody else has changed it since
    passed = look.now - trial.looked_at
    if look.sojourn is not None:
        trial = replace(trial, cost=trial.cost + max(look.sojourn - trial.promised, 0.0) * passed)
    trial = replace(trial, looked_at=look.now)
    if look.now - trial.at < tuning.settle or look.sojourn is None:
        return replace(known, trial=trial), "the last change is settling"
    before = known.costs.get(trial.action, trial.cost)
    costs = {**known.costs, trial.action: _WEIGHT * before + (1 - _WEIGHT) * trial.cost}
    known = replace(known, trial=None, costs=costs)
    verdict = _failure(trial, look.sojourn, look.network.outside, tuning)
    if verdict is None:
        return known, None
    failed = Failed(trial.action, trial.after, trial.rate, look.now + tuning.forget)
    back = None
    if trial.action == "scale_out" or _worse(trial, look.sojourn, tuning):
        back = trial.before
    return replace(known, failed=(*known.failed, failed), back_to=back), verdict


def _overdue(known: ScaleMemory, look: Look, tuning: ScaleTuning) -> bool:
    """Whether a change should have been there by now."""
    since = look.now if known.changed_at is None else known.changed_at
    return look.now - since > max(tuning.between, 2 * tuning.settle)


def _failure(
    trial: OnTrial, sojourn: float, rate: float, tuning: ScaleTuning
) -> str | None:  # fmt: skip
    """Why it did not help, or ``None``."""
    if not alike(rate, trial.rate, tuning.like):
        return None  # under another load nothing can be compared
    if trial.action == "scale_in":
        if sojourn > tuning.longest:
            return f"giving processors back was a mistake: {told(sojourn)} now"
        return None
    if trial.measured is None:
        return None
    gained, promised = trial.measured - sojourn, trial.measured - trial.promised
    if promised > 0 and gained < tuning.helped * promised:
        return (
            f"the last change did not help: {told(trial.promised)} were promised, "
            f"{told(sojourn)} came of {told(trial.measured)}"
        )
    return None


def _worse(trial: OnTrial, sojourn: float, tuning: ScaleTuning) -> bool:
    return trial.measured is not None and sojourn > trial.measured * (1 + tuning.least_gain)


def calibrated(known: ScaleMemory, look: Look, now: Prediction) -> ScaleMemory:
    """With what is measured beyond the model, where it can be known: everybody keeps up with room
    to spare, nothing has piled up, and nothing was changed just now."""
    used = max(o.utilisation for o in now.operators)
    piled = sum(piled_up(look, now).values()) > look.network.outside * _PILED_SECONDS
    if look.sojourn is None or known.trial is not None or used > _SURE or piled:
        return known
    beyond = max(look.sojourn - now.total, -0.9 * now.total)
    return replace(known, offset=_WEIGHT * known.offset + (1 - _WEIGHT) * beyond)


def alike(rate: float, other: float, share: float) -> bool:
    """Whether two loads differ by less than a share.

    >>> alike(100.0, 110.0, 0.2), alike(100.0, 150.0, 0.2)
    (True, False)
    """
    return abs(rate - other) <= share * max(rate, other)
