"""The report of an operator's run: the same page as for standing queries, about rows and states.

Everything in it comes from the run's directory, so it can be written again at any time.
"""

from __future__ import annotations

from geoflux.chronicle.epoch_series import EpochSeries, Manifest
from geoflux.chronicle.plan_history import layouts
from geoflux.chronicle.wording import count, duration, plural, short, size
from geoflux.cli import plots_memory, report_cards, report_tables
from geoflux.cli.operator_memory import Memory
from geoflux.cli.report_cards import card, entry, key, lead
from geoflux.cli.report_decisions import decisions_card
from geoflux.cli.report_page import Headline, header, outcome_of, tile_row, write_page
from geoflux.cli.report_tables import row, table
from geoflux.config import Config
from geoflux.keyed_api import OperatorSummary
from geoflux.state.epoch_log import EpochLog
from geoflux.state.store import Store


def write_operator_report(
    config: Config, store: Store, summary: OperatorSummary, operator: str
) -> str:
    """Write ``report.html`` into the run's directory; returns its path."""
    manifests = list(EpochLog(store).manifests())
    about = [operator, f"policy {config.flux.policy}", plural(summary.slots, "slot"),
             plural(summary.epochs, "epoch")]  # fmt: skip
    line = Headline(verdict(summary), summary, about)
    body = header(config, store, manifests, line) + _tiles(summary)
    cards = []
    if manifests:
        series = EpochSeries.of(manifests)
        changes = [layout.first_epoch for layout in layouts(manifests)[1:]]
        rate = summary.processed / max(float(series.at_work_seconds.sum()), 1e-9)
        cards = [
            report_cards.throughput_card(series, rate, "Rows"),
            report_cards.latency_card(series, "results"),
            report_cards.load_over_time_card(series, summary, changes),
            report_cards.balance_card(series, summary, changes),
            _states_card(series, summary),
            _waiting_card(series, summary),
            report_cards.load_card(series, summary),
            report_cards.stages_card(series),
            card("Slots at the end", _slots(manifests[-1]), wide=True),
        ]
    cards += [
        card("Every row accounted for", report_tables.conservation(summary)),
        card("Quarantine", report_tables.reasons(manifests)),
        decisions_card(manifests),
        card("Settings that differ from the defaults", report_tables.settings(config), wide=True),
    ]
    return write_page(store, body, cards)


def verdict(summary: OperatorSummary) -> str:
    """The run in one line."""
    if summary.epochs == 0:
        return "No epoch has been committed yet"
    rows, time = plural(summary.received, "row"), duration(summary.seconds)
    moved = f", {plural(summary.moves, 'partition')} moved" if summary.moves else ""
    return f"{rows} in {time}{moved}; {outcome_of(summary, 'row')}"


def _tiles(summary: OperatorSummary) -> str:
    ratio = summary.busiest_over_mean
    return tile_row(
        (
            ("Throughput", short(summary.rows_per_second), "rows/s", "over the whole run"),
            ("Results", short(summary.results), "", ""),
            ("Moves", count(summary.moves), "", "of partitions"),
            ("Busiest slot", "&ndash;" if ratio is None else f"{ratio:.2f}",
             "" if ratio is None else "&times; mean", f"of {plural(summary.slots, 'slot')}"),
            ("On disk at the end", count(summary.spilled), "",
             f"most at once: {plural(summary.most_spilled, 'partition')}"),
            ("Waiting at the end", count(summary.carried_out), "rows",
             f"{count(summary.spooled)} for partitions on disk"),
        )
    )  # fmt: skip


def _states_card(series: EpochSeries, summary: OperatorSummary) -> str:
    caption = "Bytes of all states at the end of an epoch."
    if not summary.most_spilled:
        caption += " All partitions had room in memory."
    entries = [entry("accent", "in memory"), entry("warm", "on disk, in turn")]
    return card("States", lead(caption) + key(entries) + plots_memory.states(series))


def _waiting_card(series: EpochSeries, summary: OperatorSummary) -> str:
    if not any(m["carried_out"] for group in series.groups for m in group):
        return card("Rows that waited", lead("No row waited for a later epoch."))
    caption = "Rows that a slot did not get to in an epoch; they are first in the next one."
    entries = [
        entry("accent2", "out of time"), entry("warm", "for a partition on disk"),
    ]  # fmt: skip
    body = lead(caption) + key(entries) + plots_memory.waiting(series)
    return card("Rows that waited", body)


def _slots(last: Manifest) -> str:
    rows = [
        row(
            str(s.slot), *(
                f'<td class="number">{told}</td>'
                for told in (
                    count(s.partitions), count(s.rows), duration(s.busy_seconds),
                    size(s.resident_bytes), count(s.spilled), size(s.spilled_bytes),
                    count(s.carried_rows), count(s.spooled_rows),
                )
            ),
        )
        for s in Memory.of(last).slots
    ]  # fmt: skip
    head = (
        "slot", "#partitions", "#rows in the last epoch", "#busy", "#in memory",
        "#partitions on disk", "#on disk", "#rows waiting", "#of them for the disk",
    )  # fmt: skip
    return table(head, rows)
