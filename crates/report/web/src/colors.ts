// Colours of programs and steps: one palette, by rank and by place.

import type { Data } from "./data";
import type { Color } from "./state";

/** The colours of the palette; what has none of them is grey. */
export const HUES = 8;

/** Each program's rank by CPU time: its colour. */
export function ranks(data: Data): Map<string, number> {
  const sums = new Map<string, number>();
  for (let ix = 0; ix < data.n; ix++) {
    const name = data.program(ix);
    sums.set(name, (sums.get(name) ?? 0) + data.doc.processes.on_cpu[ix]);
  }
  const names = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return new Map(names.map(([name], rank) => [name, rank]));
}

/** The colour of a process: its program's, or its step's, of which neighbours differ. */
export function hue(data: Data, ranks: Map<string, number>, by: Color, ix: number): number {
  if (by !== "step") return Math.min(HUES, ranks.get(data.program(ix)) ?? HUES);
  const step = data.doc.processes.step[ix];
  return step === null ? HUES : step % HUES;
}
