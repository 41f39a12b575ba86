//! Who was there at a moment of the recording, and what was last seen of each: put
//! into the trace from time to time, so that who looks at a part of it need not read
//! all that was before.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::{Argv, CgroupId, Comm, CpuId, Exit, Ktime, Stream, Tgid, Tid};
use crate::frame::kind;
use crate::index::Row;
use crate::limits;
use crate::reader::unpacked;
use crate::scan::{header_at, payload_at};
use crate::source::Source;
use crate::Fault;

/// What all events stamped before a moment have led to.
///
/// It says what was seen, not what it means: the last events of every task that
/// lived then, and what lifecycle events have told of it and its process. Tasks and
/// processes name each other by their places in the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The moment: every event stamped before it has been taken into account, and
    /// none from it on.
    pub at: Ktime,
    /// Processes that have a living thread, in the order in which they came to be.
    pub processes: Vec<Process>,
    /// Living threads, in the order in which they came to be. One that has begun to
    /// exit lives until its [`crate::event::Final`].
    pub tasks: Vec<Task>,
    /// CPUs that have switched.
    pub cpus: Vec<Cpu>,
    /// Paths of cgroups.
    pub cgroups: Vec<(CgroupId, Box<[u8]>)>,
}

/// Adds a frame's row to the rows of checkpoints, if it is one's; takes those away that
/// came too late for an event in it. What is left of all rows of a trace, in file order,
/// are the checkpoints that tell of every event before their moment.
pub(crate) fn sift(checkpoints: &mut Vec<Row>, row: &Row) {
    let header = &row.header;
    if header.kind == kind::CHECKPOINT {
        checkpoints.push(*row);
    } else if header.events > 0 && tells(header.stream()) {
        too_late(checkpoints, header.min);
    }
}

/// Whether events of that stream have to do with checkpoints. The recorder's own words are
/// of the past by nature.
pub(crate) fn tells(stream: Option<Stream>) -> bool {
    stream != Some(Stream::Recorder)
}

/// Takes away the checkpoints that came too late for an event with that time.
pub(crate) fn too_late(checkpoints: &mut Vec<Row>, event: u64) {
    while checkpoints.pop_if(|row| row.header.min > event).is_some() {}
}

/// Reads the checkpoint of a row, of the trace with that id.
pub(crate) fn read(source: &Source, id: u32, row: &Row) -> Result<Checkpoint, Fault> {
    let (header, len) = header_at(source, row.offset, id)?;
    if header.kind != kind::CHECKPOINT {
        return Err(Fault::Index);
    }
    let payload = payload_at(source, row.offset + len, &header)?;
    let (checkpoint, _) = unpacked::<Checkpoint>(&payload)?;
    match checkpoint.at == Ktime(row.header.min) && checkpoint.is_sound() {
        true => Ok(checkpoint),
        false => Err(Fault::Content("the checkpoint contradicts itself")),
    }
}

impl Checkpoint {
    /// Whether all places that are named are there, nobody is there twice, and there are
    /// not too many.
    pub(crate) fn is_sound(&self) -> bool {
        let process = |place: u32| (place as usize) < self.processes.len();
        let task = |place: u32| (place as usize) < self.tasks.len();
        let who = |who: &Who| match who {
            Who::Task(place) => task(*place),
            Who::Other(_) | Who::Interrupt => true,
        };
        let step = |step: &Step| match step {
            Step::Left { next, .. } => who(next),
            Step::Woken { by } => who(by),
            Step::Listed { .. } | Step::Came { .. } | Step::Ran { .. } => true,
        };
        let pids: HashSet<Tgid> = self.processes.iter().map(|process| process.pid).collect();
        let tids: HashSet<Tid> = self.tasks.iter().map(|task| task.tid).collect();
        let few = |count: usize| count as u64 <= limits::CHECKPOINT_TASKS;
        few(self.tasks.len())
            && few(self.processes.len())
            && pids.len() == self.processes.len()
            && tids.len() == self.tasks.len()
            && self
                .processes
                .iter()
                .all(|one| one.parent.is_none_or(process))
            && self.cpus.iter().all(|cpu| who(&cpu.current))
            && self.tasks.iter().all(|one| {
                process(one.process)
                    && one.parent.is_none_or(task)
                    && one.vfork_child.is_none_or(task)
                    && one.steps.iter().all(step)
            })
    }
}

/// A living process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its pid.
    pub pid: Tgid,
    /// Its parent's pid, if a fork or a listing has told that.
    pub ppid: Option<Tgid>,
    /// Its parent's place, if that lives.
    pub parent: Option<u32>,
    /// Its fork was seen.
    pub forked: bool,
    /// It is a kernel thread.
    pub kthread: bool,
    /// Its cgroup.
    pub cgroup: CgroupId,
    /// The arguments it shows.
    pub argv: Argv,
    /// What it executes: path (empty when it was listed) and name; `None` for one that
    /// has not executed anything since its fork.
    pub program: Option<(Arc<[u8]>, Comm)>,
    /// Its raw `wait` status, if it has been told: of the process, or else of its
    /// leader that is gone.
    pub status: Option<u32>,
    /// Largest resident set in bytes, if it has been told.
    pub max_rss: Option<u64>,
    /// Faults and I/O of its threads that have exited and are gone, together; all else
    /// in it is 0. `None` when there is none.
    pub gone: Option<Exit>,
}

/// A living thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its tid.
    pub tid: Tid,
    /// Its tid in its own pid namespace.
    pub ns_tid: Tid,
    /// Its process's place.
    pub process: u32,
    /// The place of who forked it, if that lives and the fork was seen.
    pub parent: Option<u32>,
    /// Its fork was seen; else it was listed.
    pub forked: bool,
    /// Its name.
    pub comm: Comm,
    /// Its exit, if it has begun, and when.
    pub exit: Option<(Ktime, Exit)>,
    /// The child that runs in its memory (vfork) and has neither executed nor exited.
    pub vfork_child: Option<u32>,
    /// Its last events that say what it is doing, in order.
    pub steps: Vec<Step>,
}

/// What an event has said of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// It was listed as alive.
    Listed {
        /// Raw state bits.
        state: u16,
        /// It was on a CPU.
        on_cpu: bool,
    },
    /// It was switched in.
    Came {
        /// Where.
        cpu: CpuId,
    },
    /// It was seen running, and had not been seen to come there.
    Ran {
        /// Where.
        cpu: CpuId,
    },
    /// It was switched out.
    Left {
        /// Where.
        cpu: CpuId,
        /// Its raw state bits.
        state: u16,
        /// It was preempted.
        preempt: bool,
        /// It waits for block I/O.
        iowait: bool,
        /// A child ran in its memory then.
        vfork: bool,
        /// Who came.
        next: Who,
    },
    /// It was woken.
    Woken {
        /// By whom.
        by: Who,
    },
}

/// Another task, as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Who {
    /// A living thread, by its place.
    Task(u32),
    /// Another task: not recorded, or gone since.
    Other(Tid),
    /// An interrupt.
    Interrupt,
}

/// A CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number.
    pub cpu: CpuId,
    /// Who came by its last switch.
    pub current: Who,
}
