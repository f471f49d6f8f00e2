"""Figures 6.14 to 6.22 of `geoflux bench guard`; the document's own curves are lost.

What its text says is in the notes, or a dashed line where it gives a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from geoflux.bench.figures import Box, Curve, Words, draw_boxes, draw_curves

_NUMBERS = {150: "6.14", 300: "6.15", 600: "6.16", 1200: "6.17"}
_UNGUARDED = {150: 0.82, 1200: 0.52}
"""Published: throughput without Guard, as a share of that without an attack."""
_GUARDED = {150: 0.95, 300: 0.90, 600: 0.95, 1200: 0.95}


def timeline(
    folder: Path, rate: int, calm: Sequence[float], extra: Sequence[float],
    guarded: Sequence[float], unguarded: Sequence[float],
) -> Path:  # fmt: skip
    """Figures 6.14 to 6.17: events a second by the minute, means of the seeds."""
    number = _NUMBERS[rate]
    minutes = list(range(1, len(calm) + 1))
    words = Words(
        f"An attack of {rate} queries a second (figure {number})", "minutes", "events a second",
        "22 simulated slots, what they can carry; the attack begins after minute 5",
    )  # fmt: skip
    curves = [
        Curve("no attack", minutes, calm, "grey"),
        Curve(f"no attack, {rate} more from normal users", minutes, extra, "green"),
        Curve("attack, Guard", minutes, guarded, "blue"),
        Curve("attack, no Guard", minutes, unguarded, "orange"),
    ]
    return draw_curves(folder / f"figure-{number.replace('.', '-')}.svg", words, curves)


def throughputs(
    folder: Path, rates: Sequence[int], extra: Sequence[float], guarded: Sequence[float],
    unguarded: Sequence[float],
) -> Path:  # fmt: skip
    """Figure 6.18: means of 30 minutes."""
    words = Words(
        "Throughput by additional activity (figure 6.18)", "additional queries a second",
        "events a second", "means of all minutes; published shares, of our run without an attack",
    )  # fmt: skip
    share = {name: _shares(known, rates, extra) for name, known in _PUBLISHED.items()}
    curves = [
        Curve("from normal users", rates, extra, "green"),
        Curve("attack, Guard", rates, guarded, "blue"),
        Curve("attack, no Guard", rates, unguarded, "orange"),
        *(Curve(f"published, {name}", x, y, "purple" if name == "Guard" else "grey", True)
          for name, (x, y) in share.items() if len(x) > 1),
    ]  # fmt: skip
    return draw_curves(folder / "figure-6-18.svg", words, curves, "x")


_PUBLISHED: Mapping[str, Mapping[int, float]] = {"Guard": _GUARDED, "no Guard": _UNGUARDED}


def _shares(
    known: Mapping[int, float], rates: Sequence[int], calm: Sequence[float]
) -> tuple[list[float], list[float]]:
    pairs = [(rate, known[rate] * c) for rate, c in zip(rates, calm, strict=True) if rate in known]
    return [float(x) for x, _ in pairs], [y for _, y in pairs]


def availability(
    folder: Path, rates: Sequence[int], guarded: Sequence[Sequence[float]],
    unguarded: Sequence[Sequence[float]],
) -> Path:  # fmt: skip
    """Figure 6.19: by the minute, of all seeds."""
    words = Words(
        "Availability by malicious activity (figure 6.19)", "malicious queries a second",
        "percent processed without delay",
        "boxes: quartiles; x: mean; published: about 90 on average with Guard",
    )  # fmt: skip
    boxes = []
    for rate, with_guard, without in zip(rates, guarded, unguarded, strict=True):
        boxes.append(Box(f"{rate}", "Guard", [100 * v for v in with_guard], "blue"))
        boxes.append(Box(f"{rate}", "no Guard", [100 * v for v in without], "orange"))
    return draw_boxes(folder / "figure-6-19.svg", words, boxes)


def times(
    folder: Path, number: str, title: str, axis: str, at: Sequence[int],
    detect: Sequence[float], block: Sequence[float],
) -> Path:  # fmt: skip
    """Figures 6.20 and 6.21: minutes until attackers are suspected and blocked."""
    words = Words(
        f"{title} (figure {number})", axis, "minutes after their first hotspot",
        "published: suspected after half a minute, blocked after about two at 600 a second",
    )  # fmt: skip
    ends = [at[0], at[-1]]
    curves = [
        Curve("suspected", at, detect, "green"), Curve("blocked", at, block, "blue"),
        Curve("published, suspected", ends, [0.5, 0.5], "grey", published=True),
        Curve("published, blocked", ends, [2.0, 2.0], "purple", published=True),
    ]  # fmt: skip
    name = f"figure-{number.replace('.', '-')}.svg"
    return draw_curves(folder / name, words, curves, "x")


def recovery(folder: Path, rates: Sequence[int], minutes: Sequence[float]) -> Path:
    """Figure 6.22."""
    words = Words(
        "Recovery by malicious activity (figure 6.22)", "malicious queries a second",
        "minutes from the lowest throughput",
        "until throughput is what it is without an attack; published: longer at higher activity",
    )  # fmt: skip
    curves = [Curve("with Guard", rates, minutes, "blue")]
    return draw_curves(folder / "figure-6-22.svg", words, curves, "x")
