"""What `geoflux bench guard` counts, and the store of its simulated cluster."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from geoflux.bench import guard, guard_variants
from geoflux.bench.figures import FOLDER
from geoflux.bench.guard_bench import Sizes
from geoflux.bench.guard_runs import (
    CROWDS,
    Outcome,
    Scale,
    Scene,
    by_minute,
    recovery_minutes,
    run_scene,
)
from geoflux.bench.guard_slots import Carried, Costs, Size
from geoflux.bench.guard_store import QueryStore
from geoflux.cli.main import app
from geoflux.errors import ConfigError
from geoflux.workload.attackers import Attack
from geoflux.workload.requests import REGISTER, SNAPSHOT, TERMINATE, Asked


def outcome(missed: tuple[str, ...], before: tuple[int, ...]) -> Outcome:
    return Outcome(
        (1.0,), (1.0,), 3, 2, ("n",), missed, len(before), (0.5,) * len(before),
        (1.0,) * len(before), before, before,
    )  # fmt: skip


def test_attackers_are_pooled_whichever_run_they_were_in() -> None:
    figures = guard.detection([outcome(("a",), (2, 4)), outcome((), (3,))], [outcome((), (9,))])
    assert figures["malicious_hotspots_before_block_mean"] == 3.0
    assert (figures["false_negatives"], figures["false_positives"]) == (1, 2)
    assert figures["published_blocked"] == 1
    assert figures["malicious_hotspots"] == 4


def test_minutes_are_means_of_their_epochs_and_a_rest_is_dropped() -> None:
    assert by_minute([1.0] * 12 + [3.0] * 12 + [9.0] * 11) == (1.0, 3.0)


def test_recovery_is_counted_from_the_lowest_minute_of_the_attack() -> None:
    calm = [10.0] * 6
    assert recovery_minutes([1, 10, 8, 4, 8, 10], calm, start=2) == 2.0
    assert recovery_minutes([10, 10, 8, 4, 8, 9], calm, start=2) is None


def test_availability_is_the_share_that_can_be_carried() -> None:
    assert Carried(0.0, 50.0, 100.0).available == 0.5
    assert Carried(0.0, 500.0, 100.0).available == 1.0


def test_a_smaller_population_costs_as_much() -> None:
    costs = Costs()
    assert costs.of_scale(0.25).check * 250 == pytest.approx(costs.check * 1000)
    assert costs.of_scale(0.25).event == costs.event


def asked(rows: list[tuple[int, int, int, float, float]], names: tuple[str, ...]) -> Asked:
    op, user, key, x, y = (np.array(column) for column in zip(*rows, strict=True))
    return Asked(names, op.astype(np.uint8), user, key, x.astype(float), y.astype(float))


def test_the_store_has_what_was_registered_and_not_ended() -> None:
    store = QueryStore(10)
    none = np.zeros(3, np.bool_)
    came, went, once = store.take(
        asked([(REGISTER, 0, 0, 0.05, 0.05), (REGISTER, 1, 1, 0.95, 0.95),
               (SNAPSHOT, 1, 2, 0.05, 0.15)], ("a", "b")), none,
    )  # fmt: skip
    assert (came.tolist(), went.tolist(), once.tolist()) == ([0, 99], [], [10])
    user, _, at = store.inside((0, 0, 5, 5))
    assert user.tolist() == [0, 1]  # the snapshot too
    assert at[:, 0].tolist() == [0.5, 0.5]
    ends = asked([(TERMINATE, 0, 0, 0.0, 0.0)], ("a",))
    assert store.located(ends)[:, 0].tolist() == [0.5, 0.5]
    assert store.take(ends, none[:1])[1].tolist() == [0]
    store.forget_snapshots(99)
    assert not len(store.inside((0, 0, 5, 5))[0])
    assert store.per_cell.sum() == 1


def test_what_is_refused_is_not_there_and_its_end_is_nothing() -> None:
    store = QueryStore(10)
    store.take(asked([(REGISTER, 0, 0, 0.5, 0.5)], ("a",)), np.ones(1, np.bool_))
    _, went, _ = store.take(asked([(TERMINATE, 0, 0, 0.0, 0.0)], ("a",)), np.zeros(1, np.bool_))
    assert not len(went)
    assert not store.per_cell.any()


def test_an_end_that_is_refused_changes_nothing() -> None:
    store = QueryStore(10)
    store.take(asked([(REGISTER, 0, 0, 0.5, 0.5)], ("a",)), np.zeros(1, np.bool_))
    store.take(asked([(TERMINATE, 0, 0, 0.0, 0.0)], ("a",)), np.ones(1, np.bool_))
    assert store.per_cell.sum() == 1


def test_an_end_in_the_batch_of_its_registration_is_where_that_is() -> None:
    store = QueryStore(10)
    both = asked([(REGISTER, 0, 5, 0.25, 0.75), (TERMINATE, 0, 5, 0.0, 0.0)], ("a",))
    assert store.located(both)[:, 1].tolist() == [2.5, 7.5]
    store.take(both, np.zeros(2, np.bool_))
    assert not store.per_cell.any()


def test_a_run_tells_who_made_hotspots_and_who_was_blocked() -> None:
    found = run_scene(Scene(Attack(users=4)), "robust", 1, Scale(0.1, 8.0, settling=0.0))
    assert found.blocked == 4
    assert not found.wrongly
    assert not found.missed
    assert min(found.changes_before) >= 2
    assert set(found.before_block) == {1}
    assert len(found.throughput) == 8
    calm = run_scene(Scene(), "robust", 1, Scale(0.1, 6.0, settling=1.0))
    assert (calm.made, calm.blocked, calm.wrongly) == (0, 0, ())
    assert len(calm.throughput) == 6


@pytest.mark.long
def test_every_figure_is_there_and_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # fmt: skip
    scale = Scale(0.04, 7.0, 0.0, Size(side=100))
    tiny = Sizes(scale, (1,), (1,), (600,), (10,), ("rotating",))
    monkeypatch.setattr(guard, "QUICK", tiny)
    monkeypatch.setattr(guard_variants, "CROWDS", {"quiet_night": CROWDS["quiet_night"]})
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["bench", "guard", "--quick", "--json"])
    result = json.loads(ended.stdout.splitlines()[-1])
    assert set(guard.BARS) - {"unguarded_throughput_1200"} <= set(result)
    assert result["false_positives"] == result["innocent_crowds_blocked"] == 0
    drawn = {path.stem for path in (tmp_path / FOLDER).iterdir()}
    assert drawn == {f"figure-6-{number}" for number in (16, 18, 19, 20, 21, 22, 23)}


def test_unknown_parts_are_named() -> None:
    with pytest.raises(ConfigError, match="no part speed"):
        guard.run_benchmark(Console(quiet=True), True, parts=["speed"])
