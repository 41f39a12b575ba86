//! Tests critical paths of processes that are alive at the end of a recording. If such a process waits for a pipe, its
//! path goes on to the process at the other end of the pipe, if that process is alive.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // of traces made here

mod hand;

use hand::{Hand, DEAD, RUNNING, SLEEPS};
use tr_analyze::critical_path::{critical_path, Then, TimeKind};
use tr_analyze::{analyze, Options};
use tr_format::event::{Reason, SchedKind, Switch, Tid, Timeout};
use tr_format::meta::Scope;

const MS: i64 = 1_000_000;
const SHELL: u32 = 10;
const MAKE: u32 = 11;
const TEE: u32 = 12;
const CC: u32 = 13;
const DAEMON: u32 = 14;

/// A recording in which every task runs on a CPU of its own.
struct Tasks(Hand);

impl Tasks {
    fn new() -> Tasks {
        let mut hand = Hand::new(Scope::All, 1000 * MS);
        hand.fork(0, 0, 1, SHELL, SHELL)
            .switch(cpu(SHELL), 1, 0, RUNNING, SHELL);
        Tasks(hand)
    }

    fn starts(mut self, time: i64, parent: u32, tid: u32) -> Tasks {
        let of_parent = cpu(parent);
        self.0
            .fork(of_parent as u16, time, parent, tid, tid)
            .first_waking(of_parent, time + 1, parent, tid, false)
            .switch(cpu(tid), time + 2, 0, RUNNING, tid);
        self
    }

    fn sleeps(mut self, time: i64, tid: u32, reason: Reason) -> Tasks {
        let kind = SchedKind::Switch(Switch {
            prev: Tid(tid),
            next: Tid(0),
            prev_state: SLEEPS,
            preempt: false,
            iowait: false,
            reason,
            timeout: Timeout::UNKNOWN,
        });
        self.0.sched(cpu(tid), time, kind);
        self
    }

    fn wakes(mut self, time: i64, tid: u32, other: u32) -> Tasks {
        self.0
            .waking(cpu(tid), time, tid, other)
            .switch(cpu(other), time + 1, 0, RUNNING, other);
        self
    }

    fn ends(mut self, time: i64, tid: u32) -> Tasks {
        self.0
            .exit(cpu(tid) as u16, time, tid, tid, true)
            .switch(cpu(tid), time + 1, tid, DEAD, 0);
        self
    }

    /// The last task on the critical path of a process, how the path came to it, and the kind of its last time.
    fn end_of(&self, pid: u32) -> (u32, Then, TimeKind) {
        let options = Options {
            timeline: true,
            ..Options::default()
        };
        let analysis = analyze(&self.0.trace(), &options);
        let mut all = analysis.process_ids();
        let process = all.find(|ix| analysis.process(*ix).pid.0 == pid).unwrap();
        let path = critical_path(&analysis, process).unwrap();
        let last = path.segments.last().unwrap();
        let tid = analysis.thread(last.thread).tid.0;
        (tid, last.then, last.kind)
    }
}

fn cpu(tid: u32) -> usize {
    tid as usize % 4
}

/// The shell's pipeline `make 2>&1 | tee log`, in which tee waits for output of make.
fn pipeline() -> Tasks {
    Tasks::new()
        .starts(MS, SHELL, MAKE)
        .starts(2 * MS, SHELL, TEE)
        .sleeps(3 * MS, SHELL, Reason::Child)
        .sleeps(3 * MS, TEE, Reason::PipeRead)
}

#[test]
fn the_end_of_a_pipeline_is_its_writer() {
    let tasks = pipeline()
        .starts(4 * MS, MAKE, CC)
        .sleeps(5 * MS, MAKE, Reason::Child)
        .sleeps(6 * MS, CC, Reason::Timer);
    let end = (CC, Then::Awaited, TimeKind::Sleep);
    assert_eq!(tasks.end_of(SHELL), end);
    assert_eq!(tasks.end_of(TEE), end);
}

#[test]
fn a_reader_whose_writer_has_ended_is_the_end() {
    let tasks = pipeline().ends(7 * MS, MAKE);
    assert_eq!(tasks.end_of(SHELL).0, TEE);
}

/// If several tasks may write to the pipe for which a task waits, the critical path goes on to the task that wrote
/// last, and not to another task that the same shell has started.
#[test]
fn the_last_writer_counts_before_others() {
    let tasks = Tasks::new()
        .starts(MS, SHELL, MAKE)
        .starts(2 * MS, MAKE, CC)
        .sleeps(3 * MS, MAKE, Reason::Child)
        .starts(4 * MS, SHELL, TEE)
        .sleeps(5 * MS, TEE, Reason::PipeRead)
        .sleeps(5 * MS, SHELL, Reason::Child)
        .wakes(6 * MS, CC, TEE)
        .sleeps(7 * MS, TEE, Reason::PipeRead)
        .starts(8 * MS, MAKE, DAEMON)
        .sleeps(9 * MS, CC, Reason::Lock)
        .sleeps(9 * MS, DAEMON, Reason::Lock);
    assert_eq!(tasks.end_of(TEE).0, CC);
}
