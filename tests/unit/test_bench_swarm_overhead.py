"""What SWARM's operations take is measured on a run that does not notice."""

from __future__ import annotations

import hashlib
import io
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from geoflux.bench import swarm_scenarios as scenes
from geoflux.bench.emulated import Emulation
from geoflux.bench.swarm_overhead import overheads

KEYS = {
    "route_ns_per_event", "index_update_us", "decide_us", "pair_us", "collect_stat_ns_per_event",
    "close_slot_us", "search_us", "install_ms",
}  # fmt: skip
EPOCHS = 8


def emulation(folder: Path) -> Emulation:
    spots = [scenes.spot([0.02, 0.05], 0.25, 1.0, 0.4, intensity="step", queries=5000)]
    return Emulation(folder, scenes.simulated("swarm", 20_000, 20_000, EPOCHS, spots))


def files(run: Emulation) -> dict[str, str]:
    root = Path(run.store.root)
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def matches(run: Emulation) -> dict[tuple[int, str], int]:
    """Matches by epoch and query: what the run is for, whatever its plans were."""
    table = pq.read_table(run.store.path("counts")).group_by(["epoch", "query_id"])
    summed = table.aggregate([("count", "sum")])
    rows = zip(*(summed.column(n).to_pylist() for n in summed.column_names), strict=True)
    return {(epoch, query): count for epoch, query, count in rows}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run = emulation(tmp_path_factory.mktemp("run"))
    run.run(EPOCHS // 2 + 1)
    assert run.engine.plan.version > 1, "the plan has changed, so that statistics are inherited"
    before = (files(run), run.engine.plan, dict(run.last), len(run.engine.catalogue))
    said, figures = io.StringIO(), tmp_path_factory.mktemp("figures")
    result = overheads(Console(file=said, width=160), run, figures)
    after = (files(run), run.engine.plan, dict(run.last), len(run.engine.catalogue))
    return {
        "run": run, "before": before, "after": after, "result": result, "figures": figures,
        "said": said.getvalue(),
    }  # fmt: skip


def test_every_operation_took_some_time_and_is_in_the_table(measured: dict[str, Any]) -> None:
    assert set(measured["result"]) == KEYS
    assert all(math.isfinite(value) and value > 0 for value in measured["result"].values())
    assert measured["said"].count("│ 6.12 ") == measured["said"].count("│ 6.13 ") == 4


def test_both_figures_are_drawn(measured: dict[str, Any]) -> None:
    drawn = sorted(measured["figures"].iterdir())
    assert [path.name for path in drawn] == ["figure-6-12.svg", "figure-6-13.svg"]
    for path in drawn:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        assert path.read_text().count("not given in the text") == 4


def test_measuring_leaves_the_run_as_it_was(measured: dict[str, Any], tmp_path: Path) -> None:
    assert measured["after"] == measured["before"]
    run, unmeasured = measured["run"], emulation(tmp_path)
    run.run(EPOCHS - run.engine.last - 1)
    unmeasured.run(EPOCHS)
    assert run.last["epoch"] == unmeasured.last["epoch"] == EPOCHS - 1
    assert run.last["live_queries"] == unmeasured.last["live_queries"]
    assert matches(run) == matches(unmeasured)
