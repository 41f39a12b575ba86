// The view "What if": the run on other machines. The whole of it: what else is chosen changes nothing here.

import { HUES } from "./colors";
import { h } from "./dom";
import { Forecast } from "./forecast";
import type { Context } from "./timeview";
import { count } from "./units";

export class WhatIf {
  readonly element: HTMLElement;
  private forecast: Forecast | null = null;
  private shown = "";

  constructor(
    private context: Context,
    ranks: Map<string, number>,
  ) {
    const { data, store } = context;
    const found = data.doc.what_if;
    this.element = h("div", { class: "overview whatif" });
    if (found?.schedules) {
      const color = (program: string) => {
        const rank = ranks.get(program) ?? HUES;
        return rank < HUES ? `var(--program-${rank + 1})` : "var(--faint)";
      };
      this.forecast = new Forecast(found.schedules, color, (cpus, jobs) => {
        this.shown = `${cpus},${jobs ?? ""}`;
        store.set({ machine: this.shown });
      });
      this.element.append(
        h(
          "p",
          { class: "glance dim" },
          "The whole run, simulated with other numbers of CPUs and jobs. ",
          h("code", {}, "tr predict"),
          " simulates more: faster programs, caches, quotas, shards.",
        ),
        this.forecast.element,
      );
    } else if (found?.large) {
      const [what, number, most] = found.large;
      this.element.append(
        h(
          "p",
          { class: "empty" },
          `Not simulated here: the recording has ${count(number)} ${what}, this page simulates up to ${count(most)}. `,
          h("code", {}, "tr predict --format html"),
          " simulates it.",
        ),
      );
    }
  }

  update() {
    const { machine } = this.context.store.state;
    if (machine === this.shown) return;
    this.shown = machine;
    const [cpus, jobs] = machine.split(",");
    this.forecast?.choose(Number(cpus), jobs ? Number(jobs) : null);
  }
}
