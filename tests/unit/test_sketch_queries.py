"""Queries in SQL over a forest, against the rows that went into it."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from geoflux.errors import QueryError
from geoflux.sketch.evaluate import evaluate, prepare
from geoflux.sketch.forest import Forest, Observations
from geoflux.sketch.measures import KINDS
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.view import View
from geoflux.spatial import geohash
from sketch_rows import Raw, sketch_of, some_rows

SCHEMA = SketchSchema(("a", "b", "c"), tree_bits=5, region_bits=15, max_bins=8, steady_rows=300)


@pytest.fixture(scope="module")
def raw() -> Raw:
    return some_rows(2, 6000, 3)


@pytest.fixture(scope="module")
def forest(raw: Raw) -> Forest:
    made = Forest.empty(SCHEMA)
    for rows in np.array_split(np.argsort(raw.time, kind="stable"), 4):
        part = raw.take(rows)
        made = made.ingest(Observations(part.x, part.y, part.time, part.values))
    return made


def test_a_query_has_values_and_their_errors(forest: Forest, raw: Raw) -> None:
    answer = evaluate("SELECT count(*) AS n, mean(a) AS m, max(b) - min(b) AS span", [forest])
    assert answer["n"].value[0] == len(raw)
    assert answer["m"].value[0] == pytest.approx(raw.values[:, 0].mean(), rel=1e-12)
    assert answer["span"].value[0] == np.ptp(raw.values[:, 1])
    row = answer.to_dict()["rows"][0]
    assert row["n_kind"] == row["m_kind"] == row["span_kind"] == "exact"
    assert row["m_error"] == 0
    json.dumps(answer.to_dict(), allow_nan=False)


def test_groups_are_sorted_and_limited(forest: Forest, raw: Raw) -> None:
    sql = "SELECT geohash(1), count(*) AS n, mean(a) AS m GROUP BY geohash(1), day ORDER BY n DESC LIMIT 2"
    table = evaluate(sql, [forest]).to_table()
    assert table.num_rows == 2
    assert table["day"].type == pa.timestamp("s", "UTC")
    first = table.to_pylist()[0]
    inside = geohash.codes(raw.x, raw.y, 5) == geohash.from_text(first["geohash(1)"])[0]
    inside &= raw.time // 86400 == int(first["day"].timestamp()) // 86400
    assert first["n"] == inside.sum()
    assert first["m"] == pytest.approx(raw.values[inside, 0].mean(), rel=1e-12)


def test_forests_together_are_the_whole(forest: Forest) -> None:
    halves = [forest.cut(0, 1), forest.cut(1, 1)]
    sql = (
        "SELECT count(*) AS n, corr(a, b) AS r, median(c) AS q, count(DISTINCT *) AS d, "
        "frequency(a = 285) AS f WHERE region IN bbox(-15, 32, 15, 50) AND b > 285"
    )
    one, two = evaluate(sql, [forest]), evaluate(sql, halves)
    for name in ("n", "r", "q", "d", "f"):
        assert one[name].value == pytest.approx(two[name].value, rel=1e-9)
        assert one[name].high == pytest.approx(two[name].high, rel=1e-6)


def test_members_are_found_and_counted(forest: Forest, raw: Raw) -> None:
    values = raw.values[17]
    pairs = ", ".join(f"{f} = {v!r}" for f, v in zip("abc", values.tolist(), strict=True))
    answer = evaluate(
        f"SELECT contains({pairs}) AS yes, contains(a = 9999) AS no, frequency({pairs}) AS often, "
        f"contains(a = {float(values[0])!r}, b = {float(values[1])!r}) AS two, "
        "count(DISTINCT *) AS different",
        [forest],
    )
    row = answer.to_dict()["rows"][0]
    assert row["yes"] is True
    assert row["two"] is True
    assert row["no"] is False
    assert row["yes_kind"] == "false positive probability"
    assert row["no_error"] == 0
    assert row["often_low"] <= 1 <= row["often_high"]
    assert row["different_low"] <= len(raw) <= row["different_high"]
    assert any("combinations of all features" in note for note in answer.notes)


def test_sets_of_part_of_a_tree_say_so(forest: Forest, raw: Raw) -> None:
    answer = evaluate("SELECT count(DISTINCT *) AS d WHERE region IN bbox(0, 40, 3, 44)", [forest])
    inside = (raw.x >= 0) & (raw.x <= 3) & (raw.y >= 40) & (raw.y <= 44)
    assert answer["d"].low[0] == 0
    assert answer["d"].high[0] >= inside.sum()
    assert KINDS[answer["d"].kind[0]] == "bound"
    assert "whole trees and times" in answer.notes[0]


def test_sets_of_part_of_a_day_say_so(forest: Forest) -> None:
    whole = "SELECT count(DISTINCT *) WHERE time BETWEEN '2026-03-26' AND '2026-03-27'"
    part = "SELECT count(DISTINCT *) WHERE time BETWEEN '2026-03-26T03:00' AND '2026-03-26T07:00'"
    assert evaluate(whole, [forest]).notes == ()
    assert len(evaluate(part, [forest]).notes) == 1


def test_regression_is_that_of_the_rows(forest: Forest, raw: Raw) -> None:
    answer = evaluate("SELECT regress(b, a) AS line, forecast(b, a, 284, 0.9) AS next", [forest])
    x, y = raw.values[:, 0], raw.values[:, 1]
    slope, intercept = np.polyfit(x, y, 1)
    assert answer["line_slope"].value[0] == pytest.approx(slope, rel=1e-8)
    assert answer["line_intercept"].value[0] == pytest.approx(intercept, rel=1e-7)
    assert answer["line_r2"].value[0] == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2, rel=1e-8)
    off = y - (slope * x + intercept)
    s = math.sqrt((off**2).sum() / (len(x) - 2))
    sxx = ((x - x.mean()) ** 2).sum()
    assert answer["line_slope"].error[0] == pytest.approx(s / math.sqrt(sxx), rel=1e-6)
    assert answer["next"].value[0] == pytest.approx(slope * 284 + intercept, rel=1e-9)
    wide = answer["next"].high[0] - answer["next"].low[0]
    assert wide == pytest.approx(2 * 1.6451 * s, rel=1e-2)
    inside = (y > answer["next"].low[0] + slope * (x - 284)) & (
        y < answer["next"].high[0] + slope * (x - 284)
    )
    assert inside.mean() == pytest.approx(0.9, abs=0.02)


def test_outliers_and_probabilities(forest: Forest, raw: Raw) -> None:
    answer = evaluate("SELECT outliers(a, 2) AS o, probability(a, 284, 286) AS p", [forest])
    x = raw.values[:, 0]
    beyond = np.abs(x - x.mean()) > 2 * x.std()
    assert answer["o_count"].low[0] <= beyond.sum() <= answer["o_count"].high[0]
    assert answer["o_count"].high[0] <= answer["o_at_most"].value[0] * 1.5
    assert answer["o_below"].value[0] == pytest.approx(x.mean() - 2 * x.std(), rel=1e-12)
    share = ((x >= 284) & (x <= 286)).mean()
    assert answer["p"].low[0] <= share <= answer["p"].high[0]
    assert answer["p"].value[0] == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("where", ["", " WHERE a > 280 AND c > 283"])
def test_a_density_is_one_in_all(forest: Forest, raw: Raw, where: str) -> None:
    answer = evaluate(f"SELECT density(b, 400) AS d{where}", [forest])
    at, value = answer["d_at"].value[0], answer["d"].value[0]
    assert np.trapezoid(value, at) == pytest.approx(1.0, abs=0.02)
    rows = raw.values[(raw.values[:, 0] > 280) & (raw.values[:, 2] > 283)] if where else raw.values
    mean = np.trapezoid(value * at, at)
    assert mean == pytest.approx(rows[:, 1].mean(), abs=0.1)


def test_contrast_of_two_places(forest: Forest, raw: Raw) -> None:
    sql = "SELECT contrast(mean(a), region IN geohash('u'), region IN geohash('g')) AS d"
    answer = evaluate(sql, [forest])
    code = geohash.codes(raw.x, raw.y, 5)
    sides = [raw.values[code == geohash.from_text(t)[0], 0].mean() for t in "ug"]
    assert answer["d_left"].value[0] == pytest.approx(sides[0], rel=1e-12)
    assert answer["d_difference"].value[0] == pytest.approx(sides[0] - sides[1], rel=1e-9)


def test_a_join_on_days(forest: Forest, raw: Raw) -> None:
    sql = (
        "SELECT x.day, x.m - y.m AS d FROM (SELECT mean(a) AS m WHERE region IN geohash('u') "
        "GROUP BY day) AS x JOIN (SELECT mean(a) AS m WHERE region IN geohash('g') GROUP BY day) "
        "AS y ON x.day = y.day ORDER BY d LIMIT 10"
    )
    table = evaluate(sql, [forest]).to_table()
    code, day = geohash.codes(raw.x, raw.y, 5), raw.time // 86400
    want = sorted(
        raw.values[(code == geohash.from_text("u")[0]) & (day == d), 0].mean()
        - raw.values[(code == geohash.from_text("g")[0]) & (day == d), 0].mean()
        for d in np.unique(day)
    )
    assert table["d"].to_pylist() == pytest.approx(want, rel=1e-9)


def test_leaves_and_graph_are_the_matching_part(forest: Forest, raw: Raw) -> None:
    where = " WHERE region IN bbox(-20, 30, 0, 45) AND a > 284"
    leaves = evaluate("SELECT *" + where, [forest]).to_table()
    inside = (raw.x <= 0) & (raw.y <= 45) & (raw.values[:, 0] > 284)
    assert inside.sum() <= sum(leaves["count"].to_pylist())
    assert min(leaves["a_max"].to_pylist()) > 284
    row = leaves.to_pylist()[0]
    code, bits = geohash.from_text(row["region"])
    assert [float(e[0]) for e in geohash.bounds(np.array([code]), bits)] == [
        row["west"], row["south"], row["east"], row["north"],
    ]  # fmt: skip
    assert row["a_bin_low"] <= row["a_min"] <= row["a_mean"] <= row["a_max"] <= row["a_bin_high"]
    graph = evaluate("SELECT graph" + where, [forest])
    vertices, edges = graph.to_table(), graph.edges
    assert edges is not None
    levels = vertices["level"].to_numpy(zero_copy_only=False)
    counts = vertices["count"].to_numpy()
    roots = (levels == "tree").sum()
    assert edges.num_rows == vertices.num_rows - roots
    for level in ("tree", "region", "time", "a", "b", "c"):
        assert counts[levels == level].sum() == sum(leaves["count"].to_pylist())
    below = np.zeros(vertices.num_rows)
    np.add.at(below, edges["parent"].to_numpy(), counts[edges["child"].to_numpy()])
    inner = np.isin(np.arange(len(below)), edges["parent"].to_numpy())
    assert (below[inner] == counts[inner]).all()


def test_synthetic_rows_have_the_moments_of_the_rows(forest: Forest, raw: Raw) -> None:
    asked = "SELECT synthetic(200000, 7)"
    table = evaluate(asked, [forest]).to_table()
    again = evaluate(asked, [forest]).to_table()
    assert table.equals(again)
    assert table.column_names == ["lon", "lat", "time", "a", "b", "c"]
    values = np.stack([table[f].to_numpy() for f in "abc"], axis=1)
    spread = raw.values.std(axis=0)
    assert np.abs(values.mean(axis=0) - raw.values.mean(axis=0)).max() < 0.01 * spread.max()
    assert values.std(axis=0) == pytest.approx(spread, rel=0.01)
    assert np.corrcoef(values.T) == pytest.approx(np.corrcoef(raw.values.T), abs=0.01)
    assert (values.min(axis=0) >= raw.values.min(axis=0)).all()
    assert (values.max(axis=0) <= raw.values.max(axis=0)).all()
    for share in (0.1, 0.5, 0.9):
        got, want = np.quantile(values, share, axis=0), np.quantile(raw.values, share, axis=0)
        assert np.abs(got - want).max() < 0.05 * spread.max()


@pytest.mark.parametrize("extreme", [False, True])
def test_draws_from_one_leaf_have_its_moments_and_ends(extreme: bool) -> None:
    """Skewed features that hang together, all in one leaf. Correlations hold unless no normals
    have those that would be needed, then they are weaker."""
    rng = np.random.default_rng(5)
    n = 500
    base, noise = rng.normal(size=n), rng.normal(size=(n, 3))
    columns = [base + 0.4 * noise[:, 0], np.exp(0.5 * base + 0.3 * noise[:, 1]), noise[:, 2] - base]
    if extreme:
        columns = [base + 0.4 * noise[:, 0], base**2, (base > 1.2) * 1.0]
    values = np.stack(columns, axis=1)
    names = SketchSchema(("p", "q", "r"), tree_bits=5, region_bits=10)
    one = Raw(np.full(n, 1.0), np.full(n, 50.0), np.full(n, 1_774_483_260), values)
    sketch = sketch_of(one, names, bins=1)
    table = prepare("SELECT synthetic(100000, 1)", names).over([View(sketch)]).to_table()
    drawn = np.stack([table[f].to_numpy() for f in "pqr"], axis=1)
    spread = values.std(axis=0)
    assert (np.abs(drawn.mean(axis=0) - values.mean(axis=0)) < 0.02 * spread).all()
    assert drawn.std(axis=0) == pytest.approx(spread, rel=0.02)
    assert (drawn.min(axis=0) >= values.min(axis=0)).all()
    assert (drawn.max(axis=0) <= values.max(axis=0)).all()
    off = np.abs(np.corrcoef(drawn.T) - np.corrcoef(values.T)).max()
    assert off < (0.35 if extreme else 0.05)


def test_synthetic_rows_lie_in_the_scope(forest: Forest, raw: Raw) -> None:
    sql = (
        "SELECT synthetic('50%', 3) WHERE region IN bbox(-10, 35, 10, 50) AND b > 285 AND "
        "hour_of_day BETWEEN 6 AND 9"
    )
    table = evaluate(sql, [forest]).to_table()
    x, y, b = (table[name].to_numpy() for name in ("lon", "lat", "b"))
    assert (x >= -10).all()
    assert (x <= 10).all()
    assert (y >= 35).all()
    assert (y <= 50).all()
    assert (b >= 285).all()
    hours = table["time"].to_numpy().astype("datetime64[s]").astype(np.int64) // 3600 % 24
    assert set(hours.tolist()) <= {6, 7, 8, 9}
    inside = (raw.x >= -10) & (raw.x <= 10) & (raw.y >= 35) & (raw.y <= 50)
    inside &= (raw.values[:, 1] > 285) & np.isin(raw.time // 3600 % 24, [6, 7, 8, 9])
    assert table.num_rows == pytest.approx(inside.sum() / 2, rel=0.2)


def test_a_prepared_query_runs_on_other_forests(forest: Forest) -> None:
    ready = prepare("SELECT count(*) AS n", SCHEMA)
    assert ready.run([forest])["n"].value[0] == 6000
    assert ready.run([Forest.empty(SCHEMA)])["n"].value[0] == 0
    other = SketchSchema(("a", "b"), tree_bits=5, region_bits=15)
    with pytest.raises(QueryError, match="another schema"):
        ready.run([Forest.empty(other)])


def test_mistakes_are_one_sentence(forest: Forest) -> None:
    with pytest.raises(QueryError, match="features"):
        evaluate("SELECT mean(tt)", [forest])
    with pytest.raises(QueryError, match="no sketch"):
        evaluate("SELECT mean(a)", [])
    with pytest.raises(QueryError, match="nothing that was observed"):
        evaluate("SELECT synthetic(10) WHERE region IN bbox(100, 0, 101, 1)", [forest])
    with pytest.raises(QueryError, match="no numbers 'x'"):
        evaluate("SELECT mean(a)", [forest])["x"]
