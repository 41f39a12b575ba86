//! The functions of sampled stacks: the time of their own, and that with the functions they call.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{json, Value};
use tr_analyze::awaited::WaitReason;
use tr_analyze::model::Analysis;
use tr_analyze::stacks::{Stacks, Timed};
use tr_analyze::timeline::{Bucket, Stretch};
use tr_format::event::Ktime;
use tr_format::stack::Doing;

use crate::members::Members;
use tr_insight::frames::{Name, Names};
use tr_insight::query::By;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Table};
use tr_text::units;

/// Rows in text without `--top`.
const ROWS: usize = 20;
/// A sampled wait has no more stretches: one on a CPU before it, the wait, one for a CPU. A
/// stranger's may be as long as it likes.
const STRETCHES: usize = 8;
/// Samples, and the time that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleSum {
    pub samples: u64,
    /// The time that the samples stand for, in nanoseconds.
    pub ns: u64,
}

impl SampleSum {
    pub fn add(&mut self, other: SampleSum) {
        self.samples = self.samples.saturating_add(other.samples);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Samples with one stack.
#[derive(Clone, Copy, Debug)]
pub struct StackSamples {
    /// The number of the stack.
    pub stack: u32,
    /// On a CPU, or off CPU.
    pub doing: Doing,
    /// The reason of a wait; `None`: it was not looked for.
    pub reason: Option<WaitReason>,
    pub sum: SampleSum,
}

impl StackSamples {
    /// The sum of one sample, which stands for so many nanoseconds.
    pub fn of(analysis: &Analysis, sample: &Timed, ns: u64) -> StackSamples {
        let wait = Some(sample).filter(|sample| sample.doing == Doing::OffCpu);
        StackSamples {
            stack: sample.stack,
            doing: sample.doing,
            reason: wait.and_then(|wait| reason_of(analysis, wait)),
            sum: SampleSum { samples: 1, ns },
        }
    }
}

/// The groups that the rows of functions belong to.
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionGroups<'a> {
    /// The kind of the groups; `None`: all samples are one group.
    pub by: Option<By>,
    pub members: &'a [Members],
}

/// A function in all samples, or in the samples of one group.
#[derive(Debug)]
struct FunctionRow {
    /// The number of the group.
    group: Option<usize>,
    name: Name,
    doing: Doing,
    reason: Option<WaitReason>,
    /// The function was the innermost one; of waits, the innermost one in user mode.
    own: SampleSum,
    /// The function was in the stack.
    total: SampleSum,
}

/// The facts that the samples of a row share: the group, what the tasks did and why, the function.
type Key = (Option<usize>, Doing, Option<WaitReason>, usize);

/// The functions of some samples.
#[derive(Debug, Default)]
pub struct Functions {
    all: BTreeMap<Doing, SampleSum>,
    reasons: BTreeMap<WaitReason, SampleSum>,
    /// The row with the longest time of its own first.
    rows: Vec<FunctionRow>,
}

impl Functions {
    /// Sums up samples, each with the number of its group.
    pub fn new(
        stacks: &Stacks,
        samples: impl Iterator<Item = (Option<usize>, StackSamples)>,
    ) -> Functions {
        let mut names = Names::new(stacks);
        let mut sums: BTreeMap<Key, (SampleSum, SampleSum)> = BTreeMap::new();
        let mut found = Functions::default();
        for (group, sample) in samples {
            found.all.entry(sample.doing).or_default().add(sample.sum);
            if let Some(reason) = sample.reason {
                found.reasons.entry(reason).or_default().add(sample.sum);
            }
            let key = |function| (group, sample.doing, sample.reason, function);
            let functions = names.of_stack(sample.stack);
            let innermost = match sample.doing {
                Doing::OnCpu => None,
                // All waits end in the scheduler.
                Doing::OffCpu => names.in_user_mode(sample.stack),
            };
            if let Some(innermost) = innermost.or(functions.first().copied()) {
                sums.entry(key(innermost)).or_default().0.add(sample.sum);
            }
            // A function that calls itself counts once.
            for function in functions.into_iter().collect::<BTreeSet<_>>() {
                sums.entry(key(function)).or_default().1.add(sample.sum);
            }
        }
        let rows = sums.into_iter();
        let rows = rows.map(
            |((group, doing, reason, function), (own, total))| FunctionRow {
                group,
                name: names.name(function).cloned().unwrap_or_default(),
                doing,
                reason,
                own,
                total,
            },
        );
        found.rows = rows.collect();
        let key =
            |row: &FunctionRow| Reverse((row.own.ns, row.total.ns, Reverse(row.name.clone())));
        found.rows.sort_by_key(key);
        found
    }

    /// The sum of all samples of tasks that did this.
    pub fn sum(&self, doing: Doing) -> SampleSum {
        self.all.get(&doing).copied().unwrap_or_default()
    }

    /// Whether there was no sample.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn rows(&self, most: usize) -> impl Iterator<Item = &FunctionRow> {
        self.rows.iter().take(most)
    }

    /// The columns of the rows.
    fn table<'a>(
        &self,
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
        let all = self.sum(doing);
        let why = doing == Doing::OffCpu && !self.reasons.is_empty();
        let title = by.map_or("", By::title);
        // The words share the width beside the figures and a function's least.
        let names = (width.saturating_sub(62) / 2).clamp(8, 40);
        let binaries = if by.is_some() { names } else { 2 * names };
        Table::new("function", |row: &&FunctionRow| row.name.function.clone())
            .data("name", move |row| {
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
                let name = group(row).map(|group| units::shorten(&group.name, names));
                name.map_or(Cell::Empty, Cell::Text)
            })
            .place(3)
    }

    /// The sums of the samples, those of waits by reason, and the first `most` rows in JSON.
    pub fn json(&self, groups: FunctionGroups<'_>, most: usize) -> Value {
        let (on, off) = (self.sum(Doing::OnCpu), self.sum(Doing::OffCpu));
        let reasons = self.by_reason().into_iter();
        let reasons = reasons.map(|(reason, sum)| {
            json!({ "reason": reason.name(), "samples": sum.samples, "ns": sum.ns })
        });
        json!({
            "samples": on.samples,
            "ns": on.ns,
            "off_cpu_samples": off.samples,
            "off_cpu_ns": off.ns,
            "off_cpu_reasons": reasons.collect::<Value>(),
            "rows": self.table(groups, Doing::OnCpu, 0).rows(self.rows(most)),
        })
    }

    /// The first `most` rows as CSV.
    pub fn csv(&self, groups: FunctionGroups<'_>, most: usize) -> Result<Vec<u8>, csv::Error> {
        self.table(groups, Doing::OnCpu, 0).csv(self.rows(most))
    }

    fn by_reason(&self) -> Vec<(WaitReason, SampleSum)> {
        let mut sums: Vec<(WaitReason, SampleSum)> =
            self.reasons.iter().map(|(a, b)| (*a, *b)).collect();
        sums.sort_by_key(|(reason, sum)| (Reverse(sum.ns), *reason));
        sums
    }

    /// The tables of functions on a CPU and of functions that waited, `limit` rows each.
    pub fn page(&self, style: &Style, groups: FunctionGroups<'_>, limit: Option<usize>) -> Page {
        let mut out = Page::new();
        for doing in [Doing::OnCpu, Doing::OffCpu] {
            let all = self.sum(doing);
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
            if doing == Doing::OffCpu && !self.reasons.is_empty() {
                let sums = self.by_reason().into_iter();
                let sums =
                    sums.map(|(why, sum)| format!("{} {}", why.title(), units::time(sum.ns)));
                out.items("for ", sums);
            }
            let rows: Vec<&FunctionRow> =
                self.rows.iter().filter(|row| row.doing == doing).collect();
            let shown = limit.unwrap_or(ROWS);
            let table = self.table(groups, doing, style.width);
            out.table(&table, rows.iter().copied().take(shown));
            out.more(rows.len(), shown, " functions");
        }
        out
    }
}

/// The wait of a sample off CPU: the longest one in the thread's timeline in that time. The
/// recorder stamps the ends of a sample and those of a wait one after the other.
pub fn wait_of(analysis: &Analysis, sample: &Timed) -> Option<Stretch> {
    let timeline = analysis.timeline.as_ref()?;
    let thread = sample.thread;
    let from = Ktime(sample.time.0.saturating_sub(sample.ns));
    let stretches = timeline.since(thread, from).take(STRETCHES);
    let stretches = stretches.take_while(|stretch| stretch.from < sample.time);
    let waits =
        stretches.filter(|stretch| matches!(stretch.doing, Bucket::Wait(_) | Bucket::Unknown));
    waits.max_by_key(|stretch| stretch.to.min(sample.time).since(stretch.from.max(from)))
}

/// The reason of a sampled wait.
fn reason_of(analysis: &Analysis, sample: &Timed) -> Option<WaitReason> {
    WaitReason::of(analysis, sample.thread, &wait_of(analysis, sample)?)
}
