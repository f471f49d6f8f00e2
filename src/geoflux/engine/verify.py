"""Verification: recompute a run's matches and windows by brute force from what it received, and
compare."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.intake import EventColumns, Intake
from geoflux.engine.oracle import Barred, Oracle
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.setting import Setting
from geoflux.engine.source import EventSource, RawBatch, Slice
from geoflux.engine.verify_windows import clock_problems, compared, written_windows
from geoflux.operators.events import Events
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

_EXAMPLES = 5


@dataclass
class Verification:
    """What the comparison found; all of ``missing``, ``duplicate``, ``extra``, ``wrong_windows``
    and ``problems`` must be nothing."""

    epochs: int = 0
    events: int = 0
    quarantined: int = 0
    matches: int = 0
    missing: int = 0
    duplicate: int = 0
    extra: int = 0
    windows: int = 0
    """Rows of windows that were written."""
    wrong_windows: int = 0
    """Rows of windows that are missing, too many, or not what they should be."""
    late: int = 0
    """Events that came after a window they belong to could have closed."""
    problems: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether the run's matches and windows are exactly the right ones."""
        wrong = self.missing + self.duplicate + self.extra + self.wrong_windows
        return wrong == 0 and not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Plain values; ``wrong`` is another word for ``extra``."""
        return {**asdict(self), "wrong": self.extra, "clean": self.is_clean}


def verified(
    setting: Setting, source: EventSource | None, progress: Callable[[int, int], None] | None = None
) -> Verification:
    """Compare every committed epoch with the oracle; ``source`` may be ``None`` where the run
    recorded what it received."""
    log = EpochLog(setting.store)
    rules = RecordRules(setting.grid.space, setting.schema, setting.config.source.max_record_bytes)
    oracle = Oracle(rules)
    columns = EventColumns.of(setting.config.source, setting.config.space)
    result = Verification()
    manifests = list(log.manifests())
    offset: dict[str, Any] = {}
    for done, manifest in enumerate(manifests):
        records = setting.control.read(offset, manifest["control"])
        oracle.clock.lateness_micros = manifest["lateness"]  # a restart may have changed it
        oracle.control(records, manifest["silence"], _barred(setting.store, manifest))
        offset = manifest["control"]
        id_type = columns.id_type(setting.schema)
        intake = Intake(columns, rules.space, id_type, oracle.columns())
        _compare_epoch(
            setting, manifest, oracle, _received(setting, source, manifest, intake), result
        )
        _compare_windows(setting, manifest, oracle, result)
        if progress is not None:
            progress(done + 1, len(manifests))
    result.problems += slice_problems(manifests)
    return result


def _barred(store: Store, manifest: dict[str, Any]) -> Barred:
    """Whom the epoch turned away, as its manifest says."""
    guard = manifest.get("guard")
    if guard is None:
        return Barred()
    users = frozenset(store.read_json(guard["in_force"])) if guard["in_force"] else frozenset()
    return Barred(users, guard["refuses_nameless"], frozenset(guard["removed"]))


def _received(
    setting: Setting, source: EventSource | None, manifest: dict[str, Any], intake: Intake
) -> Iterator[tuple[Events, int]]:
    """The epoch's valid events, and how many rows were bad, batch by batch."""
    for batch in _batches(setting, source, manifest, intake):
        events, _, rejected = intake.accept(batch)
        yield events, len(rejected)


def _batches(
    setting: Setting, source: EventSource | None, manifest: dict[str, Any], intake: Intake
) -> Iterator[RawBatch]:
    if source is not None:
        for piece in manifest["slices"]:
            yield from source.read(Slice(*piece), intake.columns.needed | intake.wanted)
        return
    for name in manifest["files"]:
        if name.startswith("received/"):
            table = pq.read_table(setting.store.open(name))
            yield RawBatch(table, np.arange(len(table)))


def _compare_epoch(
    setting: Setting, manifest: dict[str, Any], oracle: Oracle,
    received: Iterable[tuple[Events, int]], result: Verification,
) -> None:  # fmt: skip
    queries, ids = [], []
    events = 0
    for batch, bad in received:
        events += len(batch)
        result.quarantined += bad
        query, event = oracle.matches(batch)
        queries.append(query)
        ids.append(event)
    result.epochs += 1
    result.events += events
    if events != manifest["processed"]:
        result.problems.append(
            f"epoch {manifest['epoch']}: {events} valid events were received, "
            f"{manifest['processed']} were processed"
        )
    counting = setting.config.output.matches == "counts"
    table = _written(setting.store, manifest, counting)
    should = pa.chunked_array(queries, pa.string()), pa.chunked_array(ids) if ids else None
    _compare(manifest["epoch"], should, table, result)


def _compare_windows(
    setting: Setting, manifest: dict[str, Any], oracle: Oracle, result: Verification
) -> None:
    should = oracle.windows(manifest.get("final", False))
    there = written_windows(setting.store, manifest)
    found = compared(manifest["epoch"], should, there)
    result.windows += found.rows
    result.wrong_windows += found.wrong
    result.late += oracle.clock.late
    result.examples += found.differences[: max(0, _EXAMPLES - len(result.examples))]
    result.problems += clock_problems(manifest, oracle.clock)


def _written(store: Store, manifest: dict[str, Any], counting: bool) -> pa.Table | None:
    folder = "counts/" if counting else "matches/"
    tables = [
        pq.read_table(store.open(name)) for name in manifest["files"] if name.startswith(folder)
    ]
    if not tables:
        return None
    table = pa.concat_tables(tables)
    epochs = set(table.column("epoch").unique().to_pylist())
    assert epochs == {manifest["epoch"]}, f"files of epoch {manifest['epoch']} hold epochs {epochs}"
    return table


def _compare(
    epoch: int, should: tuple[pa.ChunkedArray, pa.ChunkedArray | None],
    table: pa.Table | None, result: Verification,
) -> None:  # fmt: skip
    """Compare two bags of (query, event), or of queries alone where only counts were written."""
    query, event = should
    counted = table is not None and "count" in table.schema.names
    bags = [query, pa.chunked_array([], pa.string()) if table is None else table.column("query_id")]
    codes, names = _coded(bags)
    keys = [code.astype(np.int64) << 32 for code in codes]
    labels: list[Any] = [names]
    if not counted and event is not None:
        is_event = event.slice(0, 0) if table is None else table.column("event_id")
        event_codes, event_names = _coded([event, is_event])
        keys = [key | code for key, code in zip(keys, event_codes, strict=True)]
        labels.append(event_names)
    weights = table.column("count").to_numpy() if counted and table is not None else None
    should_keys, should_counts = np.unique(keys[0], return_counts=True)
    is_keys, place = np.unique(keys[1], return_inverse=True)
    is_counts = np.bincount(place, weights, minlength=is_keys.size).astype(np.int64)
    every = np.union1d(should_keys, is_keys)
    wanted, there = np.zeros(every.size, np.int64), np.zeros(every.size, np.int64)
    wanted[np.searchsorted(every, should_keys)] = should_counts
    there[np.searchsorted(every, is_keys)] = is_counts
    surplus = there - wanted
    result.matches += int(there.sum())
    result.missing += int(-surplus[surplus < 0].sum())
    result.duplicate += int(surplus[(surplus > 0) & (wanted > 0)].sum())
    result.extra += int(surplus[(surplus > 0) & (wanted == 0)].sum())
    for k in np.flatnonzero(surplus)[: max(0, _EXAMPLES - len(result.examples))]:
        what = labels[0][int(every[k] >> 32)].as_py()
        if len(labels) == 2:
            what = f"{what} and event {labels[1][int(every[k] & 0xFFFFFFFF)].as_py()}"
        result.examples.append(
            f"epoch {epoch}: query {what} should match {wanted[k]} times, did {there[k]} times"
        )


def _coded(bags: list[pa.ChunkedArray]) -> tuple[list[npt.NDArray[np.int32]], pa.Array]:
    """Several columns in one code, and what each code stands for."""
    kind = bags[0].type if bags[0].type == bags[1].type else pa.string()
    both = pa.chunked_array([c.cast(kind) for bag in bags for c in bag.chunks], kind)
    encoded = both.combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    cut = len(bags[0])
    return [codes[:cut], codes[cut:]], encoded.dictionary


def slice_problems(manifests: list[dict[str, Any]]) -> list[str]:
    """Slices of a stream must follow each other without gap or overlap."""
    problems = []
    pieces = sorted(tuple(piece) for m in manifests for piece in m["slices"])
    for (stream, _, stop), (other, start, _) in itertools.pairwise(pieces):
        if stream == other and start != stop:
            kind = "twice" if start < stop else "never"
            problems.append(
                f"positions {min(start, stop)} to {max(start, stop)} of stream {stream} "
                f"were read {kind}"
            )
    return problems
