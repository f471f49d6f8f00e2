"""The plan that a run of standing queries begins with, and who changes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from geoflux.balance.history import Sample, history_plan
from geoflux.balance.policy import Policy, Static
from geoflux.balance.swarm_policy import SwarmPolicy
from geoflux.balance.tuning import Tuning
from geoflux.config import Config
from geoflux.engine.control import read_records
from geoflux.engine.engine import AnyPlan
from geoflux.engine.intake import EventColumns, Intake
from geoflux.engine.record_rules import RecordRules
from geoflux.engine.setting import Setting
from geoflux.engine.source import EventSource
from geoflux.operators.queries import boxes_as_parts
from geoflux.plan import GridPlan, ReplicatedPlan


def policy_of(config: Config) -> Policy:
    """Who changes the plan."""
    if config.engine.balance == "swarm":
        return SwarmPolicy(Tuning.of(config.swarm))
    return Static()


def first_plan(setting: Setting, events: EventSource | None) -> AnyPlan:
    """The plan that a new run begins with."""
    config = setting.config
    columns, rows = config.space.grid
    slots = config.engine.slots
    if config.engine.balance == "replicated":
        return ReplicatedPlan(columns, rows, slots)
    balance = config.engine.balance
    if balance == "swarm":
        balance = config.swarm.start
    if balance == "uniform" or events is None:
        return GridPlan.initial(columns, rows, slots)
    return history_plan(columns, rows, slots, _sample(setting, events))


def _sample(setting: Setting, events: EventSource) -> Sample:
    """The beginning of the stream and of the control records, as cells."""
    config, grid = setting.config, setting.grid
    names = EventColumns.of(config.source, config.space)
    intake = Intake(names, grid.space, names.id_type(setting.schema), frozenset())
    xs, ys = [], []
    for batch in _first_batches(events, config.engine.history_events, names.needed):
        accepted, _, _ = intake.accept(batch)
        xs.append(accepted.x)
        ys.append(accepted.y)
    rules = RecordRules(grid.space, setting.schema, config.source.max_record_bytes)
    records = read_records(setting.control.read({}, setting.control.poll({})), rules)
    queries = records.rows.slice(0, config.engine.history_queries)
    _, edges = boxes_as_parts(queries)
    x = np.concatenate(xs) if xs else np.empty(0)
    y = np.concatenate(ys) if ys else np.empty(0)
    return Sample(grid.columns_of(x), grid.rows_of(y), grid.ranges(*edges))


def _first_batches(events: EventSource, count: int, columns: frozenset[str]) -> Iterator[Any]:
    end = events.latest(0, count)
    if end == 0 and events.total():
        end = min(count, events.total() or 0)
    for piece in events.slices(0, end, 1):
        yield from events.read(piece, columns)
