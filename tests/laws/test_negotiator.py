"""Executors come and go by wish: never fewer than wanted stay, no running task is cut off, and what
is said of it is so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoflux.errors import ConfigError
from geoflux.scale.executors import (
    Executor,
    Room,
    answer_to,
    executors_for,
    have,
    room_of,
    steps_for,
)
from geoflux.spark.negotiator import LocalCores, Negotiator, SparkExecutors, settled

executors = st.lists(
    st.builds(
        Executor, st.uuids().map(str), st.integers(1, 4), st.integers(0, 4),
        st.floats(0, 100), st.booleans(),
    ),
    max_size=12,
)  # fmt: skip


@dataclass
class Cluster:
    """A cluster manager with so many places for executors; each takes a second to come, and tasks
    end when they are told to."""

    places: int
    per_executor: int = 2
    graceful: bool = False
    total: int = 0
    there: dict[str, Executor] = field(default_factory=dict)
    now: float = 0.0
    requests: list[int] = field(default_factory=list)
    takes: bool = True

    def executors(self) -> tuple[Executor, ...]:
        return tuple(self.there.values())

    def request(self, total: int) -> bool:
        self.requests.append(total)
        if self.takes:
            self.total = total
        return self.takes

    def end_idle(self, ids: Sequence[str]) -> None:
        for name in ids:
            if not self.there[name].running:
                del self.there[name]

    def retire(self, ids: Sequence[str]) -> None:
        for name in ids:
            self.there[name] = replace(self.there[name], leaving=True)

    def second(self) -> None:
        self.now += 1
        for name, one in list(self.there.items()):
            if one.leaving and not one.running:
                del self.there[name]
        if len(self.there) < min(self.total, self.places):
            name = f"{self.now:g}"
            self.there[name] = Executor(name, self.per_executor, since=self.now)

    def work(self, running: int) -> None:
        self.there = {
            name: replace(one, running=0 if one.leaving else running)
            for name, one in self.there.items()
        }

    def die(self) -> None:
        if self.there:
            del self.there[next(iter(self.there))]


def negotiator(cluster: Cluster, most: int | None = None, patience: float = 30) -> SparkExecutors:
    room = Room("standalone", cluster.per_executor, most, "spark.cores.max=4")
    return SparkExecutors(cluster, room, patience, lambda: cluster.now)


@given(st.integers(1, 40), executors, st.integers(1, 4), st.booleans())
def test_those_that_stay_have_what_is_wanted_and_not_one_executor_more(
    wanted: int, given: list[Executor], each: int, graceful: bool
) -> None:
    steps = steps_for(wanted, given, Room("yarn", each), graceful)
    staying = [e for e in given if not e.leaving]
    going = {*steps.end, *steps.retire}
    assert not (steps.end and steps.retire)
    assert going <= {e.id for e in staying}
    left = [e for e in staying if e.id not in going]
    new = steps.total - len(left)
    assert new >= 0
    assert not (new and going), "nobody goes while others are asked for"
    assert have(left) + new * each >= wanted
    if new:
        assert have(left) + (new - 1) * each < wanted
    else:
        assert all(have(left) - e.processors < wanted for e in left)


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=2, max_size=6),
)
def test_idle_ones_go_before_busy_ones_and_the_warm_stay(
    wanted: int, given: list[tuple[int, int]]
) -> None:
    alike = [Executor(str(i), 2, running, since) for i, (running, since) in enumerate(given)]
    steps = steps_for(wanted, alike, Room("yarn", 2))
    going = [e for e in alike if e.id in steps.end]
    left = [e for e in alike if not e.leaving and e.id not in steps.end]
    for gone in going:
        assert all((gone.running, -gone.since) <= (e.running, -e.since) for e in left)


@given(
    st.integers(1, 8), st.booleans(),
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 2), st.booleans()), min_size=1, max_size=12),
)  # fmt: skip
def test_wishes_one_after_the_other_end_with_what_was_wanted(
    places: int, graceful: bool, wishes: list[tuple[int, int, bool]]
) -> None:
    cluster = Cluster(places, graceful=graceful)
    asking = negotiator(cluster)
    for wanted, running, dies in wishes:
        asking.want(wanted)
        cluster.work(running)
        if dies:
            cluster.die()
        busy = {e.id for e in cluster.executors() if e.running}
        asking.want(wanted)
        assert busy <= {e.id for e in cluster.executors()}, "a running task was cut off"
        cluster.second()
    wanted = wishes[-1][0]
    cluster.work(0)
    answer = settled(asking, wanted, 100, lambda _: cluster.second(), lambda: cluster.now)
    needed = executors_for(wanted, 2)
    assert answer.have == asking.have() == 2 * min(needed, places)
    assert answer.state == ("met" if needed <= places else "short")
    assert len(cluster.executors()) == min(needed, places)
    if needed > places:
        assert "did not come within 30 s: the workers have no cores" in answer.reason


@given(st.integers(1, 30), executors, st.floats(0, 100), st.floats(0, 100))
def test_short_is_said_only_after_the_patience_and_met_only_if_it_is(
    wanted: int, given: list[Executor], waited: float, patience: float
) -> None:
    answer = answer_to(wanted, given, Room("kubernetes", 2), waited, patience)
    assert answer.have == have(given)
    assert (answer.state == "short") == (answer.have < wanted and waited >= patience)
    if answer.state == "met":
        assert answer.have >= wanted
        assert not any(e.leaving for e in given)


def test_nothing_is_asked_twice_and_a_refusal_is_told_and_mended() -> None:
    cluster = Cluster(4, takes=False)
    asking = negotiator(cluster)
    assert asking.want(4).reason.startswith("Spark did not take the wish for 2 executors")
    cluster.takes = True
    assert asking.want(4).state == "waiting"
    for _ in range(3):
        cluster.second()
        asking.want(4)
    assert cluster.requests == [2, 2]
    cluster.takes = False
    assert asking.want(2).state == "short"
    assert len(cluster.executors()) == 2, "nobody goes before the total is taken"


def test_the_patience_begins_anew_with_every_wish() -> None:
    cluster = Cluster(1)
    asking = negotiator(cluster)
    assert settled(asking, 2, 9, lambda _: cluster.second(), lambda: cluster.now).state == "met"
    cluster.now += 100
    assert asking.want(3).state == "waiting"
    cluster.now += 31
    assert asking.want(3).state == "short"
    assert asking.want(2).state == "met"


def test_what_the_settings_allow_is_not_waited_for() -> None:
    cluster = Cluster(8)
    asking = negotiator(cluster, most=4)
    assert settled(asking, 7, 9, lambda _: cluster.second(), lambda: cluster.now).reason == (
        "spark.cores.max=4 allows for 4 processors and 7 were wanted; raise it to get more"
    )
    assert cluster.now < 9


def test_a_local_session_has_what_it_has() -> None:
    room = room_of("local[*]", {}, 6)
    cores: Negotiator = LocalCores(room)
    assert cores.have() == 6
    assert cores.want(2).state == cores.want(6).state == "met"
    assert cores.want(8).state == "short"
    with pytest.raises(ValueError, match="0 processors were wanted; at least 1"):
        cores.want(0)


@pytest.mark.parametrize(
    ("master", "settings", "each", "most"),
    [
        ("local", {}, 1, 1),
        ("local[3,2]", {}, 3, 3),
        ("local-cluster[3,2,1024]", {}, 2, 6),
        ("local-cluster[3,2,1024]", {"spark.executor.cores": "1"}, 1, 6),
        ("local-cluster[3,2,1024]", {"spark.cores.max": "4"}, 2, 4),
        ("spark://a:7077,b:7077", {"spark.executor.cores": "4", "spark.task.cpus": "2"}, 2, None),
        ("yarn", {"spark.executor.cores": "4", "spark.cores.max": "4"}, 4, None),
        ("k8s://https://a:443", {"spark.dynamicAllocation.enabled": "false"}, 1, None),
    ],
)
def test_room(master: str, settings: dict[str, str], each: int, most: int | None) -> None:
    room = room_of(master, settings, 9)
    assert (room.per_executor, room.most) == (each, most)


@pytest.mark.parametrize(
    ("master", "settings", "told"),
    [
        (
            "yarn",
            {"spark.dynamicAllocation.enabled": "true"},
            "Spark would add and remove executors",
        ),
        ("spark://a:7077", {}, "spark.executor.cores is not set"),
        ("mesos://a", {}, r"mesos://a.*spark://, yarn and k8s:// only"),
        ("yarn", {"spark.executor.cores": "many"}, r"spark\.executor\.cores=many: a whole number"),
        ("yarn", {"spark.task.cpus": "2"}, r"no task would ever run: spark\.task\.cpus=2, 1 cores"),
        ("local-cluster[2,1,1024]", {"spark.executor.cores": "2"}, "no task would ever run"),
    ],
)
def test_what_cannot_be_negotiated_is_refused(
    master: str, settings: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        room_of(master, settings, 2)
