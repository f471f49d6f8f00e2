"""Continuous queries of a sketch: answered as of committed epochs, each epoch once.

They are named in the settings, or placed in the run's directory while it goes. The answers of an
epoch are one file, written as a whole after its commit and before the next epoch begins. So a crash
leaves at most the last epoch unanswered, whose states are all there: it is answered when the run
goes on, and an epoch that has its file is never answered again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from geoflux.engine.sketch_reader import SketchReader
from geoflux.errors import ConfigError, QueryError, StateError
from geoflux.sections_sketch import ContinuousConfig, recurring
from geoflux.settings import seconds
from geoflux.sketch.evaluate import Prepared, prepare
from geoflux.sketch.schema import SketchSchema
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

Every = float | Literal["epoch"]
PLACED, ANSWERS = "continuous", "answers"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, eq=False)
class Continuous:
    """A query by its name, ready to be run; or why it cannot be. ``query.query.every`` says
    when."""

    name: str
    text: str
    query: Prepared | None
    mistake: str = ""

    @property
    def every(self) -> Every:
        """Each epoch, or a number of seconds."""
        return "epoch" if self.query is None else self.query.query.every or "epoch"


def every_of(given: str | float) -> Every:
    """``epoch``, a duration, or a number of seconds.

    >>> every_of("epoch"), every_of("1m30s"), every_of(5)
    ('epoch', 90.0, 5.0)
    """
    if isinstance(given, int | float) and given > 0:
        return float(given)
    problem = recurring(str(given))
    if problem is not None:
        raise ConfigError(f"every {given}: {problem}")
    return "epoch" if given == "epoch" else seconds(str(given))


def is_due(every: Every, before: float | None, now: float) -> bool:
    """Whether an epoch committed ``now`` is answered, given when the one ``before`` was: of
    stretches of seconds, counted from 1970, the first epoch is. It follows from the manifests
    alone, so a restart changes nothing.

    >>> is_due(60.0, 59.0, 61.0), is_due(60.0, 61.0, 119.0), is_due("epoch", 1.0, 2.0)
    (True, False, True)
    """
    return every == "epoch" or before is None or now // every > before // every


def continuous_of(
    name: str, asked: str | Mapping[str, Any], every: str | float | None, schema: SketchSchema
) -> Continuous:
    """A query by its name; a mistake raises. Where ``every`` is not said, the query may."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"a continuous query cannot be called {name!r}; expected 1 to 64 letters, digits, - or "
            "_"
        )
    found = prepare(asked, schema)
    if every is not None or found.query.every is None:
        when = every_of(every or "epoch")
        found = Prepared(replace(found.query, every=when), schema)
    text = asked if isinstance(asked, str) else json.dumps(asked)
    return Continuous(name, text, found)


def configured(given: Sequence[ContinuousConfig], schema: SketchSchema) -> list[Continuous]:
    """The queries of the settings; all mistakes are told at once."""
    found, problems = [], []
    for number, one in enumerate(given):
        try:
            found.append(continuous_of(one.name, one.query, one.every, schema))
        except (ConfigError, QueryError) as error:
            problems.append(f"sketch.continuous[{number}]: {error}")
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems += [f"sketch.continuous: two queries are called {name}" for name in twice]
    if problems:
        raise ConfigError.of(problems)
    return found


def place(reader: SketchReader, name: str, asked: str, every: str | None = None) -> Continuous:
    """Place a query on a run, from its next epoch on, whether it goes now or later."""
    found = continuous_of(name, asked, every, reader.operator.schema)
    if name in {one.name for one in reader.config.sketch.continuous}:
        raise ConfigError(f"the settings have a query {name} already; choose another name")
    reader.store.write_json(_placed(name), {"query": asked, "every": found.every})
    return found


def drop(reader: SketchReader, name: str) -> None:
    """Take a placed query away; its answers stay."""
    if not reader.store.exists(_placed(name)):
        names = ", ".join(one.name for one in placed(reader.store, reader.operator.schema))
        raise ConfigError(f"no query {name} was placed here; placed: {names or 'none'}")
    reader.store.delete(_placed(name))


def placed(store: Store, schema: SketchSchema) -> list[Continuous]:
    """The queries that were placed on a run; one that cannot be read is its mistake."""
    found = []
    for file in store.names(PLACED):
        name = file.removesuffix(".json")
        try:
            form = store.read_json(f"{PLACED}/{file}")
            found.append(continuous_of(name, form["query"], form.get("every"), schema))
        except StateError:
            continue  # taken away meanwhile
        except (ConfigError, QueryError) as error:
            found.append(Continuous(name, str(form["query"]), None, str(error)))
        except (ValueError, KeyError, TypeError, AttributeError):
            expected = 'expected {"query": "SELECT ...", "every": "epoch"}'
            found.append(Continuous(name, "", None, f"{PLACED}/{file}: {expected}"))
    return found


class Answering:
    """Answers the queries of the settings, and those that are placed, epoch by epoch."""

    def __init__(self, reader: SketchReader, given: Sequence[Continuous]) -> None:
        self._reader = reader
        self._given = tuple(given)

    def catch_up(self) -> None:
        """Answer the last committed epoch, unless that was done."""
        last = self._reader.log.last()
        if last is not None:
            self.answer(last)

    def answer(self, epoch: int) -> None:
        """Answer what is due in an epoch, which must be the last one; once, however often it is
        called."""
        store, log = self._reader.store, self._reader.log
        if store.exists(_answers(epoch)):
            return
        every = (*self._given, *placed(store, self._reader.operator.schema))
        if not every:
            return
        now = self._reader.committed(epoch)
        before = self._reader.committed(epoch - 1) if log.is_committed(epoch - 1) else None
        due = [one for one in every if is_due(one.every, before, now)]
        if not due:
            return
        sketch = self._reader.read(epoch)
        lines = []
        for one in due:
            told: dict[str, Any] = {"name": one.name, "epoch": epoch, "committed": now}
            told["query"] = one.text
            try:
                if one.query is None:
                    raise QueryError(one.mistake)
                told |= one.query.run(sketch.forests).to_dict()
            except QueryError as error:
                told["mistake"] = str(error)
            lines.append(json.dumps(told))
        store.write_bytes(_answers(epoch), "".join(f"{line}\n" for line in lines).encode())


def answers(store: Store, name: str = "", after: int = -1) -> Iterator[dict[str, Any]]:
    """What was answered in later epochs than ``after``, in their order; of one query, or of
    all."""
    for file in store.names(ANSWERS):
        if int(file.split(".")[0]) > after:
            for line in store.read_bytes(f"{ANSWERS}/{file}").decode().splitlines():
                told = json.loads(line)
                if name in ("", told["name"]):
                    yield told


def is_over(store: Store, log: EpochLog) -> bool:
    """Whether a run came to its end: its summary tells of all epochs that are there."""
    if not store.exists("summary.json"):
        return False
    return bool(store.read_json("summary.json")["epochs"] == len(log.numbers()))


def _placed(name: str) -> str:
    return f"{PLACED}/{name}.json"


def _answers(epoch: int) -> str:
    return f"{ANSWERS}/{epoch:012d}.ndjson"
