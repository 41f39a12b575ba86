// Names where there is no room for them. The end of a long name tells it from its neighbours (the parameters of a
// test, the file behind a hash or a path), and its beginning says what it is: the middle is left out.

import { h } from "./dom";

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

/**
 * The last word of a name, or the last part of a path, which tells `build/mod5.o` from `build/mod6.o`; "": the name has
 * only one. Words in brackets at the end (`zstd-sys (run build script)`) say of what kind it is, and are no name; nor is
 * the hash of a word whose middle is left out (`7c99…-zstd_lazy.o`).
 */
export function lastWord(text: string): string {
  const [, last] = /[\s/]([^\s/]*[\p{L}\p{N}][^\s/]*)$/u.exec(text.replace(/ \([^()]*\)$/, "")) ?? [];
  return last?.replace(/^.*…[^\p{L}\p{N}]*/u, "") ?? "";
}

/** A name as a child of an element that may be too narrow for all of it. */
export function cutName(text: string): HTMLElement | string {
  return cutAt(text, ends(text)[0]);
}

/** Like `cutName`, for a bar: a short name keeps its last word, too, which tells `cc1 mod10.c` from `cc1 mod11.c`. */
export function cutWord(text: string): HTMLElement | string {
  return cutAt(text, ends(text)[0] ?? (lastWord(text) || undefined));
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
