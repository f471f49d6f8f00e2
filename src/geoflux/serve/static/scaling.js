// Scaling: how long an input takes from end to end, as measured and as the model predicted it.

import { lineChart } from "./chart.js";
import { byId, el, fill } from "./dom.js";
import { view } from "./net.js";
import { clock, count, duration, time } from "./words.js";

let told = "";

export async function drawScaling(anew = true) {
  const values = await view("scaling"), node = byId("panel-scaling");
  const now = JSON.stringify(values);
  if (!anew && now === told) return;
  told = now;
  if (!values.at.length) return fill(node, el("p", { class: "none", text: "Nobody has looked yet." }));
  const times = el("canvas", { role: "img", "aria-label": "Time of an input, measured and predicted" });
  const slots = el("canvas", { role: "img", "aria-label": "Slots of all operators together" });
  fill(node,
    el("p", { class: "lead", text: "What an input takes through all operators: measured, and predicted in orange." }),
    times,
    el("p", { class: "lead", text: "Slots of all operators together." }),
    slots,
    el("h3", { text: "What was done, and the last look" }),
    values.told.toReversed().map((one) => el("div", { class: "entry" },
      el("div", { class: "meta", text: `look ${count(one.look)} · ${clock(one.at)}` }), el("div", { text: one.words }))));
  const start = values.at[0], x = values.at.map((at) => at - start), labels = ["0 s", duration(x.at(-1))];
  lineChart(times, {
    x, labels, format: time,
    lines: [{ values: values.predicted, colour: "warm" }, { values: values.measured }],
  });
  lineChart(slots, { x, labels, format: count, lines: [{ values: values.slots, filled: true }] });
}
