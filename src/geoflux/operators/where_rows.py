"""The ``where`` predicate over one event in plain Python: the oracle of ``PairFilter``.

It exists to verify against, so it is simple and slow and shares nothing but the parser with what it
verifies. A missing column is null. The predicate must have passed ``check`` for the event's schema.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from geoflux.operators.where_parse import Predicate, tree
from geoflux.operators.where_tree import And, Column, In, IsNull, Node, Not, Or, Param


def evaluate_rows(predicate: Predicate, row: Mapping[str, object]) -> bool:
    """Whether one event matches, by the rules of SQL: null is no match.

    >>> from geoflux.operators.where_parse import parse
    >>> evaluate_rows(parse("speed > 10 or kind = 'bus'"), {"speed": None, "kind": "bus"})
    True
    """
    return _row_truth(tree(predicate.template), predicate.params, row) is True


def _row_truth(node: Node, params: Sequence[object], row: Mapping[str, object]) -> bool | None:
    def value(operand: Column | Param) -> object:
        return params[operand.slot] if isinstance(operand, Param) else row.get(operand.name)

    if isinstance(node, Column):
        flag = row.get(node.name)
        return None if flag is None else bool(flag)
    if isinstance(node, Not):
        truth = _row_truth(node.part, params, row)
        return None if truth is None else not truth
    if isinstance(node, And):
        truths = [_row_truth(part, params, row) for part in node.parts]
        return False if False in truths else None if None in truths else True
    if isinstance(node, Or):
        truths = [_row_truth(part, params, row) for part in node.parts]
        return True if True in truths else None if None in truths else False
    if isinstance(node, IsNull):
        return row.get(node.operand.name) is None
    if isinstance(node, In):
        truths = [_row_compare("=", value(node.operand), value(item)) for item in node.items]
        return True if True in truths else None if None in truths else False
    return _row_compare(node.op, value(node.left), value(node.right))


def _row_compare(op: str, left: Any, right: Any) -> bool | None:
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "=": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    if isinstance(left, date):
        left = _row_instant(left)
        right = _row_instant(right)
    elif isinstance(left, float | Decimal) or isinstance(right, float | Decimal):
        left = None if left is None else float(left)
        right = None if right is None else float(right)
    if left is None or right is None:
        return None
    return bool(functions[op](left, right))


def _row_instant(value: object) -> datetime | None:
    if value is None:
        return None
    instant = value if isinstance(value, date) else datetime.fromisoformat(str(value))
    if not isinstance(instant, datetime):
        instant = datetime(instant.year, instant.month, instant.day)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
