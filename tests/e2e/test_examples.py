"""The scripts of the tutorials, as a reader runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def _run(folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=folder)


def _lines(folder: Path, script: str, *arguments: str) -> list[str]:
    """What a script that ends well prints."""
    done = _run(folder, script, *arguments)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def _taxis(path: Path, rows: int) -> None:
    """Positions around San Francisco, ten a second, one of them in the ocean."""
    draw = np.random.default_rng(3)
    lon, lat = draw.normal(-122.42, 0.02, rows), draw.normal(37.77, 0.02, rows)
    lon[5] = -150.0
    micros = 1_211_000_000_000_000 + np.arange(rows) * 100_000
    table = {"lon": lon, "lat": lat, "ts": pa.array(micros, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(table), path)


@pytest.mark.spark
def test_the_geofence_tutorial(tmp_path: Path) -> None:
    lines = _lines(tmp_path, "geofence.py")
    assert lines[-1].startswith("verified ")
    assert lines[-1].endswith(" matches: 0 missing, 0 duplicate, 0 wrong")
    seen = [line.split()[0] for line in lines[lines.index(f"{'query':<20}{'matches':>8}") + 1 :]]
    assert seen[:5] == ["centre", "centre-after-noon", "outskirts", "station", "suburbs"]
    reasons = ("unknown_column", "duplicate_id", "bad_coordinates", "outside_space")
    for reason in reasons:
        assert sum(reason in line for line in lines) == 1


@pytest.mark.spark
def test_the_replay_tutorial(tmp_path: Path) -> None:
    _taxis(tmp_path / "taxis.parquet", 3000)
    lines = _lines(
        tmp_path, "replay_parquet.py", "taxis.parquet", "--id", "@position", "--time", "ts",
        "--bounds=-123.2,37,-121.2,38.5", "--rows", "2000", "--speed", "100", "--verify",
    )  # fmt: skip
    assert "1,999 processed, 1 quarantined" in lines[0]
    assert "quarantined as outside_space: 1" in lines
    assert lines[-1].endswith(" matches: 0 missing, 0 duplicate, 0 wrong")


@pytest.mark.spark
def test_the_windows_tutorial(tmp_path: Path) -> None:
    lines = _lines(tmp_path, "windows.py")
    windows = [line.split() for line in lines[1:15]]
    assert [w[0] for w in windows] == ["centre"] * 7 + ["station"] * 7
    assert {len(w) for w in windows} == {6}
    assert lines[15].startswith("at the station in the last two minutes: taxi-")
    metres = [int(line.split()[2]) for line in lines if line.startswith("free: ")]
    assert metres == sorted(metres)
    assert len(metres) == 5
    assert lines[-2] == "kept: 3240 of 4800 events"
    assert lines[-1] == "42 rows of windows: 0 wrong, 1 late event"


@pytest.mark.spark
@pytest.mark.long
def test_the_hotspot_tutorial(tmp_path: Path) -> None:
    lines = _lines(tmp_path, "hotspot.py")
    assert any(" split" in line and "x the mean and gives" in line for line in lines)
    busiest = {
        line.split()[0]: float(line.split()[-3][:-1]) for line in lines if "epochs: " in line
    }
    assert busiest["last"] < busiest["first"]
    assert lines[-1].endswith(" matches: 0 missing, 0 duplicate, 0 wrong")


@pytest.mark.spark
@pytest.mark.long
def test_the_operator_tutorial(tmp_path: Path) -> None:
    lines = _lines(tmp_path, "own_operator.py")
    assert lines[0].startswith("20000 rows in ")
    assert lines[-1] == "verified 178195 pairs: 0 missing, 0 unexpected"


@pytest.mark.spark
def test_the_sketch_tutorial(tmp_path: Path) -> None:
    lines = _lines(tmp_path, "sketch.py")
    assert lines[0] == "30000 observations of 8 features"
    exact = [line for line in lines[2:5] if line.endswith(" ± 0")]
    assert len(exact) == 3, "whole regions are answered exactly"
    assert not any(line.endswith(" ± 0") for line in lines[6:8]), "what is cut has an error"
    storms = [int(line.split()[-2]) for line in lines if line.startswith("after epoch ")]
    assert len(storms) == 3
    assert storms == sorted(storms)
    assert lines[-1].startswith("verified 30000 observations: 0 missing, 0 doubled, 0 of ")


@pytest.mark.long
@pytest.mark.spark
def test_the_logos_tutorial(tmp_path: Path) -> None:
    lines = _lines(tmp_path, "find_logos.py", "--frames", "10", "--picture", "found.png")
    assert lines[0] == "40 frames of 4 cameras, 16 logos, planted 50 times"
    assert lines[1].startswith("extractor     40 rows in,    40 out")
    told = next(line for line in lines if line.startswith("found "))
    precision, recall = (
        float(told.rsplit(f"{word} ", 1)[1][:5]) for word in ("precision", "recall")
    )
    assert precision >= 0.98
    assert recall >= 0.8
    assert (tmp_path / "found.png").stat().st_size > 10_000
    assert lines[-1].startswith("verified: every stream came over once")


@pytest.mark.long
@pytest.mark.spark
def test_the_patterns_tutorial(tmp_path: Path) -> None:
    lines = _lines(tmp_path, "find_patterns.py", "--sentences", "800")
    assert lines[0].startswith("generator      800 rows in")
    assert lines[-2].endswith(" patterns at the end, the same as by brute force")
    assert lines[-1].startswith("verified: every stream came over once")


def test_the_replay_needs_a_path_and_says_so(tmp_path: Path) -> None:
    done = _run(tmp_path, "replay_parquet.py")
    assert done.returncode == 2
    assert done.stderr == "replay_parquet.py: give the PATH of a Parquet file to replay\n"


def test_a_wrong_setting_of_the_replay_is_a_sentence(tmp_path: Path) -> None:
    _taxis(tmp_path / "taxis.parquet", 10)
    done = _run(tmp_path, "replay_parquet.py", "taxis.parquet", "--bounds=5,5,1,1")
    assert done.returncode == 2
    assert "space.bounds" in done.stderr
    assert "Traceback" not in done.stderr
