// The sketch explorer: pick a region, a time and a feature; see its distribution, how it went over
// time, and how it goes together with another one. Each number comes with its error.

import { lineChart } from "./chart.js";
import { byId, el, fill } from "./dom.js";
import { ask } from "./net.js";
import { count, degrees, short } from "./words.js";

const POINTS = 64, PATIENCE = 8;

export class Explorer {
  constructor(sketch, map, input) {
    Object.assign(this, { sketch, map, input, region: null, asked: 0 });
    this.build();
  }

  build() {
    const features = (name, first) => el("select", { name }, this.sketch.features.map((feature, i) =>
      el("option", { value: feature, text: feature, selected: i === first })));
    const again = () => this.ask();
    this.where = el("span", { class: "none", text: "everywhere" });
    this.rectangle = el("button", { type: "button", text: "Draw a region", "aria-pressed": "false", onclick: () => {
      this.input.draw(this.input.state.drawing ? null : "rectangle");
      this.map.canvas.focus();
    } });
    this.form = el("form", { class: "fields", onchange: again, onsubmit: (event) => { event.preventDefault(); again(); } },
      el("label", {}, "Feature", features("feature", 0)),
      el("label", {}, "beside", features("other", Math.min(1, this.sketch.features.length - 1))),
      el("label", {}, "From", el("input", { name: "from", type: "datetime-local" })),
      el("label", {}, "to", el("input", { name: "to", type: "datetime-local" })),
      el("label", {}, "Steps of time", el("select", { name: "by" }, ["hour", "day", "week", "month"].map((by, i) =>
        el("option", { value: by, text: by, selected: i === 0 })))));
    this.problem = el("p", { class: "problem", role: "alert" });
    this.summary = el("table");
    this.distribution = el("canvas", { role: "img", "aria-label": "Distribution" });
    this.series = el("canvas", { role: "img", "aria-label": "Time series" });
    this.correlation = el("p", {});
    this.notes = el("p", { class: "lead" });
    fill(byId("panel-sketch"),
      el("div", { class: "row" }, this.rectangle,
        el("button", { type: "button", text: "What the map shows", onclick: () => this.drawn(this.view()) }),
        el("button", { type: "button", text: "Everywhere", onclick: () => this.drawn(null) })),
      el("p", { class: "lead" }, "Region: ", this.where), this.form, this.problem, this.summary,
      el("h3", { text: "Distribution" }), this.distribution,
      el("h3", { text: "Over time: mean, least and largest" }), this.series,
      el("h3", { text: "Together" }), this.correlation, this.notes);
    this.input.state.changed = (kind) => this.rectangle.setAttribute("aria-pressed", String(kind !== null));
  }

  view() {
    const [west, south, east, north] = this.map.camera.seen();
    return { type: "rectangle", west, south, east, north };
  }

  drawn(shape) {
    this.region = shape;
    this.map.shapes = shape ? [{ shape, words: "" }] : [];
    this.map.draw();
    this.where.textContent = shape
      ? `${degrees(shape.west, "WE")} to ${degrees(shape.east, "WE")}, ${degrees(shape.south, "SN")} to ${degrees(shape.north, "SN")}`
      : "everywhere";
    this.ask();
  }

  scope() {
    const { from, to } = this.form.elements, parts = [];
    if (this.region) {
      const { west, south, east, north } = this.region;
      parts.push(`region IN bbox(${[west, south, east, north].map((v) => v.toFixed(5)).join(", ")})`);
    }
    if (from.value) parts.push(`time >= '${from.value}'`);
    if (to.value) parts.push(`time < '${to.value}'`);
    return parts.length ? ` WHERE ${parts.join(" AND ")}` : "";
  }

  draw() {
    if (!this.answers) return this.ask();
    this.show();
  }

  async ask() {
    const number = ++this.asked, { feature, other, by } = this.form.elements;
    const a = quoted(feature.value), b = quoted(other.value), scope = this.scope();
    this.problem.textContent = "";
    byId("panel-sketch").setAttribute("aria-busy", "true");
    try {
      const asked = [
        `SELECT count(*) AS n, mean(${a}) AS mean, stddev(${a}) AS sd, min(${a}) AS low, max(${a}) AS high, density(${a}, ${POINTS}) AS d${scope}`,
        `SELECT ${by.value}, mean(${a}) AS mean, min(${a}) AS low, max(${a}) AS high${scope} GROUP BY ${by.value} ORDER BY ${by.value}`,
        ...(a === b ? [] : [`SELECT corr(${a}, ${b}) AS r, regress(${a}, ${b}) AS line${scope}`]),
      ];
      const answers = [];
      for (const sql of asked) {
        answers.push(await answered(sql));
        if (number !== this.asked) return;
      }
      this.answers = { answers, feature: feature.value, other: other.value, by: by.value };
      this.show();
    } catch (problem) {
      if (number === this.asked) this.problem.textContent = problem.message;
    } finally {
      if (number === this.asked) byId("panel-sketch").setAttribute("aria-busy", "false");
    }
  }

  show() {
    const { answers: [whole, series, pair], feature, other, by } = this.answers;
    const all = whole.rows[0] ?? {};
    fill(this.summary, el("tbody", {}, [["observations", "n"], ["mean", "mean"], ["standard deviation", "sd"], ["least", "low"], ["largest", "high"]]
      .map(([name, key]) => el("tr", {}, el("td", { text: name }), el("td", { text: told(all, key) })))));
    const at = all.d_at ?? [];
    lineChart(this.distribution, {
      x: at, format: short, labels: at.length ? [short(at[0]), short(at.at(-1))] : ["", ""],
      lines: [{ values: all.d_high ?? [], soft: true }, { values: all.d_low ?? [], soft: true }, { values: all.d ?? [], filled: true }],
    });
    const rows = series.rows, day = (row) => String(row[by]).slice(0, by === "hour" ? 13 : 10).replace("T", " ");
    lineChart(this.series, {
      x: rows.map((row) => Date.parse(row[by])), format: short, low: null,
      labels: rows.length ? [day(rows[0]), day(rows.at(-1))] : ["", ""],
      lines: [{ values: rows.map((r) => r.high), colour: "warm", soft: true },
        { values: rows.map((r) => r.low), colour: "warm", soft: true }, { values: rows.map((r) => r.mean) }],
    });
    const line = pair?.rows[0];
    this.correlation.textContent = line
      ? `Correlation of ${feature} and ${other}: ${told(line, "r")}. ${feature} = ${told(line, "line_slope")} × ${other} + ${told(line, "line_intercept")}, which explains ${percent(line.line_r2)} of its variance.`
      : "Pick two different features.";
    this.notes.textContent = [whole, series, pair].flatMap((answer) => answer?.notes ?? []).join(" ");
  }
}

// The server answers a few questions at a time; one that is told to come back does, for a while.
async function answered(sql) {
  for (let left = PATIENCE; ; left--) {
    try {
      return await ask("/v1/sketch/query", { json: { sql } });
    } catch (problem) {
      if (problem.status !== 503 || !left) throw problem;
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
  }
}

const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(100 * share)}%`);

// A number with its error, as many digits as mean anything.
function told(row, key) {
  const value = row[key], error = row[`${key}_error`];
  if (value === null || value === undefined) return "–";
  if (key === "n") return error > 0.5 ? `${count(value)} ± ${count(error)}` : count(value);
  const digits = error > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(error)), 0), 8) : 4;
  const text = Number(value.toFixed(digits));
  return error > 0 ? `${text} ± ${Number(error.toPrecision(2))}` : String(text);
}
