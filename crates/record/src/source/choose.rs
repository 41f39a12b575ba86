//! The choice of a source: the one asked for, or the best that works here.

use tr_bpf::Refusal;
use tr_format::event::CpuId;

use super::bpf::{self, sudo, Loader};
use super::{poll, ptrace, Started};
use crate::config::{Choice, Config};
use crate::error::Error;
use crate::proc;

/// Starts the chosen source, or the best that works here; with the refusals of the better
/// ones. `child` is COMMAND's process before its release.
pub fn start(
    config: &Config,
    child: Option<u32>,
    online: &[CpuId],
) -> Result<(Started, Vec<Error>), Error> {
    let by = |loader| bpf::start(config, loader, child, online);
    let refused = match config.method {
        Choice::Ptrace => return Ok((ptrace::start(config, child)?, Vec::new())),
        Choice::Poll => return Ok((poll::start(config, child)?, Vec::new())),
        Choice::Bpf => return Ok((by(Loader::Own)?, Vec::new())),
        Choice::Sudo => return Ok((by(Loader::Sudo)?, Vec::new())),
        Choice::Auto => match by(Loader::Own) {
            Ok(started) => return Ok((started, Vec::new())),
            Err(error) => error,
        },
    };
    let mut refusals = Vec::new();
    if asks_sudo(&refused) {
        match by(Loader::Sudo) {
            Ok(started) => return Ok((started, vec![refused])),
            Err(error @ (Error::Sudo(_) | Error::Tracing(_))) => refusals.push(error),
            Err(error) => return Err(error),
        }
    }
    if config.light || !matches!(refused, Error::Tracing(_)) {
        return Err(refused);
    }
    let traced = !config.no_ptrace && !gains_rights(config);
    let traced = traced.then(|| ptrace::start(config, child));
    let started = match traced {
        Some(Ok(started)) => Ok(started),
        None | Some(Err(_)) => poll::start(config, child),
    };
    match started {
        Ok(started) => {
            refusals.insert(0, refused);
            Ok((started, refusals))
        }
        Err(_) => Err(refused),
    }
}

/// COMMAND is a setuid or setgid program, which ptrace would take its rights.
pub fn gains_rights(config: &Config) -> bool {
    let file = config
        .command
        .first()
        .map(|name| crate::command::find(name));
    matches!(file, Some(Ok(Some(file))) if proc::gains_rights(&file))
}

/// `auto` asks sudo after this refusal: root's rights remedy it, and sudo asks for no password
/// here.
pub fn asks_sudo(refused: &Error) -> bool {
    let Error::Tracing(tr_bpf::Error::Refused(refusal)) = refused else {
        return false;
    };
    matches!(refusal, Refusal::Capabilities { root: false, .. }) && sudo::is_usual()
}
