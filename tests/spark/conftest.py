"""One local Spark session for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from geoflux.sections import EngineConfig
from geoflux.spark.session import build_session, stop_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = build_session(EngineConfig(master="local[2]", memory="1g"))
    yield session
    stop_session(session)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in Path(item.fspath).parents:
            item.add_marker(pytest.mark.spark)
