"""Verification of a sketch: clean where it is right, and whatever was tampered with is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import geoflux
from geoflux.cli.main import app
from geoflux.config import Config
from geoflux.engine import sketch_reader
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.sketch_reader import sketch_of
from geoflux.engine.sketch_verify import SketchVerification, compare
from geoflux.keyed_api import first_plan, setting_of
from geoflux.operators.sketching import Sketch
from geoflux.run_inputs import opened_inputs
from geoflux.sketch.forest import Forest, Observations
from geoflux.state.store import Store
from geoflux.workload.weather import FEATURES, made_up_weather

START = 1_774_396_800
WEATHER = made_up_weather(8, 4_000, START, 12 * 3600)


def ran(folder: Path, epochs: int = 5, **sketch: Any) -> Path:
    (folder / "weather").mkdir(parents=True)
    table = WEATHER.table().to_pandas()
    table.loc[3, "lat"], table.loc[9, "t2m_k"] = 95.0, np.nan
    rows = pa.Table.from_pandas(table)
    pq.write_table(rows, folder / "weather" / "w.parquet", row_group_size=700)
    config = Config.from_dict(
        {
            "source": {"kind": "files", "path": str(folder / "weather")},
            "engine": {"slots": 2},
            "sketch": {"features": FEATURES, "tree_bits": 5, "region_bits": 8, "steady_rows": 60,
                       "leaves": 4, **sketch},
        }
    )  # fmt: skip
    store, operator = Store(str(folder / "out")), sketch_of(config)
    source = opened_inputs(config, store, None, "Sketch").events
    assert source is not None
    source.latest(0, len(rows))
    engine = KeyedEngine.recovered(
        setting_of(operator, config, store), lambda: first_plan(config, operator)
    )
    ends = [len(rows) * n // epochs for n in range(epochs + 1)]
    for epoch in range(epochs):
        run_epoch(engine, source, epoch, (ends[epoch], ends[epoch + 1]))
    return folder / "out"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("verified"))


def test_a_run_is_verified_from_the_command_line(out: Path) -> None:
    found = geoflux.verify_sketch(out)
    assert found.is_clean, found
    assert (found.observations, found.quarantined, found.epochs) == (3_999, 1, 5)
    ended = CliRunner().invoke(app, ["verify", str(out), "--json"])
    assert ended.exit_code == 0, ended.output
    assert '"clean": true' in ended.stdout


def _tampered(
    out: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Forest], Forest]
) -> SketchVerification:
    """What is found where one sketchlet is another one than was kept."""
    real = sketch_reader.SketchReader.read

    def read(self: Any, *arguments: Any) -> Any:
        sketch = real(self, *arguments)
        first, *rest = sketch.forests
        return replace(sketch, forests=(change(first), *rest))

    monkeypatch.setattr(sketch_reader.SketchReader, "read", read)
    found = geoflux.verify_sketch(out)
    assert not found.is_clean
    return found


def _leaf(forest: Forest, column: str, by: float, heavy: bool = False) -> Forest:
    layer = forest.layers[0]
    changed = getattr(layer, column).copy()
    place = 0 if heavy or column in ("m2", "cross", "low", "high") else int(layer.count.argmax())
    changed[place] = changed[place] + np.asarray(by).astype(changed.dtype)
    return replace(forest, layers=(replace(layer, **{column: changed}), *forest.layers[1:]))


@pytest.mark.parametrize(
    ("column", "by", "told"),
    [
        ("count", -1, "missing"), ("count", 2, "doubled"), ("mean", 1e-7, "wrong_bins"),
        ("m2", 1e-2, "wrong_bins"), ("low", -1e-9, "wrong_bins"), ("high", 1e-9, "wrong_bins"),
        ("cross", 1e-2, "wrong_bins"), ("bins", 1, "wrong_leaves"), ("region", 1 << 7, "missing"),
    ],
)  # fmt: skip
def test_a_leaf_that_was_changed_is_found(
    out: Path, monkeypatch: pytest.MonkeyPatch, column: str, by: float, told: str
) -> None:
    found = _tampered(out, monkeypatch, lambda forest: _leaf(forest, column, by))
    assert getattr(found, told) > 0, found
    if told != "wrong_leaves":
        assert found.examples


def test_a_tree_that_is_gone_or_there_twice_is_found(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(forest: Forest) -> Forest:
        return forest.cut(int(forest.trees[-1]), forest.schema.tree_bits)

    with pytest.MonkeyPatch.context() as patch:
        found = _tampered(out, patch, without)
    assert found.missing > 0
    assert any("in no sketchlet" in problem for problem in found.problems)
    whole = sketch_reader.open_sketch(out)
    found = _tampered(out, monkeypatch, lambda forest: whole.forests[1])
    assert found.doubled > 0
    assert any("in two sketchlets" in problem for problem in found.problems)


def test_sets_and_densities_that_were_changed_are_found(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def emptied(forest: Forest) -> Forest:
        blocks = dict(forest.sets.blocks)
        key = min(blocks)
        words, coupons = blocks[key].together
        shorter = replace(blocks[key], recent=((words[1:], coupons[1:]),))
        return replace(forest, sets=replace(forest.sets, blocks=blocks | {key: shorter}))

    with pytest.MonkeyPatch.context() as patch:
        assert _tampered(out, patch, emptied).wrong_sets == 1

    def moved(forest: Forest) -> Forest:
        mixtures = forest.densities.mixtures.copy()
        mixtures[0, 0, 1, 0] += 1.0
        return replace(forest, densities=replace(forest.densities, mixtures=mixtures))

    assert _tampered(out, monkeypatch, moved).wrong_densities == 1


def test_a_segment_on_disk_that_was_changed_is_found(tmp_path: Path) -> None:
    """The bytes of a mean, flipped in the file; the command ends with 1 and says where."""
    out = ran(tmp_path, epochs=1)
    folder = out / "state"
    segment = max(folder.iterdir(), key=lambda path: path.stat().st_size)
    data = bytearray(segment.read_bytes())
    value = sketch_reader.open_sketch(out).forests[0].leaves().mean[0, 0]
    place = data.find(np.float64(value).tobytes())
    assert place > 0
    data[place : place + 8] = np.float64(value + 0.25).tobytes()
    segment.write_bytes(data)
    ended = CliRunner().invoke(app, ["verify", str(out)])
    assert ended.exit_code == 1
    assert "the sketch is wrong" in ended.stdout
    assert "region" in ended.stdout


def test_what_was_made_ready_is_compared_as_well(tmp_path: Path) -> None:
    out = ran(tmp_path, epochs=3)
    sketch_reader.SketchReader(out).made_ready()
    assert geoflux.verify_sketch(out).is_clean
    (ready,) = (out / "state").glob("ready*.arrow")
    data = bytearray(ready.read_bytes())
    value = sketch_reader.open_sketch(out).forests[0].leaves().mean[0, 0]
    place = data.find(np.float64(value).tobytes())
    data[place : place + 8] = np.float64(value + 0.25).tobytes()
    ready.write_bytes(data)
    found = geoflux.verify_sketch(out)
    assert found.problems == ["what was made ready of sketchlet 0 is not the same"]


def test_what_was_folded_and_came_late_is_compared_by_the_coarsest_bin() -> None:
    operator = Sketch(sketch_of(Config.from_dict({"sketch": {"features": FEATURES, "tree_bits": 4,
                      "region_bits": 6, "steady_rows": 100}})).schema)  # fmt: skip
    state, batches = operator.empty(), []
    for day in (0, 3, 30, 60, 120, 5, 121):  # one of them comes late
        some = made_up_weather(day, 400, START + day * 86_400, 3600)
        rows = some.table().append_column("@time", pa.array(some.time * 1_000_000))
        state, _ = operator.process(state, rows)
        batches.append(operator.observations(rows))
    levels = set((state.leaves().time & 7).tolist())
    assert len(levels) > 1, "some of it was folded"
    found = SketchVerification()
    compare(operator, Observations.joined(batches), [state], found)
    assert found.is_clean, found
    lost = SketchVerification()
    compare(operator, Observations.joined(batches[1:]), [state], lost)
    assert lost.doubled + lost.extra == 400
