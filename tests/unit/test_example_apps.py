"""The applications of the examples as their files describe them, on the engine without Spark."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from geoflux.errors import ConfigError
from geoflux.topology_api import load_topology, verify_topology
from logos.badges import write_badges
from logos.video import Video
from patterns.miner import maximal
from patterns.sentences import Sentences
from topologies_by_hand import Inline

EXAMPLES = Path(__file__).parents[2] / "examples"


def _ran(file: str, folder: Path, flags: dict[str, Any]) -> Path:
    """The application of a file, run in any order that an engine might choose."""
    shutil.copy(EXAMPLES / file, folder)
    topology, config = load_topology(folder / file, flags)
    Inline(topology, config, folder / "out").run(random.Random(5).choice)
    assert verify_topology(folder / "out").is_clean
    return folder / "out"


def test_patterns_are_those_of_the_brute_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stream = Sentences(80, share=0.6)
    stream.write(Path("sentences"), 200, per_file=70)
    out = _ran("patterns.toml", tmp_path, {"engine.epoch_events": 1500, "flux.partitions": 2})
    rows = pq.read_table(out / "reporter" / "results").to_pylist()
    last = {row["itemset"]: row["is_maximal"] for row in sorted(rows, key=lambda r: r["epoch"])}
    found = {itemset for itemset, is_maximal in last.items() if is_maximal}
    window = stream.table(120, 80).column("text").to_pylist()
    assert found == set(maximal(window, 12, 8))
    assert max(len(itemset.split()) for itemset in found) >= 3


def test_logos_are_those_that_were_planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    video = Video(cameras=2, shot=2)
    write_badges(Path("video/logos"), video.library)
    assert len(list(video.write(Path("video/frames"), 8, per_file=3))) == 3
    out = _ran("logos.toml", tmp_path, {"engine.epoch_events": 5, "flux.partitions": 2})
    rows = pq.read_table(out / "aggregator" / "results").to_pylist()
    found, truth = {(row["id"], row["logo"]) for row in rows}, video.truth(8)
    assert len(found) == len(rows)
    assert len(found - truth) <= 1
    assert len(found & truth) >= 0.75 * len(truth) > 10


def test_a_file_without_its_library_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigError, match=r"operator 'matcher': library = '.*/video/logos': there are"
    ):
        load_topology(EXAMPLES / "logos.toml", {"source.path": str(tmp_path)})
