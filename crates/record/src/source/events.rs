//! Keeps the events that a thread of the recorder makes until the writer takes them.

use std::collections::HashMap;

use tr_format::event::{
    Account, Comm, Exec, Fork, Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream, TaskEnd,
};
use tr_format::Error;

use super::{recorder, Drained, Take};
use crate::proc::{self, tgid, tid, Id, Totals};
use crate::scripts::Runner;

/// The largest memory in bytes of events that wait until the writer takes them.
const MOST_BYTES: usize = 16 << 20;

/// The id of a task and the id of its process.
type Task = (Id, Id);

/// The events that a thread of the recorder has made and that wait to be taken into a batch.
#[derive(Debug, Default)]
pub struct Waiting {
    events: Vec<LifeEvent>,
    /// The user, the group and the root directory ([`Runner`]) of the task of each waiting exec event whose program is
    /// a shell with a script, by the index of the event.
    runners: HashMap<usize, Runner>,
    bytes: usize,
    /// The times of the first and the last event that were lost because too many events waited for the
    /// writer, and the number of lost events.
    lost: Option<(Ktime, Ktime, u64)>,
}

impl Waiting {
    /// Adds an event to the events that wait for the writer, or counts it as lost if there is no room.
    pub fn push(&mut self, time: Ktime, kind: LifeKind) {
        let strings = match &kind {
            LifeKind::Exec(exec) => exec.argv.bytes.len() + exec.filename.len(),
            LifeKind::Degraded(degraded) => degraded.what.len(),
            _ => 0,
        };
        let size = size_of::<LifeEvent>() + strings;
        if self.bytes + size > MOST_BYTES {
            let (_, until, count) = self.lost.get_or_insert((time, time, 0));
            (*until, *count) = (time, *count + 1);
            return;
        }
        self.report_lost();
        self.bytes += size;
        self.events.push(recorder(time, kind));
    }

    /// Adds the first events of a recording: COMMAND's process before its release, and the process's totals of CPU time
    /// so far.
    pub fn begin(&mut self, start: Ktime, root: Id) {
        let task = proc::command(root, start);
        self.push(start, LifeKind::Snapshot(task));
        if let Some(totals) = proc::totals(root) {
            self.account(start, (root, root), totals);
        }
    }

    /// Adds the event of a fork to the waiting events. The new task has the name of its parent.
    pub fn fork(&mut self, time: Ktime, parent: Task, child: Task, comm: Comm) {
        let fork = Fork {
            parent_tid: tid(parent.0),
            parent_tgid: tgid(parent.1),
            tid: tid(child.0),
            tgid: tgid(child.1),
            start_time: time,
            ns_tid: tid(child.0),
            comm,
            ..Fork::default()
        };
        self.push(time, LifeKind::Fork(fork));
    }

    /// Adds the event of an exec to the waiting events. For a shell with a script, `runner` has the user, the group
    /// and the root directory of the task.
    pub fn exec(&mut self, time: Ktime, exec: Exec, runner: Option<Runner>) {
        let at = self.events.len();
        self.push(time, LifeKind::Exec(exec));
        // The index of the added event can differ from `at`: an event about a loss may have been added before it, or
        // there was no room for it.
        let added = self.events.len().checked_sub(1).filter(|last| *last >= at);
        if let Some((at, runner)) = added.zip(runner) {
            self.runners.insert(at, runner);
        }
    }

    /// Adds an event to the waiting events. The event has the totals of a task so far: its run time, its time in run
    /// queues and the number of its time slices.
    pub fn account(&mut self, time: Ktime, task: Task, totals: Totals) {
        let (sum_exec_runtime, run_delay, slices) = totals;
        let account = Account {
            tid: tid(task.0),
            tgid: tgid(task.1),
            sum_exec_runtime,
            run_delay: Some(run_delay),
            slices: Some(slices),
        };
        self.push(time, LifeKind::Account(account));
    }

    /// Adds the event that a task has ended to the waiting events. The main thread of a process must be added after
    /// all of its other threads, because its end is stored as the end of the process.
    pub fn end(&mut self, time: Ktime, task: Task, status: Option<u32>) {
        let end = TaskEnd {
            tid: tid(task.0),
            tgid: tgid(task.1),
            status,
            group_dead: task.0 == task.1,
            ..TaskEnd::default()
        };
        self.push(time, LifeKind::End(end));
    }

    /// Sets the parent of a forked task to `parent`, if the event of that fork still waits to be taken.
    pub fn correct_fork(&mut self, child: Id, parent: Task) {
        let mut events = self.events.iter_mut().rev();
        let fork = events.find_map(|event| match &mut event.kind {
            LifeKind::Fork(fork) if fork.tid == tid(child) => Some(fork),
            _ => None,
        });
        if let Some(fork) = fork {
            (fork.parent_tid, fork.parent_tgid) = (tid(parent.0), tgid(parent.1));
        }
    }

    fn report_lost(&mut self) {
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

    /// The memory in bytes of the recorder's events that wait until the writer takes them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn take(&mut self) -> Events {
        self.report_lost();
        let Waiting {
            events,
            runners,
            bytes,
            ..
        } = std::mem::take(self);
        Events {
            events,
            runners,
            bytes,
        }
    }
}

/// Events that a thread of the recorder has made, on their way to the thread that writes the trace.
pub struct Events {
    events: Vec<LifeEvent>,
    runners: HashMap<usize, Runner>,
    bytes: usize,
}

impl Drained for Events {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&self, _near: Ktime, to: &mut dyn Take) -> Result<(), Error> {
        for (at, event) in self.events.iter().enumerate() {
            if let Some(runner) = self.runners.get(&at) {
                to.runs(*runner);
            }
            let stream = match event.kind {
                LifeKind::Lost(_) | LifeKind::Snapshot(_) => Stream::Recorder,
                _ => Stream::Lifecycle,
            };
            to.life(stream, event.clone())?;
        }
        Ok(())
    }
}
