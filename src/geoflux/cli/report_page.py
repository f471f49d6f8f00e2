"""The page of a report, whatever was run: its head, its key figures, its cards, in one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import PurePosixPath

from geoflux.chronicle.epoch_series import Manifest
from geoflux.chronicle.wording import count, plural
from geoflux.cli.report_style import STYLE
from geoflux.cli.report_tables import Counts, unaccounted
from geoflux.config import Config
from geoflux.state.store import Store

NAME = "report.html"


@dataclass(frozen=True)
class Headline:
    """The run in one line, its counts, and more about it in a few words each."""

    verdict: str
    counts: Counts
    about: Sequence[str]


def write_page(store: Store, body: str, cards: Iterable[str]) -> str:
    """Write ``report.html`` into the run's directory; returns its path."""
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(_run_name(store))} · geoflux</title>\n<style>{STYLE}</style>\n</head>\n"
        f'<body>\n<main>\n{body}<div class="grid">\n{"".join(cards)}</div>\n'
        "<footer>Written by geoflux from the run's manifests.</footer>\n</main>\n</body>\n</html>\n"
    )
    store.write_bytes(NAME, page.encode())
    return store.path(NAME)


def header(config: Config, store: Store, manifests: list[Manifest], line: Headline) -> str:
    """The head of the page."""
    kind, word = ("bad", "does not add up") if unaccounted(line.counts) else ("good", "adds up")
    if not manifests:
        kind, word = "none", "no epochs"
    about = [_source(config), *line.about]
    if manifests:
        begun = datetime.fromtimestamp(manifests[0]["opened"], UTC)
        about.insert(0, f"{begun.day} {begun:%B %Y, %H:%M:%S} UTC")
    return (
        f'<header><div class="kind">geoflux run · {escape(_run_name(store))}</div>'
        f"<h1>{escape(line.verdict, quote=False)}</h1>"
        f'<p class="about"><span class="verdict {kind}">{word}</span>'
        f"{escape(' · '.join(about))}</p></header>\n"
    )


def outcome_of(counts: Counts, noun: str) -> str:
    """Whether anything was lost."""
    missing = unaccounted(counts)
    if missing > 0:
        outcome = f"{plural(missing, noun)} lost"
    elif missing < 0:
        outcome = f"{plural(-missing, noun)} more than were received"
    else:
        outcome = "nothing lost"
    if counts.quarantined:
        outcome += f", {count(counts.quarantined)} quarantined"
    return outcome


def tile_row(tiles: Iterable[tuple[str, str, str, str]]) -> str:
    """The key figures: name, value, unit, note (HTML)."""
    cells = "".join(
        f'<div><dt>{name}</dt><dd class="value">{value}<small>{unit}</small></dd>'
        f'<dd class="note">{note}</dd></div>'
        for name, value, unit, note in tiles
    )
    return f'<dl class="tiles">{cells}</dl>\n'


def _run_name(store: Store) -> str:
    return PurePosixPath(store.root.rstrip("/")).name or store.root


def _source(config: Config) -> str:
    if config.source.kind == "simulate":
        return f"simulated, {config.simulate.region}"
    if config.source.kind == "dataframe":
        return "a streaming DataFrame"
    if config.source.kind == "kafka":
        return f"Kafka: {', '.join(config.source.topics)}"
    return f"files in {PurePosixPath(config.source.path).name or config.source.path}"
