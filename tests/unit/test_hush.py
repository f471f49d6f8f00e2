"""A worker that Spark hangs up on says nothing; any other failure is told."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from geoflux.spark.hush import hush


def _ended_by(error: BaseException) -> None:
    """What Spark's daemon does with an error of a worker."""
    daemon: Any = SimpleNamespace(traceback=None)
    hush(daemon)
    try:
        raise error
    except BaseException:
        daemon.traceback.print_exc()


def test_a_closed_socket_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    _ended_by(BrokenPipeError())
    assert capsys.readouterr().err == ""


def test_other_failures_are(capsys: pytest.CaptureFixture[str]) -> None:
    _ended_by(MemoryError("no room"))
    assert "MemoryError: no room" in capsys.readouterr().err


def test_a_process_that_is_no_daemon_is_left_alone() -> None:
    main = sys.modules["__main__"]
    before = getattr(main, "traceback", None)
    hush()
    assert getattr(main, "traceback", None) is before
