// The functions of sampled stacks: a list, and a flame graph with callers above callees. Of one
// function, all its callers stand above it and all its callees below.

import { HUES } from "./colors";
import type { Data } from "./data";
import { choice, h } from "./dom";
import { FONT, groupBy } from "./heatmap";
import { fit, ink, sized, theme, type Theme } from "./paint";
import {
  frame,
  frames,
  grouped,
  hottest,
  places,
  reasonsOf,
  together,
  weigh,
  type Doing,
  type Frame,
  type Stacks,
  type Sum,
  type Weights,
} from "./stacks";
import { matcher } from "./search";
import type { Store } from "./state";
import type { Context } from "./timeview";
import { count, share, time } from "./units";

const ROW = 20;
/** The most rows of a picture in each direction; the deepest frames have none. */
const DEPTH = 250;
/** The most functions in the list. */
const MOST = 200;
/** Narrower frames are not drawn, CSS pixels. */
const LEAST = 0.4;

const HINT =
  "Click a frame to go into it · arrow keys go from frame to frame, Enter into one, Space to its callers and callees";

/** A frame in its row. */
interface Box {
  frame: Frame;
  row: number;
  /** It is a caller of the function in the middle. */
  up: boolean;
}

export class Flame {
  readonly element: HTMLElement;
  private data: Data;
  private store: Store;
  private canvas = h("canvas", { tabindex: "0", role: "img", "aria-describedby": "frame" });
  private picture = h("div", { class: "flame" }, this.canvas);
  private list = h("div", { class: "functions" });
  private line = h("p", { class: "frame", id: "frame", role: "status", tabindex: "0" });
  private empty = h("p", { class: "empty", hidden: true, role: "status" });
  private weights!: Weights;
  private key = "";
  private reasons: string[] = [];
  private boxes: Box[] = [];
  /** The frame that the keys are at. */
  private at: Box | null = null;
  private wanted: Uint8Array | null = null;
  private hues: Uint8Array;
  private refresh: () => void;

  /** What the roots stand for; the stacks with them. */
  private rows = "";
  private stacks: Stacks;

  constructor(
    private context: Context,
    private plain: Stacks,
  ) {
    const stacks = (this.stacks = plain);
    const { data, store } = context;
    this.data = data;
    this.store = store;
    const doing = choice<Doing>(
      "Samples",
      [
        ["on", "On CPU"],
        ["off", "Off CPU"],
        ["both", "Both"],
      ],
      (doing) => store.set({ doing, frame: 0 }),
    );
    for (const button of doing.element.querySelectorAll("button")) {
      button.disabled = !(button.dataset.value === "on"
        ? stacks.runs
        : button.dataset.value === "off"
          ? stacks.waits
          : stacks.runs && stacks.waits);
    }
    const reason = h("select", {
      id: "reason",
      "aria-label": "Reason of the waits",
      onchange: () => store.set({ reason: reason.value, frame: 0 }),
    });
    const find = h("input", {
      type: "search",
      id: "find",
      placeholder: "Functions: text or /regex/",
      "aria-label": "Highlight functions",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => store.set({ find: find.value }),
    });
    const found = h("span", { class: "dim", id: "highlighted", role: "status" });
    const out = h(
      "button",
      {
        type: "button",
        id: "outwards",
        title: "To the caller; from one function to all (Esc: to all)",
        onclick: () => this.up(),
      },
      "↑ Up",
    );
    const by = groupBy(context, false, (roots) => store.set({ roots, frame: 0, fn: -1 }), "Together");
    const sum = h("span", { class: "dim note", id: "sampled" });
    const { hues, legend } = colors(stacks);
    const both = h(
      "span",
      { class: "key", id: "both" },
      "along the lower edge:",
      h("i", { class: "swatch s0" }),
      "on CPU",
      h("i", { class: "swatch s3" }),
      "off CPU",
    );
    legend.append(both);
    this.hues = hues;
    this.element = h(
      "div",
      { class: "stackview" },
      h("div", { class: "toolbar" }, by.element, doing.element, reason, find, found, out, sum, legend),
      h(
        "div",
        { class: "stack-columns" },
        this.list,
        h("div", { class: "flame-box" }, this.line, this.picture, this.empty),
      ),
    );
    this.refresh = () => {
      const { state } = store;
      by.show(state.roots === "thread" ? "process" : state.roots);
      doing.show(state.doing);
      reason.hidden = state.doing === "on";
      both.hidden = state.doing !== "both";
      const none = state.reason && !this.reasons.includes(state.reason) ? [state.reason] : [];
      reason.replaceChildren(
        h("option", { value: "" }, "All waits"),
        ...[...this.reasons, ...none].map((name) => h("option", { value: name }, name)),
      );
      reason.value = state.reason;
      if (document.activeElement !== find) find.value = state.find;
      this.wanted = this.search(find, found);
      out.disabled = state.frame === 0 && state.fn < 0;
      Object.assign(sum.dataset, { count: this.weights.all.count, ns: this.weights.all.ns });
      sum.textContent = `${samples(this.weights.all)}, ${time(this.weights.all.ns)}`;
    };
    new ResizeObserver(() => this.draw()).observe(this.picture);
    this.listen();
  }

  private listen() {
    const { canvas } = this;
    canvas.addEventListener("click", (event) => this.enter(this.find(event)));
    canvas.addEventListener("pointermove", (event) => this.hover(event, this.find(event)));
    canvas.addEventListener("pointerleave", () => this.context.tip.hide());
    canvas.addEventListener("keydown", (event) => this.keys(event));
    canvas.addEventListener("focus", () => this.go(this.at ?? this.boxes.find((box) => box.frame.fn >= 0) ?? null));
  }

  update() {
    const { state } = this.store;
    const rows = state.roots === "thread" || state.roots === "process" ? "" : state.roots;
    if (rows !== this.rows) {
      this.rows = rows;
      this.stacks = rows ? grouped(this.plain, this.data, rows) : this.plain;
      this.hues = colors(this.stacks).hues;
      this.at = null;
    }
    const key = [rows, state.t0, state.t1, state.root, state.cgroup, state.q, state.doing, state.reason].join("\n");
    if (key !== this.key) {
      this.key = key;
      this.weights = weigh(this.stacks, this.data, this.store, state.doing, state.reason);
      this.reasons = reasonsOf(this.stacks, this.data, this.store);
    }
    this.refresh();
    const none = this.weights.all.count === 0;
    this.empty.hidden = !none;
    this.empty.textContent = this.store.matchCount === 0 ? "No process matches here." : "No stack was sampled here.";
    this.picture.hidden = none;
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(...(state.fn < 0 ? this.functions() : this.around(state.fn)), ...this.notes());
    if (focused) this.list.querySelector("button")?.focus();
    this.draw();
  }

  /** The highlighted functions; null: none are asked for. */
  private search(input: HTMLInputElement, found: HTMLElement): Uint8Array | null {
    const { names, binaries } = this.stacks;
    const q = this.store.state.find.trim();
    const test = q === "" ? null : matcher(q);
    input.setAttribute("aria-invalid", String(q !== "" && test === null));
    found.textContent = q !== "" && test === null ? "no valid expression" : "";
    if (!test) return null;
    const wanted = Uint8Array.from(names, (name, fn) =>
      this.weights.totalCount[fn] > 0 && test(`${name}\n${binaries[fn]}`) ? 1 : 0,
    );
    const n = wanted.reduce((sum, one) => sum + one, 0);
    const ns = together(this.stacks, this.weights, wanted);
    found.textContent = `${count(n)} ${n === 1 ? "function" : "functions"}, ${time(ns)}, ${share(ns, this.weights.all.ns)}`;
    return wanted;
  }

  // The list.

  private name(fn: number): string {
    return fn < 0 ? "All samples" : this.stacks.names[fn];
  }
  private link(fn: number): HTMLElement {
    return h(
      "button",
      { type: "button", class: "link", title: "Its callers and callees", onclick: () => this.store.set({ fn }) },
      this.name(fn),
    );
  }

  private functions(): HTMLElement[] {
    const { weights: w, stacks } = this;
    const all = hottest(stacks, w);
    const cell = (ns: number) => [
      h("td", { class: "num" }, time(ns)),
      h("td", { class: "num dim" }, share(ns, w.all.ns)),
    ];
    const rows = all.slice(0, MOST).map((fn) =>
      h(
        "tr",
        {
          "data-fn": fn,
          "data-self": w.selfNs[fn],
          "data-total": w.totalNs[fn],
          class: this.wanted?.[fn] ? "wanted" : "",
        },
        ...cell(w.selfNs[fn]),
        ...cell(w.totalNs[fn]),
        h("td", { class: "text", title: `${stacks.names[fn]} in ${stacks.binaries[fn]}` }, this.link(fn)),
        h("td", { class: "text dim" }, stacks.binaries[fn]),
      ),
    );
    const head = ["Self", "%", "Total", "%", "Function", "In"].map((title, n) =>
      h("th", { scope: "col", class: n < 4 ? "num" : "text" }, title),
    );
    const more = all.length - rows.length;
    return [
      h("table", { "aria-label": "Hottest functions" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
      ...(more > 0 ? [h("p", { class: "aside" }, `and ${count(more)} more functions`)] : []),
    ];
  }

  /** A function, who calls it, and whom it calls. */
  private around(fn: number): HTMLElement[] {
    const { weights: w, stacks } = this;
    const table = (title: string, rest: string, up: boolean) => {
      const whole = this.middle(fn);
      const [, ...all] = frames(stacks, w, whole, up, 0, 1);
      const rows: [number, number, HTMLElement | string, string][] = all.map((it) => [
        it.fn,
        it.ns,
        this.link(it.fn),
        stacks.binaries[it.fn],
      ]);
      const left = whole.ns - all.reduce((sum, it) => sum + it.ns, 0);
      if (left > 0) rows.push([-1, left, rest, ""]);
      rows.sort((a, b) => b[1] - a[1]);
      const head = ["Time", "%", title, "In"].map((title, n) =>
        h("th", { scope: "col", class: n < 2 ? "num" : "text" }, title),
      );
      return h(
        "table",
        { "aria-label": title },
        h("thead", {}, h("tr", {}, ...head)),
        h(
          "tbody",
          {},
          ...rows
            .slice(0, MOST)
            .map(([fn, ns, name, binary]) =>
              h(
                "tr",
                { "data-fn": fn, "data-ns": ns },
                h("td", { class: "num" }, time(ns)),
                h("td", { class: "num dim" }, share(ns, whole.ns)),
                h("td", { class: "text" }, name),
                h("td", { class: "text dim" }, binary),
              ),
            ),
        ),
      );
    };
    const fact = (name: string, ns: number, n: number) =>
      `${name} ${time(ns)} (${share(ns, w.all.ns)}, ${samples({ count: n })})`;
    return [
      h(
        "p",
        { class: "chosen", id: "function" },
        h("b", {}, this.name(fn)),
        stacks.binaries[fn] ? ` in ${stacks.binaries[fn]}` : "",
        ": ",
        `${fact("self", w.selfNs[fn], w.selfCount[fn])}, ${fact("total", w.totalNs[fn], w.totalCount[fn])} `,
        h("button", { type: "button", class: "link", onclick: () => this.store.set({ fn: -1 }) }, "All functions"),
      ),
      table("Callers", "no caller", true),
      table("Callees", "itself", false),
    ];
  }

  /** What the page has left out. */
  private notes(): HTMLElement[] {
    const { together: n, cut, short } = this.data.doc.stacks!;
    const texts = [
      this.stacks.names.some((name) => name.startsWith("["))
        ? "A file in brackets stands for all of its functions whose names are not known."
        : "",
      n > 1
        ? `Of ${count(n)} consecutive samples of a thread on a CPU one has its stack here; it stands for all of them.`
        : "",
      cut[0] > 0
        ? `${samples({ count: cut[0] })}, ${time(cut[1])}, without a stack: this page has no room for more.`
        : "",
      short[0] > 0
        ? `The shortest ${count(short[0])} waits, ${time(short[1])}, are left out: this page has no room for more.`
        : "",
    ];
    return texts.filter((text) => text).map((text) => h("p", { class: "aside" }, text));
  }

  // The picture.

  private middle(fn: number): Frame {
    const at = places(this.stacks, this.weights, fn);
    return { ...frame(this.stacks, this.weights, at), fn };
  }

  private layout(width: number): Box[] {
    const { stacks, weights: w } = this;
    const { fn } = this.store.state;
    const least = LEAST / width;
    if (fn >= 0) {
      const callers = frames(stacks, w, this.middle(fn), true, least, DEPTH);
      const above = callers[callers.length - 1].depth;
      const callees = frames(stacks, w, this.middle(fn), false, least, DEPTH);
      return [
        ...callers.slice(1).map((frame) => ({ frame, row: above - frame.depth, up: true })),
        ...callees.map((frame) => ({ frame, row: above + frame.depth, up: false })),
      ];
    }
    let root = this.store.state.frame;
    if (w.count[root] === 0) root = 0;
    const above: Frame[] = [];
    for (let at = root; at > 0;) above.unshift(frame(stacks, w, [(at = stacks.caller[at])]));
    // Of a deep stack the nearest callers.
    above.splice(0, above.length - DEPTH);
    const below = frames(stacks, w, frame(stacks, w, [root], [root], above.length), false, least, above.length + DEPTH);
    return [
      ...above.map((frame, row) => ({ frame, row, up: false })),
      ...below.map((frame) => ({ frame, row: frame.depth, up: false })),
    ];
  }

  draw() {
    const width = this.picture.clientWidth;
    if (width === 0 || !this.weights || this.weights.all.count === 0) return;
    const { fn } = this.store.state;
    this.boxes = this.layout(width);
    const rows = this.boxes.reduce((most, box) => Math.max(most, box.row), 0) + 1;
    const ctx = sized(this.canvas, width, rows * ROW);
    if (!ctx) return;
    this.canvas.setAttribute(
      "aria-label",
      fn < 0
        ? "Flame graph: callers above callees, as wide as their time"
        : `Callers above and callees below ${this.name(fn)}, as wide as their time`,
    );
    const { at } = this;
    this.at =
      at &&
      (this.boxes.find(
        (box) => box.up === at.up && box.frame.fn === at.frame.fn && box.frame.at[0] === at.frame.at[0],
      ) ??
        null);
    const chosen = this.boxes.find((box) => box.frame.fn >= 0 && box.frame.at[0] === this.store.state.frame && fn < 0);
    const told = this.at ?? chosen;
    this.line.replaceChildren(...(told ? this.told(told) : [h("span", { class: "screen" }, HINT)]));
    const colors = theme();
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    for (const box of this.boxes) this.paint(ctx, colors, box, width);
    if (this.at) {
      ctx.strokeStyle = colors.css.ink;
      ctx.lineWidth = 2;
      const { x0, x1 } = this.at.frame;
      ctx.strokeRect(x0 * width + 1, this.at.row * ROW + 1, Math.max(2, (x1 - x0) * width - 3), ROW - 3);
    }
  }

  private paint(ctx: CanvasRenderingContext2D, colors: Theme, { frame: it, row }: Box, width: number) {
    const [x, wide, y] = [it.x0 * width, (it.x1 - it.x0) * width, row * ROW];
    const color = it.fn < 0 ? colors.css.line : (colors.programs[this.hues[it.fn]] ?? colors.css.faint);
    ctx.globalAlpha = this.wanted && !(it.fn >= 0 && this.wanted[it.fn]) ? 0.25 : 1;
    ctx.fillStyle = color;
    ctx.fillRect(x, y, Math.max(0.5, wide - (wide > 3 ? 1 : 0)), ROW - 1);
    ctx.globalAlpha = 1;
    if (this.store.state.doing === "both" && wide > 3) {
      // Along the lower edge the part on a CPU, then that off CPU.
      const on = it.ns > 0 ? (wide - 1) * (it.on / it.ns) : 0;
      ctx.fillStyle = colors.css.on;
      ctx.fillRect(x, y + ROW - 4, on, 3);
      ctx.fillStyle = colors.css.asleep;
      ctx.fillRect(x + on, y + ROW - 4, wide - 1 - on, 3);
    }
    if (wide > 24) {
      ctx.fillStyle = this.wanted && !this.wanted[it.fn] ? colors.css.ink : ink(color);
      ctx.fillText(fit(ctx, this.name(it.fn), wide - 8, true), x + 4, y + ROW / 2);
    }
  }

  private find(event: MouseEvent): Box | null {
    const box = this.canvas.getBoundingClientRect();
    const [x, row] = [(event.clientX - box.left) / box.width, Math.floor((event.clientY - box.top) / ROW)];
    return this.boxes.find((it) => it.row === row && x >= it.frame.x0 && x < it.frame.x1) ?? null;
  }

  /** What a frame is, in words. */
  private words({ frame: it }: Box): string {
    const { weights: w } = this;
    const whole = this.store.state.fn < 0 ? w.all.ns : w.totalNs[this.store.state.fn];
    const binary = it.fn < 0 ? "" : this.stacks.binaries[it.fn];
    const part = this.store.state.doing === "both" ? `, ${time(it.on)} of it on a CPU` : "";
    return `${binary ? `in ${binary} · ` : ""}${time(it.ns)} · ${share(it.ns, whole)} · ${samples(it)}${part}`;
  }

  private hover(event: PointerEvent, box: Box | null) {
    if (!box) return this.context.tip.hide();
    const { fn } = box.frame;
    const { selfNs, totalNs } = this.weights;
    this.context.tip.show(
      event,
      h("strong", {}, this.name(fn)),
      h("div", {}, this.words(box)),
      fn >= 0
        ? h("div", { class: "dim" }, `the function in all: self ${time(selfNs[fn])}, total ${time(totalNs[fn])}`)
        : null,
    );
  }

  /** The keys are at a frame. */
  private go(box: Box | null) {
    this.at = box;
    this.draw();
    if (box)
      this.picture.scrollTop = Math.max(
        Math.min(this.picture.scrollTop, box.row * ROW),
        (box.row + 1) * ROW - this.picture.clientHeight,
      );
  }
  private told(box: Box): (Node | string)[] {
    const { fn } = box.frame;
    const other = fn >= 0 && fn !== this.store.state.fn;
    return [
      h("b", {}, this.name(fn)),
      ` ${this.words(box)} `,
      ...(other
        ? [h("button", { type: "button", class: "link", onclick: () => this.store.set({ fn }) }, "Callers and callees")]
        : []),
    ];
  }

  /** Into a frame: it is as wide as the picture; of the widest one its caller is. Beside a function, to that one. */
  private enter(box: Box | null) {
    if (!box) return;
    const { frame: chosen, fn } = this.store.state;
    const [at] = box.frame.at;
    this.go(box);
    if (fn >= 0) this.store.set({ fn: box.frame.fn });
    else this.store.set({ frame: at === chosen ? this.stacks.caller[at] : at });
  }

  private up() {
    const { frame, fn } = this.store.state;
    this.store.set(fn >= 0 ? { fn: -1 } : { frame: this.stacks.caller[frame] });
  }

  /** From a function or a frame to all; false: all is shown. */
  leave(): boolean {
    const { frame, fn, find } = this.store.state;
    if (fn >= 0) this.store.set({ fn: -1 });
    else if (frame > 0) this.store.set({ frame: 0 });
    else if (find) this.store.set({ find: "" });
    else return false;
    return true;
  }

  /** To the function before or after the chosen one in the list. */
  step(by: number) {
    const all = hottest(this.stacks, this.weights);
    const at = Math.max(0, Math.min(all.length - 1, all.indexOf(this.store.state.fn) + by));
    if (all.length > 0) this.store.set({ fn: all[at] });
  }

  private keys(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.at) return;
    const { row, frame: it } = this.at;
    const beside = (by: number) => {
      const line = this.boxes.filter((box) => box.row === row).sort((a, b) => a.frame.x0 - b.frame.x0);
      return line[line.findIndex((box) => box.frame === it) + by];
    };
    // The one with the most of its width.
    const next = (by: number) => {
      const overlap = (box: Box) => Math.min(box.frame.x1, it.x1) - Math.max(box.frame.x0, it.x0);
      const line = this.boxes.filter((box) => box.row === row + by && overlap(box) > 0);
      return line.sort((a, b) => overlap(b) - overlap(a) || a.frame.x0 - b.frame.x0)[0];
    };
    let to: Box | undefined;
    switch (event.key) {
      case "ArrowDown":
        to = next(1);
        break;
      case "ArrowUp":
        to = next(-1);
        break;
      case "ArrowRight":
        to = beside(1);
        break;
      case "ArrowLeft":
        to = beside(-1);
        break;
      case "Enter":
        this.enter(this.at);
        break;
      case " ":
        if (it.fn >= 0) this.store.set({ fn: it.fn });
        break;
      default:
        return;
    }
    if (to) this.go(to);
    event.preventDefault();
    event.stopPropagation();
  }
}

function samples({ count: n }: Pick<Sum, "count">): string {
  return `${count(n)} ${n === 1 ? "sample" : "samples"}`;
}

/** Each function's colour of the palette, that of its file, and the files with the most time that have one. */
function colors(stacks: Stacks): { hues: Uint8Array; legend: HTMLElement } {
  const key = (fn: number) => (stacks.kernel[fn] ? "kernel" : stacks.binaries[fn]);
  const sums = new Map<string, number>();
  stacks.stack.forEach((stack, sample) => {
    if (stack === 0) return;
    const file = key(stacks.fn[stack]);
    sums.set(file, (sums.get(file) ?? 0) + stacks.ns[sample]);
  });
  sums.delete("");
  const files = [...sums]
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, HUES)
    .map(([name]) => name);
  const hues = Uint8Array.from(stacks.names, (_, fn) => (files.includes(key(fn)) ? files.indexOf(key(fn)) : HUES));
  const legend = h(
    "span",
    { class: "legend" },
    ...files.map((name, n) => h("span", { class: "key" }, h("i", { class: `swatch p${n}` }), name)),
  );
  return { hues, legend };
}
