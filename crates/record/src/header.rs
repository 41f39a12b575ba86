//! Makes the metadata at the beginning of a trace.

use std::os::unix::ffi::{OsStrExt, OsStringExt};

use tr_format::event::{CpuId, Tgid};
use tr_format::meta::{Metadata, Options, StateName};

use crate::config::{Config, Follow};
use crate::host;
use crate::source::Started;

/// The facts about the machine that go into the metadata of a trace.
pub struct Machine {
    /// The CPUs of the machine that are online.
    pub cpus: Vec<CpuId>,
    /// The names and values of the facts about the machine's hardware, from [`host::hardware`].
    pub hardware: Vec<(String, String)>,
}

/// Makes the metadata of a trace that begins now. Its events come from a source, or COMMAND runs untraced. `child` is
/// COMMAND's process before its release.
pub fn begin(config: &Config, machine: Machine, child: Option<u32>) -> Metadata {
    let Machine { cpus, hardware } = machine;
    let (kernel, machine, host) = host::uname();
    let command = (config.command.argv.iter())
        .map(|arg| arg.as_bytes().to_vec())
        .collect();
    let cwd = std::env::current_dir().unwrap_or_default();
    Metadata {
        tool_version: config.version.clone(),
        host,
        kernel,
        machine,
        options: Options {
            allowed: allowed(config, child, &cpus),
            ..Options::default()
        },
        cpus,
        page_size: host::page_size(),
        start: host::now(),
        start_clock: host::clock(),
        command,
        cwd: cwd.into_os_string().into_vec(),
        ci: host::ci(),
        hardware: Some(hardware),
        ..Metadata::default()
    }
}

/// The CPUs on which COMMAND, or at least one of the `--pid` processes, may run; `None` if these are all CPUs, or if
/// the followed processes are not known yet.
fn allowed(config: &Config, child: Option<u32>, online: &[CpuId]) -> Option<Vec<CpuId>> {
    let pids: &[u32] = match &config.scope.follow {
        Follow::Command => &[],
        Follow::Pids(pids) => pids,
        // The followed processes are not known when the recording begins.
        Follow::All | Follow::Cgroup(_) => return None,
    };
    host::allowed_cpus(child.into_iter().chain(pids.iter().copied()), online)
}

/// Completes the metadata `base` with the facts that are known once the source of events has started.
pub fn metadata(config: &Config, started: &Started, base: Metadata) -> Metadata {
    Metadata {
        scope: started.scope.clone(),
        root: started.root.map(Tgid),
        states: StateName::of_linux(),
        options: Options {
            argv_limit: config.facts.argv_limit,
            cpus: config
                .scope
                .cpus
                .iter()
                .flatten()
                .copied()
                .map(CpuId)
                .collect(),
            buffer: started.buffer,
            irq_known: started.irq_known,
            allowed: base.options.allowed,
        },
        missing: started.missing.clone(),
        origin: started.origin,
        extras: started.extras.clone(),
        ..base
    }
}
