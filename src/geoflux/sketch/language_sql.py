"""Queries in SQL, parsed by sqlglot: DuckDB's dialect, with functions of its own and no others.

There is no grammar here: sqlglot reads the text, :mod:`~geoflux.sketch.sql_reader` takes from its
tree what a sketch can answer, and says where and why not. A text may come from anybody: its
length, its depth and the work of reading it are bounded.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.duckdb import DuckDBParser

from geoflux.errors import QueryError
from geoflux.sketch.check import Names, Subject, check
from geoflux.sketch.places import pointed
from geoflux.sketch.query import Query
from geoflux.sketch.sql_reader import Reader
from geoflux.sketch.sql_source import Source

MAX_CHARACTERS = 20_000
MAX_BRACKETS = 24
# sqlglot tries some texts in many ways; each try costs nodes, so this bounds the time as well.
MAX_NODES = 4_000

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_TOO_DEEP = "the query is nested too deeply to be read"


class _Parser(DuckDBParser):
    """No function is known, so that each comes as it is written and gets our own sentence."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {}


class SketchSql(DuckDB):
    """The dialect of queries of a sketch."""

    class Parser(_Parser):
        """What the dialect looks for under this name."""


def parse_sql(
    text: str, schema: Names | None = None, *, every: float | Literal["epoch"] | None = None
) -> Query:
    """The query that a text asks, checked against the schema of a sketch if there is one.

    ``every`` makes it a continuous query (SQL has no words for that): evaluated at each epoch, or
    after so many seconds. A mistake is a :class:`~geoflux.errors.QueryError` with its place.

    >>> query = parse_sql("SELECT mean(t2m_k) WHERE u10_ms > 5 GROUP BY geohash(3)")
    >>> query.kind, query.group_by
    ('statistical', (Key(name='geohash', letters=3),))
    """
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"the query has {len(text)} characters; at most {MAX_CHARACTERS} are read")
    reader = Reader(Source(text))
    try:
        query = reader.query(_tree(text), every=every)
    except RecursionError:
        raise QueryError(_TOO_DEEP) from None
    if schema is None:
        return query

    def placed(subject: Subject, sentence: str) -> QueryError:
        node = reader.places.get(subject)
        return QueryError(sentence) if node is None else reader.source.error(sentence, node)

    return check(query, schema, placed)


def _tree(text: str) -> exp.Expr:
    dialect = SketchSql()
    try:
        tokens = dialect.tokenize(text)
    except TokenError as error:
        raise _unreadable(text, error) from None
    _check_tokens(text, tokens)
    parser = dialect.parser(max_nodes=MAX_NODES, error_message_context=MAX_CHARACTERS)
    try:
        trees = [tree for tree in parser.parse(tokens, text) if tree is not None]
    except ParseError as error:
        raise _unparsed(text, error) from None
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        # A text that sqlglot itself stumbles over is no query either, whoever sent it.
        raise QueryError("the query is no SQL that can be read") from error
    if len(trees) != 1:
        raise QueryError(f"the text has {len(trees)} queries; expected one")
    return trees[0]


def _check_tokens(text: str, tokens: list[Token]) -> None:
    if not tokens:
        raise QueryError("the query is empty; expected SELECT ...")
    first = tokens[0]
    if first.token_type != TokenType.SELECT:
        raise pointed(
            text,
            first.start,
            first.end + 1,
            f"a query begins with SELECT; this one begins with {first.text[:40]!r}",
        )
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > MAX_BRACKETS:
            raise pointed(
                text,
                token.start,
                token.end + 1,
                f"brackets are nested more than {MAX_BRACKETS} deep",
            )


def _unreadable(text: str, error: TokenError) -> QueryError:
    cause = str(error.__cause__)
    found = re.fullmatch(r"Missing (.+) from \d+:(\d+)", cause)
    if found:
        start = int(found[2])
        return pointed(text, start, start + 1, f"a {found[1]} is opened here and not closed")
    start = error.start or 0
    return pointed(text, start, start + 1, "the text from here on cannot be read as SQL")


def _unparsed(text: str, error: ParseError) -> QueryError:
    first = error.errors[0] if error.errors else {}
    said = str(first.get("description") or "it is no SQL").rstrip(".")
    if said.startswith("Maximum number"):
        return QueryError("the query is too long or too involved to be read; ask less at once")
    start = len(str(first.get("start_context") or ""))
    marked = str(first.get("highlight") or "")
    if said.startswith("Invalid expression"):
        said = f"{marked[:40]!r} was not expected here" if marked else "something is missing here"
    if marked.lower() == "distinct":
        said += "; to count distinct observations, write count(DISTINCT *)"
    return pointed(text, start, start + len(marked), f"the query is no SQL: {said}")
