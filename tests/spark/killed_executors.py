"""A run of an operator on a `local-cluster` whose executors come and go, and one of which is killed.

Usage: killed_executors.py FOLDER [plain]

Encrypted unless `plain`. Between epochs executors are wanted or not; they leave and come while the
next epochs run, and an epoch ends only once they have. Prints what was seen, as one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil
from pyspark.sql import DataFrame, SparkSession

import operators_by_hand as by_hand
from geoflux import Config, run_operator
from geoflux.engine.keyed_task import Emulated
from geoflux.spark.allocation import SparkAllocation
from geoflux.spark.negotiator import Negotiator, negotiator_for, settled

MASTER = "local-cluster[2,1,1024]"
SLOTS, ROWS, EPOCH_ROWS = 4, by_hand.rows(1500), 300
SLOW = Emulated(dict.fromkeys(range(SLOTS), 5e-3))
LONGEST = 90.0
MOMENT = 15.0
BEGUN = time.monotonic()


def config(folder: Path, encrypted: bool) -> Config:
    plain = by_hand.config(folder, policy="static", budget="").as_dict()
    plain["engine"] |= {"master": MASTER, "slots": SLOTS, "epoch_events": EPOCH_ROWS}
    if encrypted:
        plain["security"] = {"encrypt": True, "key_file": str(folder / "run.key")}
    return Config.from_dict(plain)


def executor_processes() -> dict[str, int]:
    """Ids of executors with the processes that they are, below this one."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:  # it has ended meanwhile
            continue
        if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
            found[words[words.index("--executor-id") + 1]] = process.pid
    return found


class Play:
    """What happens after which epoch, and what is seen then."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {"answers": []}
        self._acts = [self.begin, self.fewer, self.more, self.after_the_kill]
        self._killer: threading.Thread | None = None

    def __call__(self, results: DataFrame, epoch: int) -> None:
        if epoch < len(self._acts):
            spark = results.sparkSession
            self._acts[epoch](spark, negotiator_for(spark))
            self.seen[f"epoch {epoch}"] = {
                "at": round(time.monotonic() - BEGUN, 1),
                "spark": sorted(e.id for e in SparkAllocation(spark).executors()),
                "processes": executor_processes(),
            }

    def begin(self, spark: SparkSession, negotiator: Negotiator) -> None:
        self.wait(lambda: negotiator.have() == 2)
        self.seen["begin"] = executor_processes()
        self.seen["secret"] = spark.sparkContext.getConf().get("spark.authenticate.secret")
        self.seen["answers"].append(negotiator.want(1).to_dict())

    def fewer(self, spark: SparkSession, negotiator: Negotiator) -> None:
        self.seen["answers"].append(settled(negotiator, 1, LONGEST).to_dict())
        self.wait(lambda: len(executor_processes()) == 1)
        self.seen["fewer"] = executor_processes()
        self.seen["answers"].append(negotiator.want(5).to_dict())

    def more(self, spark: SparkSession, negotiator: Negotiator) -> None:
        self.seen["answers"].append(settled(negotiator, 5, LONGEST).to_dict())
        self.seen["more"] = executor_processes()
        self._killer = threading.Thread(target=self._kill, args=(spark,))
        self._killer.start()

    def after_the_kill(self, spark: SparkSession, negotiator: Negotiator) -> None:
        assert self._killer is not None
        self._killer.join(LONGEST)
        self.seen["answers"].append(settled(negotiator, 2, LONGEST).to_dict())
        self.wait(lambda: negotiator.have() == len(executor_processes()) == 2)
        self.seen["replaced"] = executor_processes()

    def _kill(self, spark: SparkSession) -> None:
        """End the executor that came last, hard, while it works for a slot: what it has routed in
        this epoch is lost with it. On a machine where that moment is not seen, at any."""
        status, allocation = spark.sparkContext.statusTracker(), SparkAllocation(spark)
        victim = max(executor_processes(), key=int)

        def works_for_a_slot() -> bool:
            stages = [status.getStageInfo(stage) for stage in status.getActiveStageIds()]
            if not any(s and s.numTasks == SLOTS and s.numActiveTasks for s in stages):
                return False
            return any(e.id == victim and e.running for e in allocation.executors())

        until = time.monotonic() + MOMENT
        while not works_for_a_slot() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(executor_processes()[victim], signal.SIGKILL)
        self.seen["killed"] = victim

    @staticmethod
    def wait(done: Callable[[], bool]) -> None:
        end = time.monotonic() + LONGEST
        while not done():
            if time.monotonic() > end:
                raise TimeoutError("nothing happened")
            time.sleep(0.1)


class Watch(threading.Thread):
    """Looks for rows in what Spark has on its disks, and at the command lines of its processes."""

    def __init__(self, disks: Path) -> None:
        super().__init__(daemon=True)
        self.disks, self.shuffled, self.readable = disks, 0, 0
        self.commands: set[str] = set()
        self._values = [struct.pack("<d", row["speed"]) for row in ROWS]
        self._seen: set[tuple[str, int]] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            for where, _, names in os.walk(self.disks):
                for name in names:
                    self._look(os.path.join(where, name))
            for process in psutil.Process().children(recursive=True):
                try:
                    self.commands.add(" ".join(process.cmdline()))
                except psutil.Error:  # it has ended meanwhile
                    continue

    def _look(self, path: str) -> None:
        try:
            if (path, os.path.getsize(path)) in self._seen:
                return
            data = Path(path).read_bytes()
        except OSError:  # Spark has deleted it meanwhile
            return
        self._seen.add((path, len(data)))
        self.shuffled += len(data) if path.endswith(".data") else 0
        self.readable += sum(value in data for value in self._values)

    def end(self) -> None:
        self._ended.set()
        self.join()


if __name__ == "__main__":
    folder, encrypted = Path(sys.argv[1]), "plain" not in sys.argv
    watch, play = Watch(Path(os.environ["SPARK_LOCAL_DIRS"])), Play()
    watch.start()
    run_operator(
        by_hand.OPERATOR, config(folder, encrypted), folder / "out", on_results=play, emulated=SLOW
    )
    watch.end()
    secret = play.seen.pop("secret")
    told = {
        **play.seen,
        "has_secret": bool(secret),
        "shuffled": watch.shuffled,
        "readable": watch.readable,
        "commands": len(watch.commands),
        "encrypting": sum("spark.network.crypto.enabled=true" in c for c in watch.commands),
        "leaking": sum(bool(secret) and secret in command for command in watch.commands),
    }
    logs = [p.read_text() for p in Path(os.environ["SPARK_HOME"]).glob("work/*/*/std*")]
    told["logs"] = len(logs)
    told["leaking_logs"] = sum(bool(secret) and secret in text for text in logs)
    print(json.dumps(told))
