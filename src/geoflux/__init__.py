"""Standing location queries over endless spatial streams, on Apache Spark, exactly once.

Over a folder of events, with the settings of a TOML file:

    import geoflux
    summary = geoflux.run(geoflux.Config.load(Path("geofence.toml")), out="out")
    assert geoflux.verify("out").is_clean

Over a streaming DataFrame that is there already:

    config = geoflux.Config.from_dict({"control": {"path": "queries.ndjson"}})
    geoflux.run(config, out="out", events=positions,
                on_matches=lambda matches, epoch: matches.show())

About the events that a run retains, while it goes on or afterwards:

    geoflux.snapshot("out", {"where": "speed > 30", "aggregate": {"functions": ["count"]}}).rows

Over a stateful operator, whose partitions move while it runs:

    geoflux.run_operator(geoflux.WindowedGroupBy("car", "speed", "mean", rows=100), config, "out")

A sketch of all that was observed, to be asked while it runs or afterwards:

    geoflux.run_sketch(config, "out")
    geoflux.open_sketch("out").query("SELECT mean(speed), corr(speed, heading) GROUP BY geohash(4)")
    for told in geoflux.follow_sketch("out", "SELECT count(*)", every="60s"): ...

Over an application of several operators, joined by durable streams:

    geoflux.run_topology(geoflux.Topology((
        geoflux.Node("ingest", geoflux.Ingest(key="car")),
        geoflux.Node("places", geoflux.Queries(), reads="ingest"),
    )), config, "out")

These names are all that is public here. They are loaded when first used: a worker imports
this package with every task and needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoflux.api import run, snapshot, verify
    from geoflux.cli.operator_run import run_operator
    from geoflux.config import Config
    from geoflux.engine.following import follow_sketch
    from geoflux.engine.sketch_reader import open_sketch
    from geoflux.engine.snapshot_reader import Snapshots
    from geoflux.errors import GeofluxError
    from geoflux.keyed_api import verify_operator
    from geoflux.operators.group_by import WindowedGroupBy
    from geoflux.operators.keyed import Operator
    from geoflux.sketch_api import (
        continuous_answers,
        drop_query,
        place_query,
        run_sketch,
        verify_sketch,
    )
    from geoflux.topology import Ingest, Node, Queries, Topology
    from geoflux.topology_api import load_topology, run_topology, verify_topology

__version__ = "0.1.0"
__all__ = [
    "Config", "GeofluxError", "Ingest", "Node", "Operator", "Queries", "Snapshots", "Topology",
    "WindowedGroupBy", "continuous_answers", "drop_query", "follow_sketch", "load_topology",
    "open_sketch", "place_query", "run", "run_operator", "run_sketch", "run_topology", "snapshot",
    "verify", "verify_operator", "verify_sketch", "verify_topology",
]  # fmt: skip

_HOMES = {
    "Config": "geoflux.config",
    "GeofluxError": "geoflux.errors",
    "Ingest": "geoflux.topology",
    "Node": "geoflux.topology",
    "Operator": "geoflux.operators.keyed",
    "Queries": "geoflux.topology",
    "Snapshots": "geoflux.engine.snapshot_reader",
    "Topology": "geoflux.topology",
    "WindowedGroupBy": "geoflux.operators.group_by",
    "continuous_answers": "geoflux.sketch_api",
    "drop_query": "geoflux.sketch_api",
    "follow_sketch": "geoflux.engine.following",
    "load_topology": "geoflux.topology_api",
    "open_sketch": "geoflux.engine.sketch_reader",
    "place_query": "geoflux.sketch_api",
    "run": "geoflux.api",
    "run_operator": "geoflux.cli.operator_run",
    "run_sketch": "geoflux.sketch_api",
    "run_topology": "geoflux.topology_api",
    "snapshot": "geoflux.api",
    "verify": "geoflux.api",
    "verify_operator": "geoflux.keyed_api",
    "verify_sketch": "geoflux.sketch_api",
    "verify_topology": "geoflux.topology_api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'geoflux' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
