"""What is asked after the boxes: the exact shape, the validity interval, the ``where``.

Everything is evaluated over (event, query) pairs at once. Queries whose ``where`` differs only in
its literals share a template and are evaluated together.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from geoflux.operators import queries
from geoflux.operators.events import Events
from geoflux.operators.layer import Layer, circles_of
from geoflux.operators.where import compiled
from geoflux.operators.where_parse import Predicate, parse
from geoflux.spatial.shapes import CIRCLE, POLYGON, within_circle
from geoflux.spatial.space import FloatArray, IntArray, Space

Mask = npt.NDArray[np.bool_]

_BEGINNING, _END = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_EXACT_PARAMETER = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


class Refiner:
    """The filters of a layer, made ready when first asked for and kept with the layer."""

    def __init__(self, layer: Layer, space: Space) -> None:
        self._layer = layer
        self._space = space
        self._polygons: npt.NDArray[np.object_] = np.full(len(layer), None, np.object_)

    def keep(self, events: Events, event: IntArray, query: IntArray, inside: Mask) -> Mask:
        """Which pairs are matches; ``inside`` tells the pairs whose shape is settled already."""
        kept = np.ones(event.size, np.bool_)
        for wanted, test in ((CIRCLE, self._in_circle), (POLYGON, self._in_polygon)):
            if wanted not in self._kinds:
                continue
            pairs = np.flatnonzero((self._kind[query] == wanted) & ~inside)
            if pairs.size:
                at = event[pairs]
                kept[pairs] = test(query[pairs], events.x[at], events.y[at])
        if self._has_validity:
            _within(event, query, events.time, self._validity, kept)
        if self._templates:
            self._where(events, event, query, kept)
        return kept

    @cached_property
    def _kind(self) -> npt.NDArray[np.uint8]:
        return queries.numeric(self._layer.rows, "kind")

    @cached_property
    def _kinds(self) -> set[int]:
        return set(np.unique(self._kind).tolist())

    def _in_circle(self, query: IntArray, x: FloatArray, y: FloatArray) -> Mask:
        circles, place = self._circles
        return within_circle(self._space, x, y, circles[place[query]])

    @cached_property
    def _circles(self) -> tuple[FloatArray, IntArray]:
        """The circles as rows, and the row of each query."""
        which = np.flatnonzero(self._kind == CIRCLE)
        place = np.zeros(len(self._layer), np.int32)
        place[which] = np.arange(which.size)
        return circles_of(self._layer.rows.column("body").take(pa.array(which)).to_pylist()), place

    def _in_polygon(self, query: IntArray, x: FloatArray, y: FloatArray) -> Mask:
        new = np.unique(query)
        new = new[self._polygons[new] == None]  # noqa: E711  (element by element)
        if new.size:
            made = shapely.from_wkb(self._layer.rows.column("body").take(pa.array(new)).to_pylist())
            shapely.prepare(made)
            self._polygons[new] = made
        found: Mask = shapely.intersects_xy(self._polygons[query], x, y)
        return found

    @cached_property
    def _has_validity(self) -> bool:
        rows = self._layer.rows
        return any(
            rows.column(name).null_count < len(rows) for name in ("valid_from", "valid_until")
        )

    @cached_property
    def _validity(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        rows = self._layer.rows
        start = rows.column("valid_from").fill_null(_BEGINNING).to_numpy()
        return start, rows.column("valid_until").fill_null(_END).to_numpy()

    @cached_property
    def _templates(self) -> list[tuple[str, list[pa.Array]]]:
        """The templates, each with its parameters in columns."""
        return self._prepared[0]

    @cached_property
    def _prepared(self) -> tuple[list[tuple[str, list[pa.Array]]], IntArray, IntArray]:
        """The templates; and for each query the one of its ``where``, counted from 1 (0: it has
        none), and the row of its parameters."""
        by_template: dict[str, list[tuple[int, Predicate]]] = {}
        for code, text in enumerate(self._texts[0]):
            predicate = parse(text)
            by_template.setdefault(predicate.template, []).append((code, predicate))
        templates: list[tuple[str, list[pa.Array]]] = []
        # The last entry is for queries without a text, whose code is -1.
        which, row = (np.zeros(len(self._texts[0]) + 1, np.int32) for _ in range(2))
        for template, members in by_template.items():
            codes = [code for code, _ in members]
            literals = zip(*(p.params for _, p in members), strict=True)
            parameters = [pa.array(v, _EXACT_PARAMETER[type(v[0])]) for v in literals]
            templates.append((template, parameters))
            which[codes] = len(templates)
            row[codes] = np.arange(len(members))
        return templates, which[self._texts[1]], row[self._texts[1]]

    @cached_property
    def _texts(self) -> tuple[list[str], IntArray]:
        """The distinct ``where`` texts, and the one of each query (-1: none)."""
        encoded = self._layer.rows.column("where").combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return encoded.dictionary.to_pylist(), codes.astype(np.int32)

    def _where(self, events: Events, event: IntArray, query: IntArray, kept: Mask) -> None:
        """Drop pairs whose event does not meet the query's ``where``; template by template."""
        templates, which, row = self._prepared
        order, offsets = _by_template(which, query, kept, len(templates) + 1)
        for place, (template, parameters) in enumerate(templates):
            pairs = order[offsets[place + 1] : offsets[place + 2]]
            if pairs.size == 0:
                continue
            condition = compiled(template)
            rows = pa.array(row[query[pairs]]) if parameters else None
            kept[pairs] = condition.evaluate(
                events.take_columns(condition.columns, event[pairs]),
                [parameter.take(rows) for parameter in parameters],
            )


@numba.njit(cache=True)
def _within(event: Any, query: Any, time: Any, validity: Any, kept: Any) -> None:
    """Keep what happened while its query was valid."""
    start, stop = validity
    for i in range(event.size):
        q = np.uint32(query[np.uint64(i)])
        t = time[np.uint32(event[np.uint64(i)])]
        kept[i] = kept[i] and start[q] <= t <= stop[q]


@numba.njit(cache=True)
def _by_template(which: Any, query: Any, kept: Any, templates: int) -> Any:
    """The pairs that are still kept, ordered by the template of their query."""
    offsets = np.zeros(templates + 1, np.int64)
    for i in range(query.size):
        if kept[i]:
            offsets[which[np.uint32(query[np.uint64(i)])] + 1] += 1
    offsets = np.cumsum(offsets)
    places = offsets.copy()
    order = np.empty(offsets[-1], np.int32)
    for i in range(query.size):
        if kept[i]:
            t = which[np.uint32(query[np.uint64(i)])]
            order[places[t]] = i
            places[t] += 1
    return order, offsets
