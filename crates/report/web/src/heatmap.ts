// Rows sorted by CPU time, columns of time, each cell split by state.

import { ASLEEP, BLOCKED, ON, STATES, UNKNOWN, WAIT } from "./data";
import { choice, h } from "./dom";
import { fit } from "./paint";
import { wholeName } from "./search";
import { MEASURES, type Measure, type Rows } from "./state";
import { TimeView, zoomButtons, type Context, type Frame } from "./timeview";
import { at, count, time } from "./units";

interface Row {
  name: string;
  /** The brief name of its process; empty: none. */
  brief: string;
  note: string;
  cpu: number;
  threads: number[];
  /** The process that it is, or is of; -1: a group. */
  process: number;
  /** What to search for, or the cgroup to go to, to see what is in it. */
  enter: string;
  failed: boolean;
  start: number;
  end: number;
}

const PITCH = 20;
const HEIGHT = 17;
/** Of a cell, CSS pixels. */
const CELL = 6;
/** Whether names leave room for a number beside them. */
const hasNumbers = (gutter: number) => gutter >= 150;
const STATE_OF_MEASURE: Record<Measure, number> = { all: -1, on: ON, waiting: WAIT, blocked: BLOCKED, asleep: ASLEEP };

export class Heatmap extends TimeView {
  private rows: Row[] = [];
  private key = "";
  private sums = new Float64Array(0);
  private chosen = -1;
  private refresh: () => void;

  constructor(context: Context) {
    const { store } = context;
    const rows = groupBy(context, true);
    const names = ["All states", "On CPU", "Run queue", "Blocked", "Sleep"];
    const measure = h(
      "select",
      { "aria-label": "What a cell shows", onchange: () => store.set({ measure: measure.value as Measure }) },
      ...MEASURES.map((m, at) => h("option", { value: m }, names[at])),
    );
    super(
      context,
      "Heatmap of rows over time",
      "Drag to pan · Ctrl + wheel or a double click to zoom · Shift + drag to measure · click to select",
      h("div", { class: "toolbar" }, rows.element, measure, zoomButtons(store)),
    );
    this.refresh = () => {
      rows.show(store.state.rows);
      measure.value = store.state.measure;
    };
  }

  update() {
    this.refresh();
    const { state } = this.store;
    const key = [state.rows, state.root, state.cgroup, state.q].join("\n");
    if (key !== this.key) {
      this.key = key;
      this.rows = this.make();
      this.chosen = -1;
    }
    this.draw();
  }

  private make(): Row[] {
    const { data, store } = this;
    const { processes: p, threads } = data.doc;
    const rows: Row[] = [];
    const groups = new Map<string, Row & { count: number }>();
    for (let ix = 0; ix < data.n; ix++) {
      if (!store.shown(ix)) continue;
      const of = range(data.threadsFrom[ix], data.threadsFrom[ix + 1]);
      const base = { process: ix, failed: data.bad(ix), start: p.start[ix], end: p.end[ix], enter: "" };
      switch (store.state.rows) {
        case "process": {
          const { text, brief } = data.labelName(ix);
          rows.push({ ...base, name: text, brief, note: `pid ${p.pid[ix]}`, cpu: p.on_cpu[ix], threads: of });
          break;
        }
        case "thread":
          for (const t of of) {
            const comm = data.string(threads.comm[t]);
            rows.push({
              ...base,
              name: `${comm} · ${data.label(ix)}`,
              brief: data.labelName(ix).brief,
              note: `tid ${threads.tid[t]}`,
              cpu: threads.on_cpu[t],
              threads: [t],
              start: threads.start[t],
              end: threads.end[t],
            });
          }
          break;
        default: {
          const name = data.group(store.state.rows, ix);
          let group = groups.get(name);
          if (!group) {
            group = {
              ...base,
              name,
              brief: "",
              note: "",
              cpu: 0,
              threads: [],
              process: -1,
              enter: name,
              failed: false,
              count: 0,
            };
            groups.set(name, group);
            rows.push(group);
          }
          group.cpu += p.on_cpu[ix];
          for (const t of of) group.threads.push(t);
          group.count++;
          group.start = Math.min(group.start, p.start[ix]);
          group.end = Math.max(group.end, p.end[ix]);
          group.note = `${count(group.count)} process${group.count === 1 ? "" : "es"}`;
        }
      }
    }
    return rows.sort((a, b) => b.cpu - a.cpu || a.start - b.start || (a.name < b.name ? -1 : 1));
  }

  protected override numbers(gutter: number): string {
    return hasNumbers(gutter) && this.rows.length > 0 ? "CPU time" : "";
  }
  protected contentHeight(): number {
    return this.rows.length * PITCH + 6;
  }

  private selected(row: Row, at: number): boolean {
    return row.process >= 0 ? row.process === this.store.state.sel : at === this.chosen;
  }

  protected paint(frame: Frame) {
    const { ctx, pixels, theme, ratio, state, gutter, width, top } = frame;
    const cell = Math.round(CELL * ratio);
    const n = Math.ceil(pixels.width / cell);
    const dt = ((state.t1 - state.t0) / pixels.width) * cell;
    if (this.sums.length < 5 * n) this.sums = new Float64Array(5 * n);
    const { sums } = this;
    const first = Math.max(0, Math.floor((top - 4) / PITCH));
    const last = Math.min(this.rows.length, Math.ceil((top + frame.height) / PITCH) + 1);
    const measured = STATE_OF_MEASURE[state.measure];
    for (let r = first; r < last; r++) {
      const row = this.rows[r];
      if (row.end < state.t0 || row.start > state.t1) continue;
      sums.fill(0, 0, 5 * n);
      for (const t of row.threads) this.data.integrate(t, state.t0, dt, n, sums, 1 / dt);
      // A row of several is as high as the most that were busy at once.
      let peak = 1;
      for (let c = 0; c < n; c++) peak = Math.max(peak, sums[c] + sums[n + c] + sums[2 * n + c]);
      if (peak > 1) for (let i = 0; i < 3 * n; i++) sums[i] /= peak;
      const y = Math.round((4 + r * PITCH - top) * ratio);
      const height = Math.round(HEIGHT * ratio);
      if (measured < 0) pixels.stack(sums, n, 0, y, cell, ratio >= 2 ? 2 : 1, height, theme);
      else pixels.heat(sums, n, measured, 0, y, cell, ratio >= 2 ? 2 : 1, height, theme);
    }
    this.blit(frame);
    ctx.textBaseline = "middle";
    // Under what is painted: lines that lead from a name to its cells.
    ctx.globalCompositeOperation = "destination-over";
    ctx.fillStyle = theme.css.stripe;
    for (let r = first + (first % 2); r < last; r += 2) ctx.fillRect(0, 3 + r * PITCH - top, width, PITCH);
    ctx.globalCompositeOperation = "source-over";
    for (let r = first; r < last; r++) {
      const row = this.rows[r];
      const y = 4 + r * PITCH - top + HEIGHT / 2;
      if (this.selected(row, r)) {
        ctx.fillStyle = theme.css.accent;
        ctx.globalAlpha = 0.14;
        ctx.fillRect(0, y - PITCH / 2, gutter - 4, PITCH);
        ctx.globalAlpha = 1;
        ctx.strokeStyle = theme.css.accent;
        ctx.lineWidth = 1.5;
        ctx.strokeRect(gutter - 0.5, y - PITCH / 2 + 0.5, width - gutter, PITCH - 1);
      }
      ctx.font = FONT;
      const cpu = time(row.cpu);
      let room = gutter - 18;
      if (hasNumbers(gutter)) {
        ctx.textAlign = "right";
        ctx.fillStyle = theme.css.dim;
        ctx.fillText(cpu, gutter - 10, y);
        room -= 58;
      }
      ctx.textAlign = "left";
      ctx.fillStyle = row.failed ? theme.css.bad : theme.css.ink;
      ctx.fillText(fit(ctx, { text: row.failed ? `✕ ${row.name}` : row.name, brief: row.brief }, room), 8, y);
    }
    if (this.rows.length === 0) {
      ctx.fillStyle = theme.css.dim;
      ctx.font = FONT;
      ctx.textAlign = "left";
      ctx.fillText("No process matches.", 8, 20);
    }
  }

  protected hover(event: PointerEvent, t: number, y: number) {
    const row = this.rows[Math.floor((y - 4) / PITCH)];
    if (!row) return this.tip.hide();
    const { state } = this.store;
    const lines: HTMLElement[] = [h("strong", {}, row.name), h("div", { class: "dim" }, row.note)];
    if (t >= state.t0 && t <= state.t1) {
      const dt = ((state.t1 - state.t0) / this.plotWidth()) * CELL;
      const begin = state.t0 + Math.floor((t - state.t0) / dt) * dt;
      const sums = new Float64Array(5);
      for (const thread of row.threads) this.data.integrate(thread, begin, dt, 1, sums);
      lines.push(h("div", {}, `${at(begin, dt * 20)} to ${at(begin + dt, dt * 20)}`));
      const parts = [ON, WAIT, BLOCKED, ASLEEP, UNKNOWN].filter((s) => sums[s] > 0);
      lines.push(
        h(
          "div",
          { class: "dim" },
          parts.length > 0 ? parts.map((s) => `${STATES[s]} ${time(sums[s])}`).join(" · ") : "not there",
        ),
      );
    }
    if (row.process >= 0) {
      const ix = row.process;
      lines.push(h("div", { class: "argv" }, clip(this.data.argv(ix))));
      lines.push(
        h(
          "div",
          { class: "dim" },
          `from ${at(this.data.doc.processes.start[ix])} · wall ${time(this.data.wall(ix))} · CPU ${time(this.data.doc.processes.on_cpu[ix])} · ${this.data.exit(ix)}`,
        ),
      );
    }
    this.tip.show(event, ...lines);
  }

  protected pick(_t: number, y: number, twice: boolean) {
    const at = Math.floor((y - 4) / PITCH);
    const row = this.rows[at];
    if (!row) return this.store.set({ sel: -1 });
    this.chosen = at;
    if (row.process >= 0) this.store.set({ sel: row.process });
    else if (twice) this.enter();
    this.draw();
  }

  /** Goes into what is selected. */
  enter() {
    const row = this.rows[this.chosen];
    if (!row || row.process >= 0) return false;
    const { rows } = this.store.state;
    if (rows === "cgroup") this.store.set({ cgroup: row.enter, rows: "process" });
    else this.store.set({ q: wholeName(rows, row.enter), rows: "process" });
    return true;
  }

  private current(): number {
    return this.rows.findIndex((row, at) => this.selected(row, at));
  }
  reveal() {
    const at = this.current();
    if (at >= 0) this.scrollTo(4 + at * PITCH, PITCH);
  }
  step(by: number) {
    const at = Math.max(0, Math.min(this.rows.length - 1, this.current() + by));
    const row = this.rows[at];
    if (!row) return;
    this.chosen = at;
    this.store.set({ sel: row.process });
    this.scrollTo(4 + at * PITCH, PITCH);
    this.draw();
  }
}

/** The choice of what rows stand for, as far as the recording tells it. */
export function groupBy(
  { data, store }: Context,
  threads = false,
  pick = (rows: Rows) => store.set({ rows }),
  none = "Processes",
) {
  const { cgroup, container } = data.doc.processes;
  const all: [Rows, string, boolean][] = [
    ["process", none, true],
    ["thread", "Threads", threads],
    ["program", "Programs", true],
    ["step", "Steps", data.doc.steps.from.length > 0],
    ["cgroup", "Cgroups", new Set(cgroup).size > 1],
    ["container", "Containers", container.some((name) => name !== null)],
  ];
  return choice<Rows>(
    "Group by",
    all.filter(([, , there]) => there).map(([rows, name]): [Rows, string] => [rows, name]),
    pick,
  );
}

export const FONT = '12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

export function clip(text: string, most = 400): string {
  return text.length > most ? text.slice(0, most) + "…" : text;
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}
