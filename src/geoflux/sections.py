"""The sections of the settings: what can be set, with default, range and one sentence each."""

from __future__ import annotations

from dataclasses import dataclass

from geoflux.settings import amount, between, duration, one_of, setting


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
        "simulate", "`simulate`, `files` for a folder of Parquet or NDJSON, `kafka` for topics, or "
        "`dataframe` for a streaming DataFrame that is handed to `geoflux.run`.",
        one_of("simulate", "files", "kafka", "dataframe"))  # fmt: skip
    path: str = setting("", "Folder (or one file) of events; needed by `files`.")
    topics: tuple[str, ...] = setting((), "Topics of events; needed by `kafka`.")
    columns: tuple[str, ...] = setting(
        (), "Columns of the values in a topic, name and type: `long`, `double`, `text`, `boolean`, "
        "`timestamp`; needed by `kafka`.")  # fmt: skip
    offsets: str = setting(
        "earliest", "Where a new run begins in the topics: `earliest`, `latest`, or offsets by "
        "topic and partition as JSON, as Spark writes them.")  # fmt: skip
    format: str = setting("auto", "`auto` goes by the file's ending, and is `json` in a topic.",
                          one_of("auto", "parquet", "ndjson", "json", "arrow"))  # fmt: skip
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
        1_048_576, "A longer NDJSON line or JSON value is quarantined.", between(64, 1 << 30)
    )


@dataclass(frozen=True)
class ControlConfig:
    """Where registrations and terminations of standing queries come from."""

    kind: str = setting("files", "`files`, or `kafka` for a topic of JSON records.",
                        one_of("files", "kafka"))  # fmt: skip
    path: str = setting("", "NDJSON or Parquet file, or a folder of them; read while the run goes.")
    topic: str = setting("", "Topic of one partition, whose order is that of the records.")


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
class GuardConfig:
    """Who may place queries: users who make hotspots for the plan to chase are refused."""

    enabled: bool = setting(False, "Watch who is behind the hotspots, and refuse who is blocked.")
    mode: str = setting(
        "robust", "`robust`, or `published`: the algorithm to the letter, which can be evaded.",
        one_of("robust", "published"))  # fmt: skip
    observe_only: bool = setting(False, "Only note who would be blocked, and why.")
    placed: str = setting(
        "expire", "What becomes of standing queries when their user is blocked: they `expire` or "
        "are terminated as any other, or are ended at once: `remove`.",
        one_of("expire", "remove"))  # fmt: skip
    anonymous: str = setting(
        "accept", "Requests without a `user`: `accept`, they are nobody's, or `refuse`.",
        one_of("accept", "refuse"))  # fmt: skip
    round: str = setting(
        "60s", "A detection round; several of `swarm.round`, so that hotspots show in it.",
        duration)  # fmt: skip
    block: str = setting("", "How long a block lasts; empty: until it is lifted.", duration)
    factor: float = setting(
        3.0, "By how much a rate must exceed the normal one.", between(1, 1e6))  # fmt: skip
    spread: float = setting(
        0.05, "A cluster of users whose hotspots differ more is split again.", between(0, 1)
    )
    removal_rounds: tuple[int, int] = setting(
        (5, 30), "A suspicion lapses after a number of rounds drawn from here."
    )
    seed: int = setting(1, "Of all that is drawn; keep it secret.", between(0, 2**63 - 1))
    evidence_floor: float = setting(
        8.0, "Queries of the last five rounds that a user must have in a hotspot to be part of it; "
        "`robust` only, as are those that follow.", between(0, 1e9))  # fmt: skip
    least_rate: float = setting(
        0.1, "Share of a user's recent queries that must lie in it.", between(0, 1)
    )
    least_share: float = setting(
        0.05, "Share of its queries that must be recent ones of suspects.", between(0, 1)
    )
    relocated_rate: float = setting(
        0.3, "Who moves into a hotspot with this share of their recent queries is suspect at their "
        "first place already; above 1: nobody is.", between(0, 2))  # fmt: skip
    crowd_users: int = setting(
        30, "So many who move into a hotspot together are a crowd.", between(1, 1 << 31)
    )
    crowd_share: float = setting(0.2, "And so is this share of the active users.", between(0, 1))
    least_users: int = setting(
        5, "Active users it takes to tell what is normal.", between(1, 1 << 31)
    )
    warm_up_rounds: int = setting(
        3, "First rounds, in which everything is new and nothing is evidence.",
        between(0, 1 << 31))  # fmt: skip


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
    topic: str = setting(
        "", "Kafka topic that committed matches, counts and windows are sent to; empty: none."
    )
    topic_format: str = setting("json", "`json`: a message per row; `arrow`: one per 4096 rows.",
                                one_of("json", "arrow"))  # fmt: skip
    streams: str = setting(
        "keep", "Of an application, files of streams that its operators read: `keep`, so that it "
        "can be verified; `drop`: delete them once all who read them have.",
        one_of("keep", "drop"))  # fmt: skip


@dataclass(frozen=True)
class RunConfig:
    """How long the run lasts."""

    mode: str = setting("drain", "`drain`: all that is there, then stop; `follow`: go on for ever.",
                        one_of("drain", "follow"))  # fmt: skip
    duration: str = setting(
        "", "Stop after this long (`90s`, `10 minutes`); for the simulator, how much it makes.",
        duration)  # fmt: skip


@dataclass(frozen=True)
class SecurityConfig:
    """Whether what a run keeps and sends can be read by others ([security.md](security.md))."""

    encrypt: bool = setting(
        False, "Encrypt the state of the run at rest, and what Spark sends and spills; needs "
        "`geoflux[security]` and a `key_file`.")  # fmt: skip
    key_file: str = setting(
        "", "File with the key, outside of the run's directory and readable by its owner alone; "
        "`geoflux key PATH` makes one.")  # fmt: skip


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
