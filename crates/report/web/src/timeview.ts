// What the heatmap and the timeline share: rows beside a time axis, scrolled,
// zoomed, panned and pointed at.

import { Axis } from "./axis";
import { Cursor, type Pointed } from "./cursor";
import type { Data } from "./data";
import { h, Tip } from "./dom";
import { LARGE } from "./figures";
import { Marks, measure } from "./marks";
import { density, Pixels, resizes, theme, type Theme } from "./paint";
import { isMoving, type State, type Store } from "./state";

/** Of the plot, CSS pixels. */
const BORDER = 1;
/** A lane above the rows, over the same time axis. */
interface Above {
  readonly element: HTMLElement;
  draw(width: number, gutter: number, theme: Theme): void;
}

export interface Context {
  data: Data;
  store: Store;
  tip: Tip;
  pointed: Pointed;
}

/** Where things are in a frame, in CSS pixels, and the device's pixels for one. */
export interface Frame {
  ctx: CanvasRenderingContext2D;
  pixels: Pixels;
  theme: Theme;
  ratio: number;
  /** Left end of the plot; the labels are to its left. */
  gutter: number;
  width: number;
  height: number;
  /** How far it is scrolled. */
  top: number;
  state: State;
  x: (t: number) => number;
}

const AXIS = 26;
/** What a landscape page has room for, and the least height of the rows on it, CSS pixels. */
const PAGE = 690;
const LEAST = 220;

export abstract class TimeView {
  readonly element: HTMLElement;
  protected readonly data: Data;
  protected readonly store: Store;
  protected readonly tip: Tip;
  private canvas = h("canvas", { tabindex: "0" });
  private scroll: HTMLElement;
  private spacer = h("div", { class: "spacer" });
  private axis = new Axis(AXIS, true);
  private marks: Marks;
  private cursor: Cursor;
  private pointed: Pointed;
  private plot: HTMLElement;
  private empty = h("p", { class: "empty", hidden: true, role: "status" }, "No process matches here.");
  private pixels = new Pixels(1, 1);
  private pending = 0;
  /** The size of the scrolled part and how far it is scrolled, as the browser last told them: to ask costs a layout. */
  private room = { width: 0, height: 0, top: 0 };
  private drag: null | { x: number; y: number; t0: number; t1: number; top: number; range: boolean; moved: boolean } =
    null;
  private touches = new Map<number, { x: number; y: number }>();
  private colors: Theme | null = null;
  /** The time that the last frame showed. */
  private last = { t0: -1, t1: -1 };
  /** The time that the picture on the canvas shows. */
  private painted = { t0: 0, t1: 0 };
  /** For the tests: frames drawn. */
  frames = 0;

  constructor(
    context: Context,
    name: string,
    hint: string,
    toolbar: HTMLElement,
    private above: (Above | null)[] = [],
  ) {
    this.data = context.data;
    this.store = context.store;
    this.tip = context.tip;
    this.pointed = context.pointed;
    this.marks = new Marks(this.store);
    this.cursor = new Cursor(context);
    this.marks.element.prepend(this.cursor.line);
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", name);
    this.scroll = h("div", { class: "scroll" }, this.canvas, this.spacer);
    this.plot = h(
      "div",
      { class: "plot" },
      ...above.map((lane) => lane?.element ?? null),
      this.axis.element,
      this.scroll,
      this.marks.element,
      this.empty,
    );
    this.element = h(
      "div",
      { class: "timeview" },
      toolbar,
      this.plot,
      h("p", { class: "hint" }, hint),
      this.cursor.text,
    );
    context.pointed.listen(() => this.drawLine());
    this.scroll.addEventListener("scroll", () => {
      this.room.top = this.scroll.scrollTop;
      this.draw();
    });
    new ResizeObserver(() => {
      this.measure();
      this.draw();
    }).observe(this.scroll);
    this.listen();
  }

  /** Rows' height in all, CSS pixels. */
  protected abstract contentHeight(): number;
  /** The height that the rows have where there is room for it. */
  protected mostHeight(): number {
    return this.contentHeight();
  }
  /** Paints the pixels of the plot, then what is drawn above it. */
  protected isEmpty(): boolean {
    return this.store.matches !== null && this.store.matchCount === 0;
  }
  protected abstract paint(frame: Frame): void;
  /** The height that the rows are seen in. */
  protected resized(_height: number): void {}
  /** What is at a point of the plot or of the labels: tells and picks. */
  protected abstract hover(event: PointerEvent, t: number, y: number): void;
  protected abstract pick(t: number, y: number, twice: boolean): void;
  /** Scrolls so that the selected one is seen. */
  abstract reveal(): void;
  /** Chooses the next or the previous row. */
  abstract step(by: number): void;

  themeChanged() {
    this.colors = null;
    this.draw();
  }

  /** Drawn at once for paper: as high as it is, if a page is; and as before. */
  paper(on: boolean) {
    this.colors = null;
    this.scroll.style.height = "";
    this.measure();
    // The lanes above the rows have the page's width now, and leave the rest of it to the rows.
    if (on) this.frame();
    const above = this.scroll.getBoundingClientRect().top + scrollY;
    this.scroll.style.height = on ? `${Math.max(LEAST, Math.min(PAGE - above, this.contentHeight()))}px` : "";
    this.measure();
    this.frame();
  }

  protected scrollTo(y: number, height: number) {
    const room = this.scroll.clientHeight;
    const top = this.scroll.scrollTop;
    this.sync();
    if (y < top + height || y + height > top + room - height) this.scroll.scrollTop = Math.max(0, y - room / 3);
  }

  private measure() {
    const { clientWidth: width, clientHeight: height, scrollTop: top } = this.scroll;
    this.room = { width, height, top };
  }

  /** What the numbers in the gutter are; "": there are none. */
  protected numbers(_gutter: number): string {
    return "";
  }

  protected gutter(): number {
    const { width } = this.room;
    return width < 640 ? 112 : Math.min(260, Math.round(width * 0.22));
  }

  /** Of the time axis, CSS pixels. */
  protected plotWidth(): number {
    return Math.max(1, this.room.width - this.gutter());
  }

  private sync() {
    const height = `${Math.max(0, this.contentHeight() - this.room.height)}px`;
    if (this.spacer.style.height !== height) this.spacer.style.height = height;
    // No empty box below few rows.
    const most = `${Math.ceil(this.mostHeight()) + 2 * BORDER}px`;
    if (this.scroll.style.maxHeight !== most) this.scroll.style.maxHeight = most;
  }

  draw() {
    if (this.pending === 0) this.pending = requestAnimationFrame(() => this.frame());
  }

  private frame() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    const { width } = this.room;
    if (width === 0) return;
    this.frames++;
    const gutter = this.gutter();
    this.colors ??= theme();
    // The lanes' heights decide what is left for the rows.
    const before = resizes;
    const { state } = this.store;
    // While the time moves, each lane and the axis are drawn in every second frame: with 25,000 processes they take as much
    // CPU time as the rows. The first frame after that draws all.
    const moves = isMoving() && (state.t0 !== this.last.t0 || state.t1 !== this.last.t1);
    this.last = { t0: state.t0, t1: state.t1 };
    if (moves && this.stretch()) return this.draw();
    this.painted = this.last;
    if (this.canvas.style.transform) this.canvas.style.transform = "";
    const isDue = (n: number) => !moves || (this.frames + n) % 2 === 0;
    this.above.forEach((lane, n) => {
      if (lane && this.colors && isDue(n)) lane.draw(width, gutter, this.colors);
    });
    if (resizes !== before) this.measure();
    const { height, top } = this.room;
    this.resized(height);
    this.empty.hidden = !this.isEmpty();
    this.sync();
    const ratio = density();
    const ctx = this.canvas.getContext("2d");
    if (!ctx) return;
    const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== hgt) {
      this.canvas.width = w;
      this.canvas.height = hgt;
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const plot = Math.max(1, w - Math.round(gutter * ratio));
    if (this.pixels.width !== plot || this.pixels.height !== hgt) this.pixels = new Pixels(plot, hgt);
    const x = (t: number) => gutter + ((t - state.t0) / (state.t1 - state.t0)) * (width - gutter);
    this.pixels.data.fill(0);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, w, hgt);
    this.paint({
      ctx,
      pixels: this.pixels,
      theme: this.colors,
      ratio,
      gutter,
      width,
      height,
      top,
      state,
      x,
    });
    if (isDue(0)) this.axis.draw([state.t0, state.t1], [gutter, width], this.numbers(gutter));
    this.marks.draw(width, gutter);
    this.drawLine();
    if (moves) this.draw();
  }

  /**
   * While the time of a large recording moves, two of three frames stretch the last picture: to paint 25,000 processes
   * takes most of the main thread's time. Rows without a gutter alone are pictures of time from edge to edge.
   */
  private stretch(): boolean {
    const { t0, t1 } = this.store.state;
    if (this.gutter() > 0 || this.data.pieces.kind.length <= LARGE || this.frames % 3 === 0) return false;
    const [from, to] = [this.painted.t0, this.painted.t1];
    if (to <= from) return false;
    const left = ((from - t0) / (t1 - t0)) * this.room.width;
    this.canvas.style.transform = `translateX(${left}px) scaleX(${(to - from) / (t1 - t0)})`;
    return true;
  }

  private drawLine() {
    // To ask for a place costs a layout.
    if (!this.cursor.seen) return this.cursor.hide();
    const { width } = this.room;
    if (width > 0) this.cursor.draw(width, this.gutter(), this.scroll.offsetTop - AXIS);
  }

  /** Asks for a note at the pointer, or in the middle. */
  annotate() {
    const { t0, t1, at } = this.store.state;
    const t = this.pointed.t >= 0 ? this.pointed.t : at;
    this.marks.edit(t >= t0 && t <= t1 ? t : (t0 + t1) / 2);
  }

  /** Puts the painted pixels on the canvas; what is drawn after lies above. */
  protected blit(frame: Frame) {
    frame.ctx.putImageData(frame.pixels.image, Math.round(frame.gutter * frame.ratio), 0);
    frame.ctx.setTransform(frame.ratio, 0, 0, frame.ratio, 0, 0);
  }

  private listen() {
    const { canvas, store } = this;
    const place = (event: { clientX: number; clientY: number }) => {
      // Not the canvas's place, which is stretched while the time moves.
      const { scroll } = this;
      const box = scroll.getBoundingClientRect();
      const [gutter, width] = [this.gutter(), scroll.clientWidth];
      const share = (event.clientX - box.left - scroll.clientLeft - gutter) / Math.max(1, width - gutter);
      const { t0, t1 } = store.state;
      return {
        share,
        t: t0 + share * (t1 - t0),
        y: event.clientY - box.top - scroll.clientTop + scroll.scrollTop,
        plot: width - gutter,
      };
    };
    // A picture that is stretched may leave its edges free.
    this.scroll.addEventListener(
      "wheel",
      (event) => {
        const { t, plot, share } = place(event);
        if (event.ctrlKey || event.metaKey || event.altKey) {
          event.preventDefault();
          store.zoomBy(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), share >= 0 ? t : undefined);
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
          event.preventDefault();
          store.pan((event.deltaX || event.deltaY) / plot);
        }
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const { t0, t1 } = store.state;
      canvas.setPointerCapture(event.pointerId);
      this.touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
      this.drag = {
        x: event.clientX,
        y: event.clientY,
        t0,
        t1,
        top: this.scroll.scrollTop,
        range: event.shiftKey,
        moved: false,
      };
    });
    canvas.addEventListener("pointermove", (event) => {
      const { t, y, plot } = place(event);
      const drag = this.drag;
      if (!drag) return void this.hover(event, t, y);
      if (this.touches.size === 2) return void this.pinch(event, plot, place);
      if (Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) < 4 && !drag.moved) return;
      drag.moved = true;
      this.tip.hide();
      if (drag.range) return measure(store, t - ((event.clientX - drag.x) / plot) * (drag.t1 - drag.t0), t);
      const by = ((event.clientX - drag.x) / plot) * (drag.t1 - drag.t0);
      store.zoom(drag.t0 - by, drag.t1 - by);
      if (event.pointerType !== "mouse" || Math.abs(event.clientY - drag.y) > 8)
        this.scroll.scrollTop = drag.top - (event.clientY - drag.y);
    });
    const end = (event: PointerEvent) => {
      this.touches.delete(event.pointerId);
      const drag = this.drag;
      this.drag = null;
      if (!drag || drag.moved || event.type === "pointercancel") return;
      const { t, y } = place(event);
      this.pick(t, y, false);
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.tip.hide());
    // A finger has no place before it touches: a tap marks the moment.
    let finger = false;
    const point = (event: PointerEvent | MouseEvent) => {
      const { share, t } = place(event);
      return share >= 0 && share <= 1 ? t : -1;
    };
    this.plot.addEventListener("pointerdown", (event) => (finger = event.pointerType !== "mouse"));
    this.plot.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") this.pointed.set(this.drag ? -1 : point(event));
    });
    this.plot.addEventListener("pointerleave", () => this.pointed.set(-1));
    this.plot.addEventListener("click", (event) => {
      const t = point(event);
      if (finger && t >= 0) store.set({ at: Math.round(t) });
    });
    canvas.addEventListener("dblclick", (event) => {
      const { t, y, share } = place(event);
      if (share < 0) this.pick(t, y, true);
      else store.zoomBy(0.4, t);
    });
  }

  private pinch(event: PointerEvent, plot: number, place: (at: { clientX: number; clientY: number }) => { t: number }) {
    const before = [...this.touches.values()];
    const old = Math.hypot(before[0].x - before[1].x, before[0].y - before[1].y);
    this.touches.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const now = [...this.touches.values()];
    const distance = Math.hypot(now[0].x - now[1].x, now[0].y - now[1].y);
    const moved = (now[0].x + now[1].x - before[0].x - before[1].x) / 2;
    if (this.drag) this.drag.moved = true;
    const middle = place({ clientX: (before[0].x + before[1].x) / 2, clientY: 0 }).t;
    if (distance > 0 && old > 0) this.store.zoomBy(old / distance, middle);
    this.store.pan(-moved / plot);
    this.drag = this.drag && {
      ...this.drag,
      x: event.clientX,
      y: event.clientY,
      t0: this.store.state.t0,
      t1: this.store.state.t1,
      top: this.scroll.scrollTop,
    };
  }
}

/** Buttons for the time axis. */
export function zoomButtons(store: Store): HTMLElement {
  const button = (text: string, name: string, click: () => void) =>
    h("button", { type: "button", title: name, "aria-label": name, onclick: click }, text);
  return h(
    "div",
    { class: "choice zoom", role: "group", "aria-label": "Zoom" },
    button("−", "Zoom out (-)", () => store.zoomBy(2)),
    button("+", "Zoom in (+)", () => store.zoomBy(0.5)),
    button("Whole", "Show the whole recording (0)", () => store.zoom(...store.whole)),
  );
}
