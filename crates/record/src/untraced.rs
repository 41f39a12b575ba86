//! Runs COMMAND without tracing (`--best-effort`), and writes a trace that says so. An older trace at the same path is
//! replaced: otherwise the next step of a CI job would take it for the trace of this run.

use nix::errno::Errno;
use tr_format::mask::Masked;
use tr_format::meta::{EndedByLimit, Metadata, Summary};

use crate::command::Program;
use crate::config::Config;
use crate::error::Error;
use crate::guard::Guard;
use crate::network::Connections;
use crate::output::{Output, Tally};
use crate::signals::Signals;
use crate::stall::Stall;
use crate::{command, header, host, inherited, memory, session};

/// The memory in bytes that is needed for the threads that write the trace of an untraced run.
const OWN_MEMORY: u64 = 8 << 20;

/// The result of running COMMAND without tracing.
#[derive(Debug)]
pub struct Untraced {
    /// The raw `wait` status with which COMMAND ended.
    pub status: u32,
    /// The error of COMMAND's exec, if COMMAND could not be executed.
    pub not_executed: Option<Errno>,
    /// The time from COMMAND's start to COMMAND's end, in ns.
    pub duration: u64,
    /// The limit of `--timeout` or `--stall` that has ended COMMAND; `None` if none has.
    pub limit: Option<EndedByLimit>,
    /// The reason why no trace of the untraced run could be written; `None` if the trace was written.
    pub output_error: Option<Error>,
}

/// Runs COMMAND without tracing, and writes a trace file with the reason why nothing was traced. If memory is short,
/// or `tr` cannot fork a process or receive signals, it executes COMMAND in its own place.
///
/// # Errors
/// COMMAND has not run, unless the error is [`Error::Lost`]. If only the output cannot be written, COMMAND runs, and
/// [`Untraced::output_error`] has the reason.
pub fn run_untraced(config: &Config, reason: &Error) -> Result<Untraced, Error> {
    let descriptors = command::inherited_descriptors();
    inherited::own_actions();
    let destination = session::open_output(config, &session::first_file(config));
    let program = session::program(config)?.ok_or(Error::System(Errno::EINVAL.into()))?;
    if memory::check(OWN_MEMORY).is_err() {
        return Err(become_command(&program));
    }
    let prepared = Signals::take(None).and_then(|signals| Ok((command::start(&program)?, signals)));
    let machine = header::Machine {
        cpus: host::online_cpus(),
        hardware: host::hardware(),
    };
    let child = prepared.as_ref().ok().map(|(child, _)| child.pid());
    let mut meta = Metadata {
        not_traced: Some(reason.to_string()),
        ..header::begin(config, machine, child)
    };
    // The first masking of secrets builds tables, which takes milliseconds. So it is done before COMMAND's wall time
    // begins.
    let mut redactor = config.mask.redactor.clone();
    let masked = Masked::new(meta.clone(), &mut redactor);
    (meta.start, meta.start_clock) = (host::now(), host::clock());
    // The output is opened before COMMAND runs: if `tr` is killed, it leaves a cut trace, and not the trace of an
    // earlier run.
    let output = destination.and_then(|destination| {
        let connections = Connections::default();
        masked
            .map(|masked| masked.beginning(meta.start, meta.start_clock))
            .and_then(|meta| Output::start(destination, &meta, redactor, connections, None, None))
            .map_err(Error::Format)
    });
    let released = prepared.and_then(|(child, signals)| Ok((child.release()?, signals)));
    let Ok((command, signals)) = released else {
        return Err(become_command(&program));
    };
    command::leave_descriptors(&descriptors);
    // Every signal is passed on. Without the BPF programs a signal to the process group cannot be distinguished from a
    // signal to `tr` alone, and a signal that arrives twice does less harm than a lost one.
    let mut guard = Guard::new(&config.guard, command.pid());
    let waited = signals.forward_until_end(command, None, guard.as_mut());
    let waited = waited.map_err(Error::Lost)?;
    let end = host::now();
    let limit = guard.and_then(|guard| guard.limit());
    let summary = Summary {
        end,
        end_clock: host::clock(),
        status: Some(waited.status),
        ended: limit,
        usage: Some(waited.usage),
        ..Summary::default()
    };
    Ok(Untraced {
        status: waited.status,
        not_executed: waited.not_executed,
        limit,
        duration: end.since(meta.start),
        output_error: output.and_then(|output| finish(output, summary)).err(),
    })
}

/// Executes COMMAND in place of `tr`, and returns the error if that fails. A trace file that was begun then has only
/// its header and lacks its end.
fn become_command(program: &Program) -> Error {
    let (errno, _) = program.exec(None);
    Error::Command(errno.into())
}

fn finish(output: Output, summary: Summary) -> Result<(), Error> {
    let mut stall = Stall::new(|| ());
    let written = output.finish(Vec::new(), summary, || {
        stall.sleep();
        // The output may take too long for the few hundred bytes of the trace. Then `tr` gives up writing, so that
        // COMMAND's exit status is not delayed any longer.
        !stall.is_long()
    });
    let stalled = || std::io::Error::from(std::io::ErrorKind::TimedOut);
    let (Tally { .. }, result) = written.ok_or_else(|| Error::Output(stalled()))?;
    result.map_err(Error::Format)
}
