"""`geoflux bench triostat`: its figures are measured on real tables, its drawings can be read."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from geoflux.bench import triostat, triostat_storage
from geoflux.bench.table import print_result
from geoflux.bench.triostat_epoch import Epoch, Sizes, grid_of, held_by_slot, plan_of
from geoflux.bench.triostat_storage import Footprint, squares, strips
from geoflux.plan import GridPlan, Partition
from geoflux.stats import TrioStat
from geoflux.stats.trio_kernels import FIELDS

TINY = Sizes(
    events=3000, queries=400, sample=(2000, 300), slots=4, side=64, sides=(32, 64),
    partition_counts=(1, 16, 4096), fixed_count=20, fixed_sides=(10, 40), repeats=1,
)  # fmt: skip
ASKED_FOR = (
    "collect_ns_per_event", "collect_one_by_one_ns_per_event", "close_round_us_per_slot",
    "register_ns_per_query", "split_search_us", "stat_bytes_to_coordinator_per_slot",
    "storage_bytes_per_slot", "aqwa_storage_bytes_per_slot", "aqwa_bytes_sent_per_slot",
    "storage_vs_aqwa", "traffic_vs_aqwa", "storage_vs_aqwa_32", "traffic_vs_aqwa_64",
)  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path, str]:
    folder = tmp_path_factory.mktemp("figures")
    said = io.StringIO()
    console = Console(file=said, width=200)
    result = triostat.run_benchmark(console, True, TINY, folder)
    print_result(console, "geoflux bench triostat", result, triostat.BARS)
    return result, folder, said.getvalue()


def test_every_figure_is_there_and_fits_on_a_line_of_json(ran: Any) -> None:
    result, _, said = ran
    assert json.loads(json.dumps(result)) == result
    assert set(triostat.BARS) <= set(result)
    for name in ASKED_FOR:
        assert result[name] > 0
        assert name in said


def test_storage_and_traffic_are_those_of_the_tables(ran: Any) -> None:
    result, _, _ = ran
    plan = plan_of(grid_of(TINY.side), TINY)
    lines = sum(p.rows + p.columns for p in plan.partitions)
    assert result["partitions"] == len(plan.partitions)
    assert result["storage_bytes_per_slot"] == lines * FIELDS * 8 / TINY.slots
    assert result["storage_vs_aqwa"] == pytest.approx(10 * 64 * 64 / (lines * FIELDS))
    assert result["stat_bytes_to_coordinator_per_slot"] == 16
    assert result["aqwa_bytes_sent_per_slot"] == 5 * 8 * 64 * 64 / TINY.slots
    assert result["traffic_vs_aqwa"] == pytest.approx(5 * 64 * 64 / (2 * TINY.slots))


def test_a_footprint_follows_the_arrays_that_are_held() -> None:
    plan = GridPlan.initial(8, 8, slots=2)
    wide = [TrioStat(*TrioStat.empty(p).box, np.zeros((100, FIELDS))) for p in plan.partitions]
    found = Footprint.of(8, held_by_slot(plan, wide))
    assert (found.stored, found.sent, found.partitions) == (2 * 100 * FIELDS * 8, 32, 2)


def test_the_epoch_is_counted_alike_by_cell_and_by_event() -> None:
    epoch = Epoch.made(TINY)
    triostat._collecting(epoch, TINY)  # every way as often as the other
    events = 0
    for part in epoch.parts:
        cells, offsets, width = part.groups
        a, b = (TrioStat.empty(p) for p in (_box(part.stat), _box(part.stat)))
        counts = np.diff(offsets)
        a.receive_cells(cells, counts, counts * (part.candidates + 1.0))
        b.receive(part.columns, part.rows, part.work)
        np.testing.assert_allclose(a.table, b.table)
        np.testing.assert_allclose(part.stat.table, 4 * a.table)
        assert width == part.stat.width
        events += counts.sum()
    assert events == TINY.events


@pytest.mark.parametrize("count", [1, 3, 8, 12, 40, 64])
def test_squares_and_strips_tile_the_grid_and_bound_what_is_needed(count: int) -> None:
    side = 8
    needed = {}
    for cut in (squares, strips):
        boxes = tuple(cut(side, count))
        assert len(boxes) == count
        assert (GridPlan(side, side, 1, boxes, count).raster >= 0).all()
        needed[cut] = triostat_storage.table_bytes(boxes) / FIELDS / 8
    assert needed[strips] == triostat_storage.most_lines(side, count)
    assert triostat_storage.least_lines(side, count) <= needed[squares] + 1e-9
    assert needed[squares] <= needed[strips]


def test_figures_are_whole_xml_that_says_both_sides(ran: Any) -> None:
    _, folder, said = ran
    drawn = sorted(folder.glob("*.svg"))
    assert [re.findall(r"6\.\d", path.name) for path in drawn] == [
        ["6.1"],
        ["6.2"],
        ["6.3"],
        ["6.4"],
    ]
    for path in drawn:
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        words = " ".join(text for text in root.itertext() if text.strip())
        assert "published" in words
        assert "measured" in words
        assert str(path) in said


def test_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    found = [Footprint(32, 4, 4, 9000, 64), Footprint(64, 4, 4, 18000, 64)]
    first = triostat_storage.draw_traffic(tmp_path / "a", found)
    second = triostat_storage.draw_traffic(tmp_path / "b", found)
    assert first.read_bytes() == second.read_bytes()


def _box(stat: TrioStat) -> Partition:
    return Partition(0, *stat.box, slot=0)
