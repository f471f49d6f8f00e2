"""``geoflux bench …``: each prints a table; ``--json`` ends with one JSON object on a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from geoflux.cli.completion import parts_of
from geoflux.errors import IntegrityError

bench = typer.Typer(no_args_is_help=True, help="Benchmarks; each prints a table.")
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on its own line.")]


@bench.command("engine", epilog="Example:  geoflux bench engine --quick --json")
def bench_engine(
    quick: Annotated[bool, typer.Option(help="Smaller: within three minutes.")] = False,
    as_json: Json = False,
) -> None:
    """The engine against plain Spark SQL and against its bare kernel, on the same data."""
    from geoflux.bench import engine

    _benchmark("geoflux bench engine", engine.run_benchmark, engine.BARS, quick, as_json)


@bench.command("windows", epilog="Example:  geoflux bench windows --quick --json")
def bench_windows(
    quick: Annotated[bool, typer.Option(help="Smaller: within two minutes.")] = False,
    as_json: Json = False,
) -> None:
    """What aggregates add to an epoch, and snapshots against a scan, on the same data."""
    from geoflux.bench import windows

    _benchmark("geoflux bench windows", windows.run_benchmark, windows.BARS, quick, as_json)


@bench.command("triostat", epilog="Example:  geoflux bench triostat --quick --json")
def bench_triostat(
    quick: Annotated[bool, typer.Option(help="Smaller: within ten seconds.")] = False,
    as_json: Json = False,
) -> None:
    """What the statistics cost in time, storage and traffic; draws figures 6.1 to 6.4."""
    from geoflux.bench import triostat

    _benchmark("geoflux bench triostat", triostat.run_benchmark, triostat.BARS, quick, as_json)


@bench.command("swarm", epilog="Example:  geoflux bench swarm --quick --json")
def bench_swarm(
    quick: Annotated[bool, typer.Option(help="Smaller: within a minute.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Parquet file of real positions: ts, lon, lat.")
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            help="Parts of it: sweep, hotspots, constant, taxis, wall.",
            autocompletion=parts_of("swarm"),
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """The plan follows the load: against static plans, on 22 emulated slots and by the clock."""
    from geoflux.bench import swarm

    run = partial(swarm.run_benchmark, data=data, parts=_parts(only, swarm.PARTS))
    _benchmark("geoflux bench swarm", run, swarm.BARS, quick, as_json)


@bench.command("synopsis", epilog="Example:  geoflux bench synopsis --quick --json")
def bench_synopsis(
    quick: Annotated[bool, typer.Option(help="Smaller: within a minute and a half.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Parquet file of real weather: ts, lon, lat, t2m_k, u10_ms, …"),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            help="Parts of it: ingest, memory, bins, growth, queries, truth, sets, clients, "
            "scaling, spark, training.",
            autocompletion=parts_of("synopsis"),
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """The sketch: what it takes in, holds, and answers."""
    from geoflux.bench import synopsis

    run = partial(synopsis.run_benchmark, data=data, parts=_parts(only, synopsis.PARTS))
    bars = synopsis.QUICK_BARS if quick else synopsis.BARS
    _benchmark("geoflux bench synopsis", run, bars, quick, as_json)


@bench.command("flux", epilog="Example:  geoflux bench flux --quick --json")
def bench_flux(
    quick: Annotated[bool, typer.Option(help="Smaller: within a minute or so.")] = False,
    only: Annotated[
        str, typer.Option(help="Parts of it: sim, spark.", autocompletion=parts_of("flux"))
    ] = "",
    as_json: Json = False,
) -> None:
    """Operators with a key, on 32 simulated sites and on Spark: slow ones, skew, little memory."""
    from geoflux.bench import flux

    run = partial(flux.run_benchmark, parts=_parts(only, flux.PARTS))
    bars = flux.QUICK_BARS if quick else flux.BARS
    result = _benchmark("geoflux bench flux", run, bars, quick, as_json)
    if not result.get("spark_oracle_clean", True):
        raise IntegrityError("a run on Spark gave other results than one loop over its rows")


@bench.command("guard", epilog="Example:  geoflux bench guard --quick --json")
def bench_guard(
    quick: Annotated[bool, typer.Option(help="Smaller: within a minute.")] = False,
    only: Annotated[
        str,
        typer.Option(
            help="Parts of it: activity, groups, variants, crowds, overhead, engine, encryption.",
            autocompletion=parts_of("guard"),
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Attacks on the balancer with and without Guard, on 22 simulated slots."""
    from geoflux.bench import guard

    run = partial(guard.run_benchmark, parts=_parts(only, ()))
    bars = guard.QUICK_BARS if quick else guard.BARS
    _benchmark("geoflux bench guard", run, bars, quick, as_json)


@bench.command("drs", epilog="Example:  geoflux bench drs --quick --json")
def bench_drs(
    quick: Annotated[bool, typer.Option(help="Smaller: the model within a minute.")] = False,
    only: Annotated[
        str,
        typer.Option(
            help="Parts of it: model, share, chain, loop, changes.", autocompletion=parts_of("drs")
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """How many processors, and where: the model against simulators, applications on Spark."""
    from geoflux.bench import drs

    run = partial(drs.run_benchmark, parts=_parts(only, drs.PARTS))
    bars = drs.QUICK_BARS if quick else drs.BARS
    _benchmark("geoflux bench drs", run, bars, quick, as_json)


@bench.command("serve", epilog="Example:  geoflux bench serve --quick --json")
def bench_serve(
    quick: Annotated[bool, typer.Option(help="Smaller: within two minutes.")] = False,
    only: Annotated[
        str, typer.Option(help="Parts of it: streams, kills, spark, schema, outsiders.")
    ] = "",
    as_json: Json = False,
) -> None:
    """The HTTP API: a thousand streams, kills at random moments, whatever outsiders try."""
    from geoflux.bench import serve

    run = partial(serve.run_benchmark, parts=_parts(only, serve.PARTS))
    bars = serve.QUICK_BARS if quick else serve.BARS
    _benchmark("geoflux bench serve", run, bars, quick, as_json)


def _parts(only: str, default: Sequence[str]) -> Sequence[str]:
    """The parts of a benchmark that ``--only`` names, separated by commas."""
    return [part.strip() for part in only.split(",")] if only else default


def _benchmark(title: str, run: Any, bars: Any, quick: bool, as_json: bool) -> dict[str, Any]:
    from geoflux.bench.table import print_result

    console = Console(stderr=as_json)
    result = run(console, quick)
    print_result(console, title, result, bars)
    if as_json:
        print(json.dumps(result, default=lambda number: number.item()))  # of NumPy
    return dict(result)
