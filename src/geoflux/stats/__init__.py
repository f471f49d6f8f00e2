"""Statistics: what a slot knows of its partitions, kept small enough to be saved and moved."""

from geoflux.stats.inheritance import KnownQueries, inherited
from geoflux.stats.trio import Axis, CostModel, Trio, TrioStat
from geoflux.stats.trio_arrays import stats_from_arrays, stats_to_arrays

__all__ = [
    "Axis", "CostModel", "KnownQueries", "Trio", "TrioStat", "inherited", "stats_from_arrays",
    "stats_to_arrays",
]  # fmt: skip
