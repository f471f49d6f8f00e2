// The decision log in words, newest first.

import { byId, el, fill } from "./dom.js";
import { view } from "./net.js";
import { clock, count } from "./words.js";

let asked = 0;

export async function drawDecisions(story) {
  const number = ++asked;
  const upto = story.live ? undefined : story.epoch;
  const { decisions } = await view("decisions", { operator: story.operator, upto, most: 60 });
  if (number !== asked) return;
  const list = byId("decisions");
  if (!decisions.length) return fill(list, el("li", { class: "none", text: "Nothing has been decided yet." }));
  // What is there already is left alone, so that only what is new is read out.
  const known = new Map([...list.children].map((item) => [item.dataset.key, item]));
  fill(list, decisions.map((one) => known.get(keyOf(one)) ?? entry(one, story)));
}

const keyOf = (one) => `${one.epoch}/${one.changes.length}`;

function entry(one, story) {
  const where = [`epoch ${count(one.epoch)}`, clock(one.at)];
  if (one.next_plan !== one.plan) where.push(`plan ${one.plan} → ${one.next_plan}`);
  const item = el("li", { class: one.changes.length ? "" : "quiet", "data-key": keyOf(one) },
    el("div", { class: "meta" }, `${where.join(" · ")} `,
      el("button", { type: "button", class: "link", text: "look", "aria-label": `Look at epoch ${one.epoch + 1}`,
        onclick: () => story.go(one.epoch + 1) })),
    one.reason ? el("div", { text: one.reason }) : null,
    one.round ? el("div", { class: "meta", text: one.round }) : null);
  if (one.changes.length) {
    const lines = one.changes.map((words) => el("li", { text: words }));
    if (lines.length <= 4) item.append(el("ul", {}, lines));
    else item.append(el("details", {}, el("summary", { text: `${lines.length} changes` }), el("ul", {}, lines)));
  }
  return item;
}
