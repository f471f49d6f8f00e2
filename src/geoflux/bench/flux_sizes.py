"""How large the simulated experiments of `geoflux bench flux` are: the paper's, or quick ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from geoflux.sim import Cluster


@dataclass(frozen=True)
class Sizes:
    """How large the experiments are. Times are in seconds of simulated time."""

    cluster: Cluster
    crowded: Cluster
    """With larger partitions, for the experiments with memory."""
    squeezed: int
    """Memory of a site under pressure."""
    squeezed_less: int
    """The same where others are loaded at the same time: what is on disk is to be settled soon."""
    load_at: int
    seconds: int
    """Of runs over which throughput is drawn."""
    settled: int
    """From when on throughput is taken as that of the balanced state."""
    perturbed: tuple[int, ...]
    buffers: tuple[int, ...]
    """Kilobytes; the ratio to an Exchange is reported for the middle one."""
    minima: tuple[float, ...]
    """Fixed minima of the collection phase."""
    skew_seconds: int
    skew_loaded: int
    """Loaded sites with skewed input."""
    crowded_seconds: int
    crowded_settled: int
    long_seconds: int
    long_settled: int
    """The same where several sites must be relieved: one partition a round leaves each."""
    squeezed_counts: tuple[int, ...]
    mixed_seeds: tuple[int, ...]


FULL = Sizes(
    cluster=Cluster(), crowded=Cluster(per_site=128, partition_bytes=6 << 20), squeezed=512 << 20,
    squeezed_less=640 << 20,
    load_at=5, seconds=40, settled=25, perturbed=(0, 1, 2, 4, 8, 16, 24, 32),
    buffers=(0, 10, 20, 40, 80, 160, 320, 640), minima=(0.01, 0.04, 0.16, 0.64),
    skew_seconds=60, skew_loaded=8, crowded_seconds=60, crowded_settled=45,
    long_seconds=150, long_settled=120, squeezed_counts=(0, 1, 8, 32), mixed_seeds=(1, 2, 3),
)  # fmt: skip
QUICK = replace(
    FULL, cluster=Cluster(sites=8, buffer_bytes=40_000), squeezed=96 << 20,
    squeezed_less=120 << 20,
    crowded=Cluster(sites=8, per_site=24, partition_bytes=6 << 20, memory_bytes=192 << 20),
    load_at=2, seconds=16, settled=11, perturbed=(0, 1, 4, 8), buffers=(0, 10, 40),
    minima=(0.01, 0.16), skew_seconds=6, skew_loaded=2, crowded_seconds=26, crowded_settled=18,
    long_seconds=40, long_settled=30, squeezed_counts=(1, 4), mixed_seeds=(1,),
)  # fmt: skip
