// A sorted table of many rows: only those in sight are elements, and a row that stays in sight
// stays the same element, so that scrolling costs a few rows a frame.

import { copyBy, h } from "./dom";
import { cutName } from "./names";
import { count, share } from "./units";

export interface Column<R> {
  key: string;
  title: string;
  /** What the title does not say. */
  hint?: string;
  /** In CSV, as `tr analyze --format csv` has it. */
  csv: string;
  value: (row: R) => number | string | null;
  show: (row: R) => string;
  /** What the cell holds instead of that text. */
  cell?: (row: R) => (HTMLElement | string)[];
  text?: boolean;
  hidden?: boolean;
  /** CSS pixels; text takes what is left. */
  width?: number;
}

/** What a table asks of its view. */
export interface Rows<R> {
  name: string;
  empty: string;
  sorted: () => [key: string, descending: boolean];
  /** The column that sorts where there is none of that key. */
  otherwise: string;
  sort: (key: string, descending: boolean) => void;
  pick: (row: R) => void;
  selected: (row: R) => boolean;
  failed: (row: R) => boolean;
  /** Attributes of a row's element. */
  about: (row: R) => Record<string, unknown>;
}

const ROW = 26;
/** Rows come and go in blocks. */
const BLOCK = 16;
const NUMBER = 92;
/** The most rows on paper. */
const PRINTED = 500;
const TEXT = 220;
/** A narrower table has the columns that have room in it. */
const NARROW = 640;
/** The most that a column of a narrow table takes from its names, CSS pixels: its bar is shorter there (report.css). */
const MOST_NARROW = 160;

export class Grid<R> {
  readonly element: HTMLElement;
  /** The choice of columns, and the button that copies. */
  readonly tools: HTMLElement[];
  rows: R[] = [];
  private chosen: Set<string>;
  private head = h("tr");
  private body = h("tbody");
  private cols = h("colgroup");
  private table: HTMLTableElement;
  private alive = new Map<number, HTMLElement>();
  private above = space();
  private below = space();
  private shown: Column<R>[] = [];
  private empty: HTMLElement;
  private width = 0;
  private by: HTMLSelectElement;
  /** The number of rows for paper; 0: it is shown on a screen. */
  private printed = 0;

  constructor(
    private columns: Column<R>[],
    private ask: Rows<R>,
  ) {
    this.chosen = new Set(columns.filter((c) => !c.hidden).map((c) => c.key));
    const boxes = columns.map((column) => {
      const box = h("input", {
        type: "checkbox",
        onchange: () => {
          if (box.checked) this.chosen.add(column.key);
          else this.chosen.delete(column.key);
          this.refresh();
        },
      });
      box.checked = this.chosen.has(column.key);
      return h("label", {}, box, ` ${column.title}`);
    });
    const copy = h(
      "button",
      { type: "button", onclick: () => void copyBy(copy, this.csv(), `Copied ${count(this.rows.length)} rows`) },
      "Copy as CSV",
    );
    this.by = h(
      "select",
      {
        class: "narrow",
        "aria-label": "Sort by",
        onchange: () => ask.sort(this.by.value, !columns.find((c) => c.key === this.by.value)?.text),
      },
      ...columns.map((c) => h("option", { value: c.key }, c.title)),
    );
    this.tools = [
      h("details", { class: "columns" }, h("summary", {}, "Columns"), h("div", { class: "menu" }, ...boxes)),
      this.by,
      copy,
    ];
    this.table = h("table", { "aria-label": ask.name }, this.cols, h("thead", {}, this.head), this.body);
    this.empty = h("p", { class: "empty", hidden: true }, ask.empty);
    this.element = h(
      "div",
      { class: "scroll table-scroll", tabindex: "0", role: "region", "aria-label": `${ask.name}, scrolled` },
      this.table,
      this.empty,
    );
    this.element.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => {
      if (this.element.clientWidth === this.width) this.draw();
      else this.refresh();
    }).observe(this.element);
    addEventListener("beforeprint", () => this.paper(true));
    addEventListener("afterprint", () => this.paper(false));
  }

  /** The rows in their order from now on: what is not known comes last, equal ones by `tie`. */
  show(rows: R[], tie: (row: R) => number) {
    const [key, descending] = this.sorted();
    const column = this.columns.find((c) => c.key === key) ?? this.columns[0];
    const sign = descending ? -1 : 1;
    const keyed = rows.map((row) => ({ row, value: column.value(row), tie: tie(row) }));
    keyed.sort((a, b) => {
      if (a.value === null || b.value === null)
        return (a.value === null ? 1 : 0) - (b.value === null ? 1 : 0) || a.tie - b.tie;
      return (a.value < b.value ? -1 : a.value > b.value ? 1 : 0) * sign || a.tie - b.tie;
    });
    this.rows = keyed.map(({ row }) => row);
    this.refresh();
  }

  private sorted(): [key: string, descending: boolean] {
    const [key, descending] = this.ask.sorted();
    return this.columns.some((c) => c.key === key) ? [key, descending] : [this.ask.otherwise, true];
  }

  /** Columns, and all rows anew. */
  refresh() {
    this.width = this.element.clientWidth;
    this.shown = this.fitting();
    const [key, descending] = this.sorted();
    this.by.value = key;
    this.head.replaceChildren(
      ...this.shown.map((column) => {
        const sorted = key === column.key;
        return h(
          "th",
          {
            scope: "col",
            "aria-sort": !sorted ? "none" : descending ? "descending" : "ascending",
            class: column.text ? "text" : "num",
            title: column.hint,
          },
          h(
            "button",
            { type: "button", onclick: () => this.ask.sort(column.key, sorted ? !descending : !column.text) },
            column.title,
            sorted ? (descending ? " ↓" : " ↑") : "",
          ),
        );
      }),
    );
    this.cols.replaceChildren(
      ...this.shown.map((column, at) => {
        const col = h("col");
        if (at > 0 || column.width) col.style.width = `${this.wide(column)}px`;
        return col;
      }),
    );
    for (const row of [this.above, this.below])
      row.firstElementChild!.setAttribute("colspan", String(this.shown.length));
    this.table.style.minWidth = this.narrow
      ? ""
      : `${this.shown.reduce((sum, column) => sum + this.wide(column), 0)}px`;
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.empty.hidden = this.rows.length > 0;
    this.alive.clear();
    this.body.replaceChildren(this.above, this.below);
    this.draw();
  }

  private get narrow(): boolean {
    return this.width > 0 && this.width < NARROW;
  }

  private wide(column: Column<R>): number {
    const width = column.width ?? (column.text ? TEXT : Math.max(NUMBER, column.title.length * 8 + 34));
    return this.narrow ? Math.min(width, MOST_NARROW) : width;
  }

  /** The chosen columns; of a narrow table the first, the one that sorts, and those that have room. */
  private fitting(): Column<R>[] {
    const chosen = this.columns.filter((c) => this.chosen.has(c.key));
    if (!this.narrow) return chosen;
    const [key] = this.sorted();
    const first = this.columns[0];
    let room = this.width - 150;
    const others = chosen.filter((c) => c !== first && !c.text);
    others.sort((a, b) => (b.key === key ? 1 : 0) - (a.key === key ? 1 : 0));
    const sorting = this.columns.find((c) => c.key === key && c !== first);
    if (sorting && !others.includes(sorting)) others.unshift(sorting);
    const fit = others.filter((c) => (room -= this.wide(c)) >= 0 || c === sorting);
    return [first, ...this.columns.filter((c) => fit.includes(c))];
  }

  /** For paper the first rows, without a scroll. */
  private paper(on: boolean) {
    this.printed = on ? PRINTED : 0;
    this.draw();
  }

  draw() {
    if (!this.element.offsetParent) return;
    const all = this.printed;
    const { scrollTop, clientHeight } = this.element;
    const block = Math.max(0, Math.floor(scrollTop / ROW / BLOCK) - 1) * BLOCK;
    const top = all > 0 ? 0 : Math.min(block, Math.max(0, this.rows.length - 1));
    const last = Math.min(this.rows.length, all > 0 ? all : top + (Math.ceil(clientHeight / ROW / BLOCK) + 3) * BLOCK);
    for (const [at, row] of this.alive) {
      if (at >= top && at < last) continue;
      row.remove();
      this.alive.delete(at);
    }
    for (let at = top; at < last; at++) {
      if (this.alive.has(at)) continue;
      const row = this.row(at);
      this.alive.set(at, row);
      // In their order: before the next one that is there.
      let next = at + 1;
      while (next < last && !this.alive.has(next)) next++;
      this.body.insertBefore(row, this.alive.get(next) ?? this.below);
    }
    (this.above.firstElementChild as HTMLElement).style.height = `${top * ROW}px`;
    const left = Math.max(0, this.rows.length - last);
    const below = this.below.firstElementChild as HTMLElement;
    below.style.height = all > 0 ? "" : `${left * ROW}px`;
    below.textContent = all > 0 && left > 0 ? `and ${count(left)} more rows` : "";
    const { scrollLeft, scrollWidth, clientWidth } = this.element;
    this.element.classList.toggle("more-right", scrollLeft + clientWidth < scrollWidth - 1);
    for (const [at, row] of this.alive) row.setAttribute("aria-selected", String(this.ask.selected(this.rows[at])));
  }

  private row(at: number): HTMLElement {
    const row = this.rows[at];
    return h(
      "tr",
      {
        "aria-rowindex": at + 2,
        ...this.ask.about(row),
        class: this.ask.failed(row) ? "failed" : "",
        onclick: (event: MouseEvent) => {
          if (!(event.target as HTMLElement).closest("a")) this.ask.pick(row);
        },
      },
      ...this.shown.map((column) => {
        const text = column.show(row);
        return h(
          "td",
          { class: column.text ? "text" : "num", title: column.text ? text : undefined },
          ...(column.cell?.(row) ?? [column.text ? cutName(text) : text]),
        );
      }),
    );
  }

  reveal(at: number) {
    const { scrollTop, clientHeight } = this.element;
    if (at >= 0 && (at * ROW < scrollTop || (at + 2) * ROW > scrollTop + clientHeight))
      this.element.scrollTop = Math.max(0, at * ROW - clientHeight / 3);
  }

  /** What is shown, as CSV: exact numbers, empty where not known. */
  csv(): string {
    const quote = (value: number | string | null) => {
      let text = value === null ? "" : String(value);
      // A spreadsheet would take it for a formula (escape.rs).
      if (typeof value === "string" && /^\s*([=+\-@\uff1d\uff0b\uff0d\uff20]|::)/.test(text)) text = `'${text}`;
      return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    const columns = this.columns.filter((c) => this.chosen.has(c.key));
    const lines = [columns.map((c) => c.csv).join(",")];
    for (const row of this.rows) lines.push(columns.map((c) => quote(c.value(row))).join(","));
    return lines.join("\n") + "\n";
  }
}

function space(): HTMLElement {
  return h("tr", { class: "space", "aria-hidden": "true" }, h("td"));
}

/** A bar in a cell: its parts with their colours, as shares of the longest row. */
export function inline(parts: [ns: number, color: string, name: string][], most: number): HTMLElement {
  const whole = parts.reduce((sum, [ns]) => sum + ns, 0);
  return h(
    "span",
    {
      class: "inline",
      "aria-hidden": "true",
      title: parts
        .filter(([ns]) => ns > 0)
        .map(([ns, , name]) => `${name} ${share(ns, whole)}`)
        .join(", "),
    },
    ...parts
      .filter(([ns]) => ns > 0)
      .map(([ns, color]) => {
        const part = h("i", { class: color });
        part.style.width = `${(ns * 100) / Math.max(1, most)}%`;
        return part;
      }),
  );
}
