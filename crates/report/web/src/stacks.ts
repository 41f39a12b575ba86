// Sampled stacks: read out of the page, and summed up for what is shown.

import { KINDS, runs, type Data, type Doc, type Reader } from "./data";
import type { Store } from "./state";

/** The stacks, and the samples of all threads: those of thread t are first[t] .. first[t + 1]. */
export interface Stacks {
  /** By stack: its caller's, which has a lower number, and its function. 0: no stack. */
  caller: Uint32Array;
  fn: Uint32Array;
  /** By stack: no caller of it has the same function. */
  outermost: Uint8Array;
  /** By stack: itself, or the nearest caller of a function in user mode; 0: none. */
  user: Uint32Array;
  /** The stacks called in one: the first, and the next one with the same caller. */
  child: Uint32Array;
  next: Uint32Array;
  /** By function. */
  names: string[];
  binaries: string[];
  kernel: number[];
  first: Uint32Array;
  kind: Uint8Array;
  /** When; of a wait its end, ns. */
  at: Float64Array;
  stack: Uint32Array;
  count: Float64Array;
  ns: Float64Array;
  waits: boolean;
  runs: boolean;
}

/** What a task did whose samples are summed up. */
export const DOINGS = ["on", "off", "both"] as const;
export type Doing = (typeof DOINGS)[number];

/** Samples and their time; `on`: the part of the time on a CPU. */
export interface Sum {
  count: number;
  ns: number;
  on: number;
}

/** The sums of the shown processes in the shown span. */
export interface Weights {
  all: Sum;
  /** By stack, with those called in it. */
  count: Float64Array;
  ns: Float64Array;
  on: Float64Array;
  /** By function: it was the innermost one; of waits, the innermost one in user mode. */
  selfCount: Float64Array;
  selfNs: Float64Array;
  /** By function: it was in the stack. */
  totalCount: Float64Array;
  totalNs: Float64Array;
}

/** Reads the columns (stacks.rs); null: the recording has no stacks. */
export function readStacks(doc: Doc, read: Reader): Stacks | null {
  const d = doc.stacks;
  if (!d) return null;
  const n = d.stacks + 1;
  const [caller, fn] = [new Uint32Array(n), new Uint32Array(n)];
  for (let at = 1; at < n; at++) caller[at] = at - read.varint();
  for (let at = 1; at < n; at++) fn[at] = read.varint();
  const first = new Uint32Array(doc.threads.tid.length + 1);
  for (let t = 0; t + 1 < first.length; t++) first[t + 1] = first[t] + read.varint();
  const kind = read.take(d.samples).slice();
  const column = (of = () => read.varint()) => Float64Array.from({ length: d.samples }, of);
  const at = column();
  for (let t = 0; t + 1 < first.length; t++) {
    let units = 0;
    for (let s = first[t]; s < first[t + 1]; s++) at[s] = (units += at[s]) * d.unit;
  }
  const stack = Uint32Array.from(column());
  const [count, ns] = [column(), column()];
  const text = (all: number[]) => all.map((ix) => doc.strings[ix] ?? "");
  return {
    ...linked(caller, fn, d.kernel),
    names: text(d.functions),
    binaries: text(d.binaries),
    kernel: d.kernel,
    first,
    kind,
    at,
    stack,
    count,
    ns,
    runs: kind.some(runs),
    waits: kind.some((k) => !runs(k)),
  };
}

/** The same samples with the group of their process as the outermost function of each stack. */
export function grouped(stacks: Stacks, data: Data, by: string): Stacks {
  const groups = new Map<string, { fn: number; of: Map<number, number> }>();
  const [names, binaries, kernel] = [[...stacks.names], [...stacks.binaries], [...stacks.kernel]];
  // Callers come first, as in the original.
  const [caller, fn] = [[0], [0]];
  const put = (of: number, is: number) => {
    caller.push(of);
    return fn.push(is) - 1;
  };
  const stack = Uint32Array.from(stacks.stack);
  for (let t = 0; t + 1 < stacks.first.length; t++) {
    const name = data.group(by, data.processOf[t]);
    for (let s = stacks.first[t]; s < stacks.first[t + 1]; s++) {
      if (stack[s] === 0) continue;
      let group = groups.get(name);
      if (!group) {
        binaries.push("");
        kernel.push(0);
        const own = names.push(name) - 1;
        groups.set(name, (group = { fn: own, of: new Map([[0, put(0, own)]]) }));
      }
      // Outwards to a stack that is there, then back.
      const missing: number[] = [];
      let at = stack[s];
      for (; !group.of.has(at); at = stacks.caller[at]) missing.push(at);
      let now = group.of.get(at)!;
      for (const old of missing.reverse()) group.of.set(old, (now = put(now, stacks.fn[old])));
      stack[s] = now;
    }
  }
  return {
    ...stacks,
    ...linked(Uint32Array.from(caller), Uint32Array.from(fn), kernel),
    names,
    binaries,
    kernel,
    stack,
  };
}

/** What follows from the callers and the functions of stacks. */
function linked(caller: Uint32Array, fn: Uint32Array, kernel: number[]) {
  const n = fn.length;
  const [user, child, next] = [new Uint32Array(n), new Uint32Array(n), new Uint32Array(n)];
  for (let at = 1; at < n; at++) user[at] = kernel[fn[at]] ? user[caller[at]] : at;
  for (let at = n - 1; at > 0; at--) {
    next[at] = child[caller[at]];
    child[caller[at]] = at;
  }
  return { caller, fn, user, child, next, outermost: outermost(fn, caller, child, next, kernel.length) };
}

/** Goes through all stacks, callers first, and counts the functions around each. */
function outermost(
  fn: Uint32Array,
  caller: Uint32Array,
  child: Uint32Array,
  next: Uint32Array,
  functions: number,
): Uint8Array {
  const out = new Uint8Array(fn.length);
  const around = new Uint32Array(functions);
  let at = child[0];
  while (at > 0) {
    if (around[fn[at]]++ === 0) out[at] = 1;
    if (child[at] > 0) {
      at = child[at];
      continue;
    }
    while (at > 0) {
      around[fn[at]]--;
      if (next[at] > 0) {
        at = next[at];
        break;
      }
      at = caller[at];
    }
  }
  return out;
}

/** Whether a process has samples. */
export function sampled({ stacks, threadsFrom }: Data, ix: number): boolean {
  return stacks !== null && stacks.first[threadsFrom[ix]] < stacks.first[threadsFrom[ix + 1]];
}

/** Whether samples of a kind are asked for. */
function asked(kind: number, doing: Doing, reason: string): boolean {
  if (runs(kind)) return doing !== "off";
  return doing !== "on" && (reason === "" || KINDS[kind]?.[0] === reason);
}

/** Calls `take` with each sample of the shown processes, and its part in the shown span. */
function each(stacks: Stacks, data: Data, store: Store, take: (sample: number, count: number, ns: number) => void) {
  const { t0, t1 } = store.state;
  const { first, at, kind, count, ns } = stacks;
  for (let ix = 0; ix < data.n; ix++) {
    if (!store.shown(ix)) continue;
    for (let s = first[data.threadsFrom[ix]]; s < first[data.threadsFrom[ix + 1]]; s++) {
      if (!store.zoomed) take(s, count[s], ns[s]);
      // A sample on a CPU is a moment, a wait lies before its end.
      else if (runs(kind[s])) {
        if (at[s] >= t0 && at[s] <= t1) take(s, count[s], ns[s]);
      } else {
        const inside = Math.min(at[s], t1) - Math.max(at[s] - ns[s], t0);
        if (inside > 0) take(s, count[s], inside);
      }
    }
  }
}

/** Sums up the samples of what is shown. */
export function weigh(stacks: Stacks, data: Data, store: Store, doing: Doing, reason = ""): Weights {
  const { caller, fn, user, outermost } = stacks;
  const [n, functions] = [caller.length, stacks.names.length];
  const fresh = (length: number) => new Float64Array(length);
  const w: Weights = {
    all: { count: 0, ns: 0, on: 0 },
    count: fresh(n),
    ns: fresh(n),
    on: fresh(n),
    selfCount: fresh(functions),
    selfNs: fresh(functions),
    totalCount: fresh(functions),
    totalNs: fresh(functions),
  };
  each(stacks, data, store, (sample, count, ns) => {
    const kind = stacks.kind[sample];
    if (!asked(kind, doing, reason)) return;
    const stack = stacks.stack[sample];
    w.count[stack] += count;
    w.ns[stack] += ns;
    if (runs(kind)) w.on[stack] += ns;
    if (stack === 0) return;
    const own = fn[(runs(kind) ? 0 : user[stack]) || stack];
    w.selfCount[own] += count;
    w.selfNs[own] += ns;
  });
  for (let at = n - 1; at > 0; at--) {
    w.count[caller[at]] += w.count[at];
    w.ns[caller[at]] += w.ns[at];
    w.on[caller[at]] += w.on[at];
    if (!outermost[at]) continue;
    w.totalCount[fn[at]] += w.count[at];
    w.totalNs[fn[at]] += w.ns[at];
  }
  w.all = { count: w.count[0], ns: w.ns[0], on: w.on[0] };
  return w;
}

/** The reasons of the waits of what is shown, the longest first. */
export function reasonsOf(stacks: Stacks, data: Data, store: Store): string[] {
  const by = new Map<string, number>();
  each(stacks, data, store, (sample, _, ns) => {
    const kind = stacks.kind[sample];
    const name = KINDS[kind]?.[0] ?? "unknown";
    if (!runs(kind)) by.set(name, (by.get(name) ?? 0) + ns);
  });
  return [...by].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

/** The functions with any time, those with the most of their own first. */
export function hottest(stacks: Stacks, w: Weights): number[] {
  const { names, binaries } = stacks;
  const all = names.map((_, fn) => fn).filter((fn) => w.totalCount[fn] > 0);
  const less = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return all.sort(
    (a, b) =>
      w.selfNs[b] - w.selfNs[a] ||
      w.totalNs[b] - w.totalNs[a] ||
      less(names[a], names[b]) ||
      less(binaries[a], binaries[b]),
  );
}

/** A function in a picture: all stacks of it at its place, as one. */
export interface Frame extends Sum {
  fn: number;
  depth: number;
  /** Its part of the whole, from 0 to 1. */
  x0: number;
  x1: number;
  /** The stacks at its place, and those whose time they have: of callers, the stacks that they lead to. */
  at: number[];
  of: number[];
  children: Frame[];
  parent: Frame | null;
}

/** A frame of these stacks, as wide as the whole. */
export function frame(stacks: Stacks, w: Weights, at: number[], of = at, depth = 0): Frame {
  const sum = (all: Float64Array) => of.reduce((sum, stack) => sum + all[stack], 0);
  return {
    fn: at[0] > 0 ? stacks.fn[at[0]] : -1,
    depth,
    x0: 0,
    x1: 1,
    at,
    of,
    count: sum(w.count),
    ns: sum(w.ns),
    on: sum(w.on),
    children: [],
    parent: null,
  };
}

/** All frames below one, or (`up`) those of its callers, parents first, that are at least `least` of the whole wide,
    down to a depth. */
export function frames(stacks: Stacks, w: Weights, root: Frame, up: boolean, least: number, depth: number): Frame[] {
  const all = [root];
  // The list grows while it is gone through.
  for (const parent of all) {
    if (parent.depth >= depth || parent.ns <= 0) continue;
    const groups = new Map<number, { at: number[]; of: number[] }>();
    const put = (at: number, of: number) => {
      if (w.count[of] === 0) return;
      const group = groups.get(stacks.fn[at]);
      if (group) {
        group.at.push(at);
        group.of.push(of);
      } else groups.set(stacks.fn[at], { at: [at], of: [of] });
    };
    parent.at.forEach((at, n) => {
      if (!up) for (let child = stacks.child[at]; child > 0; child = stacks.next[child]) put(child, child);
      else if (stacks.caller[at] > 0) put(stacks.caller[at], parent.of[n]);
    });
    const children = [...groups.values()].map(({ at, of }) => frame(stacks, w, at, of, parent.depth + 1));
    children.sort((a, b) => b.ns - a.ns || a.fn - b.fn);
    let x = parent.x0;
    for (const child of children) {
      child.parent = parent;
      child.x0 = x;
      child.x1 = x += ((parent.x1 - parent.x0) * child.ns) / parent.ns;
      if (child.x1 - child.x0 < least) break;
      parent.children.push(child);
      all.push(child);
    }
  }
  return all;
}

/** The outermost stacks of a function. */
export function places(stacks: Stacks, w: Weights, fn: number): number[] {
  const out: number[] = [];
  for (let at = 1; at < stacks.fn.length; at++)
    if (stacks.fn[at] === fn && stacks.outermost[at] && w.count[at] > 0) out.push(at);
  return out;
}

/** The time of samples with one of these functions in their stacks. */
export function together(stacks: Stacks, w: Weights, wanted: Uint8Array): number {
  // Whether it, or one of its callers, is one of them: callers come first.
  const inside = new Uint8Array(stacks.fn.length);
  let ns = 0;
  for (let at = 1; at < inside.length; at++) {
    const around = inside[stacks.caller[at]];
    inside[at] = around | wanted[stacks.fn[at]];
    if (inside[at] && !around) ns += w.ns[at];
  }
  return ns;
}
