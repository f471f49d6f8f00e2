"""The two applications of `geoflux bench drs` on Spark, with emulated services.

Like the paper's two: a chain (features of video frames, matches, sightings) and one with a loop
(candidates, a detector that tells itself of changes, reports). Inputs come at random, as in a
replay of files; a row takes an exponential time, slept by the slot that has it, so that k slots
behave like k processors on however few cores. All of it comes from one seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.bench.drs_station import Station
from geoflux.config import Config
from geoflux.engine.keyed_task import Emulated
from geoflux.scale.network import Edge, Network, Operator
from geoflux.topology import Node, Topology
from geoflux.topology.nodes import SOURCE

Allocation = Mapping[str, int]
_ROW_GROUP = 4
"""Inputs between two that come at a time of their own; the others lie evenly between them."""


@dataclass(frozen=True)
class Part:
    """An operator: what a row takes on average, what comes out of it, and what it reads."""

    name: str
    seconds: float
    means: Mapping[str, float]
    reads: str | tuple[str, ...] = SOURCE


@dataclass(frozen=True)
class App:
    """An application with its inputs a second."""

    name: str
    parts: tuple[Part, ...]
    rate: float
    epoch_events: int = 100_000

    @property
    def operators(self) -> dict[str, Station]:
        """By name."""
        return {part.name: Station(part.means) for part in self.parts}

    def topology(self, allocation: Allocation) -> Topology:
        """With so many slots for each operator."""
        return Topology(
            tuple(
                Node(part.name, self.operators[part.name], part.reads, allocation[part.name])
                for part in self.parts
            )
        )

    def network(self, rate: float) -> Network:
        """The same as queues, with so many inputs a second."""
        operators = tuple(
            Operator(part.name, 1 / part.seconds, rate if part.reads == SOURCE else 0.0)
            for part in self.parts
        )
        means = {
            (part.name, stream): mean for part in self.parts for stream, mean in part.means.items()
        }
        edges = []
        for part in self.parts:
            for read in (part.reads,) if isinstance(part.reads, str) else part.reads:
                source, _, stream = read.partition(".")
                if read != SOURCE:
                    edges.append(Edge(source, part.name, means[source, stream or "results"]))
        return Network(operators, tuple(edges))

    @property
    def emulated(self) -> dict[str, Emulated]:
        """What rows take, wherever they come to."""
        return {
            part.name: Emulated(
                seconds_elsewhere=part.seconds, services="exponential", seed=place + 1
            )
            for place, part in enumerate(self.parts)
        }


CHAIN = App(
    "chain",
    (
        Part("extract", 0.050, {"results": 1.0}),
        Part("match", 0.075, {"results": 0.5}, "extract"),
        Part("gather", 0.020, {"results": 0.0}, "match"),
    ),
    rate=40.0,
)
LOOP = App(
    "loop",
    (
        Part("generate", 0.030, {"results": 1.0}),
        Part("detect", 0.060, {"again": 0.3, "reports": 0.5}, ("generate", "detect.again")),
        Part("reporter", 0.030, {"results": 0.0}, "detect.reports"),
    ),
    rate=40.0,
)


def write_inputs(folder: Path, rates: Sequence[tuple[float, float]], seed: int) -> int:
    """Inputs at random times, for so many seconds at such a rate, one after the other; returns how
    many."""
    dice = np.random.default_rng(seed)
    times, start = [], 0.0
    for seconds, rate in rates:
        count = dice.poisson(seconds * rate)
        times.append(start + np.sort(dice.uniform(0.0, seconds, count)))
        start += seconds
    at = np.concatenate(times)
    table = pa.table(
        {"id": np.arange(len(at)), "key": dice.integers(0, 1 << 20, len(at)), "time": at}
    )
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "inputs.parquet", row_group_size=_ROW_GROUP)
    return len(at)


def config_of(app: App, inputs: Path, **scale: Any) -> Config:
    """Settings of a run; inputs are followed, one and all."""
    return Config.from_dict(
        {
            "source": {"kind": "files", "path": str(inputs), "speed": 1.0},
            "engine": {"epoch_events": app.epoch_events},
            "flux": {"policy": "static"},
            "run": {"mode": "drain"},
            "scale": {"mode": "observe", "sample": 1, "look": "5s"} | scale,
        }
    )
