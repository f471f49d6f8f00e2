"""Plans: who owns which part of the work, and how one plan becomes the next."""

from collections.abc import Mapping
from typing import Any

from geoflux.plan.changes import (
    Change,
    Merge,
    MergePrefix,
    Move,
    Resize,
    Split,
    SplitPrefix,
    change_from_dict,
    change_to_dict,
)
from geoflux.plan.grid_plan import GridPlan
from geoflux.plan.hash_plan import HashPlan, MiniPartition
from geoflux.plan.hashing import stable_hash
from geoflux.plan.plan import Overlaps, Partition, Plan
from geoflux.plan.prefix_plan import PrefixPartition, PrefixPlan, succession
from geoflux.plan.replicated import ReplicatedPlan
from geoflux.plan.resizing import resized

__all__ = [
    "Change", "GridPlan", "HashPlan", "Merge", "MergePrefix", "MiniPartition", "Move", "Overlaps",
    "Partition", "Plan", "PrefixPartition", "PrefixPlan", "ReplicatedPlan", "Resize", "Split",
    "SplitPrefix", "change_from_dict", "change_to_dict", "plan_from_dict", "resized",
    "stable_hash", "succession",
]  # fmt: skip


def plan_from_dict(values: Mapping[str, Any]) -> Any:
    """The plan that ``to_dict`` wrote, of whichever kind; callers name the kinds they can use."""
    if values["kind"] == "replicated":
        return ReplicatedPlan.from_dict(values)
    if values["kind"] == "hash":
        return HashPlan.from_dict(values)
    if values["kind"] == "prefix":
        return PrefixPlan.from_dict(values)
    return GridPlan.from_dict(values)
