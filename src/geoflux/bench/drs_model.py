"""How good the model behind DRS is: formulas and simulated networks. No Spark.

Formulas are held against the textbook's sums in sixty digits, predicted times against a simulator
of queueing networks (:mod:`geoflux.sim.queue_network`), which itself is held against ciw. Every
function returns figures by name; all of it comes from seeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from statistics import median
from typing import Any

import numpy as np

from geoflux.bench.drs_allocations import (
    allocate_times,
    fork_allocations,
    greedy_optimal,
    measure_times,
    recommended,
)
from geoflux.bench.drs_networks import Kind, as_stations, random_network
from geoflux.bench.drs_sizes import FULL, QUICK, ModelSizes
from geoflux.bench.table import Bars
from geoflux.errors import ConfigError
from geoflux.scale.epochs import Epochs, SlotWork, epoch_delay
from geoflux.scale.erlang import Erlang
from geoflux.scale.forms import Model
from geoflux.scale.sojourn import predict
from geoflux.scale.unequal import gumbel
from geoflux.sim.epoch_line import simulate_epochs
from geoflux.sim.queue_network import Station, Stations, simulate_network

BARS: Bars = {
    "erlang_max_error": ("<=", 1e-9),
    "greedy_is_optimal": (">=", 1.0),
    "simulated_within": ("<=", 0.05),
    "simulated_within_gigk": ("<=", 0.15),
    "simulated_recommended_is_best": (">=", 0.95),
    "simulated_rank_correlation": (">=", 0.9),
    "ciw_within": ("<=", 0.05),
    "allocate_ms_k1000": ("<=", 5.0),
}


__all__ = ["BARS", "FULL", "QUICK", "ModelSizes", "measure_model"]

_USED = (0.05, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999)


def measure_model(
    sizes: ModelSizes, tell: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:  # fmt: skip
    """All of it but what needs ciw; ``tell`` hears what has been done."""
    steps: tuple[tuple[str, Callable[[ModelSizes], dict[str, float]]], ...] = (
        ("Erlang's formulas", erlang_error), ("the greedy against all allocations", greedy_optimal),
        ("simulated networks", simulated_within), ("allocations with forks", fork_allocations),
        ("recommended allocations and their neighbours", recommended),
        ("micro-batches", epochs_within), ("unequal processors", unequal_within),
        ("times of allocation", lambda _: allocate_times()),
        ("times of measurement", lambda _: measure_times()),
    )  # fmt: skip
    figures: dict[str, Any] = {}
    for told, step in steps:
        figures |= step(sizes)
        tell(told)
    return figures


def erlang_error(sizes: ModelSizes) -> dict[str, float]:
    """The largest relative error of Erlang B, Erlang C and the waiting time over the grid."""
    worst = 0.0
    for k, used in itertools.product(sizes.ks, _USED):
        load = k * used
        queue = Erlang(load, k)
        exact = _textbook(Decimal(load), k)
        for ours, right in zip((queue.blocked, queue.delayed, queue.wait), exact, strict=True):
            if right > Decimal(10) ** -300:  # below that there are no such floats
                worst = max(worst, abs(float(Decimal(ours) / right - 1)))
    return {"erlang_max_error": worst}


def _textbook(load: Decimal, k: int) -> tuple[Decimal, Decimal, Decimal]:
    """Erlang B, Erlang C and the mean wait in services, with factorials, as equations 2 and 3."""
    with localcontext() as context:
        context.prec = 60
        term, whole = Decimal(1), Decimal(1)
        for n in range(1, k + 1):
            term = term * load / n
            whole += term
        waiting = term * k / (k - load)
        delayed = waiting / (whole - term + waiting)
        return term / whole, delayed, delayed / (k - load)


def simulated_within(sizes: ModelSizes) -> dict[str, float]:
    """Median relative errors of predicted total sojourn times over random networks."""
    out: dict[str, float] = {}
    for kind, name in (("mmk", ""), ("gigk", "_gigk"), ("forks", "_forks")):
        errors = _errors(kind, sizes)  # type: ignore[arg-type]
        out[f"simulated_within{name}"] = median(errors["gigk"])
        out[f"simulated_p90{name}"] = float(np.quantile(errors["gigk"], 0.9))
        if kind == "gigk":
            out["simulated_within_gigk_by_mmk"] = median(errors["mmk"])
            out["simulated_within_gigk_by_whitt"] = median(errors["whitt"])
        if kind == "forks":
            out["simulated_within_forks_by_equation_4"] = median(errors["equation_4"])
    return out


def _errors(kind: Kind, sizes: ModelSizes) -> dict[str, list[float]]:
    errors: dict[str, list[float]] = {"mmk": [], "gigk": [], "whitt": [], "equation_4": []}
    models: tuple[Model, ...] = ("mmk", "gigk", "whitt")
    for seed in range(sizes.simulated):
        network, allocation = random_network(kind, seed)
        true = simulate_network(as_stations(network, allocation), sizes.trees, seed).completion
        for model in models:
            errors[model].append(abs(predict(network, allocation, model).total / true - 1))
        summed = predict(network, allocation, "mmk").summed
        errors["equation_4"].append(abs(summed / true - 1))
    return errors


def ciw_within(
    sizes: ModelSizes, points: Sequence[tuple[int, float]] = ((1, 0.5), (4, 0.7))
) -> dict[str, float]:
    """The largest relative error of M/M/k's mean sojourn time, and of the simulator's, against ciw,
    which is written by others."""
    try:
        import ciw
    except ImportError as error:
        raise ConfigError(
            "ciw, the simulator of others that ours is compared with, is not installed: "
            'pip install "geoflux[dev]", or pip install ciw'
        ) from error

    ours = simulator = 0.0
    for k, used in points:
        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Exponential(k * used)],
            service_distributions=[ciw.dists.Exponential(1.0)], number_of_servers=[k],
        )  # fmt: skip
        ciw.seed(k)
        line = ciw.Simulation(network)
        line.simulate_until_max_customers(sizes.customers)
        records = line.get_all_records()[sizes.customers // 10 :]
        true = float(np.mean([r.exit_date - r.arrival_date for r in records]))
        ours = max(ours, abs((Erlang(k * used, k).wait + 1) / true - 1))
        station = Station((1.0,) * k, arrivals=k * used)
        mean = simulate_network(Stations((station,)), sizes.trees, k).completion
        simulator = max(simulator, abs(mean / true - 1))
    return {"ciw_within": ours, "simulator_vs_ciw": simulator}


def epochs_within(sizes: ModelSizes) -> dict[str, float]:
    """Median and largest relative error of what micro-batches add, over forms and triggers."""
    lines = [
        (SlotWork(rate, slots, used * slots / rate, scv, dealt=dealt), Epochs(trigger, 0.1, 0.05))
        for rate, slots, used in ((100.0, 2, 0.3), (50.0, 4, 0.75), (20.0, 8, 0.5), (5.0, 4, 0.2))
        for scv in (0.0, 1.0)
        for dealt in (False, True)
        for trigger in (0.0, 1.0)
    ]
    errors = []
    for seed, (work, epochs) in enumerate(lines):
        delay = epoch_delay(work, epochs)
        assert delay is not None
        true, _ = simulate_epochs(work, epochs, sizes.trees // 4, seed)
        errors.append(abs(delay.total / true - 1))
    return {"epochs_within": median(errors), "epochs_worst": max(errors)}


def unequal_within(sizes: ModelSizes) -> dict[str, float]:
    """Gumbel's model of unequal processors, where any free one is taken (exact), and where the
    fastest is."""
    lines = [((1.0, 3.0), 0.7), ((1.0, 1.0, 2.0, 4.0), 0.6), ((0.5, 1.0, 1.0, 2.0, 2.0, 4.0), 0.8)]
    any_free: list[float] = []
    fastest: list[float] = []
    for rates, used in lines:
        queue = gumbel(used * sum(rates), rates)
        assert queue is not None
        for first, errors in ((False, any_free), (True, fastest)):
            station = Station(rates, arrivals=used * sum(rates), fastest_first=first)
            true = simulate_network(Stations((station,)), sizes.trees, 5).completion
            errors.append(queue.sojourn / true - 1)
    return {
        "unequal_within": max(abs(e) for e in any_free),
        "unequal_over_fastest_first": max(fastest),
    }
