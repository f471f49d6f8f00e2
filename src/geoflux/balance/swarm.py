"""SWARM's coordinator as a pure state machine: reports in, questions or changes out.

A round has two steps. When it is closed, every slot has sent two numbers; throughput decides by
the five stages whether to rebalance, costs decide who is asked. Once those have answered, the
answers that go together are taken. The whole state is a plain value in the manifest: a restarted
driver is the new coordinator, which is the answer to the document's election.

Source: SWARM 4.3. As throughput we take objects per busy second of the busiest slot, since the
number of objects alone tells throughput only when the source is saturated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from geoflux.balance.pairing import paired
from geoflux.balance.requests import Answer, Ask, Cannot, Reduction
from geoflux.balance.stages import Pointer
from geoflux.balance.tuning import Tuning


@dataclass(frozen=True)
class SlotRound:
    """What a slot sends when a round is closed: two numbers. Busy time comes beside them, with the
    engine's own metrics."""

    slot: int
    cost: float
    received: float
    busy_seconds: float


@dataclass(frozen=True)
class RoundDecision:
    """Whether to rebalance, who is asked, and why; nobody is a decision too."""

    rebalance: bool
    asks: tuple[Ask, ...]
    reason: str


@dataclass(frozen=True)
class SwarmState:
    """All that the coordinator remembers. Ids of partitions are the plan's.

    >>> state = SwarmState(round=3)
    >>> SwarmState.from_dict(state.to_dict()) == state
    True
    """

    pointer: Pointer = field(default_factory=Pointer)
    round: int = 0
    closed_at: float | None = None
    """When the last round ended, in seconds of the clock that is handed in."""
    asks: tuple[Ask, ...] = ()
    """Questions without an answer yet."""
    stuck: tuple[tuple[int, float], ...] = ()
    """Slots that could not give anything away, with their cost then as a multiple of the mean."""
    mean: float = 0.0
    """Mean cost of a slot in the last round."""
    settled: bool = False
    """Whether the last round in which slots were asked, or could have been, changed nothing."""

    def is_due(self, now: float, tuning: Tuning) -> bool:
        """Whether the round is to be closed; never before :meth:`started`."""
        return self.closed_at is not None and now - self.closed_at >= tuning.round_seconds

    def started(self, now: float) -> SwarmState:
        """With the first round begun, if there was none."""
        return self if self.closed_at is not None else replace(self, closed_at=now)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "pointer": self.pointer.to_dict(), "round": self.round, "closed_at": self.closed_at,
            "asks": [ask.to_dict() for ask in self.asks],
            "stuck": [list(item) for item in self.stuck], "mean": self.mean,
            "settled": self.settled,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SwarmState:
        """What :meth:`to_dict` gave, also by way of JSON; of nothing, the state at the start."""
        if not values:
            return cls()
        return cls(
            Pointer.from_dict(values["pointer"]), values["round"], values["closed_at"],
            tuple(Ask.from_dict(ask) for ask in values["asks"]),
            tuple((int(slot), float(ratio)) for slot, ratio in values["stuck"]), values["mean"],
            values["settled"],
        )  # fmt: skip


def throughput(reports: Sequence[SlotRound]) -> float | None:
    """Objects per busy second of the busiest slot, ``None`` if nobody did anything.

    Dividing by the sum of busy seconds would not see imbalance; not dividing would take a quiet
    night for a bad plan.

    >>> throughput([SlotRound(0, 1.0, 600, 2.0), SlotRound(1, 9.0, 400, 5.0)])
    200.0
    """
    busiest = max((report.busy_seconds for report in reports), default=0.0)
    received = sum(report.received for report in reports)
    return received / busiest if busiest > 0 and received > 0 else None


def decide_round(
    state: SwarmState, reports: Sequence[SlotRound], now: float, tuning: Tuning
) -> tuple[RoundDecision, SwarmState]:
    """The decision when a round is closed at ``now``, and the state from now on."""
    costs = {report.slot: report.cost for report in reports}
    mean = fmean(costs.values()) if costs else 0.0
    highest = max(costs.values(), default=0.0)
    alarmed = tuning.alarm is not None and highest > (1 + tuning.alarm) * mean
    rate = throughput(reports)
    pointer = state.pointer.after(rate, tuning, alarmed)
    asks: tuple[Ask, ...] = ()
    if pointer.rebalancing:
        asks = paired(costs, dict(state.stuck), tuning, state.settled)
    reason = _reason(state.pointer, pointer)
    if pointer.rebalancing and not state.pointer.after(rate, tuning).rebalancing:
        reason = f"rebalance: the busiest slot costs {highest / mean:.2f}x the mean"
    if pointer.rebalancing:
        reason += f"; {_asked(asks)}"
    after = replace(
        state, pointer=pointer, round=state.round + 1, closed_at=now, asks=asks, mean=mean,
        settled=state.settled or (pointer.rebalancing and not asks),
    )  # fmt: skip
    return RoundDecision(pointer.rebalancing, asks, reason), after


def settle(
    state: SwarmState, answers: Sequence[Answer]
) -> tuple[tuple[Reduction, ...], str, SwarmState]:
    """The reductions that are carried out, why, and the state from now on.

    The answers count in the order of the questions; one that gives to a slot which has been given
    something already, or gives something itself, is dropped, so that predictions hold.
    """
    by_donor = {answer.donor: answer for answer in answers}
    taken: list[Reduction] = []
    busy: set[int] = set()
    stuck = dict(state.stuck)
    words: list[str] = []
    for ask in state.asks:
        answer = by_donor.get(ask.donor)
        if isinstance(answer, Cannot):
            words.append(f"slot {ask.donor} cannot: {answer.reason}")
            stuck[ask.donor] = answer.before / state.mean if state.mean > 0 else 1.0
        elif answer is not None:
            stuck.pop(ask.donor, None)
            concerned = {ask.donor, *(receiver.slot for receiver in answer.receivers)}
            if not concerned & busy:
                busy |= concerned
                taken.append(answer)
                words.append(_gives(answer, state.mean))
    reason = "; ".join(words) or ("no answers" if state.asks else "nobody was asked")
    after = replace(state, asks=(), stuck=tuple(sorted(stuck.items())))
    if state.asks:
        after = replace(after, settled=not taken)
    return tuple(taken), reason, after


def _gives(answer: Reduction, mean: float) -> str:
    """In words, with costs as multiples of the mean."""
    given = [
        _counted(len(answer.moves), "partition"),
        _counted(sum(len(cut.ats) for cut in answer.strips), "strip"),
    ]
    to = ", ".join(str(receiver.slot) for receiver in answer.receivers)
    unit = mean if mean > 0 else 1.0
    return (
        f"slot {answer.donor} cost {answer.before / unit:.2f}x the mean and gives "
        f"{' and '.join(words for words in given if words)} to {to}: at most "
        f"{answer.worst / unit:.2f}x now"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""


def _reason(before: Pointer, after: Pointer) -> str:
    doing = "rebalance" if after.rebalancing else "do nothing"
    if after.rate is None or before.rate is None:
        return f"{doing}: no throughput to compare with yet"
    change = after.rate / before.rate - 1 if before.rate else 0.0
    words = f"{doing}: throughput {change:+.1%}, stage {after.stage}"
    return words + (", decision flipped" if after.rebalancing != before.rebalancing else "")


def _asked(asks: Sequence[Ask]) -> str:
    if not asks:
        return "costs are even enough"
    return "asked " + ", ".join(f"{ask.donor}{' (spare)' if ask.spare else ''}" for ask in asks)
