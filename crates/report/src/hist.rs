//! Shows histograms of durations as text, in the way of bcc's `cpudist` and `runqlat`, and as tables.

use std::collections::BTreeMap;

use serde_json::json;
use tr_format::event::CpuId;

use tr_insight::views::members::Members;
use tr_insight::waits::hist::Hist;
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
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

/// Draws a histogram of durations as bcc's `cpudist` does: a row of stars for each slot, which is a range of durations.
/// A wide terminal also shows the sum of the durations in each slot.
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

/// Adds columns to a table in which each row has a histogram of durations, which `of` returns: the number of durations
/// (a column with the title `what`), their sum and their quantiles.
pub fn sums<'a, R: 'a>(table: Table<'a, R>, what: &str, of: fn(&R) -> &Hist) -> Table<'a, R> {
    let quantile = |permille| move |row: &R| Cell::known(of(row).quantile(permille), Cell::Time);
    table
        .fact("time", "total_ns", move |row| Cell::Time(of(row).total()))
        .fact(what, "count", move |row| Cell::Count(of(row).count()))
        .fact("half up to", "median_ns", quantile(500))
        .data("p90_ns", move |row| of(row).quantile(900))
        .fact("99 % up to", "p99_ns", quantile(990))
        .fact("longest", "max_ns", quantile(1000))
        .data("cut_count", move |row| of(row).cut().0)
        .data("cut_ns", move |row| of(row).cut().1)
        .data("slots", move |row| json!(of(row).slots()))
}

/// A row of CSV with histograms of durations: the CPU or the group of threads that the histogram is about, and one of
/// the histogram's slots (ranges of durations).
struct SlotRow<'r> {
    cpu: Option<CpuId>,
    group: Option<&'r Members>,
    /// The bounds, in whole µs, of the durations that the row counts; `None` for the durations whose whole length is
    /// not known.
    bounds: Option<(u64, u64)>,
    count: u64,
    total: u64,
}

/// The sheet for CSV with a row for each slot (range of durations) of each histogram: first the histograms of the
/// CPUs, if there are any, then the histograms of groups of threads. A last row of a histogram has the durations that
/// are only partly known, if there are any.
pub fn sheet<'r>(
    cpus: Option<&'r BTreeMap<CpuId, Hist>>,
    groups: impl Iterator<Item = &'r (Members, Hist)>,
) -> Sheet {
    let mut table: Table<'_, SlotRow<'_>> = Table::unnamed();
    if cpus.is_some() {
        table = table.data("of", |row| row.cpu.map_or("group", |_| "cpu"));
    }
    let table = table
        .data("name", |row| match (row.cpu, row.group) {
            (Some(cpu), _) => cpu.0.to_string(),
            (None, group) => group.map_or(String::new(), |group| group.name.short().to_owned()),
        })
        .data("pid", |row| row.group.and_then(|group| group.pid))
        .data("from_us", |row| row.bounds.map(|(from, _)| from))
        .data("to_us", |row| row.bounds.map(|(_, to)| to))
        .data("count", |row| row.count)
        .data("total_ns", |row| row.total);
    let cpus = cpus.into_iter().flatten();
    let cpus = cpus.map(|(cpu, hist)| (Some(*cpu), None, hist));
    let groups = groups.map(|(group, hist)| (None, Some(group), hist));
    table.sheet(cpus.chain(groups).flat_map(|(cpu, group, hist)| {
        let slots = hist.slots().into_iter();
        let slots = slots.map(|slot| (Some((slot.from_us, slot.to_us)), slot.count, slot.ns));
        let (count, ns) = hist.cut();
        let cut = (count > 0).then_some((None, count, ns));
        slots.chain(cut).map(move |(bounds, count, total)| SlotRow {
            cpu,
            group,
            bounds,
            count,
            total,
        })
    }))
}
