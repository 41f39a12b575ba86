// A line through all lanes at the pointer's time, or at the moment that the address keeps, with what ran then.

import { h } from "./dom";
import { moment, sentence } from "./moment";
import type { Context } from "./timeview";

/** The time that is pointed at in any lane, for all of them. */
export class Pointed {
  /** -1: none. */
  t = -1;
  private listeners: (() => void)[] = [];

  listen(listener: () => void) {
    this.listeners.push(listener);
  }
  set(t: number) {
    if (t === this.t) return;
    this.t = t;
    for (const listener of this.listeners) listener();
  }
}

/** The line of one view. */
export class Cursor {
  readonly line = h("div", { class: "now", hidden: true });
  readonly text = h("p", { class: "hint readout", "aria-hidden": "true", hidden: true });
  private time = h("span");
  private said = -1;

  constructor(private context: Context) {
    this.line.append(this.time);
  }

  /** Draws it; `top` is where the time axis begins. */
  draw(width: number, gutter: number, top: number) {
    const { data, store, pointed } = this.context;
    const { t0, t1, at } = store.state;
    const t = pointed.t >= 0 ? pointed.t : at;
    const seen = t >= t0 && t <= t1;
    this.line.hidden = this.text.hidden = !seen;
    if (!seen) {
      this.said = -1;
      return;
    }
    const x = gutter + ((t - t0) / (t1 - t0)) * (width - gutter);
    this.line.style.transform = `translateX(${x}px)`;
    this.line.classList.toggle("end", x > width - 90);
    this.time.style.top = `${top}px`;
    if (t === this.said) return;
    this.said = t;
    const now = moment(data, store, t);
    this.time.textContent = now.when;
    this.text.textContent = sentence(now);
  }
}
