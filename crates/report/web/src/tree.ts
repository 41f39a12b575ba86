// The process tree three times: as a list to go through, as a sunburst, as an
// icicle. A click goes down to the subtree, in all views.

import { HUES } from "./colors";
import type { Data } from "./data";
import { choice, h } from "./dom";
import { figures, lives } from "./figures";
import { inline } from "./grid";
import { clip, FONT, groupBy } from "./heatmap";
import { cutName, type Name } from "./names";
import { fit, ink, sized, theme } from "./paint";
import { alike, type Group } from "./siblings";
import type { Metric, Rows, Store } from "./state";
import type { Context } from "./timeview";
import { count, time } from "./units";

/** Siblings in one cell of the pictures; none: all processes. */
type Cell = number[];
/** A cell's place: its depth, and its part of the whole from 0 to 1. */
interface Node {
  data: Cell;
  depth: number;
  value: number;
  x0: number;
  x1: number;
  children: Node[];
}

/** A group; `below`: siblings of its program with more of the metric than that stand alone. */
interface Bundle extends Group {
  below?: number;
}

const RINGS = 7;
/** The least radius of the sunburst's middle, CSS pixels. */
const MIDDLE = 46;
/** Siblings of a program with a smaller share of the whole are one cell: their names could not be read. */
const SMALL = 0.012;
/** A child with a larger share of all is opened. */
const HEAVY = 0.25;
/** A level of the sunburst that is filled less has no ring. */
const FILLED = 0.08;
/** The width of a ring that is hardly filled, beside a full one. A guess: it can still be pointed at. */
const THIN = 0.3;
const ROW = 24;
/** So many children of one process at a time. */
const MOST = 200;
const NAMES: Record<Metric, string> = { cpu: "CPU", wall: "wall", wait: "run queue, blocked" };

/** What a process itself adds to a metric. */
function own(data: Data, store: Store, ix: number, metric: Metric): number {
  const p = data.doc.processes;
  if (!store.shown(ix)) return 0;
  const { times } = figures(data, store);
  const { t0, t1 } = store.state;
  if (metric === "cpu") return times[0][ix] || 0;
  if (metric === "wait") return (times[1][ix] || 0) + (times[2][ix] || 0);
  // The time in which it lived and no child of it did.
  let covered = 0;
  const [start, end] = [Math.max(p.start[ix], t0), Math.min(p.end[ix], t1)];
  let until = start;
  for (const child of data.children[ix]) {
    const from = Math.max(p.start[child], until);
    const to = Math.min(p.end[child], end);
    if (to > from) {
      covered += to - from;
      until = to;
    }
  }
  return Math.max(0, end - start - covered);
}

export class Tree {
  readonly element: HTMLElement;
  private data: Data;
  private store: Store;
  private sun = h("canvas", { role: "img", "aria-label": "Sunburst of the process tree" });
  private ice = h("canvas", { role: "img", "aria-label": "Icicle of the process tree" });
  private list = h("ul", { role: "tree", "aria-label": "Process tree", class: "tree" });
  private sunBox: HTMLElement;
  private iceBox: HTMLElement;
  private root: Node | null = null;
  /** All cells, parents first. */
  private nodes: Node[] = [];
  /** Each process's cell. */
  private cells = new Map<number, Node>();
  private depth = 1;
  /** The width of each level's ring, beside that of a full one. */
  private rings: number[] = [];
  private key = "";
  private none = h("p", { class: "empty", hidden: true }, "No process matches here.");
  private items = new Map<number, HTMLElement>();
  private subtree = new Float64Array(0);
  /** Each process's metric with that of its descendants, and that of all. */
  private values = new Float64Array(0);
  private most = 1;
  /** The time that a full bar of the list stands for. */
  private scale = 1;
  /** The number of a group in the tree is -2 less its place here; it keeps it while its members change. */
  private groups: Bundle[] = [];
  private numbers = new Map<string, number>();
  private groupOf = new Map<number, number>();
  private kids = new Map<number, number[]>();
  private open = new Set<number>();
  /** The roots from which the way to the most time was opened. */
  private shownRoots = new Set<number>();
  private more = new Map<number, number>();
  /** What the roots stand for, and for each process its group's number; none: the processes are the tree. */
  private rows: Rows = "process";
  private grouping: Int32Array | null = null;
  private names: string[] = [];
  private refresh: () => void;

  constructor(
    private context: Context,
    private ranks: Map<string, number>,
  ) {
    this.data = context.data;
    this.store = context.store;
    const { store } = this;
    const metric = choice<Metric>(
      "Size by",
      [
        ["cpu", "CPU"],
        ["wall", "Wall"],
        ["wait", "Waiting"],
      ],
      (value) => store.set({ metric: value }),
    );
    const up = h("button", { type: "button", onclick: () => this.up(), title: "To the parent (u)" }, "↑ Up");
    const by = groupBy(context);
    this.sunBox = h("div", { class: "sunburst" }, this.sun);
    this.iceBox = h("div", { class: "icicle" }, this.ice);
    this.element = h(
      "div",
      { class: "treeview" },
      h("div", { class: "toolbar" }, by.element, metric.element, up, h("span", { class: "dim note" })),
      h(
        "div",
        { class: "tree-columns" },
        h(
          "div",
          { class: "tree-box" },
          h(
            "div",
            { class: "line tree-head", "aria-hidden": "true" },
            h("span"),
            h("span", {}, "Process"),
            h("span"),
            h("span", { class: "num" }, "CPU, tree"),
            h("span", { class: "num" }, "Wall"),
          ),
          this.list,
          this.none,
        ),
        this.sunBox,
      ),
      this.iceBox,
    );
    const note = this.element.querySelector(".note")!;
    this.refresh = () => {
      metric.show(store.state.metric);
      by.show(store.state.rows === "thread" ? "process" : store.state.rows);
      up.disabled = store.state.root < 0;
      note.textContent = {
        cpu: "Sizes: CPU time with descendants",
        wall: "Sizes: time in which no child lived, with descendants",
        wait: "Sizes: time in run queues or blocked, with descendants",
      }[store.state.metric];
    };
    const redraw = () => this.draw();
    new ResizeObserver(redraw).observe(this.sunBox);
    new ResizeObserver(redraw).observe(this.iceBox);
    for (const [canvas, find] of [
      [this.sun, (e: MouseEvent) => this.atSun(e)],
      [this.ice, (e: MouseEvent) => this.atIce(e)],
    ] as const) {
      canvas.addEventListener("click", (event) => this.descend(find(event)));
      canvas.addEventListener("pointermove", (event) => this.hover(event, find(event)));
      canvas.addEventListener("pointerleave", () => context.tip.hide());
    }
    this.list.addEventListener("keydown", (event) => this.keys(event));
  }

  /** Puts the processes into their groups. */
  private regroup() {
    const { data, rows } = this;
    this.groups = [];
    this.numbers.clear();
    this.names = [];
    this.grouping = null;
    if (rows === "process" || rows === "thread") return;
    const numbers = new Map<string, number>();
    this.grouping = Int32Array.from({ length: data.n }, (_, ix) => {
      const name = data.group(rows, ix);
      let number = numbers.get(name);
      if (number === undefined) numbers.set(name, (number = this.names.push(name) - 1));
      return number;
    });
  }
  /** The parent; within groups only one of the same group. */
  private parent(ix: number): number {
    const parent = this.data.parent[ix];
    return parent >= 0 && this.grouping && this.grouping[parent] !== this.grouping[ix] ? -1 : parent;
  }
  private children(ix: number): number[] {
    return this.grouping ? this.data.children[ix].filter((child) => this.parent(child) === ix) : this.data.children[ix];
  }
  /** The roots of each group. */
  private tops(): number[][] {
    const out: number[][] = this.names.map(() => []);
    for (let ix = 0; ix < this.data.n; ix++) if (this.parent(ix) < 0) out[this.grouping![ix]].push(ix);
    return out;
  }

  /** The children of a process, or the roots: many of a kind as a group. */
  private below(ix: number): number[] {
    const known = this.kids.get(ix);
    if (known) return known;
    const { data } = this;
    if (ix < 0 && this.grouping) {
      const out = this.tops().map((members, n) => this.bundle(ix, { program: this.names[n], members }));
      this.kids.set(ix, out);
      return out;
    }
    const all = ix < 0 ? data.roots : this.children(ix);
    const ids = new Map<number, number>();
    // What is large stands alone.
    const least = SMALL * all.reduce((sum, child) => sum + this.values[child], 0);
    for (const group of alike(data, all, (child) => this.values[child] <= least)) {
      const alone = all.some((child) => this.values[child] > least && data.program(child) === group.program);
      const id = this.bundle(ix, { ...group, below: alone ? least : undefined });
      for (const member of group.members) ids.set(member, id);
    }
    // A group stands where its first member would.
    const out = [...new Set(all.map((child) => ids.get(child) ?? child))];
    this.kids.set(ix, out);
    return out;
  }
  /** The number of a group below a process. */
  private bundle(ix: number, group: Bundle): number {
    const key = `${ix} ${group.program}`;
    let at = this.numbers.get(key);
    if (at === undefined) this.numbers.set(key, (at = this.groups.length));
    this.groups[at] = group;
    for (const member of group.members) this.groupOf.set(member, -2 - at);
    return -2 - at;
  }
  private members(ix: number): number[] {
    return ix < -1 ? this.groups[-2 - ix].members : [ix];
  }

  up() {
    const { root } = this.store.state;
    if (root >= 0) this.store.set({ root: this.data.parent[root], sel: root });
  }

  /** A click on the middle goes up, on another one down to it; of several the largest is chosen. */
  private descend(node: Node | null) {
    if (!node) return;
    if (node === this.root) return this.up();
    const [ix] = node.data;
    if (node.data.length === 1)
      return this.store.set({ sel: ix, root: this.data.children[ix].length > 0 ? ix : this.store.state.root });
    this.below(this.parent(ix));
    const group = this.groupOf.get(ix);
    if (group !== undefined) this.open.add(group);
    this.store.set({ sel: ix });
  }

  update() {
    this.refresh();
    const { state } = this.store;
    const { rows } = state;
    if (rows !== this.rows) {
      this.rows = rows;
      this.regroup();
    }
    const key = [rows, state.root, state.cgroup, state.metric, state.q, state.t0, state.t1].join("\n");
    if (key !== this.key) {
      this.key = key;
      this.layout();
      this.fill();
    }
    this.mark();
    this.draw();
  }

  private layout() {
    const { data, store } = this;
    const { metric, root: chosen } = store.state;
    const sums = Float64Array.from({ length: data.n }, (_, ix) => (store.scope[ix] ? own(data, store, ix, metric) : 0));
    const values = sums.slice();
    for (let at = data.n - 1; at >= 0; at--) {
      const ix = data.order[at];
      const parent = this.parent(ix);
      if (parent >= 0) values[parent] += values[ix];
    }
    this.values = values;
    // What is small changes with what is shown.
    this.kids.clear();
    this.groupOf.clear();
    const tops = this.grouping && chosen < 0 ? this.tops() : null;
    this.most = (tops ? tops.flat() : data.roots).reduce((sum, ix) => sum + values[ix], 0);
    const top: Cell = chosen >= 0 ? [chosen] : data.roots.length === 1 && !tops ? data.roots : [];
    const least = SMALL * (top.length > 0 ? values[top[0]] : this.most);
    const parts = (cell: Cell): Cell[] => {
      if (cell.length === 0 && tops) return tops;
      const small = new Map<string, Cell>();
      const out: Cell[] = [];
      for (const ix of cell.length > 0 ? cell.flatMap((of) => this.children(of)) : data.roots) {
        const known = values[ix] < least ? small.get(data.program(ix)) : undefined;
        if (known) known.push(ix);
        else out.push([ix]);
        if (!known && values[ix] < least) small.set(data.program(ix), out[out.length - 1]);
      }
      for (const several of out) if (several.length > 1) several.sort((a, b) => values[b] - values[a] || a - b);
      return out;
    };
    const node = (data: Cell, depth: number): Node => ({
      data,
      depth,
      value: data.reduce((sum, ix) => sum + sums[ix], 0),
      x0: 0,
      x1: 1,
      children: [],
    });
    this.root = node(top, 0);
    this.nodes = [this.root];
    // The list grows while it is gone through.
    for (const parent of this.nodes) {
      parent.children = parts(parent.data).map((cell) => node(cell, parent.depth + 1));
      for (const child of parent.children) this.nodes.push(child);
    }
    for (let at = this.nodes.length - 1; at >= 0; at--) {
      const { children } = this.nodes[at];
      for (const child of children) this.nodes[at].value += child.value;
      children.sort((a, b) => b.value - a.value || a.data[0] - b.data[0]);
    }
    this.cells.clear();
    // Levels of which nothing can be seen take no room.
    this.depth = 1;
    const filled: number[] = [];
    for (const d of this.nodes) {
      let x = d.x0;
      for (const child of d.children) {
        child.x0 = x;
        child.x1 = x += d.value > 0 ? ((d.x1 - d.x0) * child.value) / d.value : 0;
      }
      for (const ix of d.data) this.cells.set(ix, d);
      if (d.x1 - d.x0 > 0.01) filled[d.depth] = (filled[d.depth] ?? 0) + d.x1 - d.x0;
    }
    while (this.depth < RINGS && (filled[this.depth + 1] ?? 0) >= FILLED) this.depth++;
    this.rings = Array.from({ length: this.depth }, (_, n) => Math.max(THIN, Math.min(1, filled[n + 1] ?? 0)));
  }

  private color({ data: [ix] }: Node, colors: ReturnType<typeof theme>): string {
    if (ix === undefined) return colors.css.line;
    return colors.programs[this.ranks.get(this.data.program(ix)) ?? HUES] ?? colors.css.faint;
  }
  private name(node: Node): string {
    const { data: cell } = node;
    if (this.grouping && this.isGroup(node)) return this.names[this.grouping[cell[0]]];
    if (cell.length > 1) return `${count(cell.length)} × ${this.data.program(cell[0])}`;
    return cell.length === 0 ? "All processes" : this.data.label(cell[0]);
  }
  /** Whether a node is a group of the tree's first level. */
  private isGroup({ depth }: Node): boolean {
    return depth === 1 && this.grouping !== null && this.store.state.root < 0;
  }
  /** The name with the brief name of its only process, for where it may be cut. */
  private cutting(node: Node): Name | string {
    const { data: cell } = node;
    return cell.length === 1 && !this.isGroup(node) ? this.data.labelName(cell[0]) : this.name(node);
  }
  private shows({ data: cell }: Node): boolean {
    return cell.length === 0 || cell.some((ix) => this.store.shown(ix));
  }
  private fails({ data: cell }: Node): boolean {
    return cell.some((ix) => this.data.bad(ix));
  }

  draw() {
    if (!this.root || this.sunBox.clientWidth === 0) return;
    const colors = theme();
    this.drawSun(colors);
    this.drawIce(colors);
  }

  private size(): number {
    return Math.max(120, Math.min(this.sunBox.clientWidth, this.sunBox.clientHeight || 480));
  }
  /** The radius of the middle, which has room for its text, then the outer radius of each ring. */
  private radii(): number[] {
    const radius = this.size() / 2 - 10;
    const all = this.rings.reduce((sum, ring) => sum + ring, 0);
    const hole = Math.max((radius * 1.2) / (all + 1.2), Math.min(MIDDLE, radius / 2));
    let inside = 0;
    return [hole, ...this.rings.map((ring) => hole + ((radius - hole) * (inside += ring)) / all)];
  }

  private drawSun(colors: ReturnType<typeof theme>) {
    const root = this.root!;
    const size = this.size();
    const ctx = sized(this.sun, size, size);
    if (!ctx) return;
    const radii = this.radii();
    const [hole] = radii;
    // A part of a ring, half a pixel apart from its neighbours.
    const shape = (depth: number, x0: number, x1: number) => {
      const [from, to] = [(x0 - 0.25) * 2 * Math.PI, (x1 - 0.25) * 2 * Math.PI];
      const [inner, outer] = [radii[depth - 1], radii[depth] - 1];
      const gap = (radius: number) => (to - from < 6.28 ? Math.min(0.5 / radius, (to - from) / 4) : 0);
      ctx.beginPath();
      ctx.arc(0, 0, outer, from + gap(outer), to - gap(outer));
      ctx.arc(0, 0, inner, to - gap(inner), from + gap(inner), true);
      ctx.closePath();
    };
    ctx.save();
    ctx.translate(size / 2, size / 2);
    ctx.font = FONT;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    const chosen = this.cells.get(this.store.state.sel);
    this.nodes.forEach((d) => {
      const own = d.children.at(-1)?.x1 ?? d.x1;
      // What a process did itself, beside its children, is a pale part of their ring, if they can be seen.
      const hasRing = d.depth === 0 || own - d.x0 > SMALL;
      if (d.depth < this.depth && d.data.length > 0 && hasRing && (d.x1 - own) * radii[d.depth] * 6.28 > 2) {
        shape(d.depth + 1, own, d.x1);
        ctx.globalAlpha = this.shows(d) ? 0.15 : 0.05;
        ctx.fillStyle = this.color(d, colors);
        ctx.fill();
        ctx.globalAlpha = 1;
      }
      if (d.depth === 0 || d.depth > this.depth || (d.x1 - d.x0) * radii[d.depth] * 6.28 < 0.4) return;
      const ring = radii[d.depth] - radii[d.depth - 1];
      shape(d.depth, d.x0, d.x1);
      ctx.globalAlpha = this.shows(d) ? 1 : 0.25;
      ctx.fillStyle = this.color(d, colors);
      ctx.fill();
      if (this.fails(d)) {
        ctx.strokeStyle = colors.css.bad;
        ctx.lineWidth = 1.5;
        ctx.stroke();
      }
      if (d === chosen) {
        ctx.strokeStyle = colors.css.ink;
        ctx.lineWidth = 2.5;
        ctx.stroke();
      }
      const radius = radii[d.depth] - ring / 2;
      const length = (d.x1 - d.x0) * 2 * Math.PI * radius;
      const middle = (d.x0 + d.x1) * Math.PI - Math.PI / 2;
      ctx.fillStyle = ink(this.color(d, colors));
      ctx.save();
      if (length > 64 && ring > 11) {
        ctx.rotate(middle);
        ctx.translate(radius, 0);
        const below = Math.sin(middle) > 0;
        ctx.rotate(below ? -Math.PI / 2 : Math.PI / 2);
        // Straight text in a bent ring: no longer than the bend allows.
        const straight = Math.min(length - 6, 2 * Math.sqrt(Math.max(0, 2 * radius * (ring / 2 - 8))) + 24);
        shrink(ctx, this.name(d), straight);
        ctx.fillText(fit(ctx, this.cutting(d), straight), 0, 0);
      } else if (length > 13 && ring > 34) {
        ctx.rotate(middle);
        ctx.translate(radius, 0);
        if (Math.cos(middle) < 0) ctx.rotate(Math.PI);
        shrink(ctx, this.name(d), ring - 8);
        ctx.fillText(fit(ctx, this.cutting(d), ring - 8), 0, 0);
      }
      ctx.restore();
      ctx.globalAlpha = 1;
    });
    // As long as the circle is wide, two lines above its middle.
    const room = 2 * Math.sqrt(Math.max(900, hole ** 2 - 26 ** 2)) - 10;
    ctx.fillStyle = colors.css.ink;
    ctx.font = `600 ${FONT}`;
    // In full, where letters of 10 px let it.
    let [lines, px] = [wrap(ctx, this.name(root), room), 12];
    while (px > 9 && lines.join(" ") !== this.name(root)) {
      ctx.font = `600 ${FONT.replace("12px", `${--px}px`)}`;
      lines = wrap(ctx, this.name(root), room);
    }
    lines.forEach((line, n) => ctx.fillText(line, 0, (n - lines.length) * 16 + 7));
    ctx.font = FONT;
    ctx.fillStyle = colors.css.dim;
    wrap(ctx, `${time(root.value)} ${NAMES[this.store.state.metric]}`, room).forEach((line, n) =>
      ctx.fillText(line, 0, 11 + n * 15),
    );
    ctx.restore();
  }

  private drawIce(colors: ReturnType<typeof theme>) {
    const width = this.iceBox.clientWidth;
    // Levels of which nothing can be seen leave their room to the list.
    const deepest = this.nodes.reduce((most, d) => ((d.x1 - d.x0) * width >= 2 ? Math.max(most, d.depth) : most), 0);
    const levels = Math.min(14, deepest + 1);
    const ctx = sized(this.ice, width, levels * ROW);
    if (!ctx) return;
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    const chosen = this.cells.get(this.store.state.sel);
    this.nodes.forEach((d) => {
      const [a, b] = [d.x0 * width, d.x1 * width];
      if (d.depth >= levels || b - a < 0.3) return;
      const y = d.depth * ROW;
      const color = this.color(d, colors);
      ctx.globalAlpha = this.shows(d) ? 1 : 0.25;
      ctx.fillStyle = color;
      ctx.fillRect(a, y, Math.max(0.5, b - a - (b - a > 3 ? 1 : 0)), ROW - 1);
      if (this.fails(d)) {
        ctx.fillStyle = colors.css.bad;
        ctx.fillRect(a, y + ROW - 4, Math.max(2, b - a - 1), 3);
      }
      if (b - a > 24) {
        ctx.fillStyle = ink(color);
        ctx.font = FONT;
        shrink(ctx, this.name(d), b - a - 10);
        ctx.fillText(fit(ctx, this.cutting(d), b - a - 10), a + 5, y + ROW / 2);
      }
      if (d === chosen) {
        ctx.strokeStyle = colors.css.ink;
        ctx.lineWidth = 2;
        ctx.strokeRect(a + 1, y + 1, Math.max(2, b - a - 3), ROW - 3);
      }
      ctx.globalAlpha = 1;
    });
  }

  private atSun(event: MouseEvent): Node | null {
    if (!this.root) return null;
    const box = this.sun.getBoundingClientRect();
    const size = this.size();
    const [dx, dy] = [event.clientX - box.left - size / 2, event.clientY - box.top - size / 2];
    const depth = this.radii().findIndex((radius) => Math.hypot(dx, dy) < radius);
    if (depth === 0) return this.root;
    let x = (Math.atan2(dy, dx) + Math.PI / 2) / (2 * Math.PI);
    if (x < 0) x += 1;
    return depth < 0 ? null : this.find(depth, x);
  }
  private atIce(event: MouseEvent): Node | null {
    const box = this.ice.getBoundingClientRect();
    return this.find(Math.floor((event.clientY - box.top) / ROW), (event.clientX - box.left) / box.width);
  }
  private find(depth: number, x: number): Node | null {
    let node: Node | null = this.root;
    while (node && node.depth < depth) node = node.children.find((child) => x >= child.x0 && x < child.x1) ?? null;
    return node;
  }

  private hover(event: PointerEvent, node: Node | null) {
    if (!node) return this.context.tip.hide();
    const [ix] = node.data;
    const whole = this.root?.value ?? 0;
    const lines = [
      h("strong", {}, this.name(node)),
      h(
        "div",
        {},
        `${NAMES[this.store.state.metric]} ${time(node.value)}${whole > 0 ? ` · ${((node.value * 100) / whole).toFixed(1)} %` : ""} with descendants`,
      ),
    ];
    if (node.data.length > 1)
      lines.push(
        h(
          "div",
          { class: "dim" },
          `wall ${time(node.data.reduce((sum, member) => sum + this.data.wall(member), 0))} together`,
        ),
      );
    if (node.data.length === 1) {
      const p = this.data.doc.processes;
      lines.push(
        h(
          "div",
          { class: "dim" },
          `pid ${p.pid[ix]} · own CPU ${time(p.on_cpu[ix])} · wall ${time(this.data.wall(ix))} · ${this.data.exit(ix)} · ${count(p.tree_processes[ix])} in the subtree`,
        ),
      );
      lines.push(h("div", { class: "argv" }, clip(this.data.argv(ix))));
    }
    this.context.tip.show(event, ...lines);
  }

  // The list.

  private fill() {
    this.items.clear();
    const { root } = this.store.state;
    this.sumUp();
    const roots = root >= 0 ? [root] : this.below(-1);
    if (root >= 0) this.open.add(root);
    this.openHeavy(roots);
    this.scale = Math.max(1, this.longest(roots));
    const items = this.branch(roots, 1, -1);
    this.list.replaceChildren(...items);
    this.none.hidden = items.length > 0;
  }

  /** Opens the way to where most of the time is, once for each root. */
  private openHeavy(roots: number[]) {
    let [ix] = this.sorted(roots);
    const most = ix === undefined ? 0 : this.metric(ix);
    if (ix === undefined || ix < 0 || this.shownRoots.has(ix)) return;
    this.shownRoots.add(ix);
    while (ix >= 0) {
      this.open.add(ix);
      const next = this.sorted(this.below(ix)).find((child) => child >= 0);
      if (next === undefined || this.metric(next) < HEAVY * most) return;
      ix = next;
    }
  }

  /** The CPU time of each subtree in the part that is shown. */
  private sumUp() {
    const { data, store } = this;
    const [cpu] = figures(data, store).times;
    this.subtree = new Float64Array(data.n);
    for (let at = data.n - 1; at >= 0; at--) {
      const ix = data.order[at];
      if (store.shown(ix)) this.subtree[ix] += cpu[ix] || 0;
      const parent = this.parent(ix);
      if (parent >= 0) this.subtree[parent] += this.subtree[ix];
    }
  }

  /** Those that are shown, the one with the most time in and below it first. */
  private sorted(of: number[]): number[] {
    const all = of.filter((ix) => this.members(ix).some((member) => this.covers(member)));
    return all.sort((a, b) => this.metric(b) - this.metric(a) || a - b);
  }
  /** The time of what the list is sorted by, with descendants. */
  private metric(ix: number): number {
    return this.members(ix).reduce((sum, member) => sum + this.values[member], 0);
  }
  /** The most time of a row that is not opened. Beside one that is, all others would be a few pixels. */
  private longest(of: number[]): number {
    return of.reduce((most, ix) => {
      const below = this.open.has(ix) ? (ix < -1 ? this.members(ix) : this.below(ix)) : [];
      return Math.max(most, below.length > 0 ? this.longest(below) : this.metric(ix));
    }, 0);
  }
  /** That time beside the longest; a longer bar is cut. */
  private bar(ix: number): HTMLElement {
    const value = this.metric(ix);
    const out = inline([[Math.min(value, this.scale), "s0", NAMES[this.store.state.metric]]], this.scale);
    out.classList.toggle("cut", value > this.scale);
    return out;
  }
  private covers(ix: number): boolean {
    if (!this.store.narrowed) return true;
    for (let at = this.data.place[ix]; at < this.data.subtreeEnd[ix]; at++) {
      const below = this.data.order[at];
      if (this.store.shown(below) && lives(this.data, this.store, below)) return true;
    }
    return false;
  }

  private branch(of: number[], level: number, parent: number): HTMLElement[] {
    const all = this.sorted(of);
    const most = this.more.get(parent) ?? MOST;
    const items = all.slice(0, most).map((ix) => this.item(ix, level));
    if (all.length > most) {
      items.push(
        h(
          "li",
          {
            role: "treeitem",
            "aria-level": level,
            tabindex: "-1",
            class: "more",
            onclick: () => {
              this.more.set(parent, most + MOST * 5);
              this.fill();
              this.mark();
            },
          },
          `${count(all.length - most)} more …`,
        ),
      );
    }
    return items;
  }

  private item(ix: number, level: number): HTMLElement {
    const { data } = this;
    if (ix < -1) return this.group(ix, level);
    const p = data.doc.processes;
    const children = this.sorted(this.below(ix));
    const open = children.length > 0 && this.open.has(ix);
    const cpu = time(this.store.narrowed || this.grouping ? this.subtree[ix] : p.tree_on_cpu[ix]);
    const wall = time(figures(data, this.store).wall[ix]);
    const name = `${data.label(ix)}, CPU with descendants ${cpu}, wall ${wall}, ${data.exit(ix)}`;
    const line = h(
      "div",
      { class: "line" },
      h("span", { class: "twist", "aria-hidden": "true" }, children.length === 0 ? "" : open ? "▾" : "▸"),
      h("span", { class: data.bad(ix) ? "name bad" : "name" }, cutName(data.label(ix))),
      this.bar(ix),
      h("span", { class: "num" }, cpu),
      h("span", { class: "num" }, wall),
    );
    line.style.paddingLeft = `${(Math.min(level, 12) - 1) * 14 + 4}px`;
    const item = h(
      "li",
      {
        role: "treeitem",
        "aria-level": level,
        "aria-label": name,
        "aria-selected": "false",
        tabindex: "-1",
        "data-ix": ix,
        "aria-expanded": children.length > 0 ? String(open) : undefined,
      },
      line,
    );
    if (open) item.append(h("ul", { role: "group" }, ...this.branch(this.below(ix), level + 1, ix)));
    line.addEventListener("click", (event) => {
      if ((event.target as HTMLElement).classList.contains("twist") && children.length > 0) this.toggle(ix);
      else this.store.set({ sel: ix });
    });
    line.addEventListener("dblclick", () => this.store.set({ root: ix, sel: ix }));
    this.items.set(ix, item);
    return item;
  }

  /** A line for many siblings of a program. */
  private group(ix: number, level: number): HTMLElement {
    const members = this.sorted(this.members(ix));
    const open = this.open.has(ix);
    const { wall } = figures(this.data, this.store);
    const sum = (of: (ix: number) => number) => members.reduce((all, member) => all + of(member), 0);
    const [cpu, walls] = [time(sum((member) => this.subtree[member])), time(sum((member) => wall[member]))];
    const failed = members.filter((member) => this.data.bad(member)).length;
    const { program, below } = this.groups[-2 - ix];
    const small = below === undefined ? "" : `, each below ${time(below)}`;
    const name = `${level === 1 && this.grouping ? program : `${count(members.length)} × ${program}${small}`}${failed > 0 ? `, ${count(failed)} failed` : ""}`;
    const line = h(
      "div",
      { class: "line" },
      h("span", { class: "twist", "aria-hidden": "true" }, open ? "▾" : "▸"),
      h("span", { class: failed > 0 ? "name bad" : "name" }, name),
      this.bar(ix),
      h("span", { class: "num" }, cpu),
      h("span", { class: "num" }, walls),
    );
    line.style.paddingLeft = `${(Math.min(level, 12) - 1) * 14 + 4}px`;
    const item = h(
      "li",
      {
        role: "treeitem",
        class: "group",
        "aria-level": level,
        "aria-label": `${name}, CPU ${cpu}, wall ${walls}`,
        "aria-selected": "false",
        tabindex: "-1",
        "data-group": ix,
        "aria-expanded": String(open),
      },
      line,
    );
    if (open) item.append(h("ul", { role: "group" }, ...this.branch(members, level + 1, ix)));
    line.addEventListener("click", () => this.toggle(ix));
    this.items.set(ix, item);
    return item;
  }

  private toggle(ix: number, to = !this.open.has(ix)) {
    if (to) this.open.add(ix);
    else this.open.delete(ix);
    const item = this.items.get(ix);
    if (!item) return;
    const fresh = this.item(ix, Number(item.getAttribute("aria-level")));
    const focused = item.contains(document.activeElement);
    item.replaceWith(fresh);
    this.mark();
    if (focused) fresh.focus();
  }

  /** Shows the selected one, open to it, and makes it the one that Tab comes to. */
  private mark() {
    const { sel } = this.store.state;
    if (sel >= 0 && !this.items.get(sel)?.isConnected) {
      for (const ix of this.data.ancestors(sel)) {
        if (ix !== sel) this.open.add(ix);
        this.below(this.parent(ix));
        const group = this.groupOf.get(ix);
        if (group !== undefined) this.open.add(group);
      }
      this.fill();
    }
    this.list.querySelectorAll('[aria-selected="true"]').forEach((item) => item.setAttribute("aria-selected", "false"));
    this.list.querySelectorAll('[tabindex="0"]').forEach((item) => item.setAttribute("tabindex", "-1"));
    const item = this.items.get(sel);
    if (item?.isConnected) {
      item.setAttribute("aria-selected", "true");
      if (this.element.offsetParent) item.firstElementChild?.scrollIntoView({ block: "nearest" });
    }
    (item?.isConnected ? item : this.list.querySelector('[role="treeitem"]'))?.setAttribute("tabindex", "0");
  }

  private keys(event: KeyboardEvent) {
    const item = (event.target as HTMLElement).closest<HTMLElement>('[role="treeitem"]');
    if (!item) return;
    const all = [...this.list.querySelectorAll<HTMLElement>('[role="treeitem"]')];
    const at = all.indexOf(item);
    const ix = Number(item.dataset.ix ?? item.dataset.group ?? -1);
    const go = (to: HTMLElement | undefined | null) => {
      if (!to) return;
      if (to.dataset.ix !== undefined) this.store.set({ sel: Number(to.dataset.ix) });
      to.focus();
    };
    const expanded = item.getAttribute("aria-expanded");
    switch (event.key) {
      case "ArrowDown":
        go(all[at + 1]);
        break;
      case "ArrowUp":
        go(all[at - 1]);
        break;
      case "Home":
        go(all[0]);
        break;
      case "End":
        go(all[all.length - 1]);
        break;
      case "ArrowRight":
        if (expanded === "false") this.toggle(ix, true);
        else if (expanded === "true") go(all[at + 1]);
        break;
      case "ArrowLeft":
        if (expanded === "true") this.toggle(ix, false);
        else go(item.parentElement?.closest<HTMLElement>('[role="treeitem"]'));
        break;
      case " ":
      case "Enter":
        if (ix < -1) this.toggle(ix);
        else if (ix < 0) item.click();
        else this.store.set({ sel: ix, root: event.key === "Enter" ? ix : this.store.state.root });
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Makes the letters smaller, down to 10 px, where a text has no room otherwise. */
function shrink(ctx: CanvasRenderingContext2D, text: string, width: number) {
  for (const px of [11, 10]) if (ctx.measureText(text).width > width) ctx.font = FONT.replace("12px", `${px}px`);
}

/** A text in up to two lines of a width. */
function wrap(ctx: CanvasRenderingContext2D, text: string, width: number): string[] {
  const words = text.split(" ");
  let first = 1;
  while (first < words.length && ctx.measureText(words.slice(0, first + 1).join(" ")).width <= width) first++;
  return [words.slice(0, first).join(" "), words.slice(first).join(" ")]
    .filter((line) => line)
    .map((line) => fit(ctx, line, width));
}
