//! Implements the tracer, which is the thread that handles the stops and ends of all tracees, one after the other. When
//! this thread ends, the kernel lets go of all tracees at once, in whatever state they are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::sys::eventfd::EventFd;
use tr_format::event::{Argv, Comm, Detached, Exec, Ktime, LifeKind};

use super::listener::{About, Call};
use super::sys::{self, Next, TraceeStop};
use super::waits::Waits;
use crate::config::FactSettings;
use crate::host;
use crate::proc::{self, tgid, tid, Id};
use crate::rescue::{self, Stage};
use crate::scripts::{Runner, ScriptFinder};
use crate::source::events::Waiting;
use crate::source::{degraded, Reaped};

/// Whether an announced call of ptrace(2) would make a thread of the recorder a tracee.
fn is_about_recorder(call: &Call) -> bool {
    let own = Id::try_from(std::process::id()).unwrap_or(0);
    let target = match call.about {
        About::Task(target) => target,
        About::Caller | About::Untraced => return false,
    };
    sys::is_thread_of(own, target) && proc::is_in_own_namespace(call.caller)
}

#[derive(Clone, Copy, Debug)]
struct Task {
    process: Id,
    /// The process that forked the process of the traced task; 0 for COMMAND.
    parent: Id,
    comm: Comm,
    /// The time at which the traced task was forked or executed its program.
    since: Ktime,
}

/// A thread whose totals of CPU time are to be sampled: its id, and the time at which it was forked or executed its
/// program.
pub type Thread = (Id, Ktime);

/// While a new child waits for the event of its fork, at most this many stops and ends of tracees are handled in a row.
const MOST_IN_ROW: usize = 64;

/// The state of the tracer: its tracees, and the events that wait to be taken into a batch.
#[derive(Debug, Default)]
pub struct State {
    tasks: HashMap<Id, Task>,
    /// The new tracees that stopped before the event of their fork.
    early: HashSet<Id>,
    /// The tracees that were taken into the recording before the event of their fork, and for each the process that
    /// `/proc` showed as its parent. The event of the fork may come late, even after the tracee's end, or never.
    adopted: HashMap<Id, Id>,
    /// The thread that answers the announced calls of ptrace(2); `None` if COMMAND announces none.
    pub calls: Option<JoinHandle<()>>,
    /// Whether another thread waits for a notification that the tracer has handled a stop or an end.
    pub awaited: bool,
    /// Whether the tracer's thread has to end now, because the recording is over.
    pub stop: bool,
    /// The id of the tracer's thread.
    pub tracer: Id,
    /// The tracees that the tracer will stop tracing at their next stop.
    leaving: HashSet<Id>,
    /// The announced calls of ptrace(2) for which the tracer still has to detach from some tasks.
    pub requests: Vec<Call>,
    root: Id,
    pub reaped: Option<Reaped>,
    /// Whether COMMAND's process is in a group stop: a signal such as SIGSTOP has stopped all of its threads.
    pub root_stopped: bool,
    /// Whether COMMAND's process has stopped and the main thread has not noticed that yet.
    pub new_stop: bool,
    /// The descriptor by which the main thread notices that COMMAND has ended or stopped.
    news: Option<Arc<EventFd>>,
    /// The processes for which an event already says that they make children which cannot be traced (CLONE_UNTRACED).
    lost_children: HashSet<Id>,
    /// The last signal to COMMAND that the recorder has not sent itself, and its time.
    pub signal: Option<(i32, std::time::Instant)>,
    /// The largest number of bytes of a program's argument vector that are recorded.
    argv_limit: u32,
    /// The functions that find shell scripts; `None` if no scripts are recorded.
    scripts: Option<ScriptFinder>,
    /// Whether the tracer has already reported that a program would have gained rights without the tracing.
    pub has_reported_rights: bool,
    /// The absolute paths of executed programs that are known to gain no rights by their exec.
    plain: HashSet<Box<[u8]>>,
    pub waiting: Waiting,
}

/// The largest number of paths of executed programs that are remembered because they gain no rights.
const MOST_PLAIN: usize = 4096;

impl State {
    pub fn new(root: Id, facts: &FactSettings, news: Option<Arc<EventFd>>) -> State {
        let comm = proc::comm(root).unwrap_or_default();
        let task = Task {
            process: root,
            parent: 0,
            comm,
            since: host::now(),
        };
        State {
            tasks: HashMap::from([(root, task)]),
            root,
            argv_limit: facts.argv_limit,
            scripts: facts.scripts,
            news,
            ..State::default()
        }
    }

    pub fn processes(&self) -> Vec<Id> {
        let leaders = self.tasks.iter().filter(|(id, task)| **id == task.process);
        let mut processes: Vec<Id> = leaders.map(|(id, _)| *id).collect();
        processes.sort_unstable();
        processes
    }

    /// The number of living tracees.
    pub fn tracees(&self) -> usize {
        self.tasks.len()
    }

    /// The ids of the living tracees.
    pub fn ids(&self) -> Vec<Id> {
        self.tasks.keys().copied().collect()
    }

    /// Makes the descriptor readable by which the main thread notices that COMMAND has ended or stopped.
    fn announce(&self) {
        if let Some(news) = &self.news {
            let _ = news.write(1);
        }
    }

    /// Whether no tracee is alive.
    pub fn is_done(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether COMMAND's process is among the tracees.
    pub fn has_root(&self) -> bool {
        self.tasks.contains_key(&self.root)
    }

    /// Handles a stop or an end of a tracee, and the following ones as long as a child waits for the event of its fork.
    pub fn take(&mut self, mut next: Option<Next>, waits: &mut Waits) {
        for _ in 0..MOST_IN_ROW {
            match next {
                Some(Next::Stop(stop)) => self.stopped(stop, waits),
                Some(Next::End(end)) => self.ended(end),
                None => break,
            }
            if self.early.is_empty() {
                return;
            }
            next = waits.ready();
        }
        // The children are recorded without the event of their fork: a parent that is killed while it forks reports no
        // event.
        for child in std::mem::take(&mut self.early) {
            self.adopt(child);
        }
    }

    fn process_of(&self, id: Id) -> Id {
        self.tasks.get(&id).map_or(id, |task| task.process)
    }

    // ---- Stops of tracees ----

    fn stopped(&mut self, TraceeStop { id, status }: TraceeStop, waits: &mut Waits) {
        let (signal, event) = (status & 0xff, status >> 8);
        if self.leaving.contains(&id) {
            return self.leave(id, signal, event);
        }
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                let child = self.forked(id);
                waits.forked(id, child);
                let _ = sys::go_on(id, 0);
            }
            libc::PTRACE_EVENT_EXEC => self.executed(id),
            libc::PTRACE_EVENT_STOP => self.paused(id, signal),
            _ => {
                if id == self.root {
                    self.signalled(id, signal);
                }
                let _ = sys::go_on(id, signal);
            }
        }
    }

    /// Handles a stop of a tracee without an event: a new tracee's first stop, a group stop, or the end of a group
    /// stop.
    fn paused(&mut self, id: Id, signal: i32) {
        const GROUP_STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        if !self.tasks.contains_key(&id) {
            sys::take_stop(id);
            self.early.insert(id);
        } else if GROUP_STOPS.contains(&signal) {
            let _ = sys::listen(id);
            if id == self.root {
                self.root_stopped = true;
                self.new_stop = true;
                self.announce();
            }
        } else {
            self.root_stopped &= id != self.root;
            let _ = sys::go_on(id, 0);
        }
    }

    /// Notes a signal to COMMAND, unless the recorder itself has sent it.
    fn signalled(&mut self, id: Id, signal: i32) {
        // SIGCHLD comes from the end of a child, and the recorder passes no SIGCHLD on.
        if signal == libc::SIGCHLD {
            return;
        }
        let own = Id::try_from(std::process::id()).ok();
        if sys::sender(id).is_ok_and(|sender| Some(sender) != own) {
            self.signal = Some((signal, std::time::Instant::now()));
        }
    }

    /// Handles a tracee's stop for the event of a fork. Returns the child if the child's first stop has not come yet.
    fn forked(&mut self, parent: Id) -> Option<Id> {
        // The message is missing only if the parent is being killed.
        let child = sys::message(parent).ok()?;
        if self.adopted.remove(&child).is_some() {
            self.correct(parent, child);
            return None;
        }
        let process = self.process_of(parent);
        let process = if sys::is_thread_of(process, child) {
            process
        } else {
            child
        };
        self.born(child, process, parent);
        if self.early.remove(&child) {
            let _ = sys::go_on(child, 0);
            return None;
        }
        Some(child)
    }

    /// Adds a new tracee, which is the first thread of a new process or a further thread of a process.
    fn born(&mut self, child: Id, process: Id, parent: Id) {
        let time = host::now();
        let of = self.tasks.get(&parent).copied();
        let of = of.unwrap_or_else(|| Task {
            process: parent,
            parent: 0,
            comm: proc::comm(child).unwrap_or_default(),
            since: time,
        });
        let task = Task {
            process,
            parent: if process == child {
                of.process
            } else {
                of.parent
            },
            comm: of.comm,
            since: time,
        };
        self.tasks.insert(child, task);
        let parent = (parent, of.process);
        self.waiting.fork(time, parent, (child, process), of.comm);
    }

    /// Takes a new tracee into the recording before the event of its fork has come, and lets it run. The parent process
    /// is read from `/proc`, as long as that process lives.
    fn adopt(&mut self, child: Id) {
        let Some((process, above)) = proc::lineage(child) else {
            return;
        };
        let parent = if process == child { above } else { process };
        self.adopted.insert(child, parent);
        if self.leaving.contains(&parent) {
            let _ = sys::detach(child, 0);
            return;
        }
        self.born(child, process, parent);
        let _ = sys::go_on(child, 0);
    }

    /// Handles the event of a fork that came after its child was already taken into the recording. The event shows the
    /// thread that forked, and the parent process if `/proc` showed another one because of clone's `CLONE_PARENT`.
    fn correct(&mut self, parent: Id, child: Id) {
        let process = self.process_of(parent);
        if let Some(task) = self.tasks.get_mut(&child) {
            if task.process == child {
                task.parent = process;
            }
        }
        self.waiting.correct_fork(child, (parent, process));
    }

    fn executed(&mut self, id: Id) {
        let before = sys::id_before_exec(id).unwrap_or(id);
        let time = host::now();
        let arguments = sys::stack_pointer(id)
            .and_then(|stack| proc::arguments(id, stack, self.argv_limit as usize));
        let (filename, argv) = match arguments {
            Some((filename, argv)) => (Some(filename), argv),
            None => (proc::filename(id), self.argv(id)),
        };
        self.look_at_rights(time, id, filename.as_deref());
        let comm = match &filename {
            // After fexecve(3) the path is `/dev/fd/N`, and the kernel's version decides which name the task gets. So
            // the name is read.
            Some(path) if !path.starts_with(b"/dev/fd/") => Some(proc::comm_of(path)),
            _ => proc::comm(id),
        };
        let comm = comm.unwrap_or_default();
        // The facts about a script are read now, because the shell that runs the script may end before the next drain.
        let is_script = self.scripts.is_some_and(|finder| finder.is_wanted(&argv));
        let runner = is_script.then(|| Runner::of(id)).flatten();
        let directory = runner.and_then(|_| proc::directory(id));
        let _ = sys::go_on(id, 0);
        // The task's totals of CPU time are read after the task was allowed to run on, so that the task does not wait
        // for the read. Therefore the totals include some microseconds of the new program.
        self.account(time, id, before);
        // The exec has ended all other threads of the process, so they are removed.
        let parent = self.tasks.get(&before).map_or(0, |task| task.parent);
        self.tasks.retain(|_, task| task.process != id);
        let task = Task {
            process: id,
            parent,
            comm,
            since: time,
        };
        self.tasks.insert(id, task);
        let exec = Exec {
            tid: tid(id),
            tgid: tgid(id),
            old_tid: tid(before),
            comm,
            filename: filename.unwrap_or_default().into(),
            argv,
            directory: directory.unwrap_or_default().into(),
            ..Exec::default()
        };
        self.waiting.exec(time, exec, runner);
    }

    /// Examines whether a program that a stopped process executes would have gained rights without the tracing. The
    /// first such program is reported.
    fn look_at_rights(&mut self, time: Ktime, id: Id, filename: Option<&[u8]>) {
        let known = filename.is_some_and(|name| self.plain.contains(name));
        if self.has_reported_rights || known {
            return;
        }
        if proc::gains_rights(format!("/proc/{id}/exe").as_ref()) {
            self.has_reported_rights = true;
            let what = "a setuid or setgid program ran without its rights, because it was traced";
            self.waiting.push(time, degraded(what));
        } else if let Some(name) = filename.filter(|name| name.starts_with(b"/")) {
            if self.plain.len() < MOST_PLAIN {
                self.plain.insert(name.into());
            }
        }
    }

    fn argv(&self, id: Id) -> Argv {
        proc::cmdline(id.unsigned_abs(), self.argv_limit)
    }

    // ---- Letting go of tracees ----

    /// Begins to detach from the tasks that the announced calls of ptrace(2) are about.
    pub fn serve(&mut self) {
        for call in std::mem::take(&mut self.requests) {
            let processes = self.targets(&call);
            if is_about_recorder(&call) {
                let what = "the recording has stopped: a recorded program traces the recorder";
                self.waiting.push(host::now(), degraded(what));
            } else {
                self.name(&processes);
            }
            self.let_go(&processes);
        }
    }

    /// Whether a recorded program's call of ptrace(2) has to wait, because the tracer has not yet detached from a task
    /// that the call is about.
    pub fn has_targets(&self, call: &Call) -> bool {
        !self.requests.is_empty() || !self.leaving.is_empty() || !self.targets(call).is_empty()
    }

    /// The ids of the traced processes that a recorded program's call of ptrace(2) is about.
    fn targets(&self, call: &Call) -> Vec<Id> {
        let process = |id: Id| self.tasks.get(&id).map(|task| task.process);
        match call.about {
            About::Untraced => Vec::new(),
            About::Caller => process(call.caller).into_iter().collect(),
            // If a tracee stopped the recorder by ptrace(2), the recorder could not let the tracee run again, and both
            // would hang. So the recorder detaches from all tracees.
            About::Task(_) if is_about_recorder(call) => self.processes(),
            About::Task(target) if proc::is_in_own_namespace(call.caller) => {
                process(target).into_iter().collect()
            }
            // The call contains an id of another pid namespace, so it is unknown which process it means. The recorder
            // detaches from all processes in that namespace.
            About::Task(_) => {
                let same = |id: &Id| proc::are_in_one_namespace(*id, call.caller);
                self.processes().into_iter().filter(same).collect()
            }
        }
    }

    /// The name and id of a process, as text for the user.
    fn shown(&self, process: Id) -> String {
        let name = self.tasks.get(&process).map(|task| task.comm);
        let name = name.unwrap_or_default();
        let name = String::from_utf8_lossy(name.bytes()).into_owned();
        format!("{name} (pid {process})")
    }

    /// Records that the process of the task `caller` makes children that nobody can trace (CLONE_UNTRACED).
    pub fn lose_children_of(&mut self, caller: Id) {
        let process = self.process_of(caller);
        if self.lost_children.len() < MOST_PLAIN && self.lost_children.insert(process) {
            let parent = self.shown(process);
            let what = format!("children of {parent} and what they start are not recorded: it makes them with CLONE_UNTRACED");
            self.waiting.push(host::now(), degraded(what));
        }
    }

    /// Adds one event for each of these processes. The event says that the process is not recorded any further, because
    /// another program traces it.
    fn name(&mut self, processes: &[Id]) {
        for process in processes {
            let name = self.shown(*process);
            let what = format!(
                "{name} and what it starts is not recorded further: another program traces it"
            );
            self.waiting.push(host::now(), degraded(what));
        }
    }

    /// Begins to detach from these traced processes and from all their descendants.
    fn let_go(&mut self, processes: &[Id]) {
        let time = host::now();
        let mut going: HashSet<Id> = processes.iter().copied().collect();
        loop {
            let below = self.tasks.values();
            let below: Vec<Id> = below
                .filter(|task| going.contains(&task.parent) && !going.contains(&task.process))
                .map(|task| task.process)
                .collect();
            if below.is_empty() {
                break;
            }
            going.extend(below);
        }
        let tasks = self.tasks.iter();
        let tasks = tasks.filter(|(_, task)| going.contains(&task.process));
        let mut tasks: Vec<Id> = tasks.map(|(id, _)| *id).collect();
        tasks.sort_unstable();
        for id in tasks {
            self.begin_to_leave(time, id);
        }
    }

    fn begin_to_leave(&mut self, time: Ktime, id: Id) {
        self.account(time, id, id);
        let detached = Detached {
            tid: tid(id),
            tgid: tgid(self.process_of(id)),
        };
        self.waiting.push(time, LifeKind::Detached(detached));
        self.leaving.insert(id);
        // This makes even a task in a group stop report one more stop. At that stop the tracer detaches from it.
        let _ = sys::interrupt(id);
    }

    /// Detaches from a stopped tracee. If the tracee has just forked, the tracer also detaches from the child, at the
    /// child's first stop.
    fn leave(&mut self, id: Id, signal: i32, event: i32) {
        let forked = [
            libc::PTRACE_EVENT_FORK,
            libc::PTRACE_EVENT_VFORK,
            libc::PTRACE_EVENT_CLONE,
        ];
        if forked.contains(&event) {
            if let Ok(child) = sys::message(id) {
                if self.early.remove(&child) {
                    let _ = sys::detach(child, 0);
                } else if self.adopted.remove(&child).is_none() {
                    self.leaving.insert(child);
                } else if self.tasks.contains_key(&child) && !self.leaving.contains(&child) {
                    self.begin_to_leave(host::now(), child);
                }
            }
        }
        if event == libc::PTRACE_EVENT_EXEC {
            let _ = sys::id_before_exec(id);
        }
        let _ = sys::detach(id, if event == 0 { signal } else { 0 });
        self.leaving.remove(&id);
        self.tasks.remove(&id);
    }

    // ---- Ends of tracees ----

    fn ended(&mut self, TraceeStop { id, status }: TraceeStop) {
        if !self.tasks.contains_key(&id) {
            // This tracee was killed before its first stop and before the event of its fork, so it is taken into the
            // recording now.
            self.adopt(id);
        }
        let time = host::now();
        let process = self.process_of(id);
        if let Some(totals) = proc::final_totals(id) {
            self.push_account(time, id, id, totals);
        }
        let reaped = if id == self.root {
            sys::reap_with_usage(id)
        } else {
            sys::reap(id);
            None
        };
        self.tasks.remove(&id);
        self.early.remove(&id);
        self.leaving.remove(&id);
        if id == process {
            self.adopted.retain(|_, parent| *parent != id);
        }
        let status = status.cast_unsigned();
        self.waiting.end(time, (id, process), Some(status));
        if id == self.root {
            if let Some((status, _)) = reaped {
                rescue::note(Some(Stage::Ended(status.cast_unsigned())));
            }
            self.reaped = reaped.map(|(status, usage)| Reaped { status, usage });
            self.announce();
        }
    }

    /// Adds an event with the totals (run time, time in run queues, number of time slices) of the task that has the id
    /// `id` in `/proc`. The event names the task by the id `of`, which differs from `id` if an exec has just changed
    /// the task's id.
    fn account(&mut self, time: Ktime, id: Id, of: Id) {
        if let Some(totals) = proc::totals(id) {
            self.push_account(time, id, of, totals);
        }
    }

    /// The living traced threads of each process, with the process's first thread (leader) first.
    pub fn threads(&self) -> BTreeMap<Id, Vec<Thread>> {
        let mut threads: BTreeMap<Id, Vec<Thread>> = BTreeMap::new();
        for (id, task) in &self.tasks {
            let of = threads.entry(task.process).or_default();
            of.push((*id, task.since));
        }
        for (process, ids) in &mut threads {
            ids.sort_unstable_by_key(|(id, _)| (id != process, *id));
        }
        threads
    }

    /// Records the totals of CPU time of a process's threads. The lock of this state was not held while the totals were
    /// read, so a thread may have ended or executed a program meanwhile. The totals of such a thread are out of date
    /// and are dropped.
    pub fn sample(&mut self, threads: &[(Thread, Option<proc::Totals>)]) {
        let time = host::now();
        let is_same = |(id, since): Thread| {
            let task = self.tasks.get(&id);
            task.is_some_and(|task| task.since == since) && !self.leaving.contains(&id)
        };
        let same: Vec<_> = threads.iter().filter(|(it, _)| is_same(*it)).collect();
        // If the totals of a thread are missing although its end was not reported, the thread has just executed a
        // program and got the tid of the main thread. The totals that were read for that tid may then belong to
        // either thread. So no totals of this process are recorded.
        let totals: Option<Vec<_>> = same
            .iter()
            .map(|((id, _), totals)| Some((*id, (*totals)?)))
            .collect();
        for (id, totals) in totals.into_iter().flatten() {
            self.push_account(time, id, id, totals);
        }
    }

    fn push_account(&mut self, time: Ktime, id: Id, of: Id, totals: proc::Totals) {
        let task = (of, self.process_of(id));
        self.waiting.account(time, task, totals);
    }
}
