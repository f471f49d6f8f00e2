"""Laws of the simulated cluster: no tuple is lost, and its buffer obeys the rules of the engine's."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.balance.flux_tuning import FluxTuning, PolicyKind
from geoflux.balance.skew_buffer import SkewBuffer
from geoflux.sim import Cluster, CpuLoad, Load, MemoryLoad, simulate
from geoflux.sim import columns as c
from geoflux.sim.skew_queues import insert, restart, retrieve, stall
from geoflux.sim.state import State, empty_state

SITES, PER_SITE, ROOM = 3, 2, 12
PARTITIONS = SITES * PER_SITE
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("retrieve"), st.integers(0, SITES - 1)),
        st.tuples(st.just("stall"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("restart"), st.integers(0, PARTITIONS - 1), st.integers(0, SITES - 1)),
    ),
    max_size=120,
)


class Reference:
    """A producer as the text has it, on the engine's own buffer."""

    def __init__(self) -> None:
        self.buffer = SkewBuffer[int](ROOM)
        self.site = {p: p % SITES for p in range(PARTITIONS)}
        self.stalled: set[int] = set()
        self.inserted = 0

    def insert(self, partition: int) -> None:
        self.buffer.insert(partition, self.inserted, 1)
        self.inserted += 1

    def retrieve(self, site: int) -> tuple[int, int] | None:
        for partition in self.buffer.waiting():
            if self.site[partition] == site and partition not in self.stalled:
                item = self.buffer.retrieve(partition)
                assert item is not None
                return partition, item
        return None


def compiled_retrieve(state: State, site: int) -> tuple[int, int] | None:
    node = state.lists[0, site, c.FIRST]
    partition = retrieve(state, 0, site)
    return None if partition == c.NONE else (partition, int(state.node[0, node, c.NODE_SEQ]))


@given(STEPS)
def test_the_compiled_buffer_does_what_the_skew_buffer_does(steps: list[tuple[Any, ...]]) -> None:
    cluster = Cluster(sites=SITES, per_site=PER_SITE, buffer_bytes=ROOM * 80)
    state = empty_state(cluster, 1, np.ones(PARTITIONS), [(c.NEVER, 0, 0, 0)])
    reference = Reference()
    for step, *what in steps:
        if step == "insert":
            room = bool(state.site[0, c.USED] < ROOM)
            assert room == reference.buffer.has_room(1)
            if room:
                insert(state, 0, what[0])
                reference.insert(what[0])
        elif step == "retrieve":
            assert compiled_retrieve(state, what[0]) == reference.retrieve(what[0])
        elif step == "stall" and what[0] not in reference.stalled:
            stall(state, 0, what[0])
            reference.stalled.add(what[0])
        elif step == "restart" and what[0] in reference.stalled:
            restart(state, 0, what[0], what[1])
            reference.stalled.discard(what[0])
            reference.site[what[0]] = what[1]
        assert state.site[0, c.USED] == reference.buffer.items
    for site in range(SITES):
        while (taken := reference.retrieve(site)) is not None:
            assert compiled_retrieve(state, site) == taken
        assert compiled_retrieve(state, site) is None


@st.composite
def disturbed(draw: st.DrawFn) -> tuple[Cluster, list[Load]]:
    sites = draw(st.integers(2, 5))
    cluster = Cluster(
        sites=sites, per_site=draw(st.integers(1, 6)), groups=64,
        skew=draw(st.sampled_from([0.0, 0.94])), exchange=False,
        buffer_bytes=80 * draw(st.sampled_from([1, 7, 200, 2048])),
        partition_bytes=draw(st.sampled_from([80, 80_000, 800_000])), memory_bytes=1 << 24,
        spool_page_bytes=draw(st.sampled_from([80, 8_000])),
    )  # fmt: skip
    where = st.integers(0, sites - 1)
    cpu = st.builds(CpuLoad, where, st.floats(0, 1), st.floats(1, 2))
    memory = st.builds(
        MemoryLoad, where, st.floats(0, 1.5), st.integers(0, 5).map(lambda n: n * 400_000)
    )
    return cluster, draw(st.lists(st.one_of(cpu, memory), max_size=4))


KINDS: tuple[PolicyKind, ...] = ("load", "memory", "hybrid")


@given(disturbed(), st.sampled_from([None, *KINDS]), st.integers(0, 99))
@settings(max_examples=60)
def test_every_tuple_is_somewhere_and_every_partition_with_one_site(
    given_: tuple[Cluster, list[Load]], kind: PolicyKind | None, seed: int
) -> None:
    cluster, loads = given_
    tuning = None if kind is None else FluxTuning(kind=kind)
    run = simulate(cluster, 2, seed, loads, tuning)
    assert run.where.total == run.produced
    assert run.where.processed == run.site_tuples.sum()
    assert run.throughput.sum() == run.where.processed
    assert run.where.in_buffers <= cluster.sites * cluster.buffer_tuples
    assert run.where.in_connections <= cluster.sites**2 * cluster.connection_tuples
    assert np.all((run.utilisation >= 0) & (run.utilisation <= 1))
    assert np.all((run.owners >= 0) & (run.owners < cluster.sites))
    again = simulate(cluster, 2, seed, loads, tuning)
    assert np.array_equal(run.throughput, again.throughput)
    assert run.rounds == again.rounds
    assert run.latency == again.latency
