//! Finds out from exit statuses, signals and the senders of signals how processes ended.

use std::collections::{BTreeMap, BTreeSet};
use tr_programs::table::utilities::UtilityUse;

use tr_analyze::arena::Arena;
use tr_analyze::containers::Called;
use tr_analyze::memory::killed;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::own::Own;
use tr_analyze::status::{self, Purpose, KILL};
use tr_analyze::stopped::{sender, Sender, TimeOut};
use tr_format::meta::{EndedByLimit, Extra};

use super::passes::{is_unstarted, program_start, MOST_EXAMINED};
use super::scripts;
use tr_insight::processes::timeout::timed_out;
use tr_insight::processes::{exit, label};
use tr_insight::resources::memory::limit;
use tr_insight::views::query;
use tr_text::called::TR;
use tr_text::phrase::Phrase;
use tr_text::{escape, units};

/// The word that is printed before the name of a failure if this failure is only one of several possible reasons.
pub const PERHAPS: &str = "perhaps ";

/// The divisor of the life of a worker process that was stopped after a time-out. If another worker of the same pool
/// ended successfully during the last tenth of this life, the pool was only being closed, and the stopped worker did
/// not fail. A guess: Jest gives a worker half a second to end by itself, which is some percent of the time of a suite.
const CLOSING_PART: u64 = 10;

/// The facts about how the processes of a recording ended, and which processes stopped them.
pub(super) struct ProcessEnds<'a> {
    /// The processes that the kernel killed for lack of memory, with their resident memory in bytes.
    pub(super) out_of_memory: BTreeMap<ProcessIx, Option<u64>>,
    /// For each process, the container in which the process runs. The field is filled in only if the kernel killed a
    /// process for lack of memory.
    pub(super) containers: Option<Arena<ProcessIx, Option<&'a Called>>>,
    /// Whether the recorder also recorded the kills for lack of memory, so that any other SIGKILL was sent on purpose.
    pub(super) has_kills: bool,
    /// For each process that a signal of an ancestor certainly or probably ended, the facts about this end.
    stops: BTreeMap<ProcessIx, Stop>,
    /// The processes that were certainly stopped by another process that is not their ancestor, such as a sibling.
    by_neighbours: BTreeSet<ProcessIx>,
    /// The memory limit in bytes of the cgroup in which COMMAND ran.
    pub(super) limit: Option<u64>,
    pub(super) own: Own,
}

/// The way in which a failed process or step ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureEnd {
    /// The step failed, and nothing more is known about how it ended.
    #[default]
    Failed,
    /// The failed process or step ended with this raw status of `wait`.
    Status(u32),
    /// A shell or a make failed because a program could not be started. `status` is the raw exit status of the shell,
    /// or of the process that was forked to run the program.
    Unstarted {
        status: u32,
        /// The name of the program that could not be started, if the text of the shell's script shows it.
        program: Option<String>,
    },
    /// Another program ended the failed process after a time-out.
    Stopped {
        by: &'static str,
        is_proven: bool,
        status: u32,
        /// The label of the program for which the stopped process was waiting. `None` if the process waited for no
        /// program, or if the process's own command line already names that program.
        awaited: Option<Phrase>,
    },
    /// The process is a `timeout` that ended the program which it ran, because the time limit had passed.
    TimedOut {
        status: u32,
        /// The label of the program for which the process was waiting, as for [`FailureEnd::Stopped`].
        awaited: Option<Phrase>,
    },
    /// The recorder ended the failed process, because COMMAND had reached a limit that the user had set.
    EndedByLimit(EndedByLimit),
    /// The kernel killed the failed process for lack of memory. The sizes are in bytes.
    OutOfMemory {
        container: Option<String>,
        resident: Option<u64>,
        limit: Option<u64>,
    },
    /// A test runner reported that the test failed, in these words.
    Reported(String),
}

impl FailureEnd {
    /// The words for the way in which a process or step ended, such as `exit 1` or `killed: out of memory`.
    pub fn text(&self) -> Phrase {
        match self {
            FailureEnd::Failed => "failed".into(),
            FailureEnd::Status(status) => exit::words(*status).into(),
            FailureEnd::Unstarted { status, program } => {
                let reason = if status::code(*status) == Some(126) {
                    "not executable"
                } else {
                    "no such program"
                };
                let program = program.as_deref().map(|program| format!(": {program}"));
                let program = program.unwrap_or_default();
                format!("{} ({reason}{program})", exit::words(*status)).into()
            }
            FailureEnd::Stopped {
                by,
                is_proven,
                status,
                awaited,
            } => {
                let perhaps = if *is_proven { "" } else { PERHAPS };
                let status = exit::signal_or_code(*status);
                while_waiting(&format!("{perhaps}stopped by {by} ({status})"), awaited)
            }
            FailureEnd::TimedOut { status, awaited } => {
                let status = exit::signal_or_code(*status);
                while_waiting(&format!("timed out ({status})"), awaited)
            }
            FailureEnd::EndedByLimit(limit) => {
                format!("ended by {TR} at {}", exit::limit(*limit)).into()
            }
            FailureEnd::OutOfMemory {
                container,
                resident,
                limit,
            } => {
                let killed = match container {
                    Some(container) => format!("killed in {container}: out of memory"),
                    None => "killed: out of memory".into(),
                };
                let amounts = match (resident.map(units::bytes), limit.map(units::bytes)) {
                    (Some(resident), Some(limit)) => format!(" at {resident} of {limit}"),
                    (Some(resident), None) => format!(" at {resident}"),
                    (None, Some(limit)) => format!(", limit {limit}"),
                    (None, None) => String::new(),
                };
                (killed + &amounts).into()
            }
            FailureEnd::Reported(result) => result.as_str().into(),
        }
    }
}

/// The words for the end of a stopped process, and for the program that the process was waiting for, if there is such a
/// program.
fn while_waiting(end: &str, awaited: &Option<Phrase>) -> Phrase {
    match awaited {
        Some(awaited) => Phrase::with([awaited], |[awaited]| {
            format!("{end} while it waited for {awaited}")
        }),
        None => end.into(),
    }
}

impl<'a> ProcessEnds<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> ProcessEnds<'a> {
        let killed = killed(analysis).map(|kill| (kill.process, kill.resident));
        let out_of_memory: BTreeMap<_, _> = killed.collect();
        let containers = (!out_of_memory.is_empty()).then(|| query::containers(analysis));
        let mut sure = ProcessEnds {
            out_of_memory,
            containers,
            has_kills: analysis.meta.has(Extra::Memory),
            stops: BTreeMap::new(),
            by_neighbours: BTreeSet::new(),
            limit: limit(analysis),
            own: Own::of(analysis),
        };
        for (ix, sender) in senders(analysis, &sure) {
            let mut above = analysis.ancestors(ix).take(MOST_ANCESTORS);
            if above.any(|above| above == sender.process) {
                let is_parent = analysis.process(ix).parent == Some(sender.process);
                let is_of_a_closed_pool = is_of_a_closed_pool(analysis, ix);
                let stop = Stop {
                    by: if is_parent {
                        "its parent"
                    } else {
                        "what started it"
                    },
                    is_proven: sender.is_proven,
                    is_of_a_closed_pool,
                    time_out: if is_of_a_closed_pool {
                        TimeOut::No
                    } else {
                        sender.time_out
                    },
                };
                sure.stops.insert(ix, stop);
            } else if sender.is_proven {
                sure.by_neighbours.insert(ix);
            }
        }
        sure
    }

    /// The facts about the stop of a process by one of its ancestors; `None` if no ancestor stopped the process.
    pub(super) fn stop(&self, ix: ProcessIx) -> Option<&Stop> {
        self.stops.get(&ix)
    }

    /// Whether a process was certainly stopped by a process that is not its ancestor.
    pub(super) fn by_a_neighbour(&self, ix: ProcessIx) -> bool {
        self.by_neighbours.contains(&ix)
    }

    /// Whether an ancestor of a process certainly ended it, and not after a time-out, so that this end is no failure.
    pub(super) fn was_ended(&self, ix: ProcessIx) -> bool {
        let stop = self.stop(ix);
        stop.is_some_and(|stop| stop.is_proven && stop.time_out == TimeOut::No)
    }

    /// Whether a process was a worker of a pool (several workers of one owner), and the owner stopped the process
    /// because the worker was no longer needed.
    pub(super) fn was_closed(&self, ix: ProcessIx) -> bool {
        let stop = self.stop(ix);
        stop.is_some_and(|stop| stop.is_proven && stop.is_of_a_closed_pool)
    }

    /// Whether it is proven that an ancestor of a process stopped the process after a time-out.
    pub(super) fn was_stopped_late(&self, ix: ProcessIx) -> bool {
        let stop = self.stop(ix);
        stop.is_some_and(|stop| stop.is_proven && stop.time_out != TimeOut::No)
    }

    /// Whether a time-out certainly or perhaps ended a process, or the process is a `timeout` that ended its program.
    pub(super) fn was_late(&self, ix: ProcessIx, process: &Process) -> bool {
        let stop = self.stop(ix);
        timed_out(process) || stop.is_some_and(|stop| stop.time_out != TimeOut::No)
    }

    /// The limit by which the recorder ended a process, if a signal of the recorder can have ended it: the recorder
    /// ends COMMAND and its descendants last of all, by SIGTERM and SIGKILL.
    fn ended_by_limit(&self, analysis: &Analysis, process: &Process) -> Option<EndedByLimit> {
        let ended = analysis.summary.as_ref()?.ended?;
        let signal = process.status.and_then(status::ended_by)?;
        let is_late = process.end.since(analysis.meta.start) >= ended.ns;
        let is_sent = signal == KILL || status::is_for(signal, Purpose::Order);
        (is_late && is_sent).then_some(ended)
    }

    pub(super) fn end(&self, analysis: &Analysis, ix: ProcessIx) -> FailureEnd {
        let process = analysis.process(ix);
        let status = process.status.unwrap_or(0);
        let Some(resident) = self.out_of_memory.get(&ix) else {
            if let Some(stop) = self.stop(ix).filter(|stop| stop.time_out != TimeOut::No) {
                return FailureEnd::Stopped {
                    by: stop.by,
                    is_proven: stop.is_proven,
                    status,
                    awaited: None,
                };
            }
            if let Some(limit) = self.ended_by_limit(analysis, process) {
                return FailureEnd::EndedByLimit(limit);
            }
            return if timed_out(process) {
                FailureEnd::TimedOut {
                    status,
                    awaited: None,
                }
            } else if !is_unstarted(process) {
                FailureEnd::Status(status)
            } else if is_bare_fork(process) {
                let parent = process.parent.map(|ix| analysis.process(ix));
                let is_fork = |child: &Process| child.pid == process.pid;
                let program = parent.and_then(|shell| unstarted(analysis, shell, is_fork));
                FailureEnd::Unstarted { status, program }
            } else {
                match unstarted(analysis, process, |_| false) {
                    None => FailureEnd::Status(status),
                    program => FailureEnd::Unstarted { status, program },
                }
            };
        };
        let container = self
            .containers
            .as_ref()
            .and_then(|containers| containers[ix]);
        let limit = self
            .limit
            .filter(|limit| container.is_none() && resident.is_none_or(|bytes| bytes <= *limit));
        FailureEnd::OutOfMemory {
            container: container.map(label::container),
            resident: *resident,
            limit,
        }
    }

    /// Whether the signal that killed a process shows a crash. SIGKILL and the signals that programs send to end other
    /// programs in an orderly way show no crash.
    pub(super) fn is_crash(process: &Process) -> bool {
        let signal = exit::killed_by(process.status);
        signal.is_some_and(status::is_crash)
    }

    /// Whether SIGKILL ended a process, and the recording does not show whether the kernel sent this signal for lack of
    /// memory.
    pub(super) fn is_unexplained_kill(&self, process: &Process) -> bool {
        let is_kill = exit::killed_by(process.status) == Some(KILL);
        is_kill && !self.has_kills && !timed_out(process)
    }

    /// Whether another program ended a process on purpose. This is so if the signal was one that asks programs to end,
    /// or if the signal was SIGKILL and the kernel certainly did not send it for lack of memory.
    pub(super) fn on_purpose(&self, ix: ProcessIx, process: &Process) -> bool {
        let by_kill = || self.has_kills && !self.out_of_memory.contains_key(&ix);
        let signal = exit::killed_by(process.status).filter(|_| !timed_out(process));
        signal.is_some_and(|number| {
            status::is_for(number, Purpose::Order) || number == KILL && by_kill()
        })
    }
}

/// The name of the program that a shell could not start. If all programs that the shell started have succeeded, this
/// name is that of the next program in the shell's script; otherwise it is not known (`None`). `is_fork` returns
/// whether a child of the shell was forked to run the program that could not be started.
fn unstarted(
    analysis: &Analysis,
    shell: &Process,
    is_fork: impl Fn(&Process) -> bool,
) -> Option<String> {
    let children = shell.children.iter().map(|ix| analysis.process(*ix));
    let started = children.filter(|child| child.start >= program_start(shell) && !is_fork(child));
    let started: Vec<&Process> = started.take(MOST_EXAMINED).collect();
    let succeeded = started.iter().all(|child| child.status == Some(0));
    let name = scripts::program_after(shell, started.len())?;
    succeeded.then(|| escape::raw(&name))
}

/// Whether a process has executed no program and has started no other process.
fn is_bare_fork(process: &Process) -> bool {
    process.execs.is_empty() && process.children.is_empty()
}

/// The largest number of ancestors of a process among which the sender of the signal that ended the process is
/// searched.
const MOST_ANCESTORS: usize = 1_000;

/// The stop of a process by a signal that one of its ancestors certainly or probably sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// The words for the sender of the signal that stopped the process.
    by: &'static str,
    /// Whether it is proven that a signal of the ancestor stopped the process, because no other event can have woken
    /// the process at that time.
    pub(super) is_proven: bool,
    /// Whether the process was a worker of a pool (several workers of one owner), and the owner stopped the process
    /// because this worker was no longer needed.
    pub(super) is_of_a_closed_pool: bool,
    pub(super) time_out: TimeOut,
}

/// Whether a process that was stopped after a time-out was one of several workers of an owner (its pool), and the owner
/// only ended the workers because they were not needed any more. The evidence is another child of the owner with the
/// same command line that ended successfully shortly before. The time-out then only limited how long a worker may take
/// to end by itself, and the process did not fail.
fn is_of_a_closed_pool(analysis: &Analysis, ix: ProcessIx) -> bool {
    let stopped = analysis.process(ix);
    let life = stopped.end.since(stopped.start);
    let Some(owner) = stopped.parent else {
        return false;
    };
    let children = analysis
        .process(owner)
        .children
        .iter()
        .rev()
        .take(MOST_EXAMINED);
    let mut others = children.filter(|other| **other != ix);
    others.any(|other| {
        let other = analysis.process(*other);
        let before = stopped.end.since(other.end.min(stopped.end));
        other.status == Some(0)
            && other.end <= stopped.end
            && before <= life / CLOSING_PART
            && other.end.since(other.start) >= life / 2
            && other.argv == stopped.argv
    })
}

/// The processes that another process killed on purpose by a signal, each together with the sender of the signal.
fn senders(analysis: &Analysis, sure: &ProcessEnds<'_>) -> Vec<(ProcessIx, Sender)> {
    let all = analysis.process_ids();
    let stopped = all.filter(|ix| sure.on_purpose(*ix, analysis.process(*ix)));
    let senders = stopped.filter_map(|ix| {
        let sender = sender(analysis, ix)?;
        // A process of the program kill(1) sends the signal on behalf of its parent, so the parent counts as the
        // sender.
        let program = label::program(analysis.process(sender.process));
        let process = if program.uses().contains(&UtilityUse::Kill) {
            analysis.process(sender.process).parent?
        } else {
            sender.process
        };
        Some((ix, Sender { process, ..sender }))
    });
    senders.collect()
}
