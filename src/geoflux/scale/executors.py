"""How many executors so many processors are, which of them go, and what is said of it.

Pure: what the cluster manager has is handed in, what is to be asked of it comes out. A processor is
room for one task. Two things hold whatever is asked: those that stay have at least as many
processors as are wanted, and an executor with running tasks is never ended, at most asked to leave
once it has finished them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from geoflux.errors import ConfigError

Manager = Literal["local", "local-cluster", "standalone", "yarn", "kubernetes"]
State = Literal["met", "waiting", "short"]
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*]")


@dataclass(frozen=True)
class Executor:
    """One executor: its processors, the tasks that it runs, when it came (seconds), and whether it
    is about to leave and takes no more tasks."""

    id: str
    processors: int
    running: int = 0
    since: float = 0.0
    leaving: bool = False


@dataclass(frozen=True)
class Room:
    """What a session may have: processors of one executor, and of all together (``None``: only the
    cluster knows), with the setting that says so."""

    manager: Manager
    per_executor: int
    most: int | None = None
    because: str = ""


@dataclass(frozen=True)
class Steps:
    """What is asked of the cluster manager: executors in all, those that may be ended if they are
    idle, and those that are asked to leave once they have finished their tasks."""

    total: int
    end: tuple[str, ...] = ()
    retire: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What became of a wish. ``met``: at least so many processors are there, and what is too much
    has gone; ``waiting``: executors are still to come or to go; ``short``: there will not be
    enough, for the reason given, and work goes on with what is there."""

    wanted: int
    have: int
    state: State
    reason: str
    steps: Steps | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the record."""
        return asdict(self)


def executors_for(processors: int, per_executor: int) -> int:
    """The fewest executors with so many processors.

    >>> executors_for(5, 2), executors_for(4, 2)
    (3, 2)
    """
    return -(-processors // per_executor)


def have(executors: Sequence[Executor]) -> int:
    """Processors that take tasks."""
    return sum(e.processors for e in executors if not e.leaving)


def steps_for(
    wanted: int, executors: Sequence[Executor], room: Room, graceful: bool = False
) -> Steps:
    """What to ask for. Who goes: idle ones before busy ones, and of these who came last, so that
    those with the warmest state stay. ``graceful``: executors finish their tasks before they leave;
    otherwise those that are busy are only ended once they are idle.

    >>> two = Executor("0", 2, running=1), Executor("1", 2, since=9.0)
    >>> steps_for(5, two, Room("yarn", 2))
    Steps(total=3, end=(), retire=())
    >>> steps_for(1, two, Room("yarn", 2))
    Steps(total=1, end=('1',), retire=())
    """
    wanted = wanted if room.most is None else min(wanted, room.most)
    staying = [e for e in executors if not e.leaving]
    there = have(staying)
    if there < wanted:
        return Steps(len(staying) + executors_for(wanted - there, room.per_executor))
    going = []
    for executor in sorted(staying, key=lambda e: (e.running, -e.since, e.id)):
        if there - executor.processors >= wanted:
            there -= executor.processors
            going.append(executor.id)
    return Steps(
        len(staying) - len(going), *(((), tuple(going)) if graceful else (tuple(going), ()))
    )


def answer_to(
    wanted: int, executors: Sequence[Executor], room: Room, waited: float, patience: float
) -> Answer:
    """What is there now, ``waited`` seconds after it was first asked for, in a sentence."""
    there = have(executors)
    if room.most is not None and there >= room.most and wanted > room.most:
        reason = (
            f"{room.because} allows for {_all(room.most)} and {wanted} were wanted; raise it to "
            "get more"
        )
        return Answer(wanted, there, "short", reason)
    if there < wanted:
        lacking = steps_for(wanted, executors, room).total - sum(not e.leaving for e in executors)
        what = f"{_some(lacking)} of {_all(room.per_executor)} each"
        if waited < patience:
            return Answer(wanted, there, "waiting", f"{what} asked for, {_all(there)} there")
        reason = (
            f"{what} did not come within {patience:g} s: {_NO[room.manager]}; work goes on with "
            f"{_all(there)}, and they are still asked for"
        )
        return Answer(wanted, there, "short", reason)
    going = sum(e.leaving for e in executors) + len(steps_for(wanted, executors, room).end)
    if going:
        reason = f"{_some(going)} to go once idle, {_all(there)} there"
        return Answer(wanted, there, "waiting", reason)
    return Answer(wanted, there, "met", f"{_all(there)} there")


_NO: Mapping[Manager, str] = {
    "local": "this machine has no more",
    "local-cluster": "its workers have no cores or memory left",
    "standalone": "the workers have no cores or memory left, or spark.cores.max is reached",
    "yarn": "the queue has no room, or spark.executor.memory is more than a container may have",
    "kubernetes": "pods are pending for want of nodes or quota, or their image cannot be pulled",
}


def _all(processors: int) -> str:
    return f"{processors} processor{'s' * (processors != 1)}"


def _some(executors: int) -> str:
    return f"{executors} executor{'s' * (executors != 1)}"


def is_local(master: str) -> bool:
    """Whether there are no executors at all, but threads of the driver."""
    return master == "local" or master.startswith("local[")


def manager_of(master: str) -> Manager:
    """Who gives executors.

    >>> manager_of("local[4]"), manager_of("spark://a:7077"), manager_of("k8s://https://a")
    ('local', 'standalone', 'kubernetes')
    """
    if is_local(master):
        return "local"
    for start, manager in _MASTERS.items():
        if master.startswith(start):
            return manager
    raise ConfigError(
        f"engine.master = {master!r}: executors can be had from local[N], local-cluster[N,C,M], "
        "spark://, yarn and k8s:// only; use one of these, or turn scaling off"
    )


_MASTERS: Mapping[str, Manager] = {
    "local-cluster[": "local-cluster",
    "spark://": "standalone",
    "yarn": "yarn",
    "k8s://": "kubernetes",
}


READ = (
    "spark.cores.max",
    "spark.decommission.enabled",
    "spark.dynamicAllocation.enabled",
    "spark.executor.cores",
    "spark.task.cpus",
)
"""The settings of Spark that matter here."""


def room_of(master: str, settings: Mapping[str, str], machine_cores: int) -> Room:
    """What a session with this master and these settings of Spark may have, or a
    :class:`ConfigError` where nobody could tell how large an executor is.

    >>> room_of("spark://a:7077", {"spark.executor.cores": "4", "spark.cores.max": "10"}, 2).most
    8
    """
    manager, cpus = manager_of(master), _number(settings, "spark.task.cpus", 1)
    if manager == "local":
        cores = re.match(r"local\[\s*(\d+|\*)", master)
        count = 1 if cores is None else machine_cores if cores[1] == "*" else int(cores[1])
        return _fitting(Room(manager, count // cpus, count // cpus, master), count, cpus)
    if settings.get("spark.dynamicAllocation.enabled", "").lower() == "true":
        raise ConfigError(
            "spark.dynamicAllocation.enabled=true: Spark would add and remove executors by its own "
            "rules, against geoflux; set it to false, or turn scaling off"
        )
    workers = _LOCAL_CLUSTER.match(master)
    if manager == "standalone" and "spark.executor.cores" not in settings:
        raise ConfigError(
            f"spark.executor.cores is not set: on {master} an executor would take whatever its "
            "worker has; set it, so that executors can be counted"
        )
    cores_each = _number(settings, "spark.executor.cores", int(workers[2]) if workers else 1)
    each, limits = cores_each // cpus, {}
    if workers:
        limits[master] = int(workers[1]) * (int(workers[2]) // cores_each)
    if "spark.cores.max" in settings and manager in ("standalone", "local-cluster"):
        most = _number(settings, "spark.cores.max", 1)
        limits[f"spark.cores.max={most}"] = most // cores_each
    because = min(limits, key=lambda name: limits[name], default="")
    room = Room(manager, each, limits[because] * each if limits else None, because)
    return _fitting(room, cores_each, cpus)


def _fitting(room: Room, cores: int, cpus: int) -> Room:
    """The same, if any task fits into it at all."""
    if room.per_executor and room.most != 0:
        return room
    raise ConfigError(
        f"no task would ever run: spark.task.cpus={cpus}, {cores} cores an executor"
        f"{f', {room.because}' if room.because else ''}; lower what a task or an executor takes, "
        "or raise what there is"
    )


def _number(settings: Mapping[str, str], name: str, default: int) -> int:
    given = settings.get(name, str(default))
    if not given.isdigit() or int(given) < 1:
        raise ConfigError(f"{name}={given}: a whole number of at least 1 is expected; mend it")
    return int(given)
