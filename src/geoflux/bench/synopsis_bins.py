"""How well bins stand for the values in them, and what each prefix holds: figures 4 and 9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt

from geoflux.bench.figure_frame import HEX, MUTED, STYLE, Words, begin, begin_rows, short, write
from geoflux.bench.table import Bars
from geoflux.sketch.accuracy import HALF_PERCENT, bin_errors, profile, values_within_half_percent
from geoflux.sketch.forest import Forest
from geoflux.spatial.geohash import codes
from geoflux.workload.weather import FEATURES, Weather

BARS: Bars = {"values_within_half_percent": (">=", 0.80)}
_LETTER = 5


def measure_bins(forest: Forest, seen: Weather, figures: Path) -> dict[str, Any]:
    """How well the bins of a feature stand for its values: the share of values in bins whose error
    is at most half a percent of the feature's range, by feature and over all. Trees that are not
    steady yet, whose values are kept as they are, get bins as well."""
    forest = forest.quantised()
    tree = np.searchsorted(forest.trees, codes(seen.lon, seen.lat, forest.schema.tree_bits))
    order = np.argsort(tree, kind="stable")
    first = np.searchsorted(tree[order], np.arange(len(forest.trees) + 1))
    shares = {}
    for f, name in enumerate(FEATURES):
        span = float(np.ptp(seen.values[:, f])) or 1.0
        good = total = 0.0
        for place in range(len(forest.trees)):
            mine = seen.values[order[first[place] : first[place + 1]], f]
            edges = forest.edges.of(place, f)
            if len(mine) and edges.size > 1:
                good += values_within_half_percent(mine, edges, span) * len(mine)
                total += len(mine)
        shares[name] = good / total if total else float("nan")
    _draw_bins(forest, seen, tree, figures)
    mean = float(np.nanmean(list(shares.values())))
    records, leaves = by_prefix(forest)
    _draw_prefixes(records, leaves, figures)
    together = np.corrcoef(np.log(records), np.log(leaves))[0, 1] if len(records) > 2 else None
    return {
        "values_within_half_percent": mean, "max_bins": forest.schema.max_bins,
        **{f"within_{name}": share for name, share in shares.items()},
        "prefixes": len(records), "leaves_follow_records": together,
    }  # fmt: skip


def by_prefix(forest: Forest) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Observations and leaves of every tree that has some: figure 9's two numbers of a prefix."""
    leaves = forest.leaves()
    shift = forest.schema.region_bits - forest.schema.tree_bits
    tree = np.searchsorted(forest.trees, leaves.region >> shift)
    counts = np.bincount(tree, minlength=len(forest.trees)).astype(float)
    seen = counts > 0
    return forest.rows[seen].astype(float), counts[seen]


def _draw_bins(forest: Forest, seen: Weather, tree: Any, figures: Path) -> None:
    place = int(np.bincount(tree, minlength=len(forest.trees)).argmax())
    mine = seen.values[tree == place, 0]
    edges = forest.edges.of(place, 0)
    shown = profile(forest.densities, place, 0, edges, mine)
    inner = shown.edges[1:-1]
    note = f"{len(edges) - 1} bins of one tree: lines under the curve are their ends"
    errors, _ = bin_errors(mine, edges, float(np.ptp(seen.values[:, 0])) or 1.0)
    with matplotlib.rc_context(STYLE):
        words = Words("Bins of equal mass, and their errors", "air temperature (K)", "", note)
        figure, (above, below) = begin_rows(640, 420, words, 2)
        above.plot(shown.grid, shown.pdf, color=HEX["blue"], lw=1.8)
        above.vlines(inner, 0, np.interp(inner, shown.grid, shown.pdf), color=MUTED, lw=0.8)
        above.set_ylim(0)
        above.set_ylabel("density")
        widths = np.diff(shown.edges)
        below.bar(shown.edges[:-1], errors * 100, widths, align="edge", color=HEX["orange"],
                  edgecolor="white", lw=0.4)  # fmt: skip
        below.axhline(HALF_PERCENT * 100, color=MUTED, lw=1, ls="--")
        below.set_ylabel("NRMSE (%)")
        below.grid(axis="y")
        write(figure, figures / "synopsis-4-bins.svg")


def _draw_prefixes(records: Any, leaves: Any, figures: Path) -> None:
    with matplotlib.rc_context(STYLE):
        words = Words("What each prefix holds", "observations of a prefix", "leaves",
                      "one mark for each geohash prefix of two letters")  # fmt: skip
        figure, axes = begin(640, 360, words)
        axes.scatter(records, leaves, s=9, color=HEX["blue"], alpha=0.45, lw=0)
        axes.grid(axis="y")
        axes.set_xlim(0)
        axes.set_ylim(0)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: short(value))
        write(figure, figures / "synopsis-9-prefixes.svg")
