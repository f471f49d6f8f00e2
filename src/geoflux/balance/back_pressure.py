"""How many events the next epoch may have, when slots hand rows back."""

from __future__ import annotations

_FULL, _EMPTY = 0.5, 0.1
_LESS, _MORE = 0.5, 1.25
_SMALLEST = 1 / 64


def next_limit(now: int, most: int, fullness: float) -> int:
    """The limit of the next epoch, given this one's, the largest that is allowed, and how full the
    fullest buffer of a slot is: halved beyond half full, grown again once it is nearly empty.

    >>> next_limit(1000, 1000, 0.7), next_limit(500, 1000, 0.3), next_limit(500, 1000, 0.0)
    (500, 500, 626)
    """
    if fullness > _FULL:
        return max(int(now * _LESS), int(most * _SMALLEST), 1)
    if fullness < _EMPTY:
        return min(int(now * _MORE) + 1, most) if now < most else most
    return now
