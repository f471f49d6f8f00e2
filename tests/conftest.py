"""What all tests share: UTC, laws that are not judged by the time of a first compilation, and an
order in which nobody waits for the longest ones at the end."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import HealthCheck, settings

os.environ["TZ"] = "UTC"
time.tzset()

settings.register_profile(
    "geoflux", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("geoflux")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take long first; the others stay in the order that chance gave them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
