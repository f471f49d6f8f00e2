"""Badges to look for: round pictures with shapes and letters, each drawn from its own seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from logos.opencv import cv2

Image = npt.NDArray[np.uint8]
SIDE = 128
_LETTERS = np.array(list("ABCDEFGHKLMNPRSTUVXYZ"))


@dataclass(frozen=True, eq=False)
class Badge:
    """A logo: its name, and ``SIDE`` by ``SIDE`` pixels (blue, green, red) within a circle."""

    name: str
    image: Image

    @property
    def mask(self) -> Image:
        """255 inside the circle, 0 outside."""
        mask = np.zeros((SIDE, SIDE), np.uint8)
        cv2.circle(mask, (SIDE // 2, SIDE // 2), SIDE // 2 - 2, 255, -1)
        return mask


def badges(seed: int, count: int, prefix: str = "logo") -> list[Badge]:
    """So many badges; the same ones for the same seed."""
    draws = [np.random.default_rng([seed, i]) for i in range(count)]
    return [Badge(f"{prefix}-{i:02d}", _drawn(draw)) for i, draw in enumerate(draws)]


def write_badges(folder: Path, some: list[Badge]) -> None:
    """A library: a picture of each, named as the logo."""
    folder.mkdir(parents=True, exist_ok=True)
    for badge in some:
        cv2.imwrite(str(folder / f"{badge.name}.png"), badge.image)


def _drawn(draw: np.random.Generator) -> Image:
    """A ring, a few polygons, three letters: corners and blobs at many scales."""
    image = np.zeros((SIDE, SIDE, 3), np.uint8)
    middle = (SIDE // 2, SIDE // 2)
    ring, field, *inks = _colours(draw, 6)
    cv2.circle(image, middle, SIDE // 2 - 2, ring, -1)
    cv2.circle(image, middle, SIDE // 2 - 10, field, -1)
    for ink in inks[:4]:
        corners = draw.integers(24, SIDE - 24, (int(draw.integers(3, 6)), 2)).astype(np.int32)
        cv2.fillPoly(image, [cv2.convexHull(corners)], ink)
    for dot in _colours(draw, 6):
        x, y = draw.integers(26, SIDE - 26, 2)
        cv2.circle(image, (int(x), int(y)), int(draw.integers(3, 9)), dot, -1)
    text = "".join(draw.choice(_LETTERS, 3))
    place = (int(draw.integers(18, 30)), int(draw.integers(60, 92)))
    cv2.putText(image, text, place, cv2.FONT_HERSHEY_DUPLEX, 1.2, (0, 0, 0), 8)
    cv2.putText(image, text, place, cv2.FONT_HERSHEY_DUPLEX, 1.2, (255, 255, 255), 3)
    return image


def _colours(draw: np.random.Generator, count: int) -> list[tuple[int, int, int]]:
    """Light and dark ones in turn: features are found in grey."""
    light = np.arange(count) % 2 * 130
    return [
        (int(b), int(g), int(r)) for b, g, r in draw.integers(0, 125, (count, 3)) + light[:, None]
    ]
