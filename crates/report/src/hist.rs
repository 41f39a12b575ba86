//! Log2 histograms of durations in µs, as bcc's `cpudist` and `runqlat` draw them.

use serde::Serialize;
use serde_json::json;
use tr_format::event::CpuId;

use crate::members::{Collect, Members};
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Table};
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

/// A piece of a thread's time, and the CPU that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    pub ns: u64,
    /// Whether the beginning and the end are known.
    pub whole: bool,
    pub cpu: Option<CpuId>,
}

impl Collect<Length> for Hist {
    fn add(&mut self, length: &Length) {
        if length.whole {
            self.lengths.push(length.ns);
            self.total = self.total.saturating_add(length.ns);
        } else {
            self.cut.0 += 1;
            self.cut.1 = self.cut.1.saturating_add(length.ns);
        }
    }

    fn finish(&mut self) {
        self.lengths.sort_unstable();
    }
}

/// A slot in whole µs, the number of durations, and their ns; those without known ends have no slot.
type Bin = (Option<(u64, u64)>, u64, u64);

/// A row of histograms: of a group of threads, or of a CPU.
#[derive(Clone, Debug)]
pub struct HistRow<'r> {
    /// The name of the group, or the number of the CPU.
    pub name: String,
    pub pid: Option<u32>,
    pub cpu: Option<CpuId>,
    pub hist: &'r Hist,
}

impl<'r> HistRow<'r> {
    pub fn group((group, hist): &'r (Members, Hist)) -> HistRow<'r> {
        HistRow {
            name: group.name.clone(),
            pid: group.pid,
            cpu: None,
            hist,
        }
    }

    pub fn cpu((cpu, hist): (&CpuId, &'r Hist)) -> HistRow<'r> {
        HistRow {
            name: cpu.0.to_string(),
            pid: None,
            cpu: Some(*cpu),
            hist,
        }
    }
}

/// A table with the number of `what`, their sum and quantiles in each row.
pub fn table<'a>(what: &str) -> Table<'a, HistRow<'a>> {
    let quantile =
        |permille| move |row: &HistRow<'_>| Cell::known(row.hist.quantile(permille), Cell::Time);
    let name = |row: &HistRow<'_>| match row.cpu {
        Some(cpu) => format!("CPU {}", cpu.0),
        None => row.name.clone(),
    };
    Table::new("", name)
        .fact("time", "total_ns", |row| Cell::Time(row.hist.total()))
        .fact(what, "count", |row| Cell::Count(row.hist.count()))
        .fact("half up to", "median_ns", quantile(500))
        .data("p90_ns", |row| row.hist.quantile(900))
        .fact("99 % up to", "p99_ns", quantile(990))
        .fact("longest", "max_ns", quantile(1000))
        .data("cut_count", |row| row.hist.cut().0)
        .data("cut_ns", |row| row.hist.cut().1)
        .data("slots", |row| json!(row.hist.slots()))
}

/// The slots of histograms as CSV; `with_cpus`: some of them belong to CPUs.
pub fn csv<'a>(
    rows: impl IntoIterator<Item = HistRow<'a>>,
    with_cpus: bool,
) -> Result<Vec<u8>, csv::Error> {
    type BinRow<'r> = (HistRow<'r>, Bin);
    let mut table: Table<'_, BinRow<'_>> = Table::unnamed();
    if with_cpus {
        table = table.data("of", |(row, _)| row.cpu.map_or("group", |_| "cpu"));
    }
    let table = table
        .data("name", |(row, _)| row.name.clone())
        .data("pid", |(row, _)| row.pid)
        .data("from_us", |(_, (slot, ..))| slot.map(|(from, _)| from))
        .data("to_us", |(_, (slot, ..))| slot.map(|(_, to)| to))
        .data("count", |(_, (_, count, _))| *count)
        .data("total_ns", |(_, (.., ns))| *ns);
    table.csv(rows.into_iter().flat_map(|row| {
        let slots = row.hist.slots_and_cut().into_iter();
        slots.map(move |slot| (row.clone(), slot))
    }))
}
