"""Rows that a scope covers, before anything is added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
WIDTH, HEIGHT, TIME, VALUES = range(4)
"""Rows of ``Items.shares``."""


@dataclass(frozen=True, eq=False, slots=True)
class Items:
    """Covered rows. ``unit`` numbers the time that each is counted in (a row may be counted in
    several), ``cut`` is the feature whose range cuts it (-1: none does). ``shares``: of
    the width and of the height of its region, of its time bin and of its values."""

    row: Ints
    unit: Ints
    shares: Floats
    whole: Flags
    fewest: Floats
    most: Floats
    cut: npt.NDArray[np.int8]

    @property
    def share(self) -> Floats:
        """The share of each row that is expected to match."""
        return np.asarray(self.shares.prod(axis=0))
