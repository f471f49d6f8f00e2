"""The ``where`` predicate of a standing query: checked once, evaluated over (event, query) pairs.

Queries of one template share a ``PairFilter``, so that a batch costs a few passes over arrays
however many queries it meets. Logic is SQL's: a comparison with null is null, and null at the top
is no match. Times without an offset are UTC; an integer meets a float as float64. ``evaluate_rows``
says the same in plain Python, to verify against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from geoflux.operators.where_check import (
    PARAM_TYPES,
    check,
    family,
    family_compared,
    instant_of,
    require_truth,
)
from geoflux.operators.where_parse import Predicate, columns_of, parse, tree
from geoflux.operators.where_rows import evaluate_rows
from geoflux.operators.where_tree import (
    And,
    Column,
    Compare,
    In,
    IsNull,
    Node,
    Not,
    Or,
    Param,
    leaves,
    operands,
)

__all__ = ["PairFilter", "Predicate", "check", "compiled", "evaluate_rows", "parse"]

_KERNELS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_INT64_MAX = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PairFilter:
    """One template, ready for batches of (event, query) pairs; immutable, so freely shared.

    ``columns`` are the event columns it reads, ``param_types`` the Arrow type of each literal.

    >>> taxi, fast = parse("speed > 10"), parse("speed > 99")
    >>> speeds, limits = pa.array([50.0, 50.0, None]), pa.array([*taxi.params, *fast.params, 1])
    >>> compiled(taxi.template).evaluate({"speed": speeds}, [limits]).tolist()
    [True, False, False]
    """

    __slots__ = ("_root", "columns", "param_types", "template")

    def __init__(self, template: str) -> None:
        self.template = template
        self._root = tree(template)
        self.columns: frozenset[str] = columns_of(template)
        self.param_types: tuple[pa.DataType, ...] = tuple(
            PARAM_TYPES[operand.kind]
            for leaf in leaves(self._root)
            for operand in operands(leaf)
            if isinstance(operand, Param)
        )

    def evaluate(
        self, columns: Mapping[str, pa.Array], params: Sequence[pa.Array | pa.Scalar]
    ) -> npt.NDArray[np.bool_]:
        """Which of n pairs match: columns of length n, params of length n or scalars."""
        if len(params) != len(self.param_types):
            raise ValueError(
                f"{self.template!r} takes {len(self.param_types)} parameters, got {len(params)}"
            )
        values = {name: _plain(columns[name]) for name in self.columns}
        truth = _truth(self._root, values, [_plain(param) for param in params])
        matches: npt.NDArray[np.bool_] = pc.fill_null(truth, False).to_numpy(zero_copy_only=False)
        return matches


@lru_cache(maxsize=8192)
def compiled(template: str) -> PairFilter:
    """The shared ``PairFilter`` of a template."""
    return PairFilter(template)


def _truth(
    node: Node, columns: dict[str, pa.Array], params: list[pa.Array | pa.Scalar]
) -> pa.Array:
    """The three-valued truth of a node for every pair."""
    if isinstance(node, Column):
        values = columns[node.name]
        require_truth(node, values.type)
        return values.cast(pa.bool_())
    if isinstance(node, Not):
        return pc.invert(_truth(node.part, columns, params))
    if isinstance(node, And):
        return reduce(pc.and_kleene, (_truth(part, columns, params) for part in node.parts))
    if isinstance(node, Or):
        return reduce(pc.or_kleene, (_truth(part, columns, params) for part in node.parts))
    if isinstance(node, IsNull):
        return pc.is_null(columns[node.operand.name])
    if isinstance(node, In):
        tests = (Compare("=", node.operand, item) for item in node.items)
        return reduce(pc.or_kleene, (_truth(test, columns, params) for test in tests))
    left = columns[node.left.name]
    other = node.right
    right = params[other.slot] if isinstance(other, Param) else columns[other.name]
    kind = family_compared(node.op, (node.left, left.type), (other, right.type))
    if kind == "null":
        return pa.nulls(len(left), pa.bool_())
    if kind == "number":
        left, right = _same_numbers(left, right)
    elif kind == "time":
        unit = "ns" if "ns" in (_unit(left), _unit(right)) else "us"
        left, right = _ticks(left, unit), _ticks(right, unit)
    return _KERNELS[node.op](left, right)


def _plain(values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """The same values in a layout that the comparison kernels take."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        scalar = isinstance(values, pa.Scalar)
        values = values.value if scalar else values.dictionary_decode()
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    return values


def _same_numbers(
    left: pa.Array, right: pa.Array | pa.Scalar
) -> tuple[pa.Array, pa.Array | pa.Scalar]:
    """Both sides in one type: exact between integers, else float64. Arrow alone would raise."""
    types = (left.type, right.type)
    if types[0] == types[1] and not pa.types.is_float16(types[0]):
        return left, right
    if all(pa.types.is_integer(type_) for type_ in types):
        # No integer type holds both signed and uint64 values.
        wide = pa.decimal128(20, 0) if pa.uint64() in types else pa.int64()
        return left.cast(wide), right.cast(wide)
    return pc.cast(left, pa.float64(), safe=False), pc.cast(right, pa.float64(), safe=False)


def _unit(values: pa.Array | pa.Scalar) -> str:
    return str(values.type.unit) if pa.types.is_timestamp(values.type) else ""


def _ticks(values: pa.Array | pa.Scalar, unit: str) -> pa.Array | pa.Scalar:
    """Instants as int64 ``unit``s since 1970 UTC, held within int64 instead of overflowing."""
    if family(values.type) == "text":
        if isinstance(values, pa.Scalar):
            return pa.scalar(_literal_ticks(values.as_py(), unit), pa.int64())
        distinct = values.dictionary_encode()
        texts = distinct.dictionary.to_pylist()
        ticks = pa.array([_literal_ticks(text, unit) for text in texts], pa.int64())
        return ticks.take(distinct.indices)
    if pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("ms"))
    factor = _NANOSECONDS[values.type.unit] // _NANOSECONDS[unit]
    ticks = values.cast(pa.int64())
    if factor == 1:
        return ticks
    most = _INT64_MAX // factor
    held = pc.max_element_wise(ticks, pa.scalar(-most), skip_nulls=False)
    return pc.multiply(pc.min_element_wise(held, pa.scalar(most), skip_nulls=False), factor)


def _literal_ticks(text: str | None, unit: str) -> int | None:
    instant = None if text is None else instant_of(text)
    if instant is None:
        return None
    microseconds = (instant - _EPOCH) // timedelta(microseconds=1)
    ticks = microseconds * (_NANOSECONDS["us"] // _NANOSECONDS[unit])
    return max(-_INT64_MAX, min(_INT64_MAX, ticks))
