"""The sizes of the set structures, as their libraries choose them for the errors asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import datasketches
import numpy as np
import numpy.typing as npt
import rbloom

from geoflux.sketch.hashing import SINGLE_DIGITS, Words, missing_word, value_item, words_of
from geoflux.sketch.hashing import combination_item as _combination_item
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.set_kernels import SEED, lookup

_MODULUS = 2**31 - 1


def as_is(item: int) -> int:
    """The hash of an item that is a hash: rbloom must not use its own, salted by process."""
    return item


@dataclass(frozen=True, eq=False)
class Item:
    """What a question is about: a combination of all features, or the value of one."""

    words: Words
    feature: int
    """-1 for a combination."""
    columns: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    hashed: int
    """The item as the libraries take it, an unsigned 64-bit number."""


@dataclass(frozen=True)
class SetShape:
    """Everything that two sets must have in common to be merged."""

    features: int
    digits: int
    seconds: int
    lg_k: int
    hashes: int
    buckets: int
    confidence: float
    bits: int
    probes: int

    @classmethod
    def of(cls, schema: SketchSchema) -> SetShape:
        """For the errors that a schema asks for."""
        filter_ = rbloom.Bloom(schema.bloom_items, schema.bloom_error, as_is)
        counting = datasketches.count_min_sketch
        return cls(
            len(schema.features),
            schema.set_decimals,
            schema.set_seconds,
            schema.hll_lg_k,
            counting.suggest_num_hashes(schema.frequency_confidence),
            counting.suggest_num_buckets(schema.frequency_error),
            schema.frequency_confidence,
            filter_.size_in_bits,
            int.from_bytes(filter_.save_bytes()[:8], "little"),
        )

    @property
    def frequency_error(self) -> float:
        """The share of all items by which a frequency may be told too high."""
        return float(np.e / self.buckets)

    @cached_property
    def seeds(self) -> npt.NDArray[np.uint64]:
        return np.array(_seeds(self.hashes), np.uint64)

    @cached_property
    def sizes(self) -> npt.NDArray[np.uint64]:
        """Buckets and bits with their reciprocals, and probes, for the compiled loops."""
        return np.array(
            [self.buckets, 2**64 // self.buckets, self.bits, 2**64 // self.bits, self.probes],
            np.uint64,
        )

    @cached_property
    def missing(self) -> np.uint64:
        return missing_word(self.digits)

    @property
    def word_type(self) -> type[np.uint32] | type[np.uint64]:
        return np.uint32 if self.digits <= SINGLE_DIGITS else np.uint64

    @cached_property
    def row_bytes(self) -> int:
        return self.features * np.dtype(self.word_type).itemsize + 4

    @cached_property
    def most_rows(self) -> int:
        """So many rows may be kept as they are: more would be larger than the structures."""
        dense = (1 << self.lg_k) + 4 * self.hashes * self.buckets + (self.bits + 7) // 8
        return dense // self.row_bytes

    def combination(self, values: npt.NDArray[np.float64]) -> Item:
        """All features' values, NaN for a missing one."""
        words = words_of(values.reshape(1, -1), self.digits)[0]
        return self._item(words, -1, _combination_item(words))

    def value(self, feature: int, value: float) -> Item:
        """The value of one feature."""
        alone = np.full(self.features, np.nan)
        alone[feature] = value
        words = words_of(alone.reshape(1, -1), self.digits)[0]
        return self._item(words, feature, value_item(feature, words[feature]))

    def _item(self, words: Words, feature: int, hashed: int) -> Item:
        columns, places = lookup(np.uint64(hashed), self.seeds, self.sizes)
        return Item(words, feature, columns, places, int(hashed))


@lru_cache
def _seeds(count: int) -> tuple[int, ...]:
    """The seeds of a count-min sketch's rows, as DataSketches draws them (with libstdc++).

    A number below 2**64 is put together from three draws of the generator x -> 16807 x.
    """
    state = SEED
    whole = _MODULUS - 1

    def draw() -> int:
        nonlocal state
        state = state * 16807 % _MODULUS
        return state - 1

    def upper() -> int:
        part = (whole - 1) // 5
        while True:
            head = draw()
            while head >= 5 * part:
                head = draw()
            number = head // part * whole + draw()
            if number <= (2**64 - 1) // whole:
                return number

    seeds: list[int] = []
    while len(seeds) < count:
        number = upper() * whole + draw()
        if number < 2**64:
            seeds.append((number + SEED) % 2**64)
    return tuple(seeds)
