"""A keyed operator in a slot: rows in order, states taken and put back, the rest handed back.

Runs inside a worker; knows nothing of Spark. A slot that has used up its time hands back what it
did not get to, which is first in line in the next epoch: nobody waits for a slow slot. A slot
whose partitions do not fit into its memory works on those that do, and then on the others in turn.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.balance.residency import in_turn, spilled_now
from geoflux.balance.skew_buffer import SkewBuffer
from geoflux.engine.blobs import by_partition
from geoflux.engine.keyed_parts import told_parts
from geoflux.engine.keyed_roots import Tracer
from geoflux.engine.keyed_rows import read_carried, together, write_rows
from geoflux.engine.keyed_states import dropped, forget_others, put_back, saved, taken
from geoflux.engine.keyed_streams import split
from geoflux.engine.keyed_task import KeyedReport, KeyedTask
from geoflux.engine.marks import Marks, Placed, placed
from geoflux.engine.rooted import Watch, as_text
from geoflux.engine.route import Parcel, received
from geoflux.engine.staging import staged_name
from geoflux.engine.task import RouteReport
from geoflux.errors import OperatorError
from geoflux.operators.keyed import ROW, Divisible
from geoflux.plan import PrefixPartition, PrefixPlan
from geoflux.scale.services import ServiceSums
from geoflux.state.refs import Ref
from geoflux.state.segments import unique_name

_CHUNK = 4096
"""Rows between two looks at the clock."""


def execute(
    task: KeyedTask, slot: int, parcels: Iterable[Parcel]
) -> tuple[KeyedReport, list[RouteReport]]:
    """Do a slot's work of one epoch; passes the routers' reports on."""
    blobs, routed = received(parcels)
    return _Slot(task, slot, blobs).worked(), routed


class _Slot:
    def __init__(self, task: KeyedTask, slot: int, blobs: list[Any]) -> None:
        self._started = time.perf_counter()
        self._task = task
        self._slot = slot
        self._budget = task.budgets.get(slot, task.budget)
        mine = [p.id for p in task.plan.partitions if p.slot == slot]
        self._sizes = {p: task.sizes.get(p, 0) for p in mine}
        self._waiting = self._inputs(mine, blobs)
        self._own = [ROW] if ROW in task.operator.output.names else []
        self._watch = Watch()
        with self._watch:
            followed = Placed() if task.sampling is None else self._followed()
            self._tracer = Tracer(task.operator, task.sampling, followed)
        self._bytes_in = sum(map(len, blobs))
        self._per_row = {p: -(-t.nbytes // max(len(t), 1)) for p, t in self._waiting.items()}
        self._left = sum(len(rows) * self._per_row[p] for p, rows in self._waiting.items())
        self._spilled = spilled_now(self._sizes, task.spilled, self._budget.memory_bytes)
        self._results: list[pa.Table] = []
        self._changed: dict[int, tuple[tuple[Ref, ...], Any, pa.Table]] = {}
        self._buffer = SkewBuffer[pa.Table](self._budget.buffer_bytes)
        self._load_seconds = 0.0
        self._timed: list[tuple[int, float]] = []
        self._squares: float | None = None

    def _inputs(self, mine: list[int], blobs: list[Any]) -> dict[int, pa.Table]:
        """By partition what was handed back, and after it what is new, in order."""
        task = self._task
        self._carried: dict[int, list[tuple[pa.Table, Marks]]] = {
            p: [read_carried(task.store, task.operator, ref) for ref in task.carried.get(p, ())]
            for p in mine
        }
        self._new: dict[int, list[pa.Table]] = {p: [] for p in mine}
        self._contents: list[Any] = []
        for partition, batches in by_partition(blobs, self._contents).items():
            plain = [batch.replace_schema_metadata(None) for batch in batches]
            self._new[partition] += [pa.Table.from_batches([batch]) for batch in plain]
        self._arrived = sum(len(rows) for some in self._new.values() for rows in some)
        pieces = {p: [*(rows for rows, _ in self._carried[p]), *self._new[p]] for p in mine}
        return {p: together(some) for p, parts in pieces.items() if (some := _filled(parts))}

    def _followed(self) -> Placed:
        """Those of the input that are followed."""
        found, before = Placed(), dict[int, int]()
        for p, pieces in self._carried.items():
            before[p] = 0
            for rows, marks in pieces:
                mine = Placed(np.full(len(marks), p), marks)
                found += mine.taken(np.ones(len(marks), np.bool_), before[p])
                before[p] += len(rows)
        return found + placed(self._contents, before)

    def worked(self) -> KeyedReport:
        """Work through the input as far as time goes, save, and say what was done."""
        task, processed = self._task, {}
        for turn, partition in enumerate(in_turn(self._waiting, self._spilled, task.turns)):
            rows = self._waiting[partition]
            done = 0 if turn and self._is_over() else self._process(partition, rows)
            processed[partition] = done
            if done < len(rows):
                size = (len(rows) - done) * self._per_row[partition]
                self._left -= size
                self._buffer.insert(partition, rows.slice(done), size)
        return self._report(processed, *self._kept())

    def _is_over(self) -> bool:
        """Whether the rest is to be handed back: time is up, and there is room for it."""
        limit = self._budget.seconds
        over = limit is not None and time.perf_counter() - self._started >= limit
        return over and self._buffer.has_room(self._left)

    def _process(self, partition: int, rows: pa.Table) -> int:
        """Process rows of a partition, at least one chunk of them; returns how many."""
        task = self._task
        refs = task.states.get(partition, ())
        opening = time.perf_counter()
        if partition in self._spilled:
            self._disk(partition)
        state = taken(task.store, task.operator, partition, refs)
        self._load_seconds += time.perf_counter() - opening
        done, chunk = 0, self._chunk()
        self._tracer.begin(partition)
        while done < len(rows) and (done == 0 or not self._is_over()):
            some, began = rows.slice(done, chunk), time.perf_counter()
            state, results = self._taken_in(partition, state, some)
            self._tracer.took(len(some), len(results))
            if len(results):
                self._results.append(results)
            done += len(some)
            self._left -= len(some) * self._per_row[partition]
            self._slept(some, began)
            self._timed.append((len(some), time.perf_counter() - began))
        self._changed[partition] = refs, state, rows.slice(0, done)
        self._sizes[partition] = task.operator.size(state)
        if partition in self._spilled:
            self._disk(partition)
        return done

    def _slept(self, rows: pa.Table, began: float) -> None:
        """Sleep as long as the rows take in an emulated slot; notes the squares of their times,
        with what really processing them took as an equal share."""
        times = self._task.emulated.times(self._slot, rows)
        if times is None:
            return
        asleep = time.perf_counter()
        wanted = float(times.sum())
        time.sleep(wanted)
        woken = time.perf_counter()
        each = times * ((woken - asleep) / wanted) + (asleep - began) / len(rows)
        self._squares = (self._squares or 0.0) + float(each @ each)

    def _taken_in(self, partition: int, state: Any, rows: pa.Table) -> tuple[Any, pa.Table]:
        operator = self._task.operator
        where = (
            f"{type(operator).__name__}.process, partition {partition}, epoch {self._task.epoch}"
        )
        try:
            state, results = operator.process(state, rows)
        except Exception as error:
            raise OperatorError(f"{where}: {type(error).__name__}: {error}") from error
        if not results.schema.equals(operator.output):
            raise OperatorError(
                f"{where}: the results are {_names(results.schema)}, "
                f"expected {_names(operator.output)} as output says"
            )
        return state, results

    def _chunk(self) -> int:
        each = self._task.emulated.seconds_of(self._slot)
        if each == 0 or self._budget.seconds is None:
            return _CHUNK
        return max(1, min(_CHUNK, int(max(0.02, self._budget.seconds / 10) / each)))

    def _disk(self, partition: int) -> None:
        rate = self._task.emulated.disk_bytes_per_second
        if rate is not None:
            time.sleep(self._sizes[partition] / rate)

    def _kept(self) -> tuple[dict[int, tuple[Ref, ...]], dict[int, tuple[Ref, ...]]]:
        """Save states and what is handed back; returns the references to both."""
        task = self._task
        refs = saved(task.store, task.operator, self._slot, self._changed, self._chunk())
        for partition, (_, state, _) in self._changed.items():
            if partition in self._spilled:
                dropped(task.store, partition)
            else:
                put_back(task.store, partition, refs[partition], state)
        if isinstance(task.plan, PrefixPlan):
            forget_others(task.store, {p.id for p in task.plan.partitions})
        name = unique_name("state", f"carry-s{self._slot}")
        rest = {p: self._buffer.peek(p) for p in self._buffer.waiting()}
        if rest:
            write_rows(task.store, name, rest, self._tracer.left())
        return refs, {p: (Ref("carry", name, p),) for p in rest}

    def _report(
        self, processed: dict[int, int], states: dict[int, tuple[Ref, ...]],
        carried: dict[int, tuple[Ref, ...]],
    ) -> KeyedReport:  # fmt: skip
        rows = {p: len(self._waiting[p]) - processed[p] for p in carried}
        waiting = {p: count * self._per_row[p] for p, count in rows.items()}
        streams = self._written()
        files = tuple(name for written in streams.values() for name, _ in written)
        with self._watch:
            counts = {stream: files[0][1] for stream, files in streams.items()}
            derived, acks = self._tracer.derived(counts), as_text(self._tracer.acks())
        return KeyedReport(
            self._slot, sum(processed.values()), sum(len(r) for r in self._results),
            time.perf_counter() - self._started, self._load_seconds, self._bytes_in, files,
            _as_text(states), _as_text(carried),
            {str(p): size for p, size in self._sizes.items()},
            {str(p): processed.get(p, 0) for p in self._sizes},
            {str(p): waiting.get(p, 0) for p in sorted(self._spilled)}, streams,
            sum(rows.values()), self._buffer.bytes, sum(self._sizes[p] for p in self._spilled),
            sum(count for p, count in rows.items() if p in self._spilled), bool(carried),
            self._arrived, ServiceSums.of(self._timed, self._squares).to_list(),
            derived, acks, self._watch.seconds, self._parts(),
        )  # fmt: skip

    def _parts(self) -> dict[str, list[list[Any]]]:
        """What the parts of partitions got and hold, where it is asked for."""
        task, told = self._task, {}
        if not (task.measure and isinstance(task.operator, Divisible)):
            return {}
        for p in task.plan.partitions:
            if p.slot == self._slot and isinstance(p, PrefixPartition):
                state = self._changed[p.id][1] if p.id in self._changed else None
                parts = told_parts(task.operator, p, self._new[p.id], state)
                told[str(p.id)] = [list(part) for part in parts]
        return told

    def _written(self) -> dict[str, list[list[Any]]]:
        """Write the results, one file per stream that has any; by stream its file and rows."""
        if not self._results:
            return {}
        task, streams = self._task, {}
        results = pa.concat_tables(self._results)
        parents = results.column(ROW) if self._own else None
        parts, numbers = split(task.operator.streams, results.drop_columns(self._own))
        self._tracer.gave(parents, numbers)
        for stream, table in parts.items():
            name = staged_name("results", task.epoch, self._slot)
            if len(task.operator.streams) > 1:
                name = name.replace(".parquet", f"-{stream}.parquet")
            epochs = pa.array(np.full(len(table), task.epoch))
            with task.store.output(name) as file:
                table = table.append_column("epoch", epochs)
                with self._watch:
                    marks = self._tracer.marks_of(stream)
                with pq.ParquetWriter(file, table.schema, compression=task.compression) as writer:
                    writer.write_table(table)
                    if len(marks):
                        writer.add_key_value_metadata(marks.to_metadata())
            streams[stream] = [[name, len(table)]]
        return streams


def _filled(pieces: list[pa.Table]) -> list[pa.Table]:
    """Those with rows: what was handed back may all have been another's part of it."""
    return [piece for piece in pieces if len(piece)]


def _names(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _as_text(refs: dict[int, tuple[Ref, ...]]) -> dict[str, list[list[Any]]]:
    return {str(p): [ref.plain() for ref in some] for p, some in refs.items()}
