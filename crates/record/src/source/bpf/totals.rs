//! Reads the totals of CPU time of the living tasks once a second. A recording with `--light` has no scheduling events,
//! so only these totals show how the tasks spent their time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tr_bpf::{wire, Tracer};
use tr_format::event::{Ktime, LifeEvent};
use tr_format::meta::{Known, RecordingFacts};

use super::convert;
use super::records::Sink;
use crate::host;
use crate::source::recorder;
use crate::source::sampler::cpu_time;

/// The shortest interval between two readings of the totals of CPU time of all tasks.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// Limits the CPU time for reading the tasks' totals to one CPU's time divided by this number. So with 10,000 tasks the
/// totals are read more rarely.
const CPU_SHARE: u32 = 2500;
/// The run time in ns by which a task's total has to grow before it is written again. The kernel's totals lag by up
/// to a tick.
const LEAST_TIME: u64 = 1_000_000;
/// The time by which a drain of the slots and rings may come early and still count as due for reading the tasks' totals
/// of CPU time.
const EARLY_DRAIN: Duration = Duration::from_millis(50);
/// The time in ns after which the kernel has freed most tasks that have ended. If a task is still a zombie then, its
/// last totals of CPU time are written twice.
const FREED_AFTER: u64 = 3_000_000_000;

/// The totals of CPU time of all tasks as they were read last, and the run times that are already in the trace.
#[derive(Debug)]
pub struct Totals {
    /// For each task, by its tid: the totals (CPU time and the like) at the last reading, and the run time in ns that
    /// was last written to the trace.
    tasks: HashMap<u32, (wire::Total, u64)>,
    next: Instant,
    /// Whether the kernel counts the time that tasks wait in run queues.
    has_delays: bool,
}

impl Totals {
    /// Creates a `Totals` that has read no totals of tasks' CPU time yet, and finds out whether the kernel counts the
    /// time in run queues.
    pub fn new(tracer: &mut Tracer) -> Totals {
        let has_delays = tracer
            .totals()
            .iter()
            .any(|total| total.run_delay_known != 0);
        Totals {
            tasks: HashMap::new(),
            next: Instant::now() + SHORTEST_INTERVAL,
            has_delays,
        }
    }

    /// How a recording with `--light` obtains each kind of fact, for example by events or by samples.
    pub fn facts(&self) -> RecordingFacts {
        RecordingFacts {
            switches: Known::Totals,
            wakings: Known::Absent,
            run_queue: if self.has_delays {
                Known::Totals
            } else {
                Known::Absent
            },
            blocked: Known::Absent,
            ..RecordingFacts::default()
        }
    }

    /// If it is time for the next reading, reads the totals (CPU time and the like) of all tasks. Adds events to `sink`
    /// with the totals that have grown, and with the last totals of tasks that have ended and that the kernel has not
    /// freed yet.
    pub fn each_second(&mut self, tracer: &mut Tracer, sink: &mut Sink) {
        let now = Instant::now();
        if now + EARLY_DRAIN < self.next {
            return;
        }
        let (time, before) = (host::now(), cpu_time());
        // The totals of CPU time of ended tasks come first. Some of these tasks are still zombies, and the call of
        // `read` below returns newer totals for them.
        let ended = sink.ended(Ktime(time.0.saturating_sub(FREED_AFTER)));
        let mut events: Vec<_> = ended.iter().map(|total| event(total, time)).collect();
        events.extend(self.read(tracer, time));
        let cost = cpu_time().saturating_sub(before);
        self.next = now + SHORTEST_INTERVAL.max(cost * CPU_SHARE);
        sink.push_own(events);
    }

    /// Reads the totals (CPU time and the like) of all tasks and returns events with those that have grown. The events
    /// get the time `time`, which is right before the reading.
    fn read(&mut self, tracer: &mut Tracer, time: Ktime) -> Vec<LifeEvent> {
        let before = std::mem::take(&mut self.tasks);
        let mut grown = Vec::new();
        for total in tracer.totals() {
            let runtime = total.sum_exec_runtime;
            // No totals were written yet for a new task, which began with a run time of 0.
            let mut written = before.get(&total.tid).map_or(0, |(_, written)| *written);
            // A run time that is smaller than the written one belongs to a new task with the same tid.
            if runtime < written || runtime - written >= LEAST_TIME {
                written = runtime;
                grown.push(event(&total, time));
            }
            self.tasks.insert(total.tid, (total, written));
        }
        grown
    }

    /// The events with the totals (CPU time and the like) of all tasks at the beginning of a trace file.
    pub fn first(&mut self, tracer: &mut Tracer, time: Ktime) -> Vec<LifeEvent> {
        self.read(tracer, time);
        self.all(time)
    }

    /// The events with the totals (CPU time and the like) of all tasks at the end of a trace file.
    pub fn last(&mut self, tracer: &mut Tracer, sink: &mut Sink, time: Ktime) -> Vec<LifeEvent> {
        self.read(tracer, time);
        let ended = sink.ended(time);
        (ended.iter().map(|total| event(total, time)))
            .chain(self.all(time))
            .collect()
    }

    /// The events with the totals (CPU time and the like) of all tasks at the last reading. At the end of a recording
    /// even unchanged totals matter: they show that a task has slept.
    pub fn all(&self, time: Ktime) -> Vec<LifeEvent> {
        let mut totals: Vec<_> = self.tasks.values().map(|(total, _)| total).collect();
        totals.sort_unstable_by_key(|total| total.tid);
        totals.into_iter().map(|total| event(total, time)).collect()
    }
}

fn event(total: &wire::Total, time: Ktime) -> LifeEvent {
    recorder(time, convert::total(total))
}
