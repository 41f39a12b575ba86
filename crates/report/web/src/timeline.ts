// The process tree as nested lanes: a child below its parent, siblings that do
// not overlap in one lane.

import { HUES, hue } from "./colors";
import { CpuLanes } from "./cpus";
import { ASLEEP, BLOCKED, first, KINDS, NOTHING, ON, STATES, WAIT, waits, type Data } from "./data";
import { choice, h } from "./dom";
import { clip, FONT } from "./heatmap";
import { Lane } from "./lane";
import type { Name } from "./names";
import { fit } from "./paint";
import { PathLane, stays, type Step } from "./path";
import { Pins } from "./pins";
import { Resources } from "./resources";
import { alike, type Group } from "./siblings";
import type { Color } from "./state";
import { TimeView, zoomButtons, type Context, type Frame } from "./timeview";
import { at, count, time } from "./units";
import { enderName, enderOf, FOR_CHILDREN } from "./waits";

/** Of a lane, CSS pixels: the least and the most. */
const PITCH = [30, 84];
/** Above the first lane and below the last one, CSS pixels. */
const ROOM = 12;
/** The name, then the states below it. */
const NAME = 15;
/** The most threads with lanes of their own. */
const THREADS = 24;
/** What a lane has besides its states. */
const REST = 20;
/** A longer sibling, ns, or one with a larger share of the recording's time, has a lane of its own. */
const SHORT = { ns: 50e6, share: 0.1 };

export class Timeline extends TimeView {
  /** Each process's lane; -1: not in the scope. */
  private lane = new Int32Array(0);
  /** The processes and groups of each lane, by start. A group's number is its place behind the processes. */
  private lanes: number[][] = [];
  private groups: Bunch[] = [];
  private ready = false;
  /** Each process's group; -1: none. */
  private groupOf = new Int32Array(0);
  private open = new Set<number>();
  private key = "";
  private hidden = [0, 0, 0];
  /** Each column's colour of the palette, and how much of it is of that colour. */
  private hues = new Uint8Array(0);
  private most = new Float64Array(0);
  /** Lane and thread, of the chosen process. */
  private threads: [number, number][] = [];
  private sums = new Float64Array(0);
  private wakes: { key: number; list: Wake[] } = { key: -1, list: [] };
  private pitch = PITCH[0];
  private path: Step[] = [];
  private refresh: () => void;
  /** 1: only waits for one child at a time; 2: the machine's, asleep nearly all the time. */
  private quiet: Uint8Array = new Uint8Array(0);
  private note = h("span", { class: "dim", id: "folded" });

  constructor(
    context: Context,
    private ranks: Map<string, number>,
  ) {
    const { store, data } = context;
    const color = choice<Color>(
      "Colour by",
      [
        ["state", "States"],
        ["program", "Programs"],
        ["step", "Steps"],
      ],
      (value) => store.set({ color: value }),
    );
    color.element.id = "color";
    if (data.doc.steps.from.length === 0) (color.element.lastElementChild as HTMLButtonElement).disabled = true;
    const key = h("span", { class: "legend", id: "hues" });
    const lanes = new CpuLanes(context, ranks);
    const cpus = h(
      "button",
      {
        type: "button",
        class: "toggle",
        id: "cpus",
        title: "Processes on each CPU (c)",
        disabled: !lanes.known,
        onclick: () => store.set({ cpus: !store.state.cpus }),
      },
      "CPUs",
    );
    const resources = new Resources(context);
    const toggle = h(
      "button",
      {
        type: "button",
        class: "toggle",
        id: "resources",
        title: "Network connections, waits for disks, and the machine (r)",
        onclick: () => store.set({ resources: !store.state.resources }),
      },
      "Resources",
    );
    const fold = h(
      "button",
      {
        type: "button",
        class: "toggle",
        id: "fold",
        title:
          "Parents that only wait for a child, sleepers of the machine and repeated siblings take no lanes of their own (f)",
        onclick: () => store.set({ fold: !store.state.fold }),
      },
      "Fold",
    );
    const wakeups = h(
      "button",
      {
        type: "button",
        class: "toggle",
        id: "wakeups",
        title: "Who woke the selected process, and whom it woke (e)",
        onclick: () => store.set({ wakeups: !store.state.wakeups }),
      },
      "Wake-ups",
    );
    super(
      context,
      "Timeline of the process tree",
      "Drag to pan · Ctrl + wheel or a double click to zoom · Shift + drag to measure · click a process to select it",
      h(
        "div",
        { class: "toolbar" },
        h("span", { class: "dim screen" }, "Colour"),
        color.element,
        fold,
        cpus,
        toggle,
        wakeups,
        zoomButtons(store),
        data.doc.path ? h("span", { class: "key" }, h("i", { class: "swatch path" }), data.pathName) : null,
      ),
      [Lane.of(context), PathLane.of(context), lanes, resources, new Pins(context)],
    );
    this.element.querySelector(".toolbar")!.append(this.note, key);
    const programs = [...ranks.keys()].slice(0, HUES);
    this.refresh = () => {
      color.show(store.state.color);
      key.replaceChildren(
        ...(store.state.color === "program" ? programs : []).map((name, n) =>
          h("span", { class: "key" }, h("i", { class: `swatch p${n}` }), name),
        ),
        ...(store.state.color === "program" && ranks.size > HUES
          ? [h("span", { class: "key" }, h("i", { class: "swatch p8" }), "others")]
          : []),
      );
      cpus.setAttribute("aria-pressed", String(store.state.cpus));
      toggle.hidden = !resources.known;
      toggle.setAttribute("aria-pressed", String(store.state.resources));
      fold.setAttribute("aria-pressed", String(store.state.fold));
      wakeups.setAttribute("aria-pressed", String(store.state.wakeups));
      wakeups.disabled = store.state.sel < 0;
    };
  }

  /** What the first frame needs: the page opens with another view. */
  private prepare() {
    if (this.ready) return;
    this.ready = true;
    this.quiet = quiet(this.data);
    this.path = stays(this.data);
    this.groupOf = new Int32Array(this.data.n).fill(-1);
    this.bunch();
  }

  /** Finds the groups of short siblings. */
  private bunch() {
    const { data } = this;
    const { start, end } = data.doc.processes;
    const [from, to] = this.store.whole;
    const most = Math.min(SHORT.ns, (to - from) * SHORT.share);
    const short = (ix: number) => this.quiet[ix] === 0 && data.wall(ix) < most;
    for (const siblings of [data.roots, ...data.children]) {
      for (const group of alike(data, siblings, short)) {
        group.members.sort((a, b) => start[a] - start[b] || a - b);
        for (const ix of group.members) this.groupOf[ix] = this.groups.length;
        this.groups.push({
          ...group,
          shown: [],
          failed: [],
          until: 0,
          wall: 0,
          cpu: group.members.reduce((sum, ix) => sum + (data.doc.processes.tree_on_cpu[ix] ?? 0), 0),
          peak: atOnce(group.members, start, end),
        });
      }
    }
  }

  update() {
    this.prepare();
    this.refresh();
    const { state } = this.store;
    const { sel } = state;
    const chosen =
      sel >= 0 && (this.quiet[sel] > 0 || this.groupOf[sel] >= 0 || this.data.doc.processes.threads[sel] > 1)
        ? sel
        : -1;
    const key = `${state.root}\n${state.cgroup}\n${state.fold}\n${chosen}\n${[...this.open].join()}`;
    if (key !== this.key) {
      this.key = key;
      this.layout();
    }
    this.draw();
  }

  /** Whether a process has a lane: not one that is folded, unless it was chosen. */
  private laned(ix: number): boolean {
    const { state, scope } = this.store;
    return scope[ix] === 1 && !(state.fold && this.quiet[ix] > 0 && ix !== state.sel && ix !== state.root);
  }

  /** The lanes of a process: its own, and those of its threads if it is chosen. */
  private own(ix: number): number {
    if (!this.laned(ix)) return 0;
    const threads = this.data.doc.processes.threads[ix];
    return ix === this.store.state.sel && threads > 1 ? 1 + Math.min(threads, THREADS) : 1;
  }

  /** Whether the members of a group have lanes below it. */
  private opened(group: number): boolean {
    const { sel } = this.store.state;
    return this.open.has(group) || (sel >= 0 && this.groupOf[sel] === group);
  }

  /** Children, or roots: those of a group as one. */
  private items(of: number[]): number[] {
    if (!this.store.state.fold) return of;
    return [...new Set(of.map((ix) => (this.groupOf[ix] >= 0 ? this.data.n + this.groupOf[ix] : ix)))];
  }

  /** Blocks of subtrees, each as high as it is deep, first come first fit. */
  private layout() {
    const { data, store, groupOf } = this;
    const { n } = data;
    const begin = Float64Array.from({ length: n + this.groups.length }, (_, ix) => data.doc.processes.start[ix] ?? 0);
    const until = new Float64Array(begin.length);
    const height = new Int32Array(begin.length).fill(1);
    const offset = new Int32Array(begin.length);
    // Of a whole machine the command comes first, then what used the most CPU time; the command's own tasks stand by time.
    const { trace, processes } = data.doc;
    const { root } = trace;
    const first = new Set(root === null ? [] : data.ancestors(root));
    const rank = (item: number) => {
      const ix = item < n ? item : this.groups[item - n].members[0];
      if (!trace.all || (root !== null && ix !== root && data.within(ix, root))) return 0;
      return first.has(item) ? -Infinity : -(item < n ? (processes.tree_on_cpu[item] ?? 0) : this.groups[item - n].cpu);
    };
    const place = (of: number[]): number => {
      const busy: number[] = [];
      const inside = of
        .filter((ix) => (ix < n ? this.covers(ix) : this.groups[ix - n].shown.length > 0))
        .sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)) || begin[a] - begin[b] || a - b);
      for (const ix of inside) {
        let y = 0;
        for (let lane = 0; lane < y + height[ix] && lane < busy.length; lane++)
          if (busy[lane] > begin[ix]) y = lane + 1;
        offset[ix] = y;
        for (let lane = y; lane < y + height[ix]; lane++) busy[lane] = until[ix];
      }
      return busy.length;
    };
    const { end } = data.doc.processes;
    for (let ix = 0; ix < n; ix++) until[ix] = end[ix];
    this.groups.forEach((group, g) => {
      group.shown = group.members.filter((ix) => store.scope[ix] === 1);
      group.failed = group.shown.filter((ix) => data.bad(ix));
      group.wall = group.shown.reduce((sum, ix) => sum + data.wall(ix), 0);
      begin[n + g] = begin[group.shown[0]] ?? 0;
      until[n + g] = group.until = Math.max(0, ...group.shown.map((ix) => end[ix]));
      if (this.opened(g)) height[n + g] = 1 + place(group.shown);
    });
    // From the leaves up.
    for (let at = n - 1; at >= 0; at--) {
      const ix = data.order[at];
      for (const child of data.children[ix]) until[ix] = Math.max(until[ix], until[child]);
      height[ix] = this.own(ix) + place(this.items(data.children[ix]));
    }
    const roots = store.state.root >= 0 ? [store.state.root] : data.roots;
    place(store.state.root >= 0 ? roots : this.items(roots));
    this.lane = new Int32Array(n).fill(-1);
    this.lanes = [];
    this.threads = [];
    this.hidden = [0, 0, 0];
    const put = (lane: number, item: number) => (this.lanes[lane] ??= []).push(item);
    const top = new Int32Array(n);
    for (const root of roots) {
      for (let at = data.place[root]; at < data.subtreeEnd[root]; at++) {
        const ix = data.order[at];
        const base = ix === root ? 0 : top[data.parent[ix]] + this.own(data.parent[ix]);
        const g = store.state.fold && ix !== store.state.root ? groupOf[ix] : -1;
        top[ix] = base + offset[ix];
        if (store.scope[ix] && !this.laned(ix)) this.hidden[this.quiet[ix]]++;
        if (!this.laned(ix)) continue;
        if (g >= 0) {
          const lane = base + offset[n + g];
          if (ix === this.groups[g].shown[0]) put(lane, n + g);
          if (this.opened(g)) top[ix] = lane + 1 + offset[ix];
          else {
            this.lane[ix] = lane;
            continue;
          }
        }
        this.lane[ix] = top[ix];
        put(top[ix], ix);
        for (let n = 1; n < this.own(ix); n++) this.threads.push([top[ix] + n, data.threadsFrom[ix] + n - 1]);
      }
    }
    const [, parents, asleep] = this.hidden;
    const folded = [
      parents > 0 ? `${count(parents)} waiting ${parents === 1 ? "parent" : "parents"}` : "",
      asleep > 0 ? `${count(asleep)} asleep` : "",
    ].filter((part) => part);
    this.note.textContent = folded.length > 0 ? `${folded.join(", ")} folded` : "";
    if (this.lanes.length === 0) this.lanes.push([]);
    for (const [lane] of this.threads) this.lanes[lane] ??= [];
    for (let at = 0; at < this.lanes.length; at++) (this.lanes[at] ??= []).sort((a, b) => begin[a] - begin[b]);
  }

  /** Whether a subtree has anything in the scope. */
  private covers(ix: number): boolean {
    const { data, store } = this;
    if (store.state.cgroup === "") return true;
    for (let at = data.place[ix]; at < data.subtreeEnd[ix]; at++) if (store.scope[data.order[at]]) return true;
    return false;
  }

  protected override gutter(): number {
    return 0;
  }
  protected contentHeight(): number {
    return this.lanes.length * this.pitch + ROOM;
  }
  protected override mostHeight(): number {
    return this.lanes.length * PITCH[1] + ROOM;
  }
  /** The height of the states. */
  private get band(): number {
    return this.pitch - REST;
  }
  protected override resized(height: number) {
    this.pitch = Math.floor(Math.max(PITCH[0], Math.min(PITCH[1], (height - ROOM) / Math.max(1, this.lanes.length))));
  }
  private top(lane: number): number {
    return 8 + lane * this.pitch;
  }

  /** The processes and groups of a lane in the shown time. */
  private inSight(lane: number): number[] {
    const { data, groups } = this;
    const { start, end } = data.doc.processes;
    const { t0, t1 } = this.store.state;
    const begin = (item: number) => (item < data.n ? start[item] : start[groups[item - data.n].shown[0]]);
    const until = (item: number) => (item < data.n ? end[item] : groups[item - data.n].until);
    const all = this.lanes[lane];
    const from = first(0, all.length, (at) => until(all[at]) >= t0);
    let last = from;
    while (last < all.length && begin(all[last]) <= t1) last++;
    return all.slice(from, last);
  }

  protected paint(frame: Frame) {
    const { pixels, theme, ratio, state, top } = frame;
    const { data, store, pitch, sums } = this.sized(frame);
    const { start, end } = data.doc.processes;
    const n = pixels.width;
    const dt = (state.t1 - state.t0) / n;
    const first = Math.max(0, Math.floor((top - 8) / pitch) - 1);
    const last = Math.min(this.lanes.length, Math.ceil((top + frame.height) / pitch) + 1);
    const hued = state.color !== "state";
    const seen: [number, number, number][] = [];
    for (let l = first; l < last; l++) {
      sums.fill(0, 0, 5 * n);
      if (hued) this.most.fill(0, 0, n);
      const add = (ix: number, peak: number): number => {
        const dim = store.matches === null || store.matches[ix] ? 1 : 0.18;
        for (let t = data.threadsFrom[ix]; t < data.threadsFrom[ix + 1]; t++)
          data.integrate(t, state.t0, dt, n, sums, dim / dt / peak);
        if (hued) this.tint(ix, state.t0, dt, n);
        return dim;
      };
      for (const item of this.inSight(l)) {
        if (item < data.n) {
          seen.push([l, item, add(item, data.peak(item))]);
          continue;
        }
        const { shown, peak } = this.groups[item - data.n];
        let dim = 0.18;
        for (const ix of shown) {
          // They stand by their beginnings.
          if (start[ix] > state.t1) break;
          if (end[ix] >= state.t0) dim = Math.max(dim, add(ix, peak));
        }
        seen.push([l, item, dim]);
      }
      pixels.stack(
        sums,
        n,
        0,
        Math.round((this.top(l) + NAME - top) * ratio),
        1,
        0,
        Math.round(this.band * ratio),
        theme,
        hued ? this.hues : undefined,
      );
    }
    for (const [l, t] of this.threads) {
      if (l < first || l >= last) continue;
      sums.fill(0, 0, 5 * n);
      data.integrate(t, state.t0, dt, n, sums, 1 / dt);
      if (hued) this.hues.fill(hue(data, this.ranks, state.color, data.processOf[t]), 0, n);
      pixels.stack(
        sums,
        n,
        0,
        Math.round((this.top(l) + NAME - top) * ratio),
        1,
        0,
        Math.round(this.band * ratio * 0.7),
        theme,
        hued ? this.hues : undefined,
      );
    }
    this.blit(frame);
    this.drawPath(frame);
    this.drawNames(frame, seen);
    if (state.wakeups && state.sel >= 0) this.drawWakes(frame);
  }

  /** Has room for the columns of a frame. */
  private sized({ pixels: { width: n } }: Frame): this {
    if (this.sums.length < 5 * n) {
      this.sums = new Float64Array(5 * n);
      this.hues = new Uint8Array(n);
      this.most = new Float64Array(n);
    }
    return this;
  }

  /** Gives a process's colour to the columns in which it lived longer than others of its lane. */
  private tint(ix: number, t0: number, dt: number, n: number) {
    const { start, end } = this.data.doc.processes;
    const [from, to] = [(start[ix] - t0) / dt, (end[ix] - t0) / dt];
    const color = hue(this.data, this.ranks, this.store.state.color, ix);
    for (let c = Math.max(0, Math.floor(from)); c < Math.min(n, to); c++) {
      const part = Math.min(to, c + 1) - Math.max(from, c);
      if (part <= this.most[c]) continue;
      this.most[c] = part;
      this.hues[c] = color;
    }
  }

  private drawNames(frame: Frame, seen: [number, number, number][]) {
    const { ctx, theme, width, top, x } = frame;
    const { data } = this;
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "left";
    ctx.font = FONT;
    for (const [l, item, dim] of seen) {
      ctx.globalAlpha = dim < 1 ? 0.35 : 1;
      if (item < data.n) this.drawProcess(frame, item, this.top(l) - top);
      else this.drawGroup(frame, item - data.n, this.top(l) - top);
      ctx.globalAlpha = 1;
    }
    for (const [l, t] of this.threads) {
      const { comm, tid, start: begins, end, on_cpu } = data.doc.threads;
      const { start } = data.doc.processes;
      // Up to what comes after it in the lane.
      const next = this.lanes[l]
        .map((item) => start[item < data.n ? item : this.groups[item - data.n].shown[0]])
        .find((begin) => begin >= end[t]);
      const left = Math.max(0, x(begins[t])) + 8;
      const room = Math.min(width - 20, next === undefined ? width : x(next) - 6) - left;
      ctx.fillStyle = theme.css.dim;
      ctx.fillText(
        fit(ctx, `${data.string(comm[t])} · tid ${tid[t]} · CPU ${time(on_cpu[t])}`, room),
        left,
        this.top(l) - top + NAME - 4,
      );
    }
  }

  /** Writes a name; a line of the path behind it ends around its letters. */
  private write({ ctx, theme }: Frame, text: string, x: number, y: number) {
    ctx.strokeStyle = theme.css.panel;
    ctx.lineWidth = 4;
    ctx.lineJoin = "round";
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
  }

  private drawGroup(frame: Frame, g: number, y: number) {
    const { ctx, theme, width, x } = frame;
    const { data } = this;
    const { shown, until } = this.groups[g];
    const { start, end } = data.doc.processes;
    const left = Math.max(0, x(start[shown[0]]));
    const { failed } = this.groups[g];
    const text = `${this.opened(g) ? "▾" : "▸"} ${this.name(g)}`;
    ctx.fillStyle = failed.length > 0 ? theme.css.bad : theme.css.ink;
    const wide = Math.min(width, x(until)) - left;
    if (wide >= 24) this.write(frame, fit(ctx, text, wide - 6, true), left + 2, y + NAME - 4);
    for (const ix of failed) {
      const right = x(end[ix]);
      if (right >= 0 && right <= width) ctx.fillRect(right - 2, y + NAME - 2, 2, this.band + 4);
    }
  }

  /** A group as it is called: `5,000 × true, 3.8 s together`. */
  private name(g: number): string {
    const { program, shown, failed, wall } = this.groups[g];
    const bad = failed.length > 0 ? `, ${count(failed.length)} failed` : "";
    return `${count(shown.length)} × ${program}, ${time(wall)} together${bad}`;
  }

  private drawProcess(frame: Frame, ix: number, y: number) {
    const { ctx, theme, state, width, x } = frame;
    const { data, band } = this;
    const { start, end } = data.doc.processes;
    const { execs } = data.doc;
    const left = Math.max(0, x(start[ix]));
    const right = Math.min(width, x(end[ix]));
    const failed = data.failed(ix);
    // A question that was answered with no is no fault, and what failed because of another failure is none of its own.
    const bad = data.bad(ix) ? theme.css.bad : theme.css.dim;
    // One of thousands in a lane: there is no room for a name, nor for the line between two programs.
    if (right - left <= 2 && !failed && ix !== state.sel) return;
    if (right - left > 3) {
      ctx.fillStyle = theme.css.panel;
      ctx.fillRect(x(start[ix]) - 0.5, y + NAME, 1, band);
    }
    const [from, to] = [data.execsFrom[ix], data.execsFrom[ix + 1]];
    const programs: [start: number, name: Name][] = [];
    for (let e = from; e < to; e++) {
      const begin = x(execs.start[e]);
      // Where one program became another.
      if (begin - x(start[ix]) > 2 && begin > 0 && begin < width) {
        ctx.fillStyle = theme.css.ink;
        ctx.fillRect(begin - 0.5, y + NAME - 2, 1, band + 2);
      }
      programs.push([execs.start[e], { text: data.string(execs.label[e]), brief: data.string(execs.brief[e]) }]);
    }
    // The name stands at the beginning, whatever the process was until its first exec.
    if (programs.length === 0) programs.push([start[ix], data.labelName(ix)]);
    else if (programs.length === 1) programs[0][0] = start[ix];
    for (let e = 0; e < programs.length; e++) {
      const begin = Math.max(0, x(programs[e][0]));
      const stop = Math.min(width, e + 1 < programs.length ? x(programs[e + 1][0]) : right);
      if (stop - begin < 24) continue;
      const [, { text, brief }] = programs[e];
      const isEnd = failed && e + 1 === programs.length;
      const name = { text: isEnd ? `${data.sign(ix)} ${text} · ${data.exit(ix)}` : text, brief };
      ctx.fillStyle = failed ? bad : theme.css.ink;
      this.write(frame, fit(ctx, name, stop - begin - 6), begin + 2, y + NAME - 4);
    }
    if (failed && right >= 0 && right <= width) {
      ctx.fillStyle = bad;
      ctx.fillRect(Math.max(left, right - 3), y + NAME - 2, 3, band + 4);
    }
    if (ix === state.sel) {
      ctx.strokeStyle = theme.css.accent;
      ctx.lineWidth = 2;
      ctx.strokeRect(left - 1, y + NAME - 2, Math.max(4, right - left + 2), band + 4);
    }
  }

  /** A line below the states of who was on the path, and from one to the next. */
  private drawPath({ ctx, theme, state, x, top }: Frame) {
    ctx.fillStyle = theme.css.path;
    ctx.strokeStyle = theme.css.path;
    ctx.lineWidth = 1;
    ctx.globalAlpha = 0.7;
    ctx.beginPath();
    let before = -1;
    let link = -9;
    /** In each lane how far the line is drawn: shorter stretches than its thinnest part are one. */
    const drawn = new Map<number, number>();
    for (const step of this.path) {
      if (step.from > state.t1) break;
      const lane = this.lane[step.process];
      const from = before;
      before = lane;
      if (step.to < state.t0 || lane < 0) continue;
      const y = this.top(lane) - top + NAME + this.band + 1;
      const [a, b] = [x(Math.max(step.from, state.t0)), x(Math.min(step.to, state.t1))];
      const until = Math.max(a + 0.6, b);
      if (until > (drawn.get(lane) ?? -1) + 0.1) {
        ctx.fillRect(a, y, until - a, 3);
        drawn.set(lane, until);
      }
      // Those too close together cannot be told apart.
      if (from >= 0 && from !== lane && step.from >= state.t0 && a - link > 4) {
        link = a;
        const px = Math.round(a) + 0.5;
        ctx.moveTo(px, this.top(from) - top + NAME + this.band + 1);
        ctx.lineTo(px, y + 2);
      }
    }
    ctx.stroke();
    ctx.globalAlpha = 1;
  }

  /** Who ended the waits of the selected process, and whose waits it ended. */
  private findWakes(sel: number): Wake[] {
    if (this.wakes.key === sel) return this.wakes.list;
    const { data } = this;
    const { first, end, by, kind } = data.pieces;
    const list: Wake[] = [];
    const threads = data.processOf.length;
    for (let t = 0; t < threads; t++) {
      const own = data.processOf[t] === sel;
      for (let at = first[t]; at < first[t + 1]; at++) {
        if (by[at] < 3 || !waits(kind[at])) continue;
        const waker = data.processOf[by[at] - 3];
        if (waker === undefined || (own ? false : waker !== sel)) continue;
        list.push({ time: end[at], from: waker, to: data.processOf[t] });
      }
    }
    list.sort((a, b) => a.time - b.time);
    this.wakes = { key: sel, list };
    return list;
  }

  private drawWakes({ ctx, theme, state, x, top }: Frame) {
    let last = -9;
    let drawn = 0;
    for (const wake of this.findWakes(state.sel)) {
      if (wake.time < state.t0 || wake.time > state.t1 || wake.from === wake.to) continue;
      const [a, b] = [this.lane[wake.from], this.lane[wake.to]];
      const px = x(wake.time);
      // Closer ones cannot be told apart; zooming in shows them.
      if (a < 0 || b < 0 || px - last < 3 || drawn >= 400) continue;
      last = px;
      drawn++;
      const [ya, yb] = [this.top(a) - top + NAME + this.band / 2, this.top(b) - top + NAME + this.band / 2];
      const down = yb > ya ? 1 : -1;
      ctx.strokeStyle = ctx.fillStyle = wake.to === state.sel ? theme.css.accent : theme.css.ink;
      ctx.lineWidth = 1.2;
      ctx.beginPath();
      ctx.moveTo(px, ya);
      ctx.lineTo(px, yb);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(px, ya, 2, 0, 7);
      ctx.moveTo(px, yb);
      ctx.lineTo(px - 3.5, yb - 6 * down);
      ctx.lineTo(px + 3.5, yb - 6 * down);
      ctx.fill();
    }
  }

  /** The process or group at a point; -1: none. */
  private find(t: number, y: number): number {
    const l = Math.floor((y - 8) / this.pitch);
    const { data } = this;
    const { start, end } = data.doc.processes;
    const slack = ((this.store.state.t1 - this.store.state.t0) / Math.max(1, this.element.clientWidth)) * 3;
    let best = -1;
    let distance = slack;
    for (const item of this.lanes[l] ?? []) {
      const group = this.groups[item - data.n];
      const off = group
        ? Math.max(start[group.shown[0]] - t, t - group.until, 0)
        : Math.max(start[item] - t, t - end[item], 0);
      if (off < distance || (off === 0 && best < 0)) [best, distance] = [item, off];
      if (off === 0) break;
    }
    return best;
  }

  protected hover(event: PointerEvent, t: number, y: number) {
    const ix = this.find(t, y);
    if (ix < 0) return this.tip.hide();
    const { data } = this;
    const p = data.doc.processes;
    if (ix >= data.n) {
      const { shown, wall } = this.groups[ix - data.n];
      const cpu = shown.reduce((sum, member) => sum + (p.on_cpu[member] ?? 0), 0);
      const longest = shown.reduce((a, b) => (data.wall(a) >= data.wall(b) ? a : b));
      return this.tip.show(
        event,
        h("strong", {}, this.name(ix - data.n)),
        h(
          "div",
          { class: "dim" },
          `wall ${time(wall)} · CPU ${time(cpu)} · longest ${time(data.wall(longest))}: ${clip(data.label(longest), 60)}`,
        ),
        h("div", {}, this.opened(ix - data.n) ? "A click folds them." : "A click shows each of them."),
      );
    }
    const lines: HTMLElement[] = [
      h("strong", {}, data.label(ix)),
      h(
        "div",
        { class: "dim" },
        `pid ${p.pid[ix]} · from ${at(p.start[ix])} · wall ${time(data.wall(ix))} · CPU ${time(p.on_cpu[ix])} · ${data.exit(ix)}`,
      ),
    ];
    for (
      let thread = data.threadsFrom[ix];
      thread < Math.min(data.threadsFrom[ix + 1], data.threadsFrom[ix] + 4);
      thread++
    ) {
      const piece = data.pieceAt(thread, t);
      if (piece >= 0) lines.push(h("div", {}, this.describe(thread, piece)));
    }
    lines.push(h("div", { class: "argv" }, clip(data.argv(ix))));
    this.tip.show(event, ...lines);
  }

  private describe(thread: number, piece: number): string {
    const { data } = this;
    const { kind, start, end, by, share, shares } = data.pieces;
    const { sel: _, ...rest } = this.store.state;
    const span = rest.t1 - rest.t0;
    const length = `${time(end[piece] - start[piece])} from ${at(start[piece], span)}`;
    if (share[piece] >= 0) {
      const parts = STATES.map((name, s) => [name, shares[share[piece] + s]] as const);
      return `${length}: ${parts
        .filter(([, s]) => s > 0.004)
        .map(([name, s]) => `${name} ${(s * 100).toFixed(0)} %`)
        .join(", ")}`;
    }
    const [reason, state] = KINDS[kind[piece]] ?? KINDS[0];
    const name = waits(kind[piece]) && reason !== STATES[state] ? `${STATES[state]}, ${reason}` : reason;
    const who = by[piece];
    if (state === ON) return `${name}${who > 0 ? ` ${who - 1}` : ""}, ${length}`;
    if (kind[piece] === NOTHING || who === 0) return `${name}, ${length}`;
    const ender = enderOf(data, who);
    const verb = state !== WAIT ? "ended by" : reason === STATES[WAIT] ? "woken by" : "lost the CPU to";
    return `${name}, ${length}, ${verb} ${clip(enderName(data, ender), 60)}${data.processOf[thread] === ender ? " (itself)" : ""}`;
  }

  protected pick(t: number, y: number, twice: boolean) {
    const ix = this.find(t, y);
    if (ix >= this.data.n) return twice ? undefined : this.toggle(ix - this.data.n);
    this.store.set({ sel: ix });
    if (twice && ix >= 0) this.store.set({ root: ix });
  }

  /** Unfolds a group or folds it. */
  private toggle(g: number) {
    const { sel } = this.store.state;
    const opened = this.opened(g);
    if (opened) this.open.delete(g);
    else this.open.add(g);
    if (opened && sel >= 0 && this.groupOf[sel] === g) this.store.set({ sel: -1 });
    else this.update();
  }

  reveal() {
    const lane = this.lane[this.store.state.sel];
    if (lane >= 0) this.scrollTo(this.top(lane), this.pitch);
  }

  /** The next or previous process in order of the tree. */
  step(by: number) {
    const { data, store } = this;
    let at = store.state.sel >= 0 ? data.place[store.state.sel] + by : 0;
    while (at >= 0 && at < data.n && !store.shown(data.order[at])) at += by;
    if (at >= 0 && at < data.n) {
      store.set({ sel: data.order[at] });
      this.scrollTo(this.top(this.lane[data.order[at]]), this.pitch);
    }
  }
}

/** Siblings of one program in a lane. */
interface Bunch extends Group {
  /** Those in the scope, and those of them that failed. */
  shown: number[];
  failed: number[];
  /** When the last of them ended. */
  until: number;
  /** The sum of their wall times, and of their CPU times. */
  wall: number;
  cpu: number;
  /** The most that lived at once. */
  peak: number;
}

/** How many of these lived at once at most; they are in order of their start. */
function atOnce(members: number[], start: number[], end: number[]): number {
  const ends = members.map((ix) => end[ix]).sort((a, b) => a - b);
  let over = 0;
  let peak = 1;
  members.forEach((ix, begun) => {
    while (ends[over] <= start[ix]) over++;
    peak = Math.max(peak, begun + 1 - over);
  });
  return peak;
}

/** Each process's waits that no descendant ended and that were for no CPU, ns: the run queue grows with the machine's load. */
function otherWaits(data: Data): Float64Array {
  const { first, start, end, kind, share, by } = data.pieces;
  const { blocked, vfork } = data.doc.processes;
  const byChild = (ix: number, piece: number) => {
    const waker = by[piece] < 3 ? undefined : data.processOf[by[piece] - 3];
    return waker !== undefined && waker !== ix && data.within(waker, ix);
  };
  const counts = KINDS.map(([name, state]) => (state === ASLEEP || state === BLOCKED) && !FOR_CHILDREN.has(name));
  const out = new Float64Array(data.n);
  data.processOf.forEach((ix, thread) => {
    for (let piece = first[thread]; piece < first[thread + 1]; piece++)
      if (share[piece] < 0 && counts[kind[piece]] && !byChild(ix, piece)) out[ix] += end[piece] - start[piece];
  });
  // Merged pieces have no reasons; the totals do.
  return out.map((ns, ix) => Math.max(ns, (blocked[ix] ?? 0) - (vfork[ix] ?? 0)));
}

/** The processes that take no lane if folded: 1 waits for its children, 2 is the machine's and sleeps. */
function quiet(data: Data): Uint8Array {
  const { start, end, on_cpu, run_queue, blocked, kthread, started_before, alive, threads } = data.doc.processes;
  const onPath = new Set(data.doc.path?.thread.map((thread) => data.processOf[thread]));
  const other = otherWaits(data);
  const { from, to } = data.doc.trace;
  const out = new Uint8Array(data.n);
  for (let ix = 0; ix < data.n; ix++) {
    const wall = data.wall(ix);
    const children = data.children[ix];
    // Waits tell less than work: they grow with the machine's load.
    const busy = (on_cpu[ix] ?? wall) * 100 + ((run_queue[ix] ?? 0) + (blocked[ix] ?? 0)) * 10;
    const asleep = busy < wall * threads[ix] && !onPath.has(ix) && !data.failed(ix);
    if (asleep && (kthread[ix] || (started_before[ix] && alive[ix]))) {
      out[ix] = 2;
      continue;
    }
    // As a compiler's driver: its children one after the other, for nearly all of its time.
    if (
      children.length === 0 ||
      children.length > 3 ||
      data.parent[ix] < 0 ||
      data.failed(ix) ||
      (on_cpu[ix] ?? 0) * 5 > wall ||
      other[ix] > Math.min(SHORT.ns, (to - from) * SHORT.share)
    )
      continue;
    let covered = 0;
    let until = start[ix];
    let single = true;
    for (const child of [...children].sort((a, b) => start[a] - start[b])) {
      if (start[child] < until) single = false;
      covered += Math.max(0, Math.min(end[child], end[ix]) - start[child]);
      until = end[child];
    }
    if (single && until <= end[ix] && covered * 10 >= wall * 8) out[ix] = 1;
  }
  return out;
}

interface Wake {
  time: number;
  from: number;
  to: number;
}
