// Elements from plain values. Whatever came from a user goes in as text, never as markup: there is
// no way in here to set HTML.

export const byId = (id) => document.getElementById(id);

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// The same for what is made anew while somebody is in it: the focus stays on what has the same name.
export function refill(node, ...children) {
  const held = node.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  fill(node, ...children);
  if (held !== null) [...node.querySelectorAll("[aria-label]")].find((e) => e.getAttribute("aria-label") === held)?.focus();
  return node;
}

export function table(node, head, rows) {
  return fill(
    node,
    el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col", text: name })))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell))))),
  );
}
