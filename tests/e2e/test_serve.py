"""The server as a process: the examples of its page, a crash right after the answer, and Spark."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from geoflux.bench.serve_clients import GONE, Connection, until_up
from geoflux.bench.serve_kills import killed
from geoflux.bench.serve_outsiders import tried
from geoflux.bench.serve_schema import server_errors
from geoflux.bench.serve_world import World, free_port, world

PAGE = Path(__file__).parents[2] / "docs/serve.md"


async def begun(at: World) -> None:
    at.start_engine()
    at.start_server()
    await until_up(at.port)
    async with asyncio.timeout(60):
        while not (at.out / "run.json").exists():
            await asyncio.sleep(0.05)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_examples_of_the_page(tmp_path: Path) -> None:
    blocks = re.findall(r"<!-- run -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 6
    with world(tmp_path / "w", retention={"time": "1 day"}) as at:
        asyncio.run(begun(at))
        tokens = at.tokens(["ann"]) | at.tokens(["ops"], "operator")
        text = []
        for block in blocks:
            script = block.replace("127.0.0.1:8321", f"127.0.0.1:{at.port}")
            ran = subprocess.run(
                ["sh", "-ec", script.replace("curl -s", "curl -sS")], capture_output=True, text=True, timeout=60,
                env=os.environ | {"ANN": tokens["ann"], "OPS": tokens["ops"]},
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr
            assert "urn:geoflux:problem" not in ran.stdout, ran.stdout
            text.append(ran.stdout)
            time.sleep(0.5)
        whole = "".join(text)
        assert '"state":"placed"' in whole
        assert '"subscription":"station","event":17' in whole
        assert "geoflux_epochs_total" in whole


def test_kills_lose_nothing_no_request_fails_the_server_and_outsiders_get_nothing(
    tmp_path: Path,
) -> None:
    from rich.console import Console

    with world(tmp_path / "w") as at:
        found = asyncio.run(killed(at, 3))
        assert found["acknowledged"] > 10
        assert (found["lost_after_ack"], found["doubled"]) == (0, 0), found
        thesis = server_errors(at, 5)
        assert thesis["schemathesis_requests"] > 50
        assert thesis["schemathesis_server_errors"] == 0
        attempts = tried(at, Console())
        assert attempts["outsider_tried"] > 40
        assert attempts["outsider_succeeded"] == 0


@pytest.mark.spark
@pytest.mark.long
def test_a_run_on_spark_serves_itself(tmp_path: Path) -> None:
    """``run --serve`` beside the simulator: a subscription that is placed while it goes is matched,
    and the server ends with its run."""
    out, port = tmp_path / "out", free_port()
    made = subprocess.run(
        [sys.executable, "-m", "geoflux.cli", "token", "create", "ann", str(out), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    token = json.loads(made.stdout)["token"]
    settings = [
        "simulate.rate=2000",
        "simulate.queries=100",
        "engine.slots=2",
        "engine.epoch_seconds=0.2",
    ]
    command = [
        sys.executable,
        "-m",
        "geoflux.cli",
        "run",
        "--out",
        str(out),
        "--duration",
        "120s",
        "--serve",
        "--port",
        str(port),
    ]
    run = subprocess.Popen(
        [*command, *(f"--set={s}" for s in settings)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        asyncio.run(_subscribed(port, token))
        run.send_signal(signal.SIGINT)
        assert run.wait(180) == 0
        with pytest.raises(GONE):
            asyncio.run(Connection(port, token).ask("GET", "/health"))
    finally:
        run.kill()
        run.wait()


async def _subscribed(port: int, token: str) -> None:
    await until_up(port)
    connection = Connection(port, token)
    world_wide = {"type": "rectangle", "west": -180, "south": -90, "east": 180, "north": 90}
    async with asyncio.timeout(240):
        while (await connection.ask("POST", "/v1/subscriptions", {"id": "w", "shape": world_wide}))[
            0
        ] == 503:
            await asyncio.sleep(0.2)
        while (await connection.ask("GET", "/v1/subscriptions/w"))[1]["state"] != "live":
            await asyncio.sleep(0.2)
    from geoflux.bench.serve_clients import MatchClient

    heard: list[str] = []
    listening = asyncio.create_task(
        MatchClient(port, token, lambda data, _: heard.append(data)).listen()
    )
    async with asyncio.timeout(120):
        while not heard:
            await asyncio.sleep(0.1)
    listening.cancel()
    assert json.loads(heard[0])["matches"][0]["subscription"] == "w"
