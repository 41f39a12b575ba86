//! The events that end a recording: the end of COMMAND or of the `--pid` processes,
//! and the deadline.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use tr_format::meta::EndReason;

use crate::collector::DRAIN_EVERY;
use crate::command::{pidfd_open, Running, Waited};
use crate::config::{Config, Follow};

/// The processes whose end ends the recording, and the deadline.
#[derive(Debug)]
pub struct Endings {
    /// COMMAND, if there is one.
    pub command: Option<Running>,
    /// COMMAND has ended; with `--wait-all` its descendants may still run.
    pub command_ended: bool,
    /// Without a COMMAND: the `--pid` processes that still run.
    pids: Vec<OwnedFd>,
    deadline: Option<Instant>,
}

/// The descriptors that one poll found ready.
#[derive(Debug)]
pub struct Ready {
    /// A signal has arrived.
    pub signal: bool,
    command: bool,
    pids: Vec<bool>,
}

impl Endings {
    /// The endings of a recording that begins now.
    pub fn new(config: &Config, command: Option<Running>) -> Endings {
        let pids = match (&config.follow, &command) {
            (Follow::Pids(pids), None) => pids.as_slice(),
            _ => &[],
        };
        let open = |pid: &u32| pidfd_open(Pid::from_raw(pid.cast_signed())).ok();
        Endings {
            command,
            command_ended: false,
            pids: pids.iter().filter_map(open).collect(),
            deadline: config.duration.map(|duration| Instant::now() + duration),
        }
    }

    /// COMMAND, until its end.
    pub fn running(&self) -> Option<&Running> {
        self.command.as_ref().filter(|_| !self.command_ended)
    }

    /// Waits for a signal, a half-full ring, the end of a process, the next drain, the
    /// deadline or `check`.
    pub fn wait(
        &self,
        signals: &SignalFd,
        rings: Option<BorrowedFd<'_>>,
        check: Option<Instant>,
    ) -> Ready {
        let next = Instant::now() + DRAIN_EVERY;
        let until = [self.deadline, check]
            .into_iter()
            .flatten()
            .fold(next, Instant::min);
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = vec![readable(signals.as_fd())];
        fds.extend(self.running().map(|command| readable(command.ended())));
        fds.extend(self.pids.iter().map(|pid| readable(pid.as_fd())));
        let processes = fds.len();
        fds.extend(rings.map(readable));
        // Rounded up: a poll that ends before `until` would be repeated at once.
        let wait = until.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
        let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
        // An interrupted poll has the effect of a timeout.
        let _ = nix::poll::poll(&mut fds, wait);
        let mut ready = fds
            .iter()
            .map(|fd| fd.any().unwrap_or(false))
            .take(processes);
        Ready {
            signal: ready.next().unwrap_or(false),
            command: self.running().is_some() && ready.next().unwrap_or(false),
            pids: ready.collect(),
        }
    }

    /// Notes the processes that have ended; the reason if the recording ends with them.
    pub fn note(&mut self, ready: &Ready, wait_all: bool) -> Option<EndReason> {
        if ready.command {
            self.command_ended = true;
            return (!wait_all).then_some(EndReason::CommandEnded);
        }
        let mut ended = ready.pids.iter();
        let before = self.pids.len();
        self.pids
            .retain(|_| !ended.next().is_some_and(|ended| *ended));
        (before > 0 && self.pids.is_empty()).then_some(EndReason::TargetsEnded)
    }

    /// The deadline (`--duration`) has passed.
    pub fn is_due(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// COMMAND's status if it has ended; otherwise COMMAND.
    pub fn reap(self) -> (Option<Waited>, Option<Running>) {
        if self.command_ended {
            (self.command.and_then(|command| command.wait().ok()), None)
        } else {
            (None, self.command)
        }
    }
}
