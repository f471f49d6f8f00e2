"""A year-like stream: how much is kept of what came, and that it grows ever more slowly; figure 10.

The real week is replayed later and later, changed each time, and the sketch ages as it would in a
run: hours become hours of a week after a week, weeks become months after four, months a year after
a quarter, and from four weeks on bins merge further and further.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geoflux.bench.figures import Curve, Words, draw_curves
from geoflux.bench.synopsis_ingest import RAW_BYTES, schema_of, took_in
from geoflux.bench.table import Bars
from geoflux.sketch.forest import Forest
from geoflux.sketch.times import Ages
from geoflux.workload.weather import WeatherStream

BARS: Bars = {"growth_late_over_early": ("<=", 0.5)}
_DAY = 86_400
AGES = Ages(hour=7 * _DAY, week=28 * _DAY, month=91 * _DAY)
STUDY = 28 * _DAY
_SETS = {
    "set_seconds": 7 * _DAY, "bloom_items": 2_000, "hll_lg_k": 10, "frequency_error": 0.01,
}  # fmt: skip
"""Of a week, and smaller than those of a day usually are: there are many of them."""


@dataclass(frozen=True)
class Growth:
    """Bytes that had come and bytes that were kept, step by step."""

    raw: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def late_over_early(self) -> float:
        """Growth for each byte that comes in the second half, over that in the first half.

        >>> Growth((10, 20, 30, 40), (5, 10, 11, 12)).late_over_early
        0.2
        """
        half = (len(self.raw) - 1) // 2
        early = self.kept[half] / self.raw[half]
        late = (self.kept[-1] - self.kept[half]) / ((self.raw[-1] - self.raw[half]) or 1)
        return late / early


def measure_growth(stream: WeatherStream, steps: int, figures: Path) -> dict[str, Any]:
    """Raw bytes of a stream over bytes of its sketch, and the curve."""
    forest = Forest.empty(schema_of(stream.observed, **_SETS))
    raw, kept, rows = list[int](), list[int](), 0
    for weather in stream.steps(steps):
        forest = took_in(forest, weather).aged(int(weather.time[-1]), AGES, STUDY)
        rows += len(weather)
        raw.append(rows * RAW_BYTES)
        kept.append(forest.bytes)
    growth = Growth(tuple(raw), tuple(kept))
    weeks = list(range(1, steps + 1))
    draw_curves(
        figures / "synopsis-10-growth.svg",
        Words("Growth of the sketch", "weeks", "megabytes kept",
              f"{raw[-1] / 1e9:.1f} GB came in all; published: 1285 times as much as is kept"),
        [Curve("kept", weeks, [k / 1e6 for k in kept], style="line")],
    )  # fmt: skip
    return {
        "sketch_vs_raw": raw[-1] / kept[-1],
        "growth_late_over_early": growth.late_over_early,
        "sketch_megabytes": kept[-1] / 1e6,
        "sketch_megabytes_by_week": [round(k / 1e6, 1) for k in kept],
        "stream_rows": rows,
    }
