"""What a person sees while an application runs: a line per operator; quiet when piped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from geoflux.chronicle.scaling_words import told_scaling
from geoflux.chronicle.wording import short
from geoflux.cli.application_view import Line, application_line, application_view
from geoflux.cli.live import LiveView
from geoflux.cli.reach import Reach
from geoflux.cli.run_view import Beside
from geoflux.cli.watched import Watched
from geoflux.engine.epochs import Manifest
from geoflux.scale.decisions import ScaleDecision
from geoflux.scale.executors import Answer
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import store_of
from geoflux.topology import Node, Topology

_LINE_SECONDS = 5.0


class TopologyDisplay:
    """A live view of an application on a terminal; a line every few seconds elsewhere."""

    def __init__(self, console: Console, topology: Topology, out: Path) -> None:
        self._console = console
        self._topology = topology
        self._out = out
        self._seen = {node.name: Watched() for node in topology.nodes}
        self._waiting: Callable[[str], int] = lambda name: 0
        self._reach: Reach | None = None
        self._scaling = ""
        self._note = ""
        self._entered = False
        self._started = self._said = time.time()
        self._lock = threading.Lock()
        self._live: LiveView | None = None

    def __enter__(self) -> TopologyDisplay:
        self._entered = True
        self._tell(f"geoflux: starting Spark; results go to {self._out}")
        return self

    def __exit__(self, kind: Any, *problem: Any) -> None:
        if self._live is not None:
            self._live.stop(keep=kind is not None)

    def watch(self, waiting: Callable[[str], int]) -> None:
        """From now on rows may wait: who knows how many. What earlier starts of the same run did
        counts, too."""
        with self._lock:
            for name in self._seen:
                log = EpochLog(store_of(self._out / name))
                self._seen[name] = Watched.of(log.manifests())
            outer = next(node for node in self._topology.nodes if node.is_outer)
            self._reach = Reach.of(self._out / outer.name)
            self._waiting = waiting
        # While Spark starts there is no view: others write on the terminal, too.
        if self._entered and self._console.is_terminal and not self._console.quiet:
            self._live = LiveView(self._console, self._view)
            self._live.start()

    def say(self, note: str) -> None:
        """Tell the person something."""
        self._note = note
        if self._live is None:
            self._tell(f"geoflux: {note}")

    def epoch(self, name: str, manifest: Manifest) -> None:
        """An operator committed an epoch; from any thread."""
        with self._lock:
            self._seen[name].hear(manifest)
            if self._live is None and time.time() - self._said > _LINE_SECONDS:
                self._said = time.time()
                self._tell(application_line(self._lines(), self._beside()))

    def scaled(self, decision: ScaleDecision, answer: Answer | None) -> None:
        """There was a look at how many slots are needed; what is done about it is told."""
        with self._lock:
            self._scaling = told_scaling(decision.to_dict(), answer)
        if decision.action != "none" and self._live is None:
            self._tell(f"geoflux: {self._scaling}")

    def _tell(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _lines(self) -> list[Line]:
        return [
            Line(
                node.name, reads_of(self._topology, node), self._seen[node.name],
                self._waiting(node.name),
            )
            for node in self._topology.nodes
        ]  # fmt: skip

    def _beside(self) -> Beside:
        now, reach = time.time(), self._reach or Reach()
        return Beside(now, now - self._started, total=reach.total(), note=self._note)

    def _view(self, width: int) -> Group:
        with self._lock:
            return application_view(self._lines(), self._beside(), self._scaling, width)


def reads_of(topology: Topology, node: Node) -> list[str]:
    """What an operator reads, as short as it is clear."""
    streams = topology.inputs(node.name)
    if not streams:
        return ["outside"]
    own = {s.operator: len(topology.node(s.operator).work.streams) for s in streams}
    return [str(s) if own[s.operator] > 1 else s.operator for s in streams]


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
