// Guard: who is blocked and who is suspected, on what evidence, and a button to lift a block.

import { ask, view } from "./net.js";
import { byId, el, refill } from "./dom.js";
import { moment, plural, short } from "./words.js";

export class GuardPanel {
  // `point(places)` shows boxes on the map.
  constructor(operator, point) {
    this.operator = operator;
    this.point = point;
    this.node = byId("panel-guard");
    this.told = "";
  }

  async draw() {
    const values = await view("guard", { operator: this.operator });
    const told = JSON.stringify(values);
    if (told === this.told) return; // whoever reads or has focus in here is not disturbed
    this.told = told;
    const waiting = new Set(values.waiting.filter((order) => order.op === "lift").map((order) => order.user));
    const open = new Set([...this.node.querySelectorAll("details[open]")].map((d) => d.dataset.user));
    refill(this.node,
      el("p", { class: "lead", text: this.verdict(values) }),
      el("p", { class: "problem", role: "alert", id: "guard-problem" }),
      values.blocks.map((block) => this.block(block, waiting.has(block.user), open)),
      values.suspects.length ? el("h3", { text: `Suspected (${values.suspects.length})` }) : null,
      values.suspects.map((one) => this.entry(one, [one.words])),
      values.ended.length ? el("h3", { text: "Not blocked any more" }) : null,
      [...values.ended].reverse().map((block) => this.entry(block, [`${block.ended}; ${block.reason}`])));
  }

  verdict(values) {
    if (!values.enabled) return "Guard is off: nobody is refused.";
    const who = values.blocks.length ? `${plural(values.blocks.length, "user")} blocked` : "Nobody is blocked";
    return `${who} after round ${values.round}${values.observing ? "; observing only, nobody is refused" : ""}.`;
  }

  block(block, leaving, open) {
    const until = block.until === null ? "until it is lifted" : `until ${moment(block.until)}`;
    const lift = el("button", {
      type: "button", text: leaving ? "waits for the next epoch" : "Lift", disabled: leaving,
      "aria-label": `Lift the block of ${block.user}`, onclick: () => this.lift(block.user),
    });
    const lines = [block.reason, `since ${moment(block.since)}, ${until}, by ${block.by}`];
    const node = this.entry(block, lines.filter(Boolean), block.observed ? null : lift);
    const features = Object.entries(block.features);
    if (features.length || block.alike.length) {
      node.append(el("details", { "data-user": block.user, open: open.has(block.user) },
        el("summary", { text: "evidence" }),
        block.words ? el("p", { text: block.words }) : null,
        block.alike.length ? el("p", { text: `found together: ${block.alike.join(", ")}` }) : null,
        el("table", {}, features.map(([name, value]) =>
          el("tr", {}, el("td", { text: name.replaceAll("_", " ") }), el("td", { text: short(value) }))))));
    }
    return node;
  }

  entry(one, lines, button = null) {
    const show = one.places.length
      ? el("button", { type: "button", text: "Show", "aria-label": `Show the hotspots of ${one.user} on the map`,
        onclick: () => this.point(one.places) })
      : null;
    return el("div", { class: "entry" },
      el("div", { class: "head" }, el("b", { text: one.user }), show, button),
      lines.map((line) => el("div", { text: line })));
  }

  async lift(user) {
    try {
      await ask("/v1/blocks/lift", { json: { user } });
      this.told = "";
      await this.draw();
    } catch (problem) {
      byId("guard-problem").textContent = problem.message;
    }
  }
}
