"""A sketch that a run keeps, opened from its directory: also while it runs, and without Spark.

Whoever asks reads committed states and runs nothing: answers are those of the last epoch that was
committed when the sketch was opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Literal

from geoflux.config import Config
from geoflux.engine.keyed_holdings import KeyedHoldings
from geoflux.engine.keyed_states import opened, replayed
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
from geoflux.state.refs import Ref
from geoflux.state.segments import unique_name, write_segment

_COPIES = "state/ready.json"
Copies = dict[int, tuple[tuple[Ref, ...], Ref]]
"""By partition, the references that a copy stands for, and the copy."""


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


class SketchReader:
    """Reads the sketch of a run again and again: of a sketchlet that it has seen, only what was
    noted since is taken in; one whose references did not change is the very same value. Without
    ``copies``, what a run made ready when it ended is left alone."""

    def __init__(self, out: str | Path, copies: bool = True) -> None:
        self._uses_copies = copies
        self.store = store_of(out)
        if not self.store.exists(RUN):
            raise StateError(f"{out} holds no run; give the directory that geoflux run wrote")
        self.config = Config.restored(self.store.read_json(RUN)["config"])
        if not self.config.sketch.features:
            raise StateError(f"{out} holds no sketch; run one with sketch.features in its settings")
        self.operator, self.log = sketch_of(self.config), EpochLog(self.store)
        self._known: dict[int, tuple[tuple[Ref, ...], Forest]] = {}

    def committed(self, epoch: int) -> float:
        """When an epoch was, in seconds since 1970."""
        return float(self.log.manifest(epoch)["committed"])

    def read(self, epoch: int | None = None, number: int | None = None) -> OpenSketch:
        """As of the last committed epoch; or of another one that is still there, and only the
        sketchlet of one number."""
        schema = self.operator.schema
        last = self.log.last() if epoch is None else epoch
        copies = self._copies() if self._uses_copies else {}
        while last is not None:
            try:
                states = KeyedHoldings.from_dict(self.log.manifest(last)).states.refs
                chosen = sorted(states) if number is None else [sorted(states)[number]]
                known = {p: (states[p], self._forest(p, states[p], copies)) for p in chosen}
            except StateError:
                before, last = last, self.log.last()  # a run deletes what it needs no more
                if last == before or epoch is not None:
                    raise
                continue
            self._known = known
            forests = tuple(forest for _, forest in known.values())
            return OpenSketch(schema, last, forests or (self.operator.empty(),))
        return OpenSketch(schema, None, (self.operator.empty(),))

    def _forest(self, partition: int, refs: tuple[Ref, ...], copies: Copies) -> Forest:
        before, forest = self._known.get(partition, ((), None))
        found: Forest
        if forest is not None and before and refs[: len(before)] == before:
            found = replayed(self.store, self.operator, refs[len(before) :], forest)
            return found
        copy = copies.get(partition)
        if copy is not None and copy[0] == refs:
            with contextlib.suppress(StateError):  # swept away just now
                found = opened(self.store, self.operator, (copy[1],))
                return found
        found = opened(self.store, self.operator, refs)
        return found

    def made_ready(self) -> None:
        """Save whole, for whoever opens the sketch next, what would have to be taken in again; to
        be called by the run, when it ends. A run that goes on sweeps these copies away."""
        self.read()
        name = unique_name("state", "ready")
        arrays: dict[str, Any] = {}
        copies: list[list[Any]] = []
        for partition, (refs, forest) in self._known.items():
            if len(refs) == 1 and refs[0].kind == "state" and refs[0].prefix is None:
                continue
            one = forest.in_one_layer()
            arrays |= {f"{partition}/{n}": a for n, a in self.operator.extract(one).items()}
            copies.append([[ref.plain() for ref in refs], ["state", name, partition]])
        if copies:
            write_segment(self.store, name, arrays, {"kind": "keyed"})
            self.store.write_json(_COPIES, copies)

    def _copies(self) -> Copies:
        try:
            told = self.store.read_json(_COPIES) if self.store.exists(_COPIES) else []
        except StateError:  # swept away meanwhile
            told = []
        return {copy[2]: (tuple(Ref.of(ref) for ref in refs), Ref.of(copy)) for refs, copy in told}


def open_sketch(out: str | Path, epoch: int | None = None, number: int | None = None) -> OpenSketch:
    """The sketch in a run's directory, as of its last committed epoch; or of another one that is
    still there, and only the sketchlet of one number."""
    return SketchReader(out).read(epoch, number)
