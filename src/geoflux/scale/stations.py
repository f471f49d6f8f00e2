"""What the manifests of one operator say: windows of its slots, its input, what waits for it.

Sums over the epochs since the last look; where there was none, nothing came and nothing was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from geoflux.scale.measuring import InputWindow, SlotWindow
from geoflux.scale.rhythm import Beat, Rhythm
from geoflux.scale.services import ServiceSums

Manifest = Mapping[str, Any]
_ARRIVALS = 64
"""Epochs from which the variability of arrivals is told."""


@dataclass(frozen=True)
class Station:
    """An operator of the application: its name in the topology, who reads its streams, whether it
    reads from outside, and the trigger of its epochs in seconds (``None``: to be seen)."""

    name: str
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outside: bool = False
    trigger: float | None = None


@dataclass(frozen=True)
class StationState:
    """What is remembered of an operator between two looks."""

    next_epoch: int = 0
    slots: int = 0
    """That its next epoch has."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """Rows for each reader, since the beginning."""
    received: int = 0
    """Rows that it read, since the beginning."""
    waiting: int = 0
    """Rows that it has read and not processed."""
    position: int = 0
    arrived: float | None = None
    """When the last input was there."""
    batches: tuple[tuple[int, float], ...] = ()
    """Inputs of the last epochs, with the time in which they came."""
    rhythm: Rhythm = field(default_factory=Rhythm)
    scv: float | None = None
    """Of service times, as last seen."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **vars(self), "sent": dict(self.sent), "batches": [list(b) for b in self.batches],
            "rhythm": self.rhythm.to_list(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> StationState:
        """What :meth:`to_dict` gave, also by way of JSON."""
        batches = tuple((int(n), float(t)) for n, t in values["batches"])
        return replace(
            cls(**values), batches=batches, rhythm=Rhythm.from_list(values["rhythm"])
        )  # fmt: skip


def remembered(station: Station, state: StationState, news: Sequence[Manifest]) -> StationState:
    """What is remembered of an operator after some epochs."""
    if not news:
        return state
    sent, batches, arrived = Counter(state.sent), list(state.batches), state.arrived
    for m in news:
        for stream, files in m.get("streams", {}).items():
            rows = sum(count for _, count in files)
            sent.update(dict.fromkeys(station.readers.get(stream, ()), rows))
        if station.outside and m.get("arrivals"):
            last = m["arrivals"][1]
            if arrived is not None and m["received"]:
                batches.append((m["received"], max(last - arrived, 0.0)))
            arrived = last
    last = news[-1]
    scv = _services(news).scv
    return StationState(
        last["epoch"] + 1, _slots_after(last), dict(sent),
        state.received + sum(m["received"] for m in news), last["carried_out"],
        max((m.get("position") or 0 for m in news), default=state.position), arrived,
        tuple(batches[-_ARRIVALS:]), state.rhythm.after([Beat.of(m) for m in news]),
        state.scv if scv is None else scv,
    )  # fmt: skip


def _slots_after(manifest: Manifest) -> int:
    """The slots of the epoch that follows."""
    sizes = [c["slots"] for c in manifest["decision"]["changes"] if c["kind"] == "resize"]
    return int(sizes[-1]) if sizes else len(manifest["slots"])


def _services(news: Sequence[Manifest]) -> ServiceSums:
    total = ServiceSums()
    for slot in (slot for m in news for slot in m["slots"]):
        total += ServiceSums.from_list(slot["services"])
    return total


def slot_windows(
    station: Station, state: StationState, news: Sequence[Manifest], seconds: float
) -> list[SlotWindow]:
    """What the slots did that there are now; what others did before they went counts for those."""
    by_slot: dict[int, list[Mapping[str, Any]]] = {n: [] for n in range(state.slots)}
    for report in (report for m in news for report in m["slots"]):
        by_slot[report["slot"] % state.slots].append(report)
    scv = 1.0 if state.scv is None else state.scv
    squares_each = _squares_each(station, news)
    windows = []
    for slot, reports in by_slot.items():
        sums = sum((ServiceSums.from_list(r["services"]) for r in reports), ServiceSums())
        squares = (1 + scv) * sums.seconds**2 / sums.timed if sums.timed else 0.0
        if sums.timed and sums.known == sums.timed:
            squares = sums.known_squares
        derived = _derived(station, reports)
        spread = {name: derived[name] * each for name, each in squares_each.items()}
        came = sum(r.get("arrivals", r["processed"]) for r in reports)
        windows.append(
            SlotWindow(
                station.name, slot, seconds, came, sum(r["processed"] for r in reports),
                sums.seconds, squares, sums.timed, derived, spread,
                0 if slot else state.waiting,  # it is only asked of all slots together
            )
        )  # fmt: skip
    return windows


def _derived(station: Station, reports: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Tuples for every reader; one that reads two streams of one operator gets both."""
    counts = {name: 0 for names in station.readers.values() for name in names}
    for report in reports:
        for stream, (count, *_) in report.get("derived", {}).items():
            for reader in station.readers.get(stream, ()):
                counts[reader] += count
    return counts


def _squares_each(station: Station, news: Sequence[Manifest]) -> dict[str, float]:
    """The sum over rows of the squared number of tuples that a reader gets of them, per tuple: as
    the rows tell that are followed, or 1 where none of these gave rise to any. Of several streams
    as if no row gave rise to both; none for readers of rows that do not say what they come from."""
    seen = {name: [0, 0] for names in station.readers.values() for name in names}
    unknown = set()
    for report in (report for m in news for report in m["slots"]):
        for stream, (_, *known) in report.get("derived", {}).items():
            for reader in station.readers.get(stream, ()):
                if known:
                    seen[reader] = [a + b for a, b in zip(seen[reader], known, strict=True)]
                else:
                    unknown.add(reader)
    return {name: b / a if a else 1.0 for name, (a, b) in seen.items() if name not in unknown}


def input_window(
    station: Station, state: StationState, news: Sequence[Manifest], seconds: float
) -> InputWindow:
    """What came from outside. The times between inputs are told by epochs as service times are by
    batches: a source says when the first and the last input of an epoch were there."""
    arrivals = sum(m["received"] for m in news)
    seen = ServiceSums.of(state.batches)
    if seen.scv is None or seen.mean is None:
        return InputWindow(station.name, seconds, arrivals)
    mean = seen.mean
    return InputWindow(
        station.name, seconds, arrivals, arrivals, arrivals * mean,
        arrivals * mean**2 * (1 + seen.scv),
    )  # fmt: skip
