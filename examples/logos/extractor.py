"""Features of frames. They are independent of one another, so frames are dealt out by their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from logos.frames import FRAME, ROW, Forgetful
from logos.opencv import cv2

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
DESCRIPTOR = 128
"""Bytes of a SIFT descriptor."""


@dataclass(frozen=True)
class Extractor(Forgetful):
    """SIFT features of frames, the ``most`` strongest.

    ``points`` are their places (x and y, float32), ``descriptors`` 128 bytes each. What is no
    picture goes to a stream of its own.
    """

    most: int = 500
    key = "id"
    columns = ("camera", "time", "image")
    streams = ("features", "unreadable")
    output = pa.schema(
        [
            *FRAME,
            ("points", pa.binary()),
            ("descriptors", pa.binary()),
            ("features", pa.int64()),
            ("@stream", pa.string()),
            ROW,
        ]
    )

    def process(self, state: None, rows: pa.Table) -> tuple[None, pa.Table]:
        """One row per frame."""
        found = [self._features(data) for data in rows.column("image").to_pylist()]
        read = np.array([one is not None for one in found], bool)
        sizes = [None if one is None else len(one[0]) for one in found]
        columns = {name: rows.column(name).combine_chunks() for name, _ in FRAME} | {
            "points": pa.array([one and one[0].tobytes() for one in found], pa.binary()),
            "descriptors": pa.array([one and one[1].tobytes() for one in found], pa.binary()),
            "features": pa.array(sizes, pa.int64()),
            "@stream": pa.array(np.where(read, *self.streams)),
            "@row": pa.array(np.arange(len(rows))),
        }
        return None, pa.table(columns, schema=self.output)

    def _features(self, data: bytes | None) -> tuple[Floats, Bytes] | None:
        coded = np.frombuffer(data or b"", np.uint8)
        image = cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE) if coded.size else None
        return None if image is None else features(image, self.most)


def features(image: Any, most: int = 500) -> tuple[Floats, Bytes]:
    """Places and descriptors of the (``most``) strongest features of a grey picture."""
    points, descriptors = cv2.SIFT_create(most).detectAndCompute(image, None)
    if not points:
        return np.empty((0, 2), np.float32), np.empty((0, DESCRIPTOR), np.uint8)
    return cv2.KeyPoint.convert(points), descriptors.astype(np.uint8)
