//! Defines the sources of a recording's events. A source collects events on the recorder's main thread, or on its own
//! one, and the writing thread converts them. Each method of recording has a folder or file in this module; `choose`
//! chooses one.

pub mod bpf;
pub mod choose;
mod events;
pub mod ptrace;
mod sampler;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use tr_format::event::{CpuId, Degraded, Ktime, LifeEvent, LifeKind, SchedEvent, Stream};
use tr_format::meta::{Missing, Origin, Scope};

use crate::config::{Config, Follow};
use crate::error::Error;
use crate::mappings::Mapped;
use crate::proc::{self, Alive, Id};
use crate::scripts::Runner;
use crate::stacks::Stacked;

/// The interval between two drains of a source, unless the source needs an earlier drain (`Source::ready`). A drain of
/// slots and rings costs some 100 µs, most of it for the wake-up.
pub const DRAIN_EVERY: Duration = Duration::from_millis(350);

/// The interval between two drains of the source in a light recording (`--light`). Such a recording has few events, and
/// a ring with room for a burst of them.
const LIGHT_DRAIN: Duration = Duration::from_secs(1);

/// The interval between two drains of the source, for a recording with these settings.
pub fn drain_interval(config: &Config) -> Duration {
    if config.facts.light {
        LIGHT_DRAIN
    } else {
        DRAIN_EVERY
    }
}

pub trait Source {
    /// A descriptor that becomes readable when events have to be drained before the next interval ends. The descriptor
    /// stays the same for the whole recording.
    fn ready(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Collects the events that have come since the last call. A source whose own thread collects the events does
    /// nothing here.
    fn drain(&mut self, _room: bool) {}

    /// Begins the recording of events, before COMMAND is released.
    fn begin(&mut self, _start: Ktime) {}

    /// Returns events with the sums that the kernel has added up since the last call of this function, for example
    /// the number and the bytes of requests to disks. A source without such sums returns none.
    fn sums(&mut self) -> Vec<LifeEvent> {
        Vec::new()
    }

    /// The sum of the resident memory of the followed processes in bytes, if the kernel adds it up.
    fn resident(&mut self) -> Option<u64> {
        None
    }

    /// Ends a part of the recording and begins another. Returns the events around the change of parts; `None` if
    /// this source cannot divide a recording.
    fn change_part(&mut self, _time: Ktime) -> Option<PartEvents> {
        None
    }

    /// The memory in bytes of the collected events that wait to be taken, and whether one of them has to be written
    /// soon.
    fn waiting(&self) -> (usize, bool);

    /// Hands over the collected events of the source. The writing thread converts them.
    fn take(&mut self) -> Box<dyn Drained>;

    /// Drains COMMAND's last events from the source, after the end of COMMAND's process.
    fn drain_command(&mut self);

    /// The processes that the source follows and that have not ended, except the process `command`.
    fn alive(&mut self, command: Option<u32>) -> Vec<Alive>;

    /// The ids of the followed processes that have not ended, including those of servers.
    fn working(&mut self) -> Vec<u32> {
        self.alive(None).iter().map(|process| process.pid).collect()
    }

    /// Whether a process has sent this signal both to COMMAND and to `tr`, so that it must not be passed on. `false`
    /// if that is unknown: a signal that arrives twice does less harm than a lost one.
    fn sent_to_both(&self, _signal: u32) -> bool {
        false
    }

    /// Whether COMMAND is stopped, as far as the source has seen. For a traced COMMAND no wait of `tr` reports the
    /// stop.
    fn has_stopped_command(&self) -> bool {
        false
    }

    /// Whether the source receives SIGCHLD. Such a source makes the descriptor `ready` readable when COMMAND has
    /// ended or stopped.
    fn takes_children(&self) -> bool {
        false
    }

    /// Whether the source has seen a new stop of COMMAND since the last call of this function.
    fn take_stop(&self) -> bool {
        false
    }

    /// Ends the source: collects its last events, and follows no task any more. `span` is the start and the end of
    /// the recording.
    fn stop(&mut self, span: (Ktime, Ktime)) -> Last;
}

/// The end of COMMAND, as a wait has returned it: its status and its resources.
#[derive(Clone, Copy, Debug)]
pub struct Reaped {
    /// The raw `wait` status with which COMMAND ended.
    pub status: i32,
    /// The resources of COMMAND and of the descendants that it waited for.
    pub usage: libc::rusage,
}

/// The facts that only the BPF programs can record, as text for the user.
pub(crate) const NEEDS_PROGRAMS: &str =
    "containers and servers that work for COMMAND: recorded only with BPF rights";

/// The results that a source of events returns when it ends.
#[derive(Debug, Default)]
pub struct Last {
    /// The losses of events that the BPF programs or the kernel have counted, but that none of the drained events
    /// reports.
    pub losses: Vec<LifeEvent>,
    /// The CPU time in ns that the source took in the kernel; `None` if it is not counted.
    pub kernel_ns: Option<u64>,
    /// The end of COMMAND, if the source has waited for COMMAND. No other part of the recorder can wait for COMMAND
    /// then.
    pub reaped: Option<Reaped>,
    /// Whether a program ran without rights that it would have had without the recording (setuid, setgid,
    /// capabilities).
    pub took_rights: bool,
}

/// The events around the change from one part of a recording to the next.
#[derive(Debug, Default)]
pub struct PartEvents {
    /// The last events of the ending part of a recording that `--rotate` divides.
    pub last: Vec<LifeEvent>,
    /// The first events of the next part of the recording: the living tasks and their totals (CPU time and the like) so
    /// far.
    pub first: Vec<LifeEvent>,
    /// The CPU time in ns that the source has taken in the kernel so far; `None` if it is not counted.
    pub kernel_ns: Option<u64>,
}

/// The clock `CLOCK_MONOTONIC` of a process that is in another time namespace than the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramClock {
    /// The id of the process in the first pid namespace, and its id in its own pid namespace.
    pub pids: [u32; 2],
    /// The nanoseconds that the process's time namespace adds to the kernel's clock.
    pub offset: i128,
}

pub trait Drained: Send {
    /// The memory in bytes of the events that were collected.
    fn bytes(&self) -> usize;

    /// Converts the collected events and passes them to `to`. The events of each stream keep their order. Some events
    /// have only the low bits of their times. The high bits are taken from `near`, which is any time of the recording.
    fn write(&self, near: Ktime, to: &mut dyn Take) -> Result<(), tr_format::Error>;
}

/// A receiver of a source's converted events, which writes them to the trace file. Its errors are those of the
/// output.
pub trait Take {
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) -> Result<(), tr_format::Error>;
    fn life(&mut self, stream: Stream, event: LifeEvent) -> Result<(), tr_format::Error>;
    fn stack(&mut self, sample: &Stacked) -> Result<(), tr_format::Error>;
    /// Takes the memory mappings of a process, before samples of the process's stacks.
    fn mapped(&mut self, from: &Mapped);
    /// Takes the user, the group and the root directory of the task of the next exec event. They decide which script
    /// file the task opens.
    fn runs(&mut self, runner: Runner);
    /// Takes the clock of a process in another time namespace, where programs read another time than the recorder does.
    /// It comes before the marks (named moments) that the process has set.
    fn clock_of(&mut self, clock: ProgramClock);
}

/// A function that gets the listener for COMMAND's announcements of calls of ptrace(2), or `None` if the filter that
/// announces them could not be installed.
pub type Listen = Box<dyn FnOnce(Option<OwnedFd>)>;

/// A source of events that has started, and what is known about it. COMMAND can now be released.
pub struct Started {
    pub source: Box<dyn Source>,
    /// The function that receives COMMAND's announcements of calls of ptrace(2); `None` if COMMAND announces
    /// nothing.
    pub listen: Option<Listen>,
    pub scope: Scope,
    /// The id of COMMAND's process: in the first pid namespace if BPF programs record it, otherwise in `tr`'s own
    /// one; `None` without a COMMAND.
    pub root: Option<u32>,
    /// How the source obtains each kind of fact; `None` for BPF programs that `tr` itself has attached, unless the
    /// recording is light.
    pub origin: Option<Origin>,
    /// The numbers of the kinds of optional facts ([`Extra`](tr_format::meta::Extra)) that this source records.
    pub extras: Option<Vec<u8>>,
    /// The facts that this source cannot record on this machine.
    pub missing: Vec<Missing>,
    /// Whether recorded wake-ups show whether an interrupt caused them.
    pub irq_known: bool,
    /// The memory in bytes of all buffers (slots and rings) from which the source gets events.
    pub buffer: u64,
    pub living: Vec<LifeEvent>,
}

impl Started {
    /// Makes the description of a started source without BPF, which records COMMAND's process `root` and lacks the
    /// facts `lacks`.
    fn without_bpf(
        source: impl Source + 'static,
        root: Id,
        origin: Origin,
        lacks: &[&str],
    ) -> Started {
        Started {
            source: Box::new(source),
            listen: None,
            scope: Scope::Command,
            root: Some(root.unsigned_abs()),
            origin: Some(origin),
            extras: None,
            missing: lacks.iter().map(|why| Missing::new(None, why)).collect(),
            irq_known: false,
            buffer: 0,
            living: Vec::new(),
        }
    }
}

/// The id of COMMAND's process, for a recording without BPF. An error if such a recording is not possible: it needs the
/// tasks' totals of CPU time in `/proc`, and it can record only COMMAND and its descendants.
fn command_alone(config: &Config, child: Option<u32>) -> Result<Id, Error> {
    let root = child.and_then(|pid| Id::try_from(pid).ok());
    let root =
        root.filter(|_| config.scope.follow == Follow::Command && config.scope.cpus.is_none());
    let root = root.ok_or(Error::NeedsBpf)?;
    match (proc::totals(root), proc::stat(root)) {
        (Some(_), Some(_)) => Ok(root),
        _ => Err(Error::NoTotals),
    }
}

/// Makes the event which says that the recording lacks the facts `what` from now on.
pub fn degraded(what: impl Into<Vec<u8>>) -> LifeKind {
    let what = what.into().into();
    LifeKind::Degraded(Degraded { what })
}

/// Makes an event of the recorder itself, which belongs to no CPU.
pub fn recorder(time: Ktime, kind: LifeKind) -> LifeEvent {
    LifeEvent {
        time,
        cpu: None,
        kind,
    }
}
