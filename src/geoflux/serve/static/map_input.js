// The map by mouse, touch and keyboard. Dragging moves it, unless something is being drawn; two
// fingers or the wheel zoom; every one of these has a key.

const STEP = 60, CLICK_PIXELS = 4;

// `told(place)` hears which partition is pointed at; `drawn(shape)` what was drawn.
export function controls(map, { told, drawn }) {
  const { canvas, camera } = map;
  const fingers = new Map();
  let began = null, apart = 0;
  const state = { drawing: null };

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    if (fingers.size === 2) {
      began = null;
      map.draft = null;
      apart = distance(fingers);
    } else if (fingers.size === 1) began = at(event);
    canvas.classList.add("held");
  });

  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event), before = fingers.get(event.pointerId);
    if (!before) return point(x, y);
    fingers.set(event.pointerId, [x, y]);
    if (fingers.size === 2) {
      const now = distance(fingers), [a, b] = [...fingers.values()];
      camera.zoom(now / apart, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      camera.pan((x - before[0]) / 2, (y - before[1]) / 2);
      apart = now;
    } else if (state.drawing && began) map.draft = shapeOf(state.drawing, began, [x, y]);
    else camera.pan(x - before[0], y - before[1]);
    map.draw();
  });

  const end = (event) => {
    const place = fingers.get(event.pointerId);
    fingers.delete(event.pointerId);
    if (!fingers.size) canvas.classList.remove("held");
    if (!place || !began || fingers.size) return;
    const moved = Math.hypot(place[0] - began[0], place[1] - began[1]);
    if (state.drawing && moved > CLICK_PIXELS && event.type === "pointerup") {
      const shape = shapeOf(state.drawing, began, place);
      draw(null);
      drawn(shape);
    } else if (moved <= CLICK_PIXELS) point(...place);
    began = null;
    map.draw();
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => { if (!fingers.size) point(-1, -1); });

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0018)), ...at(event));
    map.draw();
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(2, ...at(event)));

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (moves[event.key]) camera.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") camera.zoom(1.4);
    else if (event.key === "-") camera.zoom(1 / 1.4);
    else if (event.key === "0") camera.fit();
    else if (event.key === "n" || event.key === "p") step(event.key === "n" ? 1 : -1);
    else if (event.key === "Escape" && state.drawing) draw(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
    map.draw();
  });

  function point(x, y) {
    const place = state.drawing ? null : map.at(x, y);
    map.choose(place);
    told(place);
  }

  function step(by) {
    const many = map.plan?.west ? map.plan.id.length : 0;
    if (!many) return;
    const place = map.chosen === null ? (by > 0 ? 0 : many - 1) : (map.chosen + by + many) % many;
    map.choose(place);
    told(place);
  }

  function zoom(factor, x, y) {
    camera.zoom(factor, x, y);
    map.draw();
  }

  // "rectangle", "circle", or null for none.
  function draw(kind) {
    state.drawing = kind;
    map.draft = null;
    canvas.classList.toggle("drawing", kind !== null);
    state.changed?.(kind);
    map.draw();
  }

  function shapeOf(kind, [x0, y0], [x1, y1]) {
    const [west, south, east, north] = camera.bounds;
    const lon = [x0, x1].map((x) => Math.min(Math.max(camera.lon(x), west), east));
    const lat = [y0, y1].map((y) => Math.min(Math.max(camera.lat(y), south), north));
    if (kind === "circle" && map.space.lonlat) {
      const metres = Math.hypot((lon[1] - lon[0]) * Math.cos(lat[0] * Math.PI / 180), lat[1] - lat[0]) * 111195;
      return { type: "circle", lon: round(lon[0]), lat: round(lat[0]), radius_m: Math.max(Math.round(metres), 1) };
    }
    return {
      type: "rectangle", west: round(Math.min(...lon)), south: round(Math.min(...lat)),
      east: round(Math.max(...lon)), north: round(Math.max(...lat)),
    };
  }

  return { draw, zoom, state };
}

const distance = (fingers) => {
  const [a, b] = [...fingers.values()];
  return Math.max(Math.hypot(a[0] - b[0], a[1] - b[1]), 1);
};

const round = (value) => Math.round(value * 1e5) / 1e5;
