"""What several unit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with nothing beside it."""
    (tmp_path / "in").mkdir()
    return tmp_path / "in"
