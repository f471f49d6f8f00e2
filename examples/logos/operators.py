"""The three operators: features of a frame, features like a logo's, and what that says.

Frames are independent of one another, so the extractor and the matcher are keyed by frame and
remember nothing; the aggregator is keyed by camera.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from geoflux.operators.keyed import Operator
from logos.badges import SIDE, Badge
from logos.opencv import cv2

Floats = npt.NDArray[np.float32]
DESCRIPTOR = 128
"""Bytes of a SIFT descriptor."""
_VIEWS = (1.0, 0.7, 0.5, 0.35)
_FRAME = [("id", pa.string()), ("camera", pa.string()), ("time", pa.float64())]
_ROW = [("@row", pa.int64())]


class _Forgetful(Operator[None]):
    """An operator whose results depend on nothing but the row."""

    def empty(self) -> None:
        """Nothing."""

    def extract(self, state: None) -> Mapping[str, Any]:
        """Nothing, as one array, for a state is saved as arrays."""
        return {"nothing": np.zeros(1, np.int8)}

    def install(self, arrays: Mapping[str, Any]) -> None:
        """Nothing."""

    def size(self, state: None) -> int:
        """As good as nothing."""
        return 1


class Extractor(_Forgetful):
    """SIFT features of frames; frames that are no picture go to a stream of their own.

    ``points`` are their places (x and y, float32), ``descriptors`` 128 bytes each.
    """

    key = "id"
    columns = ("camera", "time", "image")
    streams = ("features", "unreadable")
    output = pa.schema(
        [
            *_FRAME,
            ("points", pa.binary()),
            ("descriptors", pa.binary()),
            ("features", pa.int64()),
            ("@stream", pa.string()),
            *_ROW,
        ]
    )

    def __init__(self, most: int = 500) -> None:
        self._most = most

    def process(self, state: None, rows: pa.Table) -> tuple[None, pa.Table]:
        """One row per frame."""
        found = [self._features(data) for data in rows.column("image").to_pylist()]
        read = np.array([one is not None for one in found], bool)
        sizes = [None if one is None else len(one[0]) for one in found]
        columns = {name: rows.column(name).combine_chunks() for name, _ in _FRAME} | {
            "points": pa.array([one and one[0].tobytes() for one in found], pa.binary()),
            "descriptors": pa.array([one and one[1].tobytes() for one in found], pa.binary()),
            "features": pa.array(sizes, pa.int64()),
            "@stream": pa.array(np.where(read, *self.streams)),
            "@row": pa.array(np.arange(len(rows))),
        }
        return None, pa.table(columns, schema=self.output)

    def _features(self, data: bytes | None) -> tuple[Floats, npt.NDArray[np.uint8]] | None:
        coded = np.frombuffer(data or b"", np.uint8)
        image = cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE) if coded.size else None
        return None if image is None else features(image, self._most)


def features(image: Any, most: int = 500) -> tuple[Floats, npt.NDArray[np.uint8]]:
    """Places and descriptors of the (``most``) strongest features of a grey picture."""
    points, descriptors = cv2.SIFT_create(most).detectAndCompute(image, None)
    if not points:
        return np.empty((0, 2), np.float32), np.empty((0, DESCRIPTOR), np.uint8)
    return cv2.KeyPoint.convert(points), descriptors.astype(np.uint8)


def _views(badge: Badge) -> tuple[Floats, npt.NDArray[np.uint8]]:
    """Features of a logo as it looks from near and from afar, at their places in the logo."""
    grey = cv2.cvtColor(badge.image, cv2.COLOR_BGR2GRAY)
    found = []
    for share in _VIEWS:
        small = cv2.resize(grey, None, fx=share, fy=share, interpolation=cv2.INTER_AREA)
        places, descriptors = features(small)
        found.append((places / np.float32(share), descriptors))
    return np.concatenate([p for p, _ in found]), np.concatenate([d for _, d in found])


class Matcher(_Forgetful):
    """Features of frames against those of a library of logos: pairs that are alike.

    A pair is a feature of the frame and the nearest one of the library, if they are closer than
    ``distance`` (L2) and than ``ratio`` times the nearest one of any other logo. One row per frame
    and logo with at least ``least`` pairs: x and y in the frame, x and y in the logo (float32).
    """

    key = "id"
    columns = ("camera", "time", "points", "descriptors")
    output = pa.schema([*_FRAME, ("logo", pa.string()), ("pairs", pa.binary()), *_ROW])

    def __init__(
        self, library: list[Badge], distance: float = 250.0, ratio: float = 0.85, least: int = 5
    ) -> None:
        known = [_views(badge) for badge in library]
        self._names = np.array([badge.name for badge in library])
        self._starts = np.cumsum([0] + [len(places) for places, _ in known])
        self._places = np.concatenate([places for places, _ in known])
        self._vectors = np.concatenate([vectors for _, vectors in known]).astype(np.float32)
        self._norms = (self._vectors**2).sum(axis=1)
        self._distance, self._ratio, self._least = distance, ratio, least

    def process(self, state: None, rows: pa.Table) -> tuple[None, pa.Table]:
        """Compare the features of all frames at once, some thousand at a time."""
        vectors, row = _flat(rows.column("descriptors"), np.uint8, DESCRIPTOR)
        points, _ = _flat(rows.column("points"), np.float32, 2)
        step = 2048
        parts = [self._alike(vectors[at : at + step]) for at in range(0, len(vectors), step)]
        nearest, logo = (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else (
            np.empty(0, np.int64), np.empty(0, np.int64)
        )  # fmt: skip
        paired = np.flatnonzero(nearest >= 0)
        group = row[paired] * len(self._names) + logo[paired]
        order = np.argsort(group, kind="stable")
        paired, (groups, firsts, counts) = paired[order], _runs(group[order])
        pairs = np.hstack([points[paired], self._places[nearest[paired]]])
        kept = counts >= self._least
        frames, logos = np.divmod(groups[kept], len(self._names))
        blobs = [
            pairs[first : first + count].tobytes()
            for first, count in zip(firsts[kept], counts[kept], strict=True)
        ]
        chosen = rows.select([name for name, _ in _FRAME]).take(pa.array(frames))
        columns = [*chosen.columns, pa.array(self._names[logos].tolist(), pa.string())]
        columns += [pa.array(blobs, pa.binary()), pa.array(frames)]
        return None, pa.table(columns, schema=self.output)

    def _alike(self, vectors: npt.NDArray[np.uint8]) -> tuple[Any, Any]:
        """For each descriptor the nearest one of the library (-1: none), and its logo."""
        given = vectors.astype(np.float32)
        squares = self._norms - 2 * (given @ self._vectors.T) + (given**2).sum(axis=1)[:, None]
        best = np.minimum.reduceat(squares, self._starts[:-1], axis=1)
        logo = best.argmin(axis=1)
        nearest = squares.argmin(axis=1)
        at = np.arange(len(given))
        closest = best[at, logo]
        best[at, logo] = np.inf
        good = (closest < self._distance**2) & (closest < self._ratio**2 * best.min(axis=1))
        return np.where(good, nearest, -1), logo


class Aggregator(Operator[dict[str, pd.DataFrame]]):
    """Which logo is in which frame, and in how many frames of a window of each camera.

    A logo is there if at least ``least`` of its pairs agree on one place, size and turn. Every
    sighting is a row: ``frames`` is how many frames of its window of ``seconds`` have shown this
    logo to this camera by then, so the last row of a window has the total. Windows that are
    ``kept`` or more behind the camera's latest are forgotten; a sighting of one is ``late``, and
    its ``frames`` 0.
    """

    key = "camera"
    columns = ("id", "time", "logo", "pairs")
    output = pa.schema(
        [*_FRAME, ("logo", pa.string()), ("agreeing", pa.int64())]
        + [(name, pa.float64()) for name in ("x", "y", "scale", "angle", "window")]
        + [("frames", pa.int64()), ("late", pa.bool_()), *_ROW]
    )

    def __init__(self, seconds: float = 5.0, kept: int = 12, least: int = 5) -> None:
        self._seconds, self._kept, self._least = seconds, kept, least

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
        seen["window"] = np.floor(seen["time"] / self._seconds).astype("int64")
        seen["late"] = self._late(state["latest"], seen)
        state, seen["frames"] = self._counted(state, seen)
        seen["window"] *= self._seconds
        columns = [pa.array(seen[f.name]).cast(f.type) for f in self.output if f.name != "@row"]
        return state, pa.table([*columns, pa.array(row)], schema=self.output)

    def _place(self, data: bytes) -> tuple[float, ...] | None:
        """Pairs that agree, the middle, the size and the turn of a logo; ``None``: not there."""
        there, logo = np.frombuffer(data, np.float32).reshape(-1, 2, 2).swapaxes(0, 1).copy()
        turn, agree = cv2.estimateAffinePartial2D(logo, there, ransacReprojThreshold=4.0)
        if turn is None or agree.sum() < self._least:
            return None
        x, y = turn @ (SIDE / 2, SIDE / 2, 1)
        scale, angle = np.hypot(turn[0, 0], turn[1, 0]), np.arctan2(turn[0, 1], turn[0, 0])
        return float(agree.sum()), x, y, float(scale), float(np.degrees(angle) % 360)

    def _late(self, latest: pd.DataFrame, seen: pd.DataFrame) -> Any:
        """Whether a sighting is too old, by what its camera has seen until then."""
        line = pd.concat([latest, seen[["camera", "window"]]], ignore_index=True)
        newest = line.groupby("camera")["window"].cummax()
        return (line["window"] <= newest - self._kept).to_numpy()[len(latest) :]

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
        counts = counts[counts["window"] > newest - self._kept].reset_index(drop=True)
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


def _flat(column: Any, kind: Any, width: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The vectors in a column of bytes, without copying, and the row that each is of."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    plain = array.cast(pa.large_binary())
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    each = np.dtype(kind).itemsize * width
    values = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].view(kind)
    rows = np.repeat(np.arange(len(plain)), np.diff(ends) // each)
    return values.reshape(-1, width), rows


def _runs(values: npt.NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """Of sorted values: each once, where it begins, how often it is there."""
    firsts = np.flatnonzero(np.diff(values, prepend=-1))
    return values[firsts], firsts, np.diff(firsts, append=len(values))
