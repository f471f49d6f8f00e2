"""What a run's directory says of itself: its settings, whose work it is, and what cannot change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from geoflux.config import Config
from geoflux.engine.intake import POSITION_ID
from geoflux.errors import ConfigError, StateError
from geoflux.state.keys import RUN, TOPOLOGY
from geoflux.state.store import Store

_FIXED = ("space", "source.kind", "source.path", "source.topics", "source.columns", "control.kind",
          "control.path", "control.topic", "engine.slots", "output.matches",
          "retention.columns", "simulate", "flux.partitions", "synopsis.partitions",
          "sketch.features", "sketch.tree_bits", "sketch.region_bits", "sketch.finest",
          "sketch.bins", "sketch.sets", "security.encrypt")  # fmt: skip


def config_of(out: str | Path) -> Config:
    """The settings that a run was started with."""
    store = Store(str(out))
    if not store.exists(RUN) and store.exists(TOPOLOGY):
        names = [table["name"] for table in store.read_json(TOPOLOGY)["operators"]]
        raise StateError(
            f"{out} holds an application; name the directory of one of its operators: "
            f"{', '.join(f'{out}/{name}' for name in names)}"
        )
    if not store.exists(RUN):
        raise StateError(f"{out} holds no run; give the directory that geoflux run wrote")
    return Config.restored(store.read_json(RUN)["config"])


def operator_of(out: str | Path) -> str:
    """The operator that a run is of; empty: it is of standing queries."""
    config_of(out)  # says so where there is no run
    return str(Store(str(out)).read_json(RUN).get("operator", ""))


def checked(config: Config, store: Store, has_frame: bool, operator: str = "") -> Config:
    """The settings as the run will use them; refused where its directory belongs to another."""
    config = _checked_lane(config, has_frame)
    if store.exists(RUN):
        noted = store.read_json(RUN)
        _check_same_work(noted.get("operator", ""), operator, store.root)
        _check_same_run(Config.restored(noted["config"]), config, store.root)
    return config


def _check_same_work(before: str, now: str, root: str) -> None:
    if before != now:
        names = [f"the operator {name}" if name else "standing queries" for name in (before, now)]
        raise StateError(
            f"{root} holds a run of {names[0]}, and this one is of {names[1]}; use a new directory"
        )


def _checked_lane(config: Config, has_frame: bool) -> Config:
    """The settings with the source that is really used; what a lane cannot do is refused."""
    if has_frame:
        config = replace(config, source=replace(config.source, kind="dataframe"))
    problems = []
    if config.source.kind == "dataframe" and not has_frame:
        problems.append('source.kind = "dataframe": give the DataFrame to geoflux.run(events=...)')
    general = config.engine.lane == "general" and config.source.kind == "files"
    if (has_frame or general) and config.source.id == POSITION_ID:
        problems.append(
            f'source.id = "{POSITION_ID}": rows of a DataFrame have no position; name a column'
        )
    if (has_frame or config.source.kind == "kafka") and config.engine.balance == "history":
        problems.append(
            'engine.balance = "history": a stream cannot be sampled beforehand; use "uniform"'
        )
    if problems:
        raise ConfigError.of(problems)
    return config


def _check_same_run(old: Config, new: Config, root: str) -> None:
    """A directory belongs to one run: what its state depends on cannot change."""
    changed = []
    for name in _FIXED:
        section, _, key = name.partition(".")
        before, after = getattr(old, section), getattr(new, section)
        if key:
            before, after = getattr(before, key), getattr(after, key)
        if before != after:
            changed.append(name)
    if changed:
        raise ConfigError(
            f"{root} holds a run with other settings ({', '.join(changed)}); use a new directory, "
            "or the settings that it was started with"
        )


def note_run(
    config: Config, store: Store, operator: str, schema: pa.Schema, about: Mapping[str, Any]
) -> None:
    """Write down what a new run is: ``about`` says since when it goes, its lane, and, within an
    application, which streams it reads."""
    noted = {**settings_note(config), **about}
    noted["schema"] = schema.serialize().to_pybytes().hex()
    noted |= {"operator": operator} if operator else {}
    noted |= {"seal": store.seal.note()} if store.seal is not None else {}
    store.write_json(RUN, noted)


def settings_note(config: Config) -> dict[str, Any]:
    """The settings as a run notes them, with the folder from which their relative paths count."""
    return {"config": config.as_dict(), "folder": os.getcwd()}
