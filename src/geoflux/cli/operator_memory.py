"""Where the states of an operator are and what waits for them, in words and figures."""

from __future__ import annotations

from dataclasses import dataclass

from geoflux.chronicle.wording import count, plural, size
from geoflux.engine.epochs import Manifest

_BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class SlotMemory:
    """A slot at the end of an epoch."""

    slot: int
    partitions: int
    rows: int
    """Processed in the epoch."""
    busy_seconds: float
    resident_bytes: int
    spilled: int
    """Partitions on disk."""
    spilled_bytes: int
    spooled_rows: int
    """Rows that wait for a partition on disk."""
    carried_rows: int
    """All rows that wait, these included."""


@dataclass(frozen=True)
class Memory:
    """All slots at the end of an epoch."""

    slots: tuple[SlotMemory, ...]

    @classmethod
    def of(cls, m: Manifest) -> Memory:
        """What a manifest says."""
        return cls(
            tuple(
                SlotMemory(
                    s["slot"], s["partitions"], s["processed"], s["busy_seconds"],
                    s["state_bytes"] - s["spilled_bytes"], s["spilled"], s["spilled_bytes"],
                    s["spooled_rows"], s["carried_rows"],
                )
                for s in m["slots"]
            )
        )  # fmt: skip

    @property
    def spilled(self) -> int:
        """Partitions on disk."""
        return sum(s.spilled for s in self.slots)

    @property
    def in_memory(self) -> str:
        """How much of the states is in memory."""
        resident = sum(s.partitions - s.spilled for s in self.slots)
        return f"{plural(resident, 'partition')}, {size(sum(s.resident_bytes for s in self.slots))}"

    @property
    def on_disk(self) -> str:
        """How much is not."""
        if not self.spilled:
            return "nothing"
        spilled = size(sum(s.spilled_bytes for s in self.slots))
        return f"{plural(self.spilled, 'partition')} on disk, {spilled}"

    @property
    def waiting(self) -> str:
        """Rows for the next epoch."""
        rows, spooled = (
            sum(getattr(s, name) for s in self.slots) for name in ("carried_rows", "spooled_rows")
        )
        if not rows:
            return "no rows"
        return plural(rows, "row") + (f", {count(spooled)} for the disk" if spooled else "")

    @property
    def bars(self) -> str:
        """Bytes in memory of every slot as a row of bars."""
        top = max((s.resident_bytes for s in self.slots), default=0) or 1
        return "".join(_BARS[round(s.resident_bytes / top * 8)] for s in self.slots)
