"""``geoflux chart``: what is drawn of a sketch is asked of it here, and written to a file."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from geoflux.cli.report_style import STYLE
from geoflux.cli.sketch_plots import PLAIN, Climate, Field, as_png, climate, field_map
from geoflux.cli.svg import COLOUR, as_svg
from geoflux.engine.sketch_reader import OpenSketch
from geoflux.errors import ConfigError
from geoflux.sketch.answers import Answer, KeyColumn
from geoflux.spatial import geohash
from geoflux.spatial.sphere import distance_m

_KINDS = (".png", ".html")
_FILLED = 0.75
"""Of the cells of a map that must have a value."""
_FEWEST_CELLS, _MOST_CELLS = 8, 48
"""From west to east: of a map at least, of correlations at most."""


def climate_at(
    sketch: OpenSketch, at: tuple[float, float], by: str, features: tuple[str, str | None]
) -> Climate:
    """High, low and mean of a feature over time in the region of a place, and the mean of a second
    one."""
    lon, lat = at
    if not (abs(lon) <= 180 and abs(lat) <= 90):
        raise ConfigError(f"--at {lon:g},{lat:g}: expected longitude,latitude in degrees")
    first, second = features
    bits = sketch.schema.region_bits // 5 * 5
    if bits == 0:
        raise ConfigError("regions of this sketch are larger than a letter of a geohash: no places")
    code = geohash.codes(np.array([lon]), np.array([lat]), bits)[0]
    asked = [f"{name}({_quoted(first)})" for name in ("max", "mean", "min")]
    if second is not None:
        asked.append(f"mean({_quoted(second)})")
    region = f"region IN geohash('{geohash.to_text(int(code), bits)}')"
    answer = sketch.query(
        f"SELECT {by}, {', '.join(asked)} WHERE {region} GROUP BY {by} ORDER BY {by}"
    )
    if not len(answer):
        raise ConfigError(
            f"nothing was observed at {lon:g},{lat:g}; ask for another place, the nearest is "
            f"--at {_nearest(sketch, lon, lat, bits // 5)}"
        )
    starts = answer.column(by)
    assert isinstance(starts, KeyColumn)
    values = [column.only.value for column in answer.columns[1:]]  # type: ignore[union-attr]
    return Climate(
        starts.values, values[0], values[1], values[2], values[3] if second else None,
        (first, second or ""),
    )  # fmt: skip


def _nearest(sketch: OpenSketch, lon: float, lat: float, letters: int) -> str:
    """The middle of the nearest region in which something was observed."""
    answer = sketch.query(f"SELECT geohash({letters}) GROUP BY geohash({letters})")
    known = answer.columns[0]
    assert isinstance(known, KeyColumn)
    codes = np.array([geohash.from_text(text)[0] for text in known.values.tolist()], np.int64)
    west, south, east, north = geohash.bounds(codes, 5 * letters)
    x, y = (west + east) / 2, (south + north) / 2
    near = int(np.argmin(distance_m(lon, lat, x, y)))
    return f"{x[near]:.6f},{y[near]:.6f}"


def field_of(sketch: OpenSketch, feature: str, pair: tuple[str, str] | None, where: str) -> Field:
    """The mean of a feature by region, and the correlation of a pair in larger ones: it needs many
    observations. ``where`` is SQL, or empty."""
    scope = f" WHERE {where}" if where else ""
    named = _quoted(feature)
    answer = sketch.query(f"SELECT region, mean({named}), count({named}){scope} GROUP BY region")
    if not len(answer):
        raise ConfigError("nothing was observed there; ask for another time or box")
    codes, mean, count = _columns(answer)
    field = _grid(*_filled(codes, mean, count, sketch.schema.region_bits), feature)
    letters = min((sketch.schema.region_bits - 1) // 5, _letters_across(field))
    if pair is None or letters < 1:
        return field
    asked = f"corr({_quoted(pair[0])}, {_quoted(pair[1])})"
    by = f"geohash({letters})"
    lines = _columns(sketch.query(f"SELECT {by}, {asked}{scope} GROUP BY {by}"))
    return replace(field, lines=_grid(lines[0], lines[1], 5 * letters, asked.replace('"', "")))


def _columns(answer: Answer) -> tuple[Any, ...]:
    """Codes of regions, and the numbers of each."""
    regions, *numbers = answer.columns
    assert isinstance(regions, KeyColumn)
    codes = np.array([_code(text) for text in regions.values], np.int64)
    return codes, *(column.only.value for column in numbers)  # type: ignore[union-attr]


def _filled(codes: Any, mean: Any, count: Any, bits: int) -> tuple[Any, Any, int]:
    """Regions and their means; larger ones where observations are further apart than regions are
    wide, so that most of the map has a value."""
    good = count > 0
    codes, mean, count = codes[good], mean[good], count[good]
    while bits > 2 and len(codes):
        columns, rows = geohash.cells(codes, bits)
        sides = np.ptp(columns) + 1, np.ptp(rows) + 1
        if len(codes) >= _FILLED * sides[0] * sides[1] or max(sides) <= _FEWEST_CELLS:
            break
        bits -= 1
        codes, place = np.unique(codes >> 1, return_inverse=True)
        total = np.bincount(place, count)
        mean, count = np.bincount(place, mean * count) / total, total
    return codes, mean, bits


def _letters_across(field: Field) -> int:
    """Letters of a geohash with which a map has a few dozen cells from west to east."""
    wide = float(field.west_to_east[-1] - field.west_to_east[0])
    letters = 1
    while wide / (360 / 2 ** ((5 * (letters + 1) + 1) // 2)) <= _MOST_CELLS:
        letters += 1
    return letters


def _grid(codes: Any, numbers: Any, bits: int, name: str) -> Field:
    """Regions with a number each as cells on a map."""
    if not len(codes):
        raise ConfigError(f"nothing was observed of {name} there; ask for another time or box")
    columns, rows = geohash.cells(codes, bits)
    west, south = int(columns.min()), int(rows.min())
    wide, high = int(columns.max()) - west + 1, int(rows.max()) - south + 1
    values = np.full((high, wide), np.nan)
    values[rows - south, columns - west] = numbers
    width, height = 360 / 2 ** ((bits + 1) // 2), 180 / 2 ** (bits // 2)
    return Field(
        -180 + (west + np.arange(wide + 1)) * width, -90 + (south + np.arange(high + 1)) * height,
        values, name,
    )  # fmt: skip


def _code(text: str) -> int:
    """A region as answers write it: letters, and bits after a colon."""
    letters, _, rest = text.partition(":")
    code = geohash.from_text(letters)[0] if letters else 0
    return code << len(rest) | int(rest, 2) if rest else code


def write_climate(path: Path, data: Climate, title: str) -> None:
    """Draw it into a file, PNG or HTML by its name."""
    _write(path, title, lambda colour: climate(data, title, colour))


def write_map(path: Path, data: Field, title: str) -> None:
    """Draw it into a file, PNG or HTML by its name."""
    _write(path, title, lambda colour: field_map(data, title, colour))


def _write(path: Path, title: str, drawn: Any) -> None:
    if path.suffix not in _KINDS:
        raise ConfigError(f"--out {path}: expected a name that ends in {' or '.join(_KINDS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        path.write_bytes(as_png(drawn(PLAIN)))
        return
    figure: Figure = drawn(COLOUR)
    path.write_text(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)} · geoflux</title>\n<style>{STYLE}</style>\n</head>\n"
        f'<body>\n<main>\n<div class="card">{as_svg(figure, title)}</div>\n'
        "<footer>Drawn by geoflux from a sketch.</footer>\n</main>\n</body>\n</html>\n",
        encoding="utf-8",
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
