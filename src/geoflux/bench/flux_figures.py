"""The figures of `geoflux bench flux`, after figures 3 and 6 to 10 of the paper.

The paper's own curves are lost; where its text gives a value, it is said in the note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from geoflux.bench.figures import Colour, Curve, Words, draw_curves
from geoflux.sim import Run

_SECONDS, _RATE = "seconds of simulated time", "tuples a second"


@dataclass(frozen=True)
class Skewed:
    """Throughput with skewed input."""

    static: float
    tuned: float
    fixed: tuple[float, ...]
    """By the minimum of the collection phase."""


def rotating(
    folder: Path, kilobytes: Sequence[int], flux: Sequence[float], exchange: Sequence[float],
    unloaded: float,
) -> Path:  # fmt: skip
    """Figure 3."""
    words = Words(
        "Load that goes from site to site (figure 3)", "kilobytes of buffer per producer", _RATE,
        "published: about half of the unloaded rate without a buffer, close to it with one",
    )  # fmt: skip
    curves = [
        Curve("Flux: one buffer", kilobytes, flux),
        Curve("Exchange: the same space in the connections", kilobytes, exchange, "orange"),
        Curve("unloaded", _ends(kilobytes), [unloaded] * 2, "grey", published=True),
    ]
    return draw_curves(folder / "flux-3-buffer.svg", words, curves)


def over_time(folder: Path, calm: Run, static: Run, flux: Run) -> Path:
    """Figure 6."""
    words = Words(
        "A load on one site (figure 6)", _SECONDS, _RATE,
        "published: 7.1e5 unloaded; the buffers give about 4 s of slack before it is felt",
    )  # fmt: skip
    curves = [
        _throughput("unloaded", calm, "grey"), _throughput("Flux", flux, "blue"),
        _throughput("static", static, "orange"),
    ]  # fmt: skip
    return draw_curves(folder / "flux-6-load.svg", words, curves)


def degradation(
    folder: Path, counts: Sequence[int], static: Sequence[float], flux: Sequence[float]
) -> Path:
    """Figure 7."""
    words = Words(
        "More and more sites loaded (figure 7)", "loaded sites", _RATE,
        "published: linear with Flux; static falls with the first one and stays there",
    )  # fmt: skip
    curves = [
        Curve("Flux", counts, flux), Curve("static", counts, static, "orange"),
        Curve("all that the sites can do", _ends(counts), _ends(flux), "grey", published=True),
    ]  # fmt: skip
    return draw_curves(folder / "flux-7-degradation.svg", words, curves)


def skewed(
    folder: Path, minima: Sequence[float], found: Mapping[str, Skewed], limit: float
) -> Path:
    """Figure 8; ``limit`` is what a site can do that has only the most popular partition."""
    words = Words(
        "80/20 input: how long to collect at least (figure 8)",
        "milliseconds of the minimum, where it is fixed", _RATE,
        "published: small minima do worse than static, large ones better",
    )  # fmt: skip
    at = [minimum * 1000 for minimum in minima]
    colours: dict[str, Colour] = {"unloaded": "blue", "loaded": "orange"}
    curves = []
    for name, one in found.items():
        colour = colours[name]
        curves += [
            Curve(f"{name}, fixed minimum", at, one.fixed, colour),
            Curve(f"{name}, static", _ends(at), [one.static] * 2, colour, published=True),
        ]
    for name, one in found.items():
        colour = "green" if name == "unloaded" else "purple"
        curves.append(Curve(f"{name}, tunes itself", _ends(at), [one.tuned] * 2, colour))
    label = "the most popular partition has a site to itself"
    curves.append(Curve(label, _ends(at), [limit] * 2, "grey", published=True))
    return draw_curves(folder / "flux-8-collection.svg", words, curves, "x")


def memory(folder: Path, calm: Run, static: Run, flux: Run) -> list[Path]:
    """Figures 9 and 10."""
    rate = Words(
        "Memory halved on one site: throughput (figure 9)", _SECONDS, _RATE,
        "published: stalled while 256 MB are written, then back to the unloaded rate with Flux",
    )  # fmt: skip
    late = Words(
        "Memory halved on one site: latency (figure 10)", _SECONDS, "microseconds",
        "mean of a second; published: back to that of memory with Flux",
    )  # fmt: skip
    runs: tuple[tuple[str, Run, Colour], ...] = (
        ("enough memory", calm, "grey"), ("Flux", flux, "blue"), ("static", static, "orange"),
    )  # fmt: skip
    return [
        draw_curves(folder / "flux-9-memory.svg", rate, [_throughput(*one) for one in runs]),
        draw_curves(folder / "flux-10-latency.svg", late, [_latency(*one) for one in runs], "y"),
    ]


def memory_degradation(
    folder: Path, counts: Sequence[int], runs: Mapping[str, Sequence[Run]], since: int
) -> list[Path]:
    """Section 6.2, second experiment, which the paper has no figure of."""
    colours: dict[str, Colour] = {"flux": "blue", "static": "orange"}
    rate = Words(
        "More and more sites short of memory: throughput (6.2)", "sites short of memory", _RATE,
        "published: almost linear with Flux; static falls with the first one and stays there",
    )  # fmt: skip
    late = Words(
        "More and more sites short of memory: latency (6.2)", "sites short of memory",
        "microseconds", "published: that of memory, until the memory of all sites is used up",
    )  # fmt: skip
    rates = [
        Curve(name, counts, [run.rate(since) for run in many], colours[name])
        for name, many in runs.items()
    ]
    means = {name: [run.mean_latency(since) for run in many] for name, many in runs.items()}
    latencies = [
        Curve(name, *_known(counts, values), colours[name]) for name, values in means.items()
    ]
    return [
        draw_curves(folder / "flux-6.2-throughput.svg", rate, rates),
        draw_curves(folder / "flux-6.2-latency.svg", late, latencies, "y"),
    ]


def _throughput(label: str, run: Run, colour: Colour) -> Curve:
    return Curve(label, list(range(1, len(run.throughput) + 1)), run.throughput.tolist(), colour)


def _latency(label: str, run: Run, colour: Colour) -> Curve:
    return Curve(label, *_known(range(1, len(run.latency) + 1), run.latency), colour)


def _known(
    at: Sequence[float], seconds: Sequence[float | None]
) -> tuple[list[float], list[float]]:  # fmt: skip
    """Where there is a latency, and how many microseconds it is."""
    pairs = [(x, late * 1e6) for x, late in zip(at, seconds, strict=True) if late is not None]
    return [x for x, _ in pairs], [y for _, y in pairs]


def _ends(values: Sequence[float]) -> list[float]:
    return [values[0], values[-1]]
