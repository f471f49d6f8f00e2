// The page: who is there, what runs, and everything that has to be drawn anew when something happens.

import { drawDecisions } from "./decisions.js";
import { byId, el, fill } from "./dom.js";
import { drawCharts, drawOperators, drawSlots, drawTiles, tip } from "./figures.js";
import { GuardPanel } from "./guard.js";
import { keys } from "./keys.js";
import { SpaceMap } from "./map.js";
import { controls } from "./map_input.js";
import { ask, listen, view } from "./net.js";
import { drawScaling } from "./scaling.js";
import { known } from "./session.js";
import { Explorer } from "./sketch.js";
import { Story } from "./story.js";
import { Subscriptions } from "./subscribe.js";
import { tabs } from "./tabs.js";
import { travel } from "./travel.js";
import { plural } from "./words.js";

const OFTEN_MILLISECONDS = 3000, QUIET_SECONDS = 30;
const latest = new Map();
let run, story, map, input, tab, time, guard, subscriptions, explorer, connected = false;

// Drawing waits for the next frame, however many epochs came before it.
const waiting = new Set();
function soon(...parts) {
  if (!waiting.size) requestAnimationFrame(() => {
    const now = [...waiting];
    waiting.clear();
    if (now.includes("figures")) figures();
    if (now.includes("travel")) time.draw();
    if (now.includes("status")) status();
    if (now.includes("operators")) drawOperators(run, latest);
  });
  parts.forEach((part) => waiting.add(part));
}

function figures() {
  const rates = story.rates();
  drawTiles(story, rates);
  drawCharts(story, rates);
}

function status() {
  const last = story.last, quiet = last ? Date.now() / 1000 - last.committed : Infinity;
  const lively = connected && quiet < QUIET_SECONDS;
  byId("dot").className = connected ? (lively ? "live" : "") : "gone";
  const words = !connected ? "no connection" : lively ? "running" : run.ended ? "ended" : "quiet";
  byId("status-words").textContent = last ? `${words}, ${plural(last.epoch + 1, "epoch")}` : words;
}

function changed(what) {
  if (what === "plan") {
    map.show(story.plan);
    drawSlots(story.plan);
    byId("map-tip").textContent = tip(story.plan, map.chosen);
    note();
  } else if (what === "heat") {
    map.showHeat(story.heat.of === "events" ? story.heat : null);
    note();
  } else {
    soon("figures", "travel", "status");
    if (what === "moment") drawPanel("decisions");
  }
}

function note() {
  const words = [];
  if (story.plan && !story.plan.west) words.push("partitions of keys have no place on a map");
  else if (story.plan) words.push(`${plural(story.plan.id.length, "partition")} on ${plural(story.plan.slots, "slot")}`);
  if (map.layers.heat && story.heat) words.push(story.heat.of === "events" ? `${plural(story.heat.sampled, "event")} sampled` : "this epoch's events cannot be read again");
  byId("map-note").textContent = words.join(" · ");
  byId("map-note").hidden = !words.length;
}

// Panels that are not seen are not asked for.
const drawn = {
  decisions: () => drawDecisions(story), slots: () => drawOperators(run, latest),
  guard: () => guard.draw(), scaling: (anew) => drawScaling(anew), subscribe: () => subscriptions.refresh(),
  sketch: () => explorer.draw(),
};
async function drawPanel(name, anew = true) {
  if (tab?.now === name) await drawn[name](anew);
}

async function show(operator) {
  time?.stop();
  story = new Story(operator, changed);
  guard = new GuardPanel(operator, (places) => {
    map.marks = places.map(([west, south, east, north]) => ({ type: "rectangle", west, south, east, north }));
    map.draw();
  });
  map.plan = null;
  map.showHeat(null);
  await story.begin();
  await drawPanel(tab.now);
}

function theme(next) {
  const order = ["auto", "light", "dark"], now = localStorage.getItem("theme") ?? "auto";
  const chosen = next ? order[(order.indexOf(now) + 1) % 3] : now;
  localStorage.setItem("theme", chosen);
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  byId("theme").textContent = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" }[chosen];
  if (map) {
    map.retheme();
    if (story?.plan) { drawSlots(story.plan); soon("figures"); drawPanel(tab.now); }
  }
}

function layer(name) {
  const button = document.querySelector(`[data-layer="${name}"]`);
  map.layers[name] = !map.layers[name];
  button.setAttribute("aria-pressed", String(map.layers[name]));
  map.refresh();
  note();
}

function wire() {
  document.querySelectorAll("[data-layer]").forEach((b) => { b.onclick = () => layer(b.dataset.layer); });
  byId("zoom-in").onclick = () => input.zoom(1.5);
  byId("zoom-out").onclick = () => input.zoom(1 / 1.5);
  byId("zoom-fit").onclick = () => { map.camera.fit(); map.marks = []; map.draw(); };
  byId("theme").onclick = () => theme(true);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(false));
  new ResizeObserver(() => soon("figures")).observe(byId("charts"));
  const go = (name) => () => { tab.choose(name); byId(`panel-${name}`).focus(); };
  keys([
    ["1", "cost of partitions", () => layer("cost")], ["2", "events as heat", () => layer("heat")],
    ["3", "populated places", () => layer("places")], [" ", "play and pause", () => time.toggle()],
    [",", "an epoch back", () => time.step(-1)], [".", "an epoch on", () => time.step(1)],
    ["L", "live", () => byId("live").click()], ["M", "to the map", () => byId("map").focus()],
    ["D", "decisions", go("decisions")], ["S", "draw a subscription", () => { tab.choose("subscribe"); subscriptions?.draw("rectangle"); }],
    ["G", "Guard", go("guard")], ["T", "light or dark", () => theme(true)],
  ]);
}

// A page may be there before its run.
async function begun() {
  for (;;) {
    try {
      const found = await known(() => view("run"));
      if (found.space) return found;
    } catch (problem) {
      if (problem.status !== 409 && problem.status !== 503) throw problem;
    }
    byId("status-words").textContent = "the run has not started yet";
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

async function boot() {
  theme(false);
  run = await begun();
  byId("name").textContent = run.name;
  document.title = `${run.name} · geoflux`;
  const [outline, places] = await Promise.all([ask("/static/coast.json"), view("places")]);
  map = new SpaceMap(byId("map"));
  map.see(run.space, outline);
  map.places = places;
  map.refresh();
  input = controls(map, {
    told: (place) => { byId("map-tip").textContent = tip(story.plan, place); },
    drawn: (shape) => (tab.now === "sketch" ? explorer : subscriptions).drawn(shape),
  });
  time = travel(() => story);
  const shown = run.operators.find((o) => o.name === run.shown);
  story = new Story(run.shown, changed);
  subscriptions = shown.kind === "queries" ? new Subscriptions(map, input) : null;
  explorer = run.sketch ? new Explorer(run.sketch, map, input) : null;
  const names = [["decisions", "Decisions"], ["slots", "Slots"]];
  if (run.sketch) names.unshift(["sketch", "Sketch"]);
  if (subscriptions) names.push(["subscribe", "Subscribe"]);
  if (run.guard) names.push(["guard", "Guard"]);
  if (run.scaling) names.push(["scaling", "Scaling"]);
  wire();
  const pick = byId("operator");
  fill(pick, run.operators.map((o) => el("option", { value: o.name, text: o.name, selected: o.name === run.shown })));
  byId("operator-pick").hidden = run.operators.length < 2;
  pick.onchange = () => show(pick.value);
  tab = tabs(names, (name) => { if (story.last) drawPanel(name); });
  await show(run.shown);
  document.body.dataset.ready = "true";
  listen("/v1/view/stream", {
    hello: () => { connected = true; soon("status"); },
    epoch: ({ operator, ...row }) => {
      latest.set(operator, row);
      soon("operators", "status");
      if (operator === story.operator) story.hear(row).catch(trouble);
    },
  }, (state) => {
    connected = state === "open";
    soon("status");
    // The server does not let us in any more: asking tells why, and whoever is unknown signs in.
    if (state === "closed") setTimeout(() => view("run").then(() => location.reload()).catch(trouble), 3000);
    if (connected && story.last) view("epochs", { operator: story.operator, after: story.last.epoch })
      .then(({ rows }) => rows.forEach((row) => story.hear(row))).catch(trouble);
  });
  setInterval(() => {
    soon("status");
    if (connected && story.live && document.visibilityState === "visible") {
      if (["decisions", "guard", "scaling", "subscribe"].includes(tab.now)) drawPanel(tab.now, false).catch(trouble);
    }
  }, OFTEN_MILLISECONDS);
}

function trouble(problem) {
  byId("status-words").textContent = problem.message;
}

// What goes wrong on the way to an answer is told in the head, whoever asked.
addEventListener("unhandledrejection", (event) => trouble(event.reason));
boot().catch(trouble);
