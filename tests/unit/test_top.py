"""``geoflux top``: a run seen from another process, by its directory alone."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from geoflux.cli.attached import Standing, attached
from geoflux.cli.main import app
from geoflux.cli.watched import Watched
from geoflux.errors import StateError
from geoflux.scale.scaler import ScaleRecord
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store
from manifests_by_hand import epoch_of
from topologies_by_hand import LOOP, ROWS, Inline, config_of


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An application that was run to its end, but not summarised: as a crash right then leaves it."""
    folder = tmp_path_factory.mktemp("watched")
    running = Inline(LOOP, config_of(folder, ROWS[:60], 40), folder / "out")
    running.run(Random(3).choice)
    return folder / "out"


def text_of(run: Any, now: float, width: int) -> str:
    console = Console(width=width, color_system=None, force_terminal=True)
    with console.capture() as told:
        console.print(run.view(now, width))
    return told.get()


def last_commit(out: Path) -> float:
    return max(
        m["committed"]
        for folder in out.iterdir()
        if folder.is_dir()
        for m in EpochLog(Store(str(folder))).manifests()
    )


@pytest.mark.parametrize("width", [60, 80, 160])
def test_an_application_from_its_manifests_alone(application: Path, width: int) -> None:
    run = attached(application)
    assert run.look()
    assert not run.look(), "nothing new"
    now = last_commit(application) + 2
    text = text_of(run, now, width)
    assert max(len(line) for line in text.splitlines()) <= width
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert {node.name for node in LOOP.nodes} <= set(lines)
    assert "running, last commit 2 s ago" in text
    told = run.told(now)
    assert json.loads(json.dumps(told)) == told
    assert told["operators"]["ingest"]["processed"] == 60
    waiting = {name: one["waiting"] for name, one in told["operators"].items()}
    assert set(waiting.values()) == {0}, "everything was read"


def test_the_last_decision_about_slots_is_told(tmp_path: Path) -> None:
    Inline(LOOP, config_of(tmp_path, ROWS[:6], 40), tmp_path / "out")
    run = attached(tmp_path / "out")
    run.look()
    now = time.time()
    assert run.told(now)["scaling"] is None
    line = {"look": 0, "before": {"rounds": 1}, "after": {"rounds": 2}, "action": "scale_out",
            "carried_out": True, "measured": 3.0, "predicted_before": 2.5, "reason": "too slow"}  # fmt: skip
    ScaleRecord(Store(str(tmp_path / "out"))).note({}, line)
    run.look()
    assert "slots 1 to 2; an input takes 3 s (2.5 s predicted); too slow" in text_of(run, now, 120)
    assert run.told(now)["scaling"] == line
    assert "starting, no epoch yet" in text_of(run, now, 120)


def test_rows_that_wait_are_counted_from_manifests(tmp_path: Path) -> None:
    running = Inline(LOOP, config_of(tmp_path, ROWS[:60], 40), tmp_path / "out")
    running.step("ingest")
    run = attached(tmp_path / "out")
    run.look()
    told = run.told(time.time())["operators"]
    done = told["ingest"]["results"]
    assert done > 0
    assert told["rounds"]["waiting"] == done
    running.step("rounds")
    run.look()
    assert run.told(time.time())["operators"]["rounds"]["waiting"] < done


def test_it_says_when_a_run_is_over_or_not_running_any_more(application: Path) -> None:
    run = attached(application)
    run.look()
    last = last_commit(application)
    silent = " ".join(text_of(run, last + 3600, 120).split())
    assert "not running any more? last commit 1 h ago" in silent
    assert f"--out {application} goes on" in silent
    summaries = {}
    for node in LOOP.nodes:
        store = Store(str(application / node.name))
        epochs = len(store.names("epochs/manifests"))
        store.write_json("summary.json", {"epochs": epochs})
        summaries[node.name] = store
    over = " ".join(text_of(run, last + 3600, 120).split())
    assert "over since 1 h" in over
    assert f"geoflux verify {application}" in over
    summaries["last"].write_json("epochs/intents/000000999999.json", {"format": 1})
    assert run.standing(last).state == "over", "of another epoch than the next"
    for store in summaries.values():
        store.delete("summary.json")


def test_a_standing_follows_from_what_is_observed() -> None:
    watched = Watched.of([epoch_of(n) for n in range(4)])  # one a second, the last at 13.5
    for now, summary, begun, state in (
        (14.0, None, False, "running"),
        (14.0, 4, False, "over"),
        (14.0, 3, False, "running"),  # the summary is of an earlier start
        (14.0, 4, True, "running"),  # it was over, and is going on
        (60.0, None, False, "silent"),
        (60.0, None, True, "silent"),
    ):
        assert Standing.of(watched, 9.0, now, summary, begun).state == state
    advice = Standing.of(watched, 9.0, 60.0, None, True).advice("out")
    assert "epoch 4 was begun and not committed" in advice
    slow = Watched.of([epoch_of(0, committed=40.0)])  # 30 s an epoch: be patient
    assert Standing.of(slow, 9.0, 90.0, None, True).state == "running"


def test_hearing_one_by_one_is_hearing_all() -> None:
    manifests = [epoch_of(n, processed=n, reason=str(n % 3)) for n in range(30)]
    one_by_one = Watched()
    for manifest in manifests:
        one_by_one.hear(manifest)
    one_by_one.hear(manifests[-1])  # told again after a crash
    assert one_by_one == Watched.of(manifests)
    assert one_by_one.totals["processed"] == sum(range(30))
    assert one_by_one.rate(now=39.5) == pytest.approx(sum(range(22, 30)) / 8)


def test_where_there_is_no_run_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="holds no run; give the directory that geoflux run wrote"):
        attached(tmp_path)


def test_as_json_and_once(application: Path) -> None:
    done = CliRunner().invoke(app, ["top", str(application), "--once", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["state"] in ("running", "silent")
    assert list(told["operators"]) == [node.name for node in LOOP.nodes]
    plain = CliRunner().invoke(app, ["top", str(application)])  # nobody watches: once
    assert plain.exit_code == 0
    assert "\x1b" not in plain.stdout
    assert "rounds" in plain.stdout


def test_on_a_terminal_it_draws_and_q_leaves(application: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "geoflux.cli", "top", str(application), "--every", "0.1"]
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment
    ) as process:
        os.close(theirs)
        seen = ""
        until = time.monotonic() + 60
        while "operator" not in seen and time.monotonic() < until:
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 65536).decode(errors="replace")
        os.write(ours, b"q")
        while process.poll() is None and time.monotonic() < until:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    seen += os.read(ours, 65536).decode(errors="replace")
                except OSError:  # the other end is closed
                    break
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    os.close(ours)
    assert "\x1b[?1049h" in seen, "on a screen of its own"
    assert re.search(r"rows/s +waiting", re.sub(r"\x1b\[[0-9;]*m", "", seen))
