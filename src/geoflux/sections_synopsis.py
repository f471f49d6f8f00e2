"""The section of the settings that says how operators over places are partitioned, and when their
slots give regions away or take them back."""

from __future__ import annotations

from dataclasses import dataclass

from geoflux.settings import between, duration, one_of, setting


@dataclass(frozen=True)
class SynopsisConfig:
    """How an operator over places is partitioned, and kept in bounds; `[flux]` has its time budget,
    which makes a backlog visible, and its memory."""

    partitions: int = setting(4, "Regions per slot at first, at least.", between(1, 4096))
    policy: str = setting(
        "synopsis", "`synopsis`: slots that do not keep up, or whose memory is full, give regions "
        "away and take them back later; `static`: nothing changes.",
        one_of("synopsis", "static"))  # fmt: skip
    observe: str = setting("1s", "Time that an observation takes, at least.", duration)
    hold: int = setting(
        3, "Observations in a row that must call for giving away.", between(1, 1000)
    )
    calm: int = setting(6, "Observations in a row that must allow taking back.", between(1, 1000))
    rest: int = setting(
        5, "Observations after every operation in which nothing is judged.", between(0, 1000)
    )
    memory_high: float = setting(
        0.75, "Share of `flux.memory` above which a slot gives regions away.", between(0.01, 1.0)
    )
    memory_low: float = setting(
        0.4, "Share below which it may take one back; less than `memory_high`.", between(0.0, 1.0)
    )
    headroom: float = setting(
        0.7, "What giving away leaves a slot with, as a share of the rows that it can do.",
        between(0.05, 0.95))  # fmt: skip
    return_below: float = setting(
        0.6, "Taking back must leave it with less than this share; less than `headroom`.",
        between(0.01, 0.95))  # fmt: skip
    most_slots: int = setting(
        0, "Slots are added up to this number where nobody can take anything, and go again; 0: as "
        "many as there are. With `scale.mode` on, that decides alone.",
        between(0, 100_000))  # fmt: skip
