//! Shows histograms of durations as text, in the way of bcc's `cpudist` and `runqlat`, and as tables.

use serde_json::json;
use tr_format::event::CpuId;

use tr_insight::hist::Hist;
use tr_insight::members::Members;
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Table};
use tr_text::units;

const STARS: usize = 40;
/// The width in columns of a histogram's row as text, without its bar of stars.
const ROW: usize = 38;

/// Lines of text that sum up a histogram of durations: their number, their sum and their quantiles. `what` is the noun
/// for one kind of durations, such as `waits`.
pub fn summary(hist: &Hist, what: &str) -> Vec<String> {
    let mut parts = vec![format!("{} {what}", units::count(hist.count()))];
    let quantile = |permille| units::time(hist.quantile(permille).unwrap_or(0));
    if hist.count() > 0 {
        parts.push(format!("{} in all", units::time(hist.total())));
        parts.push(format!("half up to {}", quantile(500)));
        parts.push(format!("99 % up to {}", quantile(990)));
        parts.push(format!("longest {}", quantile(1000)));
    }
    let (cut, cut_ns) = hist.cut();
    if cut > 0 {
        parts.push(format!(
            "{} more without a known beginning or end ({})",
            units::count(cut),
            units::time(cut_ns)
        ));
    }
    parts
}

/// Draws a histogram of durations as bcc's `cpudist` does: a row of stars for each slot. A wide terminal also shows the
/// sum of the durations in each slot.
pub fn draw(hist: &Hist, out: &mut Page, style: &Style) {
    let slots = hist.slots();
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
            let share = units::pad(&units::share(slot.ns, hist.total()), 5, true);
            end += &format!(" {time} {share}");
        }
        out.spans([lead.into(), bar, end.into()]);
    }
}

/// A slot of a histogram of durations: its bounds in whole µs, the number of durations, and their sum in ns. The bounds
/// are `None` for the slot of the durations whose whole length is not known.
type Bin = (Option<(u64, u64)>, u64, u64);

/// The slots of a histogram of durations. A last slot has the durations whose whole length is not known, if there are
/// any.
fn slots_and_cut(hist: &Hist) -> Vec<Bin> {
    let slots = hist.slots().into_iter();
    let slots = slots.map(|slot| (Some((slot.from_us, slot.to_us)), slot.count, slot.ns));
    let (count, ns) = hist.cut();
    let cut = (count > 0).then_some((None, count, ns));
    slots.chain(cut).collect()
}

/// A row of a table of histograms: the histogram of the durations of one group of threads, or of one CPU.
#[derive(Clone, Debug)]
pub struct HistRow<'r> {
    /// The name of the group of threads that the histogram is about; for the histogram of a CPU, it is not used.
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

/// A table in which each row sums up a histogram of durations: their number, which has the title `what`, their sum and
/// their quantiles.
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

/// CSV with a row for each slot of each histogram of durations. `with_cpus` adds a column for the CPU, because some
/// histograms cover the durations of a single CPU.
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
        let slots = slots_and_cut(row.hist).into_iter();
        slots.map(move |slot| (row.clone(), slot))
    }))
}
