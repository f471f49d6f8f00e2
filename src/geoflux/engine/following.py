"""Following a sketch: a query that is asked again whenever an epoch was committed.

Whoever follows writes nothing and holds nobody up: epochs that are committed while an answer is
made are passed over. Queries that must be answered in every epoch are placed on the run instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from geoflux.engine.continuous import every_of, is_due, is_over
from geoflux.engine.sketch_reader import SketchReader
from geoflux.sketch.answers import Answer
from geoflux.sketch.evaluate import Prepared, prepare

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Told:
    """An answer, the epoch that it is of, and when that was committed (seconds since 1970)."""

    epoch: int
    committed: float
    answer: Answer

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"epoch": self.epoch, "committed": self.committed, **self.answer.to_dict()}


def follow_sketch(
    out: str | Path,
    query: str | Mapping[str, Any],
    every: str | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Told]:
    """Answers as of the last committed epoch and of those that follow, until the run is over.

    ``every`` is ``"epoch"`` (also if neither it nor the query says anything) or a duration such as
    ``"60s"``. A run that crashed is waited for.

    >>> for told in follow_sketch("out", "SELECT count(*)"):  # doctest: +SKIP
    ...     print(told.epoch, told.answer["count(*)"].value[0])
    """
    reader = SketchReader(out)
    asked = prepare(query, reader.operator.schema)
    when = every_of(every) if every is not None else asked.query.every or "epoch"
    asked = Prepared(replace(asked.query, every=when), asked.schema)
    return _followed(reader, asked, wait)


def _followed(
    reader: SketchReader, asked: Prepared, wait: Callable[[float], None]
) -> Iterator[Told]:
    every = asked.query.every or "epoch"
    told: tuple[int, float] | None = None
    while True:
        over = is_over(reader.store, reader.log)  # before what is there is looked at
        last = reader.log.last()
        if last is not None and (told is None or last > told[0]):
            committed = reader.committed(last)
            if over or is_due(every, told[1] if told else None, committed):
                sketch = reader.read()
                assert sketch.epoch is not None, "one was committed"
                told = sketch.epoch, reader.committed(sketch.epoch)
                yield Told(*told, asked.run(sketch.forests))
        if over:
            return
        wait(_POLL_SECONDS)
