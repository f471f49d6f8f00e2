"""Reads the ``where`` text of a standing query and lifts its literals out.

A million queries are mostly a few texts with other numbers in them. Parsing therefore gives a
canonical *template*, in which each literal is a typed slot, and the literals beside it; queries of
one template are evaluated together. Invariant: reading a template back yields the tree it was
written from, and writing that tree yields the same template.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn, TypeAlias

from geoflux.errors import RejectedRecord
from geoflux.operators.where_tree import (
    KEYWORDS,
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
    negation,
    operands,
    write,
)

MAX_CHARACTERS = 10_000
MAX_DEPTH = 100
MAX_LIST = 256
# A template may nest deeper than its text: `x not between 1 and 2` is `not ((x >= ?i) and ...)`.
_TEMPLATE_DEPTH = MAX_DEPTH + 3

Literal: TypeAlias = float | int | str | bool


@dataclass(frozen=True, slots=True)
class Predicate:
    """A parsed ``where``: what is asked (``template``) and with which values (``params``)."""

    template: str
    params: tuple[Literal, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The event columns that the predicate reads; never empty."""
        return columns_of(self.template)


@lru_cache(maxsize=8192)
def parse(text: str) -> Predicate:
    """Read a ``where`` of at most 10,000 characters, 100 nested brackets, 256 values per list.

    Raises ``RejectedRecord("bad_where", ...)`` with the position and what was expected there.

    >>> parse("speed > 10 and kind IN ('taxi', 'bus')")
    Predicate(template='(speed > ?i) and (kind in (?s, ?s))', params=(10, 'taxi', 'bus'))
    >>> parse("2.5 >= speed") == parse("speed<=2.5")
    True
    >>> parse("speed > ")
    Traceback (most recent call last):
    geoflux.errors.RejectedRecord: bad_where: at character 8: expected a column or a value, \
found the end
    """
    if len(text) > MAX_CHARACTERS:
        found = f"the text has {len(text)} characters; at most {MAX_CHARACTERS} are allowed"
        raise RejectedRecord("bad_where", found)
    reader = _Reader(text, is_template=False)
    order: list[int] = []
    template = sys.intern(write(reader.read(), order))
    return Predicate(template, tuple([reader.literals[index] for index in order]))


@lru_cache(maxsize=8192)
def tree(template: str) -> Node:
    """The tree of a template, its parameters numbered from left to right."""
    return _Reader(template, is_template=True).read()


@lru_cache(maxsize=8192)
def columns_of(template: str) -> frozenset[str]:
    """The columns that a template reads; one set for all queries of that template."""
    return frozenset(
        operand.name
        for leaf in leaves(tree(template))
        for operand in operands(leaf)
        if isinstance(operand, Column)
    )


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<op><=|>=|<>|!=|==|[=<>(),])
    | (?P<text>'[^']*(?:''[^']*)*')
    | (?P<name>"[^"]*(?:""[^"]*)*")
    | (?P<slot>\?[insb])
    | (?P<bad>.)
    )""",
    re.ASCII | re.VERBOSE | re.DOTALL,
)
_OPERATORS = {"==": "=", "<>": "!="} | {op: op for op in ("=", "!=", "<", "<=", ">", ">=")}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _Reader:
    """Recursive descent over the tokens ``(kind, text, position)``; literals pile up aside."""

    __slots__ = ("at", "depth", "is_template", "literals", "tokens")

    def __init__(self, text: str, is_template: bool) -> None:
        self.is_template = is_template
        self.literals: list[Literal] = []
        self.at = 0
        self.depth = 0
        self.tokens = self._scan(text)

    def _scan(self, text: str) -> list[tuple[str, str, int]]:
        tokens: list[tuple[str, str, int]] = []
        body = text.rstrip(" \t\n\r\f\v")
        try:
            body.encode()
        except UnicodeEncodeError as error:
            self._fail("text, found half of a surrogate pair", error.start)
        for match in _TOKEN.finditer(body):
            kind = match.lastgroup or "bad"
            token = match[kind]
            if kind == "word":
                lowered = token.lower()
                kind = lowered if lowered in KEYWORDS else "name"
            elif kind == "op":
                kind = token
            elif kind == "name":
                token = token[1:-1].replace('""', '"')
            elif kind == "text":
                token = token[1:-1].replace("''", "'")
            elif kind == "bad" or (kind == "slot" and not self.is_template):
                position = match.start(kind)
                if token in "'\"":
                    self._fail(f"a closing {token} for the one here", position)
                found = body[position : position + 40].split(" ")[0]
                self._fail(f"a column, a value or an operator, found {found!r}", position)
            tokens.append((kind, token, match.start(match.lastgroup or 0)))
        tokens.append(("end", "", len(body)))
        return tokens

    @staticmethod
    def _fail(what: str, position: int) -> NoReturn:
        raise RejectedRecord("bad_where", f"at character {position + 1}: expected {what}")

    def _expected(self, what: str) -> NoReturn:
        kind, token, position = self.tokens[self.at]
        self._fail(f"{what}, found {'the end' if kind == 'end' else repr(token[:40])}", position)

    def _skip(self, kind: str) -> bool:
        if self.tokens[self.at][0] != kind:
            return False
        self.at += 1
        return True

    def read(self) -> Node:
        node = self._either()
        if self.tokens[self.at][0] != "end":
            self._expected("'and', 'or' or the end")
        return node

    def _either(self) -> Node:
        parts = [self._all()]
        while self._skip("or"):
            parts.append(self._all())
        if len(parts) == 1:
            return parts[0]
        flat = [p for part in parts for p in (part.parts if isinstance(part, Or) else (part,))]
        return Or(tuple(flat))

    def _all(self) -> Node:
        parts = [self._condition()]
        while self._skip("and"):
            parts.append(self._condition())
        if len(parts) == 1:
            return parts[0]
        flat = [p for part in parts for p in (part.parts if isinstance(part, And) else (part,))]
        return And(tuple(flat))

    def _condition(self) -> Node:
        negated = False
        while self._skip("not"):
            negated = not negated
        if self.tokens[self.at][0] == "(":
            if self.depth >= (_TEMPLATE_DEPTH if self.is_template else MAX_DEPTH):
                self._expected(f"at most {MAX_DEPTH} nested brackets")
            self.at += 1
            self.depth += 1
            node = self._either()
            self.depth -= 1
            if not self._skip(")"):
                self._expected("'and', 'or' or ')'")
        else:
            node = self._leaf()
        return negation(node) if negated else node

    def _leaf(self) -> Node:
        position = self.tokens[self.at][2]
        left = self._operand()
        op = _OPERATORS.get(self.tokens[self.at][0])
        if op is not None:
            self.at += 1
            return self._compare(op, left, self._operand(), position)
        if self._skip("is"):
            negated = self._skip("not")
            if not self._skip("null"):
                self._expected("'null'")
            test = IsNull(self._column(left, position))
            return Not(test) if negated else test
        negated = self._skip("not")
        if self._skip("in"):
            listed = In(self._column(left, position), self._list())
            return Not(listed) if negated else listed
        if self._skip("between"):
            low = self._operand()
            if not self._skip("and"):
                self._expected("'and'")
            above = self._compare(">=", left, low, position)
            within = And((above, self._compare("<=", left, self._operand(), position)))
            return Not(within) if negated else within
        if negated:
            self._expected("'in' or 'between'")
        if isinstance(left, Param):
            self._expected("a comparison")
        return left

    def _list(self) -> tuple[Column | Param, ...]:
        if not self._skip("("):
            self._expected("'('")
        items = [self._operand()]
        while self._skip(","):
            if len(items) == MAX_LIST:
                self._expected(f"at most {MAX_LIST} values in a list")
            items.append(self._operand())
        if not self._skip(")"):
            self._expected("',' or ')'")
        return tuple(items)

    def _operand(self) -> Column | Param:
        kind, token, position = self.tokens[self.at]
        self.at += 1
        if kind == "name":
            return Column(token)
        value: Literal = token
        if kind == "number":
            value = _number(token)
            kind = "n" if isinstance(value, float) else "i"
            if not math.isfinite(value):
                self._fail(f"a number that fits in float64, found {token[:40]!r}", position)
        elif kind == "text":
            kind = "s"
        elif kind in ("true", "false"):
            value, kind = kind == "true", "b"
        elif kind == "slot":
            kind = token[1]
        else:
            self.at -= 1
            hint = " (null is tested by 'is null')" if kind == "null" else ""
            self._expected(f"a column or a value{hint}")
        self.literals.append(value)
        return Param(kind, len(self.literals) - 1)

    def _compare(
        self, op: str, left: Column | Param, right: Column | Param, position: int
    ) -> Compare:
        if isinstance(left, Column):
            return Compare(op, left, right)
        return Compare(_FLIPPED[op], self._column(right, position), left)

    def _column(self, operand: Column | Param, position: int) -> Column:
        if isinstance(operand, Param):
            self._fail("a column on one side, found only values", position)
        return operand


def _number(token: str) -> int | float:
    # Twenty characters hold every int64 with its sign; int() of a longer text may itself refuse.
    if len(token) <= 20 and token.lstrip("+-").isdigit():
        value = int(token)
        if -(2**63) <= value < 2**63:
            return value
    return float(token)
