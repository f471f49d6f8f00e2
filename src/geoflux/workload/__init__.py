"""Simulated workloads: events in cities by day and night, hotspots, and standing queries.

All from one seed and all by number, so that any worker can make any part of a run. Nothing here
knows Spark: the engine's ports are what comes out.
"""

from geoflux.workload.control import SimulatedControl
from geoflux.workload.scenario import Scenario
from geoflux.workload.simulator import Simulator

__all__ = ["Scenario", "SimulatedControl", "Simulator"]
