"""``geoflux plan``: the plan of an epoch as a table, as a map, as a picture, as JSON."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from geoflux.chronicle.plan_view import PlanView
from geoflux.cli.main import app
from geoflux.cli.map import Costs, Frame
from geoflux.cli.text_map import text_map
from geoflux.config import Config
from geoflux.errors import ConfigError, StateError
from geoflux.plan import GridPlan, Merge, ReplicatedPlan, Split, change_to_dict
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

FIRST = GridPlan.initial(40, 20, 2)  # ids 1 and 2
SPLIT = Split(1, "columns", 10, 0, 1)
MERGE = Merge(4, 2, 1)


def epoch_of(number: int, plan: Any, after: Any, changes: list[Any], reason: str) -> dict[str, Any]:
    """A manifest, as far as a plan's view reads it."""
    return {
        "epoch": number, "plan": plan.version, "next_plan": after.version,
        "decision": {"reason": reason, "changes": [change_to_dict(c) for c in changes]},
        "slots": [
            {
                "slot": s, "processed": 10 + 20 * s, "checks": 100 + 200 * s, "queries": 5,
                "busy_seconds": 0.1 + 0.2 * s, "load_seconds": 0.0,
                "per_partition": {str(p.id): [10 + 20 * s, 100 + 200 * s] for p in plan.partitions if p.slot == s},
            }
            for s in range(2)
        ],
    }  # fmt: skip


def run_of(folder: Path, plans: list[Any], manifests: list[dict[str, Any]]) -> Path:
    store = Store(str(folder))
    config = Config.from_dict({"space": {"grid": [40, 20]}, "engine": {"slots": 2}})
    store.write_json("run.json", {"config": config.as_dict()})
    for plan in plans:
        store.write_json(f"plans/{plan.version:08d}.json", plan.to_dict())
    for m in manifests:
        EpochLog(store).commit(m["epoch"], m)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Epochs 0 and 1 under the first plan, 2 under a split one, and then a merge."""
    second = FIRST.apply(SPLIT)
    third = replace(second, version=3)  # lineage was cut
    fourth = third.apply(MERGE)
    manifests = [
        epoch_of(0, FIRST, FIRST, [], ""),
        epoch_of(1, FIRST, second, [SPLIT], "slot 0 gives"),
        epoch_of(2, second, third, [], ""),
        epoch_of(3, third, fourth, [MERGE], "costs are even"),
    ]
    return run_of(tmp_path / "run", [FIRST, second, third, fourth], manifests)


def asked(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["plan", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("epoch", "plan", "measured", "decided", "ids"),
    [
        (0, 1, 0, None, [1, 2]),
        (1, 1, 1, None, [1, 2]),
        (2, 2, 2, 1, [2, 3, 4]),
        (3, 3, 3, 1, [2, 3, 4]),  # its parts are as old as those of plan 2
        (4, 4, None, 3, [3, 5]),
        (None, 4, None, 3, [3, 5]),
    ],
)
def test_the_plan_of_every_epoch(
    run: Path, epoch: int | None, plan: int, measured: int | None, decided: int | None, ids: Any
) -> None:
    told = asked(str(run), *([] if epoch is None else ["--epoch", str(epoch)]))
    assert (told["plan"], told["measured_in_epoch"]) == (plan, measured)
    assert (told["decision"] and told["decision"]["epoch"]) == decided
    assert sorted(p["id"] for p in told["partitions"]) == ids
    assert sum(slot["cells"] for slot in told["slots"]) == 800
    if measured is None:
        assert told["busiest_over_mean"] is None
        assert told["slots"][0]["events"] is None
    else:
        assert told["busiest_over_mean"] == pytest.approx(1.5)
        assert [slot["events"] for slot in told["slots"]] == [10, 30]


def test_before_it_has_run_an_unchanged_plan_has_the_load_of_the_last_epoch(tmp_path: Path) -> None:
    forgot = replace(FIRST, version=2)
    folder = run_of(tmp_path, [FIRST, forgot], [epoch_of(0, FIRST, forgot, [], "")])
    told = asked(str(folder))
    assert (told["epoch"], told["plan"], told["measured_in_epoch"]) == (1, 2, 0)


def test_the_table_has_shares(run: Path) -> None:
    done = CliRunner().invoke(app, ["plan", str(run), "--epoch", "2"], env={"COLUMNS": "100"})
    lines = done.stdout.splitlines()
    assert lines[0] == "plan 2 of epoch 2: 3 partitions on 2 slots"
    row = next(line for line in lines if "■ 1" in line)
    assert [cell.strip() for cell in row.split("│")[2:-1]] == [
        "2", "75.0 %", "75.0 %", "75.0 %", "5", "300 ms",
    ]  # fmt: skip
    assert "decided after epoch 1: 1 split (slot 0 gives)" in lines
    assert "in epoch 2 the busiest slot was busy for 1.50 times the mean" in lines
    assert lines.count("0" * 25 + "1" * 74) >= 6


def test_the_picture_is_a_whole_file(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    assert (
        CliRunner().invoke(app, ["plan", str(run), "--epoch", "2", "--svg", str(path)]).exit_code
        == 0
    )
    text = path.read_text(encoding="utf-8")
    assert "var(" not in text
    words = {element.text for element in ET.fromstring(text).iter() if element.text}
    assert {"slot 0", "partition 3", "plan 2 of epoch 2: 3 partitions on 2 slots"} <= words


def test_mistakes_are_sentences(run: Path, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="holds no run"):
        PlanView.of(tmp_path / "nothing", None)
    for epoch in (-1, 5):
        with pytest.raises(
            ConfigError, match=f"epoch {epoch} of .* it has run 0 to 3, and 4 comes"
        ):
            PlanView.of(run, epoch)
    with pytest.raises(StateError, match="no plan 1 yet"):
        PlanView.of(run_of(tmp_path / "new", [], []), None)
    with pytest.raises(ConfigError, match="it has run none yet, and 0 comes next"):
        PlanView.of(tmp_path / "new", 1)
    done = CliRunner().invoke(app, ["plan", str(run), "--svg", str(tmp_path / "no/where.svg")])
    assert isinstance(done.exception, ConfigError)


def test_a_replicated_plan_is_told_not_drawn(tmp_path: Path) -> None:
    plan = ReplicatedPlan(40, 20, 2)
    folder = run_of(tmp_path, [plan], [epoch_of(0, plan, plan, [], "static plan")])
    done = CliRunner().invoke(app, ["plan", str(folder)])
    assert "every slot has all queries" in " ".join(done.stdout.split())
    assert asked(str(folder))["kind"] == "replicated"
    done = CliRunner().invoke(app, ["plan", str(folder), "--svg", str(tmp_path / "a.svg")])
    assert isinstance(done.exception, ConfigError)
    assert not (tmp_path / "a.svg").exists()


def test_the_map_in_characters_shows_every_large_partition() -> None:
    plan = FIRST.apply(SPLIT)
    frame = Frame.fitted(Grid(Space("planar", 0.0, 0.0, 40.0, 20.0), 40, 20), 1000)
    costs = Costs.of({3: 10.0, 4: 1.0})
    drawn = text_map(plan, frame, costs, 80, colours=True)
    lines = drawn.plain.split("\n")
    assert {len(line) for line in lines} == {80}
    assert len(lines) == 20
    for p in plan.partitions:
        assert str(p.id) in drawn.plain
    assert drawn.plain.count("▏") == 2 * 20
    console = Console(width=100, record=True, force_terminal=True)
    with console.capture() as told:
        console.print(drawn)
    assert "\x1b[" in told.get()
    plain = text_map(plan, frame, costs, 80, colours=False).plain
    assert set(plain) == {"0", "1", "\n"}
