//! Makes one recording, from the detection of the kernel's features to the file's trailer.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use tr_format::event::{Clock, Ktime, LifeEvent, LifeKind, Stream};
use tr_format::mask::Masked;
use tr_format::meta::{
    CommandEnd, Cost, EndReason, EndedByLimit, Extra, Full, Metadata, Method, Missing, Summary,
};
use tr_output::{Destination, Settings as OutputSettings, Target};

use crate::collector::{Collector, FileOutput};
use crate::command::{self, Program, Running, Stopped, Waited};
use crate::config::{Config, Follow};
use crate::endings::Endings;
use crate::error::Error;
use crate::guard::Guard;
use crate::identity::Identity;
use crate::last_events::{write_events, Waiting};
use crate::machine::Sampler;
use crate::marks::{Marks, Owner};
use crate::network::Connections;
use crate::output::{Output, Tally};
use crate::parts::{Cut, Parts, WrittenParts};
use crate::proc::Alive;
use crate::rescue::{self, Plan};
use crate::signals::Signals;
use crate::size::SizeLimit;
use crate::source::{choose, degraded, recorder, Last, Listen, Source};
use crate::symbols::Search;
use crate::{header, host, inherited, scripts, urgency, waiter};
use tr_output::status;

/// The interval between two checks whether descendants of COMMAND still live (`--wait-all`).
const LIVING_CHECK: Duration = Duration::from_millis(250);

/// The reason why the option `--syscalls` may have no effect in a recording, as text for the user.
const NO_CALLS: &str = "only BPF programs record them, by tp_btf (Linux 5.12)";

/// The reason why the options `--stacks` and `--off-cpu-stacks` may have no effect in a recording, as text for the
/// user.
const NO_STACKS: &str = "only BPF programs record them, by tp_btf (Linux 5.11)";

/// The reason why no scripts are recorded, as text for the user.
const NO_SCRIPTS: &str =
    "shell scripts in files: openat2 cannot look a path up without waiting here (Linux 5.12)";

/// The result of a recording, for the report to the user.
#[derive(Debug)]
pub struct Report {
    /// The raw `wait` status with which COMMAND ended; `None` if COMMAND has not ended or there is none.
    pub status: Option<u32>,
    /// The error of COMMAND's exec, if COMMAND could not be executed.
    pub not_executed: Option<Errno>,
    /// The limit of `--timeout` or `--stall` that has ended COMMAND; `None` if none has.
    pub limit: Option<EndedByLimit>,
    /// How many events were written, lost and masked.
    pub tally: Tally,
    /// The error of the write that cut the trace file short, if a write failed.
    pub output_error: Option<tr_format::Error>,
    /// Whether the output accepted no more data, and a signal or [`LIMIT`](crate::LIMIT) ended the wait for it.
    /// `tally` lacks the last file then.
    pub given_up: bool,
    /// The duration of the recording in ns.
    pub duration: u64,
    /// The CPU time that the recorder and the BPF programs took.
    pub cost: Cost,
    /// The CPU time of COMMAND and of its descendants that were waited for, in ns.
    pub command_cpu: u64,
    /// The time at which the recording began.
    pub start: Ktime,
    /// The descendants of COMMAND that still ran when the recording ended, if it ended after COMMAND.
    pub alive: Vec<Alive>,
    /// The method by which the recording was made.
    pub method: Method,
    /// Whether a program ran without the rights of its setuid or setgid bit or its file capabilities, because it was
    /// traced.
    pub took_rights: bool,
    /// The reasons why better methods of recording were refused, best method first.
    pub refusals: Vec<Error>,
    /// The facts that were requested but that this method does not record, with the reasons.
    pub unmet: Vec<Missing>,
    /// The reason why programs could not set marks (named moments); `None` if they could.
    pub no_marks: Option<String>,
    /// The result of the search for the functions of recorded stacks; `None` if there was no search.
    pub symbols: Option<Search>,
    /// The parts of a recording that `--rotate` has divided; `None` if it was not divided.
    pub parts: Option<WrittenParts>,
    /// The first file that lacks its end among the files of all parts except the last part; `None` if there is none.
    pub cut: Option<Cut>,
    /// The limit of the trace file's size in bytes that ended the recording; `None` if the recording ended for another
    /// reason.
    pub full: Option<Full>,
}

/// Runs a whole recording.
///
/// # Errors
/// Any failure before COMMAND is released. A later failure is part of the [`Report`].
pub fn record(config: &Config) -> Result<Report, Error> {
    rescue::begin(plan(config));
    let Prepared {
        mut session,
        child,
        signals,
        descriptors,
    } = prepare(config)?;
    (config.notices.on_begin.0)(config, session.method, &session.refusals);
    let command = match child {
        Some(child) => Some(session.release(child).map_err(Error::Command)?),
        None => None,
    };
    urgency::real_time();
    command::leave_descriptors(&descriptors);
    Ok(session.run(config, command, &signals))
}

/// A recording that is ready to begin: only COMMAND still has to be released.
struct Prepared {
    session: Session,
    child: Option<Stopped>,
    signals: Signals,
    /// The numbers of the descriptors that `tr` inherited. [`command::leave_descriptors`] closes `tr`'s copies of them.
    descriptors: Vec<i32>,
}

fn prepare(config: &Config) -> Result<Prepared, Error> {
    let descriptors = command::inherited_descriptors();
    inherited::own_actions();
    let file = first_file(config);
    let destination = open_output(config, &file)?;
    let marks = create_marks(config);
    let opened = Opened {
        destination,
        file,
        marks,
    };
    let program = program(config)?;
    let pause = config.notices.watching.map(|watching| watching.pause);
    let signals = Signals::take(pause).map_err(Error::System)?;
    let child = program.as_ref().map(command::start).transpose();
    let child = child.map_err(Error::Command)?;
    let pid = child.as_ref().map(Stopped::pid);
    match Session::start(config, opened, pid) {
        Ok(session) => {
            // If the kernel refuses to watch the source's descriptor, a buffer of the source that is half full is
            // drained only at the end of the interval.
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

/// The functions that handle a panic of the recorder during a recording with these settings. The standard library
/// panics at errors that hardly ever happen, such as a refused getrandom(2).
fn plan(config: &Config) -> Plan {
    let own = config.clone();
    let untraced = move || match program(&own) {
        Ok(Some(program)) => program.exec(None).1,
        _ => status::FAILED,
    };
    Plan {
        tell: config.notices.on_panic,
        untraced: (config.command.best_effort && !config.command.argv.is_empty())
            .then(|| Box::new(untraced) as _),
        wait: |child| {
            let waited = waiter::wait_for(child);
            waited.map_or(status::FAILED, rescue::of_command)
        },
    }
}

/// Creates the file to which programs write marks (named moments), if there is a COMMAND. Without this file the
/// recording lacks only the marks.
///
/// # Errors
/// The reason why the file could not be created, in words.
fn create_marks(config: &Config) -> Result<Option<Marks>, String> {
    if config.command.argv.is_empty() {
        return Ok(None);
    }
    let user = config
        .command
        .user
        .as_ref()
        .and_then(|name| Identity::of(name).ok());
    let owner = match &user {
        Some(user) if user.is_other() => Owner::Command(user.ids()),
        Some(_) => Owner::Nobody,
        None => tr_output::invoking_user().map_or(Owner::Nobody, Owner::Invoking),
    };
    let mut places = vec![std::env::temp_dir(), "/tmp".into(), "/dev/shm".into()];
    if let Target::File(output) = &config.file.target {
        places.extend(output.parent().map(|parent| Path::new(".").join(parent)));
    }
    let marks = Marks::create(&places, owner);
    marks
        .map(Some)
        .map_err(|error| format!("no directory allows the file $TR_MARKS: {error}"))
}

/// The trace file of the recording or, with `--rotate`, of the recording's first part.
pub fn first_file(config: &Config) -> Target {
    match &config.file.rotation {
        Some(rotation) => rotation.target(&config.file.target, host::clock().real),
        None => config.file.target.clone(),
    }
}

/// Opens the output of the recording, which is `file`.
pub fn open_output(config: &Config, file: &Target) -> Result<Destination, Error> {
    let settings = OutputSettings {
        mode: 0o600,
        binary: true,
        replaces: config.file.replaces,
        keeps: config.file.keeps,
        closed_streams: config.command.inherited.closed_streams,
    };
    Destination::open(file, &settings).map_err(Error::Output)
}

/// The program that is executed for COMMAND, with its user; `None` if the recording has no COMMAND.
pub fn program(config: &Config) -> Result<Option<Program>, Error> {
    if config.command.argv.is_empty() {
        return Ok(None);
    }
    let identity = |name: &String| {
        Identity::of(name).map_err(|source| Error::User {
            name: name.clone(),
            source,
        })
    };
    let user = config.command.user.as_ref().map(identity).transpose()?;
    let program = Program::new(&config.command.argv, user, &config.command.inherited);
    Ok(Some(program.map_err(Error::Command)?))
}

/// The files of a recording that were opened before it begins: the output, and the file to which programs write marks.
struct Opened {
    destination: Destination,
    /// The name of the recording's output.
    file: Target,
    /// The file to which programs write marks (named moments), or the reason why it could not be created. The file is
    /// `None` if there is no COMMAND.
    marks: Result<Option<Marks>, String>,
}

/// The state of a recording that is in progress.
struct Session {
    collector: Collector,
    /// The function that receives the announcements of COMMAND's calls of ptrace(2); `None` if COMMAND announces
    /// nothing.
    listen: Option<Listen>,
    start: Ktime,
    method: Method,
    refusals: Vec<Error>,
    unmet: Vec<Missing>,
    /// The reason why programs cannot set marks (named moments); `None` if they can.
    no_marks: Option<String>,
    before: Before,
    part: RecordingPart,
    /// The parts of the recording, if `--rotate` divides it.
    parts: Option<Parts>,
    /// The guard of COMMAND's limits of time; `None` before COMMAND runs, or if there are no limits.
    guard: Option<Guard>,
}

/// The part of the recording that is being written; without `--rotate`, the whole recording.
struct RecordingPart {
    meta: Metadata,
    before: Before,
}

/// The times that were spent before a recording, or before a part of a rotated recording, began.
#[derive(Clone, Copy)]
struct Before {
    /// The CPU time in ns that the recorder had used before the recording, or this part of it, began.
    recorder: u64,
    /// The CPU time in ns that the BPF programs had used before the recording, or this part of it, began.
    kernel: u64,
    /// The time from the start of `tr` until COMMAND was ready to be released, in ns. Only the first part has it.
    setup: u64,
}

impl Before {
    /// The cost of the recording or of its present part. `recorder` and `kernel` are the CPU times that the recorder
    /// and the BPF programs have spent in all so far, in ns.
    fn cost(&self, recorder: u64, kernel: Option<u64>) -> Cost {
        Cost {
            recorder_ns: recorder.saturating_sub(self.recorder),
            bpf_ns: kernel.map(|ns| ns.saturating_sub(self.kernel)),
            setup_ns: self.setup,
        }
    }
}

impl Session {
    /// Starts the source of events and writes the beginning of the trace. `child` is COMMAND's process before
    /// its release.
    fn start(config: &Config, opened: Opened, child: Option<u32>) -> Result<Session, Error> {
        let online = host::online_cpus();
        // A thread reads the facts about the hardware meanwhile, because before Linux 5.18 a read of /proc/cpuinfo
        // takes 10 ms outside of virtual machines.
        let reader = std::thread::Builder::new().spawn(host::hardware);
        let (mut started, refusals) = choose::start(config, child, &online)?;
        let extras = started.extras.as_deref().unwrap_or_default();
        let mut unmet = Vec::new();
        if config.facts.syscalls && !extras.contains(&(Extra::SystemCalls as u8)) {
            unmet.push(Missing::new(Extra::SystemCalls, NO_CALLS));
        }
        let stacks = [Extra::Stacks, Extra::OffCpuStacks];
        let has_stacks = stacks.iter().any(|extra| extras.contains(&(*extra as u8)));
        if config.facts.has_stacks() && !has_stacks {
            unmet.push(Missing::new(Extra::Stacks, NO_STACKS));
        }
        started.missing.extend_from_slice(&unmet);
        if config.facts.scripts.is_some() && !scripts::is_possible() {
            started.missing.push(Missing::new(None, NO_SCRIPTS));
        }
        let hardware = reader.ok().and_then(|reader| reader.join().ok());
        let machine = header::Machine {
            cpus: online,
            hardware: hardware.unwrap_or_else(host::hardware),
        };
        let base = header::begin(config, machine, child);
        let mut meta = header::metadata(config, &started, base);
        let connections = Connections::new(config.mask.addresses);
        let (mut redactor, watching) = (config.mask.redactor.clone(), config.notices.watching);
        let machine = Sampler::new(&config.scope.follow);
        // The first masking of secrets builds tables, which takes milliseconds. So it is done before COMMAND's wall
        // time begins.
        let masked = Masked::new(meta.clone(), &mut redactor).map_err(Error::Format)?;
        // Gives up the CPU, so that the thread continues with a new time slice. That slice is enough for the remaining
        // steps, even on a busy machine.
        std::thread::yield_now();
        (meta.start, meta.start_clock) = (host::now(), host::clock());
        let time = meta.start;
        let masked = masked.beginning(time, meta.start_clock);
        let output = Output::start(
            opened.destination,
            &masked,
            redactor,
            connections,
            watching,
            config.facts.scripts,
        )
        .map_err(Error::Format)?;
        started.source.begin(time);
        let living = std::mem::take(&mut started.living);
        let machine = begin_file(machine, &output, &meta, living);
        let before = Before {
            recorder: host::own_cpu(),
            kernel: 0,
            setup: u64::try_from(config.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        let (marks, no_marks) = match opened.marks {
            Ok(marks) => (marks, None),
            Err(reason) => (None, Some(reason)),
        };
        let file = FileOutput { output, machine };
        let mut collector = Collector::new(started.source, file, time, marks, config.facts.light);
        if let Some(why) = &no_marks {
            collector.push(recorder(time, degraded(why.as_str())));
        }
        Ok(Session {
            listen: started.listen,
            collector,
            start: time,
            method: meta.method(),
            part: RecordingPart { meta, before },
            parts: (config.file.rotation).map(|rotation| Parts::new(rotation, opened.file)),
            refusals,
            unmet,
            no_marks,
            before,
            guard: None,
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

    /// Records until COMMAND or the followed processes end, a signal comes, the deadline or the limit of the file's
    /// size is reached, or a write fails. Returns the report for the user.
    fn run(mut self, config: &Config, command: Option<Running>, signals: &Signals) -> Report {
        let pid = command.as_ref().map(Running::pid);
        self.guard = pid.and_then(|pid| Guard::new(&config.guard, pid));
        let mut endings = Endings::new(config, command, signals);
        let mut next_check = Instant::now();
        let mut size = config.limits.size.map(SizeLimit::new);
        let mut full = None;
        let reason = loop {
            let check = endings.command_ended.then_some(next_check);
            let look = self.guard.as_ref().map(Guard::next);
            endings.wait(signals, check.into_iter().chain(look).min());
            self.collector.drain();
            self.rotate(config);
            if let Some(reason) = self.signalled(&endings, signals) {
                break reason;
            }
            let noted = endings.note(config.command.wait_all);
            self.guard(&endings);
            let is_ending = self.guard.as_ref().is_some_and(Guard::is_ending);
            if let Some(reason) = noted.filter(|_| !is_ending) {
                break reason;
            }
            let was_ending = self
                .guard
                .as_ref()
                .is_some_and(|guard| guard.limit().is_some());
            if was_ending && endings.command_ended && !is_ending {
                break EndReason::CommandEnded;
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
            let mut is_full = |limit| self.collector.is_full(limit);
            if size.as_mut().is_some_and(&mut is_full) {
                full = config.limits.size;
                break EndReason::Duration;
            }
        };
        let end = End { reason, full };
        self.end(config, endings, end, signals)
    }

    /// Begins the next part of a rotated recording, if it is due. If its file cannot be opened, the present part
    /// continues.
    fn rotate(&mut self, config: &Config) {
        let written = self.collector.output.written();
        let Some(parts) = self.parts.as_mut().filter(|parts| parts.is_due(written)) else {
            return;
        };
        let (time, clock) = (host::now(), host::clock());
        let file = parts.next(&config.file.target, clock.real);
        let meta = Metadata {
            start: time,
            start_clock: clock,
            cpus: host::online_cpus(),
            ..self.part.meta.clone()
        };
        let output = open_output(config, &file).and_then(|destination| {
            let connections = Connections::new(config.mask.addresses);
            let mut redactor = config.mask.redactor.clone();
            let watching = config.notices.watching;
            Masked::new(meta.clone(), &mut redactor)
                .and_then(|meta| {
                    let scripts = config.facts.scripts;
                    Output::start(destination, &meta, redactor, connections, watching, scripts)
                })
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
        let machine = Sampler::new(&config.scope.follow);
        let machine = begin_file(machine, &output, &meta, events.first);
        let ended = std::mem::replace(&mut self.part, RecordingPart { meta, before });
        let summary = Summary {
            end: time,
            end_clock: clock,
            reason: EndReason::Duration,
            cost: ended.before.cost(cpu, kernel),
            machine: Some(self.collector.machine.totals()),
            ..Summary::default()
        };
        let last = self
            .collector
            .change(FileOutput { output, machine }, own, time);
        parts.change(file, last, summary);
    }

    /// Passes the signals that `tr` got on to a running COMMAND. If no COMMAND runs, a signal ends the recording, and
    /// the reason for the end is returned.
    fn signalled(&self, endings: &Endings, signals: &Signals) -> Option<EndReason> {
        let running = endings.running();
        let any = signals.forward(running, Some(&*self.collector.source));
        (any && running.is_none()).then_some(EndReason::Signal)
    }

    /// Lets the guard examine COMMAND's processes, if COMMAND has limits of time.
    fn guard(&mut self, endings: &Endings) {
        let is_over = endings.command_ended;
        let source = &mut self.collector.source;
        if let Some(guard) = &mut self.guard {
            if !is_over || guard.limit().is_some() {
                guard.step(|| source.working());
            }
        }
    }

    /// The followed processes that have not ended. COMMAND's own process is left out.
    fn alive(&mut self, command: Option<&Running>) -> Vec<Alive> {
        self.collector.source.alive(command.map(Running::pid))
    }

    /// Ends the recording: drains COMMAND's last events, detaches the source of events, and completes the trace file.
    /// Returns the report for the user.
    fn end(mut self, config: &Config, endings: Endings, end: End, signals: &Signals) -> Report {
        let End { reason, full } = end;
        let LastFacts {
            end,
            end_clock,
            alive,
            last,
            own,
        } = self.stop(config, &endings);
        let machine = self.collector.machine.totals();
        let (source, batches) = self.collector.finish(own, end);
        let (waited, running) = endings.reap(last.reaped);
        let mut command = LastCommand {
            waited,
            running,
            guard: self.guard,
            signals,
            source,
        };
        let cpu = host::own_cpu();
        let mut summary = Summary {
            end,
            end_clock,
            status: command.status(),
            reason,
            cost: self.part.before.cost(cpu, last.kernel_ns),
            machine: Some(machine),
            ended: command.guard.as_ref().and_then(Guard::limit),
            ..Summary::default()
        };
        let start = self.part.meta.start;
        let mut events = write_events(config, batches, start, &summary, &command.waiting());
        if let Some(limit) = full {
            events.settle(&command.waiting());
            command.wait();
            summary.status = command.status();
            summary.full = Some(command.after_limit(limit));
            summary.ended = command.guard.as_ref().and_then(Guard::limit);
        }
        let full = summary.full;
        let mut written = events.finish(config, summary, &command.waiting());
        if let Some(parts) = self.parts {
            written = written.with_parts(parts, &command.waiting());
        }
        command.wait();
        let waited = command.waited;
        Report {
            status: command.status(),
            not_executed: waited.and_then(|waited| waited.not_executed),
            limit: command.guard.and_then(|guard| guard.limit()),
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
            full,
        }
    }

    /// Stops the source of events, after the last events of COMMAND have been drained if it has ended.
    fn stop(&mut self, config: &Config, endings: &Endings) -> LastFacts {
        if endings.command_ended {
            self.collector.source.drain_command();
        }
        let counters = self.collector.counters();
        let (end, end_clock) = (host::now(), host::clock());
        let alive = if endings.command_ended && config.scope.follow == Follow::Command {
            self.alive(endings.command.as_ref())
        } else {
            Vec::new()
        };
        let mut last = self.collector.source.stop((self.start, end));
        let mut own = std::mem::take(&mut last.losses);
        own.push(recorder(end, LifeKind::Clock(end_clock)));
        own.push(recorder(end, counters));
        LastFacts {
            end,
            end_clock,
            alive,
            last,
            own,
        }
    }
}

/// The facts about the end of a recording that are known when the source of events has stopped.
struct LastFacts {
    end: Ktime,
    end_clock: Clock,
    /// The descendants of COMMAND that still run.
    alive: Vec<Alive>,
    last: Last,
    /// The last events of the recorder itself.
    own: Vec<LifeEvent>,
}

/// COMMAND while the recorder completes the trace file. If COMMAND still runs, signals are passed on to it.
struct LastCommand<'a> {
    /// The end of COMMAND; `None` while it runs, or if there is no COMMAND.
    waited: Option<Waited>,
    running: Option<Running>,
    guard: Option<Guard>,
    signals: &'a Signals,
    source: Box<dyn Source>,
}

impl LastCommand<'_> {
    fn waiting(&self) -> Waiting<'_> {
        Waiting {
            running: self.running.as_ref(),
            signals: self.signals,
            source: &*self.source,
        }
    }

    /// The raw `wait` status with which COMMAND ended, if it has ended.
    fn status(&self) -> Option<u32> {
        self.waited.map(|waited| waited.status)
    }

    /// Waits for the end of COMMAND, if it still runs.
    fn wait(&mut self) {
        let Some(command) = self.running.take() else {
            return;
        };
        let source = Some(&*self.source);
        let waited = self
            .signals
            .forward_until_end(command, source, self.guard.as_mut());
        self.waited = waited.ok();
    }

    /// The facts about a recording that its limit of size (in bytes) has ended. If COMMAND has ended meanwhile, its
    /// end is included.
    fn after_limit(&self, limit: u64) -> Full {
        Full {
            limit,
            command: self.waited.map(|waited| CommandEnd {
                time: host::now(),
                usage: waited.usage,
            }),
        }
    }
}

/// The reason for the end of a recording.
struct End {
    reason: EndReason,
    /// The limit of the trace file's size in bytes, if it ended the recording.
    full: Option<u64>,
}

/// Writes the first events of a trace file, before any batch: the clocks, the machine's counters, and `events`.
/// Returns the sampler `machine`.
fn begin_file(
    mut machine: Sampler,
    output: &Output,
    meta: &Metadata,
    events: Vec<LifeEvent>,
) -> Sampler {
    let clock = recorder(meta.start, LifeKind::Clock(meta.start_clock));
    let counters = recorder(host::now(), LifeKind::Counters(machine.sample()));
    let first = [clock, counters].into_iter().chain(events).collect();
    output.life(Stream::Recorder, first);
    machine
}
