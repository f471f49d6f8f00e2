"""Guard: sees through hotspots that were made to be chased, and blocks who makes them."""

from geoflux.guard.blocks import Block, BlockList
from geoflux.guard.guard import Guard
from geoflux.guard.sensor import Found, Summary, sense
from geoflux.guard.tuning import GuardTuning
from geoflux.guard.verdicts import Accusation, Verdict

__all__ = [
    "Accusation",
    "Block",
    "BlockList",
    "Found",
    "Guard",
    "GuardTuning",
    "Summary",
    "Verdict",
    "sense",
]
