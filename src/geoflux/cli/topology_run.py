"""``geoflux run`` and ``geoflux verify`` for applications."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from geoflux.cli.interrupts import Interrupts
from geoflux.cli.topology_display import TopologyDisplay, print_topology_summary
from geoflux.cli.topology_report import write_topology_report
from geoflux.config import OPERATOR, read_tables
from geoflux.state.keys import TOPOLOGY
from geoflux.state.store import Store
from geoflux.topology.settings import configs_of
from geoflux.topology_api import (
    TopologyVerification,
    load_topology,
    run_topology,
    verify_topology,
)


def describes_topology(path: Path | None) -> bool:
    """Whether a file has tables ``[[operator]]``."""
    return path is not None and OPERATOR in read_tables(path)


def holds_topology(directory: Path) -> bool:
    """Whether a directory is of an application."""
    return Store(str(directory)).exists(TOPOLOGY)


def run_file(
    path: Path, flags: Mapping[str, Any], out: Path, console: Console, as_json: bool
) -> None:
    """Run the application that a file describes, and show how it goes and what it came to."""
    topology, config = load_topology(path, flags)
    with TopologyDisplay(console, topology, out) as display:
        interrupts = Interrupts(display.say)

        def started(application: Any, draining: Any) -> None:
            interrupts.stop(application)
            display.watch(draining.waiting)

        summary = run_topology(
            topology, config, out, on_epoch=display.epoch, on_start=started,
            on_decision=display.scaled,
        )  # fmt: skip
    report = write_topology_report(topology, configs_of(topology, config), out, summary.operators)
    print_topology_summary(console, summary.operators, out, report)
    if interrupts.came:
        console.print(interrupts.go_on(), markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps(summary.as_dict()))


def verify_directory(directory: Path, as_json: bool) -> bool:
    """Check an application, operator by operator and stream by stream; whether all is right."""
    console = Console(stderr=as_json)
    with console.status("") as status:
        found = verify_topology(
            directory, progress=lambda name: status.update(f"recomputing {name}")
        )
    print_topology_verification(console, found)
    if as_json:
        print(json.dumps(found.as_dict()))
    return found.is_clean


def print_topology_verification(console: Console, found: TopologyVerification) -> None:
    """The verdict: a line per operator, and one per reader of streams."""
    results = _table("verification", ("operator", "rows", "results", "missing", "unexpected"))
    for name, one in found.operators.items():
        rows, given, missing, unexpected = _told(one)
        results.add_row(f"[bold]{name}", f"{rows:,}", f"{given:,}", _bad(missing), _bad(unexpected))
    console.print(results)
    streams = _table("streams", ("read by", "committed", "read", "waiting", "lost", "doubled",
                                 "unknown"))  # fmt: skip
    for name, stream in found.streams.items():
        good = (stream.committed, stream.read, stream.waiting)
        wrong = (stream.lost, stream.doubled, stream.unknown)
        streams.add_row(f"[bold]{name}", *(f"{n:,}" for n in good), *map(_bad, wrong))
    console.print(streams)
    console.print(
        "[green]every result is right, and every row came over once[/]"
        if found.is_clean
        else "[red]the application is wrong[/]"
    )


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    return table


def _told(found: Any) -> tuple[int, int, int, int]:
    """Rows, results, missing and unexpected ones, of either kind of operator."""
    if hasattr(found, "unexpected"):
        return found.rows, found.results, found.missing, found.unexpected
    wrong = found.duplicate + found.extra + found.wrong_windows
    return found.events, found.matches, found.missing, wrong


def _bad(number: int) -> str:
    return f"[red]{number:,}[/]" if number else "0"
