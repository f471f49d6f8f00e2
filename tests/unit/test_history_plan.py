"""The static plan from history: a cover, all slots used, and much more even than the uniform one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.balance.history import Sample, _halved, _Piece, history_plan
from geoflux.plan import GridPlan, Partition, Split
from geoflux.spatial.grid import CellRanges
from geoflux.workload.clusters import Clusters


def sample_of(
    size: tuple[int, int], x: npt.NDArray[np.float64], y: npt.NDArray[np.float64],
    focus: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]], side: float,
) -> Sample:  # fmt: skip
    """Points and squares in the unit square, as cells."""

    def cells(values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int32]:
        return np.clip((values * count).astype(np.int32), 0, count - 1)

    columns, rows = size
    fx, fy = focus
    ranges = CellRanges(
        cells(fx, columns), cells(fy, rows), cells(fx + side, columns), cells(fy + side, rows)
    )
    return Sample(cells(x, columns), cells(y, rows), ranges)


def clustered(size: tuple[int, int], points: int = 20_000, queries: int = 5_000) -> Sample:
    clusters = Clusters(seed=3, count=200)
    x, y = clusters.points(points, stream=0)
    return sample_of(size, x, y, clusters.points(queries, stream=1), 0.0016)


def costs(plan: GridPlan, sample: Sample) -> npt.NDArray[np.float64]:
    """N x Q x (N + Q) of every partition, summed per slot."""
    loads = np.zeros(plan.slots)
    for p in plan.partitions:
        q = sample.queries
        n = int(
            ((sample.columns >= p.col0) & (sample.columns < p.col1)
             & (sample.rows >= p.row0) & (sample.rows < p.row1)).sum()
        )  # fmt: skip
        m = int(
            ((q.col0 < p.col1) & (q.col1 >= p.col0) & (q.row0 < p.row1) & (q.row1 >= p.row0)).sum()
        )
        loads[p.slot] += float(n) * m * (n + m)
    return loads


def check_cover(plan: GridPlan) -> None:
    assert sum(p.cells for p in plan.partitions) == plan.columns * plan.rows
    assert plan.raster.min() >= 0  # raises where partitions overlap
    assert {p.slot for p in plan.partitions} == set(range(plan.slots))
    ids = [p.id for p in plan.partitions]
    assert len(set(ids)) == len(ids)
    assert max(ids) < plan.next_id


@pytest.mark.parametrize("slots", [1, 2, 4, 22])
def test_a_clustered_sample_is_spread_evenly(slots: int) -> None:
    sample = clustered((400, 400))
    plan = history_plan(400, 400, slots, sample)
    check_cover(plan)
    mine, uniform = costs(plan, sample), costs(GridPlan.initial(400, 400, slots), sample)
    assert mine.sum() > 0
    if slots > 1:
        busiest = mine.max() / mine.mean()
        assert busiest < 1.1
        assert busiest - 1 < (uniform.max() / uniform.mean() - 1) / 2
        assert mine.max() < uniform.max() / 20


def test_the_same_sample_gives_the_same_plan() -> None:
    assert history_plan(50, 50, 4, clustered((50, 50))) == history_plan(
        50, 50, 4, clustered((50, 50))
    )


def nothing() -> npt.NDArray[np.int32]:
    return np.empty(0, np.int32)


@pytest.mark.parametrize("kept", ["nothing", "points", "queries"])
def test_a_sample_without_cost_gives_the_uniform_plan(kept: str) -> None:
    full = clustered((30, 30))
    none = CellRanges(nothing(), nothing(), nothing(), nothing())
    sample = {
        "nothing": Sample(nothing(), nothing(), none),
        "points": Sample(full.columns, full.rows, none),
        "queries": Sample(nothing(), nothing(), full.queries),
    }[kept]
    assert history_plan(30, 30, 7, sample) == GridPlan.initial(30, 30, 7)


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 7))
def test_the_cut_is_the_one_whose_costlier_half_is_cheapest(
    seed: int, columns: int, rows: int
) -> None:
    draw = np.random.default_rng(seed)
    x, y = draw.beta(0.5, 0.5, (2, 30))
    sample = sample_of((columns, rows), x, y, tuple(draw.beta(0.5, 0.5, (2, 12))), 0.2)
    whole = GridPlan(columns, rows, 2, (Partition(0, 0, 0, columns, rows, 0),), 1)
    cuts = [Split(0, "columns", at, 0, 1) for at in range(1, columns)]
    cuts += [Split(0, "rows", at, 0, 1) for at in range(1, rows)]
    halves = _halved(_Piece(whole.partitions[0], sample.columns, sample.rows, sample.queries))
    if halves is None:
        assert cuts == []
        return
    assert sum(half.box.cells for half in halves) == columns * rows
    assert max(half.cost for half in halves) == min(
        costs(whole.apply(cut), sample).max() for cut in cuts
    )


@pytest.mark.parametrize("size", [(1, 1), (1, 8), (5, 1), (3, 3), (100, 100)])
def test_a_hotspot_in_a_single_cell_comes_to_an_end(size: tuple[int, int]) -> None:
    columns, rows = size
    slots = min(4, columns * rows)
    at = np.full(1000, columns - 1, np.int32), np.full(1000, rows // 2, np.int32)
    ranges = CellRanges(at[0][:50], at[1][:50], at[0][:50], at[1][:50])
    plan = history_plan(columns, rows, slots, Sample(*at, ranges))
    check_cover(plan)
    assert len(plan.partitions) <= max(8 * slots, slots)


@settings(max_examples=60)
@given(
    st.integers(1, 20), st.integers(1, 20), st.integers(1, 12), st.integers(0, 2**32),
    st.integers(0, 60), st.integers(0, 30),
)  # fmt: skip
def test_any_sample_gives_a_cover(
    columns: int, rows: int, slots: int, seed: int, points: int, queries: int
) -> None:
    slots = min(slots, columns * rows)
    draw = np.random.default_rng(seed)
    x, y = draw.beta(0.3, 0.3, (2, points))
    fx, fy = draw.beta(0.3, 0.3, (2, queries))
    sample = sample_of((columns, rows), x, y, (fx, fy), float(draw.random()))
    check_cover(history_plan(columns, rows, slots, sample))
