// A measured length and notes over a time axis; the link keeps both.

import { h } from "./dom";
import type { Store } from "./state";
import { at, time } from "./units";

/** The most notes, and the most letters of one: they stand in the link. */
const NOTES = 50;
const LETTERS = 120;

interface Note {
  t: number;
  text: string;
}

/** The notes in the order of their times; times count from the start of the recording. */
function notes(store: Store): Note[] {
  return store.state.notes
    .split("\n")
    .slice(0, NOTES)
    .flatMap((line) => {
      const [, t, text] = /^(\d+) (.+)$/.exec(line) ?? [];
      return text === undefined ? [] : [{ t: store.whole[0] + Number(t), text: text.slice(0, LETTERS) }];
    });
}

/** Puts a note in the place of those at its time; without text there is none. */
function write(store: Store, t: number, text: string) {
  const all = notes(store).filter((note) => note.t !== t);
  if (text.trim()) all.push({ t, text: text.trim().slice(0, LETTERS) });
  all.sort((a, b) => a.t - b.t);
  store.set({ notes: all.map((note) => `${Math.round(note.t - store.whole[0])} ${note.text}`).join("\n") });
}

/** The measured span; null: none. */
export function ruler(store: Store): [number, number] | null {
  const [, a, b] = /^(\d+)-(\d+)$/.exec(store.state.ruler) ?? [];
  const [from] = store.whole;
  return b === undefined || Number(b) <= Number(a) ? null : [from + Number(a), from + Number(b)];
}

export function measure(store: Store, a: number, b: number) {
  const [from, to] = store.whole;
  const inside = (t: number) => Math.round(Math.min(to, Math.max(from, t)) - from);
  store.set({ ruler: `${inside(Math.min(a, b))}-${inside(Math.max(a, b))}` });
}

export class Marks {
  readonly element = h("div", { class: "marks" });
  private length = h("b");
  private span = h("span", { class: "dim" });
  private label: HTMLElement;
  private band: HTMLElement;
  private key = "";
  private flags: [HTMLElement, Note][] = [];

  constructor(private store: Store) {
    const button = (text: string, name: string, click: () => void) =>
      h("button", { type: "button", class: "link", title: name, onclick: click }, text);
    this.label = h(
      "div",
      { class: "ruler", hidden: true },
      this.length,
      this.span,
      button("Zoom", "Show this time (z)", () => store.zoom(...(ruler(store) ?? store.whole))),
      button("×", "Remove (Esc)", () => store.set({ ruler: "" })),
    );
    this.band = h("div", { class: "band", hidden: true });
    this.element.append(this.band, this.label);
  }

  draw(width: number, gutter: number) {
    const { t0, t1 } = this.store.state;
    const x = (t: number) => gutter + ((t - t0) / (t1 - t0)) * (width - gutter);
    const span = ruler(this.store);
    const shown = span !== null && span[0] < t1 && span[1] > t0;
    this.band.hidden = this.label.hidden = !shown;
    if (shown) {
      const [left, right] = [Math.max(gutter, x(span[0])), Math.min(width, x(span[1]))];
      this.band.style.left = `${left}px`;
      this.band.style.width = `${Math.max(1, right - left)}px`;
      const fine = (span[1] - span[0]) * 2;
      this.length.textContent = time(span[1] - span[0]);
      this.span.textContent = `${at(span[0], fine)} to ${at(span[1], fine)}`;
      const half = this.label.offsetWidth / 2;
      this.label.style.left = `${Math.max(gutter, Math.min(width - 2 * half, (left + right) / 2 - half))}px`;
    }
    if (this.key !== this.store.state.notes) {
      this.key = this.store.state.notes;
      for (const [flag] of this.flags) flag.remove();
      this.flags = notes(this.store).map((note) => {
        const flag = h(
          "div",
          { class: "flag" },
          h(
            "button",
            {
              type: "button",
              title: `${at(note.t)}: ${note.text} (click to change)`,
              onclick: () => this.edit(note.t, note.text),
            },
            note.text,
          ),
        );
        return [flag, note];
      });
      this.element.append(...this.flags.map(([flag]) => flag));
    }
    for (const [flag, note] of this.flags) {
      flag.hidden = note.t < t0 || note.t > t1;
      flag.style.left = `${x(note.t)}px`;
      (flag.firstElementChild as HTMLElement).style.maxWidth = `${Math.max(20, width - x(note.t))}px`;
    }
  }

  /** Asks for a note's text. */
  edit(t: number, text = "") {
    const { store } = this;
    this.element.querySelector("form")?.remove();
    const input = h("input", {
      type: "text",
      maxlength: LETTERS,
      placeholder: `Note at ${at(t)}`,
      "aria-label": `Note at ${at(t)}`,
      value: text,
    });
    let done = false;
    const end = (save: boolean) => {
      if (done) return;
      done = true;
      form.remove();
      if (save) write(store, Math.round(t), input.value);
    };
    const form = h(
      "form",
      {
        onsubmit: (event: Event) => {
          event.preventDefault();
          end(true);
        },
      },
      input,
    );
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") end(false);
    });
    input.addEventListener("blur", () => end(true));
    const { t0, t1 } = store.state;
    form.style.left = `${Math.min(75, Math.max(0, ((t - t0) / (t1 - t0)) * 100))}%`;
    this.element.append(form);
    input.focus();
  }
}
