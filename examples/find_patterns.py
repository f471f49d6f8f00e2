"""Find the maximal frequent patterns of a word stream: an application with a loop.

    python examples/find_patterns.py

Which sets of words are in many of the last sentences, and are in no larger such set? The tutorial
in docs/tutorial-patterns.md walks through it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import geoflux
from patterns.detector import Detector
from patterns.generator import Generator
from patterns.miner import maximal
from patterns.reporter import Reporter
from patterns.sentences import Sentences

WINDOW, THRESHOLD, LONGEST = 500, 12, 8


def main() -> int:
    """Make a stream, look for its patterns, compare with trying everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--out", type=Path, help="keep the run in this folder")
    parser.add_argument("--make", type=Path, help="only write the sentences into this folder")
    given = parser.parse_args()
    stream = Sentences(WINDOW)
    with tempfile.TemporaryDirectory(prefix="patterns-") as name:
        folder = given.make or Path(name) / "sentences"
        stream.write(folder, given.sentences)
        if given.make:
            return 0
        out = given.out or Path(name) / "out"
        run(folder, out)
        changes = read(out)
        now = {row["itemset"]: row for row in changes}
        found = {itemset for itemset, row in now.items() if row["is_maximal"]}
        verified = geoflux.verify_topology(out)
    last = max(0, given.sentences - WINDOW)
    window = stream.table(last, given.sentences - last).column("text").to_pylist()
    expected = maximal(window, THRESHOLD, LONGEST)
    for itemset in sorted(expected, key=lambda s: (-len(s.split()), s))[:5]:
        print(f"  {itemset}: in {expected[itemset]} of the last {len(window)} sentences")
    print(f"{len(changes)} changes; {len(found)} patterns at the end, ", end="")
    print("the same as by brute force" if found == set(expected) else "NOT as by brute force")
    if not verified.is_clean:
        print(f"not as it should be: {verified.as_dict()}")
        return 1
    print("verified: every stream came over once, every result is as it should be")
    return 0 if found == set(expected) else 1


def run(folder: Path, out: Path) -> None:
    """Run the application over all sentences."""
    topology = geoflux.Topology(
        (
            geoflux.Node(
                "generator", Generator(LONGEST), slots=1, settings={"engine": {"epoch_events": 500}}
            ),
            geoflux.Node("detector", Detector(THRESHOLD), reads=("generator", "detector.around")),
            geoflux.Node("reporter", Reporter(), reads="detector.maximal", slots=1),
        )
    )
    config = geoflux.Config.from_dict(
        {
            "source": {"kind": "files", "path": str(folder), "id": "@position"},
            "engine": {"slots": 2, "epoch_events": 20_000},
            "flux": {"partitions": 8},
        }
    )
    summary = geoflux.run_topology(topology, config, out)
    for name, told in summary.operators.items():
        print(f"{name:<10} {told['processed']:>7} rows in, {told['results']:>7} out, ", end="")
        print(f"{told['epochs']:>2} epochs")


def read(out: Path) -> list[dict[str, Any]]:
    """What the reporter wrote, in order: the last row of a pattern says whether it is one."""
    rows = pq.read_table(out / "reporter" / "results").to_pylist()
    return sorted(rows, key=lambda row: row["epoch"])  # stable: in the order of the files


if __name__ == "__main__":
    sys.exit(main())
