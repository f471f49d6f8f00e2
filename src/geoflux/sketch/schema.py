"""What a sketch holds: its features, how finely it cuts space, time and values, and its sizes."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Literal

from geoflux.errors import ConfigError
from geoflux.sketch.times import HOUR, MINUTE
from geoflux.spatial.geohash import MAX_BITS

MAX_FEATURES = 20


@dataclass(frozen=True)
class SketchSchema:
    """The settings of a sketch, checked when it is made; sketches of one schema can be joined.

    ``features``: 1 to 20 names. ``tree_bits`` and ``region_bits``: bits of the geohash of a tree,
    0 to 24, and of a region, up to 60. ``finest``: the time bins that observations come into.
    ``max_bins``: bins of a feature, 2 to 128. ``steady_rows``: rows of a tree before its bins are
    made. ``components``: of a density, 4 to 256. ``set_seconds``: time bound of the set structures,
    whose sizes and errors the others give. ``spans``: the range of each feature all over the world,
    if it is known; bins then need not be finer than half a percent of it, otherwise of the range
    within the tree. ``max_leaves``: of a region and time bin, 0 for any number.

    >>> SketchSchema(("t", "p", "wind")).pairs
    ((0, 1), (0, 2), (1, 2))
    """

    features: tuple[str, ...]
    tree_bits: int = 10
    region_bits: int = 20
    finest: Literal["minute", "hour"] = "hour"
    max_bins: int = 32
    steady_rows: int = 2000
    components: int = 24
    set_seconds: int = 86400
    hll_lg_k: int = 12
    bloom_error: float = 0.01
    bloom_items: int = 20_000
    frequency_error: float = 0.001
    frequency_confidence: float = 0.99
    set_decimals: int = 6
    spans: tuple[float, ...] | None = None
    max_leaves: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        if self.spans is not None:
            object.__setattr__(self, "spans", tuple(float(span) for span in self.spans))
        problems = self._problems()
        if problems:
            raise ConfigError.of(problems)

    def _problems(self) -> list[str]:
        problems = []
        names = self.features
        if not 1 <= len(names) <= MAX_FEATURES:
            problems.append(f"a sketch has 1 to {MAX_FEATURES} features, not {len(names)}")
        if any(not isinstance(name, str) or not name for name in names):
            problems.append(f"features are names, not {names!r}; give each a text")
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        if twice:
            problems.append(f"features are named once each, but {', '.join(twice)} came twice")
        if self.finest not in ("minute", "hour"):
            problems.append(f'finest is "minute" or "hour", not {self.finest!r}')
        if self.region_bits < self.tree_bits:
            problems.append(
                f"regions lie within trees: region_bits ({self.region_bits}) must be at least "
                f"tree_bits ({self.tree_bits})"
            )
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                problems.append(f"{name} is a whole number from {low} to {high}, not {value!r}")
        if self.spans is not None and (
            len(self.spans) != len(names) or not all(0.0 < span < inf for span in self.spans)
        ):
            problems.append(
                f"spans are {len(names)} numbers above 0, one for each feature, not {self.spans!r}"
            )
        for name in ("bloom_error", "frequency_error", "frequency_confidence"):
            value = getattr(self, name)
            if not isinstance(value, float) or not 0.0 < value < 1.0:
                problems.append(f"{name} is a number between 0 and 1, not {value!r}")
        return problems

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs of features, by number, in the order of the leaves' co-moments."""
        return tuple(itertools.combinations(range(len(self.features)), 2))

    @property
    def level(self) -> int:
        """The level of the time bins that observations come into."""
        return MINUTE if self.finest == "minute" else HOUR

    @property
    def room(self) -> tuple[int, int]:
        """How many leaves a region has in a time bin, and the grain that nothing is beyond."""
        return self.max_leaves, self.last_grain

    @property
    def last_grain(self) -> int:
        """The grain at which all bins of a feature are one."""
        return (self.max_bins - 1).bit_length()

    def to_json(self) -> dict[str, Any]:
        """As plain values; :meth:`from_json` makes it again."""
        return dataclasses.asdict(self) | {"features": list(self.features)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SketchSchema:
        """What :meth:`to_json` gave."""
        return cls(**{**values, "features": tuple(values["features"])})


_RANGES = (
    ("tree_bits", 0, 24), ("region_bits", 0, MAX_BITS), ("max_bins", 2, 128),
    ("steady_rows", 1, 1 << 40), ("components", 4, 256), ("set_seconds", 60, 366 * 86400),
    ("hll_lg_k", 4, 21), ("bloom_items", 1, 1 << 32), ("set_decimals", 1, 15),
    ("max_leaves", 0, 1 << 30),
)  # fmt: skip
