// Schedules on other machines: two sliders choose one of those that are in the page; it is drawn
// below the recorded one, on the same scale of time. The page of `tr predict`.

import { h } from "./dom";
import { cutBrief } from "./names";
import { count, time } from "./units";

interface Run {
  cpus: number;
  /** null: as recorded. */
  jobs: number | null;
  /** At best, likely, at worst, ns. */
  wall: [number, number, number];
  /** The load beside the recorded run allows no narrow forecast. */
  wide: boolean;
  used: number;
  decides: string;
  /** The beginning and the end of each bar, in units. */
  bars: number[];
  path: number[];
}

export interface Schedules {
  command: string;
  recorded: { wall: number; cpus: number; bars: number[] };
  start: [number, number | null];
  /** ns. */
  unit: number;
  names: string[];
  /** The brief name of each process; null: none. */
  briefs: (string | null)[];
  programs: string[];
  processes: number;
  assumed: string[];
  /** The sentence beside a wide forecast. */
  wide: string;
  runs: Run[];
}

const LANE = 15,
  GAP = 2;
const sorted = (values: (number | null)[]) => [...new Set(values)].sort((a, b) => (a ?? 0) - (b ?? 0));

export class Forecast {
  readonly element: HTMLElement;
  private cpus: number[];
  private jobs: (number | null)[];
  private slider: Record<"cpus" | "jobs", HTMLInputElement>;
  private said: Record<"cpus" | "jobs", HTMLElement> = { cpus: h("output"), jobs: h("output") };
  private first = h("p", { class: "verdict", id: "forecast", role: "status" });
  private wide = h("p", { class: "bad", id: "wide", role: "status" });
  private decides = h("p", { class: "dim" });
  private choices = h("div", { class: "choices", role: "group", "aria-label": "Time by CPUs" });
  private pictures = h("div", { class: "pictures" });

  /** `color` returns the color of a program. */
  constructor(
    private data: Schedules,
    private color: (program: string) => string,
  ) {
    this.cpus = sorted(data.runs.map((run) => run.cpus)) as number[];
    this.jobs = sorted(data.runs.map((run) => run.jobs));
    const range = (name: string, values: unknown[]) =>
      h("input", {
        type: "range",
        min: 0,
        max: values.length - 1,
        step: 1,
        "aria-label": name,
        oninput: () => this.draw(),
      });
    this.slider = { cpus: range("CPUs", this.cpus), jobs: range("Jobs at once", this.jobs) };
    const line = (name: string, key: "cpus" | "jobs") =>
      h("label", { class: "slide" }, h("span", {}, name), this.slider[key], this.said[key]);
    this.element = h(
      "div",
      { class: "forecast" },
      h(
        "div",
        { class: "card" },
        line("CPUs", "cpus"),
        this.jobs.length > 1 ? line("Jobs at once", "jobs") : null,
        this.choices,
        this.first,
        this.wide,
        this.decides,
      ),
      h(
        "div",
        { class: "card" },
        this.pictures,
        h(
          "p",
          { class: "aside" },
          `The bars are the ${data.names.length} longest of the run's ${count(data.processes)} processes that start no others or work themselves; those on the simulated path are drawn full. Schedules between these numbers are not in the page.`,
        ),
      ),
      h("ul", { class: "aside assumed" }, ...data.assumed.map((text) => h("li", {}, `assumed: ${text}`))),
    );
    const [cpus, jobs] = data.start;
    this.slider.cpus.value = String(Math.max(0, this.cpus.indexOf(cpus)));
    this.slider.jobs.value = String(Math.max(0, this.jobs.indexOf(jobs)));
    this.draw();
  }

  private chosen(): [number, number | null] {
    return [this.cpus[Number(this.slider.cpus.value)], this.jobs[Number(this.slider.jobs.value)] ?? null];
  }

  private draw() {
    const { data } = this;
    const { recorded } = data;
    const [cpus, jobs] = this.chosen();
    const run = data.runs.find((it) => it.cpus === cpus && it.jobs === jobs);
    if (!run) return;
    const [low, likely, high] = run.wall;
    this.said.cpus.textContent = String(cpus);
    this.said.jobs.textContent = jobs === null ? "as recorded" : String(jobs);
    this.slider.cpus.setAttribute("aria-valuetext", `${cpus} CPUs`);
    this.slider.jobs.setAttribute("aria-valuetext", jobs === null ? "as recorded" : `${jobs} jobs`);
    this.first.replaceChildren(
      h("b", {}, `${time(recorded.wall)} → ${time(likely)}`),
      ` (${time(low)} to ${time(high)}), ${run.used} % of ${cpus} ${cpus === 1 ? "CPU" : "CPUs"} in use`,
    );
    this.wide.hidden = !run.wide;
    this.wide.textContent = run.wide ? data.wide : "";
    this.decides.textContent = `path: ${run.decides}`;
    this.choices.replaceChildren(
      ...this.cpus.map((it, at) => {
        const other = data.runs.find((run) => run.cpus === it && run.jobs === jobs)!;
        return h(
          "button",
          {
            type: "button",
            "aria-pressed": String(it === cpus),
            onclick: () => {
              this.slider.cpus.value = String(at);
              this.draw();
            },
          },
          h("span", { class: "dim" }, `${it} ${it === 1 ? "CPU" : "CPUs"}`),
          h("b", {}, time(other.wall[1])),
        );
      }),
    );
    const most = Math.max(recorded.wall, likely);
    this.pictures.replaceChildren(
      ...this.picture(
        `Recorded: ${recorded.cpus} ${recorded.cpus === 1 ? "CPU" : "CPUs"}, ${time(recorded.wall)}`,
        recorded.bars,
        recorded.wall,
        most,
        null,
      ),
      ...this.picture(
        `Simulated: ${cpus} ${cpus === 1 ? "CPU" : "CPUs"}, ${jobs === null ? "jobs as recorded" : `${jobs} ${jobs === 1 ? "job" : "jobs"}`}, ${time(likely)}`,
        run.bars,
        likely,
        most,
        new Set(run.path),
      ),
    );
  }

  /** The first lane that is free for each bar; bars begin in order. */
  private lanes(bars: number[]): [[number, number][], number] {
    const order = this.data.names.map((_, at) => at).filter((at) => bars[2 * at + 1] > bars[2 * at]);
    order.sort((a, b) => bars[2 * a] - bars[2 * b] || a - b);
    const free: number[] = [];
    const of = order.map((at): [number, number] => {
      let lane = free.findIndex((end) => end <= bars[2 * at]);
      if (lane < 0) lane = free.push(0) - 1;
      free[lane] = bars[2 * at + 1];
      return [at, lane];
    });
    return [of, free.length];
  }

  private picture(title: string, bars: number[], wall: number, most: number, path: Set<number> | null): HTMLElement[] {
    const { names, briefs, programs, unit } = this.data;
    const [placed, lanes] = this.lanes(bars);
    const share = (ns: number) => `${((ns * 100) / Math.max(1, most)).toFixed(3)}%`;
    const box = h("div", { class: "lanes", role: "img", "aria-label": title });
    box.style.height = `${Math.max(1, lanes) * (LANE + GAP)}px`;
    for (const [at, lane] of placed) {
      const [from, to] = [bars[2 * at] * unit, bars[2 * at + 1] * unit];
      // A few letters of a name tell nothing.
      const bar = h(
        "i",
        { title: `${names[at]}: ${time(to - from)}, from ${time(from)}` },
        to - from > most / 40 ? cutBrief({ text: names[at], brief: briefs[at] ?? "" }) : null,
      );
      const mixed = path && !path.has(at) ? "25%, var(--panel));color:var(--ink)" : "55%, white)";
      bar.style.cssText = `left:${share(from)};width:${share(to - from)};top:${lane * (LANE + GAP)}px;background:color-mix(in srgb, ${this.color(programs[at])} ${mixed}`;
      box.append(bar);
    }
    const end = h("i", { class: "end" });
    end.style.left = share(wall);
    box.append(end);
    return [h("h2", {}, title), box];
  }
}
