"""What the parts of `geoflux bench swarm` have in common."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from geoflux.bench import swarm_scenarios as scenes
from geoflux.bench.emulated import Emulation, Seen
from geoflux.config import Config

COLOURS: Mapping[str, Any] = {
    "replicated": "grey", "uniform": "orange", "history": "purple", "published": "green",
    "swarm": "blue",
}  # fmt: skip


@dataclass
class Bench:
    """One run of the benchmark; figures are added to ``result`` by name."""

    console: Console
    sizes: scenes.Sizes
    folder: Path
    figures: Path
    result: dict[str, Any] = field(default_factory=dict)

    def emulated(self, name: str, config: Config) -> Emulation:
        """A run that has not begun; it replaces the one before."""
        self.console.print(f"[dim]{name}")
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        return Emulation(out, config)

    def run(self, name: str, config: Config, epochs: int) -> list[Seen]:
        """The epochs of a run."""
        return self.emulated(name, config).run(epochs)


def table_of(title: str, *columns: str) -> Table:
    """A table of figures."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table
