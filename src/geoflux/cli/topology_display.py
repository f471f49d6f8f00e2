"""What a person sees while an application runs: a line per operator; quiet when piped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from geoflux.chronicle.decision_words import changes_of, reason_of, told_changes
from geoflux.chronicle.wording import duration, short
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.summary import latencies
from geoflux.scale.decisions import ScaleDecision, shown
from geoflux.scale.executors import Answer
from geoflux.settings import seconds
from geoflux.topology import Node, Topology

_WINDOW_SECONDS = 5.0
_LAST_DECISIONS = 4
_BARS = " ▁▂▃▄▅▆▇█"


@dataclass
class Seen:
    """What is remembered of an operator: its last epochs, and its totals."""

    recent: list[Manifest] = field(default_factory=list)
    epochs: int = 0
    rows: int = 0
    results: int = 0

    def hear(self, manifest: Manifest) -> None:
        """An epoch was committed."""
        self.epochs = manifest["epoch"] + 1
        self.rows += manifest["processed"]
        self.results += results_of(manifest)
        since = manifest["committed"] - _WINDOW_SECONDS
        self.recent = [*(m for m in self.recent if m["committed"] > since), manifest]

    def rate(self, now: float) -> float:
        """Rows a second, lately."""
        rows = sum(m["processed"] for m in self.recent if m["committed"] > now - _WINDOW_SECONDS)
        return rows / _WINDOW_SECONDS

    def latency(self) -> float | None:
        """The median, lately: since a row was there to be read."""
        return latencies(self.recent)[0]

    def slots(self) -> list[float]:
        """Busy seconds of every slot in the last epoch that had any."""
        busy = [[s["busy_seconds"] for s in m["slots"]] for m in self.recent if m["processed"]]
        return busy[-1] if busy else []


def results_of(manifest: Manifest) -> int:
    """What an epoch came to: results, or matches and windows."""
    if "results" in manifest:
        return int(manifest["results"])
    return int(manifest["matches"] + manifest["aggregates"])


class TopologyDisplay:
    """A live view of an application on a terminal; a line every few seconds elsewhere."""

    def __init__(self, console: Console, topology: Topology, config: Config, out: Path) -> None:
        self._console = console
        self._topology = topology
        self._config = config
        self._out = out
        self._seen = {node.name: Seen() for node in topology.nodes}
        self._decisions: list[tuple[float, str, Manifest]] = []
        self._waiting: Callable[[str], int] = lambda name: 0
        self._scaling = ""
        self._note = "starting Spark"
        self._started = self._said = time.time()
        self._lock = threading.Lock()
        self._live: Live | None = None

    def __enter__(self) -> TopologyDisplay:
        if self._console.is_terminal:
            self._live = Live(
                console=self._console, refresh_per_second=4, get_renderable=self._view
            )
            self._live.__enter__()
        else:
            told = f"geoflux: starting Spark; results go to {self._out}"
            self._console.print(told, markup=False)
        return self

    def __exit__(self, *problem: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*problem)

    def watch(self, waiting: Callable[[str], int]) -> None:
        """From now on rows may wait: who knows how many."""
        self._waiting = waiting
        self._note = ""

    def say(self, note: str) -> None:
        """Tell the person something."""
        self._note = note
        if self._live is None:
            self._console.print(f"geoflux: {note}", markup=False, soft_wrap=True)

    def epoch(self, name: str, manifest: Manifest) -> None:
        """An operator committed an epoch; from any thread."""
        with self._lock:
            self._seen[name].hear(manifest)
            if changes_of(manifest):
                self._decisions.append((time.time() - self._started, name, manifest))
                self._decisions = self._decisions[-_LAST_DECISIONS:]
            if self._live is None and time.time() - self._said > 5:
                self._said = time.time()
                self._console.print(self._line(), markup=False, soft_wrap=True)

    def scaled(self, decision: ScaleDecision, answer: Answer | None) -> None:
        """There was a look at how many slots are needed; what is done about it is told."""
        with self._lock:
            self._scaling = told_scaling(decision.to_dict(), answer)
        if decision.action != "none" and self._live is None:
            self._console.print(f"geoflux: {self._scaling}", markup=False, soft_wrap=True)

    def _line(self) -> str:
        """Where an application is, where there is no terminal."""
        now = time.time()
        parts = [
            f"{name} {short(seen.rate(now))} rows/s, {short(self._waiting(name))} waiting"
            for name, seen in self._seen.items()
        ]
        return f"{now - self._started:.0f} s: {'; '.join(parts)}"

    def _view(self) -> Group:
        elapsed, length = time.time() - self._started, self._config.run.duration
        simulated = length and self._config.source.kind == "simulate"
        of = f" of {seconds(length):.0f}" if simulated else ""
        with self._lock:
            parts: list[Any] = [
                Text.assemble(("geoflux", "bold cyan"), f"   {elapsed:.0f}{of} s"),
                self._operators(),
            ]
            if self._decisions:
                parts.append(self._told())
            if self._scaling:
                parts.append(Text(self._scaling, style="dim", overflow="ellipsis", no_wrap=True))
        if self._note:
            parts.append(Text(self._note, style="dim"))
        return Group(*parts)

    def _operators(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("operator")
        table.add_column("reads", style="dim")
        for name in ("rows/s", "rows", "results", "waiting", "latency"):
            table.add_column(name, justify="right")
        table.add_column("slots")
        now = time.time()
        for node in self._topology.nodes:
            seen = self._seen[node.name]
            waiting, latency = self._waiting(node.name), seen.latency()
            table.add_row(
                f"[bold]{node.name}", ", ".join(reads_of(self._topology, node)),
                short(seen.rate(now)), f"{seen.rows:,}", f"{seen.results:,}",
                f"[yellow]{short(waiting)}" if waiting else "0",
                "" if latency is None else duration(latency), bars(seen.slots()),
            )  # fmt: skip
        return table

    def _told(self) -> Table:
        """The last changes of plans, newest first."""
        table = Table.grid(padding=(0, 2), expand=True)
        for style, ratio in (("dim", None), ("bold", None), ("", None), ("dim", 1)):
            table.add_column(style=style, no_wrap=True, overflow="ellipsis", ratio=ratio)
        for when, name, manifest in reversed(self._decisions):
            done, why = told_changes(changes_of(manifest)), reason_of(manifest)
            table.add_row(f"at {when:.0f} s", name, done, Text(why))
        return table


def told_scaling(decision: Mapping[str, Any], answer: Answer | None = None) -> str:
    """A decision about slots in a line: what was measured and predicted, what is done and why.

    >>> told_scaling({"before": {"a": 1}, "after": {"a": 2}, "action": "scale_out",
    ...     "carried_out": True, "measured": 3.0, "predicted_before": 2.5, "reason": "too slow"})
    'slots 1 to 2; an input takes 3 s (2.5 s predicted); too slow'
    """
    before, after = shown(decision["before"]), shown(decision["after"])
    slots = f"slots {before}"
    if decision["action"] != "none":
        slots += f" to {after}" if decision["carried_out"] else f", {after} recommended"
    times = [decision["measured"], decision["predicted_before"]]
    measured, predicted = ("unknown" if t is None else duration(t) for t in times)
    line = f"{slots}; an input takes {measured} ({predicted} predicted); {decision['reason']}"
    short_of = answer is not None and answer.state == "short"
    return f"{line}; {answer.reason}" if answer is not None and short_of else line


def reads_of(topology: Topology, node: Node) -> list[str]:
    """What an operator reads, as short as it is clear."""
    streams = topology.inputs(node.name)
    if not streams:
        return ["outside"]
    own = {s.operator: len(topology.node(s.operator).work.streams) for s in streams}
    return [str(s) if own[s.operator] > 1 else s.operator for s in streams]


def bars(busy: list[float]) -> str:
    """How many slots there are, and how busy each is beside the busiest."""
    if not busy:
        return ""
    top = max(busy) or 1.0
    return f"{len(busy)} " + "".join(_BARS[round(b / top * (len(_BARS) - 1))] for b in busy)


def print_topology_summary(
    console: Console, operators: Mapping[str, Mapping[str, Any]], out: Path, report: str
) -> None:
    """The table at the end of an application's run: a line per operator."""
    table = Table(title="what happened", title_justify="left")
    table.add_column("operator")
    for heading in ("epochs", "rows", "quarantined", "results", "rows/s", "slots"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, told in operators.items():
        results = told.get("results", told.get("matches", 0) + told.get("aggregates", 0))
        rate = told["processed"] / told["seconds"] if told["seconds"] else 0.0
        counts = (told["epochs"], told["received"], told["quarantined"], results)
        table.add_row(
            f"[bold]{name}", *(f"{number:,}" for number in counts), short(rate),
            str(told["slots"]),
        )  # fmt: skip
    console.print(table)
    for name, told in operators.items():
        for code, number in told["reasons"].items():
            console.print(f"  [yellow]{number:,}[/] quarantined by {name}: {code}")
    console.print(f"results in [bold]{out}[/], report in [bold]{report}[/]")
