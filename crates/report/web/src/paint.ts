// Colours, and cells painted pixel by pixel: a canvas's rectangles are too slow
// for hundreds of thousands of them a frame.

import { HUES } from "./colors";
import { ASLEEP, BLOCKED, ON, UNKNOWN, WAIT } from "./data";
import { ends, HEAD, type Name } from "./names";

export interface Theme {
  /** By state, as 0xAABBGGRR. */
  states: Uint32Array;
  css: Record<
    | "ink"
    | "dim"
    | "faint"
    | "line"
    | "paper"
    | "panel"
    | "accent"
    | "bad"
    | "path"
    | "on"
    | "wait"
    | "blocked"
    | "asleep"
    | "unknown"
    | "stripe",
    string
  >;
  paper: number;
  /** The palette of programs and steps. */
  programs: string[];
  /** For each colour of the palette and for grey the colours of the states. */
  hues: Uint32Array[];
  dark: boolean;
  /** Sleep is hatched, because the recording does not know it from being blocked. */
  hatchesSleep: boolean;
}

function number(css: string): number {
  const hex = /^#([0-9a-f]{6})$/i.exec(css.trim());
  const n = hex ? parseInt(hex[1], 16) : 0x808080;
  return (0xff000000 | ((n & 0xff) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}

/** The colours as the style has them now. */
export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const names = [
    "ink",
    "dim",
    "faint",
    "line",
    "paper",
    "panel",
    "accent",
    "bad",
    "path",
    "on",
    "wait",
    "blocked",
    "asleep",
    "unknown",
    "stripe",
  ] as const;
  const css = Object.fromEntries(names.map((name) => [name, get(name)])) as Theme["css"];
  const states = Uint32Array.from([css.on, css.wait, css.blocked, css.asleep, css.unknown], number);
  const paper = number(css.panel);
  const programs = Array.from({ length: HUES }, (_, n) => get(`program-${n + 1}`));
  return {
    css,
    states,
    paper,
    programs,
    // Waits are a lighter shade.
    hues: [...programs, css.dim].map(number).map((color) => {
      const pale = mix(paper, color, 0.4);
      return Uint32Array.of(color, pale, pale, states[ASLEEP], states[UNKNOWN]);
    }),
    dark: get("dark") === "1",
    hatchesSleep: document.documentElement.dataset.totals !== undefined,
  };
}

/** The device's pixels for one of CSS. */
export function density(): number {
  return document.documentElement.classList.contains("paper") ? 2 : Math.min(2, devicePixelRatio || 1);
}

/** How many canvases have got another size so far. */
export let resizes = 0;

/** Gives a canvas its size in CSS pixels; the context, which draws in them, with nothing drawn. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = density();
  const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
  const ctx = canvas.getContext("2d");
  // A new size costs a new bitmap and a layout of the page.
  if (canvas.width !== w || canvas.height !== hgt || canvas.style.width !== `${width}px`) {
    resizes++;
    canvas.width = w;
    canvas.height = hgt;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  } else {
    ctx?.restore();
    ctx?.clearRect(0, 0, w, hgt);
  }
  // As it is in the beginning, for the next time.
  ctx?.save();
  ctx?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ctx;
}

/** Hatched: not a state that was seen. */
export function hatch(ctx: CanvasRenderingContext2D, color: string): CanvasPattern | string {
  const tile = document.createElement("canvas");
  [tile.width, tile.height] = [6, 6];
  const draw = tile.getContext("2d");
  if (!draw) return color;
  draw.strokeStyle = color;
  draw.lineWidth = 1.5;
  draw.beginPath();
  for (const shift of [-6, 0, 6]) {
    draw.moveTo(shift, 6);
    draw.lineTo(shift + 6, 0);
  }
  draw.stroke();
  return ctx.createPattern(tile, "repeat") ?? color;
}

/** Pixels of a canvas. */
export class Pixels {
  image: ImageData;
  data: Uint32Array;
  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.image = new ImageData(Math.max(1, width), Math.max(1, height));
    this.data = new Uint32Array(this.image.data.buffer);
  }

  /** One cell per column, stacked by state from the bottom; `sums` are shares of the cell, by state and column;
      `hues`: each column's colour of the palette. */
  stack(
    sums: Float64Array,
    n: number,
    x: number,
    y: number,
    cell: number,
    gap: number,
    height: number,
    theme: Theme,
    hues?: Uint8Array,
  ) {
    const { data, width } = this;
    const { hatchesSleep } = theme;
    for (let c = 0; c < n; c++) {
      const on = sums[ON * n + c];
      const wait = sums[WAIT * n + c];
      const blocked = sums[BLOCKED * n + c];
      const asleep = sums[ASLEEP * n + c];
      const unknown = sums[UNKNOWN * n + c];
      if (on + wait + blocked + asleep + unknown < 1e-6) continue;
      const busy = on + wait + blocked;
      const scale = busy > 1 ? height / busy : height;
      // What is there at all is seen: a row of pixels at least.
      const a = on > 0 ? Math.max(1, Math.round(on * scale)) : 0;
      const b = wait > 0 ? Math.max(a + (wait * scale > 0.15 ? 1 : 0), Math.round((on + wait) * scale)) : a;
      const d = blocked > 0 ? Math.max(b + (blocked * scale > 0.15 ? 1 : 0), Math.round(Math.min(1, busy) * scale)) : b;
      const room = Math.max(0, 1 - busy);
      const s = Math.min(height, d + Math.round(Math.min(room, asleep) * height));
      const u = unknown > 0 ? Math.min(height, Math.max(s + 1, s + Math.round(Math.min(1, unknown) * height))) : s;
      const left = Math.max(0, x + c * cell);
      const right = Math.min(width, x + (c + 1) * cell - gap);
      const states = hues ? theme.hues[hues[c]] : theme.states;
      for (let v = 0; v < u; v++) {
        const row = y + height - 1 - v;
        if (row < 0 || row >= this.height) continue;
        const state = v < a ? ON : v < b ? WAIT : v < d ? BLOCKED : v < s ? ASLEEP : UNKNOWN;
        if (state === UNKNOWN || (hatchesSleep && state === ASLEEP)) {
          // Hatched: not a state that was seen.
          for (let px = left; px < right; px++) if ((px + row) % 4 < 2) data[row * width + px] = states[UNKNOWN];
        } else {
          const color = states[state];
          for (let at = row * width + left; at < row * width + right; at++) data[at] = color;
        }
      }
    }
  }

  /** One cell per column, the stronger the larger the share of one state. */
  heat(
    sums: Float64Array,
    n: number,
    state: number,
    x: number,
    y: number,
    cell: number,
    gap: number,
    height: number,
    theme: Theme,
  ) {
    const { data, width } = this;
    for (let c = 0; c < n; c++) {
      let there = 0;
      for (let s = 0; s < 5; s++) there += sums[s * n + c];
      if (there < 1e-6) continue;
      const share = Math.min(1, sums[state * n + c]);
      const color = mix(theme.paper, theme.states[state], share > 0 ? 0.14 + 0.86 * Math.sqrt(share) : 0.06);
      const left = Math.max(0, x + c * cell);
      const right = Math.min(width, x + (c + 1) * cell - gap);
      for (let row = Math.max(0, y); row < Math.min(this.height, y + height); row++) {
        data.fill(color, row * width + left, row * width + right);
      }
    }
  }
}

function mix(a: number, b: number, share: number): number {
  const part = (shift: number) => {
    const from = (a >>> shift) & 0xff;
    return Math.round(from + (((b >>> shift) & 0xff) - from) * share) << shift;
  };
  return (0xff000000 | part(16) | part(8) | part(0)) >>> 0;
}

/** Black or white, whichever is read better on a colour. */
export function ink(color: string): string {
  const hex = /^#([0-9a-f]{6})$/i.exec(color);
  if (!hex) return "#000";
  const n = parseInt(hex[1], 16);
  const light = (part: number) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const all = 0.2126 * light(n >> 16) + 0.7152 * light((n >> 8) & 0xff) + 0.0722 * light(n & 0xff);
  // At this luminance the contrast to both is equal.
  return all > 0.18 ? "#14171a" : "#ffffff";
}

/** The number of UTF-16 units of a text's beginning that fit before `tail`. */
function room(ctx: CanvasRenderingContext2D, text: string, tail: string, width: number): number {
  let [lo, hi] = [0, text.length - tail.length];
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (ctx.measureText(`${text.slice(0, mid)}…${tail}`).width <= width) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

/** A cut name that can be read has so many letters and digits in a row. A guess: fewer tell nothing (`….0.0.1`). */
const READABLE = /[\p{L}\p{N}]{3}/u;
const readable = (text: string) => READABLE.test(text);
/** A whole word may have fewer: `cc`, `io.py`. */
const isWord = (text: string) => /\p{L}{2}/u.test(text);

/** The beginning of a text, with a sign that it was cut; "": nothing of it can be read. A part of a number is another one. */
function head(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  const shown = text.slice(0, room(ctx, text, "", width)).trimEnd();
  if (!/^\d/.test(text.slice(shown.length))) return readable(shown) ? `${shown}…` : "";
  const before = shown.replace(/\d+$/, "");
  return before.length >= HEAD && readable(before) ? `${before}…` : "";
}

/** What `fit` found, and the widths of whole names and of their ends: while a hand zooms, each name is asked for again. */
const cuts = new Map<string, string>();
const widths = new Map<string, number>();
function wide(ctx: CanvasRenderingContext2D, text: string): number {
  const key = `${ctx.font}|${text}`;
  let known = widths.get(key);
  if (known === undefined) {
    known = ctx.measureText(text).width;
    if (widths.size > 20000) widths.clear();
    widths.set(key, known);
  }
  return known;
}

/**
 * A text cut to a width, with a sign that it was; "": nothing of it can be read there. The middle of a long name is left
 * out. A short name keeps its brief name, without a sign where there is no room for it, and then the beginning of it:
 * `cc1 date.c` is told from `cc1 heap.c` by `date.c`, not by `cc1…`. Any other text, and the name of a function or a
 * group, which begins with what matters, loses its end.
 */
export function fit(ctx: CanvasRenderingContext2D, name: Name | string, width: number, keepsHead = false): string {
  if (width < 8) return "";
  const { text, brief } = typeof name === "string" ? { text: name, brief: "" } : name;
  const step = Math.floor(width / 4) * 4;
  const key = `${ctx.font}|${step}|${keepsHead}|${brief}|${text}`;
  const known = cuts.get(key);
  if (known !== undefined) return known;
  let cut = text;
  if (wide(ctx, text) > step) {
    const middle = ends(text).find((end) => room(ctx, text, end, step) >= HEAD);
    if (middle) cut = `${text.slice(0, room(ctx, text, middle, step))}…${middle}`.replace(/…+/, "…");
    else {
      const last = keepsHead ? "" : brief;
      const tails = keepsHead
        ? []
        : [
            `…${last}`,
            ...ends(text)
              .slice(-1)
              .map((tail) => `…${tail}`),
            last,
          ];
      const tail = tails.find(
        (tail) => (readable(tail) || (isWord(last) && tail.endsWith(last))) && wide(ctx, tail) <= step,
      );
      cut = tail ?? head(ctx, readable(last) ? last : text, step);
    }
  }
  if (cuts.size > 20000) cuts.clear();
  cuts.set(key, cut);
  return cut;
}
