"""A stream of short messages: everyday words, and phrases that come into fashion and go again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SENTENCE = pa.schema([("number", pa.int64()), ("lane", pa.int64()), ("text", pa.string())])
_SOUNDS = ["ba", "do", "ka", "li", "mo", "na", "pe", "ri", "su", "ta", "vo", "ze"]


@dataclass(frozen=True)
class Sentences:
    """``vocabulary`` words with Zipf's frequencies, ``phrases`` of three to five rarer ones.

    A phrase is in fashion for ``fashion`` sentences at a time; then ``share`` of all sentences
    have one of those that are. Sentence ``n`` goes to lane ``n % window``: it follows, in its lane,
    the very sentence that leaves the window when it enters.
    """

    window: int
    seed: int = 7
    vocabulary: int = 1500
    phrases: int = 12
    fashion: int = 400
    share: float = 0.3

    @cached_property
    def words(self) -> list[str]:
        """The vocabulary, the most frequent word first."""
        draw = np.random.default_rng([self.seed, 0])
        places = draw.permutation(len(_SOUNDS) ** 3)[: self.vocabulary]
        parts = np.unravel_index(places, (len(_SOUNDS),) * 3)
        return ["".join(_SOUNDS[i] for i in word) for word in zip(*parts, strict=True)]

    @cached_property
    def _phrases(self) -> list[list[int]]:
        draw = np.random.default_rng([self.seed, 1])
        return [
            draw.choice(np.arange(20, self.vocabulary), int(draw.integers(3, 6)), False).tolist()
            for _ in range(self.phrases)
        ]

    def text(self, number: int) -> str:
        """A sentence."""
        draw = np.random.default_rng([self.seed, 2, number])
        chosen = (draw.zipf(1.25, int(draw.integers(1, 5))) - 1) % self.vocabulary
        words = chosen.tolist()
        fashion = np.random.default_rng([self.seed, 3, number // self.fashion])
        liked = fashion.permutation(self.phrases)[:3]
        if draw.random() < self.share:
            words += self._phrases[int(draw.choice(liked))]
        return " ".join(self.words[w] for w in draw.permutation(words))

    def table(self, first: int, count: int) -> pa.Table:
        """So many sentences."""
        numbers = np.arange(first, first + count)
        texts = [self.text(int(n)) for n in numbers]
        return pa.table([numbers, numbers % self.window, texts], schema=SENTENCE)

    def write(self, folder: Path, count: int, per_file: int = 500) -> None:
        """Parquet files of ``per_file`` sentences."""
        folder.mkdir(parents=True, exist_ok=True)
        for first in range(0, count, per_file):
            rows = self.table(first, min(per_file, count - first))
            pq.write_table(rows, folder / f"sentences-{first:07d}.parquet")
