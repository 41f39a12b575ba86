// Names where there is no room for them. The end of a long name tells it from its neighbours (the parameters of a
// test, the file behind a hash or a path), and its beginning says what it is: the middle is left out.

import { h } from "./dom";

/** A name that is cut where it has no room. */
export interface Name {
  text: string;
  /** What tells it from its neighbours, from the data: of `cc1 mod10.c` the file. Empty: it has no such part. */
  brief: string;
}

/** The length of a name, in letters, that is only ever cut at its end. A guess: shorter ones seldom have a part in common. */
const SHORT = 18;
/** The least and the largest number of letters of an end. A guess: a file's name or the parameters of a test. */
const END = [6, 18];
/** The least number of letters of a beginning: fewer tell nothing. */
export const HEAD = 4;

/**
 * The ends of a name of which one stays when the middle is left out, the longest first. Each begins at a sign between
 * two words; a word without one has a single end. A short name has none.
 */
export function ends(text: string): string[] {
  const letters = [...text];
  if (letters.length <= SHORT) return [];
  const [least, most] = END;
  const all: string[] = [];
  const last = letters.length - least;
  for (let start = Math.max(HEAD, letters.length - most); start <= last; start++)
    if (/[^\p{L}\p{N}]/u.test(letters[start])) all.push(letters.slice(start).join(""));
  return all.length > 0 ? all : [letters.slice(last).join("")];
}

/** A name as a child of an element that may be too narrow for all of it. */
export function cutName(text: string): HTMLElement | string {
  return cutAt(text, ends(text)[0]);
}

/** Like `cutName`, for a bar: a short name keeps its brief name, too, if it ends with that. */
export function cutBrief({ text, brief }: Name): HTMLElement | string {
  return cutAt(text, ends(text)[0] ?? (brief || undefined));
}

function cutAt(text: string, end: string | undefined): HTMLElement | string {
  if (end === undefined || !text.endsWith(end)) return text;
  const last = text.length - end.length;
  // A command line that was cut already is cut there first: the sign of it stands once.
  const sign = text.slice(0, last).indexOf("…") + 1;
  const cuts = sign > 0 && sign < last ? [0, sign, last] : [0, last];
  const parts = cuts.map((from, n) => text.slice(from, cuts[n + 1]));
  return h(
    "span",
    { class: "cut-name" },
    ...parts.map((part, n) => (n === 0 ? h("span", {}, part) : h("span", {}, h("span", {}, part)))),
  );
}
