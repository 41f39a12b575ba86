// Steps, tests and marks above the timeline, over the same time axis.

import { scale } from "./axis";
import { HUES } from "./colors";
import { h } from "./dom";
import { FONT } from "./heatmap";
import { fit, sized, type Theme } from "./paint";
import { LOW } from "./state";
import type { Context } from "./timeview";
import { at, time } from "./units";

const ROW = 17;
/** The most rows; what has none is seen after zooming in. */
const ROWS = 5;
/** In a low window there are fewer. */
const LOW_ROWS = 3;
/** Narrower steps are not drawn, CSS pixels; marks of a moment are this wide. */
const LEAST = 2;
const TITLE = "steps and tests";

/** Where a name ends: before the lane's title, which stands in smaller letters at its right end. */
export function beside(ctx: CanvasRenderingContext2D, title: string, width: number, right: number): number {
  return Math.min(right, width - ctx.measureText(title).width - 4);
}

/** A step on the lane, CSS pixels. */
interface Box {
  step: number;
  row: number;
  left: number;
  right: number;
}

export class Lane {
  readonly element: HTMLElement;
  private canvas = h("canvas", { role: "img", "aria-label": "Steps, tests and marks over time" });
  private boxes: Box[] = [];
  /** The steps by their beginning, outer ones first. */
  private order: number[];

  /** Null: the recording has no steps. */
  static of(context: Context): Lane | null {
    return context.data.doc.steps.from.length > 0 ? new Lane(context) : null;
  }

  private constructor(private context: Context) {
    const { from, to } = context.data.doc.steps;
    this.order = from.map((_, ix) => ix).sort((a, b) => from[a] - from[b] || to[b] - to[a] || a - b);
    this.element = h("div", { class: "lane" }, this.canvas, h("span", { class: "lane-title" }, TITLE));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => context.tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const ix = this.find(event);
      if (ix < 0) return;
      const room = Math.max((to[ix] - from[ix]) * 0.05, 500);
      context.store.zoom(from[ix] - room, to[ix] + room);
    });
  }

  /** Draws the steps in the shown time; the time axis begins after the gutter. */
  draw(width: number, gutter: number, theme: Theme) {
    const { data, store } = this.context;
    const { t0, t1 } = store.state;
    const { from, to, failed } = data.doc.steps;
    const { x } = scale(store.state, width, gutter);
    this.boxes = [];
    const until: number[] = [];
    const rows = innerHeight < LOW ? LOW_ROWS : ROWS;
    for (const step of this.order) {
      if (to[step] < t0 || from[step] > t1) continue;
      const left = x(from[step]);
      const moment = from[step] === to[step];
      const right = moment ? left + LEAST : x(to[step]);
      if (right - left < LEAST) continue;
      let row = 0;
      while (row < rows && until[row] > left + 0.5) row++;
      if (row === rows) continue;
      until[row] = right;
      this.boxes.push({ step, row, left, right });
    }
    const height = Math.max(1, until.length) * ROW;
    const ctx = sized(this.canvas, width, height);
    if (!ctx) return;
    ctx.font = FONT;
    for (const { step, row, left, right } of this.boxes) {
      const [y, wide] = [row * ROW, right - left];
      const colored = store.state.color === "step";
      ctx.fillStyle = colored ? theme.programs[step % HUES] : failed[step] ? theme.css.bad : theme.css.accent;
      ctx.globalAlpha = colored ? 0.4 : 0.18;
      ctx.fillRect(left, y, Math.max(1, wide - 1), ROW - 2);
      ctx.globalAlpha = 1;
      ctx.fillRect(left, y, 1.5, ROW - 2);
      const room = (row === 0 ? beside(ctx, TITLE, width, right) : right) - left;
      if (room < 24) continue;
      ctx.fillStyle = failed[step] ? theme.css.bad : theme.css.ink;
      ctx.fillText(
        fit(ctx, { text: data.stepName(step), brief: data.stepBrief(step) }, room - 8),
        left + 4,
        y + ROW - 6,
      );
    }
  }

  private find(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const [x, row] = [event.clientX - box.left, Math.floor((event.clientY - box.top) / ROW)];
    const hit = this.boxes.find((b) => b.row === row && x >= b.left - 2 && x <= b.right + 2);
    return hit ? hit.step : -1;
  }

  private hover(event: PointerEvent) {
    const ix = this.find(event);
    const { data, tip } = this.context;
    if (ix < 0) return tip.hide();
    const { name, kind, from, to, spent } = data.doc.steps;
    const wall = to[ix] - from[ix];
    tip.show(
      event,
      h("strong", {}, data.string(name[ix])),
      h(
        "div",
        { class: "dim" },
        `${data.string(kind[ix])} · from ${at(from[ix])}${wall > 0 ? ` · wall ${time(wall)}` : ""}`,
      ),
      h("div", {}, data.string(spent[ix])),
    );
  }
}
