"""The live display: what is said of a static plan, and of one that follows the load."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from geoflux.cli.display import Display
from geoflux.cli.live import LiveView
from geoflux.plan import GridPlan
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from manifests_by_hand import epoch_of

MOVE = {"kind": "move", "partition": 1, "to": 1}


def shown(folder: Path, epochs: list[dict[str, Any]], width: int = 120) -> str:
    console = Console(width=width, force_terminal=True, color_system=None)
    display = Display(console, folder)
    for m in epochs:
        display.epoch(m)
    with console.capture() as told:
        console.print(display._view(console.width))
    return told.get()


def words(line: str) -> str:
    return " ".join(line.split())


def test_a_static_plan_says_so_and_nothing_of_rounds(tmp_path: Path) -> None:
    text = shown(tmp_path, [epoch_of(n) for n in range(3)])
    assert text.splitlines()[-1].strip() == "static plan"
    assert "swarm" not in text
    assert "1.50 times the mean" in text
    assert "version 1 " in text
    assert "500 ms, p99 500 ms" in text
    assert "slot 0" in text
    assert "20%" in text  # 0.1 s of an epoch's 0.5 s


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_left_out(
    tmp_path: Path, width: int
) -> None:
    busy = [{"slot": s, "busy_seconds": 0.01 * s, "load_seconds": 0.0} for s in range(12)]
    closed = {"number": 1, "stage": "good", "rebalancing": False}
    epochs = [epoch_of(n, "words " * 60, slots=busy, round=closed) for n in range(18)]
    lines = shown(tmp_path, epochs[:9], width).splitlines()
    assert max(len(line) for line in lines) <= width
    text = " ".join(lines)
    for word in ("rate", "latency", "p99", "waiting", "slot 11", "at 8 s", "quarantined"):
        assert word in text, word
    assert len(lines) == len(shown(tmp_path, epochs, width).splitlines())  # keeps its height


def test_what_an_earlier_start_did_counts_too(tmp_path: Path) -> None:
    log = EpochLog(Store(str(tmp_path)))
    for number in range(3):
        log.commit(number, epoch_of(number))
    text = words(shown(tmp_path, [epoch_of(3), epoch_of(4)]))
    assert "events 500 " in text
    assert "matches 35 " in text


def test_a_live_view_is_drawn_again_when_the_terminal_gets_narrower() -> None:
    class Shrinking(Console):
        wide = 100

        @property
        def width(self) -> int:
            return self.wide

    console = Shrinking(file=io.StringIO(), force_terminal=True, color_system=None)
    view = LiveView(console, lambda width: Text("x" * width))
    view.start()
    view.draw()
    console.wide = 30
    view.draw()
    view.stop(keep=True)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[2J" in told, "cleared once"
    assert "x" * 31 not in told.split("\x1b[2J")[-1]
    assert not [t for t in threading.enumerate() if t.name == "live view"]


def test_rounds_and_decisions_are_told(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    for version in (1, 2):
        plan = GridPlan.initial(10, 10, 2)
        store.write_json(f"plans/{version:08d}.json", plan.to_dict())
    closed = {"number": 4, "stage": "bad", "rebalancing": True, "asked": [1]}
    epochs = [
        epoch_of(0, ""),
        epoch_of(1, "rebalance: throughput -3.0%; asked 1", round=closed),
        epoch_of(2, "slot 1 gives to 0", decision={"reason": "slot 1 gives to 0", "changes": [MOVE] * 3}, next_plan=2),
        epoch_of(3, "", plan=2, next_plan=2, round=None),
    ]  # fmt: skip
    lines = [line.strip() for line in shown(tmp_path, epochs).splitlines()]
    assert any("round 4, stage bad, rebalancing" in line for line in lines)
    assert any("version 2, 2 partitions" in line for line in lines)
    assert words(lines[-2]) == "at 2 s 3 moves slot 1 gives to 0"
    assert words(lines[-1]) == "at 2 s no change rebalance: throughput -3.0%; asked 1"


def test_only_the_last_decisions_stay_each_on_a_line(tmp_path: Path) -> None:
    closed = {"number": 1, "stage": "good", "rebalancing": False}
    epochs = [epoch_of(n, f"{n}: " + "words " * 40, round=closed) for n in range(30)]
    lines = shown(tmp_path, epochs).splitlines()
    assert [line.split()[5] for line in lines if line.startswith("at ")] == [
        "29:",
        "28:",
        "27:",
        "26:",
        "25:",
    ]


def test_elsewhere_a_line_tells_of_a_new_plan(tmp_path: Path) -> None:
    console = Console(width=120, force_terminal=False)
    display = Display(console, tmp_path)
    with console.capture() as told:
        for number, (plan, after) in enumerate([(1, 1), (1, 2), (2, 2)]):
            display._said = 0.0
            display.epoch(epoch_of(number, plan=plan, next_plan=after))
    first, second, third = told.get().splitlines()
    assert "plan" not in first + third
    assert second.startswith("epoch 1: ")
    assert second.endswith(", 200 events, 14 matches; plan 2 from now on")
    assert "latency 500 ms, p99 500 ms" in second
    assert "\x1b" not in told.get()
