"""`geoflux bench drs` on next to nothing: every figure is there, and drawn of plain values."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from geoflux.bench import drs, drs_apps, drs_bulks, drs_figures, drs_model
from geoflux.bench.drs_allocations import TABLE_II
from geoflux.bench.drs_figures import Allocated, Bulk, Changing, Stepping
from geoflux.bench.drs_step import Timeline
from geoflux.bench.drs_timelines import changing, processors, stepping
from geoflux.bench.table import is_met, print_result
from geoflux.cli.main import app
from geoflux.errors import ConfigError
from geoflux.scale.decisions import ScaleDecision
from geoflux.scale.sojourn import predict
from geoflux.topology.checks import problems

TINY = drs_model.ModelSizes((1, 171), 5, 2, 8_000, 2_000)
RUNS = [
    Allocated("10:1:1", 4.1, 0.4, 3.4),
    Allocated("9:2:1", 2.8, 0.3, 2.5),
    Allocated("5:6:1", 1.3, 0.04, 1.2),
]


def words(path: Path) -> list[str]:
    """All that is written in a figure, from the top of the file on."""
    root = ElementTree.parse(path).getroot()
    return [
        "".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text")
    ]


def colours(path: Path, hexed: str) -> int:
    return path.read_text(encoding="utf-8").count(hexed)


def test_the_model_has_every_figure_and_a_table(tmp_path: Path) -> None:
    heard = StringIO()
    result = drs.run_model(Console(file=heard, width=120), TINY, tmp_path)
    assert set(drs_model.BARS) <= set(result)
    assert json.loads(json.dumps(result)) == result
    assert [path.name for path in tmp_path.iterdir()] == ["drs-10-bulks.svg"]
    header = next(line for line in heard.getvalue().splitlines() if " 12 " in line)
    assert [int(k) for k in header.replace("┃", " ").split()] == list(TABLE_II)
    for row in ("allocation", "measurement"):
        assert f"{row} " in heard.getvalue()


def test_without_ciw_only_two_figures_are_missing_and_a_sentence_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    real = builtins.__import__

    def importing(name: str, *more: Any) -> Any:
        if name == "ciw":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(ConfigError, match=r'ciw.*not installed: pip install "geoflux\[dev\]"'):
        drs_model.ciw_within(TINY)
    monkeypatch.setattr(drs_model, "measure_model", lambda *_: table_figures())
    heard = StringIO()
    result = drs.run_model(Console(file=heard, width=200), TINY, tmp_path)
    assert "bulk_mmk_within" in result
    assert "ciw_within" not in result
    assert "left out: ciw, the simulator of others that ours is compared with" in heard.getvalue()
    assert '"geoflux[dev]"' in heard.getvalue()


def table_figures() -> dict[str, Any]:
    return {f"{name}_ms_k{k}": 0.5 for name in ("allocate", "measure") for k in TABLE_II}


def test_bulk_arrivals_mislead_the_model_that_knows_nothing_of_them() -> None:
    figures, drawn = drs_bulks.measure_bulks(20_000)
    assert list(drawn) == [5.0, 6.0]
    for best, second in drawn.values():
        assert (best.allocation, second.allocation) == ("2:4:1", "3:3:1")
        assert best.models["GI/G/k"] < second.models["GI/G/k"]
        assert best.models["M/M/k"] > second.models["M/M/k"]
        for one in (best, second):
            assert one.models["M/M/k"] < one.models["GI/G/k"] < one.simulated
    assert figures["bulk_gigk_within"] < figures["bulk_mmk_within"]
    assert figures["bulk_gigk_is_best"] == figures["bulk_total_is_best"] == 1.0
    assert figures["bulk_mmk_is_best"] < 0.9
    assert figures["bulk_total_within"] < 0.12, (
        "bulks that come regularly wait less than Poisson ones"
    )


def test_published_equations_are_those_of_the_model_where_nothing_comes_in_bulk() -> None:
    network = drs_bulks.frames(2.0, 8.0)
    single = replace(
        network, operators=tuple(replace(o, everything=False, service_rate=o.service_rate / 3) for o in network.operators),
        edges=tuple(replace(edge, mean=0.5) for edge in network.edges),
    )  # fmt: skip
    counts = (6, 2, 1)
    allocation = dict(zip(single.index, counts, strict=True))
    found = drs_bulks.published(single, counts)
    assert found["M/M/k"] == pytest.approx(predict(single, allocation, "mmk").summed)
    assert found["GI/G/k"] == pytest.approx(predict(single, allocation, "gigk").summed)
    assert drs_bulks.published(single, (1, 1, 1))["M/M/k"] == np.inf


def test_figure_6_marks_the_recommended_allocation(tmp_path: Path) -> None:
    path = drs_figures.allocations(tmp_path, "chain", RUNS, "5:6:1")
    written = words(path)
    groups = [text for text in written if ":" in text and text[0].isdigit()]
    assert groups == ["5:6:1 *", "9:2:1", "10:1:1"]
    assert {"others", "recommended", "1.3", "4.1"} <= set(written)
    assert path.name == "drs-6-chain.svg"


def test_figure_7_has_a_mark_per_allocation_and_a_diagonal(tmp_path: Path) -> None:
    overrun = Allocated("3:3:6", 9.0, 0.1, float("inf"))
    path = drs_figures.predicted(tmp_path, {"chain": [*RUNS, overrun], "loop": RUNS[:2]})
    assert (
        path.read_bytes()
        == drs_figures.predicted(tmp_path, {"chain": RUNS, "loop": RUNS[:2]}).read_bytes()
    )
    assert {"chain", "loop", "as predicted"} <= set(words(path))
    drawn = path.read_text(encoding="utf-8")
    # A mark is used once per allocation and once in the legend; no line joins them.
    assert drawn.count("<use xlink:href") >= 3 + 2 + 2
    assert "stroke: #2f6fde; stroke-width" not in drawn
    assert drawn.count("stroke-dasharray: 7.5") >= 1


def test_figure_8_marks_changes_in_the_colour_of_their_run(tmp_path: Path) -> None:
    times = [2.5, 7.5, 12.5]
    runs = [
        Changing("5:6:1", times, [1, 1, 1]),
        Changing("9:2:1", times, [3, 3, 1], [(9.0, "5:6:1")]),
    ]
    path = drs_figures.rearranged(tmp_path, "loop", runs)
    assert words(path).count("5:6:1") == 1
    without = drs_figures.rearranged(
        tmp_path / "still", "loop", [runs[0], replace(runs[1], changes=())]
    )
    assert colours(path, "#d9772b") > colours(without, "#d9772b")
    assert colours(path, "#2f6fde") == colours(without, "#2f6fde")


def test_figure_9_has_three_rows(tmp_path: Path) -> None:
    run = Changing("", [2.5, 7.5], [1.0, 2.0], [(6.0, "2:3:1")])
    path = drs_figures.stepped(
        tmp_path, Stepping(run, [(0, 20.0), (5, 40.0)], [(0, 4.0), (6, 6.0)], 1.5, 0.5, 10.0)
    )
    written = words(path)
    assert {"T_max", "T_min", "mean total sojourn time", "sojourn, seconds"} <= set(written)
    assert written.count("inputs a second") == written.count("processors") == 2, (
        "beside its row, and in the legend"
    )
    assert written.count("2:3:1") == 1, "the first row has the words"


def test_figure_10_has_a_group_per_rate_and_allocation(tmp_path: Path) -> None:
    both = {"M/M/k": 1.0, "GI/G/k": 2.0}
    path = drs_figures.bulks(
        tmp_path, {5.0: [Bulk("2:4:1", 3.0, both)], 6.0: [Bulk("2:4:1", 4.0, both)]}
    )
    written = words(path)
    assert {"simulated", "M/M/k", "GI/G/k", "5 frames a second", "6 frames a second"} <= set(
        written
    )


def decision(at: float, after: Mapping[str, int], carried_out: bool = True) -> ScaleDecision:
    return ScaleDecision(
        1, at, "scale_out", "shortage", "", {"a": 1, "b": 1}, after, carried_out, 1.0, 1.0, 1.0, 1.0
    )


def seen() -> Timeline:
    return Timeline(
        np.array([0.0, 1.0, 2.0, 11.0, 12.0]), np.array([1.0, 2.0, 3.0, 5.0, 7.0]),
        [decision(104.0, {"a": 2, "b": 1}), decision(107.0, {"a": 9, "b": 9}, False)], 100.0,
        {"a": [(0.5, 1), (5.0, 2), (6.0, 2)], "b": [(0.7, 1), (5.5, 1)]},
    )  # fmt: skip


def test_a_run_over_time_becomes_what_is_drawn() -> None:
    found = changing("1:1", seen())
    assert found == Changing("1:1", [2.5, 12.5], [2.0, 6.0], [(4.0, "2:1")]), (
        "nothing came from 5 to 10"
    )
    step = stepping(seen(), [(5.0, 20.0), (9.0, 40.0)], (0.5, 1.5))
    assert step.rates == [(0.0, 20.0), (5.0, 40.0)]
    assert step.processors == [(0.0, 2.0), (5.0, 3.0)]
    assert (step.shortest, step.longest, step.end) == (0.5, 1.5, 14.0)
    assert changing("", Timeline(np.empty(0), np.empty(0), (), 0.0)) == Changing("", [], [], [])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.floats(0, 99), st.integers(1, 9)), min_size=1, max_size=6),
        min_size=1,
        max_size=3,
    )
)
def test_processors_end_with_the_last_slots_of_all_and_change_at_every_entry(
    raw: list[list[tuple[float, int]]],
) -> None:
    slots = {str(n): sorted(one, key=lambda each: each[0]) for n, one in enumerate(raw)}
    unique = {n: [(at + 0.001 * i, k) for i, (at, k) in enumerate(one)] for n, one in slots.items()}
    out = processors(Timeline(np.empty(0), np.empty(0), (), 0.0, unique))
    assert out[0] == (0.0, sum(one[0][1] for one in unique.values()))
    assert out[-1][1] == sum(one[-1][1] for one in unique.values())
    assert [at for at, _ in out] == sorted(at for at, _ in out)


def test_a_part_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="no part nothing: expected model, share, chain, loop, changes"
    ):
        drs.run_benchmark(Console(quiet=True), True, tmp_path, ["nothing"])


def test_the_command_hands_on_its_parts_and_prints_what_never_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def run(_: Console, quick: bool, **more: Any) -> dict[str, Any]:
        asked.append((quick, more))
        return {"chain_recommended": "5:6:1", "shortage_seconds": None}

    monkeypatch.setattr(drs, "run_benchmark", run)
    ended = CliRunner().invoke(app, ["bench", "drs", "--quick", "--json", "--only", "model, chain"])
    assert ended.exit_code == 0, ended.output
    assert asked == [(True, {"parts": ["model", "chain"]})]
    assert json.loads(ended.stdout.splitlines()[-1]) == {
        "chain_recommended": "5:6:1",
        "shortage_seconds": None,
    }


def test_what_never_happened_misses_its_bar() -> None:
    heard = StringIO()
    told = {"a": None, "b": "5:6:1", "c": ["4:7:1", "3:8:1"]}
    print_result(Console(file=heard, width=120), "t", told, {"a": ("<=", 3.0)})
    assert "4:7:1, 3:8:1" in heard.getvalue()
    assert "never" in heard.getvalue()
    assert "missed" in heard.getvalue()
    assert not is_met(None, ("<=", 3.0))


@pytest.mark.parametrize("each", [drs_apps.CHAIN, drs_apps.LOOP], ids=lambda each: each.name)
def test_the_applications_are_topologies(each: drs_apps.App) -> None:
    topology = each.topology({part.name: 2 for part in each.parts})
    assert problems(topology) == []
    assert set(each.emulated) == {node.name for node in topology.nodes}
