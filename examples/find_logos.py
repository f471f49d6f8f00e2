"""Find logos in the video of several cameras: an application of three operators.

    python examples/find_logos.py

Frames are made, with logos planted in them, so that what is found can be compared with what is
there. The tutorial in docs/tutorial-logos.md walks through it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import geoflux
from logos.aggregator import Aggregator
from logos.badges import write_badges
from logos.drawing import side_by_side, with_sightings
from logos.extractor import Extractor
from logos.matcher import Matcher
from logos.opencv import cv2
from logos.video import Video

WINDOW = 2.0


def main() -> int:
    """Make a video, look for the logos, compare with the truth, draw some frames."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frames", type=int, default=40, help="of each of the four cameras")
    parser.add_argument("--out", type=Path, help="keep the run in this folder")
    parser.add_argument("--picture", type=Path, help="draw some frames into this file (PNG)")
    parser.add_argument("--make", type=Path, help="only write frames and logos into this folder")
    given = parser.parse_args()
    video = Video(shot=10)
    with tempfile.TemporaryDirectory(prefix="logos-") as name:
        folder = given.make or Path(name)
        write_badges(folder / "logos", video.library)
        frames = list(video.write(folder / "frames", given.frames))
        truth = video.truth(given.frames)
        print(f"{given.frames * video.cameras} frames of {video.cameras} cameras, ", end="")
        print(f"{video.logos} logos, planted {len(truth)} times")
        if given.make:
            return 0
        out = given.out or Path(name) / "out"
        seen = watched(folder, out)
        compared(truth, seen)
        windows(seen)
        if given.picture:
            drawn(given.picture, frames, seen)
        found = geoflux.verify_topology(out)
    if not found.is_clean:
        print(f"not as it should be: {found.as_dict()}")
        return 1
    print("verified: every stream came over once, every result is as it should be")
    return 0


def watched(folder: Path, out: Path) -> list[dict[str, Any]]:
    """Run the application over all frames; returns the sightings."""
    topology = geoflux.Topology(
        (
            geoflux.Node("extractor", Extractor(), slots=2),
            geoflux.Node("matcher", Matcher(str(folder / "logos")), reads="extractor.features"),
            geoflux.Node("aggregator", Aggregator(seconds=WINDOW), reads="matcher", slots=1),
        )
    )
    config = geoflux.Config.from_dict(
        {
            "source": {"kind": "files", "path": str(folder / "frames")},
            "engine": {"slots": 2, "epoch_events": 40},
            "flux": {"partitions": 8},
        }
    )
    summary = geoflux.run_topology(topology, config, out)
    for name, told in summary.operators.items():
        print(f"{name:<10} {told['processed']:>5} rows in, {told['results']:>5} out, ", end="")
        print(f"{told['epochs']:>2} epochs")
    rows: list[dict[str, Any]] = pq.read_table(out / "aggregator" / "results").to_pylist()
    return rows


def compared(truth: set[tuple[str, str]], seen: Sequence[dict[str, Any]]) -> None:
    """How much of what was found is there, and how much of what is there was found."""
    found = {(row["id"], row["logo"]) for row in seen}
    right = len(found & truth)
    print(f"found {len(found)}, of which {right} are right: ", end="")
    print(f"precision {right / len(found):.3f}, recall {right / len(truth):.3f}")


def windows(seen: Sequence[dict[str, Any]]) -> None:
    """The logos that cameras saw longest within a window."""
    table = pa.Table.from_pylist(list(seen)).to_pandas()
    most = table.groupby(["window", "camera", "logo"], as_index=False)["frames"].max()
    most = most.sort_values(
        ["frames", "window", "camera", "logo"], ascending=[False, True, True, True]
    )
    print(most.head(3).to_string(index=False))


def drawn(path: Path, files: Sequence[Path], seen: Sequence[dict[str, Any]]) -> None:
    """Some frames with what was found in them."""
    frames = pa.concat_tables([pq.read_table(file) for file in files])
    chosen = frames.take(pa.array(range(0, len(frames), len(frames) // 8 + 1))).to_pylist()
    pictures = [
        with_sightings(frame["image"], [row for row in seen if row["id"] == frame["id"]])
        for frame in chosen
    ]
    cv2.imwrite(str(path), side_by_side(pictures, 4))
    print(f"drawn: {path}")


if __name__ == "__main__":
    sys.exit(main())
