"""Sets of words as texts, and their subsets, in columns.

An itemset is its words in alphabetical order with a blank between them, so equal sets are equal
keys. Nothing here loops over rows: sentences with equally many words are done together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
MOST_WORDS = 12
"""A sentence of so many words has 4095 subsets."""


_BLANKS = r"[\t-\r\x1c-\x1f \x85\pZ]+"
"""As ``str.split`` has them. ``utf8_split_whitespace`` of pyarrow 26 will not do: after a letter
beyond ASCII it sometimes leaves the last blank where it is."""


class Bags:
    """Rows of words: ``words`` are all there are, in order; ``codes[ends[i - 1]:ends[i]]`` are
    those of row ``i``, ascending."""

    def __init__(self, words: pa.Array, codes: Ints, sizes: Ints) -> None:
        self._words, self._codes, self._sizes = words, codes, sizes
        self._starts = np.cumsum(sizes) - sizes

    @classmethod
    def of_sentences(cls, texts: Any, longest: int) -> Bags:
        """The first ``longest`` different words of each text, in small letters."""
        lists = pc.split_pattern_regex(pc.utf8_lower(texts.fill_null("")), _BLANKS)
        words, codes, rows = _encoded(lists)
        _, firsts = np.unique(rows * len(words) + codes, return_index=True)
        firsts.sort()  # different words, in the order in which they were said
        rows, codes = rows[firsts], codes[firsts]
        starts = np.searchsorted(rows, np.arange(len(texts)))
        early = np.arange(len(rows)) - starts[rows] < longest
        rows, codes = rows[early], codes[early]
        order = np.lexsort((codes, rows))
        return cls(words, codes[order], np.bincount(rows, minlength=len(texts)).astype(np.int64))

    @classmethod
    def of_itemsets(cls, itemsets: Any) -> Bags:
        """The words of itemsets."""
        words, codes, rows = _encoded(pc.split_pattern(itemsets, " "))
        return cls(words, codes, np.bincount(rows, minlength=len(itemsets)).astype(np.int64))

    def subsets(self) -> tuple[pa.Array, Ints]:
        """All subsets but the empty one, and the row that each is of.

        >>> sets, rows = Bags.of_sentences(pa.array(["b a", "c"]), 8).subsets()
        >>> sets.to_pylist(), rows.tolist()
        (['a', 'b', 'a b', 'c'], [0, 0, 0, 1])
        """
        return self._chosen(lambda size: _bits(np.arange(1, 1 << size), size))

    def without_one(self) -> tuple[pa.Array, Ints]:
        """The subsets that lack one word, but the empty one, and the row that each is of.

        >>> Bags.of_itemsets(pa.array(["a b c", "d"])).without_one()[0].to_pylist()
        ['b c', 'a c', 'a b']
        """
        return self._chosen(lambda size: ~np.eye(size, dtype=bool) if size > 1 else _bits([], 1))

    def _chosen(self, masks_for: Any) -> tuple[pa.Array, Ints]:
        """The subsets that the masks for each size say, in the order of the rows."""
        sets: list[pa.Array] = [pa.array([], pa.string())]
        rows: list[Ints] = [np.empty(0, np.int64)]
        for size in np.unique(self._sizes[self._sizes > 0]):
            mine = np.flatnonzero(self._sizes == size)
            masks = masks_for(int(size))
            codes = self._codes[self._starts[mine][:, None] + np.nonzero(masks)[1]]
            lengths = np.tile(masks.sum(axis=1), len(mine))
            ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
            lists = pa.LargeListArray.from_arrays(ends, self._words.take(pa.array(codes.ravel())))
            sets.append(pc.binary_join(lists, " "))
            rows.append(np.repeat(mine, len(masks)))
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        return pa.concat_arrays(sets).take(pa.array(order)), row[order]


def _bits(numbers: Any, size: int) -> npt.NDArray[np.bool_]:
    """Which bits are set, the lowest first."""
    return (np.asarray(numbers, np.int64)[:, None] >> np.arange(size) & 1).astype(bool)


def _encoded(lists: Any) -> tuple[pa.Array, Ints, Ints]:
    """All words in order, and for each word that is there its number and its row."""
    flat, rows = pc.list_flatten(lists), pc.list_parent_indices(lists)
    said = pc.not_equal(flat, "")
    flat, rows = flat.filter(said), rows.filter(said).to_numpy().astype(np.int64)
    if isinstance(flat, pa.ChunkedArray):
        flat = flat.combine_chunks()
    coded = flat.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return coded.dictionary.take(pa.array(order)), rank[coded.indices.to_numpy()], rows
