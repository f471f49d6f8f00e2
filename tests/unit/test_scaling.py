"""The scaling of an application: epoch logs in, wanted slots and processors out; also after a
restart."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from geoflux.bench.drs_station import Station as Passing
from geoflux.cli.topology_report import scaling_table
from geoflux.config import Config
from geoflux.scale.decisions import ScaleDecision
from geoflux.scale.executors import Answer
from geoflux.scale.scaler import ScaleRecord
from geoflux.scale.services import ServiceSums
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from geoflux.topology import Node, Topology
from geoflux.topology.following import samplings
from geoflux.topology.scaling import Scaling, network_of, stations_of
from geoflux.topology.settings import configs_of

LOOP = Topology(
    (
        Node("generate", Passing({"results": 1.0})),
        Node("detect", Passing({"again": 0.3, "reports": 0.5}), ("generate", "detect.again")),
        Node("report", Passing(), "detect.reports"),
        Node("watch", Passing(), ("detect.again", "detect.reports")),
    )
)
ONE = Topology((Node("work", Passing(), slots=1),))


class Cores:
    """As many processors as are wanted, up to a number; notes the wishes."""

    def __init__(self, most: int | None = 8) -> None:
        self.wishes: list[int] = []
        self._most = most

    def most(self) -> int | None:
        return self._most

    def want(self, processors: int) -> Answer:
        self.wishes.append(processors)
        return Answer(processors, processors, "met", "")


def test_the_network_has_an_edge_for_every_reader_and_loops() -> None:
    edges = {(edge.source, edge.target) for edge in network_of(LOOP).edges}
    assert edges == {
        ("generate", "detect"), ("detect", "detect"), ("detect", "report"), ("detect", "watch"),
    }  # fmt: skip
    stations = {s.name: s for s in stations_of(LOOP, configs_of(LOOP, Config()))}
    assert stations["detect"].readers == {
        "again": ("detect", "watch"),
        "reports": ("report", "watch"),
    }
    assert [name for name, s in stations.items() if s.outside] == ["generate"]


def test_every_reader_of_a_stream_acknowledges_for_itself() -> None:
    found = samplings(LOOP, 7, 50)
    assert [found[name].one_in for name in LOOP.by_name] == [50, None, None, None]
    assert found["detect"].readers == {"again": (1, 3), "reports": (2, 3)}
    assert found["report"].readers == {}


def epoch(number: int, slots: int, rows: int = 90, each: float = 0.01) -> dict[str, Any]:
    """An epoch a second; rows take 10 ms, all of them are followed and done at its end."""
    at = float(number)
    share = rows // slots
    reports = [
        {"slot": slot, "processed": share, "arrivals": share, "carried_rows": 0, "derived": {},
         "services": ServiceSums.of([(10, 10 * each)] * (share // 10)).to_list()}
        for slot in range(slots)
    ]  # fmt: skip
    roots = [[number * 100 + k + 1, number * 100 + k + 1, number * rows + k] for k in range(5)]
    return {
        "epoch": number, "opened": at, "open_seconds": 0.01, "job_seconds": share * each,
        "committed": at + share * each, "received": rows, "processed": rows, "carried_out": 0,
        "decision": {"reason": "", "changes": []}, "streams": {}, "slots": reports,
        "arrivals": [at - 1.0, at - 0.01], "position": (number + 1) * rows, "roots": roots,
        "acks": [root[:2] for root in roots],
    }  # fmt: skip


def scaling(folder: Path, cores: Cores, told: list[ScaleDecision], **more: Any) -> Scaling:
    config = Config.from_dict(
        {"scale": {"mode": "on", "longest": "1s", "look": "5s", "apart": "0s", "patience": 2,
                   "processors": 20, "settle": "5s"} | more}
    )  # fmt: skip
    logs = {"work": EpochLog(Store(str(folder / "work")))}
    return Scaling(
        ONE, configs_of(ONE, config), Store(str(folder)), logs, cores,
        lambda decision, _: told.append(decision),
    )  # fmt: skip


def test_too_slow_an_operator_gets_slots_and_a_restart_remembers(tmp_path: Path) -> None:
    log, cores, told = EpochLog(Store(str(tmp_path / "work"))), Cores(), list[ScaleDecision]()
    some = scaling(tmp_path, cores, told)
    assert some.wanted("work")() is None
    for number in range(30):
        log.commit(number, epoch(number, 1))
        if number % 5 == 0:
            some.step(number + 0.95, lambda _: 0)
    changes = [decision for decision in told if decision.carried_out]
    assert [change.action for change in changes][:1] == ["scale_out"], [d.reason for d in told]
    assert changes[0].measured == pytest.approx(1.9, abs=0.5), "waiting for an epoch, and in it"
    wanted = some.wanted("work")()
    assert wanted is not None
    assert not isinstance(wanted, int)
    assert wanted.slots == changes[-1].after["work"] > 1
    assert wanted.reason == changes[-1].reason
    assert cores.wishes[-1] == wanted.slots
    again = scaling(tmp_path, cores, told)
    after = again.wanted("work")()
    assert after is not None
    assert replace(wanted, reason="as decided before") == after
    looks = len(ScaleRecord(Store(str(tmp_path))).decisions())
    assert again.step(100.0, lambda _: 0) is None, "nobody looked while it was down"
    assert len(ScaleRecord(Store(str(tmp_path))).decisions()) == looks


def test_no_more_is_asked_for_than_there_can_be(tmp_path: Path) -> None:
    log, cores, told = EpochLog(Store(str(tmp_path / "work"))), Cores(2), list[ScaleDecision]()
    some = scaling(tmp_path, cores, told, longest="500ms")
    for number in range(30):
        log.commit(number, epoch(number, 1))
        if number % 5 == 0:
            some.step(number + 0.95, lambda _: 0)
    assert max(cores.wishes) <= 2


def test_between_two_looks_nothing_is_done(tmp_path: Path) -> None:
    told: list[ScaleDecision] = []
    some = scaling(tmp_path, Cores(), told)
    log = EpochLog(Store(str(tmp_path / "work")))
    assert some.step(1.0, lambda _: 0) is None, "the first look"
    for number in range(5):
        log.commit(number, epoch(number, 1))
    assert some.step(5.9, lambda _: 0) is None, "too early"
    assert some.step(6.0, lambda _: 0) is not None


def test_the_report_tells_every_change_and_the_last_look(tmp_path: Path) -> None:
    log, told = EpochLog(Store(str(tmp_path / "work"))), list[ScaleDecision]()
    some = scaling(tmp_path, Cores(), told)
    for number in range(30):
        log.commit(number, epoch(number, 1))
        if number % 5 == 0:
            some.step(number + 0.95, lambda _: 0)
    page = scaling_table(ScaleRecord(Store(str(tmp_path))).decisions())
    change = next(decision for decision in told if decision.carried_out)
    assert f"slots 1 to {change.after['work']}; an input takes" in page
    assert escape(change.reason) in page
    assert escape(told[-1].reason) in page, "the last look, whatever it led to"
    assert page.count("<tr>") == len([d for d in told if d.action != "none"]) + 2, "with the head"
