// Time travel: a slider over all epochs, play and live.

import { byId } from "./dom.js";
import { clock, count } from "./words.js";

const STEP_MILLISECONDS = 350;

export function travel(story) {
  const slider = byId("slider"), play = byId("play"), live = byId("live");
  let playing = null;

  slider.oninput = () => { stop(); story().go(Number(slider.value)); };
  live.onclick = () => { stop(); story().go(null); };
  play.onclick = () => (playing ? stop() : start());

  function start() {
    const first = story().rows[0]?.epoch ?? 0;
    if (story().live || story().epoch >= story().last.epoch) story().go(first);
    play.textContent = "Pause";
    playing = setInterval(() => {
      if (story().epoch >= story().last.epoch) return stop();
      story().go(story().epoch + 1);
    }, STEP_MILLISECONDS);
  }

  function stop() {
    clearInterval(playing);
    playing = null;
    play.textContent = "Play";
  }

  function draw() {
    const { rows, row, last } = story();
    if (!last) return;
    slider.min = rows[0].epoch;
    slider.max = last.epoch;
    slider.value = story().epoch;
    slider.setAttribute("aria-valuetext", `epoch ${row.epoch}`);
    byId("when").textContent = `epoch ${count(row.epoch)} of ${count(last.epoch)} · ${clock(row.committed)}`;
    live.setAttribute("aria-pressed", String(story().live));
  }

  return { draw, stop, toggle: () => play.onclick(), step: (by) => { stop(); story().go(story().epoch + by); } };
}
