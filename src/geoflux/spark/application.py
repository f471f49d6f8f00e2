"""Several streaming queries in one session: each in a thread and a scheduling pool of its own.

Pools share the cores fairly: an operator with a long epoch does not keep the others waiting. When
one fails, the others are stopped between two of their epochs, and the failure is told with the
name of the operator it comes from.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from geoflux.errors import GeofluxError
from geoflux.spark.stream import EpochStream, Pace

_PATH = "PYTHONPATH"
_LOOK_SECONDS = 0.2


def settings(folders: Sequence[str]) -> dict[str, str]:
    """Settings of a session in which operators share the cores, and find modules in ``folders``."""
    found = {"spark.executorEnv." + _PATH: os.pathsep.join(folders)} if folders else {}
    return {"spark.scheduler.mode": "FAIR", **found}


def let_import(spark: SparkSession, folders: Sequence[str]) -> None:
    """Have workers of a session that is there already find modules in these folders."""
    environment = spark.sparkContext.environment
    known = [folder for folder in environment.get(_PATH, "").split(os.pathsep) if folder]
    if not set(folders) <= set(known):
        environment[_PATH] = os.pathsep.join(dict.fromkeys([*known, *folders]))


@dataclass(frozen=True)
class Member:
    """One operator of an application."""

    name: str
    stream: EpochStream
    pace: Pace


class Application:
    """Runs its members until all are over, one fails, or somebody stops them."""

    def __init__(self, spark: SparkSession, members: Sequence[Member]) -> None:
        self._spark = spark
        self._members = members
        self._problems: list[tuple[str, BaseException]] = []
        self._changed = threading.Event()
        self._gate = threading.Event()
        self.is_stopped = False

    def stop(self) -> None:
        """Ask every member to end after the epoch that is under way; from any thread."""
        self.is_stopped = True
        for member in self._members:
            member.stream.stop()
        self._changed.set()

    def run(self, look: Callable[[frozenset[str]], None]) -> None:
        """Block until all members have ended; ``look`` is called now and then with the names of
        those whose streams are over, and may end others by what they read."""
        threads = [
            InheritableThread(target=self._work, args=(member,), name=member.name, daemon=True)
            for member in self._members
        ]
        for member, thread in zip(self._members, threads, strict=True):
            member.stream.gate = self._gate
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                self._changed.wait(_LOOK_SECONDS)
                self._changed.clear()
                if all(member.stream.started.is_set() for member in self._members):
                    self._gate.set()
                if self._problems:
                    self.stop()
                elif not self.is_stopped:
                    look(frozenset(m.name for m in self._members if m.stream.is_over))
        except Exception:
            self.stop()
            for thread in threads:  # an interruption does not wait for the epochs under way
                thread.join()
            raise
        if self._problems:
            name, problem = self._problems[0]
            raise told(name, problem) from problem

    def _work(self, member: Member) -> None:
        try:
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", member.name)
            member.stream.run(member.pace)
        except BaseException as error:  # told by the thread that waits for this one
            self._problems.append((member.name, error))
        finally:
            self._changed.set()


def told(name: str, problem: BaseException) -> BaseException:
    """A failure with the name of the operator in which it happened.

    >>> told("speeds", GeofluxError("it broke"))
    GeofluxError("operator 'speeds': it broke")
    """
    if not isinstance(problem, GeofluxError):
        problem.add_note(f"in the operator {name!r}")
        return problem
    named = problem.__class__.__new__(problem.__class__, *problem.args)
    named.__dict__.update(problem.__dict__)
    named.args = (f"operator {name!r}: {problem}", *problem.args[1:])
    return named
