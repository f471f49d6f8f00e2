"""A hotspot appears in the middle of a run, and the plan follows it.

    python examples/hotspot.py

The tutorial in docs/tutorial-hotspot.md walks through it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import geoflux

SETTINGS = {
    "space": {"bounds": [-125, 24, -66, 50], "grid": [500, 500]},
    "simulate": {
        "region": "us", "rate": 10_000, "queries": 5_000, "query_rate": 0, "time_speed": 0,
        "hotspots": [
            {"at": [0.02, 0.05], "start": 0.4, "stop": 1.0, "peak": 0.4, "intensity": "step",
             "queries": 5_000}
        ],
    },
    "engine": {"slots": 4, "balance": "swarm", "epoch_events": 10_000},
    "swarm": {"round": "1s"},
    "run": {"duration": "20s"},
}  # fmt: skip


def main() -> int:
    """Run, show what was decided and why, recompute everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="keep the run in this folder")
    parser.add_argument("--published", action="store_true", help="SWARM to the letter")
    given = parser.parse_args()
    settings: dict[str, Any] = dict(SETTINGS)
    if given.published:
        settings["swarm"] = {**settings["swarm"], "mode": "published"}
    seen: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="hotspot-") as name:
        out = given.out or Path(name) / "run"
        geoflux.run(geoflux.Config.from_dict(settings), out, on_epoch=seen.append)
        show(seen)
        found = geoflux.verify(out)
    print(
        f"verified {found.matches} matches: {found.missing} missing, {found.duplicate} "
        f"duplicate, {found.extra} wrong"
    )
    return 0 if found.is_clean else 1


def show(manifests: list[dict[str, Any]]) -> None:
    """What changed the plan, and how evenly the work was spread in the end."""
    began = manifests[0]["opened"]
    for manifest in manifests:
        changes = Counter(change["kind"] for change in manifest["decision"]["changes"])
        if changes:
            what = ", ".join(f"{count} {kind}" for kind, count in sorted(changes.items()))
            when = manifest["committed"] - began
            print(f"after {when:4.1f} s: {what}: {manifest['decision']['reason']}")
    for label, some in (("first", manifests[:3]), ("last", manifests[-3:])):
        work = [sum(m["slots"][slot]["work"] for m in some) for slot in range(4)]
        print(f"{label} epochs: the busiest slot did {4 * max(work) / sum(work):.2f}x the mean")


if __name__ == "__main__":
    sys.exit(main())
