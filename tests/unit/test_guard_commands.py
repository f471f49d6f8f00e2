"""``geoflux guard``: what an operator sees and does, also while the run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from geoflux.balance.policy import Static
from geoflux.cli.display import Display
from geoflux.cli.doctor import _run as looked_at
from geoflux.cli.main import app
from geoflux.cli.report import write_report
from geoflux.cli.report_guard import guard_card
from geoflux.config import Config
from geoflux.engine.guard_reader import guard_view
from geoflux.engine.summary import summarised
from geoflux.errors import ConfigError, GeofluxError, StateError
from geoflux.guard import Block
from geoflux.state.epoch_log import EpochLog
from guarded_run import GUARD, Run, Story, play, started


@pytest.fixture
def run(tmp_path: Path) -> tuple[Run, Story, str]:
    """A run that has done two epochs."""
    story = Story(1, 8, 20, attack=99)
    run = started(tmp_path, story, GUARD, Static())
    play(run, story, range(2))
    noted(run)
    return run, story, str(tmp_path / "out")


def noted(run: Run, **more: Any) -> None:
    values = {"config": run.setting.config.as_dict(), "lane": "fast", "schema": "", "started": 0.0}
    run.setting.store.write_json("run.json", values | more)


def geoflux(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["guard", *arguments], env={"COLUMNS": "200"})
    if isinstance(done.exception, GeofluxError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def last_json(text: str) -> Any:
    return json.loads(text.strip().splitlines()[-1])


def test_block_list_lift(run: tuple[Run, Story, str]) -> None:
    going, story, out = run
    assert "nobody is blocked after epoch 1" in geoflux("list", out)
    told = last_json(
        geoflux("block", "user-3", out, "--reason", "asked [to]", "--for", "1h", "--json")
    )
    assert (told["op"], told["user"], told["seconds"]) == ("block", "user-3", 3600.0)
    assert (Path(out) / told["request"]).exists()
    assert "waits for the next epoch: block user-3" in geoflux("list", out)
    play(going, story, range(2, 3))
    listed = geoflux("list", out, "--json")
    (block,) = last_json(listed)["blocks"]
    assert (block["user"], block["by"], block["reason"]) == ("user-3", "operator", "asked [to]")
    assert block["until"] == block["since"] + 3600
    assert (last_json(listed)["epoch"], last_json(listed)["waiting"]) == (2, [])
    assert "1 user blocked after epoch 2" in listed
    assert "asked [to]" in listed
    assert "user-3 will be let in again" in geoflux("lift", "user-3", out)
    play(going, story, range(3, 4))
    assert last_json(geoflux("list", out, "--json"))["blocks"] == []
    explained = geoflux("explain", "user-3", out, "--json")
    assert "user-3 was blocked (lifted) by operator: asked [to]" in explained
    assert [b["ended"] for b in last_json(explained)["blocks"]] == ["lifted"]
    assert "is not blocked, and was not lately" in geoflux("explain", "nobody", out)


def test_mistakes_are_one_sentence(run: tuple[Run, Story, str], tmp_path: Path) -> None:
    going, _, out = run
    with pytest.raises(ConfigError, match="'nobody' is not blocked in"):
        geoflux("lift", "nobody", out)
    with pytest.raises(ConfigError, match="--for soon: 'soon' is not a duration"):
        geoflux("block", "user-3", out, "--for", "soon")
    with pytest.raises(ConfigError, match="more than 0 s"):
        geoflux("block", "user-3", out, "--for", "0s")
    with pytest.raises(StateError, match="holds no run"):
        geoflux("list", str(tmp_path / "nowhere"))
    noted(going, operator="words")
    with pytest.raises(StateError, match="operator words, which has no users"):
        geoflux("list", out)
    off = Config.from_dict(going.setting.config.as_dict() | {"guard": {}})
    noted(going, config=off.as_dict())
    with pytest.raises(ConfigError, match=r"guard\.enabled = true"):
        geoflux("block", "user-3", out)
    assert "Guard is off" in geoflux("list", out)


def test_a_state_that_went_away_while_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on after the manifest was read, and clears away what that names."""
    story = Story(1, 8, 20, attack=99)
    run = started(tmp_path, story, GUARD | {"round": "1s"}, Static())
    (*_, last) = play(run, story, range(2))
    noted(run)
    real, read = EpochLog.manifest, []

    def manifest(log: EpochLog, epoch: int) -> Any:
        found = real(log, epoch)
        read.append(epoch)
        if len(read) == 1:
            play(run, story, range(2, 6))
        return found

    monkeypatch.setattr(EpochLog, "manifest", manifest)
    assert guard_view(tmp_path / "out").epoch == 5
    assert (read[0], read[-1]) == (1, 5)
    assert not run.setting.store.exists(last["guard"]["state"])


EVIDENCE = {
    "user": "mallory", "reason": "part of hotspots", "features": {"new_queries": 60.0}, "cluster": ["mallory", "eve"],
    "cluster_size": 2, "rounds": [5, 6], "compared": {},
    "hotspots": [{"hotspots": [1], "round": 5, "queries": 60.0, "rate": 1.0, "place": [1.0, 2.0, 3.0, 4.0]},
                 {"hotspot": 7, "round": 6}],
}  # fmt: skip


def blocked(store: Any) -> None:
    """The last manifest of a run as if somebody had been found out in it."""
    name = f"epochs/manifests/{1:012d}.json"
    manifest = store.read_json(name)
    block = Block("mallory", 1002.0, None, "guard", "<part> of hotspots", EVIDENCE)
    manifest["guard"] |= {"blocks": [block.to_dict()], "blocked": 1, "hotspots": 2}
    store.write_json(name, manifest)


def test_display_report_summary_and_doctor_tell(run: tuple[Run, Story, str]) -> None:
    going, _, out = run
    store, config = going.setting.store, going.setting.config
    assert "nobody is blocked" in looked_at(Path(out)).found
    blocked(store)
    manifest = store.read_json(f"epochs/manifests/{1:012d}.json")
    console = Console(width=160, force_terminal=True, color_system=None)
    display = Display(console, Path(out))
    with console.capture() as told:
        display.epoch(manifest)  # no live view, so that it is said at once
        console.print(display._view(console.width))
    text = " ".join(told.get().split())
    assert "geoflux: mallory is blocked by guard: <part> of hotspots" in text
    assert "guard round 0, 1 user blocked" in text
    assert "2 hotspots in rounds 5 to 6" in text
    summary = summarised(config, store)
    assert (summary.blocked, summary.refused) == (1, 0)
    page = Path(write_report(config, store, summary)).read_text()
    assert "&lt;part&gt; of hotspots" in page
    assert (
        "2 hotspots in rounds 5 to 6, up to 100% of what they placed lately in one; 2 users alike"
        in page
    )
    assert guard_card([]) == ""


def test_evidence_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from geoflux.cli.guard_print import print_explanation

    console = Console(width=120, color_system=None)
    block = Block("mallory", 1002.0, 1062.0, "guard", "part of hotspots", EVIDENCE)
    with console.capture() as told:
        print_explanation(console, "mallory", [block])
    text = " ".join(told.get().split())
    assert "since 1970-01-01 00:16:42Z, until 1970-01-01 00:17:42Z" in text
    assert "found together: mallory, eve" in text
    assert "100%" in text
    assert "1, 2, 3, 4" in text
    assert "new queries" in text
