"""Real executors (`local-cluster`): they come, go and are killed while an encrypted operator runs,
and its results stay exact."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import operators_by_hand as by_hand
from geoflux import verify_operator
from geoflux.spark.epoch import tried
from geoflux.spark.negotiator import negotiator_for
from geoflux.state.keys import new_key
from geoflux.state.seal import MARK

SCRIPT = str(Path(__file__).parent / "killed_executors.py")
ROWS = by_hand.rows(1500)


def spark_home(folder: Path) -> dict[str, str]:
    """Workers of a `local-cluster` write into Spark's own directory; give them another."""
    home = folder / "spark"
    home.mkdir()
    for name in ("bin", "jars"):
        (home / name).symlink_to(Path(pyspark.__path__[0]) / name)
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # five JVMs that live for seconds
    return {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder / "disks"),
        "JAVA_TOOL_OPTIONS": quick,
    }


@pytest.mark.long
def test_executors_come_go_and_die_while_an_encrypted_operator_stays_exact(tmp_path: Path) -> None:
    by_hand.write(tmp_path, ROWS)
    new_key(tmp_path / "run.key")
    done = subprocess.run(
        [sys.executable, SCRIPT, str(tmp_path)], env=os.environ | spark_home(tmp_path),
        capture_output=True, text=True, timeout=380,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout.splitlines()[-1])

    out = tmp_path / "out"
    assert by_hand.found(out) == pytest.approx(by_hand.expected(ROWS), rel=1e-12)
    assert verify_operator(by_hand.OPERATOR, out).is_clean

    begin, fewer, more, replaced = (seen[k] for k in ("begin", "fewer", "more", "replaced"))
    assert len(begin) == 2
    assert len(fewer) == 1
    assert fewer.items() < begin.items(), "one went, the other is the same process"
    assert fewer.items() < more.items(), "one came"
    assert not more.keys() & (begin.keys() - fewer.keys()), "a new one"
    assert seen["killed"] in more
    assert fewer.items() < replaced.items(), "the killed one is replaced"
    assert seen["killed"] not in replaced
    assert seen["epoch 1"]["spark"] == sorted(fewer)
    assert seen["epoch 2"]["spark"] == sorted(more)
    states = [(answer["state"], answer["have"]) for answer in seen["answers"]]
    assert states == [("waiting", 1), ("met", 1), ("waiting", 1), ("short", 2), ("met", 2)]
    assert "local-cluster[2,1,1024] allows for 2 processors" in seen["answers"][3]["reason"]

    assert seen["has_secret"]
    assert seen["shuffled"] > 0
    assert seen["readable"] == 0
    assert seen["encrypting"] > 0
    assert seen["logs"] >= 2 * 4, "of every executor that there was"
    assert seen["leaking"] == seen["leaking_logs"] == 0
    kept = [p for part in ("state", "epochs", "plans") for p in (out / part).rglob("*.*")]
    assert kept
    assert all(path.read_bytes().startswith(MARK) for path in kept)


class _Failed(Py4JJavaError):  # type: ignore[misc]
    """One as Spark tells it, without a JVM to ask."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def test_a_job_that_spark_gave_up_for_a_lost_executor_is_done_again_and_no_other() -> None:
    gave_up = "Job aborted: Spark cannot rollback the ResultStage 1 to re-process the input data"
    failures = [_Failed(gave_up), _Failed(gave_up), None]

    def job() -> str:
        failure = failures.pop(0)
        if failure is not None:
            raise failure
        return "done"

    assert tried(job) == "done"
    failures[:] = [_Failed(gave_up)] * 9
    with pytest.raises(_Failed):
        tried(job)
    assert len(failures) == 5, "four attempts"
    failures[:] = [_Failed("a task failed"), None]
    with pytest.raises(_Failed, match="a task failed"):
        tried(job)
    assert len(failures) == 1


def test_a_local_session_says_what_it_has(spark: SparkSession) -> None:
    negotiator = negotiator_for(spark)
    assert negotiator.have() == 2
    assert negotiator.want(2).state == "met"
    told = "local[2] has 2 processors and 3 were wanted; start it with local[3], or use a cluster"
    assert negotiator.want(3).reason == told
