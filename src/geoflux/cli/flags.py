"""Settings that are given on the command line."""

from __future__ import annotations

from typing import Any

from geoflux.errors import ConfigError


def flags_of(settings: list[str]) -> dict[str, Any]:
    """Settings by name, from ``section.name=value``.

    >>> flags_of(["engine.slots=8"])
    {'engine.slots': '8'}
    """
    flags: dict[str, Any] = {}
    for item in settings:
        name, equals, value = item.partition("=")
        if not equals or "." not in name:
            raise ConfigError(f"--set {item}: expected section.name=value, as in engine.slots=8")
        flags[name.strip()] = value.strip()
    return flags
