"""The section of the settings that says who may ask a run over HTTP, and how much."""

from __future__ import annotations

from dataclasses import dataclass

from geoflux.settings import amount, between, duration, one_of, setting


@dataclass(frozen=True)
class ServeConfig:
    """The HTTP API beside a run ([serve.md](serve.md)): `geoflux serve DIR`, or `geoflux run
    --serve`."""

    host: str = setting(
        "127.0.0.1", "Address to listen on; another than this machine's own is for networks that "
        "are trusted, or behind a proxy that speaks TLS.")  # fmt: skip
    port: int = setting(8321, "Port to listen on; 0: any that is free.", between(0, 65535))
    hosts: tuple[str, ...] = setting(
        (), "Names by which requests may address the server; empty: `localhost` and its numbers, "
        "or any name where `host` is another.")  # fmt: skip
    tokens: str = setting(
        "", "File of the users' tokens; empty: `serve/tokens.json` in the run's directory."
    )
    body: str = setting("8 MB", "Longest body of a request.", amount)
    subscriptions: int = setting(
        10_000, "Subscriptions that a user may have at once.", between(0, 1 << 31)
    )
    rate: float = setting(
        50.0, "Requests a second that a token may make, in the long run.", between(0.01, 1e6)
    )
    burst: int = setting(100, "Requests that it may make at once.", between(1, 1_000_000))
    streams: int = setting(8, "Streams of matches that a user may have open.", between(1, 100_000))
    heartbeat: str = setting("15s", "Longest silence of a stream of matches.", duration)
    patience: str = setting(
        "30s", "A stream whose client takes nothing for so long is cut; it can be resumed.",
        duration)  # fmt: skip
    history: str = setting(
        "64 MB", "Matches of the newest epochs that are kept in memory for all streams together.",
        amount)  # fmt: skip
    questions: int = setting(
        2, "Snapshots and sketch queries that are answered at the same time.", between(1, 256)
    )
    answer_rows: int = setting(
        10_000, "Rows that an answer to a snapshot tells at most.", between(1, 10_000_000)
    )
    ingest: str = setting(
        "operator", "Who may send events: `operator`, or `user`: everybody with a token.",
        one_of("operator", "user"))  # fmt: skip
    open_metrics: bool = setting(False, "Whether `/metrics` can be read without a token.")
