// Lanes above the timeline: network connections and DNS queries, waits for disks, counters of the machine.

import { scale } from "./axis";
import { first, KINDS, ON, runs, type Data } from "./data";
import { h } from "./dom";
import { FONT } from "./heatmap";
import { fit, sized, type Theme } from "./paint";
import type { Context } from "./timeview";
import { at, bytes, time } from "./units";

const ROW = 18;
/** The most rows of connections and DNS queries; those without a row appear after zooming in. */
const CONNECTIONS = 4;
/** A smaller share of time gives the machine's counter no lane. */
const LEAST = 0.01;

/** Shorter waits for disks in all, as a part of the recording, have no lane. */
const SEEN = 1000;

/** A counter of the machine as a share of its most, between samples. */
interface Series {
  name: string;
  shares: number[];
  text: (share: number) => string;
}

/** Waits for disks and files by their beginning. */
interface Waits {
  piece: Uint32Array;
  thread: Uint32Array;
}

/** Something under the pointer: a connection, a DNS query, or a row at a time. */
interface Box {
  top: number;
  left: number;
  right: number;
  tell: (t: number) => (HTMLElement | null)[];
  process: number;
}

export class Resources {
  readonly element: HTMLElement;
  private canvas = h("canvas", {
    role: "img",
    "aria-label": "Network connections, waits for disks, and the machine over time",
  });
  private boxes: Box[] = [];
  private scale = scale({ t0: 0, t1: 1 }, 1, 0);
  private found: { waits: Waits; series: Series[] } | null = null;

  constructor(private context: Context) {
    const { store, tip } = context;
    this.element = h("div", { class: "lane resources", hidden: true }, this.canvas);
    this.canvas.addEventListener("pointermove", (event) => {
      const [box, t] = this.find(event);
      const lines = box?.tell(t) ?? [];
      if (lines.length > 0) tip.show(event, ...lines);
      else tip.hide();
    });
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const [box] = this.find(event);
      if (box && box.process >= 0) store.set({ sel: box.process });
    });
  }

  /** What the recording has, which is looked for when the lanes are first shown. */
  private get all(): { waits: Waits; series: Series[] } {
    if (this.found) return this.found;
    const { data, store } = this.context;
    let waits = storage(data);
    const [from, to] = store.whole;
    const waited = waits.piece.reduce((sum, p) => sum + data.pieces.end[p] - data.pieces.start[p], 0);
    if (waited * SEEN < to - from) waits = { piece: new Uint32Array(0), thread: new Uint32Array(0) };
    return (this.found = { waits, series: machine(data) });
  }
  private get waits(): Waits {
    return this.all.waits;
  }
  private get series(): Series[] {
    return this.all.series;
  }

  /** Whether the recording has any of it. */
  get known(): boolean {
    return this.context.data.doc.connections.from.length > 0 || this.waits.piece.length > 0 || this.series.length > 0;
  }

  draw(width: number, gutter: number, theme: Theme) {
    const { store, data } = this.context;
    this.element.hidden = !(store.state.resources && this.known);
    if (this.element.hidden) return;
    this.scale = scale(store.state, width, gutter);
    this.boxes = [];
    const { x } = this.scale;
    const connections = this.connections(x, width);
    const rows = connections.rows + (this.waits.piece.length > 0 ? 1 : 0) + this.series.length;
    const ctx = sized(this.canvas, width, Math.max(1, rows * ROW));
    if (!ctx) return;
    ctx.font = FONT;
    for (const draw of connections.draw) draw(ctx, theme);
    if (connections.rows > 0) this.label(ctx, "Network", 0, theme);
    let row = connections.rows;
    if (this.waits.piece.length > 0) this.drawWaits(ctx, row++, [gutter, width], theme);
    for (const series of this.series) {
      const top = row++ * ROW;
      ctx.fillStyle = theme.css.accent;
      ctx.globalAlpha = 0.55;
      const times = data.doc.counters.at;
      series.shares.forEach((share, n) => {
        const [left, right] = [x(times[n]), x(times[n + 1])];
        const high = share * (ROW - 4);
        if (right > left && share > 0) ctx.fillRect(left, top + ROW - 2 - high, right - left, high);
      });
      ctx.globalAlpha = 1;
      this.label(ctx, `${series.name}, up to ${series.text(1)}`, top, theme);
      this.boxes.push({
        top,
        left: gutter,
        right: width,
        process: -1,
        tell: (t) => {
          const n = times.findIndex((from, n) => t >= from && t < times[n + 1]);
          return n < 0
            ? []
            : [
                h("strong", {}, `${series.name}: ${series.text(series.shares[n])}`),
                h("div", { class: "dim" }, `${at(times[n])} to ${at(times[n + 1])}`),
              ];
        },
      });
    }
  }

  private label(ctx: CanvasRenderingContext2D, text: string, top: number, theme: Theme) {
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = theme.css.paper;
    ctx.fillRect(0, top, ctx.measureText(text).width + 8, ROW - 2);
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.css.ink;
    ctx.fillText(text, 3, top + ROW - 6);
  }

  /** Rows of connections and DNS queries, each where there is room. */
  private connections(x: (t: number) => number, width: number) {
    const { data, store } = this.context;
    const { t0, t1 } = store.state;
    const { process, remote, accepted, dns, from, established, to, failed, sent, received } = data.doc.connections;
    const until: number[] = [];
    const draw: ((ctx: CanvasRenderingContext2D, theme: Theme) => void)[] = [];
    from.forEach((begin, n) => {
      if (begin > t1 || to[n] < t0) return;
      const left = x(begin);
      const right = Math.max(left + 2, x(to[n]));
      let row = 0;
      while (row < CONNECTIONS && until[row] > left) row++;
      if (row === CONNECTIONS) return;
      until[row] = right + 1;
      const ix = process[n] ?? -1;
      const name = `${accepted[n] ? "from " : dns[n] ? "DNS " : ""}${data.string(remote[n])}`;
      const answer = established[n] === null ? null : `answer after ${time(established[n]! - begin)}`;
      const passed = sent[n] === null ? "bytes not known" : `${bytes(sent[n]!)} sent, ${bytes(received[n]!)} received`;
      const top = row * ROW;
      draw.push((ctx, theme) => {
        ctx.globalAlpha = ix < 0 || store.shown(ix) ? 1 : 0.25;
        ctx.fillStyle = failed[n] ? theme.css.bad : theme.css.accent;
        const open = established[n] === null ? right : Math.min(right, x(established[n]!));
        ctx.fillRect(left, top + ROW - 6, right - left, 4);
        // Until the answer came.
        ctx.fillStyle = theme.css.wait;
        if (!failed[n]) ctx.fillRect(left, top + ROW - 6, Math.max(0, open - left), 4);
        ctx.fillStyle = failed[n] ? theme.css.bad : theme.css.ink;
        if (right - left >= 24)
          ctx.fillText(fit(ctx, name, Math.min(width, right) - left - 4), left + 2, top + ROW - 8);
        ctx.globalAlpha = 1;
      });
      this.boxes.push({
        top,
        left,
        right,
        process: ix,
        tell: () => [
          h("strong", {}, name),
          h(
            "div",
            { class: "dim" },
            `${ix < 0 ? "" : `${data.label(ix)} · pid ${data.doc.processes.pid[ix]} · `}from ${at(begin)} · ${time(to[n] - begin)}${failed[n] ? " · failed" : ""}`,
          ),
          h(
            "div",
            {},
            dns[n]
              ? (answer ?? "no answer")
              : answer === null
                ? "not established"
                : accepted[n]
                  ? passed
                  : `${answer} · ${passed}`,
          ),
        ],
      });
    });
    return { rows: until.length, draw };
  }

  /** Threads that wait for a disk or a file, by column. */
  private drawWaits(ctx: CanvasRenderingContext2D, row: number, [gutter, width]: [number, number], theme: Theme) {
    const { data, store } = this.context;
    const { start, end, kind } = data.pieces;
    const { t0, t1 } = store.state;
    const { piece, thread } = this.waits;
    const n = Math.max(1, Math.floor(width - gutter));
    const dt = (t1 - t0) / n;
    // fsync, page faults, all else.
    const sums = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
    for (let w = 0; w < piece.length; w++) {
      const p = piece[w];
      if (start[p] >= t1) break;
      if (end[p] <= t0 || !store.shown(data.processOf[thread[w]])) continue;
      const column = sums[KINDS[kind[p]][2]!];
      const [from, to] = [Math.max(start[p], t0), Math.min(end[p], t1)];
      for (let c = Math.floor((from - t0) / dt); c < n && t0 + c * dt < to; c++)
        column[c] += (Math.min(to, t0 + (c + 1) * dt) - Math.max(from, t0 + c * dt)) / dt;
    }
    let most = 1;
    for (let c = 0; c < n; c++) most = Math.max(most, sums[0][c] + sums[1][c] + sums[2][c]);
    const top = row * ROW;
    const colors = [theme.css.bad, theme.css.wait, theme.css.blocked];
    for (let c = 0; c < n; c++) {
      let y = top + ROW - 2;
      sums.forEach((sum, s) => {
        const high = (sum[c] / most) * (ROW - 3);
        if (high === 0) return;
        ctx.fillStyle = colors[s];
        ctx.fillRect(gutter + c, y - Math.max(0.6, high), 1, Math.max(0.6, high));
        y -= high;
      });
    }
    this.label(ctx, `Waits for disks, up to ${most.toFixed(0)} at once`, top, theme);
    this.boxes.push({
      top,
      left: gutter,
      right: width,
      process: -1,
      tell: (t) => {
        const lines: HTMLElement[] = [];
        for (let w = 0; w < piece.length && start[piece[w]] <= t + dt; w++) {
          const p = piece[w];
          const ix = data.processOf[thread[w]];
          if (end[p] < t - dt || !store.shown(ix) || lines.length >= 6) continue;
          lines.push(
            h("div", {}, `${KINDS[kind[p]][0]} ${time(end[p] - start[p])} from ${at(start[p])}: ${data.label(ix)}`),
          );
        }
        return lines.length > 0 ? [h("strong", {}, "Waits for disks and files"), ...lines] : [];
      },
    });
  }

  private find(event: MouseEvent): [Box | undefined, number] {
    const box = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    return [
      this.boxes.find((b) => py >= b.top && py < b.top + ROW && px >= b.left - 2 && px <= b.right + 2),
      this.scale.t(px),
    ];
  }
}

function storage(data: Data): Waits {
  const { start, kind } = data.pieces;
  const all: number[] = [];
  const of = new Map<number, number>();
  for (let t = 0; t < data.processOf.length; t++) {
    for (let piece = data.pieces.first[t]; piece < data.pieces.first[t + 1]; piece++) {
      if (KINDS[kind[piece]][2] === null) continue;
      all.push(piece);
      of.set(piece, t);
    }
  }
  const piece = Uint32Array.from(all).sort((a, b) => start[a] - start[b]);
  return { piece, thread: piece.map((p) => of.get(p)!) };
}

/** The counters that changed. */
function machine(data: Data): Series[] {
  const { counters, trace } = data.doc;
  const times = counters.at;
  if (times.length < 2) return [];
  const percent = (share: number) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
  const rate = (values: (number | null)[], cpus = 1): number[] =>
    times.slice(1).map((to, n) => {
      const [a, b] = [values[n], values[n + 1]];
      return a === null || b === null || to <= times[n]
        ? 0
        : Math.min(1, Math.max(0, (b - a) / (to - times[n]) / cpus));
    });
  const busy = rate(counters.busy, trace.online);
  const own = recorded(data, times).map((ns, n) => ns / Math.max(1, times[n + 1] - times[n]) / trace.online);
  const out: Series[] = [
    {
      name: "CPUs: others",
      shares: busy.map((share, n) => (trace.all ? 0 : Math.max(0, share - own[n]))),
      text: percent,
    },
    { name: "CPUs: stolen", shares: rate(counters.stolen, trace.online), text: percent },
    { name: "Quota: throttled", shares: rate(counters.throttled, trace.cpus), text: percent },
    { name: "Pressure: CPU", shares: rate(counters.cpu), text: percent },
    { name: "Pressure: I/O", shares: rate(counters.io), text: percent },
    { name: "Pressure: memory", shares: rate(counters.memory), text: percent },
  ].filter(({ shares }) => shares.some((share) => share > LEAST));
  const most = Math.max(0, ...counters.available.map((value) => value ?? 0));
  const available = times.slice(1).map((_, n) => (counters.available[n] ?? 0) / Math.max(1, most));
  // As good as unchanged: nothing to see.
  if (Math.min(...available) < 0.9 && most > 0)
    out.push({ name: "Memory available", shares: available, text: (share) => bytes(share * most) });
  return out;
}

/** The time on a CPU of all recorded tasks between the samples. */
function recorded(data: Data, times: number[]): number[] {
  const { start, end, kind, share, shares } = data.pieces;
  const out = times.slice(1).map(() => 0);
  for (let piece = 0; piece < kind.length; piece++) {
    const part = share[piece] >= 0 ? shares[share[piece] + ON] : runs(kind[piece]) ? 1 : 0;
    if (part === 0) continue;
    for (let n = first(0, out.length, (n) => times[n + 1] > start[piece]); n < out.length && times[n] < end[piece]; n++)
      out[n] += (Math.min(end[piece], times[n + 1]) - Math.max(start[piece], times[n])) * part;
  }
  return out;
}
