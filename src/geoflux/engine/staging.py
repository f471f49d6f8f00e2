"""Staged files: written under a unique name, published when the manifest names them.

Publishing renames into a folder that anybody may read (also as a stream): what is there is
committed. A crash between manifest and renaming is mended by renaming again.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.source import Rejected
from geoflux.state.store import Store

FOLDER = "staging"
_EPOCH = re.compile(r"[/-]e(\d{8,})-")

QUARANTINE_SCHEMA = pa.schema(
    [
        ("epoch", pa.int64()),
        ("origin", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("row", pa.string()),
    ]
)


def staged_name(kind: str, epoch: int, slot: int | None = None) -> str:
    """A new name for a file that will be published to the folder ``kind``."""
    part = "" if slot is None else f"-s{slot:04d}"
    return f"{FOLDER}/{kind}-e{epoch:08d}{part}-{uuid.uuid4().hex[:12]}.parquet"


def epoch_of(name: str) -> int:
    """The epoch of a staged or published file.

    >>> epoch_of(published_name(staged_name("matches", 12, 3)))
    12
    """
    found = _EPOCH.search(name)
    assert found is not None, name
    return int(found[1])


def stage_table(store: Store, kind: str, epoch: int, table: pa.Table) -> str:
    """Write a table to a staged file; returns its name."""
    name = staged_name(kind, epoch)
    with store.output(name) as stream:
        pq.write_table(table, stream)
    return name


def stage_rejected(store: Store, epoch: int, origin: str, rejected: list[Rejected]) -> str:
    """Write rejected rows (``origin``: event or control) to a staged file; returns its name."""
    count = len(rejected)
    columns = {
        "epoch": np.full(count, epoch, np.int64),
        "origin": [origin] * count,
        "reason": [bad.code for bad in rejected],
        "detail": [bad.detail for bad in rejected],
        "row": [bad.row for bad in rejected],
    }
    table = pa.Table.from_pydict(columns, schema=QUARANTINE_SCHEMA)
    return stage_table(store, "quarantine", epoch, table)


def published_name(staged: str) -> str:
    """Where a staged file goes: ``staging/matches-e1-x`` to ``matches/e1-x``."""
    kind, _, rest = staged.removeprefix(FOLDER + "/").partition("-")
    return f"{kind}/{rest}"


def publish(store: Store, published: Iterable[str]) -> None:
    """Rename staged files to their published names; done twice it does no harm."""
    for name in published:
        folder, _, rest = name.partition("/")
        store.make_folder(folder)
        store.move(f"{FOLDER}/{folder}-{rest}", name)


def sweep(store: Store, keep: frozenset[str]) -> int:
    """Delete what crashed or retried attempts left behind, except for ``keep``; returns how many.

    Only while no task runs: a file that neither manifest nor intent names belongs to nobody.
    """
    found = [f"{folder}/{name}" for folder in (FOLDER, "state") for name in store.names(folder)]
    orphans = [name for name in found if name not in keep]
    for name in orphans:
        store.delete(name)
    return len(orphans)
