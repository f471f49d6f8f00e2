"""SIGKILL at many points of an epoch, then the same command again: as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import handmade
import snapshots_by_hand
import windows_by_hand
from geoflux import Snapshots, api
from geoflux.plan import GridPlan, plan_from_dict
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

ROWS = handmade.disordered(1500, seed=3)
RECORDS = windows_by_hand.asking(handmade.queries())
SNAPSHOTS = snapshots_by_hand.asked_of_everything()
LATENESS, RETENTION = 120, 300
MORE = f"lateness = '{LATENESS}s'\n[retention]\ntime = '{RETENTION}s'\n"
POINTS = [
    "before-delta", "after-delta", "after-intent", "before-job", "routing", "executing",
    "after-job", "before-manifest", "after-manifest", "mid-publish", "after-commit",
    "before-offset-commit", "after-offset-commit", "before-intent",
]  # fmt: skip
SOME = POINTS[1::2]
"""Every second one, with the last: an attempt takes a quarter of a minute."""
SCRIPT = str(Path(__file__).parent / "killed_run.py")


def _geoflux(folder: Path, *before: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        *before,
        "run",
        str(folder / "geofence.toml"),
        "--out",
        str(folder / "out"),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **more)


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "points", [SOME, pytest.param(POINTS, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_killed_at_points_and_started_again(tmp_path: Path, points: list[str]) -> None:
    """Followed, so that snapshots are asked while it goes; drained by the last run."""
    handmade.write(tmp_path, RECORDS, ROWS, files=4, in_turn=True)
    more = f"epoch_events = 100\nmemory = '1g'\n{MORE}"
    handmade.toml(tmp_path, 3, more=more, mode="follow")
    asked = []
    for number, point in enumerate(points):
        if point != "before-intent":  # the last one, after which no control record is read
            asked.append(SNAPSHOTS[number % len(SNAPSHOTS)] | {"id": point})
            handmade.ask(tmp_path, asked[-1:])
        epoch = max(0, number * 13 // (len(points) - 1) - 2)
        done = _geoflux(tmp_path, SCRIPT, point, str(epoch))
        assert done.returncode == -9, (point, done.stdout[-2000:], done.stderr[-2000:])
        assert f"killed at {point}" in done.stdout
    handmade.toml(tmp_path, 3, more=more)
    done = _geoflux(tmp_path, "-m", "geoflux.cli")
    assert done.returncode == 0, done.stderr[-2000:]
    epochs = _check(tmp_path)
    answers = snapshots_by_hand.answers(tmp_path / "out")
    assert set(answers) == {query["id"] for query in asked}
    for query in asked:
        told = answers[query["id"]]
        (epoch,) = told.epochs
        seen = snapshots_by_hand.visible(epochs[:epoch], RETENTION)
        snapshots_by_hand.check(query, told, seen)
    assert len([told for told in answers.values() if told.matched[0]]) > len(answers) / 2


@pytest.mark.long
def test_killed_while_the_balancer_changes_the_plan(tmp_path: Path) -> None:
    """Rounds as short as they can be, and changes for the least gain; killed when the next plan is
    decided and written, but does not count."""
    handmade.write(tmp_path, RECORDS, ROWS, files=4, in_turn=True)
    swarm = "[swarm]\nround = '0s'\ngain = 0.0\n"
    more = f"epoch_events = 100\nmemory = '1g'\n{MORE}{swarm}"
    handmade.toml(tmp_path, 4, "swarm", more=more)
    done = _geoflux(tmp_path, SCRIPT, "before-manifest", "8")
    assert done.returncode == -9, (done.stdout[-2000:], done.stderr[-2000:])
    done = _geoflux(tmp_path, "-m", "geoflux.cli")
    assert done.returncode == 0, done.stderr[-2000:]
    _check(tmp_path)
    store = Store(str(tmp_path / "out"))
    manifests = list(EpochLog(store).manifests())
    for m in manifests:
        plan = plan_from_dict(store.read_json(f"plans/{m['plan']:08d}.json"))
        assert isinstance(plan, GridPlan)
        assert plan.raster.size == 100 * 100, "every cell has one owner"
    changed = [m["epoch"] for m in manifests if m["decision"]["changes"]]
    assert len(changed) >= 3
    assert changed[0] < 8 < changed[-1]


def _check(folder: Path) -> list[list[dict[str, Any]]]:
    """Everything that a run wrote; the events of each of its epochs."""
    out = folder / "out"
    manifests = list(EpochLog(Store(str(out))).manifests())
    assert [m["epoch"] for m in manifests] == list(range(len(manifests)))
    assert sum(m["received"] for m in manifests) == len(ROWS)
    for m in manifests:
        assert (
            m["received"] + m["carried_in"] == m["processed"] + m["quarantined"] + m["carried_out"]
        )
    epochs = handmade.epochs(ROWS, [m["received"] for m in manifests])
    watermarks = windows_by_hand.watermarks(epochs, LATENESS)
    assert any(row["time"] < watermarks[row["id"]] for row in ROWS), "some events are late"
    assert handmade.matches(out) == handmade.expected(RECORDS, ROWS, watermarks)
    assert windows_by_hand.written(out) == windows_by_hand.expected(RECORDS, epochs[:-1], LATENESS)
    reader, seen = Snapshots(out), snapshots_by_hand.visible(epochs, RETENTION)
    for query in SNAPSHOTS:
        snapshots_by_hand.check(query, snapshots_by_hand.answer_of(reader.ask(query)), seen)
    assert api.verify(out).is_clean
    named = {name for m in manifests for name in m["files"]}
    for kind in ("matches", "aggregates", "snapshots"):
        found = {f"{kind}/{path.name}" for path in (out / kind).glob("*")}
        assert found == {name for name in named if name.startswith(f"{kind}/")}
    assert json.loads((out / "summary.json").read_text())["received"] == len(ROWS)
    return epochs


@pytest.mark.long
def test_an_executor_killed_in_mid_epoch(tmp_path: Path) -> None:
    handmade.write(tmp_path, RECORDS, ROWS, files=4, in_turn=True)
    cluster = 'epoch_events = 300\nmaster = "local-cluster[2,1,2048]"\nmemory = "1g"\n'
    handmade.toml(tmp_path, 4, more=cluster + MORE)
    command = [sys.executable, "-m", "geoflux.cli", "run", str(tmp_path / "geofence.toml"),
               "--out", str(tmp_path / "out")]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        victim = _executor_at_work(psutil.Process(process.pid), tmp_path / "out")
        victim.kill()
        assert process.wait(200) == 0
    _check(tmp_path)


def _executor_at_work(driver: psutil.Process, out: Path) -> psutil.Process:
    """An executor of the run, once the second epoch has been opened and before it is committed."""
    deadline = time.time() + 120
    while time.time() < deadline:
        if any((out / "epochs/intents").glob("*1.json")):
            for child in driver.children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):  # ended while we were looking
                    if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                        return child
        time.sleep(0.002)
    raise AssertionError("no executor was seen at work")
