//! Reads once a second the sums of system calls, which BPF programs make for each process and kind of call.

use std::time::{Duration, Instant};

use tr_bpf::{wire, Tracer};
use tr_format::counters::{CallSum, SystemCalls};
use tr_format::event::{Ktime, LifeEvent, LifeKind, Tgid};

use crate::host;
use crate::source::recorder;

/// The interval between two readings of the sums of system calls (for each process and kind of call).
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time for which the BPF programs may still add to one of the two tables of system calls after they were
/// told to use the other table.
const SETTLING_TIME: Duration = Duration::from_millis(100);

/// The largest number of sums in one event of system calls. A sum covers all calls of one kind that a process made in
/// an interval. A frame of the trace file can have several events, but at most [`tr_format::limits::CALLS`] sums in
/// all.
const SUMS: usize = 4096;

/// Reads the two tables in which the BPF programs sum up system calls, one after the other: while the programs
/// use one table, the other is read.
pub struct Calls {
    /// The time at which the BPF programs were told to change to the other of the two tables of sums, if the table that
    /// they filled before still has to be read; otherwise `None`.
    changed: Option<(Ktime, Instant)>,
    /// The end of the interval whose system calls are included in the sums (for each process and kind of call) that
    /// were already read.
    since: Ktime,
    next: Instant,
}

impl Calls {
    /// Begins to read the sums of system calls (for each process and kind of call) for a recording that begins at
    /// `start`. Calls before that time are not counted.
    pub fn new(tracer: &mut Tracer, start: Ktime) -> Calls {
        tracer.change_call_table();
        tracer.take_calls();
        Calls {
            changed: None,
            since: start,
            next: Instant::now() + READ_INTERVAL,
        }
    }

    /// The events with the sums of the system calls (for example their number and time) of an interval that has ended;
    /// none if no interval has ended since the last call of this function.
    pub fn drain(&mut self, tracer: &mut Tracer) -> Vec<LifeEvent> {
        let now = Instant::now();
        if let Some((at, _)) = self
            .changed
            .filter(|(_, when)| now >= *when + SETTLING_TIME)
        {
            self.changed = None;
            return self.events(tracer, at);
        }
        if self.changed.is_none() && now >= self.next {
            self.next = now + READ_INTERVAL;
            self.change(tracer);
        }
        Vec::new()
    }

    fn change(&mut self, tracer: &mut Tracer) {
        self.changed = Some((host::now(), Instant::now()));
        tracer.change_call_table();
    }

    /// The events with the sums of those system calls that no earlier event contains. They are read after the BPF
    /// programs have been detached.
    pub fn finish(&mut self, tracer: &mut Tracer, end: Ktime) -> Vec<LifeEvent> {
        let mut events = Vec::new();
        if let Some((at, _)) = self.changed.take() {
            events = self.events(tracer, at);
        }
        tracer.change_call_table();
        events.extend(self.events(tracer, end));
        events
    }

    fn events(&mut self, tracer: &mut Tracer, at: Ktime) -> Vec<LifeEvent> {
        let since = std::mem::replace(&mut self.since, at);
        let mut sums = tracer.take_calls();
        sums.sort_unstable_by_key(|sum| sum.key);
        let process = |sum: &wire::CallSum| (sum.key >> 32) as u32;
        let of_processes = sums.chunk_by(|a, b| process(a) == process(b));
        let parts = of_processes.flat_map(|sums| sums.chunks(SUMS));
        let events = parts.map(|sums| {
            let calls = SystemCalls {
                tgid: Tgid(sums.first().map_or(0, process)),
                since,
                calls: sums.iter().map(call).collect(),
            };
            recorder(at, LifeKind::SystemCalls(calls))
        });
        events.collect()
    }
}

fn call(sum: &wire::CallSum) -> CallSum {
    let number = sum.key as u32;
    CallSum {
        number: number & !wire::CALL_COMPAT,
        compat: number & wire::CALL_COMPAT != 0,
        count: sum.count,
        errors: sum.errors,
        ns: sum.ns,
        longest: sum.longest,
    }
}
