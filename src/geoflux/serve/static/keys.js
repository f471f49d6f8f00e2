// Keys for the whole page, and the list of them.

import { byId, el, fill } from "./dom.js";

const ON_MAP = [
  ["← → ↑ ↓", "move the map (when it has the focus)"], ["+ − 0", "zoom in, out, show all"],
  ["N P", "next and previous partition"],
];

// `actions` are [key, words, what to do].
export function keys(actions) {
  const help = byId("help");
  const all = [...actions, ["?", "this list", () => help.showModal()]];
  fill(byId("keys"), [...all.map(([key, words]) => [key === " " ? "space" : key, words]), ...ON_MAP].flatMap(
    ([key, words]) => [el("dt", {}, el("kbd", { text: key })), el("dd", { text: words })]));
  byId("help-open").onclick = () => help.showModal();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.matches("input:not([type=range]), select, textarea")) return;
    const found = all.find(([key]) => key.toLowerCase() === event.key.toLowerCase());
    if (!found || (event.key === " " && event.target.matches("button, summary"))) return;
    event.preventDefault();
    found[2]();
  });
}
