"""A video that nobody filmed: cameras that pan over a scene with badges in it, and the truth.

Everything follows from the seed, frame by frame, so any frame can be made by itself, and what is
to be found in it is known: which logos, where, how large, how turned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logos.badges import SIDE, Badge, Image, badges
from logos.opencv import cv2

WIDTH, HEIGHT = 320, 240
FRAME = pa.schema(
    [
        ("id", pa.string()),
        ("camera", pa.string()),
        ("time", pa.float64()),
        ("image", pa.binary()),
    ]
)
_QUALITY = [cv2.IMWRITE_JPEG_QUALITY, 85]
_LANES = 3
"""At most one badge in each third of the picture, so that none hides another."""


@dataclass(frozen=True)
class Planted:
    """A badge in a frame: its middle in pixels, its size as a share of ``SIDE``, degrees that it is
    turned, and how narrow it looks because it is seen from the side (1: not at all)."""

    logo: str
    x: float
    y: float
    scale: float
    angle: float
    narrow: float


@dataclass(frozen=True)
class Video:
    """``cameras`` that see ``logos`` badges, and ``strangers`` that are in no library.

    A shot lasts ``shot`` frames. In it each third of the picture has a badge with probability
    ``shown``: it drifts, grows or shrinks (from 0.3 to 0.75 of ``SIDE``), turns, and is seen more
    or less from the side. The light changes from shot to shot, and every pixel has noise of
    ``noise`` grey levels.
    """

    seed: int = 7
    cameras: int = 4
    logos: int = 16
    strangers: int = 4
    shot: int = 20
    shown: float = 0.5
    noise: float = 10.0
    frames_per_second: float = 10.0

    @cached_property
    def library(self) -> list[Badge]:
        """The logos to look for."""
        return badges(self.seed, self.logos)

    @cached_property
    def _marks(self) -> list[Badge]:
        return self.library + badges(self.seed + 1, self.strangers, "stranger")

    @cached_property
    def _scenes(self) -> list[Image]:
        return [_scene(np.random.default_rng([self.seed, 2, c])) for c in range(self.cameras)]

    def planted(self, camera: int, number: int) -> list[Planted]:
        """What is in a frame, strangers included."""
        draw = np.random.default_rng([self.seed, 3, camera, number // self.shot])
        at = (number % self.shot) / self.shot
        chosen = draw.permutation(len(self._marks))[:_LANES]
        there = []
        for lane, mark in enumerate(chosen):
            shown, *ways = draw.random(8)
            if shown < self.shown:
                scale = 0.3 + 0.45 * (ways[0] * (1 - at) + ways[1] * at)
                room = WIDTH / _LANES - SIDE * scale
                x = WIDTH / _LANES * lane + SIDE * scale / 2 + room * ways[2]
                high = HEIGHT - SIDE * scale
                y = SIDE * scale / 2 + high * (ways[3] * (1 - at) + ways[4] * at)
                angle = 360 * ways[5] + 60 * at
                there.append(Planted(self._marks[mark].name, x, y, scale, angle, 1 - 0.3 * ways[6]))
        return there

    def image(self, camera: int, number: int) -> Image:
        """A frame: the scene as the camera pans, the badges, the light, the noise."""
        scene = self._scenes[camera]
        pan = int((scene.shape[1] - WIDTH) * (0.5 + 0.5 * np.sin(number / 40)))
        picture = scene[:, pan : pan + WIDTH].astype(np.float32)
        by_name = {badge.name: badge for badge in self._marks}
        for mark in self.planted(camera, number):
            _paste(picture, by_name[mark.logo], mark)
        draw = np.random.default_rng([self.seed, 4, camera, number])
        light = np.random.default_rng([self.seed, 5, camera, number // self.shot]).uniform(0.7, 1.2)
        noise = draw.standard_normal(picture.shape, np.float32)
        picture = picture * np.float32(light) + np.float32(self.noise) * noise
        return np.clip(picture, 0, 255).astype(np.uint8)

    def frames(self, first: int, count: int) -> pa.Table:
        """So many frames of every camera, in the order of time, as JPEG."""
        rows = []
        for number in range(first, first + count):
            for camera in range(self.cameras):
                _, data = cv2.imencode(".jpg", self.image(camera, number), _QUALITY)
                name, when = frame_id(camera, number), number / self.frames_per_second
                rows.append((name, f"camera-{camera}", when, data.tobytes()))
        return pa.table([list(column) for column in zip(*rows, strict=True)], schema=FRAME)

    def truth(self, frames: int) -> set[tuple[str, str]]:
        """Which frame has which logo of the library."""
        known = {badge.name for badge in self.library}
        return {
            (frame_id(camera, number), mark.logo)
            for camera in range(self.cameras)
            for number in range(frames)
            for mark in self.planted(camera, number)
            if mark.logo in known
        }

    def write(self, folder: Path, frames: int, per_file: int = 10) -> Iterator[Path]:
        """Parquet files with ``per_file`` frames of every camera each."""
        folder.mkdir(parents=True, exist_ok=True)
        for first in range(0, frames, per_file):
            path = folder / f"frames-{first:06d}.parquet"
            pq.write_table(self.frames(first, min(per_file, frames - first)), path)
            yield path


def frame_id(camera: int, number: int) -> str:
    """
    >>> frame_id(2, 17)
    'camera-2/000017'
    """
    return f"camera-{camera}/{number:06d}"


def _scene(draw: np.random.Generator) -> Image:
    """What a camera looks at: soft noise at several scales, and more or fewer things in it."""
    wide = np.zeros((HEIGHT, 2 * WIDTH, 3), np.float32)
    for cells in (4, 8, 16, 32):
        coarse = draw.normal(0, 1, (cells, 2 * cells, 3)).astype(np.float32)
        wide += cv2.resize(coarse, (2 * WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC) / cells**0.5
    scene = np.clip(120 + 45 * wide, 0, 255).astype(np.uint8)
    for _ in range(int(draw.integers(20, 90))):
        x, y = (int(v) for v in draw.integers((0, 0), (2 * WIDTH, HEIGHT)))
        w, h = (int(v) for v in draw.integers(4, 40, 2))
        colour = tuple(int(v) for v in draw.integers(20, 235, 3))
        if draw.random() < 0.5:
            cv2.rectangle(scene, (x, y), (x + w, y + h), colour, -1)
        else:
            axes, turned = (w // 2 + 1, h // 2 + 1), int(draw.integers(180))
            cv2.ellipse(scene, (x, y), axes, turned, 0, 360, colour, -1)
    return scene


def _paste(picture: np.ndarray, badge: Badge, mark: Planted) -> None:
    """Put a badge into a picture, blended at its edge."""
    turn = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), mark.angle, mark.scale)
    turn = turn @ [[mark.narrow, 0, (1 - mark.narrow) * SIDE / 2], [0, 1, 0], [0, 0, 1]]
    turn[:, 2] += (mark.x - SIDE / 2, mark.y - SIDE / 2)
    size = (WIDTH, HEIGHT)
    there = cv2.warpAffine(badge.mask, turn, size, flags=cv2.INTER_LINEAR).astype(np.float32) / 255
    drawn = cv2.warpAffine(badge.image, turn, size, flags=cv2.INTER_AREA).astype(np.float32)
    picture += there[:, :, None] * (drawn - picture)
