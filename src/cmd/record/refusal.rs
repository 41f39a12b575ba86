//! Prints the errors that keep a recording from starting, and their remedies.

use tr_record::{Error, SudoRefusal};
use tr_redact::Redactor;
use tr_text::called::TR;

use super::again::{arguments, record_again};
use super::options::Args;
use crate::called::{self, program};
use crate::errors;

/// The text of an error for standard error, with special characters escaped, because it can contain a path
/// or a user's name.
pub fn shown(error: &Error) -> String {
    tr_text::escape::text(error.to_string().as_bytes())
}

/// Prints the error that keeps the recording from starting, its remedy, and whether COMMAND still runs,
/// untraced (`runs`). With `--quiet` and a COMMAND that runs, only an output file that cannot be written is
/// reported.
pub fn explain(args: &Args, redactor: &Redactor, error: &Error, runs: bool) {
    if args.quiet && runs && !matches!(error, Error::Output(_) | Error::Format(_)) {
        return;
    }
    let refused = matches!(error, Error::Tracing(_) | Error::Sudo(_) | Error::Ptrace(_));
    // Only a refusal is reported with the command line that repeats the recording. Masking the secrets in this line
    // takes memory, which may be lacking after another error.
    let again = if refused {
        arguments(args, redactor)
    } else {
        String::new()
    };
    match error {
        Error::Output(cause) => {
            errors::unwritten(&errors::shown(args.output()), cause);
        }
        Error::Tracing(cause) => {
            message!("cannot trace: {cause}");
            remedy(args, cause, &again);
            if args.verbose {
                for line in tr_bpf::log().lines() {
                    eprintln!("    {line}");
                }
            }
        }
        Error::Sudo(refusal) => {
            message!("{}", shown(error));
            let (purpose, line) = sudo_remedy(refusal, &again);
            eprintln!("    {purpose}: {line}");
        }
        Error::Ptrace(_) => {
            message!("{error}");
            match tr_record::doctor::yama() {
                Some(scope @ 2) => eprintln!(
                    "    kernel.yama.ptrace_scope is {scope}; to allow it: sudo sysctl kernel.yama.ptrace_scope=1"
                ),
                Some(scope @ 3..) => {
                    eprintln!("    kernel.yama.ptrace_scope is {scope}, until the next boot");
                }
                _ => {}
            }
        }
        error => message!("{}", shown(error)),
    }
    if runs {
        eprintln!("    the command runs untraced");
    } else if refused && !args.command.is_empty() {
        eprintln!(
            "    to run the command without tracing: {} record --best-effort{again}",
            called::word()
        );
    }
}

/// Prints the command lines by which the user can make tracing by BPF possible. `again` has the arguments
/// that repeat the recording, as [`arguments`] returns them.
fn remedy(args: &Args, cause: &tr_bpf::Error, again: &str) {
    match cause {
        tr_bpf::Error::Refused(refusal) => {
            let record = record_again(args, again);
            for (at, remedy) in refusal.remedies(&program(), &record).iter().enumerate() {
                let or = if at > 0 { "or " } else { "" };
                eprintln!("    {or}{}: {}", remedy.purpose, remedy.command);
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

/// The remedy for a refused `--method sudo`: a phrase with its purpose, and a command line that makes sudo
/// possible or avoids it.
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
