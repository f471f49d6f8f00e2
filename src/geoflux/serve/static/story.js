// What has happened so far in one operator, and which moment of it is looked at: the newest, as it
// comes, or any epoch before. Plans and heat are asked for once; answers that come too late for
// where one is by then are kept but not shown.

import { view } from "./net.js";

const KEPT = 60, HEAT_MILLISECONDS = 1500, MOST_ROWS = 5000;

export class Story {
  // `changed(what)` hears "epochs", "plan", "heat" or "moment".
  constructor(operator, changed) {
    this.operator = operator;
    this.changed = changed;
    this.rows = [];
    this.moment = null; // an epoch, or null for live
    this.plan = this.heat = null;
    this.plans = new Map();
    this.heats = new Map();
    this.asking = false;
    this.heatAt = 0;
  }

  get last() { return this.rows.at(-1) ?? null; }
  get epoch() { return this.moment ?? this.last?.epoch ?? null; }
  get row() { return this.rows[this.epoch - this.rows[0]?.epoch] ?? null; }
  get live() { return this.moment === null; }

  async begin() {
    const { rows } = await view("epochs", { operator: this.operator });
    this.rows = rows;
    this.changed("epochs");
    await this.look();
  }

  // A row from the stream. One that does not follow means that some were missed.
  async hear(row) {
    if (this.last && row.epoch <= this.last.epoch) return;
    if (this.last && row.epoch > this.last.epoch + 1) {
      const { rows } = await view("epochs", { operator: this.operator, after: this.last.epoch });
      this.rows.push(...rows.filter((one) => one.epoch > this.last.epoch));
    } else this.rows.push(row);
    if (this.rows.length > MOST_ROWS) this.rows.splice(0, this.rows.length - MOST_ROWS);
    this.changed("epochs");
    if (this.live) await this.look();
  }

  async go(epoch) {
    const last = this.last?.epoch ?? 0;
    this.moment = epoch === null || epoch > last ? null : Math.max(epoch, this.rows[0]?.epoch ?? 0);
    this.changed("moment");
    await this.look();
  }

  // Ask for what is to be seen now; whatever is wished for meanwhile is looked at right after.
  async look() {
    this.stale = true;
    if (this.asking) return;
    this.asking = true;
    try {
      while (this.stale) {
        this.stale = false;
        await this.see(this.epoch, this.live);
      }
    } finally {
      this.asking = false;
    }
  }

  async see(epoch, live) {
    if (epoch === null) return;
    // Of the newest epoch the plan that it leads to is shown, with what it has just done.
    const plan = await this.ask(this.plans, "plan", epoch, live && epoch === this.last.epoch ? null : epoch);
    plan.cost = plan.checks.map((checks, i) => checks ?? plan.events[i] ?? 0);
    plan.top = Math.max(...plan.cost, 0);
    this.plan = plan;
    this.changed("plan");
    const rest = this.heatAt + HEAT_MILLISECONDS - performance.now();
    if (live && rest > 0 && !this.heats.has(epoch)) {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.look(), rest);
      return;
    }
    this.heatAt = performance.now();
    this.heat = await this.ask(this.heats, "heat", epoch, epoch);
    this.changed("heat");
  }

  async ask(kept, name, key, epoch) {
    if (epoch !== null && kept.has(key)) return kept.get(key);
    const answer = await view(name, { operator: this.operator, epoch });
    if (epoch !== null) {
      kept.set(key, answer);
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    }
    return answer;
  }

  // Events a second of each epoch, with the waiting before it; a stop of the run counts as none.
  rates() {
    return this.rows.map((row, i) => {
      const own = Math.max(row.committed - row.opened, 1e-3);
      const since = i ? row.committed - this.rows[i - 1].committed : own;
      return row.processed / Math.max(since > own + 30 ? own : since, 1e-3);
    });
  }
}

// Busy time of the busiest slot over the mean of all.
export function unevenness(busy) {
  const known = busy.filter((seconds) => seconds !== null);
  const mean = known.reduce((a, b) => a + b, 0) / known.length;
  return mean > 0 ? Math.max(...known) / mean : null;
}
