"""What the server keeps of an epoch that counts, and what the epoch did to subscriptions.

Read once per epoch and server, from the manifest and the files that it names; plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from geoflux.engine.catalogue import rebuilt
from geoflux.engine.file_log import FileLog
from geoflux.state.segments import read_segment
from geoflux.state.store import Store

Manifest = dict[str, Any]
_KEPT = (
    "epoch", "opened", "committed", "plan", "next_plan", "received", "processed", "quarantined",
    "matches", "aggregates", "late", "carried_out", "live_queries", "registered", "ended",
    "reasons", "control_rejected", "decision", "round", "arrivals", "decide_seconds", "watermark",
)  # fmt: skip
_SLOT = ("slot", "processed", "checks", "queries", "matches", "busy_seconds", "load_seconds")


def facts_of(manifest: Manifest) -> Manifest:
    """The part of a manifest that is told or counted; small, whatever the run holds."""
    kept = {name: manifest[name] for name in _KEPT if name in manifest}
    kept["slots"] = [{n: s[n] for n in _SLOT if n in s} for s in manifest["slots"]]
    guard = manifest.get("guard")
    if guard is not None:
        kept["guard"] = {
            n: guard[n] for n in ("round", "blocked", "refused", "closed", "blocks", "ended")
        }
    return kept


@dataclass(frozen=True)
class Changes:
    """What an epoch did: how far it had read the control file; the queries that came and ended
    (``None``: it is not known any more; all that are live, instead); why some were refused."""

    read_upto: int
    came: set[str]
    ended: list[str] | None
    refused: Mapping[str, str]


@dataclass
class ChangeReader:
    """Reads what epochs did to the subscriptions in one control file."""

    store: Store
    name: str
    """The control file, as the log of control files calls it."""
    _entries: int = 0
    _reach: tuple[tuple[int, int, int], ...] = ()
    _catalogue: tuple[str, ...] | None = None

    def changes(self, manifest: Manifest) -> Changes:
        """Of a manifest that follows the last one asked for, or of any other."""
        segments = tuple(manifest["catalogue"])
        # Until it is known what this epoch did: if it cannot be read (its files are being renamed,
        # or were written anew), whoever asks next is told all that is live instead.
        before, self._catalogue = self._catalogue, None
        read_upto, refused = self._read_upto(manifest["control"]), self._refused(manifest)
        if before is not None and segments[: len(before)] == before:
            new = [read_segment(self.store, name).columns for name in segments[len(before) :]]
            came = {query for columns in new for query in _ours(columns["query.id"])}
            ended = [query for columns in new for query in _ours(columns["ended.id"])]
            found = Changes(read_upto, came, ended, refused)
        else:
            live = rebuilt(self.store, segments).live_rows().column("id")
            found = Changes(read_upto, set(_ours(live)), None, refused)
        self._catalogue = segments
        return found

    def _read_upto(self, control: Mapping[str, Any]) -> int:
        position = int(control.get("position", 0))
        for entry in FileLog(Path(self.store.path("control.log"))).entries(self._entries):
            self._entries += 1
            if entry.path == self.name:
                self._reach = (*self._reach[-64:], (entry.first, entry.begin, entry.units))
        return max(
            (begin + min(units, position - first) for first, begin, units in self._reach
             if first < position), default=0,
        )  # fmt: skip

    def _refused(self, manifest: Manifest) -> dict[str, str]:
        if not manifest["control_rejected"]:
            return {}
        found: dict[str, str] = {}
        for name in manifest["files"]:
            if name.startswith("quarantine/"):
                with self.store.open(placed(self.store, name)) as file:
                    table = pq.read_table(file, columns=["origin", "detail", "row"])
                table = table.filter(pc.equal(table.column("origin"), "control"))
                found |= dict(
                    zip(table.column("row").to_pylist(), table.column("detail").to_pylist(),
                        strict=True))  # fmt: skip
        return found


def placed(store: Store, name: str) -> str:
    """Where a file is that a manifest names: published, or still about to be."""
    folder, _, rest = name.partition("/")
    staged = f"staging/{folder}-{rest}"
    return staged if not store.exists(name) and store.exists(staged) else name


def _ours(ids: Any) -> list[str]:
    """The ids of subscriptions among those of queries."""
    return list(ids.filter(pc.starts_with(ids, "@")).to_pylist()) if len(ids) else []
