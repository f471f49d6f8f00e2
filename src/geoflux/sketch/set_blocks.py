"""The set structures of one tree and time bound.

Few rows are kept as they are (rounded), which is smaller than the structures and exact. Once they
would be larger, they go into three structures: HLL registers, a count-min table, a Bloom filter.
What a settled block says depends only on the rows that came, not on their order or on merges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import datasketches
import numpy as np
import numpy.typing as npt
import rbloom

from geoflux.sketch.hashing import Words
from geoflux.sketch.set_kernels import (
    add_rows,
    all_set,
    count_words,
    least_count,
    register,
)
from geoflux.sketch.set_shape import Item, SetShape, as_is

Bytes = npt.NDArray[np.uint8]
_MANY = 8
"""Pieces of recent rows are put together when they are so many."""


@dataclass(frozen=True, eq=False)
class Dense:
    """The three structures; arrays are never changed once they are here."""

    registers: Bytes
    table: npt.NDArray[np.uint32]
    bloom: Bytes
    items: int
    """Items counted in the table."""

    @classmethod
    def empty(cls, shape: SetShape) -> Dense:
        return cls(
            np.zeros(1 << shape.lg_k, np.uint8),
            np.zeros((shape.hashes, shape.buckets), np.uint32),
            np.zeros((shape.bits + 7) // 8, np.uint8),
            0,
        )

    @property
    def bytes_resident(self) -> int:
        return int(self.registers.nbytes + self.table.nbytes + self.bloom.nbytes)

    @cached_property
    def fill(self) -> float:
        """The share of the Bloom filter's bits that are set."""
        return int(np.bitwise_count(self.bloom).sum()) / (8 * self.bloom.size)

    def with_rows(self, words: Words, coupons: npt.NDArray[np.uint32], shape: SetShape) -> Dense:
        registers, table, bloom = self.registers.copy(), self.table.copy(), self.bloom.copy()
        register(registers, coupons)
        items = add_rows(words, shape.missing, shape.seeds, table, bloom, shape.sizes)
        return Dense(registers, table, bloom, self.items + int(items))

    def merged(self, other: Dense) -> Dense:
        return Dense(
            np.maximum(self.registers, other.registers),
            self.table + other.table,
            self.bloom | other.bloom,
            self.items + other.items,
        )


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one tree and time bound: recent ones as words, the others in the structures."""

    rows: int
    recent: tuple[tuple[Words, npt.NDArray[np.uint32]], ...] = ()
    """Words and coupons."""
    dense: Dense | None = None

    @property
    def bytes_resident(self) -> int:
        kept = sum(words.nbytes + coupons.nbytes for words, coupons in self.recent)
        return kept + (self.dense.bytes_resident if self.dense else 0)

    def with_rows(self, words: Words, coupons: npt.NDArray[np.uint32], shape: SetShape) -> Block:
        """With more rows; the structures are copied once in a while, not with every batch."""
        known: Block = self.__dict__.get("_settled", self)
        block = replace(
            known, rows=known.rows + coupons.size, recent=(*known.recent, (words, coupons))
        )
        waiting = sum(coupons.size for _, coupons in block.recent)
        if block.rows > shape.most_rows and waiting > shape.most_rows // 4:
            return block.settled(shape)
        if len(block.recent) > _MANY:
            return replace(block, recent=(block.together,))
        return block

    @cached_property
    def together(self) -> tuple[Words, npt.NDArray[np.uint32]]:
        """All recent rows in one piece."""
        if len(self.recent) == 1:
            return self.recent[0]
        words: Any = np.concatenate([words for words, _ in self.recent])
        return words, np.concatenate([coupons for _, coupons in self.recent])

    def settled(self, shape: SetShape) -> Block:
        """Recent rows only if they are few, structures only if they are many."""
        if not self.recent or self.rows <= shape.most_rows:
            return self
        known = self.__dict__.get("_settled")
        if known is None:
            dense = (self.dense or Dense.empty(shape)).with_rows(*self.together, shape)
            known = self.__dict__["_settled"] = Block(self.rows, (), dense)
        return known

    def merged(self, other: Block, shape: SetShape) -> Block:
        """All rows of both."""
        if self.dense is not None and other.dense is not None:
            dense: Dense | None = self.dense.merged(other.dense)
        else:
            dense = self.dense or other.dense
        return Block(self.rows + other.rows, self.recent + other.recent, dense).settled(shape)

    def fill_registers(self, registers: Bytes) -> None:
        """Put what this block's HLL knows into the registers of another."""
        if self.dense is not None:
            np.maximum(registers, self.dense.registers, out=registers)
        for _, coupons in self.recent:
            register(registers, coupons)

    def count(self, item: Item) -> tuple[int, int]:
        """How often an item came, at most; and the number of items that may have been mixed in.

        What the Bloom filter has not seen did not come, whatever the table says.
        """
        exact = sum(int(count_words(w, item.words, item.feature)) for w, _ in self.recent)
        if self.dense is None or not all_set(self.dense.bloom, item.places):
            return exact, 0
        return exact + int(least_count(self.dense.table, item.columns)), self.dense.items

    def holds(self, item: Item) -> tuple[bool, bool]:
        """Whether an item came, and whether that is certain."""
        if any(count_words(w, item.words, item.feature) for w, _ in self.recent):
            return True, True
        if self.dense is None:
            return False, True
        return bool(all_set(self.dense.bloom, item.places)), False

    def false_positive(self, shape: SetShape) -> float:
        """The chance that an item that never came seems to be there, with the bits as they are."""
        return float(self.dense.fill**shape.probes) if self.dense is not None else 0.0


def hll_sketch(registers: Bytes) -> Any:
    """Registers as an HLL sketch of DataSketches, one that was merged (so without its history)."""
    lg_k = registers.size.bit_length() - 1
    parts = np.exp2(-registers.astype(np.float64))
    small = registers < 32
    head = np.array([10, 1, 7, lg_k, 0, 16, 0, 10], np.uint8)
    sums = np.array([0.0, parts[small].sum(), parts[~small].sum()])
    counts = np.array([np.count_nonzero(registers == 0), 0], np.uint32)
    image = head.tobytes() + sums.tobytes() + counts.tobytes() + registers.tobytes()
    return datasketches.hll_sketch.deserialize(image)


def count_min_sketch(dense: Dense) -> Any:
    """A table as a count-min sketch of DataSketches."""
    hashes, buckets = dense.table.shape
    empty = datasketches.count_min_sketch(hashes, buckets)
    if not dense.items:
        return empty
    empty.update(0)  # a header of one that is not empty
    head = empty.serialize()[:16]
    counts = np.concatenate([[dense.items], dense.table.ravel()]).astype(np.float64)
    return datasketches.count_min_sketch.deserialize(head + counts.tobytes())


def bloom_filter(dense: Dense, shape: SetShape) -> rbloom.Bloom:
    """Bits as a filter of rbloom; ask it for items, with their hash as it is."""
    image = shape.probes.to_bytes(8, "little") + dense.bloom.tobytes()
    return rbloom.Bloom.load_bytes(image, as_is)
