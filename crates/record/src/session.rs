//! One recording, from the first look at the kernel to the file's trailer.

use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigHandler, Signal};
use nix::sys::signalfd::SignalFd;
use tr_bpf::{Kernel, Rings, Settings, Storage, Tracer};
use tr_format::event::{Argv, Comm, Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream, Tgid};
use tr_format::meta::{Cost, EndReason, Metadata, Options, Scope, StateName, Summary};

use crate::command::{self, Inherited, Running, Stopped};
use crate::config::{ring_sizes, Config, Follow};
use crate::identity::Identity;
use crate::output::{self, Output, Tally, Target};
use crate::rings::{RootWatch, Sink};
use crate::{convert, host, signals, urgency, Error};

/// How often the rings are drained when nothing else calls for it; one that is
/// half full does. Each time costs some 100 µs, most of it for waking up.
const DRAIN_EVERY: Duration = Duration::from_millis(350);
/// How often the file's blocks are closed, every other time that the rings are
/// drained: this bounds what a kill can cost to less than a second.
const FLUSH_EVERY: Duration = Duration::from_millis(700);
/// How often the clocks are read together.
const CLOCK_EVERY: Duration = Duration::from_secs(10);
/// Drained events that may wait for the writer. Beyond it they stay in the
/// rings, which count what no longer fits.
const MOST_WAITING: usize = 16 << 20;
/// A batch of this size goes to the writer without waiting for more.
const BATCH: usize = 1 << 20;
/// How often it is looked whether a descendant is alive (`--wait-all`).
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long COMMAND's last switch-out is waited for after its end. It comes at once,
/// or when the scheduler gives the task, which has told its parent already, a CPU
/// once more: on a busy machine that was later than 20 ms in 1 of 40 recordings.
const LAST_SWITCH: Duration = Duration::from_millis(250);

/// How long the end of the file is waited for before somebody is told.
pub const LONG: Duration = Duration::from_secs(2);

/// How a recording went.
#[derive(Debug)]
pub struct Report {
    /// COMMAND's raw `wait` status.
    pub status: Option<u32>,
    /// COMMAND could not be executed.
    pub not_executed: Option<nix::errno::Errno>,
    /// What is in the file.
    pub tally: Tally,
    /// Why the file ends before the recording does.
    pub output_error: Option<tr_format::Error>,
    /// The output did not take the end of the trace, and a signal has put an end
    /// to waiting for it; `tally` is empty then.
    pub given_up: bool,
    /// The recorded time in ns.
    pub duration: u64,
    /// What tracing cost.
    pub cost: Cost,
    /// CPU time of COMMAND and its waited-for descendants, in ns.
    pub command_cpu: u64,
    /// The start of the recording.
    pub start: Ktime,
    /// Descendants of COMMAND that were still running at the end.
    pub alive: Vec<Alive>,
}

/// A process that the recording has followed and that goes on after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alive {
    /// Its process id, as `tr`'s own pid namespace has it.
    pub pid: u32,
    /// Its name.
    pub comm: Comm,
}

/// Runs a whole recording.
///
/// # Errors
/// What stands in the way before COMMAND could run: [`Error`]. Whatever
/// happens afterwards stands in the [`Report`].
pub fn record(config: &Config) -> Result<Report, Error> {
    if config.output == Target::Stdout && config.closed_streams[1] {
        return Err(Error::Output(nix::errno::Errno::EBADF.into()));
    }
    if config.output == Target::Stdout && std::io::stdout().is_terminal() {
        return Err(Error::Output(std::io::Error::other(
            "standard output is a terminal",
        )));
    }
    let descriptors = command::inherited_descriptors();
    let prepared = output::prepare(&config.output).map_err(Error::Output)?;
    let (inherited, signals) = prepare(config)?;
    let child = match config.command.is_empty() {
        true => None,
        false => Some(command::start(&config.command, &inherited).map_err(Error::Command)?),
    };
    let mut storage = Storage::new();
    let started = Session::start(
        config,
        &mut storage,
        prepared,
        child.as_ref().map(Stopped::pid),
    );
    let (session, child) = match (started, child) {
        (Ok(session), child) => (session, child),
        (Err(error), child) => {
            if let Some(child) = child {
                child.abandon();
            }
            let _ = inherited.mask.thread_set_mask();
            return Err(error);
        }
    };
    // A full disk or file size limit is an error of writing, not the end of us.
    // SAFETY: ignoring a signal installs no handler.
    let _ = unsafe { nix::sys::signal::signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    urgency::first();
    let command = match child {
        None => None,
        Some(child) => Some(child.release().map_err(Error::Command)?),
    };
    command::leave_descriptors(&descriptors);
    Ok(session.run(config, command, &signals))
}

/// Runs COMMAND without tracing; for `--best-effort`.
///
/// # Errors
/// When it cannot be started.
pub fn run_untraced(config: &Config) -> Result<(u32, Option<nix::errno::Errno>), Error> {
    let (inherited, signals) = prepare(config)?;
    let child = command::start(&config.command, &inherited).map_err(Error::Command)?;
    let command = child.release().map_err(Error::Command)?;
    // Without the programs nobody knows of signals to a group: a second one does
    // less harm than none.
    outlive(command, &signals, |_| false).map_err(Error::Command)
}

/// Takes the signals, and says what COMMAND is to inherit.
fn prepare(config: &Config) -> Result<(Inherited, SignalFd), Error> {
    let user = match &config.user {
        None => None,
        Some(name) => Some(Identity::of(name).map_err(|source| Error::User {
            name: name.clone(),
            source,
        })?),
    };
    let (mask, signals) = signals::take().map_err(Error::System)?;
    let inherited = Inherited {
        user,
        mask,
        sigpipe_ignored: config.sigpipe_ignored,
        closed_streams: config.closed_streams,
    };
    Ok((inherited, signals))
}

fn is_ready(fds: &[PollFd<'_>], at: usize) -> bool {
    fds.get(at).and_then(PollFd::any).unwrap_or(false)
}

/// A recording under way.
struct Session<'a> {
    tracer: Tracer<'a>,
    rings: Rings<'static, Sink>,
    sink: Sink,
    output: Output,
    start: Ktime,
    setup_ns: u64,
    cpu_before: u64,
    /// The recorder's own events that no batch has taken yet.
    own: Vec<LifeEvent>,
    /// The rings hold nothing from before this time.
    drained_until: Ktime,
    next_flush: Instant,
    next_clock: Instant,
}

impl<'a> Session<'a> {
    /// Everything up to the moment before COMMAND is released.
    fn start(
        config: &Config,
        storage: &'a mut Storage,
        prepared: output::Prepared,
        child: Option<u32>,
    ) -> Result<Session<'a>, Error> {
        let kernel = Kernel::detect()?;
        let page = host::page_size();
        let online = host::online_cpus();
        let cpus: Vec<u16> = match &config.cpus {
            None => online.iter().map(|cpu| cpu.0).collect(),
            Some(wanted) => {
                if let Some(cpu) = wanted
                    .iter()
                    .find(|cpu| online.iter().all(|o| o.0 != **cpu))
                {
                    return Err(Error::NoSuchCpu(*cpu));
                }
                wanted.clone()
            }
        };
        let (sched_ring, life_ring) = ring_sizes(cpus.len(), config.buffer, page);
        let (targets, target_cgroup, scope) = match &config.follow {
            Follow::Command => (child.into_iter().collect(), None, Scope::Command),
            Follow::All => (Vec::new(), None, Scope::All),
            Follow::Pids(pids) => {
                let scope = Scope::Pids(pids.iter().map(|pid| Tgid(*pid)).collect());
                (pids.iter().copied().chain(child).collect(), None, scope)
            }
            Follow::Cgroup(path) => {
                use std::os::unix::ffi::OsStrExt;
                let id = host::cgroup_id(path).map_err(|source| Error::Cgroup {
                    path: path.clone(),
                    source,
                })?;
                (
                    child.into_iter().collect(),
                    Some(id),
                    Scope::Cgroup(path.as_os_str().as_bytes().to_vec()),
                )
            }
        };
        if let Follow::Pids(pids) = &config.follow {
            if let Some(pid) = pids
                .iter()
                .find(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
            {
                return Err(Error::NoSuchProcess(*pid));
            }
        }
        let settings = Settings {
            all: config.follow == Follow::All,
            cpus: cpus.clone(),
            possible_cpus: host::possible_cpus(),
            sched_ring,
            life_ring,
            argv_limit: config.argv_limit,
            pid_max: host::pid_max(),
            targets,
            target_cgroup,
            count_emitted: false,
        };
        let mut tracer = Tracer::load(storage, &kernel, &settings)?;
        let sink = Sink::default();
        let rings = tracer.rings(sink.clone())?;
        tracer.attach()?;
        let tasks = tracer.snapshot()?;
        let root = child
            .and_then(|pid| tasks.iter().find(|task| task.seen_tid == pid))
            .map(|task| task.tgid);
        if let Some(root) = root {
            sink.watch(RootWatch::new(root));
            let own = tasks.iter().find(|t| t.seen_tid == std::process::id());
            tracer.watch_signals(root, own.map_or(0, |t| t.tgid));
        }
        let start = host::now();
        let start_clock = host::clock();
        let (name, machine, host_name) = host::uname();
        let buffer = u64::from(sched_ring) * cpus.len() as u64 + u64::from(life_ring);
        let mut redactor = config.redactor.clone();
        let command: Vec<_> = config.command.iter().map(|arg| os_bytes(arg)).collect();
        let meta = Metadata {
            tool_version: config.version.clone(),
            host: host_name,
            kernel: name,
            machine,
            cpus: online,
            page_size: page,
            start,
            start_clock,
            scope,
            command: redactor.command(&command),
            root: root.map(Tgid),
            cwd: std::env::current_dir()
                .map(|dir| os_bytes(dir.as_os_str()))
                .unwrap_or_default(),
            states: StateName::of_linux(),
            options: Options {
                argv_limit: config.argv_limit,
                cpus: config
                    .cpus
                    .iter()
                    .flatten()
                    .map(|cpu| tr_format::event::CpuId(*cpu))
                    .collect(),
                buffer,
                irq_known: kernel.preempt_count.is_some(),
            },
            missing: missing(&kernel, &tracer),
            ci: host::ci(),
        };
        let output = Output::start(prepared, &meta, redactor).map_err(Error::Format)?;
        let clock = LifeEvent {
            time: start,
            cpu: None,
            kind: LifeKind::Clock(start_clock),
        };
        let living = tasks.iter().map(|task| {
            let bytes = match task.followed != 0 && task.kthread == 0 && task.tid == task.tgid {
                true => host::cmdline(task.seen_tid),
                false => Vec::new(),
            };
            let kept = bytes.len().min(config.argv_limit as usize);
            let full_len = u32::try_from(bytes.len()).ok();
            let argv = Argv {
                bytes: bytes.get(..kept).unwrap_or_default().into(),
                full_len,
            };
            convert::snapshot(task, argv)
        });
        output.life(
            Stream::Recorder,
            std::iter::once(clock).chain(living).collect(),
        );
        let now = Instant::now();
        Ok(Session {
            tracer,
            rings,
            sink,
            output,
            start,
            setup_ns: nanoseconds(config.started.elapsed()),
            cpu_before: host::own_cpu(),
            own: Vec::new(),
            drained_until: start,
            next_flush: now + FLUSH_EVERY,
            next_clock: now + CLOCK_EVERY,
        })
    }

    /// Records until the end, whichever comes.
    fn run(mut self, config: &Config, command: Option<Running>, signals: &SignalFd) -> Report {
        let deadline = config.duration.map(|duration| Instant::now() + duration);
        let watched: Vec<OwnedFd> = match (&config.follow, &command) {
            (Follow::Pids(pids), None) => pids
                .iter()
                .filter_map(|pid| {
                    command::pidfd_open(nix::unistd::Pid::from_raw(pid.cast_signed())).ok()
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut alive: Vec<&OwnedFd> = watched.iter().collect();
        let (mut command_ended, mut next_look) = (false, Instant::now());
        let reason = loop {
            let mut until = Instant::now() + DRAIN_EVERY;
            if let Some(deadline) = deadline {
                until = until.min(deadline);
            }
            if command_ended {
                until = until.min(next_look);
            }
            let ready = {
                // Full rings are no news while there is no room to empty them into.
                let rings = match self.sink.bytes() < MOST_WAITING {
                    true => PollFlags::POLLIN,
                    false => PollFlags::empty(),
                };
                let mut fds = vec![
                    PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                    PollFd::new(self.rings.ready(), rings),
                ];
                fds.extend(
                    command
                        .iter()
                        .filter(|_| !command_ended)
                        .map(|c| PollFd::new(c.ended(), PollFlags::POLLIN)),
                );
                fds.extend(
                    alive
                        .iter()
                        .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)),
                );
                let wait = until.saturating_duration_since(Instant::now());
                let wait = PollTimeout::try_from(wait + Duration::from_micros(999))
                    .unwrap_or(PollTimeout::ZERO);
                // An interrupted poll is a reason to look, like any other.
                let _ = nix::poll::poll(&mut fds, wait);
                (0..fds.len())
                    .map(|at| is_ready(&fds, at))
                    .collect::<Vec<_>>()
            };
            self.drain();
            let is = |at: usize| ready.get(at).copied().unwrap_or(false);
            let running = command.as_ref().filter(|_| !command_ended);
            let to_both = |signal| self.tracer.sent_to_both(signal);
            if is(0) && signals::forward(signals, running, to_both) && running.is_none() {
                break EndReason::Signal;
            }
            if command_ended {
                if Instant::now() >= next_look {
                    next_look = Instant::now() + LOOK_EVERY;
                    if self.alive(command.as_ref().map(Running::pid)).is_empty() {
                        break EndReason::TargetsEnded;
                    }
                }
            } else if command.is_some() {
                command_ended = is(2);
                if command_ended && !config.wait_all {
                    break EndReason::CommandEnded;
                }
            } else if !alive.is_empty() {
                let ended: Vec<bool> = (2..2 + alive.len()).map(is).collect();
                let mut ended = ended.into_iter();
                alive.retain(|_| !ended.next().unwrap_or(false));
                if alive.is_empty() {
                    break EndReason::TargetsEnded;
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break EndReason::Duration;
            }
            if self.output.failed() {
                break EndReason::Duration;
            }
        };
        self.end(config, command, command_ended, reason, signals)
    }

    /// The followed processes that have not ended, but for COMMAND, which has. The kernel is asked: a count
    /// of our own would be wrong after a loss.
    fn alive(&mut self, command: Option<u32>) -> Vec<Alive> {
        let tasks = self.tracer.snapshot().unwrap_or_default();
        tasks
            .iter()
            .filter(|t| t.followed != 0 && t.tid == t.tgid && Some(t.seen_tid) != command)
            .map(|task| Alive {
                pid: task.seen_tid,
                comm: Comm::new(&task.comm),
            })
            .collect()
    }

    /// Empties the rings and passes the events on.
    fn drain(&mut self) {
        let before = host::now();
        if self.sink.bytes() < MOST_WAITING {
            self.rings.consume();
            self.drained_until = before;
        }
        let now = Instant::now();
        let flush = now >= self.next_flush;
        if now >= self.next_clock {
            self.next_clock = now + CLOCK_EVERY;
            self.own.push(LifeEvent {
                time: host::now(),
                cpu: None,
                kind: LifeKind::Clock(host::clock()),
            });
        }
        if flush || self.sink.bytes() >= BATCH {
            let mut batch = self.sink.take();
            batch.drained_until = self.drained_until;
            batch.flush = flush;
            batch.own.append(&mut self.own);
            match self.output.offer(batch) {
                Ok(()) if flush => self.next_flush = now + FLUSH_EVERY,
                Ok(()) | Err(None) => {}
                // The writer is busy: go on collecting, up to MOST_WAITING.
                Err(Some(mut batch)) => {
                    self.own.append(&mut batch.own);
                    self.sink.put_back(batch);
                }
            }
        }
    }

    /// Takes COMMAND's last events, detaches, and completes the file.
    fn end(
        mut self,
        config: &Config,
        command: Option<Running>,
        command_ended: bool,
        reason: EndReason,
        signals: &SignalFd,
    ) -> Report {
        if command_ended {
            let latest = Instant::now() + LAST_SWITCH;
            loop {
                self.rings.consume();
                if self.sink.root_done() || Instant::now() >= latest {
                    break;
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        let end = host::now();
        let end_clock = host::clock();
        let alive = match (&config.follow, command_ended) {
            (Follow::Command, true) => self.alive(command.as_ref().map(Running::pid)),
            _ => Vec::new(),
        };
        self.tracer.detach();
        self.rings.consume();
        let usage = self.tracer.usage();
        let mut batch = self.sink.take();
        batch.own = std::mem::take(&mut self.own);
        batch
            .own
            .extend(self.last_losses(usage.recursion_misses, end));
        batch.own.push(LifeEvent {
            time: end,
            cpu: None,
            kind: LifeKind::Clock(end_clock),
        });

        let (mut status, mut not_executed) = (None, None);
        let mut running = command;
        if command_ended {
            if let Some(Ok((raw, errno))) = running.take().map(Running::wait) {
                (status, not_executed) = (Some(raw), errno);
            }
        }
        let cost = Cost {
            recorder_ns: host::own_cpu().saturating_sub(self.cpu_before),
            bpf_ns: usage.run_time_ns,
            setup_ns: self.setup_ns,
        };
        let summary = Summary {
            end,
            end_clock,
            status,
            reason,
            cost,
            tally: None,
        };
        let tracer = self.tracer;
        let to_both = |signal| tracer.sent_to_both(signal);
        let mut pause = Pause::default();
        let finished = self.output.finish(batch, summary, || {
            // As long as COMMAND runs signals are its own; later they are ours.
            let over = running.as_ref().is_none_or(Running::has_ended);
            let signal = signals::forward(signals, running.as_ref(), to_both);
            if over && pause.has_become_long() {
                (config.on_wait)();
            }
            pause.go_on();
            !(signal && over)
        });
        let given_up = finished.is_none();
        let (tally, written) = finished.unwrap_or((Tally::default(), Ok(())));
        // The recording is over; COMMAND may not be.
        if let Some(command) = running {
            if let Ok((raw, errno)) = outlive(command, signals, to_both) {
                (status, not_executed) = (Some(raw), errno);
            }
        }
        Report {
            status,
            not_executed,
            tally,
            output_error: written.err(),
            given_up,
            duration: end.since(self.start),
            cost,
            command_cpu: host::children_cpu(),
            start: self.start,
            alive,
        }
    }

    /// Losses that no ring has reported, and those that no ring knows of.
    fn last_losses(&self, recursion_misses: u64, end: Ktime) -> Vec<LifeEvent> {
        let [sched, life] = self.tracer.accounts();
        let mut events = Vec::new();
        for (cpu, account) in sched {
            if let Some((count, since, until)) = account.pending {
                let stream = Stream::Cpu(tr_format::event::CpuId(cpu));
                events.push(convert::loss(stream, since, until, count));
            }
        }
        for (cpu, account) in life {
            let count = self.sink.lost_life(u32::from(cpu), account.lost);
            if let (1.., Some((_, since, until))) = (count, account.pending) {
                events.push(convert::loss(Stream::Lifecycle, since, until, count));
            }
        }
        let mut whole = |count: u64, cause: LossCause| {
            if count > 0 {
                // When it happened is not known: anywhere in the recording.
                let lost = Lost {
                    stream: Stream::Lifecycle,
                    count: Some(count),
                    until: end,
                    cause,
                };
                events.push(LifeEvent {
                    time: self.start,
                    cpu: None,
                    kind: LifeKind::Lost(lost),
                });
            }
        };
        whole(recursion_misses, LossCause::Recursion);
        whole(self.tracer.follow_overflow(), LossCause::FollowSet);
        events
    }
}

/// Waits for the output: short at first, for it is through in a few ms as a rule.
#[derive(Debug)]
struct Pause {
    since: Instant,
    next: Duration,
    told: bool,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause {
            since: Instant::now(),
            next: Duration::from_micros(200),
            told: false,
        }
    }
}

impl Pause {
    /// True once.
    fn has_become_long(&mut self) -> bool {
        let long = !self.told && self.since.elapsed() >= LONG;
        self.told |= long;
        long
    }

    fn go_on(&mut self) {
        std::thread::sleep(self.next);
        self.next = (self.next * 2).min(Duration::from_millis(20));
    }
}

/// Waits for a COMMAND that goes on after the recording.
fn outlive(
    command: Running,
    signals: &SignalFd,
    to_both: impl Fn(u32) -> bool,
) -> std::io::Result<(u32, Option<nix::errno::Errno>)> {
    loop {
        let mut fds = [
            PollFd::new(command.ended(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        let _ = nix::poll::poll(&mut fds, PollTimeout::NONE);
        signals::forward(signals, Some(&command), &to_both);
        if is_ready(&fds, 0) {
            return command.wait();
        }
    }
}

/// What this kernel cannot tell, for people.
fn missing(kernel: &Kernel, tracer: &Tracer<'_>) -> Vec<String> {
    let mut missing = Vec::new();
    if kernel.preempt_count.is_none() {
        missing
            .push("wake-ups by interrupts are not told from those by the running task".to_owned());
    }
    if tracer.is_raw() {
        missing.push(
            "the kernel refused tp_btf programs; raw_tp programs were used (they cost more)"
                .to_owned(),
        );
    }
    if host::cgroup2_mount().is_none() {
        missing.push("no cgroup v2 hierarchy is mounted: cgroup paths are unknown".to_owned());
    }
    missing
}

fn os_bytes(text: &std::ffi::OsStr) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    text.as_bytes().to_vec()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
