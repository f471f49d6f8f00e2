"""What all routes share: the run that is served, who asks, and what follows the run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from geoflux.config import Config
from geoflux.sections_serve import ServeConfig
from geoflux.serve.access import Access
from geoflux.serve.event_inbox import EventInbox
from geoflux.serve.following import Follower
from geoflux.serve.limits import Buckets, Seats
from geoflux.serve.match_epochs import MatchHistory
from geoflux.serve.match_stream import Tempo
from geoflux.serve.served_run import NAME, ServedRun
from geoflux.serve.subscribing import Subscriptions
from geoflux.serve.tokens import TokenFile
from geoflux.serve.view_run import queries_directory
from geoflux.settings import bytes_of, seconds


@dataclass(frozen=True)
class Parts:
    """The server, taken apart."""

    settings: ServeConfig
    run: ServedRun
    access: Access
    follower: Follower
    subscriptions: Subscriptions
    events: EventInbox
    history: MatchHistory
    seats: Seats
    tempo: Tempo

    @classmethod
    def of(cls, directory: Path, settings: ServeConfig, config: Config | None = None) -> Parts:
        """All parts for a run's directory, or an application's, of which the operator of standing
        queries is served; ``config`` are its settings before it has begun."""
        run = ServedRun(queries_directory(directory), config)
        follower = Follower(run)
        tokens = TokenFile(token_path(directory, settings))
        return cls(
            settings, run, Access(tokens, Buckets(settings.rate, settings.burst)), follower,
            Subscriptions(follower, settings.subscriptions), EventInbox(run),
            MatchHistory(run, bytes_of(settings.history)), Seats(settings.streams),
            Tempo(seconds(settings.heartbeat), seconds(settings.patience)),
        )  # fmt: skip


def token_path(directory: Path, settings: ServeConfig) -> Path:
    """Where the tokens of a run's users are kept."""
    return Path(settings.tokens) if settings.tokens else directory / NAME / "tokens.json"
