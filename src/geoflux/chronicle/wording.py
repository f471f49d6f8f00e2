"""Numbers and times as a reader wants them: a few digits, a unit, never a bare float."""

from __future__ import annotations

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: float) -> str:
    """A whole number with thousands apart.

    >>> count(3000000)
    '3,000,000'
    """
    return f"{round(value):,}"


def short(value: float) -> str:
    """Three digits and a prefix, for places where all digits would only be noise.

    >>> short(1234567), short(98700), short(12), short(0.5), short(0)
    ('1.23 M', '98.7 k', '12', '0.5', '0')
    """
    for size, prefix in _PREFIXES:
        # 999,600 is 1 M, not 1000 k.
        if abs(value) >= size * 0.9995:
            return f"{_three_digits(value / size)} {prefix}"
    return _three_digits(value)


def size(amount: float) -> str:
    """An amount of memory.

    >>> size(0), size(812), size(2_500_000)
    ('0 B', '812 B', '2.5 MB')
    """
    text = short(amount).replace(" k", " kB").replace(" M", " MB").replace(" G", " GB")
    return text if text.endswith("B") else f"{text} B"


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(0.0042), duration(0.84), duration(31.04), duration(252), duration(3790)
    ('4.2 ms', '840 ms', '31 s', '4 min 12 s', '1 h 3 min')
    """
    if seconds < 0.9995:
        return f"{_three_digits(seconds * 1000)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def plural(number: int, noun: str) -> str:
    """A number of things.

    >>> plural(1, "event"), plural(2000, "query")
    ('1 event', '2,000 queries')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{count(number)} {noun[:-1] + 'ies' if noun.endswith('y') else noun + 's'}"


def _three_digits(value: float) -> str:
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
