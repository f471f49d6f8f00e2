"""Queries of a sketch against brute force over the rows that it was made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.sketch import statistics, times
from geoflux.sketch.asking import Asking, Keys
from geoflux.sketch.cover import ScopePlan, Units
from geoflux.sketch.density_answers import quantile
from geoflux.sketch.expressions import Call, Key
from geoflux.sketch.functions_of import measures_of
from geoflux.sketch.measures import EXACT, Measure
from geoflux.sketch.ranges import Range, Span
from geoflux.sketch.region_cover import NONE, PART, WHOLE, cells_of
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.scope import Box, Circle, Condition, Prefix, Scope
from geoflux.sketch.time_cover import combs_of, covered_seconds
from geoflux.sketch.view import View
from geoflux.spatial import geohash
from sketch_rows import Raw, matching, sketch_of, some_rows

SCHEMA = SketchSchema(("a", "b", "c"), tree_bits=8, region_bits=15)
COARSE = SketchSchema(("a", "b", "c"), tree_bits=5, region_bits=8)
"""Few large regions, so that leaves have several observations and scopes cut through them."""
START = 1_774_483_200
SOME = settings(max_examples=30, deadline=None)
LEVELS = (times.MINUTE, times.HOUR, times.WEEK, times.MONTH, times.YEAR)


def views_of(raw: Raw, level: int = times.HOUR, schema: SketchSchema = SCHEMA) -> list[View]:
    bins = 2 if schema is COARSE else 4
    return [View(sketch_of(raw, schema, bins, times.keys_of(raw.time, level)))]


def asking(views: list[View], scope: Scope, *keys: Key) -> Asking:
    schema = views[0].schema
    return Asking(ScopePlan(schema, scope), Keys.of(keys, schema), views)


def truth(call: Call, rows: np.ndarray) -> float | None:
    """What a call answers, over raw rows; nothing where it has no value."""
    if call.name == "count" and not call.features:
        return float(len(rows))
    places = [SCHEMA.features.index(name) for name in call.features]
    kept = rows[~np.isnan(rows[:, places]).any(axis=1)][:, places]
    x = kept[:, 0]
    if call.name == "count":
        return float(len(x))
    if not len(x):
        return None
    if call.name in ("stddev", "variance", "covar", "corr") and len(x) < 2:
        return None
    match call.name:
        case "mean":
            return float(x.mean())
        case "sum":
            return float(x.sum())
        case "min":
            return float(x.min())
        case "max":
            return float(x.max())
        case "stddev":
            return float(x.std(ddof=1))
        case "variance":
            return float(x.var(ddof=1))
        case "covar":
            return float(np.cov(kept.T)[0, 1])
        case "corr":
            return float(np.corrcoef(kept.T)[0, 1])
        case "probability":
            return float(((x >= call.numbers[0]) & (x <= call.numbers[1])).mean())
        case "quantile":
            return float(np.quantile(x, call.numbers[0], method="inverted_cdf"))
    raise AssertionError(call.name)


CALLS = (
    Call("count"), Call("count", ("a",)), Call("mean", ("a",)), Call("sum", ("b",)),
    Call("min", ("a",)), Call("max", ("b",)), Call("stddev", ("a",)), Call("variance", ("b",)),
    Call("covar", ("a", "c")), Call("corr", ("b", "c")), Call("probability", ("a",), (284.0, 286.0)),
    Call("quantile", ("b",), (0.5,)), Call("quantile", ("c",), (0.9,)),
)  # fmt: skip


@st.composite
def boxes(draw: Any) -> Box:
    west, south = draw(st.floats(-25, 20)), draw(st.floats(28, 60))
    return Box(west, south, west + draw(st.floats(0, 30)), min(south + draw(st.floats(0, 20)), 90))


@st.composite
def scopes(draw: Any) -> Scope:
    regions: Any = draw(
        st.none()
        | st.lists(
            boxes()
            | st.builds(Circle, st.floats(-20, 20), st.floats(30, 60), st.floats(50, 2500))
            | st.sampled_from([Prefix("u"), Prefix("ez"), Prefix("gc"), Prefix("u0e")]),
            min_size=1,
            max_size=3,
        ).map(tuple)
    )
    begin = draw(st.integers(START - 5000, START + 6 * 3600))
    spans = draw(st.none() | st.just((Span(begin, begin + draw(st.integers(1, 30000))),)))
    hours = draw(st.none() | st.frozensets(st.integers(0, 6), min_size=1))
    conditions = []
    for name in draw(st.sets(st.sampled_from("abc"), max_size=2)):
        low = draw(st.floats(278, 292))
        ends = Range(low, low + draw(st.floats(0.01, 8)), draw(st.booleans()), draw(st.booleans()))
        conditions.append(Condition(name, (ends,), draw(st.booleans())))
    return Scope(regions, spans, hours, tuple(conditions))


def holds(measure: Measure, value: float | None, g: int = 0) -> bool:
    if value is None or math.isnan(value):
        return True
    slack = 1e-9 * max(1.0, abs(value))
    return bool(measure.low[g] - slack <= value <= measure.high[g] + slack)


@SOME
@given(scopes(), st.integers(0, 50), st.sampled_from(LEVELS), st.sampled_from([0.0, 0.3]))
def test_bounds_always_hold(scope: Scope, seed: int, level: int, missing: float) -> None:
    raw = some_rows(seed, 1500, 3, missing, hours=6)
    views = views_of(raw, level, COARSE)
    asked = asking(views, scope)
    rows = raw.values[matching(raw, scope, SCHEMA)]
    for call in CALLS:
        got = measures_of(asked, call, [])[""]
        assert holds(got, truth(call, rows)), (call.title, got, truth(call, rows))


@SOME
@given(
    st.none() | st.sampled_from([("u",), ("gc", "ez"), ("u0e", "gbs", "ezs")]),
    st.integers(0, 20),
    st.none() | st.integers(0, 60),
    st.none() | st.frozensets(st.integers(0, 23), min_size=1),
    st.sampled_from([0.0, 0.3]),
)
def test_whole_bins_are_exact(
    prefixes: Any, seed: int, hour: int | None, hours: Any, missing: float
) -> None:
    raw = some_rows(seed, 300, 3, missing)
    times_ = None if hour is None else (Span(START + hour * 3600, START + (hour + 9) * 3600),)
    regions = None if prefixes is None else tuple(Prefix(p) for p in prefixes)
    scope = Scope(regions, times_, hours)
    asked = asking(views_of(raw), scope)
    rows = raw.values[matching(raw, scope, SCHEMA)]
    for call in CALLS[:-3]:
        got, want = measures_of(asked, call, [])[""], truth(call, rows)
        assert got.kind[0] == EXACT
        if want is None or math.isnan(want):
            continue
        if call.name in ("count", "min", "max"):
            assert got.value[0] == want
        elif call.name in ("corr", "covar"):
            assert got.value[0] == pytest.approx(want, rel=1e-7, abs=1e-7)
        else:
            assert got.value[0] == pytest.approx(want, rel=1e-10, abs=1e-10)


@SOME
@given(scopes(), st.integers(0, 20), st.sampled_from(LEVELS))
def test_however_the_sketch_is_split(scope: Scope, seed: int, level: int) -> None:
    raw = some_rows(seed, 800, 3, 0.1, hours=6)
    keys = times.keys_of(raw.time, level)
    whole = View(sketch_of(raw, COARSE, 2, keys))
    # Trees belong to one part each, as a prefix plan has them.
    east = (geohash.codes(raw.x, raw.y, COARSE.tree_bits) & 1).astype(bool)
    parts = [View(sketch_of(raw.take(m), COARSE, 2, keys[m])) for m in (east, ~east)]
    one, two = asking([whole], scope), asking(parts, scope)
    for call in CALLS:
        a, b = (measures_of(q, call, [])[""] for q in (one, two))
        for name in ("value", "error", "low", "high"):
            np.testing.assert_allclose(
                getattr(a, name), getattr(b, name), rtol=1e-7, atol=1e-6, err_msg=call.title
            )


@SOME
@given(
    scopes(),
    st.integers(0, 20),
    st.sampled_from(LEVELS),
    st.sampled_from(["day", "week", "month", "hour"]),
)
def test_groups_are_scopes_of_their_own(scope: Scope, seed: int, level: int, unit: str) -> None:
    raw = some_rows(seed, 300, 3, hours=6)
    views = views_of(raw, level, COARSE)
    keys = (Key("geohash", 1), Key(unit), Key("hour_of_day"))
    asked = asking(views, scope, *keys)
    rows = matching(raw, scope, SCHEMA)
    place = geohash.codes(raw.x, raw.y, 5)
    hour = raw.time // 3600 % 24
    units = _unit_of(raw.time, unit)
    groups = asked.groups
    found = np.zeros(len(raw), bool)
    got = {call.title: measures_of(asked, call, [])[""] for call in CALLS[:6]}
    for g in range(len(groups)):
        mine = (
            rows
            & (place == groups.prefix[g])
            & (hour == groups.hour[g])
            & (units == groups.start[g])
        )
        found |= mine
        for call in CALLS[:6]:
            assert holds(got[call.title], truth(call, raw.values[mine]), g)
    assert (found == rows).all()


def _unit_of(seconds: np.ndarray, unit: str) -> np.ndarray:
    if unit == "hour":
        return seconds // 3600 * 3600
    day = (seconds // 86400).astype("datetime64[D]")
    if unit == "day":
        return seconds // 86400 * 86400
    month = day.astype("datetime64[M]").astype("datetime64[D]")
    if unit == "month":
        return month.astype("datetime64[s]").astype(np.int64)
    return (month + (day - month).astype(int) // 7 * 7).astype("datetime64[s]").astype(np.int64)


def test_likely_errors_hold_in_95_of_100() -> None:
    """Rows at fixed places, each hour: what is cut is in or out for all times."""
    rng = np.random.default_rng(3)
    x, y = (m.ravel() for m in np.meshgrid(np.arange(-20, 20.0), np.arange(30, 60.0)))
    hours = np.arange(24)
    raw = Raw(
        np.tile(x, 24), np.tile(y, 24), START + np.repeat(hours, len(x)) * 3600 + 60, np.zeros(0)
    )
    wave = np.sin(raw.x / 9) + np.cos(raw.y / 7) + np.sin(raw.time / 14000)
    raw = Raw(
        raw.x, raw.y, raw.time, 280 + wave[:, None] * [2, 1, 3] + rng.normal(size=(len(wave), 3))
    )
    views = views_of(raw)
    within: dict[str, list[bool]] = {}
    for _ in range(150):
        west, south = rng.uniform(-20, 5), rng.uniform(30, 45)
        begin = START + int(rng.integers(0, 16 * 3600))
        box = Box(west, south, west + rng.uniform(3, 14), south + rng.uniform(3, 14))
        scope = Scope((box,), (Span(begin, begin + int(rng.integers(3600, 8 * 3600))),))
        rows = raw.values[matching(raw, scope, SCHEMA)]
        asked = asking(views, scope)
        for call in CALLS[:10]:
            got, want = measures_of(asked, call, [])[""], truth(call, rows)
            if want is not None and len(rows) > 20:
                good = abs(got.value[0] - want) <= got.error[0] * (1 + 1e-9) + 1e-9
                within.setdefault(call.title, []).append(bool(good))
    for title, good in within.items():
        assert np.mean(good) >= 0.95, (title, np.mean(good))


def test_quantiles_are_within_one_bin() -> None:
    raw = some_rows(7, 3000, 3)
    sketch = sketch_of(raw, SCHEMA, 8)
    pool = asking([View(sketch)], Scope()).leaf_pool
    edges = sketch.edges
    for share, got in zip((0.1, 0.5, 0.9), quantile(pool, 0, (0.1, 0.5, 0.9)), strict=True):
        want = np.quantile(raw.values[:, 0], share, method="inverted_cdf")
        assert got.low[0] <= want <= got.high[0]
        widest = max(
            edges.of(t, 0)[b + 1] - edges.of(t, 0)[b]
            for t in range(len(sketch.trees))
            for b in range(len(edges.of(t, 0)) - 1)
            if edges.of(t, 0)[b] <= want < edges.of(t, 0)[b + 1]
        )
        assert got.high[0] - got.low[0] <= widest


@given(
    st.integers(0, 4),
    st.integers(0, 4 * 365),
    st.integers(1, 400),
    st.frozensets(st.integers(0, 23), min_size=1),
)
@settings(max_examples=60, deadline=None)
def test_time_shares_are_counted_seconds(level: int, day: int, days: int, hours: Any) -> None:
    begin = (18_000 + day) * 86400 + day * 7919 % 86400
    scope = Scope(None, (Span(begin, begin + days * 30011),), hours)
    keys = np.unique(times.keys_of(begin + np.arange(-3, 4) * 5 * 86400, level))
    plan = ScopePlan(SCHEMA, scope)
    combs = combs_of(keys)
    got = covered_seconds(combs.day, combs.days, combs.offset, combs.length, plan.spans, plan.hours)
    for k, key in enumerate(keys):
        _, first, last = times.stretches(np.array([key]))
        want = 0
        for a, b in zip(first.tolist(), last.tolist(), strict=True):
            lo, hi = max(a, begin), min(b, begin + days * 30011)
            want += max(hi - lo, 0) if a // 3600 % 24 in hours else 0
        assert got[k] == want


SHAPES = st.one_of(
    st.builds(
        Box, st.floats(-180, 180), st.floats(-90, 20), st.floats(-180, 180), st.floats(20, 90)
    ),
    st.builds(Circle, st.floats(-180, 180), st.floats(-90, 90), st.floats(100, 15000)),
    st.text("0123456789bcdefghjkmnpqrstuvwxyz", min_size=1, max_size=2).map(Prefix),
)


@given(st.lists(SHAPES, min_size=1, max_size=3), st.integers(3, 8), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_regions_are_covered_as_their_places_are(shapes: Any, bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = cells_of(np.arange(1 << bits), bits)
    found = ScopePlan(SCHEMA, Scope(tuple(shapes))).shares(cells)
    cell = np.repeat(np.arange(1 << bits), 200)
    x = rng.uniform(cells.west[cell], cells.east[cell])
    y = rng.uniform(cells.south[cell], cells.north[cell])
    inside = matching(Raw(x, y, x, x), Scope(tuple(shapes)), SCHEMA).reshape(-1, 200)
    assert inside[found.state == WHOLE].all()
    assert not inside[found.state == NONE].any()
    cut = found.state == PART
    np.testing.assert_allclose((found.wide * found.tall)[cut], inside[cut].mean(axis=1), atol=0.25)


def test_statistics_of_nothing() -> None:
    views = views_of(some_rows(1, 50, 3))
    asked = asking(views, Scope((Box(100, 0, 101, 1),)))
    assert statistics.count(asked.pool).value[0] == 0
    assert math.isnan(statistics.mean(asked.pool, 0).value[0])
    assert len(asking(views, Scope((Box(100, 0, 101, 1),)), Key("day")).groups) == 0
    assert Units() == asked.keys.units
