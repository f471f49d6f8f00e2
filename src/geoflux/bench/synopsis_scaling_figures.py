"""Figures 7 and 8 of Synopsis from the epochs of a run: the rate that comes, slots and sketchlets,
what waits, and what memory is in use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.bench.figure_frame import HEX, Words, begin, begin_rows, short, write
from geoflux.engine.epochs import Manifest

_OUT, _IN = HEX["orange"], HEX["green"]


def draw_scaling(epochs: Sequence[Manifest], wanted: npt.NDArray[np.int64], folder: Path) -> Path:
    """Figure 8: what comes, in how many sketchlets and slots it is taken in, and what waits."""
    words = Words(
        "Slots and sketchlets follow the rate", "epoch", "",
        "Synopsis, figure 8; service times are emulated. Lines: scale out (orange), in (green)",
    )  # fmt: skip
    figure, (rate, count, waiting) = begin_rows(720, 520, words, 3)
    at = np.arange(len(epochs))
    rate.plot(np.arange(len(wanted)), wanted, color=HEX["grey"], lw=1.2, ls="--", label="came")
    rate.plot(at, [m["processed"] for m in epochs], color=HEX["blue"], lw=1.4, label="taken in")
    rate.set_ylabel("rows of an epoch")
    rate.legend(loc="upper right", fontsize=9)
    count.step(at, [sum(s["partitions"] for s in m["slots"]) for m in epochs], where="post",
               color=HEX["purple"], lw=1.8, label="sketchlets")  # fmt: skip
    count.step(at, [len(m["slots"]) for m in epochs], where="post", color=HEX["blue"], lw=1.8,
               label="slots")  # fmt: skip
    count.legend(loc="upper right", fontsize=9)
    count.set_ylabel("number")
    waiting.fill_between(at, [m["carried_out"] for m in epochs], color=HEX["blue"], alpha=0.35)
    waiting.set_ylabel("rows that wait")
    for axes in (rate, count, waiting):
        axes.set_ylim(0)
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        _mark(axes, epochs)
    return write(figure, folder / "synopsis-8-scaling.svg")


def draw_slot(epochs: Sequence[Manifest], slot: int, folder: Path) -> Path:
    """Figure 7a: what comes to one slot, what it does, and what waits there."""
    words = Words(
        f"Slot {slot}: giving regions away keeps the backlog in bounds", "epoch", "",
        "Synopsis, figure 7a",
    )  # fmt: skip
    figure, (rate, waiting) = begin_rows(720, 380, words, 2)
    at = np.arange(len(epochs))
    mine = [next(s for s in m["slots"] if s["slot"] == slot) for m in epochs]
    rate.plot(at, [s["arrivals"] for s in mine], color=HEX["grey"], lw=1, label="input")
    rate.plot(at, [s["processed"] for s in mine], color=HEX["blue"], lw=1.5,
              label="throughput")  # fmt: skip
    rate.legend(loc="upper right", fontsize=9)
    rate.set_ylabel("rows of an epoch")
    waiting.fill_between(at, [s["carried_rows"] for s in mine], color=HEX["blue"], alpha=0.35)
    waiting.set_ylabel("rows that wait")
    for axes in (rate, waiting):
        axes.set_ylim(0)
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        _mark(axes, epochs)
    return write(figure, folder / "synopsis-7a-backlog.svg")


def draw_memory(epochs: Sequence[Manifest], memory: float, folder: Path) -> Path:
    """Figure 7b: memory in use, by slot, as a share of what each has."""
    words = Words(
        "Memory in use by slot", "epoch", "share of its memory",
        "Synopsis, figure 7b; scale out above 0.75, held for several observations",
    )  # fmt: skip
    figure, axes = begin(720, 300, words)
    at = range(len(epochs))
    colours = list(HEX.values())
    for slot in range(max(len(m["slots"]) for m in epochs)):
        shown = [(t, m["slots"][slot]["state_bytes"] / memory)
                 for t, m in zip(at, epochs, strict=True) if slot < len(m["slots"])]  # fmt: skip
        axes.plot(*zip(*shown, strict=True), color=colours[slot % len(colours)], lw=1.6,
                  label=f"slot {slot}")  # fmt: skip
    axes.axhline(0.75, color=HEX["grey"], lw=1, ls="--")
    axes.legend(loc="lower right", fontsize=9)
    axes.set_ylim(0)
    _mark(axes, epochs)
    return write(figure, folder / "synopsis-7b-memory.svg")


def _mark(axes: Any, epochs: Sequence[Manifest]) -> None:
    """A line for each operation."""
    for at, manifest in enumerate(epochs):
        if manifest["decision"]["changes"]:
            is_out = manifest["decision"]["reason"].startswith("scale out")
            axes.axvline(at, color=_OUT if is_out else _IN, lw=0.8, alpha=0.7)
