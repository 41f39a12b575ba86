//! The report on system calls, with the columns of `strace -c`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde_json::{json, Value};
use tr_analyze::model::ProcessIx;
use tr_format::counters::CallSum;

use crate::output::Report;
use tr_insight::resources::calls::name_of;
use tr_insight::views::members::{members, Members};
use tr_insight::views::query::By;
use tr_insight::views::view::View;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;

/// The number of rows of the report on system calls in text, unless `--top` is given.
const ROWS: usize = 20;

pub struct SystemCalls<'a> {
    view: View<'a>,
    by: Option<By>,
    groups: Vec<Members>,
    all: CallSum,
    /// The rows of the report on system calls, one for each call (and group, with `--by`). The longest
    /// times come first.
    rows: Vec<CallRow>,
}

/// A row of the report on system calls: the number and times of the calls of one system call, over all chosen processes
/// or over a group of them.
struct CallRow {
    group: Option<usize>,
    name: String,
    sum: CallSum,
}

impl<'a> SystemCalls<'a> {
    /// Makes the report on system calls from the sums of the chosen processes.
    pub fn new(view: &View<'a>) -> SystemCalls<'a> {
        let analysis = view.analysis;
        // The kernel's sums are those of whole processes, so threads have no rows of their own.
        let by = view.ask.by.map(By::of_processes);
        let mut groups = members(view, by.unwrap_or(By::Process));
        let mut place: HashMap<ProcessIx, usize> = HashMap::new();
        for (at, group) in groups.iter().enumerate() {
            let processes = group.threads.iter().map(|ix| analysis.thread(*ix).process);
            place.extend(processes.map(|ix| (ix, at)));
        }
        let mut sums: BTreeMap<(Option<usize>, bool, u32), CallSum> = BTreeMap::new();
        let mut all = CallSum::default();
        for call in &analysis.calls {
            let at = call.process.and_then(|ix| place.get(&ix)).copied();
            if at.is_none() && !(view.has_all() && call.process.is_none()) {
                continue;
            }
            let key = (
                at.filter(|_| by.is_some()),
                call.sum.compat,
                call.sum.number,
            );
            add(sums.entry(key).or_default(), &call.sum);
            add(&mut all, &call.sum);
        }
        let unknown = groups.len();
        groups.push(Members {
            name: "unknown".into(),
            ..Members::default()
        });
        let machine = &analysis.meta.machine;
        let rows = sums.into_iter().map(|((at, compat, number), sum)| CallRow {
            group: by.map(|_| at.unwrap_or(unknown)),
            name: name_of(machine, number, compat),
            sum,
        });
        let mut rows: Vec<CallRow> = rows.collect();
        rows.sort_by_key(|row| Reverse((row.sum.ns, row.sum.count)));
        SystemCalls {
            view: *view,
            by,
            groups,
            all,
            rows,
        }
    }

    /// Whether the system calls of the analyzed span are not known. The recorder stores sums of system calls for
    /// intervals. An interval counts only if at least half of it lies in the span, so a short span may have no interval
    /// that counts.
    fn is_unknown(&self) -> bool {
        self.rows.is_empty() && self.view.analysis.is_part()
    }

    fn group(&self, row: &CallRow) -> Option<&Members> {
        self.groups.get(row.group?)
    }

    fn table(&self) -> Table<'_, &CallRow> {
        let (whole, grouped) = (self.all.ns, self.by.is_some());
        let last = move |row: &&CallRow| match self.group(row) {
            Some(group) => group.name.short().to_owned(),
            None if grouped => String::new(),
            None => row.name.clone(),
        };
        let share = move |row: &&CallRow| row.sum.ns as f64 * 100.0 / whole.max(1) as f64;
        let each = |row: &&CallRow| row.sum.ns.checked_div(row.sum.count).unwrap_or(0) / 1000;
        let seconds = |row: &&CallRow| Cell::Text(format!("{:.6}", row.sum.ns as f64 / 1e9));
        Table::new(self.by.map_or("syscall", By::title), last)
            .phrase_data("name", |row| {
                self.group(row).map(|group| group.name.clone())
            })
            .fact("pid", "pid", |row| {
                let pid = self.group(row).and_then(|group| group.pid);
                pid.map_or(Cell::Empty, Cell::Id)
            })
            .shown(self.by == Some(By::Process))
            .place(1)
            .fact("syscall", "syscall", |row| Cell::Text(row.name.clone()))
            .left()
            .shown(grouped)
            .place(0)
            .column("% time", move |row| {
                Cell::Text(format!("{:.2}", share(row)))
            })
            .column("seconds", seconds)
            .column("usecs/call", move |row| Cell::Count(each(row)))
            .data("number", |row| row.sum.number)
            .data("compat", |row| row.sum.compat)
            .fact("calls", "calls", |row| Cell::Count(row.sum.count))
            .fact("errors", "errors", |row| Cell::Count(row.sum.errors))
            .few()
            .data("ns", |row| row.sum.ns)
            .data("longest_ns", |row| row.sum.longest)
    }
}

fn add(to: &mut CallSum, sum: &CallSum) {
    to.number = sum.number;
    to.compat = sum.compat;
    to.count = to.count.saturating_add(sum.count);
    to.errors = to.errors.saturating_add(sum.errors);
    to.ns = to.ns.saturating_add(sum.ns);
    to.longest = to.longest.max(sum.longest);
}

impl Report for SystemCalls<'_> {
    fn page(&self, _style: &Style) -> Page {
        let mut out = Page::new();
        if self.is_unknown() {
            let unknown = "No system call is known of this part: the recorder counts once a second";
            out.line(unknown);
            return out;
        }
        let all = &self.all;
        let head = format!(
            "{} in {}, {} with an error",
            units::plural(all.count, "system call", "system calls"),
            units::time(all.ns),
            units::count(all.errors),
        );
        out.painted(Paint::Bold, &head);
        if self.rows.is_empty() {
            return out;
        }
        let total = CallRow {
            group: None,
            name: "total".into(),
            sum: *all,
        };
        let shown = self.view.ask.top.unwrap_or(ROWS);
        let rows = self.rows.iter().take(shown).chain([&total]);
        out.table(&self.table(), rows);
        out.more(self.rows.len(), shown, "");
        out
    }

    fn json(&self) -> Option<Value> {
        let known = |sum: u64| (!self.is_unknown()).then_some(sum);
        Some(json!({
            "calls": known(self.all.count),
            "errors": known(self.all.errors),
            "ns": known(self.all.ns),
            "by": self.by.map(By::name),
            "rows": self.table().rows(self.view.asked(&self.rows)),
        }))
    }

    fn sheet(&self) -> Sheet {
        self.table().sheet(self.view.asked(&self.rows))
    }
}
