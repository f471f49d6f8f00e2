"""The same patterns by trying everything: what the application must agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations


def supports(texts: Iterable[str], longest: int) -> Counter[str]:
    """In how many texts each set of words is, of the first ``longest`` different ones of a text."""
    counts: Counter[str] = Counter()
    for text in texts:
        words = sorted(list(dict.fromkeys(text.lower().split()))[:longest])
        for size in range(1, len(words) + 1):
            counts.update(" ".join(some) for some in combinations(words, size))
    return counts


def maximal(texts: Iterable[str], threshold: int, longest: int) -> dict[str, int]:
    """Sets of words in at least ``threshold`` texts, of which no larger set is.

    >>> maximal(["a b c", "a b", "c"], 2, 8)
    {'c': 2, 'a b': 2}
    """
    frequent = {s: n for s, n in supports(texts, longest).items() if n >= threshold}
    sets = [set(itemset.split()) for itemset in frequent]
    return {
        itemset: count
        for itemset, count in frequent.items()
        if not any(set(itemset.split()) < other for other in sets)
    }
