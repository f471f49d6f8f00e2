"""When streams between operators are over: chains one after another, loops all together."""

from __future__ import annotations

from dataclasses import dataclass

from geoflux.topology.draining import Draining, Progress
from topologies_by_hand import LOOP


@dataclass
class Reader:
    """Ten rows with positions, and some without."""

    undiscovered: int = 0
    ended: bool = False

    def logged(self) -> int:
        return 10

    def waiting(self) -> int:
        return self.undiscovered

    def end(self) -> None:
        self.ended = True


def draining(**progress: Progress) -> tuple[Draining, dict[str, Reader]]:
    readers = {"rounds": Reader(), "last": Reader()}
    found = Draining(LOOP, readers)
    found.progress |= progress
    return found, readers


DONE = Progress(3, 10, 0)


def test_a_loop_ends_when_all_before_it_is_done_and_nobody_in_it_has_anything_to_do() -> None:
    for before, now, undiscovered, ends in (
        (set(), DONE, 0, False),
        ({"ingest"}, DONE, 0, True),
        ({"ingest"}, Progress(3, 9, 0), 0, False),
        ({"ingest"}, Progress(3, 10, 4), 0, False),
        ({"ingest"}, DONE, 1, False),
    ):
        some, readers = draining(rounds=now, last=DONE)
        readers["rounds"].undiscovered = undiscovered
        some.look(frozenset(before))
        assert readers["rounds"].ended == ends
        assert not readers["last"].ended, "what feeds it may still write"


def test_who_comes_after_a_loop_ends_after_it() -> None:
    some, readers = draining(rounds=DONE, last=DONE)
    some.look(frozenset({"ingest"}))
    some.look(frozenset({"ingest", "rounds"}))
    assert readers["last"].ended
    assert some.waiting("last") == 0
    some.progress["last"] = Progress(3, 4, 2)
    assert some.waiting("last") == 8
    assert some.waiting("ingest") == 0


def test_an_epoch_that_was_committed_meanwhile_makes_it_look_again() -> None:
    some, readers = draining(rounds=DONE)

    def committed() -> int:
        some.progress["rounds"] = Progress(4, 10, 0)
        return 0

    readers["rounds"].waiting = committed  # type: ignore[method-assign]
    some.look(frozenset({"ingest"}))
    assert not readers["rounds"].ended
    some.look(frozenset({"ingest"}))
    assert readers["rounds"].ended
