"""The section of the settings that says how many processors operators get, and when."""

from __future__ import annotations

from dataclasses import dataclass

from geoflux.settings import between, duration, one_of, setting


@dataclass(frozen=True)
class ScaleConfig:
    """How many slots the operators of an application get while it runs ([drs.md](drs.md))."""

    mode: str = setting(
        "off", "`on`: slots follow the load; `observe`: decisions are noted, nothing is done; "
        "`off`.", one_of("on", "observe", "off"))  # fmt: skip
    goal: str = setting(
        "processors", "`processors`: as few as keep inputs below `longest`; `latency`: the "
        "shortest time with all of `processors`.", one_of("processors", "latency"))  # fmt: skip
    processors: int = setting(
        8, "As many may be used by all operators together (K_max).", between(1, 100_000)
    )
    longest: str = setting(
        "10s", "An input, with everything that derives from it, may take so long (T_max).",
        duration)  # fmt: skip
    shortest: str = setting(
        "", "Processors are given back while inputs take less (T_min); empty: a quarter of "
        "`longest`.", duration)  # fmt: skip
    look: str = setting("5s", "Time between two looks at what was measured (T_m).", duration)
    sample: int = setting(
        100, "One input in so many is followed until all of it is done (N_m).", between(1, 1 << 31)
    )
    window: int = setting(6, "Looks over which what was measured is averaged.", between(1, 1000))
    alpha: float = setting(
        0.0, "Instead of `window`: the weight of what was known before; 0: `window` counts.",
        between(0, 0.999))  # fmt: skip
    apart: str = setting(
        "60s", "Time between two changes, and before the first, at least (T_ra).", duration
    )
    patience: int = setting(3, "Looks in a row that must ask for a change.", between(1, 1000))
    wait_down: str = setting(
        "5 minutes", "Processors are given back when there have been too many for so long.",
        duration)  # fmt: skip
    settle: str = setting("30s", "Time after a change before its result is judged.", duration)
    gain: float = setting(
        0.1, "Share by which a change must be predicted to shorten the time.", between(0, 0.99)
    )
    payback: str = setting(
        "10 minutes", "Time within which a change must have gained what it cost.", duration
    )
    headroom: float = setting(
        0.7, "Share of what `longest` leaves for waiting that is used up on purpose.",
        between(0.01, 1))  # fmt: skip
    model: str = setting(
        "gigk", "How waiting is reckoned: `gigk` with the variability of arrivals and services, "
        "`mmk` without, `whitt` for regular inputs.", one_of("gigk", "mmk", "whitt"))  # fmt: skip
