// Numbers with units, as the text reports write them.

const SCALES: [number, string, number][] = [
  [1e9, "s", 2],
  [1e6, "ms", 0],
  [1e3, "µs", 0],
  [1, "ns", 0],
];

/** A time in ns: three digits and the unit that fits; – for none, ? if it is not known. */
export function time(ns: number | null): string {
  if (ns === null) return "?";
  if (ns <= 0) return "–";
  // Two digits after the point would round it to 60 s.
  if (ns >= 59.995e9) {
    const sixty = (n: number, unit: string) => `${Math.floor(n / 60)}:${String(n % 60).padStart(2, "0")} ${unit}`;
    const seconds = Math.floor(ns / 1e9 + 0.5);
    return seconds < 3600 ? sixty(seconds, "min") : sixty(Math.floor(ns / 60e9 + 0.5), "h");
  }
  for (const [unit, name, digits] of SCALES) {
    // 999.5 ms rounds to 1000 ms, which is 1 s.
    if (ns + Math.floor(unit / 2000) >= unit) {
      const value = ns / unit;
      const more = digits === 0 && value < 10 && unit > 1 ? 1 : digits;
      return `${value.toFixed(more)} ${name}`;
    }
  }
  return `${ns.toFixed(0)} ns`;
}

/** Seconds, as minutes and hours where there are. */
export function clock(s: number, digits: number): string {
  // 119.9996 s is 2:00.000, not 1:60.000.
  const rounded = Number(s.toFixed(digits));
  if (rounded < 60) return `${s.toFixed(digits)} s`;
  const seconds = (rounded % 60).toFixed(digits).padStart(digits > 0 ? digits + 3 : 2, "0");
  const minutes = Math.floor(rounded / 60);
  return minutes < 60
    ? `${minutes}:${seconds}`
    : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds}`;
}

/** A point in time since the start, as fine as `span` needs. */
export function at(ns: number, span = 1e9): string {
  const digits = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(Math.max(span, 1) / 1e9))));
  return clock(ns / 1e9, digits);
}

/** 28253 as 28,253. */
export function count(n: number | null): string {
  if (n === null) return "?";
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Bytes, in powers of 1024: rounded to a whole number and a unit, below ten to a tenth. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (at < units.length - 1 && Math.floor(n / 1024 ** at + 0.5) >= 1024) at++;
  const tenths = Math.floor((n * 10) / 1024 ** at + 0.5);
  if (at > 0 && tenths < 100 && tenths % 10 > 0) return `${Math.floor(tenths / 10)}.${tenths % 10} ${units[at]}`;
  return `${count(Math.floor(n / 1024 ** at + 0.5))} ${units[at]}`;
}

/** A share in percent. */
export function share(part: number, whole: number): string {
  if (whole <= 0) return "–";
  const percent = (part * 100) / whole;
  return percent > 0 && percent < 1 ? "<1 %" : `${percent.toFixed(0)} %`;
}
