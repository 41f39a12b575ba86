//! One recording, from the detection of the kernel's features to the file's trailer.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use tr_format::event::{Clock, Ktime, LifeEvent, LifeKind, Stream};
use tr_format::meta::{Cost, EndReason, Extra, Metadata, Method, Missing, Summary};
use tr_output::{Destination, Settings as OutputSettings, Target};

use crate::collector::Collector;
use crate::command::{self, Program, Running, Stopped};
use crate::config::{Config, Follow};
use crate::endings::Endings;
use crate::error::Error;
use crate::identity::Identity;
use crate::machine::Sampler;
use crate::marks::{Marks, Owner};
use crate::network::Connections;
use crate::output::{Batch, Output, Tally};
use crate::parts::{Cut, Parts};
use crate::proc::Alive;
use crate::rescue::{self, Plan};
use crate::signals::Signals;
use crate::source::{choose, degraded, recorder, Listen, Source};
use crate::stall::Stall;
use crate::symbols::{self, Request, Search};
use crate::{header, host, inherited, status, urgency, waiter};

/// The interval between two checks for living descendants (`--wait-all`).
const LIVING_CHECK: Duration = Duration::from_millis(250);

/// If `--syscalls` has no effect, beside the other facts that are missing.
const NO_CALLS: &str = "only BPF programs record them, by tp_btf (Linux 5.12)";

/// If `--stacks` and `--off-cpu-stacks` have no effect.
const NO_STACKS: &str = "only BPF programs record them, by tp_btf (Linux 5.11)";

/// How a recording went.
#[derive(Debug)]
pub struct Report {
    /// COMMAND's raw `wait` status.
    pub status: Option<u32>,
    /// The error of COMMAND's exec.
    pub not_executed: Option<Errno>,
    /// Counts of the file's contents.
    pub tally: Tally,
    /// The write error that cut the file short.
    pub output_error: Option<tr_format::Error>,
    /// The output stalled; a signal or [`LIMIT`](crate::LIMIT) ended the wait for it. `tally`
    /// is empty then.
    pub given_up: bool,
    /// The recorded time in ns.
    pub duration: u64,
    /// The recorder's and the programs' CPU time.
    pub cost: Cost,
    /// CPU time of COMMAND and its waited-for descendants, in ns.
    pub command_cpu: u64,
    /// The start of the recording.
    pub start: Ktime,
    /// Descendants of COMMAND that were still running at the end.
    pub alive: Vec<Alive>,
    /// The method of the recording.
    pub method: Method,
    /// A program ran without the rights of its setuid or setgid bit, because it was traced.
    pub took_rights: bool,
    /// The refusals of better methods, the best first.
    pub refusals: Vec<Error>,
    /// Facts that were asked for and that this method does not record, with the reason.
    pub unmet: Vec<Missing>,
    /// The reason why programs could not set marks.
    pub no_marks: Option<String>,
    /// The search for the functions of stacks.
    pub symbols: Option<Search>,
    /// Of a recording in parts: their number, and the file of the last one.
    pub parts: Option<(u64, Target)>,
    /// The first part before the last one that lacks its end.
    pub cut: Option<Cut>,
}

/// Runs a whole recording.
///
/// # Errors
/// Every failure before COMMAND is released. A later failure is part of the [`Report`].
pub fn record(config: &Config) -> Result<Report, Error> {
    rescue::begin(plan(config));
    let Prepared {
        mut session,
        child,
        signals,
        descriptors,
    } = prepare(config)?;
    (config.on_begin.0)(config, session.method, &session.refusals);
    let command = match child {
        Some(child) => Some(session.release(child).map_err(Error::Command)?),
        None => None,
    };
    urgency::real_time();
    command::leave_descriptors(&descriptors);
    Ok(session.run(config, command, &signals))
}

/// All that precedes COMMAND's release.
struct Prepared {
    session: Session,
    child: Option<Stopped>,
    signals: Signals,
    /// Inherited ones, see [`command::leave_descriptors`].
    descriptors: Vec<i32>,
}

fn prepare(config: &Config) -> Result<Prepared, Error> {
    let descriptors = command::inherited_descriptors();
    inherited::own_actions();
    let file = first_file(config);
    let destination = open_output(config, &file)?;
    let marks = create_marks(config);
    let program = program(config)?;
    let pause = config.watching.map(|watching| watching.pause);
    let signals = Signals::take(pause).map_err(Error::System)?;
    let child = program.as_ref().map(command::start).transpose();
    let child = child.map_err(Error::Command)?;
    let pid = child.as_ref().map(Stopped::pid);
    match Session::start(config, (destination, file, marks), pid) {
        Ok(session) => {
            // If it is refused, a ring that is half full waits for the next drain.
            if let Some(ready) = session.collector.ready() {
                let _ = signals.watch(ready);
            }
            if session.collector.source.takes_children() {
                signals.leave_children();
            }
            Ok(Prepared {
                session,
                child,
                signals,
                descriptors,
            })
        }
        Err(error) => {
            child.into_iter().for_each(Stopped::abandon);
            Err(error)
        }
    }
}

/// What happens in a panic. The standard library panics at errors that hardly happen, such as a refused getrandom(2).
fn plan(config: &Config) -> Plan {
    let own = config.clone();
    let untraced = move || match program(&own) {
        Ok(Some(program)) => program.exec(None).1,
        _ => status::FAILED,
    };
    Plan {
        tell: config.on_panic,
        untraced: (config.best_effort && !config.command.is_empty())
            .then(|| Box::new(untraced) as _),
        wait: |child| {
            let waited = waiter::wait_for(child);
            waited.map_or(status::FAILED, rescue::of_command)
        },
    }
}

/// The file for programs' marks, if there is a COMMAND. A recording without it lacks only those.
///
/// # Errors
/// The reason why there is none, in words.
fn create_marks(config: &Config) -> Result<Option<Marks>, String> {
    if config.command.is_empty() {
        return Ok(None);
    }
    let user = config
        .user
        .as_ref()
        .and_then(|name| Identity::of(name).ok());
    let owner = match &user {
        Some(user) if user.is_other() => Owner::Command(user.ids()),
        Some(_) => Owner::Nobody,
        None => tr_output::invoking_user().map_or(Owner::Nobody, Owner::Invoking),
    };
    let mut places = vec![std::env::temp_dir(), "/tmp".into(), "/dev/shm".into()];
    if let Target::File(output) = &config.output {
        places.extend(output.parent().map(|it| Path::new(".").join(it)));
    }
    let marks = Marks::create(&places, owner);
    marks
        .map(Some)
        .map_err(|error| format!("no directory takes $TR_MARKS: {error}"))
}

/// The file of the recording, or of its first part.
pub fn first_file(config: &Config) -> Target {
    match &config.rotation {
        Some(rotation) => rotation.target(&config.output, host::clock().real),
        None => config.output.clone(),
    }
}

/// Opens the output.
pub fn open_output(config: &Config, file: &Target) -> Result<Destination, Error> {
    let settings = OutputSettings {
        mode: 0o600,
        binary: true,
        replaces: config.replaces,
        keeps: config.keeps,
        closed_streams: config.inherited.closed_streams,
    };
    Destination::open(file, &settings).map_err(Error::Output)
}

/// COMMAND and its user; `None` without a COMMAND.
pub fn program(config: &Config) -> Result<Option<Program>, Error> {
    if config.command.is_empty() {
        return Ok(None);
    }
    let identity = |name: &String| {
        Identity::of(name).map_err(|source| Error::User {
            name: name.clone(),
            source,
        })
    };
    let user = config.user.as_ref().map(identity).transpose()?;
    let program = Program::new(&config.command, user, &config.inherited);
    Ok(Some(program.map_err(Error::Command)?))
}

/// A recording under way.
struct Session {
    collector: Collector,
    /// `None`: COMMAND announces nothing.
    listen: Option<Listen>,
    start: Ktime,
    method: Method,
    refusals: Vec<Error>,
    unmet: Vec<Missing>,
    /// The reason why programs cannot set marks.
    no_marks: Option<String>,
    before: Before,
    /// The present part, if the recording has several.
    part: Part,
    /// With `--rotate`.
    parts: Option<Parts>,
}

/// The part of the recording that is being written: all of it without `--rotate`.
struct Part {
    meta: Metadata,
    before: Before,
}

/// What was spent before a recording, or a part of one, in ns.
#[derive(Clone, Copy)]
struct Before {
    /// CPU time of the recorder.
    recorder: u64,
    /// CPU time in the programs.
    kernel: u64,
    /// From the start of `tr` to the release of COMMAND, which only the first part has.
    setup: u64,
}

impl Before {
    /// The cost of what has begun then, by the CPU times so far.
    fn cost(&self, recorder: u64, kernel: Option<u64>) -> Cost {
        Cost {
            recorder_ns: recorder.saturating_sub(self.recorder),
            bpf_ns: kernel.map(|ns| ns.saturating_sub(self.kernel)),
            setup_ns: self.setup,
        }
    }
}

impl Session {
    /// Starts the source and writes the trace's beginning; `child` is COMMAND's process
    /// before its release.
    fn start(
        config: &Config,
        (destination, file, marks): (Destination, Target, Result<Option<Marks>, String>),
        child: Option<u32>,
    ) -> Result<Session, Error> {
        let online = host::online_cpus();
        // Meanwhile: before Linux 5.18 a read of /proc/cpuinfo takes 10 ms on hardware.
        let hardware = std::thread::Builder::new().spawn(host::hardware);
        let (mut started, refusals) = choose::start(config, child, &online)?;
        let extras = started.extras.as_deref().unwrap_or_default();
        let mut unmet = Vec::new();
        if config.syscalls && !extras.contains(&(Extra::SystemCalls as u8)) {
            unmet.push(Missing::new(Extra::SystemCalls, NO_CALLS));
        }
        let stacks = [Extra::Stacks, Extra::OffCpuStacks];
        let has_stacks = stacks.iter().any(|it| extras.contains(&(*it as u8)));
        if config.has_stacks() && !has_stacks {
            unmet.push(Missing::new(Extra::Stacks, NO_STACKS));
        }
        started.missing.extend_from_slice(&unmet);
        let hardware = hardware.ok().and_then(|it| it.join().ok());
        let hardware = hardware.unwrap_or_else(host::hardware);
        let base = header::begin(config, (online, hardware), child);
        let meta = header::metadata(config, &started, base);
        let (time, clock) = (meta.start, meta.start_clock);
        let connections = Connections::new(config.mask_addresses);
        let (redactor, watching) = (config.redactor.clone(), config.watching);
        let output = Output::start(destination, &meta, redactor, connections, watching)
            .map_err(Error::Format)?;
        started.source.begin(time);
        let living = std::mem::take(&mut started.living);
        let machine = begin_file(config, &output, (time, clock), living);
        let before = Before {
            recorder: host::own_cpu(),
            kernel: 0,
            setup: u64::try_from(config.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        let (marks, no_marks) = marks.map_or_else(|why| (None, Some(why)), |it| (it, None));
        let mut collector =
            Collector::new(started.source, output, time, (marks, machine), config.light);
        if let Some(why) = &no_marks {
            collector.push(recorder(time, degraded(why.as_str())));
        }
        Ok(Session {
            listen: started.listen,
            collector,
            start: time,
            method: meta.method(),
            part: Part { meta, before },
            parts: config.rotation.map(|it| Parts::new(it, file)),
            refusals,
            unmet,
            no_marks,
            before,
        })
    }

    fn release(&mut self, child: Stopped) -> std::io::Result<Running> {
        let Some(listen) = self.listen.take() else {
            return child.release();
        };
        let (command, listener) = child.release_announcing()?;
        listen(listener);
        Ok(command)
    }

    /// Records until COMMAND or the targets end, a signal or the deadline.
    fn run(mut self, config: &Config, command: Option<Running>, signals: &Signals) -> Report {
        let mut endings = Endings::new(config, command, signals);
        let mut next_check = Instant::now();
        let reason = loop {
            let check = endings.command_ended.then_some(next_check);
            endings.wait(signals, check);
            self.collector.drain();
            self.rotate(config);
            if let Some(reason) = self.signalled(&endings, signals) {
                break reason;
            }
            if let Some(reason) = endings.note(config.wait_all) {
                break reason;
            }
            if check.is_some_and(|check| Instant::now() >= check) {
                next_check = Instant::now() + LIVING_CHECK;
                if self.alive(endings.command.as_ref()).is_empty() {
                    break EndReason::TargetsEnded;
                }
            }
            if endings.is_due() || self.collector.output.failed() {
                break EndReason::Duration;
            }
        };
        self.end(config, endings, reason, signals)
    }

    /// Begins the next part of the recording, if one is due. Where its file cannot be opened, the
    /// present one goes on.
    fn rotate(&mut self, config: &Config) {
        let written = self.collector.output.written();
        let Some(parts) = self.parts.as_mut().filter(|it| it.is_due(written)) else {
            return;
        };
        let (time, clock) = (host::now(), host::clock());
        let file = parts.next(&config.output, clock.real);
        let meta = Metadata {
            start: time,
            start_clock: clock,
            cpus: host::online_cpus(),
            ..self.part.meta.clone()
        };
        let output = open_output(config, &file).and_then(|destination| {
            let connections = Connections::new(config.mask_addresses);
            let redactor = config.redactor.clone();
            Output::start(destination, &meta, redactor, connections, config.watching)
                .map_err(Error::Format)
        });
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                if !parts.refuse() {
                    return;
                }
                let what = format!("the next part of the recording cannot be opened: {error}");
                return self.collector.push(recorder(time, degraded(what)));
            }
        };
        let counters = self.collector.counters();
        let Some(events) = self.collector.source.change_part(time) else {
            return parts.postpone();
        };
        let (mut own, kernel) = (events.last, events.kernel_ns);
        own.push(recorder(time, LifeKind::Clock(clock)));
        own.push(recorder(time, counters));
        let cpu = host::own_cpu();
        let before = Before {
            recorder: cpu,
            kernel: kernel.unwrap_or(0),
            setup: 0,
        };
        let ended = std::mem::replace(&mut self.part, Part { meta, before });
        let summary = Summary {
            end: time,
            end_clock: clock,
            reason: EndReason::Duration,
            cost: ended.before.cost(cpu, kernel),
            machine: Some(self.collector.machine.totals()),
            ..Summary::default()
        };
        let machine = begin_file(config, &output, (time, clock), events.first);
        let old = self.collector.change((output, machine), own, time);
        parts.change(file, old, summary);
    }

    /// Passes signals on to a running COMMAND; without one a signal ends the recording.
    fn signalled(&self, endings: &Endings, signals: &Signals) -> Option<EndReason> {
        let running = endings.running();
        let any = signals.forward(running, Some(&*self.collector.source));
        (any && running.is_none()).then_some(EndReason::Signal)
    }

    /// The followed processes that have not ended, without COMMAND itself.
    fn alive(&mut self, command: Option<&Running>) -> Vec<Alive> {
        self.collector.source.alive(command.map(Running::pid))
    }

    /// Takes COMMAND's last events, detaches, and completes the file.
    fn end(
        mut self,
        config: &Config,
        endings: Endings,
        reason: EndReason,
        signals: &Signals,
    ) -> Report {
        if endings.command_ended {
            self.collector.source.drain_command();
        }
        let counters = self.collector.counters();
        let (end, end_clock) = (host::now(), host::clock());
        let alive = if endings.command_ended && config.follow == Follow::Command {
            self.alive(endings.command.as_ref())
        } else {
            Vec::new()
        };
        let last = self.collector.source.stop((self.start, end));
        let mut own = last.losses;
        own.push(recorder(end, LifeKind::Clock(end_clock)));
        own.push(recorder(end, counters));
        let machine = self.collector.machine.totals();
        let (batches, source, output) = self.collector.finish(own, end);
        let (mut waited, running) = endings.reap(last.reaped);
        let cpu = host::own_cpu();
        let begin = self.part.meta.start;
        let summary = Summary {
            end,
            end_clock,
            status: waited.map(|waited| waited.status),
            reason,
            cost: self.part.before.cost(cpu, last.kernel_ns),
            tally: None,
            usage: None,
            machine: Some(machine),
        };
        let written = {
            let waiting = Waiting {
                running: running.as_ref(),
                signals,
                source: &*source,
            };
            let written = write_end(config, (output, batches), (begin, summary), &waiting);
            match self.parts {
                Some(parts) => written.with_parts(parts, &waiting),
                None => written,
            }
        };
        if let Some(command) = running {
            waited = signals.forward_until_end(command, Some(&*source)).ok();
        }
        Report {
            status: waited.map(|waited| waited.status),
            not_executed: waited.and_then(|waited| waited.not_executed),
            tally: written.tally,
            output_error: written.error,
            given_up: written.given_up,
            duration: end.since(self.start),
            cost: self.before.cost(cpu, last.kernel_ns),
            command_cpu: waited.map_or(0, |waited| {
                waited.usage.user_ns.saturating_add(waited.usage.system_ns)
            }),
            start: self.start,
            took_rights: last.took_rights,
            alive,
            method: self.method,
            refusals: self.refusals,
            unmet: self.unmet,
            no_marks: self.no_marks,
            symbols: written.symbols,
            parts: written.parts,
            cut: written.cut,
        }
    }
}

/// Writes the first events of a file, before any batch: the machine's counters, and these.
fn begin_file(
    config: &Config,
    output: &Output,
    (time, clock): (Ktime, Clock),
    events: Vec<LifeEvent>,
) -> Sampler {
    let clock = recorder(time, LifeKind::Clock(clock));
    let mut machine = Sampler::new(&config.follow);
    let counters = recorder(host::now(), LifeKind::Counters(machine.sample()));
    let first = [clock, counters].into_iter().chain(events).collect();
    output.life(Stream::Recorder, first);
    machine
}

/// What a wait for the output goes on with: signals are passed on to COMMAND.
struct Waiting<'a> {
    running: Option<&'a Running>,
    signals: &'a Signals,
    source: &'a dyn Source,
}

impl Waiting<'_> {
    fn go_on(&self, stall: &mut Stall) -> bool {
        stall.go_on(self.running, self.signals, Some(self.source))
    }
}

/// The end of the file.
struct Written {
    tally: Tally,
    error: Option<tr_format::Error>,
    given_up: bool,
    symbols: Option<Search>,
    parts: Option<(u64, Target)>,
    cut: Option<Cut>,
}

impl Written {
    /// With the counts of the parts before, and the first that lacks its end.
    fn with_parts(mut self, parts: Parts, waiting: &Waiting<'_>) -> Written {
        self.parts = Some((parts.count, parts.file.clone()));
        let mut stall = Stall::new(|| {});
        let (before, cut) = parts.finish(|| waiting.go_on(&mut stall));
        self.tally.add(&before);
        self.cut = cut;
        self
    }
}

/// Names the stacks, and writes the last batches and the summary of a recording since `start`.
fn write_end(
    config: &Config,
    (output, mut batches): (Output, Vec<Batch>),
    (start, summary): (Ktime, Summary),
    waiting: &Waiting<'_>,
) -> Written {
    let (end, real) = (summary.end, summary.end_clock.real);
    // Processes that were there before may have their lists since then.
    let begin = match config.follow {
        Follow::Command => real.saturating_sub(end.since(start)),
        _ => 0,
    };
    let symbols = if config.has_stacks() {
        let mut stall = Stall::new(|| {});
        let mut go_on = || waiting.go_on(&mut stall);
        let batches = std::mem::take(&mut batches);
        name_stacks(config, &output, (batches, end), (begin, real), &mut go_on)
    } else {
        None
    };
    let mut stall = Stall::new(config.on_wait);
    let finished = output.finish(batches, summary, || waiting.go_on(&mut stall));
    let given_up = finished.is_none();
    let (tally, written) = finished.unwrap_or((Tally::default(), Ok(())));
    Written {
        tally,
        error: written.err(),
        given_up,
        symbols,
        parts: None,
        cut: None,
    }
}

/// Searches the functions of the stacks and writes them, after the last batches; the search, if
/// there were stacks to name. With `--no-symbols` it searches only the paths of the files, for
/// `tr symbolize`.
fn name_stacks(
    config: &Config,
    output: &Output,
    (batches, end): (Vec<Batch>, Ktime),
    lifetime: (u64, u64),
    go_on: &mut impl FnMut() -> bool,
) -> Option<Search> {
    let request = Request {
        lifetime,
        paths_only: !config.symbols,
        ..output.unnamed(batches, &mut *go_on)?
    };
    let (events, search) = symbols::search(&request, symbols::LIMIT, go_on);
    let events = events.into_iter().map(|kind| recorder(end, kind));
    output.life(Stream::Lifecycle, events.collect());
    (config.symbols && search.frames > 0).then_some(search)
}
