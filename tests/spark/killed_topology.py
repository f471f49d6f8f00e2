"""An application that kills itself (SIGKILL) around a manifest of one of its operators.

Usage: killed_topology.py POINT OPERATOR EPOCH FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from geoflux import run_topology
from geoflux.state.epoch_log import EpochLog
from topologies_by_hand import LOOP, ROWS, config_of

point, operator, number, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
real = EpochLog.commit


def commit(self: EpochLog, epoch: int, manifest: dict[str, Any]) -> None:
    """Die before or after the manifest."""
    _die_at("before", self, epoch)
    real(self, epoch, manifest)
    _die_at("after", self, epoch)


def _die_at(name: str, log: EpochLog, epoch: int) -> None:
    if (name, operator, number) == (point, Path(log.store.root).name, epoch):
        print(f"killed {point} {operator}", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


EpochLog.commit = commit  # type: ignore[method-assign]
run_topology(LOOP, config_of(folder, ROWS, 150), folder / "out")
