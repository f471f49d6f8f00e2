"""What was found, drawn into the frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from logos.badges import SIDE, Image
from logos.opencv import cv2

_GREEN, _BLACK = (60, 255, 60), (0, 0, 0)
_FONT = cv2.FONT_HERSHEY_SIMPLEX


def with_sightings(jpeg: bytes, sightings: Iterable[Mapping[str, Any]]) -> Image:
    """A frame with a circle and a name for every sighting in it."""
    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    for seen in sightings:
        middle, size = (round(seen["x"]), round(seen["y"])), round(seen["scale"] * SIDE / 2)
        cv2.circle(picture, middle, size + 2, _BLACK, 3)
        cv2.circle(picture, middle, size + 2, _GREEN, 2)
        text = f"{seen['logo']} ({seen['agreeing']})"
        (width, height), _ = cv2.getTextSize(text, _FONT, 0.4, 1)
        x = min(max(0, middle[0] - width // 2), picture.shape[1] - width)
        y = min(picture.shape[0] - 2, middle[1] + size + height + 5)
        cv2.rectangle(picture, (x - 2, y - height - 2), (x + width + 2, y + 2), _BLACK, -1)
        cv2.putText(picture, text, (x, y), _FONT, 0.4, _GREEN, 1, cv2.LINE_AA)
    return picture


def side_by_side(pictures: list[Image], columns: int) -> Image:
    """Pictures of one size as one, so many in a row."""
    blank = [np.zeros_like(pictures[0])] * (-len(pictures) % columns)
    lines = [*pictures, *blank]
    return np.vstack(
        [np.hstack(lines[at : at + columns]) for at in range(0, len(lines), columns)]
    )  # fmt: skip
