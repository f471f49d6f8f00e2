"""The detector to the letter: a cluster that was suspected before, exactly, is blocked.

Kept to be compared with: rotating members, members that join late and sums that collide evade it,
and at cold start or on a quiet night, when the normal rate is 0, it accuses anybody.

Source: Guard 5.4, Algorithm 4. Where the text is silent: the cluster is involved if any of its
users was in a hotspot of the round; the average rate of nobody is 0; who is blocked is no longer
clustered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from geoflux.guard.clusters import divide
from geoflux.guard.features import X3, X11, Features
from geoflux.guard.sightings import Sighting
from geoflux.guard.tuning import GuardTuning
from geoflux.guard.verdicts import LISTED, Accusation, Verdict, removal_round


@dataclass(frozen=True)
class Suspicion:
    """A cluster on the list: since when, until when, and its hotspots of the round it came from."""

    users: tuple[str, ...]
    round: int
    until: int
    hotspots: tuple[int, ...]


@dataclass(frozen=True)
class PublishedState:
    """The list of suspicious clusters.

    >>> state = PublishedState((Suspicion(("a", "b"), 3, 9, (1,)),))
    >>> PublishedState.from_dict(state.to_dict()) == state
    True
    """

    clusters: tuple[Suspicion, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "clusters": [
                [list(c.users), c.round, c.until, list(c.hotspots)] for c in self.clusters
            ]
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PublishedState:
        """What :meth:`to_dict` gave, also by way of JSON."""
        return cls(
            tuple(
                Suspicion(tuple(users), round, until, tuple(hotspots))
                for users, round, until, hotspots in values["clusters"]
            )
        )


def judge_published(
    features: Features, sightings: Sequence[Sighting], state: PublishedState,
    round: int, tuning: GuardTuning,
) -> tuple[Verdict, PublishedState]:  # fmt: skip
    """The verdict at the end of a round, and the state from now on."""
    listed = tuple(c for c in state.clusters if c.until >= round)
    state = PublishedState(listed)
    told = tuple(s.hotspot for s in sightings)
    found = divide(features, tuning, tuning.seed + 1000 * round)
    rates = f"{found.suspicious_rate:.3f} against {found.normal_rate:.3f} of the others"
    if not found.suspicious_rate > tuning.factor * found.normal_rate:
        return Verdict(round, (), (), f"no attack: rate {rates}", told), state
    if not (features.values[found.suspicious, X3] > 0).any():
        return Verdict(round, (), (), "no attack: the cluster was in no hotspot", told), state
    users = tuple(sorted(features.users[row] for row in found.suspicious))
    members = set(users)
    hotspots = tuple(s.hotspot for s in sightings if members & set(s.users))
    before = next((c for c in listed if c.users == users), None)
    if before is None:
        until = removal_round(tuning.seed, round, "\0".join(users), tuning.removal_rounds)
        fresh = Suspicion(users, round, until, hotspots)
        reason = f"a cluster of {len(users)} is suspected: rate {rates}"
        return Verdict(round, users, (), reason, told), PublishedState((*listed, fresh))
    accused = tuple(
        Accusation(
            features.users[row],
            f"in the same cluster of {len(users)} as in round {before.round}: rate {rates}",
            features.of(int(row)), users[:LISTED], len(users),
            tuple(
                {"hotspot": hotspot, "round": at}
                for at, some in ((before.round, before.hotspots), (round, hotspots))
                for hotspot in some
            ),
            (before.round, round),
            {"cluster_rate": found.suspicious_rate, "normal_rate": found.normal_rate,
             "factor": tuning.factor, "spread": found.spread,
             "hotspot_seq_new": float(features.values[row, X11])},
        )
        for row in found.suspicious
    )  # fmt: skip
    rest = PublishedState(tuple(c for c in listed if c != before))
    return Verdict(round, users, accused, f"{len(users)} accused: rate {rates}", told), rest
