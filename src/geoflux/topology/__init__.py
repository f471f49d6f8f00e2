"""Applications: operators joined by durable streams; splits, joins and loops are allowed.

Here is only the description, its checks and its written forms; it is run by
:mod:`geoflux.topology_api`.
"""

from geoflux.topology.nodes import SOURCE, Ingest, Node, Queries, Stream
from geoflux.topology.topology import Topology

__all__ = ["SOURCE", "Ingest", "Node", "Queries", "Stream", "Topology"]
