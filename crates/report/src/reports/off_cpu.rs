//! The report on the waits of tasks: their reasons, their lengths, and the tasks that ended them.

use std::cmp::Reverse;

use serde_json::{json, Value};
use tr_analyze::awaited::WaitReason;
use tr_analyze::model::{Analysis, ByKernel};
use tr_analyze::timeline::Actor;

use crate::members;
use crate::output::Report;
use tr_insight::processes::label;
use tr_insight::processes::who;
use tr_insight::views::members::Members;
use tr_insight::views::view::View;
use tr_insight::waits::off_cpu::{OffCpuWaits, ReasonSum, ReasonSums, ThreadWait};
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;
use tr_text::words::OFF_CPU;

fn column(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Woken | WaitReason::Disk => reason.noun(),
        reason => reason.name(),
    }
}

/// A row of the report on waits: the group of threads (`None` for all together), the reason of the waits, and their
/// sums.
type ReasonRow<'r> = (Option<&'r Members>, WaitReason, &'r ReasonSum);

/// The width, in columns of the terminal, of a table column with times in the report on waits.
const TIME: usize = 7;
/// The width in columns of a row in the table of waits by group ([`OffCpu::by`]), without its columns for the
/// reasons of waits.
const ROW: usize = 42;
/// The largest number of single waits, the longest ones, that the JSON lists unless `--top` is given.
const LONGEST_WAITS: usize = 100;

/// The report on the waits of the chosen processes (time off CPU). Their sums equal the times that other reports show.
pub struct OffCpu<'a> {
    view: View<'a>,
    waits: OffCpuWaits,
}

impl<'a> OffCpu<'a> {
    pub fn new(view: &View<'a>) -> OffCpu<'a> {
        OffCpu {
            view: *view,
            waits: OffCpuWaits::new(view, LONGEST_WAITS.max(view.ask.rows())),
        }
    }

    /// The table of the longest single waits. In text, a name has at most `room` columns.
    fn table(&self, room: usize) -> Table<'_, &ThreadWait> {
        let analysis = self.view.analysis;
        let found = move |waited: &&ThreadWait| who::thread(analysis, waited.thread);
        let by = move |waited: &&ThreadWait| match (waited.whole, waited.stretch.actor) {
            (false, Actor::Unknown) => String::new(), // it has not ended
            (_, who) => who::name(analysis, who),
        };
        let actor = move |waited: &&ThreadWait, preempted: bool| {
            let is = (waited.reason == WaitReason::Preempted) == preempted;
            is.then(|| actor_json(analysis, waited.stretch.actor))
        };
        Table::new("ended, or CPU taken, by", by)
            .data("pid", move |waited| found(waited).1.pid.0)
            .data("tid", move |waited| found(waited).0.tid.0)
            .phrase_data("process", move |waited| {
                Some(label::phrase(found(waited).1))
            })
            .fact("from", "start_ns", |waited| {
                Cell::At(self.view.since(waited.stretch.from))
            })
            .fact("length", "length_ns", |waited| {
                Cell::wait(waited.stretch.length(), waited.whole)
            })
            .data("whole", |waited| waited.whole)
            .words("longest waits", move |waited| {
                let name = who::name(analysis, Actor::Thread(waited.thread));
                units::shorten(&name, room).into()
            })
            .words("reason", |waited| waited.reason.title().into())
            .data("reason", |waited| waited.reason.name())
            .data("ended_by", move |waited| actor(waited, false))
            .data("taken_by", move |waited| actor(waited, true))
    }

    /// The table of waits summed up by reason. `whole` is the sum of all time off CPU in ns. `by_kernel` is the part of
    /// the unknown time, in ns, in which tasks ran or were runnable according to the kernel's totals.
    fn sums(&self, whole: u64, by_kernel: u64) -> Table<'_, ReasonRow<'_>> {
        let waits = self.table(0);
        let name = move |(_, reason, _): &ReasonRow| match reason {
            WaitReason::Unknown if by_kernel > 0 => format!(
                "unknown; {} of it running or runnable, by the kernel's totals",
                units::time(by_kernel)
            ),
            reason => reason.title().into(),
        };
        let longest = |(.., sum): &ReasonRow, of: fn(&Self, &ThreadWait) -> u64| {
            sum.longest.map(|waited| of(self, &waited))
        };
        Table::new("", name)
            .csv_data("name", |(group, ..)| {
                group.map(|group| group.name.short().to_owned())
            })
            .csv_data("pid", |(group, ..)| group.and_then(|group| group.pid))
            .data("reason", |(_, reason, _)| reason.name())
            .fact("time", "total_ns", |(.., sum)| Cell::Time(sum.total))
            .column("share", move |(_, reason, sum)| match reason {
                WaitReason::Unknown => Cell::Empty,
                _ => Cell::Share(sum.total, whole),
            })
            .fact("times", "count", |(.., sum)| Cell::Count(sum.count))
            .fact("longest", "longest_ns", |(.., sum)| {
                Cell::known(sum.longest, |w| Cell::Time(w.stretch.length()))
            })
            .csv_only()
            .json_data("longest", move |(.., sum)| {
                sum.longest.as_ref().map(|waited| waits.json(&waited))
            })
            .csv_data("longest_start_ns", move |row| {
                longest(row, |report, waited| report.view.since(waited.stretch.from))
            })
            .csv_data("longest_ended_or_cpu_taken_by", |(.., sum)| {
                let who = sum.longest.map(|waited| waited.stretch.actor);
                let who = who.filter(|who| *who != Actor::Unknown);
                who.map(|who| who::name(self.view.analysis, who))
            })
            .paint(|(_, reason, _)| match reason {
                WaitReason::Unknown => Paint::Dim,
                _ => Paint::Plain,
            })
    }

    /// The waits of all chosen processes summed up by reason, as JSON, including reasons without any wait.
    fn all_sums(&self, sums: &ReasonSums) -> Value {
        self.sums(0, 0)
            .rows(sums.all().map(|(reason, sum)| (None, reason, sum)))
    }

    fn reasons(&self, out: &mut Page) {
        let one_or_more = match self.view.chosen.len() {
            1 => "one process".into(),
            n => format!("{} processes", units::count(n as u64)),
        };
        let title = format!("reasons of the time off CPU of {one_or_more}");
        let whole = self.waits.sums.all.total();
        let mut rows: Vec<_> = self.waits.sums.all.used().collect();
        rows.sort_by_key(|(reason, sum)| (*reason == WaitReason::Unknown, Reverse(sum.total)));
        // The kernel's totals show for how long tasks ran or were runnable in the time that the events do not show, but
        // not when.
        let mut sums = ByKernel::default();
        self.view
            .processes()
            .for_each(|process| sums.add(&process.by_kernel));
        let by_kernel = sums.on_cpu.saturating_add(sums.run_queue);
        let rows = rows.into_iter().map(|(reason, sum)| (None, reason, sum));
        out.table(&self.sums(whole, by_kernel).titled(title).plain(), rows);
    }

    fn waits(&self, out: &mut Page, style: &Style) {
        let shown = self.waits.longest.iter().take(self.view.ask.rows());
        let shown: Vec<&ThreadWait> = shown.collect();
        let reasons = shown.iter().map(|waited| waited.reason.title());
        // The two columns with names share the width that the others leave.
        let widest = reasons.map(units::width).max().unwrap_or(0);
        let room = style.width.saturating_sub(widest + 32) / 2;
        let room = room.clamp(13, 60);
        out.table(&self.table(room), shown);
    }

    /// The reasons of waits that get a column of their own in the table of groups, and the reasons that share the last
    /// column. On a narrow terminal, only unknown reasons and the reasons with the longest sums get a column of their
    /// own.
    fn columns(&self, style: &Style) -> (Vec<WaitReason>, Vec<WaitReason>) {
        let used = self.waits.sums.all.used().filter(|(_, sum)| sum.total > 0);
        let mut used: Vec<(WaitReason, u64)> =
            used.map(|(reason, sum)| (reason, sum.total)).collect();
        let width = |reason: WaitReason| units::width(column(reason)).max(TIME) + 2;
        let mut room = if style.markdown {
            usize::MAX
        } else {
            style.width.saturating_sub(ROW)
        };
        if used.iter().map(|(reason, _)| width(*reason)).sum::<usize>() <= room {
            return (used.into_iter().map(|(reason, _)| reason).collect(), vec![]);
        }
        room = room.saturating_sub(TIME + 2); // of the rest's column
        used.sort_by_key(|(reason, total)| (*reason != WaitReason::Unknown, Reverse(*total)));
        let mut columns = Vec::new();
        let mut rest = Vec::new();
        for (reason, _) in used {
            match room.checked_sub(width(reason)) {
                Some(left) if rest.is_empty() => {
                    room = left;
                    columns.push(reason);
                }
                _ => rest.push(reason),
            }
        }
        columns.sort_unstable_by_key(|reason| *reason as usize);
        (columns, rest)
    }

    /// The table of the groups of threads with their time off CPU.
    fn groups(&self) -> Table<'_, &(Members, ReasonSums)> {
        members::table(self.waits.by, |row: &&(Members, ReasonSums)| &row.0)
            .fact(OFF_CPU, "total_ns", |(_, sums)| Cell::Time(sums.total()))
            .data("reasons", |(_, sums)| self.all_sums(sums))
    }

    fn by(&self, out: &mut Page, style: &Style) {
        let mut table = self.groups();
        let (columns, rest) = self.columns(style);
        for reason in columns {
            table = table.column(column(reason), move |(_, sums)| {
                Cell::Time(sums.of(&[reason]))
            });
        }
        let has_rest = !rest.is_empty();
        let table = table.column("other", move |(_, sums)| Cell::Time(sums.of(&rest)));
        let (title, most) = (self.waits.by.title(), self.view.ask.rows());
        out.first(table.shown(has_rest), title, &self.waits.sums.groups, most);
    }
}

impl Report for OffCpu<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        self.reasons(&mut out);
        out.blank();
        self.waits(&mut out, style);
        out.blank();
        self.by(&mut out, style);
        out
    }

    fn json(&self) -> Option<Value> {
        let waits = &self.waits;
        Some(json!({
            "total_ns": waits.sums.all.total(),
            "reasons": self.all_sums(&waits.sums.all),
            "longest": self.table(0).rows(self.view.asked(&waits.longest)),
            "groups": self.groups().rows(self.view.asked(&waits.sums.groups)),
        }))
    }

    fn sheet(&self) -> Sheet {
        let groups = self.view.asked(&self.waits.sums.groups);
        let rows = groups.flat_map(|(group, sums)| {
            let used = sums.used();
            used.map(move |(reason, sum)| (Some(group), reason, sum))
        });
        self.sums(0, 0).sheet(rows)
    }
}

/// The ender of a wait as a JSON object: its kind, such as a thread or an interrupt, its tid if it is known, and the
/// pid and the label if it is a recorded task.
fn actor_json(analysis: &Analysis, actor: Actor) -> Value {
    let (kind, tid, found) = match actor {
        Actor::Unknown => ("unknown", None, None),
        Actor::Timeout { .. } => ("timeout", None, None),
        Actor::Interrupt | Actor::SoftIrq | Actor::Device => ("interrupt", None, None),
        Actor::Outside(tid) => ("outside", Some(tid.0), None),
        Actor::Thread(ix) => {
            let (thread, process) = who::thread(analysis, ix);
            ("thread", Some(thread.tid.0), Some(process))
        }
    };
    json!({
        "kind": kind,
        "pid": found.map(|process| process.pid.0),
        "tid": tid,
        "label": found.map(label::whole),
    })
}
