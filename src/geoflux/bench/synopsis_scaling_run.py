"""A sketch on Spark while slots come and go, and somebody who asks it all the while.

Weather is replayed hour by hour, one in every epoch, more of it or less: what comes is counted by
epochs and not by the clock, so that a busy machine shows the same. Slots behave like machines of
their own on any number of cores, since the service time of a row is emulated: the slot sleeps. All
else is a run as a user's. Meanwhile a thread asks the same questions at random moments, and
whenever an operation was just decided; each answer is kept with the epoch that it is of.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from geoflux.bench.synopsis_scaling_truth import QUESTIONS, Taken
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.keyed_task import Emulated
from geoflux.engine.sketch_reader import open_sketch, sketch_of
from geoflux.keyed_api import operated
from geoflux.sketch.answers import Answer
from geoflux.spark.stream import PUSHBACK, Listener
from geoflux.state.keys import store_of
from geoflux.workload.weather import FEATURES, Weather

_HOUR = 3600
_WAVES = 0.8
"""Of all epochs, those in which the rate changes."""
_SKETCH = {"features": FEATURES, "tree_bits": 8, "region_bits": 10, "leaves": 8, "steady_rows": 200}


@dataclass(frozen=True)
class ScalingSizes:
    """How much comes, and how fast slots are."""

    epochs: int = 110
    """In which something comes."""
    calm: int = 400
    """Rows of an epoch at least."""
    peak: int = 3_600
    """At most; it begins and has its middle there."""
    row_seconds: float = 5e-4
    """Emulated service time."""
    budget: float = 0.6
    """Seconds of an epoch after which slots hand the rest back."""
    hold: int = 2
    calm_for: int = 2
    rest: int = 1
    most_slots: int = 6
    memory_epochs: int = 30
    """Of the run that is short of memory; 0: there is none."""
    memory_rate: int = 700
    memory_megabytes: float = 3.0
    """Of a slot."""
    ask_every: float = 1.0
    """Seconds between two rounds of questions, on average."""


@dataclass
class Seen:
    """What a run showed: its epochs, which rows had been taken in when each was committed, and the
    answers that were given meanwhile, each with its epoch and the number of its question."""

    epochs: list[Manifest] = field(default_factory=list)
    taken: dict[int, Taken] = field(default_factory=dict)
    answers: list[tuple[int, int, Answer]] = field(default_factory=list)

    def operations(self, kind: str) -> list[Manifest]:
        """Epochs that ended with one."""
        return [m for m in self.epochs if m["decision"]["reason"].startswith(kind)]


def rates(sizes: ScalingSizes) -> npt.NDArray[np.int64]:
    """Rows of every epoch: down, up and down again, and then calm for a while."""
    at = np.minimum(np.arange(sizes.epochs) / (_WAVES * sizes.epochs), 1.0)
    high = np.cos(1.5 * np.pi * at) ** 2
    return (sizes.calm + (sizes.peak - sizes.calm) * high).astype(np.int64)


def stream_of(seen: Weather, sizes: ScalingSizes) -> Weather:
    """Of every hour as many observations, drawn at random, as are to come in an epoch."""
    dice, start, parts = np.random.default_rng(8), int(seen.time[0]) // _HOUR * _HOUR, []
    every = len(seen) / sizes.epochs
    for number, rows in enumerate(rates(sizes).tolist()):
        first, last = int(number * every), int((number + 1) * every)
        drawn = np.sort(dice.choice(np.arange(first, last), rows, replace=rows > last - first))
        times = np.sort(start + number * _HOUR + dice.integers(0, _HOUR, rows))
        parts.append(Weather(seen.lon[drawn], seen.lat[drawn], times, seen.values[drawn]))
    return Weather(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@dataclass(frozen=True)
class Run:
    """A run in a folder of its own; ``memory`` is what a slot has for states, empty: no limit."""

    sizes: ScalingSizes
    folder: Path
    memory: str = ""

    @property
    def out(self) -> Path:
        """Its directory."""
        return self.folder / "out"

    def config(self) -> Config:
        """As a user would write it."""
        sizes = self.sizes
        return Config.from_dict(
            {
                "source": {"kind": "files", "path": str(self.folder / "in")},
                "engine": {"slots": 1, "epoch_events": sizes.peak},
                "sketch": _SKETCH,
                "synopsis": {
                    "partitions": 1, "observe": "", "hold": sizes.hold,
                    "calm": sizes.calm_for, "rest": sizes.rest, "most_slots": sizes.most_slots,
                },
                "flux": {"budget": f"{sizes.budget}s", "memory": self.memory},
            }
        )  # fmt: skip

    def ran(self, stream: Weather, spark: SparkSession) -> Seen:
        """All of a stream, with somebody who asks."""
        self._write(stream)
        config, seen = self.config(), Seen()
        told, over = threading.Event(), threading.Event()
        sketch, store = sketch_of(config), store_of(self.out)
        wanted = rates(self.sizes).tolist()

        def heard(manifest: Manifest) -> None:
            coming = wanted[min(manifest["epoch"] + 1, len(wanted) - 1)]
            store.write_bytes(PUSHBACK, str(coming).encode())
            seen.taken[manifest["epoch"]] = Taken.of(manifest, store, sketch)
            seen.epochs.append(manifest)
            if manifest["decision"]["changes"]:
                told.set()

        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(self._ask, seen, told, over)
            try:
                emulated = Emulated(seconds_elsewhere=self.sizes.row_seconds)
                operated(sketch, config, self.out, Listener(heard), spark=spark, emulated=emulated)
            finally:
                over.set()
                told.set()
            asking.result()
        return seen

    def _ask(self, seen: Seen, told: threading.Event, over: threading.Event) -> None:
        """Ask all questions, again and again, until the run is over; once more then."""
        dice, last = np.random.default_rng(3), False
        while not last:
            told.wait(float(dice.exponential(self.sizes.ask_every)))
            told.clear()
            last = over.is_set()
            if not seen.epochs:
                continue
            sketch = open_sketch(self.out)
            assert sketch.epoch is not None, "an epoch was committed"
            for number, question in enumerate(QUESTIONS):
                seen.answers.append((sketch.epoch, number, sketch.query(question.sql)))

    def _write(self, stream: Weather) -> None:
        path = self.folder / "in" / "weather.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(stream.table(), path, row_group_size=self.sizes.peak)
