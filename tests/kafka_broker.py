"""A real Kafka for tests: one broker in KRaft mode from its Maven artifacts, on ports of its own.

Jars are fetched once, by `mvn`, into the user's cache folder. Where they cannot be reached the
reason is told, and tests are skipped with it.
"""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyspark

BROKER = ("org.apache.kafka:kafka_2.13:4.3.1",)
CONNECTOR = (f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}",)
STAND_IN = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
)
"""Not what users get: the nearest that could be fetched where the same version could not."""
_OF_CONNECTOR = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
_RETRY_SECONDS = 86400.0
_START_SECONDS = 120.0


class Unreachable(Exception):
    """Artifacts that could not be fetched, and why."""


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "geoflux" / "kafka"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fetched(coordinates: Sequence[str]) -> Path:
    """The folder with the jars of some artifacts and of all that they need."""
    name = "+".join("-".join(text.split(":")[1:]) for text in coordinates)
    folder, failed = _cache() / name, _cache() / f"{name}.failed"
    with open(_cache() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        if failed.exists() and time.time() - failed.stat().st_mtime < _RETRY_SECONDS:
            raise Unreachable(failed.read_text())
        try:
            _fetch(coordinates, folder)
        except Unreachable as problem:
            failed.write_text(str(problem))
            raise
    return folder


def _fetch(coordinates: Sequence[str], folder: Path) -> None:
    if shutil.which("mvn") is None:
        raise Unreachable("there is no mvn to fetch Maven artifacts with")
    work = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    work.mkdir()
    (work / "pom.xml").write_text(_pom(coordinates))
    command = ["mvn", "-q", "-B", "-f", str(work / "pom.xml"), "dependency:copy-dependencies",
               f"-DoutputDirectory={work / 'jars'}", "-DincludeScope=runtime"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    if done.returncode == 0:
        (work / "jars").rename(folder)
    shutil.rmtree(work)
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if "ERROR" in line]
        told = lines[0].split("->")[0][:300] if lines else f"mvn ended with {done.returncode}"
        raise Unreachable(f"{', '.join(coordinates)} could not be fetched: {told}")


def _pom(coordinates: Sequence[str]) -> str:
    """Spark itself is there already, so of its artifacts nothing but those named is fetched."""
    out = []
    for text in coordinates:
        group, artifact, version = text.split(":")
        without = ""
        if group == "org.apache.spark" and len(coordinates) > 1:
            without = ("<exclusions><exclusion><groupId>org.apache.spark</groupId>"
                       "<artifactId>*</artifactId></exclusion></exclusions>")  # fmt: skip
        out.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>{without}</dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>geoflux</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{''.join(out)}</dependencies></project>"
    )


def connector_jars(coordinates: Sequence[str]) -> str:
    """Jars of the connector, as ``kafka.connector`` takes them."""
    names = sorted(fetched(coordinates).glob("*.jar"))
    return ",".join(str(name) for name in names if name.name.startswith(_OF_CONNECTOR))


def any_connector() -> str:
    """The connector of the Spark that runs; where it cannot be reached, the stand-in."""
    try:
        return connector_jars(CONNECTOR)
    except Unreachable:
        return connector_jars(STAND_IN)


class Broker:
    """One broker that is its own controller; it keeps its ports and data when it is killed."""

    def __init__(self, folder: Path) -> None:
        self._jars = fetched(BROKER)
        self._folder = folder
        folder.mkdir(parents=True)
        port, controller = _free_ports(2)
        self.servers = f"127.0.0.1:{port}"
        self._port = port
        self._settings = folder / "server.properties"
        self._settings.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            f"log.dirs={folder / 'data'}\n"
            "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\ngroup.initial.rebalance.delay.ms=0\n"
        )
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._java(
            "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings)
        ).wait()
        self._process: subprocess.Popen[bytes] | None = None

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", f"{self._jars}/*"]
        with open(self._folder / "broker.log", "ab") as log:
            return subprocess.Popen([*command, *arguments], stdout=log, stderr=log)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = self._java("kafka.Kafka", str(self._settings))
        limit = time.monotonic() + _START_SECONDS
        while time.monotonic() < limit and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"no broker: {(self._folder / 'broker.log').read_text()[-2000:]}")

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
