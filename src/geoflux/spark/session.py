"""The Spark session that geoflux runs on, and the little of the JVM that it touches."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession

from geoflux.config import Config
from geoflux.errors import EnvironmentProblem
from geoflux.scale.executors import is_local
from geoflux.sections import EngineConfig
from geoflux.spark.kafka import connector_settings, unresolved
from geoflux.spark.secrecy import SETTINGS, check_session, explained, secret_for

OLDEST_JAVA = 17
_INSTALL = (
    "install a Java runtime of version 17 or newer "
    "(on Debian: apt-get install openjdk-17-jre-headless)"
)
CLUSTER = {"spark.decommission.enabled": "true"}
"""With executors: those that are not needed any more finish their tasks before they leave."""
_LOGGING = Path(__file__).with_name("log4j2.properties")


def java_version() -> int | None:
    """The major version of the Java that Spark will use, or ``None`` where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java:
        return None
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)', told.stderr + told.stdout)
    return int(found[1]) if found else None


def check_java() -> int:
    """The Java version, or an :class:`EnvironmentProblem` that says what to install."""
    version = java_version()
    if version is None:
        raise EnvironmentProblem(f"no Java was found, and Spark needs one; {_INSTALL}")
    if version < OLDEST_JAVA:
        raise EnvironmentProblem(f"Java {version} is too old for Spark; {_INSTALL}")
    return version


def build_session(config: EngineConfig, extra: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the settings that a micro-batch of Python stages wants.

    Measured on two cores: sockets in the file system and no adaptive execution take a third off an
    epoch's overhead; workers are reused, so that compiled kernels and opened state stay warm.
    """
    check_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    cores = os.cpu_count() or 2
    master = config.master or f"local[{cores}]"
    settings = {
        **(_only_this_machine() if master.startswith("local") else {}),
        **({} if is_local(master) else CLUSTER),
        "spark.master": master,
        "spark.app.name": "geoflux",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": config.memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "geoflux.spark.daemon",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.pollingDelay": "100ms",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "100",
        **(extra or {}),
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with secret_for(settings):
            spark = builder.getOrCreate()
    except Py4JJavaError as error:
        raise explained(error, master) from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _only_this_machine() -> dict[str, str]:
    """Nothing listens beyond this machine unless a cluster is asked for."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def warm_workers(spark: SparkSession) -> None:
    """Have the Python workers started and the first plan compiled before any clock runs."""
    tasks = default_parallelism(spark)
    spark.range(0, tasks, 1, tasks).mapInArrow(_pass_on, "id long").collect()


def _pass_on(rows: Iterator[Any]) -> Iterator[Any]:
    yield from rows


def default_parallelism(spark: SparkSession) -> int:
    """How many tasks run at once."""
    return int(spark.sparkContext.defaultParallelism)


def _end_daemons(spark: SparkSession, of: str = "") -> None:
    """End Python workers of a session: those of one module, or all. Spark would close their
    sockets, and some would print a stack trace about it on the user's terminal."""
    jvm: Any = getattr(spark.sparkContext._gateway, "proc", None)
    with contextlib.suppress(psutil.Error, AttributeError, ProcessLookupError, PermissionError):
        for child in psutil.Process(jvm.pid).children():
            told = child.cmdline()
            if any(part.endswith("spark.daemon") for part in told) and told[-1].endswith(of):
                os.killpg(child.pid, signal.SIGKILL)  # a daemon leads a group of its own


def end_lookup(spark: SparkSession) -> None:
    """End the worker that looked for data sources, once one is registered: it is not needed again,
    and after a minute of idleness it would be hung up on."""
    _end_daemons(spark, "lookup_data_sources")


def stop_session(spark: SparkSession) -> None:
    """Stop the session and its JVM, also where the JVM is gone already; the next session of this
    process starts a JVM of its own, with its own memory."""
    gateway: Any = spark.sparkContext._gateway
    _end_daemons(spark)
    with contextlib.suppress(Exception):  # a JVM that is gone cannot be stopped again
        spark.stop()
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    SparkContext._gateway = None
    SparkContext._jvm = None


@contextlib.contextmanager
def session_for(
    config: Config, events: DataFrame | None, spark: SparkSession | None,
    extra: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:  # fmt: skip
    """The caller's session, that of the stream, or one of our own, with its workers started and
    with ``extra`` settings of Spark."""
    given = spark or (events.sparkSession if events is not None else None)
    if given is not None:
        if config.security.encrypt:
            check_session(given)
        yield given
        return
    secret = SETTINGS if config.security.encrypt else {}
    connector = connector_settings(config)
    try:
        own = build_session(config.engine, {**secret, **connector, **(extra or {})})
    except PySparkRuntimeError as error:
        if not connector or "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise unresolved(config) from error
    try:
        warm_workers(own)
        yield own
    finally:
        stop_session(own)
