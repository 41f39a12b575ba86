//! Forks, execs, exits and names of a perf.data file as lifecycle events.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tr_format::event::{
    Argv, CgroupId, Comm, CpuId, Exec, Fork, Ktime, LifeEvent, LifeKind, LossCause, Lost, Rename,
    Snapshot, Stream, TaskEnd, Tgid, Tid,
};

use super::collect::{Collected, Side, SideKind};
use crate::recording::base;

/// The comm of perf's child until it executes COMMAND (tools/lib/subcmd, evlist.c).
const WORKLOAD: &[u8] = b"perf-exec";
/// The kernel's first thread, parent of the others.
const KTHREADD: (u32, &[u8]) = (2, b"kthreadd");
/// A snapshot's state that is not known: no table names this bit.
const UNKNOWN_STATE: u16 = 0x4000;

/// A task that lives.
#[derive(Clone, Copy, Debug)]
struct Task {
    tgid: u32,
    parent: u32,
    comm: Comm,
}

/// The command that perf started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    pub tgid: u32,
    /// Its exec.
    pub start: u64,
    pub comm: Comm,
    /// Its end, if that is recorded.
    pub end: Option<u64>,
}

/// Lifecycle events, and the command.
#[derive(Debug, Default)]
pub struct Lives {
    pub events: Vec<(Stream, LifeEvent)>,
    pub root: Option<Root>,
    tasks: BTreeMap<u32, Task>,
    /// The comms of programs that perf's arguments name.
    words: HashSet<Comm>,
    /// The living threads of each process.
    living: HashMap<u32, BTreeSet<u32>>,
}

/// What perf recorded of a program, besides its name.
#[derive(Clone, Debug, Default)]
struct Program {
    mapped: Option<Arc<[u8]>>,
    exec: Option<(u32, Arc<[u8]>)>,
}

impl Lives {
    /// The events of `all`; those before the first sample make the snapshots. `perf`: its own
    /// arguments.
    pub fn new(all: &Collected, first: u64, perf: &[Vec<u8>]) -> Lives {
        let mut lives = Lives {
            words: perf.iter().skip(1).map(|word| named(word)).collect(),
            ..Lives::default()
        };
        let mut programs = programs(&all.sides).into_iter().rev();
        let before = all.sides.partition_point(|side| side.time < first);
        let (before, after) = all.sides.split_at_checked(before).unwrap_or_default();
        for side in before {
            let program = is_exec(side).then(|| programs.next()).flatten();
            lives.take(side, program.unwrap_or_default(), all);
        }
        // What came before the first sample is in the snapshots.
        lives.events.clear();
        lives.root = None;
        lives.snapshots(all, first);
        for side in after {
            let program = is_exec(side).then(|| programs.next()).flatten();
            lives.take(side, program.unwrap_or_default(), all);
        }
        for loss in &all.losses {
            let lost = |stream, count| LifeEvent {
                time: Ktime(loss.since),
                cpu: None,
                kind: LifeKind::Lost(Lost {
                    stream,
                    count,
                    until: Ktime(loss.until),
                    cause: LossCause::RingFull,
                }),
            };
            // perf writes all of a CPU's records into one ring: forks may be among them.
            let cpu = Stream::Cpu(CpuId(loss.cpu));
            let events = [lost(cpu, Some(loss.count)), lost(Stream::Lifecycle, None)];
            let events = events.into_iter().map(|event| (Stream::Recorder, event));
            lives.events.extend(events);
        }
        lives
    }

    fn snapshots(&mut self, all: &Collected, time: u64) {
        let on_cpu: BTreeSet<u32> = all
            .cpus
            .values()
            .filter_map(|cpu| cpu.first.map(|(_, prev)| prev))
            .collect();
        let kthreadd = self.tasks.get(&KTHREADD.0);
        let kthreadd = kthreadd.is_some_and(|task| task.comm.bytes() == KTHREADD.1);
        // A process without any event has no known time at all.
        let active = self.tasks.iter();
        let active: HashSet<u32> = active
            .filter(|(tid, _)| all.active.contains(tid))
            .map(|(_, task)| task.tgid)
            .collect();
        for (tid, task) in &self.tasks {
            let of_kernel = task.parent == KTHREADD.0 || task.tgid == KTHREADD.0;
            let snapshot = Snapshot {
                tid: Tid(*tid),
                tgid: Tgid(task.tgid),
                parent_tgid: Tgid(task.parent),
                start_time: Ktime(0),
                ns_tid: Tid(*tid),
                cgroup: CgroupId(0),
                comm: task.comm,
                argv: Argv::default(),
                state: UNKNOWN_STATE,
                on_cpu: on_cpu.contains(tid),
                kthread: kthreadd && of_kernel,
                followed: active.contains(&task.tgid),
                sum_exec_runtime: 0,
            };
            let event = LifeEvent {
                time: Ktime(time),
                cpu: None,
                kind: LifeKind::Snapshot(snapshot),
            };
            self.events.push((Stream::Recorder, event));
        }
    }

    fn take(&mut self, side: &Side, program: Program, all: &Collected) {
        let kind = match &side.what {
            SideKind::Fork {
                tgid,
                tid,
                parent_tgid,
                parent_tid,
            } => self.fork(side.time, (*tgid, *tid), (*parent_tgid, *parent_tid)),
            SideKind::Exit { tgid, tid } => {
                if let Some(end) = self.exit(side, (*tgid, *tid), all) {
                    self.events.push((Stream::Lifecycle, end));
                }
                return;
            }
            SideKind::Comm {
                tgid,
                tid,
                comm,
                exec: false,
            } => self.rename(side.time, (*tgid, *tid), *comm),
            SideKind::Comm {
                tgid, tid, comm, ..
            } => self.exec(side.time, (*tgid, *tid), *comm, program),
            SideKind::Mapped { .. } | SideKind::Exec { .. } => return,
        };
        let event = LifeEvent {
            time: Ktime(side.time),
            cpu: side.cpu.map(CpuId),
            kind,
        };
        self.events.push((Stream::Lifecycle, event));
    }

    fn fork(&mut self, time: u64, (tgid, tid): (u32, u32), parent: (u32, u32)) -> LifeKind {
        let (parent_tgid, parent_tid) = parent;
        let comm = self.tasks.get(&parent_tid).map(|task| task.comm);
        let comm = comm.unwrap_or_default();
        let parent = match self.tasks.get(&tgid) {
            Some(leader) if tgid != tid => leader.parent,
            _ => parent_tgid,
        };
        if tgid == tid {
            self.living.remove(&tgid);
        }
        self.living.entry(tgid).or_default().insert(tid);
        self.tasks.insert(tid, Task { tgid, parent, comm });
        LifeKind::Fork(Fork {
            parent_tid: Tid(parent_tid),
            parent_tgid: Tgid(parent_tgid),
            tid: Tid(tid),
            tgid: Tgid(tgid),
            start_time: Ktime(time),
            ns_tid: Tid(tid),
            cgroup: CgroupId(0),
            comm,
        })
    }

    fn rename(&mut self, time: u64, (tgid, tid): (u32, u32), comm: Comm) -> LifeKind {
        // perf lists the living tasks' names behind their forks, or alone.
        let task = self.tasks.entry(tid).or_insert(Task {
            tgid,
            parent: 0,
            comm,
        });
        task.comm = comm;
        if time == 0 {
            self.living.entry(tgid).or_default().insert(tid);
        }
        LifeKind::Rename(Rename {
            tid: Tid(tid),
            tgid: Tgid(tgid),
            comm,
        })
    }

    fn exec(&mut self, time: u64, (tgid, tid): (u32, u32), comm: Comm, is: Program) -> LifeKind {
        let task = self.tasks.entry(tid).or_insert(Task {
            tgid,
            parent: 0,
            comm,
        });
        // Another perf may start a command at the same time.
        let is_named = self.words.contains(&comm);
        if self.root.is_none() && is_named && task.comm.bytes() == WORKLOAD {
            self.root = Some(Root {
                tgid,
                start: time,
                comm,
                end: None,
            });
        }
        task.comm = comm;
        // The other threads have exited (de_thread, fs/exec.c). Where one is left that is not
        // the leader, it has executed the program, and goes by the leader's tid from now on.
        let living = self.living.entry(tgid).or_default();
        let heir = living.first().copied();
        let heir = heir.filter(|heir| living.len() == 1 && *heir != tid);
        *living = BTreeSet::from([tid]);
        if let Some(heir) = heir {
            self.tasks.remove(&heir);
        }
        let (old, file) = match is.exec {
            Some((old, file)) => (old, file),
            None => {
                // A script's interpreter, and the file behind a link, have other names.
                let mapped = is.mapped.filter(|file| named(file) == comm);
                (heir.unwrap_or(tid), mapped.unwrap_or(comm.bytes().into()))
            }
        };
        LifeKind::Exec(Exec {
            tid: Tid(tid),
            tgid: Tgid(tgid),
            old_tid: Tid(old),
            comm,
            filename: file,
            argv: Argv::default(),
            cgroup: CgroupId(0),
            max_rss: None,
        })
    }

    /// The end of a task: right after its last switch-out, or where that is missing at the
    /// next switch of its CPU. `None`: it was still exiting when the recording ended.
    fn exit(&mut self, side: &Side, (tgid, tid): (u32, u32), all: &Collected) -> Option<LifeEvent> {
        self.tasks.remove(&tid);
        let living = self.living.entry(tgid).or_default();
        living.remove(&tid);
        let group_dead = living.is_empty();
        if group_dead {
            self.living.remove(&tgid);
        }
        let first = |times: &HashMap<u32, Vec<u64>>, from: u64| {
            let times = times.get(&tid)?;
            let at = times.partition_point(|time| *time < from);
            times.get(at).copied()
        };
        // A later holder of the tid has an end of its own.
        let forked = first(&all.forks, side.time.saturating_add(1));
        let own = |time: &u64| forked.is_none_or(|forked| *time <= forked);
        let death = first(&all.deaths, side.time).filter(own);
        let time = death.or(first(&all.gone, side.time).filter(own))?;
        let time = time.saturating_add(1);
        if let Some(root) = self.root.as_mut().filter(|root| root.tgid == tgid) {
            root.end = group_dead.then_some(time).or(root.end);
        }
        Some(LifeEvent {
            time: Ktime(time),
            cpu: side.cpu.map(CpuId),
            kind: LifeKind::End(TaskEnd {
                tid: Tid(tid),
                tgid: Tgid(tgid),
                status: None,
                group_dead,
                max_rss: None,
            }),
        })
    }
}

fn is_exec(side: &Side) -> bool {
    matches!(side.what, SideKind::Comm { exec: true, .. })
}

/// The comm of a program's file: at most 15 bytes of its name.
pub fn named(file: &[u8]) -> Comm {
    Comm::new(base(file))
}

/// The program of each exec, the last one first: the file that it maps, and the tracepoint's
/// words, come after the name.
fn programs(sides: &[Side]) -> Vec<Program> {
    let mut next: HashMap<u32, Program> = HashMap::new();
    let mut programs = Vec::new();
    for side in sides.iter().rev() {
        match &side.what {
            SideKind::Mapped { tgid, file } => {
                next.entry(*tgid).or_default().mapped = Some(file.clone());
            }
            SideKind::Exec { tid, old, file } => {
                next.entry(*tid).or_default().exec = Some((*old, file.clone()));
            }
            SideKind::Comm {
                tgid, exec: true, ..
            } => programs.push(next.remove(tgid).unwrap_or_default()),
            _ => {}
        }
    }
    programs
}
