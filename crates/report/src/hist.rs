//! How long things took: how many in each power of two of µs, as bcc's
//! `cpudist` and `runqlat` count and draw them.

use serde::Serialize;

use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::units;

/// Lengths in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hist {
    /// Sorted.
    lengths: Vec<u64>,
    total: u64,
    /// Those whose beginning or end is not known: how many, and for how long
    /// at least.
    cut: (u64, u64),
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// From so many whole µs.
    pub from_us: u64,
    /// To so many, these included.
    pub to_us: u64,
    /// How many.
    pub count: u64,
    /// How long all of them.
    pub ns: u64,
}

/// For JSON: times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    count: u64,
    total_ns: u64,
    median_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
    cut_count: u64,
    cut_ns: u64,
    slots: Vec<Slot>,
}

/// The names of a slot's columns in CSV.
pub const SLOT_KEYS: [&str; 4] = ["from_us", "to_us", "count", "total_ns"];

/// The widest bar, as bcc has it.
const STARS: usize = 40;
/// A row without its bar.
const ROW: usize = 38;

impl Hist {
    /// Of such lengths, each with whether it is known from its beginning to its
    /// end.
    pub fn new(lengths: impl IntoIterator<Item = (u64, bool)>) -> Hist {
        let mut hist = Hist::default();
        for (length, whole) in lengths {
            if whole {
                hist.lengths.push(length);
                hist.total += length;
            } else {
                hist.cut.0 += 1;
                hist.cut.1 += length;
            }
        }
        hist.lengths.sort_unstable();
        hist
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// How long all of them.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Those with an end that is not known: how many, and for how long at least.
    pub fn cut(&self) -> (u64, u64) {
        self.cut
    }

    /// The length that so many of a thousand do not exceed (nearest rank).
    pub fn quantile(&self, permille: usize) -> Option<u64> {
        let rank = (self.lengths.len() * permille).div_ceil(1000);
        self.lengths.get(rank.max(1) - 1).copied()
    }

    /// The rows, from 0 µs to the longest.
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
                slot.ns += ns;
            }
        }
        slots
    }

    /// Rows of CSV, each after the cells that say of what: the slots, then those
    /// without a known beginning or end, of no known length.
    pub fn records(&self, of: &[Cell], table: &mut Table) {
        let mut record = |from, to, count, ns| {
            let slot = [from, to, Cell::Count(count), Cell::Time(ns)];
            table.record([of, &slot].concat());
        };
        for slot in self.slots() {
            let (from, to) = (Cell::Count(slot.from_us), Cell::Count(slot.to_us));
            record(from, to, slot.count, slot.ns);
        }
        let (count, ns) = self.cut;
        if count > 0 {
            record(Cell::Unknown, Cell::Unknown, count, ns);
        }
    }

    /// For JSON.
    pub fn facts(&self) -> Facts {
        Facts {
            count: self.count(),
            total_ns: self.total,
            median_ns: self.quantile(500),
            p90_ns: self.quantile(900),
            p99_ns: self.quantile(990),
            max_ns: self.quantile(1000),
            cut_count: self.cut.0,
            cut_ns: self.cut.1,
            slots: self.slots(),
        }
    }

    /// In one line: how many `what`, how long together, and how they spread.
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

    /// The rows, as `cpudist` draws them; where there is room, with the time.
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
        let head = format!("     {:<19} : {:<8}  distribution", "usecs", "count");
        let head = match times {
            true => units::pad(&head, ROW + columns, false) + "      time",
            false => head,
        };
        let _ = writeln!(out, "{}", style.paint(Paint::Bold, &head));
        for slot in &slots {
            let bar = match style.ascii {
                true => style.bar(slot.count, most, columns).replace('#', "*"),
                false => style.bar(slot.count, most, columns),
            };
            let time = match times {
                true => format!(
                    " {} {}",
                    units::pad(&units::time(slot.ns), 9, true),
                    units::pad(&units::share(slot.ns, self.total), 5, true)
                ),
                false => String::new(),
            };
            let _ = writeln!(
                out,
                "{:>10} -> {:<10} : {:<8} |{}|{time}",
                slot.from_us,
                slot.to_us,
                slot.count,
                style.paint(Paint::Bar, &units::pad(&bar, columns, false)),
            );
        }
        out
    }
}

/// A row each: how many of `what`, how long, how they spread.
pub fn table<'a>(
    what: &str,
    title: impl Into<String>,
    rows: impl IntoIterator<Item = (String, &'a Hist)>,
) -> Table {
    let mut table = Table::new()
        .column("time", "")
        .column(what, "")
        .column("half up to", "")
        .column("99 % up to", "")
        .column("longest", "")
        .name(title, "");
    for (name, hist) in rows {
        let quantile = |permille| Cell::known(hist.quantile(permille), Cell::Time);
        let cells = vec![
            Cell::Time(hist.total()),
            Cell::Count(hist.count()),
            quantile(500),
            quantile(990),
            quantile(1000),
        ];
        table.row(cells, name, Paint::Plain);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_powers_of_two_as_bcc_has_them() {
        let us = [0, 1, 2, 3, 4, 7, 8, 9];
        let hist = Hist::new(us.map(|us| (us * 1000 + 999, true)));
        let rows: Vec<_> = hist.slots();
        let rows: Vec<_> = rows.iter().map(|s| (s.from_us, s.to_us, s.count)).collect();
        assert_eq!(rows, [(0, 1, 2), (2, 3, 2), (4, 7, 2), (8, 15, 2)]);
        let sum: u64 = hist.slots().iter().map(|slot| slot.ns).sum();
        assert_eq!(sum, hist.total());
        let style = Style {
            width: 80,
            color: false,
            ascii: true,
        };
        assert_eq!(
            hist.draw(&style).lines().nth(2),
            Some("         2 -> 3          : 2        |****************************************|"),
            "column by column as print_log2_hist"
        );
        assert!(hist.draw(&style).lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn quantiles_are_lengths_that_were_there() {
        let hist = Hist::new((1..=10).map(|ns| (ns, true)).chain([(99, false)]));
        let quantiles = [1, 500, 501, 900, 1000].map(|q| hist.quantile(q));
        assert_eq!(quantiles, [1, 5, 6, 9, 10].map(Some));
        assert_eq!((hist.total(), hist.cut()), (55, (1, 99)));
        assert_eq!(Hist::default().quantile(500), None);
        assert!(Hist::default().slots().is_empty());
    }
}
