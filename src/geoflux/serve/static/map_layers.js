// What lies on the map, layer by layer, each a function of the canvas, the camera and plain values.

import { slotColour, slotPattern, theme } from "./colours.js";

const PALEST = 0.2, STRONGEST = 0.78;
const LABEL_WIDE = 21, LABEL_HIGH = 16;

// Land and borders between countries as paths in world units, from deltas in hundredths of degrees.
export function landPaths(outline, narrow) {
  const lines = (parts, close) => {
    const path = new Path2D();
    for (const part of parts) {
      let x = 0, y = 0;
      for (let i = 0; i < part.length; i += 2) {
        x += part[i];
        y += part[i + 1];
        const at = [x * outline.unit * narrow, -y * outline.unit];
        if (i) path.lineTo(...at);
        else path.moveTo(...at);
      }
      if (close) path.closePath();
    }
    return path;
  };
  return { land: lines(outline.land, true), borders: lines(outline.borders, false) };
}

export function drawLand(c, camera, paths, part, ratio) {
  c.save();
  const s = camera.scale * ratio;
  c.setTransform(s, 0, 0, s, (camera.width / 2) * ratio - camera.x * s, (camera.height / 2) * ratio - camera.y * s);
  c.lineWidth = 1 / camera.scale;
  if (part === "fill") {
    c.fillStyle = theme().land;
    c.fill(paths.land);
  } else {
    c.strokeStyle = theme().border;
    c.stroke(paths.borders);
    c.strokeStyle = theme().coast;
    c.stroke(paths.land);
  }
  c.restore();
}

// The pixels of every partition that can be seen: [place in the plan, x, y, width, height].
export function partitionBoxes(camera, plan) {
  const boxes = [];
  if (!plan?.west) return boxes;
  for (let i = 0; i < plan.id.length; i++) {
    const x = camera.px(plan.west[i]), y = camera.py(plan.north[i]);
    const w = camera.px(plan.east[i]) - x, h = camera.py(plan.south[i]) - y;
    if (x < camera.width && y < camera.height && x + w > 0 && y + h > 0) boxes.push([i, x, y, w, h]);
  }
  return boxes;
}

// Colour says the slot, strength the cost beside the costliest partition.
export function drawPartitions(c, plan, boxes, shaded) {
  for (const [i, x, y, w, h] of boxes) {
    const share = plan.top > 0 ? Math.sqrt(plan.cost[i] / plan.top) : 0;
    c.globalAlpha = shaded ? PALEST + (STRONGEST - PALEST) * share : 0.4;
    c.fillStyle = slotColour(plan.slot[i]);
    c.fillRect(x, y, w, h);
    const pattern = slotPattern(c, plan.slot[i]);
    if (pattern && w > 3 && h > 3) {
      c.globalAlpha = shaded ? 0.35 + 0.5 * share : 0.5;
      c.fillStyle = pattern;
      c.fillRect(x, y, w, h);
    }
  }
  c.globalAlpha = 1;
}

export function drawEdges(c, plan, boxes) {
  c.strokeStyle = theme().edge;
  c.lineWidth = plan.id.length > 150 ? 0.6 : 1;
  c.beginPath();
  for (const [, x, y, w, h] of boxes) c.rect(Math.round(x) + 0.5, Math.round(y) + 0.5, w, h);
  c.stroke();
}

// The number of the slot where there is room for it: in the corner, or where that is outside the
// window (which begins at `inset`) at its edge.
export function drawLabels(c, plan, boxes, inset) {
  c.font = "600 11px system-ui, sans-serif";
  c.textAlign = "left";
  c.textBaseline = "top";
  c.lineWidth = 3;
  c.lineJoin = "round";
  for (const [i, x, y, w, h] of boxes) {
    const left = Math.max(x, inset), top = Math.max(y, inset);
    if (x + w - left < LABEL_WIDE || y + h - top < LABEL_HIGH) continue;
    const text = String(plan.slot[i]);
    c.strokeStyle = theme().halo;
    c.strokeText(text, left + 4, top + 4);
    c.fillStyle = theme().label;
    c.fillText(text, left + 4, top + 4);
  }
}

// Counts of a raster as an image: the more events, the stronger. By their root, or nothing but the
// largest city would be seen.
export function heatImage(heat) {
  const canvas = document.createElement("canvas");
  canvas.width = heat.columns;
  canvas.height = heat.rows;
  const c = canvas.getContext("2d"), image = c.createImageData(heat.columns, heat.rows);
  const [red, green, blue] = theme().heat.split(",").map(Number);
  const top = Math.max(...heat.count);
  heat.cell.forEach((cell, k) => {
    const row = heat.rows - 1 - Math.floor(cell / heat.columns), column = cell % heat.columns;
    const at = 4 * (row * heat.columns + column);
    image.data.set([red, green, blue, 40 + 205 * Math.sqrt(heat.count[k] / top)], at);
  });
  c.putImageData(image, 0, 0);
  return canvas;
}

export function drawHeat(c, camera, image) {
  const [west, south, east, north] = camera.bounds;
  const x = camera.px(west), y = camera.py(north);
  c.imageSmoothingEnabled = true;
  c.drawImage(image, x, y, camera.px(east) - x, camera.py(south) - y);
}

// The largest places as dots, as many names as have room.
export function drawPlaces(c, camera, places) {
  const zoom = camera.scale / camera.least();
  const most = Math.min(places.name.length, Math.round(120 * zoom));
  const taken = [];
  c.font = "11px system-ui, sans-serif";
  c.textAlign = "left";
  c.textBaseline = "middle";
  c.lineWidth = 3;
  c.lineJoin = "round";
  c.fillStyle = theme().label;
  for (let i = 0; i < most; i++) {
    const x = camera.px(places.lon[i]), y = camera.py(places.lat[i]);
    if (x < -40 || y < 0 || x > camera.width || y > camera.height) continue;
    c.globalAlpha = 0.75;
    c.fillRect(x - 1, y - 1, 2.4, 2.4);
    if (taken.length >= camera.width / 70) continue;
    const wide = 8 + 6 * places.name[i].length;
    if (taken.some(([a, b, w]) => Math.abs(b - y) < 18 && x < a + w + 14 && a < x + wide + 14)) continue;
    taken.push([x, y, wide]);
    c.globalAlpha = 0.95;
    c.strokeStyle = theme().halo;
    c.strokeText(places.name[i], x + 5, y);
    c.fillText(places.name[i], x + 5, y);
  }
  c.globalAlpha = 1;
}

// A shape of a subscription, or a box around something, with a few words.
export function drawShape(c, camera, shape, colour, words = "", width = 2) {
  c.strokeStyle = colour;
  c.lineWidth = width;
  c.setLineDash(shape.dashed ? [5, 4] : []);
  c.beginPath();
  let x, y;
  if (shape.type === "circle") {
    const high = shape.radius_m / 111195, wide = high / Math.max(Math.cos(shape.lat * Math.PI / 180), 0.05);
    x = camera.px(shape.lon - wide);
    y = camera.py(shape.lat + high);
    c.ellipse(camera.px(shape.lon), camera.py(shape.lat), wide * camera.narrow * camera.scale, high * camera.scale, 0, 0, 7);
  } else if (shape.type === "Polygon" || shape.type === "MultiPolygon") {
    x = y = Infinity;
    for (const polygon of shape.type === "Polygon" ? [shape.coordinates] : shape.coordinates) {
      for (const ring of polygon) {
        for (const [i, [lon, lat]] of ring.entries()) {
          const to = [camera.px(lon), camera.py(lat)];
          c[i ? "lineTo" : "moveTo"](...to);
          if (to[1] < y) [x, y] = to;
        }
        c.closePath();
      }
    }
  } else {
    x = camera.px(shape.west);
    y = camera.py(shape.north);
    c.rect(x, y, camera.px(shape.east) - x, camera.py(shape.south) - y);
  }
  c.stroke();
  c.setLineDash([]);
  if (!words) return;
  c.font = "600 12px system-ui, sans-serif";
  c.textAlign = "left";
  c.textBaseline = "bottom";
  c.lineWidth = 3;
  c.strokeStyle = theme().halo;
  c.strokeText(words, x, y - 3);
  c.fillStyle = colour;
  c.fillText(words, x, y - 3);
}
