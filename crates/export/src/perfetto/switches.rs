//! Writes the switches of the chosen tasks to a Perfetto trace.
//!
//! Each thread's stays on CPUs come from the timeline one by one, and are merged by time, so that only the next stay of
//! each thread is in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::io;
use std::ops::Range;

use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::order::{self, Event};
use tr_analyze::timeline::{Bucket, Timeline, Wait};
use tr_format::event::{Comm, CpuId, Ktime, LifeKind, SchedKind, Stream, Switch, Tid};
use tr_format::reader::Trace;

use super::bundle::{Cpu, BUNDLE};
use super::detail::{Merger, Piece};
use super::packets::{id, Packets, NOT_RECORDED};
use crate::messages::*;
use tr_insight::views::view::View;

/// The interval in ns between two values of the exported counter, which shows how many tasks are running.
const INTERVAL: u64 = 10_000_000;
/// The largest number of intervals of the counter of running tasks, which suffices for 44 minutes. For a longer
/// recording the interval is doubled until there are fewer.
const INTERVALS: u64 = 1 << 18;

/// The state of a runnable task as the tracepoint sched_switch reports it.
const RUNNABLE: i64 = 0;
/// The state TASK_DEAD as the tracepoint sched_switch reports it: the task has exited and never runs again.
const DEAD: i64 = 0x10;

/// A stay: the time from switch-in to switch-out that a task is on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stay {
    from: Ktime,
    cpu: CpuId,
    to: Ktime,
    tid: Tid,
    /// The state in which the task left the CPU at the end of this stay, as the tracepoint sched_switch reports it.
    state: i64,
    /// The index of this thread's [`Stays`] in the list of all, from which the thread's next stay is taken.
    place: usize,
}

/// Finds the stays of one thread on CPUs, one after the other, in the thread's timeline.
struct Stays {
    thread: ThreadIx,
    tid: Tid,
    /// The index, in the list of the thread's stretches (times in one state), of the stretch that is examined next.
    next: usize,
}

impl Stays {
    /// The thread's next stay on a CPU; `None` if there is no other. For each wait for block I/O before this stay,
    /// `waited` is called with the end of the wait.
    fn next(
        &mut self,
        place: usize,
        timeline: &Timeline,
        mut waited: impl FnMut(Ktime) -> io::Result<()>,
    ) -> io::Result<Option<Stay>> {
        while let Some(stretch) = timeline.get(self.thread, self.next) {
            self.next += 1;
            match (stretch.doing, stretch.cpu) {
                (Bucket::OnCpu(_), Some(cpu)) => {
                    let after = timeline.get(self.thread, self.next);
                    return Ok(Some(Stay {
                        from: stretch.from,
                        cpu,
                        to: stretch.to,
                        tid: self.tid,
                        state: after.map_or(DEAD, |after| state(after.doing)),
                        place,
                    }));
                }
                (Bucket::Wait(Wait::Io), _) => waited(stretch.to)?,
                _ => {}
            }
        }
        Ok(None)
    }
}

/// The state of a task that leaves a CPU, as the tracepoint sched_switch reports it
/// (include/trace/events/sched.h, `__trace_sched_switch_state`).
fn state(after: Bucket) -> i64 {
    match after {
        Bucket::RunQueue { preempted: true } => 0x100,
        Bucket::Wait(Wait::Sleep) => 1,
        Bucket::Wait(Wait::Io | Wait::Vfork | Wait::Blocked) => 2,
        Bucket::Wait(Wait::Stopped) => 4,
        _ => 0,
    }
}

/// Writes the context switches between the stays of tasks on CPUs to a Perfetto trace, and the counter of running
/// tasks.
pub fn write(
    view: &View<'_>,
    detail: u64,
    comms: &HashMap<Tid, Comm>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let analysis = view.analysis;
    let none = Timeline::default();
    let timeline = analysis.timeline.as_ref().unwrap_or(&none);
    let stays = view.threads().map(|thread| Stays {
        thread,
        tid: analysis.thread(thread).tid,
        next: 0,
    });
    let mut all: Vec<Stays> = stays.collect();
    let mut waits = Waits {
        cpu: Cpu::default(),
        shown: detail == 0,
    };
    let mut heap = BinaryHeap::new();
    for (place, stays) in all.iter_mut().enumerate() {
        let tid = stays.tid;
        let stay = stays.next(place, timeline, |time| waits.add(time, tid, packets))?;
        heap.extend(stay.map(Reverse));
    }
    let mut all_cpus = Cpus::new(view, detail, comms);
    while let Some(Reverse(stay)) = heap.pop() {
        all_cpus.stay(&stay, packets)?;
        if let Some(stays) = all.get_mut(stay.place) {
            let tid = stays.tid;
            let next = stays.next(stay.place, timeline, |time| waits.add(time, tid, packets))?;
            heap.extend(next.map(Reverse));
        }
    }
    all_cpus.end(packets)?;
    waits.cpu.flush(CpuId(0), packets)
}

/// Writes the context switches and the counter of running tasks like [`write()`], but from the events themselves, for
/// recordings without a timeline. After a loss of events, it is not known which task runs on a CPU.
pub fn by_events(
    view: &View<'_>,
    trace: &Trace,
    detail: u64,
    comms: &HashMap<Tid, Comm>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let analysis = view.analysis;
    let threads = view.threads();
    let chosen: HashSet<Tid> = threads.map(|ix| analysis.thread(ix).tid).collect();
    let mut all_cpus = Cpus::new(view, detail, comms);
    // The task that runs on each CPU, and the time since which it has been running.
    let mut running: HashMap<CpuId, (Tid, Ktime)> = HashMap::new();
    let mut merge = order::merge(trace);
    while let Some(event) = merge.next_event() {
        let time = event.time();
        if time > analysis.end {
            break;
        }
        let (cpu, next, state) = match event {
            Event::Sched(cpu, event) => match event.kind {
                SchedKind::Switch(Switch {
                    next,
                    prev_state,
                    preempt,
                    ..
                }) => (cpu, Some(next), left(prev_state, preempt)),
                SchedKind::Waking(_) => continue,
            },
            Event::Life(event) => match &event.kind {
                LifeKind::Lost(lost) => match lost.stream {
                    Stream::Cpu(cpu) => (cpu, None, 0),
                    _ => continue,
                },
                _ => continue,
            },
        };
        let before = match next {
            Some(next) => running.insert(cpu, (next, time)),
            None => running.remove(&cpu),
        };
        if let Some((tid, from)) = before.filter(|(tid, _)| chosen.contains(tid)) {
            all_cpus.stay(
                &Stay::inside(analysis, from..time, cpu, tid, state),
                packets,
            )?;
        }
    }
    let mut last: Vec<_> = running.into_iter().collect();
    last.sort_unstable();
    for (cpu, (tid, from)) in last
        .into_iter()
        .filter(|(_, (tid, _))| chosen.contains(tid))
    {
        all_cpus.stay(
            &Stay::inside(analysis, from..analysis.end, cpu, tid, 0),
            packets,
        )?;
    }
    all_cpus.end(packets)
}

/// The state in which a task leaves a CPU, as the tracepoint sched_switch reports it, from the raw bits that were
/// recorded. include/linux/sched.h defines TASK_DEAD as 0x80.
fn left(bits: u16, preempt: bool) -> i64 {
    match bits {
        _ if preempt => 0x100,
        bits if bits & 0x80 != 0 => DEAD,
        bits => i64::from(bits & 0x7f),
    }
}

impl Stay {
    /// Makes the part of a task's stay on a CPU that lies in the analyzed span of the recording.
    fn inside(analysis: &Analysis, span: Range<Ktime>, cpu: CpuId, tid: Tid, state: i64) -> Stay {
        let from = span.start.max(analysis.start);
        Stay {
            from,
            cpu,
            to: span.end.max(from),
            tid,
            state,
            place: 0,
        }
    }
}

/// The state of the export of context switches: for each CPU, the switches so far, and the short stays of tasks on this
/// CPU that are being merged.
struct Cpus<'a> {
    analysis: &'a Analysis,
    comms: &'a HashMap<Tid, Comm>,
    detail: u64,
    cpus: BTreeMap<CpuId, (Switches, Merger<(Tid, i64)>)>,
    running: Running,
}

impl<'a> Cpus<'a> {
    fn new(view: &View<'a>, detail: u64, comms: &'a HashMap<Tid, Comm>) -> Cpus<'a> {
        Cpus {
            analysis: view.analysis,
            comms,
            detail,
            cpus: BTreeMap::new(),
            running: Running::new(view.analysis),
        }
    }

    fn stay(&mut self, stay: &Stay, packets: &mut Packets<'_>) -> io::Result<()> {
        if stay.from >= stay.to {
            return Ok(());
        }
        self.running.add(stay);
        let (switches, merger) = self.cpus.entry(stay.cpu).or_insert_with(|| {
            let switches = Switches::new(stay.cpu, self.analysis, self.comms);
            (switches, Merger::new(self.detail))
        });
        let pieces = merger.add((stay.from, stay.to, (stay.tid, stay.state)));
        for piece in pieces.into_iter().flatten() {
            switches.stay(piece, self.comms, packets)?;
        }
        Ok(())
    }

    fn end(self, packets: &mut Packets<'_>) -> io::Result<()> {
        for (mut switches, mut merger) in self.cpus.into_values() {
            if let Some(piece) = merger.take() {
                switches.stay(piece, self.comms, packets)?;
            }
            switches.end(self.comms, packets)?;
        }
        self.running.write(packets)
    }
}

/// The context switches of one CPU in the export, up to the time that the export has reached.
struct Switches {
    number: CpuId,
    cpu: Cpu,
    /// The task that is shown on the CPU between the stays of recorded tasks: the idle task or a made-up one.
    between: Tid,
    /// The state in which the task that is shown between the stays of recorded tasks leaves the CPU.
    between_left: i64,
    /// The time at which the last recorded task left this CPU. The switch away from this task is not written yet.
    since: Ktime,
    /// The state in which the last recorded task left the CPU.
    left: i64,
}

impl Switches {
    fn new(number: CpuId, analysis: &Analysis, comms: &HashMap<Tid, Comm>) -> Switches {
        let figures = analysis.machine.cpus.iter().find(|(cpu, _)| *cpu == number);
        let idle = figures.is_some_and(|(_, figures)| figures.idle_known);
        let mut cpu = Cpu::default();
        // The importer leaves out the first switch of a CPU, so the first switch that is written is one to the idle
        // task.
        cpu.switch(analysis.start, Tid::IDLE, 0, comms);
        let (between, between_left) = if idle {
            (Tid::IDLE, RUNNABLE)
        } else {
            // The made-up task stands for tasks that may sleep or be runnable. So it gets the state TASK_DEAD, the only
            // state that the importer counts neither as sleeping nor as runnable.
            (Tid(NOT_RECORDED.0 + u32::from(number.0)), DEAD)
        };
        Switches {
            number,
            cpu,
            between,
            between_left,
            since: analysis.start,
            left: 0,
        }
    }

    fn stay(
        &mut self,
        (from, to, (tid, state)): Piece<(Tid, i64)>,
        comms: &HashMap<Tid, Comm>,
        packets: &mut Packets<'_>,
    ) -> io::Result<()> {
        if from > self.since {
            self.cpu.switch(self.since, self.between, self.left, comms);
            self.left = self.between_left;
        }
        self.cpu.switch(from, tid, self.left, comms);
        (self.since, self.left) = (to, state);
        if self.cpu.length() >= BUNDLE {
            self.cpu.flush(self.number, packets)?;
        }
        Ok(())
    }

    fn end(mut self, comms: &HashMap<Tid, Comm>, packets: &mut Packets<'_>) -> io::Result<()> {
        self.cpu.switch(self.since, self.between, self.left, comms);
        self.cpu.flush(self.number, packets)
    }
}

/// The export of the ends of waits for block I/O. They are only exported if stays on CPUs are not merged.
struct Waits {
    cpu: Cpu,
    shown: bool,
}

impl Waits {
    fn add(&mut self, time: Ktime, tid: Tid, packets: &mut Packets<'_>) -> io::Result<()> {
        if !self.shown {
            return Ok(());
        }
        let reason = SchedBlockedReason {
            pid: id(tid.0),
            io_wait: 1,
        };
        self.cpu
            .event(time, Tid::IDLE, 0, Ftrace::SchedBlockedReason(reason));
        if self.cpu.length() >= BUNDLE {
            self.cpu.flush(CpuId(0), packets)?;
        }
        Ok(())
    }
}

/// The counter of running tasks: the mean number of exported tasks on CPUs in each interval. Its memory and output
/// depend on the number of stays, and not on their lengths, which a forged file can make very long.
struct Running {
    start: Ktime,
    interval: u64,
    /// The number of the last interval of the counter, at the recording's end.
    last: u64,
    /// The changes of the number of running tasks, by the number of the counter's interval in which a task begins or
    /// stops to run.
    changes: BTreeMap<u64, Change>,
}

/// The change of the number of running tasks in one interval of the counter.
#[derive(Default)]
struct Change {
    /// The sum in ns of the times for which tasks ran in this interval, without tasks that ran during the whole
    /// interval.
    part: u64,
    /// The change, from this interval on, of the number of tasks that run during whole intervals.
    whole: i64,
}

impl Running {
    fn new(analysis: &Analysis) -> Running {
        let length = analysis.wall();
        let mut interval = INTERVAL;
        while length / interval >= INTERVALS {
            interval *= 2;
        }
        Running {
            start: analysis.start,
            interval,
            last: length / interval,
            changes: BTreeMap::new(),
        }
    }

    fn add(&mut self, stay: &Stay) {
        let (from, to) = (stay.from.since(self.start), stay.to.since(self.start));
        let (first, last) = (from / self.interval, to / self.interval);
        if first == last {
            self.add_part(first, to.saturating_sub(from));
            return;
        }
        // The task runs for a part of the first interval, for all intervals between, and for a part of the last one.
        self.add_part(first, self.interval - from % self.interval);
        self.changes.entry(first + 1).or_default().whole += 1;
        let end = self.changes.entry(last).or_default();
        end.whole -= 1;
        self.add_part(last, to % self.interval);
    }

    fn add_part(&mut self, interval: u64, ns: u64) {
        let part = &mut self.changes.entry(interval).or_default().part;
        *part = part.saturating_add(ns);
    }

    /// The values of the counter of running tasks, each with the number of the interval from which on it holds. Only
    /// intervals in which the value changes are included.
    fn values(&self) -> Vec<(u64, f64)> {
        let mut values = vec![(0, 0.0)];
        let mut set = |at: u64, value: f64| match values.last_mut() {
            Some((last, of)) if *last == at => *of = value,
            _ if at > self.last => {}
            _ => values.push((at, value)),
        };
        let mut whole = 0;
        for (at, change) in &self.changes {
            whole += change.whole;
            set(
                *at,
                whole as f64 + change.part as f64 / self.interval as f64,
            );
            set(at.saturating_add(1), whole as f64);
        }
        values.dedup_by(|next, kept| next.1 == kept.1);
        values
    }

    fn write(self, packets: &mut Packets<'_>) -> io::Result<()> {
        let track = packets.counter("recorded tasks on a CPU", "tasks")?;
        for (at, value) in self.values() {
            let since = at.saturating_mul(self.interval);
            let time = Ktime(self.start.0.saturating_add(since));
            packets.count(track, time, value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_tasks_are_written_where_their_number_changes() {
        let mut running = Running {
            start: Ktime(1_000),
            interval: 10,
            last: (1 << 62) / 10,
            changes: BTreeMap::new(),
        };
        let mut add = |from: u64, to: u64| {
            running.add(&Stay {
                from: Ktime(1_000 + from),
                to: Ktime(1_000 + to),
                cpu: CpuId(0),
                tid: Tid(1),
                state: 0,
                place: 0,
            });
        };
        add(5, 40);
        add(12, 17);
        add(20, 1 << 62);
        let end = (1 << 62) / 10;
        let values = [(0, 0.5), (1, 1.5), (2, 2.0), (4, 1.0), (end, 0.4)];
        assert_eq!(running.values(), values);
    }
}
