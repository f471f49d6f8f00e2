"""The figures of `geoflux bench drs`, after figures 6 to 10 of the paper, and its table II.

They are functions of plain values. The paper's own numbers are lost; its text says what they show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from rich.table import Table

from geoflux.bench.figure_groups import Bar, Row, draw_bars, draw_rows
from geoflux.bench.figures import Colour, Curve, Mark, Words, draw_curves

_SOJOURN = "total sojourn time, seconds"
_TIME = "seconds since the start"
_COLOURS: tuple[Colour, ...] = ("blue", "orange", "green", "purple")


@dataclass(frozen=True)
class Allocated:
    """A run with one allocation, as in ``4:7:1``: mean and standard error of the total sojourn
    time, and what was predicted; times in seconds."""

    allocation: str
    measured: float
    error: float
    predicted: float


@dataclass(frozen=True)
class Changing:
    """A run over time: mean sojourn times by when inputs came, and the changes of the allocation
    with what they led to. Times in seconds since its start."""

    name: str
    times: Sequence[float]
    sojourns: Sequence[float]
    changes: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True)
class Stepping:
    """What figure 9 has beside that: stretches (from, value) of inputs a second and of processors,
    the target, and when the run was over."""

    run: Changing
    rates: Sequence[tuple[float, float]]
    processors: Sequence[tuple[float, float]]
    longest: float
    shortest: float
    end: float


@dataclass(frozen=True)
class Bulk:
    """An allocation of figure 10: seconds that all tuples of an input spend, by the simulator and
    by both models."""

    allocation: str
    simulated: float
    models: Mapping[str, float] = field(default_factory=dict)


def allocations(folder: Path, app: str, runs: Sequence[Allocated], recommended: str) -> Path:
    """Figure 6, for one application."""
    words = Words(
        f"Allocations of as many processors: {app} (figure 6)", "processors by operator",
        _SOJOURN, "measured on Spark, with two standard errors; * is what the model recommends",
    )  # fmt: skip
    bars = [
        Bar(
            f"{run.allocation} *" if run.allocation == recommended else run.allocation,
            "recommended" if run.allocation == recommended else "others", run.measured, run.error,
            "blue" if run.allocation == recommended else "grey",
        )
        for run in sorted(runs, key=lambda run: _processors(run.allocation))
    ]  # fmt: skip
    return draw_bars(folder / f"drs-6-{app}.svg", words, bars)


def predicted(folder: Path, apps: Mapping[str, Sequence[Allocated]]) -> Path:
    """Figure 7: one mark per allocation that was predicted to keep up."""
    words = Words(
        "Predicted and measured (figure 7)", "predicted total sojourn time, seconds",
        "measured, seconds",
        "one mark per allocation; published: the same order, measured times above predicted ones",
    )  # fmt: skip
    kept = {
        app: [run for run in runs if isfinite(run.predicted)] for app, runs in apps.items()
    }  # fmt: skip
    curves = [
        Curve(app, [run.predicted for run in runs], [run.measured for run in runs],
              _COLOURS[place], style="marks")
        for place, (app, runs) in enumerate(kept.items())
    ]  # fmt: skip
    most = max(max(run.predicted, run.measured) for runs in kept.values() for run in runs)
    curves.append(Curve("as predicted", (0.0, most), (0.0, most), "grey", published=True))
    return draw_curves(folder / "drs-7-predicted.svg", words, curves)


def rearranged(folder: Path, app: str, runs: Sequence[Changing]) -> Path:
    """Figure 8: the same load from several allocations, one curve each."""
    words = Words(
        f"From three allocations to the best one: {app} (figure 8)", _TIME, _SOJOURN,
        "mean of inputs by when they came; vertical: the change, in the colour of its run",
    )  # fmt: skip
    curves, marks = [], []
    for place, run in enumerate(runs):
        colour = _COLOURS[place]
        curves.append(Curve(f"begins with {run.name}", run.times, run.sojourns, colour))
        marks += [Mark(at, told, colour) for at, told in run.changes]
    return draw_curves(folder / f"drs-8-{app}.svg", words, curves, marks=marks)


def stepped(folder: Path, seen: Stepping, name: str = "step") -> Path:
    """Figure 9: input rate, sojourn time and processors over the same time."""
    words = Words(
        "A load that rises and falls (figure 9)", _TIME, "",
        "vertical: changes, with the processors by operator from then on",
    )  # fmt: skip
    ends = (0.0, seen.end)
    rows = [
        Row("inputs a second", [Curve("inputs a second", *_steps(seen.rates, seen.end), "green",
                                      style="line")]),
        Row("sojourn, seconds", [
            Curve("mean total sojourn time", seen.run.times, seen.run.sojourns),
            Curve("T_max", ends, (seen.longest,) * 2, "orange", published=True),
            Curve("T_min", ends, (seen.shortest,) * 2, "grey", published=True),
        ]),
        Row("processors", [Curve("processors", *_steps(seen.processors, seen.end), "purple",
                                 style="line")], whole=True),
    ]  # fmt: skip
    marks = [Mark(at, told) for at, told in seen.run.changes]
    return draw_rows(folder / f"drs-9-{name}.svg", words, rows, marks)


def bulks(folder: Path, rates: Mapping[float, Sequence[Bulk]]) -> Path:
    """Figure 10: by inputs a second."""
    words = Words(
        "Bulk arrivals and variable services (figure 10)", "processors by operator",
        "seconds that the tuples of a frame spend",
        "published: M/M/k is too low, the more the higher the load, and prefers the wrong one",
    )  # fmt: skip
    bars = []
    for rate, found in rates.items():
        for one in found:
            group = f"{one.allocation}\n{rate:g} frames a second"
            bars.append(Bar(group, "simulated", one.simulated, colour="grey"))
            bars += [
                Bar(group, name, value, colour=_COLOURS[place])
                for place, (name, value) in enumerate(one.models.items())
            ]
    return draw_bars(folder / "drs-10-bulks.svg", words, bars)


def table_ii(figures: Mapping[str, float], processors: Sequence[int]) -> Table:
    """Milliseconds of processor time by the number of processors."""
    table = Table(title="Table II: milliseconds by processors", title_justify="left")
    table.add_column("")
    for k in processors:
        table.add_column(str(k), justify="right")
    for told, name in (("allocation", "allocate_ms_k"), ("measurement", "measure_ms_k")):
        table.add_row(told, *(f"{figures[f'{name}{k}']:.2f}" for k in processors))
    return table


def _processors(allocation: str) -> tuple[int, ...]:
    """For an order by numbers.

    >>> _processors("10:2:1") > _processors("9:3:1")
    True
    """
    return tuple(int(part) for part in allocation.split(":"))


def _steps(values: Sequence[tuple[float, float]], end: float) -> tuple[list[float], list[float]]:
    """Stretches of constant values as a line.

    >>> _steps([(0.0, 3.0), (10.0, 5.0)], 20.0)
    ([0.0, 10.0, 10.0, 20.0], [3.0, 3.0, 5.0, 5.0])
    """
    x, y = [], []
    for (start, value), (stop, _) in zip(values, [*values[1:], (end, 0.0)], strict=True):
        x += [start, stop]
        y += [value, value]
    return x, y
