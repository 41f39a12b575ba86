// Lanes of the CPUs above the timeline.

import { scale } from "./axis";
import { hue } from "./colors";
import { first, runs } from "./data";
import { h } from "./dom";
import { FONT } from "./heatmap";
import { fit, hatch, sized, type Theme } from "./paint";
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

export class CpuLanes {
  readonly element: HTMLElement;
  private canvas = h("canvas", { role: "img", "aria-label": "Processes on each CPU over time" });
  private all: Cpu[] | null = null;
  /** Each piece's thread. */
  private threadOf = new Uint32Array(0);
  private scale = scale({ t0: 0, t1: 1 }, 1, 0);

  constructor(private context: Context, private ranks: Map<string, number>) {
    const { store } = context;
    this.element = h("div", { class: "lane cpu-lanes", hidden: true }, this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => context.tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const found = this.find(event);
      if (found && found.piece >= 0) store.set({ sel: context.data.processOf[this.threadOf[found.piece]] });
    });
  }

  /** Whether pieces have their CPUs: none is a merged one. */
  get known(): boolean {
    const { segments } = this.context.data.doc;
    return segments.pieces > 0 && segments.grain === 0;
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
    this.all = [...of].sort(([a], [b]) => a - b).map(([cpu, list]) => ({ cpu, pieces: Uint32Array.from(list).sort((a, b) => start[a] - start[b]) }));
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
    all.forEach(({ pieces }, row) => {
      const y = row * ROW;
      // Idle, if all tasks are recorded; else it may have run others.
      ctx.fillStyle = data.doc.trace.all ? theme.css.panel : unknown;
      ctx.fillRect(gutter, y, width - gutter, ROW - 2);
      let drawn = -1;
      for (let n = this.from(pieces, t0); n < pieces.length && start[pieces[n]] < t1; n++) {
        const piece = pieces[n];
        const [left, right] = [x(start[piece]), x(end[piece])];
        // Narrower ones, closer than half a pixel, cannot be told apart.
        if (right - left < 0.5 && left - drawn < 0.5) continue;
        drawn = left;
        const ix = data.processOf[this.threadOf[piece]];
        const place = hue(data, this.ranks, store.state.color, ix);
        ctx.globalAlpha = store.shown(ix) ? 1 : 0.2;
        ctx.fillStyle = theme.programs[place] ?? theme.css.dim;
        ctx.fillRect(left, y, Math.max(0.5, right - left), ROW - 2);
        ctx.globalAlpha = 1;
        if (ix === store.state.sel) {
          ctx.fillStyle = theme.css.accent;
          ctx.fillRect(left, y + ROW - 5, Math.max(1, right - left), 3);
        }
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
      return tip.show(event, h("strong", {}, `CPU ${cpu}`), h("div", {}, `${at(t)}: ${data.doc.trace.all ? "idle" : "idle, or a task that is not recorded"}`));
    }
    const { start, end } = data.pieces;
    const ix = data.processOf[this.threadOf[piece]];
    tip.show(event, h("strong", {}, data.label(ix)), h("div", { class: "dim" }, `CPU ${cpu} · pid ${data.doc.processes.pid[ix]} · ${time(end[piece] - start[piece])} from ${at(start[piece])}`));
  }
}
