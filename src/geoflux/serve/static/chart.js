// Small charts on canvases: lines over epochs or values, and bars. Each is drawn anew from plain
// values; there is nothing to keep in step.

import { slotColour, slotPattern, theme } from "./colours.js";

const LEFT = 46, RIGHT = 8, TOP = 8, BOTTOM = 18;

function begin(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const c = canvas.getContext("2d");
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = "11px system-ui, sans-serif";
  c.lineJoin = "round";
  return { c, width, height };
}

// A round number that is at least `value`, and the step of its ticks.
export function nice(value, parts = 3) {
  if (!(value > 0)) return { top: 1, step: 1 };
  const rough = value / parts, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * size).find((s) => s >= rough);
  return { top: Math.ceil(value / step - 1e-9) * step, step };
}

function frame({ c, width, height }, low, high, step, format) {
  const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - (value - low) / (high - low || 1));
  c.strokeStyle = theme().line;
  c.fillStyle = theme().muted;
  c.lineWidth = 1;
  c.textAlign = "right";
  c.textBaseline = "middle";
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) {
    c.beginPath();
    c.moveTo(LEFT, Math.round(y(at)) + 0.5);
    c.lineTo(width - RIGHT, Math.round(y(at)) + 0.5);
    c.stroke();
    c.fillText(format(at), LEFT - 5, y(at));
  }
  return y;
}

function ends({ c, width, height }, first, last) {
  c.fillStyle = theme().muted;
  c.textBaseline = "bottom";
  c.textAlign = "left";
  c.fillText(first, LEFT, height - 2);
  c.textAlign = "right";
  c.fillText(last, width - RIGHT, height - 2);
}

// `lines` are {values, colour, soft, band}; missing values are null. `low` is 0 unless given.
export function lineChart(canvas, { x, lines, format, labels, cursor = null, ticks = [], low = 0, top = null }) {
  const area = begin(canvas), { c, width, height } = area;
  const all = lines.flatMap((line) => line.values).filter((v) => v !== null && isFinite(v));
  if (!all.length || !x.length) return empty(area);
  let bottom = low, high = top ?? Math.max(...all), step;
  if (low === null) {
    bottom = Math.min(...all);
    if (bottom === high) [bottom, high] = [bottom - 1, high + 1];
    step = nice(high - bottom).step;
  } else {
    const found = nice(high);
    high = found.top;
    step = found.step;
  }
  const y = frame(area, bottom, high, step, format);
  const from = x[0], to = x.at(-1);
  const px = (value) => LEFT + (width - LEFT - RIGHT) * (to > from ? (value - from) / (to - from) : 0.5);
  c.fillStyle = theme().warm;
  for (const tick of ticks) if (tick >= from && tick <= to) c.fillRect(px(tick) - 0.5, height - BOTTOM, 1.5, 5);
  c.save();
  c.beginPath();
  c.rect(LEFT, TOP - 2, width - LEFT - RIGHT + 2, height - TOP - BOTTOM + 4);
  c.clip();
  for (const line of lines) {
    c.strokeStyle = theme()[line.colour ?? "accent"];
    c.globalAlpha = line.soft ? 0.45 : 1;
    c.lineWidth = line.soft ? 1 : 1.6;
    c.beginPath();
    let pen = false;
    line.values.forEach((value, i) => {
      if (value === null || !isFinite(value)) { pen = false; return; }
      if (pen) c.lineTo(px(x[i]), y(value));
      else c.moveTo(px(x[i]), y(value));
      pen = true;
      if (x.length === 1) c.arc(px(x[i]), y(value), 2.5, 0, 7);
    });
    c.stroke();
    if (line.filled) {
      c.lineTo(px(to), y(bottom));
      c.lineTo(px(from), y(bottom));
      c.globalAlpha = 0.12;
      c.fillStyle = c.strokeStyle;
      c.fill();
    }
  }
  c.restore();
  if (cursor !== null && cursor >= from && cursor <= to) {
    c.strokeStyle = theme().ink;
    c.beginPath();
    c.moveTo(Math.round(px(cursor)) + 0.5, TOP);
    c.lineTo(Math.round(px(cursor)) + 0.5, height - BOTTOM);
    c.stroke();
  }
  ends(area, labels[0], labels[1]);
}

// One bar per slot in its colour and texture, and their mean as a line.
export function slotBars(canvas, values, format) {
  const area = begin(canvas), { c, width, height } = area;
  const known = values.filter((v) => v !== null);
  if (!known.length) return empty(area);
  const { top, step } = nice(Math.max(...known));
  const y = frame(area, 0, top, step, format);
  const wide = (width - LEFT - RIGHT) / values.length, gap = Math.min(wide * 0.2, 4);
  c.textAlign = "center";
  values.forEach((value, slot) => {
    const x = LEFT + slot * wide + gap / 2, high = height - BOTTOM - y(value ?? 0);
    c.fillStyle = slotColour(slot);
    c.fillRect(x, y(value ?? 0), wide - gap, high);
    const pattern = slotPattern(c, slot);
    if (pattern) { c.fillStyle = pattern; c.fillRect(x, y(value ?? 0), wide - gap, high); }
    if (wide >= 14 || slot % 4 === 0) {
      c.fillStyle = theme().muted;
      c.textBaseline = "bottom";
      c.fillText(String(slot), x + (wide - gap) / 2, height - 2);
    }
  });
  const mean = known.reduce((a, b) => a + b, 0) / values.length;
  c.strokeStyle = theme().ink;
  c.setLineDash([4, 3]);
  c.beginPath();
  c.moveTo(LEFT, y(mean));
  c.lineTo(width - RIGHT, y(mean));
  c.stroke();
  c.setLineDash([]);
}

function empty({ c, width, height }) {
  c.fillStyle = theme().muted;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText("nothing yet", width / 2, height / 2);
}
