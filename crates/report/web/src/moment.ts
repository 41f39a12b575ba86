// What ran at a moment: on each CPU, and in each job.

import { ASLEEP, KINDS, ON, STATES, type Data } from "./data";
import { clip } from "./heatmap";
import type { Store } from "./state";
import { at, count } from "./units";

/** The most names of each part of the sentence. */
const NAMES = 8;
/** The most letters of a name. */
const LABEL = 40;

export interface Moment {
  /** The moment itself, as fine as the shown span needs. */
  when: string;
  /** Who was on which CPU. */
  running: string[];
  /** Jobs that were not, each with its reason, and the steps that no process stands for. */
  waiting: string[];
}

/** A piece's state and its name; of one that holds several states the one that has most of it. */
function doing({ pieces }: Data, piece: number): [state: number, name: string] {
  const from = pieces.share[piece];
  if (from < 0) {
    const [name, state] = KINDS[pieces.kind[piece]] ?? KINDS[0];
    return [state, name];
  }
  const shares = STATES.map((_, state) => pieces.shares[from + state]);
  const most = shares.indexOf(Math.max(...shares));
  return [most, STATES[most]];
}

/** A process by its name, and by its step where the name does not say that: `cc1 lvm.c` is at work on `obj/lvm.o`. */
function title(data: Data, ix: number): string {
  const label = clip(data.label(ix), LABEL);
  const { step, says_step } = data.doc.processes;
  const row = step[ix];
  return row === null || says_step[ix] ? label : `${label} of ${data.stepName(row)}`;
}

function some(names: string[]): string[] {
  return names.length > NAMES ? [...names.slice(0, NAMES), `${count(names.length - NAMES)} more`] : names;
}

/** What ran at a time, of what the scope and the search show. */
export function moment(data: Data, store: Store, t: number): Moment {
  const { processes, steps, trace } = data.doc;
  const { start, end } = processes;
  const on = new Map<number, string>();
  const loose: string[] = [];
  const idle: string[] = [];
  let command = "";
  /** The steps that a listed process stands for. */
  const named = new Set<number>();
  for (let ix = 0; ix < data.n; ix++) {
    if (start[ix] > t || end[ix] <= t || !store.shown(ix)) continue;
    let best: [state: number, name: string] | null = null;
    for (let thread = data.threadsFrom[ix]; thread < data.threadsFrom[ix + 1]; thread++) {
      const piece = data.pieceAt(thread, t);
      if (piece < 0) continue;
      const found = doing(data, piece);
      if (!best || found[0] < best[0]) best = found;
      if (found[0] !== ON) continue;
      const cpu = data.knowsCpus ? data.pieces.by[piece] - 1 : -1;
      if (cpu >= 0) on.set(cpu, title(data, ix));
      else if (loose[loose.length - 1] !== title(data, ix)) loose.push(title(data, ix));
    }
    // Who waits for a child is no job; the command is named all the same.
    const works = !data.children[ix].some((child) => start[child] <= t && end[child] > t);
    // Of a whole machine nearly all sleep.
    if (best && best[0] !== ON) {
      const text = `${title(data, ix)} (${best[1]})`;
      if (ix === trace.root) command = text;
      else if (works && !(trace.all && best[0] >= ASLEEP)) idle.push(text);
    }
    if (best && (works || best[0] === ON)) data.stepsAround(processes.step[ix]).forEach((row) => named.add(row));
  }
  const inside = new Set<number>();
  steps.from.forEach((from, row) => {
    if (from > t || steps.to[row] <= t) return;
    const parent = steps.parent[row];
    if (parent !== null) inside.add(parent);
  });
  const others = steps.from.flatMap((from, row) =>
    from > t || steps.to[row] <= t || inside.has(row) || named.has(row) || store.search?.step(row) === false
      ? []
      : [data.stepTitle(row)],
  );
  const rest = trace.all ? "idle" : "others or idle";
  const cpus = data.knowsCpus ? data.cpus.filter((cpu) => on.has(cpu) || data.cpus.length <= NAMES) : [];
  return {
    when: at(t, Math.min(1e9, store.state.t1 - store.state.t0)),
    running: some([...cpus.map((cpu) => `CPU ${cpu} ${on.get(cpu) ?? rest}`), ...loose]),
    waiting: [...some([...idle, ...others]), ...(command ? [command] : [])],
  };
}

/** A moment as a sentence. */
export function sentence({ when, running, waiting }: Moment): string {
  const parts = [running.join(", "), waiting.length > 0 ? `waiting: ${waiting.join(", ")}` : ""];
  return `at ${when}: ${parts.filter((part) => part).join("; ") || "nothing that was recorded ran"}`;
}
