"""Cells against boxes and circles, compiled; see :mod:`geoflux.sketch.region_cover`."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

RADIUS_KM = 6371.0088
"""Of the sphere on which circles are drawn."""
_PLACES = 16
"""Places across a cell, each way, at which a circle's share is taken."""


@numba.njit(cache=True)
def _cosine(lat: float, lon: float, lat0: float, lon0: float) -> float:
    """Cosine of the angle between two places in radians."""
    return np.sin(lat) * np.sin(lat0) + np.cos(lat) * np.cos(lat0) * np.cos(lon - lon0)


@numba.njit(cache=True)
def _circle_state(west: Any, south: Any, east: Any, north: Any, lon: Any, lat: Any, km: Any) -> Any:
    """Whether a circle covers a box (radians) wholly, in part or not: for a longitude the angle is
    a sine of the latitude, with its one turning point on each half of the meridian."""
    apart = np.pi
    near = np.pi
    for turn in (-2.0 * np.pi, 0.0, 2.0 * np.pi):
        at = lon + turn
        inside = 0.0 if west <= at <= east else min(abs(at - west), abs(at - east))
        near = min(near, inside)
    far = 0.0
    for edge in (west, east):
        gap = abs(edge - lon) % (2.0 * np.pi)
        far = max(far, min(gap, 2.0 * np.pi - gap))
    for turn in (-np.pi, np.pi):
        if west <= lon + turn <= east:
            far = apart
    a = np.sin(lat)
    top = np.arctan2(a, np.cos(lat) * np.cos(near))
    top = min(max(top, south), north)
    nearest = max(
        _cosine(top, near, lat, 0.0),
        max(_cosine(south, near, lat, 0.0), _cosine(north, near, lat, 0.0)),
    )
    bottom = np.arctan2(a, np.cos(lat) * np.cos(far))
    bottom = bottom - np.pi if bottom > 0 else bottom + np.pi
    bottom = min(max(bottom, south), north)
    farthest = min(
        _cosine(bottom, far, lat, 0.0),
        min(_cosine(south, far, lat, 0.0), _cosine(north, far, lat, 0.0)),
    )
    least = np.cos(min(km / RADIUS_KM, np.pi))
    # A hair of doubt counts as cut: an answer is then a bound, never wrong.
    if farthest > least + 1e-13:
        return 2
    return 0 if nearest < least - 1e-13 else 1


@numba.njit(cache=True)
def cell_shares(
    west: Any, south: Any, east: Any, north: Any, last_x: Any, last_y: Any, boxes: Any, circles: Any
) -> Any:  # fmt: skip
    n = west.size
    state = np.zeros(n, np.int8)
    wide, tall = np.zeros(n, np.float64), np.ones(n, np.float64)
    own = np.zeros(n, np.bool_)
    turn = np.pi / 180.0
    for i in range(n):
        boxed, cut = 0, False
        for b in range(boxes.shape[0]):
            if boxes[b, 0] > last_x[i] or boxes[b, 2] < west[i]:
                continue
            if boxes[b, 1] > last_y[i] or boxes[b, 3] < south[i]:
                continue
            if (
                boxes[b, 0] <= west[i] and boxes[b, 2] >= last_x[i]
                and boxes[b, 1] <= south[i] and boxes[b, 3] >= last_y[i]
            ):  # fmt: skip
                state[i] = 2
                break
            state[i] = 1
            boxed += 1
            reach_x = boxes[b, 2] >= last_x[i]
            reach_y = boxes[b, 3] >= last_y[i]
            width = (east[i] if reach_x else boxes[b, 2]) - max(boxes[b, 0], west[i])
            height = (north[i] if reach_y else boxes[b, 3]) - max(boxes[b, 1], south[i])
            width, height = width / (east[i] - west[i]), height / (north[i] - south[i])
            if boxed == 1:
                wide[i], tall[i] = width, height
            else:
                wide[i], tall[i] = min(wide[i] * tall[i] + width * height, 1.0), 1.0
        for c in range(circles.shape[0]):
            if state[i] == 2:
                break
            got = _circle_state(
                west[i] * turn, south[i] * turn, east[i] * turn, north[i] * turn,
                circles[c, 0] * turn, circles[c, 1] * turn, circles[c, 2],
            )  # fmt: skip
            state[i] = max(state[i], got)
            cut = cut or got == 1
        if state[i] == 2:
            wide[i], tall[i] = 1.0, 1.0
        elif cut:
            wide[i] = _sampled(west[i], south[i], east[i], north[i], boxes, circles)
            tall[i] = 1.0
        own[i] = state[i] == 1 and (cut or boxed > 1)
    return state, wide, tall, own


@numba.njit(cache=True)
def _sampled(west: Any, south: Any, east: Any, north: Any, boxes: Any, circles: Any) -> Any:
    turn = np.pi / 180.0
    hits = 0
    for j in range(_PLACES):
        lat = south + (j + 0.5) / _PLACES * (north - south)
        for k in range(_PLACES):
            lon = west + (k + 0.5) / _PLACES * (east - west)
            inside = False
            for b in range(boxes.shape[0]):
                inside = inside or (
                    boxes[b, 0] <= lon <= boxes[b, 2] and boxes[b, 1] <= lat <= boxes[b, 3]
                )
            for c in range(circles.shape[0]):
                near = _cosine(lat * turn, lon * turn, circles[c, 1] * turn, circles[c, 0] * turn)
                inside = inside or near >= np.cos(min(circles[c, 2] / RADIUS_KM, np.pi))
            hits += inside
    return hits / _PLACES**2
