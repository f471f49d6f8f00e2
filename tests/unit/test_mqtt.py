"""Messages of a real broker, with a bridge that is killed while they come."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geoflux.errors import ConfigError, SourceError
from geoflux.serve.mqtt import NAME, Bridge, Broker

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
needs_broker = pytest.mark.skipif(
    MOSQUITTO is None, reason="there is no broker to test with; install mosquitto"
)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(what: Callable[[], bool], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.05)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    assert MOSQUITTO is not None
    number, settings = free_port(), tmp_path / "mosquitto.conf"
    settings.write_text(
        f"listener {number} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
    )
    process = subprocess.Popen([MOSQUITTO, "-c", str(settings)], stderr=subprocess.DEVNULL)
    try:

        def answers() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", number), 1):
                return True
            return False

        wait_for(answers)
        yield number
    finally:
        process.terminate()
        process.wait(10)


@contextlib.contextmanager
def bridging(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = "from geoflux.cli.main import main; main()"
    options = ["mqtt", str(folder), "--broker", f"127.0.0.1:{port}", "--topic", "cars/#"]
    options += ["--column", "topic"]
    process = subprocess.Popen([sys.executable, "-c", command, *options], stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ids(folder: Path) -> list[int]:
    path = folder / NAME
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["id"] for line in lines if line.startswith(b"{")]


@needs_broker
def test_no_message_is_lost_when_the_bridge_is_killed(tmp_path: Path, port: int) -> None:
    from paho.mqtt import client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    folder, count = tmp_path / "events", 3000
    cars = mqtt.Client(CallbackAPIVersion.VERSION2, "cars")
    cars.connect("127.0.0.1", port)
    cars.loop_start()
    try:
        with bridging(folder, port):

            def heard() -> bool:
                cars.publish("cars/0", json.dumps({"id": -1}), qos=1).wait_for_publish(5)
                return bool(ids(folder))

            wait_for(heard, 60)
            for number in range(count):
                payload = json.dumps({"id": number, "lon": 4.8, "lat": 45.7}, indent=1)
                cars.publish(f"cars/{number % 7}", payload, qos=1)
            cars.publish("cars/1", b"lost", qos=1)
            wait_for(lambda: len(ids(folder)) > 200)
        cars.publish("cars/8", json.dumps({"id": count}), qos=1).wait_for_publish(30)
        with bridging(folder, port) as second:
            wait_for(lambda: set(ids(folder)) >= set(range(count + 1)), 60)
            second.terminate()
            told = second.communicate(timeout=20)[1].decode()
            assert second.returncode == 0
            assert "messages were put into" in told.replace("\n", " ")
        text = (folder / NAME).read_text()
        assert "\nlost\n" in text  # for the run to quarantine
        assert '"topic": "cars/8"' in text
        doubled = len(ids(folder)) - len(set(ids(folder)))
        assert doubled < count / 2, "only what was not acknowledged comes again"
    finally:
        cars.loop_stop()


@needs_broker
def test_a_topic_that_there_cannot_be_is_told(tmp_path: Path, port: int) -> None:
    broker = Broker("127.0.0.1", port, ("cars/#/all",))
    with pytest.raises(SourceError, match="refuses this client: cars/#/all"):
        Bridge(broker, tmp_path).run(lambda: True, lambda _: None)


def test_mistakes_are_told_in_a_sentence(tmp_path: Path) -> None:
    for wrong in (":1883", "host:x", "host:70000"):
        with pytest.raises(ConfigError, match="expected HOST or HOST:PORT"):
            Broker.named(wrong)
    nobody = Broker.named(f"127.0.0.1:{free_port()}")
    with pytest.raises(SourceError, match="cannot be reached"):
        Bridge(nobody, tmp_path).run(lambda: True, lambda _: None)
    assert "secret" not in repr(Broker("h", password="secret"))
