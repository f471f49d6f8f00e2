"""Stopping a run at the very moment in which Spark offers the next epoch."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from geoflux.spark.stream import EpochStream
from geoflux.state.store import Store


class Query:
    """Waits, like Spark's, for the epoch under way, which has only just been offered."""

    def __init__(self, stream: EpochStream) -> None:
        self._stream = stream
        self.offered: BaseException | None = None
        self.ended = False

    def stop(self) -> None:
        thread = threading.Thread(target=self._offer, daemon=True)
        thread.start()
        thread.join(5)
        self.ended = not thread.is_alive()

    def _offer(self) -> None:
        rows: Any = None
        try:
            self._stream._epoch(rows, 0)
        except BaseException as error:
            self.offered = error


def test_an_epoch_that_is_offered_while_the_run_stops_is_not_begun(tmp_path: Path) -> None:
    nothing: Any = SimpleNamespace(last=None, epoch_events=1)
    stream = EpochStream(nothing, nothing, Store(str(tmp_path)), nothing)
    query = Query(stream)
    stream._stop_between_epochs(query)
    assert query.ended, "neither waits for the other"
    assert type(query.offered).__name__ == "_Stopping"
