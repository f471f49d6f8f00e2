"""What control records are judged by, and the fields that all of them share."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from geoflux.errors import RejectedRecord
from geoflux.operators.aggregates import Aggregate, check_aggregate, parse_aggregate
from geoflux.operators.where import check
from geoflux.operators.where_parse import parse
from geoflux.spatial.space import Space

LONGEST_ID = 1000
_FARTHEST = 9e12
"""Seconds from 1970 that can still be told in microseconds."""
_REMEMBERED = 4096
"""Aggregates whose canonical form is kept."""


@dataclass(frozen=True)
class RecordRules:
    """What a record is judged by."""

    space: Space
    events: pa.Schema
    """Columns of the events; none where no event was ever seen, and then any name may be right."""
    max_bytes: int
    retained: pa.Schema | None = None
    """Columns that snapshots can ask about; ``None``: nothing is retained."""
    _texts: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def checked_aggregate(self, given: Any, needs_window: bool = True) -> Aggregate:
        """An aggregate that events can answer, or :class:`RejectedRecord`."""
        aggregate = parse_aggregate(given, needs_window)
        if len(self.events):
            check_aggregate(aggregate, self.events)
        return aggregate

    def aggregate_text(self, given: Any) -> str:
        """The canonical form of a standing query's aggregate; what many ask is judged once."""
        written = repr(given)
        if written not in self._texts:
            if len(self._texts) >= _REMEMBERED:
                self._texts.clear()
            self._texts[written] = self.checked_aggregate(given).to_text()
        return self._texts[written]

    def check_where(self, text: str) -> None:
        """Raise :class:`RejectedRecord` for a ``where`` that cannot be evaluated."""
        predicate = parse(text)
        if len(self.events):
            check(predicate, self.events)


def identifier(given: Any) -> str:
    """An id as text; :class:`RejectedRecord` for what cannot be one."""
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str) or not 1 <= len(given) <= LONGEST_ID:
        raise RejectedRecord(
            "bad_id", f"id is {str(given)[:80]!r}; expected a text of 1 to {LONGEST_ID} characters"
        )
    return given


def instant(given: Any, name: str) -> int | None:
    """Microseconds since 1970 of an ISO 8601 text, a number of seconds or a timestamp."""
    if given is None:
        return None
    if isinstance(given, datetime):
        moment = given if given.tzinfo else given.replace(tzinfo=UTC)
        return _microseconds(moment)
    if isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < _FARTHEST:
        return round(given * 1_000_000)
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
            return _microseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        except ValueError:
            pass  # said below, with the other forms
    raise RejectedRecord(
        "bad_time", f"{name} is {str(given)[:80]!r}; expected ISO 8601 or seconds since 1970"
    )


def _microseconds(moment: datetime) -> int:
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
