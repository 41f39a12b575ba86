// Steps over time, one bar each, as `cargo build --timings` draws units: what each took, what it
// waited for, and how many ran at once.

import { KINDS } from "./data";
import { h } from "./dom";
import { FONT } from "./heatmap";
import { fit } from "./paint";
import { steps } from "./path";
import { open, stepColors } from "./steps";
import { TimeView, type Context, type Frame } from "./timeview";
import { at, time } from "./units";

/** Rows of steps. */
interface Link {
  needs: Set<number>;
  needed: Set<number>;
  before: Set<number>;
  after: Set<number>;
}

const PITCH = 20;
const HEIGHT = 14;
/** The units of a course (`WHOLE` in steps.rs). */
const COURSE = 1000;
/** The most cells of a bar: a course has as many stretches (`FINENESS`). */
const CELLS = 64;

export class UnitsChart extends TimeView {
  /** Steps by their start. */
  private rows: number[] = [];
  private slots: Map<number, [from: number, to: number][]> | null = null;
  /** Neighbours of steps: those whose files a step names or that name its files, and on the critical path. */
  private links: Map<number, Link> | null = null;
  private places = new Map<number, number>();
  private hovered = -1;

  constructor(context: Context) {
    super(
      context,
      "Steps over time, one bar each",
      "Drag to pan · Ctrl + wheel or a double click to zoom · a click opens a step · hollow: it waits for a job slot · a line at the pointer: one names a file of the other",
      h("span"),
    );
  }

  show(rows: number[]) {
    const { from } = this.data.doc.steps;
    this.rows = [...rows].sort((a, b) => from[a] - from[b] || a - b);
    this.places = new Map(this.rows.map((row, place) => [row, place]));
    this.draw();
  }

  protected override isEmpty(): boolean {
    return this.rows.length === 0;
  }
  protected override gutter(): number {
    return 0;
  }
  protected contentHeight(): number {
    return this.rows.length * PITCH + 10;
  }

  /** When the process of a step waits for a job slot. */
  private waits(row: number): [number, number][] {
    const { data } = this;
    this.slots ??= new Map();
    let known = this.slots.get(row);
    if (known) return known;
    known = [];
    const { first, kind, start, end } = data.pieces;
    const { from, to, process } = data.doc.steps;
    const ix = process[row];
    const thread = ix === null ? -1 : data.threadsFrom[ix];
    for (let p = first[thread] ?? 0; thread >= 0 && p < first[thread + 1]; p++) {
      if (KINDS[kind[p]][0] === "job slot" && end[p] > from[row] && start[p] < to[row])
        known.push([Math.max(start[p], from[row]), Math.min(end[p], to[row])]);
    }
    this.slots.set(row, known);
    return known;
  }

  private link(row: number) {
    if (!this.links) {
      this.links = new Map();
      const { step } = this.data.doc.processes;
      const links = this.links;
      const of = (row: number) => {
        let link = links.get(row);
        if (!link)
          links.set(row, (link = { needs: new Set(), needed: new Set(), before: new Set(), after: new Set() }));
        return link;
      };
      this.data.doc.steps.after.forEach((others, row) =>
        others.forEach((other) => {
          of(row).needs.add(other);
          of(other).needed.add(row);
        }),
      );
      let last = -1;
      for (const { process, several } of steps(this.data, true)) {
        const row = several > 1 ? null : step[process];
        if (row === null) continue;
        if (last >= 0 && last !== row) {
          of(row).before.add(last);
          of(last).after.add(row);
        }
        last = row;
      }
    }
    return this.links.get(row);
  }

  protected paint(frame: Frame) {
    const { ctx, theme, width, top, state, x } = frame;
    const { data, rows } = this;
    const { from, to, uses, failed, course } = data.doc.steps;
    this.blit(frame);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    const colors = stepColors(theme);
    const link = this.hovered >= 0 ? this.link(this.hovered) : undefined;
    const near = link && new Set([this.hovered, ...link.needs, ...link.needed, ...link.before, ...link.after]);
    const first = Math.max(0, Math.floor((top - 4) / PITCH) - 1);
    for (let r = first; r < Math.min(rows.length, first + frame.height / PITCH + 3); r++) {
      const row = rows[r];
      if (to[row] < state.t0 || from[row] > state.t1) continue;
      const y = 4 + r * PITCH - top;
      const [left, right] = [Math.max(-2, x(from[row])), Math.min(width + 2, Math.max(x(to[row]), x(from[row]) + 1))];
      const whole = uses[row].reduce((sum: number, ns) => sum + (ns ?? 0), 0);
      ctx.globalAlpha = near && !near.has(row) ? 0.35 : 1;
      // What its time went to in the order in which it went by; a step without a course had one thing nearly all the time.
      const parts =
        course[row].length > 0 ? course[row] : uses[row].flatMap((ns, use) => [use, ((ns ?? 0) * COURSE) / whole]);
      const [a, b] = [x(from[row]), x(to[row])];
      if (whole === 0) {
        ctx.fillStyle = theme.css.unknown;
        ctx.fillRect(left, y, right - left, HEIGHT);
      }
      if (whole > 0) this.drawCourse(frame, parts, [a, b], y, colors);
      for (const [a, b] of this.waits(row)) {
        const [l, w] = [Math.max(left, x(a)), Math.min(right, x(b)) - Math.max(left, x(a))];
        if (w < 2) continue;
        ctx.fillStyle = theme.css.panel;
        ctx.fillRect(l, y, w, HEIGHT);
        ctx.strokeStyle = theme.css.dim;
        ctx.lineWidth = 1;
        ctx.strokeRect(l + 0.5, y + 0.5, w - 1, HEIGHT - 1);
      }
      ctx.fillStyle = failed[row] ? theme.css.bad : theme.css.ink;
      const text =
        `${failed[row] ? "✕ " : ""}${data.stepTitle(row)} ${time(data.stepWall(row))} ${data.stepError(row)}`.trim();
      const name = fit(ctx, { text, brief: data.stepBrief(row) }, Math.max(width - right - 8, left - 8, 60));
      const wide = ctx.measureText(name).width;
      // Behind the bar, or before it where the picture ends.
      ctx.fillText(
        name,
        right + 4 + wide <= width || left - 4 - wide < 0 ? Math.min(right + 4, width - wide - 2) : left - 4 - wide,
        y + HEIGHT / 2,
      );
      ctx.globalAlpha = 1;
    }
    link?.needs.forEach((other) => this.edge(frame, other, this.hovered));
    link?.needed.forEach((other) => this.edge(frame, this.hovered, other));
  }

  /**
   * Draws what a step's time went to when: in each cell the columns of `kinds` lie on each other by their shares, so that
   * what changes faster than can be seen is no pattern of stripes.
   */
  private drawCourse({ ctx, width }: Frame, parts: number[], [a, b]: [number, number], y: number, colors: string[]) {
    const cells = Math.max(1, Math.min(CELLS, Math.floor((b - a) / 2)));
    const cell = COURSE / cells;
    const shares = colors.map(() => 0);
    let [part, done, left] = [0, 0, parts[1]];
    for (let c = 0; c < cells; c++) {
      shares.fill(0);
      const until = (c + 1) * cell;
      while (part < parts.length && done < until) {
        const take = Math.min(left, until - done);
        shares[parts[part]] += take / cell;
        [done, left] = [done + take, left - take];
        if (left <= 0) [part, left] = [part + 2, parts[part + 3]];
      }
      // On whole pixels: no seams.
      const from = Math.round(Math.max(-2, a + ((b - a) * c) / cells));
      const to = Math.round(Math.min(width + 2, a + ((b - a) * (c + 1)) / cells));
      if (to <= from && cells > 1) continue;
      let bottom = y + HEIGHT;
      shares.forEach((share, use) => {
        if (share === 0) return;
        ctx.fillStyle = colors[use];
        ctx.fillRect(from, bottom - share * HEIGHT, Math.max(1, to - from), share * HEIGHT);
        bottom -= share * HEIGHT;
      });
    }
  }

  /** From the end of a step down to the beginning of one that names its file. */
  private edge({ ctx, theme, top, x }: Frame, one: number, other: number) {
    const { from, to } = this.data.doc.steps;
    const [a, b] = [this.places.get(one), this.places.get(other)];
    if (a === undefined || b === undefined) return;
    const middle = (place: number) => 4 + place * PITCH - top + HEIGHT / 2;
    ctx.strokeStyle = theme.css.ink;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(x(to[one]), middle(a));
    ctx.lineTo(x(to[one]), middle(b));
    ctx.lineTo(x(from[other]), middle(b));
    ctx.stroke();
  }

  private find(t: number, y: number): number {
    const row = this.rows[Math.floor((y - 2) / PITCH)];
    return row === undefined || t < this.store.state.t0 ? -1 : row;
  }

  protected hover(event: PointerEvent, t: number, y: number) {
    const row = this.find(t, y);
    if (row !== this.hovered) {
      this.hovered = row;
      this.draw();
    }
    if (row < 0) return this.tip.hide();
    const { data } = this;
    const { from, spent, at_once } = data.doc.steps;
    const link = this.link(row);
    const names = (title: string, rows: Set<number> | undefined) =>
      rows && rows.size > 0
        ? h(
            "div",
            {},
            `${title} ${[...rows]
              .slice(0, 4)
              .map((one) => data.stepTitle(one))
              .join(", ")}`,
          )
        : null;
    this.tip.show(
      event,
      h("strong", {}, data.stepTitle(row)),
      h(
        "div",
        { class: "dim" },
        `from ${at(from[row])} ${data.stepError(row)} · wall ${time(data.stepWall(row))} · ${at_once[row].toFixed(1)} steps at once`,
      ),
      h("div", {}, data.string(spent[row])),
      names("Names files of", link?.needs),
      names("Its files are named by", link?.needed),
      names("On the critical path after", link?.before),
      names("On the critical path before", link?.after),
    );
  }

  protected pick(t: number, y: number) {
    const row = this.find(t, y);
    if (row >= 0) location.hash = open(this.data, this.store, row);
  }
  reveal() {}
  step() {}
}
