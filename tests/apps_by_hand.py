"""Operators joined by streams, run by plain loops: what an application must give, however its rows
are cut into batches, whichever operator is next, whoever holds which keys."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from geoflux.operators.keyed import Operator
from geoflux.plan.hashing import stable_hash

Edge = tuple[str, str]
"""An operator and one of its streams."""


class ByHand:
    """``reads`` says what each operator reads: streams of others, of its own, or of outside (an
    operator name of ``""``). Every choice that an engine is free to make is drawn at random."""

    def __init__(
        self, operators: Mapping[str, Operator[Any]], reads: Mapping[str, list[Edge]],
        draw: random.Random, partitions: int = 3,
    ) -> None:  # fmt: skip
        self._operators, self._reads, self._draw = dict(operators), dict(reads), draw
        self._partitions = partitions
        self._states = {
            (name, p): operator.empty()
            for name, operator in operators.items()
            for p in range(partitions)
        }
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in operators}
        self.written: dict[Edge, list[pa.Table]] = {}

    def feed(self, stream: str, rows: pa.Table) -> None:
        """Rows from outside."""
        self._write("", stream, rows)

    def settle(self) -> None:
        """Until nothing waits anywhere."""
        while any(self._waiting.values()):
            self.step()

    def step(self) -> None:
        """One operator takes some of what waits for it, in order, if anything waits."""
        ready = [name for name, rows in self._waiting.items() if rows]
        if not ready:
            return
        name = self._draw.choice(ready)
        waiting = pa.concat_tables(self._waiting[name], promote_options="permissive")
        taken = min(len(waiting), self._draw.choice((1, 5, 20, 10_000)))
        self._waiting[name] = [waiting.slice(taken)] if taken < len(waiting) else []
        operator, rows = self._operators[name], waiting.slice(0, taken)
        owner = stable_hash(rows.column(operator.key)) % self._partitions
        for p in self._draw.sample(range(self._partitions), self._partitions):
            mine = rows.filter(pa.array(owner == p)).select([operator.key, *operator.columns])
            if len(mine):
                self._process(name, p, mine)

    def states(self, name: str) -> list[Any]:
        """The states of an operator's partitions."""
        return [self._states[name, p] for p in range(self._partitions)]

    def results(self, name: str, stream: str = "results") -> pa.Table:
        """All that an operator wrote to a stream so far."""
        return pa.concat_tables(self.written[name, stream])

    def _process(self, name: str, partition: int, rows: pa.Table) -> None:
        operator, state = self._operators[name], self._states[name, partition]
        if self._draw.random() < 0.3:  # moved: only what is extracted goes along
            arrays = operator.extract(state).items()
            state = operator.install({n: pa.array(a) for n, a in arrays})
        state, results = operator.process(state, rows)
        assert operator.size(state) >= 0
        assert results.schema.equals(operator.output), results.schema
        self._states[name, partition] = state
        for at in results.column("@row").to_pylist():
            assert 0 <= at < len(rows)
        results = results.drop_columns(["@row"])
        streams = getattr(operator, "streams", ("results",))
        if len(streams) == 1:
            results = results.append_column("@stream", pa.array([streams[0]] * len(results)))
        to = results.column("@stream").to_pylist()
        assert set(to) <= set(streams)
        for stream in streams:
            chosen = pa.array([one == stream for one in to], pa.bool_())
            self._write(name, stream, results.filter(chosen).drop_columns(["@stream"]))

    def _write(self, name: str, stream: str, rows: pa.Table) -> None:
        self.written.setdefault((name, stream), []).append(rows)
        for reader, edges in self._reads.items():
            if (name, stream) in edges and len(rows):
                self._waiting[reader].append(rows)
