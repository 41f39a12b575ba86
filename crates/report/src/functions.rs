//! Shows the functions of sampled stacks, with their times, as tables.

use serde_json::{json, Value};
use tr_format::stack::Doing;

use tr_insight::functions::{FunctionRow, Functions};
use tr_insight::views::members::Members;
use tr_insight::views::query::By;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;

/// The largest number of functions in a table for people, unless `--top` is given.
const ROWS: usize = 20;

/// The groups, such as programs or processes, by which a table of functions divides its rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionGroups<'a> {
    /// The kind of the groups, such as programs; `None` if the table of functions covers all samples together.
    pub by: Option<By>,
    pub members: &'a [Members],
}

/// The table of functions with their sampled times, for functions on a CPU or for functions that waited.
fn table<'a>(
    functions: &Functions,
    groups: FunctionGroups<'a>,
    doing: Doing,
    width: usize,
) -> Table<'a, &'a FunctionRow> {
    let FunctionGroups { by, members } = groups;
    let group = |row: &&FunctionRow| row.group.and_then(|at| members.get(at));
    let id = match by {
        Some(By::Process) => "pid",
        Some(By::Thread) => "tid",
        _ => "",
    };
    let all = functions.sum(doing);
    let why = doing == Doing::OffCpu && functions.has_reasons();
    let title = by.map_or("", By::title);
    // The figures and the narrowest name of a function take 62 columns. The columns with other names share the rest.
    let names = (width.saturating_sub(62) / 2).clamp(8, 40);
    let binaries = if by.is_some() { names } else { 2 * names };
    Table::new("function", |row: &&FunctionRow| row.name.function.clone())
        .phrase_data("name", move |row| {
            group(row).map(|group| group.name.clone())
        })
        .fact(id, "pid", move |row| {
            let pid = group(row).and_then(|group| group.pid);
            pid.map_or(Cell::Empty, Cell::Id)
        })
        .spare()
        .shown(!id.is_empty())
        .place(0)
        .named("function")
        .data("binary", |row| row.name.binary.clone())
        .data("off_cpu", |row| row.doing == Doing::OffCpu)
        .fact("for", "reason", |row| {
            row.reason.map_or(Cell::Empty, |why| why.name().into())
        })
        .left()
        .shown(why)
        .place(1)
        .data("self_samples", |row| row.own.samples)
        .fact("self", "self_ns", |row| Cell::Time(row.own.ns))
        .few()
        .column("%", move |row| Cell::Share(row.own.ns, all.ns))
        .data("total_samples", |row| row.total.samples)
        .fact("total", "total_ns", |row| Cell::Time(row.total.ns))
        .column("%", move |row| Cell::Share(row.total.ns, all.ns))
        .words("in", move |row| {
            units::shorten(&row.name.binary, binaries).into()
        })
        .place(2)
        .words(title, move |row| {
            let name = group(row).map(|group| units::shorten(group.name.short(), names));
            name.map_or(Cell::Empty, Cell::Text)
        })
        .place(3)
}

/// The table of functions as JSON: the sums of the stack samples on a CPU and of the sampled waits, the
/// waits by reason, and the first `most` functions.
pub fn json(functions: &Functions, groups: FunctionGroups<'_>, most: usize) -> Value {
    let (on, off) = (functions.sum(Doing::OnCpu), functions.sum(Doing::OffCpu));
    let reasons = functions.by_reason().into_iter();
    let reasons = reasons.map(
        |(reason, sum)| json!({ "reason": reason.name(), "samples": sum.samples, "ns": sum.ns }),
    );
    json!({
        "samples": on.samples,
        "ns": on.ns,
        "off_cpu_samples": off.samples,
        "off_cpu_ns": off.ns,
        "off_cpu_reasons": reasons.collect::<Value>(),
        "rows": table(functions, groups, Doing::OnCpu, 0).rows(functions.rows().iter().take(most)),
    })
}

/// The table of functions with their sampled times for CSV, with the first `most` functions.
pub fn sheet(functions: &Functions, groups: FunctionGroups<'_>, most: usize) -> Sheet {
    table(functions, groups, Doing::OnCpu, 0).sheet(functions.rows().iter().take(most))
}

/// The tables of functions for people: functions that ran on a CPU, and functions that waited. Each has at most
/// `limit` rows (without a limit, 20), and is left out if it has no samples.
pub fn page(
    functions: &Functions,
    style: &Style,
    groups: FunctionGroups<'_>,
    limit: Option<usize>,
) -> Page {
    let mut out = Page::new();
    for doing in [Doing::OnCpu, Doing::OffCpu] {
        let all = functions.sum(doing);
        if all.samples == 0 {
            continue;
        }
        let (samples, time) = (all.samples, units::time(all.ns));
        let samples = units::plural(samples, "sample", "samples");
        let head = match doing {
            Doing::OnCpu => format!("Functions on a CPU: {samples}, {time}"),
            Doing::OffCpu => format!("Functions that waited: {samples}, {time}"),
        };
        out.painted(Paint::Bold, &head);
        if doing == Doing::OffCpu && functions.has_reasons() {
            let sums = functions.by_reason().into_iter();
            let sums = sums.map(|(why, sum)| format!("{} {}", why.title(), units::time(sum.ns)));
            out.items("for ", sums);
        }
        let rows: Vec<&FunctionRow> = functions
            .rows()
            .iter()
            .filter(|row| row.doing == doing)
            .collect();
        let shown = limit.unwrap_or(ROWS);
        let table = table(functions, groups, doing, style.width);
        out.table(&table, rows.iter().copied().take(shown));
        out.more(rows.len(), shown, " functions");
    }
    out
}
