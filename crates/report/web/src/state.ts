// What is being looked at. One state for all views; the address keeps it (#…).

import type { Data } from "./data";
import { search, type Search } from "./search";
import { DOINGS, type Doing } from "./stacks";

const VIEWS = ["overview", "steps", "heatmap", "timeline", "tree", "table", "stacks"] as const;
export type View = (typeof VIEWS)[number];
/** Whether a view has a time axis of its own. */
export const isTimed = (view: View) => view === "timeline" || view === "heatmap";
/** The views of a recording. */
export function viewsOf(data: Data): View[] {
  return VIEWS.filter(
    (view) => (view !== "stacks" || data.stacks) && (view !== "steps" || data.doc.steps.from.length > 0),
  );
}
/** What rows, roots and frames stand for: `--by` of `tr analyze`. */
export const ROWS = ["process", "thread", "program", "step", "cgroup", "container"] as const;
export type Rows = (typeof ROWS)[number];
const METRICS = ["cpu", "wall", "wait"] as const;
export type Metric = (typeof METRICS)[number];
export const MEASURES = ["all", "on", "waiting", "blocked", "asleep"] as const;
export type Measure = (typeof MEASURES)[number];
/** The least wall times that steps are filtered by, ns. */
export const LEAST = [0, 1e6, 1e7, 1e8, 1e9, 1e10, 6e10];
const COLORS = ["state", "program", "step"] as const;
export type Color = (typeof COLORS)[number];

export interface State {
  view: View;
  /** The span of time that is shown, ns. */
  t0: number;
  t1: number;
  /** The selected process; -1: none. */
  sel: number;
  /** Only this process and its descendants; -1: all. */
  root: number;
  /** Only this cgroup and those below it; empty: all. */
  cgroup: string;
  rows: Rows;
  /** What the roots of stacks stand for. */
  roots: Rows;
  measure: Measure;
  metric: Metric;
  sort: string;
  descending: boolean;
  /** The column by which steps are sorted, and whether the largest comes first. */
  order: string;
  falling: boolean;
  /** Only steps of this kind, in words; empty: all. */
  kind: string;
  /** Only steps of at least this wall time, ns. */
  least: number;
  /** Only failed steps. */
  bad: boolean;
  /** Steps are drawn over time. */
  chart: boolean;
  /** What is searched for. */
  q: string;
  /** The chosen step of the critical path; -1: none. */
  step: number;
  /** The critical path is shown by program, not by step. */
  programs: boolean;
  /** The meaning of the timeline's colours. */
  color: Color;
  /** Parents that only wait, sleepers and repeated siblings take no lanes of their own. */
  fold: boolean;
  /** The lanes of the CPUs are drawn. */
  cpus: boolean;
  /** The lanes of network, disks and the machine are drawn. */
  resources: boolean;
  /** The sums of what is shown stand beside the timeline and the heatmap. */
  sums: boolean;
  /** The moment that a line marks in all lanes, in ns; -1: none. */
  at: number;
  /** A measured span, `from-to`, in ns since the start of the recording. */
  ruler: string;
  /** Notes: a line each, with the time in ns and the text. */
  notes: string;
  /** The pinned processes, with commas. */
  pins: string;
  /** Wake-ups of the selected process are drawn. */
  wakeups: boolean;
  /** The samples of stacks that are summed up, and of waits the reason; empty: all. */
  doing: Doing;
  reason: string;
  /** The stack whose frame is as wide as the picture; 0: all. */
  frame: number;
  /** The function whose callers and callees are shown; -1: none. */
  fn: number;
  /** The functions that stand out. */
  find: string;
}

/** Lower windows have less room for lanes above those of the processes, CSS pixels. */
export const LOW = 760;

/** The address changes no more often while something moves, ms. */
const PAUSE = 160;

type Listener = (state: State, changed: Set<keyof State>) => void;

/** Whether the shown time moves, as while a hand zooms or pans. */
export const isMoving = () => document.documentElement.dataset.moving !== undefined;

export class Store {
  readonly state: State;
  private initial: State;
  private listeners: Listener[] = [];
  private changed = new Set<keyof State>();
  private timer = 0;
  private written = "";
  private last = -1e9;
  private wrote = -1e9;
  private later = 0;
  /** The search; null: none. */
  search: Search | null = null;
  /** Whether each process matches the search; null: no search. */
  matches: Uint8Array | null = null;
  matchCount = 0;
  badQuery = false;
  /** Processes in the scope: root and cgroup. */
  scope: Uint8Array;
  scopeCount = 0;

  constructor(private data: Data) {
    const { from, to } = data.doc.trace;
    this.initial = {
      view: "overview",
      t0: from,
      t1: Math.max(to, from + 1000),
      sel: -1,
      root: -1,
      cgroup: "",
      rows: "process",
      // Frames of the loader and of libraries say little by themselves.
      roots: "program",
      measure: "all",
      metric: "cpu",
      sort: "on_cpu",
      descending: true,
      order: "wall",
      falling: true,
      kind: "",
      least: 0,
      bad: false,
      chart: false,
      q: "",
      step: -1,
      programs: data.doc.path?.by_step !== true,
      color: "state",
      fold: true,
      cpus: false,
      // A low window is for the lanes of the processes.
      resources: innerHeight >= LOW,
      sums: true,
      at: -1,
      ruler: "",
      notes: "",
      pins: "",
      wakeups: false,
      doing: data.stacks && !data.stacks.runs ? "off" : "on",
      reason: "",
      frame: 0,
      fn: -1,
      find: "",
    };
    this.state = { ...this.initial };
    this.scope = new Uint8Array(data.n);
    this.read();
    this.derive(new Set(["root", "q"]));
    addEventListener("hashchange", () => {
      if (location.hash !== this.written) {
        const before = { ...this.state };
        this.read();
        const keys = (Object.keys(before) as (keyof State)[]).filter((key) => before[key] !== this.state[key]);
        keys.forEach((key) => this.changed.add(key));
        this.flush();
      }
    });
  }

  get whole(): [number, number] {
    return [this.initial.t0, this.initial.t1];
  }
  get zoomed(): boolean {
    return this.state.t0 > this.initial.t0 || this.state.t1 < this.initial.t1;
  }

  listen(listener: Listener) {
    this.listeners.push(listener);
  }

  set(change: Partial<State>) {
    for (const key of Object.keys(change) as (keyof State)[]) {
      const value = change[key];
      if (value !== undefined && value !== this.state[key]) {
        (this.state as unknown as Record<string, unknown>)[key] = value;
        this.changed.add(key);
      }
    }
    if (this.changed.size > 0 && this.timer === 0) {
      this.timer = requestAnimationFrame(() => this.flush());
    }
  }

  /** Shows this span; never more than there is, never less than 1 µs. */
  zoom(t0: number, t1: number) {
    const [from, to] = this.whole;
    const span = Math.min(to - from, Math.max(1000, t1 - t0));
    const begin = Math.min(Math.max(from, (t0 + t1 - span) / 2), to - span);
    this.set({ t0: begin, t1: begin + span });
  }
  zoomBy(factor: number, around = (this.state.t0 + this.state.t1) / 2) {
    const { t0, t1 } = this.state;
    const [from, to] = this.whole;
    const span = Math.min(to - from, Math.max(1000, (t1 - t0) * factor));
    const begin = around - ((around - t0) * span) / (t1 - t0);
    this.zoom(begin, begin + span);
  }
  pan(share: number) {
    const { t0, t1 } = this.state;
    const by = (t1 - t0) * share;
    this.zoom(t0 + by, t1 + by);
  }

  /** Marks a moment, in a view that has a time axis. */
  goTo(t: number) {
    const { t0, t1, view, chart } = this.state;
    const [from, to] = this.whole;
    const moment = Math.round(Math.min(to, Math.max(from, t)));
    const half = (t1 - t0) / 2;
    if (moment < t0 || moment > t1) this.zoom(moment - half, moment + half);
    this.set({ at: moment, view: isTimed(view) || (view === "steps" && chart) ? view : "timeline" });
  }

  /** Moves the marked moment by a share of what is shown, from the middle if none is in sight. */
  moveLine(share: number) {
    const { t0, t1, at } = this.state;
    const seen = at >= t0 && at <= t1;
    this.goTo(seen ? at + (t1 - t0) * share : (t0 + t1) / 2);
  }

  /** Whether a process is shown by the search. */
  shown(ix: number): boolean {
    return this.scope[ix] === 1 && (this.matches === null || this.matches[ix] === 1);
  }

  private flush() {
    this.timer = 0;
    const changed = this.changed;
    this.changed = new Set();
    if (changed.size === 0) return;
    this.derive(changed);
    this.write(changed);
    for (const listener of this.listeners) listener(this.state, changed);
  }

  private derive(changed: Set<keyof State>) {
    const { data, state } = this;
    if (changed.has("root") || changed.has("cgroup")) {
      this.scopeCount = 0;
      for (let ix = 0; ix < data.n; ix++) {
        const path = data.cgroup(ix);
        const below =
          state.cgroup === "" || path === state.cgroup || path.startsWith(state.cgroup.replace(/\/$/, "") + "/");
        const inside = below && (state.root < 0 || data.within(ix, state.root));
        this.scope[ix] = inside ? 1 : 0;
        this.scopeCount += this.scope[ix];
      }
    }
    if (changed.has("q")) {
      const found = search(data, state.q.trim());
      this.badQuery = found === "invalid";
      this.search = found === "invalid" ? null : found;
      const matches = this.search?.process;
      this.matches = matches ? Uint8Array.from({ length: data.n }, (_, ix) => (matches(ix) ? 1 : 0)) : null;
    }
    this.matchCount = 0;
    for (let ix = 0; ix < data.n; ix++) if (this.shown(ix)) this.matchCount++;
  }

  /** The address with other values than now. */
  address(change: Partial<State>): string {
    return this.encode({ ...this.state, ...change });
  }

  /** Whether anything but all of the recording is shown. */
  get narrowed(): boolean {
    return this.zoomed || this.state.root >= 0 || this.state.cgroup !== "" || this.matches !== null;
  }

  private encode(s: State): string {
    const parts: string[] = [];
    const [from, to] = this.whole;
    for (const key of Object.keys(s) as (keyof State)[]) {
      if (key === "t1" || (key !== "t0" && s[key] === this.initial[key])) continue;
      if (key === "t0") {
        if (s.t0 > from || s.t1 < to) parts.push(`t=${Math.round(s.t0 - from)}-${Math.round(s.t1 - from)}`);
      } else {
        parts.push(`${key}=${encodeURIComponent(typeof s[key] === "boolean" ? Number(s[key]) : s[key])}`);
      }
    }
    return parts.length > 0 ? `#${parts.join("&")}` : "";
  }

  private write(changed: Set<keyof State>) {
    const now = performance.now();
    const same =
      changed.size > 0 &&
      [...changed].every(
        (key) => ["t0", "t1", "q", "find", "at"].includes(key) || (key === "ruler" && this.state.ruler !== ""),
      );
    const { dataset } = document.documentElement;
    clearTimeout(this.later);
    // Browsers take no more than 200 changes in 30 s, and each costs milliseconds.
    if (same && now - this.wrote < PAUSE) {
      this.later = setTimeout(() => this.write(changed), PAUSE);
      dataset.moving = "1";
      return;
    }
    delete dataset.moving;
    this.wrote = now;
    this.written = this.encode(this.state);
    // An entry of the history for each view, but not for every step of a drag or letter of a search.
    const entry = this.listeners.length > 0 && this.written !== location.hash && !(same && now - this.last < 800);
    if (same) this.last = now;
    const address = this.written || location.pathname + location.search;
    if (entry) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    this.written = location.hash;
  }

  private read() {
    const s: State = { ...this.initial };
    const words = new Map<string, readonly string[]>([
      ["view", viewsOf(this.data)],
      ["rows", ROWS],
      ["roots", ROWS],
      ["measure", MEASURES],
      ["metric", METRICS],
      ["color", COLORS],
      ["doing", DOINGS],
    ]);
    for (const part of location.hash.slice(1).split("&")) {
      const at = part.indexOf("=");
      if (at < 0) continue;
      const key = part.slice(0, at);
      let value: string;
      try {
        value = decodeURIComponent(part.slice(at + 1));
      } catch {
        continue;
      }
      const below = (length: number, none: number, text = value) =>
        /^\d+$/.test(text) && Number(text) < length ? Number(text) : none;
      // Of all others: one of some words, a text, or yes and no.
      const type = typeof this.initial[key as keyof State];
      if (key === "t") {
        const [a, b] = value.split("-").map(Number);
        const [from, to] = this.whole;
        if (a >= 0 && b > a) [s.t0, s.t1] = [Math.min(from + a, to - 1000), Math.min(from + b, to)];
      } else if (key === "sel") s.sel = below(this.data.n, -1);
      else if (key === "root") s.root = below(this.data.n, -1);
      else if (key === "pins")
        s.pins = value
          .split(",")
          .filter((ix) => below(this.data.n, -1, ix) >= 0)
          .join();
      else if (key === "at") s.at = below(Infinity, -1);
      else if (key === "step") s.step = below(Infinity, -1);
      else if (key === "least") s.least = LEAST.includes(Number(value)) ? Number(value) : 0;
      else if (key === "frame") s.frame = below(this.data.stacks?.fn.length ?? 0, 0);
      else if (key === "fn") s.fn = below(this.data.stacks?.names.length ?? 0, -1);
      else if (type === "boolean") Object.assign(s, { [key]: value === "1" });
      else if (words.get(key)?.includes(value) ?? type === "string") Object.assign(s, { [key]: value });
    }
    Object.assign(this.state, s);
    this.written = location.hash;
  }
}
