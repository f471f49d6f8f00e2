"""``geoflux guard list | explain | block | lift``: who is kept out of a run, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from geoflux.cli.completion import runs

if TYPE_CHECKING:
    from geoflux.engine.guard_orders import Order

guard = typer.Typer(
    no_args_is_help=True,
    help="Who is blocked in a run, and why; block and lift while it goes.",
)
Directory = Annotated[
    Path, typer.Argument(help="The directory of a run, stopped or not.", autocompletion=runs)
]
User = Annotated[str, typer.Argument(help="The user, as requests name them.")]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on its own line.")]


@guard.command("list", epilog="Examples:  geoflux guard list out   |   geoflux guard list --json")
def list_blocks(directory: Directory = Path("out"), as_json: Json = False) -> None:
    """List the users whose requests are refused, and orders that wait for the next epoch."""
    from geoflux.cli.guard_print import print_blocks
    from geoflux.engine.guard_reader import guard_view

    view = guard_view(directory)
    print_blocks(Console(stderr=as_json), view)
    if as_json:
        print(json.dumps(view.as_dict()))


@guard.command(epilog="Example:  geoflux guard explain mallory out --json")
def explain(user: User, directory: Directory = Path("out"), as_json: Json = False) -> None:
    """Show all that is on record about a user's blocks: features, cluster, hotspots, rounds."""
    from geoflux.cli.guard_print import print_explanation
    from geoflux.engine.guard_reader import guard_view

    found = guard_view(directory).blocks.explain(user)
    print_explanation(Console(stderr=as_json), user, found)
    if as_json:
        print(json.dumps({"user": user, "blocks": [block.to_dict() for block in found]}))


@guard.command(
    epilog="Examples:  geoflux guard block mallory out   |   "
    'geoflux guard block mallory out --for 2h --reason "asked by their owner"'
)
def block(
    user: User,
    directory: Directory = Path("out"),
    reason: Annotated[str, typer.Option(help="Why; told with every request refused.")] = "",
    lasts: Annotated[
        str, typer.Option("--for", help="How long (90s, 2h); else until lifted.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Refuse a user's requests from the next epoch on."""
    from geoflux.engine.guard_orders import Order
    from geoflux.errors import ConfigError
    from geoflux.settings import seconds

    try:
        length = seconds(lasts) if lasts else None
    except ValueError as error:
        raise ConfigError(f"--for {lasts}: {error}") from None
    if length is not None and length <= 0:
        raise ConfigError(f"--for {lasts}: expected more than 0 s")
    _give(directory, Order("block", user, reason, length), as_json)


@guard.command(epilog="Example:  geoflux guard lift mallory out")
def lift(user: User, directory: Directory = Path("out"), as_json: Json = False) -> None:
    """Let a blocked user in again from the next epoch on; they begin anew."""
    from geoflux.engine.guard_orders import Order
    from geoflux.engine.guard_reader import guard_view
    from geoflux.errors import ConfigError

    view = guard_view(directory)
    blocked = user in view.blocks.entries or any(
        order.op == "block" and order.user == user for order in view.waiting
    )
    if not blocked:
        raise ConfigError(f"{user!r} is not blocked in {directory}; geoflux guard list says who is")
    _give(directory, Order("lift", user), as_json)


def _give(directory: Path, order: Order, as_json: bool) -> None:
    from geoflux.cli.guard_print import print_order
    from geoflux.engine.guard_reader import give_order

    name = give_order(directory, order)
    print_order(Console(stderr=as_json), order)
    if as_json:
        print(json.dumps({**order.to_dict(), "request": name}))
