"""A run of an operator that kills itself (SIGKILL) at a named point of an epoch.

Usage: killed_operator.py POINT EPOCH FOLDER [MODULE]; the module of the tests says what is run.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from geoflux import keyed_api, run_operator
from geoflux.engine import staging
from geoflux.engine.keyed_engine import KeyedEngine
from geoflux.spark import stream
from geoflux.state.epoch_log import EpochLog

point, epoch, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
by_hand = importlib.import_module(sys.argv[4] if len(sys.argv) > 4 else "operators_by_hand")
current = [-1]


def around(owner: Any, name: str, before: str, after: str) -> None:
    """Die before or after a call."""
    real = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if name == "open" and owner is KeyedEngine:
            current[0] = args[1]
        _die_at(before)
        result = real(*args, **kwargs)
        _die_at(after)
        return result

    setattr(owner, name, wrapped)


def _die_at(name: str) -> None:
    if name == point and current[0] == epoch:
        print(f"killed at {point}", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


around(KeyedEngine, "open", "before-open", "after-open")
around(stream, "run_job", "before-job", "after-job")
around(EpochLog, "commit", "before-manifest", "after-manifest")
around(staging.Store, "move", "", "mid-publish")
around(KeyedEngine, "commit", "", "after-commit")
if hasattr(by_hand, "POLICY"):
    keyed_api.policy_of = lambda *given: by_hand.POLICY
run_operator(by_hand.OPERATOR, by_hand.config(folder), folder / "out", emulated=by_hand.SLOW)
