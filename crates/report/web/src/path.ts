// The critical path as a lane of steps, each with the step before and after it.

import { scale } from "./axis";
import { first, STATES, type Data } from "./data";
import { h } from "./dom";
import { FONT } from "./heatmap";
import { fit, sized, type Theme } from "./paint";
import { sampled } from "./stacks";
import type { State } from "./state";
import type { Context } from "./timeview";
import { at, count, time } from "./units";

const ROW = 24;
/** The height of the states along the lower edge. */
const FOOT = 6;
/** A shorter step stands with its neighbours, as a part of the path. */
const SHORT = 400;

/** A stretch of the path in one process, or several short ones. */
export interface Step {
  from: number;
  to: number;
  process: number;
  /** The place in the path's `owners` of what it is by step; -1: the path is shown by program. */
  owner: number;
  /** The longest of them, if there are several. */
  several: number;
  /** By state, ns. */
  times: number[];
  /** How it leads to the next one: see THEN. */
  then: number;
  inferred: boolean;
}

/** How a segment leads to the next one. */
const THEN = [
  ["goes on as", "went on"],
  ["forked", "forked it"],
  ["ended, which let go on", "ended"],
  ["let its parent go on:", "let go of its parent (vfork)"],
  ["woke", "woke it"],
  ["waited for", "waited for it"],
  ["ends the recording", "ended"],
  ["gave its job slot to", "gave it a job slot"],
];

/** Of these, the ones by which a task lets another one go on. */
const CAUSES = new Set([1, 2, 3, 4, 7]);

let kept: { data: Data; programs: boolean; steps: Step[] } | null = null;

/** The path by process, or by step: consecutive segments of the same one together. */
export function stays(data: Data, programs = true): Step[] {
  const all: Step[] = [];
  let longest = 0;
  const { path } = data.doc;
  if (path) {
    let t = path.from;
    path.thread.forEach((thread, n) => {
      const to = t + path.length[n];
      const process = data.processOf[thread];
      const state = path.shares[path.share[n]][3];
      const owner = programs ? -1 : path.owner[n];
      const inferred = path.inferred[n] === 1;
      let last = all[all.length - 1];
      if (!last || last.owner !== owner || (programs && last.process !== process)) {
        all.push(
          (last = { from: t, to, process, owner, several: 1, times: [0, 0, 0, 0, 0], then: 0, inferred: false }),
        );
        longest = 0;
      }
      if (to - t > longest) [last.process, longest] = [process, to - t];
      last.to = to;
      last.times[state] += to - t;
      last.then = path.then[n];
      last.inferred ||= inferred;
      t = to;
    });
  }
  return all;
}

/** The steps of the path: its stays, short ones together. */
export function steps(data: Data, programs: boolean): Step[] {
  if (kept?.data === data && kept.programs === programs) return kept.steps;
  const all = stays(data, programs);
  const whole = all.reduce((sum, step) => sum + step.to - step.from, 0);
  const out: Step[] = [];
  let longest = 0;
  for (const step of all) {
    const last = out[out.length - 1];
    const length = step.to - step.from;
    const short = length * SHORT < whole;
    if (short && last && last.several > 0 && (last.several > 1 || (last.to - last.from) * SHORT < whole)) {
      if (length > longest) [last.process, last.owner, longest] = [step.process, step.owner, length];
      last.several++;
      last.to = step.to;
      last.then = step.then;
      last.inferred ||= step.inferred;
      step.times.forEach((ns, s) => (last.times[s] += ns));
    } else {
      longest = length;
      out.push({ ...step, times: [...step.times] });
    }
  }
  kept = { data, programs, steps: out };
  return out;
}

/** The state that shows the path's longest stay with an owner. */
export function stayWith(data: Data, owner: number): Partial<State> {
  const all = steps(data, false);
  let step = -1;
  all.forEach((one, n) => {
    if (one.owner === owner && (step < 0 || one.to - one.from > all[step].to - all[step].from)) step = n;
  });
  return { view: "timeline", programs: false, step, sel: all[step]?.process ?? -1 };
}

export function name(data: Data, step: Step): string {
  const owner = data.doc.path?.owners[step.owner];
  const label = owner ? owner.name : data.label(step.process);
  return step.several > 1 ? `${count(step.several)} short steps, longest in ${label}` : label;
}

/** The brief name of a step's owner; empty: none. */
function brief(data: Data, step: Step): string {
  const owner = data.doc.path?.owners[step.owner];
  return owner ? (owner.brief ?? "") : data.labelName(step.process).brief;
}

/** The name of a step in a place of some pixels; "": there is no room for it. */
export function fitName(ctx: CanvasRenderingContext2D, data: Data, step: Step, width: number): string {
  const whole = name(data, step);
  if (step.several <= 1 || ctx.measureText(whole).width <= width)
    return fit(ctx, { text: whole, brief: brief(data, step) }, width);
  // Cut, "108 steps" would become "108 s…", a time.
  const short = `${count(step.several)} short steps`;
  return ctx.measureText(short).width <= width ? short : "";
}

export class PathLane {
  readonly element: HTMLElement;
  private canvas = h("canvas", { role: "img", "aria-label": "The path over time, step by step" });
  private scale = scale({ t0: 0, t1: 1 }, 1, 0);
  private began: Float64Array | null = null;

  /** Null: the recording has no path. */
  static of(context: Context): PathLane | null {
    return context.data.doc.path ? new PathLane(context) : null;
  }

  private constructor(private context: Context) {
    this.element = h(
      "div",
      { class: "lane path-lane", title: `${context.data.doc.path_title}: [ and ] go from step to step` },
      this.canvas,
    );
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => context.tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const step = this.find(event);
      if (step >= 0) context.store.set({ step, sel: this.all[step].process });
    });
  }

  private get all(): Step[] {
    return steps(this.context.data, this.context.store.state.programs);
  }

  draw(width: number, gutter: number, theme: Theme) {
    this.scale = scale(this.context.store.state, width, gutter);
    const ctx = sized(this.canvas, width, ROW);
    if (!ctx) return;
    ctx.font = FONT;
    const { data, store } = this.context;
    const { t0, t1, step: chosen } = store.state;
    const { x } = this.scale;
    const states = [theme.css.on, theme.css.wait, theme.css.blocked, theme.css.asleep, theme.css.unknown];
    const all = this.all;
    all.forEach((step, n) => {
      if (step.to <= t0 || step.from >= t1) return;
      const [left, right] = [x(step.from), x(step.to)];
      const wide = Math.max(0.8, right - left);
      ctx.fillStyle = theme.css.path;
      ctx.globalAlpha = n % 2 === 0 ? 0.24 : 0.14;
      ctx.fillRect(left, 0, wide, ROW - 2);
      ctx.globalAlpha = 1;
      if (step.inferred) {
        // No event shows it: a dashed edge.
        ctx.strokeStyle = theme.css.ink;
        ctx.globalAlpha = 0.45;
        ctx.setLineDash([3, 3]);
        ctx.lineWidth = 1;
        ctx.strokeRect(left + 0.5, 0.5, Math.max(0.5, wide - 1), ROW - FOOT - 3);
        ctx.setLineDash([]);
        ctx.globalAlpha = 1;
      }
      const room = Math.min(width, left + wide) - Math.max(0, left);
      if (room >= 24) {
        ctx.fillStyle = theme.css.ink;
        ctx.fillText(fitName(ctx, data, step, room - 6), Math.max(0, left) + 3, ROW - FOOT - 6);
      }
    });
    this.drawStates(ctx, width, states);
    const step = all[chosen];
    if (step && step.to > t0 && step.from < t1) {
      ctx.strokeStyle = theme.css.accent;
      ctx.lineWidth = 2;
      ctx.strokeRect(x(step.from) + 1, 1, Math.max(3, x(step.to) - x(step.from) - 2), ROW - 3);
    }
  }

  /** The states along the lower edge, at the times at which the path was in them: the shares of each column of pixels. */
  private drawStates(ctx: CanvasRenderingContext2D, width: number, colors: string[]) {
    const { data, store } = this.context;
    const path = data.doc.path!;
    const { t0, t1 } = store.state;
    const { x } = this.scale;
    const n = Math.ceil(width);
    const columns = new Float64Array(n * colors.length);
    const starts = this.starts;
    for (let at = Math.max(0, first(0, starts.length, (at) => starts[at] > t0) - 1); at < starts.length; at++) {
      if (starts[at] >= t1) break;
      const state = path.shares[path.share[at]][3];
      const [from, to] = [Math.max(0, x(starts[at])), Math.min(width, x(starts[at] + path.length[at]))];
      for (let c = Math.floor(from); c < to && c < n; c++)
        columns[state * n + c] += Math.min(to, c + 1) - Math.max(from, c);
    }
    const base = new Float64Array(n);
    colors.forEach((color, state) => {
      ctx.fillStyle = color;
      ctx.beginPath();
      for (let c = 0; c < n; c++) {
        const high = columns[state * n + c] * FOOT;
        if (high === 0) continue;
        ctx.rect(c, ROW - 1 - base[c] - high, 1, high);
        base[c] += high;
      }
      ctx.fill();
    });
  }

  /** When each piece of the path begins. */
  private get starts(): Float64Array {
    if (this.began) return this.began;
    const { from, length } = this.context.data.doc.path!;
    let t = from;
    return (this.began = Float64Array.from(length, (ns) => (t += ns) - ns));
  }

  private find(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const t = this.scale.t(event.clientX - box.left);
    return this.all.findIndex((step) => t >= step.from && t < step.to);
  }

  private hover(event: PointerEvent) {
    const { data, tip } = this.context;
    const n = this.find(event);
    if (n < 0) return tip.hide();
    const step = this.all[n];
    tip.show(
      event,
      h("strong", {}, name(data, step)),
      h(
        "div",
        { class: "dim" },
        `${data.pathName}, step ${n + 1} of ${this.all.length} · from ${at(step.from)} · ${time(step.to - step.from)}${step.inferred ? " · inferred" : ""}`,
      ),
      h("div", {}, did(step)),
    );
  }
}

/** The states of a step and their times. */
function did(step: Step): string {
  return step.times.flatMap((ns, s) => (ns > 0 ? [`${STATES[s]} ${time(ns)}`] : [])).join(" · ");
}

/** The chosen step, the step that unlocked it, and the one that it unlocks. */
export function card(context: Context): HTMLElement | null {
  const { data, store } = context;
  const all = steps(data, store.state.programs);
  const n = store.state.step;
  const step = all[n];
  if (!step) return null;
  const link = (to: number) =>
    h("button", { type: "button", class: "link", onclick: () => choose(context, to) }, name(data, all[to]));
  const before = all[n - 1];
  const after = all[n + 1];
  return h(
    "section",
    { class: "step-card", "aria-label": `Step of the ${data.pathName}` },
    h("h3", {}, `${data.doc.path_title}, step ${n + 1} of ${all.length}`),
    h("p", {}, `${at(step.from)} to ${at(step.to)}, ${time(step.to - step.from)}: ${did(step)}`),
    step.inferred ? h("p", { class: "dim" }, "Inferred: no event shows this step.") : null,
    h(
      "p",
      { class: "unlocked" },
      h("b", {}, !before || CAUSES.has(before.then) ? "Unlocked by " : "After "),
      ...(before ? [link(n - 1), ` (${THEN[before.then]?.[1] ?? ""})`] : ["the start of the recording"]),
    ),
    h(
      "p",
      { class: "unlocks" },
      h("b", {}, !after || CAUSES.has(step.then) ? "Unlocks " : "Then "),
      ...(after
        ? [
            link(n + 1),
            ` (it ${THEN[step.then]?.[0] ?? ""} ${after.owner < 0 ? data.label(after.process) : name(data, after)})`,
          ]
        : ["the end"]),
    ),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", disabled: n === 0, onclick: () => move(context, -1), title: "[" }, "‹ Before"),
      h(
        "button",
        { type: "button", disabled: n + 1 >= all.length, onclick: () => move(context, 1), title: "]" },
        "Next ›",
      ),
      step.several === 1 && sampled(data, step.process)
        ? h(
            "button",
            {
              type: "button",
              title: "Functions of the process in the step's time",
              onclick: () => {
                store.set({ view: "stacks", q: `pid:${data.doc.processes.pid[step.process]}` });
                store.zoom(step.from, step.to);
              },
            },
            "Stacks",
          )
        : null,
    ),
  );
}

/** Chooses the step before or after the chosen one, or the first in sight. */
export function move(context: Context, by: number) {
  const { state } = context.store;
  const all = steps(context.data, state.programs);
  const first = all.findIndex((step) => step.to > state.t0);
  const to = state.step >= 0 ? state.step + by : first;
  if (to >= 0 && to < all.length) choose(context, to);
}

function choose({ data, store }: Context, to: number) {
  const { t0, t1, programs } = store.state;
  const step = steps(data, programs)[to];
  store.set({ step: to, sel: step.process, view: store.state.view === "heatmap" ? "heatmap" : "timeline" });
  // It is in sight, and wide enough to be seen.
  const length = step.to - step.from;
  if (length * 60 < t1 - t0) store.zoom(step.from - length * 10, step.to + length * 10);
  else if (step.from < t0 || step.to > t1)
    store.zoom(step.from - length * 0.1, Math.max(step.to + length * 0.1, step.from - length * 0.1 + t1 - t0));
}
