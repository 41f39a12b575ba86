// Who waited for whom: waits by who ended them, which is who was waited for.

import { KINDS, waits, type Data } from "./data";
import { isIdle, living, type Part } from "./figures";

/** The values of a piece's `by` below those of threads (segments.rs), in words. */
const NOBODY = ["not known", "an interrupt", "a task that is not recorded"];
/** The first of them that is a thread. */
const THREAD = NOBODY.length;

/** The waits of a process for one reason that one process ended, or no process. */
export interface Awaited {
  waiter: number;
  /** Who ended them; below 0: see `enderName`. */
  ender: number;
  kind: number;
  ns: number;
  times: number;
  /** The longest of them, and when it began. */
  longest: number;
  from: number;
}

/** The process whose thread ended a wait, by a piece's `by`; below 0: no recorded one. */
export function enderOf(data: Data, by: number): number {
  return by < THREAD ? by - THREAD : (data.processOf[by - THREAD] ?? -THREAD);
}

/** Who ended a wait, in words. */
export function enderName(data: Data, ender: number): string {
  return ender < 0 ? NOBODY[ender + THREAD] : data.label(ender);
}

/** The reason of a wait, in words. */
export const reasonOf = (kind: number) => KINDS[kind][0];

/** The waits of a process in a time, by who ended them and why, in no order. */
function waitsOf(data: Data, waiter: number, ends: (ender: number) => boolean, t0: number, t1: number): Awaited[] {
  const { first, start, end, kind, by } = data.pieces;
  const found = new Map<number, Awaited>();
  for (let at = first[data.threadsFrom[waiter]]; at < first[data.threadsFrom[waiter + 1]]; at++) {
    if (!waits(kind[at])) continue;
    const ender = enderOf(data, by[at]);
    if (!ends(ender)) continue;
    const from = Math.max(start[at], t0);
    const ns = Math.min(end[at], t1) - from;
    if (ns <= 0) continue;
    const key = (ender + THREAD) * KINDS.length + kind[at];
    let row = found.get(key);
    if (!row) found.set(key, (row = { waiter, ender, kind: kind[at], ns: 0, times: 0, longest: 0, from }));
    row.ns += ns;
    row.times++;
    if (ns > row.longest) [row.longest, row.from] = [ns, from];
  }
  return [...found.values()];
}

/** Whether nobody can act on a wait: it is of a thread for its own process. */
function isOwn({ waiter, ender, kind }: Awaited): boolean {
  return ender === waiter || isIdle(reasonOf(kind));
}

/** All waits of a process for another one, or of another one for it. */
export interface Partner {
  /** The process at the other end; below 0: see `enderName`. */
  process: number;
  /** The process's own threads are at the other end. */
  own: boolean;
  ns: number;
  times: number;
  longest: number;
  from: number;
  /** What the waits were for, the longest first; a small share of their time is left out. */
  reasons: string[];
}

/** A smaller share of the time of a partner's waits has no reason of its own in the list. */
const SMALL = 0.05;

/** Puts the waits with the same process at the other end together. */
function partners(rows: Awaited[], other: (row: Awaited) => number): Partner[] {
  const groups = new Map<string, Awaited[]>();
  for (const row of rows) {
    const process = other(row);
    // Waits that no process ended have a row for each reason, such as a timer and a disk.
    const key = process < 0 || isOwn(row) ? `${process} ${row.kind}` : String(process);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  const all = [...groups.values()].map((group): Partner => {
    const ns = group.reduce((sum, row) => sum + row.ns, 0);
    const [most] = group.sort((a, b) => b.longest - a.longest);
    const named = group.filter((row) => row.ns >= ns * SMALL).sort((a, b) => b.ns - a.ns);
    return {
      process: other(most),
      own: most.ender === most.waiter,
      ns,
      times: group.reduce((sum, row) => sum + row.times, 0),
      longest: most.longest,
      from: most.from,
      reasons: [...new Set(named.map((row) => reasonOf(row.kind)))],
    };
  });
  return all.sort((a, b) => Number(a.own) - Number(b.own) || b.ns - a.ns);
}

/** The waits of a process, by who ended them: those that its own threads ended last. */
export function waitedFor(data: Data, ix: number): Partner[] {
  return partners(
    waitsOf(data, ix, () => true, -Infinity, Infinity),
    (row) => row.ender,
  );
}

/** The waits of other processes that a process ended, the longest first. */
export function waitedForBy(data: Data, ix: number): Partner[] {
  const all: Awaited[] = [];
  for (let waiter = 0; waiter < data.n; waiter++)
    if (waiter !== ix) all.push(...waitsOf(data, waiter, (ender) => ender === ix, -Infinity, Infinity));
  return partners(all, (row) => row.waiter);
}

/** Waits for children: who is waited for stands below the waiter in every view. */
export const FOR_CHILDREN = new Set(["child", "vfork child"]);
/** A shorter wait than this share of the time does not stand before longer ones of another rank. A guess: one that nobody would see. */
const SHORT = 0.01;

/** The step that a process is in; that of a shell which runs one command is the command's. Null: none. */
function stepOf(data: Data, ix: number): number | null {
  let at = ix;
  while (data.children[at].length === 1) [at] = data.children[at];
  return data.doc.processes.step[at];
}

/** The step that a process waits for, if it lies inside the process's own, as make's targets do; null: none. */
export function awaitedStep(data: Data, { waiter, ender }: Awaited): number | null {
  if (ender < 0) return null;
  const [own, step] = [stepOf(data, waiter), stepOf(data, ender)];
  const [, ...around] = data.stepsAround(step);
  return own === null || around.includes(own) ? step : null;
}

/**
 * The waits of the shown processes for other processes. Waits for children come last, because each is a wait for what
 * the child did or waited for; of these, waits for steps come before those inside a step, such as a driver's for its compiler.
 */
export function betweenProcesses(data: Data, part: Part, n: number): Awaited[] {
  const { t0, t1 } = part.state;
  const short = (t1 - t0) * SHORT;
  const forChildren = KINDS.map(([name]) => FOR_CHILDREN.has(name));
  const LAST = 2;
  const rank = (row: Awaited) =>
    row.ns < short ? LAST : !forChildren[row.kind] ? 0 : awaitedStep(data, row) !== null ? 1 : LAST;
  const order = (a: Awaited, b: Awaited) => rank(a) - rank(b) || b.ns - a.ns;
  // A process that ends another one's sleep, as by a signal, is not what the sleep was for.
  const isForOther = (row: Awaited) => !isOwn(row) && reasonOf(row.kind) !== "timer";
  let top: Awaited[] = [];
  for (const ix of living(data, part)) {
    // Nearly all of many processes are too short for any of their waits to be among the longest.
    const last = top[n - 1];
    const worth = last ? (rank(last) > 0 ? Math.min(last.ns, short) : last.ns) : 0;
    if (data.wall(ix) * data.doc.processes.threads[ix] < worth) continue;
    const rows = waitsOf(data, ix, (ender) => ender >= 0 && ender !== ix, t0, t1);
    const longer = rows.filter((row) => isForOther(row) && (!last || order(row, last) < 0));
    if (longer.length === 0) continue;
    top.push(...longer);
    if (top.length >= n) top = top.sort(order).slice(0, n);
  }
  return top.sort(order);
}
