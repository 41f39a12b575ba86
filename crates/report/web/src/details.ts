// All that is known of the selected process.

import { ASLEEP, BLOCKED, ON, STATES, UNKNOWN, WAIT, type Data } from "./data";
import { copyButton, fact, h, wholeButton } from "./dom";
import { card, steps } from "./path";
import { pin } from "./pins";
import { sampled } from "./stacks";
import type { Store } from "./state";
import type { Context } from "./timeview";
import { at, bytes, count, share, time } from "./units";
import { enderName, waitedFor, waitedForBy, type Partner } from "./waits";

/** The most waits in each of the two lists. */
const WAITS = 6;

export class Details {
  readonly element = h("aside", { class: "details", "aria-label": "The selected process", hidden: true });
  private shown = "";
  private stepCard = h("div");
  private data: Data;
  private store: Store;

  constructor(private context: Context) {
    this.data = context.data;
    this.store = context.store;
  }

  update() {
    const { sel, programs } = this.store.state;
    const step = steps(this.data, programs)[this.store.state.step]?.process === sel ? this.store.state.step : -1;
    const key = `${sel} ${step} ${programs}`;
    if (key === this.shown) return;
    this.shown = key;
    this.stepCard.replaceChildren(...(step < 0 ? [] : [card(this.context)!]));
    this.element.hidden = sel < 0;
    if (sel >= 0) this.fill(sel);
  }

  private link(ix: number): HTMLElement {
    return h(
      "button",
      { type: "button", class: "link", onclick: () => this.store.set({ sel: ix }) },
      this.data.label(ix),
    );
  }

  /** Waits with the process at their other end. */
  private waits(id: string, title: string, hint: string, rows: Partner[]): HTMLElement {
    if (rows.length === 0) return h("span");
    const rest = rows.slice(WAITS).map(({ ns }) => ns);
    const left = rest.reduce((sum, ns) => sum + ns, 0);
    return h(
      "section",
      { id },
      h("h3", { title: hint }, title),
      h(
        "ul",
        { class: "execs" },
        ...rows.slice(0, WAITS).map(({ process, own, ns, times, longest, from, reasons }) => {
          const name = own ? "its own threads" : process < 0 ? enderName(this.data, process) : null;
          const most = times > 1 ? `${count(times)} times, the longest ${time(longest)}` : "once";
          return h(
            "li",
            { "data-ns": ns, title: `${most}, from ${at(from)}` },
            name === null ? this.link(process) : h("span", {}, name),
            h("span", { class: "num dim" }, `${reasons.join(", ")} ${time(ns)}`),
          );
        }),
      ),
      rest.length > 0 ? h("p", { class: "aside", "data-ns": left }, `${count(rest.length)} more, ${time(left)}`) : null,
    );
  }

  private fill(ix: number) {
    const { data, store } = this;
    const p = data.doc.processes;
    // What is not known has no part in the picture, and is "?" below it.
    const known: (number | null)[] = [p.on_cpu[ix], p.run_queue[ix], p.blocked[ix], p.sleep[ix], p.unknown[ix]];
    const times = known.map((ns) => ns ?? 0);
    const whole = times.reduce((a, b) => a + b, 0);
    const chosen = steps(data, store.state.programs)[store.state.step];
    const several = chosen?.process === ix ? chosen.several : 1;
    const bar = h("div", {
      class: "stack",
      role: "img",
      "aria-label": [ON, WAIT, BLOCKED, ASLEEP, UNKNOWN].map((s) => `${STATES[s]} ${time(known[s])}`).join(", "),
    });
    times.forEach((ns, s) => {
      if (ns === 0) return;
      const part = h("i", { class: `s${s}` });
      part.style.width = `${(ns * 100) / whole}%`;
      bar.append(part);
    });
    const states = h(
      "dl",
      { class: "times" },
      ...times.map((ns, s) =>
        h(
          "div",
          { class: ns === 0 ? "fact none" : "fact" },
          h("dt", {}, h("i", { class: `swatch s${s}` }), STATES[s]),
          h("dd", { "data-ns": ns }, known[s] === null ? "?" : ns === 0 ? "–" : `${time(ns)} · ${share(ns, whole)}`),
        ),
      ),
    );
    const parent = data.parent[ix];
    const path = data.ancestors(ix);
    const execs: HTMLElement[] = [];
    for (let e = data.execsFrom[ix]; e < data.execsFrom[ix + 1]; e++) {
      const { execs: x } = data.doc;
      execs.push(
        h(
          "li",
          { title: data.string(x.argv[e]) },
          h("span", {}, data.string(x.label[e])),
          h("span", { class: "num dim" }, `${at(x.start[e])} · ${time(x.end[e] - x.start[e])}`),
        ),
      );
    }
    const children = data.children[ix];
    const button = (text: string, click: () => void, hint: string) =>
      h("button", { type: "button", title: hint, onclick: click }, text);
    const title = h(
      "h2",
      { class: data.bad(ix) ? "bad" : "", id: "selected-title" },
      several > 1 ? `${count(several)} short steps` : data.label(ix),
    );
    this.element.replaceChildren(
      h(
        "header",
        {},
        title,
        wholeButton(title, "The whole title"),
        h(
          "button",
          {
            type: "button",
            class: "close",
            "aria-label": "Close",
            title: "Close (Esc)",
            onclick: () => store.set({ sel: -1, step: -1 }),
          },
          "×",
        ),
      ),
      h(
        "p",
        { class: "crumbs" },
        ...path
          .slice(0, -1)
          .slice(-3)
          .flatMap((a) => [this.link(a), " › "]),
        several > 1 ? `the longest in ${data.label(ix)}, ` : "",
        "pid ",
        String(p.pid[ix]),
      ),
      this.stepCard,
      bar,
      states,
      this.waits("waited-for", "Waited for", "Who ended its waits", waitedFor(data, ix)),
      this.waits("waited-for-by", "Was waited for by", "Whose waits it ended", waitedForBy(data, ix)),
      h(
        "div",
        { class: "buttons" },
        button(
          "Zoom to it",
          () => {
            const room = Math.max(data.wall(ix) * 0.05, 500);
            store.zoom(p.start[ix] - room, p.end[ix] + room);
          },
          "Show just its time (z)",
        ),
        children.length > 0 ? button("Only its subtree", () => store.set({ root: ix }), "In all views (Enter)") : null,
        button(
          "Pin",
          () => {
            pin(store, ix);
            store.set({ view: "timeline" });
          },
          "Keep it in sight above the timeline, or let it go (p)",
        ),
        sampled(data, ix)
          ? button(
              "Stacks",
              () => store.set({ view: "stacks", q: `pid:${p.pid[ix]}` }),
              "Its functions, on and off CPU",
            )
          : null,
        button("Wake-ups", () => store.set({ view: "timeline", wakeups: true }), "Who woke it and whom it woke (e)"),
      ),
      h(
        "div",
        { class: "argv-box" },
        h("pre", { class: "argv" }, data.argv(ix) || "command line not known"),
        data.argv(ix) ? copyButton(data.argv(ix), "Copy this command line") : null,
      ),
      h(
        "dl",
        { class: "facts" },
        fact("end", h("span", { class: data.bad(ix) ? "bad" : "" }, data.exit(ix))),
        fact("from", `${p.started_before[ix] ? "before " : ""}${at(p.start[ix])}`),
        fact("to", p.alive[ix] ? "alive at the end" : at(p.end[ix])),
        fact("wall", time(data.wall(ix))),
        fact(
          "CPU with descendants",
          `${time(p.tree_on_cpu[ix])} · ${count(p.tree_processes[ix])} ${p.tree_processes[ix] === 1 ? "process" : "processes"}`,
        ),
        fact("run queue, preempted", time(p.preempted[ix])),
        fact("blocked, disk", time(p.block_io[ix])),
        fact("blocked, vfork child", time(p.vfork[ix])),
        fact("longest off CPU", p.max_off_cpu[ix] === null ? "?" : time(p.max_off_cpu[ix]!)),
        fact("switches", `${count(p.voluntary[ix])} own, ${count(p.involuntary[ix])} forced`),
        fact("threads", count(p.threads[ix])),
        fact("memory", p.max_rss[ix] === null ? "?" : bytes(p.max_rss[ix]!)),
        fact("parent", parent >= 0 ? this.link(parent) : p.ppid[ix] === null ? "?" : `pid ${p.ppid[ix]}`),
        fact(
          "cgroup",
          h(
            "button",
            { type: "button", class: "link", onclick: () => store.set({ cgroup: data.cgroup(ix) }) },
            data.cgroup(ix),
          ),
        ),
      ),
      execs.length > 1
        ? h("section", {}, h("h3", {}, "Programs it was"), h("ol", { class: "execs" }, ...execs))
        : h("span"),
      children.length > 0
        ? h(
            "section",
            {},
            h("h3", {}, `${count(children.length)} ${children.length === 1 ? "child" : "children"}`),
            h(
              "ul",
              { class: "execs" },
              ...[...children]
                .sort((a, b) => p.tree_on_cpu[b] - p.tree_on_cpu[a] || a - b)
                .slice(0, 12)
                .map((c) => h("li", {}, this.link(c), h("span", { class: "num dim" }, time(p.tree_on_cpu[c])))),
            ),
          )
        : h("span"),
    );
  }
}
