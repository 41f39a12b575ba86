//! The sources of a recording's events. A source collects them on the recorder's main
//! thread; the writing thread converts them.

pub mod bpf;
mod events;
mod poll;
mod proc;
pub mod ptrace;
mod sampler;

use std::os::fd::{BorrowedFd, OwnedFd};

use tr_bpf::Refusal;
use tr_format::event::{
    Argv, CgroupId, CpuId, Ktime, LifeEvent, LifeKind, SchedEvent, Snapshot, Stream, Tgid, Tid,
};
use tr_format::meta::{Origin, Scope};

use self::bpf::{sudo, Loader};
use crate::command::Reaped;
use crate::config::{Choice, Config, Follow};
use crate::mappings::Mapped;
use crate::session::Alive;
use crate::stacks::Stacked;
use crate::Error;

/// A source of events.
pub trait Source {
    /// Readable when events have to be drained before the next interval; the same descriptor
    /// for the whole recording.
    fn ready(&self) -> Option<BorrowedFd<'_>>;

    /// Collects the events that have come.
    fn drain(&mut self, room: bool);

    /// COMMAND will be released; the recording begins.
    fn begin(&mut self, _start: Ktime) {}

    /// Reads the sums that the kernel keeps for the recorder: an event of each since the last
    /// reading. A source without such sums has none.
    fn sums(&mut self) -> Vec<LifeEvent> {
        Vec::new()
    }

    /// The resident memory of the followed processes together in bytes, where the kernel adds
    /// it up.
    fn resident(&mut self) -> Option<u64> {
        None
    }

    /// The memory of the collected events, in bytes.
    fn bytes(&self) -> usize;

    /// Hands the collected events on.
    fn take(&mut self) -> Box<dyn Drained>;

    /// Drains COMMAND's last events, after the end of its process.
    fn drain_command(&mut self);

    /// COMMAND has to announce calls of ptrace(2), to the descriptor that
    /// [`Source::listen`] gets.
    fn wants_calls(&self) -> bool {
        false
    }

    /// The listener of COMMAND's filter; `None`: the filter could not be installed.
    fn listen(&mut self, _listener: Option<OwnedFd>) {}

    /// COMMAND's end, if the source has waited for it: no other wait can.
    fn reaped(&mut self) -> Option<Reaped> {
        None
    }

    /// COMMAND is stopped, and no wait of `tr` shows it.
    fn has_stopped_command(&self) -> bool {
        false
    }

    /// The followed processes that have not ended, without `command`.
    fn alive(&mut self, command: Option<u32>) -> Vec<Alive>;

    /// A process has sent this signal to COMMAND and to `tr`.
    fn sent_to_both(&self, signal: u32) -> bool;

    /// A program ran without rights that it has if it is not recorded.
    fn took_rights(&self) -> bool {
        false
    }

    /// Collects the last events. Nothing is followed afterwards.
    fn stop(&mut self, span: (Ktime, Ktime)) -> Last;
}

/// The end of a source.
#[derive(Debug, Default)]
pub struct Last {
    /// Losses that no drained event reports.
    pub losses: Vec<LifeEvent>,
    /// CPU time of the source in the kernel, in ns, where that is counted.
    pub kernel_ns: Option<u64>,
}

/// Collected events.
pub trait Drained: Send {
    /// Their memory in bytes.
    fn bytes(&self) -> usize;

    /// Converts them, in the order of each stream. `near` is a time of the recording.
    ///
    /// # Errors
    /// Those of `to`.
    fn write(&self, near: Ktime, to: &mut dyn Take) -> Result<(), tr_format::Error>;
}

/// Takes stored events.
pub trait Take {
    /// Takes a scheduling event.
    ///
    /// # Errors
    /// The output's.
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) -> Result<(), tr_format::Error>;

    /// Takes another event.
    ///
    /// # Errors
    /// The output's.
    fn life(&mut self, stream: Stream, event: LifeEvent) -> Result<(), tr_format::Error>;

    /// Takes a task's stack.
    ///
    /// # Errors
    /// The output's.
    fn stack(&mut self, sample: &Stacked) -> Result<(), tr_format::Error>;

    /// Takes the mappings of a process, before its samples.
    fn mapped(&mut self, from: &Mapped);
}

/// A source that is ready for the release of COMMAND.
pub struct Started {
    /// The source.
    pub source: Box<dyn Source>,
    /// The followed tasks.
    pub scope: Scope,
    /// COMMAND's process, by the host's pid.
    pub root: Option<u32>,
    /// How the facts are known; `None`: the kernel stamps all of them.
    pub origin: Option<Origin>,
    /// The numbers of the [`Extra`](tr_format::meta::Extra)s that this source records.
    pub extras: Option<Vec<u8>>,
    /// Facts that this source does not record here, in words.
    pub missing: Vec<String>,
    /// Wake-ups by interrupts are recorded as such.
    pub irq_known: bool,
    /// The memory of all rings in bytes.
    pub buffer: u64,
    /// The living tasks.
    pub living: Vec<LifeEvent>,
}

/// Starts the chosen source, or the best that works here; with the refusals of the better
/// ones. `child` is COMMAND's process before its release.
///
/// # Errors
/// No source works, or there is no such target.
pub fn start(
    config: &Config,
    child: Option<u32>,
    online: &[CpuId],
) -> Result<(Started, Vec<Error>), Error> {
    let by = |loader| bpf::start(config, loader, child, online);
    let refused = match config.method {
        Choice::Ptrace => return Ok((ptrace::start(config, child)?, Vec::new())),
        Choice::Poll => return Ok((poll::start(config, child)?, Vec::new())),
        Choice::Bpf => return Ok((by(Loader::Own)?, Vec::new())),
        Choice::Sudo => return Ok((by(Loader::Sudo)?, Vec::new())),
        Choice::Auto => match by(Loader::Own) {
            Ok(started) => return Ok((started, Vec::new())),
            Err(error) => error,
        },
    };
    let mut refusals = Vec::new();
    if asks_sudo(&refused) {
        match by(Loader::Sudo) {
            Ok(started) => return Ok((started, vec![refused])),
            Err(error @ (Error::Sudo(_) | Error::Tracing(_))) => refusals.push(error),
            Err(error) => return Err(error),
        }
    }
    let other = config.follow == Follow::Command && config.cpus.is_none();
    if !other || !matches!(refused, Error::Tracing(_)) {
        return Err(refused);
    }
    let traced = !config.no_ptrace && !gains_rights(config);
    let traced = traced.then(|| ptrace::start(config, child));
    let started = match traced {
        Some(Ok(started)) => Ok(started),
        None | Some(Err(_)) => poll::start(config, child),
    };
    match started {
        Ok(started) => {
            refusals.insert(0, refused);
            Ok((started, refusals))
        }
        Err(_) => Err(refused),
    }
}

/// COMMAND is a setuid or setgid program, which ptrace would take its rights.
pub fn gains_rights(config: &Config) -> bool {
    let file = config
        .command
        .first()
        .map(|name| crate::command::find(name));
    matches!(file, Some(Ok(Some(file))) if proc::gains_rights(&file))
}

/// `auto` asks sudo after this refusal: root's rights remedy it, and sudo asks for no password
/// here.
pub fn asks_sudo(refused: &Error) -> bool {
    let Error::Tracing(tr_bpf::Error::Refused(refusal)) = refused else {
        return false;
    };
    matches!(refusal, Refusal::Capabilities { root: false, .. }) && sudo::is_usual()
}

/// An event of the recorder's own.
pub fn recorder(time: Ktime, kind: LifeKind) -> LifeEvent {
    LifeEvent {
        time,
        cpu: None,
        kind,
    }
}

/// COMMAND's process before its release, as the recording's first task.
fn command(id: proc::Id, time: Ktime) -> Snapshot {
    let pid = id.unsigned_abs();
    Snapshot {
        tid: Tid(pid),
        tgid: Tgid(pid),
        parent_tgid: Tgid(std::process::id()),
        start_time: time,
        ns_tid: Tid(pid),
        cgroup: CgroupId(0),
        comm: proc::comm(id).unwrap_or_default(),
        argv: Argv::from_args([""; 0]),
        state: 1,
        on_cpu: false,
        kthread: false,
        followed: true,
        sum_exec_runtime: proc::totals(id).map_or(0, |(run, ..)| run),
    }
}

/// These processes without COMMAND's.
fn alive(processes: &[proc::Id], command: Option<u32>) -> Vec<Alive> {
    let others = processes.iter().map(|id| (*id, id.unsigned_abs()));
    let others = others.filter(|(_, pid)| Some(*pid) != command);
    let alive = others.map(|(id, pid)| Alive {
        pid,
        comm: proc::comm(id).unwrap_or_default(),
    });
    alive.collect()
}
