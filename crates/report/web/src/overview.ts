// The first screen: what ran, how it ended, where the time went.

import type { Data } from "./data";
import { h } from "./dom";
import type { Store } from "./state";
import type { Context } from "./timeview";
import { bytes, count, share, time } from "./units";

export class Overview {
  readonly element: HTMLElement;
  private data: Data;
  private store: Store;

  constructor(context: Context, private ranks: Map<string, number>) {
    this.data = context.data;
    this.store = context.store;
    this.element = h("div", { class: "overview" });
    this.build();
  }

  update() {}

  private build() {
    const { doc } = this.data;
    const { trace, totals } = doc;
    const wall = trace.to - trace.from;
    const figure = (value: string, name: string, id: string, bad = false) =>
      h("div", { class: bad ? "figure bad" : "figure", id }, h("b", {}, value), h("span", {}, name));
    const busy = wall > 0 ? (totals.on_cpu ?? 0) / wall : 0;
    this.element.append(
      h("div", { class: "figures" },
        trace.result ? figure(trace.result, "result", "f-result", trace.failed) : null,
        figure(time(wall), "wall time", "f-wall"),
        figure(totals.on_cpu === null ? "?" : time(totals.on_cpu), "CPU time", "f-cpu"),
        figure(`${totals.on_cpu === null ? "?" : busy.toFixed(2)} of ${trace.cpus}`, trace.cpus === 1 ? "CPU busy" : "CPUs busy", "f-busy"),
        figure(count(totals.processes), "processes", "f-processes"),
        figure(count(totals.execs), "programs started", "f-execs")),
    );
    const warnings = [...doc.warnings];
    const aside: string[] = [];
    if (wall < trace.whole) aside.push(`Only from ${time(trace.from)} to ${time(trace.to)} of ${time(trace.whole)} is shown.`);
    if (doc.segments.grain > 0) aside.push(`Pictures put stretches shorter than ${time(doc.segments.grain)} together; the figures are exact.`);
    if (warnings.length > 0) {
      this.element.append(h("section", { class: "card warnings", role: "alert" }, h("h2", {}, "What is missing"), h("ul", {}, ...warnings.map((w) => h("li", {}, w)))));
    }
    const cards = h("div", { class: "cards" });
    const advice = this.advice();
    if (advice) this.element.append(advice);
    cards.append(this.programs());
    if (doc.path) cards.append(this.path());
    cards.append(this.states(), this.longest());
    const failed = this.failed();
    if (failed) cards.append(failed);
    cards.append(this.parallel());
    this.element.append(cards);
    if (doc.anomalies.length > 0) aside.push(`Anomalies in the trace, whose time is unknown: ${doc.anomalies.join(" · ")}.`);
    if (doc.clocks.length > 0) aside.push(`Clocks: ${doc.clocks.join(" · ")}.`);
    aside.push(`${trace.file} · ${trace.date} · ${trace.host ? `${trace.host} · ` : ""}${trace.kernel} · ${count(trace.events)} events, ${trace.lost} · written by tr ${trace.version}`);
    this.element.append(...aside.map((text) => h("p", { class: "aside" }, text)));
  }

  private card(title: string, note: string, ...content: HTMLElement[]): HTMLElement {
    return h("section", { class: "card" }, h("h2", {}, title, note ? h("small", {}, note) : null), ...content);
  }

  private bar(name: string, value: number, most: number, text: string, note: string, color: string, click?: () => void): HTMLElement {
    const fill = h("i");
    fill.style.width = `${Math.max(0.5, (value * 100) / Math.max(1, most))}%`;
    const inside = [h("span", { class: "bar-name", title: name }, name), h("span", { class: `bar ${color}` }, fill), h("span", { class: "num" }, text), h("span", { class: "num dim" }, note)];
    return click ? h("button", { type: "button", class: "row", onclick: click }, ...inside) : h("div", { class: "row" }, ...inside);
  }

  private advice(): HTMLElement | null {
    const { advice } = this.data.doc;
    if (advice.length === 0) return null;
    const rows = advice.map(({ text, gain, from, to, process }) =>
      h("button", { type: "button", class: "row change", onclick: () => this.store.set({ sel: process ?? -1, t0: from, t1: Math.max(to, from + 1000), view: "timeline" }) },
        h("span", { class: "num" }, time(gain)), h("span", {}, text)));
    const card = this.card("What to change", "the most that it saves", ...rows);
    card.id = "advice";
    return card;
  }

  private programs(): HTMLElement {
    const groups = new Map<string, { cpu: number; n: number }>();
    for (let ix = 0; ix < this.data.n; ix++) {
      const name = this.data.program(ix);
      const group = groups.get(name) ?? { cpu: 0, n: 0 };
      group.cpu += this.data.doc.processes.on_cpu[ix];
      group.n++;
      groups.set(name, group);
    }
    const sorted = [...groups].sort((a, b) => b[1].cpu - a[1].cpu).slice(0, 8);
    const whole = this.data.doc.totals.on_cpu ?? 0;
    return this.card("Where the CPU time went", "by program", ...sorted.map(([name, { cpu, n }]) =>
      this.bar(name, cpu, sorted[0][1].cpu, time(cpu), `${share(cpu, whole)} · ${count(n)} ×`, `p${Math.min(8, this.ranks.get(name) ?? 8)}`,
        () => this.store.set({ view: "heatmap", rows: "process", q: `program:${name}` }))));
  }

  private path(): HTMLElement {
    const { shares } = this.data.doc.path!;
    const whole = shares.reduce((sum, [, ns]) => sum + ns, 0);
    const named = new Set(this.ranks.keys());
    return this.card("What the end waited for", "the critical path", ...shares.slice(0, 8).map(([name, ns, n]) =>
      this.bar(name, ns, shares[0][1], time(ns), `${share(ns, whole)} · ${count(n)} ×`,
        named.has(name) ? `p${Math.min(8, this.ranks.get(name)!)}` : name.startsWith("waiting") ? "s1" : name === "disk" || name.startsWith("blocked") ? "s2" : name === "unknown" ? "s4" : "s3",
        () => this.store.set({ view: "timeline" }))));
  }

  private states(): HTMLElement {
    const { totals } = this.data.doc;
    // Without scheduling events, sleeping and blocked are one class.
    const all: [string, number | null | undefined, string, number][] = [
      ["on CPU", totals.on_cpu, "on_cpu", 0], ["waiting for a CPU", totals.run_queue, "run_queue", 1], ["blocked", totals.blocked, "blocked", 2],
      ["asleep", totals.sleep, "sleep", 3], ["asleep or blocked", totals.asleep_or_blocked, "asleep_or_blocked", 3], ["unknown", totals.unknown, "unknown", 4],
    ];
    const parts = all.flatMap(([name, ns, key, s]) => (ns === null || ns === undefined ? [] : [[name, ns, key, s] as const]));
    const whole = parts.reduce((sum, [, ns]) => sum + ns, 0);
    const most = Math.max(...parts.map(([, ns]) => ns));
    return this.card("What the processes did", `${count(totals.threads)} threads, ${time(whole)} together`, ...parts.map(([name, ns, key, s]) => {
      const bar = this.bar(name, ns, most, time(ns), share(ns, whole), `s${s}`);
      bar.id = `t-${key}`;
      bar.dataset.ns = String(ns);
      return bar;
    }));
  }

  private longest(): HTMLElement {
    const p = this.data.doc.processes;
    const order = Array.from({ length: this.data.n }, (_, ix) => ix).sort((a, b) => p.on_cpu[b] - p.on_cpu[a] || a - b).slice(0, 8);
    return this.card("Processes with the most CPU time", "", ...order.map((ix) =>
      this.bar(this.data.label(ix), p.on_cpu[ix], p.on_cpu[order[0]], time(p.on_cpu[ix]), `pid ${p.pid[ix]}`, `p${Math.min(8, this.ranks.get(this.data.program(ix)) ?? 8)}`,
        () => this.store.set({ sel: ix, view: "timeline" }))));
  }

  private failed(): HTMLElement | null {
    const all: number[] = [];
    for (let ix = 0; ix < this.data.n; ix++) if (this.data.failed(ix)) all.push(ix);
    if (all.length === 0) return null;
    const rows = all.slice(0, 8).map((ix) =>
      h("button", { type: "button", class: "row failed", onclick: () => this.store.set({ sel: ix, view: "timeline" }) },
        h("span", { class: "bar-name", title: this.data.argv(ix) }, `✕ ${this.data.label(ix)}`),
        h("span", { class: "num" }, this.data.exit(ix)), h("span", { class: "num dim" }, `after ${time(this.data.wall(ix))}`)));
    return this.card("Failed", all.length > 8 ? `8 of ${count(all.length)}` : "", ...rows);
  }

  private parallel(): HTMLElement {
    const { concurrency, concurrency_unknown } = this.data.doc;
    const whole = concurrency.reduce((a, b) => a + b, 0) + concurrency_unknown;
    const most = Math.max(...concurrency, concurrency_unknown, 1);
    let rows = concurrency.map((ns, n): [string, number, string] => [n === 1 ? "1 task on a CPU" : `${n} tasks on a CPU`, ns, "s0"]);
    // On a large machine: the most of it.
    if (rows.length > 10) rows = rows.sort((a, b) => b[1] - a[1]).slice(0, 10);
    if (concurrency_unknown > 0) rows.push(["not known", concurrency_unknown, "s4"]);
    const cards = [this.card("CPUs at once", "", ...rows.map(([name, ns, color]) => this.bar(name, ns, most, time(ns), share(ns, whole), color)))];
    const { max_rss } = this.data.doc.processes;
    let peak = -1;
    max_rss.forEach((rss, ix) => {
      if (rss !== null && (peak < 0 || rss > max_rss[peak]!)) peak = ix;
    });
    if (peak >= 0) cards[0].append(h("p", { class: "aside" }, `Peak memory: ${bytes(max_rss[peak]!)} in ${this.data.label(peak)}`));
    return cards[0];
  }
}
