"""What a directory holds, for a page: one run, or an application of several operators.

Paths come from the directory's own notes and never from a request: a request names an operator,
and only those that the notes name are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoflux.chronicle.epoch_series import Manifest
from geoflux.config import Config
from geoflux.errors import StateError
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import RUN, TOPOLOGY, store_of
from geoflux.state.store import Store

QUERIES, SKETCH = "queries", "sketch"


@dataclass(frozen=True)
class OperatorPlace:
    """An operator and where it is; that of a run which is no application has no name."""

    name: str
    kind: str
    path: Path
    reads: tuple[str, ...] = ()

    @property
    def log(self) -> EpochLog:
        """Its epochs."""
        return EpochLog(store_of(self.path))

    @property
    def config(self) -> Config | None:
        """Its settings; ``None``: it has not started yet."""
        store = Store(str(self.path))
        return Config.restored(store.read_json(RUN)["config"]) if store.exists(RUN) else None


def operators(directory: str | Path) -> list[OperatorPlace]:
    """All operators of a directory, in the order in which rows go through them."""
    store, folder = Store(str(directory)), Path(directory)
    if store.exists(TOPOLOGY):
        return [
            OperatorPlace(t["name"], t["kind"], folder / t["name"], tuple(t["reads"]))
            for t in store.read_json(TOPOLOGY)["operators"]
        ]
    if not store.exists(RUN):
        raise StateError(f"{directory} holds no run; give the directory that geoflux run wrote")
    noted = store.read_json(RUN)
    kind = noted.get("operator") or QUERIES
    if Config.restored(noted["config"]).sketch.features:
        kind = SKETCH
    return [OperatorPlace("", kind, folder)]


def chosen(directory: str | Path, name: str | None = None) -> OperatorPlace:
    """The operator of that name; without one, the first that has a plan on a map."""
    known = operators(directory)
    if name is None:
        return next((o for o in known if o.kind in (QUERIES, SKETCH)), known[0])
    for operator in known:
        if operator.name == name:
            return operator
    names = ", ".join(repr(o.name) for o in known)
    raise StateError(f"there is no operator {name[:60]!r} here; operators: {names}")


def queries_directory(directory: Path) -> Path:
    """Where the standing queries are: of an application the operator that has them (the first), of
    a run, also one that has not begun, its own directory."""
    if not Store(str(directory)).exists(TOPOLOGY):
        return directory
    found = (o.path for o in operators(directory) if o.kind == QUERIES)
    return next(found, directory)


def results_of(m: Manifest) -> int:
    """What an epoch came to: results of an operator, or matches and windows."""
    return int(m["results"]) if "results" in m else int(m["matches"] + m["aggregates"])


def run_view(directory: str | Path) -> dict[str, Any]:
    """What a page has to know before all else."""
    known = operators(directory)
    shown = chosen(directory)
    config = shown.config
    store = Store(str(directory))
    return {
        "name": Path(directory).resolve().name,
        "kind": "application" if store.exists(TOPOLOGY) else "run",
        "operators": [_operator(operator) for operator in known],
        "shown": shown.name,
        "space": config and {
            "bounds": [float(edge) for edge in config.space.bounds],
            "lonlat": config.space.kind == "lonlat", "grid": list(config.space.grid),
        },
        "guard": bool(config and config.guard.enabled),
        "scaling": store.exists("scale/decisions.ndjson"),
        "sketch": config and _sketch(config),
        "ended": store.exists("summary.json"),
    }  # fmt: skip


def _operator(operator: OperatorPlace) -> dict[str, Any]:
    config = operator.config
    last = None if config is None else operator.log.last()
    newest = {} if last is None else operator.log.manifest(last)
    return {
        "name": operator.name, "kind": operator.kind, "reads": list(operator.reads),
        "slots": len(newest["slots"]) if newest else config and config.engine.slots,
        "last": last, "processed": newest.get("processed"),
        "results": results_of(newest) if newest else None,
        "mapped": operator.kind in (QUERIES, SKETCH),
    }  # fmt: skip


def _sketch(config: Config) -> dict[str, Any] | None:
    if not config.sketch.features:
        return None
    return {"features": list(config.sketch.features), "finest": config.sketch.finest}
