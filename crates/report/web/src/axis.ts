// Axes of time.

import { clock } from "./units";

/** The round parts of minutes and hours, s. */
const CLOCK = [10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/** Round times that divide a span into about `count` parts, in ns, and the digits of seconds that tell them apart. */
function ticks(from: number, to: number, count: number): { at: number[]; digits: number } {
  const span = Math.max(1, to - from);
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const ten = power * (rough < 1.5 * power ? 1 : rough < 3.5 * power ? 2 : rough < 7.5 * power ? 5 : 10);
  // In minutes 100 s are not round.
  const nice = to > 60e9 && ten >= 10e9 ? (CLOCK.find((s) => s * 1e9 >= 0.75 * rough) ?? ten / 1e9) * 1e9 : ten;
  const at: number[] = [];
  for (let n = Math.ceil(from / nice); n * nice <= to; n++) at.push(n * nice);
  return { at, digits: Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(nice) + 1e-9))) };
}

/** Between moments of the shown span and places on a lane after the gutter, CSS pixels. */
export function scale({ t0, t1 }: { t0: number; t1: number }, width: number, gutter: number) {
  const span = t1 - t0;
  return {
    x: (t: number) => gutter + ((Math.min(Math.max(t, t0), t1) - t0) / span) * (width - gutter),
    t: (x: number) => t0 + ((x - gutter) / (width - gutter)) * span,
  };
}

const SVG = "http://www.w3.org/2000/svg";

function node(name: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

/** Changes an attribute or a text only where it differs: each change costs a layout. */
function change(element: SVGElement, key: string, value: string) {
  if (element.getAttribute(key) !== value) element.setAttribute(key, value);
}

/** An axis between two places, below a plot or above it. */
export class Axis {
  readonly element = node("svg", { class: "axis", "aria-hidden": "true" }) as SVGSVGElement;
  /** The ticks with their labels, of which each frame moves those that it needs. */
  private ticks: { tick: SVGElement; text: SVGElement }[] = [];
  /** What the numbers before the axis are. */
  private title: SVGElement;

  constructor(
    private height: number,
    private above: boolean,
  ) {
    this.title = node("text", { y: above ? height - 10 : 17, "text-anchor": "end" });
    this.element.append(this.title);
  }

  draw([t0, t1]: [number, number], [left, right]: [number, number], title = "") {
    const { element, height, above } = this;
    change(element, "width", String(right));
    change(element, "height", String(height));
    change(this.title, "x", String(left - 10));
    if (this.title.textContent !== title) this.title.textContent = title;
    const { at, digits } = ticks(t0, t1, Math.max(2, Math.floor((right - left) / 110)));
    const line = above ? height - 1 : 0;
    while (this.ticks.length < at.length) {
      const text = node("text", { y: above ? line - 9 : line + 17 });
      const tick = node("g", { class: "tick" });
      tick.append(node("line", { y1: line, y2: above ? line - 6 : line + 6 }), text);
      this.ticks.push({ tick, text });
      element.append(tick);
    }
    for (const { tick } of this.ticks.splice(at.length)) tick.remove();
    at.forEach((t, n) => {
      const { tick, text } = this.ticks[n];
      const x = left + ((t - t0) / (t1 - t0)) * (right - left);
      change(tick, "transform", `translate(${x.toFixed(2)} 0)`);
      // Labels at the ends stand between them, where paper would cut them.
      change(text, "text-anchor", x - left < 24 ? "start" : right - x < 24 ? "end" : "middle");
      const label = clock(t / 1e9, digits);
      if (text.textContent !== label) text.textContent = label;
    });
  }
}
