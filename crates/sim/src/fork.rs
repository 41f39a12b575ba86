//! New tasks (kernel/fork.c) and the ones that are there from the beginning.

use tr_format::event::{Argv, Comm, Fork, Ktime, LifeKind, SchedKind, Tgid, Tid};

use crate::machine::{Channel, Machine};
use crate::process::Process;
use crate::program::{Arg, Resident};
use crate::sink::Sink;
use crate::task::{raw, Bucket, Place, Ref, Step, Task, Wait};
use crate::truth::{Causes, ExecTruth, Times};

/// How a task is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fork,
    Vfork,
    Thread,
}

impl Machine {
    /// The current task makes a new one.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn fork<S: Sink>(
        &mut self,
        sink: &mut S,
        c: usize,
        now: u64,
        cur: u32,
        program: u16,
        arg: Arg,
        kind: Kind,
    ) {
        let stamp = self.stamp(now);
        let process = self.tasks[cur as usize].process;
        let parent = &self.processes[process as usize];
        // With a fatal signal pending, clone fails.
        let doomed = parent.execing.is_some() || parent.group_exit.is_some();
        // The two kinds have their own limits, so that neither has the whole table.
        let full = match parent.followed {
            true => self.alive_followed >= self.cfg.kernel.max_tasks,
            false => self.alive - self.alive_followed >= self.cfg.kernel.max_tasks / 4,
        };
        if doomed || full {
            self.proceed(c, now);
            return;
        }
        let Some(tid) = self.pids.take(now) else {
            self.proceed(c, now);
            return;
        };
        let of = if kind == Kind::Thread {
            process
        } else {
            self.new_process(tid, stamp, Some(process))
        };
        let child = self.new_task(tid, of, stamp);
        let start_time = Ktime(now - 1 - (self.draw.bits() & 0xff));
        let parent = &self.tasks[cur as usize];
        let (followed, comm, pin) = (parent.followed, parent.comm, parent.pin);
        let arg = match arg {
            Arg::Same => parent.arg,
            Arg::Loop(slot) => parent.loops[usize::from(slot) & 3],
        };
        let container = self.processes[of as usize].container;
        let task = &mut self.tasks[child as usize];
        task.followed = followed;
        task.program = program;
        task.arg = arg;
        task.comm = comm;
        task.pin = pin;
        task.start_time = start_time;
        if container {
            task.ns_tid = tid / 2 + 1;
        }
        if kind == Kind::Vfork {
            let parent = self.name(cur);
            self.tasks[child as usize].vfork_parent = Some(parent);
        }
        if kind != Kind::Thread {
            self.processes[of as usize].start_time = start_time;
        }
        if followed && self.in_span(stamp) {
            self.forks += 1;
        }
        if self.attached && followed {
            let task = &self.tasks[child as usize];
            let fork = Fork {
                parent_tid: Tid(self.tasks[cur as usize].tid),
                parent_tgid: Tgid(self.processes[process as usize].tgid),
                tid: Tid(tid),
                tgid: Tgid(self.processes[of as usize].tgid),
                start_time,
                ns_tid: Tid(task.ns_tid),
                cgroup: self.processes[of as usize].cgroup,
                comm,
            };
            self.emit_life(sink, c, stamp, LifeKind::Fork(fork));
        }
        let name = self.name(child);
        let steps = &mut self.tasks[cur as usize].steps;
        if kind == Kind::Vfork {
            steps.push(Step::VforkWait(name));
        }
        steps.push(Step::WakeNew(name));
        self.proceed(c, now);
    }

    /// `wake_up_new_task`.
    pub(crate) fn wake_new<S: Sink>(&mut self, sink: &mut S, c: usize, now: u64, child: Ref) {
        let stamp = self.stamp(now);
        if let Some(slot) = self.find(child) {
            let waker = self.current_tid(c);
            let attached = self.attached;
            let task = &mut self.tasks[slot as usize];
            task.state = raw::RUNNING;
            let vfork = task.vfork_parent.is_some();
            task.vfork_seen = vfork && attached;
            let (wakee, followed) = (Tid(task.tid), task.followed);
            if attached && (self.follow_all || followed) {
                self.emit(
                    sink,
                    c,
                    stamp,
                    SchedKind::Waking {
                        waker,
                        wakee,
                        irq: false,
                        new: true,
                        vfork,
                    },
                );
            }
            let on = self.choose_cpu(slot, c);
            self.enqueue(on, now, slot);
        }
        self.proceed(c, now);
    }

    /// The parent of a vfork waits, unless the child is through already.
    pub(crate) fn vfork_wait<S: Sink>(
        &mut self,
        sink: &mut S,
        c: usize,
        now: u64,
        cur: u32,
        child: Ref,
    ) {
        let killed = self.tasks[cur as usize].killed.is_some();
        let waits = self.find(child).is_some_and(|slot| {
            let task = &self.tasks[slot as usize];
            task.vfork_parent.is_some() && task.exited.is_none() && !killed
        });
        if waits {
            self.tasks[cur as usize].wait = Wait::Vfork(child);
            self.fall_asleep(sink, c, now, crate::steps::sleep_state(Wait::Vfork(child)));
        } else {
            // Longer than from the completion to the event that shows it, so
            // that what it does next can't be taken for the wait.
            self.cpus[c].hold = false;
            self.cpus[c].op_at = now + 10_000;
        }
    }

    pub(crate) fn new_task(&mut self, tid: u32, process: u32, stamp: u64) -> u32 {
        self.alive += 1;
        let slot = match self.free_tasks.pop() {
            Some(slot) => slot,
            None => self.tasks.len() as u32,
        };
        let used = self.tasks.get(slot as usize).map_or(0, |old| old.used);
        let steps = self
            .tasks
            .get_mut(slot as usize)
            .map(|old| std::mem::take(&mut old.steps));
        let waits = self
            .tasks
            .get(slot as usize)
            .map_or(0, |old| old.waits.wrapping_add(1));
        let mut task = Task::new(tid, process, used, stamp);
        task.waits = waits;
        task.steps = steps.unwrap_or_default();
        task.steps.clear();
        if slot as usize == self.tasks.len() {
            self.tasks.push(task);
        } else {
            self.tasks[slot as usize] = task;
        }
        let process = &mut self.processes[process as usize];
        self.alive_followed += u32::from(process.followed);
        process.threads.push(slot);
        process.live += 1;
        process.unreleased += 1;
        if process.leader.is_none() && process.tgid == tid {
            process.leader = Some(slot);
        }
        slot
    }

    pub(crate) fn new_process(&mut self, tgid: u32, stamp: u64, parent: Option<u32>) -> u32 {
        let slot = self
            .free_processes
            .pop()
            .unwrap_or(self.processes.len() as u32);
        let used = self.processes.get(slot as usize).map_or(0, |old| old.used);
        let serial = self.serials;
        self.serials += 1;
        let mut process = Process {
            used,
            tgid,
            serial,
            forked_by: None,
            parent: None,
            children: Vec::new(),
            zombies: Vec::new(),
            waiters: Vec::new(),
            leader: None,
            threads: Vec::new(),
            live: 0,
            unreleased: 0,
            gone: false,
            reaped: false,
            group_exit: None,
            leader_code: 0,
            execing: None,
            stopped: false,
            followed: self.follow_all,
            kthread: false,
            container: false,
            cgroup: Machine::cgroup(0),
            argv: Argv::default(),
            start_time: Ktime(stamp),
            born: stamp,
            ended: 0,
            times: Times::default(),
            causes: Causes::default(),
            voluntary: 0,
            involuntary: 0,
            faults: (0, 0),
            max_rss: None,
            status: None,
            execs: Vec::new(),
            span_base: Times::default(),
        };
        if let Some(parent) = parent {
            let from = &mut self.processes[parent as usize];
            from.children.push(slot);
            process.parent = Some(Ref {
                slot: parent,
                used: from.used,
            });
            process.forked_by = Some((from.serial, from.tgid));
            process.followed = from.followed;
            process.container = from.container;
            process.cgroup = from.cgroup;
            process.argv = from.argv.clone();
        }
        if slot as usize == self.processes.len() {
            self.processes.push(process);
        } else {
            self.processes[slot as usize] = process;
        }
        slot
    }

    /// Everybody who is there from the beginning.
    pub(crate) fn populate(&mut self, now: u64) {
        let stamp = self.stamp(now);
        for (i, resident) in self.cfg.world.residents.clone().into_iter().enumerate() {
            self.add_resident(now, i, resident);
        }
        self.add_command(now);
        if self.channels.is_empty() {
            self.channels.push(Channel::default());
        }
        // What a process that was there before tracing is, is not seen.
        for process in &mut self.processes {
            process.execs.push(ExecTruth {
                start: Ktime(stamp),
                started_before: true,
                end: Ktime(0),
                argv: Argv::default(),
                times: Times::default(),
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
        let at = &mut self.processes[process as usize];
        at.kthread = resident.kthread;
        at.container = i % 3 == 2;
        at.start_time = Ktime(now - 1_000_000_000 + 1_000 * i as u64);
        if !resident.kthread {
            at.argv = Argv::from_args([format!("resident{i}")]);
        }
        let start_time = at.start_time;
        let (followed, container) = (at.followed, at.container);
        let task = &mut self.tasks[slot as usize];
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

    /// COMMAND's process: it waits to be let go at the start, by a timer here.
    fn add_command(&mut self, now: u64) {
        let tgid = self.pids.take(now).unwrap_or(1);
        let process = self.new_process(tgid, now, None);
        self.processes[process as usize].followed = true;
        let slot = self.new_task(tgid, process, now);
        let at = &mut self.processes[process as usize];
        at.argv = Argv::from_args(["tr", "record"]);
        at.start_time = Ktime(now - 1_000);
        self.root_serial = at.serial;
        self.root_tgid = Tgid(tgid);
        let task = &mut self.tasks[slot as usize];
        task.followed = true;
        task.program = self.cfg.world.command;
        task.pin = self.cfg.world.command_pin.unwrap_or(u16::MAX);
        task.comm = Comm::new(b"tr");
        task.start_time = Ktime(now - 1_000);
        task.state = raw::INTERRUPTIBLE;
        task.wait = Wait::Timer;
        task.place = Place::Off;
        task.bucket = Bucket::Sleep;
        self.arm(0, now, slot, self.start + 1_000 - now);
    }
}
