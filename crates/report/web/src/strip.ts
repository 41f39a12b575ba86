// The whole recording at a glance, above all views: how many were busy at once,
// the critical path, and the span that the views show, to be dragged.

import { Axis } from "./axis";
import { HUES } from "./colors";
import { BLOCKED, knowsNoSleep, ON, STATES, UNKNOWN, WAIT, type Data } from "./data";
import { h } from "./dom";
import { FONT } from "./heatmap";
import { moment } from "./moment";
import { density, hatch, theme, type Theme } from "./paint";
import { fitName, steps } from "./path";
import { isMoving, isTimed, type Store } from "./state";
import type { Context } from "./timeview";
import { at, time } from "./units";

/** Of the plot: above the overview, and above a view that draws time itself. */
const HEIGHTS = [56, 26];
const PATH = 16;
const AXIS = 20;
/** A stretch of the path that has room for a name, CSS pixels. */
const NAMED = 34;
/** While a view zooms or pans, the shown span is marked this often, ms: each time is a layout and draws the strip again. */
const PACE = 50;

export class Strip {
  readonly element: HTMLElement;
  private canvas = h("canvas", { role: "img", "aria-label": "Tasks that were busy at once, over the whole recording" });
  private frame = h("div", { class: "window" }, h("i", { class: "handle left" }), h("i", { class: "handle right" }));
  private plot: HTMLElement;
  private line = h("div", { class: "now", hidden: true });
  private axis = new Axis(AXIS, false);
  private scaleText = h("span", { id: "scale" });
  private range = h("span", { class: "range" });
  private scopeKey = "";
  private columns: Float64Array = new Float64Array(0);
  private width = 0;
  /** The width of the plot as the browser last told it: to ask costs a layout of the page. */
  private room = 0;
  /** The height of the plot, and that of the path below it; 0: it has none. */
  private height = HEIGHTS[0];
  private band = 0;
  /** The span is being dragged here, so that it follows the pointer. */
  private dragged = false;
  /** When the shown span was last marked, and the timer that marks it next; 0: none. */
  private marked = -PACE;
  private later = 0;
  private data: Data;
  private store: Store;

  constructor(
    private context: Context,
    private programRanks: Map<string, number>,
  ) {
    this.data = context.data;
    this.store = context.store;
    this.plot = h("div", { class: "strip-plot" }, this.canvas, this.frame, this.line);
    const { path } = this.data.doc;
    const legend = h(
      "div",
      { class: "legend" },
      ...STATES.map((name, s) =>
        (s === BLOCKED && knowsNoSleep(this.data.doc)) || (s === UNKNOWN && this.data.doc.totals.unknown === 0)
          ? null
          : h("span", { class: "key" }, h("i", { class: `swatch s${s}` }), name),
      ),
      h("span", { class: "key" }, h("i", { class: "swatch dashes" }), this.scaleText),
      this.data.doc.trace.all
        ? null
        : h(
            "span",
            { class: "key", title: "A task waits, and a CPU runs none of the recorded tasks" },
            h("i", { class: "swatch others" }),
            "others have the CPU",
          ),
      path
        ? h(
            "span",
            { class: "key lower", title: "Coloured by program, and where it waited by state" },
            `below: the ${this.data.pathName}`,
          )
        : null,
    );
    this.element = h(
      "section",
      { class: "strip", "aria-label": "The whole recording" },
      h("div", { class: "strip-head" }, legend, this.range),
      this.plot,
      this.axis.element,
    );
    new ResizeObserver(() => {
      this.room = this.plot.clientWidth;
      this.draw(false);
      this.drawLine();
    }).observe(this.plot);
    context.pointed.listen(() => this.drawLine());
    this.listen();
  }

  private listen() {
    const { plot, store } = this;
    let drag: null | { t: number; t0: number; t1: number; how: "new" | "move" | "left" | "right" } = null;
    const t = (event: PointerEvent | MouseEvent) => {
      const box = plot.getBoundingClientRect();
      const [from, to] = store.whole;
      return from + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (to - from);
    };
    plot.addEventListener("pointerdown", (event) => {
      const { t0, t1 } = store.state;
      const target = event.target as HTMLElement;
      const how = target.classList.contains("left")
        ? "left"
        : target.classList.contains("right")
          ? "right"
          : target === this.frame && store.zoomed
            ? "move"
            : "new";
      plot.setPointerCapture(event.pointerId);
      drag = { t: t(event), t0, t1, how };
      this.dragged = true;
    });
    plot.addEventListener("pointermove", (event) => {
      const now = t(event);
      if (!drag) {
        if (event.pointerType === "mouse") this.context.pointed.set(now);
        return this.hover(event, now);
      }
      this.context.pointed.set(-1);
      this.context.tip.hide();
      const [from, to] = store.whole;
      const least = (to - from) / 2000;
      if (drag.how === "move") {
        const by = Math.max(from - drag.t0, Math.min(to - drag.t1, now - drag.t));
        store.zoom(drag.t0 + by, drag.t1 + by);
      } else if (drag.how === "left") store.zoom(Math.min(now, drag.t1 - least), drag.t1);
      else if (drag.how === "right") store.zoom(drag.t0, Math.max(now, drag.t0 + least));
      else if (Math.abs(now - drag.t) > (to - from) / 200) store.zoom(Math.min(drag.t, now), Math.max(drag.t, now));
    });
    const end = () => {
      drag = null;
      this.dragged = false;
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
    plot.addEventListener("pointerleave", () => {
      this.context.tip.hide();
      this.context.pointed.set(-1);
    });
    plot.addEventListener("dblclick", () => store.zoom(...store.whole));
    plot.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        store.zoomBy(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), t(event));
      },
      { passive: false },
    );
  }

  private drawLine() {
    const [from, to] = this.store.whole;
    const t = this.context.pointed.t >= 0 ? this.context.pointed.t : this.store.state.at;
    this.line.hidden = t < from || t > to;
    if (!this.line.hidden)
      this.line.style.transform = `translateX(${((t - from) / (to - from)) * this.plot.clientWidth}px)`;
  }

  private hover(event: PointerEvent, t: number) {
    const [from, to] = this.store.whole;
    const n = this.columns.length / 5;
    const column = Math.min(n - 1, Math.max(0, Math.floor(((t - from) / (to - from)) * n)));
    if (n === 0) return;
    const parts = [ON, WAIT, BLOCKED, UNKNOWN]
      .filter((s) => s < UNKNOWN || this.columns[s * n + column] > 0.05)
      .map((s) => `${this.columns[s * n + column].toFixed(1)} ${STATES[s]}`);
    const others = this.others(column);
    const lines = [h("strong", {}, at(t, to - from)), h("div", {}, parts.join(" · "))];
    if (others > 0.05) lines.push(h("div", {}, `others have ${others.toFixed(1)} of ${this.data.doc.trace.cpus} CPUs`));
    const box = this.plot.getBoundingClientRect();
    if (this.band > 0 && event.clientY - box.top > this.height) {
      const ix = pathAt(this.data, t);
      if (ix >= 0) lines.push(h("div", {}, `${this.data.pathName}: ${this.data.label(ix)}`));
    }
    const { running, waiting } = moment(this.data, this.store, t);
    if (running.length > 0) lines.push(h("div", {}, running.join(", ")));
    if (waiting.length > 0) lines.push(h("div", { class: "dim" }, `waiting: ${waiting.join(", ")}`));
    this.context.tip.show(event, ...lines);
  }

  /** The CPUs that tasks wait for and that run none of the recorded tasks. */
  private others(column: number): number {
    const n = this.columns.length / 5;
    const { all, cpus } = this.data.doc.trace;
    return all ? 0 : Math.max(0, Math.min(this.columns[WAIT * n + column], cpus - this.columns[ON * n + column]));
  }

  private sum(n: number) {
    const [from, to] = this.store.whole;
    const dt = (to - from) / n;
    this.columns = new Float64Array(5 * n);
    for (let ix = 0; ix < this.data.n; ix++) {
      if (!this.store.shown(ix)) continue;
      for (let t = this.data.threadsFrom[ix]; t < this.data.threadsFrom[ix + 1]; t++) {
        this.data.integrate(t, from, dt, n, this.columns, 1 / dt);
      }
    }
  }

  update() {
    const { state } = this.store;
    const key = `${state.root}\n${state.cgroup}\n${state.q}\n${state.programs}`;
    // Not before the first layout of the page, of which the observer tells.
    if (this.room > 0) {
      this.draw(key !== this.scopeKey);
      this.drawLine();
    }
    this.scopeKey = key;
  }

  /** Each column of pixels is shared by what the path went to in its time. */
  private drawPath(ctx: CanvasRenderingContext2D, colors: Theme, width: number) {
    const path = this.data.doc.path!;
    const [from, to] = this.store.whole;
    const dt = (to - from) / width;
    const order = [
      ...colors.programs,
      colors.css.dim,
      colors.css.wait,
      colors.css.blocked,
      colors.css.asleep,
      hatch(ctx, colors.css.unknown),
    ];
    const columns = new Float64Array(width * order.length);
    let t = path.from;
    path.thread.forEach((thread, at) => {
      const end = t + path.length[at];
      const rank = this.programRanks.get(this.data.program(this.data.processOf[thread])) ?? 99;
      // Of work the program's colour, of waits that of the state.
      const state = path.shares[path.share[at]][3];
      const color = state === ON ? Math.min(HUES, rank) : HUES + state;
      const last = Math.min(width - 1, Math.floor((end - from) / dt));
      for (let c = Math.max(0, Math.floor((t - from) / dt)); c <= last; c++) {
        const share = (Math.min(end, from + (c + 1) * dt) - Math.max(t, from + c * dt)) / dt;
        if (share > 0) columns[c * order.length + color] += share;
      }
      t = end;
    });
    const y0 = this.height + 3;
    for (let c = 0; c < width; c++) {
      let y = y0 + PATH;
      for (let color = 0; color < order.length; color++) {
        const share = columns[c * order.length + color];
        if (share === 0) continue;
        ctx.fillStyle = order[color];
        ctx.fillRect(c, y - share * PATH, 1, share * PATH);
        y -= share * PATH;
      }
    }
    // The names of what fills a stretch.
    ctx.font = FONT.replace("12px", "11px");
    ctx.textBaseline = "middle";
    for (const stay of steps(this.data, this.store.state.programs)) {
      const [left, right] = [((stay.from - from) / (to - from)) * width, ((stay.to - from) / (to - from)) * width];
      const text = right - left < NAMED ? "" : fitName(ctx, this.data, stay, right - left - 10);
      if (text === "") continue;
      ctx.globalAlpha = 0.86;
      ctx.fillStyle = colors.css.panel;
      ctx.fillRect(left + 2, y0 + 1, ctx.measureText(text).width + 6, PATH - 2);
      ctx.globalAlpha = 1;
      ctx.fillStyle = colors.css.ink;
      ctx.fillText(text, left + 5, y0 + PATH / 2 + 0.5);
    }
    ctx.textBaseline = "alphabetic";
  }

  /** Marks the span that the views show. */
  private mark(width: number) {
    clearTimeout(this.later);
    this.later = 0;
    this.marked = performance.now();
    const [from, to] = this.store.whole;
    const { t0, t1 } = this.store.state;
    const x = (t: number) => ((t - from) / (to - from)) * width;
    this.frame.style.left = `${x(t0)}px`;
    this.frame.style.width = `${Math.max(3, x(t1) - x(t0))}px`;
    this.frame.classList.toggle("whole", !this.store.zoomed);
    this.range.textContent = this.store.zoomed
      ? `${at(t0, t1 - t0)} – ${at(t1, t1 - t0)} · ${time(t1 - t0)} of ${time(to - from)}`
      : time(to - from);
    if (!this.store.zoomed) this.range.append(h("span", { class: "screen" }, " · drag to zoom"));
  }

  draw(all = true) {
    const width = all || this.room === 0 ? this.plot.clientWidth : this.room;
    if (width === 0) return;
    const [from, to] = this.store.whole;
    const waits = isMoving() && !this.dragged && performance.now() - this.marked < PACE;
    if (all || !waits || width !== this.width) this.mark(width);
    else if (this.later === 0) this.later = window.setTimeout(() => this.mark(this.room || width), PACE);
    const timed = isTimed(this.store.state.view);
    const [high, band] = [HEIGHTS[timed ? 1 : 0], this.data.doc.path && !timed ? PATH : 0];
    if (!all && width === this.width && high === this.height && band === this.band) return;
    [this.height, this.band] = [high, band];
    this.width = width;
    const path = this.band > 0;
    const height = this.height + (path ? PATH + 3 : 0);
    const ratio = density();
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    this.plot.style.height = `${height}px`;
    const ctx = this.canvas.getContext("2d");
    if (!ctx) return;
    const colors = theme();
    const n = Math.max(1, Math.floor(width / 2));
    this.sum(n);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    const columns = this.columns;
    let peak = this.data.doc.trace.cpus;
    for (let c = 0; c < n; c++) peak = Math.max(peak, columns[c] + columns[n + c] + columns[2 * n + c]);
    const top = 2;
    const y = (tasks: number) => this.height - 1 - (tasks / peak) * (this.height - 1 - top);
    const base = new Float64Array(n);
    for (const s of [ON, WAIT, BLOCKED]) {
      ctx.fillStyle = [colors.css.on, colors.css.wait, colors.css.blocked][s];
      ctx.beginPath();
      for (let c = 0; c < n; c++) {
        const value = columns[s * n + c];
        if (value > 0) ctx.rect((c / n) * width, y(base[c] + value), width / n, y(base[c]) - y(base[c] + value));
        base[c] += value;
      }
      ctx.fill();
    }
    // Others have a CPU for which tasks wait: between the running ones and the line.
    ctx.fillStyle = hatch(ctx, colors.css.ink);
    for (let c = 0; c < n; c++) {
      const others = this.others(c);
      if (others > 0.02)
        ctx.fillRect((c / n) * width, y(columns[c] + others), width / n, y(columns[c]) - y(columns[c] + others));
    }
    ctx.fillStyle = hatch(ctx, colors.css.unknown);
    for (let c = 0; c < n; c++) {
      const over = Math.max(top, y(base[c] + columns[UNKNOWN * n + c]));
      if (y(base[c]) - over > 0.5) ctx.fillRect((c / n) * width, over, width / n, y(base[c]) - over);
    }
    // As many as there are CPUs.
    ctx.strokeStyle = colors.css.dim;
    ctx.setLineDash([3, 3]);
    ctx.lineWidth = 1;
    ctx.beginPath();
    const line = Math.round(y(this.data.doc.trace.cpus)) + 0.5;
    ctx.moveTo(0, line);
    ctx.lineTo(width, line);
    ctx.stroke();
    ctx.setLineDash([]);
    // In words beside the legend: in the plot they would stand on the bars.
    const { cpus } = this.data.doc.trace;
    const tasks = peak < 10 ? peak.toFixed(1).replace(/\.0$/, "") : peak.toFixed(0);
    this.scaleText.textContent = `${cpus} ${cpus === 1 ? "CPU" : "CPUs"}${peak > cpus ? `; up to ${tasks} tasks` : ""}`;
    if (path) this.drawPath(ctx, colors, width);
    this.axis.draw([from, to], [0, width]);
  }
}

/** Who the critical path is with at a time; -1: nobody. */
function pathAt(data: Data, time: number): number {
  const { path } = data.doc;
  if (!path || time < path.from) return -1;
  let t = path.from;
  for (let at = 0; at < path.thread.length; at++) {
    t += path.length[at];
    if (time < t) return data.processOf[path.thread[at]];
  }
  return -1;
}
