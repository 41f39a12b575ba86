// How long a page takes to its first view, and how many frames a second it
// zooms and pans, by the browser's own tracing: node speed.mjs PAGE.html
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [, , file] = process.argv;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const url = pathToFileURL(file).href;
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const CATEGORIES = [
  "devtools.timeline",
  "blink.user_timing",
  "loading",
  "disabled-by-default-devtools.timeline.frame",
  "devtools.timeline.frame",
];

/** The browser's trace of what happens meanwhile. */
async function traced(page, what) {
  await browser.startTracing(page, { categories: CATEGORIES });
  await what();
  return JSON.parse((await browser.stopTracing()).toString()).traceEvents;
}
const median = (all) => [...all].sort((a, b) => a - b)[all.length >> 1];

const first = [];
for (let round = 0; round < 3; round++) {
  const page = await context.newPage();
  const events = await traced(page, async () => {
    await page.goto(url);
    await page.waitForSelector("html[data-ready]");
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  });
  const begin = events
    .filter((e) => e.name === "navigationStart" && e.args?.data?.documentLoaderURL === url)
    .map((e) => e.ts);
  // The page says when its first view is drawn, in the trace.
  const ready = events.filter((e) => e.name === "first-view").map((e) => e.ts);
  first.push((Math.max(...ready) - Math.max(...begin)) / 1000);
  await page.close();
}
console.log(`first view  ${median(first).toFixed(0)} ms (target: 1000 ms)`);

for (const view of ["heatmap", "timeline", "heatmap&rows=program", "heatmap&rows=cgroup"]) {
  const page = await context.newPage();
  await page.goto(`${url}#view=${view}`);
  await page.waitForSelector("html[data-ready]");
  await page.waitForTimeout(300);
  const canvas = await page.locator(`#view-${view.split("&")[0]} .scroll canvas`).boundingBox();
  const [x, y] = [canvas.x + canvas.width * 0.6, canvas.y + 60];
  const run = async (name, step) => {
    let seconds = 0;
    const events = await traced(page, async () => {
      // Input in every frame, as of a hand that does not rest.
      seconds = await page.evaluate(
        ({ step, x, y }) =>
          new Promise((done) => {
            const canvas = document.elementFromPoint(x, y);
            const begun = performance.now();
            let n = 0;
            const send = (type, init) =>
              canvas.dispatchEvent(
                new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0, pointerType: "mouse", ...init }),
              );
            canvas.setPointerCapture = () => {};
            if (step === "pan") send("pointerdown", { clientX: x, clientY: y });
            const next = () => {
              if (step === "zoom")
                canvas.dispatchEvent(
                  new WheelEvent("wheel", {
                    bubbles: true,
                    cancelable: true,
                    ctrlKey: true,
                    clientX: x,
                    clientY: y,
                    deltaY: n % 60 < 30 ? -12 : 12,
                  }),
                );
              else send("pointermove", { clientX: x - 150 + 150 * Math.cos(n / 12), clientY: y });
              if (++n < 120) requestAnimationFrame(next);
              else {
                if (step === "pan") send("pointerup", { clientX: x, clientY: y });
                done((performance.now() - begun) / 1000);
              }
            };
            requestAnimationFrame(next);
          }),
        { step, x, y },
      );
    });
    // Frames that came to the screen, as the compositor has it.
    const frames = events.filter((e) => e.name === "DrawFrame").length;
    const scripts = events.filter((e) => e.name === "FireAnimationFrame" && e.dur).map((e) => e.dur / 1000);
    console.log(
      `${view.padEnd(22)} ${name.padEnd(5)} ${(frames / seconds).toFixed(0).padStart(3)} frames/s (target: 50), script ${median(scripts).toFixed(1)} ms a frame, most ${Math.max(...scripts).toFixed(1)} ms`,
    );
  };
  await run("zoom", "zoom");
  for (let times = 0; times < 3; times++) await page.keyboard.press("+");
  await run("pan", "pan");
  await page.close();
}
// Rows of tables, scrolled by as much a frame as a wheel does.
for (const view of ["table", "steps"]) {
  const page = await context.newPage();
  await page.goto(`${url}#view=${view}`);
  await page.waitForSelector("html[data-ready]");
  if (!(await page.isVisible(`#view-${view}`))) continue;
  await page.waitForTimeout(300);
  const room = await page.evaluate(
    (view) =>
      Math.max(
        ...[...document.querySelectorAll(`#view-${view} .table-scroll`)].map(
          (one) => one.scrollHeight - one.clientHeight,
        ),
      ),
    view,
  );
  // What does not move draws no frames.
  if (room < 60 * 120) {
    console.log(`${view.padEnd(22)} scroll: too few rows to tell`);
    await page.close();
    continue;
  }
  let seconds = 0;
  const events = await traced(page, async () => {
    seconds = await page.evaluate(
      (view) =>
        new Promise((done) => {
          const scroll = [...document.querySelectorAll(`#view-${view} .table-scroll`)].find((one) => one.offsetParent);
          const begun = performance.now();
          let n = 0;
          const next = () => {
            scroll.scrollTop += n < 60 ? 120 : -120;
            if (++n < 120) requestAnimationFrame(next);
            else done((performance.now() - begun) / 1000);
          };
          requestAnimationFrame(next);
        }),
      view,
    );
  });
  const frames = events.filter((e) => e.name === "DrawFrame").length;
  console.log(`${view.padEnd(22)} scroll ${(frames / seconds).toFixed(0).padStart(3)} frames/s (target: 50)`);
  await page.close();
}
await browser.close();
