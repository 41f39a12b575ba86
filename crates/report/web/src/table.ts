// All processes, sorted, searched, and copied as CSV.

import type { Data } from "./data";
import { h } from "./dom";
import { figures, living } from "./figures";
import { Grid, inline, type Column as Of } from "./grid";
import { groupBy } from "./heatmap";
import { wholeName } from "./search";
import type { Store } from "./state";
import type { Context } from "./timeview";
import { at, bytes, count, time } from "./units";

type Column = Of<number>;

function columns(data: Data, store: Store): Column[] {
  const p = data.doc.processes;
  // In a range of time, the times are those in it.
  const inside = (s: number, ix: number, known: (number | null)[]) =>
    store.zoomed ? figures(data, store).times[s][ix] : known[ix];
  const state = (
    s: number,
    key: string,
    title: string,
    csv: string,
    values: (number | null)[],
    hidden = false,
  ): Column => ({
    key,
    title,
    csv,
    hidden,
    value: (ix) => inside(s, ix, values),
    show: (ix) => time(inside(s, ix, values)),
  });
  const wall = (ix: number) => figures(data, store).wall[ix];
  const ns = (key: string, title: string, csv: string, values: (number | null)[], hidden = false): Column => ({
    key,
    title,
    csv,
    hidden,
    value: (ix) => values[ix],
    show: (ix) => time(values[ix]),
  });
  const n = (key: string, title: string, values: (number | null)[], hidden = true): Column => ({
    key,
    title,
    csv: key,
    hidden,
    value: (ix) => values[ix],
    show: (ix) => count(values[ix]),
  });
  const known = (value: number | null) => (value === null ? "?" : String(value));
  return [
    {
      key: "name",
      title: "Process",
      csv: "name",
      text: true,
      value: (ix) => data.label(ix),
      show: (ix) => data.label(ix),
    },
    { key: "pid", title: "pid", csv: "pid", value: (ix) => p.pid[ix], show: (ix) => String(p.pid[ix]) },
    {
      key: "ppid",
      title: "ppid",
      csv: "ppid",
      hidden: true,
      value: (ix) => p.ppid[ix],
      show: (ix) => known(p.ppid[ix]),
    },
    {
      key: "exit",
      title: "End",
      csv: "exit",
      text: true,
      width: 150,
      value: (ix) => data.exit(ix),
      show: (ix) => data.exit(ix),
    },
    { key: "start", title: "Start", csv: "start_ns", value: (ix) => p.start[ix], show: (ix) => at(p.start[ix]) },
    { key: "wall", title: "Wall", csv: "wall_ns", value: wall, show: (ix) => time(wall(ix)) },
    state(0, "on_cpu", "CPU", "on_cpu_ns", p.on_cpu),
    state(1, "run_queue", "Run queue", "run_queue_ns", p.run_queue),
    state(2, "blocked", "Blocked", "blocked_ns", p.blocked),
    state(3, "sleep", "Sleep", "sleep_ns", p.sleep),
    state(4, "unknown", "Unknown", "unknown_ns", p.unknown, data.doc.totals.unknown === 0),
    ns("tree_on_cpu", "CPU, tree", "tree_on_cpu_ns", p.tree_on_cpu, true),
    n("tree_processes", "Tree", p.tree_processes),
    ns("preempted", "Preempted", "preempted_ns", p.preempted, true),
    ns("block_io", "Storage", "block_io_ns", p.block_io, true),
    ns("vfork", "vfork", "vfork_ns", p.vfork, true),
    ns("max_off_cpu", "Longest off CPU", "max_off_cpu_ns", p.max_off_cpu, true),
    n("voluntary", "Gave up CPU", p.voluntary),
    n("involuntary", "Lost CPU", p.involuntary),
    n("threads", "Threads", p.threads),
    n("execs", "Execs", p.execs),
    {
      key: "max_rss",
      title: "Memory",
      csv: "max_rss_bytes",
      value: (ix) => p.max_rss[ix],
      show: (ix) => (p.max_rss[ix] === null ? "?" : bytes(p.max_rss[ix]!)),
    },
    {
      key: "cgroup",
      title: "Cgroup",
      csv: "cgroup",
      text: true,
      hidden: true,
      value: (ix) => data.cgroup(ix),
      show: (ix) => data.cgroup(ix),
    },
    {
      key: "argv",
      title: "Command line",
      csv: "argv",
      text: true,
      hidden: true,
      width: 420,
      value: (ix) => data.argv(ix),
      show: (ix) => data.argv(ix),
    },
  ];
}

/** Processes of one program, step, cgroup or container. */
interface Group {
  name: string;
  /** The first of them. */
  first: number;
  processes: number;
  failed: number;
  wall: number;
  /** By state, ns; null: not known of any. */
  times: (number | null)[];
  memory: number | null;
}

const STATES: [string, string, string][] = [
  ["on_cpu", "CPU", "on_cpu_ns"],
  ["run_queue", "Run queue", "run_queue_ns"],
  ["blocked", "Blocked", "blocked_ns"],
  ["sleep", "Sleep", "sleep_ns"],
  ["unknown", "Unknown", "unknown_ns"],
];

function groupColumns(data: Data, most: () => number): Of<Group>[] {
  const bar = (row: Group) => inline([[row.times[0] ?? 0, "s0", "CPU"]], most());
  return [
    { key: "name", title: "Name", csv: "name", text: true, value: (row) => row.name, show: (row) => row.name },
    {
      key: "processes",
      title: "Processes",
      csv: "processes",
      value: (row) => row.processes,
      show: (row) => count(row.processes),
    },
    {
      key: "wall",
      title: "Wall",
      hint: "The sum of their wall times",
      csv: "wall_ns",
      value: (row) => row.wall,
      show: (row) => time(row.wall),
    },
    ...STATES.map(([key, title, csv], s): Of<Group> => ({
      key,
      title,
      csv,
      hidden: s === 4 && data.doc.totals.unknown === 0,
      width: s === 0 ? 230 : undefined,
      value: (row) => row.times[s],
      show: (row) => time(row.times[s]),
      cell: s === 0 ? (row) => [bar(row), h("span", { class: "value" }, time(row.times[s]))] : undefined,
    })),
    {
      key: "max_rss",
      title: "Memory",
      hint: "Of the largest",
      csv: "max_rss_bytes",
      value: (row) => row.memory,
      show: (row) => (row.memory === null ? "?" : bytes(row.memory)),
    },
    {
      key: "failed",
      title: "Failed",
      csv: "failed",
      value: (row) => row.failed,
      show: (row) => (row.failed > 0 ? count(row.failed) : "–"),
    },
  ];
}

export class Table {
  readonly element: HTMLElement;
  private grid: Grid<number>;
  private groups: Grid<Group>;
  private most = 1;
  private refresh: () => void;
  private key = "";
  private data: Data;
  private store: Store;
  private note = h("span", { class: "dim", role: "status" });

  constructor(context: Context) {
    const { data, store } = context;
    this.data = data;
    this.store = store;
    this.grid = new Grid(columns(data, store), {
      name: "Processes",
      empty: "No process matches here.",
      otherwise: "on_cpu",
      sorted: () => [store.state.sort, store.state.descending],
      sort: (sort, descending) => store.set({ sort, descending }),
      pick: (sel) => store.set({ sel }),
      selected: (ix) => ix === store.state.sel,
      failed: (ix) => data.bad(ix),
      about: (ix) => ({ "data-ix": ix }),
    });
    const by = groupBy(context);
    const tools = h("span", { class: "tools" }, ...this.grid.tools);
    this.groups = new Grid(
      groupColumns(data, () => this.most),
      {
        name: "Groups of processes",
        empty: "No process matches here.",
        otherwise: "on_cpu",
        sorted: () => [store.state.sort, store.state.descending],
        sort: (sort, descending) => store.set({ sort, descending }),
        pick: ({ name }) => store.set({ q: wholeName(store.state.rows, name), rows: "process" }),
        selected: () => false,
        failed: ({ failed }) => failed > 0,
        about: ({ name }) => ({ "data-group": name }),
      },
    );
    const groupTools = h("span", { class: "tools" }, ...this.groups.tools);
    this.element = h(
      "div",
      { class: "tableview" },
      h("div", { class: "toolbar" }, by.element, tools, groupTools, this.note),
      this.grid.element,
      this.groups.element,
    );
    this.refresh = () => {
      by.show(store.state.rows === "thread" ? "process" : store.state.rows);
      const { grouped } = this;
      tools.hidden = this.grid.element.hidden = grouped;
      groupTools.hidden = this.groups.element.hidden = !grouped;
    };
  }

  private get grouped(): boolean {
    const { rows } = this.store.state;
    return rows !== "process" && rows !== "thread";
  }

  private sum(rows: number[]): Group[] {
    const { data, store } = this;
    const { times, wall } = figures(data, store);
    const { max_rss } = data.doc.processes;
    const groups = new Map<string, Group>();
    for (const ix of rows) {
      const name = data.group(store.state.rows, ix);
      let group = groups.get(name);
      if (!group)
        groups.set(
          name,
          (group = { name, first: ix, processes: 0, failed: 0, wall: 0, times: times.map(() => null), memory: null }),
        );
      group.processes++;
      group.failed += data.bad(ix) ? 1 : 0;
      group.wall += wall[ix];
      for (let s = 0; s < times.length; s++)
        if (!Number.isNaN(times[s][ix])) group.times[s] = (group.times[s] ?? 0) + times[s][ix];
      if (max_rss[ix] !== null) group.memory = Math.max(group.memory ?? 0, max_rss[ix]!);
    }
    return [...groups.values()];
  }

  update() {
    const { data, store } = this;
    const { state } = store;
    this.refresh();
    const key = [state.rows, state.root, state.cgroup, state.q, state.sort, state.descending, state.t0, state.t1].join(
      "\n",
    );
    if (key === this.key) return this.grouped ? this.groups.draw() : this.grid.draw();
    this.key = key;
    const rows = living(data, store);
    if (this.grouped) {
      const groups = this.sum(rows);
      this.most = Math.max(1, ...groups.map(({ times }) => times[0] ?? 0));
      this.groups.show(groups, ({ first }) => first);
    } else this.grid.show(rows, (ix) => ix);
    this.note.textContent = `${count(rows.length)} of ${count(data.n)} processes · CPU, run queue, blocked and sleep: sums over all threads${store.zoomed ? ` · times in the range ${at(state.t0)} to ${at(state.t1)}${figures(data, store).exact ? "" : ", approximate"}` : ""}`;
  }

  reveal() {
    this.grid.reveal(this.grid.rows.indexOf(this.store.state.sel));
  }
  step(by: number) {
    const { rows } = this.grid;
    const at = Math.max(0, Math.min(rows.length - 1, rows.indexOf(this.store.state.sel) + by));
    if (rows.length > 0) this.store.set({ sel: rows[at] });
    requestAnimationFrame(() => this.reveal());
  }
}
