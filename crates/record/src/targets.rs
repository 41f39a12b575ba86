//! Determines from the settings which CPUs and tasks are recorded.

use std::os::unix::ffi::OsStrExt;

use tr_format::event::{CpuId, Tgid};
use tr_format::meta::Scope;
use tr_output::cgroups;

use crate::config::{Config, Follow};
use crate::error::Error;
use crate::proc;

/// The CPUs that are recorded, and the tasks that are followed from the start of the recording.
#[derive(Debug)]
pub struct Targets {
    /// The CPUs whose scheduling events are recorded.
    pub cpus: Vec<u16>,
    /// The processes that are followed from the start, by their ids in `tr`'s own pid namespace.
    pub pids: Vec<u32>,
    /// The id of the followed cgroup; `None` if no cgroup is followed.
    pub cgroup: Option<u64>,
    /// The choice of the followed processes, as it is stored in the trace.
    pub scope: Scope,
}

impl Targets {
    /// Determines the recorded CPUs and tasks. Returns an error if a requested CPU, process or cgroup does not exist.
    /// `child` is COMMAND's process.
    pub fn of(config: &Config, child: Option<u32>, online: &[CpuId]) -> Result<Targets, Error> {
        let cpus = match &config.scope.cpus {
            None => online.iter().map(|cpu| cpu.0).collect(),
            Some(cpus) => {
                if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(&CpuId(**cpu))) {
                    return Err(Error::NoSuchCpu(*cpu));
                }
                cpus.clone()
            }
        };
        let mut targets = Targets {
            cpus,
            pids: child.into_iter().collect(),
            cgroup: None,
            scope: Scope::Command,
        };
        match &config.scope.follow {
            Follow::Command => {}
            Follow::All => {
                targets.pids.clear();
                targets.scope = Scope::All;
            }
            Follow::Pids(pids) => {
                if let Some(pid) = pids.iter().find(|pid| !proc::exists(**pid)) {
                    return Err(Error::NoSuchProcess(*pid));
                }
                targets.pids.extend(pids);
                targets.scope = Scope::Pids(pids.iter().map(|pid| Tgid(*pid)).collect());
            }
            Follow::Cgroup(path) => {
                let id = cgroups::id(path).map_err(|source| Error::Cgroup {
                    path: path.clone(),
                    source,
                })?;
                targets.cgroup = Some(id);
                targets.scope = Scope::Cgroup(path.as_os_str().as_bytes().to_vec());
            }
        }
        Ok(targets)
    }
}
