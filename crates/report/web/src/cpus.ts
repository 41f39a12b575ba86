// Lanes of the CPUs above the timeline.

import { scale } from "./axis";
import { HUES, hue } from "./colors";
import { first, ON, runs, WAIT } from "./data";
import { h } from "./dom";
import { FONT } from "./heatmap";
import { density, fit, hatch, Pixels, sized, type Theme } from "./paint";
import type { Context } from "./timeview";
import { at, time } from "./units";

const ROW = 18;
/** The most CPUs in sight at once; the others are scrolled to. */
const SIGHT = 8;

/** The pieces on a CPU, by time. */
interface Cpu {
  cpu: number;
  pieces: Uint32Array;
}

/** The lanes' pixels: in each column a CPU's lane is as full as the CPU was busy. */
class Lanes {
  private pixels: Pixels;
  private sums: Float64Array;
  /** For each colour the share of each column. */
  private byHue: Float64Array;
  private hues: Uint8Array;
  private dt: number;

  constructor(
    private width: number,
    height: number,
    private t0: number,
    t1: number,
  ) {
    this.width = Math.max(1, width);
    this.dt = (t1 - t0) / this.width;
    this.pixels = new Pixels(this.width, height);
    this.sums = new Float64Array(5 * this.width);
    this.byHue = new Float64Array((HUES + 1) * this.width);
    this.hues = new Uint8Array(this.width);
  }

  clear() {
    this.sums.fill(0);
    this.byHue.fill(0);
  }

  /** Adds a piece to the columns that it covers; what is not `shown` is paler. */
  add(start: number, end: number, hue: number, shown: boolean) {
    const { width, t0, dt } = this;
    const [from, to] = [Math.max(0, (start - t0) / dt), Math.min(width, (end - t0) / dt)];
    const color = Math.min(hue, HUES);
    const state = shown ? ON : WAIT;
    for (let c = Math.floor(from); c < to; c++) {
      const part = Math.min(to, c + 1) - Math.max(from, c);
      this.sums[state * width + c] += part;
      this.byHue[color * width + c] += part;
    }
  }

  /** Paints a lane; a column has the colour that has most of it. */
  paint(y: number, height: number, theme: Theme) {
    const { width, byHue, hues } = this;
    for (let c = 0; c < width; c++) {
      let most = 0;
      for (let color = 1; color <= HUES; color++) if (byHue[color * width + c] > byHue[most * width + c]) most = color;
      hues[c] = most;
    }
    this.pixels.stack(this.sums, width, 0, y, 1, 0, height, theme, hues);
  }

  /** Puts the lanes over what a canvas has. */
  blit(ctx: CanvasRenderingContext2D, left: number) {
    const layer = h("canvas");
    [layer.width, layer.height] = [this.width, this.pixels.height];
    layer.getContext("2d")?.putImageData(this.pixels.image, 0, 0);
    ctx.save();
    ctx.resetTransform();
    ctx.drawImage(layer, left, 0);
    ctx.restore();
  }
}

export class CpuLanes {
  readonly element: HTMLElement;
  private canvas = h("canvas", { role: "img", "aria-label": "Processes on each CPU over time" });
  private all: Cpu[] | null = null;
  /** Each piece's thread. */
  private threadOf = new Uint32Array(0);
  private scale = scale({ t0: 0, t1: 1 }, 1, 0);

  constructor(
    private context: Context,
    private ranks: Map<string, number>,
  ) {
    const { store } = context;
    this.element = h("div", { class: "lane cpu-lanes", hidden: true }, this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => context.tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const found = this.find(event);
      if (found && found.piece >= 0) store.set({ sel: context.data.processOf[this.threadOf[found.piece]] });
    });
  }

  get known(): boolean {
    return this.context.data.knowsCpus;
  }

  private sort(): Cpu[] {
    if (this.all) return this.all;
    const { data } = this.context;
    const { kind, by, start } = data.pieces;
    this.threadOf = new Uint32Array(kind.length);
    const of = new Map<number, number[]>();
    for (let t = 0; t < data.processOf.length; t++) {
      for (let piece = data.pieces.first[t]; piece < data.pieces.first[t + 1]; piece++) {
        this.threadOf[piece] = t;
        if (!runs(kind[piece]) || by[piece] === 0) continue;
        const cpu = by[piece] - 1;
        const list = of.get(cpu);
        if (list) list.push(piece);
        else of.set(cpu, [piece]);
      }
    }
    this.all = [...of]
      .sort(([a], [b]) => a - b)
      .map(([cpu, list]) => ({ cpu, pieces: Uint32Array.from(list).sort((a, b) => start[a] - start[b]) }));
    return this.all;
  }

  draw(width: number, gutter: number, theme: Theme) {
    const { data, store } = this.context;
    const shown = store.state.cpus && this.known;
    this.element.hidden = !shown;
    if (!shown) return;
    this.scale = scale(store.state, width, gutter);
    const all = this.sort();
    const height = Math.max(1, all.length) * ROW;
    this.element.style.maxHeight = `${SIGHT * ROW}px`;
    const ctx = sized(this.canvas, width, height);
    if (!ctx) return;
    ctx.font = FONT;
    const { t0, t1 } = store.state;
    const { start, end } = data.pieces;
    const { x } = this.scale;
    const unknown = hatch(ctx, theme.css.line);
    const ratio = density();
    const lanes = new Lanes(Math.round((width - gutter) * ratio), Math.round(height * ratio), t0, t1);
    all.forEach(({ pieces }, row) => {
      const y = row * ROW;
      // Idle, if all tasks are recorded; else it may have run others.
      ctx.fillStyle = data.doc.trace.all ? theme.css.panel : unknown;
      ctx.fillRect(gutter, y, width - gutter, ROW - 2);
      lanes.clear();
      for (let n = this.from(pieces, t0); n < pieces.length && start[pieces[n]] < t1; n++) {
        const piece = pieces[n];
        const ix = data.processOf[this.threadOf[piece]];
        lanes.add(start[piece], end[piece], hue(data, this.ranks, store.state.color, ix), store.shown(ix));
      }
      lanes.paint(Math.round(y * ratio), Math.round((ROW - 2) * ratio), theme);
    });
    lanes.blit(ctx, Math.round(gutter * ratio));
    all.forEach(({ pieces }, row) => {
      const y = row * ROW;
      ctx.fillStyle = theme.css.accent;
      let drawn = -1;
      for (let n = this.from(pieces, t0); n < pieces.length && start[pieces[n]] < t1; n++) {
        const piece = pieces[n];
        if (data.processOf[this.threadOf[piece]] !== store.state.sel) continue;
        const [left, right] = [x(start[piece]), x(end[piece])];
        // Narrower ones, closer than half a pixel, cannot be told apart.
        if (right - left < 0.5 && left - drawn < 0.5) continue;
        drawn = left;
        ctx.fillRect(left, y + ROW - 5, Math.max(1, right - left), 3);
      }
      const label = `CPU ${all[row].cpu}`;
      const wide = ctx.measureText(label).width + 8;
      ctx.globalAlpha = 0.85;
      ctx.fillStyle = theme.css.panel;
      ctx.fillRect(0, y, wide, ROW - 2);
      ctx.globalAlpha = 1;
      ctx.fillStyle = theme.css.ink;
      ctx.fillText(fit(ctx, label, wide), 3, y + ROW - 6);
    });
  }

  /** The first piece that ends after a time. */
  private from(pieces: Uint32Array, t: number): number {
    const { end } = this.context.data.pieces;
    return first(0, pieces.length, (n) => end[pieces[n]] > t);
  }

  private find(event: MouseEvent): { cpu: number; t: number; piece: number } | null {
    const box = this.canvas.getBoundingClientRect();
    const lane = this.sort()[Math.floor((event.clientY - box.top) / ROW)];
    if (!lane) return null;
    const t = this.scale.t(event.clientX - box.left);
    const piece = lane.pieces[this.from(lane.pieces, t)];
    const there = piece !== undefined && this.context.data.pieces.start[piece] <= t;
    return { cpu: lane.cpu, t, piece: there ? piece : -1 };
  }

  private hover(event: PointerEvent) {
    const { data, tip } = this.context;
    const found = this.find(event);
    if (!found) return tip.hide();
    const { cpu, t, piece } = found;
    if (piece < 0) {
      return tip.show(
        event,
        h("strong", {}, `CPU ${cpu}`),
        h("div", {}, `${at(t)}: ${data.doc.trace.all ? "idle" : "idle, or a task that is not recorded"}`),
      );
    }
    const { start, end } = data.pieces;
    const ix = data.processOf[this.threadOf[piece]];
    tip.show(
      event,
      h("strong", {}, data.label(ix)),
      h(
        "div",
        { class: "dim" },
        `CPU ${cpu} · pid ${data.doc.processes.pid[ix]} · ${time(end[piece] - start[piece])} from ${at(start[piece])}`,
      ),
    );
  }
}
