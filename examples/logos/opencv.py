"""OpenCV, or a sentence that says how to get it."""

from __future__ import annotations

try:
    import cv2
except ImportError:
    raise SystemExit(
        "the logos example needs OpenCV, which is not installed: "
        "pip install 'geoflux[examples]', or pip install opencv-python-headless"
    ) from None

cv2.setNumThreads(1)  # a slot is one processor; the others belong to other slots
__all__ = ["cv2"]
