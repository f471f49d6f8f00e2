"""The users' subscriptions: what the control records say, and what the run has made of them.

A fold over two things that are on disk already, so that there is nothing of its own to lose: the
lines of the control file, in their order, and per epoch how far the run has read it, which queries
came and which ended. Ids are a user's own: in the run, ``x`` of ``ann`` is called ``@ann/x``.

Invariant: a subscription was *placed* (its line is on disk), then is *live* (its epoch counts) or
*refused*; it is *ending* when its termination is on disk, and gone when that was taken in.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["writing", "placed", "live", "ending"]
_MOST_ENDED = 100
"""Of each user so many that ended or were refused are remembered, with the reason."""


def query_id(user: str, name: str) -> str:
    """What a user's subscription is called in the run.

    >>> query_id("ann", "home"), owner("@ann/home"), owner("home")
    ('@ann/home', ('ann', 'home'), None)
    """
    return f"@{user}/{name}"


def owner(query: str) -> tuple[str, str] | None:
    """The user and the id of a query, where it is a subscription."""
    user, slash, name = query[1:].partition("/")
    return (user, name) if query[:1] == "@" and slash else None


def line_of(record: Mapping[str, Any]) -> bytes:
    """A record as it is written: the same words for the same record."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def digest(line: bytes) -> bytes:
    """What tells two records apart."""
    return hashlib.blake2b(line.rstrip(b"\n"), digest_size=8).digest()


@dataclass(slots=True)
class Subscription:
    """A subscription that counts: where its line is, and how far it is."""

    digest: bytes
    state: State
    offset: int = -1
    length: int = 0
    ends_at: int = -1
    """Where the line of its termination is."""


@dataclass(frozen=True)
class Ended:
    """A subscription that counts no more, and why."""

    state: Literal["ended", "refused"]
    reason: str


_NOT_ACCEPTED = Ended("refused", "the run did not accept it")
_OVER = Ended("ended", "its validity is over, or Guard removed it")
_UNSEEN = Ended("ended", "it ended while nobody looked")


@dataclass
class Registry:
    """All subscriptions by user and id."""

    users: dict[str, dict[str, Subscription]] = field(default_factory=dict)
    ended: dict[str, OrderedDict[str, Ended]] = field(default_factory=dict)
    _unsettled: deque[tuple[int, str, str, bool]] = field(default_factory=deque)
    """Lines that the run has not read: offset, user, id, whether it is a registration."""

    def of(self, user: str) -> dict[str, Subscription]:
        """The subscriptions of a user, in the order in which they were placed."""
        return self.users.get(user, {})

    def past(self, user: str, name: str) -> Ended | None:
        """What became of one that counts no more, while it is remembered."""
        known = self.ended.get(user)
        return None if known is None else known.get(name)

    def reserve(self, user: str, name: str, written: bytes) -> None:
        """Note a subscription whose line is being written."""
        self.users.setdefault(user, {})[name] = Subscription(digest(written), "writing")

    def withdraw(self, user: str, names: Iterable[str]) -> None:
        """Forget those whose lines could not be written."""
        for name in names:
            known = self.of(user).get(name)
            if known is not None and known.state == "writing":
                self._drop(user, name)

    def line(self, offset: int, line: bytes) -> None:
        """Take in a line of the control file."""
        if b'"@' not in line:
            return
        try:
            record = json.loads(line)
            op, given = record["op"], record["id"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return  # no record of ours; the run will say what is wrong with it
        whose = owner(given) if isinstance(given, str) else None
        if whose is None:
            return
        user, name = whose
        known = self.of(user).get(name)
        if op == "register" and (known is None or known.state in ("writing", "ending")):
            new = Subscription(digest(line), "placed", offset, len(line))
            mine = self.users.setdefault(user, {})
            mine.pop(name, None)
            mine[name] = new
            self.ended.get(user, OrderedDict()).pop(name, None)
            self._unsettled.append((offset, user, name, True))
        elif op == "terminate" and known is not None and known.state != "writing":
            known.state, known.ends_at = "ending", offset
            self._unsettled.append((offset, user, name, False))

    def settle(
        self, read_upto: int, came: set[str], ended: Iterable[str], refused: Mapping[str, str],
        otherwise: Ended = _NOT_ACCEPTED, over: Ended = _OVER,
    ) -> None:  # fmt: skip
        """An epoch counts that has read the control file up to an offset: which queries came, which
        ended, why some were refused; and what became of others."""
        while self._unsettled and self._unsettled[0][0] < read_upto:
            offset, user, name, registers = self._unsettled.popleft()
            known = self.of(user).get(name)
            if known is None:
                continue
            query = query_id(user, name)
            if not registers and known.ends_at == offset:
                self._end(user, name, Ended("ended", "it was terminated"))
            elif registers and known.offset == offset and known.state == "placed":
                if query in came:
                    known.state = "live"
                else:
                    why = refused.get(query)
                    self._end(user, name, Ended("refused", why) if why else otherwise)
        for query in ended:
            whose = owner(query)
            if whose is not None and query not in came:
                known = self.of(whose[0]).get(whose[1])
                if known is not None and known.state == "live":
                    self._end(*whose, over)

    def resync(self, read_upto: int, live: set[str], refused: Mapping[str, str]) -> None:
        """The same, where it is not known what happened epoch by epoch, only what is live now."""
        gone = [
            query_id(user, name)
            for user, mine in self.users.items()
            for name, known in mine.items()
            if known.state == "live" and query_id(user, name) not in live
        ]
        self.settle(read_upto, live, gone, refused, _UNSEEN, _UNSEEN)

    def _end(self, user: str, name: str, how: Ended) -> None:
        self._drop(user, name)
        past = self.ended.setdefault(user, OrderedDict())
        past[name] = how
        while len(past) > _MOST_ENDED:
            past.popitem(last=False)

    def _drop(self, user: str, name: str) -> None:
        mine = self.users[user]
        del mine[name]
        if not mine:
            del self.users[user]

    def counts(self) -> Iterator[tuple[str, int]]:
        """How many subscriptions there are in each state."""
        found: dict[str, int] = {}
        for mine in self.users.values():
            for known in mine.values():
                found[known.state] = found.get(known.state, 0) + 1
        return iter(sorted(found.items()))
