// Processes that stay in sight, above the lanes of the timeline; the link keeps them.

import { scale } from "./axis";
import { h } from "./dom";
import { FONT } from "./heatmap";
import { fit, Pixels, sized, density, type Theme } from "./paint";
import type { Store } from "./state";
import type { Context } from "./timeview";
import { at, time } from "./units";

const NAME = 14;
const BAND = 12;
const ROW = NAME + BAND + 4;
/** The most pins. */
const MOST = 8;

export function pinned(store: Store): number[] {
  return store.state.pins === "" ? [] : store.state.pins.split(",").map(Number);
}

/** Pins a process, or lets it go. */
export function pin(store: Store, ix: number) {
  const all = pinned(store);
  const kept = all.includes(ix) ? all.filter((other) => other !== ix) : [...all, ix].slice(-MOST);
  store.set({ pins: kept.join() });
}

export class Pins {
  readonly element: HTMLElement;
  private canvas = h("canvas", { role: "img", "aria-label": "Pinned processes over time" });

  constructor(private context: Context) {
    const { store, data, tip } = context;
    this.element = h("div", { class: "lane pins", hidden: true }, this.canvas);
    const find = (event: MouseEvent) =>
      pinned(store)[Math.floor((event.clientY - this.canvas.getBoundingClientRect().top) / ROW)] ?? -1;
    this.canvas.addEventListener("pointermove", (event) => {
      const ix = find(event);
      if (ix < 0) return tip.hide();
      const p = data.doc.processes;
      tip.show(
        event,
        h("strong", {}, data.label(ix)),
        h(
          "div",
          { class: "dim" },
          `pinned · pid ${p.pid[ix]} · from ${at(p.start[ix])} · wall ${time(data.wall(ix))} · CPU ${time(p.on_cpu[ix])}`,
        ),
      );
    });
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("click", (event) => store.set({ sel: find(event) }));
  }

  draw(width: number, gutter: number, theme: Theme) {
    const { data, store } = this.context;
    const all = pinned(store);
    this.element.hidden = all.length === 0;
    if (all.length === 0) return;
    const ctx = sized(this.canvas, width, all.length * ROW);
    if (!ctx) return;
    const ratio = density();
    const { t0, t1, sel } = store.state;
    const n = Math.max(1, Math.round((width - gutter) * ratio));
    const pixels = new Pixels(n, Math.round(all.length * ROW * ratio));
    const sums = new Float64Array(5 * n);
    const dt = (t1 - t0) / n;
    all.forEach((ix, row) => {
      sums.fill(0);
      for (let t = data.threadsFrom[ix]; t < data.threadsFrom[ix + 1]; t++)
        data.integrate(t, t0, dt, n, sums, 1 / dt / data.peak(ix));
      pixels.stack(sums, n, 0, Math.round((row * ROW + NAME) * ratio), 1, 0, Math.round(BAND * ratio), theme);
    });
    ctx.putImageData(pixels.image, Math.round(gutter * ratio), 0);
    ctx.font = FONT;
    const { start, end } = data.doc.processes;
    const { x } = scale(store.state, width, gutter);
    all.forEach((ix, row) => {
      const left = Math.min(x(start[ix]), width * 0.8);
      ctx.fillStyle = data.bad(ix) ? theme.css.bad : theme.css.ink;
      ctx.fillText(
        fit(ctx, { text: `⚲ ${data.label(ix)}`, brief: data.labelName(ix).brief }, width - left - 6),
        left + 2,
        row * ROW + NAME - 3,
      );
      if (ix !== sel) return;
      ctx.strokeStyle = theme.css.accent;
      ctx.lineWidth = 2;
      ctx.strokeRect(x(start[ix]) + 1, row * ROW + NAME, Math.max(3, x(end[ix]) - x(start[ix]) - 2), BAND);
    });
  }
}
