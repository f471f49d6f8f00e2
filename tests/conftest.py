"""What all tests share: UTC, and laws that are not judged by the time of a first compilation."""

from __future__ import annotations

import os
import time

from hypothesis import HealthCheck, settings

os.environ["TZ"] = "UTC"
time.tzset()

settings.register_profile(
    "geoflux", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("geoflux")
