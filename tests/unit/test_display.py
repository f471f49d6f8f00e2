"""The live display: what is said of a static plan, and of one that follows the load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from geoflux.cli.display import Display
from geoflux.config import Config
from geoflux.plan import GridPlan
from geoflux.state.store import Store

MOVE = {"kind": "move", "partition": 1, "to": 1}


def epoch_of(number: int, reason: str = "static plan", **changed: Any) -> dict[str, Any]:
    slots = [{"slot": s, "busy_seconds": 0.1 + 0.2 * s, "load_seconds": 0.0} for s in range(2)]
    return {
        "epoch": number, "opened": 10.0 + number, "committed": 10.5 + number, "plan": 1, "next_plan": 1,
        "processed": 100, "matches": 7, "quarantined": 0, "live_queries": 5, "slots": slots,
        "decision": {"reason": reason, "changes": []},
    } | changed  # fmt: skip


def shown(folder: Path, epochs: list[dict[str, Any]]) -> str:
    console = Console(width=120, force_terminal=True, color_system=None)
    display = Display(console, Config.from_dict({"engine": {"slots": 2}}), folder)
    for m in epochs:
        display.epoch(m)
    with console.capture() as told:
        console.print(display._view())
    return told.get()


def words(line: str) -> str:
    return " ".join(line.split())


def test_a_static_plan_says_so_and_nothing_of_rounds(tmp_path: Path) -> None:
    text = shown(tmp_path, [epoch_of(n) for n in range(3)])
    assert text.splitlines()[-1].strip() == "static plan"
    assert "swarm" not in text
    assert "1.50 times the mean" in text
    assert "version 1 " in text


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
    assert any(line.endswith("round 4, stage bad, rebalancing") for line in lines)
    assert any("version 2, 2 partitions" in line for line in lines)
    assert words(lines[-2]) == "at 0 s 3 moves slot 1 gives to 0"
    assert words(lines[-1]) == "at 0 s no change rebalance: throughput -3.0%; asked 1"


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
    display = Display(console, Config.from_dict({"engine": {"slots": 2}}), tmp_path)
    with console.capture() as told:
        for number, (plan, after) in enumerate([(1, 1), (1, 2), (2, 2)]):
            display._said = 0.0
            display.epoch(epoch_of(number, plan=plan, next_plan=after))
    first, second, third = told.get().splitlines()
    assert "plan" not in first + third
    assert second == "epoch 1: 200 events, 14 matches; plan 2 from now on"
