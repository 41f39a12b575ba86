// The page's data: unpacked, and indexed by process, thread and piece of time.

import type * as Packed from "./doc";
import type { Name } from "./names";
import { readStacks, type Stacks } from "./stacks";
import { time } from "./units";

/** The five things a thread can be doing, in the order in which they are drawn. */
export const [ON, WAIT, BLOCKED, ASLEEP, UNKNOWN] = [0, 1, 2, 3, 4];
/** Their names, from the data. */
export const STATES: string[] = [];
/** The word for sleep where a recording, as one by ptrace, does not know it from being blocked. */
const SLEEP_OR_BLOCKED = "sleep or blocked";
/** Of each kind of piece its name, its state and, for storage, its part (`KINDS` in segments.rs). From the data. */
export const KINDS: Doc["kinds"] = [];

/** The kind of a time of which nothing is known. */
export const NOTHING = 0;

/** Whether sleep is not known from being blocked, as in a recording by ptrace: it has totals and no scheduling events. */
export const knowsNoSleep = ({ totals }: { totals: Packed.Totals }) => (totals.asleep_or_blocked ?? null) !== null;

/** Whether a kind of piece is a wait whose end has a waker. */
export function waits(kind: number): boolean {
  const state = KINDS[kind]?.[1];
  return state === ASLEEP || state === BLOCKED;
}
/** Whether a kind of piece is a time on a CPU. */
export const runs = (kind: number) => KINDS[kind]?.[1] === ON;

/** Processes without a step, and without a container (query.rs). */
export const NO_STEP = "no step";
const NO_CONTAINER = "no container";

/** The times of a process or a thread; the views take an unknown one for 0. */
type TimeNames = "on_cpu" | "run_queue" | "sleep" | "blocked" | "unknown";
type WithTimes<T> = Omit<T, TimeNames> & Record<TimeNames, number[]>;

export type Failure = Packed.FailureRow;

/** What a part of the path went to, ns, in how many stays, and the state. */
export type PathShare = Packed.Path["shares"][number];

/** The document with what the file leaves out. */
export type Doc = Omit<Packed.Document, "processes" | "threads" | "execs" | "steps"> & {
  processes: WithTimes<Omit<Packed.Processes, "wall" | "below_on_cpu" | "alone">> & {
    end: number[];
    tree_on_cpu: number[];
  };
  threads: WithTimes<Packed.Threads>;
  execs: Omit<Packed.Execs, "on_cpu"> & { on_cpu: number[] };
  /** How many steps that hold no others ran at once while each did. */
  steps: Packed.Steps & { at_once: number[] };
};

/** The pieces of all threads: those of thread t are first[t] .. first[t + 1]. */
interface Pieces {
  first: Uint32Array;
  /** When each begins, ns; it ends where the next one begins, or with its thread. */
  start: Float64Array;
  end: Float64Array;
  kind: Uint8Array;
  /** Of a mixed one: where its shares are. */
  share: Int32Array;
  /** Five a mixed piece, each 0 to 1. */
  shares: Float32Array;
  /** On a CPU: its number plus 1. Of a wait, who ended it: see the Rust side. */
  by: Int32Array;
}

export class Reader {
  constructor(
    private bytes: Uint8Array,
    private at: number,
  ) {}
  varint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
  }
  take(n: number): Uint8Array {
    this.at += n;
    return this.bytes.subarray(this.at - n, this.at);
  }
}

async function unpack(text: string): Promise<Uint8Array> {
  const raw = atob(text.trim());
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The first number from `lo` on of which `is` holds, as of all after it; `hi`: of none below that. */
export function first(lo: number, hi: number, is: (at: number) => boolean): number {
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (is(mid)) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

/** Everything the views ask for. */
export class Data {
  readonly n: number;
  /** The first thread and the first program of each process, and one after. */
  readonly threadsFrom: Uint32Array;
  readonly execsFrom: Uint32Array;
  /** Each thread's process. */
  readonly processOf: Uint32Array;
  /** -1: none. A parent never stands below its child. */
  readonly parent: Int32Array;
  readonly children: number[][];
  readonly roots: number[] = [];
  /** The processes in order of the tree, parents first; how deep; where each subtree ends. */
  readonly order: Uint32Array;
  readonly place: Uint32Array;
  readonly depth: Uint32Array;
  readonly subtreeEnd: Uint32Array;
  private texts: string[] = [];
  private calm: Set<number>;
  private led: Set<number>;
  private stateOf: Uint8Array;
  private peaks: Float64Array;
  private cpuList: number[] | null = null;

  constructor(
    readonly doc: Doc,
    readonly pieces: Pieces,
    readonly stacks: Stacks | null,
  ) {
    const p = doc.processes;
    this.n = p.pid.length;
    this.threadsFrom = sums(p.threads);
    this.execsFrom = sums(p.execs);
    this.processOf = new Uint32Array(doc.threads.tid.length);
    for (let ix = 0; ix < this.n; ix++) this.processOf.fill(ix, this.threadsFrom[ix], this.threadsFrom[ix + 1]);
    this.parent = Int32Array.from(p.parent, (parent) => parent ?? -1);
    this.children = Array.from({ length: this.n }, () => []);
    this.order = new Uint32Array(this.n);
    this.place = new Uint32Array(this.n);
    this.depth = new Uint32Array(this.n);
    this.subtreeEnd = new Uint32Array(this.n);
    this.peaks = new Float64Array(this.n);
    doc.steps.at_once = atOnce(doc.steps);
    this.calm = new Set(doc.failures.calm);
    this.led = new Set(doc.failures.led);
    this.stateOf = Uint8Array.from(doc.kinds, ([, state]) => state);
    this.plant();
  }

  /** Orders the tree. What hangs on nothing, or in a circle, is a root. */
  private plant() {
    for (let ix = 0; ix < this.n; ix++) {
      if (this.parent[ix] >= 0) this.children[this.parent[ix]].push(ix);
    }
    const met = new Uint8Array(this.n);
    let next = 0;
    const walk = (root: number) => {
      this.parent[root] = -1;
      this.roots.push(root);
      const stack = [root];
      while (stack.length > 0) {
        const ix = stack.pop()!;
        if (met[ix]) continue;
        met[ix] = 1;
        this.place[ix] = next;
        this.order[next++] = ix;
        this.depth[ix] = this.parent[ix] < 0 ? 0 : this.depth[this.parent[ix]] + 1;
        const children = this.children[ix].filter((child) => !met[child]);
        this.children[ix] = children;
        for (let at = children.length - 1; at >= 0; at--) stack.push(children[at]);
      }
    };
    for (let ix = 0; ix < this.n; ix++) if (this.parent[ix] < 0) walk(ix);
    for (let ix = 0; ix < this.n; ix++) if (!met[ix]) walk(ix);
    for (let at = this.n - 1; at >= 0; at--) {
      const ix = this.order[at];
      this.subtreeEnd[ix] = Math.max(this.subtreeEnd[ix], at + 1);
      const parent = this.parent[ix];
      if (parent >= 0) this.subtreeEnd[parent] = Math.max(this.subtreeEnd[parent], this.subtreeEnd[ix]);
    }
  }

  /** The path's name within a sentence. */
  get pathName(): string {
    return this.doc.path_title.toLowerCase();
  }
  string(ix: number | null): string {
    return ix === null ? "" : (this.doc.strings[ix] ?? "");
  }
  label(ix: number): string {
    return this.string(this.doc.processes.label[ix]);
  }
  /** The label with the brief name, for where it may be cut. */
  labelName(ix: number): Name {
    return { text: this.label(ix), brief: this.string(this.doc.processes.brief[ix]) };
  }
  program(ix: number): string {
    return this.string(this.doc.processes.program[ix]);
  }
  argv(ix: number): string {
    return this.string(this.doc.processes.argv[ix]);
  }
  cgroup(ix: number): string {
    const cgroup = this.doc.processes.cgroup[ix];
    return cgroup === null ? "unknown" : this.string(cgroup);
  }
  /** The group that a process is in. */
  group(by: string, ix: number): string {
    const { step, container } = this.doc.processes;
    if (by === "program") return this.program(ix);
    if (by === "cgroup") return this.cgroup(ix);
    if (by === "container") return this.string(container[ix]) || NO_CONTAINER;
    return step[ix] === null ? NO_STEP : this.stepName(step[ix]);
  }
  wall(ix: number): number {
    return this.doc.processes.end[ix] - this.doc.processes.start[ix];
  }
  failed(ix: number): boolean {
    return (this.doc.processes.status[ix] ?? 0) !== 0;
  }
  /** It failed by itself, and that counts: it answers no question, and no other failure led to its own. */
  bad(ix: number): boolean {
    return this.failed(ix) && !this.calm.has(ix) && !this.led.has(ix);
  }
  /** Before the name of one that failed: the arrow of those that another failure led to. */
  sign(ix: number): string {
    return this.led.has(ix) ? "→" : "✕";
  }
  /** How it ended, in words. */
  exit(ix: number): string {
    const p = this.doc.processes;
    if (p.exit[ix] !== null) return this.string(p.exit[ix]);
    return p.alive[ix] ? "alive at the end" : "end not seen";
  }
  stepName(row: number): string {
    return this.string(this.doc.steps.name[row]);
  }
  /** Its name, after that of the one around it where others have the same: "syn › codegen". */
  stepTitle(row: number): string {
    return this.string(this.doc.steps.title[row] ?? this.doc.steps.name[row]);
  }
  /** The brief name of a step; empty: none. */
  stepBrief(row: number): string {
    return this.string(this.doc.steps.brief[row]);
  }
  stepWall(row: number): number {
    return this.doc.steps.to[row] - this.doc.steps.from[row];
  }
  /** The error of its place in time, which another tool's report gives: "± 39 ms"; empty: none. */
  stepError(row: number): string {
    const error = this.doc.steps.error[row];
    return error === null ? "" : `± ${time(error)}`;
  }
  /** How it ended, in words; empty: as it should, as far as is known. */
  stepEnd(row: number): string {
    return this.string(this.doc.steps.end[row]);
  }
  /** The step and those around it, from the inside. */
  stepsAround(row: number | null): number[] {
    const all = [];
    // A parent comes before what is inside it.
    for (let at = row; at !== null && (all.length === 0 || at < all[all.length - 1]); at = this.doc.steps.parent[at])
      all.push(at);
    return all;
  }
  /**
   * The steps whose name passes the test, with those inside them; and for each process, whether it is in one or is one.
   * `none` finds the processes that are in no step.
   */
  inSteps(test: (name: string) => boolean, none: boolean): { rows: boolean[]; inside: Uint8Array } {
    const { steps, processes } = this.doc;
    const rows = steps.name.map((_, row) => test(this.stepName(row)));
    steps.parent.forEach((parent, row) => (rows[row] ||= parent !== null && parent < row && rows[parent]));
    const inside = Uint8Array.from(processes.step, (row) => ((row === null ? none : rows[row]) ? 1 : 0));
    steps.process.forEach((ix, row) => {
      if (ix !== null && rows[row] && ix < this.n) inside[ix] = 1;
    });
    return { rows, inside };
  }
  within(ix: number, root: number): boolean {
    return this.place[ix] >= this.place[root] && this.place[ix] < this.subtreeEnd[root];
  }
  ancestors(ix: number): number[] {
    const all = [];
    for (let at = ix; at >= 0; at = this.parent[at]) all.unshift(at);
    return all;
  }
  /** What a search looks in. */
  text(ix: number): string {
    const p = this.doc.processes;
    return (this.texts[ix] ??= `${p.pid[ix]} ${this.string(p.comm[ix])} ${this.label(ix)}\n${this.argv(ix)}`);
  }

  /** Adds to `sums[state * n + column]` how long (ns × weight) a thread was in each state in each column. */
  integrate(thread: number, t0: number, dt: number, n: number, sums: Float64Array, weight = 1) {
    const { start, end, kind, share, shares } = this.pieces;
    const last = this.pieces.first[thread + 1];
    const t1 = t0 + dt * n;
    for (let at = first(this.pieces.first[thread], last, (at) => end[at] > t0); at < last; at++) {
      const begin = start[at];
      if (begin >= t1) break;
      const from = begin < t0 ? t0 : begin;
      const to = end[at] > t1 ? t1 : end[at];
      if (to <= from) continue;
      let column = ((from - t0) / dt) | 0;
      const lastColumn = Math.min(n - 1, ((to - t0) / dt) | 0);
      const mixed = share[at];
      for (; column <= lastColumn; column++) {
        const left = t0 + column * dt;
        const overlap = (Math.min(to, left + dt) - Math.max(from, left)) * weight;
        if (overlap <= 0) continue;
        if (mixed < 0) sums[this.stateOf[kind[at]] * n + column] += overlap;
        else for (let s = 0; s < 5; s++) sums[s * n + column] += overlap * shares[mixed + s];
      }
    }
  }

  /** How many threads of a process were busy at once at most, roughly; at least 1. */
  peak(ix: number): number {
    if (this.peaks[ix] > 0) return this.peaks[ix];
    const [from, to] = [this.threadsFrom[ix], this.threadsFrom[ix + 1]];
    let peak = 1;
    if (to - from > 1) {
      const n = 128;
      const dt = Math.max(1, this.wall(ix) / n);
      const sums = new Float64Array(5 * n);
      for (let t = from; t < to; t++) this.integrate(t, this.doc.processes.start[ix], dt, n, sums);
      for (let c = 0; c < n; c++) peak = Math.max(peak, (sums[c] + sums[n + c] + sums[2 * n + c]) / dt);
    }
    return (this.peaks[ix] = peak);
  }

  /** Whether pieces have their CPUs: none is a merged one. */
  get knowsCpus(): boolean {
    const { pieces, grain } = this.doc.segments;
    return pieces > 0 && grain === 0;
  }

  /** The numbers of the CPUs that ran a recorded task. */
  get cpus(): number[] {
    if (this.cpuList) return this.cpuList;
    const { kind, by } = this.pieces;
    const seen = new Set<number>();
    for (let piece = 0; piece < kind.length; piece++) if (by[piece] > 0 && runs(kind[piece])) seen.add(by[piece] - 1);
    return (this.cpuList = [...seen].sort((a, b) => a - b));
  }

  /** The piece of a thread in which a time lies; -1: none. */
  pieceAt(thread: number, t: number): number {
    const { start, end } = this.pieces;
    const last = this.pieces.first[thread + 1];
    const at = first(this.pieces.first[thread], last, (at) => end[at] > t);
    return at < last && start[at] <= t ? at : -1;
  }
}

/** For each step how many that hold no others ran at once while it did, on average. */
function atOnce({ from, to, parent }: Doc["steps"]): number[] {
  const holds = new Set(parent);
  const events: [t: number, by: number][] = [];
  from.forEach((begin, row) => {
    if (to[row] > begin && !holds.has(row)) events.push([begin, 1], [to[row], -1]);
  });
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  // The sum of those under way, up to each event.
  const times = Float64Array.from(events, ([t]) => t);
  const sums = new Float64Array(events.length);
  const running = new Int32Array(events.length);
  let now = 0;
  events.forEach(([t, by], n) => {
    sums[n] = n > 0 ? sums[n - 1] + now * (t - times[n - 1]) : 0;
    running[n] = now += by;
  });
  const until = (t: number): number => {
    const last = first(0, times.length, (n) => times[n] > t) - 1;
    return last < 0 ? 0 : sums[last] + running[last] * (t - times[last]);
  };
  // One that holds others is at work itself where none of them is.
  return from.map((begin, row) => Math.max(1, (until(to[row]) - until(begin)) / Math.max(1, to[row] - begin)));
}

/** The numbers of which each known one is the difference from the one before it. */
function running<T extends number | null>(differences: T[]): T[] {
  let sum = 0;
  return differences.map((since) => (since === null ? since : ((sum += since) as T)));
}

function sums(counts: number[]): Uint32Array {
  const out = new Uint32Array(counts.length + 1);
  counts.forEach((count, ix) => (out[ix + 1] = out[ix] + count));
  return out;
}

/**
 * Restores what the file leaves out: ends, pids of known parents, and the threads that are as their processes. Pids, starts
 * and texts of processes are differences; a program's end and texts are those of its process and a difference.
 */
function restore(file: Packed.Document): Doc {
  const doc = file as Packed.Document & Doc;
  const { processes: p, execs: x, threads: t } = doc;
  p.pid = running(p.pid);
  p.ppid = p.ppid.map((ppid, ix) => ppid ?? (p.parent[ix] === null ? null : p.pid[p.parent[ix]]));
  p.start = running(p.start);
  p.label = running(p.label);
  p.brief = running(p.brief);
  p.argv = running(p.argv);
  p.end = p.start.map((start, ix) => start + p.wall[ix]);
  p.tree_on_cpu = p.below_on_cpu.map((below, ix) => (below === null ? null : below + (p.on_cpu[ix] ?? 0))) as number[];
  let exec = 0;
  p.pid.forEach((_, ix) => {
    for (let n = 0; n < p.execs[ix]; n++, exec++) {
      x.start[exec] += p.start[ix];
      x.end[exec] = p.end[ix] - x.end[exec];
      x.label[exec] += p.label[ix];
      const brief = x.brief[exec];
      if (brief !== null) x.brief[exec] = brief + (p.brief[ix] ?? 0);
      const argv = x.argv[exec];
      if (argv !== null) x.argv[exec] = argv + (p.argv[ix] ?? 0);
    }
  });
  // Column by column: one loop over all of them takes three times as long.
  const threads = Object.fromEntries(
    (Object.keys(t) as (keyof Doc["threads"])[]).map((key) => {
      const own: (number | null)[] = key === "tid" ? p.pid : p[key];
      const known: (number | null)[] = t[key];
      const all: (number | null)[] = [];
      let thread = 0;
      for (let ix = 0; ix < own.length; ix++) {
        if (p.alone[ix]) for (let n = 0; n < p.threads[ix]; n++) all.push(own[ix]);
        else for (let n = 0; n < p.threads[ix]; n++) all.push(known[thread++]);
      }
      return [key, all];
    }),
  ) as Doc["threads"];
  return { ...doc, threads };
}

/** Reads the data out of the page. */
export async function load(element: HTMLElement): Promise<Data> {
  const bytes = await unpack(element.textContent ?? "");
  element.textContent = "";
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const doc = restore(JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Packed.Document);
  const read = new Reader(bytes, 4 + length);
  STATES.push(...doc.states);
  if (knowsNoSleep(doc)) STATES[ASLEEP] = SLEEP_OR_BLOCKED;
  KINDS.push(...doc.kinds);
  const { pieces: n, mixed, unit, mixed_kind } = doc.segments;
  const threads = n > 0 ? doc.threads.tid.length : 0;
  const first = new Uint32Array(doc.threads.tid.length + 1);
  for (let t = 0; t < threads; t++) first[t + 1] = first[t] + read.varint();
  const kind = read.take(n).slice();
  const start = new Float64Array(n);
  const end = new Float64Array(n);
  for (let t = 0; t < threads; t++) {
    let units = 0;
    const last = first[t + 1] - 1;
    for (let at = first[t]; at <= last; at++) {
      start[at] = doc.threads.start[t] + units * unit;
      // The last one ends with its thread.
      end[at] = at === last ? doc.threads.end[t] : doc.threads.start[t] + (units += read.varint()) * unit;
    }
  }
  const raw = read.take(mixed * 4);
  const shares = new Float32Array(mixed * 5);
  for (let m = 0; m < mixed; m++) {
    let rest = 255;
    for (let s = 0; s < 4; s++) {
      rest -= raw[m * 4 + s];
      shares[m * 5 + s] = raw[m * 4 + s] / 255;
    }
    shares[m * 5 + UNKNOWN] = rest / 255;
  }
  const share = new Int32Array(n).fill(-1);
  const by = new Int32Array(n);
  let next = 0;
  for (let at = 0; at < n; at++) {
    if (kind[at] === mixed_kind) share[at] = 5 * next++;
    else by[at] = read.varint();
  }
  return new Data(doc, { first, start, end, kind, share, shares, by }, readStacks(doc, read));
}
