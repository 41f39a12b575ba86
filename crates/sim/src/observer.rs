//! Simulates the events of the recorder itself: the snapshot of living tasks, readings of clocks, and watermarks (which
//! say that all earlier events are in the trace).

use tr_format::event::{Argv, CgroupPath, LifeKind, Snapshot, Tgid, Tid};

use crate::agenda::NEVER;
use crate::machine::Machine;
use crate::process::cgroup;
use crate::task::{raw, Place, Ref};

/// The interval between two events in which the simulated recorder reads the clocks, in ns.
const CLOCK_EVERY: u64 = 10_000_000_000;

/// The next actions of the simulated recorder, with their times.
#[derive(Debug)]
pub(crate) struct Observer {
    attach: u64,
    /// The tasks of the snapshot that the simulated recorder still has to record, the next one
    /// last.
    list: Vec<Ref>,
    /// The time in ns between the snapshot events of two tasks, which the simulated recorder writes one after the
    /// other.
    spacing: u64,
    next_snapshot: u64,
    next_clock: u64,
    next_progress: u64,
}

impl Observer {
    pub(crate) fn new(attach: u64, start: u64) -> Observer {
        Observer {
            attach,
            list: Vec::new(),
            spacing: 0,
            next_snapshot: NEVER,
            next_clock: start,
            next_progress: start,
        }
    }
}

impl Machine {
    /// Does the simulated recorder's next action. If a CPU has to act at the same time, the recorder acts first. The
    /// recorder acts only at multiples of the clock's resolution. So when it acts, all events with an earlier time
    /// stamp have happened.
    pub(crate) fn observe(&mut self, now: u64) {
        if now == self.observer.attach {
            if self.tasks.iter().any(|(_, task)| task.woken_early) && now + 10_000 < self.start {
                // A task has been woken before its switch-out got a time stamp. A trace that began now would have the
                // switch-out, which is still to come, without the waking. So tracing begins later.
                self.observer.attach = now + 5_000;
            } else {
                self.begin(now);
            }
        } else if now == self.observer.next_snapshot {
            self.snapshot_next(now);
        } else if now == self.observer.next_clock {
            self.emit_own(now, LifeKind::Clock(self.clock(now)));
            self.observer.next_clock = now + CLOCK_EVERY - CLOCK_EVERY % self.cfg.grain;
        } else if now == self.observer.next_progress {
            self.emit_own(now, LifeKind::Watermark);
            let every = self.cfg.progress.max(1_000);
            self.observer.next_progress = now + every - every % self.cfg.grain;
        }
        let observer = &self.observer;
        let next = observer
            .next_snapshot
            .min(observer.next_clock)
            .min(observer.next_progress);
        self.agenda.set(0, next);
    }

    /// Attaches tracing to the simulated machine, and begins the snapshot of the tasks that live
    /// now. The snapshot is complete when the span starts. Later tasks have a fork event.
    fn begin(&mut self, now: u64) {
        self.attach();
        for n in 0..self.cfg.world.cgroups.max(1) {
            let path = CgroupPath {
                id: cgroup(n),
                path: format!("/group{n}").into_bytes().into(),
            };
            self.emit_own(now, LifeKind::CgroupPath(path));
        }
        let living = self
            .tasks
            .iter()
            .filter(|(_, task)| task.place != Place::Dead);
        let named = living.map(|(slot, task)| {
            let used = task.used;
            (task.tid, Ref { slot, used })
        });
        let mut list: Vec<(u32, Ref)> = named.collect();
        // The tasks are recorded in the order of their tids, as by a BPF iterator over tasks. The list has the reverse
        // order, because tasks are taken from its end.
        list.sort_unstable_by(|a, b| b.cmp(a));
        let grain = self.cfg.grain;
        let time = self.start - now - grain;
        let spacing = time / (list.len() as u64 + 1);
        self.observer.spacing = spacing - spacing % grain;
        self.observer.list = list.into_iter().map(|(_, name)| name).collect();
        self.observer.next_snapshot = now + self.observer.spacing.max(grain);
    }

    fn snapshot_next(&mut self, now: u64) {
        // If there are too many tasks to record them one by one before the span starts, all are recorded now.
        let at_once = self.observer.spacing == 0;
        while let Some(name) = self.observer.list.pop() {
            if let Some(slot) = self.find(name) {
                if self.tasks[slot].recorded_tid().is_some() {
                    // The task has a new tid since its exec, but the exec event will be recorded only in the next 2 µs.
                    // Before that event, no reader could know that both tids are one task, so the snapshot waits.
                    self.observer.list.push(name);
                    self.observer.next_snapshot = now + 2_000;
                    return;
                }
                self.snapshot(now, slot);
            }
            if !at_once {
                break;
            }
        }
        self.observer.next_snapshot = if self.observer.list.is_empty() {
            NEVER
        } else {
            now + self.observer.spacing
        };
    }

    fn snapshot(&mut self, now: u64, slot: u32) {
        // A process whose parent is dead belongs to init. No later event shows the former parent, so the truth does not
        // contain that parent.
        let of = self.tasks[slot].process;
        if self.living_parent(of).is_none() {
            self.processes[of].forked_by = None;
        }
        let (task, process) = (&self.tasks[slot], &self.processes[of]);
        let on_cpu = matches!(task.place, Place::OnCpu(_));
        // A task in a run queue is runnable, even if it was preempted after it had set its sleep state. A new task
        // counts as runnable even before its first waking.
        let state = match task.place {
            Place::Queued | Place::New => raw::RUNNING,
            _ => task.state,
        };
        let snapshot = Snapshot {
            tid: Tid(task.tid),
            tgid: Tgid(process.tgid),
            parent_tgid: Tgid(process.forked_by.map_or(1, |(_, tgid)| tgid)),
            start_time: task.start_time,
            ns_tid: Tid(task.ns_tid),
            cgroup: process.cgroup,
            comm: task.comm,
            argv: if process.followed {
                process.argv.clone()
            } else {
                Argv::default()
            },
            state,
            on_cpu,
            kthread: process.kthread,
            followed: task.followed,
            sum_exec_runtime: if on_cpu {
                task.run_time + (now - task.switched)
            } else {
                task.run_time
            },
        };
        self.emit_own(now, LifeKind::Snapshot(snapshot));
    }
}
