//! Waits for what ends a recording: the end of COMMAND or of the `--pid` processes, and the deadline.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use tr_format::meta::EndReason;

use crate::command::{pidfd_open, Running, Waited};
use crate::config::{Config, Follow};
use crate::proc;
use crate::signals::Signals;
use crate::source::{drain_interval, Reaped};

/// The processes whose end ends the recording, and the deadline of the recording.
#[derive(Debug)]
pub struct Endings {
    /// The process of COMMAND; `None` if the recording has no COMMAND.
    pub command: Option<Running>,
    /// Whether COMMAND has ended. With `--wait-all` the descendants of COMMAND may still run.
    pub command_ended: bool,
    /// The processes that the option `--pid` names and that still run; empty if there is a COMMAND.
    pids: Vec<Target>,
    deadline: Option<Instant>,
    /// The interval between two drains of the source of events.
    interval: Duration,
}

/// A process that the option `--pid` names.
#[derive(Debug)]
struct Target {
    pid: u32,
    /// The pidfd of the process that `--pid` names; `None` if the kernel refuses it.
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
    /// Prepares to wait for the end of a recording that begins now.
    pub fn new(config: &Config, command: Option<Running>, signals: &Signals) -> Endings {
        let pids = match (&config.scope.follow, &command) {
            (Follow::Pids(pids), None) => pids.as_slice(),
            _ => &[],
        };
        let target = |pid: &u32| {
            let pidfd = pidfd_open(Pid::from_raw(pid.cast_signed())).ok();
            if let Some(pidfd) = &pidfd {
                // If the kernel refuses to watch the descriptor, the end of the process is only noticed at the
                // next drain.
                let _ = signals.watch(pidfd);
            }
            Target { pid: *pid, pidfd }
        };
        Endings {
            command,
            command_ended: false,
            pids: pids.iter().map(target).collect(),
            // A deadline that is too far in the future for the clock counts as no deadline.
            deadline: config
                .limits
                .duration
                .and_then(|duration| Instant::now().checked_add(duration)),
            interval: drain_interval(config),
        }
    }

    /// The process of COMMAND; `None` if COMMAND has ended or there is none.
    pub fn running(&self) -> Option<&Running> {
        self.command.as_ref().filter(|_| !self.command_ended)
    }

    /// Waits until one of these happens: `tr` gets a signal, a watched descriptor becomes readable, it is time to read
    /// the events of the source again, the deadline of the recording passes, or the time `check` comes.
    pub fn wait(&self, signals: &Signals, check: Option<Instant>) {
        let next = Instant::now() + self.interval;
        let until = [self.deadline, check]
            .into_iter()
            .flatten()
            .fold(next, Instant::min);
        signals.wait(until.saturating_duration_since(Instant::now()));
    }

    /// Checks whether COMMAND, or all of the `--pid` processes, have ended. Returns the reason for the end of the
    /// recording if it has to end now.
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

    /// The status and the resources of COMMAND if it has ended; otherwise the running COMMAND. If the source of
    /// events has already reaped COMMAND, `reaped` has its status.
    pub fn reap(self, reaped: Option<Reaped>) -> (Option<Waited>, Option<Running>) {
        match (self.command, reaped) {
            (Some(command), Some(reaped)) => (Some(command.waited(reaped)), None),
            (Some(command), None) if self.command_ended => (command.wait().ok(), None),
            (command, _) => (None, command),
        }
    }
}
