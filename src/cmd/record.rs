//! Implements `tr record`, which runs COMMAND and writes a trace of it.

mod again;
mod hang;
mod hints;
mod line;
mod notes;
mod options;
mod refusal;
mod rotation;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use tr_programs::{command_line, outline};
use tr_record::hang::GuardSettings;
use tr_record::{
    Choice, CommandSettings, Config, Error, FactSettings, Follow, Inherited, Limits, MaskSettings,
    MethodSettings, Notices, Scope, ScriptFinder, Target, TraceFile,
};
use tr_redact::Redactor;
use tr_text::called::TR;

pub use self::options::Args;

use self::hints::say_not_executed;
use self::refusal::{explain, shown};
use crate::errors::Done;
use crate::output::RECORDING;
use crate::subcommand::{Hint, Program, Subcommand};
use crate::{errors, inherited};
use tr_mcp::tool::{AgentTool, Takes, TakesKind};
use tr_output::status;

impl Subcommand for Args {
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
            wrong: "--runs",
            advice: "record one run a file; tr diff --base FILE... --new FILE... compares several",
        },
    ];
    const TOOLS: &'static [AgentTool] = &[AgentTool {
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

    /// Runs COMMAND without a recording if a configuration file (`tr.toml`) has an error and the command line has
    /// `--best-effort`. A recording would keep secrets, because the masks in the faulty file are not known.
    fn run_without_defaults(words: &[OsString]) -> Option<ExitCode> {
        let mut parts = words.splitn(2, |word| word == "--");
        let (options, command) = (parts.next()?, parts.next()?);
        if !options.iter().any(|option| option == "--best-effort") {
            return None;
        }
        message!("the command runs untraced; no recording is written");
        Some(ExitCode::from(inherited::become_command(command)))
    }

    fn run(self, program: &Program) -> Done {
        Ok(record(self, program.started))
    }
}

/// Makes the configuration of the recorder from the arguments of `tr record`.
fn config(args: &Args, follow: Follow, redactor: Redactor, started: Instant) -> Config {
    let on_begin = notes::on_begin(args, &redactor);
    let on_hang = hang::notice(&redactor);
    Config {
        file: TraceFile {
            target: Target::of(args.output()),
            replaces: (!args.force).then_some(RECORDING),
            keeps: args.output.is_none() && args.rotate.is_empty(),
            rotation: rotation::rotation(&args.rotate),
        },
        method: MethodSettings {
            choice: args.choice(),
            // ptrace changes what setuid programs can do, so it is only used if somebody sees the warning and can stop
            // COMMAND.
            may_ptrace: !args.best_effort && !args.quiet && std::io::stderr().is_terminal(),
        },
        scope: Scope {
            follow,
            cpus: args.cpu.clone().map(|cpus| cpus.0),
            containers: args.containers,
            servers: !args.no_servers,
        },
        facts: FactSettings {
            light: args.light,
            syscalls: args.syscalls,
            stacks: args.stacks,
            off_cpu_stacks: args.off_cpu_stacks,
            symbols: !args.no_symbols,
            argv_limit: u32::try_from(args.argv_limit).unwrap_or(u32::MAX),
            scripts: (!args.no_scripts).then_some(ScriptFinder {
                file: command_line::shell_script,
                text: command_line::script_text,
                sourced: outline::sourced_files,
                without_values: outline::without_values,
            }),
        },
        mask: MaskSettings {
            redactor,
            addresses: args.mask_addresses,
        },
        command: CommandSettings {
            argv: args.command.clone(),
            user: args.user.clone(),
            inherited: Inherited::now(
                inherited::sigpipe_ignored(),
                inherited::closed_streams(),
                inherited::original_environment(),
            ),
            wait_all: args.wait_all,
            best_effort: args.best_effort || args.choice() == Choice::Auto,
        },
        limits: Limits {
            duration: args.duration,
            size: args.max_size,
            buffer: args.buffer,
        },
        guard: GuardSettings {
            timeout: args.timeout,
            stall: args.stall,
            kill_after: args.kill_after,
            on_hang,
        },
        notices: Notices {
            on_begin,
            on_panic: notes::say_panicked,
            on_wait: if args.quiet {
                || {}
            } else {
                notes::say_waiting
            },
            watching: line::watching(args.status),
        },
        started,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn record(args: Args, started: Instant) -> ExitCode {
    let Some(follow) = args.follow() else {
        return errors::failed(format_args!("nothing to record: give a COMMAND, or --all, --pid or --cgroup (try: {TR} record --help)"));
    };
    // COMMAND is looked for before anything else, because a typing error in COMMAND must not replace the last
    // recording.
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
    let config = config(&args, follow, redactor, started);
    let recorded = tr_record::record(&config);
    line::leave();
    match recorded {
        Ok(_) if hang::is_stuck() => ExitCode::from(status::TIMED_OUT),
        Ok(report) => {
            say_not_executed(&args, report.not_executed);
            notes::tell(&args, &config, &report);
            if report.status.is_none() && !args.command.is_empty() {
                return errors::failed(errors::NOT_WAITED);
            }
            if report.limit.is_some() {
                if args.off_cpu_stacks.is_some() && args.rotate.is_empty() {
                    hang::say_stacks(args.output());
                }
                return ExitCode::from(status::TIMED_OUT);
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

/// Runs COMMAND without tracing after an error that keeps the recording from starting. Returns
/// COMMAND's exit status.
fn untraced(args: &Args, config: &Config, reason: &Error) -> ExitCode {
    let done = match tr_record::run_untraced(config, reason) {
        Ok(done) => done,
        Err(error) => return errors::failed(shown(&error)),
    };
    if hang::is_stuck() {
        return ExitCode::from(status::TIMED_OUT);
    }
    say_not_executed(args, done.not_executed);
    let file = errors::shown(args.output());
    match &done.output_error {
        Some(error) => message!("{file}: {error}; an older file there is not of this run"),
        None if args.quiet => {}
        None => message!(
            "{file}: not traced; it holds the command's exit status, {:.2} s of wall time and getrusage",
            done.duration as f64 / 1e9
        ),
    }
    if done.limit.is_some() {
        return ExitCode::from(status::TIMED_OUT);
    }
    exit_code(Some(done.status))
}

/// The exit status of `tr record` for COMMAND's raw `wait` status, by the rules of shells (128 plus
/// the number of a signal).
fn exit_code(status: Option<u32>) -> ExitCode {
    status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(tr_record::end_like(status))
    })
}
