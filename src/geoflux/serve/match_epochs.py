"""The matches of an epoch, split by user: read once, in columns, whoever and how many want them.

Rows of an epoch are numbered from 1 through all its files in one order that never changes (kind by
kind, each as the manifest lists it), so that (epoch, row) names a match for ever, and a client that
says the last one it has got gets the next one next.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from geoflux.errors import StateError
from geoflux.serve.epoch_facts import Manifest, placed
from geoflux.serve.problems import plain_json
from geoflux.serve.registry import owner
from geoflux.serve.served_run import ServedRun
from geoflux.state.store import Store

KINDS = ("matches", "counts", "aggregates")
_RENAMED = {"event_id": "event"}
_MOST_IN_MESSAGE = 500
_ATTEMPTS = 5


@dataclass(frozen=True)
class Part:
    """Rows of one kind that belong to one user, ascending; ``rows`` are their numbers."""

    kind: str
    rows: npt.NDArray[np.int64]
    table: pa.Table

    def messages(
        self, epoch: int, after: int, only: str | None = None
    ) -> Iterator[tuple[int, str]]:
        """The rows after a number as texts for the client, a few hundred in each, with the number
        of the last; ``only`` of one subscription."""
        first = int(np.searchsorted(self.rows, after, "right"))
        rows, table = self.rows[first:], self.table.slice(first)
        if only is not None:
            mine = pc.equal(table.column("subscription"), only)
            table = table.filter(mine)
            rows = rows[mine.to_numpy(zero_copy_only=False)]
        for start in range(0, len(rows), _MOST_IN_MESSAGE):
            some = rows[start : start + _MOST_IN_MESSAGE].tolist()
            told = table.slice(start, len(some)).to_pylist()
            body = [{"row": row, **item} for row, item in zip(some, told, strict=True)]
            yield some[-1], plain_json({"epoch": epoch, self.kind: body})


@dataclass(frozen=True)
class SplitEpoch:
    """An epoch's matches by user; ``rows`` of all users, of the API or not."""

    epoch: int
    rows: int
    users: dict[str, tuple[Part, ...]]
    nbytes: int


def read_epoch(store: Store, manifest: Manifest) -> SplitEpoch:
    """Read an epoch's files and split them."""
    count, nbytes = 0, 0
    users: dict[str, list[Part]] = {}
    for kind in KINDS:
        tables = []
        for name in manifest["files"]:
            if name.startswith(f"{kind}/"):
                with store.open(placed(store, name)) as file:
                    tables.append(pq.read_table(file, read_dictionary=["query_id"]))
        if not tables:
            continue
        names = ["query_id", *(n for n in tables[0].schema.names if n not in ("query_id", "epoch"))]
        table = pa.concat_tables(tables).select(names).unify_dictionaries().combine_chunks()
        for user, part in _split(kind, table, count):
            users.setdefault(user, []).append(part)
            nbytes += int(part.table.nbytes) + part.rows.nbytes
        count += len(table)
    return SplitEpoch(
        manifest["epoch"], count, {u: tuple(p) for u, p in users.items()}, nbytes + 1024
    )


def _split(kind: str, table: pa.Table, before: int) -> Iterator[tuple[str, Part]]:
    """The rows of every user. Texts are looked at once per query and not per row; and those of
    queries that are no subscriptions not at all."""
    if len(table) == 0:
        return
    ids = table.column("query_id").chunk(0)
    places = np.flatnonzero(pc.starts_with(ids.dictionary, "@").to_numpy(zero_copy_only=False))
    texts = ids.dictionary.take(pa.array(places)).to_pylist()
    ours = [(place, found) for place, text in zip(places, texts, strict=True)
            if (found := owner(text)) is not None]  # fmt: skip
    users = sorted({user for _, (user, _) in ours})
    number = {user: code for code, user in enumerate(users)}
    codes = np.full(len(ids.dictionary), -1, np.int64)
    names = np.full(len(ids.dictionary), "", object)
    for place, (user, name) in ours:
        codes[place], names[place] = number[user], name
    query = ids.indices.to_numpy(zero_copy_only=False)
    mine = np.flatnonzero(codes[query] >= 0)
    order = mine[np.argsort(codes[query[mine]], kind="stable")]
    ends = np.searchsorted(codes[query[order]], np.arange(len(users) + 1))
    columns: dict[str, Any] = {"subscription": pa.array(names[query[order]], pa.string())}
    for column in table.schema.names[1:]:
        values = table.column(column).take(pa.array(order))
        columns[_RENAMED.get(column, column)] = values.combine_chunks()
    split = pa.table(columns)
    for user, code in number.items():
        low, high = int(ends[code]), int(ends[code + 1])
        yield user, Part(kind, order[low:high] + before + 1, split.slice(low, high - low))


@dataclass
class MatchHistory:
    """The epochs that were split lately, up to so many bytes; older ones are read again."""

    run: ServedRun
    most_bytes: int
    _kept: OrderedDict[int, SplitEpoch] = field(default_factory=OrderedDict)
    _coming: dict[int, asyncio.Task[SplitEpoch]] = field(default_factory=dict)
    bytes_kept: int = 0
    reads: int = 0
    """How often files were read: at most once for every epoch, however many clients there are."""

    async def epoch(self, number: int) -> SplitEpoch:
        """An epoch that counts; two who want it at the same time wait for one reading."""
        kept = self._kept.get(number)
        if kept is not None:
            self._kept.move_to_end(number)
            return kept
        task = self._coming.get(number)
        if task is None:
            task = self._coming[number] = asyncio.create_task(self._read(number))
        return await asyncio.shield(task)

    async def _read(self, number: int) -> SplitEpoch:
        try:
            found = await asyncio.to_thread(self._split, number)
        finally:
            del self._coming[number]
        self._kept[number] = found
        self.bytes_kept += found.nbytes
        while self.bytes_kept > self.most_bytes and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self.bytes_kept -= oldest.nbytes
        return found

    def _split(self, number: int) -> SplitEpoch:
        self.reads += 1
        manifest = self.run.log.manifest(number)
        for attempt in range(_ATTEMPTS):
            try:
                return read_epoch(self.run.store, manifest)
            except StateError:  # published between two looks
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("an attempt either reads or raises")
