"""``geoflux mqtt``: positions from a broker into the folder that a run follows."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def mqtt(
    folder: Annotated[Path, typer.Argument(help="The folder that a run has as source.path.")],
    broker: Annotated[str, typer.Option(help="HOST or HOST:PORT.")] = "localhost",
    topic: Annotated[
        list[str] | None, typer.Option(help="Topic or pattern; may be repeated.")
    ] = None,
    column: Annotated[str, typer.Option(help="Column that takes a message's topic.")] = "",
    client: Annotated[
        str, typer.Option(help="Name of the session; two at once need two.")
    ] = "geoflux",
    user: Annotated[str, typer.Option(help="User at the broker.")] = "",
    password_file: Annotated[
        Path | None, typer.Option(help="File with the user's password.", exists=True)
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Speak TLS to the broker.")] = False,
) -> None:
    """Take messages of an MQTT broker, one JSON object each, into a folder of events. Each is on
    disk before the broker hears that it came; what comes meanwhile waits at the broker."""
    from geoflux.serve.mqtt import Bridge, Broker

    password = password_file.read_text().strip() if password_file is not None else ""
    found = Broker.named(
        broker, topics=tuple(topic or ("#",)), client=client, user=user, password=password, tls=tls
    )
    folder.mkdir(parents=True, exist_ok=True)
    bridge, over = Bridge(found, folder, column), threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    console = Console(stderr=True)
    with console.status(f"waiting for messages of {found.host}:{found.port}") as status:
        bridge.run(
            lambda: not over.is_set(),
            lambda taken: status.update(f"{taken:,} messages are in {folder}"),
        )
    console.print(f"{bridge.taken:,} messages were put into {folder}", highlight=False)
