"""What slots measure of their own work: service times out of batches, emulated ones, and what came
in and out."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_task import Budget, Emulated
from geoflux.engine.rooted import Sampling
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.plan import HashPlan
from geoflux.scale.acks import sampled
from geoflux.scale.services import ServiceSums
from geoflux.state.store import Store
from rooted_by_hand import Inputs, Spreading


@pytest.mark.parametrize(("scv", "fixed"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.02), (3.0, 0.01)])
def test_variability_of_single_services_is_found_in_the_times_of_batches(
    scv: float, fixed: float
) -> None:
    dice = np.random.default_rng(3)
    sizes = dice.integers(1, 60, 4000)
    each = [dice.gamma(n / scv, 0.01 * scv) if scv else 0.01 * n for n in sizes]
    batches = [(int(n), fixed + t) for n, t in zip(sizes, each, strict=True)]
    sums = ServiceSums.of(batches)
    mean = 0.01 + fixed * len(sizes) / sizes.sum()
    assert sums.mean == pytest.approx(mean, rel=0.02)
    assert sums.scv == pytest.approx(scv * (0.01 / mean) ** 2, rel=0.1, abs=1e-9)
    halves = ServiceSums.of(batches[:1000]) + ServiceSums.of(batches[1000:])
    assert halves.scv == pytest.approx(sums.scv, abs=1e-9)
    assert ServiceSums.from_list(sums.to_list()) == sums


def test_what_too_few_batches_say() -> None:
    assert ServiceSums().mean is None
    assert ServiceSums.from_list([]) == ServiceSums.of([]) == ServiceSums()
    assert ServiceSums.of([(5, 1.0), (5, 1.2)]).scv is None
    assert ServiceSums.of([(4, 1.0)], known_squares=0.5).scv == pytest.approx(1.0)
    alike = ServiceSums.of([(4, 1.0), (4, 1.0), (4, 1.0), (4, 1.0)])
    assert (alike.mean, alike.scv) == (0.25, 0.0)


def test_emulated_services_follow_from_ids_alone() -> None:
    rows = pa.table({"@id": [str(n) for n in range(20_000)]})
    slow = Emulated({0: 0.5}, seconds_elsewhere=0.25, services="exponential")
    times = slow.times(3, rows)
    assert times is not None
    assert times.mean() == pytest.approx(0.25, rel=0.03)
    assert times.std() == pytest.approx(0.25, rel=0.05)
    assert (np.sort(times)[::200] == pytest.approx(
        -0.25 * np.log(1 - (np.arange(0, 20_000, 200) + 0.5) / 20_000), rel=0.2, abs=0.01)
    )  # fmt: skip
    assert slow.times(0, rows) == pytest.approx(2 * times)
    some = slow.times(3, rows.slice(77, 5))
    assert some == pytest.approx(times[77:82])
    other = Emulated(seconds_elsewhere=0.25, services="exponential", seed=1).times(3, rows)
    assert other is not None
    assert abs(np.corrcoef(times, other)[0, 1]) < 0.03
    assert Emulated({1: 0.1}).times(0, rows) is None
    constant = Emulated({1: 0.1}).times(1, rows)
    assert constant is not None
    assert set(constant.tolist()) == {0.1}


def measured(setting: Any, source: Any, steps: list[int]) -> list[dict[str, Any]]:
    engine = KeyedEngine.recovered(setting, lambda: HashPlan.initial(2, 4))
    manifests, position = [], 0
    for epoch, step in enumerate(steps):
        span = (position, position + step)
        manifests.append(run_epoch(engine, source, epoch, span))
        position += step
    return manifests


def test_a_slot_tells_what_came_in_what_it_served_and_what_waits() -> None:
    operator, rows = WindowedGroupBy("key", "origin", rows=3), Inputs(60)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.engine.keyed_execute._CHUNK", 2)
        setting = KeyedSetting(
            Store(name), operator, KeyedIntake(operator, "@position", "time", "s"),
            budget=Budget(0.0, 1 << 20), sampling=Sampling(1, 0, 4, {"results": (1,)}),
            emulated=Emulated({0: 1e-4, 1: 1e-4}, services="exponential"),
        )  # fmt: skip
        waiting, known = {0: 0, 1: 0}, 0
        for manifest in measured(setting, rows, [20, 20, 20, 0, 0]):
            for slot in manifest["slots"]:
                sums = ServiceSums.from_list(slot["services"])
                came = waiting[slot["slot"]] + slot["arrivals"]
                assert came == slot["processed"] + slot["carried_rows"]
                waiting[slot["slot"]] = slot["carried_rows"]
                assert sums.timed == sums.known == slot["processed"]
                assert 0 < sums.seconds <= slot["busy_seconds"]
                assert sums.known_squares > 0
                if slot["processed"]:
                    told = slot["derived"]["results"]
                    assert told[0] == slot["processed"]
                    assert told[1] == told[2] <= told[0]
                    known += told[1]
        assert sum(waiting.values()) < 60
        assert known > 0


@pytest.mark.parametrize("one_in", [1, 3])
def test_squares_of_what_came_out_by_stream(one_in: int) -> None:
    operator = Spreading()
    with tempfile.TemporaryDirectory() as name:
        setting = KeyedSetting(
            Store(name), operator, KeyedIntake(operator, "@position", "time", "s"),
            sampling=Sampling(1, 0, one_in, {"a": (1,), "b": (1,)}),
        )  # fmt: skip
        (manifest,) = measured(setting, Inputs(40), [40])
        counts: dict[str, dict[int, int]] = {"a": {}, "b": {}, "log": {}}
        followed = sampled(1, 0, np.arange(40), one_in)
        for position, row in enumerate(Inputs(40)._table.to_pylist()):
            if row["key"] is None or not followed[position]:
                continue
            _, results = operator.process(0, pa.Table.from_pylist([row]))
            for result in results.to_pylist():
                if result["@row"] is not None:
                    mine = counts[result["@stream"]]
                    mine[row["origin"]] = mine.get(row["origin"], 0) + 1
        for stream, mine in counts.items():
            told = [slot["derived"].get(stream, [0, 0, 0]) for slot in manifest["slots"]]
            assert sum(known for _, known, _ in told) == sum(mine.values())
            assert sum(squares for *_, squares in told) == sum(n * n for n in mine.values())
        assert counts["log"]
        files = {stream: sum(n for _, n in files) for stream, files in manifest["streams"].items()}
        for stream, number in files.items():
            told = [slot["derived"].get(stream, [0]) for slot in manifest["slots"]]
            assert sum(count for count, *_ in told) == number
