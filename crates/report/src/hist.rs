//! Log2 histograms of durations in µs, as bcc's `cpudist` and `runqlat` draw them.

use serde::Serialize;
use serde_json::{json, Value};

use crate::members::Members;
use tr_insight::query::By;
use tr_insight::view::View;
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Table, Title};
use tr_text::units;

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

    /// The slots, then the durations without known ends, if there are any.
    fn slots_and_cut(&self) -> Vec<Bin> {
        let slots = self.slots().into_iter();
        let slots = slots.map(|slot| (Some((slot.from_us, slot.to_us)), slot.count, slot.ns));
        let cut = (self.cut.0 > 0).then_some((None, self.cut.0, self.cut.1));
        slots.chain(cut).collect()
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
    pub fn draw(&self, out: &mut Page, style: &Style) {
        let slots = self.slots();
        let most = slots.iter().map(|slot| slot.count).max().unwrap_or(0);
        let columns = style.width.saturating_sub(ROW + 2).clamp(4, STARS);
        let times = style.width >= ROW + STARS + 22;
        if most == 0 {
            return;
        }
        let mut head = format!("     {:<19} : {:<8}  distribution", "usecs", "count");
        if times {
            head = units::pad(&head, ROW + columns, false) + "      time";
        }
        out.painted(Paint::Bold, &head);
        for slot in &slots {
            let bar = style.bar_of('*', slot.count, most, columns);
            let bar = Span::new(Paint::Bar, units::pad(&bar, columns, false));
            let range = format!("{:>10} -> {:<10}", slot.from_us, slot.to_us);
            let lead = format!("{range} : {:<8} |", slot.count);
            let mut end = "|".to_owned();
            if times {
                let time = units::pad(&units::time(slot.ns), 9, true);
                let share = units::pad(&units::share(slot.ns, self.total), 5, true);
                end += &format!(" {time} {share}");
            }
            out.spans([lead.into(), bar, end.into()]);
        }
    }
}

/// A slot in whole µs, the number of durations, and their ns; those without known ends have no slot.
type Bin = (Option<(u64, u64)>, u64, u64);

/// A row of histograms: what it is of, its name, its pid, the histogram.
pub type HistRow<'r> = (&'static str, String, Option<u32>, &'r Hist);

/// A table with the number of `what`, their sum and quantiles in each row.
pub fn table<'a>(what: &str) -> Table<'a, HistRow<'a>> {
    let quantile =
        |permille| move |(.., hist): &HistRow<'_>| Cell::known(hist.quantile(permille), Cell::Time);
    Table::new("", |(_, name, ..): &HistRow<'_>| name.clone())
        .fact("time", "total_ns", |(.., hist)| Cell::Time(hist.total()))
        .fact(what, "count", |(.., hist)| Cell::Count(hist.count()))
        .fact("half up to", "median_ns", quantile(500))
        .data("p90_ns", |(.., hist)| hist.quantile(900))
        .fact("99 % up to", "p99_ns", quantile(990))
        .fact("longest", "max_ns", quantile(1000))
        .data("cut_count", |(.., hist)| hist.cut.0)
        .data("cut_ns", |(.., hist)| hist.cut.1)
        .data("slots", |(.., hist)| json!(hist.slots()))
}

/// The slots of histograms as CSV.
pub fn csv<'a>(
    rows: impl IntoIterator<Item = HistRow<'a>>,
    of: bool,
) -> Result<Vec<u8>, csv::Error> {
    type BinRow<'r> = (HistRow<'r>, Bin);
    let mut table: Table<'_, BinRow<'_>> = Table::unnamed();
    if of {
        table = table.data("of", |((of, ..), _)| *of);
    }
    let table = table
        .data("name", |((_, name, ..), _)| name.clone())
        .data("pid", |((_, _, pid, _), _)| *pid)
        .data("from_us", |(_, (slot, ..))| slot.map(|(from, _)| from))
        .data("to_us", |(_, (slot, ..))| slot.map(|(_, to)| to))
        .data("count", |(_, (_, count, _))| *count)
        .data("total_ns", |(_, (.., ns))| *ns);
    table.csv(rows.into_iter().flat_map(|row| {
        let slots = row.3.slots_and_cut().into_iter();
        slots.map(move |slot| (row.clone(), slot))
    }))
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
    pub fn table(&self, out: &mut Page) {
        let top = self.view.ask.top;
        let title = Title::top(self.by.title(), top, self.groups.len());
        let groups = self.groups.iter().take(top);
        let rows = groups.map(row);
        out.table(&table(self.what).titled(title), rows);
    }

    /// The histograms of the first groups.
    pub fn draw(&self, out: &mut Page, style: &Style) {
        for (group, hist) in self.groups.iter().take(self.view.ask.top) {
            let pid = group.pid.map(|pid| format!(" ({pid})")).unwrap_or_default();
            let [name, pid] = [&group.name, &pid].map(|text| Span::new(Paint::Bold, text));
            out.blank();
            out.named::<Span, _>([], name, 0, [pid]);
            out.items("", hist.summary(self.what));
            hist.draw(out, style);
        }
    }

    /// The groups of CSV and JSON.
    pub fn asked(&self) -> impl Iterator<Item = HistRow<'_>> {
        self.groups.iter().take(self.view.ask.most()).map(row)
    }

    pub fn json(&self) -> Value {
        let table = table(self.what)
            .data("name", |(_, name, ..)| name.clone())
            .data("pid", |(_, _, pid, _)| *pid);
        table.rows(self.asked())
    }
}

fn row((group, hist): &(Members, Hist)) -> HistRow<'_> {
    ("group", group.name.clone(), group.pid, hist)
}
