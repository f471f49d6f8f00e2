"""How benchmarks show their figures: a table, with the bar of each figure that has one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from geoflux.errors import ConfigError

Bars = Mapping[str, tuple[str, float] | tuple[str, float, float]]
"""By figure: ``(">=", least)``, ``("<=", most)`` or ``("in", least, most)``."""


def check_parts(asked: Collection[str], known: Collection[str]) -> None:
    """Say it where a part of a benchmark is asked for that it does not have.

    >>> check_parts(["simm"], ("sim", "spark"))
    Traceback (most recent call last):
    geoflux.errors.ConfigError: no part simm: expected sim, spark
    """
    unknown = [part for part in asked if part not in known]
    if unknown:
        raise ConfigError(f"no part {', '.join(unknown)}: expected {', '.join(known)}")


def print_result(console: Console, title: str, result: Mapping[str, Any], bars: Bars) -> None:
    """One row per figure; a dictionary of seconds is one row of its parts."""
    table = Table(title=title, title_justify="left")
    for column in ("figure", "measured", "bar", ""):
        table.add_column(column, justify="right" if column == "measured" else "left")
    for name, value in result.items():
        if isinstance(value, dict):
            unit, size = ("s", 1.0) if max(value.values(), default=0) >= 10 else ("ms", 1000.0)
            table.add_row(name, ", ".join(f"{k} {v * size:.0f} {unit}" for k, v in value.items()))
            continue
        told = met = ""
        if name in bars:
            sign, *limits = bars[name]
            told = f"{limits[0]:g} to {limits[-1]:g}" if sign == "in" else f"{sign} {limits[0]:g}"
            met = "met" if is_met(value, bars[name]) else "[red]missed[/]"
        table.add_row(name, _shown(value), told, met)
    console.print(table)


def is_met(value: float | None, bar: tuple[str, float] | tuple[str, float, float]) -> bool:
    """Whether a figure is where it should be; what never happened is not.

    >>> is_met(0.4, ("in", 0.36, 0.5)), is_met(0.4, (">=", 0.5)), is_met(True, (">=", 1))
    (True, False, True)
    """
    sign, least, most = bar[0], bar[1], bar[-1]
    return value is not None and bool(
        (sign == "<=" or value >= least) and (sign == ">=" or value <= most)
    )


def _shown(value: Any) -> str:
    if isinstance(value, bool | str):
        return str(value)
    if value is None:
        return "never"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    small = isinstance(value, float) and abs(value) < 1000
    return f"{value:,.3g}" if small else f"{value:,.0f}"
