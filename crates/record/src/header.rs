//! The metadata at the trace's beginning.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use tr_bpf::{Kernel, Settings, Tracer};
use tr_format::event::{Clock, CpuId, Ktime, Tgid};
use tr_format::meta::{Metadata, Options, Scope, StateName};

use crate::config::Config;
use crate::host;

/// The state at the recording's start.
#[derive(Debug)]
pub struct Start {
    /// Time zero of the trace.
    pub time: Ktime,
    /// The other clocks at `time`.
    pub clock: Clock,
    /// The CPUs that are online.
    pub online: Vec<CpuId>,
    /// The followed tasks.
    pub scope: Scope,
    /// COMMAND's process, by the host's pid.
    pub root: Option<u32>,
    /// COMMAND and its arguments, masked.
    pub command: Vec<Vec<u8>>,
    /// Facts that this kernel does not tell.
    pub missing: Vec<String>,
    /// The programs tell wake-ups by interrupts from others.
    pub irq_known: bool,
}

/// The metadata of a recording with these settings.
pub fn metadata(config: &Config, settings: &Settings, start: Start) -> Metadata {
    let (kernel, machine, host) = host::uname();
    let sched_rings = u64::from(settings.sched_ring) * settings.cpus.len() as u64;
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
        scope: start.scope,
        command: start.command,
        root: start.root.map(Tgid),
        cwd: std::env::current_dir().map_or(Vec::new(), |dir| bytes(dir.as_os_str())),
        states: StateName::of_linux(),
        options: Options {
            argv_limit: config.argv_limit,
            cpus: config.cpus.iter().flatten().copied().map(CpuId).collect(),
            buffer: sched_rings + u64::from(settings.life_ring),
            irq_known: start.irq_known,
        },
        missing: start.missing,
        ci: host::ci(),
        not_traced: None,
    }
}

/// The facts that this kernel does not tell, in words for the user.
pub fn missing(kernel: &Kernel, tracer: &Tracer<'_>) -> Vec<String> {
    let facts = [
        (
            kernel.preempt_count.is_none(),
            "wake-ups by interrupts are not told from those by the running task",
        ),
        (
            !tracer.knows_reasons(),
            "the system calls in which tasks wait are not known",
        ),
        (
            tracer.is_raw(),
            "the kernel refused tp_btf programs; raw_tp programs were used (they cost more)",
        ),
        (
            host::cgroup2_mount().is_none(),
            "no cgroup v2 hierarchy is mounted: cgroup paths are unknown",
        ),
    ];
    let missing = facts.iter().filter(|(missing, _)| *missing);
    missing.map(|(_, words)| (*words).to_owned()).collect()
}
