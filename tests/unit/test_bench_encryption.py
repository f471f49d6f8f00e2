"""What encryption costs is measured on runs that do the same work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from geoflux.bench import encryption
from geoflux.errors import IntegrityError
from geoflux.state.seal import MARK


def test_plain_and_encrypted_runs_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(encryption.QUICK, queries=2000, events=2000, epochs=5)
    monkeypatch.setattr(encryption, "QUICK", small)
    result = encryption.encryption_slowdown(Console(quiet=True), tmp_path, quick=True, spark=False)
    assert result["encryption_slowdown"] == result["encryption_slowdown_state"] > 0
    assert result["unseal_gb_per_second"] > 0.05
    for kind in ("plain", "sealed"):
        kept = list((tmp_path / f"state-{kind}/state").iterdir())
        assert len(kept) > 5
        assert all(path.read_bytes().startswith(MARK) == (kind == "sealed") for path in kept)


def test_runs_that_differ_are_no_measurement() -> None:
    with pytest.raises(IntegrityError, match="found 3 matches, the plain one 5"):
        encryption._check_same({"plain": [2, 3], "sealed": [2, 1]})
