//! Implements `tr doctor`, which shows by which methods recordings can be made on this machine.

use std::fmt::Write;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::ValueEnum;
use nix::errno::Errno;
use serde_json::{json, Value};
use tr_format::meta::Method;
use tr_record::doctor::{knows, Machine, Programs};
use tr_record::{Error, SudoRefusal};

use crate::called::program;
use crate::config::{self, Settings, Unused};
use crate::errors;
use crate::errors::Done;
use crate::open;
use crate::subcommand::{Program, Subcommand};
use tr_insight::recordings::warnings;
use tr_text::called::TR;
use tr_text::escape;

/// Show what recording this machine allows, and the command that would allow more
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status: 0 when everything can be recorded, 1 when tr record knows less here, 2 when it
runs COMMAND untraced.")]
pub struct Args {
    /// text, or JSON
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Also test --method sudo. sudo logs a refusal
    #[arg(long)]
    sudo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    Text,
    Json,
}

/// The entry for processes other than COMMAND's in the list of what cannot be recorded without BPF programs.
const OTHER_PROCESSES: &str = "other processes than COMMAND's (--all, --pid, --cgroup)";

/// The findings of `tr doctor` about this machine, and the conclusions from them.
struct Diagnosis {
    machine: Machine,
    /// The method that `tr record` would use; `None` if no method works.
    method: Option<Method>,
    /// The facts that a recording by this method would lack, and other remarks about the BPF programs of such a
    /// recording.
    programs: Programs,
    /// A change to the machine that would allow a better recording: its purpose, and the command line that
    /// makes it; `None` if there is none.
    improve: Option<(String, String)>,
    files: Vec<Settings>,
}

impl Diagnosis {
    fn of(machine: Machine, files: Vec<Settings>) -> Diagnosis {
        let ptrace = machine.ptrace.is_ok() && machine.schedstat && std::io::stderr().is_terminal();
        let by_sudo = machine.sudo.as_ref().and_then(|tried| tried.as_ref().ok());
        let (method, programs) = match (&machine.bpf, by_sudo) {
            (Ok(programs), _) => (Some(Method::Bpf), programs.clone()),
            (Err(_), Some(programs)) if machine.asks_sudo => (Some(Method::Sudo), programs.clone()),
            _ if ptrace => (Some(Method::Ptrace), without_programs(Method::Ptrace)),
            _ => (None, untraced(&machine)),
        };
        let improve = match (&machine.bpf, method, by_sudo) {
            (_, Some(Method::Sudo), _) => None,
            (Err(_), _, Some(_)) => {
                let purpose = "To record everything, COMMAND still running as you";
                let command = format!("{} record --sudo -- COMMAND", program());
                Some((purpose.to_owned(), command))
            }
            (refused, ..) => refused.as_ref().err().and_then(improvement),
        };
        Diagnosis {
            machine,
            method,
            programs,
            improve,
            files,
        }
    }

    /// A sentence of `tr doctor` about whether sudo exists and whether it works without a password.
    fn sudo(&self) -> String {
        match &self.machine.sudo {
            None if !has_sudo() => "not installed".into(),
            None => format!("not asked, as it logs a refusal ({TR} doctor --sudo asks)"),
            Some(Ok(_)) => format!("runs the loader of the BPF programs ({TR} record --sudo)"),
            Some(Err(Error::Sudo(refusal))) => refusal.to_string(),
            Some(Err(error)) => format!("refused: {error}"),
        }
    }

    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.method {
            Some(_) if self.programs.missing.is_empty() => 0,
            Some(_) => 1,
            None => 2,
        })
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let way = match self.method {
            Some(Method::Bpf) => "uses BPF here",
            Some(Method::Sudo) => "uses BPF here, loaded by sudo",
            Some(Method::Ptrace) => "uses ptrace here",
            Some(_) => "records here",
            None => "runs COMMAND untraced here",
        };
        let all = match self.method {
            Some(Method::Bpf) if self.programs.missing.is_empty() => " and records everything",
            Some(Method::Sudo) if self.programs.missing.is_empty() => ", and records everything",
            _ => "",
        };
        let _ = writeln!(out, "{TR} record {way}{all}");
        for missing in &self.programs.missing {
            let _ = writeln!(out, "  without  {missing}");
        }
        for note in &self.programs.notes {
            let _ = writeln!(out, "  note     {note}");
        }
        if let Some((purpose, command)) = &self.improve {
            let _ = writeln!(out, "\n{purpose}:\n    {command}");
        }
        out.push('\n');
        for (name, finding) in self.findings() {
            let _ = writeln!(out, "  {name:<12} {finding}");
        }
        for file in &self.files {
            let path = errors::shown(&file.path);
            let _ = writeln!(out, "\n{path}");
            match &file.content {
                Ok(settings) => settings.iter().for_each(|setting| {
                    let value = escape::text(setting.value().as_bytes());
                    let _ = writeln!(out, "  {:<16} {value}", setting.name());
                }),
                Err(unused) => {
                    let why = escape::text(unused.why().as_bytes());
                    let _ = writeln!(out, "  not used: {why}");
                }
            }
        }
        out
    }

    fn findings(&self) -> Vec<(&'static str, String)> {
        let machine = &self.machine;
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let allowed = |result: &Result<(), Errno>| match result {
            Ok(()) => "allowed".to_owned(),
            Err(errno) => format!("refused: {}", errno.desc()),
        };
        let beside = |what: String, name: &str, value: Option<i64>| match value {
            Some(value) => format!("{what} ({name} is {value})"),
            None => what,
        };
        let bpf = match &machine.bpf {
            Ok(_) => "allowed".to_owned(),
            Err(error) => format!("refused: {error}"),
        };
        let yama = machine.yama.map(i64::from);
        let paranoid = machine.perf_paranoid.map(i64::from);
        let cgroup = machine.cgroup2.as_ref();
        let cgroup = cgroup.map_or("not mounted".into(), |at| at.display().to_string());
        let fewer = machine.allowed_cpus.map(|allowed| {
            let finding = format!("{allowed} of {}, by an affinity or a cpuset", machine.cpus);
            ("allowed CPUs", finding)
        });
        let findings = vec![
            ("BPF", bpf),
            ("BTF", yes(machine.btf)),
            ("sudo", self.sudo()),
            (
                "ptrace",
                beside(allowed(&machine.ptrace), "kernel.yama.ptrace_scope", yama),
            ),
            ("schedstat", yes(machine.schedstat)),
            (
                "perf events",
                beside(
                    allowed(&machine.perf),
                    "kernel.perf_event_paranoid",
                    paranoid,
                ),
            ),
            ("cgroup v2", cgroup),
            ("PSI", yes(machine.psi)),
        ];
        findings.into_iter().chain(fewer).collect()
    }

    fn json(&self) -> Value {
        let machine = &self.machine;
        let desc = |result: &Result<(), Errno>| result.err().map(|errno| errno.desc().to_owned());
        let bpf = machine.bpf.as_ref().err().map(Error::to_string);
        let (ptrace, perf) = (desc(&machine.ptrace), desc(&machine.perf));
        let improve = self.improve.as_ref();
        json!({
            "schema": "tr.doctor/1",
            "method": self.method.map(Method::name),
            "missing": self.programs.missing,
            "notes": self.programs.notes,
            "improve": improve.map(|(purpose, command)| json!({
                "purpose": purpose,
                "command": command,
            })),
            "bpf": { "allowed": bpf.is_none(), "refusal": bpf },
            "btf": machine.btf,
            "sudo": {
                "installed": has_sudo(),
                "passwordless": match &machine.sudo {
                    Some(Ok(_)) => Some(true),
                    Some(Err(Error::Sudo(SudoRefusal::Password))) => Some(false),
                    _ => None,
                },
                "allowed": machine.sudo.as_ref().map(Result::is_ok),
                "refusal": machine.sudo.as_ref().and_then(|sudo| Some(sudo.as_ref().err()?.to_string())),
            },
            "ptrace": {
                "allowed": ptrace.is_none(),
                "refusal": ptrace,
                "yama_ptrace_scope": machine.yama,
            },
            "schedstat": machine.schedstat,
            "perf_events": {
                "allowed": perf.is_none(),
                "refusal": perf,
                "paranoid": machine.perf_paranoid,
            },
            "cgroup2": machine.cgroup2.as_ref().map(|at| at.to_string_lossy()),
            "psi": machine.psi,
            "cpus": machine.cpus,
            "allowed_cpus": machine.allowed_cpus,
            "config": self.files.iter().map(settings).collect::<Vec<_>>(),
        })
    }
}

/// The facts that a recording on this machine lacks because it cannot use BPF, and other remarks about such a
/// recording.
fn without_programs(method: Method) -> Programs {
    let (facts, limits) = knows(method);
    let missing = [
        warnings::absent(&facts).as_slice(),
        limits,
        &[OTHER_PROCESSES],
    ]
    .concat();
    Programs {
        missing: missing.into_iter().map(String::from).collect(),
        notes: warnings::inexact(&facts)
            .map(String::from)
            .into_iter()
            .collect(),
    }
}

/// The facts that a run without tracing lacks, and a hint that `--method ptrace` would record more. ptrace has side
/// effects, so `tr record` does not choose it by itself.
fn untraced(machine: &Machine) -> Programs {
    let way = "--method ptrace records forks, execs and ends; setuid, setgid and file capabilities have no effect then";
    let works = machine.ptrace.is_ok() && machine.schedstat;
    Programs {
        missing: [
            "everything but wall time, exit status and CPU time",
            OTHER_PROCESSES,
        ]
        .map(String::from)
        .into(),
        notes: works.then(|| way.to_owned()).into_iter().collect(),
    }
}

/// The JSON of `tr doctor` for one configuration file (`tr.toml`): its path, its settings, and the reason if
/// it is not used.
fn settings(file: &Settings) -> Value {
    let all = file.content.iter().flatten();
    json!({
        "path": file.path.to_string_lossy(),
        "not_used": file.content.as_ref().err().map(Unused::why),
        "settings": all.map(|setting| json!({ "key": setting.name(), "value": setting.value() })).collect::<Vec<_>>(),
    })
}

/// Whether `sudo` is an executable file on PATH, or may be one because a filter of system calls (seccomp)
/// hides the answer.
fn has_sudo() -> bool {
    tr_record::find("sudo".as_ref()).is_ok()
}

/// The first of the remedies for a refusal of BPF by the kernel: its purpose, and the command line to run;
/// `None` for other errors.
fn improvement(refused: &Error) -> Option<(String, String)> {
    let Error::Tracing(tr_bpf::Error::Refused(refusal)) = refused else {
        return None;
    };
    let remedies = refusal.remedies(&program(), "record -- COMMAND");
    let first = remedies.into_iter().next()?;
    let purpose = format!("To record everything, {}", first.purpose);
    Some((purpose, first.command))
}

impl Subcommand for Args {
    fn run(self, program: &Program) -> Done {
        Ok(diagnose(&self, program))
    }
}

fn diagnose(args: &Args, program: &Program) -> ExitCode {
    let files = config::files(program.rows);
    let diagnosis = Diagnosis::of(Machine::examine(args.sudo), files);
    let printed = match args.format {
        FormatArg::Text => open::print_text(&diagnosis.text()),
        FormatArg::Json => open::print_json(&diagnosis.json()),
    };
    if printed == ExitCode::SUCCESS {
        diagnosis.exit_code()
    } else {
        printed
    }
}
