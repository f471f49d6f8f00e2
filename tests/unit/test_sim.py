"""The simulated cluster behaves as the paper says of its own, on as little as shows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoflux.balance.flux_tuning import FluxTuning
from geoflux.errors import ConfigError
from geoflux.sim import ZIPF_80_20, Cluster, CpuLoad, MemoryLoad, rotating_load, simulate
from geoflux.sim.simulate import partition_weights

PAPER = Cluster()
SMALL = Cluster(sites=8, buffer_bytes=40_000)
CROWDED = Cluster(sites=4, per_site=16, partition_bytes=6 << 20, memory_bytes=128 << 20)


@pytest.fixture(scope="module")
def steady() -> float:
    return simulate(SMALL, 3).rate(1)


def test_the_steady_state_is_that_of_the_paper() -> None:
    assert simulate(PAPER, 2).rate(1) == pytest.approx(7.1e5, rel=0.03)


def test_a_tuple_in_memory_takes_its_service_time() -> None:
    assert simulate(SMALL, 1).latency == (pytest.approx(45e-6, rel=0.01),)


def test_an_external_process_costs_a_site_57_percent() -> None:
    pair = Cluster(sites=2)
    free, loaded = (simulate(pair, 3, 0, loads).rate(1) for loads in ([], [CpuLoad(0), CpuLoad(1)]))
    assert 1 - loaded / free == pytest.approx(0.57, abs=0.02)


def test_one_slow_site_drags_the_stage_down_once_the_buffers_are_full(steady: float) -> None:
    run = simulate(replace(SMALL, buffer_bytes=PAPER.buffer_bytes), 8, 0, [CpuLoad(3, 1.0)])
    assert run.throughput[1] > 0.9 * steady
    assert run.rate(4) / steady == pytest.approx(0.43, abs=0.03)
    assert np.argmax(run.utilisation) == 3


def test_flux_moves_partitions_away_and_is_nearly_as_fast_as_before(steady: float) -> None:
    tuning = FluxTuning(kind="load", imbalance=1.02, receiver_below=0.98)
    run = simulate(SMALL, 20, 0, [CpuLoad(3)], tuning)
    ideal = 1 - 0.58 / SMALL.sites
    assert run.rate(14) / steady > 0.97 * ideal
    assert 18 <= np.count_nonzero(run.owners == 3) <= 36
    assert run.where.total == run.produced


def test_nothing_moves_in_a_balanced_cluster() -> None:
    assert simulate(SMALL, 4, 0, (), FluxTuning()).moved == 0


def test_a_round_takes_at_least_what_the_wire_takes() -> None:
    run = simulate(SMALL, 6, 0, [CpuLoad(3)], FluxTuning(kind="load"))
    assert run.rounds
    for one in run.rounds:
        count = len(one.moves)
        rate = min(250e6, 500e6 / count) / 8
        assert one.end - one.start >= SMALL.partition_bytes / rate * 0.999


@pytest.mark.parametrize("kilobytes", [10, 40])
def test_a_shared_buffer_beats_the_same_space_in_the_connections(
    kilobytes: int, steady: float
) -> None:
    flux = replace(SMALL, buffer_bytes=kilobytes * 1000)
    exchange = replace(flux, exchange=True)
    loads = rotating_load(SMALL, 0.25)
    rates = [simulate(cluster, 2, 0, loads).rate() for cluster in (flux, exchange)]
    assert rates[0] > 1.1 * rates[1]
    assert rates[1] > 0.4 * steady


def test_without_a_buffer_flux_is_an_exchange() -> None:
    bare = replace(SMALL, buffer_bytes=0)
    loads = rotating_load(SMALL, 0.25)
    flux = simulate(bare, 2, 0, loads)
    exchange = simulate(replace(bare, exchange=True), 2, 0, loads)
    assert np.array_equal(flux.throughput, exchange.throughput)


def test_a_fifth_of_the_groups_gets_four_fifths_of_the_tuples() -> None:
    alone = Cluster(sites=32, per_site=512, skew=ZIPF_80_20)
    shares = np.sort(partition_weights(alone, np.random.default_rng(0)))[::-1]
    assert shares[: alone.groups // 5].sum() == pytest.approx(0.8, abs=0.01)


def test_partitions_that_do_not_fit_are_spilled_and_their_input_waits() -> None:
    run = simulate(CROWDED, 20, 0, [MemoryLoad(0, 2.0, 64 << 20)])
    late = run.latency[-1]
    assert np.count_nonzero(run.on_disk) >= 5
    assert np.all(run.owners[run.on_disk] == 0)
    assert late is not None
    assert late > 1e3 * 45e-6
    assert run.rate(12) < 0.7 * run.rate(0, 2)
    assert run.where.total == run.produced


def test_memory_of_other_sites_brings_latency_and_throughput_back() -> None:
    run = simulate(CROWDED, 25, 0, [MemoryLoad(0, 2.0, 64 << 20)], FluxTuning(kind="memory"))
    assert not run.on_disk.any()
    # Memory is even, and the site with little of it has less work: 64 / 18 of 4 sites.
    assert run.rate(20) > 0.85 * run.rate(0, 2)
    assert run.mean_latency(20) == pytest.approx(45e-6, rel=0.02)


def test_settings_that_make_no_sense_are_all_named() -> None:
    with pytest.raises(ConfigError, match="2 settings"):
        Cluster(sites=1, process_us=0.0)
