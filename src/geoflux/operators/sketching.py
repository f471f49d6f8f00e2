"""The sketch as an operator: rows in, sketchlets kept; what it knows is asked of its state.

Partitions are prefixes of geohashes. A row changes nothing but its own tree, and no tree is ever
cut, so sketchlets are split and joined without loss (Synopsis, 3.2 and 3.6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.operators.keyed import TIME, Divisible
from geoflux.sketch.forest import Forest, Observations
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.times import Ages
from geoflux.spatial.geohash import codes

_HOUR, _DAY = 3600, 86_400
_MICROS = 1_000_000
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sketch(Divisible[Forest]):
    """Keeps a sketch of ``schema``. ``x`` and ``y`` are the columns of longitude and latitude.

    Rows from before ``since`` and from ``until`` on (seconds since 1970) are refused. Time bins
    fold as ``ages`` says; past ``length_of_study`` seconds (0: never) bins of features merge, too.

    >>> sketch = Sketch(SketchSchema(("speed",)))
    >>> rows = pa.table({"lon": [2.35], "lat": [48.85], "speed": [13.0], "@time": [0]})
    >>> state, _ = sketch.process(sketch.empty(), rows)
    >>> state.observations
    1
    """

    schema: SketchSchema
    x: str = "lon"
    y: str = "lat"
    ages: Ages = field(default_factory=Ages)
    length_of_study: int = 0
    since: int | None = None
    until: int | None = None
    needs_id: ClassVar[bool] = False
    needs_time: ClassVar[bool] = True
    refusals: ClassVar[Mapping[str, str]] = {
        "bad_place": "longitude or latitude is missing, or not on the globe",
        "outside_time": "the time is outside of the times that the sketch is about",
    }

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The place and the features."""
        return tuple(dict.fromkeys((self.x, self.y, *self.schema.features)))

    @property
    def code_bits(self) -> int:  # type: ignore[override]
        """Partitions hold whole trees."""
        return self.schema.tree_bits

    @property
    def output(self) -> pa.Schema:
        """Nothing comes out: the state is asked."""
        return pa.schema([])

    def judged(self, rows: pa.Table) -> npt.NDArray[np.uint8]:
        """Places must be on the globe, times within bounds; features may be missing."""
        x, y = _floats(rows.column(self.x)), _floats(rows.column(self.y))
        verdict = np.where((np.abs(x) <= 180) & (np.abs(y) <= 90), 0, 1).astype(np.uint8)
        if self.since is not None or self.until is not None:
            time = _seconds(rows)
            outside = np.zeros(len(time), np.bool_)
            if self.since is not None:
                outside |= time < self.since
            if self.until is not None:
                outside |= time >= self.until
            verdict[(verdict == 0) & outside] = 2
        return verdict

    def place(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """The tree of each row."""
        x, y = _floats(rows.column(self.x)), _floats(rows.column(self.y))
        return codes(x, y, self.schema.tree_bits)

    def empty(self) -> Forest:
        """Nothing observed."""
        return Forest.empty(self.schema)

    def observations(self, rows: pa.Table) -> Observations:
        """Rows as the sketch has them."""
        values = np.column_stack([_floats(rows.column(name)) for name in self.schema.features])
        return Observations(
            _floats(rows.column(self.x)), _floats(rows.column(self.y)), _seconds(rows), values
        )

    def process(self, state: Forest, rows: pa.Table) -> tuple[Forest, pa.Table]:
        """Take observations in. What has become old enough is folded when a day is over, or an
        hour where there are minutes: that goes through all leaves."""
        before = state.latest
        state = state.ingest(self.observations(rows))
        often = _HOUR if self.schema.finest == "minute" else _DAY
        if state.latest // often != before // often:
            if self.length_of_study:
                state = state.aged(state.latest, self.ages, self.length_of_study)
            else:
                state = state.folded(state.latest, self.ages)
        return state, self.output.empty_table()

    def extract(self, state: Forest) -> Mapping[str, Any]:
        """The columns."""
        return state.to_arrays()

    def install(self, arrays: Mapping[str, Any]) -> Forest:
        """The same, as views of what is given."""
        plain = {name: np.asarray(array) for name, array in arrays.items()}
        return Forest.from_arrays(self.schema, plain)

    def size(self, state: Forest) -> int:
        """Bytes of all columns."""
        return state.bytes

    def cut(self, state: Forest, code: int, bits: int) -> Forest:
        """The trees within a prefix."""
        return state.cut(code, bits)

    def joined(self, states: Sequence[Forest]) -> Forest:
        """All trees."""
        return reduce(lambda one, other: one.joined(other), states)

    def measured(
        self, state: Forest, bits: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Leaves are what takes room: prefixes by the bytes of theirs."""
        shift = self.schema.region_bits - bits
        prefixes = [layer.region >> shift for layer in (*state.layers, *state.fresh)]
        leaves = np.concatenate([*prefixes, np.empty(0, np.int64)])
        found, counts = np.unique(leaves, return_counts=True)
        each = state.bytes / max(len(leaves), 1)
        return found, (counts * each).astype(np.int64)


def _floats(column: pa.ChunkedArray) -> Floats:
    """Numbers; not a number where there is none."""
    numbers = pc.cast(column, pa.float64(), safe=False)
    whole = numbers.combine_chunks() if isinstance(numbers, pa.ChunkedArray) else numbers
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], pa.float64())
    return np.asarray(whole.fill_null(np.nan).to_numpy(zero_copy_only=False), np.float64)


def _seconds(rows: pa.Table) -> npt.NDArray[np.int64]:
    return np.floor_divide(rows.column(TIME).to_numpy(), _MICROS).astype(np.int64)
