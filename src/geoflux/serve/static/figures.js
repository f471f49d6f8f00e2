// The figures and charts of a story: throughput, latency, load per slot, at the moment looked at.

import { lineChart, slotBars } from "./chart.js";
import { byId, el, fill, table } from "./dom.js";
import { swatch } from "./colours.js";
import { unevenness } from "./story.js";
import { count, duration, short, time } from "./words.js";

export function drawTiles(story, rates) {
  const row = story.row;
  if (!row) return;
  const rate = rates[row.epoch - story.rows[0].epoch], uneven = unevenness(row.busy);
  const tiles = [
    ["Events", short(rate), "/s"],
    ["Latency p50 / p99", `${duration(row.p50)}`, ` / ${duration(row.p99)}`],
    ["Busiest slot", uneven === null ? "–" : uneven.toFixed(2), "× mean"],
    [row.queries === null || row.queries === undefined ? "Results" : "Matches", short(row.results), "in the epoch"],
    row.queries === null || row.queries === undefined
      ? ["Rows", short(row.processed), "in the epoch"]
      : ["Standing queries", short(row.queries), row.blocked ? `${count(row.blocked)} blocked` : ""],
  ];
  fill(byId("tiles"), tiles.map(([name, value, unit]) =>
    el("div", {}, el("dt", { text: name }), el("dd", {}, `${value} `, el("small", { text: unit })))));
}

export function drawCharts(story, rates) {
  const rows = story.rows;
  if (!rows.length) return;
  const x = rows.map((row) => row.epoch), labels = [`epoch ${count(x[0])}`, count(x.at(-1))];
  const cursor = story.live ? null : story.epoch, ticks = rows.filter((row) => row.changes).map((row) => row.epoch);
  lineChart(byId("throughput"), { x, labels, cursor, ticks, format: short, lines: [{ values: rates, filled: true }] });
  byId("throughput-words").textContent = "events a second";
  const p99 = rows.map((row) => row.p99);
  lineChart(byId("latency"), {
    x, labels, cursor, ticks, format: time, top: cut(p99),
    lines: [{ values: p99, colour: "warm" }, { values: rows.map((row) => row.p50) }],
  });
  byId("latency-words").textContent = "to commit; p99 in orange";
  const row = story.row;
  slotBars(byId("load"), row.busy, time);
  byId("load-words").textContent = "busy seconds, mean dashed";
  const at = `in epoch ${count(row.epoch)}`, rate = rates[row.epoch - rows[0].epoch];
  say("throughput", `Throughput: ${short(rate)} events a second ${at}, ${short(Math.max(...rates))} at most`);
  say("latency", `Latency: ${duration(row.p50)} in the median, ${duration(row.p99)} for the slowest hundredth ${at}`);
  say("load", `Load ${at}: ${row.busy.map((busy, slot) => `slot ${slot} ${duration(busy)}`).join(", ")}`);
}

// What a picture shows, for whoever does not see it.
function say(id, words) {
  byId(id).setAttribute("role", "img");
  byId(id).setAttribute("aria-label", words);
}

// A first epoch that compiles everything would press all others flat.
function cut(values) {
  const known = values.filter((v) => v !== null).sort((a, b) => a - b);
  if (known.length < 8) return null;
  return Math.min(known.at(-1), 2.5 * known[Math.floor(known.length * 0.9)]);
}

export function drawSlots(plan) {
  const rows = plan.slot_table.map((s) => [
    el("span", {}, swatch(s.slot), String(s.slot)), count(s.partitions), short(s.events), short(s.checks),
    s.queries === null ? "–" : short(s.queries), duration(s.busy_seconds),
  ]);
  table(byId("slots"), ["slot", "partitions", "events", "checks", "queries", "busy"], rows);
}

export function drawOperators(run, latest) {
  const many = run.operators.length > 1;
  byId("operators").hidden = byId("operators-title").hidden = !many;
  if (!many) return;
  const rows = run.operators.map((o) => {
    const row = latest.get(o.name);
    return [o.name, o.kind, count(row?.epoch ?? o.last), short(row?.processed ?? o.processed), short(row?.results ?? o.results)];
  });
  table(byId("operators"), ["operator", "kind", "epoch", "rows", "results"], rows);
}

export function tip(plan, place) {
  if (place === null || !plan) return "";
  const share = plan.top > 0 ? Math.round((100 * plan.cost[place]) / plan.top) : 0;
  const parts = [`partition ${plan.id[place]}`, `slot ${plan.slot[place]}`];
  if (plan.events[place] !== null) parts.push(`${short(plan.events[place])} events`);
  if (plan.checks[place] !== null) parts.push(`${short(plan.checks[place])} checks (${share}% of the costliest)`);
  return parts.join(", ");
}
