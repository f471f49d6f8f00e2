"""A make-believe application for the scheduler: what its model says, with noise and surprises."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from geoflux.scale.decisions import Look, ScaleDecision
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.policy import ScalePolicy
from geoflux.scale.sojourn import predict

CHAIN = Network(
    (Operator("extract", 2.0, 3.0), Operator("match", 1.5), Operator("gather", 30.0)),
    (Edge("extract", "match", 1.0), Edge("match", "gather", 0.5)),
)


@dataclass
class Plant:
    """Looks every ``every`` seconds. ``load(t)`` multiplies what comes from outside, ``beyond`` is
    what inputs take outside of all queues; what piles up while somebody is overrun is worked off.
    With ``restarts`` the scheduler's state goes through JSON at every look."""

    policy: ScalePolicy
    allocation: dict[str, int]
    network: Network = CHAIN
    load: Callable[[float], float] = lambda t: 1.0
    beyond: Callable[[dict[str, int]], float] = lambda allocation: 0.0
    noise: float = 0.0
    every: float = 10.0
    seed: int = 0
    restarts: bool = False
    now: float = 0.0
    backlog: float = 0.0
    state: dict[str, object] = field(default_factory=dict)
    decisions: list[ScaleDecision] = field(default_factory=list)
    sojourns: list[float] = field(default_factory=list)

    def run(self, seconds: float) -> Plant:
        draw = np.random.default_rng((self.seed, int(self.now)))
        until = self.now + seconds
        while self.now < until:
            self.now += self.every
            true = self.network.at_rate(self.load(self.now))
            there = predict(true, self.allocation)
            if there.overrun:
                self.backlog += true.outside * 0.3 * self.every
                sojourn = 2.0 + self.backlog / true.outside
            else:
                spare = min(1 / o.utilisation - 1 for o in there.operators) * true.outside
                self.backlog = max(self.backlog - spare * self.every, 0.0)
                sojourn = there.total + self.beyond(self.allocation)
                sojourn += self.backlog / true.outside
            wobble = 1 + self.noise * draw.standard_normal(8)
            self.sojourns.append(sojourn)
            seen = true.at_rate(wobble[0])
            seen = replace(
                seen,
                operators=tuple(
                    replace(o, service_rate=o.service_rate * w)
                    for o, w in zip(seen.operators, wobble[1:], strict=False)
                ),
            )
            look = Look(
                self.now, seen, self.allocation, sojourn * wobble[-1], sojourn * self.noise,
                {self.network.operators[0].name: self.backlog},
            )  # fmt: skip
            state = json.loads(json.dumps(self.state)) if self.restarts else self.state
            decision, self.state = self.policy.decide(look, state)
            self.decisions.append(decision)
            if decision.carried_out:
                self.allocation = dict(decision.after)
        return self

    @property
    def changes(self) -> list[ScaleDecision]:
        """The decisions that changed something."""
        return [d for d in self.decisions if d.action != "none"]

    @property
    def processors(self) -> int:
        return sum(self.allocation.values())
