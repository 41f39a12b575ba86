//! The totals of the living tasks, once a second: what a light recording knows of times.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tr_bpf::{wire, Tracer};
use tr_format::event::{Account, Ktime, LifeEvent, LifeKind, Tgid, Tid};
use tr_format::meta::{Facts, Known};

use crate::host;
use crate::source::recorder;

/// The shortest interval between two passes over the tasks.
const EVERY: Duration = Duration::from_secs(1);
/// Of one CPU the passes take at most one part in so many: with 10,000 tasks they are rarer.
const SHARE: u32 = 2500;

/// The totals that the trace has.
#[derive(Debug)]
pub struct Totals {
    /// Those of the last pass, by tid.
    written: HashMap<u32, wire::Total>,
    next: Instant,
    /// The kernel counts the time in run queues.
    has_delays: bool,
}

impl Totals {
    /// Nothing is written yet.
    pub fn new(tracer: &mut Tracer) -> Totals {
        let has_delays = tracer.totals().iter().any(|it| it.run_delay_known != 0);
        Totals {
            written: HashMap::new(),
            next: Instant::now() + EVERY,
            has_delays,
        }
    }

    /// How a light recording knows its facts.
    pub fn facts(&self) -> Facts {
        Facts {
            switches: Known::Totals,
            wakings: Known::Absent,
            run_queue: match self.has_delays {
                true => Known::Totals,
                false => Known::Absent,
            },
            blocked: Known::Absent,
            ..Facts::default()
        }
    }

    /// The totals that have changed, if a pass is due.
    pub fn each_second(&mut self, tracer: &mut Tracer) -> Vec<LifeEvent> {
        let begun = Instant::now();
        if begun < self.next {
            return Vec::new();
        }
        let events = self.read(tracer, host::now());
        self.next = begun + EVERY.max(begun.elapsed() * SHARE);
        events
    }

    /// The totals that have changed. They have the time before the pass: what has begun since then is
    /// no part of it.
    pub fn read(&mut self, tracer: &mut Tracer, time: Ktime) -> Vec<LifeEvent> {
        let totals = tracer.totals();
        let before = std::mem::take(&mut self.written);
        let ran = |it: &&wire::Total| {
            before.get(&it.tid).map(|it| it.sum_exec_runtime) != Some(it.sum_exec_runtime)
        };
        let changed = totals.iter().filter(ran).map(|it| event(it, time));
        let changed = changed.collect();
        self.written = totals.into_iter().map(|it| (it.tid, it)).collect();
        changed
    }

    /// The totals of the last pass, of all tasks: at the end, those that have not changed tell that
    /// their tasks have slept.
    pub fn all(&self, time: Ktime) -> Vec<LifeEvent> {
        let mut totals: Vec<_> = self.written.values().collect();
        totals.sort_unstable_by_key(|it| it.tid);
        totals.into_iter().map(|it| event(it, time)).collect()
    }
}

fn event(total: &wire::Total, time: Ktime) -> LifeEvent {
    let account = Account {
        tid: Tid(total.tid),
        tgid: Tgid(total.tgid),
        sum_exec_runtime: total.sum_exec_runtime,
        run_delay: (total.run_delay_known != 0).then_some(total.run_delay),
        slices: None,
    };
    recorder(time, LifeKind::Account(account))
}
