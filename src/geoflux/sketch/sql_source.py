"""Nodes of sqlglot's tree, and where in the text they stand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from geoflux.errors import QueryError
from geoflux.sketch.places import pointed

_SHORT = 60


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a query; it makes errors that point into it."""

    text: str

    def place(self, node: exp.Expr) -> tuple[int, int] | None:
        """The first and one past the last character of a node, where sqlglot knows them; of a
        function, those of its name."""
        if "start" in node.meta:
            return node.meta["start"], node.meta["end"] + 1
        return self._extent(node)

    def _extent(self, node: exp.Expr) -> tuple[int, int] | None:
        parts = [part.meta for part in node.walk() if "start" in part.meta]
        if not parts:
            return None
        start = min(part["start"] for part in parts)
        end = max(part["end"] for part in parts) + 1
        # Brackets have no node: take those that close what was opened inside.
        opened = self.text.count("(", start, end) - self.text.count(")", start, end)
        while opened > 0 and (closing := self.text.find(")", end)) >= 0:
            end, opened = closing + 1, opened - 1
        return start, end

    def error(self, sentence: str, node: exp.Expr | None) -> QueryError:
        """A mistake at a node, or at the nearest node around it that has a place."""
        while node is not None:
            place = self.place(node)
            if place is not None:
                return pointed(self.text, *place, sentence)
            node = node.parent
        return QueryError(sentence)

    @contextmanager
    def at(self, node: exp.Expr) -> Iterator[None]:
        """Mistakes found inside are at this node, unless they know better."""
        try:
            yield
        except QueryError as error:
            if error.placed:
                raise
            raise self.error(error.sentence, node) from None

    def words(self, node: exp.Expr) -> str:
        """The node as it was written, cut where it is long."""
        if isinstance(node, exp.Neg):
            return f"-{self.words(node.this)}"
        place = self._extent(node)
        if place is None:
            return type(node).__name__.upper()
        text = " ".join(self.text[slice(*place)].split())
        return text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."

    def only(self, node: exp.Expr, *allowed: str) -> None:
        """Refuse everything that a node says besides what is read of it."""
        for name, value in node.args.items():
            if value and name not in allowed:
                word = name.strip("_").replace("_", " ").upper()
                what = type(node).__name__.upper()
                inner = value[0] if isinstance(value, list) else value
                raise self.error(
                    f"{what} with {word} is not part of this language; possible are SELECT, FROM, "
                    "JOIN ... ON, WHERE, GROUP BY, ORDER BY and LIMIT",
                    inner if isinstance(inner, exp.Expr) else node,
                )

    def number(self, node: exp.Expr) -> float | None:
        """The number that a node is, or nothing."""
        if isinstance(node, exp.Paren):
            return self.number(node.this)
        if isinstance(node, exp.Neg):
            value = self.number(node.this)
            return None if value is None else -value
        if not isinstance(node, exp.Literal) or node.is_string:
            return None
        try:
            value = float(node.this)
        except ValueError:
            return None
        if not math.isfinite(value):
            raise self.error("a number is too large", node)
        return value

    def whole(self, node: exp.Expr, what: str) -> int:
        """The whole number that a node is; ``what`` names it in the sentence if it is none."""
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
            return int(node.this[:40])
        raise self.error(f"{what} is {self.words(node)}; expected a whole number", node)


def name_of(node: exp.Expr) -> str:
    """The name of a column without a table, in lower case unless it is quoted; else nothing.

    A quoted name gets a mark that no word of the language has, as it always means a feature.
    """
    if not isinstance(node, exp.Column) or {k for k, v in node.args.items() if v} != {"this"}:
        return ""
    inner = node.this
    if not isinstance(inner, exp.Identifier):
        return ""
    return f'"{inner.name}"' if inner.quoted else inner.name.lower()
