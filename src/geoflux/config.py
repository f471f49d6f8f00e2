"""Settings: frozen values, from TOML, then the environment, then flags; the last one wins.

Every setting has a default, a range and one sentence; the reference page is generated from them
(``docs/settings.md``). All mistakes are reported at once, before anything is started.
"""

from __future__ import annotations

import dataclasses
import math
import os
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from geoflux.errors import ConfigError
from geoflux.settings import amount, between, build, duration, one_of, seconds, setting


@dataclass(frozen=True)
class SpaceConfig:
    """The space that is watched, and the grid laid over it."""

    kind: str = setting("lonlat", "`lonlat` (degrees) or `planar` (any unit, columns x and y).",
                        one_of("lonlat", "planar"))  # fmt: skip
    bounds: tuple[float, float, float, float] = setting(
        (-180.0, -90.0, 180.0, 90.0), "West, south, east, north; rows outside are quarantined."
    )
    grid: tuple[int, int] = setting(
        (1000, 1000), "Columns and rows of cells; a cell is the smallest thing that can be moved."
    )


@dataclass(frozen=True)
class SourceConfig:
    """Where events come from, and what their columns are called there."""

    kind: str = setting(
        "simulate", "`simulate`, `files` for a folder of Parquet or NDJSON, or `dataframe` for a "
        "streaming DataFrame that is handed to `geoflux.run`.",
        one_of("simulate", "files", "dataframe"))  # fmt: skip
    path: str = setting("", "Folder (or one file) of events; needed by `files`.")
    format: str = setting("auto", "`auto` goes by the file's ending.",
                          one_of("auto", "parquet", "ndjson"))  # fmt: skip
    id: str = setting("id", "Column of the event's id; `@position` numbers the rows instead.")
    x: str = setting("", "Column of the longitude or x; empty: `lon`, or `x` in a planar space.")
    y: str = setting("", "Column of the latitude or y; empty: `lat`, or `y` in a planar space.")
    time: str = setting(
        "time", "Column of the event time: a timestamp, an ISO 8601 text, a number."
    )
    time_unit: str = setting("s", "Unit of numeric times since 1970.",
                             one_of("s", "ms", "us", "ns"))  # fmt: skip
    speed: float = setting(
        0.0, "Replay speed: 60 plays an hour of event time in a minute; 0: as fast as possible.",
        between(0, 1e9))  # fmt: skip
    max_record_bytes: int = setting(
        1_048_576, "A longer NDJSON line is quarantined.", between(64, 1 << 30)
    )


@dataclass(frozen=True)
class ControlConfig:
    """Where registrations and terminations of standing queries come from."""

    path: str = setting("", "NDJSON or Parquet file, or a folder of them; read while the run goes.")


@dataclass(frozen=True)
class EngineConfig:
    """How the work is cut up."""

    slots: int = setting(4, "Slots: tasks that match events in parallel.", between(1, 4096))
    balance: str = setting("uniform", "How space is given to slots.",
                           one_of("uniform", "history", "replicated", "swarm"))  # fmt: skip
    lane: str = setting("auto", "`fast` reads columnar files inside the workers, `general` through "
                        "a streaming DataFrame; `auto` takes the fast one where it can.",
                        one_of("auto", "fast", "general"))  # fmt: skip
    epoch_events: int = setting(1_000_000, "Events in one epoch at most.", between(1, 1 << 31))
    epoch_seconds: float = setting(
        0.0, "Shortest time between the starts of two epochs.", between(0, 86400)
    )
    lateness: str = setting(
        "", "How late events may come: the watermark is the largest event time less this. Empty: "
        "one minute in `follow`; in `drain` a query never ends before all events are in.",
        duration)  # fmt: skip
    idle: str = setting(
        "", "How long a source may be silent before event time goes on without it, at the pace of "
        "the clock, so that windows close. Empty: it waits for the next event.",
        duration)  # fmt: skip
    close_at_end: bool = setting(
        True, "When `drain` has read everything, close the windows that are still open; false "
        "leaves them open for the next run into the same directory.")  # fmt: skip
    master: str = setting("", "Spark master; empty: `local[N]` with N the cores of this machine.")
    memory: str = setting("2g", "Memory of the Spark driver's JVM, as Spark writes it.")
    history_events: int = setting(
        400_000, "Events that `history` looks at before it fixes its plan.", between(1, 1 << 31)
    )
    history_queries: int = setting(
        200_000, "Queries that `history` looks at before it fixes its plan.", between(1, 1 << 31)
    )


@dataclass(frozen=True)
class SwarmConfig:
    """How `engine.balance = "swarm"` keeps the plan balanced while the load moves."""

    mode: str = setting(
        "geoflux", "`geoflux`, or `published`: cost N x Q x R, one slot gives to one a round.",
        one_of("geoflux", "published"))  # fmt: skip
    round: str = setting("15s", "Time between two looks at the load.", duration)
    start: str = setting("uniform", "The first plan: `uniform`, or `history` from a sample.",
                         one_of("uniform", "history"))  # fmt: skip
    gain: float = setting(0.05, "A change that is predicted to gain less is not made.",
                          between(0, 1))  # fmt: skip
    beta: int = setting(20, "Rounds after which the same decision is flipped.", between(1, 1 << 31))
    cost: str = setting("work", "What a partition costs: `work` done, or `published`, N x Q x R.",
                        one_of("work", "published"))  # fmt: skip
    pairs: int = setting(8, "Slots that may be given something in one round.", between(1, 4096))
    multiway: bool = setting(True, "Whether one slot may give to several at once.")
    forecast: float = setting(
        0.0, "How far the growth of a slot's load is expected to go on; 0: not at all.",
        between(0, 1))  # fmt: skip


@dataclass(frozen=True)
class FluxConfig:
    """How a keyed operator (`geoflux.run_operator`) is partitioned, and kept balanced."""

    partitions: int = setting(64, "Mini-partitions per slot: what can be moved.", between(1, 4096))
    policy: str = setting(
        "hybrid", "What is evened out by moving partitions: `load`, `memory`, `hybrid` (memory "
        "where partitions are on disk, else load), or `static`: nothing.",
        one_of("load", "memory", "hybrid", "static"))  # fmt: skip
    budget: str = setting(
        "", "Time after which a slot hands the rest of its rows back to the next epoch; empty: it "
        "finishes what it has.", duration)  # fmt: skip
    buffer: str = setting("64 MB", "As much may be handed back by a slot.", amount)
    memory: str = setting(
        "", "Memory of a slot for the states of its partitions; those beyond it are kept on disk "
        "and take turns. Empty: no limit.", amount)  # fmt: skip
    collect: str = setting("1s", "Busy time between two looks at the load, at least.", duration)
    self_tuning: bool = setting(
        True, "Whether that time grows by itself when moves do not bring what they promised."
    )


@dataclass(frozen=True)
class RetentionConfig:
    """Which events are kept to be asked about later; with all limits empty, none."""

    time: str = setting("", "Keep events this long in event time (`1 hour`).", duration)
    events: int = setting(
        0, "Keep at least this many of the newest events, whole segments at a time; 0: no limit.",
        between(0, 1 << 50))  # fmt: skip
    bytes: str = setting(
        "", "Keep at most this much (`2 GB`), whole segments at a time.", amount)  # fmt: skip
    columns: tuple[str, ...] = setting(
        (), "Columns to keep beside place, time and id; empty: all of them.")  # fmt: skip

    @property
    def is_on(self) -> bool:
        """Whether anything is kept."""
        return bool(self.time or self.events or self.bytes)


@dataclass(frozen=True)
class OutputConfig:
    """What is written for the queries."""

    matches: str = setting("rows", "`rows`: one row per match; `counts`: matches per query and "
                           "epoch, for very many queries.", one_of("rows", "counts"))  # fmt: skip
    compression: str = setting("snappy", "Compression of the Parquet files that are written.",
                               one_of("none", "snappy", "lz4", "zstd"))  # fmt: skip
    record_input: bool = setting(
        False, "Keep what was received beside the results, so that a run over a DataFrame or over "
        "files that go away can be verified later.")  # fmt: skip


@dataclass(frozen=True)
class RunConfig:
    """How long the run lasts."""

    mode: str = setting("drain", "`drain`: all that is there, then stop; `follow`: go on for ever.",
                        one_of("drain", "follow"))  # fmt: skip
    duration: str = setting(
        "", "Stop after this long (`90s`, `10 minutes`); for the simulator, how much it makes.",
        duration)  # fmt: skip


@dataclass(frozen=True)
class HotspotConfig:
    """One hotspot of the simulator: a square that draws a share of all events for a while."""

    at: tuple[float, float] = setting(
        (0.0, 0.0), "Lower left corner as shares of width and height."
    )
    side: float = setting(0.15, "Side as a share of the space's side.", between(0.0001, 1))
    start: float = setting(0.4, "When it starts, as a share of the run.", between(0, 1))
    stop: float = setting(0.8, "When it stops, as a share of the run.", between(0, 1))
    peak: float = setting(0.4, "Largest share of all events that it draws.", between(0, 1))
    inside: str = setting("uniform", "How events lie in it.", one_of("uniform", "normal"))
    intensity: str = setting("normal", "How its strength goes over time.", one_of("normal", "step"))
    queries: int = setting(0, "Standing queries that it brings within its first minute.",
                           between(0, 1 << 31))  # fmt: skip


@dataclass(frozen=True)
class SimulateConfig:
    """The built-in simulator: people in cities, day and night, hotspots; all from one seed."""

    seed: int = setting(7, "Seed; the same seed gives the same events and queries.",
                        between(0, 2**63 - 1))  # fmt: skip
    region: str = setting("world", "Whose cities: `world` or `us`.", one_of("world", "us"))
    rate: int = setting(100_000, "Events per second of the run.", between(1, 1_000_000_000))
    paced: bool = setting(True, "Offer events at that rate; false: as fast as they are taken.")
    queries: int = setting(20_000, "Standing queries at the start.", between(0, 1 << 31))
    query_side: float = setting(
        0.0016, "Side of a query as a share of the space's side.", between(0, 1)
    )
    query_rate: float = setting(
        50.0, "Registrations a second while it runs; as many terminations.", between(0, 1e6)
    )
    time_speed: float = setting(
        1440.0, "Simulated seconds per second: 1440 is a day a minute.", between(0, 1e6)
    )
    hotspots: tuple[HotspotConfig, ...] = setting(
        (), "Hotspots, as `[[simulate.hotspots]]` tables."
    )


@dataclass(frozen=True)
class Config:
    """All settings of a run."""

    space: SpaceConfig = field(default_factory=SpaceConfig)
    source: SourceConfig = field(default_factory=SourceConfig)
    control: ControlConfig = field(default_factory=ControlConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    swarm: SwarmConfig = field(default_factory=SwarmConfig)
    flux: FluxConfig = field(default_factory=FluxConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
    run: RunConfig = field(default_factory=RunConfig)
    simulate: SimulateConfig = field(default_factory=SimulateConfig)

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
        values: dict[str, Any] = {}
        if path is not None:
            try:
                values = tomllib.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                raise ConfigError(
                    f"there is no settings file {path}; give the path of a TOML file"
                ) from None
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise ConfigError(f"{path} is not a TOML file: {error}") from None
            except OSError as error:
                raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
            _resolve_paths(values, path.parent)
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


def _table(values: dict[str, Any], section: str) -> dict[str, Any]:
    table = values.setdefault(section, {})
    return table if isinstance(table, dict) else {}


def _resolve_paths(values: dict[str, Any], base: Path) -> None:
    """Paths in a file are relative to that file."""
    for section in ("source", "control"):
        table = values.get(section)
        if isinstance(table, dict) and isinstance(table.get("path"), str) and table["path"]:
            table["path"] = str(base / table["path"])


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
    if config.source.kind == "simulate" and config.space.kind != "lonlat":
        problems.append('space.kind = "planar": the simulator needs "lonlat"')
    for i, spot in enumerate(config.simulate.hotspots):
        if spot.stop <= spot.start:
            problems.append(f"simulate.hotspots[{i}]: stop = {spot.stop} must be after start")
    return problems
