"""What the model promises, measured small; the simulators against one written by others."""

from __future__ import annotations

import pytest

from geoflux.bench import drs_model
from geoflux.bench.drs_allocations import recommended
from geoflux.bench.drs_networks import as_stations, random_network
from geoflux.bench.table import is_met
from geoflux.scale.sojourn import predict
from geoflux.sim.queue_network import Station, Stations, simulate_network

SIZES = drs_model.ModelSizes((1, 2, 171, 1000), 60, 5, 60_000, 20_000)


def test_formulas_and_the_greedy_meet_their_bars() -> None:
    figures = drs_model.erlang_error(SIZES) | drs_model.greedy_optimal(SIZES)
    for name in ("erlang_max_error", "greedy_is_optimal"):
        assert is_met(figures[name], drs_model.BARS[name]), figures


def test_a_thousand_processors_are_assigned_in_milliseconds() -> None:
    assert (
        drs_model.allocate_times(3)["allocate_ms_k1000"] < 50
    )  # the bar, with room for a busy machine


def test_simulated_networks_are_as_predicted() -> None:
    figures = drs_model.simulated_within(SIZES)
    assert figures["simulated_within"] <= 0.05
    assert figures["simulated_within_gigk"] <= 0.15
    assert figures["simulated_within_forks"] <= 0.10
    assert figures["simulated_within_forks_by_equation_4"] > 0.10


def test_ciw_agrees() -> None:
    figures = drs_model.ciw_within(SIZES)
    assert figures["ciw_within"] <= 0.05
    assert figures["simulator_vs_ciw"] <= 0.07


def test_a_network_with_a_loop_agrees_with_ciw() -> None:
    import ciw

    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(1.0), None],
        service_distributions=[ciw.dists.Exponential(1.0), ciw.dists.Exponential(2.5)],
        number_of_servers=[3, 1], routing=[[0.0, 1.0], [0.3, 0.0]],
    )  # fmt: skip
    ciw.seed(3)
    line = ciw.Simulation(network)
    line.simulate_until_max_time(9_000)
    ends: dict[int, list[float]] = {}
    for record in line.get_all_records():
        seen = ends.setdefault(record.id_number, [record.arrival_date, 0.0])
        seen[0], seen[1] = min(seen[0], record.arrival_date), max(seen[1], record.exit_date)
    kept = [b - a for a, b in ends.values() if 500 < a < 8_500]
    true = sum(kept) / len(kept)
    stations = Stations(
        (Station((1.0,) * 3, arrivals=1.0), Station((2.5,))), ((0, 1, 1.0), (1, 0, 0.3))
    )
    assert simulate_network(stations, 60_000, 1).completion == pytest.approx(true, rel=0.05)


def test_unequal_processors_and_epochs_are_as_predicted() -> None:
    figures = drs_model.unequal_within(SIZES)
    assert figures["unequal_within"] <= 0.05
    assert 0 <= figures["unequal_over_fastest_first"] <= 0.3
    figures = drs_model.epochs_within(SIZES)
    assert figures["epochs_within"] <= 0.05


def test_the_same_seed_gives_the_same_network_and_the_same_times() -> None:
    first, again = (random_network("forks", 3) for _ in range(2))
    assert first == again
    stations = as_stations(*first)
    one, two = (simulate_network(stations, 5_000, 9).completion for _ in range(2))
    assert one == two
    assert predict(*first).total == predict(*again).total


def test_the_recommended_allocation_is_the_best_of_its_neighbours() -> None:
    figures = recommended(SIZES)
    assert figures["simulated_recommended_is_best"] >= 0.95
    assert figures["simulated_rank_correlation"] >= 0.8
