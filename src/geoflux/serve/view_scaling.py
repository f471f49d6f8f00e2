"""Looks at how long an input takes, as columns: what was measured, what the model predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from geoflux.chronicle.scaling_words import told_scaling
from geoflux.scale.scaler import ScaleRecord
from geoflux.state.store import Store

MOST_LOOKS = 2000
MOST_TOLD = 100


def scaling_view(directory: str | Path) -> dict[str, Any]:
    """The newest looks in order; each with its words where something was done, and the last."""
    looks = ScaleRecord(Store(str(directory))).decisions()[-MOST_LOOKS:]
    told = [one for one in looks if one["action"] != "none" or one is looks[-1]]
    return {
        "at": [one["at"] for one in looks],
        "measured": [one["measured"] for one in looks],
        "predicted": [one["predicted_before"] for one in looks],
        "slots": [sum(one["after"].values()) for one in looks],
        "operators": list(looks[-1]["after"]) if looks else [],
        "told": [
            {"look": one["look"], "at": one["at"], "words": told_scaling(one)}
            for one in told[-MOST_TOLD:]
        ],
    }  # fmt: skip
