//! `tr record`: runs COMMAND and writes the trace of it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tr_format::event::{LifeKind, LossCause, Stream};
use tr_format::meta::Method as RecordedBy;
use tr_record::{Choice, Config, Error, Follow, Inherited, Report, SudoRefusal, Target};
use tr_redact::Redactor;
use tr_report::units::{bytes, count};

use crate::args::{self, Cpus};
use crate::called::program;
use crate::output::RECORDING;
use crate::{inherited, open, status};
use tr_report::called::TR;

/// Record a command, or the whole machine
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status: COMMAND's own, 128+N when signal N killed it; 125 when tr failed,
126 when COMMAND cannot be executed, 127 when it is not found.

Examples:
  tr record -- make -j8                  record a build into trace.bin
  tr record -o test.bin -- cargo test    into another file
  tr record -a --duration 10s            the whole machine for ten seconds")]
pub struct Args {
    /// The trace; - is standard output [default: trace.bin, and the recording before stays as
    /// trace.bin.old]. A file that is not a recording is not replaced
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE whatever it is
    #[arg(long)]
    force: bool,
    /// Record the whole machine, not only COMMAND and its descendants
    #[arg(short, long, conflicts_with_all = ["pid", "cgroup"])]
    all: bool,
    /// Follow these processes and their descendants
    #[arg(
        short,
        long,
        value_name = "PID,…",
        value_delimiter = ',',
        conflicts_with = "cgroup"
    )]
    pid: Vec<u32>,
    /// Follow the processes of this cgroup (v2) and their descendants
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Record only events on these CPUs
    #[arg(long, value_name = "LIST", value_parser = args::cpus)]
    cpu: Option<Cpus>,
    /// Stop recording after this long
    #[arg(long, value_name = "DUR", value_parser = args::length)]
    duration: Option<Duration>,
    /// Record until the last descendant of COMMAND has ended
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid", "cgroup"])]
    wait_all: bool,
    /// Run COMMAND as this user (tr itself as root)
    #[arg(long, value_name = "NAME", requires = "command")]
    user: Option<String>,
    /// Ring memory in all [default: 4 MiB a CPU, less from 9 CPUs on (32 MiB in
    /// all, at least 256 KiB each), and 4 MiB for forks, execs and exits]
    #[arg(long, value_name = "SIZE", value_parser = args::size)]
    buffer: Option<u64>,
    /// Keep at most this much of each argv
    #[arg(long, value_name = "SIZE", value_parser = args::size, default_value = "16K")]
    argv_limit: u64,
    /// Keep passwords and tokens in command lines; without it they are masked
    #[arg(long)]
    no_redact: bool,
    /// Mask matches in command lines, names and paths: the first group, or the whole match
    #[arg(long, value_name = "REGEX", value_parser = tr_redact::pattern)]
    redact: Vec<regex::bytes::Regex>,
    /// Sum up the system calls of each process (report syscalls). Each call costs
    /// some 0.3 µs more
    #[arg(long)]
    syscalls: bool,
    /// Sample the stacks of tasks on a CPU, HZ times a second on each [default: 99] (report
    /// flame). A sample costs some 26 µs of CPU time and 20 bytes
    #[arg(long, value_name = "HZ", num_args = 0..=1, require_equals = true,
          default_missing_value = "99",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    stacks: Option<u32>,
    /// Record the stacks of waits of at least MIN [default: 1ms] (report flame). Each sleep costs
    /// 5 to 12 µs more, however short
    #[arg(long, value_name = "MIN", num_args = 0..=1, require_equals = true,
          default_missing_value = "1ms", value_parser = args::length)]
    off_cpu_stacks: Option<Duration>,
    /// Leave the functions of stacks unnamed: tr symbolize names them later
    #[arg(long)]
    no_symbols: bool,
    /// Mask the addresses of connections and the names of DNS queries: host-1, name-1, …
    #[arg(long)]
    mask_addresses: bool,
    /// If tracing cannot start, warn and run COMMAND untraced; FILE then says so,
    /// with the reason, the wall time, the exit status and the CPU time
    #[arg(long, requires = "command")]
    best_effort: bool,
    /// How to record: bpf (every fact; root or capabilities), sudo (the same, by a short
    /// `sudo -n`; COMMAND runs as you), ptrace (forks, execs, exits and totals of CPU time; any
    /// user), poll (samples of /proc); auto takes the first that works, sudo on GitHub's hosted
    /// machines alone
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    method: Method,
    /// The same as --method sudo
    #[arg(long, conflicts_with = "method")]
    sudo: bool,
    /// Let auto leave ptrace out, under which programs gain no rights by an exec (setuid)
    #[arg(long)]
    no_ptrace: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// When tracing cannot start, print libbpf's own messages, too
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,
    /// The command to record, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Args {
    fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(open::DEFAULT))
    }
}

/// The way to record.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Method {
    Auto,
    Bpf,
    Sudo,
    Ptrace,
    Poll,
}

impl From<Method> for Choice {
    fn from(method: Method) -> Choice {
        match method {
            Method::Auto => Choice::Auto,
            Method::Bpf => Choice::Bpf,
            Method::Sudo => Choice::Sudo,
            Method::Ptrace => Choice::Ptrace,
            Method::Poll => Choice::Poll,
        }
    }
}

/// Runs it.
pub fn run(args: Args, started: Instant) -> ExitCode {
    let follow = if args.all {
        Follow::All
    } else if !args.pid.is_empty() {
        Follow::Pids(args.pid.clone())
    } else if let Some(path) = &args.cgroup {
        Follow::Cgroup(path.clone())
    } else if args.command.is_empty() {
        eprintln!("tr: nothing to record: give a COMMAND, or --all, --pid or --cgroup (try: {TR} record --help)");
        return ExitCode::from(status::FAILED);
    } else {
        Follow::Command
    };
    // Before anything else: a typing error must not cost the last recording.
    let found = args.command.first().map(|name| tr_record::find(name));
    if let Some(Err(errno)) = found {
        say_not_executed(&args, Some(errno));
        return ExitCode::from(status::not_executed(errno));
    }
    let output = Target::of(args.output());
    let redactor = match Redactor::new(!args.no_redact, args.redact.clone()) {
        Ok(redactor) => redactor,
        Err(error) => {
            eprintln!("tr: {error}");
            return ExitCode::from(status::FAILED);
        }
    };
    warn_of_root(&args, &redactor);
    let config = Config {
        output,
        replaces: (!args.force).then_some(RECORDING),
        keeps: args.output.is_none(),
        redactor,
        method: if args.sudo {
            Choice::Sudo
        } else {
            args.method.into()
        },
        no_ptrace: args.no_ptrace,
        follow,
        command: args.command.clone(),
        cpus: args.cpu.clone().map(|cpus| cpus.0),
        duration: args.duration,
        buffer: args.buffer,
        argv_limit: u32::try_from(args.argv_limit).unwrap_or(u32::MAX),
        syscalls: args.syscalls,
        stacks: args.stacks,
        off_cpu_stacks: args.off_cpu_stacks,
        symbols: !args.no_symbols,
        mask_addresses: args.mask_addresses,
        inherited: Inherited::now(
            inherited::sigpipe_ignored(),
            inherited::closed_streams(),
            inherited::original_environment(),
        ),
        wait_all: args.wait_all,
        user: args.user.clone(),
        on_begin: if args.quiet { |_| {} } else { say_begun },
        on_wait: if args.quiet { || {} } else { say_waiting },
        started,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    match tr_record::record(&config) {
        Ok(report) => {
            say_not_executed(&args, report.not_executed);
            tell(&args, &config, &report);
            if report.status.is_none() && !args.command.is_empty() {
                eprintln!("tr: cannot wait for the command: its exit status is not known");
                return ExitCode::from(status::FAILED);
            }
            exit_code(report.status)
        }
        Err(error) => {
            explain(&args, &config.redactor, &error);
            if !args.best_effort {
                return ExitCode::from(status::FAILED);
            }
            untraced(&args, &config, &error)
        }
    }
}

/// Runs COMMAND all the same (`--best-effort`).
fn untraced(args: &Args, config: &Config, reason: &Error) -> ExitCode {
    let done = match tr_record::run_untraced(config, reason) {
        Ok(done) => done,
        Err(error) => {
            eprintln!("tr: {}", shown(&error));
            return ExitCode::from(status::FAILED);
        }
    };
    say_not_executed(args, done.not_executed);
    let file = args.output().to_string_lossy();
    let file = tr_report::escape::text(file.as_bytes());
    match &done.output_error {
        Some(error) => eprintln!("tr: {file}: {error}; an older file there is not of this run"),
        None if args.quiet => {}
        None => eprintln!(
            "tr: {file}: not traced; it holds the command's exit status, {:.2} s of wall time and getrusage",
            done.duration as f64 / 1e9
        ),
    }
    exit_code(Some(done.status))
}

/// COMMAND's own exit status, as a shell gives it.
fn exit_code(status: Option<u32>) -> ExitCode {
    let Some(status) = status else {
        return ExitCode::SUCCESS;
    };
    let signal = status & 0x7f;
    if signal == nix::libc::SIGINT as u32 && tr_record::in_foreground() {
        // So that a shell's loop around us ends, as it would around COMMAND.
        let mut interrupt = nix::sys::signal::SigSet::empty();
        interrupt.add(nix::sys::signal::Signal::SIGINT);
        let _ = interrupt.thread_unblock();
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGINT);
    }
    let code = if signal == 0 {
        status >> 8 & 0xff
    } else {
        128 + signal
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn say_not_executed(args: &Args, errno: Option<nix::errno::Errno>) {
    if let (Some(errno), Some(command)) = (errno, args.command.first()) {
        eprintln!(
            "tr: cannot execute {}: {}",
            tr_report::escape::text(command.as_bytes()),
            errno.desc()
        );
        if let Some(line) = meant(args).filter(|_| errno == nix::errno::Errno::ENOENT) {
            eprintln!("    did you mean: {line}");
        }
    }
}

/// The command line that was probably meant by a COMMAND that is not found: a shell's line, a
/// shell's assignment or builtin, or the value of an option that takes it behind `=`.
fn meant(args: &Args) -> Option<String> {
    let [first, rest @ ..] = args.command.as_slice() else {
        return None;
    };
    let word = first.to_str()?;
    let quoted = |words: &[&[u8]]| tr_report::escape::command(words.iter().copied());
    let all = || args.command.iter().map(|arg| arg.as_bytes());
    let record: [&[u8]; 3] = [b"tr", b"record", b"--"];
    let name = word.split_once('=').map(|(name, _)| name);
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        let first = bytes
            .next()
            .is_some_and(|it| it == b'_' || it.is_ascii_alphabetic());
        first && bytes.all(|it| it == b'_' || it.is_ascii_alphanumeric())
    };
    let value_of = |option: &[u8]| {
        let option = [option, b"=", first.as_bytes()].concat();
        let mut words: Vec<&[u8]> = vec![b"tr", b"record", &option, b"--"];
        let rest = rest.iter().skip_while(|arg| *arg == "--");
        words.extend(rest.map(|arg| arg.as_bytes()));
        quoted(&words)
    };
    let by_shell = |line: &[u8]| quoted(&[b"tr", b"record", b"--", b"sh", b"-c", line]);
    if args.stacks.is_some() && word.parse::<u32>().is_ok() {
        Some(value_of(b"--stacks"))
    } else if args.off_cpu_stacks.is_some() && args::length(word).is_ok() {
        Some(value_of(b"--off-cpu-stacks"))
    } else if name.is_some_and(is_name) {
        let words: Vec<&[u8]> = record
            .into_iter()
            .chain([&b"env"[..]])
            .chain(all())
            .collect();
        Some(quoted(&words))
    } else if [
        "cd", "source", ".", "export", "ulimit", "umask", "set", "eval",
    ]
    .contains(&word)
    {
        let line = tr_report::escape::command(all());
        let line = format!("{line} && make");
        Some(by_shell(line.as_bytes()))
    } else if rest.is_empty()
        && word.contains(|it: char| it.is_whitespace() || "|&;<>$".contains(it))
    {
        Some(by_shell(first.as_bytes()))
    } else {
        None
    }
}

/// An error's words, which can hold a path or a user's name.
fn shown(error: &Error) -> String {
    tr_report::escape::text(error.to_string().as_bytes())
}

/// Prints the error that keeps tracing from starting, and its remedy.
fn explain(args: &Args, redactor: &Redactor, error: &Error) {
    let again = arguments(args, redactor);
    match error {
        Error::Output(cause) => {
            let file = args.output().as_os_str().as_bytes();
            eprintln!(
                "tr: cannot write {}: {cause}",
                tr_report::escape::text(file)
            );
        }
        Error::Tracing(cause) => {
            eprintln!("tr: cannot trace: {cause}");
            remedy(args, cause, &again);
            if args.verbose {
                for line in tr_bpf::log().lines() {
                    eprintln!("    {line}");
                }
            }
        }
        Error::Sudo(refusal) => {
            eprintln!("tr: {}", shown(error));
            let (purpose, line) = sudo_remedy(refusal, &again);
            eprintln!("    {purpose}: {line}");
        }
        Error::Ptrace(_) => {
            eprintln!("tr: {error}");
            match tr_record::doctor::yama() {
                Some(scope @ 2) => eprintln!(
                    "    kernel.yama.ptrace_scope is {scope}; to allow it: sudo sysctl kernel.yama.ptrace_scope=1"
                ),
                Some(scope @ 3..) => {
                    eprintln!("    kernel.yama.ptrace_scope is {scope}, until the next boot");
                }
                _ => {}
            }
            let program = program();
            eprintln!("    to take samples: {program} record --method poll{again}");
        }
        error => eprintln!("tr: {}", shown(error)),
    }
    let refused = matches!(error, Error::Tracing(_) | Error::Sudo(_));
    if args.best_effort {
        eprintln!("    the command runs untraced");
    } else if refused && !args.command.is_empty() {
        eprintln!("    to run the command without tracing: {TR} record --best-effort{again}");
    }
}

/// The arguments of the same recording, quoted for a shell, behind a space each. COMMAND's secrets
/// are masked: others may read the log that holds them.
fn arguments(args: &Args, redactor: &Redactor) -> String {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut option = |name: &str, value: &[u8]| words.extend([name.into(), value.to_vec()]);
    if args.output().as_os_str() != open::DEFAULT {
        option("-o", args.output().as_os_str().as_bytes());
    }
    if !args.pid.is_empty() {
        let pids: Vec<String> = args.pid.iter().map(u32::to_string).collect();
        option("--pid", pids.join(",").as_bytes());
    }
    if let Some(cgroup) = &args.cgroup {
        option("--cgroup", cgroup.as_os_str().as_bytes());
    }
    if let Some(duration) = args.duration {
        let seconds = format!("{}s", duration.as_secs_f64());
        option("--duration", seconds.as_bytes());
    }
    if args.all {
        words.push(b"--all".to_vec());
    }
    if !args.command.is_empty() {
        let command: Vec<_> = args.command.iter().map(|a| a.as_bytes().to_vec()).collect();
        words.push(b"--".to_vec());
        words.extend(redactor.clone().command(&command));
    }
    let words = tr_report::escape::command(words.iter().map(Vec::as_slice));
    format!(" {words}")
}

/// The arguments of `tr` for the same recording by another user.
fn record_again(args: &Args, again: &str) -> String {
    let user = match args.command.is_empty() {
        true => String::new(),
        false => as_user(args),
    };
    format!("record{user}{again}")
}

/// Prints command lines that make tracing possible. `again` is of [`arguments`].
fn remedy(args: &Args, cause: &tr_bpf::Error, again: &str) {
    match cause {
        tr_bpf::Error::Refused(refusal) => {
            let record = record_again(args, again);
            for (purpose, line) in refusal.remedies(&program(), &record) {
                eprintln!("    {purpose}: {line}");
            }
        }
        tr_bpf::Error::Missing { .. } => eprintln!("    {TR} needs Linux 5.8 or later"),
        tr_bpf::Error::Bpf { .. } if !args.verbose => {
            eprintln!(
                "    {TR} record -v prints the messages of libbpf and of the kernel's verifier"
            );
        }
        _ => {}
    }
}

/// A command line that makes a refused `--method sudo` possible, or does without it.
fn sudo_remedy(refusal: &SudoRefusal, again: &str) -> (&'static str, String) {
    let program = program();
    match refusal {
        SudoRefusal::Absent => (
            "give the program the capabilities, as root",
            format!("setcap cap_bpf,cap_perfmon+p {program}"),
        ),
        SudoRefusal::Password => (
            "enter the password, and record",
            format!("sudo -v && {program} record --sudo{again}"),
        ),
        SudoRefusal::Failed(_) | SudoRefusal::Silent => {
            ("see what sudo allows", "sudo -l".to_owned())
        }
    }
}

/// The option by which COMMAND does not run as root under sudo.
fn as_user(args: &Args) -> String {
    let named = args.user.clone();
    let own = || {
        let uid = nix::unistd::Uid::effective();
        (!uid.is_root()).then(|| tr_record::user_name(uid.as_raw()))?
    };
    named
        .or_else(own)
        .map_or_else(String::new, |name| format!(" --user {name}"))
}

/// Without COMMAND nothing else shows on a terminal that something is under way.
fn say_begun(config: &Config) {
    use std::io::IsTerminal;
    if !config.command.is_empty() || !std::io::stderr().is_terminal() {
        return;
    }
    let what = match &config.follow {
        Follow::All => "the whole machine".to_owned(),
        Follow::Pids(pids) => tr_report::units::plural(pids.len() as u64, "process", "processes"),
        Follow::Cgroup(path) => {
            let path = tr_report::escape::text(path.as_os_str().as_bytes());
            format!("the cgroup {path}")
        }
        Follow::Command => return,
    };
    let end = match (config.duration, &config.follow) {
        (Some(duration), _) => format!("Ctrl-C ends it, or {duration:?}"),
        (None, Follow::Pids(_)) => "Ctrl-C ends it, or the end of the last of them".to_owned(),
        (None, _) => "Ctrl-C ends it".to_owned(),
    };
    eprintln!("tr: recording {what}; {end}");
}

/// Under sudo COMMAND is root's, and so are the files that it makes.
fn warn_of_root(args: &Args, redactor: &Redactor) {
    let root = nix::unistd::Uid::effective().is_root();
    let invoking = tr_output::invoking_user().filter(|(user, _)| root && !user.is_root());
    let (Some((user, _)), Some(command)) = (invoking, args.command.first()) else {
        return;
    };
    if args.quiet || args.user.is_some() {
        return;
    }
    let user = tr_record::user_name(user.as_raw()).unwrap_or_else(|| user.to_string());
    eprintln!(
        "tr: {} runs as root; as {user}: sudo {} record --user {user}{}",
        tr_report::escape::text(command.as_bytes()),
        program(),
        arguments(args, redactor),
    );
}

fn say_waiting() {
    eprintln!(
        "tr: the command has ended, but the output blocks before the end of the trace; \
         waiting up to {} s (Ctrl-C gives up)",
        tr_record::LIMIT.as_secs()
    );
}

/// Prints losses and limits, then the size of the trace. With `--quiet`, only that the trace
/// lacks its end.
fn tell(args: &Args, config: &Config, report: &Report) {
    let file = match args.output().as_os_str() {
        name if name == "-" => "standard output".into(),
        name => tr_report::escape::text(name.as_bytes()),
    };
    if report.given_up {
        eprintln!("tr: {file}: given up; the trace ends where the output blocked");
        return;
    }
    if let Some(error) = &report.output_error {
        eprintln!(
            "tr: {file}: writing failed: {error}; the trace ends there, the command continued"
        );
    }
    if args.quiet {
        return;
    }
    tell_method(args, config, report);
    tell_rights(args, &config.redactor, report);
    tell_losses(report);
    tell_limits(args, report);
    let lost = if report.output_error.is_some() {
        ", not all of them in the file"
    } else if report.tally.lost.is_empty() {
        ", none lost"
    } else {
        ""
    };
    let processes = report.tally.processes;
    eprintln!(
        "tr: {file}: {} events of {} process{} in {:.2} s, {}{lost}",
        count(report.tally.written.events()),
        count(processes),
        if processes == 1 { "" } else { "es" },
        report.duration as f64 / 1e9,
        bytes(report.tally.written.bytes),
    );
    if let Some(search) = &report.symbols {
        eprintln!(
            "tr: named {} of {} frames of stacks in {:.2} s{}",
            count(search.found as u64),
            count(search.frames as u64),
            search.time.as_secs_f64(),
            if search.ended_early {
                ", when the search was ended: source lines may be missing"
            } else {
                ""
            },
        );
    }
    tell_cost(args, report);
}

/// Prints the method that `auto` has taken instead of BPF, the facts that it lacks, and a
/// command that records them.
fn tell_method(args: &Args, config: &Config, report: &Report) {
    let Some(Error::Tracing(cause)) = report.refusals.first() else {
        return;
    };
    let method = report.method.name();
    if report.method == RecordedBy::Sudo {
        eprintln!("tr: recorded by {method}: everything is known; {method} ran the loader of the BPF programs, nothing else");
        return;
    }
    if let Some(error @ Error::Sudo(_)) = report.refusals.get(1) {
        eprintln!("tr: {}", shown(error));
    }
    let more = match cause {
        tr_bpf::Error::Refused(refusal) => {
            let record = record_again(args, &arguments(args, &config.redactor));
            let remedies = refusal.remedies(&program(), &record);
            // One that records once; others change the machine.
            let once = |(_, line): &&(&str, String)| line.ends_with(&record);
            let remedy = remedies.iter().find(once).or(remedies.first());
            remedy.map(|(purpose, line)| {
                format!("{}: {line}", purpose.strip_prefix("or ").unwrap_or(purpose))
            })
        }
        _ => None,
    };
    let more = more.unwrap_or_else(|| format!("see why: --method bpf ({cause})"));
    let what = match report.method {
        RecordedBy::Poll => "samples of /proc: times are lower bounds, short processes are missing",
        _ => "CPU times are totals, wake-ups and the times of switches are not known",
    };
    let why = match args.command.first() {
        Some(name)
            if report.method == RecordedBy::Poll
                && !args.no_ptrace
                && tr_record::gains_rights(config) =>
        {
            let name = tr_report::escape::text(name.as_bytes());
            format!(", because ptrace takes the rights of {name}")
        }
        _ => String::new(),
    };
    eprintln!("tr: recorded by {method}{why}: {what}; to {more}");
}

/// Prints that programs lacked the rights of their setuid bits, and how they keep them.
fn tell_rights(args: &Args, redactor: &Redactor, report: &Report) {
    if report.took_rights {
        eprintln!(
            "tr: a setuid or setgid program (such as sudo) ran without its rights, because ptrace takes them; \
             with them, by samples: {} record --no-ptrace{}",
            program(),
            arguments(args, redactor),
        );
    }
}

fn tell_losses(report: &Report) {
    for event in &report.tally.lost {
        let LifeKind::Lost(lost) = &event.kind else {
            continue;
        };
        let stream = match lost.stream {
            Stream::Cpu(cpu) => format!("events lost on CPU {}", cpu.0),
            _ if lost.cause == LossCause::FollowSet => "tasks not followed".to_owned(),
            _ => "forks, execs or exits lost".to_owned(),
        };
        let number = lost.count.map_or("an unknown number of".to_owned(), count);
        let seconds = |t: tr_format::event::Ktime| t.since(report.start) as f64 / 1e9;
        eprintln!(
            "tr: {number} {stream} between {:.3} s and {:.3} s ({}); times there are shown as unknown",
            seconds(event.time),
            seconds(lost.until),
            cause(lost.cause),
        );
    }
}

/// Arguments cut, secrets masked, processes that go on; each with the option that changes it.
fn tell_limits(args: &Args, report: &Report) {
    let (cut, masked) = (report.tally.argv_cut, report.tally.masked);
    if cut > 0 {
        eprintln!(
            "tr: the arguments of {} exec{} are cut at {} bytes (--argv-limit keeps more)",
            count(cut),
            if cut == 1 { "" } else { "s" },
            count(args.argv_limit)
        );
    }
    if masked > 0 {
        let masked = count(masked);
        eprintln!("tr: secrets masked in command lines: {masked} (--no-redact keeps them)");
    }
    for what in &report.unmet {
        eprintln!("tr: not recorded: {what}");
    }
    if let Some(missing) = report.tally.marks.missing() {
        eprintln!("tr: {missing}");
    }
    if let Some(first) = report.alive.first() {
        let more = match report.alive.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        eprintln!(
            "tr: still running: {} ({}){more}; --wait-all records to the end of the last",
            tr_report::escape::text(first.comm.bytes()),
            first.pid,
        );
    }
}

/// Prints the CPU time of tracing, and the next command.
fn tell_cost(args: &Args, report: &Report) {
    let next = match args.output().as_os_str() {
        name if name == "-" => String::new(),
        name => {
            let words = [TR.name().as_bytes(), b"analyze", name.as_bytes()];
            format!(" · next: {}", tr_report::escape::command(words))
        }
    };
    let cost = report.cost.recorder_ns + report.cost.bpf_ns.unwrap_or(0);
    let what = if report.cost.bpf_ns.is_some() {
        ""
    } else {
        ", not counting the kernel's part"
    };
    let share = cost as f64 * 100.0 / report.command_cpu.max(1) as f64;
    // Of a command of a few ms, the share would only show the fixed cost.
    if share < 10.0 {
        eprintln!("tr: tracing took {share:.2} % of the command's CPU time{what}{next}");
    } else {
        eprintln!(
            "tr: tracing took {:.1} ms of CPU time{what}{next}",
            cost as f64 / 1e6
        );
    }
}

fn cause(cause: LossCause) -> &'static str {
    use LossCause::{FollowSet, Output, Recursion, RingFull};
    match cause {
        RingFull => "ring full; --buffer makes it larger",
        Recursion => "the kernel did not run a program inside itself",
        Output => "the output was too slow or failed",
        FollowSet => {
            "task ids beyond kernel.pid_max at the start, or more than 1,024 threads of a process \
             that joined the cgroup"
        }
        _ => "unknown cause",
    }
}
