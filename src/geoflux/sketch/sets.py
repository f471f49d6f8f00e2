"""Which combinations of values were met, how many different ones, and how often.

Per tree and time bound (a day, unless set otherwise): an HLL for the number of different
combinations, a count-min for how often one came, a Bloom filter for whether it came at all. The
last two also take the value of each single feature. The structures are those of DataSketches and
rbloom, bit by bit, filled by compiled loops: one item at a time from Python costs three times as
much. They belong to their tree, and merge exactly: what they say depends on the rows only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.errors import ConfigError, StateError
from geoflux.sketch import set_arrays
from geoflux.sketch.hashing import words_of
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.set_arrays import Bound
from geoflux.sketch.set_blocks import Block, hll_sketch
from geoflux.sketch.set_kernels import coupons_of
from geoflux.sketch.set_shape import Item, SetShape

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """A number, between which it truly lies, and how often that is so."""

    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Membership:
    """Whether something was met. "No" is certain; "yes" is wrong with this probability."""

    found: bool
    false_positive: float


@dataclass(frozen=True)
class Scope:
    """The trees (each once; None: all) and the time asked about, ``first <= t < last`` in seconds.

    Structures know no finer parts: every bound that the scope touches counts as a whole.
    """

    trees: Keys | None = None
    first: int | None = None
    last: int | None = None


EVERYTHING = Scope()


@dataclass(frozen=True, eq=False)
class Sets:
    """The set structures of a forest.

    >>> sets = Sets.empty(SketchSchema(("t", "p")))
    >>> rows = np.array([[1.5, 2.0], [1.5, np.nan], [1.5, 2.0]])
    >>> sets = sets.updated(np.zeros(3, np.int64), np.zeros(3, np.int64), rows)
    >>> sets.frequency(sets.shape.combination(np.array([1.5, 2.0]))).value
    2.0
    >>> sets.member(sets.shape.value(0, 1.5))
    Membership(found=True, false_positive=0.0)
    """

    shape: SetShape
    blocks: Mapping[Bound, Block] = field(default_factory=dict)

    @classmethod
    def empty(cls, schema: SketchSchema) -> Sets:
        return cls(SetShape.of(schema))

    @property
    def bytes_resident(self) -> int:
        return sum(block.bytes_resident for block in self.blocks.values())

    def updated(self, trees: Keys, times: Keys, values: Floats) -> Sets:
        """With rows: the code of each one's tree, its time in seconds, its values [n, F]."""
        if not trees.size:
            return self
        bounds = times // self.shape.seconds
        order, starts = _groups(trees, bounds)
        words = words_of(values[order], self.shape.digits)
        coupons = np.asarray(coupons_of(words), np.uint32)
        ends = np.append(starts[1:], trees.size)
        heads = order[starts]
        blocks = dict(self.blocks)
        nothing = Block(0)
        for tree, bound, begin, end in zip(
            trees[heads].tolist(), bounds[heads].tolist(), starts.tolist(), ends.tolist(),
            strict=True,
        ):  # fmt: skip
            first = bound * self.shape.seconds
            key = tree, first, first + self.shape.seconds
            blocks[key] = blocks.get(key, nothing).with_rows(
                words[begin:end].copy(), coupons[begin:end].copy(), self.shape
            )
        return replace(self, blocks=blocks)

    def cut(self, trees: Keys) -> Sets:
        """The sets of some trees."""
        kept = set(trees.tolist())
        return replace(self, blocks={k: b for k, b in self.blocks.items() if k[0] in kept})

    def joined(self, other: Sets) -> Sets:
        """Everything of both; what has the same tree and bound is merged."""
        if self.shape != other.shape:
            raise ConfigError(
                "sets of different sizes or errors cannot be merged: "
                f"{self.shape} and {other.shape}; give both sketches the same settings"
            )
        blocks = dict(self.blocks)
        for key, block in other.blocks.items():
            blocks[key] = blocks[key].merged(block, self.shape) if key in blocks else block
        return replace(self, blocks=blocks)

    def folded(self, before: int, seconds: int) -> Sets:
        """Bounds that ended by ``before`` put together into bounds of so many seconds."""
        if seconds % self.shape.seconds:
            raise ConfigError(
                f"sets fold into multiples of their {self.shape.seconds} seconds, not {seconds}"
            )
        blocks: dict[Bound, Block] = {}
        for key, block in self.blocks.items():
            tree, first, last = key
            wide = first // seconds * seconds
            if last <= before and last <= wide + seconds:
                key = tree, wide, wide + seconds
            blocks[key] = blocks[key].merged(block, self.shape) if key in blocks else block
        return replace(self, blocks=blocks)

    def settled(self) -> Sets:
        """The same sets in the form that depends on nothing but the rows that came."""
        return replace(self, blocks={k: b.settled(self.shape) for k, b in self.blocks.items()})

    @cached_property
    def _of_trees(self) -> dict[int, list[tuple[int, int, Block]]]:
        found: dict[int, list[tuple[int, int, Block]]] = {}
        for (tree, first, last), block in self.blocks.items():
            found.setdefault(tree, []).append((first, last, block))
        return found

    def within(self, scope: Scope = EVERYTHING) -> Iterator[Block]:
        """The blocks that a scope touches, settled."""
        trees = self._of_trees if scope.trees is None else scope.trees.tolist()
        for tree in trees:
            for first, last, block in self._of_trees.get(tree, ()):
                if (scope.last is None or first < scope.last) and (
                    scope.first is None or last > scope.first
                ):
                    yield block.settled(self.shape)

    def cardinality(self, scope: Scope = EVERYTHING) -> Estimate:
        """How many different combinations there were, with the bounds of DataSketches (95 %)."""
        registers = np.zeros(1 << self.shape.lg_k, np.uint8)
        for block in self.within(scope):
            block.fill_registers(registers)
        sketch: Any = hll_sketch(registers)
        return Estimate(
            sketch.get_estimate(), sketch.get_lower_bound(2), sketch.get_upper_bound(2), 0.95
        )

    def frequency(self, item: Item, scope: Scope = EVERYTHING) -> Estimate:
        """How often an item came: never told too low, and rarely too high by more than stated."""
        counts = mixed = 0
        for block in self.within(scope):
            count, items = block.count(item)
            counts += count
            mixed += items
        low = max(0.0, counts - self.shape.frequency_error * mixed)
        return Estimate(float(counts), low, float(counts), self.shape.confidence if mixed else 1.0)

    def member(self, item: Item, scope: Scope = EVERYTHING) -> Membership:
        """Whether an item came; the probability is that of the filters as full as they are."""
        found = False
        right = 1.0
        for block in self.within(scope):
            here, certain = block.holds(item)
            if here and certain:
                return Membership(True, 0.0)
            found |= here
            right *= 1.0 - block.false_positive(self.shape)
        return Membership(found, 1.0 - right if found else 0.0)

    def to_arrays(self, prefix: str = "sets.") -> dict[str, npt.NDArray[Any]]:
        """Plain arrays that depend on nothing but the rows that came."""
        return set_arrays.to_arrays(self.shape, self.blocks, prefix)

    @classmethod
    def from_arrays(
        cls, schema: SketchSchema, arrays: Mapping[str, npt.NDArray[Any]], prefix: str = "sets."
    ) -> Sets:
        """What :meth:`to_arrays` gave, of a sketch of this schema."""
        shape, blocks = set_arrays.from_arrays(arrays, prefix)
        if shape != SetShape.of(schema):
            raise StateError(
                f"the sets were made as {shape}, but the settings ask for {SetShape.of(schema)}: "
                "restore the settings, or use a new directory"
            )
        return cls(shape, blocks)

    def to_bytes(self) -> bytes:
        """The same rows give the same bytes."""
        return set_arrays.to_bytes(self.shape, self.blocks)

    @classmethod
    def from_bytes(cls, data: bytes) -> Sets:
        return cls(*set_arrays.from_bytes(data))


def _groups(trees: Keys, bounds: Keys) -> tuple[Keys, Keys]:
    """Rows ordered by tree and bound (stable), and where each group begins."""
    first = int(bounds.min())
    width = int(bounds.max()) - first + 1
    keys = trees * width + (bounds - first)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    return order, np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
