"""The report of a run: one HTML file that needs nothing else, for people and for the record.

Everything in it comes from the run's directory, so it can be written again at any time and is the
same each time. Text from outside (paths, reasons, settings) is escaped where it is put in.
"""

from __future__ import annotations

from geoflux.chronicle.epoch_series import EpochSeries, Manifest
from geoflux.chronicle.plan_history import layouts
from geoflux.chronicle.wording import count, duration, plural, short
from geoflux.cli import report_cards, report_tables
from geoflux.cli.report_cards import card
from geoflux.cli.report_decisions import decisions_card
from geoflux.cli.report_guard import guard_card
from geoflux.cli.report_page import Headline, header, outcome_of, tile_row, write_page
from geoflux.cli.report_plan import plan_card
from geoflux.config import Config
from geoflux.engine.summary import Summary
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store


def write_report(config: Config, store: Store, summary: Summary) -> str:
    """Write ``report.html`` into the run's directory; returns its path.

    Copes with a run of any length, also with one that has not committed an epoch yet.
    """
    manifests = list(EpochLog(store).manifests())
    body = _header(config, store, summary, manifests) + _tiles(summary)
    cards = []
    if manifests:
        series = EpochSeries.of(manifests)
        cards = [
            report_cards.throughput_card(series, summary.events_per_second),
            report_cards.latency_card(series),
            report_cards.load_card(series, summary),
            report_cards.stages_card(series),
        ]
        changes = [layout.first_epoch for layout in layouts(manifests)[1:]]
        if changes:
            cards.append(report_cards.load_over_time_card(series, summary, changes))
            cards.append(report_cards.balance_card(series, summary, changes))
    cards += [
        plan_card(config, store, manifests),
        card("Every event accounted for", report_tables.conservation(summary)),
        card("Quarantine", report_tables.reasons(manifests)),
        decisions_card(manifests),
        guard_card(manifests),
        card("Settings that differ from the defaults", report_tables.settings(config), wide=True),
    ]
    return write_page(store, body, cards)


def verdict(summary: Summary, most_queries: int) -> str:
    """The run in one line: how much, against what, how long, and whether anything was lost."""
    if summary.epochs == 0:
        return "No epoch has been committed yet"
    queries = plural(most_queries, "standing query")
    against = queries if most_queries == summary.live_queries else f"up to {queries}"
    outcome = outcome_of(summary, "event")
    events, time = plural(summary.received, "event"), duration(summary.seconds)
    return f"{events} against {against} in {time}; {outcome}"


def _header(config: Config, store: Store, summary: Summary, manifests: list[Manifest]) -> str:
    most = max((m["live_queries"] for m in manifests), default=0)
    about = [f"balance {config.engine.balance}", plural(summary.slots, "slot"),
             plural(summary.epochs, "epoch")]  # fmt: skip
    return header(config, store, manifests, Headline(verdict(summary, most), summary, about))


def _tiles(summary: Summary) -> str:
    """The key figures. What is not known yet is a dash."""
    ratio = summary.busiest_over_mean
    p50, p99 = summary.latency_p50_seconds, summary.latency_p99_seconds
    per_event = f"{summary.matches / summary.processed:.2g}" if summary.processed else "&ndash;"
    tiles = (
        ("Throughput", short(summary.events_per_second), "events/s", "while at work"),
        ("Matches", _figure(summary.matches), "", f"{per_event} per event"),
        ("Standing queries", _figure(summary.live_queries), "",
         f"+{count(summary.registered)}, &minus;{count(summary.ended)}"),
        ("Latency, median", "&ndash;" if p50 is None else duration(p50), "",
         "no events" if p99 is None else f"99 %: {duration(p99)}"),
        ("Busiest slot", "&ndash;" if ratio is None else f"{ratio:.2f}",
         "" if ratio is None else "&times; mean",
         f"of {plural(summary.slots, 'slot')}"),
        ("Checks", short(summary.checks_per_second_core), "/s", "per busy core"),
    )  # fmt: skip
    return tile_row(tiles)


def _figure(number: int) -> str:
    """All digits as long as they fit a tile."""
    return count(number) if number < 100_000 else short(number)
