//! Compares the truth about a simulated run with the run's events. A second, simple analysis reads the events in the
//! order in which they happened, and must compute the same times as the machine did from its own state. So the events
//! show everything that the truth contains, and the real analysis can be expected to find all of that.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // The indices are of the test's own tables.

use std::collections::HashMap;

use proptest::prelude::*;
use tr_format::event::{
    CpuId, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream, Switch, Tgid, Tid, Waking,
};
use tr_sim::config::{Config, Follow};
use tr_sim::machine::Machine;
use tr_sim::recording::Recording;
use tr_sim::sink::Sink;
use tr_sim::strategy;
use tr_sim::timeline;
use tr_sim::truth::{Causes, Times, Truth};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    OnCpu,
    RunQueue { preempted: bool },
    Sleep { stopped: bool },
    Blocked { io: bool, vfork: bool },
}

#[derive(Debug)]
struct Task {
    tid: Tid,
    tgid: Tgid,
    born: u64,
    state: State,
    since: u64,
    times: Times,
    causes: Causes,
    voluntary: u64,
    involuntary: u64,
    /// Whether the task was woken since it was last switched in.
    woken: bool,
    /// If the task was switched out into a sleep: the time of the switch-out, and whether the task was woken before
    /// that time. A waking can have an earlier time stamp than the switch-out whose sleep it ends.
    asleep: Option<(u64, bool)>,
    /// Whether a waking is the only event of the task so far, so that its state is not known.
    only_woken: bool,
    /// The child that the task made by vfork, until the child's exec or exit.
    vfork: Option<Tid>,
    /// The parent that made this task by vfork, until this task's exec or exit.
    vforked_by: Option<Tid>,
    status: Option<u32>,
    end: Option<u64>,
}

struct Reading {
    start: u64,
    end: u64,
    all: bool,
    alive: HashMap<Tid, Task>,
    dead: Vec<Task>,
    group_status: HashMap<(Tgid, u64), u32>,
    fault: Option<String>,
}

impl Task {
    fn settle(&mut self, time: u64, start: u64, end: u64) {
        let from = self.since.max(start);
        let to = time.min(end);
        self.since = time;
        let Some(length) = to.checked_sub(from) else {
            return;
        };
        match self.state {
            State::OnCpu => self.times.on_cpu += length,
            State::RunQueue { preempted } => {
                self.times.run_queue += length;
                self.causes.preempted += if preempted { length } else { 0 };
            }
            State::Sleep { stopped } => {
                self.times.sleep += length;
                self.causes.stopped += if stopped { length } else { 0 };
            }
            State::Blocked { io, vfork } => {
                self.times.blocked += length;
                self.causes.io += if io { length } else { 0 };
                self.causes.vfork += if vfork { length } else { 0 };
            }
        }
    }
}

impl Reading {
    fn add(&mut self, tid: Tid, tgid: Tgid, time: u64, state: State) {
        let task = Task {
            tid,
            tgid,
            born: time,
            state,
            since: time,
            times: Times::default(),
            causes: Causes::default(),
            voluntary: 0,
            involuntary: 0,
            woken: false,
            only_woken: false,
            asleep: None,
            vfork: None,
            vforked_by: None,
            status: None,
            end: None,
        };
        assert!(
            self.alive.insert(tid, task).is_none(),
            "{tid:?} is there already"
        );
    }

    /// Notes that a child has exec'd or exited, so that the child's parent by vfork will not begin to wait for the
    /// child any more.
    fn end_vfork(&mut self, child: Tid) {
        let parent = self
            .alive
            .get_mut(&child)
            .and_then(|child| child.vforked_by.take());
        if let Some(parent) = parent.and_then(|parent| self.alive.get_mut(&parent)) {
            if parent.vfork == Some(child) {
                parent.vfork = None;
            }
        }
    }

    /// Adds a task whose first event comes before its snapshot. The task's state follows from this event, not from the
    /// snapshot.
    fn meet(&mut self, tid: Tid, state: State) {
        if self.all && tid != Tid::IDLE && !self.alive.contains_key(&tid) {
            self.add(tid, Tgid(0), 0, state);
        }
    }

    fn out(&mut self, time: u64, prev: Tid, state: u16, preempt: bool, iowait: bool) {
        let (start, end) = (self.start, self.end);
        self.meet(prev, State::OnCpu);
        let Some(task) = self.alive.get_mut(&prev) else {
            return;
        };
        task.settle(time, start, end);
        task.only_woken = false;
        let runnable = preempt || state == 0;
        if time >= start && time < end {
            task.voluntary += u64::from(!runnable);
            task.involuntary += u64::from(runnable);
        }
        if state & 0x80 != 0 {
            task.end = Some(time);
            let task = self.alive.remove(&prev).unwrap();
            self.dead.push(task);
            return;
        }
        task.asleep = None;
        task.state = if runnable {
            State::RunQueue {
                preempted: preempt || !task.woken,
            }
        } else {
            task.asleep = Some((time, task.woken));
            if state & 0xc != 0 {
                State::Sleep { stopped: true }
            } else if state & 2 != 0 {
                let vfork = task.vfork.take().is_some() && !iowait;
                State::Blocked { io: iowait, vfork }
            } else {
                State::Sleep { stopped: false }
            }
        };
    }

    fn into(&mut self, time: u64, next: Tid) {
        let (start, end) = (self.start, self.end);
        self.meet(next, State::RunQueue { preempted: false });
        let Some(task) = self.alive.get_mut(&next) else {
            return;
        };
        if let Some((since, woken)) = task.asleep {
            if !matches!(task.state, State::RunQueue { .. }) {
                // No waking came after the task's switch-out. So the task must have been woken before the switch-out
                // got its time stamp.
                if !woken {
                    self.fault = Some(format!(
                        "{next:?} runs at {time} without a waking since {since}"
                    ));
                }
                task.state = State::RunQueue { preempted: false };
            }
        }
        task.settle(time, start, end);
        task.only_woken = false;
        task.state = State::OnCpu;
        task.asleep = None;
        task.woken = false;
    }
}

impl Sink for Reading {
    fn sched(&mut self, _: CpuId, event: SchedEvent) {
        let time = event.time.0;
        match event.kind {
            SchedKind::Switch(Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
                ..
            }) => {
                self.out(time, prev, prev_state, preempt, iowait);
                self.into(time, next);
            }
            SchedKind::Waking(Waking {
                waker,
                wakee,
                new,
                vfork,
                ..
            }) => {
                if self.all && !self.alive.contains_key(&wakee) {
                    // This waking is the first event of the woken task. The task is assumed to be in a run queue. If it
                    // is on a CPU, a later switch or its snapshot will show that.
                    self.meet(wakee, State::RunQueue { preempted: false });
                    let task = self.alive.get_mut(&wakee).unwrap();
                    task.woken = true;
                    task.only_woken = true;
                }
                if vfork {
                    self.meet(waker, State::OnCpu);
                    self.alive.get_mut(&waker).unwrap().vfork = Some(wakee);
                    self.alive.get_mut(&wakee).unwrap().vforked_by = Some(waker);
                }
                let (start, end) = (self.start, self.end);
                let Some(task) = self.alive.get_mut(&wakee) else {
                    return;
                };
                match task.state {
                    State::OnCpu => task.woken = true,
                    State::RunQueue { .. } => assert!(new || task.asleep.is_none()),
                    State::Sleep { .. } | State::Blocked { .. } => {
                        task.settle(time, start, end);
                        task.state = State::RunQueue { preempted: false };
                    }
                }
            }
        }
    }

    fn life(&mut self, _: Stream, event: LifeEvent) {
        let time = event.time.0;
        match event.kind {
            LifeKind::Snapshot(snapshot) if snapshot.followed || self.all => {
                let state = match snapshot.state {
                    _ if snapshot.on_cpu => State::OnCpu,
                    0 => State::RunQueue { preempted: false },
                    s if s & 0xc != 0 => State::Sleep { stopped: true },
                    s if s & 2 != 0 => State::Blocked {
                        io: false,
                        vfork: false,
                    },
                    _ => State::Sleep { stopped: false },
                };
                if !self.alive.contains_key(&snapshot.tid) {
                    self.add(snapshot.tid, snapshot.tgid, 0, state);
                    self.alive.get_mut(&snapshot.tid).unwrap().since = time;
                }
                let task = self.alive.get_mut(&snapshot.tid).unwrap();
                task.tgid = snapshot.tgid;
                if std::mem::take(&mut task.only_woken) && snapshot.on_cpu {
                    task.state = State::OnCpu;
                }
            }
            LifeKind::Fork(fork) => {
                self.add(
                    fork.tid,
                    fork.tgid,
                    time,
                    State::RunQueue { preempted: false },
                );
            }
            LifeKind::Exec(exec) => {
                self.meet(exec.old_tid, State::OnCpu);
                if exec.tid != exec.old_tid {
                    let mut task = self.alive.remove(&exec.old_tid).unwrap();
                    task.tid = exec.tid;
                    assert!(self.alive.insert(exec.tid, task).is_none());
                }
                self.end_vfork(exec.tid);
            }
            LifeKind::Exit(exit) => {
                self.meet(exit.tid, State::OnCpu);
                self.end_vfork(exit.tid);
                if let Some(task) = self.alive.get_mut(&exit.tid) {
                    if time < self.end {
                        task.status = Some(exit.status);
                        if exit.group_dead {
                            self.group_status
                                .insert((exit.tgid, time), exit.group_status);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// Runs a simulation, reads its events as they happen, and compares the times with the truth.
fn compare(config: &Config) -> Result<Truth, TestCaseError> {
    let mut machine = Machine::new(config);
    let mut reading = Reading {
        start: machine.meta().start.0,
        end: u64::MAX,
        all: config.follow == Follow::All,
        alive: HashMap::new(),
        dead: Vec::new(),
        group_status: HashMap::new(),
        fault: None,
    };
    // Times count only up to the end of the recorded span, so a first run of the same simulation finds the end.
    let mut first = Machine::new(config);
    first.run(&mut tr_sim::sink::Count::default());
    reading.end = first.summary().end.0;
    machine.run(&mut reading);
    prop_assert!(reading.fault.is_none(), "{:?}", reading.fault);
    let truth = machine.into_truth();
    let (start, end) = (reading.start, reading.end);
    let mut read: Vec<Task> = reading.dead;
    read.extend(reading.alive.into_values());
    read.retain(|task| task.born < end && task.end.is_none_or(|end| end >= start));
    for task in &mut read {
        if task.end.is_none() {
            task.settle(end.max(task.since), start, end);
        }
    }
    prop_assert_eq!(read.len(), truth.tasks.len());
    read.sort_by_key(|task| (task.tid, task.born.max(start)));
    let mut tasks: Vec<_> = truth.tasks.iter().collect();
    tasks.sort_by_key(|task| (task.tid, task.start));
    for (read, task) in read.iter().zip(tasks) {
        let show = || format!("{read:#?}\n{task:#?}");
        prop_assert_eq!(read.tid, task.tid, "{}", show());
        prop_assert_eq!(read.tgid, truth.processes[task.process].pid, "{}", show());
        prop_assert_eq!(read.born.max(start), task.start.0, "{}", show());
        prop_assert_eq!(read.end.unwrap_or(end).min(end), task.end.0, "{}", show());
        if task.undecided > 0 {
            // No event shows whether the task slept at the end. The analysis here assumes a sleep, but the task may
            // have been runnable.
            prop_assert_eq!(read.times.sum(), task.times.sum(), "{}", show());
            prop_assert!(
                read.times.run_queue == task.times.run_queue
                    || read.times.run_queue + task.undecided == task.times.run_queue,
                "{}",
                show()
            );
            prop_assert_eq!(read.times.on_cpu, task.times.on_cpu, "{}", show());
            continue;
        }
        prop_assert_eq!(read.times, task.times, "{}", show());
        prop_assert_eq!(read.causes, task.causes, "{}", show());
        prop_assert_eq!(
            (read.voluntary, read.involuntary),
            (task.voluntary, task.involuntary),
            "{}",
            show()
        );
        prop_assert_eq!(read.status, task.status, "{}", show());
    }
    Ok(truth)
}

proptest! {
    #![proptest_config(tr_sim::strategy::cases(400))]

    #[test]
    fn the_events_tell_the_truth(config in strategy::run(8_000_000)) {
        compare(&config).map_err(|error| {
            let (recording, _) = Recording::record(&config);
            TestCaseError::fail(format!("{error}\n{}", timeline::draw(&recording, 0, 200)))
        })?;
    }
}

#[test]
fn a_long_run_tells_the_truth() {
    let world = tr_sim::scenario::chaos(&tr_sim::scenario::Weights::default(), 8);
    for seed in 0..4 {
        let mut config = Config::new(world.clone(), 6, 400_000_000).seed(seed);
        config.follow = if seed % 2 == 0 {
            Follow::All
        } else {
            Follow::Command
        };
        config.kernel.max_tasks = 80;
        config.kernel.pid_max = 300;
        let truth = compare(&config).unwrap();
        assert!(truth.tasks.len() > 300, "{}", truth.tasks.len());
        let sum = truth
            .processes
            .iter()
            .fold(Causes::default(), |mut sum, process| {
                sum.add(&process.causes);
                sum
            });
        assert!(
            sum.preempted > 0 && sum.io > 0 && sum.vfork > 0 && sum.stopped > 0,
            "{sum:?}"
        );
    }
}
