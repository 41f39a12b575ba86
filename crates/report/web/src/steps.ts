// Steps, tests and marks as a table: what each took, what it waited for, how it ended.

import { knowsNoSleep, type Data } from "./data";
import { choice, h } from "./dom";
import { Grid, inline, type Column } from "./grid";
import { cutName } from "./names";
import type { Theme } from "./paint";
import { wholeName } from "./search";
import { LEAST, type Store } from "./state";
import { zoomButtons, type Context } from "./timeview";
import { count, share, time } from "./units";
import { UnitsChart } from "./units-chart";

/** The column of `uses` (kinds.rs) that is time in run queues, and those that are waits for something else than a CPU. */
const RUN_QUEUE = 1;
const WAITS = [2, 3, 4, 5];
const NOT_KNOWN = 6;

/** The waits of a step by reason, the longest first. */
function waited(data: Data, row: number): [ns: number, name: string][] {
  const { uses } = data.doc.steps;
  return WAITS.map((use): [number, string] => [uses[row][use] ?? 0, data.doc.uses[use]])
    .filter(([ns]) => ns > 0)
    .sort((a, b) => b[0] - a[0]);
}

/** Its wall time by what it went to, as a bar as long as `length`; one longer than `most` is cut. */
export function bar(data: Data, row: number, most: number, length = data.stepWall(row)): HTMLElement {
  const whole = data.stepWall(row);
  const part = Math.min(length, most) / Math.max(1, whole);
  const known = data.doc.steps.uses[row].map((ns, use): [number, string, string] => [
    (ns ?? 0) * part,
    `u${use}`,
    useName(data, use, data.doc.uses[use]),
  ]);
  const out = inline(known.length > 0 ? known : [[whole * part, `u${NOT_KNOWN}`, "unknown"]], most);
  out.classList.toggle("cut", length > most);
  return out;
}

/** Whether a step's bar has a part for this use of wall time; a step without figures is of unknown time. */
function isUsed(data: Data, row: number, use: number): boolean {
  const uses = data.doc.steps.uses[row];
  return uses.length > 0 ? (uses[use] ?? 0) > 0 : use === NOT_KNOWN;
}

/** The name of a use of wall time; without scheduling events, sleep is not told from time of which nothing is known. */
function useName(data: Data, use: number, name: string): string {
  return use === NOT_KNOWN && knowsNoSleep(data.doc) ? "sleep, blocked or unknown" : name;
}

/** The colours of what wall time goes to (report.css has them, too). */
export function stepColors({ css, programs }: Theme): string[] {
  return [css.on, css.wait, css.blocked, programs[1], css.asleep, programs[7], css.unknown];
}

/** The step and what of it is shown: its time, and its processes. */
export function open(data: Data, store: Store, row: number): string {
  const { from, to, process } = data.doc.steps;
  const room = Math.max((to[row] - from[row]) * 0.03, 500);
  const [first, last] = store.whole;
  return store.address({
    view: "timeline",
    q: wholeName("step", data.stepName(row)),
    sel: process[row] ?? -1,
    step: -1,
    root: -1,
    cgroup: "",
    t0: Math.max(first, from[row] - room),
    t1: Math.min(last, to[row] + room),
  });
}

/** Its verdict in a few words; what held it back is told in full. */
function verdict(data: Data, row: number): string {
  const { held, verdict } = data.doc.steps;
  return data.string(held[row] ?? verdict[row]);
}

function columns(data: Data, store: Store, most: () => number): Column<number>[] {
  const { uses, on_cpu, on_path, processes, kind, from, at_once, open: least } = data.doc.steps;
  const whole = data.doc.path?.length.reduce((a, b) => a + b, 0) ?? 0;
  const name = (row: number) => data.stepName(row);
  const within = (row: number) => data.stepError(row);
  const wall = (row: number) => `${least[row] ? "≥ " : ""}${time(data.stepWall(row))}`;
  const waits = (row: number) => waited(data, row).reduce((sum, [ns]) => sum + ns, 0);
  const ns = (key: string, title: string, hint: string, values: (number | null)[], hidden = false): Column<number> => ({
    key,
    title,
    hint,
    csv: `${key}_ns`,
    hidden,
    value: (row) => values[row],
    show: (row) => time(values[row]),
  });
  const cpus = (row: number) => (on_cpu[row] === null ? null : on_cpu[row]! / Math.max(1, data.stepWall(row)));
  return [
    {
      key: "name",
      title: "Step or test",
      csv: "name",
      text: true,
      value: name,
      show: (row) => [...data.stepsAround(row).map(name)].reverse().join(" › "),
      cell: (row) => [
        h(
          "span",
          { class: "step-name" },
          h("a", { class: "link", href: open(data, store, row) }, cutName(data.stepTitle(row))),
          within(row) === ""
            ? null
            : h("span", { class: "dim place", title: "The error of its place in time" }, ` ${within(row)}`),
        ),
      ],
    },
    {
      key: "kind",
      title: "Kind",
      csv: "kind",
      text: true,
      hidden: true,
      width: 140,
      value: (row) => data.string(kind[row]),
      show: (row) => data.string(kind[row]),
    },
    {
      key: "start",
      title: "Start",
      csv: "start_ns",
      hidden: true,
      value: (row) => from[row],
      show: (row) => `${time(from[row])} ${within(row)}`.trim(),
    },
    {
      key: "wall",
      title: "Wall",
      hint: "The bar: what it went to, along the step's own critical path",
      csv: "wall_ns",
      width: 230,
      value: (row) => data.stepWall(row),
      show: wall,
      cell: (row) => [bar(data, row, most()), h("span", { class: "value" }, wall(row))],
    },
    {
      key: "end",
      title: "End",
      csv: "end",
      text: true,
      width: 132,
      value: (row) => data.stepEnd(row),
      show: (row) => data.stepEnd(row),
    },
    ns("on_cpu", "CPU", "CPU time of all its tasks, with the steps inside it", on_cpu),
    {
      key: "cpus",
      title: "CPUs",
      hint: "CPUs utilized: CPU time by wall time",
      csv: "cpus",
      hidden: true,
      value: cpus,
      show: (row) => cpus(row)?.toFixed(2) ?? "?",
    },
    {
      key: "run_queue",
      title: "Run queue",
      hint: "Of its wall time: able to run, and no CPU",
      csv: "path_run_queue_ns",
      value: (row) => uses[row][RUN_QUEUE] ?? null,
      show: (row) => time(uses[row][RUN_QUEUE] ?? null),
    },
    {
      key: "waits",
      title: "Other waits",
      hint: "Of its wall time: waits for something else than a CPU, by reason",
      csv: "waits_ns",
      width: 178,
      value: (row) => (uses[row].length > 0 ? waits(row) : null),
      show: (row) =>
        uses[row].length > 0
          ? waited(data, row)
              .slice(0, 2)
              .map(([ns, name]) => `${name} ${time(ns)}`)
              .join(", ") || "–"
          : "?",
    },
    {
      key: "path",
      title: "Path",
      hint: `Its share of the ${data.pathName}`,
      csv: "critical_path_ns",
      width: 76,
      value: (row) => on_path[row],
      show: (row) => (on_path[row] > 0 ? share(on_path[row], whole) : "–"),
    },
    {
      key: "at_once",
      title: "At once",
      hint: "Steps that hold no others and ran at once while it did, on average",
      csv: "at_once",
      value: (row) => at_once[row],
      show: (row) => at_once[row].toFixed(1),
    },
    {
      key: "processes",
      title: "Processes",
      csv: "processes",
      hidden: true,
      value: (row) => processes[row],
      show: (row) => count(processes[row]),
    },
    {
      key: "verdict",
      title: "Verdict",
      hint: "What most of its wall time went to",
      csv: "verdict",
      text: true,
      width: 204,
      value: (row) => verdict(data, row),
      show: (row) => verdict(data, row),
    },
  ];
}

/** Where the tests of a runner are found; null: nothing is missing. */
function missing(name: string | null): HTMLElement | null {
  if (name === null) return null;
  return h(
    "p",
    { class: "hint", id: "inside" },
    `${name} runs its tests in one process: `,
    h("code", {}, "tr report --with junit.xml"),
    " adds those of a report in JUnit's format.",
  );
}

export class Steps {
  readonly element: HTMLElement;
  private grid: Grid<number>;
  private chart: UnitsChart;
  private all: number[];
  private most = 1;
  private key = "";
  private data: Data;
  private store: Store;
  private refresh: () => void;
  private note = h("span", { class: "dim", role: "status" });

  constructor(context: Context) {
    const { data, store } = context;
    this.data = data;
    this.store = store;
    const { kind, from } = data.doc.steps;
    this.all = from.map((_, row) => row).filter((row) => isListed(data, row));
    const kinds = [...new Set(this.all.map((row) => data.string(kind[row])))];
    const only = choice<string>(
      "Kinds",
      [["", "All"], ...kinds.map((name): [string, string] => [name, name])],
      (value) => store.set({ kind: value }),
    );
    const least = h(
      "select",
      { "aria-label": "At least this long", onchange: () => store.set({ least: Number(least.value) }) },
      ...LEAST.map((ns) => h("option", { value: ns }, ns > 0 ? `at least ${time(ns)}` : "any length")),
    );
    const form = choice<"table" | "chart">(
      "Form",
      [
        ["table", "Table"],
        ["chart", "Over time"],
      ],
      (value) => store.set({ chart: value === "chart" }),
    );
    const failed = h(
      "button",
      { type: "button", class: "toggle", onclick: () => store.set({ bad: !store.state.bad }) },
      "Failed only",
    );
    this.chart = new UnitsChart(context);
    const zoom = zoomButtons(store);
    this.refresh = () => {
      zoom.hidden = !store.state.chart;
      for (const tool of this.grid.tools) tool.hidden = store.state.chart;
      form.show(store.state.chart ? "chart" : "table");
      this.grid.element.hidden = store.state.chart;
      this.chart.element.hidden = !store.state.chart;
      only.show(store.state.kind);
      least.value = String(store.state.least);
      failed.setAttribute("aria-pressed", String(store.state.bad));
    };
    this.grid = new Grid(
      columns(data, store, () => this.most),
      {
        name: "Steps and tests",
        empty: "No step matches here.",
        otherwise: "wall",
        sorted: () => [store.state.order, store.state.falling],
        sort: (order, falling) => store.set({ order, falling }),
        pick: (row) => (location.hash = open(data, store, row)),
        selected: () => false,
        failed: (row) => data.doc.steps.failed[row] === 1,
        about: (row) => ({ "data-step": row }),
      },
    );
    const legend = h(
      "div",
      { class: "legend", "aria-label": "What wall time went to" },
      ...data.doc.uses.flatMap((name, use) =>
        this.all.some((row) => isUsed(data, row, use))
          ? [h("span", { class: "key" }, h("i", { class: `swatch u${use}` }), useName(data, use, name))]
          : [],
      ),
    );
    this.element = h(
      "div",
      { class: "tableview" },
      h(
        "div",
        { class: "toolbar" },
        form.element,
        kinds.length > 1 ? only.element : null,
        least,
        failed,
        zoom,
        ...this.grid.tools,
        legend,
        this.note,
      ),
      missing(data.doc.untold),
      this.grid.element,
      this.chart.element,
    );
  }

  update() {
    this.refresh();
    const { data, store } = this;
    const { state } = store;
    const key = [
      state.root,
      state.cgroup,
      state.q,
      state.t0,
      state.t1,
      state.kind,
      state.least,
      state.bad,
      state.chart,
      state.order,
      state.falling,
    ].join("\n");
    if (key === this.key) return state.chart ? this.chart.draw() : this.grid.draw();
    this.key = key;
    const rows = this.all.filter((row) => this.shown(row));
    const holds = new Set(data.doc.steps.parent);
    const alone = rows.filter((row) => !holds.has(row));
    // Beside a step that holds the others these would be a few pixels: its bar is cut.
    this.most = (alone.length > 0 ? alone : rows).reduce((most, row) => Math.max(most, data.stepWall(row)), 1);
    if (state.chart) {
      this.chart.show(alone);
    } else this.grid.show(rows, (row) => row);
    const range = store.zoomed ? " · those in the range, with their whole times" : "";
    const what = state.chart
      ? `${count(alone.length)} of ${count(this.all.length)} steps: those that hold no others`
      : `${count(rows.length)} of ${count(this.all.length)} steps · run queue and waits: parts of the wall time; CPU: of all tasks`;
    this.note.textContent = what + range;
  }

  themeChanged() {
    this.chart.themeChanged();
  }

  private shown(row: number): boolean {
    const { data, store } = this;
    const { kind, failed } = data.doc.steps;
    const { state } = store;
    if (state.kind && data.string(kind[row]) !== state.kind) return false;
    if (data.stepWall(row) < state.least || (state.bad && !failed[row])) return false;
    return stepShown(data, store, row);
  }
}

/** Whether a step has a row: marks of a moment took no time, but a test that failed at once counts. */
export function isListed(data: Data, row: number): boolean {
  const { failed, from, to } = data.doc.steps;
  return to[row] > from[row] || failed[row] === 1;
}

/** Whether a step is in the shown range, subtree and cgroup, and is found by its name or by its process. */
export function stepShown(data: Data, store: Store, row: number): boolean {
  const { from, to, process } = data.doc.steps;
  const { state } = store;
  if (store.zoomed && (from[row] >= state.t1 || to[row] <= state.t0)) return false;
  const ix = process[row];
  if ((state.root >= 0 || state.cgroup !== "") && (ix === null || !store.scope[ix])) return false;
  return store.search?.step(row) ?? true;
}
