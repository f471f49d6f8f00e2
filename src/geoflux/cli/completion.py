"""What a shell may complete: directories of runs, parts of benchmarks, names of settings.

Where nothing is known, nothing is given, and the shell completes files as it always does.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path

from geoflux.config import Config
from geoflux.state.keys import RUN, TOPOLOGY

BALANCES = ("uniform", "history", "replicated", "swarm")


def runs(incomplete: str) -> list[str]:
    """Directories that begin with what was typed and hold a run or an application.

    >>> runs("/nowhere/at/all")
    []
    """
    typed = incomplete.rpartition("/")
    folder = Path(typed[0] + typed[1] or ".")
    try:
        found = sorted(p for p in folder.iterdir() if p.is_dir() and p.name.startswith(typed[2]))
    except OSError:
        return []
    held = [p for p in found if (p / RUN).exists() or (p / TOPOLOGY).exists()]
    return [f"{typed[0]}{typed[1]}{p.name}" for p in held]


def settings(incomplete: str) -> list[str]:
    """``section.name=`` of every setting.

    >>> settings("engine.sl")
    ['engine.slots=']
    """
    config = Config()
    names = (
        f"{section.name}.{setting.name}="
        for section in fields(config)
        for setting in fields(getattr(config, section.name))
    )
    return _beginning(names, incomplete)


def balances(incomplete: str) -> list[str]:
    """Who may look after the plan."""
    return _beginning(BALANCES, incomplete)


def parts_of(benchmark: str) -> Callable[[str], list[str]]:
    """Parts of a benchmark, after those that were typed already.

    >>> parts_of("flux")("sim,")
    ['sim,spark']
    """

    def complete(incomplete: str) -> list[str]:
        parts = importlib.import_module(f"geoflux.bench.{benchmark}").PARTS
        before, comma, last = incomplete.rpartition(",")
        there = before.split(",")
        return [f"{before}{comma}{p}" for p in _beginning(parts, last) if p not in there]

    return complete


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
