// The page of `tr predict --format html`. Its style is that of `tr report`, whose page does not scroll.

import { h } from "./dom";
import { Forecast, type Schedules } from "./forecast";

const data = JSON.parse(document.getElementById("data")!.textContent!) as Schedules;
const names = [...new Set(data.programs)];
const color = (program: string) => `var(--program-${(names.indexOf(program) % 8) + 1})`;
document.body.className = "document";
const app = document.getElementById("app")!;
app.className = "overview";
app.replaceChildren(
  h("h1", {}, `Forecast: ${data.command}`),
  h("p", { class: "dim" }, "Nothing here was measured but the recorded run: the other times are simulated from it."),
  new Forecast(data, color).element,
);
document.documentElement.dataset.ready = "1";
