//! The tracer: the thread that takes the stops and ends of all tracees, one after the
//! other. Its end lets go of all tracees at once, in whatever state they are.

use std::collections::{HashMap, HashSet};

use tr_format::event::{
    Account, Argv, CgroupId, Comm, Degraded, Exec, Fork, Ktime, LifeEvent, LifeKind, LossCause,
    Lost, Stream, TaskEnd, Tgid, Tid,
};

use super::proc;
use super::sys::{self, Found, Id, Next};
use crate::command::Reaped;
use crate::host;
use crate::source::recorder;

/// Bytes of events that may wait for the writer.
const MAX_WAITING: usize = 16 << 20;

/// A tracee.
#[derive(Clone, Copy, Debug)]
struct Task {
    process: Id,
    comm: Comm,
}

/// The tracees, and the events that no batch has taken yet.
#[derive(Debug, Default)]
pub struct State {
    tasks: HashMap<Id, Task>,
    /// New tracees that stopped before the event of their fork.
    early: HashSet<Id>,
    /// The tracer's thread has to end.
    pub stop: bool,
    /// The tracer's thread.
    pub tracer: Id,
    /// COMMAND's process.
    root: Id,
    /// COMMAND's end.
    pub reaped: Option<Reaped>,
    /// The last signal of another process to COMMAND.
    pub signal: Option<(i32, std::time::Instant)>,
    /// The longest recorded argv in bytes.
    argv_limit: u32,
    /// A program that would have gained rights has been seen.
    told_rights: bool,
    /// Events for the writer.
    pub events: Vec<LifeEvent>,
    /// Their memory in bytes.
    pub bytes: usize,
    /// Events that found no room.
    lost: Option<(Ktime, Ktime, u64)>,
}

fn tid(id: Id) -> Tid {
    Tid(id.unsigned_abs())
}

fn tgid(id: Id) -> Tgid {
    Tgid(id.unsigned_abs())
}

impl State {
    /// For COMMAND's process.
    pub fn new(root: Id, argv_limit: u32) -> State {
        let comm = proc::comm(root).unwrap_or_default();
        let task = Task {
            process: root,
            comm,
        };
        State {
            tasks: HashMap::from([(root, task)]),
            root,
            argv_limit,
            ..State::default()
        }
    }

    /// The processes that live, and their names.
    pub fn processes(&self) -> Vec<Id> {
        let leaders = self.tasks.iter().filter(|(id, task)| **id == task.process);
        let mut processes: Vec<Id> = leaders.map(|(id, _)| *id).collect();
        processes.sort_unstable();
        processes
    }

    /// No tracee lives.
    pub fn is_done(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Takes all stops and ends that have come.
    pub fn take_all(&mut self) {
        loop {
            if let Some(stop) = sys::next_stop() {
                self.stopped(stop);
            }
            match sys::next_end() {
                Some(Next::End(end)) => self.ended(end),
                Some(Next::Stop) => {}
                None => return,
            }
        }
    }

    pub(super) fn push(&mut self, time: Ktime, kind: LifeKind) {
        let size = size_of::<LifeEvent>()
            + match &kind {
                LifeKind::Exec(exec) => exec.argv.bytes.len() + exec.filename.len(),
                _ => 0,
            };
        if self.bytes + size > MAX_WAITING {
            let (_, until, count) = self.lost.get_or_insert((time, time, 0));
            (*until, *count) = (time, *count + 1);
            return;
        }
        self.tell_lost();
        self.bytes += size;
        self.events.push(recorder(time, kind));
    }

    /// Reports the events that found no room.
    pub fn tell_lost(&mut self) {
        if let Some((since, until, count)) = self.lost.take() {
            let lost = Lost {
                stream: Stream::Lifecycle,
                count: Some(count),
                until,
                cause: LossCause::Output,
            };
            self.events.push(recorder(since, LifeKind::Lost(lost)));
        }
    }

    fn process_of(&self, id: Id) -> Id {
        self.tasks.get(&id).map_or(id, |task| task.process)
    }

    // ---- Stops ----

    fn stopped(&mut self, Found { id, status }: Found) {
        let (signal, event) = (status & 0xff, status >> 8);
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.forked(id);
                let _ = sys::go_on(id, 0);
            }
            libc::PTRACE_EVENT_EXEC => {
                self.executed(id);
                let _ = sys::go_on(id, 0);
            }
            libc::PTRACE_EVENT_STOP => self.paused(id, signal),
            _ => {
                if id == self.root {
                    self.signalled(id, signal);
                }
                let _ = sys::go_on(id, signal);
            }
        }
    }

    /// A new tracee's first stop, a group stop, or the end of one.
    fn paused(&mut self, id: Id, signal: i32) {
        const GROUP_STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        if !self.tasks.contains_key(&id) {
            self.early.insert(id);
        } else if GROUP_STOPS.contains(&signal) {
            let _ = sys::listen(id);
        } else {
            let _ = sys::go_on(id, 0);
        }
    }

    /// Notes a signal to COMMAND that the recorder has not sent.
    fn signalled(&mut self, id: Id, signal: i32) {
        let own = Id::try_from(std::process::id()).ok();
        if sys::sender(id).is_ok_and(|sender| Some(sender) != own) {
            self.signal = Some((signal, std::time::Instant::now()));
        }
    }

    fn forked(&mut self, parent: Id) {
        let Ok(child) = sys::message(parent) else {
            return;
        };
        let time = host::now();
        let of = self.tasks.get(&parent).copied().unwrap_or(Task {
            process: parent,
            comm: Comm::default(),
        });
        let process = if sys::is_thread_of(of.process, child) {
            of.process
        } else {
            child
        };
        self.tasks.insert(child, Task { process, ..of });
        let fork = Fork {
            parent_tid: tid(parent),
            parent_tgid: tgid(of.process),
            tid: tid(child),
            tgid: tgid(process),
            start_time: time,
            ns_tid: tid(child),
            cgroup: CgroupId(0),
            comm: of.comm,
        };
        self.push(time, LifeKind::Fork(fork));
        if self.early.remove(&child) {
            let _ = sys::go_on(child, 0);
        }
    }

    fn executed(&mut self, id: Id) {
        let before = sys::message(id).unwrap_or(id);
        let time = host::now();
        self.account(time, id, before);
        let filename = proc::filename(id);
        let comm = match &filename {
            // fexecve(3): the name depends on the kernel.
            Some(path) if !path.starts_with(b"/dev/fd/") => Some(proc::comm_of(path)),
            _ => proc::comm(id),
        };
        let comm = comm.unwrap_or_default();
        // Its other threads have ended.
        self.tasks.retain(|_, task| task.process != id);
        self.tasks.insert(id, Task { process: id, comm });
        let exec = Exec {
            tid: tid(id),
            tgid: tgid(id),
            old_tid: tid(before),
            comm,
            filename: filename.unwrap_or_default().into(),
            argv: self.argv(id),
            cgroup: CgroupId(0),
            max_rss: None,
        };
        self.push(time, LifeKind::Exec(exec));
        if !self.told_rights && proc::gains_rights(id) {
            self.told_rights = true;
            let what = b"a setuid or setgid program ran without its rights, because it was traced";
            let degraded = Degraded {
                what: (*what).into(),
            };
            self.push(time, LifeKind::Degraded(degraded));
        }
    }

    fn argv(&self, id: Id) -> Argv {
        host::cmdline(id.unsigned_abs(), self.argv_limit)
    }

    // ---- Ends ----

    fn ended(&mut self, Found { id, status }: Found) {
        let time = host::now();
        let process = self.process_of(id);
        self.account(time, id, id);
        let reaped = sys::reap(id);
        self.tasks.remove(&id);
        self.early.remove(&id);
        let status = status.cast_unsigned();
        let end = TaskEnd {
            tid: tid(id),
            tgid: tgid(process),
            status,
            // A leader's end is reported after those of the other threads.
            group_dead: id == process,
            group_status: if id == process { status } else { 0 },
            max_rss: None,
        };
        self.push(time, LifeKind::End(end));
        if id == self.root {
            self.reaped = reaped.map(|(status, usage)| Reaped { status, usage });
        }
    }

    /// The totals of a task, which has the id `of` in the trace.
    pub fn account(&mut self, time: Ktime, id: Id, of: Id) {
        let Some((sum_exec_runtime, run_delay, slices)) = proc::totals(id) else {
            return;
        };
        let account = Account {
            tid: tid(of),
            tgid: tgid(self.process_of(id)),
            sum_exec_runtime,
            run_delay: Some(run_delay),
            slices: Some(slices),
        };
        self.push(time, LifeKind::Account(account));
    }
}
