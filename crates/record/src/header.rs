//! The metadata at the trace's beginning.

use std::os::unix::ffi::{OsStrExt, OsStringExt};

use tr_format::event::{CpuId, Tgid};
use tr_format::meta::{Metadata, Options, StateName};

use crate::config::{Config, Follow};
use crate::host;
use crate::source::Started;

/// What all traces have that begin now, with or without a recording. `hardware`: see
/// [`host::hardware`]; `child` is COMMAND's process before its release.
pub fn begin(
    config: &Config,
    (cpus, hardware): (Vec<CpuId>, Vec<(String, String)>),
    child: Option<u32>,
) -> Metadata {
    let (kernel, machine, host) = host::uname();
    let command = config.command.iter().map(|arg| arg.as_bytes().to_vec());
    let command: Vec<_> = command.collect();
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

/// The CPUs that the processes which are followed from the start may use, if those are not all.
fn allowed(config: &Config, child: Option<u32>, online: &[CpuId]) -> Option<Vec<CpuId>> {
    let pids: &[u32] = match &config.follow {
        Follow::Command => &[],
        Follow::Pids(pids) => pids,
        // These are not all named here.
        Follow::All | Follow::Cgroup(_) => return None,
    };
    host::allowed_cpus(child.into_iter().chain(pids.iter().copied()), online)
}

/// That, and what the source tells.
pub fn metadata(config: &Config, started: &Started, base: Metadata) -> Metadata {
    Metadata {
        scope: started.scope.clone(),
        root: started.root.map(Tgid),
        states: StateName::of_linux(),
        options: Options {
            argv_limit: config.argv_limit,
            cpus: config.cpus.iter().flatten().copied().map(CpuId).collect(),
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
