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
  private said = "";

  constructor(private context: Context) {
    this.line.append(this.time);
  }

  private get t(): number {
    const { store, pointed } = this.context;
    return pointed.t >= 0 ? pointed.t : store.state.at;
  }

  /** Whether the time is in sight. */
  get seen(): boolean {
    const { t0, t1 } = this.context.store.state;
    return this.t >= t0 && this.t <= t1;
  }

  hide() {
    this.line.hidden = this.text.hidden = true;
    this.said = "";
  }

  /** Draws it; `top` is where the time axis begins. */
  draw(width: number, gutter: number, top: number) {
    const { data, store } = this.context;
    const { t0, t1 } = store.state;
    const { t } = this;
    this.line.hidden = this.text.hidden = false;
    const x = gutter + ((t - t0) / (t1 - t0)) * (width - gutter);
    this.line.style.transform = `translateX(${x}px)`;
    this.line.classList.toggle("end", x > width - 90);
    this.time.style.top = `${top}px`;
    const { root, cgroup, q } = store.state;
    const key = [t, t1 - t0, root, cgroup, q].join("\n");
    if (key === this.said) return;
    this.said = key;
    const now = moment(data, store, t);
    this.time.textContent = now.when;
    this.text.textContent = sentence(now);
  }
}
