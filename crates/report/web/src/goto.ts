// Going to a time that is typed.

import { h } from "./dom";
import type { Store } from "./state";
import { at } from "./units";

/** A time as people write it, in ns: `12.3`, `12.3 s`, `850 ms`, `1:02.5`; null: none. */
export function parseTime(text: string): number | null {
  const [, clock, number, unit] = /^((?:\d+:){0,2})(\d+(?:[.,]\d*)?|[.,]\d+)\s*(s|ms|µs|us)?$/.exec(text.trim()) ?? [];
  if (number === undefined) return null;
  const scale = unit === "ms" ? 1e6 : unit === "µs" || unit === "us" ? 1e3 : 1e9;
  const minutes = clock.split(":").reduce((sum, part) => (part === "" ? sum : sum * 60 + Number(part)), 0);
  return minutes * 60e9 + Number(number.replace(",", ".")) * scale;
}

/** A field for the time, which is there while it is written. */
export class GoTo {
  private input = h("input", {
    type: "text",
    id: "goto",
    placeholder: "12.3",
    "aria-label": "Go to a time, in seconds",
    autocomplete: "off",
    spellcheck: "false",
  });
  private note = h("span", { class: "dim", role: "status" });
  readonly element = h(
    "form",
    { class: "goto", hidden: true },
    h("label", { for: "goto" }, "Go to"),
    this.input,
    this.note,
  );

  constructor(private store: Store) {
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      const t = parseTime(this.input.value);
      if (t === null) {
        this.note.textContent = "no time: 12.3, 850 ms or 1:02.3";
        return;
      }
      this.hide();
      store.goTo(t);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.hide();
    });
    this.input.addEventListener("blur", () => this.hide());
  }

  show() {
    const [from, to] = this.store.whole;
    this.element.hidden = false;
    this.input.value = "";
    this.note.textContent = `s, ${at(from)} to ${at(to)}`;
    this.input.focus();
  }

  private hide() {
    this.element.hidden = true;
  }
}
