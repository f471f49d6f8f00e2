"""Encrypted runs on Spark: exact also after SIGKILL; nothing readable on disk while they go, no key
in any command line, and sessions that would let others read along are refused."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

import handmade
import operators_by_hand as by_hand
from geoflux import Snapshots, api, run, run_operator
from geoflux.config import Config
from geoflux.errors import ConfigError
from geoflux.state.keys import new_key, store_of
from geoflux.state.seal import MARK

ROWS = handmade.events(600)
RECORDS = handmade.queries()
PLACES = [struct.pack("<d", row["lon"]) for row in ROWS if abs(row["lon"]) % 1]
MORE = "epoch_events = 150\nmemory = '1g'\nmaster = 'local[2]'\n[retention]\ntime = '1 day'\n"
SCRIPT = str(Path(__file__).parent / "killed_run.py")


@dataclass
class Watched:
    """A run as a process of its own, whose files and command lines are looked at while it goes."""

    folder: Path
    places: int = 0
    """Places of events found in the files that Spark has on its disk."""
    shuffled: int = 0
    """Bytes of shuffled data there."""
    keys: int = 0
    """Times that the run's own key was found there."""
    commands: set[str] = field(default_factory=set)
    output: str = ""

    def run(self, *command: str) -> int:
        spill = self.folder / "spill"
        spill.mkdir(exist_ok=True)
        path = self.folder / "output.txt"
        with open(path, "w") as told:
            process = subprocess.Popen(
                [sys.executable, *command, "run", str(self.folder / "geofence.toml"), "--out",
                 str(self.folder / "out")],
                env=os.environ | {"SPARK_LOCAL_DIRS": str(spill)}, stdout=told, stderr=told,
            )  # fmt: skip
            seen: set[tuple[Path, int]] = set()
            while process.poll() is None:
                self._look(spill, seen)
                self._ask(process.pid)
                time.sleep(0.05)
        self.output += path.read_text()
        return process.returncode

    def _look(self, spill: Path, seen: set[tuple[Path, int]]) -> None:
        for path in _files(spill):
            try:
                if (path, path.stat().st_size) in seen:
                    continue
                data = path.read_bytes()
            except OSError:  # Spark has deleted it meanwhile
                continue
            seen.add((path, len(data)))
            self.places += sum(place in data for place in PLACES)
            self.keys += self._key() in data
            self.shuffled += len(data) if path.suffix == ".data" else 0

    def _key(self) -> bytes:
        """What workers are given; there are none before the run has noted its seal."""
        seal = store_of(self.folder / "out").seal
        return b"\0never\0" if seal is None else seal.key

    def _ask(self, pid: int) -> None:
        try:
            for process in psutil.Process(pid).children(recursive=True):
                self.commands.add(" ".join(process.cmdline()))
        except psutil.Error:  # it has ended meanwhile
            return


def _files(folder: Path) -> list[Path]:
    """The files below `folder`; what is deleted while it is walked is passed over."""
    return [Path(where, name) for where, _, names in os.walk(folder) for name in names]


def watched(folder: Path, more: str) -> Watched:
    handmade.write(folder, RECORDS, ROWS)
    handmade.toml(folder, 3, more=MORE + more)
    return Watched(folder)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_encrypted_run_is_exact_and_nothing_of_it_can_be_read_on_the_way(tmp_path: Path) -> None:
    expected = handmade.expected(RECORDS, ROWS)
    for name in ("plain", "sealed"):
        (tmp_path / name).mkdir()
    plain = watched(tmp_path / "plain", "")
    assert plain.run("-m", "geoflux.cli") == 0, plain.output
    assert handmade.matches(plain.folder / "out") == expected
    assert plain.places > 0, "the search finds what is shuffled"

    new_key(tmp_path / "run.key")
    key = (tmp_path / "run.key").read_text().strip()
    more = f"[security]\nencrypt = true\nkey_file = '{tmp_path / 'run.key'}'\n"
    sealed = watched(tmp_path / "sealed", more)
    assert sealed.run(SCRIPT, "after-job", "2") == -9, sealed.output
    assert sealed.run("-m", "geoflux.cli") == 0, sealed.output
    out = sealed.folder / "out"
    assert handmade.matches(out) == expected
    assert sealed.shuffled > 0
    assert sealed.places == sealed.keys == 0
    assert any("spark.network.crypto.enabled=true" in text for text in sealed.commands)
    for text in (*sealed.commands, sealed.output, (out / "run.json").read_text()):
        assert key not in text
        assert "spark.authenticate.secret" not in text
    kept = [p for part in ("state", "epochs", "plans") for p in (out / part).rglob("*.*")]
    assert len(kept) > 10
    assert all(path.read_bytes().startswith(MARK) for path in kept)
    assert api.verify(out).is_clean
    assert Snapshots(out).ask({}).matched == len(ROWS)


def test_a_session_that_is_open_to_others_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    handmade.write(tmp_path, RECORDS, ROWS)
    new_key(tmp_path / "run.key")
    given: dict[str, Any] = {
        "security.encrypt": True,
        "security.key_file": str(tmp_path / "run.key"),
    }
    config = Config.load(handmade.toml(tmp_path, 2), given, {})
    with pytest.raises(ConfigError, match=r"has not spark\.authenticate=true, spark\.network"):
        run(config, tmp_path / "out", spark=spark)
    by_hand.write(tmp_path / "keyed", by_hand.rows(20))
    keyed = by_hand.config(tmp_path / "keyed").as_dict()
    keyed["security"] = {"encrypt": True, "key_file": str(tmp_path / "run.key")}
    with pytest.raises(ConfigError, match=r"has not spark\.authenticate=true"):
        run_operator(by_hand.OPERATOR, Config.from_dict(keyed), tmp_path / "out2", spark=spark)


def test_a_directory_stays_plain_or_encrypted(tmp_path: Path, spark: SparkSession) -> None:
    handmade.write(tmp_path, RECORDS, ROWS)
    new_key(tmp_path / "run.key")
    path = handmade.toml(tmp_path, 2)
    run(Config.load(path, {}, {}), tmp_path / "out", spark=spark)
    given: dict[str, Any] = {
        "security.encrypt": True,
        "security.key_file": str(tmp_path / "run.key"),
    }
    with pytest.raises(ConfigError, match=r"other settings \(security\.encrypt\)"):
        run(Config.load(path, given, {}), tmp_path / "out", spark=spark)
