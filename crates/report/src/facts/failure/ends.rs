//! What the end of a process says by itself.

use std::collections::BTreeMap;

use tr_analyze::arena::Arena;
use tr_analyze::containers::Called;
use tr_analyze::memory::killed;
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::own::Own;
use tr_analyze::sort::Gather;
use tr_analyze::status::{self, Purpose, KILL};
use tr_format::meta::Extra;

use crate::facts::memory::limit;
use crate::facts::timeout::timed_out;
use crate::{exit, label, query, units};

/// What a process's end says by itself.
pub(super) struct Sure<'a> {
    /// The processes that the kernel killed for lack of memory, with their resident memory in bytes.
    pub(super) out_of_memory: BTreeMap<ProcessIx, Option<u64>>,
    /// The container that each process is in, if any was killed.
    pub(super) containers: Option<Arena<ProcessIx, Option<&'a Called>>>,
    /// The recording tells such kills: another one is on purpose.
    pub(super) kills_told: bool,
    /// The limit of the memory of COMMAND's cgroup, in bytes.
    pub(super) limit: Option<u64>,
    pub(super) own: Own,
}

impl<'a> Sure<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Sure<'a> {
        let killed = killed(analysis).map(|it| (it.process, it.resident));
        let out_of_memory: BTreeMap<_, _> = killed.gather();
        let containers = (!out_of_memory.is_empty()).then(|| query::containers(analysis));
        Sure {
            out_of_memory,
            containers,
            kills_told: analysis.meta.has(Extra::Memory),
            limit: limit(analysis),
            own: Own::of(analysis),
        }
    }

    /// What became of a process.
    pub(super) fn end(&self, ix: ProcessIx, process: &Process) -> String {
        let Some(resident) = self.out_of_memory.get(&ix) else {
            let end = exit::words(process.status.unwrap_or(0));
            return match timed_out(process) {
                true => format!("timed out ({})", end.trim_start_matches("killed by ")),
                false => end,
            };
        };
        let container = self.containers.as_ref().and_then(|it| it[ix]);
        let limit = self
            .limit
            .filter(|limit| container.is_none() && resident.is_none_or(|it| it <= *limit));
        let killed = match container {
            Some(called) => format!("killed in {}: out of memory", label::container(called)),
            None => "killed: out of memory".to_owned(),
        };
        match (resident.map(units::bytes), limit.map(units::bytes)) {
            (Some(resident), Some(limit)) => format!("{killed} at {resident} of {limit}"),
            (Some(resident), None) => format!("{killed} at {resident}"),
            (None, Some(limit)) => format!("{killed}, limit {limit}"),
            (None, None) => killed,
        }
    }

    /// Whether a signal killed a process which nobody sends to end a program in good order.
    pub(super) fn is_crash(process: &Process) -> bool {
        let signal = exit::killed_by(process.status);
        signal.is_some_and(|it| it != KILL && !status::is_for(it, Purpose::Order))
    }

    /// Whether SIGKILL ended a process, and the recording does not show whether memory was short.
    pub(super) fn is_unexplained_kill(&self, process: &Process) -> bool {
        let is_kill = exit::killed_by(process.status) == Some(KILL);
        is_kill && !self.kills_told && !timed_out(process)
    }

    /// Whether another program's signal ended a process, one that is sent for that.
    pub(super) fn on_purpose(&self, ix: ProcessIx, process: &Process) -> bool {
        let by_kill = || self.kills_told && !self.out_of_memory.contains_key(&ix);
        let signal = exit::killed_by(process.status).filter(|_| !timed_out(process));
        signal.is_some_and(|it| status::is_for(it, Purpose::Order) || it == KILL && by_kill())
    }
}
