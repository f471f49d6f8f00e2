"""``geoflux serve`` and ``geoflux token``: the HTTP API beside a run, and who may use it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from geoflux.config import Config
from geoflux.errors import ConfigError

if TYPE_CHECKING:
    from geoflux.sections_serve import ServeConfig
    from geoflux.serve.tokens import TokenFile

token = typer.Typer(
    no_args_is_help=True, help="Who may use the HTTP API of a run: create, list, revoke."
)
Directory = Annotated[Path, typer.Argument(help="The directory of a run, also before it begins.")]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on its own line.")]


def serve(
    directory: Directory = Path("out"),
    host: Annotated[str, typer.Option(help="Address to listen on; this machine's own.")] = "",
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0: one that is free.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="serve.name=value; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve the HTTP API of a run, stopped or going on, until interrupted."""
    from geoflux.cli.flags import flags_of
    from geoflux.serve import server

    server.check_installed()
    if not directory.is_dir():
        raise ConfigError(
            f"there is no directory {directory}; give the one of a run, or make it with the first "
            f"token: geoflux token create NAME {directory} --operator"
        )
    flags = flags_of(settings or []) | ({"serve.host": host} if host else {})
    flags |= {} if port is None else {"serve.port": port}
    wanted = _settings_of(directory, flags)
    listener = server.listening(wanted)
    say_where(Console(stderr=True), server.address(listener), directory, wanted)
    if as_json:
        print(json.dumps({"address": server.address(listener)}), flush=True)
    server.serve(directory, wanted, listener)


def say_where(console: Console, where: str, directory: Path, settings: ServeConfig) -> None:
    """Tell the address, and what is missing."""
    from geoflux.serve.headers import is_local

    console.print(f"serving {directory} at {where}", highlight=False, soft_wrap=True, markup=False)
    if not is_local(settings.host):
        console.print(
            f"others can reach {settings.host}, and what they send is not encrypted: use a network "
            "that you trust, or a proxy that speaks TLS", style="yellow", soft_wrap=True,
        )  # fmt: skip
    if not _tokens(directory, settings).listed():
        console.print(
            f"nobody has a token yet:  geoflux token create NAME {directory} --operator",
            highlight=False, soft_wrap=True, markup=False,
        )  # fmt: skip


@token.command(
    epilog="Examples:  geoflux token create ann out   |   geoflux token create ops out --operator"
)
def create(
    user: Annotated[str, typer.Argument(help="Whose it is; the user that Guard sees.")],
    directory: Directory = Path("out"),
    operator: Annotated[
        bool, typer.Option("--operator", help="It may also see and do what concerns all users.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a token. It is shown this once and kept only as a hash."""
    made = _tokens(directory).create(user, "operator" if operator else "user")
    if as_json:
        role = "operator" if operator else "user"
        print(json.dumps({"user": user, "role": role, "token": made}))
        return
    print(made)
    Console(stderr=True).print("keep it: it is not shown again", highlight=False)


@token.command("list", epilog="Example:  geoflux token list out")
def list_tokens(directory: Directory = Path("out"), as_json: Json = False) -> None:
    """List who has tokens; not the tokens themselves."""
    from datetime import UTC, datetime

    from rich.table import Table

    found = _tokens(directory).listed()
    table = Table(title=f"tokens of {directory}", title_justify="left")
    for column in ("id", "user", "role", "created"):
        table.add_column(column)
    for item in found:
        made = datetime.fromtimestamp(item.created, UTC).isoformat(" ", "seconds")
        table.add_row(item.id, item.user, item.role, made)
    Console(stderr=as_json).print(table)
    if as_json:
        told = [{k: v for k, v in asdict(item).items() if k != "hash"} for item in found]
        print(json.dumps({"tokens": told}))


@token.command(epilog="Example:  geoflux token revoke 0123abcd out")
def revoke(
    id: Annotated[str, typer.Argument(help="The id of the token, as geoflux token list says.")],
    directory: Directory = Path("out"),
    as_json: Json = False,
) -> None:
    """Take a token back; a server that runs refuses it from now on."""
    gone = _tokens(directory).revoke(id)
    Console(stderr=as_json).print(f"token {gone.id} of {gone.user} is revoked", highlight=False)
    if as_json:
        print(json.dumps({"id": gone.id, "user": gone.user}))


def _settings_of(directory: Path, flags: dict[str, Any] | None = None) -> ServeConfig:
    """How a run wants to be served, then the environment, then flags."""
    from geoflux.state.keys import RUN
    from geoflux.state.store import Store

    store = Store(str(directory))
    noted = store.read_json(RUN)["config"].get("serve", {}) if store.exists(RUN) else {}
    return Config.loaded({"serve": dict(noted)}, flags).serve


def _tokens(directory: Path, settings: ServeConfig | None = None) -> TokenFile:
    from geoflux.serve.parts import token_path
    from geoflux.serve.tokens import TokenFile

    return TokenFile(token_path(directory, settings or _settings_of(directory)))
