//! Makes simulated tasks: those that are forked (kernel/fork.c), and those that exist from the
//! beginning of the run.

use tr_format::event::{Argv, Comm, Fork, Ktime, LifeKind, Tgid, Tid};

use crate::machine::{Channel, Machine, Turn};
use crate::process::Process;
use crate::program::{Arg, Resident};
use crate::task::{raw, Bucket, Place, Ref, Step, Task, Wait};
use crate::truth::ExecTruth;

/// The system call by which a simulated task makes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForkKind {
    Fork,
    Vfork,
    Thread,
}

/// The properties of the child that a simulated fork, vfork or clone makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) kind: ForkKind,
    pub(crate) program: u16,
    pub(crate) arg: Arg,
}

impl Machine {
    /// Lets the current simulated task fork, vfork or make a thread (`kernel_clone` of the kernel).
    pub(crate) fn fork(&mut self, turn: Turn, child: Child) {
        let process = self.tasks[turn.cur].process;
        let parent = &self.processes[process];
        // As in the kernel, clone fails if a fatal signal is pending.
        let doomed = parent.execing.is_some() || parent.group_exit.is_some();
        // Recorded tasks and other tasks have separate limits, so that neither can fill the whole table of tasks.
        let limit = self.cfg.kernel.max_tasks;
        let full = if parent.followed {
            self.alive_followed >= limit
        } else {
            self.alive - self.alive_followed >= limit / 4
        };
        let tid = if doomed || full {
            None
        } else {
            self.pids.take(turn.now)
        };
        if let Some(tid) = tid {
            let slot = self.make_child(turn, tid, child);
            self.emit_fork(turn, slot);
            let name = self.name(slot);
            let steps = &mut self.tasks[turn.cur].steps;
            if child.kind == ForkKind::Vfork {
                steps.push(Step::VforkWait(name));
            }
            steps.push(Step::WakeNew(name));
        }
        self.proceed(turn);
    }

    /// Makes a new simulated task and returns its index in the table of tasks.
    fn make_child(&mut self, turn: Turn, tid: u32, child: Child) -> u32 {
        let mut process = self.tasks[turn.cur].process;
        if child.kind != ForkKind::Thread {
            process = self.new_process(tid, turn.stamp, Some(process));
        }
        let slot = self.new_task(tid, process, turn.stamp);
        let start_time = Ktime(turn.now - 1 - (self.draw.bits() & 0xff));
        let name = self.name(turn.cur);
        let parent = &self.tasks[turn.cur];
        let (followed, comm, pin) = (parent.followed, parent.comm, parent.pin);
        let arg = match child.arg {
            Arg::Same => parent.arg,
            Arg::Loop(slot) => parent.loops[usize::from(slot) & 3],
        };
        let of = &mut self.processes[process];
        let task = &mut self.tasks[slot];
        task.followed = followed;
        task.program = child.program;
        task.arg = arg;
        task.comm = comm;
        task.pin = pin;
        task.start_time = start_time;
        if of.container {
            task.ns_tid = tid / 2 + 1;
        }
        if child.kind == ForkKind::Vfork {
            task.vfork_parent = Some(name);
        }
        if child.kind != ForkKind::Thread {
            of.start_time = start_time;
        }
        slot
    }

    fn emit_fork(&mut self, turn: Turn, slot: u32) {
        let (parent, task) = (&self.tasks[turn.cur], &self.tasks[slot]);
        if !task.followed {
            return;
        }
        let of = &self.processes[task.process];
        let fork = Fork {
            parent_tid: Tid(parent.tid),
            parent_tgid: Tgid(self.processes[parent.process].tgid),
            tid: Tid(task.tid),
            tgid: Tgid(of.tgid),
            start_time: task.start_time,
            ns_tid: Tid(task.ns_tid),
            cgroup: of.cgroup,
            comm: task.comm,
        };
        self.accounts.forks += u64::from(self.in_span(turn.stamp));
        if self.attached {
            self.emit_life(turn, LifeKind::Fork(fork));
        }
    }

    /// Wakes a new simulated task for the first time (`wake_up_new_task` of the kernel).
    pub(crate) fn wake_new(&mut self, turn: Turn, child: Ref) {
        if let Some(slot) = self.find(child) {
            let task = &mut self.tasks[slot];
            task.state = raw::RUNNING;
            task.vfork_seen = task.vfork_parent.is_some() && self.attached;
            self.emit_waking(turn, slot, false, true);
            let on = self.choose_cpu(slot, turn.cpu);
            self.enqueue(on, turn.now, slot);
        }
        self.proceed(turn);
    }

    /// Lets the parent of a simulated vfork wait, unless the child has exec'd or exited already.
    pub(crate) fn vfork_wait(&mut self, turn: Turn, child: Ref) {
        let killed = self.tasks[turn.cur].killed.is_some();
        let waits = self.find(child).is_some_and(|slot| {
            let task = &self.tasks[slot];
            task.vfork_parent.is_some() && task.exited.is_none() && !killed
        });
        if waits {
            self.tasks[turn.cur].wait = Wait::Vfork(child);
            self.fall_asleep(turn, crate::progress::sleep_state(Wait::Vfork(child)));
        } else {
            // The child has completed its exec or exit, so the parent does not sleep. But the event of the exec or exit
            // may be recorded later. The parent runs for 10 µs until the event is recorded. Otherwise its next wait
            // could be taken for the wait of the vfork.
            self.cpus[turn.cpu].hold = false;
            self.cpus[turn.cpu].op_at = turn.now + 10_000;
        }
    }

    fn new_task(&mut self, tid: u32, process: u32, stamp: u64) -> u32 {
        self.alive += 1;
        let slot = self.tasks.insert(|old| {
            let mut task = Task::new(tid, process, stamp);
            if let Some(old) = old {
                task.used = old.used;
                task.waits = old.waits.wrapping_add(1);
                task.steps = std::mem::take(&mut old.steps);
            }
            task
        });
        let process = &mut self.processes[process];
        self.alive_followed += u32::from(process.followed);
        process.threads.push(slot);
        process.live += 1;
        process.unreleased += 1;
        if process.leader.is_none() && process.tgid == tid {
            process.leader = Some(slot);
        }
        slot
    }

    fn new_process(&mut self, tgid: u32, stamp: u64, parent: Option<u32>) -> u32 {
        let serial = self.serials;
        self.serials += 1;
        let slot = self.processes.insert(|old| {
            let used = old.map_or(0, |old| old.used);
            Process::new(tgid, serial, used, stamp)
        });
        self.processes[slot].followed = self.follow_all;
        if let Some(parent) = parent {
            let from = &mut self.processes[parent];
            from.children.push(slot);
            let name = Ref {
                slot: parent,
                used: from.used,
            };
            let inherited = (from.followed, from.container, from.cgroup);
            let (by, argv) = ((from.serial, from.tgid), from.argv.clone());
            let process = &mut self.processes[slot];
            process.parent = Some(name);
            process.forked_by = Some(by);
            (process.followed, process.container, process.cgroup) = inherited;
            process.argv = argv;
        }
        slot
    }

    /// Makes the simulated tasks that exist from the beginning of the run.
    pub(crate) fn populate(&mut self, now: u64) {
        let stamp = self.stamp(now);
        for (i, resident) in self.cfg.world.residents.clone().into_iter().enumerate() {
            self.add_resident(now, i, resident);
        }
        self.add_command(now);
        if self.channels.is_empty() {
            self.channels.push(Channel::default());
        }
        // These processes began before tracing, so no event shows their programs. In the truth, each of these processes
        // has one program, without arguments.
        for process in self.processes.iter_mut() {
            process.execs.push(ExecTruth {
                started_before: true,
                ..ExecTruth::new(stamp, Argv::default())
            });
        }
        for c in 0..self.cpus.len() {
            self.plan(c);
        }
    }

    fn add_resident(&mut self, now: u64, i: usize, resident: Resident) {
        let cpus = self.cpus.len();
        let tgid = self.pids.take(now).unwrap_or(1);
        let process = self.new_process(tgid, now, None);
        let slot = self.new_task(tgid, process, now);
        let at = &mut self.processes[process];
        at.kthread = resident.kthread;
        at.container = i % 3 == 2;
        at.start_time = Ktime(now - 1_000_000_000 + 1_000 * i as u64);
        if !resident.kthread {
            at.argv = Argv::from_args([format!("resident{i}")]);
        }
        let start_time = at.start_time;
        let (followed, container) = (at.followed, at.container);
        let task = &mut self.tasks[slot];
        task.followed = followed;
        task.program = resident.program;
        task.arg = resident.arg;
        task.pin = resident.pin.unwrap_or(u16::MAX);
        task.start_time = start_time;
        task.comm = Comm::new(format!("resident{i}").as_bytes());
        task.state = raw::RUNNING;
        if container {
            task.ns_tid = tgid / 2 + 1;
        }
        let on = match resident.pin {
            Some(pin) => usize::from(pin).min(cpus - 1),
            None => i % cpus,
        };
        self.enqueue(on, now, slot);
    }

    /// Makes the simulated process of COMMAND. A timer lets the process begin 1 µs after the start of the recorded
    /// span.
    fn add_command(&mut self, now: u64) {
        let tgid = self.pids.take(now).unwrap_or(1);
        let process = self.new_process(tgid, now, None);
        self.processes[process].followed = true;
        let slot = self.new_task(tgid, process, now);
        let at = &mut self.processes[process];
        at.argv = Argv::from_args(["tr", "record"]);
        at.start_time = Ktime(now - 1_000);
        self.root_serial = at.serial;
        self.root_tgid = Tgid(tgid);
        let task = &mut self.tasks[slot];
        task.followed = true;
        task.program = self.cfg.world.command;
        task.pin = self.cfg.world.command_pin.unwrap_or(u16::MAX);
        task.comm = Comm::new(b"tr");
        task.start_time = Ktime(now - 1_000);
        task.state = raw::INTERRUPTIBLE;
        task.wait = Wait::Timer;
        task.place = Place::Off;
        task.bucket = Bucket::Sleep;
        self.arm(0, self.start + 1_000, slot);
    }
}
