//! Waits for the events that end a recording: the end of COMMAND or of the `--pid` processes, and the deadline.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use tr_format::meta::EndReason;

use crate::command::{pidfd_open, Running, Waited};
use crate::config::{Config, Follow};
use crate::proc;
use crate::signals::Signals;
use crate::source::{drain_interval, Reaped};

/// The processes whose end ends the recording, and the deadline.
#[derive(Debug)]
pub struct Endings {
    /// The process of COMMAND, if there is one.
    pub command: Option<Running>,
    /// Whether COMMAND has ended. With `--wait-all` its descendants may still run.
    pub command_ended: bool,
    /// The `--pid` processes that still run, if there is no COMMAND.
    pids: Vec<Target>,
    deadline: Option<Instant>,
    /// The interval between two drains of the source.
    interval: Duration,
}

/// A process of the option `--pid`.
#[derive(Debug)]
struct Target {
    pid: u32,
    /// The pidfd of the process; `None` if the kernel refuses it.
    pidfd: Option<OwnedFd>,
}

impl Target {
    fn has_ended(&self) -> bool {
        use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
        use std::os::fd::AsFd;
        let by_pidfd = |pidfd: &OwnedFd| {
            let mut fd = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            poll(&mut fd, PollTimeout::ZERO).ok().map(|ready| ready > 0)
        };
        let known = self.pidfd.as_ref().and_then(by_pidfd);
        known.unwrap_or_else(|| !proc::exists(self.pid))
    }
}

impl Endings {
    /// The events that can end a recording that begins now.
    pub fn new(config: &Config, command: Option<Running>, signals: &Signals) -> Endings {
        let pids = match (&config.scope.follow, &command) {
            (Follow::Pids(pids), None) => pids.as_slice(),
            _ => &[],
        };
        let target = |pid: &u32| {
            let pidfd = pidfd_open(Pid::from_raw(pid.cast_signed())).ok();
            if let Some(pidfd) = &pidfd {
                // Without it, the end is noticed at the next drain.
                let _ = signals.watch(pidfd);
            }
            Target { pid: *pid, pidfd }
        };
        Endings {
            command,
            command_ended: false,
            pids: pids.iter().map(target).collect(),
            // A deadline beyond the clock's range is none.
            deadline: config
                .limits
                .duration
                .and_then(|duration| Instant::now().checked_add(duration)),
            interval: drain_interval(config),
        }
    }

    /// COMMAND's process; `None` if it has ended.
    pub fn running(&self) -> Option<&Running> {
        self.command.as_ref().filter(|_| !self.command_ended)
    }

    /// Waits for a signal, a watched descriptor, the next drain, the deadline or `check`.
    pub fn wait(&self, signals: &Signals, check: Option<Instant>) {
        let next = Instant::now() + self.interval;
        let until = [self.deadline, check]
            .into_iter()
            .flatten()
            .fold(next, Instant::min);
        signals.wait(until.saturating_duration_since(Instant::now()));
    }

    /// Notes which of the processes have ended. Returns the reason if the recording ends with them.
    pub fn note(&mut self, wait_all: bool) -> Option<EndReason> {
        if self.running().is_some_and(Running::has_ended) {
            self.command_ended = true;
            return (!wait_all).then_some(EndReason::CommandEnded);
        }
        let before = self.pids.len();
        self.pids.retain(|target| !target.has_ended());
        (before > 0 && self.pids.is_empty()).then_some(EndReason::TargetsEnded)
    }

    /// Whether the deadline (`--duration`) has passed.
    pub fn is_due(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The end of COMMAND if it has ended, else COMMAND. `reaped` is its end if the source has waited for it.
    pub fn reap(self, reaped: Option<Reaped>) -> (Option<Waited>, Option<Running>) {
        match (self.command, reaped) {
            (Some(command), Some(reaped)) => (Some(command.waited(reaped)), None),
            (Some(command), None) if self.command_ended => (command.wait().ok(), None),
            (command, _) => (None, command),
        }
    }
}
