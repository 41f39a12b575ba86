// Siblings of one program without children, as one row where there are many.

import type { Data } from "./data";

/** So many of one program are one. */
const ALIKE = 8;

export interface Group {
  program: string;
  members: number[];
}

/** The groups of siblings that `takes` lets in. */
export function alike(data: Data, siblings: number[], takes = (_ix: number) => true): Group[] {
  if (siblings.length < ALIKE) return [];
  const of = new Map<string, number[]>();
  for (const ix of siblings) {
    if (data.children[ix].length > 0 || !takes(ix)) continue;
    const members = of.get(data.program(ix));
    if (members) members.push(ix);
    else of.set(data.program(ix), [ix]);
  }
  return [...of].flatMap(([program, members]) => (members.length < ALIKE ? [] : [{ program, members }]));
}
