"""Where in a text a mistake is: line and column (from 1), and the line with a caret under it."""

from __future__ import annotations

from geoflux.errors import QueryError

_BEFORE, _AFTER = 60, 40


def pointed(text: str, start: int, end: int, sentence: str) -> QueryError:
    """The error about the characters from ``start`` to before ``end``.

    >>> print(pointed("SELECT mean(temp)", 12, 16, "unknown feature 'temp'"))
    unknown feature 'temp'
    line 1, column 13:
      SELECT mean(temp)
                  ^^^^
    """
    start = min(max(start, 0), len(text))
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    left, right = max(begin, start - _BEFORE), min(stop, max(start, end) + _AFTER)
    right = min(right, start + 2 * _BEFORE)
    shown = text[left:right].replace("\t", " ").replace("\r", " ")
    carets = "^" * max(1, min(end, right) - start)
    return QueryError(
        sentence,
        line=text.count("\n", 0, begin) + 1,
        column=start - begin + 1,
        excerpt=f"  {shown}\n  {' ' * (start - left)}{carets}",
    )
