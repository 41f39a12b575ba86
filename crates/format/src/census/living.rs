//! Who lives, by what lifecycle events tell.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::checkpoint::{Process, Task};
use crate::event::{
    Argv, CgroupId, CgroupPath, CpuId, Exec, Exit, Fork, Ktime, LifeEvent, LifeKind, Snapshot,
    Tgid, Tid,
};
use crate::meta::{Metadata, Scope};

/// A living task.
#[derive(Debug)]
pub struct Alive {
    /// Its number among all tasks and processes that there were.
    pub serial: u64,
    /// Its process.
    pub tgid: Tgid,
    /// Who forked it.
    pub parent: Option<u64>,
    /// What is known of it; places and steps are still to be filled in.
    pub task: Task,
    /// Since when it has had its tid.
    pub born: u64,
    /// It had that tid before it got its present one by an exec, which was on that CPU.
    pub renamed: Option<(Tid, Option<CpuId>)>,
    /// When it was listed, its raw state bits, and whether it was on a CPU.
    pub listed: Option<(u64, u16, bool)>,
    /// Its first exec.
    pub executed: Option<u64>,
}

/// Whose child a process is.
#[derive(Clone, Copy, Debug)]
pub enum Parent {
    Unknown,
    /// The process with that number.
    Serial(u64),
    /// The one that was listed with that pid.
    Listed(Tgid),
}

/// A process that has a living task.
#[derive(Debug)]
pub struct Household {
    /// Its number among all tasks and processes that there were.
    pub serial: u64,
    /// What is known of it; its parent's place is still to be filled in.
    pub process: Process,
    pub parent: Parent,
    /// Its leader is gone since then.
    pub led_until: Option<u64>,
    living: usize,
}

/// Who lives.
#[derive(Debug)]
pub struct Living {
    pub tasks: HashMap<Tid, Alive>,
    pub processes: HashMap<Tgid, Household>,
    pub cgroups: BTreeMap<CgroupId, Box<[u8]>>,
    /// COMMAND, which is listed while it is still a copy of the recorder.
    root: Option<Tgid>,
    /// When the recording began; events before it may name tasks that are listed later.
    pub start: u64,
    /// It has begun, and who was there before is listed.
    begun: bool,
    /// The whole machine is recorded.
    everybody: bool,
    next: u64,
    /// Bytes of all arguments and paths.
    pub bytes: usize,
}

fn size(process: &Process) -> usize {
    let program = process.program.as_ref();
    process.argv.bytes.len() + program.map_or(0, |(path, _)| path.len())
}

impl Living {
    /// Nobody yet, in that trace.
    pub fn new(meta: &Metadata) -> Living {
        Living {
            tasks: HashMap::new(),
            processes: HashMap::new(),
            cgroups: BTreeMap::new(),
            root: meta.root,
            start: meta.start.0,
            begun: false,
            everybody: meta.scope == Scope::All,
            next: 0,
            bytes: 0,
        }
    }

    /// Takes an event; they come by time.
    pub fn take(&mut self, event: LifeEvent) {
        let time = event.time.0;
        if !self.begun && time >= self.start {
            self.begin();
        }
        match event.kind {
            LifeKind::Fork(fork) => {
                self.meet(fork.parent_tid, fork.parent_tgid);
                self.fork(time, &fork);
            }
            LifeKind::Exec(exec) => {
                if !self.tasks.contains_key(&exec.old_tid) {
                    self.meet(exec.tid, exec.tgid);
                }
                self.exec(time, event.cpu, exec);
            }
            LifeKind::Exit(exit) => {
                self.meet(exit.tid, exit.tgid);
                self.exit(event.time, exit);
            }
            LifeKind::Final(last) => {
                let exits = |alive: &Alive| alive.task.exit.is_some();
                if self.tasks.get(&last.tid).is_some_and(exits) {
                    let tgid = Tgid(last.tid.0);
                    self.remove(last.tid);
                    if let Some(household) = self.processes.get_mut(&tgid) {
                        household.led_until = Some(time);
                    }
                }
            }
            LifeKind::Rename(rename) => {
                if let Some(alive) = self.tasks.get_mut(&rename.tid) {
                    alive.task.comm = rename.comm;
                }
            }
            LifeKind::CgroupMove(moved) => {
                let tgid = self.tasks.get(&moved.tid).map(|alive| alive.tgid);
                let tgid = tgid.unwrap_or(Tgid(moved.tid.0));
                self.change(tgid, |process| process.cgroup = moved.cgroup);
            }
            LifeKind::Snapshot(snapshot) => self.snapshot(time, snapshot),
            LifeKind::CgroupPath(path) => self.name_cgroup(&path),
            LifeKind::Lost(_) | LifeKind::Clock(_) | LifeKind::Progress | LifeKind::Mark(_) => {}
        }
    }

    /// Notes a cgroup's path. When that was told says nothing of when it came to be.
    pub fn name_cgroup(&mut self, path: &CgroupPath) {
        let old = self.cgroups.insert(path.id, path.path.clone());
        let old = old.map_or(0, |old| old.len());
        self.bytes = (self.bytes + path.path.len()).saturating_sub(old);
    }

    /// The recording begins: who is not listed is not followed.
    fn begin(&mut self) {
        self.begun = true;
        let empty = self.processes.values().filter(|one| one.living == 0);
        let empty: Vec<Tgid> = empty.map(|one| one.process.pid).collect();
        for pid in empty {
            if let Some(gone) = self.processes.remove(&pid) {
                self.bytes = self.bytes.saturating_sub(size(&gone.process));
            }
        }
        if self.everybody {
            return;
        }
        let listed = |alive: &Alive| {
            let household = self.processes.get(&alive.tgid);
            household.is_some_and(|household| household.process.ppid.is_some())
        };
        let others = self.tasks.values().filter(|alive| !listed(alive));
        let others: Vec<Tid> = others.map(|alive| alive.task.tid).collect();
        others.into_iter().for_each(|tid| self.remove(tid));
    }

    /// A task that an event names before it is listed.
    fn meet(&mut self, tid: Tid, tgid: Tgid) {
        let open = self.everybody || !self.begun;
        if !open || tid == Tid::IDLE || self.tasks.contains_key(&tid) {
            return;
        }
        match self.processes.get_mut(&tgid) {
            // The exit that was the last to begin was not the last to be over.
            Some(household) if household.living == 0 => household.process.status = None,
            Some(_) => {}
            None => {
                let process = Process {
                    pid: tgid,
                    ..Process::default()
                };
                self.add_process(process, Parent::Unknown);
            }
        }
        let task = Task {
            tid,
            ns_tid: tid,
            ..Task::default()
        };
        self.add_task(tgid, 0, None, task);
    }

    fn serial(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn change(&mut self, tgid: Tgid, change: impl FnOnce(&mut Process)) {
        if let Some(household) = self.processes.get_mut(&tgid) {
            let before = size(&household.process);
            change(&mut household.process);
            self.bytes = (self.bytes + size(&household.process)).saturating_sub(before);
        }
    }

    fn add_process(&mut self, process: Process, parent: Parent) {
        let serial = self.serial();
        self.bytes += size(&process);
        let household = Household {
            serial,
            parent,
            led_until: None,
            living: 0,
            process,
        };
        self.processes.insert(household.process.pid, household);
    }

    fn add_task(&mut self, tgid: Tgid, born: u64, parent: Option<u64>, task: Task) {
        self.remove(task.tid);
        let serial = self.serial();
        if let Some(household) = self.processes.get_mut(&tgid) {
            household.living += 1;
        }
        let alive = Alive {
            serial,
            tgid,
            parent,
            born,
            renamed: None,
            listed: None,
            executed: None,
            task,
        };
        self.tasks.insert(alive.task.tid, alive);
    }

    /// The task is gone, and with the last one its process.
    fn remove(&mut self, tid: Tid) {
        let Some(alive) = self.tasks.remove(&tid) else {
            return;
        };
        let Some(household) = self.processes.get_mut(&alive.tgid) else {
            return;
        };
        household.living = household.living.saturating_sub(1);
        // Before the recording begins its other threads may still be listed.
        if household.living == 0 && self.begun {
            self.bytes = self.bytes.saturating_sub(size(&household.process));
            self.processes.remove(&alive.tgid);
        } else if let Some((_, exit)) = alive.task.exit {
            let process = &mut household.process;
            if alive.tgid.0 == tid.0 {
                process.status = process.status.or(Some(exit.status));
            }
            let none = Exit {
                read_bytes: Some(0),
                write_bytes: Some(0),
                ..Exit::default()
            };
            let gone = process.gone.get_or_insert(none);
            let add = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
            gone.min_flt = gone.min_flt.saturating_add(exit.min_flt);
            gone.maj_flt = gone.maj_flt.saturating_add(exit.maj_flt);
            gone.read_bytes = add(gone.read_bytes, exit.read_bytes);
            gone.write_bytes = add(gone.write_bytes, exit.write_bytes);
        }
    }

    fn fork(&mut self, time: u64, fork: &Fork) {
        self.remove(fork.tid);
        let forker = self.tasks.get(&fork.parent_tid);
        let (parent, parent_tgid) = (
            forker.map(|alive| alive.serial),
            forker.map_or(fork.parent_tgid, |alive| alive.tgid),
        );
        let is_thread = fork.tid.0 != fork.tgid.0;
        if !(is_thread && self.processes.contains_key(&fork.tgid)) {
            let parent = self.processes.get(&parent_tgid);
            let argv = parent.map(|parent| parent.process.argv.clone());
            let process = Process {
                pid: fork.tgid,
                ppid: (!is_thread).then_some(fork.parent_tgid),
                argv: argv.unwrap_or_default(),
                ..Process::default()
            };
            let parent = match parent.filter(|_| !is_thread) {
                Some(parent) => Parent::Serial(parent.serial),
                None => Parent::Unknown,
            };
            self.add_process(process, parent);
        }
        self.change(fork.tgid, |process| {
            process.cgroup = fork.cgroup;
            process.forked |= !is_thread;
        });
        let task = Task {
            tid: fork.tid,
            ns_tid: fork.ns_tid,
            comm: fork.comm,
            forked: true,
            ..Task::default()
        };
        self.add_task(fork.tgid, time, parent, task);
    }

    fn exec(&mut self, time: u64, cpu: Option<CpuId>, exec: Exec) {
        let caller = match self.tasks.contains_key(&exec.old_tid) {
            true => exec.old_tid,
            false => exec.tid,
        };
        if exec.old_tid != exec.tid {
            // The others are gone, but for those that have their last steps to do.
            let gone = |alive: &Alive| {
                let tid = alive.task.tid;
                let other = alive.tgid == exec.tgid && tid != caller;
                other && (alive.task.exit.is_none() || tid == exec.tid)
            };
            let gone: Vec<Tid> = self
                .tasks
                .values()
                .filter(|alive| gone(alive))
                .map(|alive| alive.task.tid)
                .collect();
            for tid in gone {
                self.remove(tid);
            }
            if let Some(household) = self.processes.get_mut(&exec.tgid) {
                household.led_until = None;
            }
            if let Some(mut alive) = self.tasks.remove(&caller) {
                alive.task.tid = exec.tid;
                alive.born = time;
                alive.renamed = Some((exec.old_tid, cpu));
                self.tasks.insert(exec.tid, alive);
            }
        }
        let Some(alive) = self.tasks.get_mut(&exec.tid) else {
            return;
        };
        alive.task.comm = exec.comm;
        alive.executed = alive.executed.or(Some(time));
        let tgid = alive.tgid;
        self.change(tgid, |process| {
            process.argv = exec.argv;
            process.cgroup = exec.cgroup;
            process.program = Some((exec.filename, exec.comm));
        });
    }

    fn exit(&mut self, time: Ktime, exit: Exit) {
        let Some(alive) = self.tasks.get_mut(&exit.tid) else {
            return;
        };
        let tgid = alive.tgid;
        if exit.group_dead {
            self.change(tgid, |process| {
                process.status = Some(exit.group_status);
                let rss = Some(exit.max_rss).filter(|rss| *rss > 0);
                process.max_rss = process.max_rss.max(rss);
            });
        }
        if let Some(alive) = self.tasks.get_mut(&exit.tid) {
            alive.task.exit = Some((time, exit));
        }
    }

    fn snapshot(&mut self, time: u64, snapshot: Snapshot) {
        if !snapshot.followed || snapshot.tid == Tid::IDLE {
            return;
        }
        let tgid = snapshot.tgid;
        self.meet(snapshot.tid, tgid);
        if let Some(alive) = self.tasks.get_mut(&snapshot.tid) {
            alive.task.ns_tid = snapshot.ns_tid;
            alive.task.comm = snapshot.comm;
            alive.listed = Some((time, snapshot.state, snapshot.on_cpu));
        }
        if let Some(household) = self.processes.get_mut(&tgid) {
            if !household.process.forked {
                household.parent = Parent::Listed(snapshot.parent_tgid);
            }
        }
        let leads = snapshot.tid.0 == tgid.0;
        let own = self.root == Some(tgid);
        self.change(tgid, |process| {
            process.ppid = Some(snapshot.parent_tgid);
            process.kthread = snapshot.kthread;
            process.cgroup = snapshot.cgroup;
            let executes = leads && !snapshot.kthread && process.program.is_none();
            if executes || process.program.is_none() && process.argv == Argv::default() {
                process.argv = snapshot.argv;
            }
            if executes && !own {
                process.program = Some((Arc::default(), snapshot.comm));
            }
        });
    }
}
