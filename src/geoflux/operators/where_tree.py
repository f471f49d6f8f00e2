"""The tree of a ``where`` predicate and its canonical text, the template.

Comparisons have their column on the left, chains of ``and`` and ``or`` are flat, and a double
``not`` is dropped, so that texts that mean the same often give one template. Invariant: the
brackets of a template nest at most three deeper than those of the text it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "between", "true", "false"})
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Column(NamedTuple):
    """An event's column; where a condition is expected, a column of booleans."""

    name: str


class Param(NamedTuple):
    """A lifted literal: i (fits in int64), n (float64), s (text) or b (boolean)."""

    kind: str
    slot: int


class Compare(NamedTuple):
    """``left op right``; the left side is always a column, ``op`` one of ``= != < <= > >=``."""

    op: str
    left: Column
    right: Column | Param


class In(NamedTuple):
    """``operand in (items)``."""

    operand: Column
    items: tuple[Column | Param, ...]


class IsNull(NamedTuple):
    """``operand is null``: true or false, never null."""

    operand: Column


class Not(NamedTuple):
    """Negation; a double one is dropped while parsing."""

    part: Node


class And(NamedTuple):
    """All of two or more parts, none of them an ``And``, so that long chains stay shallow."""

    parts: tuple[Node, ...]


class Or(NamedTuple):
    """Any of two or more parts, none of them an ``Or``."""

    parts: tuple[Node, ...]


Node: TypeAlias = Column | Compare | In | IsNull | Not | And | Or


def leaves(node: Node) -> Iterator[Column | Compare | In | IsNull]:
    """The conditions of a tree below its connectives, from left to right."""
    if isinstance(node, And | Or):
        for part in node.parts:
            yield from leaves(part)
    elif isinstance(node, Not):
        yield from leaves(node.part)
    else:
        yield node


def operands(leaf: Column | Compare | In | IsNull) -> tuple[Column | Param, ...]:
    """What a condition reads, from left to right."""
    if isinstance(leaf, Compare):
        return (leaf.left, leaf.right)
    if isinstance(leaf, In):
        return (leaf.operand, *leaf.items)
    return (leaf,) if isinstance(leaf, Column) else (leaf.operand,)


def negation(node: Node) -> Node:
    """The opposite of a condition, without a double ``not``."""
    return node.part if isinstance(node, Not) else Not(node)


def write(node: Node, order: list[int], within: type | None = None) -> str:
    """The template of a tree; ``order`` receives the parameters' slots as they are written."""
    if isinstance(node, Column):
        return _name(node.name)
    if isinstance(node, Not):
        return "not " + write(node.part, order, Not)
    if isinstance(node, And):
        written = " and ".join([write(part, order, And) for part in node.parts])
        return f"({written})" if within is Not else written
    if isinstance(node, Or):
        written = " or ".join([write(part, order, Or) for part in node.parts])
        return written if within is None else f"({written})"
    if isinstance(node, Compare):
        written = f"{_name(node.left.name)} {node.op} {_operand_text(node.right, order)}"
    elif isinstance(node, In):
        items = ", ".join([_operand_text(item, order) for item in node.items])
        written = f"{_name(node.operand.name)} in ({items})"
    else:
        written = f"{_name(node.operand.name)} is null"
    return written if within is None else f"({written})"


def _operand_text(operand: Column | Param, order: list[int]) -> str:
    if isinstance(operand, Column):
        return _name(operand.name)
    order.append(operand.slot)
    return f"?{operand.kind}"


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'
