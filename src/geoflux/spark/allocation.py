"""Spark's executor allocation API, and what its status says of executors.

Everything of the JVM that the negotiator needs is in this file. The methods are Spark's own for
dynamic allocation, public in the bytecode of Spark 4.3. The total is always set before anybody
goes, and nobody's going changes it: Spark takes the first executor that is ended without a total
for a wish to have none, and would replace none that dies later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession

from geoflux.scale.executors import READ, Executor


class Allocation(Protocol):
    """What a cluster manager can be asked."""

    graceful: bool
    """Whether executors can be told to leave once they have finished their tasks."""

    def executors(self) -> tuple[Executor, ...]:
        """Those that are registered now."""

    def request(self, total: int) -> bool:
        """Have so many executors in all from now on; false: the manager did not take it."""

    def end_idle(self, ids: Sequence[str]) -> None:
        """End those of them that run no task; the others stay as they are."""

    def retire(self, ids: Sequence[str]) -> None:
        """Give them no more tasks, and let them leave once they have finished."""


class SparkAllocation:
    """The executors of one session."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        self._context: Any = context._jsc.sc()
        conf = spark.sparkContext.getConf()
        self.master: str = context.master
        given = {name: conf.get(name) for name in READ}
        self.settings = {name: value for name, value in given.items() if value is not None}
        self.graceful = self.settings.get("spark.decommission.enabled", "").lower() == "true"

    def executors(self) -> tuple[Executor, ...]:
        """Those that are registered now, without the driver."""
        backend, found = self._context.schedulerBackend(), []
        told = self._context.statusStore().executorList(True)
        for place in range(told.size()):
            one = told.apply(place)
            if one.id() != "driver":
                active = backend.isExecutorActive(one.id())
                since = one.addTime().getTime() / 1000.0
                found.append(
                    Executor(one.id(), one.maxTasks(), one.activeTasks(), since, not active)
                )
        return tuple(found)

    def request(self, total: int) -> bool:
        """Have so many executors in all from now on."""
        no_hosts = self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        return bool(self._context.requestTotalExecutors(total, 0, no_hosts))

    def end_idle(self, ids: Sequence[str]) -> None:
        """End those that run no task; Spark looks once more, while it gives out none."""
        wanted = self._jvm.java.util.ArrayList()
        for name in ids:
            wanted.add(name)
        seq = self._jvm.PythonUtils.toSeq(wanted)
        change_total, count_as_failures, although_busy = False, False, False
        self._context.schedulerBackend().killExecutors(
            seq, change_total, count_as_failures, although_busy
        )

    def retire(self, ids: Sequence[str]) -> None:
        """Decommission them."""
        nowhere = self._jvm.scala.Option.empty()
        info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "not needed any more", nowhere
        )
        change_total, asked_by_itself = False, False
        for name in ids:
            self._context.schedulerBackend().decommissionExecutor(
                name, info, change_total, asked_by_itself
            )
