"""The report of an application: a page about all of it, which leads to one for each operator.

Everything in it comes from the application's directory, so it can be written again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from geoflux.chronicle.epoch_series import EpochSeries, Manifest
from geoflux.chronicle.scaling_words import told_scaling
from geoflux.chronicle.wording import count, duration, plural, short
from geoflux.cli import plots
from geoflux.cli.operator_report import write_operator_report
from geoflux.cli.report import write_report
from geoflux.cli.report_cards import card, entry, key, lead
from geoflux.cli.report_page import tile_row, write_page
from geoflux.cli.report_tables import row, table
from geoflux.cli.topology_display import reads_of
from geoflux.config import Config
from geoflux.engine.summary import Summary, latencies
from geoflux.keyed_api import OperatorSummary
from geoflux.scale.scaler import ScaleRecord
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import store_of
from geoflux.state.store import Store
from geoflux.topology import Topology
from geoflux.topology.nodes import Stream

Told = Mapping[str, Mapping[str, Any]]


def write_topology_report(
    topology: Topology, configs: Mapping[str, Config], out: Path, operators: Told
) -> str:
    """Write ``report.html`` for every operator and for the application; returns the latter's
    path. ``operators`` are the summaries by name."""
    manifests = {}
    for node in topology.nodes:
        name, store = node.name, store_of(out / node.name)
        told: Any = dict(operators[name])
        if node.kind == "queries":
            write_report(configs[name], store, Summary(**told))
        else:
            write_operator_report(configs[name], store, OperatorSummary(**told), name)
        manifests[name] = list(EpochLog(store).manifests())
    cards = [
        card("Operators", _operators(topology, operators, manifests), wide=True),
        card("Streams", _streams(topology, operators, manifests), wide=True),
    ]
    decisions = ScaleRecord(Store(str(out))).decisions()
    if decisions:
        cards.append(card("Slots that follow the load", scaling_table(decisions), wide=True))
    for name, some in manifests.items():
        if any(m["processed"] for m in some):
            cards.append(_flow(name, EpochSeries.of(some), operators[name]))
    return write_page(Store(str(out)), _head(topology, operators) + _tiles(operators), cards)


def _head(topology: Topology, operators: Told) -> str:
    lost = sum(
        t["received"] - t["processed"] - t["quarantined"] - t["carried_out"]
        for t in operators.values()
    )
    kind, word = ("bad", "does not add up") if lost else ("good", "adds up")
    outer = sum(operators[n.name]["received"] for n in topology.nodes if n.is_outer)
    took = max(t["seconds"] for t in operators.values())
    line = f"{plural(outer, 'row')} from outside through {plural(len(operators), 'operator')}"
    return (
        '<header><div class="kind">geoflux application</div>'
        f"<h1>{escape(line)} in {duration(took)}</h1>"
        f'<p class="about"><span class="verdict {kind}">{word}</span>'
        f"{escape(', '.join(operators))}</p></header>\n"
    )


def _tiles(operators: Told) -> str:
    tiles = []
    for name, told in operators.items():
        rate = told["processed"] / told["seconds"] if told["seconds"] else 0.0
        note = f"{short(_results(told))} results, {plural(told['slots'], 'slot')}"
        tiles.append((escape(name), short(rate), "rows/s", note))
    return tile_row(tiles)


def _results(told: Mapping[str, Any]) -> int:
    return int(told.get("results", told.get("matches", 0) + told.get("aggregates", 0)))


def _operators(topology: Topology, operators: Told, manifests: Mapping[str, list[Manifest]]) -> str:
    rows = []
    for node in topology.nodes:
        told = operators[node.name]
        p50, p99 = latencies(manifests[node.name])
        latency = "&ndash;" if p50 is None or p99 is None else f"{duration(p50)} / {duration(p99)}"
        name = escape(node.name)
        numbers = (
            count(told["epochs"]), count(told["received"]), count(told["processed"]),
            count(told["quarantined"]), count(told["carried_out"]), count(_results(told)), latency,
            count(told["slots"]),
        )  # fmt: skip
        rows.append(
            "<tr>"
            f'<td><a href="{name}/report.html">{name}</a></td><td>{escape(node.kind)}</td>'
            f"<td>{escape(', '.join(reads_of(topology, node)))}</td>"
            + "".join(f'<td class="number">{number}</td>' for number in numbers)
            + "</tr>"
        )
    head = (
        "operator", "kind", "reads", "#epochs", "#received", "#processed", "#quarantined",
        "#waiting", "#results", "#latency p50 / p99", "#slots",
    )  # fmt: skip
    note = lead("Each name leads to the operator's own report. Latency is from the moment a row "
                "was there to be read to the commit of its results.")  # fmt: skip
    return note + table(head, rows)


def _streams(topology: Topology, operators: Told, manifests: Mapping[str, list[Manifest]]) -> str:
    rows = []
    for node in topology.nodes:
        for stream in node.work.streams:
            readers = topology.readers(Stream(node.name, stream))
            written = _written(stream, manifests[node.name])
            if written or readers:
                rows.append(
                    row(
                        f"{node.name}.{stream}",
                        f"<td>{escape(', '.join(readers) or 'nobody')}</td>",
                        f'<td class="number">{count(written)}</td>',
                    )
                )  # fmt: skip
    return lead("Rows that were committed, and who reads them.") + table(
        ("stream", "read by", "#rows"), rows
    )


def scaling_table(decisions: list[dict[str, Any]]) -> str:
    """Every change that was made or recommended, with what was known then; and the last look."""
    started = decisions[0]["at"]
    rows = [
        f"<tr><td>{escape(told_scaling(one))}</td>"
        f'<td class="number">{count(one["look"])}</td>'
        f'<td class="number">{duration(one["at"] - started)}</td></tr>'
        for one in decisions
        if one["action"] != "none" or one is decisions[-1]
    ]
    note = lead(
        f"{plural(len(decisions), 'look')} at what an input takes, in all operators together; of "
        "each change what was measured, predicted and done, and the last look."
    )
    return note + table(("what was seen and done", "#look", "#after"), rows)


def _written(stream: str, manifests: list[Manifest]) -> int:
    if manifests and "streams" not in manifests[0]:
        kind = "matches" if stream in ("matches", "counts") else stream
        named = [m for m in manifests if any(f.startswith(f"{stream}/") for f in m["files"])]
        return sum(m[kind] for m in named)
    return sum(rows for m in manifests for _, rows in m["streams"].get(stream, ()))


def _flow(name: str, series: EpochSeries, told: Mapping[str, Any]) -> str:
    """Rows a second of one operator over the run."""
    mean = told["processed"] / told["seconds"] if told["seconds"] else 0.0
    entries = [entry("accent", "each epoch, from its opening to its commit")]
    if plots.paced(series):
        entries.append(entry("warm", "with the waiting between epochs"))
    body = lead("Rows per second.") + key(entries) + plots.throughput(series, mean)
    return card(escape(name), body)
