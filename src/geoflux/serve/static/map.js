// The map: holds what is shown and draws it when something has changed, at most once a frame. What
// lies on the ground is painted on a sheet somewhat larger than the window, so that moving about only
// moves the sheet; it is painted anew when something on it changed, or one has come to its edge.

import { forgetTheme, theme } from "./colours.js";
import { Camera } from "./camera.js";
import {
  drawEdges, drawHeat, drawLabels, drawLand, drawPartitions, drawPlaces, drawShape, heatImage, landPaths,
  partitionBoxes,
} from "./map_layers.js";

const GLOW_SECONDS = 2.5, MARGIN = 160;

export class SpaceMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.camera = new Camera();
    this.layers = { cost: true, heat: true, places: true };
    this.plan = this.heat = this.places = this.paths = null;
    this.chosen = null; // the place of a partition in the plan
    this.shapes = []; // subscriptions: {shape, colour, words, glow}
    this.marks = []; // boxes of what is pointed out
    this.draft = null; // what is being drawn
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.dirty = false;
    this.sheet = document.createElement("canvas");
    this.painted = null; // where the camera was when the sheet was painted; null: paint it anew
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
  }

  resize() {
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.sheet.width = Math.round((width + 2 * MARGIN) * this.ratio);
    this.sheet.height = Math.round((height + 2 * MARGIN) * this.ratio);
    this.camera.resize(width, height);
    this.refresh();
  }

  // Something on the ground has changed.
  refresh() {
    this.painted = null;
    this.draw();
  }

  see(space, outline) {
    this.space = space;
    this.camera.see(space.bounds, space.lonlat);
    this.paths = space.lonlat ? landPaths(outline, this.camera.narrow) : null;
    this.refresh();
  }

  // A plan has `cost` of each partition, and the `top` that costs are compared with.
  show(plan) {
    const chosen = this.plan && this.chosen !== null ? this.plan.id[this.chosen] : null;
    const before = this.plan;
    this.plan = plan;
    const found = plan.id.indexOf(chosen);
    this.chosen = chosen === null || found < 0 ? null : found;
    if (plan.changed.length && before?.version !== plan.version) {
      this.glowing = new Set(plan.changed);
      this.glowUntil = performance.now() + GLOW_SECONDS * 1000;
    }
    this.refresh();
  }

  showHeat(heat) {
    this.heat = heat;
    this.image = heat && heat.cell.length ? heatImage(heat) : null;
    this.refresh();
  }

  retheme() {
    forgetTheme();
    this.showHeat(this.heat);
  }

  draw() {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame((now) => {
      this.dirty = false;
      this.paint(now);
    });
  }

  paint(now) {
    const c = this.context, { camera } = this;
    if (!this.isPainted()) this.paintSheet();
    const { x, y } = this.painted;
    const left = (x - camera.x) * camera.scale - MARGIN, top = (y - camera.y) * camera.scale - MARGIN;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.drawImage(this.sheet, Math.round(left * this.ratio), Math.round(top * this.ratio));
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const boxes = partitionBoxes(camera, this.plan);
    this.glow(c, boxes, now);
    for (const mark of this.marks) drawShape(c, camera, mark, theme().bad, "", 2);
    for (const one of this.shapes) {
      const left = (one.glow ?? 0) - now;
      drawShape(c, camera, one.shape, theme().accent, one.words, left > 0 && !this.calm.matches ? 2 + 3 * (left / 900) : 2);
      if (left > 0) this.draw();
    }
    if (this.draft) drawShape(c, camera, { ...this.draft, dashed: true }, theme().accent, this.draft.words ?? "");
    const own = boxes.find(([i]) => i === this.chosen);
    if (own) {
      c.strokeStyle = theme().ink;
      c.lineWidth = 2.5;
      c.strokeRect(own[1], own[2], own[3], own[4]);
    }
  }

  isPainted() {
    const { painted, camera } = this;
    return painted !== null && painted.scale === camera.scale
      && Math.abs(painted.x - camera.x) * camera.scale <= MARGIN
      && Math.abs(painted.y - camera.y) * camera.scale <= MARGIN;
  }

  paintSheet() {
    const c = this.sheet.getContext("2d", { alpha: false }), { plan, layers } = this;
    const camera = this.camera.wider(MARGIN);
    this.painted = { x: camera.x, y: camera.y, scale: camera.scale };
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = theme().sea;
    c.fillRect(0, 0, camera.width, camera.height);
    if (this.paths) drawLand(c, camera, this.paths, "fill", this.ratio);
    const boxes = partitionBoxes(camera, plan);
    if (plan) drawPartitions(c, plan, boxes, layers.cost);
    if (this.paths) drawLand(c, camera, this.paths, "line", this.ratio);
    if (layers.heat && this.image) drawHeat(c, camera, this.image);
    if (plan) {
      drawEdges(c, plan, boxes);
      drawLabels(c, plan, boxes, MARGIN);
    }
    if (layers.places && this.places) drawPlaces(c, camera, this.places);
  }

  // Partitions that have just been cut or moved are outlined for a moment.
  glow(c, boxes, now) {
    const left = (this.glowUntil ?? 0) - now;
    if (left <= 0) return;
    c.strokeStyle = theme().warm;
    c.globalAlpha = this.calm.matches ? 1 : Math.min(left / 1500, 1);
    c.lineWidth = 2.5;
    c.beginPath();
    for (const [i, x, y, w, h] of boxes) if (this.glowing.has(this.plan.id[i])) c.rect(x + 1, y + 1, w - 2, h - 2);
    c.stroke();
    c.globalAlpha = 1;
    if (this.calm.matches) setTimeout(() => this.draw(), left + 20);
    else this.draw();
  }

  // The place in the plan of the partition at a pixel.
  at(px, py) {
    const plan = this.plan, lon = this.camera.lon(px), lat = this.camera.lat(py);
    if (!plan?.west) return null;
    const found = plan.id.findIndex(
      (_, i) => lon >= plan.west[i] && lon < plan.east[i] && lat >= plan.south[i] && lat < plan.north[i]);
    return found < 0 ? null : found;
  }

  choose(place) {
    if (place === this.chosen) return;
    this.chosen = place;
    this.draw();
  }
}
