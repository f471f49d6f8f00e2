"""``geoflux bench serve``: the HTTP API under load, under kills, and under attack.

Everything happens on this machine, over local ports that are free, in a folder that goes away.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from geoflux.bench.serve_browser import lacking
from geoflux.bench.serve_clients import until_up
from geoflux.bench.serve_dashboard import LEAST_FPS, dashboard_fluency
from geoflux.bench.serve_kills import killed
from geoflux.bench.serve_outsiders import tried
from geoflux.bench.serve_schema import server_errors
from geoflux.bench.serve_streams import measured
from geoflux.bench.serve_world import world
from geoflux.bench.table import Bars, check_parts
from geoflux.serve.server import check_installed

PARTS = ("streams", "kills", "spark", "schema", "outsiders", "dashboard")
BARS: Bars = {
    "sse_clients": (">=", 1000),
    "sse_clients_wrong": ("<=", 0),
    "match_to_client_p99_seconds": ("<=", 1.0),
    "kills": (">=", 50),
    "lost_after_ack": ("<=", 0),
    "doubled": ("<=", 0),
    "schemathesis_server_errors": ("<=", 0),
    "outsider_succeeded": ("<=", 0),
    "dashboard_fps": (">=", LEAST_FPS),
    "dashboard_fps_ok": (">=", 1),
}
QUICK_BARS: Bars = {name: bar for name, bar in BARS.items() if name != "kills"}
_KILLS, _QUICK_KILLS, _SPARK_KILLS = 50, 6, 4


def run_benchmark(console: Console, quick: bool, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    """All parts, each in a world of its own; most kills beside an engine without Spark, whose
    restart takes a second, and a few beside Spark (left out when ``quick``)."""
    check_installed()
    check_parts(parts, PARTS)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "streams" in parts:
            console.print("a thousand clients, and subscriptions one by one")
            with world(folder / "streams") as at:
                result |= asyncio.run(measured(at, quick))
        kills: dict[str, int] = {}
        if "kills" in parts:
            count = _QUICK_KILLS if quick else _KILLS
            console.print(f"{count} kills of the server or the run")
            with world(folder / "kills") as at:
                kills = asyncio.run(killed(at, count))
        if "spark" in parts and not quick:
            console.print(f"{_SPARK_KILLS} kills beside Spark")
            with world(folder / "spark", on_spark=True) as at:
                more = asyncio.run(killed(at, _SPARK_KILLS, seed=2))
                kills = {key: kills.get(key, 0) + value for key, value in more.items()}
        result |= kills
        if "schema" in parts or "outsiders" in parts:
            with world(folder / "asked") as at:
                at.start_engine()
                at.start_server()
                asyncio.run(until_up(at.port))
                asyncio.run(_begun(at.out / "run.json"))
                if "outsiders" in parts:
                    result |= tried(at, console)
                if "schema" in parts:
                    console.print("schemathesis")
                    result |= server_errors(at, 20 if quick else 200)
    if "dashboard" in parts:
        console.print("the dashboard in a browser")
        missing = lacking()
        if missing:
            console.print(f"not measured: {missing}")
        else:
            result |= dashboard_fluency(4.0 if quick else 10.0).as_dict()
    return result


async def _begun(path: Path) -> None:
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.05)
