"""What all tests share: UTC, laws that are not judged by the time of a first compilation, JVMs that
compile little, and an order in which nobody waits for the longest ones at the end."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import HealthCheck, settings

os.environ["TZ"] = "UTC"
time.tzset()
# A JVM of a test lives for seconds: what its second compiler takes (a quarter of a run's processor
# time) never comes back.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

settings.register_profile(
    "geoflux", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("geoflux")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take long first; the others stay in the order that chance gave them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
