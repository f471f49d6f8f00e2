"""Verification: recompute a run's matches by brute force from what it received, and compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.engine import Setting
from geoflux.engine.intake import EventColumns, Intake
from geoflux.engine.oracle import Oracle
from geoflux.engine.records import RecordRules
from geoflux.engine.source import EventSource, RawBatch, Slice
from geoflux.operators.events import Events
from geoflux.operators.where_parse import parse
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store


@dataclass
class Verification:
    """What the comparison found; all of ``missing``, ``duplicate``, ``extra`` and ``problems``
    must be nothing."""

    epochs: int = 0
    events: int = 0
    quarantined: int = 0
    matches: int = 0
    missing: int = 0
    duplicate: int = 0
    extra: int = 0
    problems: list[str] = None  # type: ignore[assignment]
    examples: list[str] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.problems = self.problems or []
        self.examples = self.examples or []

    @property
    def is_clean(self) -> bool:
        """Whether the run's matches are exactly the right ones."""
        return not (self.missing or self.duplicate or self.extra or self.problems)


def verified(
    setting: Setting, source: EventSource | None, progress: Callable[[int, int], None] | None = None
) -> Verification:
    """Compare every committed epoch with the oracle; ``source`` may be ``None`` where the run
    recorded what it received."""
    log = EpochLog(setting.store)
    rules = RecordRules(setting.grid.space, setting.schema, setting.config.source.max_record_bytes)
    oracle = Oracle(rules, setting.lateness_micros)
    columns = EventColumns.of(setting.config.source, setting.config.space)
    result = Verification()
    manifests = list(log.manifests())
    offset: dict[str, Any] = {}
    for done, manifest in enumerate(manifests):
        oracle.control(setting.control.read(offset, manifest["control"]))
        offset = manifest["control"]
        wanted = frozenset().union(*(parse(q["where"]).columns for q in oracle.filtered()))
        intake = Intake(columns, rules.space, columns.id_type(setting.schema), wanted)
        _compare_epoch(setting, manifest, oracle, _received(setting, source, manifest, intake), result)
        if progress is not None:
            progress(done + 1, len(manifests))
    _check_slices(manifests, result)
    return result


def _received(
    setting: Setting, source: EventSource | None, manifest: dict[str, Any], intake: Intake
) -> list[tuple[Events, int]]:
    """The epoch's valid events, and how many rows were bad, batch by batch."""
    batches: list[RawBatch] = []
    if source is not None and manifest["slices"]:
        for piece in manifest["slices"]:
            batches += list(source.read(Slice(*piece), intake.columns.needed | intake.wanted))
    else:
        for name in manifest["files"]:
            if name.startswith("received/"):
                table = pq.read_table(setting.store.open(name))
                batches.append(RawBatch(table, np.arange(len(table))))
    accepted = (intake.accept(batch) for batch in batches)
    return [(events, len(rejected)) for events, _, rejected in accepted]


def _compare_epoch(
    setting: Setting, manifest: dict[str, Any], oracle: Oracle,
    received: list[tuple[Events, int]], result: Verification,
) -> None:  # fmt: skip
    counting = setting.config.output.matches == "counts"
    expected = []
    events = 0
    for batch, bad in received:
        events += len(batch)
        result.quarantined += bad
        query, event = oracle.matches(batch)
        expected.append(pd.DataFrame({"query": query.to_pandas(), "event": event.to_pandas()}))
    result.epochs += 1
    result.events += events
    if events != manifest["processed"]:
        result.problems.append(
            f"epoch {manifest['epoch']}: {events} valid events were received, "
            f"{manifest['processed']} were processed"
        )
    actual = _written(setting.store, manifest, counting)
    wanted = pd.concat(expected) if expected else pd.DataFrame({"query": [], "event": []})
    keys = ["query"] if counting else ["query", "event"]
    should = wanted.groupby(keys).size().rename("should")
    both = pd.concat([should, actual], axis=1).fillna(0).astype(np.int64)
    surplus = both["is"] - both["should"]
    result.matches += int(both["is"].sum())
    result.missing += int(-surplus[surplus < 0].sum())
    result.duplicate += int(surplus[(surplus > 0) & (both["should"] > 0)].sum())
    result.extra += int(surplus[(surplus > 0) & (both["should"] == 0)].sum())
    for key, row in both[surplus != 0].head(5).iterrows():
        if len(result.examples) < 5:
            result.examples.append(
                f"epoch {manifest['epoch']}: {key} should match {row['should']} times, "
                f"is there {row['is']} times"
            )


def _written(store: Store, manifest: dict[str, Any], counting: bool) -> Any:
    folder = "counts/" if counting else "matches/"
    tables = [
        pq.read_table(store.open(name)) for name in manifest["files"] if name.startswith(folder)
    ]
    if not tables:
        return pd.Series([], name="is", dtype=np.int64)
    table = pa.concat_tables(tables)
    epochs = set(table.column("epoch").unique().to_pylist())
    assert epochs == {manifest["epoch"]}, f"files of epoch {manifest['epoch']} hold epochs {epochs}"
    frame = table.to_pandas()
    if counting:
        return frame.groupby("query_id")["count"].sum().rename("is").rename_axis("query")
    pairs = frame.groupby(["query_id", "event_id"]).size()
    return pairs.rename("is").rename_axis(["query", "event"])


def _check_slices(manifests: list[dict[str, Any]], result: Verification) -> None:
    """Slices of a stream must follow each other without gap or overlap."""
    pieces = sorted(tuple(piece) for m in manifests for piece in m["slices"])
    for (stream, _, stop), (other, start, _) in zip(pieces, pieces[1:], strict=False):
        if stream == other and start != stop:
            kind = "twice" if start < stop else "never"
            result.problems.append(
                f"positions {min(start, stop)} to {max(start, stop)} of stream {stream} "
                f"were read {kind}"
            )
