"""What the streams have in common, and what their first two operators do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from geoflux.operators.keyed import Operator

FRAME = [("id", pa.string()), ("camera", pa.string()), ("time", pa.float64())]
"""Which frame a record is of."""
ROW = ("@row", pa.int64())
"""The row that a result comes from."""


class Forgetful(Operator[None]):
    """An operator whose results depend on nothing but the row."""

    stateless = True

    def empty(self) -> None:
        """Nothing."""

    def extract(self, state: None) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def install(self, arrays: Mapping[str, Any]) -> None:
        """Nothing."""

    def size(self, state: None) -> int:
        """Nothing."""
        return 0
