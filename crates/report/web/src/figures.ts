// The times of each process in the shown range, and their sums.

import { BLOCKED, ASLEEP, NOTHING, ON, UNKNOWN, WAIT, KINDS, runs, type Data, type PathShare } from "./data";

/** So many pieces are summed up only when the shown time has come to rest. */
export const LARGE = 50_000;

/** The part of a recording that figures are of: what the store shows, or less. */
export interface Part {
  readonly state: { t0: number; t1: number };
  /** Not the whole time. */
  readonly zoomed: boolean;
  shown(ix: number): boolean;
}

/** The times of all processes in a range, by state; NaN: not known. */
export interface Figures {
  times: Float64Array[];
  /** The wall time in the range. */
  wall: Float64Array;
  /** No figure is made from pieces that hold several states. */
  exact: boolean;
}

/** Sums over the shown processes in the shown range. */
export interface Sums {
  /** By state, ns; null: not known of any process. */
  times: (number | null)[];
  /** By state: not known of some process, so that the sum is a lower bound. */
  least: boolean[];
  processes: number;
  threads: number;
  execs: number;
}

let kept: { key: string; figures: Figures } | null = null;

/** The figures in the range that is shown: of the whole recording those of the analysis. */
export function figures(data: Data, part: Part): Figures {
  const { t0, t1 } = part.state;
  const key = part.zoomed ? `${t0} ${t1}` : "";
  if (kept?.key === key) return kept.figures;
  const figures = part.zoomed ? between(data, t0, t1) : whole(data);
  kept = { key, figures };
  return figures;
}

function whole(data: Data): Figures {
  const p = data.doc.processes;
  const known = (values: (number | null)[]) => {
    const out = new Float64Array(values.length);
    for (let ix = 0; ix < out.length; ix++) out[ix] = values[ix] ?? NaN;
    return out;
  };
  return {
    times: [p.on_cpu, p.run_queue, p.blocked, p.sleep, p.unknown].map(known),
    wall: known(p.end.map((end, ix) => end - p.start[ix])),
    exact: true,
  };
}

function between(data: Data, t0: number, t1: number): Figures {
  const times = [ON, WAIT, BLOCKED, ASLEEP, UNKNOWN].map(() => new Float64Array(data.n));
  const wall = new Float64Array(data.n);
  const { start, end } = data.doc.processes;
  const sums = new Float64Array(5);
  for (let ix = 0; ix < data.n; ix++) {
    wall[ix] = Math.max(0, Math.min(end[ix], t1) - Math.max(start[ix], t0));
    sums.fill(0);
    for (let t = data.threadsFrom[ix]; t < data.threadsFrom[ix + 1]; t++) data.integrate(t, t0, t1 - t0, 1, sums);
    // Without events, pieces do not tell what a thread did.
    const nothing = sums[4] > 0 && sums[0] + sums[1] + sums[2] + sums[3] === 0;
    for (let s = 0; s < 5; s++) times[s][ix] = nothing && s < 4 ? NaN : sums[s];
  }
  return { times, wall, exact: data.doc.segments.grain === 0 };
}

/** Whether a process lives in the range that is shown. */
export function lives(data: Data, part: Part, ix: number): boolean {
  const { start, end } = data.doc.processes;
  return !part.zoomed || (start[ix] < part.state.t1 && end[ix] > part.state.t0);
}

/** The shown processes that live in the range. */
export function living(data: Data, part: Part): number[] {
  const all: number[] = [];
  for (let ix = 0; ix < data.n; ix++) if (part.shown(ix) && lives(data, part, ix)) all.push(ix);
  return all;
}

/** The `n` items with the largest values, the largest first, of equal ones the first: to sort all takes longer. */
export function largest(items: number[], value: (item: number) => number, n: number): number[] {
  const top: { item: number; value: number }[] = [];
  for (const item of items) {
    const own = value(item);
    let at = top.length;
    while (at > 0 && top[at - 1].value < own) at--;
    if (at >= n) continue;
    top.splice(at, 0, { item, value: own });
    if (top.length > n) top.pop();
  }
  return top.map(({ item }) => item);
}

/** The sums over the shown processes. */
export function sums(data: Data, part: Part): Sums {
  const { times } = figures(data, part);
  const out: Sums = {
    times: [0, 0, 0, 0, 0].map(() => null),
    least: [0, 0, 0, 0, 0].map(() => false),
    processes: 0,
    threads: 0,
    execs: 0,
  };
  const { execs, threads } = data.doc;
  const { t0, t1 } = part.state;
  const inside = (from: number, to: number) => !part.zoomed || (from < t1 && to > t0);
  for (const ix of living(data, part)) {
    out.processes++;
    for (let t = data.threadsFrom[ix]; t < data.threadsFrom[ix + 1]; t++)
      if (inside(threads.start[t], threads.end[t])) out.threads++;
    for (let e = data.execsFrom[ix]; e < data.execsFrom[ix + 1]; e++)
      if (!part.zoomed || (execs.start[e] >= t0 && execs.start[e] < t1)) out.execs++;
    times.forEach((of, s) => {
      if (Number.isNaN(of[ix])) out.least[s] = true;
      else out.times[s] = (out.times[s] ?? 0) + of[ix];
    });
  }
  // Nothing matches: nothing is no time.
  if (out.processes === 0) out.times.fill(0);
  return out;
}

/** Calls `visit` with each piece of the critical path in a part: its number, and its time there. */
function piecesInside(data: Data, part: Part, visit: (n: number, ns: number) => void) {
  const { t0, t1 } = part.state;
  const { path } = data.doc;
  let t = path?.from ?? 0;
  path?.thread.forEach((thread, n) => {
    const to = t + path.length[n];
    const ns = Math.min(to, t1) - Math.max(t, t0);
    t = to;
    if (ns > 0 && part.shown(data.processOf[thread])) visit(n, ns);
  });
}

/** The critical path by step in a part: the owner's place, its times by state, the longest first. */
export function ownersInside(data: Data, part: Part): [owner: number, times: number[]][] {
  const { path } = data.doc;
  const by = new Map<number, number[]>();
  if (!path) return [];
  piecesInside(data, part, (n, ns) => {
    let times = by.get(path.owner[n]);
    if (!times) by.set(path.owner[n], (times = [0, 0, 0, 0, 0]));
    times[path.shares[path.share[n]][3]] += ns;
  });
  const sum = (times: number[]) => times.reduce((a, b) => a + b, 0);
  return [...by].sort((a, b) => sum(b[1]) - sum(a[1]));
}

/** The critical path in a part, the longest first. */
export function pathInside(data: Data, part: Part): PathShare[] {
  const { path } = data.doc;
  const by = new Map<number, PathShare>();
  if (!path) return [];
  piecesInside(data, part, (n, ns) => {
    const [name, , , state] = path.shares[path.share[n]];
    const sum: PathShare = by.get(path.share[n]) ?? [name, 0, 0, state];
    sum[1] += ns;
    sum[2]++;
    by.set(path.share[n], sum);
  });
  return [...by.values()].sort((a, b) => b[1] - a[1]);
}

/** The CPU time of the programs in a part, and their processes, the longest first. */
export function programs(
  data: Data,
  part: Part,
): { all: [name: string, cpu: number, processes: number][]; whole: number } {
  const { times } = figures(data, part);
  const groups = new Map<string, [string, number, number]>();
  let whole = 0;
  for (const ix of living(data, part)) {
    const name = data.program(ix);
    let group = groups.get(name);
    if (!group) groups.set(name, (group = [name, 0, 0]));
    const cpu = times[0][ix] || 0;
    group[1] += cpu;
    whole += cpu;
    group[2]++;
  }
  return { all: [...groups.values()].sort((a, b) => b[1] - a[1]), whole };
}

/** The CPU time of compilers, and of linkers with all that they run, of those in sight. */
export function roles(data: Data, part: Part): [name: string, cpu: number][] {
  const { times } = figures(data, part);
  const [compilers, linkers] = [data.doc.compilers, data.doc.linkers].map((names) => new Set(names));
  const links = new Uint8Array(data.n);
  // Parents come before their children.
  for (const ix of data.order)
    if (linkers.has(data.program(ix)) || (data.parent[ix] >= 0 && links[data.parent[ix]])) links[ix] = 1;
  let [compiling, linking] = [0, 0];
  for (const ix of living(data, part)) {
    if (links[ix]) linking += times[0][ix] || 0;
    else if (compilers.has(data.program(ix))) compiling += times[0][ix] || 0;
  }
  const found: [string, number][] = [
    ["compilers", compiling],
    ["linkers", linking],
  ];
  return found.filter(([, cpu]) => cpu > 0);
}

/** Whether a wait is that of a thread for its own process: nobody can act on it, however long it is. */
export function isIdle(name: string): boolean {
  return name === "idle" || name === "another thread";
}

/** The time off CPU of the shown processes in the range, by reason: name, ns, state, longest first. */
export function reasons(data: Data, part: Part): [string, number, number][] {
  const { t0, t1 } = part.state;
  const { first, start, end, kind } = data.pieces;
  // By kind: a look-up of each piece's name would take most of the time.
  const sums = new Float64Array(KINDS.length);
  for (let ix = 0; ix < data.n; ix++) {
    if (!part.shown(ix)) continue;
    for (let at = first[data.threadsFrom[ix]]; at < first[data.threadsFrom[ix + 1]]; at++) {
      const ns = Math.min(end[at], t1) - Math.max(start[at], t0);
      if (ns > 0) sums[kind[at] < sums.length ? kind[at] : 0] += ns;
    }
  }
  const by = new Map<string, [string, number, number]>();
  KINDS.forEach(([name, state], at) => {
    if (state === ON || state === UNKNOWN || sums[at] === 0) return;
    const row = by.get(name);
    if (row) row[1] += sums[at];
    else by.set(name, [name, sums[at], state]);
  });
  const last = ([name]: [string, number, number]) => Number(isIdle(name));
  return [...by.values()].sort((a, b) => last(a) - last(b) || b[1] - a[1]);
}

/**
 * The time in the range by the number of shown threads on a CPU, and that in which it is unknown
 * of a shown thread whether it ran; null: pieces hold several states.
 */
export function busy(data: Data, part: Part): { known: number[]; unknown: number } | null {
  if (data.doc.segments.grain > 0) return null;
  const { t0, t1 } = part.state;
  const { first, start, end, kind } = data.pieces;
  // Beginnings and ends, on a CPU and of unknown time.
  const times: number[][] = [[], [], [], []];
  for (let ix = 0; ix < data.n; ix++) {
    if (!part.shown(ix)) continue;
    for (let t = data.threadsFrom[ix]; t < data.threadsFrom[ix + 1]; t++) {
      for (let at = first[t]; at < first[t + 1]; at++) {
        if (!(runs(kind[at]) || kind[at] === NOTHING) || end[at] <= t0 || start[at] >= t1) continue;
        const on = runs(kind[at]) ? 0 : 2;
        times[on].push(Math.max(start[at], t0));
        times[on + 1].push(Math.min(end[at], t1));
      }
    }
  }
  const lists = times.map((list) => Float64Array.from(list).sort());
  const next = [0, 0, 0, 0];
  const out = { known: [0], unknown: 0 };
  let [now, running, unknown] = [t0, 0, 0];
  const pass = (to: number) => {
    if (to <= now) return;
    if (unknown > 0) out.unknown += to - now;
    else out.known[running] = (out.known[running] ?? 0) + to - now;
    now = to;
  };
  for (;;) {
    let first = -1;
    lists.forEach((list, l) => {
      if (next[l] < list.length && (first < 0 || list[next[l]] < lists[first][next[first]])) first = l;
    });
    if (first < 0) break;
    pass(lists[first][next[first]++]);
    const by = first % 2 ? -1 : 1;
    if (first < 2) running += by;
    else unknown += by;
  }
  pass(t1);
  return { known: Array.from(out.known, (ns) => ns ?? 0), unknown: out.unknown };
}
