"""What the simulator knows at a moment: a few arrays, so that the loop is compiled as a whole.

``s`` is a site, ``d`` the site of a consumer, ``p`` a partition, ``m`` one of the moves of a round.
Few wide tables rather than many arrays: what is known of a site lies side by side, and compiling
takes seconds. Nothing here acts; the modules beside it do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import intrinsic

from geoflux.sim import columns as c
from geoflux.sim.cluster import Cluster

_MARKERS = 8
"""Room in a connection beside its tuples, for acknowledgements of pauses."""


class Fixed(NamedTuple):
    """What does not change during a run, in nanoseconds, bytes and tuples."""

    sites: int
    exchange: bool
    buffer_tuples: int
    connection_tuples: int
    packet_tuples: int
    tuple_bytes: int
    latency: int
    produce: float
    process: float
    process_sd: float
    partition_bytes: int
    move_work: float
    """To extract or install a partition."""
    spool_work: float
    """To set one tuple of a partition on disk aside."""
    page_tuples: int
    disk_byte: float
    seek: float
    seek_sd: float
    swap_rest: float
    """Time for input per time spent on swapping."""
    cross_section: float
    point_to_point: float
    """Bytes per nanosecond."""
    load_compute: float
    load_sleep: float


class State(NamedTuple):
    """Everything that changes; the columns are those of :mod:`geoflux.sim.columns`."""

    clock: Any
    site: Any
    """[s]"""
    pace: Any
    """[s]"""
    part: Any
    """[p]"""
    conn: Any
    """[d, s]"""
    ring: Any
    """[d, s, place] what is in a connection."""
    node: Any
    """[s, node] tuples in a buffer, in lists."""
    lists: Any
    """[s, d] tuples for a destination in order of age; then [s, sites + p] those of a stalled
    partition."""
    dest: Any
    """[s, p] where the producer sends a partition's tuples; NONE: stalled."""
    move: Any
    """[m]"""
    seen: Any
    """[m, s] how far the producer is with a move."""
    totals: Any
    per_second: Any
    alias_cut: Any
    alias_other: Any
    changes: Any


@numba.njit(cache=True)
def uncounted(state: Any) -> Any:
    """The same arrays without reference counts: counting them at every call would take most of the
    time. The caller holds the arrays."""
    return State(
        _bare(state.clock), _bare(state.site), _bare(state.pace), _bare(state.part),
        _bare(state.conn), _bare(state.ring), _bare(state.node), _bare(state.lists),
        _bare(state.dest), _bare(state.move), _bare(state.seen), _bare(state.totals),
        _bare(state.per_second), _bare(state.alias_cut), _bare(state.alias_other),
        _bare(state.changes),
    )  # fmt: skip


def _without_owner(typing: Any, array: Any) -> Any:
    """The array with nobody to count its references."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()

    return array(array), build


_bare: Any = intrinsic(_without_owner)


def fixed_of(cluster: Cluster) -> Fixed:
    """The parameters in the units of the loop."""
    return Fixed(
        sites=cluster.sites,
        exchange=cluster.buffer_tuples == 0,
        buffer_tuples=cluster.buffer_tuples,
        connection_tuples=cluster.connection_tuples,
        packet_tuples=cluster.packet_tuples,
        tuple_bytes=cluster.tuple_bytes,
        latency=round(cluster.latency_us * c.US),
        produce=cluster.produce_us * c.US,
        process=cluster.process_us * c.US,
        process_sd=cluster.process_sd_us * c.US,
        partition_bytes=cluster.partition_bytes,
        move_work=cluster.partition_tuples * cluster.move_us_per_tuple * c.US,
        spool_work=cluster.move_us_per_tuple * c.US,
        page_tuples=max(1, cluster.spool_page_bytes // cluster.tuple_bytes),
        disk_byte=c.SECOND / (cluster.disk_mb_per_second * 1e6),
        seek=cluster.seek_ms * c.MS,
        seek_sd=cluster.seek_sd_ms * c.MS,
        swap_rest=(1 - cluster.rotation_share) / cluster.rotation_share,
        cross_section=cluster.cross_section_mbps * 1e6 / 8 / c.SECOND,
        point_to_point=cluster.point_to_point_mbps * 1e6 / 8 / c.SECOND,
        load_compute=cluster.load_compute_us * c.US,
        load_sleep=cluster.load_sleep_us * c.US,
    )


def empty_state(
    cluster: Cluster, seconds: int, weights: Any, changes: Sequence[tuple[int, int, int, int]]
) -> State:
    """Nothing produced yet; partitions dealt out in turn; every site about to act."""
    n, parts, pairs = cluster.sites, cluster.partitions, max(1, cluster.sites // 2)
    owner = np.arange(parts) % n
    cut, other = alias_table(weights)
    totals = np.zeros(5, np.int64)
    totals[c.DISK_TURN] = parts
    return State(
        clock=_clock(),
        site=_sites(cluster, owner),
        pace=np.zeros((n, c.PACE_COLUMNS)),
        part=_partitions(owner),
        conn=np.zeros((n, n, 3), np.int64),
        ring=np.zeros((n, n, cluster.connection_tuples + _MARKERS, 2), np.int64),
        node=_free_nodes(n, max(1, cluster.buffer_tuples)),
        lists=np.full((n, n + parts, 2), c.NONE, np.int64),
        dest=np.tile(owner, (n, 1)),
        move=np.zeros((pairs, c.MOVE_COLUMNS), np.int64),
        seen=np.zeros((pairs, n), np.int64),
        totals=totals,
        per_second=np.zeros((seconds + 1, 2)),
        alias_cut=cut,
        alias_other=other,
        changes=np.array(changes, np.int64),
    )


def _clock() -> Any:
    clock = np.zeros(c.CLOCKS, np.int64)
    clock[[c.PHASE_END, c.NET_NEXT]] = c.NEVER
    return clock


def _sites(cluster: Cluster, owner: Any) -> Any:
    site = np.zeros((cluster.sites, c.SITE_COLUMNS), np.int64)
    site[:, [c.HAND, c.BACKLOG]] = c.NONE
    site[:, c.IDLE_SINCE] = c.NEVER
    site[:, c.RESIDENT] = np.bincount(owner, minlength=cluster.sites) * cluster.partition_bytes
    site[:, c.CAPACITY] = cluster.memory_bytes
    return site


def _partitions(owner: Any) -> Any:
    part = np.zeros((owner.size, c.PART_COLUMNS), np.int64)
    part[:, c.OWNER] = owner
    part[:, c.SINCE] = np.arange(owner.size)
    return part


def _free_nodes(sites: int, nodes: int) -> Any:
    node = np.zeros((sites, nodes, 3), np.int64)
    node[:, :, c.NODE_NEXT] = np.arange(1, nodes + 1)
    node[:, -1, c.NODE_NEXT] = c.NONE
    return node


def alias_table(weights: Any) -> tuple[Any, Any]:
    """For draws in constant time: at place ``i`` the value is ``i`` below the cut, else the other.

    >>> cut, other = alias_table([1.0, 3.0])
    >>> cut.tolist(), other.tolist()
    ([0.5, 1.0], [1, 1])
    """
    share = np.asarray(weights, np.float64)
    share = share * (share.size / share.sum())
    cut, other = np.ones(share.size), np.arange(share.size)
    small = [i for i, w in enumerate(share) if w < 1]
    large = [i for i, w in enumerate(share) if w >= 1]
    while small and large:
        low, high = small.pop(), large[-1]
        cut[low], other[low] = share[low], high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            small.append(large.pop())
    return cut, other
