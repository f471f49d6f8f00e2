"""A sketch that a run keeps, opened from its directory: also while it runs, and without Spark.

Whoever asks reads committed states and runs nothing: answers are those of the last epoch that was
committed when the sketch was opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Literal

from geoflux.config import Config
from geoflux.engine.keyed_holdings import KeyedHoldings
from geoflux.engine.keyed_states import opened
from geoflux.errors import ConfigError, StateError
from geoflux.operators.sketching import Sketch
from geoflux.sections_sketch import seconds_at
from geoflux.settings import seconds
from geoflux.sketch.answers import Answer
from geoflux.sketch.evaluate import evaluate
from geoflux.sketch.forest import Forest
from geoflux.sketch.query import Query
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.times import Ages
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import RUN, store_of


def sketch_of(config: Config) -> Sketch:
    """The operator that the settings describe."""
    wanted = config.sketch
    if not wanted.features:
        raise ConfigError(
            "sketch.features is empty: name the numeric columns that the sketch is about"
        )
    finest: Literal["minute", "hour"] = "minute" if wanted.finest == "minute" else "hour"
    schema = SketchSchema(
        wanted.features, wanted.tree_bits, wanted.region_bits, finest, wanted.bins,
        wanted.steady_rows, set_seconds=int(seconds(wanted.sets)), max_leaves=wanted.leaves,
    )  # fmt: skip
    ages = Ages(
        *(int(seconds(age)) for age in (
            wanted.minutes_for, wanted.hours_for, wanted.weeks_for, wanted.months_for))
    )  # fmt: skip
    return Sketch(
        schema, config.source.x or "lon", config.source.y or "lat", ages,
        int(seconds(wanted.length_of_study)) if wanted.length_of_study else 0,
        seconds_at(wanted.since) if wanted.since else None,
        seconds_at(wanted.until) if wanted.until else None,
    )  # fmt: skip


@dataclass(frozen=True)
class OpenSketch:
    """A sketch as of one committed epoch; ``forests`` are its sketchlets, by partition."""

    schema: SketchSchema
    epoch: int | None
    forests: tuple[Forest, ...]

    @property
    def observations(self) -> int:
        """How many were taken in."""
        return sum(forest.observations for forest in self.forests)

    @property
    def bytes(self) -> int:
        """Of all sketchlets."""
        return sum(forest.bytes for forest in self.forests)

    def query(self, asked: str | Mapping[str, Any] | Query) -> Answer:
        """The answer to a query in SQL, in JSON, or as a value; every number has its error."""
        return evaluate(asked, self.forests)

    def whole(self) -> Forest:
        """All sketchlets as one."""
        return reduce(lambda one, other: one.joined(other), self.forests)


def open_sketch(out: str | Path, epoch: int | None = None, number: int | None = None) -> OpenSketch:
    """The sketch in a run's directory, as of its last committed epoch; or of another one that is
    still there, and only the sketchlet of one number."""
    store = store_of(out)
    if not store.exists(RUN):
        raise StateError(f"{out} holds no run; give the directory that geoflux run wrote")
    config = Config.restored(store.read_json(RUN)["config"])
    if not config.sketch.features:
        raise StateError(f"{out} holds no sketch; run one with sketch.features in its settings")
    operator, log = sketch_of(config), EpochLog(store)
    last = log.last() if epoch is None else epoch
    while last is not None:
        try:
            states = KeyedHoldings.from_dict(log.manifest(last)).states.refs
            chosen = sorted(states) if number is None else [sorted(states)[number]]
            forests = [opened(store, operator, states[p]) for p in chosen]
            return OpenSketch(operator.schema, last, tuple(forests) or (operator.empty(),))
        except StateError:
            before, last = last, log.last()  # whoever runs it deletes what it needs no more
            if last == before or epoch is not None:
                raise
    return OpenSketch(operator.schema, None, (operator.empty(),))
