"""Laws of the simulator: a number means the same row however, wherever and with what it is read."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.engine.source import Slice
from geoflux.sections import HotspotConfig, SimulateConfig
from geoflux.workload import Scenario, SimulatedControl, Simulator
from geoflux.workload.draws import AliasTables, fold, low, words
from geoflux.workload.events import SCHEMA, CityEvents

SPOTS = (
    HotspotConfig(start=0.1, stop=0.6, inside="normal", queries=700),
    HotspotConfig(at=(0.8, 0.7), start=0.3, stop=0.9, intensity="step", queries=300),
)
RUN = Scenario(
    SimulateConfig(rate=20_000, queries=500, query_rate=70.0, hotspots=SPOTS), duration_seconds=10.0
)
START, STOP = 17_001, 117_003
WHOLE = CityEvents(RUN).table(START, STOP)

cuts = st.lists(st.integers(START, STOP), max_size=6).map(lambda c: sorted({START, STOP, *c}))
seeds = st.integers(0, 2**63 - 1)


@settings(max_examples=25, deadline=None)
@given(cuts, st.sets(st.sampled_from(SCHEMA.names), min_size=1))
def test_any_slicing_and_any_columns_give_the_whole(edges: list[int], columns: set[str]) -> None:
    source = Simulator(RUN, 0.0)
    batches = [
        batch
        for a, b in itertools.pairwise(edges)
        for batch in source.read(Slice(0, a, b), frozenset(columns))
    ]
    assert pa.concat_tables(b.table for b in batches).equals(
        WHOLE.select([name for name in SCHEMA.names if name in columns])
    )
    assert np.array_equal(np.concatenate([b.positions for b in batches]), np.arange(START, STOP))


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(0, 2**40), st.integers(0, 50), st.integers(0, 50))
def test_words_do_not_depend_on_where_reading_starts(
    seed: int, start: int, skip: int, count: int
) -> None:
    whole = words(seed, 3, start, skip + count)
    assert np.array_equal(whole[skip:], words(seed, 3, start + skip, count))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 1700), max_size=5))
def test_any_ranges_of_control_records_give_the_whole(edges: list[int]) -> None:
    control = SimulatedControl(RUN, 0.0, clock=_at_the_end)
    last = control.poll({})["record"]
    assert last == 500 + 2 * 700 + 700 + 300
    marks = sorted({0, last, *edges})
    pieces = [
        table
        for a, b in itertools.pairwise(marks)
        for table in control.read({"record": a} if a else {}, {"record": b})
    ]
    (whole,) = control.read({}, {"record": last})
    assert pa.concat_tables(pieces).equals(whole)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 30), min_size=2, max_size=10))
def test_what_is_due_never_falls(moments: list[float]) -> None:
    due = [
        (
            SimulatedControl(RUN, 0.0, clock=lambda m=moment: m).poll({})["record"],
            Simulator(RUN, 0.0, clock=lambda m=moment: m).latest(0, None),
        )
        for moment in sorted(moments)
    ]
    for earlier, later in itertools.pairwise(due):
        assert earlier[0] <= later[0]
        assert earlier[1] <= later[1]


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(0, 10**12), st.integers(1, 200))
def test_events_are_valid_at_any_seed_and_number(seed: int, start: int, count: int) -> None:
    table = CityEvents(Scenario(SimulateConfig(seed=seed))).table(start, start + count)
    lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
    assert ((lon >= -180) & (lon < 180) & (lat >= -90) & (lat < 90)).all()
    assert (np.diff(table["time"].cast(pa.int64()).to_numpy()) >= 0).all()
    assert (table["speed"].to_numpy() >= 0).all()
    assert (table["object"].to_numpy() >= 0).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any), seeds)
def test_alias_tables_draw_by_weight(weights: list[int], seed: int) -> None:
    tables = AliasTables.of([[1], weights])
    # The exact probability that a table gives: its own part and what it is the alias of.
    mass = np.zeros(1 + len(weights))
    for entry in range(1, len(mass)):
        mass[entry] += tables.threshold[entry] / 2**32
        mass[tables.other[entry]] += 1 - tables.threshold[entry] / 2**32
    expected = np.array(weights) / sum(weights)
    assert np.allclose(mass[1:] / len(weights), expected, atol=1e-8)
    drawn = tables.draw(np.int64(1), low(words(seed, 1, 0, 300)))
    assert all(weights[entry - 1] > 0 for entry in drawn.tolist())


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), max_size=20),
    st.floats(-1000, 1000),
    st.floats(1e-3, 1000),
)
def test_folding_stays_inside_and_leaves_what_is_inside(
    values: list[float], low_edge: float, width: float
) -> None:
    given_values = np.array(values)
    high_edge = low_edge + width
    folded = fold(given_values, low_edge, high_edge)
    assert ((folded >= low_edge) & (folded < high_edge)).all()
    untouched = (given_values >= low_edge) & (given_values < high_edge)
    assert np.array_equal(folded[untouched], given_values[untouched])


def _at_the_end() -> float:
    return 1e6
