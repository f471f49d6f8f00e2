"""`geoflux bench flux` on next to nothing: every figure is there, and drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console
from typer.testing import CliRunner

from geoflux.bench import flux, flux_sizes
from geoflux.bench.flux_sim import run_simulated
from geoflux.bench.table import is_met
from geoflux.cli.main import app
from geoflux.errors import ConfigError, IntegrityError
from geoflux.sim import Cluster

TINY = replace(
    flux_sizes.QUICK, cluster=Cluster(sites=4, per_site=8, buffer_bytes=8_000),
    crowded=Cluster(sites=4, per_site=8, partition_bytes=2 << 20, memory_bytes=24 << 20),
    squeezed=12 << 20, squeezed_less=14 << 20, load_at=1, seconds=6, settled=4, perturbed=(0, 1, 4), buffers=(0, 4, 8),
    minima=(0.01, 0.1), skew_seconds=4, skew_loaded=1, crowded_seconds=8, crowded_settled=5,
    long_seconds=8, long_settled=5,
    squeezed_counts=(0, 2),
)  # fmt: skip


def test_every_figure_is_there_and_drawn(tmp_path: Path) -> None:
    result = run_simulated(Console(quiet=True), TINY, tmp_path)
    assert {name for name in flux.BARS if name.startswith("sim_")} <= set(result)
    assert json.loads(json.dumps(result)) == result
    assert result["sim_static_one_perturbed"] < result["sim_flux_one_perturbed"] <= 1.01
    assert result["sim_memory_latency_gain"] > 10
    drawn = {path.stem.removeprefix("flux-") for path in tmp_path.iterdir()}
    assert drawn == {
        "3-buffer", "6-load", "7-degradation", "8-unloaded", "8-loaded", "9-memory", "10-latency",
        "6.2-throughput", "6.2-latency",
    }  # fmt: skip
    for path in tmp_path.iterdir():
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_a_run_that_is_not_what_one_loop_gives_fails_the_benchmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for clean in (True, False):
        found = {"spark_oracle_clean": clean}
        monkeypatch.setattr(flux, "run_benchmark", lambda *_, given=found, **__: given)
        ended = CliRunner().invoke(app, ["bench", "flux", "--json"])
        assert json.loads(ended.stdout.splitlines()[-1]) == found
        assert isinstance(ended.exception, IntegrityError) is not clean
        assert is_met(clean, flux.BARS["spark_oracle_clean"]) is clean


def test_a_part_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no part nothing: expected sim, spark"):
        flux.run_benchmark(Console(quiet=True), True, tmp_path, ["nothing"])
