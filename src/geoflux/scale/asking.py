"""What a look asks for: the three triggers of DRS, and the allocation that answers each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from geoflux.errors import InfeasibleError
from geoflux.scale.allocation import Allocation, Wanted, assign, fewest_for, least_time
from geoflux.scale.decisions import Action, Look, Trigger, piled_up, shown, told
from geoflux.scale.memory import ScaleMemory
from geoflux.scale.sojourn import Prediction, predict
from geoflux.scale.tuning import ScaleTuning


@dataclass(frozen=True)
class Asked:
    """A change that is asked for; without ``after``, none is."""

    trigger: Trigger
    reason: str
    action: Action = "none"
    after: Mapping[str, int] | None = None
    promised: float = math.inf
    """The total sojourn time afterwards, in seconds."""
    gain: float = 0.0
    """Seconds by which inputs are done sooner; below 0 where processors are given back."""
    details: Prediction | None = None

    def goes_further(self, failed: Mapping[str, int]) -> bool:
        """Whether it gives every operator at least (giving back: at most) what failed."""
        if self.after is None or failed.keys() != self.after.keys():
            return False
        pairs = [(self.after[name], failed[name]) for name in failed]
        if self.action == "scale_in":
            return all(new <= old for new, old in pairs)
        return self.action == "scale_out" and all(new >= old for new, old in pairs)

    def too_dear(self, cost: float, tuning: ScaleTuning) -> str | None:
        """Why a change costs more than it brings, if it does."""
        if self.trigger == "no_help":
            return None
        if self.action == "scale_in":
            spread = cost / tuning.payback
            if self.promised + spread > tuning.longest:
                return f"the change itself would make it {told(self.promised + spread)} on average"
            return None
        if self.gain * tuning.payback <= cost:
            return (
                f"it would gain {told(self.gain)} an input, which within {tuning.payback:.0f} s "
                f"does not pay for the change"
            )
        return None


def asked_for(
    known: ScaleMemory, look: Look, now: Prediction, tuning: ScaleTuning
) -> tuple[Asked, ScaleMemory]:
    """What this look asks for, and the memory with what has to be remembered of it."""
    if known.back_to is not None:
        asked = _back(known, look, tuning)
        if asked is not None:
            return asked, known
        known = replace(known, back_to=None)
    if tuning.problem == "latency":
        return _better(look, known, now, tuning, tuning.most), known
    measured = look.sojourn
    if now.overrun or (measured is not None and measured - look.error > tuning.longest):
        return _shortage(look, known, now, tuning), replace(known, over_since=None, needs=())
    if measured is not None and measured + look.error < tuning.shortest:
        return _too_many(look, known, tuning)
    known = replace(known, over_since=None, needs=())
    return _better(look, known, now, tuning, look.processors), known


def _back(known: ScaleMemory, look: Look, tuning: ScaleTuning) -> Asked | None:
    """Back to where a change came from that did not help, if that still keeps up."""
    back = dict(known.back_to or {})
    there = predict(look.network, back, tuning.model)
    if there.overrun or back == dict(look.allocation):
        return None
    fewer = sum(back.values()) < look.processors
    return Asked(
        "no_help", f"back to {shown(back)}: the change to {shown(look.allocation)} did not help",
        "scale_in" if fewer else "rearrange", back, there.total + known.offset, 0.0, there,
    )  # fmt: skip


def _shortage(look: Look, known: ScaleMemory, now: Prediction, tuning: ScaleTuning) -> Asked:
    why = f"inputs take {told(look.sojourn)}, at most {told(tuning.longest)} were asked for"
    if now.overrun:
        why = f"{', '.join(now.overrun)} cannot keep up"
    wanted = Wanted(tuning.model, _floors(look, now, tuning))
    found: Allocation | None
    try:
        # Room is left of what queues may take: what an input takes anyway cannot be lessened.
        within = tuning.longest - known.offset
        anyway = least_time(look.network, tuning.model)
        target = anyway + tuning.headroom * (within - anyway) if within > anyway else within
        found = fewest_for(look.network, target, wanted, tuning.most)
    except InfeasibleError as problem:
        why += f"; {problem}"
        found = _as_far_as_it_goes(look, wanted, now, tuning)
    if found is None:
        return Asked("shortage", why)
    if found.processors < look.processors:
        # More than enough by the model, and yet it takes too long: at least none is taken away.
        found = assign(look.network, look.processors, wanted)
    return _change("shortage", why, found, (look, known, now), tuning)


def _as_far_as_it_goes(
    look: Look, wanted: Wanted, now: Prediction, tuning: ScaleTuning
) -> Allocation | None:
    """Where the target is out of reach: all processors if that is what it takes to keep up, or
    brings something."""
    try:
        most = assign(look.network, tuning.most, wanted)
    except InfeasibleError:
        if not wanted.floors:
            return None
        return _as_far_as_it_goes(look, replace(wanted, floors=None), now, tuning)
    if most.prediction.total < (1 - tuning.least_gain) * now.total:
        return fewest_for(look.network, most.prediction.total * 1.05, wanted, tuning.most)
    return None


def _too_many(
    look: Look, known: ScaleMemory, tuning: ScaleTuning
) -> tuple[Asked, ScaleMemory]:  # fmt: skip
    """Between T_min and T_max, so that neither bound is near; as many stay as were needed at any
    time since there were too many."""
    since = look.now if known.over_since is None else known.over_since
    why = f"inputs take {told(look.sojourn)}, below {told(tuning.shortest)} nobody needs more"
    target = (tuning.shortest + tuning.longest) / 2 - known.offset
    try:
        found = fewest_for(look.network, target, Wanted(tuning.model), tuning.most)
    except InfeasibleError as problem:
        return Asked("none", f"{why}; {problem}"), replace(known, over_since=since)
    needs = tuple(n for n in known.needs if n[0] >= look.now - tuning.wait_down)
    needs = (*needs, (look.now, found.processors))
    known = replace(known, over_since=since, needs=needs)
    needed = max(k for _, k in needs)
    if needed >= look.processors:
        return Asked("none", f"{why}; but none can be spared"), known
    if look.now - since < tuning.wait_down:
        waited = f"for {look.now - since:.0f} of {tuning.wait_down:.0f} s"
        return Asked("none", f"{why}; {waited}, {needed} would do"), known
    found = assign(look.network, needed, Wanted(tuning.model))
    now = predict(look.network, look.allocation, tuning.model)
    return _change("overprovision", why, found, (look, known, now), tuning), known


def _better(
    look: Look, known: ScaleMemory, now: Prediction, tuning: ScaleTuning, processors: int
) -> Asked:
    """The best assignment of so many processors, if it is enough better."""
    try:
        found = assign(look.network, processors, Wanted(tuning.model, _floors(look, now, tuning)))
    except InfeasibleError:
        try:
            found = assign(look.network, processors, Wanted(tuning.model))
        except InfeasibleError as problem:
            return Asked("none", str(problem))
    if dict(found.counts) == dict(look.allocation):
        return Asked("none", f"{shown(look.allocation)} is best")
    if now.overrun:
        why = f"{', '.join(now.overrun)} cannot keep up"
        return _change("shortage", why, found, (look, known, now), tuning)
    why = f"{shown(found.counts)} is better than {shown(look.allocation)}"
    return _change("suboptimal", why, found, (look, known, now), tuning)


def _change(
    trigger: Trigger, why: str, found: Allocation, seen: tuple[Look, ScaleMemory, Prediction],
    tuning: ScaleTuning,
) -> Asked:  # fmt: skip
    look, known, now = seen
    if dict(found.counts) == dict(look.allocation):
        return Asked("none", f"{why}; but {shown(look.allocation)} is what the model would give")
    promised = max(found.prediction.total + known.offset, 0.0)
    from_now = now.total + known.offset
    if look.sojourn is not None and math.isfinite(from_now):
        # What is too long is told by the clock; what could be better must be so by both.
        pick = max if trigger == "shortage" else min
        from_now = pick(from_now, look.sojourn)
    gain = from_now - promised
    more = found.processors - look.processors
    action: Action = "scale_out" if more > 0 else "scale_in" if more < 0 else "rearrange"
    reason = (
        f"{why}: {shown(look.allocation)} to {shown(found.counts)} "
        f"({told(promised)} predicted, {told(from_now)} now)"
    )
    if action != "scale_in" and gain < tuning.least_gain * from_now:
        return Asked("none", f"{reason}; too little to gain")
    return Asked(trigger, reason, action, dict(found.counts), promised, gain, found.prediction)


def _floors(look: Look, now: Prediction, tuning: ScaleTuning) -> dict[str, int] | None:
    """Enough processors to work off what has piled up beside what comes in."""
    floors = {}
    for name, piled in piled_up(look, now).items():
        place = look.network.index[name]
        rate = float(look.network.rates[place]) + piled / tuning.catch_up
        floors[name] = math.ceil(rate / look.network.operators[place].service_rate)
    return floors or None
