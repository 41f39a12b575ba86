// Elements. Text from a trace only ever gets in as text.

type Child = Node | string | null | false;
type Props = Record<string, unknown>;

/** An element with properties (`on…` are listeners), attributes and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else if (name === "class") element.className = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== false) element.append(child);
  return element;
}

/** A label and its value. */
export function fact(name: string, value: Child, hint?: string): HTMLElement {
  return h("div", { class: "fact", title: hint }, h("dt", {}, name), h("dd", {}, value));
}

/** A line that floats beside the pointer. */
export class Tip {
  readonly element = h("div", { class: "tip", hidden: true });
  show(event: { clientX: number; clientY: number }, ...content: Child[]) {
    this.element.replaceChildren(...content.filter((c): c is Node | string => c !== null && c !== false));
    this.element.hidden = false;
    const { offsetWidth: w, offsetHeight: hgt } = this.element;
    const x = event.clientX + 14 + w > innerWidth ? Math.max(4, event.clientX - w - 14) : event.clientX + 14;
    const y = event.clientY + 14 + hgt > innerHeight ? Math.max(4, event.clientY - hgt - 14) : event.clientY + 14;
    this.element.style.transform = `translate(${x}px,${y}px)`;
  }
  hide() {
    this.element.hidden = true;
  }
}

/** A choice of one of several, as buttons side by side. */
export function choice<T extends string>(name: string, options: [T, string][], pick: (value: T) => void) {
  const buttons = options.map(([value, text]) =>
    h("button", { type: "button", "data-value": value, "aria-pressed": "false", onclick: () => pick(value) }, text),
  );
  const element = h("div", { class: "choice", role: "group", "aria-label": name }, ...buttons);
  return {
    element,
    show: (value: T) => buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.value === value))),
  };
}

/** Copies a text; false: the browser refused. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not allowed to pages from disk everywhere.
    const area = h("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** Copies a text and shows that on the button, in the place of what it says. */
export async function copyBy(button: HTMLButtonElement, text: string, done: string) {
  const before = button.textContent;
  button.textContent = (await copyText(text)) ? done : "Copying was refused";
  setTimeout(() => (button.textContent = before), 2000);
}

/** A button that copies the command line of `name`. */
export function copyButton(text: string, name: string): HTMLButtonElement {
  const button = h(
    "button",
    {
      type: "button",
      class: "copy",
      title: name,
      "aria-label": name,
      onclick: () => void copyBy(button, text, "Copied"),
    },
    "Copy",
  );
  return button;
}

/** The button that shows all of a title, of which the style shows two lines; hidden if that is all. */
export function wholeButton(title: HTMLElement, name: string): HTMLButtonElement {
  const more = h(
    "button",
    {
      type: "button",
      class: "icon whole-title",
      "aria-expanded": "false",
      "aria-controls": title.id,
      "aria-label": name,
      title: name,
      onclick: () => more.setAttribute("aria-expanded", String(title.classList.toggle("whole"))),
    },
    "…",
  );
  new ResizeObserver(() => {
    more.hidden = !title.classList.contains("whole") && title.scrollHeight <= title.clientHeight + 1;
  }).observe(title);
  return more;
}
