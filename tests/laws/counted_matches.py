"""A sink that counts the matches of each query, by the number that its id is."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.operators.events import Events
from geoflux.operators.pubsub import MatchSink
from geoflux.spatial.space import IntArray


class Told(MatchSink):
    """Matches per query, over all layers."""

    def __init__(self) -> None:
        self.found: Counter[int] = Counter()

    def pairs(self, query_ids: pa.Array, query: IntArray, events: Events, event: IntArray) -> None:
        raise AssertionError("matches are counted")

    def counts(self, query_ids: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        self.found.update({int(query_ids[i].as_py()): int(counts[i]) for i in counts.nonzero()[0]})
