// All processes, sorted, searched, and copied as CSV. Only the rows in sight
// are elements.

import type { Data } from "./data";
import { h } from "./dom";
import { figures, lives } from "./figures";
import type { Store } from "./state";
import type { Context } from "./timeview";
import { at, bytes, count, time } from "./units";

interface Column {
  key: string;
  title: string;
  /** In CSV, as `tr analyze --format csv` has it. */
  csv: string;
  value: (ix: number) => number | string | null;
  show: (ix: number) => string;
  text?: boolean;
  hidden?: boolean;
}

const ROW = 26;

function columns(data: Data, store: Store): Column[] {
  const p = data.doc.processes;
  // In a range of time, the times are those in it.
  const inside = (s: number, ix: number, known: (number | null)[]) => (store.zoomed ? figures(data, store).times[s][ix] : known[ix]);
  const state = (s: number, key: string, title: string, csv: string, values: (number | null)[], hidden = false): Column => ({
    key, title, csv, hidden, value: (ix) => inside(s, ix, values), show: (ix) => time(inside(s, ix, values)),
  });
  const wall = (ix: number) => figures(data, store).wall[ix];
  const ns = (key: string, title: string, csv: string, values: (number | null)[], hidden = false): Column => ({
    key, title, csv, hidden, value: (ix) => values[ix], show: (ix) => time(values[ix]),
  });
  const n = (key: string, title: string, values: (number | null)[], hidden = true): Column => ({
    key, title, csv: key, hidden, value: (ix) => values[ix], show: (ix) => count(values[ix]),
  });
  const known = (value: number | null) => (value === null ? "?" : String(value));
  return [
    { key: "name", title: "Process", csv: "name", text: true, value: (ix) => data.label(ix), show: (ix) => data.label(ix) },
    { key: "pid", title: "pid", csv: "pid", value: (ix) => p.pid[ix], show: (ix) => String(p.pid[ix]) },
    { key: "ppid", title: "ppid", csv: "ppid", hidden: true, value: (ix) => p.ppid[ix], show: (ix) => known(p.ppid[ix]) },
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
    { key: "max_rss", title: "Memory", csv: "max_rss_bytes", value: (ix) => p.max_rss[ix], show: (ix) => (p.max_rss[ix] === null ? "?" : bytes(p.max_rss[ix]!)) },
    { key: "exit", title: "End", csv: "exit", text: true, value: (ix) => data.exit(ix), show: (ix) => data.exit(ix) },
    { key: "cgroup", title: "Cgroup", csv: "cgroup", text: true, hidden: true, value: (ix) => data.cgroup(ix), show: (ix) => data.cgroup(ix) },
    { key: "argv", title: "Command line", csv: "argv", text: true, hidden: true, value: (ix) => data.argv(ix), show: (ix) => data.argv(ix) },
  ];
}

export class Table {
  readonly element: HTMLElement;
  private columns: Column[];
  private chosen: Set<string>;
  private rows: number[] = [];
  private key = "";
  private data: Data;
  private store: Store;
  private head = h("tr");
  private body = h("tbody");
  private table: HTMLTableElement;
  private scroll: HTMLElement;
  private note = h("span", { class: "dim", role: "status" });
  private empty = h("p", { class: "empty", hidden: true }, "No process matches here.");

  constructor(context: Context) {
    this.data = context.data;
    this.store = context.store;
    this.columns = columns(this.data, this.store);
    this.chosen = new Set(this.columns.filter((c) => !c.hidden).map((c) => c.key));
    const boxes = this.columns.map((column) => {
      const box = h("input", { type: "checkbox", onchange: () => {
        if (box.checked) this.chosen.add(column.key);
        else this.chosen.delete(column.key);
        this.header();
        this.draw();
      } });
      box.checked = this.chosen.has(column.key);
      return h("label", {}, box, ` ${column.title}`);
    });
    const copy = h("button", { type: "button", onclick: () => this.copy(copy) }, "Copy as CSV");
    this.table = h("table", { "aria-label": "Processes" }, h("thead", {}, this.head), this.body);
    this.scroll = h("div", { class: "scroll table-scroll", tabindex: "0" }, this.table, this.empty);
    this.element = h("div", { class: "tableview" },
      h("div", { class: "toolbar" }, h("details", { class: "columns" }, h("summary", {}, "Columns"), h("div", { class: "menu" }, ...boxes)), copy, this.note),
      this.scroll);
    this.scroll.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.scroll);
    addEventListener("beforeprint", () => this.draw(500));
    addEventListener("afterprint", () => this.draw());
    this.header();
  }

  private shown(): Column[] {
    return this.columns.filter((c) => this.chosen.has(c.key));
  }

  private header() {
    const { state } = this.store;
    this.head.replaceChildren(...this.shown().map((column) => {
      const sorted = state.sort === column.key;
      const order = !sorted ? "none" : state.descending ? "descending" : "ascending";
      return h("th", { scope: "col", "aria-sort": order, class: column.text ? "text" : "num" },
        h("button", { type: "button", onclick: () => this.store.set(sorted ? { descending: !state.descending } : { sort: column.key, descending: !column.text }) },
          column.title, sorted ? (state.descending ? " ↓" : " ↑") : ""));
    }));
  }

  update() {
    const { state } = this.store;
    const key = [state.root, state.cgroup, state.q, state.sort, state.descending, state.t0, state.t1].join("\n");
    if (key !== this.key) {
      this.key = key;
      this.sort();
      this.header();
      this.note.textContent = `${count(this.rows.length)} of ${count(this.data.n)} processes${this.store.zoomed ? ` · times in the range ${at(state.t0)} to ${at(state.t1)}${figures(this.data, this.store).exact ? "" : ", approximate"}` : ""}`;
    }
    this.draw();
  }

  private sort() {
    const { state } = this.store;
    const column = this.columns.find((c) => c.key === state.sort) ?? this.columns[5];
    const sign = state.descending ? -1 : 1;
    const rows: number[] = [];
    for (let ix = 0; ix < this.data.n; ix++) if (this.store.shown(ix) && lives(this.data, this.store, ix)) rows.push(ix);
    const values = new Map(rows.map((ix) => [ix, column.value(ix)]));
    rows.sort((a, b) => {
      const [x, y] = [values.get(a)!, values.get(b)!];
      // What is not known comes last.
      if (x === null || y === null) return (x === null ? 1 : 0) - (y === null ? 1 : 0) || a - b;
      return (x < y ? -1 : x > y ? 1 : 0) * sign || a - b;
    });
    this.rows = rows;
  }

  draw(all = 0) {
    if (!this.element.offsetParent) return;
    const top = all > 0 ? 0 : Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 8);
    const last = Math.min(this.rows.length, all > 0 ? all : top + Math.ceil(this.scroll.clientHeight / ROW) + 24);
    const shown = this.shown();
    const space = (height: number) => {
      const row = h("tr", { class: "space", "aria-hidden": "true" }, h("td", { colspan: shown.length }));
      (row.firstElementChild as HTMLElement).style.height = `${height}px`;
      return row;
    };
    const rows = this.rows.slice(top, last).map((ix, n) => {
      const selected = ix === this.store.state.sel;
      return h("tr", { "aria-rowindex": top + n + 2, "aria-selected": String(selected), "data-ix": ix,
        class: this.data.failed(ix) ? "failed" : "", onclick: () => this.store.set({ sel: ix }) },
        ...shown.map((column) => h("td", { class: column.text ? "text" : "num", title: column.text ? column.show(ix) : undefined }, column.show(ix))));
    });
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.empty.hidden = this.rows.length > 0;
    this.body.replaceChildren(space(top * ROW), ...rows, space((this.rows.length - last) * ROW));
  }

  reveal() {
    const at = this.rows.indexOf(this.store.state.sel);
    const { scrollTop, clientHeight } = this.scroll;
    if (at >= 0 && (at * ROW < scrollTop || (at + 2) * ROW > scrollTop + clientHeight)) this.scroll.scrollTop = Math.max(0, at * ROW - clientHeight / 3);
  }
  step(by: number) {
    const at = Math.max(0, Math.min(this.rows.length - 1, this.rows.indexOf(this.store.state.sel) + by));
    if (this.rows.length > 0) this.store.set({ sel: this.rows[at] });
    requestAnimationFrame(() => this.reveal());
  }

  /** What is shown, as CSV: exact numbers, empty where not known. */
  csv(): string {
    const shown = this.shown();
    const quote = (value: number | string | null) => {
      let text = value === null ? "" : String(value);
      // A spreadsheet would take it for a formula (escape.rs).
      if (typeof value === "string" && /^\s*([=+\-@\uff1d\uff0b\uff0d\uff20]|::)/.test(text)) text = `'${text}`;
      return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    const lines = [shown.map((c) => c.csv).join(",")];
    for (const ix of this.rows) lines.push(shown.map((c) => quote(c.value(ix))).join(","));
    return lines.join("\n") + "\n";
  }

  private async copy(button: HTMLButtonElement) {
    const text = this.csv();
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      // Not allowed to pages from disk everywhere.
      const area = h("textarea", { class: "offscreen" });
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    button.textContent = done ? `Copied ${count(this.rows.length)} rows` : "Copying was refused";
    setTimeout(() => (button.textContent = "Copy as CSV"), 2000);
  }
}
