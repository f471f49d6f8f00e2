"""A query in either language: SQL, or JSON as text or as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geoflux.sketch.check import Names, check
from geoflux.sketch.language_json import from_json
from geoflux.sketch.language_sql import parse_sql
from geoflux.sketch.query import Query


def parse_query(given: str | Mapping[str, Any] | Query, schema: Names | None = None) -> Query:
    """The query that is given in SQL, in JSON (a text that begins with ``{``, or its values) or as
    a value; checked against the schema of a sketch if there is one.

    >>> parse_query("SELECT count(*)") == parse_query('{"select": [{"count": []}]}')
    True
    """
    if isinstance(given, Query):
        return given if schema is None else check(given, schema)
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        return parse_sql(given, schema)
    return from_json(given, schema)
