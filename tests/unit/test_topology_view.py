"""What is shown of an application: a line per operator, and a page that leads to all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from rich.console import Console

from geoflux.cli.topology_display import TopologyDisplay, print_topology_summary
from geoflux.cli.topology_report import write_topology_report
from geoflux.cli.topology_run import print_topology_verification
from geoflux.sections import SecurityConfig
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import new_key
from geoflux.topology.settings import configs_of
from geoflux.topology_api import verify_topology
from topologies_by_hand import LOOP, ROWS, Inline, check_run, config_of


def ran(folder: Path) -> Inline:
    running = Inline(LOOP, config_of(folder, ROWS[:60], 40), folder / "out")
    running.run(Random(3).choice)
    return running


def test_a_line_per_operator_and_a_page(tmp_path: Path) -> None:
    running, out = ran(tmp_path), tmp_path / "out"
    config = config_of(tmp_path, ROWS[:60], 40)
    console = Console(width=140, force_terminal=True, color_system=None, record=True)
    display = TopologyDisplay(console, LOOP, out)
    display.watch(lambda name: 1234 if name == "last" else 0)
    with console.capture() as told:
        console.print(display._view(console.width))
    lines = {line.split()[0]: line for line in told.get().splitlines() if line.strip()}
    assert "ingest, rounds.again" in lines["rounds"]
    assert "outside" in lines["ingest"]
    assert "1.23 k" in lines["last"]
    assert " 60 " in lines["ingest"]
    summaries = {name: part.summary() for name, part in running.parts.items()}
    report = write_topology_report(LOOP, configs_of(LOOP, config), out, summaries)
    page = Path(report).read_text()
    for name in summaries:
        assert f'<a href="{name}/report.html">' in page
        assert (out / name / "report.html").exists()
    assert "rounds.again" in page
    assert "adds up" in page
    with console.capture() as told:
        print_topology_summary(console, summaries, out, report)
        print_topology_verification(console, verify_topology(out))
    assert "every row came over once" in told.get()


def test_where_there_is_no_terminal_a_line_now_and_then(tmp_path: Path) -> None:
    running = ran(tmp_path)
    console = Console(width=140, force_terminal=False, record=True)
    with console.capture() as told:
        display = TopologyDisplay(console, LOOP, tmp_path)
        with display:
            display._said = 0.0
            [first, *_] = EpochLog(running.parts["ingest"].store).manifests()
            display.epoch("ingest", first)
            display.epoch("ingest", first)
            display.say("stopping")
    lines = told.get().splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("1 s: ingest ") or " ms: ingest " in lines[1]
    assert " rows/s, latency " in lines[1]
    assert ", 0 waiting; " in lines[1]


def test_an_encrypted_application(tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    config = config_of(tmp_path, ROWS[:60], 40)
    security = SecurityConfig(encrypt=True, key_file=str(tmp_path / "key"))
    out = tmp_path / "out"
    running = Inline(LOOP, replace(config, security=security), out)
    running.step("ingest")
    running.again()  # with the keys that were noted
    running.run(Random(3).choice)
    check_run(LOOP, ROWS[:60], out)
    assert (out / "rounds" / "epochs" / "manifests" / "000000000000.json").read_bytes()[:1] != b"{"
