//! What the recorder itself does: it writes down who is alive, reads the
//! clocks, and says how far it has come.

use tr_format::event::{Argv, CgroupPath, Ktime, LifeEvent, LifeKind, Snapshot, Stream, Tgid, Tid};

use crate::agenda::NEVER;
use crate::machine::Machine;
use crate::sink::Sink;
use crate::task::{raw, Place, Ref};

/// The clocks are read this often, ns.
const CLOCK_EVERY: u64 = 10_000_000_000;

/// What the recorder has still to do.
#[derive(Debug)]
pub(crate) struct Observer {
    attach: u64,
    /// Tasks to be written down, the next one last, and the time between two.
    list: Vec<Ref>,
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
    fn say<S: Sink>(&mut self, sink: &mut S, now: u64, kind: LifeKind) {
        self.emitted += 1;
        sink.life(
            Stream::Recorder,
            LifeEvent {
                time: Ktime(now),
                cpu: None,
                kind,
            },
        );
    }

    /// The recorder does its next thing. It acts before the CPUs when both are
    /// due, and only at multiples of the grain: what is stamped before it has
    /// happened before it.
    pub(crate) fn observe<S: Sink>(&mut self, sink: &mut S, now: u64) {
        if now == self.observer.attach {
            if self.tasks.iter().any(|task| task.woken_early) && now + 10_000 < self.start {
                // Its waking would be unseen and its switch-out seen.
                self.observer.attach = now + 5_000;
            } else {
                self.begin(sink, now);
            }
        } else if now == self.observer.next_snapshot {
            self.snapshot_next(sink, now);
        } else if now == self.observer.next_clock {
            self.say(sink, now, LifeKind::Clock(Machine::clock(now)));
            self.observer.next_clock = now + CLOCK_EVERY - CLOCK_EVERY % self.cfg.grain;
        } else if now == self.observer.next_progress {
            self.say(sink, now, LifeKind::Progress);
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

    /// Tracing is attached; who is alive now will be written down until the
    /// span starts. Who is forked later has a fork event.
    fn begin<S: Sink>(&mut self, sink: &mut S, now: u64) {
        self.attach();
        for n in 0..self.cfg.world.cgroups.max(1) {
            let path = CgroupPath {
                id: Machine::cgroup(n),
                path: format!("/group{n}").into_bytes().into(),
            };
            self.say(sink, now, LifeKind::CgroupPath(path));
        }
        let mut list: Vec<(u32, Ref)> = Vec::new();
        for (slot, task) in self.tasks.iter().enumerate() {
            if task.place != Place::Dead {
                list.push((
                    task.tid,
                    Ref {
                        slot: slot as u32,
                        used: task.used,
                    },
                ));
            }
        }
        // A task iterator goes by tid; the next one is to be last here.
        list.sort_unstable_by(|a, b| b.cmp(a));
        let grain = self.cfg.grain;
        let time = self.start - now - grain;
        let spacing = time / (list.len() as u64 + 1);
        self.observer.spacing = spacing - spacing % grain;
        self.observer.list = list.into_iter().map(|(_, name)| name).collect();
        self.observer.next_snapshot = now + self.observer.spacing.max(grain);
    }

    fn snapshot_next<S: Sink>(&mut self, sink: &mut S, now: u64) {
        // With too many tasks for the time there are several at once.
        let at_once = self.observer.spacing == 0;
        while let Some(name) = self.observer.list.pop() {
            if let Some(slot) = self.find(name) {
                if self.tasks[slot as usize].told_tid().is_some() {
                    // In the next 2 µs its exec is recorded; until then no
                    // reader could know that both tids are one task.
                    self.observer.list.push(name);
                    self.observer.next_snapshot = now + 2_000;
                    return;
                }
                self.snapshot(sink, now, slot);
            }
            if !at_once {
                break;
            }
        }
        self.observer.next_snapshot = match self.observer.list.is_empty() {
            true => NEVER,
            false => now + self.observer.spacing,
        };
    }

    fn snapshot<S: Sink>(&mut self, sink: &mut S, now: u64, slot: u32) {
        // Whose parent is gone has been given to init; nothing tells any more who
        // it was.
        let of = self.tasks[slot as usize].process as usize;
        let parent = self.processes[of].parent.is_some_and(|parent| {
            let at = &self.processes[parent.slot as usize];
            at.used == parent.used && !at.gone
        });
        if !parent {
            self.processes[of].forked_by = None;
        }
        let task = &self.tasks[slot as usize];
        let process = &self.processes[task.process as usize];
        let on_cpu = matches!(task.place, Place::OnCpu(_));
        // A task that was preempted after it had set its state, or that has not
        // been woken for the first time, is in a queue or will be: runnable.
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
        self.say(sink, now, LifeKind::Snapshot(snapshot));
    }
}
