"""The simulated cluster and what disturbs it, as values: every parameter of the paper by name.

Source: Flux 3 (sites, network, disk, operator), 4 (buffer, external load), 5.4 (mini-partitions,
movement), 6.2 (memory).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from geoflux.errors import ConfigError

ZIPF_80_20 = 0.940
"""The exponent with which 20 % of 16 K groups get 80 % of the tuples."""


@dataclass(frozen=True)
class Cluster:
    """A stage of producers and consumers on shared-nothing sites. The defaults are the paper's.

    >>> Cluster().partitions, Cluster().partition_tuples, Cluster(sites=2, per_site=3).partitions
    (2048, 10000, 6)
    """

    sites: int = 32
    """Each has one producer and one consumer; at least 2."""
    per_site: int = 64
    """Mini-partitions of the consumer per site at the start."""
    groups: int = 16_384
    """Dealt out evenly over the partitions."""
    skew: float = 0.0
    """Exponent of the Zipf law over the groups; 0: all alike."""
    exchange: bool = False
    """Whether the space of the buffer is in the connections, equally, and a producer blocks on the
    first tuple that has no room: the Exchange that Flux is compared with."""
    buffer_bytes: int = 2048 * 80
    """Transient-skew buffer of a producer; 0: none."""
    produce_us: float = 0.5
    """Time of the CPU for one tuple produced."""
    process_us: float = 45.0
    process_sd_us: float = 3.0
    """Time of the CPU for one tuple processed: normal, with this mean and deviation."""
    tuple_bytes: int = 80
    packet_bytes: int = 1024
    queue_packets: int = 2
    """Packets that a connection between two sites holds."""
    latency_us: float = 70.0
    """Of a packet or a message between two sites."""
    partition_bytes: int = 800_000
    """State of a partition."""
    move_us_per_tuple: float = 0.2
    """Time of the CPU to quiesce and extract, and again to install, per tuple of the state."""
    cross_section_mbps: float = 500.0
    point_to_point_mbps: float = 250.0
    """Bandwidth for states that move; input has all that it needs."""
    disk_mb_per_second: float = 20.0
    seek_ms: float = 5.0
    seek_sd_ms: float = 0.2
    memory_bytes: int = 1 << 30
    """Memory of a site for the states of partitions."""
    spool_page_bytes: int = 1 << 16
    """Input of partitions on disk is written in pages of this size (ours: the text has none)."""
    rotation_share: float = 0.5
    """The share of its time that a site may spend on swapping partitions (ours)."""
    load_compute_us: float = 100.0
    load_sleep_us: float = 50.0
    """An external process computes and sleeps in turns."""

    def __post_init__(self) -> None:
        problems = [
            f"{name} = {getattr(self, name)!r}: expected {expected}"
            for name, good, expected in (
                ("sites", self.sites >= 2, "at least 2"),
                ("per_site", self.per_site >= 1, "at least 1"),
                ("groups", self.groups >= self.sites * self.per_site, "one per partition or more"),
                ("skew", self.skew >= 0, "0 or more"),
                ("buffer_bytes", self.buffer_bytes >= 0, "0 or more"),
                ("process_us", self.process_us > 0, "more than 0"),
                ("packet_bytes", self.packet_bytes >= self.tuple_bytes, "a tuple or more"),
                ("queue_packets", self.queue_packets >= 1, "at least 1"),
                ("rotation_share", 0 < self.rotation_share < 1, "between 0 and 1"),
            )
            if not good
        ]
        if problems:
            raise ConfigError.of(problems)

    @property
    def partitions(self) -> int:
        """Mini-partitions of the whole consumer."""
        return self.sites * self.per_site

    @property
    def partition_tuples(self) -> int:
        """Tuples in the state of a partition."""
        return self.partition_bytes // self.tuple_bytes

    @property
    def packet_tuples(self) -> int:
        """Tuples in a packet."""
        return self.packet_bytes // self.tuple_bytes

    @property
    def buffer_tuples(self) -> int:
        """Tuples that the buffer of a producer holds; 0 where the connections have the space."""
        return 0 if self.exchange else self.buffer_bytes // self.tuple_bytes

    @property
    def connection_tuples(self) -> int:
        """Tuples that a connection holds.

        >>> Cluster().connection_tuples, Cluster(exchange=True).connection_tuples
        (24, 88)
        """
        held = self.queue_packets * self.packet_tuples
        if self.exchange:
            held += self.buffer_bytes // self.tuple_bytes // self.sites
        return held


@dataclass(frozen=True)
class CpuLoad:
    """An external process on a site, for a while."""

    site: int
    start: float = 0.0
    end: float = math.inf


@dataclass(frozen=True)
class MemoryLoad:
    """From ``start`` on, a site has only so much memory for the states of partitions."""

    site: int
    start: float
    memory_bytes: int = 1 << 29


Load = CpuLoad | MemoryLoad


def rotating_load(cluster: Cluster, seconds_per_site: float = 0.5) -> tuple[CpuLoad, ...]:
    """A load that goes from site to site. Source: Flux 4.

    >>> [(load.site, load.start, load.end) for load in rotating_load(Cluster(sites=2))]
    [(0, 0.0, 0.5), (1, 0.5, 1.0)]
    """
    step = seconds_per_site
    return tuple(CpuLoad(site, site * step, (site + 1) * step) for site in range(cluster.sites))
