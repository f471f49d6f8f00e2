"""What answers of a sketch are compared with finds out what is wrong, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoflux.bench.synopsis_scaling_run import ScalingSizes, rates, stream_of
from geoflux.bench.synopsis_scaling_truth import (
    QUESTIONS,
    Question,
    Taken,
    compared,
    misplaced,
    same,
    undisturbed,
)
from geoflux.operators.sketching import Sketch
from geoflux.sketch.evaluate import evaluate
from geoflux.sketch.schema import SketchSchema
from geoflux.workload.weather import FEATURES, Weather, made_up_weather

SIZES = ScalingSizes(epochs=14, calm=50, peak=400)
STREAM = stream_of(made_up_weather(3, 9_000, 1_774_396_800, 86_400), SIZES)
SKETCH = Sketch(SketchSchema(FEATURES, 6, 10, max_leaves=4, steady_rows=40))
WHOLE = undisturbed(SKETCH, STREAM)


def without(stream: Weather, row: int) -> Weather:
    return Weather(*(np.delete(column, row, axis=0) for column in stream))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.where)
def test_whole_bins_are_answered_as_the_observations_are(question: Question) -> None:
    parts = [WHOLE.cut(code, 2) for code in range(4)]
    found = compared(question, evaluate(question.sql, parts), STREAM)
    assert found.is_right, found
    mine = int(np.flatnonzero(question.holds(STREAM))[0])
    for wrong in (without(STREAM, mine), Weather(*(column[::2] for column in STREAM))):
        assert not compared(question, evaluate(question.sql, parts), wrong).is_right


def test_a_mean_that_is_a_little_off_is_wrong() -> None:
    values = STREAM.values.copy()
    values[5:7, 0] += [1e-5, -2e-5]  # neither the least nor the greatest
    wrong = Weather(STREAM.lon, STREAM.lat, STREAM.time, values)
    found = compared(QUESTIONS[0], evaluate(QUESTIONS[0].sql, [WHOLE]), wrong)
    assert found.exact
    assert 1e-12 < found.error < 1e-6
    assert not found.is_right


def test_sketches_are_the_same_however_they_were_split_and_cut_into_batches() -> None:
    parts = [WHOLE.cut(code, 3) for code in (5, 0, 7, 1, 2, 6, 4, 3)]
    assert same(SKETCH.joined(parts), WHOLE).error == 0
    other = SKETCH.empty()
    for first in range(0, len(STREAM), 100):
        other = SKETCH.process(
            other, STREAM.between(first, first + 100).table().append_column(
                "@time", [STREAM.time[first : first + 100] * 1_000_000])
        )[0]  # fmt: skip
    assert same(other, WHOLE).is_right
    assert misplaced(other, WHOLE) == 0
    less = undisturbed(SKETCH, without(STREAM, 7))
    assert not same(less, WHOLE).exact
    assert misplaced(less, WHOLE) == 1
    assert misplaced(SKETCH.joined(parts[1:]), WHOLE) == parts[0].observations


def test_rows_that_wait_are_not_among_those_taken_in() -> None:
    taken = Taken(10, np.array([3, 9])).among(STREAM)
    assert len(taken) == 8
    assert taken.time.tolist() == np.delete(STREAM.time[:10], [3, 9]).tolist()


def test_the_stream_has_the_rate_that_is_wanted_in_every_hour() -> None:
    hours = (STREAM.time - STREAM.time[0] // 3600 * 3600) // 3600
    assert np.bincount(hours).tolist() == rates(SIZES).tolist()
    assert (np.diff(STREAM.time) >= 0).all()
    steady = rates(replace(SIZES, peak=50))
    assert set(steady.tolist()) == {50}
