"""Pictures of a sketch: what is drawn is what was given."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from geoflux.cli.sketch_charts import _filled, _grid
from geoflux.cli.sketch_plots import PLAIN, Climate, Field, as_png, climate, field_map
from geoflux.cli.svg import as_svg
from geoflux.errors import ConfigError
from geoflux.spatial import geohash

DAYS = np.arange(np.datetime64("2026-03-25"), np.datetime64("2026-04-01"))
MEAN = 280 + np.arange(7.0)
CLIMATE = Climate(DAYS, MEAN + 4, MEAN, MEAN - 5, np.arange(7.0), ("t2m_k", "tp_m"))
FIELD = Field(
    np.linspace(-10, 30, 9), np.linspace(35, 60, 6), np.arange(40.0).reshape(5, 8), "t2m_k",
    Field(np.linspace(-10, 30, 5), np.linspace(35, 60, 4), np.linspace(-1, 1, 12).reshape(3, 4),
          "corr(t2m_k, msl_pa)"),
)  # fmt: skip


def test_a_climate_has_three_lines_and_bars() -> None:
    figure = climate(CLIMATE, "somewhere")
    above, below = figure.axes
    drawn = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in above.lines}
    assert drawn == {
        "high": (MEAN + 4).tolist(), "mean": MEAN.tolist(), "low": (MEAN - 5).tolist(),
    }  # fmt: skip
    heights = [bar.get_height() for bar in below.patches]
    assert heights == list(range(7))
    assert "var(--warm)" in as_svg(figure, "climate")
    assert len(climate(replace(CLIMATE, second=None), "somewhere").axes) == 1


def test_a_map_has_contours_and_lines() -> None:
    text = as_svg(field_map(FIELD, "a week"), "map")
    assert "a week" in text
    assert "lines: corr(t2m_k, msl_pa)" in text
    picture = as_png(field_map(FIELD, "a week", PLAIN))
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


@pytest.mark.parametrize("shape", [(1, 8), (5, 1), (1, 1)])
def test_few_cells_are_drawn_as_they_are(shape: tuple[int, int]) -> None:
    rows, columns = shape
    values = np.full(shape, 3.0)
    few = Field(np.linspace(0, 9, columns + 1), np.linspace(0, 9, rows + 1), values, "a")
    few = replace(few, lines=few)
    assert as_png(field_map(few, "few", PLAIN)).startswith(b"\x89PNG")


def test_nothing_observed_is_told() -> None:
    empty = replace(FIELD, values=np.full((5, 8), np.nan))
    with pytest.raises(ConfigError, match="nothing was observed of t2m_k there"):
        field_map(empty, "nowhere")


def test_small_numbers_are_read_as_they_are() -> None:
    rain = replace(CLIMATE, second=np.linspace(0, 4e-4, 7))
    text = as_svg(climate(rain, "somewhere"), "climate")
    assert ">0.0002</" in text
    assert not re.search(r'x="\d+\.\d{3}', text), "places have two decimals"


def test_observations_further_apart_than_regions_are_still_a_map() -> None:
    lon, lat = (a.ravel() for a in np.meshgrid(np.arange(-20.0, 20), np.arange(30.0, 60)))
    codes, inverse = np.unique(geohash.codes(lon, lat, 20), return_inverse=True)
    count = np.bincount(inverse).astype(float)
    mean = np.bincount(inverse, lat) / count
    found, values, bits = _filled(codes, mean, count, 20)
    assert 12 <= bits < 20
    field = _grid(found, values, bits, "lat")
    assert np.isfinite(field.values).mean() >= 0.75
    south, north = field.south_to_north[:-1, None], field.south_to_north[1:, None]
    inside = np.isnan(field.values) | ((field.values >= south) & (field.values <= north))
    assert inside.all(), "means stay in their cells"
    alone = _filled(codes[:1], mean[:1], count[:1], 20)
    assert (alone[0] == codes[:1], alone[2]) == (True, 20)
