"""A real browser without a screen, for whoever looks at the dashboard as a person would."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip


def lacking() -> str:
    """What is missing for it, with what to do; empty: nothing."""
    if importlib.util.find_spec("playwright") is None:
        return "the package playwright is not installed; pip install playwright"
    if _path() is None:
        return "there is no Chromium; install it (Debian: apt-get install chromium)"
    return ""


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium of Playwright's."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=_path(), args=[*ARGUMENTS])
        try:
            yield found
        finally:
            found.close()


def _path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)
