"""The features of all logos that are looked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from logos.extractor import Bytes, Floats, features
from logos.opencv import cv2

_VIEWS = (1.0, 0.7, 0.5, 0.35)
"""Sizes at which a logo is looked at: its features are others from afar."""


@dataclass(frozen=True, eq=False)
class Library:
    """Features of all logos, those of logo ``i`` from ``starts[i]`` to ``starts[i + 1]``."""

    names: list[str]
    starts: npt.NDArray[np.int64]
    places: Floats
    vectors: Floats
    norms: Floats


@lru_cache(maxsize=4)
def library_of(folder: str) -> Library:
    """The pictures of a folder, by name; read once by every worker."""
    paths = sorted(Path(folder).glob("*.png"))
    known = [_views(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)) for path in paths]
    places, vectors = (np.concatenate(parts) for parts in zip(*known, strict=True))
    vectors = vectors.astype(np.float32)
    starts = np.cumsum([0] + [len(some) for some, _ in known])
    return Library([p.stem for p in paths], starts, places, vectors, (vectors**2).sum(axis=1))


def _views(grey: Any) -> tuple[Floats, Bytes]:
    """Features of a logo as it looks from near and from afar, at their places in the logo."""
    found = []
    for share in _VIEWS:
        small = cv2.resize(grey, None, fx=share, fy=share, interpolation=cv2.INTER_AREA)
        places, descriptors = features(small)
        found.append((places / np.float32(share), descriptors))
    return np.concatenate([p for p, _ in found]), np.concatenate([d for _, d in found])
