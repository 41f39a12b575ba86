//! Chooses the source of the events: the requested one, or the best one that works here. ptrace(2), which can change
//! what COMMAND does, is chosen only if the settings allow that.

use tr_bpf::Refusal;
use tr_format::event::CpuId;

use super::bpf::{self, sudo, Loader};
use super::{ptrace, Started};
use crate::config::{Choice, Config};
use crate::error::Error;
use crate::proc;

/// Starts the requested source of events, or the best one that works on this machine. Also returns the reasons why
/// better sources were refused. `child` is COMMAND's process before its release.
pub fn start(
    config: &Config,
    child: Option<u32>,
    online: &[CpuId],
) -> Result<(Started, Vec<Error>), Error> {
    let by = |loader| bpf::start(config, loader, child, online);
    let refused = match config.method.choice {
        Choice::Ptrace => return Ok((ptrace::start(config, child)?, Vec::new())),
        Choice::Bpf => return Ok((by(Loader::Own)?, Vec::new())),
        Choice::Sudo => return Ok((by(Loader::Sudo)?, Vec::new())),
        Choice::Auto => match by(Loader::Own) {
            Ok(started) => return Ok((started, Vec::new())),
            Err(error) => error,
        },
    };
    let mut refusals = vec![refused];
    if refusals.first().is_some_and(asks_sudo) {
        match by(Loader::Sudo) {
            Ok(started) => return Ok((started, refusals)),
            Err(error @ (Error::Sudo(_) | Error::Tracing(_))) => refusals.push(error),
            Err(error) => return Err(error),
        }
    }
    if takes_ptrace(config) && matches!(refusals.first(), Some(Error::Tracing(_))) {
        if let Ok(started) = ptrace::start(config, child) {
            return Ok((started, refusals));
        }
    }
    // The last error has the best remedy: that error is about sudo if sudo was tried.
    Err(refusals.pop().unwrap_or(Error::NeedsBpf))
}

/// Whether `--method auto` may use ptrace(2) for this COMMAND.
fn takes_ptrace(config: &Config) -> bool {
    config.method.may_ptrace && !config.facts.light && !gains_rights(config)
}

/// Whether COMMAND is a program with special rights (setuid, capabilities), which it would lose under ptrace.
fn gains_rights(config: &Config) -> bool {
    let file = config
        .command
        .argv
        .first()
        .map(|name| crate::command::find(name));
    matches!(file, Some(Ok(Some(file))) if proc::gains_rights(&file))
}

/// Whether `--method auto` uses sudo after the BPF programs were refused with this error: if root's rights would remedy
/// the error, and sudo asks for no password on this machine.
pub fn asks_sudo(refused: &Error) -> bool {
    let Error::Tracing(tr_bpf::Error::Refused(refusal)) = refused else {
        return false;
    };
    matches!(refusal, Refusal::Capabilities { root: false, .. }) && sudo::is_usual()
}
