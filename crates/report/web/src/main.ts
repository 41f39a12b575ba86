// Puts the page together.

import { ranks } from "./colors";
import { knowsNoSleep, load, type Data } from "./data";
import { LARGE } from "./figures";
import { Details } from "./details";
import { copyButton, h, Tip, wholeButton } from "./dom";
import { Flame } from "./flame";
import { Heatmap } from "./heatmap";
import { Overview } from "./overview";
import { Range } from "./range";
import { TERMS } from "./search";
import { Steps } from "./steps";
import { Store, viewsOf, type State, type View } from "./state";
import { Strip } from "./strip";
import { Table } from "./table";
import { Timeline } from "./timeline";
import { Tree } from "./tree";
import { Pointed } from "./cursor";
import { moment, sentence } from "./moment";
import { move } from "./path";
import { ruler } from "./marks";
import { GoTo } from "./goto";
import { pin } from "./pins";
import { count, time } from "./units";

const TITLES: Record<View, string> = {
  overview: "Overview",
  steps: "Steps and tests",
  heatmap: "Heatmap",
  timeline: "Timeline",
  tree: "Tree",
  table: "Table",
  stacks: "Stacks",
};

/** The pointer's actions. */
const POINTER: [string, string][] = [
  ["drag", "pan; over the strip on top: zoom to a range"],
  ["Ctrl + wheel, pinch", "zoom"],
  ["Shift + wheel", "pan"],
  ["Shift + drag", "measure a length of time"],
  ["double click", "zoom in; on a process: only its subtree"],
];

/** Those of the flame graph. */
const FRAMES: [string, string][] = [
  ["click, Enter", "Stacks: into a frame, and out again"],
  ["Space", "Stacks: the callers and callees of a frame's function"],
];

/** Keys, their help and their action. */
type Key = [string[], string, (key: string) => void];

/** Names of keys for people. */
const NAMES: Record<string, string> = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

async function main() {
  const app = document.getElementById("app")!;
  const element = document.getElementById("data")!;
  let data: Data;
  try {
    data = await load(element);
  } catch (error) {
    app.replaceChildren(h("p", { class: "loading" }, `The data of this page cannot be read: ${String(error)}`));
    return;
  }
  restoreTheme();
  if (knowsNoSleep(data.doc)) document.documentElement.dataset.totals = "1";
  const store = new Store(data);
  const tip = new Tip();
  const context = { data, store, tip, pointed: new Pointed() };
  const order = ranks(data);
  const strip = new Strip(context, order);
  const details = new Details(context);
  const side = h("div", { class: "side" });
  const beside = () => (side.hidden = range.element.hidden && details.element.hidden);
  const range = new Range(context, beside);
  side.append(details.element, range.element);
  const stepsView = new Steps(context);
  const heatmap = new Heatmap(context);
  const timeline = new Timeline(context, order);
  const tree = new Tree(context, order);
  const table = new Table(context);
  const flame = data.stacks && new Flame(context, data.stacks);
  const all = viewsOf(data);
  const views = {
    overview: new Overview(context, order),
    steps: stepsView,
    heatmap,
    timeline,
    tree,
    table,
    stacks: flame ?? tree,
  };
  const { state } = store;

  const search = h("input", {
    type: "search",
    placeholder: "Search: step:x failed",
    title: "Search (/); ? lists what can be searched for",
    "aria-label": "Search processes",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => store.set({ q: search.value }),
  });
  const found = h("span", { class: "found", role: "status" });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      store.set({ q: "" });
      search.blur();
    }
  });

  const tabs = all.map((view, at) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${view}`,
        "aria-controls": `view-${view}`,
        title: `${TITLES[view]} (${at + 1})`,
        onclick: () => store.set({ view }),
      },
      TITLES[view],
    ),
  );
  const tablist = h("div", { role: "tablist", "aria-label": "Views", class: "tabs" }, ...tabs);
  tablist.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = (all.indexOf(state.view) + by + all.length) % all.length;
    store.set({ view: all[at] });
    tabs[at].focus();
  });
  const panels = Object.fromEntries(
    all.map((view) => [
      view,
      h(
        "section",
        { role: "tabpanel", id: `view-${view}`, "aria-labelledby": `tab-${view}`, class: "view" },
        views[view].element,
      ),
    ]),
  ) as Record<View, HTMLElement>;
  const cgroups = cgroupSelect(data, store);
  const scope = h("div", { class: "scope" });
  const help = h("dialog", { class: "help", "aria-label": "Keys" });
  const { trace } = data.doc;

  const goto = new GoTo(store);
  const said = h("p", { class: "offscreen", role: "status", id: "said" });
  // Two lines of it, unless all is asked for.
  const title = h("h1", { title: trace.command, id: "command" }, trace.command);
  const more = wholeButton(title, "The whole command line");
  more.id = "whole-command";

  app.replaceChildren(
    h(
      "header",
      { class: "top" },
      h("span", { class: "brand" }, "tr"),
      title,
      more,
      trace.command ? copyButton(trace.command, "Copy the command line") : null,
      h("div", { class: "find" }, search, found),
      h(
        "button",
        {
          type: "button",
          class: "icon",
          title: "Dark or light (t)",
          "aria-label": "Dark or light",
          onclick: toggleTheme,
        },
        "◐",
      ),
      h(
        "button",
        { type: "button", class: "icon", title: "Keys (?)", "aria-label": "Keys", onclick: () => showHelp() },
        "?",
      ),
    ),
    ...warned(data, () => store.set({ view: "overview" })),
    // Above what changes its height from view to view: the tabs stay where they are.
    h("nav", { class: "bar-nav" }, tablist, scope, cgroups?.element ?? null),
    strip.element,
    h("div", { class: "body" }, h("main", {}, ...Object.values(panels)), side),
    tip.element,
    goto.element,
    said,
    help,
  );

  /** From its beginning: the browser scrolls to the button that it focuses, which is the last. */
  function showHelp() {
    help.showModal();
    help.scrollTop = 0;
  }

  /** What is selected, for those who do not see it. */
  function say() {
    const { sel } = state;
    const p = data.doc.processes;
    said.textContent =
      sel < 0
        ? ""
        : `Selected: ${data.label(sel)}, pid ${p.pid[sel]}, wall ${time(data.wall(sel))}, CPU ${time(p.on_cpu[sel])}, ${data.exit(sel)}`;
  }

  /** A narrow screen has no room for all. */
  const showTab = (tab: HTMLElement) => {
    tablist.scrollLeft = tab.offsetLeft + tab.offsetWidth / 2 - tablist.clientWidth / 2;
  };
  new ResizeObserver(() => showTab(tabs[all.indexOf(state.view)])).observe(tablist);

  let later = 0;
  /** What does not depend on the shown time. */
  function frame(changed: Set<keyof State> | null) {
    for (const [at, view] of all.entries()) {
      const active = view === state.view;
      panels[view].hidden = !active;
      tabs[at].setAttribute("aria-selected", String(active));
      tabs[at].tabIndex = active ? 0 : -1;
      if (active && changed?.has("view")) showTab(tabs[at]);
    }
    document.body.dataset.view = state.view;
    cgroups?.update();
    showScope();
    if (document.activeElement !== search || changed?.has("q") === false) search.value = state.q;
    search.setAttribute("aria-invalid", String(store.badQuery));
    found.textContent = store.badQuery
      ? "no valid expression"
      : store.matches
        ? `${count(store.matchCount)} found`
        : "";
  }

  function update(changed: Set<keyof State> | null) {
    const moved = changed !== null && [...changed].every((key) => key === "t0" || key === "t1");
    if (!moved) frame(changed);
    tip.hide();
    strip.update();
    details.update();
    range.update();
    beside();
    // Sums over a large recording wait for the end of a drag.
    clearTimeout(later);
    const sums =
      state.view === "overview" || state.view === "tree" || state.view === "table" || state.view === "stacks";
    if (moved && sums && data.pieces.kind.length > LARGE) later = setTimeout(() => views[state.view].update(), 120);
    else views[state.view].update();
    if (changed?.has("sel")) say();
    if (changed?.has("at")) said.textContent = state.at < 0 ? "" : sentence(moment(data, store, state.at));
    if (!changed || changed.has("sel") || changed.has("view")) {
      const view = views[state.view];
      if (state.sel >= 0 && "reveal" in view) requestAnimationFrame(() => view.reveal());
    }
  }

  function showScope() {
    const parts: HTMLElement[] = [];
    if (state.root >= 0) {
      parts.push(h("button", { type: "button", class: "link", onclick: () => store.set({ root: -1 }) }, "All"));
      const path = data.ancestors(state.root);
      for (const ix of path.slice(-4)) {
        parts.push(
          h("span", { class: "dim" }, "›"),
          h(
            "button",
            {
              type: "button",
              class: ix === state.root ? "link here" : "link",
              title: data.label(ix),
              onclick: () => store.set({ root: ix }),
            },
            data.label(ix),
          ),
        );
      }
      parts.push(h("span", { class: "dim" }, `${count(store.scopeCount)} processes`));
    }
    scope.replaceChildren(...parts);
  }

  function next(by: number) {
    if (store.matchCount === 0) return;
    let at = state.sel >= 0 ? data.place[state.sel] : by > 0 ? -1 : data.n;
    for (let tries = 0; tries < data.n; tries++) {
      at = (at + by + data.n) % data.n;
      if (store.shown(data.order[at])) return store.set({ sel: data.order[at] });
    }
  }

  const zoomTo = () => {
    const span = ruler(store);
    if (span) return store.zoom(...span);
    if (state.sel < 0) return;
    const p = data.doc.processes;
    const room = Math.max(data.wall(state.sel) * 0.05, 500);
    store.zoom(p.start[state.sel] - room, p.end[state.sel] + room);
  };
  const letGo = () => {
    if (state.view === "stacks" && flame?.leave()) return;
    if (state.ruler) store.set({ ruler: "" });
    else if (state.at >= 0) store.set({ at: -1 });
    else if (state.sel >= 0 || state.step >= 0) store.set({ sel: -1, step: -1 });
    else if (state.q) store.set({ q: "" });
    else if (state.root >= 0) store.set({ root: -1 });
    else store.set({ cgroup: "" });
  };
  const row = (by: number) => {
    const view = views[state.view];
    if ("step" in view) view.step(by);
  };
  const keys: Key[] = [
    [
      all.map((_, at) => String(at + 1)),
      all.map((view) => TITLES[view]).join(", "),
      (key) => store.set({ view: all[Number(key) - 1] }),
    ],
    [
      ["/"],
      "search; its terms are below",
      () => {
        search.focus();
        search.select();
      },
    ],
    [["n", "N"], "next, previous match", (key) => next(key === "n" ? 1 : -1)],
    [
      ["ArrowUp", "ArrowDown", "k", "j"],
      "select the previous, the next row",
      (key) => row(key === "ArrowDown" || key === "j" ? 1 : -1),
    ],
    [
      ["ArrowLeft", "ArrowRight"],
      "move the line through all lanes, which says what ran then",
      (key) => store.moveLine(key === "ArrowLeft" ? -0.01 : 0.01),
    ],
    [["a", "d"], "pan", (key) => store.pan(key === "a" ? -0.15 : 0.15)],
    [["g"], "go to a time: g 12.3 Enter, in seconds, or g 1:02.3", () => goto.show()],
    [["+", "=", "w"], "zoom in", () => store.zoomBy(0.6)],
    [["-", "s"], "zoom out", () => store.zoomBy(1 / 0.6)],
    [["0"], "show the whole recording", () => store.zoom(...store.whole)],
    [["z"], "zoom to the measured time, or to the selected process", zoomTo],
    [
      ["Enter"],
      "only the subtree of the selected process; into a group",
      () => {
        if (state.view === "heatmap" && heatmap.enter()) return;
        if (state.sel >= 0) store.set({ root: state.sel });
      },
    ],
    [["u"], "up: to the parent, to all", () => tree.up()],
    [["[", "]"], `${data.pathName}: the step before, the next one`, (key) => move(context, key === "[" ? -1 : 1)],
    [
      ["f"],
      "fold or unfold parents that wait for a child, the machine's sleepers and repeated siblings (Timeline)",
      () => store.set({ fold: !state.fold }),
    ],
    [["c"], "lanes of the CPUs (Timeline)", () => store.set({ cpus: !state.cpus })],
    [
      ["r"],
      "lanes of network, disks and the machine, where recorded (Timeline)",
      () => store.set({ resources: !state.resources }),
    ],
    [["b"], "the critical path by step or by program", () => store.set({ programs: !state.programs, step: -1 })],
    [["x"], "the sums of what is shown (Heatmap, Timeline)", () => store.set({ sums: !state.sums })],
    [["e"], "wake-ups of the selected process (Timeline)", () => store.set({ wakeups: !state.wakeups })],
    [
      ["p"],
      "pin the selected process above the timeline, or let it go",
      () => {
        if (state.sel >= 0) pin(store, state.sel);
      },
    ],
    [
      ["m"],
      "note at the pointer (Heatmap, Timeline); the link keeps it",
      () => {
        if (state.view === "heatmap" || state.view === "timeline") views[state.view].annotate();
      },
    ],
    [["t"], "dark or light", toggleTheme],
    [["?"], "this list", () => showHelp()],
    [["Escape"], "remove the measured time, then the line, the selection, the search, the subtree", letGo],
  ];
  help.append(
    h("h2", {}, "Keys"),
    h(
      "dl",
      {},
      ...keys.flatMap(([all, what]) => [
        h("dt", {}, all.map((key) => NAMES[key] ?? key).join("  ")),
        h("dd", {}, what),
      ]),
      ...[...POINTER, ...(flame ? FRAMES : [])].flatMap(([pointer, what]) => [h("dt", {}, pointer), h("dd", {}, what)]),
    ),
    h("h2", {}, "Search"),
    h("dl", { class: "terms" }, ...TERMS.flatMap(([term, what]) => [h("dt", {}, term), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const target = event.target as HTMLElement;
    if (target.matches("input, select, textarea")) return;
    if (event.key === "Enter" && target.matches("button, summary, a")) return;
    const key = keys.find(([all]) => all.includes(event.key));
    if (!key) return;
    event.preventDefault();
    key[2](event.key);
  });

  function themeChanged() {
    heatmap.themeChanged();
    stepsView.themeChanged();
    timeline.themeChanged();
    tree.draw();
    flame?.draw();
    strip.draw(true);
  }
  function toggleTheme() {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("tr-theme", dark ? "light" : "dark");
    } catch {
      // Not kept, then.
    }
    themeChanged();
  }
  // Paper is white and as wide as a page; what is on a canvas must be drawn for it.
  let before: string | undefined;
  const paper = (on: boolean) => {
    const root = document.documentElement;
    views.overview.complete();
    if (on) before = root.dataset.theme;
    if (on) root.dataset.theme = "light";
    else if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    root.classList.toggle("paper", on);
    strip.draw(true);
    tree.draw();
    flame?.draw();
    heatmap.paper(on);
    timeline.paper(on);
  };
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);

  store.listen((_, changed) => update(changed));
  update(null);
  // The next frame shows it; a tracer of the browser finds the mark.
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      performance.mark("first-view");
      setTimeout(() => {
        views.overview.complete();
        document.documentElement.dataset.ready = "1";
      });
    }),
  );
}

/** What makes the numbers incomplete, above all of them: all of it in the overview, else its first line. */
function warned({ doc: { warnings } }: Data, all: () => void): HTMLElement[] {
  if (warnings.length === 0) return [];
  const more =
    warnings.length > 1
      ? h("button", { type: "button", class: "link", onclick: all }, `and ${warnings.length - 1} more`)
      : null;
  return [
    h(
      "ul",
      { class: "warned", id: "warned", role: "alert" },
      ...warnings.map((text, at) => h("li", { title: text }, h("span", {}, text), at === 0 ? more : null)),
    ),
  ];
}

function restoreTheme() {
  try {
    const kept = localStorage.getItem("tr-theme");
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  } catch {
    // As the system has it, then.
  }
}

/** The cgroups as a list to choose from, each with how many processes are in and below it. */
function cgroupSelect(data: Data, store: Store) {
  const counts = new Map<string, number>();
  for (let ix = 0; ix < data.n; ix++) {
    if (data.doc.processes.cgroup[ix] === null) continue;
    let path = data.cgroup(ix);
    for (;;) {
      counts.set(path, (counts.get(path) ?? 0) + 1);
      const cut = path.lastIndexOf("/");
      if (cut <= 0) break;
      path = path.slice(0, cut);
    }
  }
  const paths = [...counts.keys()].filter((path) => path !== "/").sort();
  if (paths.length < 2) return null;
  const select = h(
    "select",
    { "aria-label": "Cgroup", onchange: () => store.set({ cgroup: select.value }) },
    h("option", { value: "" }, "All cgroups"),
    ...paths.slice(0, 500).map((path) => h("option", { value: path }, `${path} (${count(counts.get(path)!)})`)),
  );
  return {
    element: h("label", { class: "cgroups" }, "Cgroup ", select),
    update: () => {
      select.value = store.state.cgroup;
    },
  };
}

void main();
