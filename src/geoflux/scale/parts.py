"""One operator of a network with so many processors: how many tuples wait, and how long."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from geoflux.scale.batches import Batch, chances_of
from geoflux.scale.curves import epoch_time
from geoflux.scale.erlang import Erlang
from geoflux.scale.forms import Model, lengthened, one_processor, shares_of
from geoflux.scale.lasting import Stay
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.uneven import uneven_stays

_EPOCH_SCV = 1 / 27
"""A time that is one to two epochs long, evenly."""


@dataclass(frozen=True)
class Part:
    """An operator at work. ``stays`` say how long tuples stay, by processor where these differ;
    ``behind`` is what they wait on average for those that were derived together with them."""

    k: int
    rate: float
    arrival_scv: float
    utilisation: float
    stays: tuple[Stay, ...]
    behind: float = 0.0

    @property
    def wait(self) -> float:
        """Mean waiting time, without ``behind``."""
        return sum(s.weight * s.wait for s in self.stays)

    @property
    def service(self) -> float:
        """Mean service time."""
        return sum(s.weight * s.service for s in self.stays)

    def batch(self, edge: Edge) -> Batch:
        """What comes along an edge to this operator at once."""
        return Batch(
            chances_of(edge), self.k, self.stays[0].delayed, self.utilisation, self.service
        )

    def waiting(self, factor: float) -> Part:
        """The same with so many times the waiting time."""
        return replace(self, stays=tuple(replace(s, wait=s.wait * factor) for s in self.stays))


def part_of(network: Network, i: int, k: int, how: tuple[Model, float]) -> Part:
    """The i-th operator with ``k`` processors, by a model and the variability of its arrivals."""
    operator, rate = network.operators[i], float(network.rates[i])
    scv = how[1]
    if operator.epochs is not None:
        return _in_epochs(operator, rate, k, scv)
    if operator.speeds:
        used, stays = uneven_stays(operator, rate, k, how)
        part = Part(k, rate, scv, used, stays)
    elif operator.form == "keyed":
        part = _keyed(operator, rate, k, how)
    else:
        part = _shared(operator, rate, k, how)
    if operator.form == "keyed" or part.utilisation >= 1 or rate <= 0:
        return part
    batches = _batches(network, i, part)
    part = _crowded(part, batches, operator, how[0])
    return replace(part, behind=sum(share * batch.mean_start() for share, batch in batches))


def _shared(operator: Operator, rate: float, k: int, how: tuple[Model, float]) -> Part:
    model, scv = how
    service = 1 / operator.service_rate
    erlang = Erlang(rate * service, k)
    used = erlang.load / k if k else math.inf
    wait = math.inf
    if used < 1:
        factor = lengthened(model, (scv, operator.service_scv), k, used)
        wait = factor * erlang.wait * service
    varied = operator.service_scv if model != "mmk" else 1.0
    return Part(k, rate, scv, used, (Stay(erlang.delayed, wait, service, varied),))


def _in_epochs(operator: Operator, rate: float, k: int, scv: float) -> Part:
    """Nothing waits by chance here: all of a record's time is taken as even as an epoch makes it (a
    record comes at any point of one)."""
    time, service = epoch_time(operator, rate, k), 1 / operator.service_rate
    used = rate * service * (shares_of(operator, k)[0] if operator.form == "keyed" else 1 / k)
    return Part(k, rate, scv, used, (Stay(0.0, time - service, service, _EPOCH_SCV),))


def _keyed(operator: Operator, rate: float, k: int, how: tuple[Model, float]) -> Part:
    model, scv = how
    service = 1 / operator.service_rate
    varied = operator.service_scv if model != "mmk" else 1.0
    heavy, light = shares_of(operator, k)
    stays = []
    for share, count in ((heavy, 1), (light, k - 1)):
        if share * count > 0:
            time = one_processor(operator, rate * share, model, 1 + share * (scv - 1))
            busy = min(rate * share * service, 1.0)
            stays.append(Stay(busy, time - service, service, varied, share * count))
    return Part(k, rate, scv, rate * heavy * service, tuple(stays))


def _batches(network: Network, i: int, part: Part) -> list[tuple[float, Batch]]:
    """What comes along edges several at a time: its share of the arrivals, and the batches."""
    out = []
    for edge in network.edges:
        source = network.index[edge.source]
        if (
            network.index[edge.target] == i
            and edge.mean > 0
            and network.operators[source].everything
        ):
            share = edge.mean * float(network.rates[source]) / part.rate
            out.append((share, part.batch(edge)))
    return out


def _crowded(
    part: Part, batches: list[tuple[float, Batch]], operator: Operator, model: Model
) -> Part:  # fmt: skip
    """With what tuples wait for whole batches before them. Equation 5 is exact for that with one
    processor, and too little where batches are larger than the processors are many: there a batch
    keeps all of them busy like one service of a single fast processor (M/G/1). In between, in
    proportion. Where nothing else arrives, how regularly the batches come is known (GI/G/1)."""
    used, wait, busy = part.utilisation, part.wait, part.stays[0].delayed
    for share, batch in batches:
        size = batch.seen
        weight = share * (size - 1) / (size - 1 + part.k)
        alone = share > 1 - 1e-9 and model != "mmk"
        # What comes in Poisson batches of this size has the size as its variability.
        batch_scv = part.arrival_scv / size if alone else 1.0
        whole = size * part.service / part.k * (batch_scv + operator.service_scv / size) / 2
        wait += weight * max(used / (1 - used) * whole - part.wait, 0.0)
        busy += weight * max(used - part.stays[0].delayed, 0.0)
    return replace(part, stays=tuple(replace(s, wait=wait, delayed=busy) for s in part.stays))
