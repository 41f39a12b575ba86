//! The switches of the chosen tasks.
//!
//! Each thread's stays on CPUs come from the timeline one by one, and are merged by time: none
//! but the next one of each thread is in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io;

use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::timeline::{Bucket, Timeline, Wait};
use tr_format::event::{Comm, CpuId, Ktime, Tid};

use super::bundle::{Cpu, BUNDLE};
use super::{id, Packets, NOT_RECORDED};
use crate::export::messages::*;
use crate::view::View;

/// The interval of the counter of running tasks, in ns.
const INTERVAL: u64 = 10_000_000;
/// The most intervals, 44 minutes: of a longer recording they are doubled until there are fewer.
const INTERVALS: u64 = 1 << 18;

/// A stay of a chosen task on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stay {
    from: Ktime,
    cpu: CpuId,
    to: Ktime,
    tid: Tid,
    /// The state in which it left.
    state: i64,
    /// The place of its thread's [`Stays`].
    place: usize,
}

/// The stays of a thread, as the analysis has them.
struct Stays {
    thread: ThreadIx,
    tid: Tid,
    /// The number of the next stretch.
    next: usize,
}

impl Stays {
    /// The next stay. `waited` gets the end of each wait for block I/O before it.
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
                        // TASK_DEAD as it is reported: nothing follows.
                        state: after.map_or(0x10, |after| state(after.doing)),
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

/// The switches between stays; the counter of running tasks.
pub fn write(
    view: &View<'_>,
    comms: &HashMap<Tid, Comm>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let analysis = view.analysis;
    let none = Timeline::default();
    let timeline = analysis.timeline.as_ref().unwrap_or(&none);
    let threads = view.processes().flat_map(|process| &process.threads);
    let mut all: Vec<Stays> = threads
        .map(|ix| Stays {
            thread: *ix,
            tid: analysis.thread(*ix).tid,
            next: 0,
        })
        .collect();
    let mut waits = Waits::default();
    let mut heap = BinaryHeap::new();
    for (place, stays) in all.iter_mut().enumerate() {
        let tid = stays.tid;
        let stay = stays.next(place, timeline, |time| waits.add(time, tid, packets))?;
        heap.extend(stay.map(Reverse));
    }
    let mut cpus: BTreeMap<CpuId, Switches> = BTreeMap::new();
    let mut running = Running::new(analysis);
    while let Some(Reverse(stay)) = heap.pop() {
        running.add(&stay);
        let cpu = cpus.entry(stay.cpu);
        let cpu = cpu.or_insert_with(|| Switches::new(stay.cpu, analysis, comms));
        cpu.stay(&stay, comms, packets)?;
        if let Some(stays) = all.get_mut(stay.place) {
            let tid = stays.tid;
            let next = stays.next(stay.place, timeline, |time| waits.add(time, tid, packets))?;
            heap.extend(next.map(Reverse));
        }
    }
    for cpu in cpus.into_values() {
        cpu.end(comms, packets)?;
    }
    waits.0.flush(CpuId(0), packets)?;
    running.write(packets)
}

/// The switches of a CPU so far.
struct Switches {
    number: CpuId,
    cpu: Cpu,
    /// The task between stays.
    between: Tid,
    /// The end of the last stay, and the state in which its task left.
    since: Ktime,
    left: i64,
}

impl Switches {
    fn new(number: CpuId, analysis: &Analysis, comms: &HashMap<Tid, Comm>) -> Switches {
        let figures = analysis.cpus.iter().find(|(cpu, _)| *cpu == number);
        let idle = figures.is_some_and(|(_, figures)| figures.idle_known);
        let mut cpu = Cpu::default();
        // The importer leaves out the first switch of a CPU.
        cpu.switch(analysis.start, Tid::IDLE, 0, comms);
        Switches {
            number,
            cpu,
            between: if idle { Tid::IDLE } else { NOT_RECORDED },
            since: analysis.start,
            left: 0,
        }
    }

    fn stay(
        &mut self,
        stay: &Stay,
        comms: &HashMap<Tid, Comm>,
        packets: &mut Packets<'_>,
    ) -> io::Result<()> {
        if stay.from > self.since {
            self.cpu.switch(self.since, self.between, self.left, comms);
            self.left = 1;
        }
        self.cpu.switch(stay.from, stay.tid, self.left, comms);
        (self.since, self.left) = (stay.to, stay.state);
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

/// The ends of waits for block I/O.
#[derive(Default)]
struct Waits(Cpu);

impl Waits {
    fn add(&mut self, time: Ktime, tid: Tid, packets: &mut Packets<'_>) -> io::Result<()> {
        let reason = SchedBlockedReason {
            pid: id(tid.0),
            io_wait: 1,
        };
        self.0
            .event(time, Tid::IDLE, 0, Ftrace::SchedBlockedReason(reason));
        if self.0.length() >= BUNDLE {
            self.0.flush(CpuId(0), packets)?;
        }
        Ok(())
    }
}

/// The mean number of chosen tasks on CPUs in each interval.
struct Running {
    start: Ktime,
    interval: u64,
    sums: Vec<u64>,
}

impl Running {
    fn new(analysis: &Analysis) -> Running {
        let length = analysis.end.since(analysis.start);
        let mut interval = INTERVAL;
        while length / interval >= INTERVALS {
            interval *= 2;
        }
        Running {
            start: analysis.start,
            interval,
            sums: vec![0; (length / interval) as usize + 1],
        }
    }

    fn add(&mut self, stay: &Stay) {
        let mut from = stay.from;
        while from < stay.to {
            let at = from.since(self.start) / self.interval;
            let next = (at + 1).saturating_mul(self.interval);
            let next = Ktime(self.start.0.saturating_add(next));
            let to = next.min(stay.to);
            if let Some(sum) = self.sums.get_mut(at as usize) {
                *sum = sum.saturating_add(to.since(from));
            }
            from = to;
        }
    }

    fn write(self, packets: &mut Packets<'_>) -> io::Result<()> {
        let track = packets.counter("recorded tasks on a CPU", "tasks")?;
        for (at, sum) in self.sums.into_iter().enumerate() {
            let time = Ktime(self.start.0 + at as u64 * self.interval);
            packets.count(track, time, sum as f64 / self.interval as f64)?;
        }
        Ok(())
    }
}
