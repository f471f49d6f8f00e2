"""What a slot tells of the parts of its partitions: rows that came, and bytes that are held.

Counted only where somebody decides by it. A partition has at most 32 parts, so that what is told
does not grow with what is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from geoflux.balance.parts import DEEPER, Part
from geoflux.operators.keyed import Divisible
from geoflux.plan import PrefixPartition

Ints = npt.NDArray[np.int64]


def told_parts(
    operator: Divisible[Any], partition: PrefixPartition, rows: list[pa.Table], state: Any | None
) -> list[Part]:
    """The parts of a partition that got rows or hold anything, given the rows that came and its
    state, if it is open."""
    bits = min(partition.bits + DEEPER, operator.code_bits)
    came = _counted(operator, rows, bits)
    held = None if state is None else operator.measured(state, bits)
    if held is None:
        return [Part(code, bits, count) for code, count in came.items()]
    sizes = dict(zip(held[0].tolist(), held[1].tolist(), strict=True))
    codes = sorted({*came, *sizes})
    return [Part(code, bits, came.get(code, 0), sizes.get(code, 0)) for code in codes]


def _counted(operator: Divisible[Any], rows: list[pa.Table], bits: int) -> dict[int, int]:
    places = [operator.place(some) >> (operator.code_bits - bits) for some in rows if len(some)]
    if not places:
        return {}
    codes, counts = np.unique(np.concatenate(places), return_counts=True)
    return dict(zip(codes.tolist(), counts.tolist(), strict=True))


def parts_of(told: Mapping[str, list[list[Any]]]) -> dict[int, tuple[Part, ...]]:
    """What a report has of the parts of its partitions."""
    return {int(p): tuple(Part(*part) for part in parts) for p, parts in told.items()}
