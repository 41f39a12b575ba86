"use strict";
// The page of `tr predict --format html`: two sliders choose one of the schedules that are in the
// page; it is drawn below the recorded one, on the same scale of time.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const say = (id, text) => { element(id).textContent = text; };
const time = (ns) => {
  if (ns >= 60e9) return `${Math.floor(ns / 60e9)}:${String(Math.floor((ns % 60e9) / 1e9)).padStart(2, "0")} min`;
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  return `${Math.round(ns / 1e6)} ms`;
};
const sorted = (values) => [...new Set(values)].sort((a, b) => (a ?? 0) - (b ?? 0));
const cpus = sorted(data.runs.map((run) => run.cpus));
const jobs = sorted(data.runs.map((run) => run.jobs));
const colors = new Map(sorted(data.programs.map((name) => name)).map((name, at) => [name, at]));
const WIDTH = 1000, LANE = 14, GAP = 2, HEAD = 22;

/** A node of a picture. */
function draw(name, attributes, ...content) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...content);
  return node;
}

/** The first lane that is free for each bar; bars begin in order. */
function lanes(bars) {
  const order = data.names.map((_, at) => at).filter((at) => bars[2 * at + 1] > bars[2 * at]);
  order.sort((a, b) => bars[2 * a] - bars[2 * b] || a - b);
  const free = [], of = [];
  for (const at of order) {
    let lane = free.findIndex((end) => end <= bars[2 * at]);
    if (lane < 0) lane = free.push(0) - 1;
    free[lane] = bars[2 * at + 1];
    of.push([at, lane]);
  }
  return [of, free.length];
}

function picture(title, bars, wall, most, path) {
  const [placed, count] = lanes(bars);
  const height = HEAD + Math.max(1, count) * (LANE + GAP) + 4;
  const x = (us) => (us * 1000 * WIDTH) / most;
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: "100%", role: "img", "aria-label": title });
  svg.append(draw("text", { x: 0, y: 14, fill: "currentColor", "font-size": 13 }, title));
  for (const [at, lane] of placed) {
    const [from, to] = [bars[2 * at], bars[2 * at + 1]];
    const rect = draw("rect", {
      x: x(from), y: HEAD + lane * (LANE + GAP), width: Math.max(0.5, x(to) - x(from)), height: LANE, rx: 1.5,
      fill: `hsl(${(colors.get(data.programs[at]) * 137) % 360} 45% 55%)`,
      "fill-opacity": path && !path.has(at) ? 0.45 : 1,
    }, draw("title", {}, `${data.names[at]}: ${time((to - from) * 1000)}, from ${time(from * 1000)}`));
    svg.append(rect);
    const room = Math.floor((x(to) - x(from)) / 6.5);
    if (room > 3) {
      const name = data.names[at];
      svg.append(draw("text", { x: x(from) + 3, y: HEAD + lane * (LANE + GAP) + 11, "font-size": 10, fill: "#000", "pointer-events": "none" },
        name.length > room ? `${name.slice(0, room - 1)}…` : name));
    }
  }
  const end = x(wall / 1000);
  svg.append(draw("line", { x1: end, x2: end, y1: HEAD - 4, y2: height, stroke: "currentColor", "stroke-dasharray": "3 2" }));
  return svg;
}

function update() {
  const [chosen, at] = [cpus[element("cpus").value], jobs[element("jobs").value]];
  const run = data.runs.find((it) => it.cpus === chosen && it.jobs === at);
  const [low, likely, high] = run.wall;
  say("cpus-is", String(chosen));
  say("jobs-is", at === null ? "as recorded" : String(at));
  say("first", `${time(data.recorded.wall)} → ${time(likely)} (${time(low)} to ${time(high)}), ${run.used} % of ${chosen} CPUs in use`);
  say("decides", `path: ${run.decides}`);
  const most = Math.max(data.recorded.wall, likely);
  element("pictures").replaceChildren(
    picture(`Recorded: ${data.recorded.cpus} CPUs, ${time(data.recorded.wall)}`, data.recorded.bars, data.recorded.wall, most, null),
    picture(`Simulated: ${chosen} CPUs, ${at === null ? "jobs as recorded" : `${at} jobs`}, ${time(likely)}`, run.bars, likely, most, new Set(run.path)));
}

// The style is that of `tr report`, whose page does not scroll.
document.documentElement.style.height = document.body.style.height = "auto";
document.body.style.overflow = "auto";
document.body.style.padding = "16px 24px";
element("command").style.fontSize = "18px";
say("command", data.command);
say("note", `The bars are the ${data.names.length} longest of ${data.processes} processes that start no others; those on the simulated path are drawn full. Schedules between these numbers are not in the page.`);
element("assumed").replaceChildren(...data.assumed.map((text) => {
  const item = document.createElement("li");
  item.textContent = `assumed: ${text}`;
  return item;
}));
for (const [id, values, start] of [["cpus", cpus, data.start[0]], ["jobs", jobs, data.start[1]]]) {
  element(id).max = values.length - 1;
  element(id).value = Math.max(0, values.indexOf(start));
  element(id).addEventListener("input", update);
}
element("jobs-row").hidden = jobs.length < 2;
update();
