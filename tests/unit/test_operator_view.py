"""What is shown of an operator's run: display, report, plan. All from a run without Spark in which
partitions are on disk, rows wait and partitions move."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import operators_by_hand as by_hand
from geoflux import keyed_api, run_inputs
from geoflux.cli.display import Display
from geoflux.cli.doctor import checks
from geoflux.cli.main import app
from geoflux.cli.operator_memory import Memory
from geoflux.cli.operator_report import verdict, write_operator_report
from geoflux.cli.operator_summary import print_operator_summary
from geoflux.config import Config
from geoflux.engine.epochs import Manifest
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.engine.keyed_task import Emulated
from geoflux.errors import ConfigError, StateError
from geoflux.state.store import Store

NAME = "WindowedGroupBy"
SLOW = Emulated(dict.fromkeys(range(4), 1e-4), memory_bytes={0: 400, 1: 400})


def ran(folder: Path, epochs: int = 4) -> tuple[Config, Store, list[Manifest]]:
    """A run in this process; slots 0 and 1 have next to no memory, and all have little time."""
    by_hand.write(folder, by_hand.rows(400 * epochs))
    config = by_hand.config(folder, policy="hybrid", budget="4ms", memory="1 MB", collect="1ms")
    store = Store(str(folder / "out"))
    source = run_inputs.opened_inputs(config, store, None, NAME).events
    assert source is not None
    setting = keyed_api.setting_of(by_hand.OPERATOR, config, store, SLOW)
    engine = KeyedEngine.recovered(setting, lambda: keyed_api.first_plan(config, by_hand.OPERATOR))
    return config, store, [
        run_epoch(engine, source, n, (400 * n, 400 * (n + 1)), 2) for n in range(epochs)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def a_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Store, list[Manifest]]:
    return ran(tmp_path_factory.mktemp("run"))


def test_a_manifest_says_what_is_in_memory_on_disk_and_waits(
    a_run: tuple[Config, Store, list[Manifest]],
) -> None:
    for m in a_run[2]:
        held = Memory.of(m)
        assert sum(s.carried_rows for s in held.slots) == m["carried_out"]
        assert sum(s.spilled for s in held.slots) == len(m["spilled"])
        assert sum(s.resident_bytes + s.spilled_bytes for s in held.slots) == sum(
            m["sizes"].values()
        )
        for s in held.slots:
            assert s.spooled_rows <= s.carried_rows
            assert s.spilled or not s.spooled_rows
    slots = [s for m in a_run[2] for s in Memory.of(m).slots]
    assert any(s.spooled_rows for s in slots)
    assert {s.slot for s in slots if s.spilled} <= {0, 1}


def test_the_display_shows_memory_disk_and_waiting_rows(
    a_run: tuple[Config, Store, list[Manifest]],
) -> None:
    _, store, manifests = a_run
    spilling = next(m for m in manifests if m["spilled"] and m["carried_out"])
    console = Console(width=120, force_terminal=True, color_system=None)
    display = Display(console, Path(store.root))
    display.epoch(spilling)
    with console.capture() as told:
        console.print(display._view(console.width))
    text, held = told.get(), Memory.of(spilling)
    for words in (held.in_memory, held.on_disk, held.waiting, "rows/s", "on disk, "):
        assert words in text
    plain = Console(width=120, force_terminal=False)
    display = Display(plain, Path(store.root))
    with plain.capture() as told:
        display.epoch(spilling)
    processed = sum(m["processed"] for m in manifests if m["epoch"] <= spilling["epoch"])
    assert f", {processed} rows, {processed} results, " in told.get()
    assert held.on_disk in told.get()


def test_the_report_has_states_waiting_rows_and_the_slots(
    a_run: tuple[Config, Store, list[Manifest]],
) -> None:
    config, store, manifests = a_run
    summary = keyed_api.summarised(config, store)
    page = Path(write_operator_report(config, store, summary, "<Mine>")).read_text()
    for title in ("States", "Rows that waited", "Slots at the end", "Load over time",
                  "Every row accounted for", "Every decision"):  # fmt: skip
        assert f"<h2>{title}</h2>" in page
    assert "&lt;Mine&gt;" in page
    assert "<Mine>" not in page
    assert "Bytes of states in memory and on disk" in page
    assert "nothing lost" in verdict(summary)
    assert summary.most_spilled == max(len(m["spilled"]) for m in manifests) > 0
    assert summary.spooled == sum(s.spooled_rows for s in Memory.of(manifests[-1]).slots)
    console = Console(width=120, force_terminal=False)
    with console.capture() as told:
        print_operator_summary(console, summary, Path("out"), "out/report.html")
    assert f"{summary.most_spilled}" in told.get()
    assert "missing_key" in told.get()


def test_a_run_without_an_epoch_has_a_report(tmp_path: Path) -> None:
    config, store, _ = ran(tmp_path, 0)
    summary = keyed_api.summarised(config, store)
    assert "No epoch" in Path(write_operator_report(config, store, summary, NAME)).read_text()
    assert CliRunner().invoke(app, ["plan", store.root]).exit_code == 0


def test_plan_shows_the_slots_of_an_operator(a_run: tuple[Config, Store, list[Manifest]]) -> None:
    root, last = a_run[1].root, a_run[2][-1]
    shown = CliRunner().invoke(app, ["plan", root, "--epoch", "1"])
    assert shown.exit_code == 0
    assert f"the operator {NAME}" in shown.stdout
    told = CliRunner().invoke(app, ["plan", root, "--json"])
    found = json.loads(told.stdout.splitlines()[-1])
    assert found["plan"] == last["next_plan"]
    assert sum(found["owned"]) == len(found["partitions"]) == 16
    assert [s["spilled"] for s in found["slots"]] == [s["spilled"] for s in last["slots"]]
    for wrong in (["--svg", "map.svg"], ["--epoch", "99"]):
        assert isinstance(CliRunner().invoke(app, ["plan", root, *wrong]).exception, ConfigError)


@pytest.mark.parametrize("command", ["verify", "snapshot"])
def test_what_is_only_for_standing_queries_says_so(
    a_run: tuple[Config, Store, list[Manifest]], command: str
) -> None:
    failed = CliRunner().invoke(app, [command, a_run[1].root]).exception
    assert isinstance(failed, StateError)
    assert f"the operator {NAME}" in str(failed)


def test_the_doctor_says_what_a_directory_holds(
    a_run: tuple[Config, Store, list[Manifest]], tmp_path: Path
) -> None:
    found = checks(Path(a_run[1].root))[-1]
    assert found.good
    assert found.found == f"a run of the operator {NAME}, epochs 0 to 3"
    assert not checks(tmp_path)[-1].good
