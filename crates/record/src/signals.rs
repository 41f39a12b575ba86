//! Receives the signals that are sent to `tr`. If a COMMAND runs, the signals are passed on to COMMAND; otherwise they
//! end the recording. A recording waits for signals and for its source's descriptor in one place.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::command::{Running, Waited};
use crate::guard::Guard;
use crate::inherited;
use crate::source::Source;

/// The longest time between two checks whether COMMAND has ended. Normally SIGCHLD announces the end.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The signals to `tr` whose default action ends a process, in addition to the real-time signals. SIGPIPE and SIGXFSZ
/// are missing because `tr` ignores them, and signals of the processor (SIGSEGV, …) because they concern `tr` itself.
const FATAL_SIGNALS: [libc::c_int; 14] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    libc::SIGXCPU,
    libc::SIGABRT,
];

/// The signals that a shell without job control makes its background jobs ignore (POSIX, asynchronous lists). They end
/// a recording although they are ignored: the user did not ask to ignore them, and scripts use `kill -INT` to end a
/// recorder.
const OF_BACKGROUND: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

/// The signals that `tr` blocks and receives itself: those that end a process, SIGCHLD and SIGCONT, and, if `stop` is
/// set, the terminal's stop (SIGTSTP).
fn taken(stop: bool) -> SigSet {
    let numbers = FATAL_SIGNALS
        .into_iter()
        .chain([libc::SIGCHLD, libc::SIGCONT])
        .chain(stop.then_some(libc::SIGTSTP))
        .chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
    // SAFETY: `sigemptyset` initializes the set, and all numbers are those of signals.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for number in numbers {
            libc::sigaddset(&mut set, number);
        }
        SigSet::from_sigset_t_unchecked(set)
    }
}

/// Receives the signals that `tr` blocks. It has a signalfd for them, and an epoll descriptor for all waits of the
/// recorder. Both are opened at the start, so that waits work even if the limit of descriptors is lowered later
/// (setrlimit(2)). With a low limit, poll(2) would fail.
#[derive(Debug)]
pub struct Signals {
    signals: SignalFd,
    epoll: Epoll,
    /// The signals that `tr` ignored before it blocked them, such as SIGHUP under nohup(1). The kernel queues a blocked
    /// signal even if it is ignored.
    ignored: SigSet,
    /// The function that is called before the terminal's stop signal (SIGTSTP) stops `tr`.
    pause: Option<fn()>,
}

impl Signals {
    /// Blocks the signals that `tr` receives itself and opens the descriptors for them. `pause` is called before the
    /// terminal's stop (SIGTSTP) stops `tr`.
    pub fn take(pause: Option<fn()>) -> std::io::Result<Signals> {
        let taken = taken(pause.is_some());
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&taken, flags)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&signals, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        let ignored = Signal::iterator()
            .filter(|signal| taken.contains(*signal) && inherited::is_ignored(*signal))
            .filter(|signal| !OF_BACKGROUND.contains(signal))
            .collect();
        taken.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Signals {
            signals,
            epoll,
            ignored,
            pause,
        })
    }

    /// Stops receiving SIGCHLD, which remains blocked, because another thread waits for it.
    pub fn leave_children(&self) {
        let mut taken = taken(self.pause.is_some());
        taken.remove(Signal::SIGCHLD);
        let _ = self.signals.set_mask(&taken);
    }

    /// Calls the function `pause` and then stops `tr`, as SIGTSTP would have done.
    fn stop(&self) {
        if let Some(pause) = self.pause {
            pause();
        }
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTSTP);
        // SIGTSTP has its default action here. The kernel ignores it if there is no shell that could continue `tr`.
        let _ = nix::sys::signal::raise(Signal::SIGTSTP);
        let _ = stop.thread_unblock();
        let _ = stop.thread_block();
    }

    /// Makes the waits for signals also end when the descriptor `fd` becomes readable, once for each time that it does.
    pub fn watch(&self, fd: impl AsFd) -> std::io::Result<()> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        Ok(self.epoll.add(fd, EpollEvent::new(flags, 0))?)
    }

    /// Waits for a signal to `tr` or for a watched descriptor, not much longer than `longest`.
    pub fn wait(&self, longest: Duration) {
        // The time-out in ms is rounded up, because a wait that ends too early would be repeated at once.
        let timeout = EpollTimeout::try_from(longest + Duration::from_micros(999));
        let timeout = timeout.unwrap_or(EpollTimeout::ZERO);
        match self.epoll.wait(&mut [EpollEvent::empty(); 8], timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            // A wait that fails must not be repeated at once, because this thread has real-time priority and would keep
            // the CPU.
            Err(_) => crate::host::pause(longest.min(Duration::from_millis(100))),
        }
    }

    /// Passes the signals that were sent to `tr` alone on to COMMAND. Returns true if any signal has come, passed on
    /// or not, that would have ended `tr`. A signal that `tr` ignored is passed on as well, because COMMAND may have
    /// a handler by now. A signal from the terminal (SI_KERNEL) is not passed on unless COMMAND has its own session:
    /// COMMAND has got it already, with the whole foreground process group. `source` recognizes signals that a
    /// process has sent both to `tr` and to COMMAND.
    pub fn forward(&self, command: Option<&Running>, source: Option<&dyn Source>) -> bool {
        let to_both = |signal| source.is_some_and(|source| source.sent_to_both(signal));
        let mut any = false;
        if source.is_some_and(Source::take_stop) {
            command
                .into_iter()
                .for_each(|running| running.stop_alike(source));
        }
        while let Ok(Some(info)) = self.signals.read_signal() {
            let signal = info.ssi_signo.cast_signed();
            if signal == libc::SIGCHLD {
                command
                    .into_iter()
                    .for_each(|running| running.stop_alike(source));
                continue;
            }
            if signal == libc::SIGTSTP {
                self.stop();
                continue;
            }
            let ignored =
                || Signal::try_from(signal).is_ok_and(|signal| self.ignored.contains(signal));
            any |= signal != libc::SIGCONT && !ignored();
            let Some(command) = command else { continue };
            let from_terminal = info.ssi_code == libc::SI_KERNEL;
            if to_both(info.ssi_signo) || from_terminal && !command.own_session {
                continue;
            }
            // If the sender sends the signal to the whole process group, COMMAND may get it a moment later than `tr`.
            crate::host::pause(Duration::from_millis(2));
            if !to_both(info.ssi_signo) {
                let value = (info.ssi_code == libc::SI_QUEUE).then_some(info.ssi_ptr);
                command.forward(signal, value, from_terminal);
            }
        }
        any
    }

    /// Passes signals on to COMMAND until COMMAND ends or, if the guard ends it, until all of its processes have ended.
    pub fn forward_until_end(
        &self,
        command: Running,
        source: Option<&dyn Source>,
        mut guard: Option<&mut Guard>,
    ) -> std::io::Result<Waited> {
        loop {
            // SIGCHLD has been blocked since the start, so that the wait below ends even if COMMAND ends right after
            // this check.
            let is_ending = guard.as_ref().is_some_and(|guard| guard.is_ending());
            if command.has_ended() && !is_ending {
                return command.wait();
            }
            let look = guard.as_ref().map_or(LOOK_EVERY, |guard| {
                guard.next().saturating_duration_since(Instant::now())
            });
            self.wait(look.min(LOOK_EVERY));
            self.forward(Some(&command), source);
            if let Some(guard) = &mut guard {
                guard.step(Vec::new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{raise, signal, SigHandler};

    use super::*;

    #[test]
    fn what_nohup_ignores_ends_nothing() {
        let all = [
            Signal::SIGHUP,
            Signal::SIGUSR1,
            Signal::SIGINT,
            Signal::SIGQUIT,
        ];
        // SAFETY: no handler is installed.
        let set = |to| all.map(|number| unsafe { signal(number, to) }.unwrap());
        set(SigHandler::SigIgn);
        let signals = Signals::take(None).unwrap();
        let mut ends = |number| {
            raise(number).unwrap();
            signals.forward(None, None)
        };
        let ended = all.map(&mut ends);
        let not_ignored = ends(Signal::SIGTERM);
        set(SigHandler::SigDfl);
        assert_eq!(ended, [false, false, true, true]);
        assert!(not_ignored);
    }
}
