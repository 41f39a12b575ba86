// The process tree as nested lanes: a child below its parent, siblings that do
// not overlap in one lane.

import { CpuLanes } from "./cpus";
import { KINDS } from "./data";
import { h } from "./dom";
import { clip, FONT } from "./heatmap";
import { Lane } from "./lane";
import { fit } from "./paint";
import { PathLane } from "./path";
import { TimeView, zoomButtons, type Context, type Frame } from "./timeview";
import { at, count, time } from "./units";

/** Of a lane, CSS pixels: the least and the most. */
const PITCH = [30, 54];
/** The name, then the states below it. */
const NAME = 15;
/** The most threads with lanes of their own. */
const THREADS = 24;
/** What a lane has besides its states. */
const REST = 20;

export class Timeline extends TimeView {
  /** Each process's lane; -1: not in the scope. */
  private lane = new Int32Array(0);
  /** The processes of each lane, by start. */
  private lanes: number[][] = [];
  private key = "";
  private hidden = [0, 0, 0];
  /** Lane and thread, of the chosen process. */
  private threads: [number, number][] = [];
  private sums = new Float64Array(0);
  private wakes: { key: number; list: Wake[] } = { key: -1, list: [] };
  private pitch = PITCH[0];
  private path: Step[];
  private refresh: () => void;
  /** 1: only waits for one child at a time; 2: idle all the time. */
  private quiet: Uint8Array;
  private note = h("span", { class: "dim", id: "folded" });

  constructor(context: Context, ranks: Map<string, number>) {
    const { store, data } = context;
    const lanes = new CpuLanes(context, ranks);
    const cpus = h("button", { type: "button", class: "toggle", id: "cpus", title: "Processes on each CPU (c)", disabled: !lanes.known,
      onclick: () => store.set({ cpus: !store.state.cpus }) }, "CPUs");
    const fold = h("button", { type: "button", class: "toggle", id: "fold", title: "A parent that only waits for its child, and idle processes, take no lane (f)",
      onclick: () => store.set({ fold: !store.state.fold }) }, "Fold");
    const wakeups = h("button", { type: "button", class: "toggle", title: "Who woke the selected process, and whom it woke (e)",
      onclick: () => store.set({ wakeups: !store.state.wakeups }) }, "Wake-ups");
    super(context, "Timeline of the process tree", "Drag to pan · Ctrl + wheel or a double click to zoom · Shift + drag to zoom to a range · click a process to select it",
      h("div", { class: "toolbar" }, fold, cpus, wakeups, zoomButtons(store),
        data.doc.path ? h("span", { class: "key" }, h("i", { class: "swatch path" }), "critical path") : null), [Lane.of(context), PathLane.of(context), lanes]);
    this.element.querySelector(".toolbar")!.append(this.note);
    this.quiet = quiet(data);
    this.path = steps(data);
    this.refresh = () => {
      cpus.setAttribute("aria-pressed", String(store.state.cpus));
      fold.setAttribute("aria-pressed", String(store.state.fold));
      wakeups.setAttribute("aria-pressed", String(store.state.wakeups));
      wakeups.disabled = store.state.sel < 0;
    };
  }

  update() {
    this.refresh();
    const { state } = this.store;
    const chosen = state.sel >= 0 && (this.quiet[state.sel] > 0 || this.data.doc.processes.threads[state.sel] > 1) ? state.sel : -1;
    const key = `${state.root}\n${state.cgroup}\n${state.fold}\n${chosen}`;
    if (key !== this.key) {
      this.key = key;
      this.layout();
    }
    this.draw();
  }

  /** Whether a process has a lane: not one that is folded, unless it was chosen. */
  private laned(ix: number): boolean {
    const { state, scope } = this.store;
    return scope[ix] === 1 && !(state.fold && this.quiet[ix] > 0 && ix !== state.sel && ix !== state.root);
  }

  /** The lanes of a process: its own, and those of its threads if it is chosen. */
  private own(ix: number): number {
    if (!this.laned(ix)) return 0;
    const threads = this.data.doc.processes.threads[ix];
    return ix === this.store.state.sel && threads > 1 ? 1 + Math.min(threads, THREADS) : 1;
  }

  /** Blocks of subtrees, each as high as it is deep, first come first fit. */
  private layout() {
    const { data, store } = this;
    const { start, end } = data.doc.processes;
    const height = new Int32Array(data.n).fill(1);
    const until = new Float64Array(data.n);
    const offset = new Int32Array(data.n);
    const place = (of: number[]): number => {
      const busy: number[] = [];
      const inside = of.filter((ix) => this.covers(ix)).sort((a, b) => start[a] - start[b] || a - b);
      for (const ix of inside) {
        let y = 0;
        for (let lane = 0; lane < y + height[ix] && lane < busy.length; lane++) if (busy[lane] > start[ix]) y = lane + 1;
        offset[ix] = y;
        for (let lane = y; lane < y + height[ix]; lane++) busy[lane] = until[ix];
      }
      return busy.length;
    };
    // From the leaves up.
    for (let at = data.n - 1; at >= 0; at--) {
      const ix = data.order[at];
      until[ix] = end[ix];
      for (const child of data.children[ix]) until[ix] = Math.max(until[ix], until[child]);
      const below = place(data.children[ix]);
      height[ix] = this.own(ix) + below;
    }
    const roots = store.state.root >= 0 ? [store.state.root] : data.roots;
    place(roots);
    this.lane = new Int32Array(data.n).fill(-1);
    this.lanes = [];
    this.threads = [];
    this.hidden = [0, 0, 0];
    const top = new Int32Array(data.n);
    for (const root of roots) {
      for (let at = data.place[root]; at < data.subtreeEnd[root]; at++) {
        const ix = data.order[at];
        const parent = data.parent[ix];
        top[ix] = ix === root ? offset[ix] : top[parent] + this.own(parent) + offset[ix];
        if (store.scope[ix] && !this.laned(ix)) this.hidden[this.quiet[ix]]++;
        if (!this.laned(ix)) continue;
        this.lane[ix] = top[ix];
        (this.lanes[top[ix]] ??= []).push(ix);
        for (let n = 1; n < this.own(ix); n++) this.threads.push([top[ix] + n, data.threadsFrom[ix] + n - 1]);
      }
    }
    const [, parents, idle] = this.hidden;
    this.note.textContent = [parents > 0 ? `${count(parents)} waiting parents` : "", idle > 0 ? `${count(idle)} idle` : ""].filter((part) => part).join(", ") + (parents + idle > 0 ? " folded" : "");
    if (this.lanes.length === 0) this.lanes.push([]);
    for (const [lane] of this.threads) this.lanes[lane] ??= [];
    for (let at = 0; at < this.lanes.length; at++) (this.lanes[at] ??= []).sort((a, b) => start[a] - start[b]);
  }

  /** Whether a subtree has anything in the scope. */
  private covers(ix: number): boolean {
    const { data, store } = this;
    if (store.state.cgroup === "") return true;
    for (let at = data.place[ix]; at < data.subtreeEnd[ix]; at++) if (store.scope[data.order[at]]) return true;
    return false;
  }

  protected override gutter(): number {
    return 0;
  }
  protected contentHeight(): number {
    return this.lanes.length * this.pitch + 12;
  }
  /** The height of the states. */
  private get band(): number {
    return this.pitch - REST;
  }
  protected override resized(height: number) {
    this.pitch = Math.floor(Math.max(PITCH[0], Math.min(PITCH[1], (height - 14) / Math.max(1, this.lanes.length))));
  }
  private top(lane: number): number {
    return 8 + lane * this.pitch;
  }

  protected paint(frame: Frame) {
    const { ctx, pixels, theme, ratio, state, width, top, x } = frame;
    const { data, store, pitch } = this;
    const band = this.band;
    const { start, end } = data.doc.processes;
    const n = pixels.width;
    const dt = (state.t1 - state.t0) / n;
    if (this.sums.length < 5 * n) this.sums = new Float64Array(5 * n);
    const { sums } = this;
    const first = Math.max(0, Math.floor((top - 8) / pitch) - 1);
    const last = Math.min(this.lanes.length, Math.ceil((top + frame.height) / pitch) + 1);
    const seen: [number, number, number][] = [];
    const searching = store.matches !== null;
    for (let l = first; l < last; l++) {
      const lane = this.lanes[l];
      sums.fill(0, 0, 5 * n);
      let lo = 0;
      let hi = lane.length;
      while (lo < hi) {
        const mid = (lo + hi) >> 1;
        if (end[lane[mid]] < state.t0) lo = mid + 1;
        else hi = mid;
      }
      for (let at = lo; at < lane.length; at++) {
        const ix = lane[at];
        if (start[ix] > state.t1) break;
        const weight = 1 / dt / data.peak(ix);
        const dim = searching && !store.matches![ix] ? 0.18 : 1;
        for (let t = data.threadsFrom[ix]; t < data.threadsFrom[ix + 1]; t++) data.integrate(t, state.t0, dt, n, sums, weight * dim);
        seen.push([l, ix, dim]);
      }
      pixels.stack(sums, n, 0, Math.round((this.top(l) + NAME - top) * ratio), 1, 0, Math.round(band * ratio), theme);
    }
    for (const [l, t] of this.threads) {
      if (l < first || l >= last) continue;
      sums.fill(0, 0, 5 * n);
      data.integrate(t, state.t0, dt, n, sums, 1 / dt);
      pixels.stack(sums, n, 0, Math.round((this.top(l) + NAME - top) * ratio), 1, 0, Math.round(band * ratio * 0.7), theme);
    }
    this.blit(frame);
    this.drawPath(frame);
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "left";
    ctx.font = FONT;
    const { execs } = data.doc;
    for (const [l, ix, dim] of seen) {
      const y = this.top(l) - top;
      const left = Math.max(0, x(start[ix]));
      const right = Math.min(width, x(end[ix]));
      const failed = data.failed(ix);
      ctx.globalAlpha = dim < 1 ? 0.35 : 1;
      // Where one program became another.
      if (right - left > 3) {
        ctx.fillStyle = theme.css.panel;
        ctx.fillRect(x(start[ix]) - 0.5, y + NAME, 1, band);
      }
      const [from, to] = [data.execsFrom[ix], data.execsFrom[ix + 1]];
      const programs: [number, string][] = [];
      for (let e = from; e < to; e++) {
        const begin = x(execs.start[e]);
        if (begin - x(start[ix]) > 2 && begin > 0 && begin < width) {
          ctx.fillStyle = theme.css.ink;
          ctx.fillRect(begin - 0.5, y + NAME - 2, 1, band + 2);
        }
        programs.push([execs.start[e], data.string(execs.label[e])]);
      }
      // The name stands at the beginning, whatever the process was until its first exec.
      if (programs.length === 0) programs.push([start[ix], data.label(ix)]);
      else if (programs.length === 1) programs[0][0] = start[ix];
      for (let e = 0; e < programs.length; e++) {
        const begin = Math.max(0, x(programs[e][0]));
        const stop = Math.min(width, e + 1 < programs.length ? x(programs[e + 1][0]) : right);
        if (stop - begin < 24) continue;
        const text = failed && e + 1 === programs.length ? `✕ ${programs[e][1]} · ${data.exit(ix)}` : programs[e][1];
        ctx.fillStyle = failed ? theme.css.bad : theme.css.ink;
        ctx.fillText(fit(ctx, text, stop - begin - 6), begin + 2, y + NAME - 4);
      }
      if (failed && right >= 0 && right <= width) {
        ctx.fillStyle = theme.css.bad;
        ctx.fillRect(Math.max(left, right - 3), y + NAME - 2, 3, band + 4);
      }
      if (ix === state.sel) {
        ctx.strokeStyle = theme.css.accent;
        ctx.lineWidth = 2;
        ctx.strokeRect(left - 1, y + NAME - 2, Math.max(4, right - left + 2), band + 4);
      }
      ctx.globalAlpha = 1;
    }
    for (const [l, t] of this.threads) {
      const { comm, tid, start: begins, on_cpu } = data.doc.threads;
      ctx.fillStyle = theme.css.dim;
      ctx.fillText(fit(ctx, `${data.string(comm[t])} · tid ${tid[t]} · CPU ${time(on_cpu[t])}`, width - 20), Math.max(0, x(begins[t])) + 8, this.top(l) - top + NAME - 4);
    }
    if (state.wakeups && state.sel >= 0) this.drawWakes(frame);
  }

  /** A line below the states of who was on the path, and from one to the next. */
  private drawPath({ ctx, theme, state, x, top }: Frame) {
    ctx.fillStyle = theme.css.path;
    ctx.strokeStyle = theme.css.path;
    ctx.lineWidth = 1;
    ctx.globalAlpha = 0.7;
    ctx.beginPath();
    let before = -1;
    let link = -9;
    for (const step of this.path) {
      if (step.from > state.t1) break;
      const lane = this.lane[step.process];
      const from = before;
      before = lane;
      if (step.to < state.t0 || lane < 0) continue;
      const y = this.top(lane) - top + NAME + this.band + 1;
      const [a, b] = [x(Math.max(step.from, state.t0)), x(Math.min(step.to, state.t1))];
      ctx.fillRect(a, y, Math.max(0.6, b - a), 3);
      // Those too close together cannot be told apart.
      if (from >= 0 && from !== lane && step.from >= state.t0 && a - link > 4) {
        link = a;
        const px = Math.round(a) + 0.5;
        ctx.moveTo(px, this.top(from) - top + NAME + this.band + 1);
        ctx.lineTo(px, y + 2);
      }
    }
    ctx.stroke();
    ctx.globalAlpha = 1;
  }

  /** Who ended the waits of the selected process, and whose waits it ended. */
  private findWakes(sel: number): Wake[] {
    if (this.wakes.key === sel) return this.wakes.list;
    const { data } = this;
    const { first, end, by, kind } = data.pieces;
    const list: Wake[] = [];
    const waits = (at: number) => kind[at] >= 4 && kind[at] <= 8 && by[at] >= 3;
    const threads = data.processOf.length;
    for (let t = 0; t < threads; t++) {
      const own = data.processOf[t] === sel;
      for (let at = first[t]; at < first[t + 1]; at++) {
        if (!waits(at)) continue;
        const waker = data.processOf[by[at] - 3];
        if (waker === undefined || (own ? false : waker !== sel)) continue;
        list.push({ time: end[at], from: waker, to: data.processOf[t] });
      }
    }
    list.sort((a, b) => a.time - b.time);
    this.wakes = { key: sel, list };
    return list;
  }

  private drawWakes({ ctx, theme, state, x, top }: Frame) {
    let last = -9;
    let drawn = 0;
    for (const wake of this.findWakes(state.sel)) {
      if (wake.time < state.t0 || wake.time > state.t1 || wake.from === wake.to) continue;
      const [a, b] = [this.lane[wake.from], this.lane[wake.to]];
      const px = x(wake.time);
      // Closer ones cannot be told apart; zooming in shows them.
      if (a < 0 || b < 0 || px - last < 3 || drawn >= 400) continue;
      last = px;
      drawn++;
      const [ya, yb] = [this.top(a) - top + NAME + this.band / 2, this.top(b) - top + NAME + this.band / 2];
      const down = yb > ya ? 1 : -1;
      ctx.strokeStyle = ctx.fillStyle = wake.to === state.sel ? theme.css.accent : theme.css.ink;
      ctx.lineWidth = 1.2;
      ctx.beginPath();
      ctx.moveTo(px, ya);
      ctx.lineTo(px, yb);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(px, ya, 2, 0, 7);
      ctx.moveTo(px, yb);
      ctx.lineTo(px - 3.5, yb - 6 * down);
      ctx.lineTo(px + 3.5, yb - 6 * down);
      ctx.fill();
    }
  }

  private find(t: number, y: number): number {
    const l = Math.floor((y - 8) / this.pitch);
    const { start, end } = this.data.doc.processes;
    const slack = ((this.store.state.t1 - this.store.state.t0) / Math.max(1, this.element.clientWidth)) * 3;
    let best = -1;
    let distance = slack;
    for (const ix of this.lanes[l] ?? []) {
      const off = Math.max(start[ix] - t, t - end[ix], 0);
      if (off < distance || (off === 0 && best < 0)) [best, distance] = [ix, off];
      if (off === 0) break;
    }
    return best;
  }

  protected hover(event: PointerEvent, t: number, y: number) {
    const ix = this.find(t, y);
    if (ix < 0) return this.tip.hide();
    const { data } = this;
    const p = data.doc.processes;
    const lines: HTMLElement[] = [
      h("strong", {}, data.label(ix)),
      h("div", { class: "dim" }, `pid ${p.pid[ix]} · from ${at(p.start[ix])} · wall ${time(data.wall(ix))} · CPU ${time(p.on_cpu[ix])} · ${data.exit(ix)}`),
    ];
    for (let thread = data.threadsFrom[ix]; thread < Math.min(data.threadsFrom[ix + 1], data.threadsFrom[ix] + 4); thread++) {
      const piece = data.pieceAt(thread, t);
      if (piece >= 0) lines.push(h("div", {}, this.describe(thread, piece)));
    }
    lines.push(h("div", { class: "argv" }, clip(data.argv(ix))));
    this.tip.show(event, ...lines);
  }

  private describe(thread: number, piece: number): string {
    const { data } = this;
    const { kind, start, end, by, share, shares } = data.pieces;
    const { sel: _, ...rest } = this.store.state;
    const span = rest.t1 - rest.t0;
    const length = `${time(end[piece] - start[piece])} from ${at(start[piece], span)}`;
    if (share[piece] >= 0) {
      const parts = ["on CPU", "waiting for a CPU", "blocked", "asleep", "unknown"].map((name, s) => [name, shares[share[piece] + s]] as const);
      return `${length}: ${parts.filter(([, s]) => s > 0.004).map(([name, s]) => `${name} ${(s * 100).toFixed(0)} %`).join(", ")}`;
    }
    const name = KINDS[kind[piece]][0];
    const who = by[piece];
    if (kind[piece] === 1) return `${name}${who > 0 ? ` ${who - 1}` : ""}, ${length}`;
    if (kind[piece] === 0 || who === 0) return `${name}, ${length}`;
    const process = data.processOf[who - 3];
    const name_ = who === 1 ? "an interrupt" : who === 2 ? "a task that is not recorded" : process === undefined ? "?" : data.label(process);
    const verb = kind[piece] === 3 ? "lost the CPU to" : kind[piece] === 2 ? "woken by" : "ended by";
    return `${name}, ${length}, ${verb} ${clip(name_, 60)}${data.processOf[thread] === process ? " (itself)" : ""}`;
  }

  protected pick(t: number, y: number, twice: boolean) {
    const ix = this.find(t, y);
    this.store.set({ sel: ix });
    if (twice && ix >= 0) this.store.set({ root: ix });
  }

  reveal() {
    const lane = this.lane[this.store.state.sel];
    if (lane >= 0) this.scrollTo(this.top(lane), this.pitch);
  }

  /** The next or previous process in order of the tree. */
  step(by: number) {
    const { data, store } = this;
    let at = store.state.sel >= 0 ? data.place[store.state.sel] + by : 0;
    while (at >= 0 && at < data.n && !store.shown(data.order[at])) at += by;
    if (at >= 0 && at < data.n) {
      store.set({ sel: data.order[at] });
      this.scrollTo(this.top(this.lane[data.order[at]]), this.pitch);
    }
  }
}

/** The processes that take no lane if folded. */
function quiet(data: Context["data"]): Uint8Array {
  const { start, end, on_cpu, kthread, started_before, alive } = data.doc.processes;
  const out = new Uint8Array(data.n);
  for (let ix = 0; ix < data.n; ix++) {
    const wall = data.wall(ix);
    const children = data.children[ix];
    const idle = (on_cpu[ix] ?? 0) * 1000 < wall;
    if (children.length === 0) {
      if (idle && ((started_before[ix] && alive[ix]) || kthread[ix])) out[ix] = 2;
      continue;
    }
    // As a compiler's driver: its children one after the other, for nearly all of its time.
    if (children.length > 3 || data.parent[ix] < 0 || data.failed(ix) || (on_cpu[ix] ?? 0) * 5 > wall) continue;
    let covered = 0;
    let until = start[ix];
    let single = true;
    for (const child of [...children].sort((a, b) => start[a] - start[b])) {
      if (start[child] < until) single = false;
      covered += Math.max(0, Math.min(end[child], end[ix]) - start[child]);
      until = end[child];
    }
    if (single && until <= end[ix] && covered * 10 >= wall * 8) out[ix] = 1;
  }
  return out;
}

interface Wake {
  time: number;
  from: number;
  to: number;
}

interface Step {
  from: number;
  to: number;
  process: number;
}

/** The critical path by process: segments of the same one together. */
function steps(data: Context["data"]): Step[] {
  const { path } = data.doc;
  const all: Step[] = [];
  if (!path) return all;
  let t = path.from;
  path.thread.forEach((thread, at) => {
    const to = t + path.length[at];
    const process = data.processOf[thread];
    const last = all[all.length - 1];
    if (last && last.process === process && last.to === t) last.to = to;
    else all.push({ from: t, to, process });
    t = to;
  });
  return all;
}
