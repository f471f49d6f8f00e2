// Subscriptions: a shape drawn on the map (or typed in) becomes a standing query; its matches appear
// beside it and on the map as they are committed.

import { ask, listen } from "./net.js";
import { byId, el, fill, refill } from "./dom.js";
import { count, plural } from "./words.js";

const SHOWN = 30, GLOW_MILLISECONDS = 900;

export class Subscriptions {
  // `input` are the map's controls.
  constructor(map, input) {
    this.map = map;
    this.input = input;
    this.known = new Map(); // id: {shape, state, matches, recent, glow}
    this.source = null;
    this.build();
  }

  build() {
    const lonlat = this.map.space.lonlat;
    this.rectangle = el("button", { type: "button", text: "Draw a rectangle", "aria-pressed": "false",
      onclick: () => this.draw("rectangle") });
    this.circle = el("button", { type: "button", text: "Draw a circle", "aria-pressed": "false", hidden: !lonlat,
      onclick: () => this.draw("circle") });
    this.form = el("form", { class: "fields", hidden: true, onsubmit: (event) => this.subscribe(event) },
      el("label", { class: "wide" }, "Shape", el("input", { name: "shape", required: true, spellcheck: "false" })),
      el("label", {}, "Name", el("input", { name: "id", required: true, maxlength: 64, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*" })),
      el("label", {}, "Only where", el("input", { name: "where", placeholder: "speed < 10", spellcheck: "false" })),
      el("div", { class: "row wide" }, el("button", { class: "main", text: "Subscribe" }),
        el("button", { type: "button", text: "Cancel", onclick: () => this.cancel() })));
    this.problem = el("p", { class: "problem", role: "alert" });
    this.list = el("div");
    fill(byId("panel-subscribe"),
      el("p", { class: "lead", text: "Draw where to be told of events, or take what the map shows." }),
      el("div", { class: "row" }, this.rectangle, this.circle,
        el("button", { type: "button", text: "What the map shows", onclick: () => this.drawn(this.view()) })),
      this.form, this.problem, this.list);
    this.input.state.changed = (kind) => {
      this.rectangle.setAttribute("aria-pressed", String(kind === "rectangle"));
      this.circle.setAttribute("aria-pressed", String(kind === "circle"));
    };
  }

  draw(kind) {
    this.input.draw(this.input.state.drawing === kind ? null : kind);
    this.map.canvas.focus();
  }

  view() {
    const [west, south, east, north] = this.map.camera.seen().map((v) => Math.round(v * 1e4) / 1e4);
    return { type: "rectangle", west, south, east, north };
  }

  drawn(shape) {
    this.problem.textContent = "";
    this.map.draft = shape;
    this.map.draw();
    this.form.hidden = false;
    this.form.elements.shape.value = JSON.stringify(shape);
    this.form.elements.id.value = `area-${Date.now().toString(36)}`;
    this.form.elements.id.focus();
    this.form.elements.id.select();
  }

  cancel() {
    this.form.hidden = true;
    this.map.draft = null;
    this.map.draw();
  }

  async subscribe(event) {
    event.preventDefault();
    const { shape, id, where } = this.form.elements;
    try {
      const asked = { id: id.value, shape: JSON.parse(shape.value) };
      if (where.value.trim()) asked.where = where.value.trim();
      await ask("/v1/subscriptions", { json: asked });
      this.cancel();
      await this.refresh();
    } catch (problem) {
      this.problem.textContent = problem instanceof SyntaxError ? "The shape is no JSON." : problem.message;
    }
  }

  async end(id) {
    try {
      await ask(`/v1/subscriptions/${encodeURIComponent(id)}`, { method: "DELETE" });
      await this.refresh();
    } catch (problem) {
      this.problem.textContent = problem.message;
    }
  }

  async refresh() {
    this.source ??= listen("/v1/matches", { matches: (told) => this.hear(told) });
    let items;
    try {
      ({ subscriptions: items } = await ask("/v1/subscriptions"));
    } catch (problem) {
      this.problem.textContent = problem.message;
      return;
    }
    const before = this.known;
    this.known = new Map(items.map((one) => [one.id,
      { matches: 0, recent: [], ...before.get(one.id), shape: one.shape, state: one.state, reason: one.reason }]));
    this.show();
  }

  hear({ epoch, matches }) {
    const now = performance.now();
    for (const match of matches) {
      const one = this.known.get(match.subscription);
      if (!one) continue;
      one.matches += 1;
      one.recent.unshift({ epoch, event: match.event });
      one.recent.length = Math.min(one.recent.length, SHOWN);
      one.glow = now + GLOW_MILLISECONDS;
    }
    if (this.waiting) return;
    this.waiting = setTimeout(() => { this.waiting = null; this.show(); }, 200);
  }

  show() {
    this.map.shapes = [...this.known].filter(([, one]) => one.shape).map(([id, one]) => ({
      shape: one.shape, words: one.matches ? `${id}: ${plural(one.matches, "match").replace("matchs", "matches")}` : id,
      glow: one.glow,
    }));
    this.map.draw();
    const open = new Set([...this.list.querySelectorAll("details[open]")].map((d) => d.dataset.id));
    refill(this.list, this.known.size ? null : el("p", { class: "none", text: "No subscriptions yet." }),
      [...this.known].map(([id, one]) => el("div", { class: "entry" },
        el("div", { class: "head" }, el("b", { text: id }),
          el("span", { class: "none", text: one.reason ? `${one.state}: ${one.reason}` : one.state ?? "" }),
          el("button", { type: "button", text: "End", "aria-label": `End ${id}`, onclick: () => this.end(id) })),
        el("div", { text: one.matches ? `${count(one.matches)} matches since this page was opened` : "no matches yet" }),
        one.recent.length
          ? el("details", { "data-id": id, open: open.has(id) }, el("summary", { text: "the newest" }),
            el("ul", { class: "matches" }, one.recent.map((m) => el("li", { text: `event ${m.event}, epoch ${count(m.epoch)}` }))))
          : null)));
  }
}
