// Looks at pages of `tr report` in one browser: node page.mjs DIRECTORY.
// DIRECTORY holds what tests/html.rs wrote: NAME.html and NAME.json, the
// same trace's `tr analyze --format json`. CHROMIUM names the browser, or FIREFOX, an unpatched one,
// which Playwright drives by WebDriver BiDi: what needs Chromium's own protocol is left out there.
// Each line of stdin names a function of `tests`, which starts at once, in Firefox after the one before:
// only one of its windows has the keyboard. At its end its name and its error or null come as a line of JSON.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import playwright from "playwright-core";

const [, , directory] = process.argv;
const firefox = process.env.FIREFOX;
/** In make test-long. */
const allCases = process.env.TR_LONG !== undefined;
const browser = firefox
  ? await playwright._bidiFirefox.launch({ executablePath: firefox })
  : await playwright.chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
browser.on("disconnected", () => process.exit(1));
/** The contexts that the running test has opened. */
const contexts = new AsyncLocalStorage();
const url = (name) => pathToFileURL(`${directory}/${name}.html`).href;
const analysis = (name) => JSON.parse(readFileSync(`${directory}/${name}.json`, "utf8"));

async function newContext(options) {
  const context = await browser.newContext(options);
  contexts.getStore().push(context);
  return context;
}

/** Opens a page; whatever it logs, asks for, or fails at is a failure. */
async function open(name, hash = "", options = {}) {
  const context = await newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.said = [];
  page.on("console", (message) => page.said.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => page.said.push(`error: ${error.stack}`));
  page.on("dialog", (dialog) => {
    page.said.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== url(name)) page.said.push(`request: ${request.url()}`);
  });
  // What is copied, without asking for the clipboard.
  await page.addInitScript(() => {
    Object.defineProperty(navigator, "clipboard", {
      value: { writeText: async (text) => void (window.copied = text) },
    });
  });
  await page.goto(url(name) + hash);
  await page.waitForSelector("html[data-ready]");
  page.calm = () => assert.deepEqual(page.said, []);
  page.view = async (view) => {
    await page.click(`#tab-${view}`);
    await settle(page);
  };
  return page;
}

/** Texts with too little contrast to what lies behind them. */
const poor = (page) =>
  page.evaluate(() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const over = (color, below) => {
      canvas.fillStyle = `rgb(${below.join()})`;
      canvas.fillRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const behind = (element) =>
      element ? over(getComputedStyle(element).backgroundColor, behind(element.parentElement)) : [255, 255, 255];
    const light = (rgb) => {
      const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const poor = [];
    for (const element of document.querySelectorAll("body *")) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
      if (!own || !element.checkVisibility() || element.closest("script, button:disabled, select, svg")) continue;
      const below = behind(element);
      const [a, b] = [light(over(getComputedStyle(element).color, below)), light(below)];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (contrast < 4.5)
        poor.push(`${contrast.toFixed(2)} ${element.className} "${element.textContent.slice(0, 40)}"`);
    }
    return poor;
  });

/** The functions on a CPU or that waited, in the report's order: waits have a row for each reason there. */
function functions({ rows }, off) {
  const sums = new Map();
  for (const row of rows.filter((row) => row.off_cpu === off)) {
    const key = `${row.function}\n${row.binary}`;
    const sum = sums.get(key) ?? { function: row.function, binary: row.binary, self_ns: 0, total_ns: 0 };
    sum.self_ns += row.self_ns;
    sum.total_ns += row.total_ns;
    sums.set(key, sum);
  }
  const less = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return [...sums.values()].sort(
    (a, b) =>
      b.self_ns - a.self_ns || b.total_ns - a.total_ns || less(a.function, b.function) || less(a.binary, b.binary),
  );
}

/** Until what was done is drawn, and stands in the address. */
const settle = (page) =>
  page.evaluate(
    () =>
      new Promise((done) => {
        const ask = () => (document.documentElement.dataset.moving ? setTimeout(ask, 20) : done());
        requestAnimationFrame(() => requestAnimationFrame(ask));
      }),
  );
/** Firefox takes two clicks of BiDi for one double click only if the machine is quick. */
async function doubleClick(place, position) {
  if (!firefox) return place.dblclick({ position });
  const { x, y } = await place.boundingBox();
  await place.dispatchEvent("dblclick", { bubbles: true, clientX: x + position.x, clientY: y + position.y });
}
const hash = async (page) =>
  Object.fromEntries(new URLSearchParams((await page.evaluate(() => location.hash)).slice(1)));

/** What the tip says at any of these places, from the canvas' corner: moves of a pointer, which a mouse would take a minute for. */
async function tips(page, canvas, xs, ys) {
  return new Set(
    await page.locator(canvas).evaluate(
      (canvas, { xs, ys }) => {
        const { left, top } = canvas.getBoundingClientRect();
        const tip = document.querySelector(".tip");
        const said = [];
        for (const x of xs)
          for (const y of ys) {
            canvas.dispatchEvent(
              new PointerEvent("pointermove", {
                bubbles: true,
                pointerType: "mouse",
                clientX: left + x,
                clientY: top + y,
              }),
            );
            if (tip.checkVisibility()) said.push(tip.textContent);
          }
        return said;
      },
      { xs, ys },
    ),
  );
}
const range = (from, to, step = 1) =>
  Array.from({ length: Math.ceil((to - from) / step) }, (_, at) => from + at * step);

/** The table with every column, as CSV, by the first line's names. */
async function csv(page) {
  await page.view("table");
  const tools = page.locator("#view-table .tools:visible");
  await tools.locator(".columns summary").click();
  for (const box of await tools.locator(".columns input").all()) await box.check();
  await tools.locator(".columns summary").click();
  await tools.locator("text=Copy as CSV").click();
  const text = await page.evaluate(() => window.copied);
  const rows = [];
  let row = [""];
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const c = text[at];
    if (quoted) {
      if (c === '"' && text[at + 1] === '"') row[row.length - 1] += text[++at];
      else if (c === '"') quoted = false;
      else row[row.length - 1] += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") row.push("");
    else if (c === "\n") {
      rows.push(row);
      row = [""];
    } else row[row.length - 1] += c;
  }
  const [names, ...values] = rows;
  return values.map((value) => Object.fromEntries(names.map((name, at) => [name, value[at]])));
}

const tests = {
  async opens_from_disk_and_asks_for_nothing() {
    for (const name of ["demo", "build", "chaos", "empty"]) {
      for (const colorScheme of allCases || name === "demo" ? ["light", "dark"] : ["light"]) {
        const page = await open(name, "", { colorScheme });
        for (const view of ["heatmap", "timeline", "tree", "table", "overview"]) {
          await page.view(view);
          assert.ok(await page.isVisible(`#view-${view}`));
        }
        page.calm();
        await page.context().close();
      }
    }
    const page = await open("stacks", "#view=stacks");
    for (const doing of ["off", "both", "on"]) await page.click(`#view-stacks [data-value=${doing}]`);
    page.calm();
  },

  // A recording without stacks: no view, no key, no card of them.
  async a_page_without_stacks_says_nothing_of_them() {
    for (const hash of ["", "#view=stacks&fn=3&frame=9&doing=off&sel=5"]) {
      const page = await open("demo", hash);
      assert.equal(await page.locator("#tab-stacks, #view-stacks, #hottest").count(), 0);
      assert.ok(await page.isVisible("#view-overview"));
      assert.ok(!/[Ss]tacks/.test(await page.textContent("#app")), "the word");
      page.calm();
      await page.context().close();
    }
    const odd = await open("stacks", "#view=stacks&fn=99999&frame=-1&doing=x&reason=%3Cb%3E&find=%2F(%2F");
    assert.equal(await odd.textContent("#highlighted"), "no valid expression");
    assert.equal(await odd.getAttribute("[data-value=on]", "aria-pressed"), "true");
    odd.calm();
  },

  async functions_equal_the_report() {
    const { flame } = analysis("stacks");
    const page = await open("stacks", "#view=stacks&roots=process");
    const sampled = async () =>
      [await page.getAttribute("#sampled", "data-count"), await page.getAttribute("#sampled", "data-ns")].map(Number);
    const shown = () =>
      page.$$eval(".functions tbody tr", (rows) =>
        rows.map((row) =>
          [row.dataset.self, row.dataset.total, row.cells[4].textContent, row.cells[5].textContent].join(),
        ),
      );
    for (const [doing, off, all] of [
      ["on", false, [flame.samples, flame.ns]],
      ["off", true, [flame.off_cpu_samples, flame.off_cpu_ns]],
    ]) {
      await page.click(`#view-stacks [data-value=${doing}]`);
      await settle(page);
      assert.deepEqual(await sampled(), all);
      const rows = functions(flame, off).map((row) => [row.self_ns, row.total_ns, row.function, row.binary].join());
      assert.ok(rows.length > 10 && rows.length <= 200);
      assert.deepEqual(await shown(), rows);
    }
    // Both: the sums of the two.
    await page.click("#view-stacks [data-value=both]");
    await settle(page);
    assert.deepEqual(await sampled(), [flame.samples + flame.off_cpu_samples, flame.ns + flame.off_cpu_ns]);
    // The reasons of the waits divide them.
    await page.click("#view-stacks [data-value=off]");
    const reasons = await page.$$eval("#reason option", (all) =>
      all.map((option) => option.value).filter((value) => value),
    );
    assert.ok(
      ["child", "timer"].every((name) => reasons.includes(name)),
      reasons.join(),
    );
    let [samples, ns] = [0, 0];
    for (const reason of reasons) {
      await page.selectOption("#reason", reason);
      await settle(page);
      const [count, time] = await sampled();
      [samples, ns] = [samples + count, ns + time];
      const text = (await shown()).join("\n");
      assert.equal(text.includes("wait4"), reason === "child", `wait4 in ${reason}`);
      assert.equal(text.includes("clock_nanosleep"), reason === "timer", `clock_nanosleep in ${reason}`);
    }
    assert.deepEqual([samples, ns], [flame.off_cpu_samples, flame.off_cpu_ns]);
    // The overview's card leads to one.
    await page.view("overview");
    const [hot] = functions(flame, false);
    assert.ok((await page.textContent("#hottest .row")).startsWith(hot.function));
    await page.click("#hottest .row");
    await settle(page);
    assert.ok((await page.textContent("#function")).startsWith(`${hot.function} in ${hot.binary}: self `));
    page.calm();
  },

  // The truth are the events themselves.
  async samples_are_those_of_what_is_shown() {
    const lines = readFileSync(`${directory}/stacks.ndjson`, "utf8").trim().split("\n");
    const events = lines.map((line) => JSON.parse(line)).filter((event) => event.kind === "sample");
    const { trace, processes } = analysis("stacks");
    const page = await open("stacks", "#view=stacks");
    const check = async (what, hash, tgids, [from, to] = []) => {
      for (const off of [false, true]) {
        const all = events.filter((event) => event.off_cpu === off && tgids.has(event.tgid));
        const part = ({ t, ns }) =>
          from === undefined
            ? ns
            : off
              ? Math.max(0, Math.min(t, to) - Math.max(t - ns, from))
              : t >= from && t <= to
                ? ns
                : 0;
        const inside = all.filter((event) => part(event) > 0);
        await page.evaluate((hash) => (location.hash = hash), `#view=stacks&doing=${off ? "off" : "on"}${hash}`);
        await settle(page);
        const [count, ns] = [
          await page.getAttribute("#sampled", "data-count"),
          await page.getAttribute("#sampled", "data-ns"),
        ].map(Number);
        const truth = inside.reduce((sum, event) => sum + part(event), 0);
        const said = `${what}, ${off ? "off" : "on"}: ${count}, ${ns} are not ${inside.length}, ${truth}`;
        // In a part of the recording times are rounded to a 65,536th of it.
        if (from === undefined) assert.deepEqual([count, ns], [inside.length, truth], said);
        else
          assert.ok(
            Math.abs(count - inside.length) <= 1 &&
              Math.abs(ns - truth) <= 10_200_000 + all.length * (trace.duration_ns / 65_536),
            said,
          );
        if (inside.length === 0)
          assert.match(await page.textContent("#view-stacks .empty:visible"), /^No stack was sampled/);
      }
    };
    const pids = new Set(events.map((event) => event.tgid));
    assert.ok(pids.size >= 4);
    await check("all", "", pids);
    for (const pid of pids) await check(`pid ${pid}`, `&q=pid:${pid}`, new Set([pid]));
    const span = [0.3, 0.7].map((part) => Math.round(trace.duration_ns * part));
    await check("a range", `&t=${span.join("-")}`, pids, span);
    await check("a range of none", "&t=1000-3000", pids, [1000, 3000]);
    // A subtree: a process and its descendants.
    const inside = (p, root) =>
      p &&
      (p.pid === root ||
        inside(
          processes.find((q) => q.pid === p.ppid),
          root,
        ));
    for (const [ix, { pid }] of processes.entries()) {
      const below = new Set(processes.filter((p) => inside(p, pid)).map((p) => p.pid));
      await check(`the subtree of ${pid}`, `&root=${ix}`, below);
    }
    // From the details of a process to its stacks.
    const most = [...pids]
      .map((pid) => [events.filter((event) => event.tgid === pid).length, pid])
      .sort((a, b) => b[0] - a[0])[0][1];
    await page.evaluate(
      (ix) => (location.hash = `#view=tree&sel=${ix}`),
      processes.findIndex((p) => p.pid === most),
    );
    await settle(page);
    await page.click(".details .buttons >> text=Stacks");
    await settle(page);
    assert.equal((await hash(page)).q, `pid:${most}`);
    assert.ok(await page.isVisible("#view-stacks"));
    page.calm();
  },

  // A program as root has the time of its processes' samples.
  async stacks_have_groups_as_roots() {
    const page = await open("stacks", "#view=stacks");
    await settle(page);
    const rows = await page.$$eval(".functions tbody tr", (all) =>
      all.map((row) => [...row.cells].map((cell) => cell.textContent)),
    );
    const totals = new Map(rows.filter((cells) => cells[5] === "").map((cells) => [cells[4], cells[2]]));
    let found = 0;
    for (const name of new Set(analysis("stacks").processes.map((p) => p.comm))) {
      if (!totals.has(name)) continue;
      found++;
      await page.evaluate((name) => (location.hash = `#view=stacks&q=program:${name}`), name);
      await settle(page);
      const [, time] = (await page.textContent("#sampled")).split(", ");
      assert.equal(totals.get(name), time, name);
    }
    assert.ok(found > 1, JSON.stringify(rows));
    page.calm();
  },

  async a_function_has_callers_and_callees() {
    const { flame } = analysis("stacks");
    const page = await open("stacks", "#view=stacks&roots=process");
    const table = (name) =>
      page.$$eval(`.functions table[aria-label=${name}] tbody tr`, (rows) =>
        rows.map((row) => [row.cells[2].textContent, Number(row.dataset.ns)]),
      );
    const names = async (name) => (await table(name)).map(([name]) => name);
    const choose = async (name, binary) => {
      await page.evaluate(
        ([name, binary]) => {
          const rows = [...document.querySelectorAll(".functions tbody tr")];
          const row = rows.find(
            ({ cells }) => cells[4].textContent === name && (!binary || cells[5].textContent === binary),
          );
          row.querySelector("button").click();
        },
        [name, binary],
      );
      await settle(page);
    };
    // Of each function: what its callers have and what its callees and itself have is its total.
    for (const { function: name, binary, total_ns, self_ns } of functions(flame, false).slice(0, 12)) {
      await choose(name, binary);
      for (const side of ["Callers", "Callees"]) {
        const sum = (await table(side)).reduce((sum, [, ns]) => sum + ns, 0);
        assert.equal(sum, total_ns, `${side} of ${name}`);
      }
      const itself = (await table("Callees")).find(([name]) => name === "itself")?.[1] ?? 0;
      assert.equal(itself, self_ns, name);
      await page.keyboard.press("Escape");
      await settle(page);
    }
    // As fixtures/programs/hot.c has it.
    await choose("one");
    const callers = await names("Callers");
    assert.ok(callers.length > 0 && callers.every((name) => ["user", "forks", "main"].includes(name)), callers.join());
    await page.keyboard.press("Escape");
    await settle(page);
    await choose("read_zero");
    assert.equal((await names("Callees"))[0], "itself");
    // By its callers to the program; libc's read() keeps no frame pointer, so that its caller may be missing.
    const way = [];
    while (way[way.length - 1] !== "main") {
      const [[caller]] = await table("Callers");
      assert.ok(way.length < 20, way.join());
      way.push(caller);
      await page.locator(".functions table[aria-label=Callers] .link").first().click();
      await settle(page);
    }
    assert.ok(way.includes("vfs_read") && way.includes("read"), way.join());
    assert.ok(
      (await names("Callees")).some((name) => way.includes(name)),
      "and back",
    );
    // In the picture it has callers above it and callees below it; the address keeps it.
    const { fn } = await hash(page);
    assert.match(await page.getAttribute("#view-stacks canvas", "aria-label"), /^Callers above and callees below main/);
    const other = await open("stacks", `#view=stacks&fn=${fn}`);
    assert.equal(await other.textContent("#function"), await page.textContent("#function"));
    other.calm();
    await page.click("#outwards");
    await settle(page);
    assert.equal((await hash(page)).fn, undefined);
    page.calm();
  },

  async the_flame_graph_goes_by_keys() {
    const { flame } = analysis("stacks");
    const page = await open("stacks", "#view=stacks&roots=process");
    const line = () => page.textContent("#frame");
    await page.focus("#view-stacks canvas");
    assert.ok(!(await line()).startsWith("Click"), await line());
    // Down to the end: the widest frame of each row.
    const way = [(await line()).split(" in ")[0]];
    for (let n = 0; n < 40; n++) {
      await page.keyboard.press("ArrowDown");
      const [name] = (await line()).split(" in ");
      if (way[way.length - 1] === name) break;
      way.push(name);
    }
    assert.ok(way.length >= 2 && way.includes("main"), way.join());
    const leaf = await line();
    await page.keyboard.press("ArrowUp");
    assert.notEqual(await line(), leaf);
    await page.keyboard.press("ArrowDown");
    assert.equal(await line(), leaf);
    // Into it, back, and to its callers and callees.
    await page.keyboard.press("Enter");
    await settle(page);
    const { frame } = await hash(page);
    assert.ok(Number(frame) > 0);
    assert.equal(await line(), leaf);
    await page.keyboard.press("Enter");
    await settle(page);
    assert.notEqual((await hash(page)).frame, frame);
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal((await hash(page)).frame, undefined);
    await page.keyboard.press(" ");
    await settle(page);
    assert.ok((await hash(page)).fn !== undefined);
    await page.keyboard.press("Escape");
    await settle(page);
    // A click goes into a frame: it is as wide as the picture.
    const box = await page.locator("#view-stacks canvas").boundingBox();
    await page.mouse.click(box.x + 10, box.y + 30);
    await settle(page);
    const chosen = (await line()).split(" in ")[0];
    await page.mouse.move(box.x + box.width - 4, box.y + 30);
    assert.ok((await page.textContent(".tip:not([hidden])")).startsWith(chosen));
    const other = await open("stacks", await page.evaluate(() => location.hash));
    assert.equal(await other.textContent("#frame"), await line());
    other.calm();
    await page.keyboard.press("Escape");
    // Some are highlighted: the share of the report.
    await page.fill("#find", "/^three$/");
    await settle(page);
    const time = (ns) => (ns < 999.5e6 ? `${(ns / 1e6).toFixed(0)} ms` : `${(ns / 1e9).toFixed(2)} s`);
    const check = async (names, outer) => {
      const all = functions(flame, false);
      const n = all.filter((row) => names.includes(row.function)).length;
      const ns = all.filter((row) => row.function === outer).reduce((sum, row) => sum + row.total_ns, 0);
      assert.equal(
        await page.textContent("#highlighted"),
        `${n} ${n === 1 ? "function" : "functions"}, ${time(ns)}, ${((ns * 100) / flame.ns).toFixed(0)} %`,
      );
      assert.equal(await page.locator(".functions tr.wanted").count(), n);
    };
    await check(["three"], "three");
    // Time in several of them counts once: the others are called in main.
    await page.fill("#find", "/^(main|forks|three)$/");
    await settle(page);
    await check(["main", "forks", "three"], "main");
    // By the list, with the keys of rows.
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("j");
    await settle(page);
    assert.ok((await page.textContent("#function")).startsWith(functions(flame, false)[0].function));
    // What a screen reader has.
    const session = await page.context().newCDPSession(page);
    const nodes = (await session.send("Accessibility.getFullAXTree")).nodes.filter((node) => !node.ignored);
    for (const role of ["button", "tab", "searchbox", "combobox", "image", "table"]) {
      for (const node of nodes.filter((node) => node.role?.value === role))
        assert.ok((node.name?.value ?? "").trim() !== "", `a ${role} without a name`);
    }
    page.calm();
  },

  async advice_leads_to_its_evidence() {
    const page = await open("demo");
    const { advice } = analysis("demo").advice;
    assert.ok(advice.length > 0);
    const rows = await page.$$("#advice .change");
    assert.equal(rows.length, advice.length);
    for (const [at, row] of rows.entries()) {
      const text = await row.textContent();
      assert.ok(text.endsWith(`${advice[at].finding}: ${advice[at].action}`), text);
    }
    // A link to the processes and their time, which can be copied and goes back.
    const { processes } = analysis("demo");
    for (const [n, { from_ns, to_ns, pids: all }] of advice.entries()) {
      const href = await page.getAttribute(`#advice .change:nth-of-type(${n + 1})`, "href");
      const other = await open("demo", href);
      assert.ok(await other.isVisible("#view-timeline"));
      const { t, q, sel } = await hash(other);
      const [from, to] = t.split("-").map(Number);
      assert.ok(from <= from_ns && to >= to_ns, `${t} has not ${from_ns} to ${to_ns}`);
      const pids = all.slice(0, 40);
      assert.ok(pids.length > 0);
      assert.equal(processes[Number(sel)].pid, pids[0]);
      assert.ok((await other.textContent(".details .crumbs")).endsWith(`pid ${pids[0]}`));
      if (pids.length > 1) assert.equal(q, `pid:${pids.join(",")}`);
      other.calm();
      await other.context().close();
    }
    await rows[0].click();
    await settle(page);
    assert.ok(await page.isVisible("#view-timeline"));
    page.calm();
    await page.context().close();
  },

  // The lane above the timeline, by its keys and its links.
  async the_critical_path_goes_step_by_step() {
    for (const [name, programs] of [
      ["demo", 0],
      ["demo", 1],
      ["build", 1],
    ]) {
      const page = await open(name, `#view=timeline&programs=${programs}`);
      const { wall_ns, inferred_ns } = analysis(name).critical_path.path;
      const card = async () =>
        (await page.$$eval(".step-card > *", (all) => all.map((one) => one.textContent))).join("\n");
      const facts = async () => {
        const text = await card();
        const [, n, of, from, to] = /step (\d+) of (\d+)\n([\d.]+) s to ([\d.]+) s/.exec(text);
        return { text, n: Number(n), of: Number(of), from: Number(from), to: Number(to) };
      };
      const seen = [];
      let inferred = 0;
      for (;;) {
        await page.press("body", "]");
        await settle(page);
        const step = await facts();
        if (seen.length > 0 && step.n === seen.at(-1).n) break;
        seen.push(step);
        if (step.text.includes("Inferred")) inferred++;
        if (step.n === step.of) break;
      }
      // All of the path, each step where the last one ended.
      assert.equal(seen.length, seen[0].of);
      for (let n = 1; n < seen.length; n++)
        assert.ok(Math.abs(seen[n].from - seen[n - 1].to) < 0.0011, `${seen[n].from} after ${seen[n - 1].to}`);
      const length = seen.at(-1).to - seen[0].from;
      assert.ok(Math.abs(length - wall_ns / 1e9) < 0.002, `${length} s, not ${wall_ns} ns`);
      assert.equal(inferred > 0, inferred_ns > 0, `${inferred} of ${inferred_ns} ns`);
      const last = await hash(page);
      assert.equal(Number(last.step), seen.length - 1);
      assert.ok(
        seen[0].text.includes("Unlocked by the start of the recording") && seen.at(-1).text.includes("Unlocks the end"),
      );
      await page.press("body", "[");
      await settle(page);
      assert.equal((await facts()).n, seen.length - 1);
      await page.click(".step-card .unlocks .link");
      await settle(page);
      assert.equal((await facts()).n, seen.length);
      // An address keeps it.
      const other = await open(name, await page.evaluate(() => location.hash));
      assert.equal(await other.textContent(".step-card"), await page.textContent(".step-card"));
      await page.press("body", "Escape");
      await settle(page);
      assert.equal(await page.isVisible(".step-card"), false);
      // A click on the lane: the step there.
      await page.press("body", "0");
      await settle(page);
      const middle = seen.reduce((a, b) => (a.to - a.from > b.to - b.from ? a : b));
      const box = await page.locator(".path-lane canvas").boundingBox();
      const at = (middle.from + middle.to) / 2 / (analysis(name).trace.duration_ns / 1e9);
      await page.mouse.click(box.x + box.width * at, box.y + 8);
      await settle(page);
      assert.equal((await facts()).n, middle.n);
      other.calm();
      page.calm();
      await page.context().close();
    }
  },

  // The figures of a range are those of `tr analyze --from --to`.
  async a_range_narrows_every_figure() {
    const { from, to } = JSON.parse(readFileSync(`${directory}/part-span.json`, "utf8"));
    const part = analysis("part");
    const page = await open("demo", `#t=${from}-${to}`);
    const near = (is, should, what) =>
      assert.ok(Math.abs(is - should) <= 2000 + should * 0.0005, `${what}: ${is}, not ${should}`);
    assert.ok(
      (await page.textContent("#chosen")).startsWith("Only 3.000 s to 7.000 s"),
      await page.textContent("#chosen"),
    );
    assert.equal(await page.textContent("#f-processes b"), String(part.totals.processes));
    // Where the kernel's totals narrow the unknown time, no event shows when.
    const events = (what) =>
      part.totals[`${what}_ns`] - part.processes.reduce((sum, p) => sum + p[`${what}_by_kernel_ns`], 0);
    for (const state of ["on_cpu", "run_queue"])
      near(Number(await page.getAttribute(`#t-${state}`, "data-ns")), events(state), state);
    for (const state of ["blocked", "sleep"])
      near(Number(await page.getAttribute(`#t-${state}`, "data-ns")), part.totals[`${state}_ns`], state);
    assert.ok((await page.textContent("#f-busy")).startsWith((events("on_cpu") / (to - from)).toFixed(2)));
    const busy = await page.$$eval("#busy .row", (rows) => rows.map((row) => Number(row.dataset.ns)));
    const unknown = part.trace.concurrency_unknown_ns > 0 ? [busy.pop()] : [];
    unknown.forEach((ns) => near(ns, part.trace.concurrency_unknown_ns, "unknown"));
    assert.equal(busy.length, part.trace.concurrency_ns.filter((ns, n) => ns > 0 || n <= 2).length);
    busy.forEach((ns, n) =>
      assert.ok(
        Math.abs(ns - part.trace.concurrency_ns[n]) <= part.trace.concurrency_unknown_ns + 100000,
        `${n} busy: ${ns}`,
      ),
    );
    assert.equal(await page.$("#advice"), null);
    const rows = await csv(page);
    assert.equal(rows.length, part.processes.length);
    for (const process of part.processes) {
      const row = rows.find((row) => row.pid === String(process.pid));
      for (const what of ["on_cpu", "run_queue"])
        near(
          Number(row[`${what}_ns`]),
          process[`${what}_ns`] - process[`${what}_by_kernel_ns`],
          `${what} of ${process.pid}`,
        );
      near(Number(row.wall_ns), process.wall_ns, `wall of ${process.pid}`);
    }
    // With a subtree and a search as well.
    await page.fill("input[type=search]", "program:cc1");
    await page.view("overview");
    const cc1 = part.processes.filter((p) => p.argv?.[0].endsWith("/cc1"));
    assert.equal(await page.textContent("#f-processes b"), String(cc1.length));
    near(
      Number(await page.getAttribute("#t-on_cpu", "data-ns")),
      cc1.reduce((sum, p) => sum + p.on_cpu_ns - p.on_cpu_by_kernel_ns, 0),
      "cc1",
    );
    await page.click("#chosen .link");
    await settle(page);
    assert.equal(await page.textContent("#f-processes b"), String(analysis("demo").totals.processes));
    assert.equal(await page.$("#chosen"), null);
    page.calm();
  },

  // Of a command that succeeded its failed tests; of one that failed the chain, the cause first.
  async failures_that_count_come_first() {
    const page = await open("demo");
    const failed = analysis("demo").processes.filter((p) => p.exit && (p.exit.code !== 0 || p.exit.signal));
    assert.ok(failed.length > 0);
    const tests = await page.$$eval("#failed .row", (rows) => rows.map((row) => row.textContent));
    assert.equal(tests.length, 1, tests.join("\n"));
    assert.match(tests[0], /^✕ tests\/fails\.sh.*exit 1/);
    assert.match(await page.textContent("#verdict"), /^Verdict your code: /);
    page.calm();
    const other = await open("fails");
    const rows = await other.$$eval("#failed .row", (rows) => rows.map((row) => row.textContent));
    assert.equal(rows.length, 3, rows.join("\n"));
    assert.match(rows[0], /^✕ sh -c 'exit 7'.*exit 7/);
    assert.match(rows[2], /^→ sh -c .*exit 7/);
    // The quality is one line; the rest is there on demand.
    const height = (await other.locator("#quality").boundingBox()).height;
    assert.ok(height < 30, `${height}`);
    assert.equal(await other.isVisible("#quality li"), false);
    assert.match(await other.textContent("#quality summary"), /run 1701/);
    await other.click("#quality summary");
    assert.ok(await other.isVisible("#quality li"));
    other.calm();
  },

  // One bar a job: a driver that only waits for its child has no lane, until it is asked for.
  async waiting_parents_are_folded() {
    const { processes } = analysis("demo");
    const page = await open("demo", "#view=timeline");
    await settle(page);
    const drivers = processes.filter((p) => p.argv?.[0] === "cc" && p.wall_ns > 1e9);
    assert.ok(drivers.length > 3);
    const [, folded] = /^(\d+) waiting parents/.exec(await page.textContent("#folded"));
    assert.ok(Number(folded) >= drivers.length, folded);
    // Where a job is, its compiler is pointed at, and the driver when nothing is folded.
    const job = drivers.reduce((a, b) => (a.wall_ns > b.wall_ns ? a : b));
    const point = async () => {
      const box = await page.locator("#view-timeline .scroll canvas").boundingBox();
      const x = box.x + ((job.start_ns + job.wall_ns / 2) / analysis("demo").trace.duration_ns) * box.width;
      const seen = new Set();
      for (let y = 4; y < box.height; y += 8) {
        await page.mouse.move(x, box.y + y);
        if (await page.isVisible(".tip")) seen.add(await page.textContent(".tip strong"));
      }
      return [...seen];
    };
    const names = (all, program) => all.filter((name) => name.startsWith(`${program} `)).length;
    let seen = await point();
    assert.ok(names(seen, "cc1") === 2 && names(seen, "cc") === 0, seen.join());
    await page.press("body", "f");
    await settle(page);
    assert.equal(await page.textContent("#folded"), "");
    seen = await point();
    assert.ok(names(seen, "cc1") === 2 && names(seen, "cc") === 2, seen.join());
    await page.click("#fold");
    await settle(page);
    // One that is chosen has its lane.
    await page.evaluate((ix) => (location.hash = `#view=timeline&sel=${ix}`), processes.indexOf(job));
    await settle(page);
    seen = await point();
    assert.ok(names(seen, "cc1") === 2 && names(seen, "cc") === 1, seen.join());
    page.calm();
  },

  async siblings_of_a_kind_are_one() {
    const page = await open("many", "#view=tree");
    await settle(page);
    const all = analysis("many").processes.filter((p) => p.argv?.[0] === "/bin/true");
    assert.equal(all.length, 300);
    // On a busy machine some are not small beside the others.
    const siblings = analysis("many").processes.filter((p) => p.ppid === all[0].ppid);
    const least = 0.012 * siblings.reduce((sum, p) => sum + p.tree.on_cpu_ns, 0);
    const alike = all.filter((p) => p.tree.on_cpu_ns <= least);
    assert.ok(alike.length > 250);
    const group = page.locator("li.group");
    assert.equal(await group.count(), 1);
    assert.match(await group.locator(".name").textContent(), new RegExp(`^${alike.length} × true(, each below .*)?$`));
    assert.ok((await page.locator("[role=treeitem]").count()) < 8 + all.length - alike.length);
    const wall = alike.reduce((sum, p) => sum + p.wall_ns, 0) / 1e6;
    const [, shown, unit] = /^([\d.]+) (m?s)$/.exec(await group.locator(".num").nth(1).textContent());
    assert.ok(
      Math.abs(Number(shown) * (unit === "s" ? 1000 : 1) - wall) <= wall * 0.02,
      `${shown} ${unit}, not ${wall} ms`,
    );
    // A cell of the icicle, which opens to its members.
    await page.locator(".icicle canvas").click({ position: { x: 40, y: 36 } });
    await settle(page);
    assert.equal(await group.getAttribute("aria-expanded"), "true");
    assert.ok((await page.locator("li.group [role=treeitem]").count()) >= 200);
    page.calm();
  },

  // Only what is small is put together; the list opens the way to where the time is.
  async large_siblings_stand_alone() {
    const page = await open("demo", "#view=tree");
    await settle(page);
    const { processes } = analysis("demo");
    const root = processes.find((p) => !processes.some((q) => q.pid === p.ppid));
    const heaviest = processes
      .filter((p) => p.ppid === root.pid)
      .reduce((a, b) => (a.tree.on_cpu_ns > b.tree.on_cpu_ns ? a : b));
    const opened = await page.$$eval("[role=treeitem][aria-expanded=true]", (all) =>
      all.map((item) => Number(item.dataset.ix)),
    );
    assert.ok(opened.includes(processes.indexOf(root)));
    // Bars are as long as the longest of those that are not opened, not as the root, which has all of the time.
    const bars = await page.$$eval('#view-tree li:not([aria-expanded="true"]) > .line .inline', (all) =>
      all.map((bar) => (bar.firstElementChild?.getBoundingClientRect().width ?? 0) / bar.clientWidth),
    );
    assert.ok(bars.length > 1 && Math.max(...bars) > 0.99, bars.join());
    assert.equal(
      opened.includes(processes.indexOf(heaviest)),
      heaviest.tree.on_cpu_ns >= 0.25 * root.tree.on_cpu_ns && heaviest.tree.processes > 1,
    );
    for (const metric of ["cpu", "wall"]) {
      await page.evaluate((metric) => (location.hash = `#view=tree&metric=${metric}`), metric);
      await settle(page);
      for (const group of await page.locator("li.group").all()) {
        if ((await group.getAttribute("aria-expanded")) === "false") await group.locator(".line").first().click();
        const id = await group.getAttribute("data-group");
        const parent = await page.$eval(
          `li[data-group="${id}"]`,
          (item) => item.parentElement.closest("[data-ix]")?.dataset.ix ?? "-1",
        );
        const siblings = processes.filter((p) => p.ppid === processes[parent]?.pid);
        if (metric === "wall" || siblings.length === 0) continue;
        const most = 0.012 * siblings.reduce((sum, p) => sum + p.tree.on_cpu_ns, 0);
        const members = await page.$$eval(`li[data-group="${id}"] li[data-ix]`, (all) =>
          all.map((item) => Number(item.dataset.ix)),
        );
        assert.ok(members.length >= 8);
        for (const ix of members) assert.ok(processes[ix].tree.on_cpu_ns <= most, `${processes[ix].argv}`);
      }
    }
    page.calm();
  },

  // In the timeline, too: a row that a click unfolds, and the link to a member.
  async repeated_siblings_are_one_row() {
    const page = await open("many", "#view=timeline");
    await settle(page);
    const { processes, trace } = analysis("many");
    // On a busy machine some are not short.
    const alike = processes.filter(
      (p) => p.argv?.[0] === "/bin/true" && p.wall_ns < Math.min(50e6, trace.duration_ns / 10),
    );
    assert.ok(alike.length > 200);
    const wall = alike.reduce((sum, p) => sum + p.wall_ns, 0) / 1e6;
    const box = await page.locator("#view-timeline .scroll canvas").boundingBox();
    const name = new RegExp(`^${alike.length} × true, ([\\d.]+) (m?s) together$`);
    // The rows at the time of a process, from the top.
    const rows = async (ns) => {
      const seen = [];
      // What stands beside it makes it narrower.
      const box = await page.locator("#view-timeline .scroll canvas").boundingBox();
      for (let y = 2; y < box.height; y += 6) {
        await page.mouse.move(box.x + (box.width * ns) / trace.duration_ns, box.y + y);
        const tip = (await page.isVisible(".tip")) ? await page.textContent(".tip") : "";
        if (tip && tip !== seen.at(-1)?.tip)
          seen.push({ tip, y: box.y + y + 2, title: await page.textContent(".tip strong") });
      }
      return seen;
    };
    const middle = alike[150].start_ns + alike[150].wall_ns / 2;
    let seen = await rows(middle);
    assert.equal(seen.length, 2, JSON.stringify(seen));
    const [, shown, unit] = name.exec(seen[1].title);
    assert.ok(
      Math.abs(Number(shown) * (unit === "s" ? 1000 : 1) - wall) <= wall * 0.02,
      `${shown} ${unit}, not ${wall} ms`,
    );
    const click = () => page.mouse.click(box.x + (box.width * middle) / trace.duration_ns, seen[1].y);
    await click();
    await settle(page);
    seen = await rows(middle);
    assert.ok(seen.length === 3 && name.test(seen[1].title) && /^true/.test(seen[2].title), JSON.stringify(seen));
    await click();
    await settle(page);
    assert.equal((await rows(middle)).length, 2);
    // A chosen member is seen; without folding all are.
    await page.evaluate((ix) => (location.hash = `#view=timeline&sel=${ix}`), processes.indexOf(alike[150]));
    await settle(page);
    assert.equal((await rows(middle))[2]?.title, "true");
    await page.evaluate(() => (location.hash = "#view=timeline&fold=0"));
    await settle(page);
    seen = await rows(middle);
    assert.ok(seen.length === 2 && seen[1].title === "true", JSON.stringify(seen));
    page.calm();
  },

  // Only waits for children are folded: a sleeper has its row, whether the end waited for it or not.
  async sleepers_have_rows() {
    const page = await open("sleeper", "#view=timeline");
    await settle(page);
    const { processes, trace } = analysis("sleeper");
    assert.equal(await page.textContent("#folded"), "");
    const box = await page.locator("#view-timeline .scroll canvas").boundingBox();
    const titles = async (p) => {
      const seen = new Set();
      for (let y = 2; y < box.height; y += 6) {
        await page.mouse.move(box.x + (box.width * (p.start_ns + p.wall_ns / 2)) / trace.duration_ns, box.y + y);
        if (await page.isVisible(".tip")) seen.add(await page.textContent(".tip strong"));
      }
      return [...seen].filter((title) => title.startsWith("sleep "));
    };
    const [long, last] = [processes.find((p) => p.argv?.[1] === "9"), processes.find((p) => p.argv?.[1] === "0.1")];
    assert.ok((await titles(long)).includes("sleep 9") && (await titles(last)).includes("sleep 0.1"));
    page.calm();
  },

  // A parent whose waits were for something else than its child has a lane though it is folded.
  async waits_for_a_disk_are_not_folded() {
    const page = await open("driver", "#view=timeline");
    await settle(page);
    const { processes, trace } = analysis("driver");
    const drivers = processes.filter((p) => p.argv?.some((arg) => arg === "driver"));
    assert.equal(drivers.length, 2);
    const box = await page.locator("#view-timeline .scroll canvas").boundingBox();
    for (const p of drivers) {
      const xs = [(box.width * (p.start_ns + p.wall_ns / 2)) / trace.duration_ns];
      const all = await tips(page, "#view-timeline .scroll canvas", xs, range(2, box.height, 6));
      const waits = p.argv.includes("waits");
      assert.equal(
        [...all].some((tip) => tip.includes(`pid ${p.pid} `)),
        waits,
        `${p.argv}: ${[...all].join("\n")}`,
      );
    }
    assert.match(await page.textContent("#folded"), /^1 waiting parent/);
    page.calm();
  },

  // One control: states, programs or steps; the link keeps it.
  async one_control_colours_the_timeline() {
    const { processes, trace } = analysis("demo");
    const longest = processes.reduce((a, b) => (a.on_cpu_ns >= b.on_cpu_ns ? a : b));
    const page = await open("demo", "#view=timeline");
    const colors = () =>
      page.evaluate(() => {
        const style = getComputedStyle(document.documentElement);
        return Object.fromEntries(
          ["on", ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `program-${n}`)].map((name) => [
            parseInt(style.getPropertyValue(`--${name}`).trim().slice(1), 16),
            name,
          ]),
        );
      });
    // The palette's colours in a column of a canvas, most of them first.
    const column = async (selector, ns) => {
      const seen = await page.evaluate(
        ([selector, share]) => {
          const canvas = document.querySelector(selector);
          const copy = new OffscreenCanvas(1, canvas.height).getContext("2d");
          copy.drawImage(canvas, -Math.round(canvas.width * share), 0);
          const { data } = copy.getImageData(0, 0, 1, canvas.height);
          return Array.from(
            { length: data.length / 4 },
            (_, n) => (data[4 * n] << 16) | (data[4 * n + 1] << 8) | data[4 * n + 2],
          );
        },
        [selector, ns / trace.duration_ns],
      );
      const named = await colors();
      const counts = {};
      for (const pixel of seen) if (named[pixel]) counts[named[pixel]] = (counts[named[pixel]] ?? 0) + 1;
      return Object.keys(counts).sort((a, b) => counts[b] - counts[a]);
    };
    const canvas = "#view-timeline .scroll canvas";
    const at = (p) => p.start_ns + p.wall_ns * 0.7;
    await settle(page);
    assert.deepEqual(await column(canvas, at(longest)), ["on"]);
    await page.click("#color [data-value=program]");
    await settle(page);
    const keys = await page.$$eval("#hues .key", (all) => all.map((key) => key.textContent));
    // By CPU time, as in the overview.
    const cpu = {};
    for (const p of processes)
      if (p.argv) cpu[p.argv[0].split("/").at(-1)] = (cpu[p.argv[0].split("/").at(-1)] ?? 0) + p.on_cpu_ns;
    assert.equal(keys[0], Object.keys(cpu).sort((a, b) => cpu[b] - cpu[a])[0]);
    assert.equal(keys.at(-1), "others");
    assert.deepEqual(await column(canvas, at(longest)), ["program-1"]);
    const linker = processes.find((p) => p.comm === "linkpass");
    assert.deepEqual(await column(canvas, at(linker)), [`program-${keys.indexOf("linkpass") + 1}`]);
    assert.equal((await hash(page)).color, "program");
    const other = await open("demo", await page.evaluate(() => location.hash));
    assert.equal(await other.getAttribute("#color [data-value=program]", "aria-pressed"), "true");
    // Two jobs at once are of two steps: two colours, which the lane of the steps has, too.
    await page.click("#color [data-value=step]");
    await settle(page);
    const jobs = await column(canvas, at(longest));
    assert.equal(jobs.length, 2, jobs.join());
    const edges = await page.evaluate(() => {
      const lane = document.querySelector(".lane canvas");
      const { data } = lane.getContext("2d").getImageData(0, 0, lane.width, lane.height);
      return [
        ...new Set(
          Array.from(
            { length: data.length / 4 },
            (_, n) => (data[4 * n] << 16) | (data[4 * n + 1] << 8) | data[4 * n + 2],
          ),
        ),
      ];
    });
    const named = await colors();
    const above = edges.map((pixel) => named[pixel]).filter((name) => name);
    for (const job of jobs) assert.ok(above.includes(job), `${job} not in ${above}`);
    other.calm();
    page.calm();
  },

  // Siblings too small to be read are one cell, with children or without.
  async small_siblings_are_one_cell() {
    const { processes } = analysis("demo");
    const page = await open("demo", "#view=tree");
    await settle(page);
    const box = await page.locator(".icicle canvas").boundingBox();
    const root = processes.find((p) => !processes.some((q) => q.pid === p.ppid));
    const small = processes.filter(
      (p) => p.ppid === root.pid && p.argv?.[0] === "cc" && p.tree.on_cpu_ns < root.tree.on_cpu_ns * 0.012,
    );
    assert.ok(small.length > 10);
    const seen = new Set();
    for (let x = 4; x < box.width; x += 8) {
      await page.mouse.move(box.x + x, box.y + 36);
      if (await page.isVisible(".tip")) seen.add(await page.textContent(".tip strong"));
    }
    assert.ok(seen.has(`${small.length} × cc`), [...seen].join());
    // Their sum, to the digits that are shown.
    const cpu = small.reduce((sum, p) => sum + p.tree.on_cpu_ns, 0) / root.tree.on_cpu_ns;
    for (let x = 4; x < box.width; x += 4) {
      await page.mouse.move(box.x + x, box.y + 36);
      if ((await page.textContent(".tip strong")) === `${small.length} × cc`) break;
    }
    assert.ok(
      (await page.textContent(".tip")).includes(`${(cpu * 100).toFixed(1)} % with descendants`),
      await page.textContent(".tip"),
    );
    page.calm();
  },

  // The strip tells which CPUs others have while a task waits.
  async the_strip_shows_the_cpus_of_others() {
    for (const [name, others] of [
      ["demo", true],
      ["chaos", false],
    ]) {
      const page = await open(name);
      const { trace } = analysis(name);
      const box = await page.locator(".strip-plot").boundingBox();
      let [most, unknown] = [0, 0];
      for (let n = 0; n < 150; n++) {
        await page.mouse.move(box.x + (box.width * (n + 0.5)) / 150, box.y + 20);
        const tip = await page.textContent(".tip");
        most = Math.max(most, Number(/others have ([\d.]+) of/.exec(tip)?.[1] ?? 0));
        unknown += / unknown/.test(tip) ? 1 : 0;
        const [, on, wait] = /([\d.]+) on CPU · ([\d.]+) run queue/.exec(tip);
        const mine = Math.min(Number(wait), trace.cpus - Number(on));
        if (others && mine > 0.2)
          assert.ok(Math.abs(Number(/others have ([\d.]+) of/.exec(tip)?.[1] ?? 0) - mine) < 0.2, tip);
      }
      assert.ok(most <= trace.cpus && most > 0 === others, `${name}: ${most}`);
      if (analysis(name).totals.unknown_ns === 0) assert.equal(unknown, 0);
      page.calm();
    }
  },

  // The waits of the page are those of the reports.
  async waits_have_their_reasons() {
    const { off_cpu, disk } = analysis("fsync");
    const page = await open("fsync");
    const rows = Object.fromEntries(
      await page.$$eval("#reasons .row", (all) =>
        all.map((row) => [row.querySelector(".bar-name").textContent, Number(row.dataset.ns)]),
      ),
    );
    const total = (...names) =>
      off_cpu.reasons.filter(({ reason }) => names.includes(reason)).reduce((sum, { total_ns }) => sum + total_ns, 0);
    const row = (...names) => names.reduce((sum, name) => sum + (rows[name] ?? 0), 0);
    assert.equal(row("child"), total("child"));
    assert.equal(row("run queue, woken"), total("woken"));
    assert.equal(row("run queue, preempted"), total("preempted"));
    assert.ok(disk.sync_ns > 1e8);
    assert.equal(row("fsync"), disk.sync_ns);
    assert.equal(row("page fault"), disk.fault_ns);
    assert.equal(row("disk", "file", "fsync", "page fault"), disk.waited_ns);
    assert.equal(row("disk", "file", "fsync", "page fault"), total("block-io", "file"));
    // A lane of its own: pointing at it tells who waits.
    await page.view("timeline");
    const box = await page.locator(".resources canvas").boundingBox();
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height - 6);
    assert.match(await page.textContent(".tip"), /^Waits for disks and files.*(fsync|disk) .*store\.py/);
    await page.press("body", "r");
    await settle(page);
    assert.equal(await page.isVisible(".resources"), false);
    page.calm();
  },

  // A runner's file says that tests failed, and nothing shows when they ran: they are named, without figures.
  async failed_tests_without_a_place_are_named() {
    const page = await open("unplaced");
    const rows = await page.$$eval("#failed .row.unplaced", (all) =>
      all.map((row) => [...row.children].map((cell) => cell.textContent)),
    );
    assert.deepEqual(
      rows,
      range(1, 21).map((n) => [`✕ api test_${n}`, "failed", "no place in time"]),
    );
    assert.equal(await page.textContent("#failed .aside"), "4 more failed without a place in time");
    // What has a place is before them.
    assert.match(await page.textContent("#failed .row"), /^✕ tests\/fails\.sh/);
    page.calm();
  },

  // The first screen names the longest waits of processes for others, and one click leads to all waits of one of them
  // with who ended them, as the report has them.
  async how_a_failure_ended_stands_on_nothing() {
    for (const width of [1280, 390]) {
      const page = await open("demo", "", { viewport: { width, height: 800 } });
      const overlaps = await page.$eval("#failed .row.failed", (row) => {
        row.children[1].textContent = "killed by SIGTERM with those below it";
        const boxes = [...row.children].map((part) => part.getBoundingClientRect());
        const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
        const cut = row.children[1].scrollWidth > row.children[1].clientWidth;
        return (
          cut || boxes.some((box, at) => box.width < 40 || boxes.slice(at + 1).some((other) => !apart(box, other)))
        );
      });
      assert.equal(overlaps, false, `at ${width}`);
      page.calm();
    }
  },

  async a_large_recording_is_stretched_while_its_time_moves() {
    const page = await open("pipes", "#view=timeline", { viewport: { width: 1280, height: 800 } });
    // Without the sums beside it, which take a part of its width once it is zoomed.
    await page.press("body", "x");
    await settle(page);
    // Ctrl and the wheel over one moment, in every frame.
    const { seen, before, after } = await page.evaluate(async () => {
      const canvas = document.querySelector("#view-timeline .scroll > canvas");
      const box = canvas.getBoundingClientRect();
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const span = () => /t=(\d+)-(\d+)/.exec(location.hash)?.slice(1).map(Number);
      const x = box.left + box.width * 0.25;
      const init = { bubbles: true, cancelable: true, ctrlKey: true, clientX: x, clientY: box.top + 40 };
      const seen = [];
      for (let n = 0; n < 24; n++) {
        canvas.dispatchEvent(new WheelEvent("wheel", { ...init, deltaY: -12 }));
        await frame();
        seen.push(canvas.style.transform);
      }
      while (document.documentElement.dataset.moving) await frame();
      await frame();
      await frame();
      return { seen, before: box.width, after: { transform: canvas.style.transform, span: span() } };
    });
    assert.ok(seen.filter(Boolean).length >= 8, seen.join());
    assert.ok(seen.filter((one) => !one).length >= 4, seen.join());
    assert.equal(after.transform, "");
    // The moment below the pointer has stayed there.
    const width = await page.evaluate(() => document.querySelector("#view-timeline .scroll > canvas").clientWidth);
    assert.equal(width, Math.round(before));
    const [from, to] = after.span;
    const whole = analysis("pipes").trace.duration_ns;
    assert.ok(Math.abs((from + (to - from) / 4) / whole - 0.25) < 0.01, `${from} to ${to} of ${whole}`);
    page.calm();
  },

  async few_lanes_fill_the_room_and_leave_no_empty_box() {
    const page = await open("fails", "#view=timeline", { viewport: { width: 1280, height: 1400 } });
    const box = await page.$eval("#view-timeline .scroll", (scroll) => scroll.clientHeight);
    const lanes = 3 * 84 + 12;
    assert.equal(box, lanes);
    page.calm();
  },

  async who_waited_for_whom_takes_one_click() {
    for (const name of ["demo", "cargo"]) {
      const { off_cpu, processes } = analysis(name);
      const pairs = new Map();
      const labels = new Map();
      for (const { pid, process, ended_by, reason, length_ns } of off_cpu.longest) {
        // Waits for a CPU are for nobody, and these reasons not for another process.
        const others = ["woken", "preempted", "timer", "idle", "thread"];
        if (ended_by?.kind !== "thread" || ended_by.pid === pid || others.includes(reason)) continue;
        labels.set(pid, process).set(ended_by.pid, ended_by.label);
        const pair = pairs.get(`${pid} ${ended_by.pid}`) ?? { waiter: pid, ender: ended_by.pid, ns: 0, only: [] };
        pair.ns += length_ns;
        pair.only.push(reason);
        pairs.set(`${pid} ${ended_by.pid}`, pair);
      }
      const longest = [...pairs.values()].sort((a, b) => b.ns - a.ns);
      const others = longest.filter(({ only }) => !only.includes("child"));
      assert.ok(others.length > 0);
      const page = await open(name);
      const [first] = await page.$$("#partners .row");
      const label = (pid) => labels.get(pid);
      const [{ waiter, ender, ns }] = others;
      const titles = await first.$$eval(".bar-name", (all) => all.map((one) => one.title));
      // The page has labels for people, in which a script's text is shortened; the JSON has whole ones.
      const isShort = (title, whole) => {
        const [head, tail = ""] = title.split("…");
        return title === whole || (title.includes("…") && whole.startsWith(head) && whole.endsWith(tail));
      };
      const wholes = [label(waiter), label(ender)];
      assert.equal(titles.length, wholes.length);
      titles.forEach((title, at) => assert.ok(isShort(title, wholes[at]), `${title} for ${wholes[at]}`));
      // make waits for its targets: these waits stand before those of a compiler's driver, with the step's name.
      if (name === "demo") {
        const next = (at) => page.textContent(`#partners .row:nth-of-type(${at})`);
        assert.match(await next(2), /^make -s -j2 .*for kernels_\d\.o2\.\d\d schild$/);
        assert.match(await next(5), /^make -s -j2 .*for tally1\.\d\d schild$/);
      }
      assert.ok(Number(await first.getAttribute("data-ns")) >= ns);
      await first.click();
      assert.ok((await page.textContent(".details .crumbs")).includes(`pid ${waiter}`));
      const list = (id) =>
        page.$$eval(`#${id} [data-ns]`, (all) =>
          all.map((row) => ({ name: row.firstChild.textContent, text: row.textContent, ns: Number(row.dataset.ns) })),
        );
      for (const pair of [others[0], ...longest.slice(0, 3)]) {
        const both = [];
        for (const [pid, id, other] of [
          [pair.waiter, "waited-for", pair.ender],
          [pair.ender, "waited-for-by", pair.waiter],
        ]) {
          await page.evaluate((q) => (location.hash = `view=timeline&q=${q}`), `pid:${pid}`);
          await settle(page);
          await page.press("body", "n");
          await settle(page);
          const rows = await list(id);
          both.push(rows.find((row) => isShort(row.name, label(other)) && row.ns >= pair.ns)?.ns);
          if (id !== "waited-for") continue;
          const { sleep_ns, blocked_ns } = processes.find((p) => p.pid === pid);
          const sum = rows.reduce((sum, row) => sum + row.ns, 0);
          assert.equal(sum, sleep_ns + blocked_ns, rows.map(({ text }) => text).join("\n"));
        }
        assert.ok(both[0] >= pair.ns, `${label(pair.waiter)} for ${label(pair.ender)}: ${both}`);
        assert.equal(both[0], both[1]);
      }
      page.calm();
      await page.context().close();
    }
  },

  async connections_have_lanes() {
    const { processes, network, trace } = analysis("network");
    const page = await open("network", "#view=timeline");
    await settle(page);
    const box = await page.locator(".resources canvas").boundingBox();
    const seen = await tips(page, ".resources canvas", range(box.width * 0.6, box.width), [9, 27, 45]);
    for (const it of network.connections.filter(
      ({ begun_ns, closed_ns }) => (closed_ns ?? trace.duration_ns) - begun_ns > trace.duration_ns / 100,
    )) {
      const remote = `${it.direction === "in" ? "from " : ""}${it.remote}:${it.remote_port}`;
      const tip = [...seen].find((tip) => tip.startsWith(remote) && tip.includes(`pid ${it.pid} `));
      assert.ok(tip, `${JSON.stringify(it)} in ${[...seen].join("\n")}`);
      if (it.sent_bytes !== null) assert.ok(tip.includes(`${it.sent_bytes} B sent`) || it.sent_bytes >= 1000, tip);
    }
    assert.ok(processes.length > 1);
    page.calm();
  },

  async dns_queries_have_lanes() {
    const { network, trace } = analysis("facts");
    const page = await open("facts", "#view=timeline");
    await settle(page);
    const box = await page.locator(".resources canvas").boundingBox();
    const seen = await tips(page, ".resources canvas", range(0, box.width), [9, 27, 45, 63]);
    const long = network.lookups.filter(
      (it) => (it.answered_ns ?? trace.duration_ns) - it.asked_ns > trace.duration_ns / 100,
    );
    assert.ok(long.length > 0);
    for (const it of long) {
      const tip = [...seen].find((tip) => tip.startsWith(`DNS ${it.name}`) && tip.includes(`pid ${it.pid} `));
      assert.ok(tip, `${JSON.stringify(it)} in ${[...seen].join("\n")}`);
      assert.equal(tip.includes("no answer"), it.answered_ns === null, tip);
    }
    page.calm();
  },

  async counters_of_the_machine_have_lanes() {
    const { machine } = analysis("facts");
    const page = await open("facts", "#view=timeline");
    await settle(page);
    const box = await page.locator(".resources canvas").boundingBox();
    const seen = await tips(page, ".resources canvas", range(box.width * 0.25, box.width, 3), range(9, box.height, 18));
    const percent = (share) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
    const lanes = [
      ["Pressure: CPU", "cpu_some_ns"],
      ["Pressure: I/O", "io_some_ns"],
    ];
    let found = 0;
    for (const [lane, name] of lanes) {
      const shares = machine.samples.map((it) => (it[name] ?? 0) / it.length_ns);
      if (!shares.some((share) => share > 0.01)) continue;
      found++;
      const longest = machine.samples.filter((it) => it.length_ns > 5e8);
      for (const it of longest) {
        const text = `${lane}: ${percent(Math.min(1, it[name] / it.length_ns))}`;
        assert.ok(
          [...seen].some((tip) => tip.startsWith(text)),
          `${text} in ${[...seen].join("\n")}`,
        );
      }
    }
    assert.ok(found > 0, JSON.stringify(machine.samples));
    page.calm();
  },

  async threads_unfold_under_their_process() {
    const { processes } = analysis("cargo");
    const page = await open("cargo", "#view=timeline");
    await settle(page);
    const height = () =>
      page.evaluate(
        () =>
          document.querySelector("#view-timeline .spacer").offsetHeight +
          document.querySelector("#view-timeline .scroll").clientHeight,
      );
    const before = await height();
    const many = processes.findIndex((p) => p.threads > 30);
    await page.evaluate((ix) => (location.hash = `#view=timeline&sel=${ix}`), many);
    await settle(page);
    await settle(page);
    assert.ok(before < 24 * 30 && (await height()) >= 24 * 30, `${await height()} after ${before}`);
    page.calm();
  },

  // The process on a CPU at a time, by its events; the rest is not known.
  async lanes_of_the_cpus() {
    const { processes, trace } = analysis("demo");
    const page = await open("demo", "#view=timeline");
    assert.equal(await page.isVisible(".cpu-lanes"), false);
    await page.press("body", "c");
    await settle(page);
    const box = await page.locator(".cpu-lanes canvas").boundingBox();
    assert.equal(Math.round(box.height), 18 * trace.cpus);
    const tips = async (ns) => {
      const seen = [];
      for (let cpu = 0; cpu < trace.cpus; cpu++) {
        await page.mouse.move(box.x + (box.width * ns) / trace.duration_ns, box.y + 18 * cpu + 8);
        seen.push(await page.textContent(".tip:not([hidden])"));
      }
      return seen;
    };
    const longest = processes.reduce((a, b) => (a.on_cpu_ns >= b.on_cpu_ns ? a : b));
    const seen = await tips(longest.start_ns + longest.wall_ns * 0.6);
    assert.equal(seen.filter((tip) => tip.includes(`pid ${longest.pid}`)).length, 1, seen.join());
    for (const [cpu, tip] of seen.entries()) assert.ok(tip.includes(`CPU ${cpu}`), tip);
    // While all sleep nobody knows what the CPUs did: others were not recorded.
    const asleep = processes.find((p) => p.argv?.[0] === "sleep");
    for (const tip of await tips(asleep.start_ns + asleep.wall_ns / 2))
      assert.match(tip, /idle, or a task that is not recorded/);
    page.calm();
  },

  // In each column a CPU's lane is as full as the CPU was busy: no more pixels are coloured than the
  // processes had CPU time.
  async lanes_of_the_cpus_show_shares() {
    const { processes, trace } = analysis("demo");
    const page = await open("demo", "#view=timeline&cpus=1");
    await settle(page);
    const share = await page.evaluate(() => {
      const canvas = document.querySelector(".cpu-lanes canvas");
      const { width, height } = canvas;
      const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
      const colors = new Set();
      const style = getComputedStyle(document.documentElement);
      for (let n = 1; n <= 8; n++) colors.add(style.getPropertyValue(`--program-${n}`).trim().toLowerCase());
      colors.add(style.getPropertyValue("--dim").trim().toLowerCase());
      let colored = 0;
      for (let at = 0; at < data.length; at += 4) {
        const hex = `#${[data[at], data[at + 1], data[at + 2]].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
        if (colors.has(hex)) colored++;
      }
      return colored / (width * height);
    });
    const had = processes.reduce((sum, process) => sum + process.on_cpu_ns, 0) / (trace.duration_ns * trace.cpus);
    assert.ok(Math.abs((share * 18) / 16 - had) < 0.06, `${share} of the pixels, ${had} of the time`);
    page.calm();
  },

  // The page of `tr diff`: a verdict, both paths over one axis, the differences of the JSON.
  async two_recordings_side_by_side() {
    const diff = analysis("diff");
    for (const [viewport, colorScheme] of [
      [{ width: 1280, height: 800 }, "light"],
      [{ width: 390, height: 800 }, "dark"],
    ]) {
      const context = await newContext({ viewport, colorScheme });
      const page = await context.newPage();
      const said = [];
      page.on("console", (message) => said.push(message.text()));
      page.on("request", (request) => request.url() === url("diff") || said.push(request.url()));
      await page.goto(url("diff"));
      assert.match(await page.textContent("h1"), /^Faster: 12\.02 s → 9\.63 s \(−2\.39 s, −20 %\)/);
      assert.equal(await page.evaluate(() => document.scripts.length), 0);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= viewport.width);
      // As long as the paths are, and a part where it was.
      const place = async (side, name) => {
        const all = await page.locator(`#path-${side}`).boundingBox();
        const part = await page
          .locator(`#path-${side} > svg`, { hasText: name })
          .first()
          .locator("rect")
          .first()
          .boundingBox();
        return [(part.x - all.x) / all.width, part.width / all.width];
      };
      const { processes, trace } = analysis("demo");
      const linker = processes.find((p) => p.comm === "linkpass");
      const [from, wide] = await place("base", "linkpass");
      assert.ok(Math.abs(from - linker.start_ns / trace.duration_ns) < 0.01, `${from}`);
      assert.ok(Math.abs(wide - linker.wall_ns / trace.duration_ns) < 0.01, `${wide}`);
      const ends = await page.locator("#path-new > svg > rect:first-of-type").last().boundingBox();
      const all = await page.locator("#path-new").boundingBox();
      const share = analysis("build").trace.duration_ns / trace.duration_ns;
      assert.ok(Math.abs((ends.x + ends.width - all.x) / all.width - share) < 0.02, `${ends.x + ends.width} ${share}`);
      // All processes that did not only wait: each compiler where it ran, no driver, no make.
      const lanes = await page.$$eval("#lanes-base > svg > title", (all) => all.map((one) => one.textContent));
      for (const p of processes.filter((p) => p.argv?.[0].endsWith("/cc1") && p.wall_ns > trace.duration_ns / 100)) {
        const [, label, at] =
          lanes
            .map((text) => /^(.*): .* from ([\d.]+) s$/.exec(text))
            .find(([, label, at]) => label.startsWith("cc1 ") && Math.abs(at * 1e9 - p.start_ns) < 2e6) ?? [];
        assert.ok(label, `${p.argv} at ${p.start_ns} in ${lanes.join("\n")}`);
        const bar = await page
          .locator("#lanes-base > svg", { hasText: `${label}:` })
          .first()
          .locator("rect")
          .first()
          .boundingBox();
        const lane = await page.locator("#lanes-base").boundingBox();
        assert.ok(Math.abs((bar.x - lane.x) / lane.width - at / (trace.duration_ns / 1e9)) < 0.01, `${label} ${bar.x}`);
      }
      assert.equal(lanes.filter((text) => /^(make|cc) /.test(text)).length, 0, lanes.join("\n"));
      const cells = await page.$$eval("section.diff", (sections) =>
        Object.fromEntries(
          sections.map((section) => [
            section.querySelector("h2").textContent.split(" (")[0],
            [...section.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)),
          ]),
        ),
      );
      assert.ok(
        cells["Wall time and sums of all threads"] && cells["By step"] && cells["By program"] && cells.Faster,
        Object.keys(cells).join(),
      );
      const cc1 = diff.programs.find((p) => p.program === "cc1");
      const row = cells["By program"].find(([name]) => name === "cc1");
      assert.ok(cc1 && row, JSON.stringify(diff.programs[0]));
      assert.equal(row[1], `${(cc1.on_cpu.base / 1e9).toFixed(2)} s`);
      assert.deepEqual(said, []);
      await context.close();
    }
  },

  // Back returns to the view before; keys as in other viewers of traces.
  async back_returns_to_the_view_before() {
    const page = await open("demo");
    const { duration_ns } = analysis("demo").trace;
    const shown = () => page.evaluate(() => document.querySelector("[role=tab][aria-selected=true]").id);
    await page.view("timeline");
    await page.press("body", "w");
    await settle(page);
    const span = async () => (await hash(page)).t?.split("-").map(Number);
    const zoomed = await span();
    assert.ok(zoomed[1] - zoomed[0] < duration_ns * 0.7, `${zoomed}`);
    await page.press("body", "d");
    await settle(page);
    assert.ok((await span())[0] > zoomed[0]);
    await page.press("body", "a");
    await page.press("body", "s");
    await settle(page);
    await page.view("table");
    assert.equal(await shown(), "tab-table");
    await page.goBack();
    await settle(page);
    assert.equal(await shown(), "tab-timeline");
    for (let n = 0; n < 6 && (await shown()) !== "tab-overview"; n++) {
      await page.goBack();
      await settle(page);
    }
    assert.equal(await shown(), "tab-overview");
    assert.ok(await page.isVisible("#advice"));
    page.calm();
  },

  // A measured length, notes and pins stay in the link.
  async a_ruler_notes_and_pins_stay_in_the_link() {
    const { trace, processes } = analysis("demo");
    const page = await open("demo", "#view=timeline");
    await settle(page);
    let box = await page.locator("#view-timeline .scroll canvas").boundingBox();
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await settle(page);
    const [, seconds] = /^([\d.]+) s/.exec(await page.textContent("#view-timeline .ruler"));
    assert.ok(Math.abs(Number(seconds) - trace.duration_ns / 2e9) < 0.03, seconds);
    assert.equal((await hash(page)).t, undefined, "measured, not zoomed");
    // Its sums stand beside it, and the plot is narrower.
    box = await page.locator("#view-timeline .scroll canvas").boundingBox();
    const band = await page.locator("#view-timeline .band").boundingBox();
    assert.ok(Math.abs(band.width - box.width / 2) < 4, `${band.width}`);
    // A note at the pointer.
    await page.mouse.move(box.x + box.width * 0.5, box.y + 90);
    await page.press("body", "m");
    await page.keyboard.type("<b>the linker</b> & co");
    await page.keyboard.press("Enter");
    await settle(page);
    const flag = await page.locator("#view-timeline .flag").boundingBox();
    assert.ok(Math.abs(flag.x - box.x - box.width * 0.5) < 3, `${flag.x}`);
    // A pin.
    const longest = processes.reduce((a, b) => (a.on_cpu_ns >= b.on_cpu_ns ? a : b));
    await page.fill("input[type=search]", String(longest.pid));
    await settle(page);
    await page.press("input[type=search]", "Enter");
    await settle(page);
    await page.fill("input[type=search]", "");
    await page.evaluate(() => document.activeElement.blur());
    await page.press("body", "p");
    await settle(page);
    await page.press("body", "Escape");
    await settle(page);
    assert.equal(await page.isVisible("#view-timeline .ruler"), false, "Esc removes the length first");
    await page.goBack();
    await page.waitForSelector("#view-timeline .ruler:visible");
    await settle(page);
    const other = await open("demo", await page.evaluate(() => location.hash));
    await settle(other);
    for (const one of [page, other]) {
      assert.ok((await one.textContent("#view-timeline .ruler")).startsWith(`${seconds} s`));
      assert.equal(await one.textContent("#view-timeline .flag"), "<b>the linker</b> & co");
      const pins = await one.locator(".pins canvas").boundingBox();
      await one.mouse.move(pins.x + 100, pins.y + 20);
      assert.ok((await one.textContent(".tip")).includes(`pid ${longest.pid}`), await one.textContent(".tip"));
    }
    // The note is in the heatmap, too; without text it goes.
    await other.press("body", "3");
    await settle(other);
    await other.click("#view-heatmap .flag button");
    await other.fill("#view-heatmap .marks input", "");
    await other.keyboard.press("Enter");
    await settle(other);
    assert.equal(await other.locator("#view-heatmap .flag").count(), 0);
    // Zoom to what was measured.
    await other.press("body", "z");
    await settle(other);
    const [from, to] = (await hash(other)).t.split("-").map(Number);
    assert.ok(Math.abs(to - from - trace.duration_ns / 2) < trace.duration_ns * 0.005, `${from} ${to}`);
    other.calm();
    page.calm();
  },

  // Two fingers zoom around their middle and pan; one pans.
  async fingers_zoom_and_pan() {
    const { duration_ns } = analysis("demo").trace;
    for (const view of ["timeline", "heatmap"]) {
      const page = await open("demo", `#view=${view}`, {
        viewport: { width: 390, height: 844 },
        hasTouch: true,
        isMobile: true,
      });
      await settle(page);
      const session = await page.context().newCDPSession(page);
      const box = await page.locator(`#view-${view} .scroll canvas`).boundingBox();
      const gutter = view === "timeline" ? 0 : 112;
      const plot = box.width - gutter;
      const touch = async (type, ...places) => {
        await session.send("Input.dispatchTouchEvent", {
          type,
          touchPoints: places.map((share, id) => ({ id, x: box.x + gutter + plot * share, y: box.y + 60 })),
        });
        await settle(page);
      };
      const span = async () => ((await hash(page)).t ?? `0-${duration_ns}`).split("-").map(Number);
      await touch("touchStart", 0.4, 0.6);
      await touch("touchMove", 0.35, 0.65);
      await touch("touchMove", 0.3, 0.7);
      await touch("touchEnd");
      const [a, b] = await span();
      assert.ok(Math.abs((b - a) / duration_ns - 0.5) < 0.06, `${view}: ${a} ${b}`);
      assert.ok(Math.abs((a + b) / 2 / duration_ns - 0.5) < 0.03, `${view}: ${a} ${b}`);
      await touch("touchStart", 0.6);
      await touch("touchMove", 0.5);
      await touch("touchMove", 0.4);
      await touch("touchEnd");
      const [c, d] = await span();
      assert.ok(Math.abs((c - a) / (b - a) - 0.2) < 0.04, `${view}: ${a} to ${c}`);
      assert.ok(Math.abs(d - c - (b - a)) < 1000);
      page.calm();
      await page.context().close();
    }
  },

  // A line through all lanes at the pointer, with what ran then; the keys, a finger and g reach it, too.
  async a_line_says_what_ran() {
    const { processes, trace } = analysis("demo");
    const asleep = processes.find((p) => p.argv?.[0] === "sleep");
    const compiler = processes.filter((p) => p.comm === "cc1").reduce((a, b) => (a.on_cpu_ns >= b.on_cpu_ns ? a : b));
    const middle = (p) => p.start_ns + p.wall_ns / 2;
    const page = await open("demo", "#view=timeline");
    await settle(page);
    const readout = () => page.textContent("#view-timeline .readout:not([hidden])");
    const plot = await page.locator("#view-timeline .scroll canvas").boundingBox();
    const x = (t) => plot.x + (plot.width * t) / trace.duration_ns;
    for (const lane of [".path-lane", ".lane:not(.path-lane):not([hidden])", ".scroll canvas"]) {
      const box = await page.locator(`#view-timeline ${lane}`).first().boundingBox();
      await page.mouse.move(x(middle(asleep)), box.y + 6);
      const [, when] = /^at (\S+) s: /.exec(await readout());
      assert.ok(Math.abs(when * 1e9 - middle(asleep)) < trace.duration_ns / plot.width + 1e6, `${lane}: ${when}`);
      // Nobody ran, the sleeper waits for its timer and the command for its child.
      assert.match(
        await readout(),
        /CPU 0 others or idle, CPU 1 others or idle; waiting: .*sleep \S+( of .*)? \(timer\)/,
      );
      assert.match(await readout(), /, make \S.* \(child\)$/);
      const line = await page.locator("#view-timeline .now").boundingBox();
      assert.ok(Math.abs(line.x - x(middle(asleep))) <= 2.5, `${line.x}, not ${x(middle(asleep))}`);
      const all = await page.locator("#view-timeline .plot").boundingBox();
      assert.ok(line.y <= box.y && Math.abs(line.height - all.height) < 2, "through all lanes");
    }
    // Above the strip it is in both.
    const strip = await page.locator(".strip-plot").boundingBox();
    await page.mouse.move(strip.x + (strip.width * middle(asleep)) / trace.duration_ns, strip.y + 8);
    assert.match(await readout(), /\(timer\)/);
    assert.ok(await page.isVisible(".strip .now"));
    await page.mouse.move(5, 5);
    assert.equal(await page.isVisible("#view-timeline .now"), false);
    // g and a number.
    await page.view("overview");
    await page.keyboard.type(`g ${(middle(compiler) / 1e9).toFixed(3)}`);
    await page.keyboard.press("Enter");
    await settle(page);
    const at = Number((await hash(page)).at);
    assert.ok(Math.abs(at - middle(compiler)) < 1e6 && (await page.isVisible("#view-timeline .now")), String(at));
    const source = compiler.argv.find((arg) => arg.endsWith(".c")).replace(/.*\//, "");
    assert.match(await readout(), new RegExp(`cc1 ${source}`));
    assert.equal(await page.textContent("#said"), await readout(), "for those who do not see it");
    // By keys, to the edge and over it.
    await page.keyboard.press("ArrowRight");
    await settle(page);
    assert.equal(Number((await hash(page)).at), Math.round(at + trace.duration_ns / 100));
    await page.evaluate((t) => (location.hash = `#view=timeline&t=1000000000-2000000000&at=1995000000`), at);
    await settle(page);
    await page.keyboard.press("ArrowRight");
    await settle(page);
    const moved = await hash(page);
    const [from, to] = moved.t.split("-").map(Number);
    assert.ok(moved.at === "2005000000" && from <= 2005000000 && to >= 2005000000, JSON.stringify(moved));
    await page.keyboard.press("Escape");
    await settle(page);
    assert.equal((await hash(page)).at, undefined);
    assert.equal(await page.textContent("#said"), "");
    // What is no time goes nowhere.
    await page.keyboard.type("gx");
    await page.keyboard.press("Enter");
    assert.match(await page.textContent(".goto"), /no time/);
    await page.keyboard.press("Escape");
    assert.equal(await page.isVisible(".goto"), false);
    page.calm();
    const phone = await open("demo", "#view=timeline", {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    });
    await settle(phone);
    const box = await phone.locator("#view-timeline .scroll canvas").boundingBox();
    // A busy browser makes a pointer of a touch after some frames, and may take a touch for the beginning of a scroll.
    for (let tries = 0; (await hash(phone)).at === undefined && tries < 3; tries += 1) {
      await phone.touchscreen.tap(box.x + (box.width * middle(asleep)) / trace.duration_ns, box.y + 60);
      await phone.waitForFunction(() => /[#&]at=/.test(location.hash), null, { timeout: 10000 }).catch(() => {});
    }
    await settle(phone);
    assert.ok(Math.abs(Number((await hash(phone)).at) - middle(asleep)) < trace.duration_ns / box.width + 1e6);
    assert.ok(await phone.isVisible("#view-timeline .now"));
    assert.match(await phone.textContent("#view-timeline .readout:not([hidden])"), /\(timer\)/);
    assert.ok(await phone.isVisible("#view-timeline .readout"));
    phone.calm();
  },

  // The strip's lower band has the names of what fills a stretch of the path.
  async the_band_says_its_names() {
    const page = await open("demo", "");
    await page.evaluate(() => {
      window.written = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        if (this.canvas.closest(".strip")) window.written.push(text);
        return fillText.call(this, text, ...place);
      };
    });
    for (const by of ["step", "program"]) {
      await page.evaluate(() => (window.written = []));
      await page.press("body", "b");
      await settle(page);
      const names = await page.evaluate(() => window.written);
      const wanted = by === "step" ? /^cc1 / : /\.o$/;
      assert.ok(names.filter((name) => wanted.test(name)).length > 1, `${by}: ${names.join()}`);
    }
    page.calm();
  },

  // A cut name is one that can be read: of `cc1 hash.c` the file stays, and a lane of "s…" says nothing.
  async cut_names_can_be_read() {
    const context = await newContext({ viewport: { width: 900, height: 800 } });
    const page = await context.newPage();
    await page.addInitScript(() => {
      window.written = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        window.written.push(text);
        return fillText.call(this, text, ...place);
      };
    });
    for (const view of ["timeline", "tree"]) {
      await page.goto("about:blank");
      await page.goto(`${url("demo")}#view=${view}`);
      await page.waitForSelector("html[data-ready]");
      await settle(page);
      const written = await page.evaluate(() => window.written);
      const cut = written.filter((text) => /^…|…$/.test(text));
      assert.ok(cut.length > 0, view);
      // Three letters, or a whole word.
      for (const text of cut)
        assert.ok(/^…\p{L}{2}$/u.test(text) || text.match(/[\p{L}\p{N}]/gu)?.length >= 3, `${view}: ${text}`);
      assert.ok(
        written.some((text) => /^…?\w+\.[co]$/.test(text)),
        `${view}: ${written.join()}`,
      );
    }
    await context.close();
  },

  // Numbers say what they are: those before the heatmap's rows, where there is room for them.
  async numbers_before_rows_have_a_title() {
    for (const [width, title] of [
      [1280, "CPU time"],
      [390, ""],
    ]) {
      const page = await open("demo", "#view=heatmap", { viewport: { width, height: 800 } });
      await settle(page);
      assert.equal(await page.textContent("#view-heatmap .axis > text"), title);
      page.calm();
      await page.context().close();
    }
  },

  // A time of any length has room beside its bar.
  async long_times_have_room() {
    for (const width of [1440, 390]) {
      const page = await open("demo", "", { viewport: { width, height: 800 } });
      const [all, wide] = await page.$$eval("#view-overview .row > .num:not(.dim)", (times) => {
        for (const time of times) time.textContent = "59:59 min";
        return [times.length, times.filter((time) => time.scrollWidth > time.clientWidth).length];
      });
      assert.ok(all > 20 && wide === 0, `${wide} of ${all} at ${width}`);
      page.calm();
      await page.context().close();
    }
  },

  // The command's own demand for CPUs stands only beside its own processes, not beside those of the whole machine.
  async a_recording_of_the_machine_has_no_demand_of_one_command() {
    for (const [name, has] of [
      ["demo", 1],
      ["machine", 0],
    ]) {
      const page = await open(name);
      assert.equal(await page.locator("#busy").count(), 1, name);
      assert.equal(await page.locator("#enough").count(), has, name);
      page.calm();
    }
  },

  // The tabs stay under the pointer that goes from one to the next.
  async tabs_stay_where_they_are() {
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 1366, height: 650 },
    ]) {
      const page = await open("demo", "", { viewport });
      const places = new Set();
      const tabs = await page.$$eval("[role=tab]", (all) => all.map((tab) => tab.id));
      for (const tab of tabs) {
        await page.click(`#${tab}`);
        await settle(page);
        places.add(await page.$eval(`#${tab}`, (tab) => Math.round(tab.getBoundingClientRect().bottom)));
      }
      assert.equal(places.size, 1, [...places].join());
      page.calm();
    }
  },

  // The legend of the steps' bars has the colours that are drawn, and no others.
  async steps_have_a_legend_of_what_is_drawn() {
    for (const name of ["demo", "build"]) {
      const page = await open(name, "#view=steps");
      const known = await page.$$eval("#view-steps .toolbar .legend .swatch", (all) =>
        all.map((one) => one.className.split(" ").pop()),
      );
      const drawn = await page.$$eval("#view-steps tbody .inline > *", (all) =>
        all.map((one) => one.className.split(" ").find((part) => /^u\d$/.test(part))),
      );
      assert.ok(drawn.length > 0 && drawn.every((use) => known.includes(use)), `${name}: ${known} ${new Set(drawn)}`);
      assert.ok(known.length < 7, `${name}: ${known}`);
      page.calm();
    }
  },

  // As many failures as in the terminal are on the first screen; a click shows the others, and what they led to once.
  async a_crowd_of_failures_leaves_room() {
    const page = await open("crowd");
    const rows = () =>
      page.$$eval("#failed .row .bar-name", (all) =>
        all.filter((one) => one.checkVisibility()).map((one) => one.textContent),
      );
    const causes = (all) => all.filter((row) => row.startsWith("✕ ")).length;
    const effects = (all) => all.filter((row) => row.startsWith("→ ")).length;
    const first = await rows();
    assert.equal(causes(first), 5, first.join("\n"));
    assert.equal(effects(first), 1, first.join("\n"));
    assert.equal(await page.textContent("#failed summary"), "7 more");
    await page.click("#failed summary");
    const all = await rows();
    assert.equal(causes(all), 12, all.join("\n"));
    assert.equal(effects(all), 1, all.join("\n"));
    page.calm();
  },

  // Every key that does something stands under ?, and every one there does something.
  async help_names_every_key() {
    const page = await open("demo", "#view=timeline");
    await page.press("body", "?");
    const names = { "↑": "ArrowUp", "↓": "ArrowDown", "←": "ArrowLeft", "→": "ArrowRight", Esc: "Escape" };
    const listed = (await page.$$eval(".help dl:not(.terms) dt", (all) => all.map((dt) => dt.textContent)))
      .filter((text) => !/wheel|drag|click/.test(text))
      .flatMap((text) => text.split(/\s+/))
      .map((key) => names[key] ?? key);
    await page.keyboard.press("Escape");
    const printable = Array.from({ length: 94 }, (_, n) => String.fromCharCode(33 + n));
    for (const key of new Set([...printable, ...listed])) {
      await page.evaluate(
        () => (location.hash = "#view=timeline&sel=30&t=2000000000-4000000000&q=cc1&root=0&ruler=1-9000"),
      );
      await settle(page);
      const state = () =>
        page.evaluate(() =>
          [
            location.hash,
            document.documentElement.dataset.theme,
            document.querySelector("dialog").open,
            document.activeElement.tagName,
          ].join(),
        );
      const before = await state();
      await page.keyboard.press(key);
      await settle(page);
      const did = (await state()) !== before;
      // The view that is shown; a row that is chosen.
      const same = key === "4";
      assert.equal(did || same, listed.includes(key), `${key}: ${did ? "does something" : "does nothing"}`);
      if (await page.evaluate(() => document.querySelector("dialog").open)) await page.keyboard.press("Escape");
      await page.evaluate(() => document.activeElement.blur());
    }
    page.calm();
  },

  async views_without_content_say_so() {
    for (const view of ["overview", "heatmap", "timeline", "tree", "table", "stacks"]) {
      const page = await open(view === "stacks" ? "stacks" : "demo", `#view=${view}&q=no%20such%20process`);
      await settle(page);
      assert.match(await page.textContent(`#view-${view} .empty:visible`), /^No process matches here/, view);
      page.calm();
      await page.context().close();
    }
  },

  // WCAG 2: a contrast of 4.5 between a text and what is behind it.
  async every_text_can_be_read() {
    for (const colorScheme of ["light", "dark"]) {
      for (const [name, hash] of [
        ["demo", ""],
        ["fails", ""],
        ["demo", "#view=timeline&step=3&sel=3"],
        ["demo", "#view=tree&sel=5"],
        ["demo", "#view=table&t=1000000000-3000000000"],
        ["stacks", "#view=stacks&find=read"],
        ["stacks", "#view=stacks&fn=1"],
      ]) {
        const page = await open(name, hash, { colorScheme });
        await settle(page);
        assert.deepEqual(await poor(page), [], `${name}${hash} ${colorScheme}`);
        await page.context().close();
      }
    }
  },

  // A recording by ptrace has no scheduling events.
  async what_is_not_known_is_no_zero() {
    const page = await open("totals");
    const { totals, processes } = analysis("totals");
    assert.equal(totals.sleep_ns, null);
    // Its path is a chain of forks and exits, as in the terminal.
    assert.ok(
      (await page.textContent("#view-overview")).includes("Critical path by forks and exits: what set the build time"),
    );
    // What a recording does not tell apart has one name and one look, in the legend and in the sums.
    const legend = await page.$$eval(".strip-head .key", (all) => all.map((key) => key.textContent));
    assert.ok(legend.includes("sleep or blocked"), legend.join());
    for (const state of ["sleep", "blocked"]) assert.ok(!legend.includes(state), state);
    const look = (selector) =>
      page.$eval(selector, (element) => getComputedStyle(element).backgroundImage).catch(() => "");
    assert.match(await look(".strip-head .swatch.s3"), /repeating-linear-gradient/);
    assert.match(await look("#t-asleep_or_blocked .bar i"), /repeating-linear-gradient/);
    await page.view("timeline");
    const words = await page.evaluate(() =>
      [
        document.body.innerText,
        ...[...document.querySelectorAll("[title],[aria-label]")].map((one) => `${one.title} ${one.ariaLabel}`),
      ].join("\n"),
    );
    assert.equal(/critical path(?! by forks and exits)/i.exec(words), null);
    for (const state of ["sleep", "blocked"]) assert.equal(await page.$(`#t-${state}`), null, state);
    assert.equal(Number(await page.getAttribute("#t-asleep_or_blocked", "data-ns")), totals.asleep_or_blocked_ns);
    const rows = await csv(page);
    assert.equal(rows.length, processes.length);
    for (const row of rows) {
      for (const column of ["sleep_ns", "blocked_ns", "preempted_ns", "voluntary"])
        assert.equal(row[column], "", column);
    }
    page.calm();
    await page.context().close();
  },

  async figures_equal_the_analysis() {
    for (const name of ["demo", "build", "chaos"]) {
      const { processes, totals, trace } = analysis(name);
      const page = await open(name);
      assert.equal(await page.textContent("#f-processes b"), totals.processes.toLocaleString("en"));
      for (const state of ["on_cpu", "run_queue", "blocked", "sleep", "unknown"]) {
        assert.equal(Number(await page.getAttribute(`#t-${state}`, "data-ns")), totals[`${state}_ns`], state);
      }
      assert.ok((await page.textContent("#f-busy")).startsWith((totals.on_cpu_ns / trace.duration_ns).toFixed(2)));
      const rows = await csv(page);
      const key = (pid, start) => `${pid} ${start}`;
      const byKey = new Map(rows.map((row) => [key(row.pid, row.start_ns), row]));
      assert.equal(rows.length, processes.length);
      for (const process of processes) {
        const row = byKey.get(key(process.pid, process.start_ns));
        assert.ok(row, `pid ${process.pid}`);
        const known = (value) => (value === null ? "" : String(value));
        for (const column of [
          "wall_ns",
          "on_cpu_ns",
          "run_queue_ns",
          "blocked_ns",
          "sleep_ns",
          "unknown_ns",
          "preempted_ns",
          "block_io_ns",
          "vfork_ns",
          "max_off_cpu_ns",
          "max_rss_bytes",
          "ppid",
          "threads",
        ]) {
          assert.equal(row[column], known(process[column]), `${column} of pid ${process.pid}`);
        }
        assert.equal(row.tree_on_cpu_ns, String(process.tree.on_cpu_ns));
        assert.equal(row.tree_processes, String(process.tree.processes));
        assert.equal(row.execs, String(process.execs.length));
        assert.equal(row.voluntary, String(process.switches.voluntary));
        assert.equal(row.involuntary, String(process.switches.involuntary));
        if (process.exit?.code !== null && process.exit !== null) assert.equal(row.exit, `exit ${process.exit.code}`);
      }
      page.calm();
      await page.context().close();
    }
  },

  async what_is_painted_is_what_was_counted() {
    // The states of one process, zoomed to its life: the pixels' shares are the analysis's.
    const { processes } = analysis("demo");
    const longest = processes.reduce((a, b) => (a.on_cpu_ns > b.on_cpu_ns ? a : b));
    const page = await open("demo", `#view=timeline&t=${longest.start_ns}-${longest.end_ns}&q=${longest.pid}`);
    await page.press("body", "n");
    await page.waitForSelector(".details:not([hidden])");
    await page.press("body", "Enter");
    await page.press("body", "Escape");
    await settle(page);
    await page.waitForTimeout(200);
    const counts = await page.evaluate(() => {
      const canvas = document.querySelector("#view-timeline .scroll canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const style = getComputedStyle(document.documentElement);
      const color = (name) => parseInt(style.getPropertyValue(`--${name}`).trim().slice(1), 16);
      const found = {};
      for (const name of ["on", "wait", "blocked"]) {
        const [c, n] = [color(name), data.length];
        found[name] = 0;
        for (let at = 0; at < n; at += 4)
          if (((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]) === c) found[name]++;
      }
      return found;
    });
    const sum = counts.on + counts.wait;
    const truth = longest.on_cpu_ns / (longest.on_cpu_ns + longest.run_queue_ns);
    assert.ok(sum > 5000, JSON.stringify(counts));
    assert.ok(Math.abs(counts.on / sum - truth) < 0.02, `${counts.on / sum} is not ${truth}`);
    page.calm();
  },

  async zoom_is_one_for_all_views() {
    const page = await open("demo");
    const whole = analysis("demo").trace.duration_ns;
    await page.view("heatmap");
    const box = await page.locator(".strip-plot").boundingBox();
    const drag = async (from, to) => {
      await page.mouse.move(box.x + box.width * from, box.y + 20);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * to, box.y + 20, { steps: 5 });
      await page.mouse.up();
      await settle(page);
    };
    const span = async () => ((await hash(page)).t ?? `0-${whole}`).split("-").map(Number);
    const near = (is, should, what) =>
      assert.ok(Math.abs(is - should) < whole * 0.005, `${what}: ${is}, not ${should}`);
    await drag(0.25, 0.5);
    let [from, to] = await span();
    near(from, whole * 0.25, "from");
    near(to, whole * 0.5, "to");
    // The window moves.
    await drag(0.4, 0.6);
    [from, to] = await span();
    near(from, whole * 0.45, "moved from");
    near(to, whole * 0.7, "moved to");
    const axis = () => page.locator("#view-heatmap .axis text").first().textContent();
    assert.notEqual(await axis(), "0 s");
    await page.view("timeline");
    assert.deepEqual(await span(), [from, to]);
    // The wheel zooms around the pointer, dragging pans.
    const plot = await page.locator("#view-timeline .scroll canvas").boundingBox();
    await page.mouse.move(plot.x + plot.width / 2, plot.y + 100);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
    await settle(page);
    const [a, b] = await span();
    assert.ok(b - a < (to - from) * 0.7, `${b - a} of ${to - from}`);
    near((a + b) / 2, (from + to) / 2, "middle");
    await page.mouse.down();
    await page.mouse.move(plot.x + plot.width / 2 + 200, plot.y + 100, { steps: 4 });
    await page.mouse.up();
    await settle(page);
    const [c, d] = await span();
    near(a - c, ((b - a) * 200) / plot.width, "panned");
    near(d - c, b - a, "as wide");
    await page.press("body", "0");
    await settle(page);
    assert.equal((await hash(page)).t, undefined);
    page.calm();
  },

  async cgroups_can_be_gone_into() {
    const { processes } = analysis("chaos");
    const page = await open("chaos");
    const paths = [...new Set(processes.map((p) => p.cgroup))].filter((p) => p !== null && p !== "/").sort();
    assert.ok(paths.length >= 2, paths.join());
    const below = (path) => processes.filter((p) => p.cgroup === path || p.cgroup?.startsWith(`${path}/`)).length;
    await page.view("table");
    for (const path of paths) {
      await page.selectOption(".cgroups select", path);
      await settle(page);
      assert.ok(
        (await page.textContent("#view-table [role=status]")).startsWith(`${below(path).toLocaleString("en")} of`),
        path,
      );
      assert.equal((await hash(page)).cgroup, path);
    }
    await page.selectOption(".cgroups select", "");
    // From a row of the heatmap.
    await page.view("heatmap");
    await page.click("button[data-value=cgroup]");
    await settle(page);
    await doubleClick(page.locator("#view-heatmap .scroll canvas"), { x: 40, y: 12 });
    await settle(page);
    const now = await hash(page);
    assert.ok(now.cgroup && now.rows === undefined, JSON.stringify(now));
    page.calm();
  },

  // The page of a forecast says that it is one.
  async a_forecast_is_called_one() {
    const context = await newContext({ viewport: { width: 390, height: 844 } });
    const page = await context.newPage();
    await page.goto(url("predict"));
    await page.waitForSelector("html[data-ready]");
    assert.match(await page.textContent("h1"), /^Forecast: /);
    assert.match(await page.title(), /^Forecast: /);
    assert.match(await page.textContent("main"), /simulated/);
  },

  // Each term of the help, against the analysis; terms combine, and a name in quotes is a whole one.
  async search_terms_combine() {
    const { processes, steps: told } = analysis("demo");
    const page = await open("demo", "#view=table");
    const search = async (text) => {
      await page.fill("input[type=search]", text);
      await settle(page);
      return page.textContent(".find .found");
    };
    const argv = (p) => (p.argv ?? []).join(" ");
    const found = (test) => `${processes.filter(test).length} found`;
    const bad = (p) => p.exit && (p.exit.code > 0 || p.exit.signal !== null);
    const program = (p) => p.execs.at(-1)?.argv[0].split("/").at(-1) ?? p.comm;
    assert.ok(processes.filter(bad).length > 0);
    assert.equal(await search("failed"), found(bad));
    assert.equal(await search("is:failed"), found(bad));
    assert.equal(
      await search("kernels -o"),
      found((p) => /kernels/.test(argv(p)) && /-o/.test(argv(p))),
    );
    assert.equal(
      await search('"kernels -o"'),
      found((p) => /kernels -o/.test(argv(p))),
    );
    assert.notEqual(await search("kernels -o"), await search('"kernels -o"'));
    assert.equal(
      await search("program:CC"),
      found((p) => program(p).includes("cc")),
    );
    assert.equal(
      await search('program:"cc1"'),
      found((p) => program(p) === "cc1"),
    );
    assert.equal(await search('program:"c1"'), "0 found");
    const pids = processes.slice(3, 6).map((p) => p.pid);
    assert.equal(
      await search(`pid:${pids} program:c`),
      found((p) => pids.includes(p.pid) && program(p).includes("c")),
    );
    // Steps by a part of their names, with the steps and the processes inside.
    const step = told.steps.find((one) => one.exit?.code > 0 && one.pid);
    const part = `step:${step.name.slice(1, -1)}`;
    assert.ok(Number.parseInt(await search(part)) >= Number.parseInt(await search(`step:"${step.name}"`)));
    assert.notEqual(await search(part), "0 found");
    assert.equal(await search(`step:"${step.name.slice(1)}"`), "0 found");
    const failing = Number.parseInt(await search(`${part} failed`));
    assert.ok(failing > 0 && failing < Number.parseInt(await search(part)), `${failing}`);
    await page.view("steps");
    const rows = await page.$$eval("#view-steps tbody tr[data-step] td:first-child", (all) =>
      all.map((row) => row.textContent),
    );
    assert.ok(rows.length > 0 && rows.some((row) => row.includes(step.name)), rows.join());
    await search("program:cc1 failed zzz");
    assert.equal(await page.locator("#view-steps tbody tr[data-step]").count(), 0);
    // The help lists each kind of term.
    await page.locator("header").click({ position: { x: 3, y: 3 } });
    await page.keyboard.press("?");
    const terms = await page.$$eval(".help .terms dt", (all) => all.map((one) => one.textContent));
    for (const kind of ["failed", "step:", "program:", "container:", "cgroup:", "pid:", "/expression/"])
      assert.ok(
        terms.some((term) => term.startsWith(kind)),
        kind,
      );
    page.calm();
  },

  async search_finds_text_and_expressions() {
    const { processes } = analysis("demo");
    const page = await open("demo", "#view=table");
    const found = () => page.textContent(".find .found");
    const search = async (text) => {
      await page.fill("input[type=search]", text);
      await settle(page);
    };
    const argv = (p) => (p.argv ?? []).join(" ");
    await search("kernels_3");
    const having = processes.filter((p) => argv(p).includes("kernels_3")).length;
    assert.ok(having > 1);
    assert.equal(await found(), `${having} found`);
    assert.equal(await page.locator("tbody tr[data-ix]").count(), having);
    await search("/cc1 .*sort\\.c/");
    assert.equal(await found(), "1 found");
    await search("/(/");
    assert.equal(await found(), "no valid expression");
    await search("program:cc1");
    assert.equal(await found(), `${processes.filter((p) => p.argv?.[0].endsWith("/cc1")).length} found`);
    await search("no such thing");
    assert.equal(await found(), "0 found");
    // Enter goes to the first match.
    await search("kernels_3");
    await page.press("input[type=search]", "Enter");
    await page.waitForSelector(".details:not([hidden])");
    assert.ok((await page.textContent(".details h2")).includes("kernels"));
    page.calm();
  },

  async an_address_keeps_what_is_seen() {
    const page = await open("demo", "#view=timeline&t=5000000000-9000000000&sel=60&q=cc1&wakeups=1");
    const see = async (page) => [
      await page.getAttribute("#tab-timeline", "aria-selected"),
      await page.textContent(".range"),
      await page.textContent(".details h2"),
      await page.inputValue("input[type=search]"),
      await page.getAttribute("#wakeups", "aria-pressed"),
    ];
    const first = await see(page);
    assert.equal(first[0], "true");
    assert.ok(first[1].startsWith("5.000 s – 9.000 s"), first[1]);
    assert.equal(first[3], "cc1");
    assert.equal(first[4], "true");
    const other = await open("demo", await page.evaluate(() => location.hash));
    assert.deepEqual(await see(other), first);
    // An address that is changed by hand, and one that makes no sense.
    await other.evaluate(() => (location.hash = "#view=table&sort=wall"));
    await other.waitForSelector("#view-table:visible");
    assert.equal(await other.getAttribute("th[aria-sort=descending]", "aria-sort"), "descending");
    const odd = await open("demo", "#view=x&t=9-&sel=99999&root=-7&rows=%E0%A4%A&sort=%3Cscript%3E&q=%2F(%2F");
    await odd.view("heatmap");
    odd.calm();
    other.calm();
    page.calm();
  },

  async the_sunburst_descends() {
    const { processes } = analysis("demo");
    const root = processes.find((p) => !processes.some((q) => q.pid === p.ppid));
    const children = processes.filter((p) => p.ppid === root.pid);
    const largest = children.reduce((a, b) => (a.tree.on_cpu_ns > b.tree.on_cpu_ns ? a : b));
    const page = await open("demo", "#view=tree");
    await settle(page);
    const place = async (share, degrees) => {
      const box = await page.locator(".sunburst canvas").boundingBox();
      const [r, a] = [(box.width / 2) * share, ((degrees - 90) * Math.PI) / 180];
      return [box.x + box.width / 2 + r * Math.cos(a), box.y + box.height / 2 + r * Math.sin(a)];
    };
    // The largest child begins at the top, around the middle.
    await page.mouse.click(...(await place(0.5, 20)));
    await page.waitForSelector(".scope .here");
    assert.equal(await page.textContent(".details .crumbs").then((t) => t.endsWith(`pid ${largest.pid}`)), true);
    assert.equal(await page.textContent(".scope > .dim:last-child"), `${largest.tree.processes} processes`);
    // The other views show that subtree.
    await page.view("table");
    const note = await page.textContent("#view-table [role=status]");
    assert.ok(note.startsWith(`${largest.tree.processes} of`) && note.includes("sums over all threads"), note);
    await page.view("tree");
    await page.mouse.click(...(await place(0.05, 0)));
    await settle(page);
    // The root's whole is the recording's.
    assert.equal(await page.locator(".scope > .dim:last-child").textContent(), `${processes.length} processes`);
    // And in the icicle.
    await page.locator(".icicle canvas").click({ position: { x: 12, y: 36 } });
    await page.waitForFunction(
      (n) => document.querySelector(".scope > .dim:last-child")?.textContent === `${n} processes`,
      largest.tree.processes,
    );
    page.calm();
  },

  async pointing_tells_what_it_is() {
    const { processes, trace } = analysis("demo");
    const longest = processes.reduce((a, b) => (a.on_cpu_ns >= b.on_cpu_ns ? a : b));
    const failed = processes.find((p) => p.exit?.code === 1);
    for (const [process, view] of [
      [longest, "heatmap"],
      [failed, "heatmap"],
      [longest, "timeline"],
      [failed, "timeline"],
    ]) {
      const page = await open(
        "demo",
        `#view=${view}&q=${process.pid}${view === "timeline" ? `&t=${process.start_ns}-${process.end_ns}` : ""}`,
      );
      await page.press("body", "n");
      await page.press("body", "Enter");
      await settle(page);
      const box = await page.locator(`#view-${view} .scroll canvas`).boundingBox();
      // In the row's name; in the lane, a little before the end, where the failure is marked.
      await page.mouse.move(...(view === "heatmap" ? [box.x + 30, box.y + 12] : [box.x + box.width - 60, box.y + 30]));
      const tip = await page.textContent(".tip:not([hidden])");
      for (const said of [
        `pid ${process.pid}`,
        process.argv[0].slice(0, 40),
        `from ${(process.start_ns / 1e9).toFixed(3)} s`,
        "wall ",
        `exit ${process.exit.code}`,
      ]) {
        assert.ok(tip.includes(said), `${view}: no "${said}" in "${tip}"`);
      }
      page.calm();
      await page.context().close();
    }
    // What was in a cell: the states' times add up to the cell's.
    const page = await open("demo", "#view=heatmap");
    const box = await page.locator("#view-heatmap .scroll canvas").boundingBox();
    const gutter = Math.min(260, Math.round(box.width * 0.22));
    const x = gutter + ((longest.start_ns + longest.wall_ns / 2) / trace.duration_ns) * (box.width - gutter);
    await page.mouse.move(box.x + x, box.y + 12);
    const cell = await page.textContent(".tip:not([hidden])");
    const ms = [...cell.matchAll(/(?:on CPU|run queue|blocked|sleep|unknown) ([\d.]+) (ms|µs)/g)].reduce(
      (sum, [, n, unit]) => sum + Number(n) / (unit === "ms" ? 1 : 1000),
      0,
    );
    const whole = (trace.duration_ns / 1e6 / (box.width - gutter)) * 6;
    assert.ok(Math.abs(ms - whole) < 1.5, `${ms} ms of ${whole} in "${cell}"`);
    page.calm();
  },

  async steps_lie_above_the_timeline() {
    const { processes, trace } = analysis("demo");
    const longest = processes.reduce((a, b) => (a.on_cpu_ns >= b.on_cpu_ns ? a : b));
    const object = processes.find((p) => p.pid === longest.ppid);
    const page = await open("demo", "#view=timeline");
    await settle(page);
    const box = await page.locator(".lane canvas").first().boundingBox();
    const x = box.x + ((longest.start_ns + longest.wall_ns / 2) / trace.duration_ns) * box.width;
    await page.mouse.move(x, box.y + 6);
    assert.match(await page.textContent(".tip:not([hidden])"), /^make -C .*target of a build.*run queue/);
    // One row below: the compiler's output, or its neighbour on the other CPU.
    const tips = [];
    for (const row of [1, 2]) {
      await page.mouse.move(x, box.y + 6 + 17 * row);
      tips.push(await page.textContent(".tip:not([hidden])"));
    }
    const output = object.argv[object.argv.indexOf("-o") + 1].split("/").at(-1);
    const row = tips.findIndex((tip) => tip.startsWith(output)) + 1;
    assert.ok(row > 0, `no ${output} in ${tips}`);
    await page.mouse.click(x, box.y + 6 + 17 * row);
    await settle(page);
    const [t0, t1] = (await hash(page)).t.split("-").map(Number);
    assert.ok(t0 <= object.end_ns && t1 - t0 < object.wall_ns * 1.2, `${t0} ${t1}`);
    page.calm();
  },

  // The table of steps against `--report steps`, its filters, and the way to a step's processes.
  async steps_and_tests_have_a_table() {
    for (const name of ["demo", "cargo"]) {
      const page = await open(name, "#view=steps");
      const {
        steps: { steps },
        processes,
      } = analysis(name);
      const told = steps.filter((step) => !step.moment);
      const tools = page.locator("#view-steps .toolbar");
      await tools.locator(".columns summary").click();
      for (const box of await tools.locator(".columns input").all()) await box.check();
      await tools.locator("text=Copy as CSV").click();
      const lines = (await page.evaluate(() => window.copied))
        .trim()
        .split("\n")
        .map((line) => line.split(","));
      const [head, ...rows] = lines;
      const column = (key) => head.indexOf(key);
      assert.equal(rows.length, told.length);
      const note = await page.textContent("#view-steps [role=status]");
      assert.ok(note.includes("run queue and waits: parts of the wall time"), note);
      const sorted = (all) => all.map(Number).sort((a, b) => a - b);
      for (const key of ["wall_ns", "on_cpu_ns", "critical_path_ns", "start_ns"]) {
        assert.deepEqual(sorted(rows.map((row) => row[column(key)])), sorted(told.map((step) => step[key])), key);
      }
      assert.deepEqual(
        sorted(rows.map((row) => row[column("path_run_queue_ns")])),
        sorted(told.map((step) => step.spent.run_queue_ns)),
        "run queue",
      );
      const walls = rows.map((row) => Number(row[column("wall_ns")]));
      assert.deepEqual(
        walls,
        [...walls].sort((a, b) => b - a),
        "the longest first",
      );
      const longest = told.reduce((a, b) => (a.wall_ns >= b.wall_ns ? a : b));
      const parts = longest.spent;
      const waits = ["disk_ns", "network_ns", "sleep_ns"].reduce((sum, key) => sum + (parts[key] ?? 0), 0);
      assert.ok(Number(rows[0][column("waits_ns")]) >= waits, `${rows[0]} beside ${JSON.stringify(parts)}`);
      // By time, by failure.
      await page.selectOption("#view-steps select[aria-label='At least this long']", "1000000000");
      await settle(page);
      const count = async () => Number((await page.getAttribute("#view-steps table", "aria-rowcount")) - 1);
      assert.equal(await count(), told.filter((step) => step.wall_ns >= 1e9).length);
      await page.selectOption("#view-steps select[aria-label='At least this long']", "0");
      await page.click("#view-steps >> text=Failed only");
      await settle(page);
      const bad = told.filter((step) => step.exit && (step.exit.code !== 0 || step.exit.signal !== null));
      assert.equal(await count(), bad.length);
      await page.click("#view-steps >> text=Failed only");
      await settle(page);
      // A row leads to its time and its process.
      await page.click("#view-steps tbody tr[data-step] td:last-child");
      await page.waitForSelector("#view-timeline:visible");
      await settle(page);
      const { q, sel } = await hash(page);
      assert.equal(q, `step:"${longest.name}"`);
      assert.equal(processes[Number(sel)].pid, longest.pid);
      page.calm();
      await page.context().close();
    }
  },

  // One bar a step over time, by its start; how many ran at once is what a count at each moment says.
  async steps_are_drawn_over_time() {
    const page = await open("demo", "#view=steps&chart=1");
    await settle(page);
    const {
      steps: { steps },
      trace,
    } = analysis("demo");
    const inner = steps.filter((step) => step.wall_ns > 0 && !steps.some((other) => other.parent === step.id));
    inner.sort((a, b) => a.start_ns - b.start_ns || a.id - b.id);
    const box = await page.locator("#view-steps .scroll canvas").boundingBox();
    for (const n of [0, 5, 12]) {
      await page.mouse.move(
        box.x + ((inner[n].start_ns + inner[n].wall_ns / 2) / trace.duration_ns) * box.width,
        box.y + 4 + 20 * n + 7,
      );
      const tip = await page.textContent(".tip");
      assert.ok(tip.startsWith(inner[n].name), `${tip}, not ${inner[n].name}`);
      const moments = range(0, 2000).map((at) => inner[n].start_ns + ((at + 0.5) / 2000) * inner[n].wall_ns);
      const mean =
        moments.reduce((sum, t) => sum + inner.filter((step) => step.start_ns <= t && t < step.end_ns).length, 0) /
        moments.length;
      const [, told] = /([\d.]+) steps at once/.exec(tip);
      assert.ok(Math.abs(Number(told) - mean) < 0.07, `${told}, not ${mean}`);
    }
    // By the Makefile gen makes kernels_0.c, and nothing that the others make goes into gen.
    for (const [name, needs] of [
      ["kernels_0.o", true],
      ["gen", false],
    ]) {
      const n = inner.findIndex((step) => step.name === name);
      await page.mouse.move(
        box.x + ((inner[n].start_ns + inner[n].wall_ns / 2) / trace.duration_ns) * box.width,
        box.y + 4 + 20 * n + 7,
      );
      const tip = await page.textContent(".tip");
      assert.equal(/Names files of gen/.test(tip), needs, tip);
      assert.equal(/Its files are named by .*\.o/.test(tip), !needs, tip);
      assert.ok(!tip.includes("make -C"), tip);
    }
    await page.mouse.click(
      box.x + ((inner[5].start_ns + inner[5].wall_ns / 2) / trace.duration_ns) * box.width,
      box.y + 4 + 20 * 5 + 7,
    );
    await page.waitForSelector("#view-timeline:visible");
    await settle(page);
    assert.equal((await hash(page)).q, `step:"${inner[5].name}"`);
    page.calm();
  },

  // A bar has its colours where things happened: a wait for a CPU is not drawn after all of the work.
  async a_bar_has_what_happened_when() {
    const page = await open("demo", "#view=steps&chart=1&least=1000000000");
    await settle(page);
    const [early, all, on, coloured] = await page.evaluate(() => {
      const canvas = document.querySelector("#view-steps .scroll canvas");
      const { width, height } = canvas;
      const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
      const style = getComputedStyle(document.documentElement);
      const hex = (at) =>
        `#${[data[at], data[at + 1], data[at + 2]].map((v) => v.toString(16).padStart(2, "0")).join("")}`;
      const names = new Map(["on", "wait"].map((name) => [style.getPropertyValue(`--${name}`).trim(), name]));
      let [early, all, on, coloured] = [0, 0, 0, 0];
      for (let top = 4; top + 14 < height; top += 20) {
        const waits = [];
        let last = -1;
        for (let x = 0; x < width; x++)
          for (let y = top; y < top + 14; y++) {
            const name = names.get(hex((y * width + x) * 4));
            if (name === "wait") waits.push(x);
            if (name === "on") [last, on] = [x, on + 1];
            if (name) coloured++;
          }
        early += waits.filter((x) => x < last).length;
        all += waits.length;
      }
      return [early, all, on, coloured];
    });
    assert.ok(all > 200 && early > all / 2, `${early} of ${all} before the end of the work`);
    // The shares are those of the report.
    const { steps } = analysis("demo").steps;
    const inner = steps.filter((step) => step.wall_ns >= 1e9 && !steps.some((other) => other.parent === step.id));
    const sum = (key) => inner.reduce((sum, step) => sum + (step.spent[key] ?? 0), 0);
    const wanted = sum("on_cpu_ns") / (sum("on_cpu_ns") + sum("run_queue_ns"));
    assert.ok(Math.abs(on / coloured - wanted) < 0.1, `${on / coloured}, not ${wanted}`);
    page.calm();
  },

  // The slowest steps and all failed ones are on the first screen.
  async the_overview_has_the_slowest_steps() {
    const page = await open("demo");
    const { steps } = analysis("demo").steps;
    const inner = steps.filter((step) => !step.moment && !steps.some((other) => other.parent === step.id));
    const slow = inner
      .sort((a, b) => b.wall_ns - a.wall_ns)
      .slice(0, 5)
      .map((step) => step.name);
    const shown = await page.$$eval("#slowest .row .bar-name", (all) => all.map((one) => one.textContent));
    assert.deepEqual(shown.slice(0, 5), slow);
    const bad = steps.filter((step) => step.exit && step.exit.code > 0).map((step) => `✕ ${step.name}`);
    assert.ok(bad.length > 0);
    assert.deepEqual(shown.slice(5), bad);
    await page.click("#slowest .row");
    await settle(page);
    assert.equal((await hash(page)).q, `step:"${slow[0]}"`);
    page.calm();
  },

  // What two failures led to stands once, after both; a long title has two lines, and a button copies the whole.
  async a_failure_that_several_led_to_stands_once() {
    const page = await open("twice");
    const { processes } = analysis("twice");
    const rows = await page.$$eval("#failed .row .bar-name", (all) => all.map((one) => one.textContent));
    assert.equal(rows.filter((row) => /^✕ ld /.test(row)).length, 2, rows.join("\n"));
    const command = await page.textContent("#command");
    assert.equal(rows.filter((row) => row.startsWith("→ ") && row.endsWith(command)).length, 1, rows.join("\n"));
    assert.match(rows.at(-1), /^→/);
    const ix = processes.findIndex((p) => p.argv?.[0] === "ld");
    await page.evaluate((ix) => (location.hash = `#view=table&sel=${ix}`), ix);
    await settle(page);
    const title = page.locator(".details h2");
    const high = async () => (await title.boundingBox()).height;
    const two = await high();
    const line = await title.evaluate((title) => parseFloat(getComputedStyle(title).lineHeight));
    assert.ok(two <= 2 * line + 1, `${two}, lines of ${line}`);
    if (await page.isVisible(".details .whole-title")) {
      await page.click(".details .whole-title");
      assert.ok((await high()) > two);
      await page.click(".details .whole-title");
      assert.equal(await high(), two);
    }
    await page.click(".details .copy");
    assert.equal(await page.evaluate(() => window.copied), processes[ix].argv.join(" "));
    await page.click(".top .copy");
    assert.equal(await page.evaluate(() => window.copied), command);
    page.calm();
  },

  // Questions that people come with are at most one click away from the overview.
  async answers_are_one_click_away() {
    const { steps } = analysis("demo").steps;
    const told = steps.filter((step) => !step.moment);
    const most = (rows, of) => rows.reduce((a, b) => (of(a) >= of(b) ? a : b)).name;
    for (const [link, wanted] of [
      [
        "All tests",
        most(
          told.filter((step) => step.kind === "test"),
          (step) => step.wall_ns,
        ),
      ],
      ["Those with the longest run-queue waits", most(told, (step) => step.spent.run_queue_ns)],
      ["All that failed", told.find((step) => step.exit?.code > 0).name],
    ]) {
      const page = await open("demo");
      await page.click(`#slowest >> text=${link}`);
      await settle(page);
      const first = await page.textContent("#view-steps tbody tr[data-step] td:first-child");
      assert.ok(first.includes(wanted), `${link}: ${first}, not ${wanted}`);
      page.calm();
      await page.context().close();
    }
    const page = await open("cargo");
    const { processes } = analysis("cargo");
    const programs = new Map();
    for (const p of processes) programs.set(p.comm, (programs.get(p.comm) ?? 0) + p.on_cpu_ns);
    if (programs.size > 8) {
      await page.click("text=All programs");
      await settle(page);
      assert.ok((await page.locator("#view-table tbody tr[data-group]").count()) > 8);
    }
    page.calm();
    await page.context().close();
    // How much of the CPU time compiling is, and linking.
    const roles = await open("demo");
    assert.match(await roles.textContent("#roles"), /^in all: compilers [\d.]+ s, \d+ % · linkers [\d.]+ ms, <?\d+ %$/);
    roles.calm();
  },

  // Schedules on other machines are no shorter than the work allows, and take about the recorded time on its own CPUs.
  async a_forecast_simulates_other_machines() {
    const page = await open("predict");
    const { trace, processes } = analysis("demo");
    const cpu = processes.reduce((sum, process) => sum + process.on_cpu_ns, 0);
    const walls = async () => {
      const text = await page.textContent("#forecast");
      const [, was, is] = /^([\d.]+) s → ([\d.]+) s/.exec(text);
      return [Number(was) * 1e9, Number(is) * 1e9];
    };
    const [was, same] = await walls();
    assert.ok(Math.abs(was - trace.duration_ns) < 0.05 * was && Math.abs(same - was) < 0.1 * was, `${was} ${same}`);
    await page.click(".choices button >> nth=0");
    const [, one] = await walls();
    assert.ok(one >= 0.95 * cpu && one > 1.3 * was, `${one}, work ${cpu}`);
    // By the keys of the sliders.
    await page.focus("[aria-label=CPUs]");
    for (let n = 0; n < 3; n++) await page.keyboard.press("ArrowRight");
    await page.focus("[aria-label='Jobs at once']");
    for (let n = 0; n < 4; n++) await page.keyboard.press("ArrowRight");
    const [, eight] = await walls();
    // The longest compilation and what follows it remain.
    assert.ok(eight < 0.7 * was && eight >= cpu / 8, `${eight}`);
    assert.equal(await page.textContent(".choices [aria-pressed=true]"), `8 CPUs${(eight / 1e9).toFixed(2)} s`);
    assert.ok((await page.locator(".lanes i").count()) > 60);
    page.calm();
  },

  // Beside a wide forecast stands why, as beside its row in the table; the page is that of other numbers too.
  async a_wide_forecast_says_why() {
    const page = await open("predict");
    const wide = () => page.locator("#wide").isVisible();
    assert.equal(await wide(), false);
    page.calm();
    const other = readFileSync(`${directory}/predict.html`, "utf8").replace(/"wide":false/g, '"wide":true');
    const beside = await (await newContext()).newPage();
    await beside.setContent(other);
    await beside.waitForSelector("html[data-ready]");
    assert.match(await beside.textContent("#wide"), /^beside this load the recording does not allow this forecast:/);
    assert.ok(await beside.locator("#wide").isVisible());
  },

  // A number of steps has its word or is left out: "108 s…" would be a time. What else is too long loses its middle.
  async numbers_of_short_steps_are_whole() {
    const path = new URL("../src/path.ts", import.meta.url).pathname;
    const bundled = await build({ entryPoints: [path], bundle: true, write: false, format: "esm" });
    const code = Buffer.from(bundled.outputFiles[0].contents).toString("base64");
    const { fitName } = await import(`data:text/javascript;base64,${code}`);
    const ctx = { font: "", measureText: (text) => ({ width: text.length * 8 }) };
    const data = {
      doc: {
        path: {
          owners: [{ name: "tests.test_compute test_inverted[dense-1000]", brief: "test_inverted[dense-1000]" }],
        },
      },
    };
    const shown = (several, width) => fitName(ctx, data, { owner: 0, process: 0, several }, width);
    assert.equal(shown(108, 2000), "108 short steps, longest in tests.test_compute test_inverted[dense-1000]");
    assert.equal(shown(108, 15 * 8), "108 short steps");
    assert.equal(shown(108, 15 * 8 - 4), "");
    assert.equal(shown(1, 20 * 8), "tests.t…[dense-1000]");
    assert.equal(shown(1, 6 * 8), "test_…");
    // What tells a short name from its neighbours is its brief name, which the data has; a part of a number tells nothing.
    const cut = (name, brief, letters) => {
      const data = { doc: { path: { owners: [{ name, brief }] } } };
      return fitName(ctx, data, { owner: 0, process: 0, several: 1 }, letters * 8);
    };
    for (const [name, brief, letters, text] of [
      ["build/mod5.o", "mod5.o", 12, "build/mod5.o"],
      ["build/mod5.o", "mod5.o", 8, "…mod5.o"],
      ["build/mod5.o", "mod5.o", 6, "mod5.o"],
      ["cc1 mod10.c", "mod10.c", 5, ""],
      ["test_io test_io[12]", "test_io[12]", 9, "test_io[…"],
      ["rustc cc", "cc", 4, "…cc"],
      ["tests/io.py", "io.py", 5, "io.py"],
      ["rustc serde_json", "serde_json", 7, "serde_…"],
      ["zstd-sys (run build script)", null, 7, "zstd-s…"],
      ["zstd-sys (run build script) › 7c99…-zstd_lazy.o", "7c99f00d-zstd_lazy.o", 8, "…_lazy.o"],
      // No part of a name is taken for its brief name: a shell's script may end with any word.
      ["sh -c 'ls x.c'", null, 7, ""],
      ["sh -c 'wc parts.c'", null, 14, "sh -c 'wc par…"],
    ])
      assert.equal(cut(name, brief, letters), text, name);
  },

  // What stands at a glance: tools where their paths tell the version.
  async versions_are_told_at_a_glance() {
    const page = await open("demo");
    const glance = await page.textContent("#glance");
    assert.ok(/make: 2 jobs · gcc \d+ · 2 CPUs/.test(glance), glance);
    page.calm();
  },

  // The sums of a measured range are those of the overview of that range, and the view stays.
  async a_range_answers_in_place() {
    const { from, to } = analysis("part-span");
    const page = await open("demo", `#view=timeline&ruler=${from}-${to}`);
    await settle(page);
    const list = async (title) =>
      Object.fromEntries(
        await page.$$eval(
          ".range-sums section",
          (all, title) => {
            const section = all.find((one) => one.querySelector("h3").textContent === title);
            return [...section.querySelectorAll(".row")].map((row) => [
              row.querySelector(".bar-name").textContent,
              Number(row.dataset.ns),
            ]);
          },
          title,
        ),
      );
    const part = analysis("part");
    const cc1 = part.processes.filter((p) => p.comm === "cc1").reduce((sum, p) => sum + p.on_cpu_ns, 0);
    const programs = await list("CPU time by program");
    // Time whose events are missing has no place in a range.
    assert.ok(Math.abs(programs.cc1 - cc1) < 0.01 * cc1, `${programs.cc1} ${cc1}`);
    const path = await list("Critical path");
    const sum = Object.values(path).reduce((a, b) => a + b, 0);
    assert.ok(Math.abs(sum - (to - from)) < 0.01 * (to - from), `${sum}`);
    const { steps } = analysis("demo").steps;
    const steps_ = await list("Steps and tests");
    for (const [name, ns] of Object.entries(steps_)) {
      const step = steps.find((one) => one.name === name && one.start_ns < to && one.end_ns > from);
      assert.ok(Math.abs(ns - (Math.min(step.end_ns, to) - Math.max(step.start_ns, from))) < 2, name);
    }
    assert.ok(Object.keys(steps_).length > 1);
    // A search narrows it; it goes when it is closed.
    await page.fill(".find input", "program:cc1");
    await page.waitForFunction(() => document.querySelector(".range-sums").textContent.includes("search program:cc1"));
    await page.waitForFunction(
      () =>
        document.querySelectorAll(".range-sums section .bar-name")[1]?.closest("section").querySelector("h3")
          .textContent !== "CPU time by program",
    );
    assert.ok(await page.isVisible("#view-timeline"));
    await page.keyboard.press("Escape");
    await page.press("body", "x");
    await settle(page);
    assert.equal(await page.isVisible(".range-sums"), false);
    page.calm();
  },

  // The first screen and the lane have the steps of the report, by program with one key; its waits are those on the path.
  async the_path_is_shown_by_step_or_by_program() {
    for (const name of ["demo", "build"]) {
      const { by_step, shares, steps } = analysis(name).critical_path.path;
      const page = await open(name);
      const rows = () =>
        page.$$eval("#path .row", (all) =>
          all.map((row) => [row.querySelector(".bar-name").textContent, row.querySelector(".num").textContent]),
        );
      const steps_ = by_step.filter(({ is_step }) => is_step);
      const sum = steps_.reduce((all, { time_ns }) => all + time_ns, 0);
      const whole = by_step.reduce((all, { time_ns }) => all + time_ns, 0);
      const longest = Math.max(0, ...steps_.map(({ time_ns }) => time_ns));
      const more = steps_.length > 1 && sum >= Math.floor(whole / 2) && longest <= whole - Math.floor(whole / 5);
      if (!more) await page.press("body", "b");
      await settle(page);
      assert.deepEqual(
        (await rows()).map(([title]) => title),
        by_step.slice(0, 8).map(({ name }) => name),
      );
      await page.press("body", "b");
      await settle(page);
      assert.equal((await rows()).length, Math.min(8, shares.length));
      assert.notDeepEqual((await rows())[0], [by_step[0].name, ""]);
      await page.press("body", "b");
      await settle(page);
      const waits = Object.fromEntries(
        await page.$$eval("#waits .row", (all) =>
          all.map((row) => [row.querySelector(".bar-name").textContent, Number(row.dataset.ns)]),
        ),
      );
      const queued = steps.reduce((all, { run_queue_ns }) => all + run_queue_ns, 0);
      assert.equal(waits["run queue"] ?? 0, queued, name);
      const asleep = steps.reduce((all, { sleep_ns }) => all + sleep_ns, 0);
      assert.equal(waits.sleep ?? 0, asleep, name);
      assert.ok(!("lock" in waits) && !("child" in waits), Object.keys(waits).join());
      // The longest stay of the first row.
      await page.click("#path .row >> nth=0");
      await settle(page);
      assert.equal((await hash(page)).view, "timeline");
      assert.ok(await page.isVisible(".step-card"));
      page.calm();
      await page.context().close();
    }
  },

  // A part of the recording has the names and the colours of the whole.
  async the_path_keeps_its_names_and_colours_in_a_part() {
    const list = async (state) => {
      const page = await open("demo", state);
      await settle(page);
      const card = page.locator(".card", { hasText: "Critical path: what set the build time" });
      const rows = await card
        .locator(".row")
        .evaluateAll((all) =>
          all.map((row) => [row.querySelector(".bar-name").textContent, row.querySelector(".bar").className]),
        );
      page.calm();
      return rows;
    };
    const whole = await list("#programs=1");
    const { duration_ns } = analysis("demo").trace;
    const part = await list(`#programs=1&t=1000000-${duration_ns}`);
    assert.ok(whole.length > 5 && whole.some(([name, color]) => name.startsWith("sleep in ") && color === "bar s3"));
    assert.deepEqual(Object.fromEntries(part), Object.fromEntries(whole));
  },

  // Programs and steps in table and tree are the sums of their processes.
  async processes_are_grouped() {
    const { processes } = analysis("demo");
    const whole = processes.reduce((sum, p) => sum + p.on_cpu_ns, 0);
    const page = await open("demo", "#view=table&rows=program");
    await settle(page);
    await page.click("#view-table .tools:visible >> text=Copy as CSV");
    const [head, ...rows] = (await page.evaluate(() => window.copied))
      .trim()
      .split("\n")
      .map((line) => line.split(","));
    const cpu = (row) => Number(row[head.indexOf("on_cpu_ns")]);
    assert.equal(
      rows.reduce((sum, row) => sum + cpu(row), 0),
      whole,
    );
    const cc1 = processes.filter((p) => p.comm === "cc1").reduce((sum, p) => sum + p.on_cpu_ns, 0);
    assert.equal(cpu(rows.find((row) => row[0] === "cc1")), cc1);
    await page.click("#view-table [data-group=cc1]");
    await settle(page);
    const { q } = await hash(page);
    assert.equal(q, 'program:"cc1"');
    // A column that groups do not have sorts none of them: CPU time does.
    await page.evaluate(() => (location.hash = "#view=table&rows=program&sort=pid"));
    await settle(page);
    assert.equal(await page.getAttribute("#view-table [data-group]", "data-group"), "cc1");
    assert.equal(await page.locator('#view-table th[aria-sort="descending"]:visible').textContent(), "CPU ↓");
    // The same in the tree: groups first, the largest on top.
    await page.evaluate(() => (location.hash = "#view=tree&rows=step"));
    await settle(page);
    const names = await page.$$eval(".tree > li > .line > .name", (all) => all.map((one) => one.textContent));
    const { steps } = analysis("demo").steps;
    assert.ok(
      names.length > 5 &&
        names.every(
          (name) => name === "no step" || steps.some((step) => step.name === name.replace(/, \d+ failed$/, "")),
        ),
      names.join(),
    );
    const item = page.locator(".tree > li").first();
    assert.equal(await item.getAttribute("aria-expanded"), "false");
    await item.locator(".line").first().click();
    const inner = await page.locator(".tree > li").first().locator("li").count();
    assert.ok(inner > 0);
    page.calm();
  },

  // A question of configure that is answered with no is no fault.
  async probes_are_dim() {
    const page = await open("conf", "#view=timeline");
    await settle(page);
    await page.evaluate(() => (location.hash = "#view=table&q=is:failed"));
    await settle(page);
    const rows = await page.$$eval("#view-table tbody tr[data-ix]", (all) => all.map((row) => row.className));
    assert.ok(rows.includes("") && rows.includes("failed"), rows.join());
    page.calm();
  },

  // On a phone the buttons beside a long command keep their width, and a failed step is red without its column of ends.
  async a_phone_shows_buttons_and_what_failed() {
    const page = await open("demo", "#view=timeline", { viewport: { width: 390, height: 844 } });
    const widths = await page.$$eval(".top .icon:not([hidden])", (all) =>
      all.map((icon) => icon.getBoundingClientRect().width),
    );
    assert.ok(widths.length >= 2 && widths.every((width) => width >= 32), widths.join());
    page.calm();
    await page.context().close();
    const steps = await open("demo", "#view=steps&falling=0", { viewport: { width: 390, height: 844 } });
    const { red, names } = await steps.evaluate(() => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = "var(--bad)";
      const red = getComputedStyle(probe).color;
      const links = [...document.querySelectorAll("#view-steps td.text a")];
      return { red, names: links.map((link) => [link.textContent, getComputedStyle(link).color]) };
    });
    assert.ok(names.length > 5, names.join());
    for (const [name, color] of names) assert.equal(color === red, name.includes("fails.sh"), name);
    steps.calm();
  },
  // What makes a page's numbers doubtful stands in a box with room around it, on a forecast's page, too.
  async warnings_stand_in_a_box() {
    for (const name of ["cut", "predict-failing"]) {
      const page = await open(name);
      const box = await page.evaluate(() => {
        const warned = document.querySelector(".warned");
        const [outer, text] = [warned, warned.querySelector("span")].map((one) => one.getBoundingClientRect());
        return {
          left: outer.left,
          inside: text.left - outer.left,
          above: text.top - outer.top,
          edge: innerWidth - outer.right,
        };
      });
      assert.ok(box.left >= 8 && box.edge >= 8, `${name}: ${JSON.stringify(box)}`);
      assert.ok(box.inside >= 8 && box.above >= 4, `${name}: ${JSON.stringify(box)}`);
      page.calm();
      await page.context().close();
    }
  },
  // A canvas gets its size once, and the first view draws the strip once: a new bitmap a frame costs more than what is
  // drawn on it.
  async a_canvas_keeps_its_bitmap() {
    const context = await newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    await page.addInitScript(() => {
      window.sized = new Map();
      const { set, get } = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
      Object.defineProperty(HTMLCanvasElement.prototype, "width", {
        get,
        set(width) {
          if (this.isConnected) window.sized.set(this, (window.sized.get(this) ?? 0) + 1);
          set.call(this, width);
        },
      });
    });
    const sized = () => page.evaluate(() => [...window.sized.values()]);
    await page.goto(url("demo"));
    await page.waitForSelector("html[data-ready]");
    await settle(page);
    assert.deepEqual(await sized(), [1], "the strip alone, once");
    await page.click("#tab-timeline");
    await settle(page);
    for (let times = 0; times < 3; times++) await page.keyboard.press("+");
    await settle(page);
    // The panel of sums has come: the plot keeps its width.
    await page.waitForSelector(".range-sums h2");
    await settle(page);
    await page.evaluate(() => window.sized.clear());
    for (const key of ["d", "a", "d", "a"]) {
      await page.keyboard.press(key);
      await settle(page);
    }
    // The lane of steps alone may need other rows.
    const after = await sized();
    assert.ok(after.length <= 1, `${after} in four frames`);
  },
  // axe finds nothing in any view, light or dark, wide or narrow.
  async axe_is_clean() {
    const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
    for (const [name, colorScheme, width] of [
      ["stacks", "light", 1280],
      ["demo", "dark", 390],
      ["demo", "light", 1024],
    ]) {
      const page = await open(name, "", { colorScheme, viewport: { width, height: 800 } });
      // The page's policy lets in no script but its own; this one is not of the page.
      await page.evaluate(axe);
      const views = await page.$$eval("[role=tab]", (all) => all.map((tab) => tab.id.slice(4)));
      assert.ok(views.includes(name === "demo" ? "steps" : "stacks"), views.join());
      for (const state of [
        ...views.map((view) => `view=${view}`),
        "view=steps&chart=1",
        "view=timeline&sel=0&t=0-900000000",
        "view=tree&rows=program",
        "view=steps&order=path",
        "view=table&sort=max_rss",
      ]) {
        await page.evaluate((hash) => (location.hash = hash), state);
        await settle(page);
        // Its rule for contrasts takes as long as all others together.
        const found = await page.evaluate(async () =>
          (
            await axe.run(document, { resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } } })
          ).violations.map(
            ({ id, nodes }) =>
              `${id}: ${nodes
                .slice(0, 3)
                .map((node) => node.html.slice(0, 160))
                .join("\n")}`,
          ),
        );
        assert.deepEqual([...found, ...(await poor(page))], [], `${name} ${colorScheme} ${state}`);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${state}: sideways`);
        if (width < 400 && name === "demo") {
          // The column that sorts is in sight.
          const sorting = page.locator('.view:not([hidden]) th[aria-sort]:not([aria-sort="none"]):visible');
          assert.equal(
            (await sorting.count()) > 0,
            /^view=(table|steps(&order.*)?)\b/.test(state) && !state.includes("chart"),
            state,
          );
          for (const one of await sorting.all()) {
            const { x, width: wide } = await one.boundingBox();
            assert.ok(x >= 0 && x + wide <= width, `${state}: ${x} ${wide}`);
          }
        }
      }
      page.calm();
      await page.context().close();
    }
  },

  // Canvases are named, show that they have the keys, and what is selected is said.
  async a_selection_is_said() {
    const page = await open("demo", "#view=timeline");
    await settle(page);
    await page.locator("#view-timeline .scroll canvas").focus();
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Tab");
    assert.notEqual(
      await page.locator("#view-timeline .scroll canvas").evaluate((one) => getComputedStyle(one).outlineStyle),
      "none",
    );
    await page.keyboard.press("j");
    await settle(page);
    const { processes } = analysis("demo");
    const { sel } = await hash(page);
    assert.ok((await page.textContent("#said[role=status]")).includes(`pid ${processes[Number(sel)].pid},`));
    for (const one of await page.locator("canvas").all()) {
      assert.ok(await one.getAttribute("role"));
      assert.ok(await one.getAttribute("aria-label"));
    }
    await page.press("body", "Escape");
    await settle(page);
    assert.equal(await page.textContent("#said"), "");
    page.calm();
  },

  // The timeline begins in the upper 300 px, of a window of any height.
  async the_timeline_begins_high() {
    for (const [width, height] of [
      [1440, 900],
      [1366, 650],
    ]) {
      const page = await open("demo", "#view=timeline", { viewport: { width, height } });
      await settle(page);
      const { y } = await page.locator("#view-timeline .scroll").boundingBox();
      assert.ok(y < 300, `${y} of ${height}`);
      page.calm();
      await page.context().close();
    }
  },

  async lanes_are_as_the_rows_after_a_gesture() {
    for (const view of ["timeline", "heatmap"]) {
      const page = await open("fsync", `#view=${view}`);
      await settle(page);
      // The strip with the shown span, the lanes, the axis and the rows.
      const drawn = () =>
        page.evaluate((view) => {
          const canvases = [...document.querySelectorAll(`#view-${view} canvas`)].filter((one) =>
            one.checkVisibility(),
          );
          const { left, width } = document.querySelector(".strip .window").style;
          return [
            ...canvases.map((one) => one.toDataURL()),
            left,
            width,
            document.querySelector(".range").textContent,
          ].concat(document.querySelector(`#view-${view} .axis`).outerHTML);
        }, view);
      // A step in each frame, and in every third one.
      for (const [steps, frames] of [
        [7, 1],
        [8, 1],
        [5, 3],
        [6, 3],
      ]) {
        const before = await drawn();
        await page.evaluate(
          ({ view, steps, frames }) =>
            new Promise((done) => {
              const canvas = document.querySelector(`#view-${view} .scroll canvas`);
              const { left, top, width } = canvas.getBoundingClientRect();
              const next = (n) => {
                if (n === 0) return done();
                requestAnimationFrame(() => next(n - 1));
                if (n % frames > 0) return;
                const place = { clientX: left + width * 0.6, clientY: top + 30, deltaY: -9, ctrlKey: true };
                canvas.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ...place }));
              };
              next(steps * frames);
            }),
          { view, steps, frames },
        );
        await settle(page);
        const after = await drawn();
        assert.notDeepEqual(after, before);
        // The same time anew.
        await page.setViewportSize({ width: 1200, height: 800 });
        await settle(page);
        await page.setViewportSize({ width: 1280, height: 800 });
        await settle(page);
        const anew = await drawn();
        after.forEach((one, at) => assert.equal(one === anew[at], true, `${view}, ${steps} steps: picture ${at}`));
      }
      page.calm();
      await page.context().close();
    }
  },

  async wake_ups_are_drawn_on_demand() {
    const { processes } = analysis("demo");
    const longest = processes.reduce((a, b) => (a.on_cpu_ns >= b.on_cpu_ns ? a : b));
    const page = await open("demo", `#view=timeline&q=${longest.ppid}`);
    // The pixels that are not as when last asked, and those of the arrows' colour.
    const changed = () =>
      page.evaluate(() => {
        const canvas = document.querySelector("#view-timeline .scroll canvas");
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
        copy.drawImage(canvas, 0, 0);
        const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
        const accent = parseInt(
          getComputedStyle(document.documentElement).getPropertyValue("--accent").trim().slice(1),
          16,
        );
        const pixels = Array.from(
          { length: data.length / 4 },
          (_, n) => (data[4 * n] << 16) | (data[4 * n + 1] << 8) | data[4 * n + 2],
        );
        const before = globalThis.before ?? pixels;
        globalThis.before = pixels;
        const count = (is) => pixels.reduce((n, pixel, at) => n + is(pixel, at), 0);
        const differs = (pixel, at) => pixel !== before[at];
        return {
          pixels: count(differs),
          accent: count((pixel) => pixel === accent),
          drawn: count((pixel, at) => differs(pixel, at) && pixel === accent),
        };
      });
    assert.ok(await page.isDisabled("#wakeups"));
    await page.press("body", "n");
    await page.waitForSelector(".details:not([hidden])");
    await settle(page);
    const selected = await changed();
    await page.press("body", "e");
    await settle(page);
    assert.equal(await page.getAttribute("#wakeups", "aria-pressed"), "true");
    // Most of a line is mixed with what it crosses: between two columns of pixels.
    const arrows = await changed();
    assert.ok(arrows.pixels > 60 && arrows.drawn > 0, JSON.stringify([selected, arrows]));
    await page.click("#wakeups");
    await settle(page);
    const { pixels, accent } = await changed();
    assert.deepEqual({ pixels, accent }, { pixels: arrows.pixels, accent: selected.accent });
    page.calm();
  },

  async hostile_names_are_only_text() {
    const page = await open("hostile");
    for (const view of ["heatmap", "timeline", "tree", "stacks", "table"]) await page.view(view);
    const rows = await csv(page);
    const argv = rows.map((row) => row.argv).join("\n");
    for (const shown of [
      "<script>window.owned=1</script>",
      "</script><img src=x onerror=window.owned=1>",
      "\\u{2028}",
      "\\u{202e}",
      "\\xff\\xfe",
      "{{script}}",
      "=HYPERLINK",
    ]) {
      assert.ok(argv.includes(shown), `${shown} in ${argv.slice(0, 900)}`);
    }
    // Functions with such names, in the list, as the chosen one, and under the pointer.
    const { flame } = analysis("hostile");
    assert.ok(flame.rows.length >= 9);
    await page.evaluate(() => (location.hash = "#view=stacks&roots=process"));
    await settle(page);
    const names = await page.$$eval(".functions tbody .link", (all) => all.map((link) => link.textContent));
    // JSON has the names as they are; the page shows their hidden characters.
    assert.equal(names.length, flame.rows.length);
    const plain = flame.rows.map((row) => row.function).filter((name) => /^[ -~]*$/.test(name));
    assert.deepEqual(
      plain.filter((name) => !names.includes(name)),
      [],
    );
    assert.ok(names.every((name) => !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name)));
    assert.ok(
      names.includes("<script>window.owned=1</script>") && names.some((name) => name.includes("\\u{202e}")),
      names.join("\n"),
    );
    const { binary } = flame.rows[0];
    for (const [fn, name] of names.entries()) {
      await page.locator(".functions tbody .link").nth(fn).click();
      await settle(page);
      assert.ok((await page.textContent("#function")).startsWith(`${name} in ${binary}: self `));
      await page.hover("#view-stacks canvas", { position: { x: 20, y: 10 } });
      await page.keyboard.press("Escape");
      await settle(page);
    }
    await page.fill("#find", "<script>");
    await settle(page);
    assert.match(await page.textContent("#highlighted"), /^2 functions, /);
    // Select each, so that it is in the details, the list and the table.
    for (let ix = 0; ix < rows.length; ix++) {
      await page.evaluate((ix) => (location.hash = `#view=tree&sel=${ix}&root=${ix}`), ix);
      await settle(page);
    }
    const state = await page.evaluate(() => ({
      owned: window.owned,
      scripts: document.scripts.length,
      images: document.images.length,
      odd: /[\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f]/.test(document.documentElement.outerHTML),
    }));
    assert.deepEqual(state, { owned: undefined, scripts: 4, images: 0, odd: false });
    assert.ok((await page.title()).includes("<script>"));
    // The policy holds: what somebody would get in does not run.
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.owned = 2";
      document.body.append(script);
      document.body.insertAdjacentHTML(
        "beforeend",
        "<img src=x onerror='window.owned=3'><iframe src='https://example.com/'></iframe>",
      );
    });
    await page.waitForTimeout(200);
    assert.equal(await page.evaluate(() => window.owned), undefined);
    // Firefox tells of a request that its policy then blocks.
    const policy = firefox ? /Content-Security-Policy|^request: https:\/\/example.com\/$/ : /Content Security Policy/;
    const said = page.said.filter((line) => !policy.test(line) && !line.startsWith("request: file:"));
    assert.deepEqual(said, []);
    assert.ok(
      page.said.some((line) => /Content.Security.Policy/.test(line)),
      "the policy was asked",
    );
  },

  async the_tree_is_named_and_goes_by_keys() {
    const { processes } = analysis("demo");
    const page = await open("demo", "#view=tree");
    const session = await page.context().newCDPSession(page);
    const nodes = (await session.send("Accessibility.getFullAXTree")).nodes.filter((node) => !node.ignored);
    const named = (role) => nodes.filter((node) => node.role?.value === role).map((node) => node.name?.value ?? "");
    assert.deepEqual(named("tree"), ["Process tree"]);
    const items = named("treeitem");
    const root = processes.find((p) => !processes.some((q) => q.pid === p.ppid));
    const children = processes.filter((p) => p.ppid === root.pid);
    assert.equal(items.length, 1 + children.length);
    for (const name of items) assert.match(name, /^.+, CPU .+, wall .+, (exit \d+|killed by .+|alive at the end)$/);
    assert.ok(
      items.some((name) => name.startsWith("cc kernels_3.c, CPU")),
      items.join("\n"),
    );
    for (const role of ["button", "tab", "searchbox", "combobox", "checkbox", "image"]) {
      for (const name of named(role)) assert.ok(name.trim() !== "", `a ${role} without a name`);
    }
    // Down, open, into, up again.
    await page.focus("[role=treeitem][tabindex='0']");
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    const at = () =>
      page.evaluate(() => [
        document.activeElement.getAttribute("aria-level"),
        document.activeElement.getAttribute("aria-label").split(",")[0],
      ]);
    assert.equal((await at())[0], "3");
    await page.keyboard.press("ArrowLeft");
    assert.equal((await at())[0], "2");
    assert.equal(await page.getAttribute("[role=treeitem][tabindex='0']", "aria-selected"), "true");
    // The views by their numbers, help and back.
    for (const [key, view] of [
      ["2", "steps"],
      ["3", "heatmap"],
      ["6", "table"],
      ["1", "overview"],
      ["4", "timeline"],
    ]) {
      await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press(key);
      await page.waitForSelector(`#view-${view}:visible`);
    }
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    page.calm();
  },

  // What makes the numbers incomplete stands above them in every view, and what is not known is
  // no zero.
  async warnings_stand_above_all() {
    for (const name of ["cut", "blank", "poll"]) {
      const { trace, totals, processes } = analysis(name);
      const page = await open(name);
      assert.ok(trace.warnings.length > 0, name);
      const lines = () =>
        page.$$eval("#warned li", (all) => all.filter((one) => one.checkVisibility()).map((one) => one.title));
      assert.deepEqual(await lines(), trace.warnings, name);
      for (const view of ["heatmap", "timeline", "tree", "table", "overview"]) {
        await page.view(view);
        const said = await lines();
        assert.deepEqual(said, trace.warnings.slice(0, view === "overview" ? undefined : 1), view);
        const [warned, strip] = [
          await page.locator("#warned").boundingBox(),
          await page.locator(".strip").boundingBox(),
        ];
        assert.ok(warned.y + warned.height <= strip.y + 1, view);
      }
      const method = name === "poll" ? "poll" : "bpf";
      assert.ok((await page.textContent("#quality summary")).startsWith(`Recorded by ${method}`), method);
      const figure = (id) => page.textContent(`#f-${id} b`);
      if (name === "blank") {
        for (const id of ["wall", "cpu", "processes", "execs"]) assert.equal(await figure(id), "?", id);
        assert.ok((await figure("busy")).startsWith("? of "));
      } else {
        if (name === "cut") assert.ok((await figure("cpu")).startsWith("≥ "));
        for (const state of ["on_cpu", "run_queue"]) {
          assert.equal(Number(await page.getAttribute(`#t-${state}`, "data-ns")), totals[`${state}_ns`], state);
        }
      }
      if (name === "poll") {
        // Of some process, one without a sample, nothing is known; so of a part without any.
        const unknown = processes.filter((process) => process.on_cpu_ns === null);
        assert.ok(unknown.length > 0 && unknown.length < processes.length);
        await page.evaluate((t) => (location.hash = `#view=overview&t=${t}`), `0-${Math.round(trace.duration_ns / 2)}`);
        await settle(page);
        assert.notEqual(await figure("cpu"), "–");
        const sum = await page.getAttribute("#t-on_cpu", "data-ns").catch(() => null);
        assert.ok(sum === null || Number(sum) > 0);
        await page.evaluate((pid) => (location.hash = `#view=overview&q=pid:${pid}`), unknown[0].pid);
        await settle(page);
        assert.equal(await figure("cpu"), "?");
      }
      page.calm();
      await page.context().close();
    }
  },

  // Opened at sizes of laptops, tablets and phones, not only resized to them.
  async every_view_is_drawn_at_every_size() {
    for (const [width, height] of [
      [1280, 720],
      [1366, 500],
      [390, 844],
      ...(allCases
        ? [
            [1366, 650],
            [1024, 768],
          ]
        : []),
    ]) {
      // As many lanes above the rows as there are, and the details beside them.
      for (const [name, hash, views] of [
        ["demo", "", ["overview", "heatmap", "timeline", "tree", "table"]],
        ["facts", "#cpus=1&sel=0", ["timeline"]],
        ["stacks", "", ["stacks"]],
      ]) {
        const page = await open(name, hash, { viewport: { width, height } });
        for (const view of views) {
          await page.view(view);
          const { blank, seen, beyond } = await page.evaluate(() => {
            const shown = (element) => element.checkVisibility();
            const canvases = [...document.querySelectorAll("canvas")].filter(shown);
            // Nothing was drawn, too little can be seen of it, or it is stretched.
            const blank = canvases.filter((canvas) => {
              const { width, height } = canvas;
              const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
              copy.drawImage(canvas, 0, 0);
              const colors = new Set(new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer));
              const stretched =
                Math.abs(width / height - canvas.clientWidth / canvas.clientHeight) > 0.1 * (width / height);
              return colors.size < 8 || canvas.clientHeight < 17 || stretched;
            });
            const plot = [...document.querySelectorAll(".view:not([hidden]) .scroll > canvas")].filter(shown);
            const scrolls = (element) =>
              element && (/auto|scroll/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
            const beyond = [...document.querySelectorAll("#app *")].filter(
              (element) =>
                shown(element) &&
                element.getBoundingClientRect().right > innerWidth + 1 &&
                !element.matches(".tip, .tip *, .window, .window *") &&
                !scrolls(element.parentElement),
            );
            const page = document.documentElement.scrollWidth > innerWidth ? [document.documentElement] : [];
            const words = (element) => `${element.tagName}.${element.className} in ${element.parentElement?.className}`;
            return {
              blank: blank.map(words),
              seen: plot.map((canvas) => canvas.clientHeight),
              beyond: [...page, ...beyond].map(words),
            };
          });
          const where = `${name}, ${view} at ${width} × ${height}`;
          assert.deepEqual(blank, [], `blank: ${where}`);
          assert.ok(
            seen.every((rows) => rows >= 150),
            `${seen} px of rows: ${where}`,
          );
          assert.deepEqual(beyond, [], `wider than the page: ${where}`);
        }
        page.calm();
        await page.context().close();
      }
    }
  },

  async long_names_are_cut_before_their_end() {
    let cut = 0;
    for (const view of ["overview", "steps", "tree", "table"]) {
      const page = await open("demo", `#view=${view}`, { viewport: { width: 390, height: 844 } });
      const names = await page.$$eval(".cut-name", (all) =>
        all
          .filter((name) => name.checkVisibility())
          .map((name) => {
            const [begin, end] = name.children;
            const text = end.firstElementChild.getBoundingClientRect();
            return {
              text: name.textContent,
              isCut: begin.scrollWidth > begin.clientWidth,
              // The end is as wide as the name at the most, and its last letter is in sight.
              over: Math.round(text.right - name.parentElement.getBoundingClientRect().right),
              begin: begin.clientWidth,
            };
          }),
      );
      for (const { text, over } of names) assert.ok(over <= 0, `${view}: ${text} by ${over} px`);
      for (const { text, begin } of names) assert.ok(begin > 8, `${view}: ${text}: ${begin} px`);
      cut += names.filter(({ isCut }) => isCut).length;
      page.calm();
      await page.context().close();
    }
    assert.ok(cut > 3, `${cut} are cut`);
  },

  async a_table_fades_where_it_goes_on() {
    const page = await open("demo", "#view=steps", { viewport: { width: 900, height: 700 } });
    const fades = () =>
      page.$eval("#view-steps .table-scroll", (table) => [
        getComputedStyle(table).maskImage !== "none" || getComputedStyle(table).webkitMaskImage !== "none",
        table.scrollWidth > table.clientWidth + 1,
      ]);
    assert.deepEqual(await fades(), [true, true]);
    await page.$eval("#view-steps .table-scroll", (table) => table.scrollTo(table.scrollWidth, 0));
    await page.waitForFunction(() => !document.querySelector("#view-steps .more-right"));
    assert.deepEqual(await fades(), [false, true]);
    page.calm();
  },

  async a_low_window_has_room_for_the_sunburst() {
    const page = await open("demo", "#view=tree", { viewport: { width: 1366, height: 650 } });
    const { height } = await page.locator(".sunburst canvas").boundingBox();
    assert.ok(height >= 340, `${height} px`);
    page.calm();
  },

  async a_low_window_has_no_lanes_of_resources_at_first() {
    for (const [height, shown] of [
      [650, "false"],
      [900, "true"],
    ]) {
      const page = await open("demo", "#view=timeline", { viewport: { width: 1366, height } });
      const pressed = page.locator("#view-timeline button", { hasText: "Resources" });
      assert.equal(await pressed.getAttribute("aria-pressed"), shown, `${height} px`);
      // The address keeps what was chosen, whatever the height.
      await pressed.click();
      await settle(page);
      assert.notEqual(await pressed.getAttribute("aria-pressed"), shown, `${height} px, after a click`);
      page.calm();
      await page.context().close();
    }
  },

  async it_fits_a_phone_and_paper() {
    for (const view of ["overview", "heatmap", "timeline", "tree", "table", "stacks"]) {
      const page = await open(view === "stacks" ? "stacks" : "demo", `#view=${view}`, {
        viewport: { width: 390, height: 844 },
        hasTouch: true,
      });
      await settle(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 390, `${view} is ${wide} px wide`);
      assert.ok((await page.locator("header.top").boundingBox()).height < 52, "one line");
      const canvas = page.locator(`#view-${view} canvas:not(.lane canvas)`).first();
      if (await canvas.count()) assert.ok((await canvas.boundingBox()).height > 150, view);
      await page.emulateMedia({ media: "print" });
      assert.ok(!(await page.isVisible("input[type=search]")));
      page.calm();
      await page.context().close();
    }
    // Printed from a dark screen: light, on a page, nothing cut off at its right end.
    const cut = await open("demo");
    const ends = await cut.$$eval(".strip .axis text", (all) =>
      all.map((text) => text.getBoundingClientRect()).map((box) => [box.left, box.right]),
    );
    const plot = await cut.locator(".strip-plot").boundingBox();
    assert.ok(
      ends.every(([left, right]) => left >= plot.x - 1 && right <= plot.x + plot.width + 2),
      JSON.stringify(ends),
    );
    await cut.context().close();
    for (const [view, pages] of [
      ["overview", 3],
      ["heatmap", 1],
      ["timeline", 1],
      ["tree", 1],
      ["stacks", 1],
      ["steps", 2],
      ["table", 5],
    ]) {
      const page = await open(view === "stacks" ? "stacks" : "demo", `#view=${view}`, { colorScheme: "dark" });
      await page.evaluate(() =>
        addEventListener("beforeprint", () => {
          const all = [...document.querySelectorAll(".view:not([hidden]) canvas, .strip canvas")];
          const rows = [...document.querySelectorAll(".view:not([hidden]) .table-scroll tbody tr:not([aria-hidden])")];
          window.printed = {
            rows: rows.length,
            right: Math.max(...all.map((canvas) => canvas.getBoundingClientRect().right)),
            dark: getComputedStyle(document.documentElement).getPropertyValue("--dark").trim(),
            sharp: all.every((canvas) => canvas.width >= 1.9 * canvas.clientWidth),
          };
        }),
      );
      const pdf = (await page.pdf({ preferCSSPageSize: true })).toString("latin1");
      assert.equal(pdf.match(/\/Type \/Page\b/g).length, pages, view);
      const printed = await page.evaluate(() => window.printed);
      assert.ok(printed.right <= 980, `${view}: ${printed.right}`);
      if (view === "table") assert.ok(printed.rows >= analysis("demo").processes.length, String(printed.rows));
      assert.deepEqual([printed.dark, printed.sharp], ["0", true]);
      assert.equal(
        await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--dark").trim()),
        "1",
      );
      page.calm();
      await page.context().close();
    }
  },
};

/** A test that hangs is named, and the others go on. */
const HANGS = 300_000;

async function run(test) {
  const mine = [];
  let failed = null;
  let timer;
  const late = new Promise((_, fail) => (timer = setTimeout(() => fail(`no end within ${HANGS / 1000} s`), HANGS)));
  try {
    await Promise.race([contexts.run(mine, tests[test]), late]);
  } catch (error) {
    failed = error?.stack ?? String(error);
  }
  clearTimeout(timer);
  // The test may have closed it.
  for (const context of mine) await context.close().catch(() => {});
  console.log(JSON.stringify({ test, failed }));
}

let running = Promise.resolve();
for await (const test of createInterface({ input: process.stdin })) {
  running = firefox ? running.then(() => run(test)) : Promise.all([running, run(test)]);
}
await running;
process.exit();
