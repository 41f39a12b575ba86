// What happened in a range of time, a subtree, a step or a search, beside the timeline: the sums
// of what is measured or shown, without leaving the view.

import { STATES, type Data } from "./data";
import { h } from "./dom";
import { LARGE, ownersInside, pathInside, programs, reasons, sums, type Part } from "./figures";
import { inline } from "./grid";
import { ruler } from "./marks";
import { cutName } from "./names";
import { wholeName } from "./search";
import type { Store } from "./state";
import { open, stepShown } from "./steps";
import type { Context } from "./timeview";
import { at, count, share, time } from "./units";

/** The most rows of a list. */
const MOST = 6;
/** Sums come when the shown time has rested so long, ms. */
const REST = 120;

export class Range {
  readonly element = h("aside", { class: "range-sums", "aria-label": "Sums of what is shown", hidden: true });
  private data: Data;
  private store: Store;
  private key = "";
  private later = 0;
  /** A button of the pointer is down: what is drawn keeps its width. */
  private held = false;

  /** `changed`: it comes or goes. */
  constructor(
    context: Context,
    private changed: () => void,
  ) {
    this.data = context.data;
    this.store = context.store;
    addEventListener("pointerdown", () => (this.held = true), true);
    for (const end of ["pointerup", "pointercancel"]) {
      addEventListener(
        end,
        () => {
          this.held = false;
          this.update();
        },
        true,
      );
    }
  }

  update() {
    const { store } = this;
    const { state } = store;
    const timed = state.view === "timeline" || state.view === "heatmap";
    const hidden = !timed || !state.sums || !(store.narrowed || ruler(store));
    if (hidden !== this.element.hidden && (hidden || !this.held)) {
      this.element.hidden = hidden;
      this.changed();
    }
    if (this.element.hidden) return;
    const key = [state.t0, state.t1, state.root, state.cgroup, state.q, state.ruler, state.programs].join("\n");
    if (key === this.key) return;
    const first = this.key === "";
    this.key = key;
    clearTimeout(this.later);
    if (first && this.data.pieces.kind.length <= LARGE) this.fill();
    else this.later = setTimeout(() => this.fill(), REST);
  }

  /** The measured time, or the shown one. */
  private part(): Part {
    const { store } = this;
    const span = ruler(store);
    if (!span) return store;
    return { state: { t0: span[0], t1: span[1] }, zoomed: true, shown: (ix) => store.shown(ix) };
  }

  private fill() {
    const { data, store } = this;
    const { state } = store;
    const part = this.part();
    const { t0, t1 } = part.state;
    const sum = sums(data, part);
    const [on] = sum.times;
    const { cpus } = data.doc.trace;
    const what = [
      state.root >= 0 ? `${data.label(state.root)} and its descendants` : "",
      state.cgroup ? `cgroup ${state.cgroup}` : "",
      state.q ? `search ${state.q}` : "",
    ].filter((text) => text);
    const busy = on === null ? "?" : `${sum.least[0] ? "≥ " : ""}${(on / Math.max(1, t1 - t0)).toFixed(2)} of ${cpus}`;
    const known = sum.times.map((ns, s): [number, string, string] => [ns ?? 0, `s${s}`, STATES[s]]);
    const whole = known.reduce((all, [ns]) => all + ns, 0);
    const { all, whole: cpu } = programs(data, part);
    const path: [name: string, ns: number][] = state.programs
      ? pathInside(data, part).map(([name, ns]) => [name, ns])
      : ownersInside(data, part).map(([at, times]) => [
          data.doc.path!.owners[at].name,
          times.reduce((all, ns) => all + ns, 0),
        ]);
    const length = path.reduce((all, [, ns]) => all + ns, 0);
    const waits = reasons(data, part);
    const waited = waits.reduce((all, [, ns]) => all + ns, 0);
    this.element.replaceChildren(
      h(
        "header",
        {},
        h("h2", {}, `${at(t0, t1 - t0)} to ${at(t1, t1 - t0)}`),
        h(
          "button",
          {
            type: "button",
            class: "close",
            "aria-label": "Close the sums",
            title: "Show all again",
            onclick: () => this.clear(),
          },
          "×",
        ),
      ),
      h(
        "p",
        { class: "dim", role: "status" },
        [
          `${time(t1 - t0)} · CPUs utilized ${busy} · ${count(sum.processes)} ${sum.processes === 1 ? "process" : "processes"}`,
          ...what,
        ].join(" · "),
      ),
      h(
        "div",
        { class: "legend" },
        ...known
          .filter(([ns]) => ns > 0)
          .map(([ns, color, name]) =>
            h("span", { class: "key" }, h("i", { class: `swatch ${color}` }), `${name} ${time(ns)}`),
          ),
      ),
      inline(known, whole),
      this.list(
        "CPU time by program",
        all
          .filter(([, ns]) => ns > 0)
          .map(([name, ns]) => [name, ns, "s0", () => store.set({ q: wholeName("program", name) })]),
        cpu,
      ),
      this.steps(part),
      this.list(
        data.doc.path_title,
        path.map(([name, ns]) => [name, ns, "on-path", null]),
        length,
      ),
      this.list(
        "Waits by reason",
        waits.map(([name, ns, s]) => [name, ns, `s${s}`, null]),
        waited,
      ),
    );
  }

  private list(
    title: string,
    rows: [name: string, ns: number, color: string, click: (() => void) | null][],
    whole: number,
  ): HTMLElement {
    if (rows.length === 0) return h("span");
    const most = rows[0][1];
    return h(
      "section",
      {},
      h("h3", {}, title),
      ...rows.slice(0, MOST).map(([name, ns, color, click]) => {
        const inside = [
          h("span", { class: "bar-name", title: name }, cutName(name)),
          inline([[ns, color, name]], most),
          h("span", { class: "num" }, time(ns)),
          h("span", { class: "num dim" }, share(ns, whole)),
        ];
        const row = click
          ? h("button", { type: "button", class: "row", onclick: click }, ...inside)
          : h("div", { class: "row" }, ...inside);
        row.dataset.ns = String(ns);
        return row;
      }),
      rows.length > MOST ? h("p", { class: "aside" }, `${count(rows.length - MOST)} more`) : null,
    );
  }

  /** The steps under way that hold no others, by their time in it. */
  private steps({ state: { t0, t1 } }: Part): HTMLElement {
    const { data, store } = this;
    const { from, to } = data.doc.steps;
    const inside = (row: number) => Math.min(to[row], t1) - Math.max(from[row], t0);
    const all = from.map((_, row) => row).filter((row) => inside(row) > 0 && stepShown(data, store, row));
    const holds = new Set(all.flatMap((row) => data.stepsAround(row).slice(1)));
    const rows = all.filter((row) => !holds.has(row)).sort((a, b) => inside(b) - inside(a) || a - b);
    const list = this.list(
      "Steps and tests",
      rows.map((row) => [data.stepTitle(row), inside(row), "a-step", () => (location.hash = open(data, store, row))]),
      t1 - t0,
    );
    list.classList.add("steps");
    return list;
  }

  private clear() {
    const { store } = this;
    if (store.state.ruler) return store.set({ ruler: "" });
    store.set({ root: -1, cgroup: "", q: "" });
    store.zoom(...store.whole);
  }
}
