// The search: terms that all must match, for processes and for steps.

import { NO_STEP, type Data } from "./data";

/** What can be searched for, and in which words the help says so. */
export const TERMS: [term: string, help: string][] = [
  ["cc1 parser.c", "processes whose pid, name or arguments contain every word"],
  ['"two words"', "the words as they stand"],
  ["/expression/", "a regular expression; /expression/i: also in other cases"],
  ["failed", "ended with an error"],
  ["step:x", "in a step or test whose name contains x"],
  ["program:x", "whose program's name contains x"],
  ["container:x", "in a container whose name contains x"],
  ["cgroup:x", "in a cgroup whose path contains x"],
  ["pid:1,2", "with one of these pids"],
  ['step:"x"', "whose whole name is x; so for program, container and cgroup"],
  ["step:x failed", "terms combine: all of them match"],
];

/** Whether a term matches a process, and whether it matches a step. */
interface Term {
  process: (ix: number) => boolean;
  step: (row: number) => boolean;
}

export interface Search {
  process: (ix: number) => boolean;
  step: (row: number) => boolean;
}

/** A term that matches a whole name, as a link of the page searches for it. */
export function wholeName(field: string, name: string): string {
  return `${field}:"${name.replace(/[\\"]/g, "\\$&")}"`;
}

/** Looks for `text` or `/regular expression/` in texts; null: no valid expression. */
export function matcher(q: string): ((text: string) => boolean) | null {
  const regex = /^\/(.+)\/(i?)$/.exec(q);
  if (!regex) return contains(q);
  try {
    const re = new RegExp(regex[1], regex[2] + "m");
    return (text) => re.test(text);
  } catch {
    return null;
  }
}

function contains(part: string): (text: string) => boolean {
  const small = part.toLowerCase();
  return (text) => text.toLowerCase().includes(small);
}

/** A term's field, its text, and whether that is in quotes; an expression keeps its slashes. */
type Word = [field: string, text: string, quoted: boolean];

const WORD =
  /(?:(step|program|container|cgroup|pid|is):)?(?:"((?:[^"\\]|\\.)*)"?|(\/(?:[^/\\]|\\.)+\/i?(?=\s|$))|(\S+))/g;

function words(q: string): Word[] {
  return [...q.matchAll(WORD)].map(([all, field, quoted, regex, bare]) => {
    if (quoted !== undefined) return [field ?? "", quoted.replace(/\\(.)/g, "$1"), true];
    // A field without its value is a text that is still being written.
    return [field ?? "", regex ?? bare ?? all, false];
  });
}

/** What to search for; null: nothing; "invalid": no valid expression. */
export function search(data: Data, q: string): Search | null | "invalid" {
  // An expression may hold spaces and slashes where it stands alone.
  const all = /^\/.+\/i?$/.test(q) ? ([["", q, false]] as Word[]) : words(q);
  if (all.length === 0) return null;
  const terms: Term[] = [];
  for (const word of all) {
    const term = termOf(data, word);
    if (!term) return "invalid";
    terms.push(term);
  }
  return {
    process: (ix) => terms.every((term) => term.process(ix)),
    step: (row) => terms.every((term) => term.step(row)),
  };
}

function termOf(data: Data, [field, text, quoted]: Word): Term | null {
  const { steps, processes } = data.doc;
  /** A term about processes matches a step by the process that the step is. */
  const byProcess = (process: (ix: number) => boolean): Term => ({
    process,
    step: (row) => {
      const ix = steps.process[row];
      return ix !== null && process(ix);
    },
  });
  if (field === "pid") {
    const pids = new Set(text.split(",").map(Number));
    return byProcess((ix) => pids.has(processes.pid[ix]));
  }
  if (text === "failed" && !quoted && (field === "is" || field === ""))
    return { process: (ix) => data.failed(ix), step: (row) => steps.failed[row] !== 0 };
  const test = quoted ? (field === "" ? contains(text) : (name: string) => name === text) : matcher(text);
  if (!test) return null;
  if (field === "step") {
    const { rows, inside } = data.inSteps(test, quoted && text === NO_STEP);
    return { process: (ix) => inside[ix] === 1, step: (row) => rows[row] };
  }
  if (field === "container" && !quoted)
    return byProcess((ix) => processes.container[ix] !== null && test(data.group(field, ix)));
  if (field === "program" || field === "container" || field === "cgroup")
    return byProcess((ix) => test(data.group(field, ix)));
  const named = byProcess((ix) => test(data.text(ix)));
  return { process: named.process, step: (row) => test(data.stepName(row)) || named.step(row) };
}
