"""Looks at an application: manifests in, the numbers of the model out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_streams import stream_schema
from geoflux.engine.keyed_task import Emulated
from geoflux.engine.rooted import Sampling
from geoflux.engine.stream_events import Upstream, stream_events
from geoflux.plan import HashPlan
from geoflux.scale.decisions import Look
from geoflux.scale.looking import Looking, LookState, unseen
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.observing import NotReady
from geoflux.scale.services import ServiceSums
from geoflux.scale.smoothing import Smoothing
from geoflux.scale.sojourns import Sojourns
from geoflux.scale.stations import Station
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from rooted_by_hand import SEED, STREAMS, Inputs, Spreading

TOPOLOGY = Network(
    (Operator("first", 1.0, 1.0, form="keyed"), Operator("then", 1.0, form="keyed")),
    (Edge("first", "then", 1.0),),
)
STATIONS = (Station("first", {"a": ("then",)}, outside=True), Station("then"))


def manifest(epoch: int, **more: Any) -> dict[str, Any]:
    """An epoch a second, opened at its number: 100 rows for two slots that take 4 ms each, and 50
    results; it takes 0.1 s before the slots work and 0.05 s after."""
    dice = np.random.default_rng(epoch)
    slots = []
    for slot, rows in enumerate((60, 40)):
        each = dice.exponential(0.004, rows)
        batches = [(10, float(some.sum())) for some in each.reshape(-1, 10)]
        slots.append(
            {"slot": slot, "processed": rows, "arrivals": rows, "carried_rows": 0,
             "services": ServiceSums.of(batches).to_list(), "derived": {"a": [rows / 2, rows / 4, rows / 4]}}
        )  # fmt: skip
    work = max(s["services"][1] for s in slots)
    return {
        "epoch": epoch, "opened": float(epoch), "open_seconds": 0.04, "job_seconds": 0.06 + work,
        "committed": epoch + 0.15 + work, "received": 100, "processed": 100, "carried_out": 0,
        "decision": {"reason": "", "changes": []}, "streams": {"a": [["f", 50]]}, "slots": slots,
        "arrivals": [epoch - 1.0, epoch - 0.01], "position": 100 * (epoch + 1), **more,
    }  # fmt: skip


def then(epoch: int, **more: Any) -> dict[str, Any]:
    """The same of the second operator, which reads 40 of 50."""
    slot = {"slot": 0, "processed": 40, "arrivals": 40, "carried_rows": 0, "derived": {},
            "services": ServiceSums.of([(10, 0.1)] * 4).to_list()}  # fmt: skip
    return manifest(epoch, **{
        "received": 40, "processed": 40, "streams": {}, "slots": [slot], "job_seconds": 0.5,
        "committed": epoch + 0.6, "arrivals": None, **more,
    })  # fmt: skip


def looked(looking: Looking, looks: int) -> tuple[Any, LookState]:
    """One look after every five epochs; the state goes through JSON each time."""
    state: Any = looking.first()
    seen: Any = None
    for number in range(looks + 1):
        last = 5 * number
        news = {
            "first": [manifest(e) for e in range(state.next_epoch("first"), last)],
            "then": [then(e) for e in range(state.next_epoch("then"), last)],
        }
        seen, state = looking.look(float(last), news, state)
        state = LookState.from_dict(json.loads(json.dumps(state.to_dict())), looking.smoothing)
    return seen, state


def test_rates_variability_epochs_and_what_waits() -> None:
    look, _ = looked(Looking(TOPOLOGY, STATIONS), 8)
    assert isinstance(look, Look)
    first, second = look.network.operators
    assert first.arrivals == pytest.approx(100.0)
    assert first.service_rate == pytest.approx(250, rel=0.05)
    assert first.service_scv == pytest.approx(1.0, abs=0.2)
    assert (second.service_rate, second.service_scv) == (pytest.approx(100.0), pytest.approx(0.0))
    assert first.heaviest == pytest.approx(0.2)
    (edge,) = look.network.edges
    assert edge.mean == pytest.approx(0.5)
    assert look.allocation == {"first": 2, "then": 1}
    assert look.backlog == {"first": 0.0, "then": 10.0 * 40}
    assert first.epochs is not None
    assert first.epochs.trigger == pytest.approx(1.0)
    assert first.epochs.overhead == pytest.approx(0.1)
    assert first.epochs.commit == pytest.approx(0.05)
    assert look.sojourn is None


def test_a_known_trigger_and_epochs_that_follow_one_another() -> None:
    stations = (Station("first", {"a": ("then",)}, outside=True, trigger=0.0), STATIONS[1])
    looking = Looking(TOPOLOGY, stations)
    state = looking.first()
    _, state = looking.look(0.0, {}, state)
    close = [manifest(e, opened=0.5 * e, committed=0.5 * e + 0.45, job_seconds=0.3,
                      spark_seconds=0.05 if e % 2 else None) for e in range(12)]  # fmt: skip
    look, _ = looking.look(6.0, {"first": close, "then": [then(e) for e in range(6)]}, state)
    assert isinstance(look, Look)
    epochs = look.network.operators[0].epochs
    assert epochs is not None
    work = np.median([max(s["services"][1] for s in m["slots"]) for m in close])
    assert (epochs.trigger, epochs.commit) == (0.0, pytest.approx(0.11))
    assert epochs.overhead == pytest.approx(0.34 - work + 0.05, abs=0.02)


def test_what_is_not_ready() -> None:
    looking = Looking(TOPOLOGY, STATIONS)
    seen, state = looking.look(0.0, {}, looking.first())
    assert seen == NotReady("this is the first look")
    seen, state = looking.look(5.0, {"first": [manifest(0)]}, state)
    assert seen == NotReady("nothing was measured of then")


def test_an_operator_without_epochs_has_no_input_and_slots_that_change_are_told() -> None:
    looking = Looking(TOPOLOGY, STATIONS, Smoothing(window=1))
    _, state = looked(looking, 2)
    grown = {"reason": "", "changes": [{"kind": "resize", "slots": 3}, {"kind": "move"}]}
    news = {"first": [manifest(10, decision=grown)], "then": [then(10)]}
    look, state = looking.look(12.0, news, state)
    assert isinstance(look, Look)
    assert look.allocation == {"first": 3, "then": 1}
    assert look.network.operators[0].arrivals == pytest.approx(50.0)
    seen, _ = looking.look(13.0, {}, state)
    assert isinstance(seen, NotReady)  # nothing was timed in the only window that counts


def test_variability_of_arrivals_is_told_by_epochs() -> None:
    dice = np.random.default_rng(1)
    looking = Looking(TOPOLOGY, STATIONS)
    state, at = looking.first(), 0.0
    look: Any = None
    for number in range(13):
        news = []
        for epoch in range(5 * number, 5 * number + 5):
            arrivals = at + np.cumsum(dice.exponential(0.01, 100))
            news.append(manifest(epoch, arrivals=[float(arrivals[0]), float(arrivals[-1])]))
            at = float(arrivals[-1])
        seconds = [then(e) for e in range(5 * number, 5 * number + 5)]
        look, state = looking.look(5.0 * (number + 1), {"first": news, "then": seconds}, state)
    assert look.network.operators[0].arrival_scv == pytest.approx(1.0, abs=0.6)
    even, _ = looked(looking, 13)
    assert even.network.operators[0].arrival_scv == pytest.approx(0.0, abs=1e-6)


def test_looks_far_apart_say_how_sure_a_mean_is() -> None:
    seen = Sojourns()
    assert seen.mean_and_error() == (None, 0.0)
    for mean in (1.0, 2.0, 3.0):
        seen = seen.after(np.full(100, mean), 6)
    mean, error = seen.mean_and_error()
    assert mean == 2.0
    assert error == pytest.approx(np.std([1, 2, 3]) / np.sqrt(2), rel=1e-6)
    assert seen.after(np.empty(0), 6) == seen
    assert seen.after(np.full(5, 9.0), 1).mean_and_error()[0] == 9.0


def test_a_real_application_in_this_process(tmp_path: Path) -> None:
    """A chain whose second operator takes 4 ms a row: what was emulated is what is seen."""
    operator, stores = Spreading(), [Store(str(tmp_path / name)) for name in ("first", "then")]
    now = [1000.0]
    settings = [
        KeyedSetting(
            store, operator, KeyedIntake(operator, "@position", "time", "s"),
            sampling=Sampling(SEED, number, None if number else 1, {} if number else {"a": (1,)}),
            emulated=Emulated(
                seconds_elsewhere=number * 4e-3, services="exponential", seed=number),
            clock=lambda: now[0],
        )
        for number, store in enumerate(stores)
    ]  # fmt: skip
    engines = [KeyedEngine.recovered(s, lambda: HashPlan.initial(2, 3)) for s in settings]
    columns = stream_schema(operator)
    upstream = Upstream("first", stores[0], STREAMS[:1])
    inner = stream_events(str(tmp_path), tmp_path / "then/source.log", [upstream], columns)
    inputs: Any = Inputs(400)
    looking = Looking(TOPOLOGY, STATIONS)
    logs = {"first": EpochLog(stores[0]), "then": EpochLog(stores[1])}
    _, state = looking.look(now[0], {}, looking.first())
    read = 0
    for epoch in range(4):
        now[0] += 1.0
        run_epoch(engines[0], inputs, epoch, (100 * epoch, 100 * epoch + 100))
        now[0] += 2.0
        end = inner.latest(read, 1000)
        run_epoch(engines[1], inner, epoch, (read, end))
        read = end
        look, state = looking.look(now[0], unseen(logs, state), state)
    assert isinstance(look, Look)
    kept = int(np.sum(np.arange(400) % 9 != 5))
    assert look.network.operators[0].arrivals == pytest.approx(400 / 12)
    assert look.network.edges[0].mean == pytest.approx(read / kept)
    # A machine that is busy with something else sleeps longer, never shorter.
    assert 80 < look.network.operators[1].service_rate < 280
    assert 0.2 < look.network.operators[1].service_scv < 1.8
    assert look.backlog == {"first": 0.0, "then": 0.0}
    assert len(state.trees) == 0
    assert look.sojourn is not None
    assert 0 <= look.sojourn <= 2.0
    assert look.error > 0
