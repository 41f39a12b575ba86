//! One sample after the other: new tasks, new programs, totals, ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tr_format::event::{Comm, Ktime};

use crate::host;
use crate::proc::{self, Id, Parents, Stat};
use crate::source::events::Waiting;

const PROC: &str = "/proc";

/// A process that a sample has found.
#[derive(Clone, Debug)]
struct Process {
    /// When it was started: its id can be another process's later.
    start: u64,
    comm: Comm,
    arguments: u64,
    /// Its threads, itself included.
    threads: BTreeSet<Id>,
    /// It was a zombie in the last sample, and its end is recorded.
    ended: bool,
}

impl Process {
    /// Whether it runs another program than in the last sample.
    fn executed(&mut self, stat: &Stat) -> bool {
        let before = (self.comm, self.arguments);
        self.comm = stat.comm;
        // A task that ends gives its memory back before it is a zombie, and has no arguments then.
        if stat.arguments != 0 {
            self.arguments = stat.arguments;
        }
        !stat.zombie && before != (self.comm, self.arguments)
    }
}

/// The processes of the last sample, and the events that no batch has taken yet.
#[derive(Debug, Default)]
pub struct State {
    processes: BTreeMap<Id, Process>,
    /// The longest recorded argv in bytes.
    argv_limit: u32,
    /// `None`: the kernel lists the children of each thread.
    parents: Option<Parents>,
    pub waiting: Waiting,
}

impl State {
    pub fn new(root: Id, argv_limit: u32) -> State {
        let stat = proc::stat(root);
        let process = Process {
            start: stat.map_or(0, |stat| stat.start),
            comm: stat.map(|stat| stat.comm).unwrap_or_default(),
            arguments: stat.map_or(0, |stat| stat.arguments),
            threads: BTreeSet::from([root]),
            ended: false,
        };
        State {
            processes: BTreeMap::from([(root, process)]),
            argv_limit,
            parents: (!proc::lists_children()).then(|| Parents::read(Path::new(PROC))),
            ..State::default()
        }
    }

    /// The processes that lived in the last sample.
    pub fn processes(&self) -> Vec<Id> {
        let living = self.processes.iter().filter(|(_, process)| !process.ended);
        living.map(|(id, _)| *id).collect()
    }

    /// The threads of a process in the last sample.
    fn threads_of(&self, id: Id) -> BTreeSet<Id> {
        let process = self.processes.get(&id);
        process.map(|it| it.threads.clone()).unwrap_or_default()
    }

    /// Takes a sample. Processes that a dead parent has left are still looked at by their
    /// ids; children that such a process had between two samples are missing.
    pub fn sample(&mut self) {
        let mut open: Vec<(Id, Id)> = self.processes.keys().map(|id| (*id, 0)).collect();
        let mut seen = BTreeSet::new();
        let parents = self.parents.as_mut();
        let all = parents.map(|parents| parents.children(Path::new(PROC)));
        while let Some((id, parent)) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let time = host::now();
            let stat = proc::stat(id);
            let known = self.processes.get(&id).map(|process| process.start);
            let same = stat.filter(|stat| known.is_none_or(|start| start == stat.start));
            let Some(stat) = same else {
                self.vanished(time, id);
                continue;
            };
            if known.is_none() {
                if stat.zombie {
                    continue; // its program is not known any more
                }
                self.found(time, id, parent, &stat);
            }
            self.look(time, id, &stat);
            let children = match &all {
                Some(all) => all.get(&id).cloned().unwrap_or_default(),
                None => self.children(id),
            };
            open.extend(children.into_iter().map(|child| (child, id)));
        }
    }

    fn children(&self, id: Id) -> Vec<Id> {
        let threads = self.threads_of(id).into_iter();
        threads.flat_map(|it| proc::children(id, it)).collect()
    }

    fn found(&mut self, time: Ktime, id: Id, parent: Id, stat: &Stat) {
        let above = self.processes.get(&parent);
        let (comm, arguments) = above.map_or((Comm::default(), 0), |it| (it.comm, it.arguments));
        self.waiting.fork(time, (parent, parent), (id, id), comm);
        let process = Process {
            start: stat.start,
            comm,
            arguments,
            threads: BTreeSet::from([id]),
            ended: false,
        };
        self.processes.insert(id, process);
    }

    /// A process that lives, or is a zombie.
    fn look(&mut self, time: Ktime, id: Id, stat: &Stat) {
        let Some(process) = self.processes.get_mut(&id).filter(|it| !it.ended) else {
            return;
        };
        let executed = process.executed(stat);
        if stat.zombie {
            process.ended = true;
            self.account(time, id, id);
            return self.end(time, id, stat.status);
        }
        if executed {
            self.executed(time, id, stat.comm);
        }
        if stat.threads > 1 || self.threads_of(id).len() > 1 {
            self.threads(time, id, stat.comm);
        }
        for thread in self.threads_of(id) {
            self.account(time, thread, id);
        }
    }

    fn executed(&mut self, time: Ktime, id: Id, comm: Comm) {
        let filename = proc::executable(id).unwrap_or_default();
        let argv = proc::cmdline(id.unsigned_abs(), self.argv_limit);
        self.waiting.exec(time, id, id, (comm, filename, argv));
    }

    /// Threads that are new, and those that have ended.
    fn threads(&mut self, time: Ktime, id: Id, comm: Comm) {
        let mut now = BTreeSet::new();
        now.extend(proc::threads(id));
        let Some(process) = self.processes.get_mut(&id).filter(|_| !now.is_empty()) else {
            return;
        };
        let before = std::mem::replace(&mut process.threads, now.clone());
        for thread in before.difference(&now).filter(|thread| **thread != id) {
            self.waiting.end(time, (*thread, id), None);
        }
        for thread in now.difference(&before) {
            self.waiting.fork(time, (id, id), (*thread, id), comm);
        }
    }

    /// A process that was there in the last sample, and is not now.
    fn vanished(&mut self, time: Ktime, id: Id) {
        if self.processes.get(&id).is_some_and(|it| !it.ended) {
            self.end(time, id, None);
        }
        self.processes.remove(&id);
    }

    /// The end of a process and of its threads.
    fn end(&mut self, time: Ktime, id: Id, status: Option<u32>) {
        let threads = self.threads_of(id).into_iter();
        for thread in threads.filter(|thread| *thread != id) {
            self.waiting.end(time, (thread, id), None);
        }
        self.waiting.end(time, (id, id), status);
    }

    fn account(&mut self, time: Ktime, id: Id, process: Id) {
        if let Some(totals) = proc::totals(id) {
            self.waiting.account(time, (id, process), totals);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_on_every_kernel() {
        use std::process::{Command, Stdio};
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo; read end; kill $!"]);
        let piped = shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let stdout = child.stdout.as_mut().unwrap();
        std::io::Read::read_exact(stdout, &mut [0]).unwrap();
        let root = Id::try_from(child.id()).unwrap();
        let found = |mut state: State| {
            state.sample();
            state.processes()
        };
        let by_parent = found(State {
            parents: Some(Parents::read(Path::new(PROC))),
            ..State::new(root, 64)
        });
        let usual = found(State::new(root, 64));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(by_parent.len(), 2);
        assert_eq!(usual, by_parent);
    }

    #[test]
    fn an_end_is_no_exec() {
        let stat = |name: &str, arguments, zombie| Stat {
            comm: Comm::new(name.as_bytes()),
            zombie,
            state: b'R',
            kthread: false,
            parent: 1,
            threads: 1,
            start: 7,
            arguments,
            arguments_end: arguments,
            status: None,
        };
        let mut process = Process {
            start: 7,
            comm: Comm::new(b"sh"),
            arguments: 64,
            threads: BTreeSet::from([2]),
            ended: false,
        };
        let mut executed =
            |name, arguments, zombie| process.executed(&stat(name, arguments, zombie));
        assert!(!executed("sh", 64, false));
        assert!(executed("sleep", 80, false));
        assert!(executed("sleep", 96, false));
        // It has no memory any more; then it is a zombie.
        assert!(!executed("sleep", 0, false));
        assert!(!executed("sleep", 0, true));
    }
}
