"""The synopsis benchmark, tiny: what it measures, that its verdicts can fail, its drawings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from geoflux.bench import synopsis, synopsis_scaling, synopsis_sets, synopsis_truth
from geoflux.bench.synopsis_bins import by_prefix
from geoflux.bench.synopsis_growth import Growth
from geoflux.bench.synopsis_ingest import schema_of, took_in
from geoflux.bench.synopsis_queries import asked_of, largest_of
from geoflux.bench.synopsis_spark import steady_rate
from geoflux.errors import ConfigError
from geoflux.sketch.forest import Forest
from geoflux.workload.weather import Weather, made_up_weather

SEEN = made_up_weather(7, 20_000, 1_774_396_800, 86_400)
TINY = synopsis.Sizes(
    rows=20_000, weeks=1, steps=2, questions=4, compared=12, set_trials=2, splits=1,
    split_rows=6_000, clients=(1, 2), client_seconds=0.05,
)  # fmt: skip


@pytest.fixture(scope="module")
def forest() -> Forest:
    return took_in(Forest.empty(schema_of(SEEN, tree_bits=6)), SEEN)


def test_all_parts_without_spark_tell_their_figures_and_draw(tmp_path: Path) -> None:
    on_spark = ("scaling", "spark", "training")
    plain = [part for part in synopsis.PARTS if part not in on_spark]
    found = synopsis.run_benchmark(Console(quiet=True), True, tmp_path, plain, sizes=TINY)
    told = {"spark_obs_per_second", "r2_real", *synopsis_scaling.BARS}
    told |= {name for name in synopsis.BARS if name.startswith(("rmse", "training"))}
    assert set(synopsis.BARS) - told <= set(found)
    assert 0 < found["quantised_memory_share"] <= 1
    assert found["sketch_vs_raw"] > 0
    assert found["exact_on_whole_bins"] == found["merge_counts_exact"] == 1
    assert found["merge_moments_error"] <= 1e-12
    assert found["members_missed"] == 0
    assert len(found["queries_per_second_by_clients"]) == 2
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    numbers = ("4-bins", "9-prefixes", "10-growth", "11-clients")
    assert drawn == {f"synopsis-{n}.svg" for n in numbers} | {"synopsis-table-2.svg"}


def test_quantiles_are_judged_by_the_bins_that_leaves_have() -> None:
    schema = schema_of(SEEN, tree_bits=6, steady_rows=100)
    forest = took_in(Forest.empty(schema), SEEN)
    found = synopsis_truth.measure_truth(forest, SEEN, 60)
    assert found["quantiles_within_one_bin"] == found["quantiles_within_bounds"] == 1
    assert found["exact_on_whole_bins"] == 1
    shifted = Weather(SEEN.lon, SEEN.lat, SEEN.time, SEEN.values + 5.0)
    worse = synopsis_truth.measure_truth(forest, shifted, 60)
    assert worse["quantiles_within_one_bin"] < 0.9
    assert worse["exact_on_whole_bins"] < 1


def test_a_part_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no part spam"):
        synopsis.run_benchmark(Console(quiet=True), True, tmp_path, ["spam"])


def test_growth_that_does_not_flatten_is_told() -> None:
    straight = Growth(tuple(range(10, 110, 10)), tuple(range(1, 11)))
    assert straight.late_over_early == pytest.approx(1.0)
    assert Growth((10, 20, 30, 40), (5, 10, 10, 10)).late_over_early == 0


def test_an_answer_outside_its_error_is_not_covered() -> None:
    found = synopsis_truth.Verdicts()
    found.judge("mean", 10.0, 1.0, 10.5, whole=False)
    found.judge("mean", 10.0, 1.0, 11.5, whole=False)
    found.judge("corr", 0.5, 0.2, 0.5, whole=False)
    found.judge("mean", 10.0, 0.0, 10.1, whole=True)
    assert found.covered["mean"] == [True, False]
    assert found.exact == [False]
    assert found.width["mean"][0] == pytest.approx(0.1)
    assert found.width["corr"] == [0.2]


def test_wrong_observations_are_noticed(forest: Forest) -> None:
    warmer = SEEN.values + np.where(np.arange(SEEN.values.shape[1]) == 0, 40.0, 0.0)
    other = Weather(SEEN.lon, SEEN.lat, SEEN.time, warmer)
    right = synopsis_truth.measure_truth(forest, SEEN, 24)
    wrong = synopsis_truth.measure_truth(forest, other, 24)
    assert right["exact_on_whole_bins"] == 1
    assert right["covered_mean"] >= 0.9
    assert wrong["exact_on_whole_bins"] < 1
    assert wrong["covered_mean"] < 0.5


def test_questions_are_random_but_the_same_each_time(forest: Forest) -> None:
    one = largest_of(forest)
    first, again = (asked_of("stat", one, SEEN, 5) for _ in range(2))
    assert [a.query for a in first] == [b.query for b in again]
    assert len({str(a.query.where) for a in first}) == 5
    assert one.leaf_count < forest.leaf_count


def test_prefixes_hold_all_observations(forest: Forest) -> None:
    records, leaves = by_prefix(forest)
    assert records.sum() == len(SEEN)
    assert leaves.sum() == forest.leaf_count


def test_a_split_that_loses_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    some = SEEN.between(0, 4_000)
    assert synopsis_sets.measure_merges(some, 1)["merge_counts_exact"] == 1
    monkeypatch.setattr(synopsis_sets, "_went_on", lambda piece, *_: piece)
    assert synopsis_sets.measure_merges(some, 1)["merge_counts_exact"] == 0


def test_the_steady_rate_is_that_of_the_second_half() -> None:
    slow = [{"processed": 10, "committed": float(t)} for t in range(0, 40, 10)]
    fast = [{"processed": 10, "committed": 30.0 + t} for t in range(1, 5)]
    assert steady_rate([*slow, *fast]) == pytest.approx(10.0)
    assert steady_rate([*slow, *fast, {"processed": 0, "committed": 99.0}]) == pytest.approx(10.0)
