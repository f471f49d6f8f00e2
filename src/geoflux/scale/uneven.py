"""An operator whose processors are not equally fast: how long tuples stay.

With a shared queue Gumbel's model, and equation 5 on top where times are not exponential. A keyed
operator's processors have a queue each, with the same share of the input whatever their speed: the
first one also has the heaviest key.
"""

from __future__ import annotations

import math
from dataclasses import replace

from geoflux.scale.forms import Model, lengthened, one_processor, shares_of
from geoflux.scale.lasting import Stay
from geoflux.scale.network import Operator
from geoflux.scale.unequal import gumbel


def uneven_stays(
    operator: Operator, rate: float, k: int, how: tuple[Model, float]
) -> tuple[float, tuple[Stay, ...]]:
    """The utilisation (of the busiest processor, or of all behind one queue), and the stays.

    >>> operator = Operator("a", 1.0, speeds=(1.0, 3.0))
    >>> used, stays = uneven_stays(operator, 2.0, 2, ("mmk", 1.0))
    >>> used, round(stays[0].wait + stays[0].service, 4)
    (0.5, 0.7273)
    """
    model, scv = how
    rates = operator.rates(k)
    varied = operator.service_scv if model != "mmk" else 1.0
    if operator.form == "keyed":
        return _keyed(operator, rate, rates, how)
    used = rate / sum(rates)
    queue = gumbel(rate, rates)
    if queue is None:
        return used, (Stay(1.0, math.inf, k / sum(rates), varied),)
    factor = lengthened(model, (scv, operator.service_scv), k, used)
    return used, (Stay(queue.delayed, factor * queue.wait, queue.sojourn - queue.wait, varied),)


def _keyed(
    operator: Operator, rate: float, rates: tuple[float, ...], how: tuple[Model, float]
) -> tuple[float, tuple[Stay, ...]]:
    model, scv = how
    varied = operator.service_scv if model != "mmk" else 1.0
    heavy, light = shares_of(operator, len(rates))
    used, stays = 0.0, []
    for place, own in enumerate(rates):
        share = heavy if place == 0 else light
        if share > 0:
            one = replace(operator, service_rate=own, speeds=())
            time = one_processor(one, rate * share, model, 1 + share * (scv - 1))
            stays.append(Stay(min(rate * share / own, 1.0), time - 1 / own, 1 / own, varied, share))
            used = max(used, rate * share / own)
    return used, tuple(stays)
