"""SIGKILL at many points of an epoch, then the same command again: as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import handmade
from geoflux import api
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store

ROWS = handmade.events(1500, seed=3)
RECORDS = handmade.queries()
POINTS = [
    "before-delta", "after-delta", "after-intent", "before-job", "routing", "executing",
    "after-job", "before-manifest", "after-manifest", "mid-publish", "after-commit",
    "before-offset-commit", "after-offset-commit", "before-intent",
]  # fmt: skip
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
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **more)


@pytest.mark.timeout(900)
def test_killed_at_every_point_and_started_again(tmp_path: Path) -> None:
    handmade.write(tmp_path, RECORDS, ROWS, files=4)
    handmade.toml(tmp_path, 3, more="epoch_events = 100\nmemory = '1g'\n")
    for number, point in enumerate(POINTS):
        epoch = max(0, number - 2)
        done = _geoflux(tmp_path, SCRIPT, point, str(epoch))
        assert done.returncode == -9, (point, done.stdout[-2000:], done.stderr[-2000:])
        assert f"killed at {point}" in done.stdout
    done = _geoflux(tmp_path, "-m", "geoflux.cli")
    assert done.returncode == 0, done.stderr[-2000:]
    _check(tmp_path)


def _check(folder: Path) -> None:
    out = folder / "out"
    assert handmade.matches(out) == handmade.expected(RECORDS, ROWS)
    manifests = list(EpochLog(Store(str(out))).manifests())
    assert [m["epoch"] for m in manifests] == list(range(len(manifests)))
    assert sum(m["received"] for m in manifests) == len(ROWS)
    for m in manifests:
        assert (
            m["received"] + m["carried_in"] == m["processed"] + m["quarantined"] + m["carried_out"]
        )
    assert api.verify(out).is_clean
    named = {Path(name).name for m in manifests for name in m["files"]}
    assert {p.name for p in (out / "matches").iterdir()} == {n for n in named if "-s" in n}
    assert json.loads((out / "summary.json").read_text())["received"] == len(ROWS)


@pytest.mark.timeout(300)
def test_an_executor_killed_in_mid_epoch(tmp_path: Path) -> None:
    handmade.write(tmp_path, RECORDS, ROWS, files=4)
    handmade.toml(
        tmp_path, 4, more='epoch_events = 300\nmaster = "local-cluster[2,1,2048]"\nmemory = "1g"\n'
    )
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
