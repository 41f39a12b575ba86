//! Who waited, for what, for how long, and who ended the wait.

use std::cmp::Reverse;

use serde::Serialize;
use serde_json::Value;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::timeline::{Actor, Bucket, Stretch, Timeline, Wait};

use crate::members::{members, Members};
use crate::query::{By, Sort};
use crate::reports::{Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::who::{self, Named};
use crate::{label, units};

/// Why a thread is off CPU: the parts of its times, each apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It waits for a CPU after a wake-up, or its fork.
    Woken,
    /// It waits for a CPU that another task took.
    Preempted,
    /// An interruptible sleep.
    Sleep,
    /// Block I/O.
    Io,
    /// Its vfork child's exec or exit.
    Vfork,
    /// Another uninterruptible wait.
    Blocked,
    /// Stopped or traced.
    Stopped,
    /// Not known; it may even have been on a CPU.
    Unknown,
}

impl Reason {
    /// Each with its name in JSON and CSV, for people, and as a column's title.
    const ALL: [(Reason, &'static str, &'static str, &'static str); 8] = [
        (
            Reason::Woken,
            "woken",
            "waiting for a CPU, woken",
            "wait cpu",
        ),
        (
            Reason::Preempted,
            "preempted",
            "waiting for a CPU, preempted",
            "preempted",
        ),
        (Reason::Sleep, "sleep", "asleep", "sleep"),
        (Reason::Io, "block-io", "block I/O", "disk"),
        (Reason::Vfork, "vfork", "vfork child", "vfork"),
        (Reason::Blocked, "blocked", "blocked otherwise", "blocked"),
        (Reason::Stopped, "stopped", "stopped", "stopped"),
        (Reason::Unknown, "unknown", "unknown", "unknown"),
    ];

    fn of(doing: Bucket) -> Option<Reason> {
        Some(match doing {
            Bucket::OnCpu(_) => return None,
            Bucket::RunQueue { preempted: false } => Reason::Woken,
            Bucket::RunQueue { preempted: true } => Reason::Preempted,
            Bucket::Wait(Wait::Sleep) => Reason::Sleep,
            Bucket::Wait(Wait::Stopped) => Reason::Stopped,
            Bucket::Wait(Wait::Io) => Reason::Io,
            Bucket::Wait(Wait::Vfork) => Reason::Vfork,
            Bucket::Wait(Wait::Blocked) => Reason::Blocked,
            Bucket::Wait(Wait::Unknown) | Bucket::Unknown => Reason::Unknown,
        })
    }

    /// For people.
    fn title(self) -> &'static str {
        let mut all = Reason::ALL.iter();
        all.find(|(reason, ..)| *reason == self)
            .map_or("", |(_, _, title, _)| title)
    }

    /// In JSON and CSV.
    fn key(self) -> &'static str {
        let mut all = Reason::ALL.iter();
        all.find(|(reason, ..)| *reason == self)
            .map_or("", |(_, key, ..)| key)
    }
}

/// A wait of a thread.
#[derive(Clone, Copy, Debug)]
struct Waited {
    thread: ThreadIx,
    stretch: Stretch,
    /// Its beginning and its end are known.
    whole: bool,
}

/// All waits for one reason.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: u64,
    count: u64,
    longest: Option<Waited>,
}

type Sums = [Sum; Reason::ALL.len()];

fn total(sums: &Sums) -> u64 {
    let known = sums.iter().zip(Reason::ALL);
    known
        .filter(|(_, (reason, ..))| *reason != Reason::Unknown)
        .map(|(sum, _)| sum.total)
        .sum()
}

fn of(sums: &Sums, reason: Reason) -> u64 {
    sums.get(reason as usize).map_or(0, |sum| sum.total)
}

/// How many of the longest waits JSON has, unless it was asked for more.
const LONGEST: usize = 100;

/// The report. Its sums are those of the chosen processes' times.
pub struct OffCpu<'a> {
    view: View<'a>,
    by: By,
    all: Sums,
    /// Those with most time off CPU first, or as `--sort` has it.
    groups: Vec<(Members, Sums)>,
    /// The longest waits with a known reason, longest first.
    longest: Vec<Waited>,
}

impl<'a> OffCpu<'a> {
    /// Of the processes that were chosen.
    pub fn new(view: &View<'a>) -> OffCpu<'a> {
        let by = view.ask.by.unwrap_or_default();
        let mut report = OffCpu {
            view: *view,
            by,
            all: Sums::default(),
            groups: Vec::new(),
            longest: Vec::new(),
        };
        let Some(timeline) = &view.analysis.timeline else {
            return report;
        };
        let keep = LONGEST.max(view.ask.top);
        for group in members(view, by) {
            let mut sums = Sums::default();
            for thread in &group.threads {
                for waited in waits(view.analysis, timeline, *thread) {
                    let Some(reason) = Reason::of(waited.stretch.doing) else {
                        continue;
                    };
                    for sums in [&mut sums, &mut report.all] {
                        if let Some(sum) = sums.get_mut(reason as usize) {
                            sum.add(waited);
                        }
                    }
                    if reason != Reason::Unknown {
                        report.longest.push(waited);
                    }
                }
                // Not all of a long recording's waits at once.
                if report.longest.len() > 64 * keep {
                    shorten(&mut report.longest, keep);
                }
            }
            if sums.iter().any(|sum| sum.count > 0) {
                report.groups.push((group, sums));
            }
        }
        shorten(&mut report.longest, keep);
        let key = |sums: &Sums| match view.ask.sort {
            Some(Sort::RunQueue) => of(sums, Reason::Woken) + of(sums, Reason::Preempted),
            Some(Sort::Sleep) => of(sums, Reason::Sleep) + of(sums, Reason::Stopped),
            Some(Sort::Blocked) => {
                of(sums, Reason::Io) + of(sums, Reason::Vfork) + of(sums, Reason::Blocked)
            }
            Some(Sort::Unknown) => of(sums, Reason::Unknown),
            _ => total(sums),
        };
        report.groups.sort_by_key(|(_, sums)| Reverse(key(sums)));
        report
    }

    fn longest_of(&self, waited: &Waited) -> Longest {
        let analysis = self.view.analysis;
        let reason = Reason::of(waited.stretch.doing).unwrap_or(Reason::Unknown);
        let found = who::thread(analysis, waited.thread);
        let by = who::named(analysis, waited.stretch.who);
        let preempted = reason == Reason::Preempted;
        Longest {
            reason: reason.key(),
            pid: found.map_or(0, |(_, process)| process.pid.0),
            tid: found.map_or(0, |(thread, _)| thread.tid.0),
            process: found
                .map(|(_, process)| label::label(process))
                .unwrap_or_default(),
            start_ns: waited.stretch.from.since(analysis.meta.start),
            length_ns: waited.stretch.length(),
            whole: waited.whole,
            taken_by: preempted.then(|| by.clone()),
            ended_by: (!preempted).then_some(by),
        }
    }

    fn sums(&self, sums: &Sums) -> Vec<OfReason> {
        let known = Reason::ALL.iter().zip(sums);
        known
            .map(|((_, key, ..), sum)| OfReason {
                reason: key,
                total_ns: sum.total,
                count: sum.count,
                longest: sum.longest.map(|waited| self.longest_of(&waited)),
            })
            .collect()
    }

    fn reasons(&self, style: &Style) -> String {
        let mut table = Table::new()
            .column("time", "")
            .column("share", "")
            .column("times", "")
            .column("longest", "")
            .name(
                match self.view.chosen.len() {
                    1 => "why one process was off CPU".into(),
                    n => format!("why {} processes were off CPU", units::count(n as u64)),
                },
                "",
            );
        let whole = total(&self.all);
        let mut rows: Vec<_> = self.all.iter().zip(Reason::ALL).collect();
        rows.retain(|(sum, _)| sum.count > 0);
        rows.sort_by_key(|(sum, (reason, ..))| (*reason == Reason::Unknown, Reverse(sum.total)));
        for (sum, (reason, _, title, _)) in rows {
            let longest = sum.longest.map(|waited| waited.stretch.length());
            let unknown = reason == Reason::Unknown;
            let cells = vec![
                Cell::Time(sum.total),
                match unknown {
                    true => Cell::Empty,
                    false => Cell::Share(sum.total, whole),
                },
                Cell::Count(sum.count),
                Cell::known(longest, Cell::Time),
            ];
            table.row(
                cells,
                title,
                if unknown { Paint::Dim } else { Paint::Plain },
            );
        }
        table.text(style, 0)
    }

    fn waits(&self, style: &Style) -> String {
        let analysis = self.view.analysis;
        let shown: Vec<&Waited> = self.longest.iter().take(self.view.ask.top).collect();
        let reason = |waited: &Waited| Reason::of(waited.stretch.doing).unwrap_or(Reason::Unknown);
        let reasons: Vec<&str> = shown.iter().map(|waited| reason(waited).title()).collect();
        // What stands beside the two names.
        let widest = reasons.iter().map(|reason| units::width(reason)).max();
        let room = style.width.saturating_sub(widest.unwrap_or(0) + 28);
        let room = (room / 2).clamp(14, 60);
        let mut table = Table::new()
            .column("from", "")
            .column("length", "")
            .words(format!("the {} longest waits", shown.len()), "")
            .words("why", "")
            .name("ended, or CPU taken, by", "");
        for (waited, why) in shown.iter().zip(reasons) {
            let length = units::time(waited.stretch.length());
            let at_least = if waited.whole { "" } else { "≥ " };
            let by = match (waited.whole, waited.stretch.who) {
                // Nobody has ended it yet.
                (false, Actor::Unknown) => String::new(),
                (_, who) => who::name(analysis, who),
            };
            let name = who::name(analysis, Actor::Thread(waited.thread));
            let cells = vec![
                Cell::At(waited.stretch.from.since(analysis.meta.start)),
                Cell::Text(format!("{at_least}{length}")),
                units::shorten(&name, room).into(),
                why.into(),
            ];
            table.row(cells, by, Paint::Plain);
        }
        table.text(style, 0)
    }

    fn by(&self, style: &Style) -> String {
        let used = |reason: Reason| of(&self.all, reason) > 0;
        let columns: Vec<_> = Reason::ALL
            .into_iter()
            .filter(|(reason, ..)| used(*reason))
            .collect();
        let single = matches!(self.by, By::Process | By::Thread);
        let mut table = Table::new().column("off CPU", "");
        for (.., title) in &columns {
            table = table.column(*title, "");
        }
        if single {
            table = table.column(if self.by == By::Thread { "tid" } else { "pid" }, "");
        }
        let shown = self.groups.iter().take(self.view.ask.top);
        let title = units::top(self.by.title(), shown.len(), self.groups.len());
        let mut table = table.name(title, "");
        for (group, sums) in shown {
            let mut cells = vec![Cell::Time(total(sums))];
            let times = columns.iter().map(|(reason, ..)| of(sums, *reason));
            cells.extend(times.map(Cell::Time));
            if single {
                cells.push(Cell::known(group.pid, Cell::Id));
            }
            table.row(cells, group.name.clone(), Paint::Plain);
        }
        table.text(style, 0)
    }
}

impl Sum {
    fn add(&mut self, waited: Waited) {
        let length = waited.stretch.length();
        self.total += length;
        self.count += 1;
        let longest = self.longest.map_or(0, |longest| longest.stretch.length());
        if length > longest {
            self.longest = Some(waited);
        }
    }
}

/// A thread's waits, and its unknown time.
fn waits<'a>(
    analysis: &'a Analysis,
    timeline: &'a Timeline,
    ix: ThreadIx,
) -> impl Iterator<Item = Waited> + 'a {
    let thread = analysis.threads.get(ix.0 as usize);
    let known = |stretch: Option<Stretch>, edge: bool| match stretch {
        Some(stretch) => stretch.doing != Bucket::Unknown || stretch.cpu.is_some(),
        None => edge,
    };
    timeline
        .of(ix)
        .enumerate()
        .map(move |(at, stretch)| Waited {
            thread: ix,
            stretch,
            whole: known(
                at.checked_sub(1).and_then(|at| timeline.get(ix, at)),
                thread.is_some_and(|thread| !thread.started_before),
            ) && known(timeline.get(ix, at + 1), false),
        })
}

/// The longest ones; of equal ones the first.
fn shorten(waits: &mut Vec<Waited>, keep: usize) {
    waits.sort_by_key(|w| (Reverse(w.stretch.length()), w.stretch.from, w.thread));
    waits.truncate(keep);
}

#[derive(Serialize)]
struct Longest {
    reason: &'static str,
    pid: u32,
    tid: u32,
    process: String,
    start_ns: u64,
    length_ns: u64,
    whole: bool,
    ended_by: Option<Named>,
    taken_by: Option<Named>,
}

#[derive(Serialize)]
struct OfReason {
    reason: &'static str,
    total_ns: u64,
    count: u64,
    longest: Option<Longest>,
}

impl Report for OffCpu<'_> {
    fn text(&self, style: &Style) -> String {
        [self.reasons(style), self.waits(style), self.by(style)].join("\n")
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        #[derive(Serialize)]
        struct Document {
            total_ns: u64,
            reasons: Vec<OfReason>,
            longest: Vec<Longest>,
            groups: Vec<OfGroup>,
        }
        #[derive(Serialize)]
        struct OfGroup {
            name: String,
            pid: Option<u32>,
            total_ns: u64,
            reasons: Vec<OfReason>,
        }
        let most = self.view.ask.most();
        let groups = self.groups.iter().take(most).map(|(group, sums)| OfGroup {
            name: group.name.clone(),
            pid: group.pid,
            total_ns: total(sums),
            reasons: self.sums(sums),
        });
        let document = Document {
            total_ns: total(&self.all),
            reasons: self.sums(&self.all),
            longest: self
                .longest
                .iter()
                .take(most)
                .map(|w| self.longest_of(w))
                .collect(),
            groups: groups.collect(),
        };
        serde_json::to_value(document).map(Some)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed([
            "name",
            "pid",
            "reason",
            "total_ns",
            "count",
            "longest_ns",
            "longest_start_ns",
            "longest_ended_or_cpu_taken_by",
        ]);
        let start = self.view.analysis.meta.start;
        for (group, sums) in self.groups.iter().take(self.view.ask.most()) {
            for (sum, (_, key, ..)) in sums.iter().zip(Reason::ALL) {
                if sum.count == 0 {
                    continue;
                }
                let longest = sum.longest.as_ref();
                let who = longest.map(|waited| waited.stretch.who);
                let who = who.filter(|who| *who != Actor::Unknown);
                let cells = vec![
                    Cell::Text(group.name.clone()),
                    Cell::known(group.pid, Cell::Id),
                    key.into(),
                    Cell::Time(sum.total),
                    Cell::Count(sum.count),
                    Cell::known(longest, |w| Cell::Time(w.stretch.length())),
                    Cell::known(longest, |w| Cell::At(w.stretch.from.since(start))),
                    Cell::known(who, |who| Cell::Text(who::name(self.view.analysis, who))),
                ];
                table.record(cells);
            }
        }
        table.csv()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_in_their_order() {
        for (at, (reason, ..)) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }
}
