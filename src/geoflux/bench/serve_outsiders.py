"""What an outsider gets: every attempt against a server, the answers in a table.

An attempt fails where the answer is a refusal (4xx), or the connection is closed, and nothing was
changed.
"""

from __future__ import annotations

import contextlib
import json
import socket
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from geoflux.bench.serve_attempts import attempts, bearing, request
from geoflux.bench.serve_world import WORLD, World

_MORE_THAN_ALLOWED = 9_000_000


@dataclass(frozen=True)
class Outcome:
    """What an attempt got: the status (0: the connection was closed), and the sentence."""

    status: int
    detail: str

    @property
    def is_refusal(self) -> bool:
        """Whether it led to nothing."""
        return self.status == 0 or 400 <= self.status < 500


def tried(at: World, console: Console) -> dict[str, int]:
    """Try everything against a server; the table of what each got, and how many succeeded."""
    tokens = at.tokens(["alice", "mallory"])
    alice = bearing(tokens["alice"])
    secret = {"id": "secret", "shape": WORLD}
    placed = sent(at.port, request("POST", "/v1/subscriptions", alice, secret))
    assert placed.status == 201, placed
    before = _files(at.folder)
    table = Table(title="what an outsider tried, and what each got", title_justify="left")
    for column in ("tried", "got", ""):
        table.add_column(column, overflow="fold")
    found = []
    for attempt in attempts(tokens["mallory"], _MORE_THAN_ALLOWED):
        outcome = sent(at.port, attempt.sent)
        found.append(outcome)
        got = str(outcome.status or "closed")
        shown = got if outcome.is_refusal else f"[red]{got}[/]"
        table.add_row(escape(attempt.name), shown, escape(outcome.detail[:110]))
    console.print(table)
    kept = sent(at.port, request("GET", "/v1/subscriptions/secret", alice)).status == 200
    changed = [name for name, size in _files(at.folder).items() if before.get(name) != size]
    succeeded = sum(not outcome.is_refusal for outcome in found)
    return {
        "outsider_tried": len(found),
        "outsider_succeeded": succeeded + (not kept) + len(changed),
    }


def _files(folder: Path) -> dict[str, int]:
    """What is there that a request could change."""
    names = [*folder.glob("control/*"), *folder.glob("events/**/*"), *folder.glob("out/serve/*")]
    return {str(path): path.stat().st_size for path in names if path.is_file()}


def sent(port: int, data: bytes) -> Outcome:
    """Send bytes and read the beginning of what comes back."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        with contextlib.suppress(OSError):  # closed in the middle of what was sent
            connection.sendall(data)
        with contextlib.suppress(OSError):  # what came before counts
            while len(got) < 1 << 16 and (more := connection.recv(1 << 16)):
                got += more
    head, _, body = got.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head.startswith(b"HTTP/1.1 ") else 0
    try:
        return Outcome(status, str(json.loads(body).get("detail", "")))
    except (ValueError, AttributeError):
        return Outcome(status, body.decode("utf-8", "replace").strip().partition("\n")[0])
