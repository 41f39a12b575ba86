//! Log2 histograms of durations in µs, as bcc's `cpudist` and `runqlat` draw them.

use serde::Serialize;
use serde_json::{json, Value};

use crate::encode::with;
use crate::members::Members;
use crate::query::By;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::units;
use crate::view::View;

/// Durations in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hist {
    lengths: Vec<u64>,
    total: u64,
    /// Durations without a known start or end: their number, and the sum of
    /// their lower bounds.
    cut: (u64, u64),
}

/// A slot of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// The shortest duration, in whole µs.
    pub from_us: u64,
    /// The longest duration, in whole µs.
    pub to_us: u64,
    /// The number of durations.
    pub count: u64,
    pub ns: u64,
}

/// The columns of [`Hist::rows`] in CSV.
pub(crate) const SLOT_COLUMNS: &str = " from_us to_us count total_ns=ns";

const STARS: usize = 40;
/// The width of a row without its bar.
const ROW: usize = 38;

impl Hist {
    /// A histogram of lengths; the flag says whether both ends are known.
    pub fn new(lengths: impl IntoIterator<Item = (u64, bool)>) -> Hist {
        let mut hist = Hist::default();
        for (length, whole) in lengths {
            if whole {
                hist.lengths.push(length);
                hist.total = hist.total.saturating_add(length);
            } else {
                hist.cut.0 += 1;
                hist.cut.1 = hist.cut.1.saturating_add(length);
            }
        }
        hist.lengths.sort_unstable();
        hist
    }

    /// The number of durations with known ends.
    pub fn count(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// The sum of the durations with known ends.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of the other durations, and the sum of their lower bounds.
    pub fn cut(&self) -> (u64, u64) {
        self.cut
    }

    /// A quantile by nearest rank.
    pub fn quantile(&self, permille: usize) -> Option<u64> {
        let rank = (self.lengths.len() * permille).div_ceil(1000);
        self.lengths.get(rank.max(1) - 1).copied()
    }

    /// The slots from 0 µs to the longest duration's.
    pub fn slots(&self) -> Vec<Slot> {
        // bcc's print_log2_hist: 0 -> 1, 2 -> 3, 4 -> 7, …
        let place = |ns: u64| (ns / 1000).max(1).ilog2();
        let Some(last) = self.lengths.last().map(|ns| place(*ns)) else {
            return Vec::new();
        };
        let mut slots: Vec<Slot> = (0..=last)
            .map(|power| Slot {
                from_us: if power == 0 { 0 } else { 1 << power },
                to_us: (2 << power) - 1,
                count: 0,
                ns: 0,
            })
            .collect();
        for ns in &self.lengths {
            if let Some(slot) = slots.get_mut(place(*ns) as usize) {
                slot.count += 1;
                slot.ns = slot.ns.saturating_add(*ns);
            }
        }
        slots
    }

    /// Rows for CSV: the slots, then the durations without known ends, if there
    /// are any. Each has the members of `of`.
    pub(crate) fn rows(&self, of: &Value) -> Vec<Value> {
        let (count, ns) = self.cut;
        let cut = (count > 0).then(|| json!({"count": count, "ns": ns}));
        let slots = self.slots().into_iter().map(|slot| json!(slot));
        let rows = slots.chain(cut);
        rows.map(|row| with(of.clone(), row)).collect()
    }

    /// JSON, with the members of `of`; times in ns.
    pub(crate) fn json(&self, of: Value) -> Value {
        let figures = json!({
            "count": self.count(),
            "total_ns": self.total,
            "median_ns": self.quantile(500),
            "p90_ns": self.quantile(900),
            "p99_ns": self.quantile(990),
            "max_ns": self.quantile(1000),
            "cut_count": self.cut.0,
            "cut_ns": self.cut.1,
            "slots": self.slots(),
        });
        with(of, figures)
    }

    /// The number of `what`, their sum and quantiles, in words.
    pub fn summary(&self, what: &str) -> Vec<String> {
        let mut parts = vec![format!("{} {what}", units::count(self.count()))];
        let quantile = |permille| units::time(self.quantile(permille).unwrap_or(0));
        if !self.lengths.is_empty() {
            parts.push(format!("{} in all", units::time(self.total)));
            parts.push(format!("half up to {}", quantile(500)));
            parts.push(format!("99 % up to {}", quantile(990)));
            parts.push(format!("longest {}", quantile(1000)));
        }
        if self.cut.0 > 0 {
            parts.push(format!(
                "{} more without a known beginning or end ({})",
                units::count(self.cut.0),
                units::time(self.cut.1)
            ));
        }
        parts
    }

    /// The slots as `cpudist` draws them, with their times if there is room.
    pub fn draw(&self, style: &Style) -> String {
        use std::fmt::Write;
        let slots = self.slots();
        let most = slots.iter().map(|slot| slot.count).max().unwrap_or(0);
        let columns = style.width.saturating_sub(ROW + 2).clamp(4, STARS);
        let times = style.width >= ROW + STARS + 22;
        let mut out = String::new();
        if most == 0 {
            return out;
        }
        let mut head = format!("     {:<19} : {:<8}  distribution", "usecs", "count");
        if times {
            head = units::pad(&head, ROW + columns, false) + "      time";
        }
        style.painted(&mut out, Paint::Bold, &head);
        for slot in &slots {
            let mut bar = style.bar(slot.count, most, columns);
            if style.ascii {
                bar = bar.replace('#', "*");
            }
            let bar = style.paint(Paint::Bar, &units::pad(&bar, columns, false));
            let _ = write!(
                out,
                "{:>10} -> {:<10} : {:<8} |{bar}|",
                slot.from_us, slot.to_us, slot.count
            );
            if times {
                let time = units::pad(&units::time(slot.ns), 9, true);
                let share = units::pad(&units::share(slot.ns, self.total), 5, true);
                let _ = write!(out, " {time} {share}");
            }
            out.push('\n');
        }
        out
    }
}

/// A table with the number of `what`, their sum and quantiles in each row.
pub fn table<'a>(
    what: &str,
    title: impl Into<String>,
    rows: impl IntoIterator<Item = (String, &'a Hist)>,
    style: &Style,
) -> String {
    let quantile = |permille| {
        move |(_, hist): &(String, &Hist)| Cell::known(hist.quantile(permille), Cell::Time)
    };
    Table::new(title, |(name, _): &(String, &Hist)| name.clone())
        .column("time", |(_, hist)| Cell::Time(hist.total()))
        .column(what, |(_, hist)| Cell::Count(hist.count()))
        .column("half up to", quantile(500))
        .column("99 % up to", quantile(990))
        .column("longest", quantile(1000))
        .text(rows, style, 0)
}

/// A histogram of each group of threads.
pub(crate) struct Groups<'a> {
    pub view: View<'a>,
    pub by: By,
    /// `slices` or `waits`.
    pub what: &'static str,
    pub groups: Vec<(Members, Hist)>,
}

impl Groups<'_> {
    /// A row for each of the first groups.
    pub fn table(&self, style: &Style) -> String {
        let top = self.view.ask.top;
        let title = units::top(self.by.title(), top, self.groups.len());
        let groups = self.groups.iter().take(top);
        let rows = groups.map(|(group, hist)| (group.name.clone(), hist));
        table(self.what, title, rows, style)
    }

    /// The histograms of the first groups.
    pub fn draw(&self, out: &mut String, style: &Style) {
        for (group, hist) in self.groups.iter().take(self.view.ask.top) {
            let pid = group.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
            let room = style.width.saturating_sub(units::width(&pid));
            let name = units::shorten(&group.name, room) + &pid;
            out.push('\n');
            style.painted(out, Paint::Bold, &name);
            style.items(out, "", &hist.summary(self.what), " · ");
            out.push_str(&hist.draw(style));
        }
    }

    fn asked(&self) -> impl Iterator<Item = (Value, &Hist)> {
        let groups = self.groups.iter().take(self.view.ask.most());
        groups.map(|(group, hist)| (json!({"name": group.name, "pid": group.pid}), hist))
    }

    pub fn json(&self) -> Vec<Value> {
        let groups = self.asked();
        groups.map(|(group, hist)| hist.json(group)).collect()
    }

    pub fn rows(&self) -> impl Iterator<Item = Value> + '_ {
        self.asked().flat_map(|(group, hist)| {
            let of = with(group, json!({"of": "group"}));
            hist.rows(&of)
        })
    }
}
