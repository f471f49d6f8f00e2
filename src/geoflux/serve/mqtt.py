"""Positions that come by MQTT, put where a run looks for files: on disk, then acknowledged.

What has come is appended together and synced once, then acknowledged message by message. The broker
keeps what was not acknowledged (a session that outlives the connection), so nothing is lost when
either side is killed; a message may come twice then, as MQTT has it at quality 1.
"""

from __future__ import annotations

import importlib.util
import json
import queue
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geoflux.errors import ConfigError, EnvironmentProblem, SourceError
from geoflux.serve.journal import append_durably

NAME = "mqtt.ndjson"
_MOST_AT_ONCE = 10_000
_WAIT_SECONDS = 0.2
_KEEPALIVE_SECONDS = 30


@dataclass(frozen=True)
class Broker:
    """Where messages come from; ``client`` is the name by which the broker knows the session."""

    host: str
    port: int = 1883
    topics: tuple[str, ...] = ("#",)
    client: str = "geoflux"
    user: str = ""
    password: str = field(default="", repr=False)
    tls: bool = False

    @classmethod
    def named(cls, address: str, **more: Any) -> Broker:
        """From ``HOST`` or ``HOST:PORT``.

        >>> Broker.named("localhost").port, Broker.named("broker:8883").port
        (1883, 8883)
        """
        host, colon, port = address.rpartition(":")
        if not colon:
            return cls(address, **more)
        if not port.isdigit() or not 0 < int(port) < 65536 or not host:
            raise ConfigError(f"the broker {address!r}: expected HOST or HOST:PORT")
        return cls(host.strip("[]"), int(port), **more)


@dataclass
class Bridge:
    """Takes messages of a broker into a folder; ``column`` is to hold a message's topic."""

    broker: Broker
    folder: Path
    column: str = ""
    taken: int = 0
    """Messages that are on disk."""
    _coming: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    _refused: str = ""

    def run(self, goes_on: Callable[[], bool], tell: Callable[[int], None]) -> None:
        """Take in what comes while ``goes_on`` says so; ``tell`` hears how many are on disk."""
        client = self._connected()
        client.loop_start()
        try:
            while goes_on():
                if self._refused:
                    where = f"{self.broker.host}:{self.broker.port}"
                    raise SourceError(f"{where} refuses this client: {self._refused}")
                if messages := self._waiting():
                    self._write(messages)
                    for message in messages:
                        client.ack(message.mid, message.qos)
                    self.taken += len(messages)
                    tell(self.taken)
        finally:
            client.disconnect()
            client.loop_stop()

    def _connected(self) -> Any:
        check_installed()
        from paho.mqtt import client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion

        broker = self.broker
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2, broker.client, clean_session=False, manual_ack=True
        )
        client.on_message = lambda _, __, message: self._coming.put(message)
        client.on_connect, client.on_subscribe = self._greeted, self._subscribed
        if broker.user:
            client.username_pw_set(broker.user, broker.password)
        if broker.tls:
            client.tls_set_context(ssl.create_default_context())
        try:
            client.connect(broker.host, broker.port, _KEEPALIVE_SECONDS)
        except OSError as error:
            raise SourceError(
                f"{broker.host}:{broker.port} cannot be reached: {error.strerror or error}; is an "
                "MQTT broker running there?"
            ) from None
        return client

    def _greeted(self, client: Any, _: Any, __: Any, reason: Any, ___: Any) -> None:
        """Also after every new connection."""
        if reason.is_failure:
            self._refused = str(reason)
            return
        try:
            client.subscribe([(topic, 1) for topic in self.broker.topics])
        except ValueError as error:  # raised in the thread that speaks to the broker
            self._refused = f"{', '.join(self.broker.topics)}: {error}"

    def _subscribed(self, _: Any, __: Any, ___: Any, reasons: Sequence[Any], ____: Any) -> None:
        if bad := [str(reason) for reason in reasons if reason.is_failure]:
            self._refused = f"{', '.join(self.broker.topics)}: {bad[0]}"

    def _waiting(self) -> list[Any]:
        try:
            found = [self._coming.get(timeout=_WAIT_SECONDS)]
        except queue.Empty:
            return []
        while len(found) < _MOST_AT_ONCE and not self._coming.empty():
            found.append(self._coming.get())
        return found

    def _write(self, messages: Sequence[Any]) -> None:
        lines = b"".join(line_of(m.topic, m.payload, self.column) for m in messages)
        if lines:
            append_durably(self.folder / NAME, lines)


def line_of(topic: str, payload: bytes, column: str = "") -> bytes:
    """A message as a line, with its topic in ``column`` if it is an object without it; what is none
    is kept as it is, for the run to quarantine. Empty ones, which only clear a topic, are none.

    >>> line_of("cars/7", b'{"lon": 4.9,\\n"lat": 45.8}', "car")
    b'{"lon": 4.9, "lat": 45.8, "car": "cars/7"}\\n'
    >>> line_of("cars/7", b"lost"), line_of("cars/7", b"")
    (b'lost\\n', b'')
    """
    if not payload.strip():
        return b""
    if column:
        try:
            record = json.loads(payload)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            return json.dumps({**record, column: record.get(column, topic)}).encode() + b"\n"
    return payload.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def check_installed() -> None:
    """Say what to install, where the package is missing."""
    if importlib.util.find_spec("paho") is None:
        raise EnvironmentProblem(
            'MQTT needs the package paho-mqtt; install it with pip install "geoflux[mqtt]"'
        )
