"""The commands as a person runs them: what they print, how they fail, what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import handmade

pytestmark = pytest.mark.spark


def geoflux(*arguments: str, timeout: int = 300, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "geoflux.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **more)


def last_json(text: str) -> Any:
    return json.loads(text.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A run of the simulator that retains its events: its directory, and how the command ended."""
    out = tmp_path_factory.mktemp("simulated") / "out"
    done = geoflux(
        "run", "--out", str(out), "--duration", "3s", "--json", "--set", "simulate.rate=20000",
        "--set", "simulate.queries=1000", "--set", "space.grid=[300, 300]",
        "--set", "retention.time=1 hour",
    )  # fmt: skip
    return out, done


def test_run_then_verify_the_simulator(simulated: tuple[Path, Any]) -> None:
    out, done = simulated
    assert done.returncode == 0, done.stderr
    summary = last_json(done.stdout)
    assert summary["received"] == summary["processed"] == 60_000
    assert "Traceback" not in done.stderr
    assert json.loads((out / "summary.json").read_text()) == summary
    report = (out / "report.html").read_text()
    assert "<svg" in report
    assert "http://" not in report.replace("http://www.w3.org", "")
    checked = geoflux("verify", str(out), "--json")
    assert checked.returncode == 0, checked.stderr
    found = last_json(checked.stdout)
    assert (found["missing"], found["duplicate"], found["wrong"]) == (0, 0, 0)
    assert found["events"] == 60_000


def test_a_snapshot_of_what_a_run_retained(simulated: tuple[Path, Any], tmp_path: Path) -> None:
    out = str(simulated[0])
    nearest = '{"nearest": {"lon": 2.35, "lat": 48.86, "k": 3}, "where": "lat > 0"}'
    done = geoflux("snapshot", out, nearest, "--rows", "2", env={**os.environ, "COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    assert "distance" in done.stdout
    assert "and 1 row more" in done.stdout
    assert "3 events matched; read " in done.stdout
    asked = '{"aggregate": {"functions": ["count", "distinct(object)"]}}'
    told = last_json(geoflux("snapshot", out, "-", "--json", input=asked).stdout)
    assert [row["function"] for row in told["rows"]] == ["count", "distinct(object)"]
    assert told["rows"][0]["value"] == told["matched"]
    assert 0 < told["matched"] < 60_000  # three seconds of the run are 72 minutes of event time
    off = tmp_path / "off"  # as a run that was started without retention leaves it
    off.mkdir()
    noted = json.loads((simulated[0] / "run.json").read_text())
    noted["config"]["retention"]["time"] = ""
    (off / "run.json").write_text(json.dumps(noted))
    for directory, query, sentence in (
        (out, '{"where": "lta > 0"}', "no column 'lta'; did you mean 'lat'?"),
        (out, '{"where": ', "the query is not JSON"),
        (str(off), "{}", 'run it with retention.time = "1 hour"'),
    ):
        done = geoflux("snapshot", directory, query)
        assert done.returncode == 2
        assert sentence in " ".join(done.stderr.split())
        assert (done.stdout, "Traceback" in done.stderr) == ("", False)


BAD_EVENTS = [
    ('{"id": 1, "lon": NaN, "lat": 1, "time": 5}', "bad_coordinates"),
    ('{"id": 2, "lat": 1, "time": 5}', "bad_coordinates"),
    ('{"id": 3, "lon": 999, "lat": 1, "time": 5}', "outside_space"),
    ('{"id": 4, "lon": 1, "lat": 1, "time": "yesterday"}', "bad_time"),
    ('{"id": 5, "lon": 1, "lat": 1}', "bad_time"),
    ('{"id": 6, "lon": 1, "lat":', "malformed_json"),
    ("[1, 2]", "malformed_json"),
    ('{"lon": 1, "lat": 1, "time": 5}', "missing_id"),
    ('{"id": 7, "lon": 1, "lat": 1, "time": 5, "note": "' + "x" * 3000 + '"}', "oversized_record"),
]
CROSSED = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
SQUARE = {"type": "rectangle", "west": 0, "south": 0, "east": 2, "north": 2}
BAD_RECORDS: list[tuple[Any, str]] = [
    ("{oops", "malformed_json"),
    ({"op": "dance", "id": "a"}, "unknown_operation"),
    ({"op": "register", "id": "b", "shape": CROSSED}, "invalid_shape"),
    ({"op": "register", "id": "c", "shape": SQUARE, "where": "speed >"}, "bad_where"),
    ({"op": "register", "id": "d", "shape": SQUARE, "where": "sped > 1"}, "unknown_column"),
    ({"op": "register", "id": "good", "shape": SQUARE}, "duplicate_id"),
    ({"op": "terminate", "id": "nobody"}, "unknown_id"),
    ({"op": "register", "id": "e" * 3000, "shape": SQUARE}, "oversized_record"),
    ({"op": "register", "id": "f"}, "invalid_shape"),
]


def test_everything_bad_is_quarantined_with_its_reason_and_nothing_is_lost(tmp_path: Path) -> None:
    handmade.write(tmp_path, [], [], files=0)
    good = [
        {"id": 100 + i, "lon": 1.0, "lat": 1.0, "time": "2024-05-01T12:00:00Z", "speed": 1.5}
        for i in range(7)
    ]
    lines = [json.dumps(row) for row in good] + [line for line, _ in BAD_EVENTS]
    (tmp_path / "events/a.ndjson").write_text("\n".join(lines) + "\n")
    records = [{"op": "register", "id": "good", "shape": SQUARE}, *(r for r, _ in BAD_RECORDS)]
    text = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (tmp_path / "queries.ndjson").write_text("\n".join(text) + "\n")
    path = handmade.toml(tmp_path)
    out = tmp_path / "out"
    done = geoflux(
        "run", str(path), "--out", str(out), "--json", "--set", "source.max_record_bytes=2000"
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    summary = last_json(done.stdout)
    assert summary["received"] == 16
    assert (summary["processed"], summary["quarantined"]) == (7, 9)
    assert summary["matches"] == 7
    rows = pq.read_table(out / "quarantine").to_pylist()
    events = sorted(r["reason"] for r in rows if r["origin"] == "event")
    assert events == sorted(code for _, code in BAD_EVENTS)
    control = sorted(r["reason"] for r in rows if r["origin"] == "control")
    assert control == sorted(code for _, code in BAD_RECORDS)
    assert all(row["detail"] and row["row"] for row in rows)
    assert geoflux("verify", str(out)).returncode == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[engine]\nslots = 0\nbalance = "best"\n[spce]\n', ["engine.slots = 0", "engine.balance = 'best'", "spce"]),
        ('[source]\nkind = "files"\npath = "nowhere"\n', ["source.path", "no such file"]),
        ("[engine\n", ["not a TOML file"]),
        ("[space]\nbounds = [10, 0, -10, 5]\n", ["west < east"]),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_one_clear_message(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    started = time.time()
    done = geoflux("run", str(path), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert time.time() - started < 20
    message = " ".join(done.stderr.split())
    for word in words:
        assert word in message, message
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_other_mistakes_are_sentences_too(tmp_path: Path) -> None:
    for arguments, word in (
        (("verify", str(tmp_path)), "holds no run"),
        (("run", str(tmp_path / "no.toml")), "no settings file"),
        (("run", "--set", "slots"), "section.name=value"),
    ):
        done = geoflux(*arguments)
        assert done.returncode == 2, done.stderr
        assert word in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr


def test_doctor_finds_this_machine_fit() -> None:
    done = geoflux("doctor", "--json")
    assert last_json(done.stdout)["good"], done.stderr
    broken = geoflux("doctor", env={**os.environ, "JAVA_HOME": "/nowhere"})
    assert broken.returncode == 1
    assert "install Java" in " ".join((broken.stdout + broken.stderr).split())


@pytest.mark.long
def test_an_interrupt_stops_between_epochs_and_the_run_goes_on_later(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["run", "--out", str(out), "--set", "simulate.rate=20000", "--set", "simulate.queries=500",
                 "--set", "space.grid=[300, 300]", "--duration", "8s"]  # fmt: skip
    command = [sys.executable, "-m", "geoflux.cli", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    ) as process:  # fmt: skip
        while not any((out / "epochs/manifests").glob("*.json")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        try:
            told = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # says where every thread is
            pytest.fail(f"it did not stop:\n{process.communicate(timeout=30)[1][-8000:]}")
    assert process.returncode == 0, told
    assert "Traceback" not in told[1]
    assert f"stopped; go on with:  geoflux run --out {out}" in told[0]
    assert "\x1b" not in told[0]
    first = json.loads((out / "summary.json").read_text())
    assert 0 < first["received"] < 160_000
    for _ in range(2):  # the second time there is nothing left to do
        done = geoflux(*arguments, "--json")
        assert last_json(done.stdout)["received"] == 160_000
    assert geoflux("verify", str(out)).returncode == 0


APPLICATION = """
[[operator]]
name = "ingest"
kind = "ingest"
key = "object"
slots = 1

[[operator]]
name = "places"
kind = "queries"
reads = ["ingest"]
slots = 2

[[operator]]
name = "speeds"
kind = "group-by"
reads = ["ingest"]
slots = 1
key = "object"
value = "speed"
rows = 5
flux.partitions = 8

[space]
grid = [300, 300]

[simulate]
rate = 5000
queries = 300

[run]
duration = "3s"
"""


@pytest.mark.long
def test_an_application_of_three_operators(tmp_path: Path) -> None:
    file, out = tmp_path / "application.toml", tmp_path / "out"
    file.write_text(APPLICATION)
    done = geoflux("run", str(file), "--out", str(out), "--quiet", "--json", timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    watched = last_json(geoflux("top", str(out), "--json").stdout)
    assert (watched["state"], watched["operators"]["places"]["processed"]) == ("over", 15_000)
    assert "over since" in geoflux("top", str(out)).stdout
    told = last_json(done.stdout)["operators"]
    assert [told[name]["processed"] for name in ("ingest", "places", "speeds")] == [15_000] * 3
    assert told["speeds"]["results"] == 15_000
    page = (out / "report.html").read_text()
    assert 'href="places/report.html"' in page
    assert "<h2>Throughput</h2>" in (out / "places" / "report.html").read_text()
    checked = geoflux("verify", str(out), "--json")
    assert checked.returncode == 0, checked.stderr
    found = last_json(checked.stdout)
    assert found["clean"]
    assert found["streams"]["speeds"]["read"] == 15_000
    assert found["operators"]["places"]["matches"] == told["places"]["matches"] > 0
    plan = geoflux("plan", str(out))
    assert plan.returncode == 2
    assert f"{out}/places" in plan.stderr, "a path is never broken"
    file.write_text(APPLICATION.replace('reads = ["ingest"]', 'reads = ["ingset"]', 1))
    wrong = geoflux("run", str(file), "--out", str(tmp_path / "no"))
    assert wrong.returncode == 2
    assert "did you mean 'ingest'?" in " ".join(wrong.stderr.split())
    assert not (tmp_path / "no").exists()
