"""Stateful operators from Python: run one over a stream, and check what it gave.

    operator = geoflux.WindowedGroupBy("car", "speed", "stddev", rows=100)
    geoflux.run_operator(operator, config, out="out")
    assert geoflux.verify_operator(operator, "out").is_clean

The same sources, epochs and directories as for standing queries; ``[flux]`` has the settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.balance.flux_policy import FluxPolicy
from geoflux.balance.flux_tuning import FluxTuning
from geoflux.balance.policy import Policy, Static
from geoflux.balance.synopsis_policy import SynopsisPolicy
from geoflux.balance.synopsis_tuning import SynopsisTuning
from geoflux.config import Config
from geoflux.engine.intake import POSITION_ID
from geoflux.engine.keyed_engine import KeyedEngine, KeyedPlan, KeyedSetting
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_streams import committed_results
from geoflux.engine.keyed_task import Budget, Emulated
from geoflux.engine.rooted import Sampling
from geoflux.engine.source import RawBatch, Slice
from geoflux.engine.summary import busy_seconds, evenness
from geoflux.engine.wanted import WantedSlots
from geoflux.errors import ConfigError, StateError
from geoflux.operators.keyed import ROW, Divisible, Operator
from geoflux.plan import HashPlan, PrefixPlan
from geoflux.run_inputs import noted_inputs, opened_inputs, rows_of
from geoflux.run_notes import checked, config_of
from geoflux.settings import bytes_of, seconds
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import RUN, store_for, store_of
from geoflux.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from geoflux.spark.stream import Listener

_LONGEST_COLLECTION = 60.0


@dataclass(frozen=True)
class OperatorSummary:
    """What a run of an operator did; ``moves`` are partitions that got another owner, ``spilled``
    those that are on disk at the end, ``spooled`` the rows that wait for them."""

    epochs: int
    received: int
    processed: int
    quarantined: int
    carried_out: int
    results: int
    moves: int
    spilled: int
    most_spilled: int
    spilled_bytes: int
    spooled: int
    seconds: float
    rows_per_second: float
    busiest_over_mean: float | None
    slots: int
    reasons: dict[str, int]


@dataclass(frozen=True)
class OperatorVerification:
    """Results that one loop over all rows gives and the run did not, and the other way round."""

    rows: int
    results: int
    missing: int
    unexpected: int

    @property
    def is_clean(self) -> bool:
        """Whether the run gave the very same results."""
        return self.missing == self.unexpected == 0


def operated(
    operator: Operator[Any], config: Config, out: str | Path, listener: Listener,
    events: DataFrame | None = None, spark: SparkSession | None = None,
    emulated: Emulated | None = None, on_start: Callable[[Any], None] | None = None,
) -> OperatorSummary:  # fmt: skip
    """Run an operator, as :func:`geoflux.run_operator` says, and show nothing of it."""
    from geoflux.spark.session import session_for
    from geoflux.spark.stream import EpochStream, Pace

    store, name = store_for(out, config.security), type(operator).__name__
    config = checked(config, store, events is not None, name)
    if config.output.topic:
        raise ConfigError("output.topic: results of an operator stay in files; leave it out")
    with session_for(config, events, spark) as session:
        inputs = opened_inputs(config, store, events, name)
        setting = setting_of(operator, config, store, emulated)
        engine = KeyedEngine.recovered(setting, lambda: first_plan(config, operator))
        rows = rows_of(config, inputs, events, session)
        stream = EpochStream(session, engine, store, rows, listener)
        if on_start is not None:
            on_start(stream)
        stream.run(Pace.of(config, 1.0 if config.flux.budget else 0.0))
    summary = summarised(config, store)
    store.write_json("summary.json", asdict(summary))
    return summary


def verify_operator(operator: Operator[Any], out: str | Path) -> OperatorVerification:
    """Give all rows that a run received to the operator, one partition and one loop, and compare
    the results, bit for bit."""
    store, config = store_of(out), config_of(out)
    intake = setting_of(operator, config, store).intake
    state, expected, rows = operator.empty(), Counter[Any](), 0
    for batch in received(config, store):
        accepted, _, _ = intake.accept(batch)
        if len(accepted):
            state, results = operator.process(state, accepted)
            dropped = [name for name in (ROW,) if name in results.schema.names]
            expected.update(_tuples(results.drop_columns(dropped)))
            rows += len(accepted)
    found: Counter[Any] = Counter()
    for table in committed_results(operator, store):
        found.update(_tuples(table))
    missing, unexpected = (expected - found).total(), (found - expected).total()
    return OperatorVerification(rows, found.total(), missing, unexpected)


def received(
    config: Config, store: Store, columns: frozenset[str] | None = None
) -> Iterator[RawBatch]:
    """All committed rows, in their order; only some columns of them."""
    noted = store.read_json(RUN)
    if noted["lane"] != "fast" and not config.output.record_input:
        raise StateError(
            f"{store.root} was fed by a DataFrame, which cannot be read again; verify a run over "
            "files or the simulator, or one with output.record_input = true"
        )
    source = None if config.output.record_input else noted_inputs(config, store, noted).events
    for manifest in EpochLog(store).manifests():
        if source is not None:
            for piece in manifest["slices"]:
                yield from source.read(Slice(*piece), columns)
            continue
        for name in manifest["files"]:
            if name.startswith("received/"):
                table = pq.read_table(store.open(name))
                yield RawBatch(table, np.arange(len(table)))


def _tuples(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Rows to be counted; one NaN is as good as another."""
    columns = [
        ["NaN" if v != v else v for v in column.to_pylist()] for column in table.columns
    ]  # fmt: skip
    return zip(*columns, strict=True)


def first_plan(config: Config, operator: Operator[Any]) -> KeyedPlan:
    """The plan that a new run begins with."""
    if isinstance(operator, Divisible):
        slots, per_slot = config.engine.slots, config.synopsis.partitions
        return PrefixPlan.initial(slots, operator.code_bits, per_slot)
    return HashPlan.initial(config.engine.slots, config.flux.partitions)


def setting_of(
    operator: Operator[Any], config: Config, store: Store, emulated: Emulated | None = None,
    wanted_slots: WantedSlots | None = None, sampling: Sampling | None = None,
) -> KeyedSetting:  # fmt: skip
    """What an engine for the operator runs with."""
    flux, source, emulated = config.flux, config.source, emulated or Emulated()
    budget = Budget(
        seconds(flux.budget) if flux.budget else None, bytes_of(flux.buffer),
        bytes_of(flux.memory) if flux.memory else None,
    )  # fmt: skip
    budgets = {
        slot: replace(budget, memory_bytes=memory) for slot, memory in emulated.memory_bytes.items()
    }
    named = source.id if operator.needs_id else POSITION_ID
    return KeyedSetting(
        store, operator, KeyedIntake(operator, named, source.time, source.time_unit),
        policy_of(config, operator, wanted_slots is not None), budgets, budget,
        record_input=config.output.record_input, emulated=emulated,
        epoch_events=config.engine.epoch_events, wanted_slots=wanted_slots, sampling=sampling,
    )  # fmt: skip


def policy_of(config: Config, operator: Operator[Any], is_scaled: bool = False) -> Policy:
    """Who moves partitions; ``is_scaled``: somebody else says how many slots there are."""
    if isinstance(operator, Divisible):
        return _synopsis_of(config, is_scaled)
    flux = config.flux
    if flux.policy == "static":
        return Static()
    kind: Any = flux.policy
    return FluxPolicy(
        FluxTuning(
            kind, collect_min=seconds(flux.collect), self_tuning=flux.self_tuning,
            collect_max=max(_LONGEST_COLLECTION, seconds(flux.collect)),
        )
    )  # fmt: skip


def _synopsis_of(config: Config, is_scaled: bool) -> Policy:
    synopsis = config.synopsis
    if synopsis.policy == "static":
        return Static()
    most = synopsis.most_slots if synopsis.most_slots and not is_scaled else None
    return SynopsisPolicy(
        SynopsisTuning(
            seconds(synopsis.observe) if synopsis.observe else 0.0, synopsis.hold, synopsis.calm,
            synopsis.rest, memory_high=synopsis.memory_high, memory_low=synopsis.memory_low,
            headroom=synopsis.headroom, return_below=synopsis.return_below, most_slots=most,
        )
    )  # fmt: skip


def summarised(config: Config, store: Store) -> OperatorSummary:
    """The summary of all committed epochs."""
    manifests = list(EpochLog(store).manifests())
    reasons: Counter[str] = Counter()
    for manifest in manifests:
        reasons.update(manifest["reasons"])
    took = manifests[-1]["committed"] - manifests[0]["opened"] if manifests else 0.0
    busy = busy_seconds(manifests, config.engine.slots)
    processed = sum(m["processed"] for m in manifests)
    last = manifests[-1]["slots"] if manifests else []
    return OperatorSummary(
        len(manifests), sum(m["received"] for m in manifests), processed,
        sum(m["quarantined"] for m in manifests), manifests[-1]["carried_out"] if manifests else 0,
        sum(m["results"] for m in manifests),
        sum(len(m["decision"]["changes"]) for m in manifests),
        len(manifests[-1]["spilled"]) if manifests else 0,
        max((len(m["spilled"]) for m in manifests), default=0),
        sum(s["spilled_bytes"] for s in last), sum(s["spooled_rows"] for s in last), took,
        processed / took if took else 0.0,
        evenness(manifests, config.engine.slots), busy.size,
        dict(reasons),
    )  # fmt: skip
