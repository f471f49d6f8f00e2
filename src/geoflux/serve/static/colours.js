// Colours of slots and of the page. Eight hues that people with any colour vision tell apart, in
// three textures: 24 slots that differ, and a number on the map for whoever sees no colours.

const HUES = ["#3b82b8", "#e0a030", "#2fa37c", "#cf7fae", "#6fc0ea", "#d2643a", "#d9d04c", "#8d93a0"];
export const TEXTURES = ["plain", "stripes", "dots"];

export const slotColour = (slot) => HUES[slot % HUES.length];
export const slotTexture = (slot) => TEXTURES[Math.floor(slot / HUES.length) % TEXTURES.length];

let known = null;

// The page's colours by name, as they are in the present theme.
export function theme() {
  if (known === null) {
    const style = getComputedStyle(document.documentElement);
    known = new Proxy({}, { get: (seen, name) => (seen[name] ??= style.getPropertyValue(`--${name}`).trim()) });
  }
  return known;
}

const patterns = new Map();

export function forgetTheme() {
  known = null;
  patterns.clear();
}

// The texture of a slot as a fill that lies over its colour, or null where it is plain.
export function slotPattern(context, slot) {
  const texture = slotTexture(slot);
  if (texture === "plain") return null;
  if (!patterns.has(texture)) patterns.set(texture, context.createPattern(tile(texture), "repeat"));
  return patterns.get(texture);
}

function tile(texture) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 8;
  const c = canvas.getContext("2d");
  c.strokeStyle = c.fillStyle = theme().hatch;
  if (texture === "stripes") {
    c.lineWidth = 2;
    c.beginPath();
    for (const x of [-4, 4, 12]) { c.moveTo(x - 4, 8); c.lineTo(x + 4, 0); }
    c.stroke();
  } else {
    for (const [x, y] of [[2, 2], [6, 6]]) { c.beginPath(); c.arc(x, y, 1.5, 0, 7); c.fill(); }
  }
  return canvas;
}

// A small canvas in colour and texture of a slot, for tables and keys.
export function swatch(slot) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 14;
  canvas.className = "swatch";
  canvas.setAttribute("aria-hidden", "true");
  const c = canvas.getContext("2d");
  c.fillStyle = slotColour(slot);
  c.fillRect(0, 0, 14, 14);
  const pattern = slotPattern(c, slot);
  if (pattern) { c.fillStyle = pattern; c.fillRect(0, 0, 14, 14); }
  return canvas;
}
