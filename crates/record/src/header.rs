//! The metadata at the trace's beginning.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use tr_format::event::{Clock, CpuId, Ktime, Tgid};
use tr_format::meta::{Metadata, Options, StateName};

use crate::config::Config;
use crate::host;
use crate::source::Started;

/// The moment of the recording's start.
#[derive(Debug)]
pub struct Start {
    /// Time zero of the trace.
    pub time: Ktime,
    /// The other clocks at `time`.
    pub clock: Clock,
    /// The CPUs that are online.
    pub online: Vec<CpuId>,
    /// See [`host::hardware`].
    pub hardware: Vec<(String, String)>,
    /// COMMAND and its arguments, masked.
    pub command: Vec<Vec<u8>>,
}

/// The metadata of a recording from this source.
pub fn metadata(config: &Config, started: &Started, start: Start) -> Metadata {
    let (kernel, machine, host) = host::uname();
    let bytes = |text: &OsStr| text.as_bytes().to_vec();
    Metadata {
        tool_version: config.version.clone(),
        host,
        kernel,
        machine,
        cpus: start.online,
        page_size: host::page_size(),
        start: start.time,
        start_clock: start.clock,
        scope: started.scope.clone(),
        command: start.command,
        root: started.root.map(Tgid),
        cwd: std::env::current_dir().map_or(Vec::new(), |dir| bytes(dir.as_os_str())),
        states: StateName::of_linux(),
        options: Options {
            argv_limit: config.argv_limit,
            cpus: config.cpus.iter().flatten().copied().map(CpuId).collect(),
            buffer: started.buffer,
            irq_known: started.irq_known,
        },
        missing: started.missing.clone(),
        ci: host::ci(),
        not_traced: None,
        origin: started.origin,
        extras: started.extras.clone(),
        recorder: None,
        hardware: Some(start.hardware),
    }
}
