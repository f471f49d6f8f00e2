"""The figures of `geoflux bench flux`, after figures 3 and 6 to 10 of the paper.

The paper's own curves are lost; where its text gives a value, it is a dashed line or in the note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from geoflux.bench.figures import Colour, Curve, Words, draw_curves
from geoflux.sim import Run

_SECONDS, _RATE = "seconds of simulated time", "tuples a second"
_UNLOADED = 7.1e5
_LOADED = 0.43
"""Published: the rate of 32 sites, and what a loaded one keeps of it."""


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
        Curve("unloaded", _ends(kilobytes), [unloaded] * 2, "grey"),
        *_published(kilobytes, unloaded, "published, unloaded"),
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
        *_published((1, len(calm.throughput)), calm.rate(1), "published, unloaded"),
        *_published((1, len(calm.throughput)), calm.rate(1), "published, loaded site", _LOADED),
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
        *_published(counts, flux[0], "published, static", _LOADED),
    ]  # fmt: skip
    return draw_curves(folder / "flux-7-degradation.svg", words, curves)


def skewed(
    folder: Path, minima: Sequence[float], found: Mapping[str, Skewed], limit: float
) -> list[Path]:
    """Figure 8; ``limit`` is what the stage can do where the most popular partition has a site
    without load to itself."""
    at = [minimum * 1000 for minimum in minima]
    paths = []
    for name, one in found.items():
        words = Words(
            f"80/20 input, {name}: how long to collect at least (figure 8)",
            "milliseconds of the minimum, where it is fixed", _RATE,
            "published: small minima do worse than static, large ones better",
        )  # fmt: skip
        curves = [
            Curve("fixed minimum", at, one.fixed),
            Curve("tunes itself", _ends(at), [one.tuned] * 2, "green"),
            Curve("static", _ends(at), [one.static] * 2, "orange"),
            Curve("most popular partition alone", _ends(at), [limit] * 2, "grey", published=True),
        ]
        paths.append(draw_curves(folder / f"flux-8-{name}.svg", words, curves, "x"))
    return paths


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
    rates = [_throughput(*one) for one in runs]
    rates += _published((1, len(calm.throughput)), calm.rate(1), "published, unloaded")
    return [
        draw_curves(folder / "flux-9-memory.svg", rate, rates),
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


def _published(at: Sequence[float], unloaded: float, label: str, share: float = 1.0) -> list[Curve]:
    """A published rate, where it was measured on as many sites as ours: not in a quick run."""
    if abs(unloaded / _UNLOADED - 1) > 0.1:
        return []
    return [Curve(label, _ends(at), [share * _UNLOADED] * 2, "purple", published=True)]


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
