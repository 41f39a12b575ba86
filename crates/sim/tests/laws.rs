//! Tests laws that hold in every simulated run: the kernel's laws, which the events must obey, and sums of times, which
//! must agree in the truth about the run.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // The indices are of the test's own tables.

use std::collections::{HashMap, HashSet};

use tr_format::event::{
    CpuId, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream, Switch, Tid, Waking,
};
use tr_sim::config::{Config, Follow};
use tr_sim::machine::Machine;
use tr_sim::scenario::{self, Weights};
use tr_sim::sink::{Event, Sink};
use tr_sim::truth::Truth;

/// A receiver of simulated events that panics at the first event that a real kernel could not have emitted.
#[derive(Default)]
struct Watch {
    all: bool,
    last: u64,
    current: HashMap<CpuId, Tid>,
    on_cpu: HashMap<Tid, CpuId>,
    /// The task ids that forks have given to new tasks so far.
    given: HashSet<Tid>,
    /// For each task, the CPU on which it was switched in last.
    home: HashMap<Tid, CpuId>,
    forked: HashSet<Tid>,
    woken_new: HashSet<Tid>,
    seen: HashMap<&'static str, u64>,
    exiting: HashSet<Tid>,
}

impl Watch {
    fn note(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn time(&mut self, time: u64) {
        assert!(time >= self.last, "{time} after {}", self.last);
        self.last = time;
    }
}

impl Sink for Watch {
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) {
        self.time(event.time.0);
        match event.kind {
            SchedKind::Switch(Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
                ..
            }) => {
                assert_ne!(prev, next, "{event:?}");
                if self.all {
                    if let Some(current) = self.current.get(&cpu) {
                        assert_eq!(*current, prev, "the chain of {cpu:?} at {event:?}");
                    }
                }
                self.current.insert(cpu, next);
                if prev != Tid::IDLE {
                    if let Some(on) = self
                        .on_cpu
                        .remove(&prev)
                        .filter(|_| self.all || self.forked.contains(&prev))
                    {
                        assert_eq!(on, cpu, "{prev:?} leaves another CPU at {event:?}");
                    }
                    self.note(match (prev_state, preempt) {
                        (0x80, false) => "dead",
                        (0, true) => "preempted",
                        (0, false) => "runnable",
                        (_, true) => "preempted with its state set",
                        (s, false) if s & 4 != 0 => "stopped",
                        (s, false) if s & 2 != 0 && iowait => "disk",
                        (s, false) if s & 2 != 0 => "uninterruptible",
                        (_, false) => "sleeps",
                    });
                    if prev_state == 0x80 {
                        let known = self.exiting.remove(&prev) || self.last < 1_000_005_000_000;
                        assert!(
                            known || !(self.all || self.forked.contains(&prev)),
                            "{event:?}"
                        );
                        // The dead task's id may next belong to a task that is not recorded. The events do not show
                        // whether such a task obeys the kernel's laws.
                        self.forked.remove(&prev);
                    }
                }
                if next != Tid::IDLE {
                    if self.home.insert(next, cpu).is_some_and(|home| home != cpu) {
                        self.note("migrated");
                    }
                    if let Some(other) = self
                        .on_cpu
                        .insert(next, cpu)
                        .filter(|_| self.all || self.forked.contains(&next))
                    {
                        panic!("{next:?} on {other:?} and {cpu:?} at {event:?}");
                    }
                    if self.forked.contains(&next) {
                        assert!(
                            self.woken_new.contains(&next),
                            "ran before its first waking: {event:?}"
                        );
                    }
                }
            }
            SchedKind::Waking(Waking {
                waker,
                wakee,
                context,
                new,
                vfork,
            }) => {
                if let Some(current) = self.current.get(&cpu) {
                    if self.all {
                        assert_eq!(*current, waker, "waker at {event:?}");
                    }
                }
                if new {
                    assert!(self.forked.contains(&wakee), "{event:?}");
                    assert!(self.woken_new.insert(wakee), "{event:?}");
                }
                self.note(match (context.is_interrupt(), new, vfork) {
                    (true, _, _) => "woken by an interrupt",
                    (false, true, true) => "vfork",
                    (false, true, false) => "fork",
                    (false, false, _) if self.on_cpu.contains_key(&wakee) => "woken while on a CPU",
                    (false, false, _) => "woken",
                });
            }
        }
    }

    fn life(&mut self, stream: Stream, event: LifeEvent) {
        self.time(event.time.0);
        assert_eq!(stream == Stream::Recorder, event.cpu.is_none());
        match event.kind {
            LifeKind::Fork(fork) => {
                self.home.remove(&fork.tid);
                self.forked.insert(fork.tid);
                if !self.given.insert(fork.tid) {
                    self.note("id given again");
                }
                self.woken_new.remove(&fork.tid);
                let others = !self.all && self.on_cpu.remove(&fork.tid).is_some();
                assert!(
                    others || !self.on_cpu.contains_key(&fork.tid),
                    "{fork:?} of one that runs"
                );
                self.note(if fork.tid.0 == fork.tgid.0 {
                    "process"
                } else {
                    "thread"
                });
            }
            LifeKind::Exec(exec) => {
                self.note(if exec.tid == exec.old_tid {
                    "exec"
                } else {
                    "exec of another thread"
                });
                if exec.tid != exec.old_tid {
                    let cpu = self.on_cpu.remove(&exec.old_tid).unwrap();
                    self.current.insert(cpu, exec.tid);
                    assert_eq!(self.on_cpu.insert(exec.tid, cpu), None, "{exec:?}");
                    if self.forked.remove(&exec.old_tid) {
                        self.forked.insert(exec.tid);
                        self.woken_new.insert(exec.tid);
                    }
                }
            }
            LifeKind::Exit(exit) => {
                assert!(self.exiting.insert(exit.tid));
                if exit.tid.0 == exit.tgid.0 && !exit.group_dead {
                    self.note("leader first");
                }
                self.note(if exit.group_dead {
                    "exit"
                } else {
                    "exit of a thread"
                });
                if exit.status & 0x7f == 9 {
                    self.note("killed");
                }
            }
            LifeKind::Final(_) => self.note("final"),
            LifeKind::Rename(_) => self.note("rename"),
            LifeKind::CgroupMove(_) => self.note("moved"),
            LifeKind::Snapshot(_) => self.note("snapshot"),
            _ => {}
        }
    }
}

fn watch(config: &Config) -> (Watch, Truth) {
    let mut machine = Machine::new(config);
    let mut watch = Watch {
        all: config.follow == Follow::All,
        ..Watch::default()
    };
    machine.run(&mut watch);
    (watch, machine.into_truth())
}

/// Checks that the times in the truth add up: those of a task to its lifetime, those of a process to the sum over its
/// threads, and those of all tasks to the time of the CPUs.
fn check(truth: &Truth, all: bool) {
    let span = truth.end.0 - truth.start.0;
    let mut on_cpu = 0;
    for task in &truth.tasks {
        assert_eq!(task.times.sum(), task.end.0 - task.start.0, "{task:?}");
        assert!(
            task.start >= truth.start && task.end <= truth.end,
            "{task:?}"
        );
        on_cpu += task.times.on_cpu;
        assert!(task.causes.preempted <= task.times.run_queue);
        assert!(task.causes.io + task.causes.vfork <= task.times.blocked);
        assert!(task.causes.stopped <= task.times.sleep);
        if !task.started_before && !task.alive {
            assert_eq!(
                task.kernel,
                (task.times.on_cpu, task.voluntary, task.involuntary),
                "{task:?}"
            );
        }
    }
    for (i, process) in truth.processes.iter().enumerate() {
        let mut times = tr_sim::truth::Times::default();
        for thread in &process.threads {
            let task = &truth.tasks[*thread];
            assert_eq!(task.process, i);
            times.add(&task.times);
            assert!(task.start >= process.start && task.end <= process.end);
        }
        assert_eq!(times, process.times, "{process:?}");
        for pair in process.execs.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
        }
        if let Some(last) = process.execs.last() {
            assert_eq!(last.end, process.end);
        }
        let in_execs: u64 = process.execs.iter().map(|exec| exec.times.sum()).sum();
        assert!(in_execs <= process.times.sum());
        if process
            .execs
            .first()
            .is_some_and(|first| first.start == process.start)
        {
            assert_eq!(in_execs, process.times.sum(), "{process:?}");
        }
    }
    assert_eq!(
        on_cpu + truth.idle + truth.others,
        u64::from(truth.cpus) * span
    );
    assert_eq!(truth.concurrency.iter().sum::<u64>(), span);
    let weighted: u64 = truth
        .concurrency
        .iter()
        .zip(0..)
        .map(|(time, n)| time * n)
        .sum();
    assert_eq!(weighted, on_cpu);
    if all {
        assert_eq!(truth.others, 0);
    }
}

#[test]
fn chaos_obeys_the_kernel_and_its_times_add_up() {
    let mut seen: HashMap<&str, u64> = HashMap::new();
    for seed in 0..40 {
        let mut config = Config::new(
            scenario::chaos(&Weights::default(), 6),
            1 + (seed % 7) as u16,
            60_000_000,
        );
        config.seed = seed;
        config.kernel.pid_max = 160;
        config.kernel.max_tasks = 60;
        config.kernel.exit_first = seed % 3 == 0;
        config.kernel.window = 100;
        config.kernel.late_stamp = 100;
        config.grain = [1, 1, 100, 1000][seed as usize % 4];
        config.tail = seed % 2 * 500_000;
        if seed % 2 == 0 {
            config.follow = Follow::All;
        }
        let (watch, truth) = watch(&config);
        check(&truth, watch.all);
        assert!(truth.tasks.len() > 5, "{seed}: {}", truth.tasks.len());
        for (what, count) in watch.seen {
            *seen.entry(what).or_default() += count;
        }
    }
    // The runs must have shown each of these events at least ten times, so that the laws were really tested.
    for what in [
        "dead",
        "preempted",
        "runnable",
        "preempted with its state set",
        "stopped",
        "disk",
        "uninterruptible",
        "sleeps",
        "woken by an interrupt",
        "vfork",
        "fork",
        "woken while on a CPU",
        "woken",
        "process",
        "thread",
        "exec",
        "exec of another thread",
        "leader first",
        "exit",
        "exit of a thread",
        "killed",
        "final",
        "rename",
        "moved",
        "snapshot",
        "migrated",
        "id given again",
    ] {
        assert!(
            seen.get(what).copied().unwrap_or(0) >= 10,
            "{what}: {seen:?}"
        );
    }
}

#[test]
fn the_presets_run_and_their_times_add_up() {
    for (world, cpus, events) in [
        (scenario::make(4, 12), 4, 500),
        (scenario::hackbench(4, 5), 3, 10_000),
        (scenario::pipe(), 2, 10_000),
        (scenario::pool(12), 8, 5_000),
        (scenario::short_processes(3, 50), 2, 1_000),
        (scenario::sleepers(100), 256, 10_000),
    ] {
        let name = world.name.clone();
        let mut config = Config::new(world, cpus, 2_000_000_000);
        config.max_events = 200_000;
        config.linger = Some(1_000_000);
        let (watch, truth) = watch(&config);
        check(&truth, false);
        let events_seen: u64 = watch.seen.values().sum();
        assert!(events_seen > events, "{name}: {:?}", watch.seen);
        assert!(truth.execs > 0, "{name}");
    }
}

#[test]
fn a_build_ends_with_its_command() {
    let mut config = Config::new(scenario::make(3, 10), 3, 60_000_000_000);
    config.linger = Some(1_000_000);
    let (_, truth) = watch(&config);
    assert_eq!(truth.status, Some(0));
    assert_eq!(
        truth.execs,
        1 + 10 * 4 + 1,
        "make, then sh, gcc, cc1 and as for each unit, and ld"
    );
    let root = &truth
        .processes
        .iter()
        .find(|process| process.ppid.is_none())
        .unwrap();
    assert_eq!(root.execs.len(), 2, "what it was before, and make");
    assert_eq!(
        root.execs[1].argv.args().collect::<Vec<_>>(),
        [&b"make"[..], b"-j"]
    );
    assert!(truth
        .processes
        .iter()
        .all(|process| !process.alive && process.status == Some(0)));
    let cc1 = truth
        .processes
        .iter()
        .filter(|process| process.execs.last().unwrap().argv.bytes.starts_with(b"cc1"));
    for process in cc1 {
        let parent = &truth.processes[process.parent.unwrap()];
        assert!(
            parent.execs.last().unwrap().argv.bytes.starts_with(b"gcc"),
            "{parent:?}"
        );
        assert!(parent.causes.vfork > 0);
        assert!(process.causes.io > 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let config = Config::new(scenario::chaos(&Weights::default(), 3), 4, 60_000_000);
    let run = |seed| {
        let mut machine = Machine::new(&config.clone().seed(seed));
        let mut events: Vec<Event> = Vec::new();
        machine.run(&mut events);
        (events, machine.into_truth())
    };
    let (a, b, c) = (run(7), run(7), run(8));
    assert!(a.0.len() > 1000, "{}", a.0.len());
    assert!(a == b);
    assert!(a.0 != c.0);
}

#[test]
fn memory_grows_with_living_tasks_only() {
    let mut config = Config::new(scenario::short_processes(4, 5_000), 4, u64::MAX / 4_096);
    config.linger = Some(1_000_000);
    let mut machine = Machine::new(&config);
    let mut most = 0;
    let mut count = tr_sim::sink::Count::default();
    while machine.step(&mut count) {
        most = most.max(machine.tasks_alive());
    }
    assert!(most < 30, "{most}");
    let truth = machine.into_truth();
    assert_eq!(truth.execs, 1 + 4 * 5_000);
    assert_eq!(truth.forks, 4 + 4 * 5_000);
}
