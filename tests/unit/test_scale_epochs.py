"""What a micro-batch adds, against epochs that are played through."""

from __future__ import annotations

import pytest

from geoflux.scale.epochs import Epochs, SlotWork, epoch_delay, slowest_slot
from geoflux.scale.network import Edge, Network, Operator
from geoflux.scale.sojourn import predict
from geoflux.sim.epoch_line import simulate_chain, simulate_epochs

LINES = {
    "a trigger that is kept": (SlotWork(100.0, 2, 0.001), Epochs(1.0, 0.1, 0.05)),
    "a trigger that is not kept": (SlotWork(100.0, 4, 0.03, 0.0), Epochs(1.0, 0.3, 0.05)),
    "one after the other": (SlotWork(100.0, 4, 0.02), Epochs(0.0, 0.1, 0.05)),
    "constant services": (SlotWork(100.0, 4, 0.02, 0.0), Epochs(0.0, 0.1, 0.05)),
    "whoever is free": (SlotWork(20.0, 4, 0.1, dealt=True), Epochs(0.0, 0.1, 0.05)),
    "one busy slot": (SlotWork(50.0, 4, 0.02, heaviest=0.5), Epochs(0.0, 0.2, 0.05)),
    "hardly anything": (SlotWork(2.0, 4, 0.3), Epochs(0.0, 0.1, 0.05)),
}


@pytest.mark.parametrize("name", LINES)
def test_epochs_take_as_long_as_predicted(name: str) -> None:
    work, epochs = LINES[name]
    delay = epoch_delay(work, epochs)
    assert delay is not None
    true, length = simulate_epochs(work, epochs, 60_000, 1)
    assert delay.total == pytest.approx(true, rel=0.06)
    assert delay.length == pytest.approx(length, rel=0.08)


def test_where_the_time_goes() -> None:
    delay = epoch_delay(SlotWork(100.0, 4, 0.005), Epochs(2.0, 0.3, 0.1))
    assert delay is not None
    assert delay.open == 1.0
    assert delay.overhead == 0.3
    assert delay.commit == 0.1
    assert delay.own == pytest.approx(0.005 + 200 * 0.005 / 4)
    assert delay.slowest > 0
    assert delay.total == delay.open + delay.overhead + delay.own + delay.slowest + delay.commit


def test_slots_that_do_not_keep_up_have_no_delay() -> None:
    assert epoch_delay(SlotWork(100.0, 4, 0.05), Epochs()) is None
    assert epoch_delay(SlotWork(100.0, 4, 0.03, heaviest=0.4), Epochs()) is None


def test_the_slowest_of_more_slots_with_less_each_is_sooner_done() -> None:
    times = [slowest_slot(SlotWork(1.0, k, 0.1), 400.0) for k in (1, 2, 4, 8, 16)]
    assert times[0] == pytest.approx(40.0)
    assert times == sorted(times, reverse=True)
    assert times[3] > 40.0 / 8 * 1.1, "the slowest of eight has more than its share"


@pytest.mark.parametrize("form", ["keyed", "shared"])
@pytest.mark.parametrize("trigger", [0.0, 2.0])
def test_a_chain_of_operators_takes_what_its_epochs_take(form: str, trigger: float) -> None:
    epochs = Epochs(trigger, 0.25, 0.1)
    network = Network(
        tuple(
            Operator(name, rate, 3.0 if name == "a" else 0.0, form=form, epochs=epochs)
            for name, rate in (("a", 2.0), ("b", 1.5), ("c", 30.0))
        ),
        (Edge("a", "b", 1.0), Edge("b", "c", 1.0)),
    )
    counts = {"a": 4, "b": 6, "c": 2}
    works = [
        SlotWork(3.0, counts[o.name], 1 / o.service_rate, dealt=form == "shared")
        for o in network.operators
    ]
    true = simulate_chain(works, epochs, 30_000, 1)
    assert predict(network, counts).total == pytest.approx(true, rel=0.1)
