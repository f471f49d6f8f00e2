// Tabs as the ARIA practices have them: one stop in the focus order, arrows between them.

import { byId, el } from "./dom.js";

export function tabs(names, chosen) {
  const list = byId("tabs");
  const buttons = names.map(([id, words]) => el("button", {
    role: "tab", type: "button", id: `tab-${id}`, "aria-controls": `panel-${id}`, text: words,
    onclick: () => choose(id),
  }));
  list.replaceChildren(...buttons);
  list.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = buttons.indexOf(document.activeElement);
    const next = (at + step + buttons.length) % buttons.length;
    choose(names[next][0]);
    buttons[next].focus();
    event.preventDefault();
  };
  let now = null;
  function choose(id) {
    if (!names.some(([name]) => name === id)) return;
    now = id;
    names.forEach(([name], i) => {
      buttons[i].setAttribute("aria-selected", String(name === id));
      buttons[i].tabIndex = name === id ? 0 : -1;
      byId(`panel-${name}`).hidden = name !== id;
    });
    chosen(id);
  }
  choose(names[0][0]);
  return { choose, get now() { return now; } };
}
