"""The logos application by hand: what is found is what was planted, however rows are cut."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from apps_by_hand import ByHand
from geoflux.errors import ConfigError
from geoflux.operators.keyed import Operator
from logos.aggregator import Aggregator
from logos.badges import write_badges
from logos.drawing import side_by_side, with_sightings
from logos.extractor import Extractor, features
from logos.matcher import Matcher
from logos.video import FRAME, Video

VIDEO = Video(cameras=2, shot=4)
FRAMES = 16
READS = {
    "extractor": [("", "frames")],
    "matcher": [("extractor", "features"), ("", "features")],
    "aggregator": [("matcher", "results")],
}


@pytest.fixture(scope="module")
def frames() -> pa.Table:
    return VIDEO.frames(0, FRAMES)


@pytest.fixture(scope="module")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    folder = tmp_path_factory.mktemp("library")
    write_badges(folder, VIDEO.library)
    return Matcher(str(folder))


@pytest.fixture(scope="module")
def app(frames: pa.Table, matcher: Matcher) -> ByHand:
    operators = {"extractor": Extractor(), "matcher": matcher}
    return _run(operators, "frames", frames, random.Random(1))


@pytest.fixture(scope="module")
def sightings(app: ByHand) -> pa.Table:
    return app.results("aggregator")


def _run(
    first: dict[str, Operator[Any]], stream: str, rows: pa.Table, draw: random.Random
) -> ByHand:
    """The whole application, or from the matcher on."""
    operators = {**first, "aggregator": Aggregator(seconds=0.5)}
    app = ByHand(operators, {name: READS[name] for name in operators}, draw)
    app.feed(stream, rows)
    app.settle()
    return app


def test_what_was_planted_is_found(sightings: pa.Table) -> None:
    truth = VIDEO.truth(FRAMES)
    found = list(zip(*(sightings.column(n).to_pylist() for n in ("id", "logo")), strict=True))
    assert len(found) == len(set(found)), "a logo is in a frame once"
    right = truth & set(found)
    assert len(truth) > 30
    assert len(right) / len(found) >= 0.98
    assert len(right) / len(truth) >= 0.8


def test_it_is_found_where_it_is(sightings: pa.Table) -> None:
    off = []
    for seen in sightings.to_pylist():
        camera, number = seen["id"].removeprefix("camera-").split("/")
        marks = {m.logo: m for m in VIDEO.planted(int(camera), int(number))}
        if mark := marks.get(seen["logo"]):
            turned = (seen["angle"] - mark.angle + 180) % 360 - 180
            size = seen["scale"] / mark.scale
            off.append((np.hypot(seen["x"] - mark.x, seen["y"] - mark.y), abs(turned), size))
    pixels, degrees, sizes = np.array(off).T
    assert pixels.max() < 8
    assert degrees.max() < 20
    assert sizes.min() > 0.6
    assert sizes.max() < 1.1


def test_frames_are_the_same_however_they_are_made(frames: pa.Table) -> None:
    assert VIDEO.frames(5, 2).equals(frames.slice(10, 4))


def test_batches_and_moves_change_no_sighting(
    app: ByHand, matcher: Matcher, sightings: pa.Table
) -> None:
    found = app.results("extractor", "features")
    again = _run({"matcher": matcher}, "features", found, random.Random(2)).results("aggregator")
    counts = ["window", "frames"]
    assert _rows(again.drop_columns(counts)) == _rows(sightings.drop_columns(counts))
    assert _totals(again) == _totals(sightings)


def test_features_do_not_depend_on_the_batch(app: ByHand, frames: pa.Table) -> None:
    _, three = Extractor().process(None, frames.slice(4, 3))
    known = {row["id"]: row for row in app.results("extractor", "features").to_pylist()}
    for row in three.drop_columns(["@row", "@stream"]).to_pylist():
        assert row == known[row["id"]]


def test_a_window_ends_with_its_total(sightings: pa.Table) -> None:
    expected = Counter(
        (s["camera"], s["logo"], s["time"] // 0.5 * 0.5) for s in sightings.to_pylist()
    )
    assert _totals(sightings) == expected
    assert max(expected.values()) > 2


def test_the_aggregator_gives_the_same_in_any_batches(app: ByHand) -> None:
    pairs, draw = app.results("matcher"), random.Random(4)
    pairs = pairs.take(pa.array(draw.sample(range(len(pairs)), len(pairs))))
    operator = Aggregator(seconds=0.2, kept=2)
    _, whole = operator.process(operator.empty(), pairs)
    assert 0 < sum(whole.column("late").to_pylist()) < len(whole), "some come late"
    for size in (1, 9):
        state, parts = operator.empty(), []
        for at in range(0, len(pairs), size):
            state, part = operator.process(state, pairs.slice(at, size))
            state = operator.install({n: pa.array(a) for n, a in operator.extract(state).items()})
            parts.append(part.drop_columns(["@row"]))
        assert pa.concat_tables(parts).equals(whole.drop_columns(["@row"]))
        windows = set(state["counts"]["window"])
        newest = state["latest"].set_index("camera")["window"]
        assert min(windows) > newest.min() - 2, "old windows are forgotten"


def test_a_late_sighting_counts_nowhere(app: ByHand, sightings: pa.Table) -> None:
    pairs = app.results("matcher")
    is_seen = pc.equal(pairs.column("id"), sightings.column("id")[0])
    pairs = pairs.filter(
        pc.and_(is_seen, pc.equal(pairs.column("logo"), sightings.column("logo")[0]))
    )
    first = pairs.column("time")[0].as_py()
    times = [first, first + 10, first, first + 10]
    rows = pa.concat_tables([pairs] * 4).set_column(2, "time", pa.array(times))
    operator = Aggregator(seconds=1.0, kept=3)
    _, seen = operator.process(operator.empty(), rows)
    assert seen.column("late").to_pylist() == [False, False, True, False]
    assert seen.column("frames").to_pylist() == [1, 1, 0, 2]


def test_a_frame_that_is_no_picture_goes_elsewhere(frames: pa.Table) -> None:
    good = frames.slice(0, 1).to_pylist()[0]
    rows = [
        good,
        {**good, "id": "broken", "image": b"not a picture"},
        {**good, "id": "none", "image": None},
    ]
    _, results = Extractor().process(None, pa.Table.from_pylist(rows, FRAME))
    assert results.column("@stream").to_pylist() == ["features", "unreadable", "unreadable"]
    assert results.column("features").to_pylist()[1:] == [None, None]


def test_a_picture_without_features_has_none(matcher: Matcher) -> None:
    points, descriptors = features(np.full((100, 100), 128, np.uint8))
    assert len(points) == len(descriptors) == 0
    blank = pa.table(
        {"id": ["a"], "camera": ["b"], "time": [0.0], "points": [b""], "descriptors": [b""]}
    )
    _, pairs = matcher.process(None, blank)
    assert len(pairs) == 0
    operator = Aggregator()
    _, seen = operator.process(operator.empty(), pairs.drop_columns(["@row"]))
    assert len(seen) == 0


def test_sightings_are_drawn_into_their_frame(frames: pa.Table, sightings: pa.Table) -> None:
    jpegs = dict(zip(*(frames.column(n).to_pylist() for n in ("id", "image")), strict=True))
    seen = sightings.slice(0, 1).to_pylist()
    plain, drawn = (
        with_sightings(jpegs[seen[0]["id"]], []),
        with_sightings(jpegs[seen[0]["id"]], seen),
    )
    changed = np.argwhere((plain != drawn).any(axis=2))
    middle = np.array([seen[0]["y"], seen[0]["x"]])
    assert len(changed) > 100
    assert np.abs(changed - middle).max() < 120
    assert side_by_side([plain, drawn, plain], 2).shape == (480, 640, 3)


def test_a_library_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"library = .*there are no pictures \(\*.png\) in this"):
        Matcher(str(tmp_path))


def test_without_opencv_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.delitem(sys.modules, "logos.opencv")
    with pytest.raises(SystemExit, match="needs OpenCV, which is not installed: pip install"):
        import logos.opencv  # noqa: F401


def _rows(table: pa.Table) -> Counter[Any]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _totals(table: pa.Table) -> Counter[Any]:
    totals: Counter[Any] = Counter()
    for row in table.to_pylist():
        key = (row["camera"], row["logo"], row["window"])
        totals[key] = max(totals[key], row["frames"])
    return totals
