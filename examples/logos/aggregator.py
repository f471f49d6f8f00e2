"""What pairs of features say: which logo is in which frame, and in how many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from geoflux.operators.keyed import Operator
from logos.badges import SIDE
from logos.frames import FRAME, ROW
from logos.opencv import cv2


@dataclass(frozen=True)
class Aggregator(Operator[dict[str, pd.DataFrame]]):
    """Which logo is in which frame, and in how many frames of a window of each camera.

    A logo is there if at least ``least`` of its pairs agree on one place, size and turn. Every
    sighting is a row: ``frames`` is how many frames of its window of ``seconds`` have shown this
    logo to this camera by then, so the last row of a window has the total. Windows that are
    ``kept`` or more behind the camera's latest are forgotten; a sighting of one is ``late``, and
    its ``frames`` 0.
    """

    seconds: float = 5.0
    kept: int = 12
    least: int = 5
    key = "camera"
    columns = ("id", "time", "logo", "pairs")
    output = pa.schema(
        [*FRAME, ("logo", pa.string()), ("agreeing", pa.int64())]
        + [(name, pa.float64()) for name in ("x", "y", "scale", "angle", "window")]
        + [("frames", pa.int64()), ("late", pa.bool_()), ROW]
    )

    def empty(self) -> dict[str, pd.DataFrame]:
        """No windows, and no camera has been seen."""
        counts = {"camera": "str", "logo": "str", "window": "int64", "frames": "int64"}
        return {
            "counts": pd.DataFrame({n: pd.Series(dtype=kind) for n, kind in counts.items()}),
            "latest": pd.DataFrame({"camera": pd.Series(dtype="str"), "window": np.empty(0, int)}),
        }

    def process(
        self, state: dict[str, pd.DataFrame], rows: pa.Table
    ) -> tuple[dict[str, pd.DataFrame], pa.Table]:
        """Judge each frame and logo, then count in columns."""
        found = [self._place(pairs) for pairs in rows.column("pairs").to_pylist()]
        row = np.array([i for i, place in enumerate(found) if place is not None], np.int64)
        seen = rows.select(["id", "camera", "time", "logo"]).take(pa.array(row)).to_pandas()
        places = np.array([place for place in found if place is not None]).reshape(-1, 5)
        seen[["agreeing", "x", "y", "scale", "angle"]] = places
        seen["window"] = np.floor(seen["time"] / self.seconds).astype("int64")
        seen["late"] = self._late(state["latest"], seen)
        state, seen["frames"] = self._counted(state, seen)
        seen["window"] *= self.seconds
        columns = [pa.array(seen[f.name]).cast(f.type) for f in self.output if f.name != "@row"]
        return state, pa.table([*columns, pa.array(row)], schema=self.output)

    def _place(self, data: bytes) -> tuple[float, ...] | None:
        """Pairs that agree, the middle, the size and the turn of a logo; ``None``: not there."""
        there, logo = np.frombuffer(data, np.float32).reshape(-1, 2, 2).swapaxes(0, 1).copy()
        turn, agree = cv2.estimateAffinePartial2D(logo, there, ransacReprojThreshold=4.0)
        if turn is None or agree.sum() < self.least:
            return None
        x, y = turn @ (SIDE / 2, SIDE / 2, 1)
        scale, angle = np.hypot(turn[0, 0], turn[1, 0]), np.arctan2(turn[0, 1], turn[0, 0])
        return float(agree.sum()), x, y, float(scale), float(np.degrees(angle) % 360)

    def _late(self, latest: pd.DataFrame, seen: pd.DataFrame) -> Any:
        """Whether a sighting is too old, by what its camera has seen until then."""
        line = pd.concat([latest, seen[["camera", "window"]]], ignore_index=True)
        newest = line.groupby("camera")["window"].cummax()
        return (line["window"] <= newest - self.kept).to_numpy()[len(latest) :]

    def _counted(
        self, state: dict[str, pd.DataFrame], seen: pd.DataFrame
    ) -> tuple[dict[str, pd.DataFrame], Any]:
        """The state with the sightings in it, and for each the number of its window."""
        by = ["camera", "logo", "window"]
        before = seen[by].merge(state["counts"], on=by, how="left")["frames"].fillna(0)
        fresh = (~seen["late"]).astype("int64").groupby([seen[name] for name in by]).cumsum()
        numbers = (before.to_numpy() + fresh.to_numpy()).astype("int64")
        numbers[seen["late"]] = 0
        added = seen[by].assign(frames=numbers)[~seen["late"]]
        latest = pd.concat([state["latest"], seen[["camera", "window"]]], ignore_index=True)
        latest = latest.groupby("camera", as_index=False)["window"].max()
        counts = pd.concat([state["counts"], added], ignore_index=True)
        counts = counts.groupby(by, as_index=False)["frames"].max()
        newest = counts["camera"].map(latest.set_index("camera")["window"])
        counts = counts[counts["window"] > newest - self.kept].reset_index(drop=True)
        return {"counts": counts, "latest": latest}, numbers

    def extract(self, state: dict[str, pd.DataFrame]) -> Mapping[str, Any]:
        """The columns of both tables."""
        return {
            f"{table}.{name}": pa.array(state[table][name], from_pandas=True)
            for table in state
            for name in state[table].columns
        }

    def install(self, arrays: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
        """The tables again."""
        state = self.empty()
        return {
            table: pd.DataFrame({n: arrays[f"{table}.{n}"].to_pandas() for n in columns})
            for table, columns in state.items()
        }

    def size(self, state: dict[str, pd.DataFrame]) -> int:
        """Their bytes, about."""
        return sum(int(table.memory_usage(deep=False).sum()) for table in state.values()) + 1
