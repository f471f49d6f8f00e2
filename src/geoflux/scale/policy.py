"""The scheduler of DRS: when to change the processors of operators, and to what.

Three things ask for a change: inputs take too long (shortage), they are done sooner than anybody
asked for (too many processors), or as many processors elsewhere would be better (a poor
assignment). What asks must ask several times in a row, a change must gain more than it costs, at
least T_ra lies between two, giving back waits, and what did not help is not tried again.

Source: DRS IV-B; the last sentence is ours. What is measured tells the model what it leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from geoflux.errors import UnstableLoop
from geoflux.scale.asking import Asked, asked_for
from geoflux.scale.decisions import Look, ScaleDecision, finite, shown
from geoflux.scale.judging import alike, calibrated, judged
from geoflux.scale.memory import OnTrial, ScaleMemory
from geoflux.scale.sojourn import Prediction, predict
from geoflux.scale.tuning import ScaleTuning


class ScalePolicy:
    """Decides on processors from what is measured.

    Guarantee: a decision is a pure function of the look and of the state, which is plain values and
    holds all that is remembered; two changes are never closer than ``between``,
    nor the first to the start.

    >>> from geoflux.scale.network import Network, Operator
    >>> policy = ScalePolicy(ScaleTuning("processors", longest=2.0, patience=1, between=0))
    >>> look = Look(0.0, Network((Operator("a", 1.0, 0.9),)), {"a": 1}, sojourn=9.0)
    >>> decision, state = policy.decide(look, {})
    >>> decision.action, dict(decision.after)
    ('scale_out', {'a': 2})
    """

    def __init__(self, tuning: ScaleTuning) -> None:
        self.tuning = tuning

    def decide(
        self, look: Look, state: Mapping[str, Any]
    ) -> tuple[ScaleDecision, dict[str, Any]]:  # fmt: skip
        """The decision after a look, and the state from now on."""
        in_order = {o.name: look.allocation[o.name] for o in look.network.operators}
        look = replace(look, allocation=in_order)
        known = ScaleMemory.from_dict(state)
        if known.started_at is None:
            known = replace(known, started_at=look.now)
        tuning = self.tuning
        try:
            now = predict(look.network, look.allocation, tuning.model)
        except UnstableLoop as problem:
            return self._nothing(known, look, None, str(problem))
        known, settling = judged(known, look, tuning)
        if known.trial is not None:
            return self._nothing(known, look, now, settling or "")
        known = replace(known, failed=tuple(f for f in known.failed if f.until > look.now))
        known = calibrated(known, look, now)
        asked, known = asked_for(known, look, now, tuning)
        if asked.after is None:
            known = replace(known, asking="none", asked=0)
            return self._nothing(known, look, now, _joined(settling, asked.reason))
        # Of what is merely better, every look must name the same; what is short is short.
        asking = str(asked.trigger)
        if asked.trigger == "suboptimal":
            asking += f" {shown(asked.after)}"
        times = known.asked + 1 if known.asking == asking else 1
        known = replace(known, asking=asking, asked=times)
        held = self._held(known, look, asked)
        if held is not None:
            reason = _joined(settling, f"{asked.reason}; not yet: {held}")
            return self._nothing(known, look, now, reason, asked)
        return self._changed(known, look, now, asked)

    def _held(self, known: ScaleMemory, look: Look, asked: Asked) -> str | None:
        """Why a change that is asked for is not made now."""
        tuning = self.tuning
        needed = tuning.calm if asked.trigger == "suboptimal" else tuning.patience
        if known.asked < needed:
            return f"asked for {known.asked} of {needed} times"
        since = known.changed_at if known.changed_at is not None else known.started_at
        if since is not None and look.now - since < tuning.between:
            what = "the start" if known.changed_at is None else "the last change"
            return f"{look.now - since:.0f} s since {what}, at least {tuning.between:.0f}"
        for failed in known.failed:
            same = dict(failed.after) == dict(asked.after or {})
            further = failed.action == asked.action and asked.goes_further(failed.after)
            if asked.trigger != "no_help" and (same or further):
                if alike(look.network.outside, failed.rate, tuning.like):
                    return f"{shown(failed.after)} did not help under this load"
                if failed.action == "scale_in" and look.network.outside > failed.rate:
                    return f"{shown(failed.after)} was too little for less load than now"
        return asked.too_dear(known.costs.get(asked.action, tuning.cost), tuning)

    def _changed(
        self, known: ScaleMemory, look: Look, now: Prediction, asked: Asked
    ) -> tuple[ScaleDecision, dict[str, Any]]:
        after = dict(asked.after or {})
        known = replace(known, number=known.number + 1, asking="none", asked=0)
        decision = ScaleDecision(
            known.number, look.now, asked.action, asked.trigger, asked.reason,
            dict(look.allocation), after, not self.tuning.observe, look.sojourn,
            finite(now.total + known.offset), finite(asked.promised), look.network.outside,
            asked.details,
        )  # fmt: skip
        if self.tuning.observe:
            return decision, known.to_dict()
        # Going back from what did not help is no experiment: there is nothing to hold it against.
        trial = None if asked.trigger == "no_help" else OnTrial(
            asked.action, dict(look.allocation), after, look.now, look.sojourn, asked.promised,
            look.network.outside, 0.0, look.now,
        )  # fmt: skip
        known = replace(
            known, changed_at=look.now, trial=trial, over_since=None, needs=(), back_to=None
        )
        return decision, known.to_dict()

    def _nothing(
        self, known: ScaleMemory, look: Look, now: Prediction | None, reason: str,
        asked: Asked | None = None,
    ) -> tuple[ScaleDecision, dict[str, Any]]:  # fmt: skip
        allocation = dict(look.allocation)
        decision = ScaleDecision(
            known.number, look.now, "none", asked.trigger if asked else "none", reason,
            allocation, allocation, False, look.sojourn,
            None if now is None else finite(now.total + known.offset),
            finite(asked.promised) if asked else None, look.network.outside, now,
        )  # fmt: skip
        return decision, known.to_dict()


def _joined(*words: str | None) -> str:
    return "; ".join(word for word in words if word)
