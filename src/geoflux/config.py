"""Settings: frozen values, from TOML, then the environment, then flags; the last one wins.

Every setting has a default, a range and one sentence; the reference page is generated from them
(``docs/settings.md``). All mistakes are reported at once, before anything is started.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import os
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from geoflux.errors import ConfigError
from geoflux.sections import (
    ControlConfig,
    EngineConfig,
    FluxConfig,
    GuardConfig,
    OutputConfig,
    RetentionConfig,
    RunConfig,
    SecurityConfig,
    SimulateConfig,
    SourceConfig,
    SpaceConfig,
    SwarmConfig,
)
from geoflux.sections_kafka import KafkaConfig, unfit
from geoflux.sections_scale import ScaleConfig
from geoflux.sections_serve import ServeConfig
from geoflux.sections_sketch import SketchConfig
from geoflux.sections_synopsis import SynopsisConfig
from geoflux.settings import build, seconds

_PATHS = (("source", "path"), ("control", "path"), ("security", "key_file"),
          ("kafka", "options_file"))  # fmt: skip
OPERATOR = "operator"
"""The tables of a file that describes an application; they are no settings."""


@dataclass(frozen=True)
class Config:
    """All settings of a run."""

    space: SpaceConfig = field(default_factory=SpaceConfig)
    source: SourceConfig = field(default_factory=SourceConfig)
    control: ControlConfig = field(default_factory=ControlConfig)
    kafka: KafkaConfig = field(default_factory=KafkaConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    swarm: SwarmConfig = field(default_factory=SwarmConfig)
    guard: GuardConfig = field(default_factory=GuardConfig)
    flux: FluxConfig = field(default_factory=FluxConfig)
    synopsis: SynopsisConfig = field(default_factory=SynopsisConfig)
    scale: ScaleConfig = field(default_factory=ScaleConfig)
    sketch: SketchConfig = field(default_factory=SketchConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
    run: RunConfig = field(default_factory=RunConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    simulate: SimulateConfig = field(default_factory=SimulateConfig)
    serve: ServeConfig = field(default_factory=ServeConfig)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, to be written down with the run."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """Settings from nested tables; every mistake in one :class:`ConfigError`."""
        problems: list[str] = []
        config = build(cls, values, "", problems)
        problems += _across(config)
        if problems:
            raise ConfigError.of(problems)
        return typing.cast(Config, config)

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Config:
        """Settings that were written down with a run; they were checked when it started."""
        problems: list[str] = []
        config = build(cls, values, "", problems)
        if problems:
            raise ConfigError.of(problems)
        return typing.cast(Config, config)

    @classmethod
    def load(
        cls,
        path: Path | None = None,
        flags: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Config:
        """TOML file, then ``GEOFLUX_SECTION_NAME`` variables, then flags (``section.name``)."""
        values = {} if path is None else read_tables(path)
        if OPERATOR in values:
            raise ConfigError(
                f"{path} describes an application; run it with geoflux run, or from Python with "
                "geoflux.run_topology(*geoflux.load_topology(path), out)"
            )
        return cls.loaded(values, flags, environment)

    @classmethod
    def loaded(
        cls,
        values: dict[str, Any],
        flags: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Config:
        """The tables of a file, then variables, then flags."""
        problems: list[str] = []
        _overlay_environment(values, os.environ if environment is None else environment, problems)
        for name, value in (flags or {}).items():
            section, _, key = name.partition(".")
            if isinstance(value, str):
                value = _from_text(section, key, value)
            _table(values, section)[key] = value
        try:
            config = cls.from_dict(values)
        except ConfigError as error:
            if not problems:
                raise
            raise ConfigError.of([*problems, str(error)]) from None
        if problems:
            raise ConfigError.of(problems)
        return config


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, with paths as seen from here."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"there is no settings file {path}; give the path of a TOML file"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}; mend that line") from None
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}; give the path of a TOML file"
        ) from None
    operators = values.get(OPERATOR)
    for tables in (values, *(operators if isinstance(operators, list) else ())):
        if isinstance(tables, dict):
            _resolve_paths(tables, path.parent)
    return values


def _table(values: dict[str, Any], section: str) -> dict[str, Any]:
    table = values.setdefault(section, {})
    return table if isinstance(table, dict) else {}


def _resolve_paths(values: dict[str, Any], base: Path) -> None:
    """Paths in a file are relative to that file."""
    for section, key in _PATHS:
        table = values.get(section)
        if isinstance(table, dict) and isinstance(table.get(key), str) and table[key]:
            table[key] = str(base / table[key])


def _sections() -> dict[str, Any]:
    return dict(get_type_hints(Config).items())


def _overlay_environment(
    values: dict[str, Any], environment: Mapping[str, str], problems: list[str]
) -> None:
    sections = _sections()
    for name, text in sorted(environment.items()):
        if not name.startswith("GEOFLUX_"):
            continue
        section, _, key = name[len("GEOFLUX_") :].lower().partition("_")
        if section in sections and key in {f.name for f in fields(sections[section])}:
            _table(values, section)[key] = _from_text(section, key, text)
        elif section in sections:
            problems.append(f"{name} in the environment names no setting of [{section}]")


def _from_text(section: str, key: str, text: str) -> Any:
    """A value from a flag or variable, read as TOML would read it where the setting is no text."""
    hint = get_type_hints(_sections()[section]).get(key) if section in _sections() else None
    if hint is str or hint is None:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _across(config: Config) -> list[str]:
    """Mistakes that show only when several settings are read together."""
    problems = []
    west, south, east, north = config.space.bounds
    if not math.isfinite((east - west) + (north - south)):
        problems.append(f"space.bounds = {list(config.space.bounds)}: expected finite numbers")
    elif not (west < east and south < north):
        problems.append(
            f"space.bounds = {list(config.space.bounds)}: expected west < east and south < north"
        )
    elif config.space.kind == "lonlat" and not (
        west >= -180 and east <= 180 and south >= -90 and north <= 90
    ):
        problems.append(
            f"space.bounds = {list(config.space.bounds)}: expected degrees within "
            '[-180, -90, 180, 90]; for other units set space.kind = "planar"'
        )
    if not all(1 <= n <= 8192 for n in config.space.grid):
        problems.append(f"space.grid = {list(config.space.grid)}: expected 1 to 8192 cells a side")
    elif config.space.grid[0] * config.space.grid[1] < config.engine.slots:
        problems.append(
            f"engine.slots = {config.engine.slots}: expected at most one slot per cell of "
            f"space.grid = {list(config.space.grid)}"
        )
    for less, more in (("memory_low", "memory_high"), ("return_below", "headroom")):
        if not getattr(config.synopsis, less) < getattr(config.synopsis, more):
            problems.append(
                f"synopsis.{less} = {getattr(config.synopsis, less)}: expected less than "
                f"synopsis.{more} = {getattr(config.synopsis, more)}"
            )
    if not config.serve.patience or seconds(config.serve.patience) <= 0:
        problems.append(f"serve.patience = {config.serve.patience!r}: expected more than 0 s")
    if config.synopsis.most_slots and not (config.flux.budget or config.flux.memory):
        problems.append(
            f"synopsis.most_slots = {config.synopsis.most_slots}: slots come when one does not "
            "keep up, or has no memory left; set flux.budget (for example 2s) or flux.memory"
        )
    if config.source.kind == "files" and not config.source.path:
        problems.append('source.path is empty: source.kind = "files" needs a folder of events')
    if (
        config.source.kind == "files"
        and config.source.path
        and not Path(config.source.path).exists()
    ):
        problems.append(f"source.path = {config.source.path!r}: no such file or folder")
    if (
        config.control.path
        and config.run.mode == "drain"
        and not Path(config.control.path).exists()
    ):
        problems.append(f"control.path = {config.control.path!r}: no such file or folder")
    if config.engine.idle and seconds(config.engine.idle) <= config.engine.epoch_seconds:
        problems.append(
            f"engine.idle = {config.engine.idle!r}: expected more than the "
            f"{config.engine.epoch_seconds:g} s of engine.epoch_seconds, or every pause is silence"
        )
    low, high = config.guard.removal_rounds
    if not 1 <= low <= high:
        problems.append(
            f"guard.removal_rounds = {[low, high]}: expected two numbers of rounds, 1 or more, "
            "the smaller first"
        )
    if config.guard.enabled and config.guard.round and seconds(config.guard.round) <= 0:
        problems.append(f"guard.round = {config.guard.round!r}: expected more than 0 s")
    if config.guard.enabled and not config.guard.round:
        problems.append("guard.round is empty: expected a duration, for example 60s")
    longest = seconds(config.scale.longest) if config.scale.longest else 0.0
    shortest = seconds(config.scale.shortest) if config.scale.shortest else 0.0
    if not 0 <= shortest < longest:
        problems.append(
            f"scale.shortest = {config.scale.shortest!r}, scale.longest = "
            f"{config.scale.longest!r}: expected durations, the first shorter than the second"
        )
    if config.source.kind == "simulate" and config.space.kind != "lonlat":
        problems.append('space.kind = "planar": the simulator needs "lonlat"')
    problems += _unsafe(config.security)
    if config.security.encrypt and config.control.kind == "kafka":
        problems.append(
            'control.kind = "kafka" keeps the records in plain files, which security.encrypt is to '
            "prevent; give control records as files, or do not encrypt"
        )
    problems += unfit(config.kafka, config.source, config.control, config.output)
    for i, spot in enumerate(config.simulate.hotspots):
        if spot.stop <= spot.start:
            problems.append(f"simulate.hotspots[{i}]: stop = {spot.stop} must be after start")
    return problems


def _unsafe(security: SecurityConfig) -> list[str]:
    """What encryption needs and does not have."""
    if not security.encrypt:
        return []
    problems = []
    if importlib.util.find_spec("cryptography") is None:
        problems.append(
            "security.encrypt = true needs the package cryptography; install it with "
            'pip install "geoflux[security]"'
        )
    if not security.key_file:
        problems.append(
            "security.encrypt = true needs security.key_file; make one with geoflux key PATH"
        )
    return problems
