//! `tr record`: runs COMMAND and writes the trace of it.

mod again;
mod hints;
mod line;
mod notes;
mod refusal;
mod rotation;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tr_record::{
    Choice, CommandSettings, Config, Containers, Error, FactSettings, Follow, Inherited, Limits,
    MaskSettings, MethodSettings, Notices, Scope, Target, TraceFile,
};
use tr_redact::Redactor;
use tr_text::called::TR;

use self::hints::say_not_executed;
use self::refusal::{explain, shown};
use crate::args::{self, Cpus};
use crate::errors::Done;
use crate::output::RECORDING;
use crate::subcommand::{Hint, Program, Subcommand, Takes, TakesKind, Tool};
use crate::{errors, inherited, open, status};

/// Record a command, or the whole machine
#[derive(clap::Args, Clone, Debug)]
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
    /// Memory of all rings together [default: 4 MiB per CPU, less from 9 CPUs on (32 MiB
    /// together, at least 256 KiB each), and 4 MiB for forks, execs and exits]
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
    /// Containers that are recorded beside descendants of COMMAND: mine, that a recorded process
    /// has asked a daemon for; all, that start on this machine
    #[arg(long, value_name = "WHICH", default_value = "mine", value_parser = args::words(CONTAINERS))]
    containers: Containers,
    /// Do not record servers that COMMAND asks on this machine (sccache, a database)
    #[arg(long)]
    no_servers: bool,
    /// Record forks, execs, exits and each task's CPU time once a second, nothing else: for days on a
    /// busy machine, some 0.1 % of a CPU (with -a, or a COMMAND)
    #[arg(long, conflicts_with_all = ["cpu", "syscalls", "stacks", "off_cpu_stacks", "containers"])]
    light: bool,
    /// With --light: start a new file after this time or at this size (1h, 100M, or 1h,100M). Each
    /// file is named by its start time in UTC and can be read alone
    #[arg(long, value_name = "LIMIT", value_delimiter = ',', requires = "light",
          value_parser = rotation::limit)]
    rotate: Vec<rotation::Limit>,
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
    /// Whatever fails before COMMAND runs, also by a named METHOD: warn and run it untraced; FILE
    /// then has the reason, the wall time, the exit status and the CPU time. Never ptrace by itself
    #[arg(long, requires = "command", alias = "no-ptrace")]
    best_effort: bool,
    /// How to record: bpf (every fact; root or capabilities), sudo (the same, by a short
    /// `sudo -n`; COMMAND runs as you), ptrace (forks, execs, exits and totals of CPU time; any
    /// user; setuid programs such as sudo lose their rights). auto takes bpf, or sudo on GitHub's
    /// hosted machines alone; ptrace where standard error is a terminal; otherwise COMMAND runs
    /// untraced
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = args::words(METHODS))]
    method: Choice,
    /// The same as --method sudo
    #[arg(long, conflicts_with = "method")]
    sudo: bool,
    /// Keep a line at the bottom of the terminal: the time, the jobs that run, the longest of
    /// them. Not with --light, nor where standard error is no terminal, nor where CI is set
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid", "cgroup", "light"])]
    status: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// When tracing cannot start, also print the messages of libbpf
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

    /// The tasks to follow; `None`: nothing is named.
    fn follow(&self) -> Option<Follow> {
        if self.all {
            Some(Follow::All)
        } else if !self.pid.is_empty() {
            Some(Follow::Pids(self.pid.clone()))
        } else if let Some(path) = &self.cgroup {
            Some(Follow::Cgroup(path.clone()))
        } else {
            (!self.command.is_empty()).then_some(Follow::Command)
        }
    }

    /// Refuses the options beside `--light` that clap cannot refuse.
    fn check_light(&self) -> Result<(), &'static str> {
        if self.light && self.method == Choice::Ptrace {
            return Err("--light needs --method bpf or sudo");
        }
        if !self.rotate.is_empty() && self.output() == Path::new("-") {
            return Err("--rotate needs files: standard output has no parts");
        }
        Ok(())
    }

    /// The way to record.
    fn choice(&self) -> Choice {
        if self.sudo {
            Choice::Sudo
        } else {
            self.method
        }
    }

    /// An error keeps COMMAND from running, untraced: the user has named a method that is refused, or the
    /// command line has a mistake.
    fn holds_command(&self, error: &Error) -> bool {
        if self.command.is_empty() {
            return true;
        }
        !self.best_effort && (self.choice() != Choice::Auto || error.is_mistake())
    }

    fn config(&self, follow: Follow, redactor: Redactor, started: Instant) -> Config {
        let on_begin = notes::on_begin(self, &redactor);
        Config {
            file: TraceFile {
                target: Target::of(self.output()),
                replaces: (!self.force).then_some(RECORDING),
                keeps: self.output.is_none() && self.rotate.is_empty(),
                rotation: rotation::rotation(&self.rotate),
            },
            method: MethodSettings {
                choice: self.choice(),
                // Not without a word to someone who can end it.
                may_ptrace: !self.best_effort && !self.quiet && std::io::stderr().is_terminal(),
            },
            scope: Scope {
                follow,
                cpus: self.cpu.clone().map(|cpus| cpus.0),
                containers: self.containers,
                servers: !self.no_servers,
            },
            facts: FactSettings {
                light: self.light,
                syscalls: self.syscalls,
                stacks: self.stacks,
                off_cpu_stacks: self.off_cpu_stacks,
                symbols: !self.no_symbols,
                argv_limit: u32::try_from(self.argv_limit).unwrap_or(u32::MAX),
            },
            mask: MaskSettings {
                redactor,
                addresses: self.mask_addresses,
            },
            command: CommandSettings {
                argv: self.command.clone(),
                user: self.user.clone(),
                inherited: Inherited::now(
                    inherited::sigpipe_ignored(),
                    inherited::closed_streams(),
                    inherited::original_environment(),
                ),
                wait_all: self.wait_all,
                best_effort: self.best_effort || self.choice() == Choice::Auto,
            },
            limits: Limits {
                duration: self.duration,
                buffer: self.buffer,
            },
            notices: Notices {
                on_begin,
                on_panic: notes::say_panicked,
                on_wait: if self.quiet {
                    || {}
                } else {
                    notes::say_waiting
                },
                watching: line::watching(self.status),
            },
            started,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The values of `--method`.
const METHODS: [(Choice, &str); 4] = [
    (Choice::Auto, "auto"),
    (Choice::Bpf, "bpf"),
    (Choice::Sudo, "sudo"),
    (Choice::Ptrace, "ptrace"),
];

/// The values of `--containers`.
const CONTAINERS: [(Containers, &str); 3] = [
    (Containers::Mine, "mine"),
    (Containers::All, "all"),
    (Containers::None, "none"),
];

impl Subcommand for Args {
    const EXAMPLES: &'static [(&'static str, &'static str)] =
        &[("tr record -- make -j8", "record a build into trace.bin")];
    const HINTS: &'static [Hint] = &[
        Hint {
            wrong: "-g",
            advice: "--stacks samples the functions that run, --off-cpu-stacks those that wait",
        },
        Hint {
            wrong: "--call-graph",
            advice: "--stacks samples the functions that run, --off-cpu-stacks those that wait",
        },
        Hint {
            wrong: "-F",
            advice: "--stacks=HZ samples the functions that run, HZ times a second",
        },
        Hint {
            wrong: "--freq",
            advice: "--stacks=HZ samples the functions that run, HZ times a second",
        },
        Hint {
            wrong: "-t",
            advice: "--pid N records a process, and --duration T ends the recording after a time",
        },
        Hint {
            wrong: "--tid",
            advice: "--pid N records a process with all of its threads",
        },
        Hint {
            wrong: "--timeout",
            advice: "--duration T ends the recording after a time; timeout T COMMAND ends COMMAND",
        },
        Hint {
            wrong: "--runs",
            advice: "record one run a file; tr diff --base FILE... --new FILE... compares several",
        },
    ];
    const TOOLS: &'static [Tool] = &[Tool {
        name: "record",
        about: "Run a command and record it, for an hour at most",
        words: &["record"],
        takes: &[
            Takes(
                "command",
                TakesKind::Command,
                "the command and its arguments",
            ),
            Takes("output", TakesKind::Output, "the recording [trace.bin]"),
        ],
    }];
    const KEEPS_SIGPIPE: bool = true;
    const FAILED: Option<u8> = Some(status::FAILED);

    /// Becomes COMMAND, which is not recorded, if the command line has `--best-effort`. Without its masks a recording
    /// would keep secrets.
    fn run_without_defaults(words: &[OsString]) -> Option<ExitCode> {
        let mut parts = words.splitn(2, |word| word == "--");
        let (options, command) = (parts.next()?, parts.next()?);
        if !options.iter().any(|option| option == "--best-effort") {
            return None;
        }
        eprintln!("tr: the command runs untraced; no recording is written");
        Some(ExitCode::from(inherited::become_command(command)))
    }

    fn run(self, program: &Program) -> Done {
        Ok(run(self, program.started))
    }
}

fn run(args: Args, started: Instant) -> ExitCode {
    let Some(follow) = args.follow() else {
        return errors::failed(format_args!("nothing to record: give a COMMAND, or --all, --pid or --cgroup (try: {TR} record --help)"));
    };
    // Before anything else: a typing error must not cost the last recording.
    let found = args.command.first().map(|name| tr_record::find(name));
    if let Some(Err(errno)) = found {
        say_not_executed(&args, Some(errno));
        return ExitCode::from(status::not_executed(errno));
    }
    if let Err(why) = args.check_light() {
        return errors::failed(why);
    }
    let redactor = Redactor::new(!args.no_redact, args.redact.clone());
    notes::warn_of_root(&args, &redactor);
    let config = args.config(follow, redactor, started);
    let recorded = tr_record::record(&config);
    line::leave();
    match recorded {
        Ok(report) => {
            say_not_executed(&args, report.not_executed);
            notes::tell(&args, &config, &report);
            if report.status.is_none() && !args.command.is_empty() {
                return errors::failed(errors::NOT_WAITED);
            }
            exit_code(report.status)
        }
        Err(error) => {
            let runs = !args.holds_command(&error);
            explain(&args, &config.mask.redactor, &error, runs);
            if runs {
                untraced(&args, &config, &error)
            } else {
                ExitCode::from(status::FAILED)
            }
        }
    }
}

/// Runs COMMAND all the same.
fn untraced(args: &Args, config: &Config, reason: &Error) -> ExitCode {
    let done = match tr_record::run_untraced(config, reason) {
        Ok(done) => done,
        Err(error) => return errors::failed(shown(&error)),
    };
    say_not_executed(args, done.not_executed);
    let file = errors::shown(args.output());
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
    status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(tr_record::end_like(status))
    })
}
