"""The command line: ``geoflux run | verify | snapshot | query | chart | plan | guard | …``.

A user's mistake is one sentence on standard error and exit code 2; there is never a stack trace
for it. ``--json`` ends the output with one JSON object on a line of its own.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from geoflux.cli.bench_commands import Json, bench
from geoflux.cli.completion import balances, runs
from geoflux.cli.completion import settings as setting_names
from geoflux.cli.continuous_commands import continuous
from geoflux.cli.flags import flags_of
from geoflux.cli.guard_commands import guard
from geoflux.cli.mistakes import check_out, sentence_of
from geoflux.cli.mqtt_command import mqtt
from geoflux.cli.serve_commands import serve, token
from geoflux.cli.sketch_commands import chart, query
from geoflux.cli.weather_command import weather
from geoflux.config import Config
from geoflux.errors import ConfigError, GeofluxError

app = typer.Typer(
    name="geoflux",
    help="Standing location queries over endless spatial streams, on Apache Spark, exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(bench, name="bench")
app.add_typer(guard, name="guard")
app.add_typer(chart, name="chart")
app.add_typer(continuous, name="continuous")
app.add_typer(token, name="token")
app.command(
    epilog="Examples:  geoflux serve out   |   geoflux serve out --port 0 --set serve.rate=500"
)(serve)
app.command(
    epilog="Example:  geoflux mqtt events --broker localhost --topic 'positions/#' --column topic"
)(mqtt)
app.command(
    epilog='Examples:  geoflux query out "SELECT mean(speed), count(*) GROUP BY geohash(3)"   |   '
    'geoflux query out "SELECT deciles(speed) WHERE hour BETWEEN 14 AND 16" --json   |   '
    'geoflux query out "SELECT count(*)" --every 60s'
)(query)
app.command(
    epilog="Examples:  geoflux weather events --rows 50000   |   "
    "geoflux weather events --data era5.parquet --steps 4"
)(weather)


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        import geoflux

        print(geoflux.__version__)
        raise typer.Exit


@app.command(
    epilog="Examples:  geoflux run   |   geoflux run geofence.toml --out out   |   "
    "geoflux run --duration 2m --set engine.slots=8 --set simulate.queries=100000"
)
def run(
    config: Annotated[
        Path | None, typer.Argument(help="Settings (TOML); the simulator if none.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The run's directory; the same one goes on.", autocompletion=runs)
    ] = Path("out"),
    duration: Annotated[str, typer.Option(help="How long, for example 90s or 5m.")] = "",
    balance: Annotated[
        str, typer.Option(help="uniform, history, replicated or swarm.", autocompletion=balances)
    ] = "",
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the HTTP API beside it, while it runs.")
    ] = False,
    port: Annotated[int | None, typer.Option(help="Port of the HTTP API; 0: any.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="section.name=value; may be repeated.", autocompletion=setting_names
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
    as_json: Json = False,
) -> None:
    """Match a stream against standing queries until it is drained, over, or interrupted; or keep a
    sketch of it, where the file has [sketch]; or run an application, where it describes one with
    tables [[operator]]."""
    from geoflux.cli.topology_run import describes_topology, run_file

    check_out(out)
    console = Console(stderr=as_json, quiet=quiet)
    flags = flags_of(settings or [])
    if duration:
        flags["run.duration"] = duration
    if balance:
        flags["engine.balance"] = balance
    if port is not None:
        flags["serve.port"] = port
    if config is not None and describes_topology(config):
        if serve:
            raise ConfigError(
                "--serve: an application has a directory per operator; serve one of them with "
                "geoflux serve DIR"
            )
        run_file(config, flags, out, console, as_json)
        return
    loaded = Config.load(config, flags)
    with _served(loaded, out) if serve else contextlib.nullcontext():
        if loaded.sketch.features:
            _run_sketch(loaded, out, console, as_json)
        else:
            _run(loaded, out, console, as_json)


@contextlib.contextmanager
def _served(config: Config, out: Path) -> Iterator[None]:
    from geoflux.cli.serve_commands import say_where
    from geoflux.serve.server import beside

    with beside(out, config) as where:
        say_where(Console(stderr=True), where, out, config.serve)
        yield


def _run_sketch(config: Config, out: Path, console: Console, as_json: bool) -> None:
    from dataclasses import asdict

    from geoflux.cli.interrupts import Interrupts
    from geoflux.engine.sketch_reader import open_sketch
    from geoflux.sketch_api import run_sketch

    interrupts = Interrupts(console.print)
    summary = run_sketch(config, out, display=console, on_start=interrupts.stop)
    found = open_sketch(out)
    told = {"observations": found.observations, "sketch_bytes": found.bytes}
    console.print(f'ask it:  geoflux query {out} "SELECT count(*)"', soft_wrap=True)
    _say_how_to_go_on(console, interrupts.go_on())
    if as_json:
        print(json.dumps(asdict(summary) | told))


def _say_how_to_go_on(console: Console, line: str) -> None:
    if line:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _run(config: Config, out: Path, console: Console, as_json: bool) -> None:
    from geoflux import api
    from geoflux.cli.display import Display
    from geoflux.cli.interrupts import Interrupts
    from geoflux.cli.report import write_report
    from geoflux.cli.summary_print import print_summary
    from geoflux.state.keys import store_of

    with Display(console, out) as display:
        interrupts = Interrupts(display.say)
        summary = api.run(config, out, on_epoch=display.epoch, on_start=interrupts.stop)
    report = write_report(config, store_of(out), summary)
    print_summary(console, summary, out, report)
    _say_how_to_go_on(console, interrupts.go_on())
    if as_json:
        print(json.dumps(summary.as_dict()))


@app.command(
    epilog="Examples:  geoflux top out   |   geoflux top out --once   |   "
    "geoflux top out --json | jq .rows_per_second"
)
def top(
    directory: Annotated[
        Path,
        typer.Argument(
            help="The directory of a run: going on, over or crashed.", autocompletion=runs
        ),
    ] = Path("out"),
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 0.5,
    once: Annotated[bool, typer.Option("--once", help="Show it once and leave.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line, at every news until it is over.")
    ] = False,
) -> None:
    """Look on while a run goes, from another terminal: rate, latency, slots, last decisions. Press
    q to leave; the run does not notice."""
    from geoflux.cli.top import look_on

    look_on(directory, every, once, as_json)


@app.command(epilog="Example:  geoflux verify out")
def verify(
    directory: Annotated[Path, typer.Argument(help="The directory of a run.", autocompletion=runs)],
    as_json: Json = False,
) -> None:
    """Recompute a run's matches by brute force and report what is missing, doubled or wrong; the
    same of a sketch; of an application everything that every operator gave, and every stream."""
    from geoflux import api, run_notes
    from geoflux.cli.sketch_view import print_sketch_verification
    from geoflux.cli.summary_print import print_verification, progress_bar
    from geoflux.cli.topology_run import holds_topology, verify_directory

    if holds_topology(directory):
        raise typer.Exit(0 if verify_directory(directory, as_json) else 1)
    console = Console(stderr=as_json)
    if run_notes.operator_of(directory) == "Sketch":
        from geoflux.sketch_api import verify_sketch

        with progress_bar(console, "reading every row again") as progress:
            told = verify_sketch(directory, progress)
        print_sketch_verification(console, told)
        if as_json:
            print(json.dumps(told.as_dict()))
        raise typer.Exit(0 if told.is_clean else 1)
    with progress_bar(console, "comparing every event with every query") as progress:
        found = api.verify(directory, progress)
    print_verification(console, found)
    if as_json:
        print(json.dumps(found.as_dict()))
    raise typer.Exit(0 if found.is_clean else 1)


@app.command(
    epilog='Examples:  geoflux snapshot out \'{"where": "speed > 30"}\'   |   '
    'geoflux snapshot out \'{"nearest": {"lon": 2.35, "lat": 48.86, "k": 10}}\'   |   '
    'geoflux snapshot out \'{"aggregate": {"functions": ["count", "avg(speed)"]}}\' --json'
)
def snapshot(
    directory: Annotated[
        Path, typer.Argument(help="The directory of a run, stopped or not.", autocompletion=runs)
    ],
    query: Annotated[
        str,
        typer.Argument(
            help="JSON with any of shape, where, from, to, aggregate, nearest; - reads it "
            "from standard input."
        ),
    ] = "{}",
    rows: Annotated[int, typer.Option(min=0, help="How many rows the table shows.")] = 20,
    as_json: Json = False,
) -> None:
    """Ask once about the events that a run retains."""
    from geoflux.cli.snapshot_view import print_answer
    from geoflux.engine.snapshot_reader import Snapshots, query_of

    asked = query_of(sys.stdin.read() if query == "-" else query)
    answer = Snapshots(directory).ask(asked)
    print_answer(Console(stderr=as_json), answer, rows)
    if as_json:
        print(json.dumps(answer.as_dict()))


@app.command(
    epilog="Examples:  geoflux plan out   |   geoflux plan out --epoch 12 --svg plan.svg   |   "
    "geoflux plan out --json"
)
def plan(
    directory: Annotated[
        Path, typer.Argument(help="The directory of a run, stopped or not.", autocompletion=runs)
    ],
    epoch: Annotated[
        int | None, typer.Option(help="Whose plan; the one of the next epoch if none.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw it into this file as well.")] = None,
    as_json: Json = False,
) -> None:
    """Show who owns which part of the space, or of the keys, in an epoch, and what it cost."""
    from geoflux import run_notes
    from geoflux.chronicle.plan_view import PlanView
    from geoflux.cli.operator_plan import OperatorPlan, print_operator_plan
    from geoflux.cli.plan_print import print_plan, write_picture

    console = Console(stderr=as_json)
    operator = run_notes.operator_of(directory)
    if operator:
        if svg is not None:
            raise ConfigError(f"{directory} is of the operator {operator}: keys have no map")
        found = OperatorPlan.of(directory, operator, epoch)
        print_operator_plan(console, found)
        if as_json:
            print(json.dumps(found.as_dict()))
        return
    view = PlanView.of(directory, epoch)
    print_plan(console, view)
    if svg is not None:
        write_picture(view, svg)
        console.print(f"drawn in {_escaped(str(svg))}", highlight=False)
    if as_json:
        print(json.dumps(view.as_dict()))


@app.command(epilog="Example:  geoflux key ~/geoflux.key")
def key(path: Annotated[Path, typer.Argument(help="The new file; it must not be there.")]) -> None:
    """Make a key for security.encrypt, in a file that only its owner can read."""
    from geoflux.state.keys import new_key

    new_key(path)
    Console().print(
        f"{_escaped(str(path))} holds a new key; name it in security.key_file, and keep a copy: "
        "without it nothing that was encrypted can be read again",
        highlight=False,
    )


@app.command(epilog="Examples:  geoflux doctor   |   geoflux doctor out")
def doctor(
    directory: Annotated[
        Path | None,
        typer.Argument(help="The directory of a run: say what it holds.", autocompletion=runs),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that this machine has what geoflux needs, and say what to do where it has not."""
    from geoflux.cli.doctor import checks, print_checks

    found = checks(directory)
    print_checks(Console(stderr=as_json), found)
    good = all(check.good for check in found)
    if as_json:
        print(json.dumps({"good": good, "checks": [check.as_dict() for check in found]}))
    raise typer.Exit(0 if good else 1)


def main() -> None:
    """The entry point: errors of geoflux become a sentence."""
    try:
        app()
    except GeofluxError as error:
        _fail(str(error))
    except OSError as error:
        told = sentence_of(error)
        if told is None:
            raise
        _fail(told)
    except KeyboardInterrupt:
        Console(stderr=True).print("[bold red]geoflux:[/] interrupted; run it again to go on")
        sys.exit(130)


def _fail(sentence: str) -> None:
    Console(stderr=True).print(
        f"[bold red]geoflux:[/] {_escaped(sentence)}", highlight=False, soft_wrap=True
    )
    sys.exit(2)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
