// The first screen: what ran, how it ended, where the time went. A range of time, a
// subtree, a cgroup or a search narrows every figure.

import { HUES } from "./colors";
import { ASLEEP, ON, STATES, type Data, type Doc, type Failure } from "./data";
import { h } from "./dom";
import { inline } from "./grid";
import {
  busy,
  figures,
  isIdle,
  largest,
  living,
  ownersInside,
  pathInside,
  programs,
  reasons,
  roles,
  sums,
} from "./figures";
import { stayWith, steps } from "./path";
import { cutName } from "./names";
import { hottest, weigh } from "./stacks";
import { wholeName } from "./search";
import type { State, Store } from "./state";
import { bar, isListed, open, stepShown } from "./steps";
import type { Context } from "./timeview";
import { at, bytes, count, share, time } from "./units";
import { awaitedStep, betweenProcesses, reasonOf } from "./waits";

/** The kind of tests in the data (`StepKind::title`). */
const TEST = "test";
/** So many failures stand on the first screen, as in the terminal: a crowd would push what to change off it. */
const FAILURES = 5;
/** So many failed steps and tests stand beside the slowest ones. */
const FAILED_STEPS = 8;
/** A figure of more letters is written smaller. */
const LONG = 12;

export class Overview {
  readonly element: HTMLElement;
  private data: Data;
  private store: Store;
  private key = "-";
  /** The first view is drawn, and nothing waits for it any more. */
  private isComplete = false;
  private later: (() => void) | null = null;

  constructor(
    context: Context,
    private ranks: Map<string, number>,
  ) {
    this.data = context.data;
    this.store = context.store;
    this.element = h("div", { class: "overview" });
  }

  update() {
    const { t0, t1, root, cgroup, q, programs } = this.store.state;
    const key = (this.store.narrowed ? [t0, t1, root, cgroup, q].join("\n") : "") + (programs ? "" : "\nsteps");
    if (key === this.key) return;
    this.key = key;
    this.element.replaceChildren();
    this.later = null;
    this.build();
  }

  private build() {
    const { data, store } = this;
    const { trace, totals } = data.doc;
    const { narrowed } = store;
    const part = sums(data, store);
    const wall = store.state.t1 - store.state.t0;
    const figure = (value: string, name: string, id: string, bad = false) =>
      h(
        "div",
        { class: `figure${bad ? " bad" : ""}${value.length > LONG ? " long" : ""}`, id },
        h("b", {}, value),
        h("span", {}, name),
      );
    const on = trace.blank ? null : narrowed ? part.times[0] : totals.on_cpu;
    const least = on !== null && (trace.least || (narrowed && part.least[0])) ? "≥ " : "";
    const parallel = on === null || wall <= 0 ? "?" : least + (on / wall).toFixed(2);
    const all = (number: number) => (trace.blank ? "?" : count(number));
    const { processes, execs } = narrowed ? part : totals;
    if (narrowed) this.element.append(this.chosen());
    this.element.append(
      h(
        "div",
        { class: "figures" },
        trace.result && !narrowed ? figure(trace.result, "result", "f-result", trace.failed) : null,
        figure(
          trace.blank ? "?" : time(store.zoomed ? wall : trace.to - trace.from),
          store.zoomed ? "range" : "wall time",
          "f-wall",
        ),
        figure(least + time(on), "CPU time", "f-cpu"),
        figure(`${parallel} of ${trace.cpus}`, trace.cpus === 1 ? "CPU utilized" : "CPUs utilized", "f-busy"),
        figure(all(processes), processes === 1 ? "process" : "processes", "f-processes"),
        figure(all(execs), execs === 1 ? "program started" : "programs started", "f-execs"),
      ),
    );
    this.element.append(this.glance());
    const failed = this.failed();
    if (failed) this.element.append(failed);
    if (!narrowed) {
      if (data.doc.verdict) this.element.append(this.verdict(data.doc.verdict));
      const advice = this.advice();
      if (advice) this.element.append(advice);
    }
    if (narrowed && part.processes === 0) {
      this.element.append(h("p", { class: "empty" }, "No process matches here. ", this.clear()), this.quality());
      return;
    }
    // To the left what set the time, to the right what ran; sums over all threads, most of which wait for each other, last.
    const left = h("div", {}, this.steps(), this.path());
    const right = h("div", {}, this.parallel(), this.programs());
    this.element.append(h("div", { class: "cards" }, left, right));
    this.later = () => {
      const shown = (...cards: (HTMLElement | null)[]) => cards.filter((card) => card !== null);
      const times = narrowed
        ? part.times
        : [totals.on_cpu, totals.run_queue, totals.blocked, totals.sleep, totals.unknown];
      const states = this.states(times, narrowed ? part.threads : totals.threads, narrowed ? part.least : []);
      left.append(...shown(this.waits(), this.partners(), this.reasons()));
      right.append(...shown(this.functions(), this.longest(), states));
      this.element.append(this.quality());
    };
    if (this.isComplete) this.complete();
  }

  /** Makes the cards below the first screen, which wait for the first view: they take as long as those on it. */
  complete() {
    this.isComplete = true;
    this.later?.();
    this.later = null;
  }

  /** Where and how it ran. */
  private glance(): HTMLElement {
    const { trace } = this.data.doc;
    const parts = [
      trace.jobs,
      ...trace.tools,
      `${trace.cpus} ${trace.cpus === 1 ? "CPU" : "CPUs"}${trace.cpus < trace.online ? ` (${trace.online} online)` : ""}`,
      trace.machine,
      trace.kernel,
      trace.host,
      trace.date,
      trace.recorded[0],
    ];
    return h("p", { class: "glance dim", id: "glance" }, parts.filter((part) => part).join(" · "));
  }

  /** Whose the CPUs' time was, as one bar. */
  private cpus(): HTMLElement | null {
    const { cpu_time: of, trace } = this.data.doc;
    const parts: [number, string, string][] = [
      [of.build ?? 0, "s0", trace.root === null ? "recorded tasks" : "this build"],
      [of.others ?? 0, "others", "others"],
      [of.stolen ?? 0, "u2", "stolen"],
      [of.idle ?? 0, "idle", "idle"],
    ];
    const whole = parts.reduce((sum, [ns]) => sum + ns, 0);
    if (whole === 0 || of.idle === null) return null;
    return h(
      "div",
      { class: "whose" },
      inline(parts, whole),
      h(
        "div",
        { class: "legend" },
        ...parts
          .filter(([ns]) => ns > 0)
          .map(([ns, color, name]) =>
            h("span", { class: "key" }, h("i", { class: `swatch ${color}` }), `${name} ${share(ns, whole)}`),
          ),
      ),
    );
  }

  private clear(): HTMLElement {
    return h(
      "button",
      {
        type: "button",
        class: "link",
        onclick: () => {
          this.store.set({ root: -1, cgroup: "", q: "" });
          this.store.zoom(...this.store.whole);
        },
      },
      "Show the whole recording",
    );
  }

  /** The part of the recording that the figures below are of. */
  private chosen(): HTMLElement {
    const { data, store } = this;
    const { t0, t1, root, cgroup, q } = store.state;
    const parts: string[] = [];
    if (store.zoomed) parts.push(`${at(t0, t1 - t0)} to ${at(t1, t1 - t0)}`);
    if (root >= 0) parts.push(`${data.label(root)} and its descendants`);
    if (cgroup) parts.push(`cgroup ${cgroup}`);
    if (q) parts.push(`search ${q}`);
    const { exact } = figures(data, store);
    const unknown = store.zoomed && data.doc.totals.unknown > 0;
    return h(
      "p",
      { class: "chosen", id: "chosen", role: "status" },
      h("b", {}, "Only "),
      parts.join(" · "),
      " ",
      this.clear(),
      exact
        ? null
        : h(
            "span",
            { class: "dim" },
            ` Figures to about ${time(data.doc.segments.grain)}: shorter stretches are put together.`,
          ),
      unknown
        ? h(
            "span",
            { class: "dim" },
            " Time without events is unknown here; the kernel's totals are of whole processes.",
          )
        : null,
    );
  }

  /** One line; the rest on demand. */
  private quality(): HTMLElement {
    const { doc } = this.data;
    const { trace } = doc;
    const facts: string[] = [];
    const wall = trace.to - trace.from;
    if (wall < trace.whole)
      facts.push(`Only from ${time(trace.from)} to ${time(trace.to)} of ${time(trace.whole)} is shown.`);
    if (doc.segments.grain > 0)
      facts.push(
        `Pictures put stretches shorter than ${time(doc.segments.grain)} together; the figures of the whole are exact.`,
      );
    if (doc.rounded)
      facts.push("Times of single processes have three digits, of which sums over some processes are made.");
    if (doc.anomalies.length > 0)
      facts.push(`Anomalies in the trace, whose time is unknown: ${doc.anomalies.join(" · ")}.`);
    if (doc.failures.tolerated > 0)
      facts.push(`${count(doc.failures.tolerated)} processes failed without consequence (search failed in the table).`);
    if (doc.clocks.length > 0) facts.push(`Clocks: ${doc.clocks.join(" · ")}.`);
    facts.push(
      `${trace.file} · ${trace.date} · ${trace.host ? `${trace.host} · ` : ""}${trace.kernel} · ${count(trace.events)} events, ${trace.lost} · written by tr ${trace.version}`,
    );
    if (trace.ci.length > 0) facts.push(`CI: ${trace.ci.join(" · ")}`);
    const line = [
      `Recorded ${trace.recorded.join(" · ")}`,
      `${count(trace.events)} events, ${trace.lost}`,
      doc.totals.unknown > 0 ? `${time(doc.totals.unknown)} unknown` : "no unknown time",
      ...trace.ci,
    ];
    return h(
      "details",
      { class: "quality", id: "quality" },
      h("summary", {}, line.join(" · ")),
      h("ul", {}, ...facts.map((text) => h("li", {}, text))),
    );
  }

  private card(title: string, note: string, ...content: HTMLElement[]): HTMLElement {
    return h("section", { class: "card" }, h("h2", {}, title, note ? h("small", {}, note) : null), ...content);
  }

  private bar(
    name: string,
    value: number,
    most: number,
    text: string,
    note: string,
    color: string,
    click?: () => void,
  ): HTMLElement {
    const fill = h("i");
    // Nothing has no bar; the least bar is seen.
    if (value > 0) fill.style.width = `${Math.max(0.5, Math.min(100, (value * 100) / Math.max(1, most)))}%`;
    else fill.style.display = "none";
    const inside = [
      h("span", { class: "bar-name", title: name }, cutName(name)),
      h("span", { class: `bar ${color}${value > most ? " cut" : ""}` }, fill),
      h("span", { class: "num" }, text),
      h("span", { class: "num dim" }, note),
    ];
    return click
      ? h("button", { type: "button", class: "row", onclick: click }, ...inside)
      : h("div", { class: "row" }, ...inside);
  }

  private advice(): HTMLElement | null {
    const { data, store } = this;
    const { advice, combined } = data.doc;
    if (advice.length === 0) return null;
    const rows: HTMLElement[] = advice.map(({ text, gain, from, to, processes }) => {
      const pids = processes.map((ix) => data.doc.processes.pid[ix]);
      const room = Math.max((to - from) * 0.02, 500);
      const [first, last] = store.whole;
      const href = store.address({
        view: "timeline",
        sel: processes[0] ?? -1,
        step: -1,
        root: -1,
        cgroup: "",
        q: pids.length > 1 ? `pid:${pids.join(",")}` : "",
        t0: Math.max(first, from - room),
        t1: Math.min(last, Math.max(to, from + 1000) + room),
      });
      return h("a", { class: "row change", href }, h("span", { class: "num" }, time(gain)), h("span", {}, text));
    });
    if (combined) rows.push(h("p", { class: "aside", id: "combined" }, combined));
    const card = this.card("What to change", "the most of the wall time that it saves", ...rows);
    card.id = "advice";
    return card;
  }

  /** The steps with the most time that no step inside them explains, and all that failed. */
  private steps(): HTMLElement | null {
    const { data, store } = this;
    const { failed, from, unexplained } = data.doc.steps;
    const all = from.map((_, row) => row).filter((row) => isListed(data, row) && stepShown(data, store, row));
    if (all.length === 0) return null;
    const fails = new Set<number>();
    for (const row of all) if (failed[row]) for (const outer of data.stepsAround(row).slice(1)) fails.add(outer);
    const own = (row: number) => unexplained[row] ?? data.stepWall(row);
    const longest = (a: number, b: number) => own(b) - own(a) || a - b;
    const slow = [...all].sort(longest).slice(0, 5);
    // What failed because of a step inside it failed with that.
    const isBad = (row: number) => failed[row] === 1 && !fails.has(row);
    const bad = all.filter(isBad).sort(longest);
    const unplaced = store.narrowed ? 0 : data.doc.unplaced_failed;
    const rows = [...slow, ...bad.filter((row) => !slow.includes(row)).slice(0, FAILED_STEPS)];
    const most = Math.max(...slow.map(own));
    const card = this.card(
      "Slowest steps and tests",
      [
        `by wall time outside inner steps · ${count(all.length)} in all`,
        bad.length > 0 ? `${count(bad.length)} failed` : "",
        unplaced > 0 ? `${count(unplaced)} failed without a place in time` : "",
      ]
        .filter((text) => text)
        .join(", "),
      ...rows.map((row) => {
        const name = data.stepTitle(row);
        const holds = unexplained[row] !== null;
        const error = data.stepError(row);
        // An error needs its room; that a step ended well is no news beside it.
        const note = error && !failed[row] ? [error] : [error, data.stepEnd(row)];
        return h(
          "a",
          {
            class: isBad(row) ? "row bad" : "row",
            href: open(data, store, row),
            title: `${data.string(data.doc.steps.spent[row])}${holds ? `; ${time(own(row))} of its ${time(data.stepWall(row))} were in no step inside it` : ""}`,
          },
          h(
            "span",
            { class: "bar-name", title: name },
            cutName(`${isBad(row) ? "✕ " : ""}${name}${holds ? ", itself" : ""}`),
          ),
          bar(data, row, most, own(row)),
          h("span", { class: "num" }, time(own(row))),
          h("span", { class: "num dim" }, note.filter(Boolean).join(" · ")),
        );
      }),
    );
    card.id = "slowest";
    const table = { view: "steps", chart: false, kind: "", bad: false, order: "wall", falling: true } as const;
    card.append(this.go("All steps and tests", table));
    if (all.some((row) => data.string(data.doc.steps.kind[row]) === TEST))
      card.append(this.go("All tests", { ...table, kind: TEST }));
    card.append(this.go("Those with the longest run-queue waits", { ...table, order: "run_queue" }));
    if (bad.length > 0) card.append(this.go("All that failed", { ...table, bad: true }));
    return card;
  }

  private programs(): HTMLElement {
    const { data, store } = this;
    const { all, whole } = programs(data, store);
    const sorted = all.slice(0, 8);
    const card = this.card(
      "CPU time by program",
      `of ${time(whole)}`,
      ...sorted.map(([name, cpu, n]) => {
        const bar = this.bar(
          name,
          cpu,
          sorted[0][1],
          time(cpu),
          `${share(cpu, whole)} · ${count(n)} ×`,
          this.color(name),
          () => store.set({ view: "heatmap", rows: "process", q: wholeName("program", name) }),
        );
        bar.dataset.program = name;
        bar.dataset.ns = String(cpu);
        return bar;
      }),
    );
    const work = roles(data, store).map(([name, cpu]) => `${name} ${time(cpu)}, ${share(cpu, whole)}`);
    if (work.length > 0) card.append(h("p", { class: "aside", id: "roles" }, `in all: ${work.join(" · ")}`));
    if (all.length > sorted.length)
      card.append(this.go("All programs", { view: "table", rows: "program", sort: "on_cpu", descending: true }));
    return card;
  }

  private color(program: string): string {
    return `p${Math.min(HUES, this.ranks.get(program) ?? HUES)}`;
  }

  /** The critical path; of a part of the recording the part of it there. */
  private path(): HTMLElement | null {
    const { data, store } = this;
    const { path } = data.doc;
    if (!path) return null;
    const rows = store.narrowed ? pathInside(data, store) : path.shares;
    const whole = rows.reduce((sum, [, ns]) => sum + ns, 0);
    if (whole === 0) return null;
    const { programs } = store.state;
    const n = steps(data, programs).length;
    const card = this.card(
      `${data.doc.path_title}: what set the build time`,
      n > 1 ? `${count(n)} steps` : "",
      ...(programs
        ? rows
            .slice(0, 8)
            .map(([name, ns, times, state]) =>
              this.bar(
                name,
                ns,
                rows[0][1],
                time(ns),
                `${share(ns, whole)} · ${count(times)} ×`,
                state === ON ? this.color(name) : `s${state}`,
                () => store.set({ view: "timeline" }),
              ),
            )
        : this.pathSteps(whole)),
    );
    card.id = "path";
    card.classList.toggle("by-step", !programs);
    if (path.owners.some(({ step }) => step))
      card.append(
        h(
          "button",
          {
            type: "button",
            class: "link go",
            "aria-keyshortcuts": "b",
            onclick: () => store.set({ programs: !programs, step: -1 }),
          },
          programs ? "By step ( b )" : "By program ( b )",
        ),
      );
    card.append(
      h(
        "button",
        {
          type: "button",
          class: "link go",
          onclick: () => store.set({ view: "timeline", step: 0, sel: steps(data, programs)[0]?.process ?? -1 }),
        },
        "Go through it step by step ( ] )",
      ),
    );
    return card;
  }

  /** The path by step; each bar shows the states of its time. */
  private pathSteps(whole: number): HTMLElement[] {
    const { data, store } = this;
    const { owners } = data.doc.path!;
    const rows = store.narrowed ? ownersInside(data, store) : owners.map(({ times }, at) => [at, times] as const);
    const sum = (times: number[]) => times.reduce((a, b) => a + b, 0);
    const most = Math.max(1, ...rows.map(([, times]) => sum(times)));
    return rows.slice(0, 8).map(([at, times]) => {
      const { name, step, count: n } = owners[at];
      const ns = sum(times);
      const parts = times.map((ns, s): [number, string, string] => [ns, `s${s}`, STATES[s]]);
      const row = h(
        "button",
        {
          type: "button",
          class: "row",
          onclick: () => store.set(stayWith(data, at)),
        },
        h("span", { class: "bar-name", title: name }, cutName(name)),
        inline(parts, most),
        h("span", { class: "num" }, time(ns)),
        h("span", { class: "num dim" }, share(ns, whole) + (step && n > 1 ? ` · ${count(n)} ×` : "")),
      );
      row.dataset.ns = String(ns);
      return row;
    });
  }

  /** How the path's time is divided among the build and those who held it back, and a sentence. */
  private verdict({ sentence, more, parts }: NonNullable<Doc["verdict"]>): HTMLElement {
    const whole = parts.reduce((sum, [, ns]) => sum + ns, 0);
    const colors = ["s0", "others", "u2", "s4"];
    const shown = parts.flatMap(([name, ns], at): [number, string, string][] =>
      // Without the small ones, too, the sum is the wall time that stands above.
      ns * 1000 >= whole && ns > 0 ? [[ns, colors[at], name]] : [],
    );
    return h(
      "section",
      { class: "verdict", id: "verdict", "aria-label": "Verdict" },
      h("p", {}, h("b", {}, "Verdict "), sentence),
      shown.length > 1
        ? h(
            "div",
            { class: "whose" },
            inline(shown, whole),
            h(
              "div",
              { class: "legend" },
              ...shown.map(([ns, color, name]) =>
                h("span", { class: "key" }, h("i", { class: `swatch ${color}` }), `${time(ns)} ${name}`),
              ),
            ),
          )
        : null,
      more.length > 0
        ? h("details", {}, h("summary", {}, "Why"), h("ul", {}, ...more.map((text) => h("li", {}, text))))
        : null,
    );
  }

  private states(times: (number | null)[], threads: number, least: boolean[]): HTMLElement {
    const { totals } = this.data.doc;
    const [on, wait, blocked, asleep, unknown] = times;
    // Without scheduling events, sleeping and blocked are one class.
    const all: [string, number | null | undefined, string, number][] = [
      ["on CPU", on, "on_cpu", 0],
      ["run queue", wait, "run_queue", 1],
      ["blocked", blocked, "blocked", 2],
      ["sleep", asleep, "sleep", 3],
      [STATES[ASLEEP], this.store.narrowed ? undefined : totals.asleep_or_blocked, "asleep_or_blocked", ASLEEP],
      ["unknown", unknown, "unknown", 4],
    ];
    const parts = all.flatMap(([name, ns, key, s]) =>
      ns === null || ns === undefined ? [] : [[name, ns, key, s] as const],
    );
    const whole = parts.reduce((sum, [, ns]) => sum + ns, 0);
    const most = Math.max(...parts.map(([, ns]) => ns));
    // The order of the states' sums is that of the first four rows.
    const some = (key: string) =>
      least[all.findIndex(([, , of]) => of === key)] === true && key !== "asleep_or_blocked" && key !== "unknown";
    return this.card(
      "Time of the threads",
      `${count(threads)} ${threads === 1 ? "thread" : "threads"}, ${time(whole)} together`,
      ...parts.map(([name, ns, key, s]) => {
        const bar = this.bar(name, ns, most, `${some(key) ? "≥ " : ""}${time(ns)}`, share(ns, whole), `s${s}`);
        bar.id = `t-${key}`;
        bar.dataset.ns = String(ns);
        return bar;
      }),
    );
  }

  /** The waits on the path, each with the step that has most of it. */
  private waits(): HTMLElement | null {
    const { data, store } = this;
    const { path } = data.doc;
    if (!path || store.narrowed || path.waits.length === 0) return null;
    const whole = path.length.reduce((a, b) => a + b, 0);
    const card = this.card(
      `Waits on the ${data.pathName}`,
      `of ${time(whole)}`,
      ...path.waits.slice(0, 6).map(({ name, state, time: ns, owner }) => {
        const { name: most, times } = path.owners[owner];
        // Where a program stands alone, the name of the wait says it all.
        const note = path.by_step && times[state] > 0 && path.owners.length > 1 ? ` · most in ${most}` : "";
        const bar = this.bar(name, ns, path.waits[0].time, time(ns), share(ns, whole), `s${state}`, () =>
          store.set(stayWith(data, owner)),
        );
        bar.title = `${name} ${time(ns)}${note}`;
        bar.dataset.ns = String(ns);
        return bar;
      }),
    );
    card.id = "waits";
    return card;
  }

  /** The longest waits of processes for others, on the critical path or not. */
  private partners(): HTMLElement | null {
    const { data, store } = this;
    const rows = betweenProcesses(data, store, 8);
    if (rows.length === 0) return null;
    const { grain } = data.doc.segments;
    const name = (ix: number, text: string) => h("span", { class: "bar-name", title: data.label(ix) }, cutName(text));
    const inSteps = rows.some((row) => awaitedStep(data, row) !== null);
    const card = this.card(
      "Who waited for whom",
      `${grain > 0 ? `longer than ${time(grain)}, ` : ""}waits ${inSteps ? "inside a step" : "for children"} last`,
      ...rows.map((row) => {
        const { waiter, ender, kind, ns } = row;
        const step = awaitedStep(data, row);
        const whom = step === null ? data.label(ender) : data.stepTitle(step);
        return h(
          "button",
          {
            type: "button",
            class: "row pair",
            "data-ns": ns,
            onclick: () => store.set({ sel: waiter, view: "timeline" }),
          },
          name(waiter, data.label(waiter)),
          name(ender, `for ${whom}`),
          h("span", { class: "num" }, time(ns)),
          h("span", { class: "num dim" }, reasonOf(kind)),
        );
      }),
    );
    card.id = "partners";
    return card;
  }

  /** Waits of all threads in the part that is shown; where pieces hold several states, the short ones are missing. */
  private reasons(): HTMLElement | null {
    const rows = reasons(this.data, this.store);
    if (rows.length === 0) return null;
    const { grain } = this.data.doc.segments;
    const whole = rows.reduce((sum, [, ns]) => sum + ns, 0);
    const idle = rows.filter(([name]) => isIdle(name));
    const real = rows.filter(([name]) => !isIdle(name));
    // Beside the sleep of idle threads the others would be a few pixels: its bar is cut.
    const most = Math.max(...(real.length > 0 ? real : idle).map(([, ns]) => ns));
    const card = this.card(
      "Waits of all threads",
      grain > 0 ? `longer than ${time(grain)}` : `${time(whole)} together`,
      ...[...real.slice(0, 10 - idle.length), ...idle].map(([name, ns, s]) => {
        const bar = this.bar(name, ns, most, time(ns), share(ns, whole), `s${s}`);
        bar.dataset.ns = String(ns);
        return bar;
      }),
    );
    card.id = "reasons";
    return card;
  }

  /** Of a recording with stacks. */
  private functions(): HTMLElement | null {
    const { data, store } = this;
    const { stacks } = data;
    if (!stacks) return null;
    const doing = stacks.runs ? "on" : "off";
    const w = weigh(stacks, data, store, doing);
    const all = hottest(stacks, w).slice(0, 8);
    if (all.length === 0) return null;
    const title = stacks.runs ? "Hottest functions" : "Functions that waited";
    const card = this.card(
      title,
      `time of their own, ${count(w.all.count)} samples`,
      ...all.map((fn) =>
        this.bar(
          stacks.names[fn],
          w.selfNs[fn],
          w.selfNs[all[0]],
          time(w.selfNs[fn]),
          share(w.selfNs[fn], w.all.ns),
          stacks.runs ? "s0" : "s3",
          () => store.set({ view: "stacks", doing, fn }),
        ),
      ),
    );
    card.id = "hottest";
    return card;
  }

  private longest(): HTMLElement {
    const { data, store } = this;
    const p = data.doc.processes;
    const [cpu] = figures(data, store).times;
    const order = largest(living(data, store), (ix) => cpu[ix] || 0, 8);
    return this.card(
      "Processes with the most CPU time",
      "",
      ...order.map((ix) =>
        this.bar(
          data.label(ix),
          cpu[ix] || 0,
          cpu[order[0]],
          time(cpu[ix]),
          `pid ${p.pid[ix]}`,
          this.color(data.program(ix)),
          () => store.set({ sel: ix, view: "timeline" }),
        ),
      ),
    );
  }

  /** What failed and counts; of a part of the recording all that failed there. */
  private failed(): HTMLElement | null {
    const { data, store } = this;
    const { told, command, tolerated, unclear, beside } = data.doc.failures;
    const { trace } = data.doc;
    if (store.narrowed) return this.failedInside();
    const { unplaced_failed, unplaced_names: unplaced } = data.doc;
    if (told.length === 0 && unplaced.length === 0) return null;
    const row = (it: Failure, depth: number) => {
      const process = it.process;
      // What a failure led to has a name that is cut for a line of a terminal.
      const whole = process === null ? it.name : process === trace.root ? trace.command : data.label(process);
      const name = depth > 0 ? whole : it.name;
      return h(
        "button",
        {
          type: "button",
          class: "row failed",
          onclick: () =>
            process === null
              ? store.set({ view: "table", q: "failed" })
              : store.set({ sel: process, view: "timeline" }),
        },
        h(
          "span",
          { class: "bar-name", title: process === null ? it.name : data.argv(process) },
          cutName(`${depth > 0 ? "→ " : "✕ "}${it.perhaps ? "perhaps " : ""}${name}`),
        ),
        h("span", { class: "num" }, it.end),
        h("span", { class: "num dim" }, it.after > 0 ? `after ${time(it.after)}` : ""),
      );
    };
    const held = (it: Failure) =>
      [it.at && `at ${it.at}`, it.held].flatMap((text) => (text ? [h("p", { class: "aside" }, text)] : []));
    // What failed because of several stands once, after the last of them; one that is sure of it is enough.
    const key = (it: Failure) => it.process ?? `${it.name}\n${it.end}`;
    const sure = new Set(told.flatMap((it) => it.above.filter((above) => !above.perhaps).map(key)));
    const seen = new Set<number | string>();
    const rows = (some: Failure[]) => {
      const last = new Map<number | string, number>();
      some.forEach((it, at) => it.above.forEach((above) => last.set(key(above), at)));
      return some.flatMap((it, at) => [
        row(it, 0),
        ...held(it),
        ...it.above
          .filter((one) => last.get(key(one)) === at && !seen.has(key(one)))
          .map((one) => {
            seen.add(key(one));
            return row({ ...one, perhaps: one.perhaps && !sure.has(key(one)) }, 1);
          }),
      ]);
    };
    // One more is no crowd.
    const first = told.length > FAILURES + 1 ? FAILURES : told.length;
    const others = told.slice(first);
    const card = this.card(
      "Failed",
      trace.failed || !trace.result ? "" : `the command ended all the same: ${trace.result}`,
      ...rows(told.slice(0, first)),
      ...(others.length > 0
        ? [h("details", { class: "quality" }, h("summary", {}, `${count(others.length)} more`), ...rows(others))]
        : []),
      // A runner's file names them, and nothing in the recording shows when they ran.
      ...unplaced.map(([name, end]) =>
        h(
          "div",
          { class: "row failed unplaced" },
          h("span", { class: "bar-name", title: name }, cutName(`✕ ${name}`)),
          h("span", { class: "num" }, end),
          h("span", { class: "num dim" }, "no place in time"),
        ),
      ),
    );
    card.id = "failed";
    const unnamed = unplaced_failed - unplaced.length;
    if (unnamed > 0) card.append(h("p", { class: "aside" }, `${count(unnamed)} more failed without a place in time`));
    const more = data.doc.failures.more + (command ? unclear : 0);
    const names =
      command && beside.length > 0 ? ` (${[...beside, ...(more > beside.length ? ["…"] : [])].join(", ")})` : "";
    const rest = [
      more > 0 ? `${count(more)} more failed${names}` : "",
      tolerated > 0 && command ? `${count(tolerated)} failed without consequence` : "",
    ].filter((text) => text);
    if (rest.length > 0) card.append(h("p", { class: "aside" }, `${rest.join(", ")} `, this.showFailed()));
    return card;
  }

  /** A link below a card to more of it. */
  private go(text: string, change: Partial<State>): HTMLElement {
    return h("button", { type: "button", class: "link go", onclick: () => this.store.set(change) }, text);
  }

  private showFailed(): HTMLElement {
    return h(
      "button",
      { type: "button", class: "link", onclick: () => this.store.set({ view: "table", q: "failed" }) },
      "Show all",
    );
  }

  private failedInside(): HTMLElement | null {
    const { data, store } = this;
    const all = living(data, store).filter((ix) => data.failed(ix));
    if (all.length === 0) return null;
    const rows = all
      .slice(0, 8)
      .map((ix) =>
        h(
          "button",
          { type: "button", class: "row failed", onclick: () => store.set({ sel: ix, view: "timeline" }) },
          h("span", { class: "bar-name", title: data.argv(ix) }, cutName(`✕ ${data.label(ix)}`)),
          h("span", { class: "num" }, data.exit(ix)),
          h("span", { class: "num dim" }, `after ${time(data.wall(ix))}`),
        ),
      );
    const card = this.card("Failed", "", ...rows);
    card.id = "failed";
    const more = all.length - rows.length;
    if (more > 0) card.append(h("p", { class: "aside" }, `${count(more)} more failed `, this.showFailed()));
    return card;
  }

  private parallel(): HTMLElement {
    const { data, store } = this;
    const { trace, concurrency, concurrency_unknown } = data.doc;
    const found = store.narrowed ? busy(data, store) : { known: concurrency, unknown: concurrency_unknown };
    const whose = store.narrowed ? null : this.cpus();
    // The legend of the bar has the shares.
    const note = store.narrowed ? "with these processes" : whose ? "" : data.doc.shares.join(" · ");
    const card = (...rows: HTMLElement[]) => this.card("CPUs utilized", note, ...rows);
    if (!found) return card(h("p", { class: "aside" }, "Not known for a part: short stretches are put together."));
    const { known, unknown } = found;
    if (unknown > 0 && known.every((ns) => ns === 0)) {
      const made = card(h("p", { class: "aside" }, "How many were busy at once is not known."));
      if (whose) made.querySelector("h2")!.after(whose);
      return made;
    }
    const whole = known.reduce((a, b) => a + b, 0) + unknown;
    const most = Math.max(...known, unknown, 1);
    const word = (n: number) =>
      n === 0
        ? "none"
        : n === 1
          ? "one"
          : n === 2 && trace.cpus === 2
            ? "both"
            : n === trace.cpus
              ? `all ${n}`
              : String(n);
    let rows = known.map((ns, n): [string, number, string] => [word(n), ns, n === 0 ? "idle" : "s0"]);
    // On a large machine: the most of it.
    if (rows.length > 10) rows = rows.sort((a, b) => b[1] - a[1]).slice(0, 10);
    if (unknown > 0) rows.push(["unknown", unknown, "s4"]);
    const made = card(
      ...rows.map(([name, ns, color]) => {
        const bar = this.bar(name, ns, most, time(ns), share(ns, whole), color);
        bar.dataset.ns = String(ns);
        return bar;
      }),
    );
    made.id = "busy";
    if (whose) made.querySelector("h2")!.after(whose);
    const { work_for_all: work } = data.doc;
    // Of the whole machine's tasks it is not known.
    if (work && work[1] > 0 && !store.narrowed && !trace.all) {
      const all = trace.cpus === 1 ? "the CPU" : trace.cpus === 2 ? "both CPUs" : `all ${count(trace.cpus)} CPUs`;
      const text = `enough tasks for ${all} ${share(...work)} of the time`;
      const jobs = trace.jobs ? `${trace.jobs}: ` : "";
      made.append(h("p", { class: "aside", id: "enough" }, jobs + text));
    }
    const { max_rss } = data.doc.processes;
    let peak = -1;
    max_rss.forEach((rss, ix) => {
      if (rss !== null && store.shown(ix) && (peak < 0 || rss > max_rss[peak]!)) peak = ix;
    });
    if (peak >= 0)
      made.append(h("p", { class: "aside" }, `Peak memory: ${bytes(max_rss[peak]!)} in ${data.label(peak)}`));
    return made;
  }
}
