"""The reference of settings is generated: it must be what the program says today."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

from geoflux.cli.settings_page import page
from geoflux.config import Config
from geoflux.sections import HotspotConfig

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_committed_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/settings.md is stale; run python -m geoflux.cli.settings_page docs/settings.md"
    )


def test_every_setting_has_a_row_with_its_variable() -> None:
    text = page()
    for name, section in get_type_hints(Config).items():
        for spec in fields(section):
            assert f"| `{spec.name}`<br>`GEOFLUX_{name.upper()}_{spec.name.upper()}` |" in text
    for spec in fields(HotspotConfig):
        assert f"| `{spec.name}` |" in text


def test_ranges_come_from_the_checks() -> None:
    rows = {line.split("`")[1]: line for line in page().splitlines() if line.startswith("| `")}
    assert "whole number, 1 to 4,096" in rows["slots"]
    assert "one of `uniform`, `history`, `replicated`" in rows["balance"]
    assert "a duration, or empty for none" in rows["lateness"]
    assert "list of 2 whole numbers" in rows["grid"]


def test_the_environment_variables_are_the_ones_that_are_read() -> None:
    config = Config.load(environment={"GEOFLUX_ENGINE_SLOTS": "8", "GEOFLUX_SPACE_GRID": "[9, 9]"})
    assert (config.engine.slots, config.space.grid) == (8, (9, 9))
