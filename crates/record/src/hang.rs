//! Describes a COMMAND that hangs: which limit it has reached, and what its processes wait for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tr_format::event::{Argv, Comm};
use tr_format::meta::EndedByLimit;

/// The settings for the guard, which ends a COMMAND that hangs.
#[derive(Clone)]
pub struct GuardSettings {
    /// The longest time that COMMAND may run; `None` if there is no limit.
    pub timeout: Option<Duration>,
    /// The longest time in which all processes of COMMAND may be inactive; `None` if there is no limit.
    pub stall: Option<Duration>,
    /// The time between SIGTERM and SIGKILL when a hanging COMMAND is ended.
    pub kill_after: Duration,
    /// The function that is called once, before a hanging COMMAND is ended. It reports the hang to the user.
    pub on_hang: Arc<dyn Fn(&Hang) + Send + Sync>,
}

impl std::fmt::Debug for GuardSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let limits = (self.timeout, self.stall, self.kill_after);
        limits.fmt(f)
    }
}

/// A COMMAND that hangs and is about to be ended.
#[derive(Clone, Debug)]
pub struct Hang {
    /// The limit that COMMAND has reached.
    pub ended: EndedByLimit,
    pub kill_after: Duration,
    /// The process id of COMMAND.
    pub root: u32,
    /// The living processes of COMMAND, and other processes that they wait for.
    pub processes: Vec<HungProcess>,
}

/// A living process of a hanging COMMAND, or one that such a process waits for, with what it waits for.
#[derive(Clone, Debug)]
pub struct HungProcess {
    pub pid: u32,
    pub parent: u32,
    pub comm: Comm,
    pub argv: Argv,
    pub wait: HangWait,
    /// The time since the waiting thread last ran. The guard knows this time only for as long as it has watched the
    /// thread.
    pub since: Duration,
    /// Whether the process is COMMAND's own or descends from it. False if the process is listed only because one of
    /// these waits for it.
    pub is_own: bool,
}

/// The reason why a process of a hanging COMMAND makes no progress: mostly something that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HangWait {
    /// The process runs, so it does not wait for anything.
    Runs,
    /// The process is stopped by a signal.
    Stopped,
    /// The process waits for the end of one of its child processes.
    Child,
    /// The process waits for bytes, or for room for bytes, in a pipe. `others` are the processes that have the
    /// pipe's other end.
    Pipe { writes: bool, others: Vec<u32> },
    /// The process waits for bytes, or for room for bytes, in a pipe whose other end only this process itself has.
    OwnPipe,
    /// The process waits for input from a terminal, or until a terminal takes its output, as after Ctrl-S.
    Terminal { writes: bool },
    /// The process waits for bytes, or for room for bytes, on a network or local connection.
    Connection {
        /// The address of the other end of the connection; `None` stands for a local socket.
        peer: Option<SocketAddr>,
        /// The processes of this machine that have the other end of the connection, or that listen at its address.
        others: Vec<u32>,
        writes: bool,
    },
    /// The process opens a FIFO, and waits until another process opens the FIFO's other end.
    Fifo { path: String, writes: bool },
    /// The process waits until somebody connects to this address, at which it listens.
    Accept(Option<SocketAddr>),
    /// The process waits for the lock of a file. `holders` are the processes that have the lock.
    FileLock { path: String, holders: Vec<u32> },
    /// The process waits for another of its own threads, by a lock or a condition variable.
    Thread,
    /// The process, which has one thread, waits for a lock or a condition variable in memory that it may share with
    /// another process.
    SharedLock,
    /// The process, which has one thread, waits for a lock or a condition variable that no other process can see.
    OwnLock,
    /// The process sleeps until a time has passed.
    Sleep,
    /// The process waits for this file or device.
    File(String),
    /// The process waits for any of several descriptors, by poll(2) or a similar call.
    Poll,
    /// The process waits for any of several descriptors. The contained wait describes one of them: a terminal, or a
    /// pipe whose other end no process of COMMAND has. Programs such as script and ssh wait like this, because they
    /// pass their input on to another process.
    AnyOf(Box<HangWait>),
    /// The process waits in the system call with this number. Nothing more is known about the wait.
    Call(i64),
    /// The kernel does not show to this user what the process waits for.
    Unknown,
}

impl HangWait {
    /// The ids of the processes that hold up this wait: those that have the other end of the pipe or the connection
    /// that the process waits for, or that hold the lock that it waits for. The list contains only processes that the
    /// kernel shows.
    pub(crate) fn holders(&self) -> &[u32] {
        match self {
            HangWait::Pipe { others, .. } | HangWait::Connection { others, .. } => others,
            HangWait::FileLock { holders, .. } => holders,
            _ => &[],
        }
    }

    /// Whether the process waits on a local socket, and no other process is known to have the other end of the
    /// connection. Such a socket is one of a pair with which a runtime wakes its own event loop (asyncio) or talks to a
    /// child (node).
    pub(crate) fn is_own_socket(&self) -> bool {
        matches!(self, HangWait::Connection { peer: None, others, .. } if others.is_empty())
    }
}

impl Hang {
    pub fn process(&self, pid: u32) -> Option<&HungProcess> {
        self.processes.iter().find(|process| process.pid == pid)
    }

    /// The ids of the processes that a process of a hanging COMMAND waits for.
    pub fn awaited(&self, process: &HungProcess) -> Vec<u32> {
        // Many programs wait for a child without wait(2): by a signal, by a descriptor, or by checking again and again.
        // So all children count as awaited, except a child that itself waits for this process.
        let by_children = || {
            let children = self.children(process);
            let children = children.filter(|child| !child.wait.holders().contains(&process.pid));
            children.map(|child| child.pid).collect()
        };
        match &process.wait {
            HangWait::Child => self.children(process).map(|child| child.pid).collect(),
            HangWait::OwnPipe
            | HangWait::Thread
            | HangWait::SharedLock
            | HangWait::OwnLock
            | HangWait::Sleep
            | HangWait::Poll
            | HangWait::AnyOf(_)
            | HangWait::Call(_)
            | HangWait::Unknown => by_children(),
            wait if wait.is_own_socket() => by_children(),
            wait => wait.holders().to_vec(),
        }
    }

    /// The living children of a process of COMMAND.
    fn children(&self, process: &HungProcess) -> impl Iterator<Item = &HungProcess> {
        let pid = process.pid;
        let children = self.processes.iter();
        children.filter(move |child| child.parent == pid && child.is_own)
    }

    /// The processes of the hanging COMMAND. The list begins with COMMAND's own process, and after each process come
    /// the processes that it waits for. Processes that COMMAND does not wait for come last.
    pub fn in_order(&self) -> Vec<&HungProcess> {
        let mut found = Vec::new();
        self.follow(self.root, &mut found);
        for process in &self.processes {
            self.follow(process.pid, &mut found);
        }
        found
    }

    /// The processes of the hanging COMMAND at the ends of the chains of waits: COMMAND waits for them, directly or by
    /// way of others, and they wait for no other process of COMMAND. If there is none, the processes wait for each
    /// other in a circle.
    pub fn ends(&self) -> Vec<&HungProcess> {
        let mut found = Vec::new();
        self.follow(self.root, &mut found);
        let is_known = |pid: &u32| self.process(*pid).is_some();
        found.retain(|process| !self.awaited(process).iter().any(is_known));
        found
    }

    /// Adds the process `from` to `found`, and after it the processes that it waits for, directly or by way of others.
    fn follow<'a>(&'a self, from: u32, found: &mut Vec<&'a HungProcess>) {
        let mut next = vec![from];
        while let Some(pid) = next.pop() {
            let is_new = !found.iter().any(|process| process.pid == pid);
            if let Some(process) = self.process(pid).filter(|_| is_new) {
                found.push(process);
                next.extend(self.awaited(process).into_iter().rev());
            }
        }
    }
}
