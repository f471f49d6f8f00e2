"""A cluster of many sites, simulated: what the policies do past what this machine can run.

Source: Flux 3, 4, 5.4, 6.2.
"""

from geoflux.sim.cluster import (
    ZIPF_80_20,
    Cluster,
    CpuLoad,
    Load,
    MemoryLoad,
    rotating_load,
)
from geoflux.sim.results import Moved, Run, Where
from geoflux.sim.simulate import simulate

__all__ = [
    "ZIPF_80_20", "Cluster", "CpuLoad", "Load", "MemoryLoad", "Moved", "Run", "Where",
    "rotating_load", "simulate",
]  # fmt: skip
