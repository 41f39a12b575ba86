//! Prints the notes of `tr record` on standard error at the start and at the end of a recording that works. Errors are
//! printed by `refusal.rs`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use tr_bpf::RemedyKind;
use tr_format::event::{LifeKind, LossCause};
use tr_format::meta::Method as RecordedBy;
use tr_insight::recordings::warnings;
use tr_record::doctor::knows;
use tr_record::{Config, Error, Follow, Notice, Report, Target};
use tr_redact::Redactor;
use tr_text::called::TR;
use tr_text::units::{bytes, count, plural};

use super::again::{arguments, record_again};
use super::line;
use super::options::Args;
use super::refusal::shown;
use crate::called::program;
use crate::{errors, pattern};

/// The function that the recorder calls when the recording has begun. It prints the notes about the beginning.
pub fn on_begin(args: &Args, redactor: &Redactor) -> Notice {
    if args.quiet {
        return Notice(Arc::new(|_, _, _| {}));
    }
    let (args, redactor) = (args.clone(), redactor.clone());
    Notice(Arc::new(move |config, method, refusals| {
        say_begun(config);
        warn_of_ptrace((&args, &redactor), method, refusals);
    }))
}

/// Warns before COMMAND runs that ptrace changes what setuid programs can do, if `--method auto` has fallen back to
/// ptrace.
fn warn_of_ptrace(of: (&Args, &Redactor), method: RecordedBy, refusals: &[Error]) {
    let Some(Error::Tracing(cause)) = refusals.first() else {
        return;
    };
    if method != RecordedBy::Ptrace {
        return;
    }
    if let Some(error @ Error::Sudo(_)) = refusals.get(1) {
        message!("{}", shown(error));
    }
    let (args, redactor) = of;
    let more = more(cause, &record_again(args, &arguments(args, redactor)));
    message!(
        "recording by ptrace, under which setuid, setgid and file capabilities have no effect (sudo and ping \
         fail) and no_new_privs is set; {more}"
    );
}

/// A sentence with the command line that would record everything. It is printed after the kernel refused BPF for the
/// given cause, and another method was taken.
fn more(cause: &tr_bpf::Error, record: &str) -> String {
    let remedy = match cause {
        tr_bpf::Error::Refused(refusal) => {
            let remedies = refusal.remedies(&program(), record);
            // A remedy that affects this recording alone is preferred, because the other remedies change the machine.
            let mut all = remedies.iter();
            let remedy = all.find(|remedy| remedy.kind == RemedyKind::Record);
            remedy.or(remedies.first()).map(|remedy| {
                let (purpose, command) = (remedy.purpose, &remedy.command);
                format!("to record everything, {purpose}: {command}")
            })
        }
        _ => None,
    };
    remedy.unwrap_or_else(|| format!("to see why BPF fails ({cause}): --method bpf"))
}

/// Prints on a terminal that a recording without COMMAND has begun, because nothing else would show that to the user.
fn say_begun(config: &Config) {
    use std::io::IsTerminal;
    if !config.command.argv.is_empty() || !std::io::stderr().is_terminal() {
        return;
    }
    let what = match &config.scope.follow {
        Follow::All => "the whole machine".to_owned(),
        Follow::Pids(pids) => plural(pids.len() as u64, "process", "processes"),
        Follow::Cgroup(path) => format!("the cgroup {}", errors::shown(path)),
        Follow::Command => return,
    };
    let end = match (config.limits.duration, &config.scope.follow) {
        (Some(duration), _) => format!("Ctrl-C ends it, or {duration:?}"),
        (None, Follow::Pids(_)) => "Ctrl-C ends it, or the end of the last of them".to_owned(),
        (None, _) => "Ctrl-C ends it".to_owned(),
    };
    message!("recording {what}; {end}");
}

/// Warns that COMMAND runs as root because `tr` runs under sudo, so that files which it creates will belong to root.
pub fn warn_of_root(args: &Args, redactor: &Redactor) {
    let root = nix::unistd::Uid::effective().is_root();
    let invoking = tr_output::invoking_user().filter(|(user, _)| root && !user.is_root());
    let (Some((user, _)), Some(command)) = (invoking, args.command.first()) else {
        return;
    };
    if args.quiet || args.user.is_some() {
        return;
    }
    let user = tr_record::user_name(user.as_raw()).unwrap_or_else(|| user.to_string());
    message!(
        "{} runs as root; as {user}: sudo {} record --user {user}{}",
        tr_text::escape::text(command.as_bytes()),
        program(),
        arguments(args, redactor),
    );
}

/// Prints that COMMAND has ended but the end of the trace cannot be written, because the output blocks (for example, a
/// full pipe). Also prints how long `tr` waits.
pub fn say_waiting() {
    message!(
        "the command has ended, but the output blocks before the end of the trace; \
         waiting up to {} s (Ctrl-C gives up)",
        tr_record::LIMIT.as_secs()
    );
}

pub fn say_panicked(what: &str, command: bool) {
    line::leave_at_once();
    let command = if command {
        "; the command runs without it"
    } else {
        ""
    };
    message!("the recorder failed by a defect of its own, and what it recorded ends here{command}: {what}");
}

/// Prints what the recording lost or limited, and the size of the trace. With `--quiet`, it only prints that the trace,
/// or one of its files, lacks its end, if so.
pub fn tell(args: &Args, config: &Config, report: &Report) {
    let file = last_file(args, report);
    let file = file.map_or_else(|| "standard output".into(), errors::shown);
    if let Some((Target::File(part), error)) =
        report.cut.as_ref().map(|cut| (&cut.file, &cut.error))
    {
        let part = errors::shown(part);
        let why = match error {
            Some(error) => format!("writing failed: {error}"),
            None => "stopped writing: the output did not accept data for 10 s".to_owned(),
        };
        message!("{part}: {why}; this part ends there");
    }
    if report.given_up {
        message!("{file}: given up; the trace ends where the output blocked");
        return;
    }
    if let Some(error) = &report.output_error {
        message!("{file}: writing failed: {error}; the trace ends there, the command continued");
    }
    if args.quiet {
        return;
    }
    tell_method(report);
    tell_rights(args, &config.mask.redactor, report);
    tell_losses(report);
    tell_limits(args, report);
    let lost = if report.output_error.is_some() || report.cut.is_some() {
        ", not all of them in the file"
    } else if report.tally.lost.is_empty() {
        ", none lost"
    } else {
        ""
    };
    let parts = match &report.parts {
        Some(parts) if parts.count > 1 => format!(", the last of {} parts", count(parts.count)),
        _ => String::new(),
    };
    message!(
        "{file}{parts}: {} events of {} in {:.2} s, {}{lost}",
        count(report.tally.written.events()),
        plural(report.tally.processes, "process", "processes"),
        report.duration as f64 / 1e9,
        bytes(report.tally.written.bytes),
    );
    if let Some(search) = &report.symbols {
        message!(
            "named {} of {} frames of stacks in {:.2} s{}",
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
    tell_full(report);
}

/// Prints that the recording ended because its file reached the limit of `--max-size`, and how long COMMAND ran on.
fn tell_full(report: &Report) {
    let Some(full) = &report.full else { return };
    let command = full.command.map_or_else(String::new, |end| {
        let whole = end.time.since(report.start);
        let further = whole.saturating_sub(report.duration);
        format!("; the command ran on for {:.2} s", further as f64 / 1e9)
    });
    message!(
        "the recording ended after {:.2} s, at its limit of {} (--max-size){command}",
        report.duration as f64 / 1e9,
        bytes(full.limit)
    );
}

/// The path of the recording's file, or of its last file if `--rotate` divided it; `None` for standard output.
fn last_file<'a>(args: &'a Args, report: &'a Report) -> Option<&'a Path> {
    match report.parts.as_ref().map(|parts| &parts.last) {
        Some(Target::File(file)) => Some(file),
        Some(Target::Stdout) => None,
        None => Some(args.output()).filter(|name| *name != Path::new("-")),
    }
}

/// Prints which method `--method auto` has chosen because BPF is refused, and which facts that method does not
/// record.
fn tell_method(report: &Report) {
    if report.refusals.is_empty() {
        return;
    }
    let method = report.method.name();
    if report.method == RecordedBy::Sudo {
        message!("recorded by {method}: everything is known; {method} ran the loader of the BPF programs, nothing else");
        return;
    }
    let (facts, _) = knows(report.method);
    let what = warnings::inexact(&facts).unwrap_or_default();
    let absent = warnings::absent(&facts).join(", ");
    message!("recorded by {method}: {what}; not known: {absent}");
}

/// Prints that ptrace took the rights of setuid and setgid programs in the recording, and the command line with which
/// these programs keep their rights.
fn tell_rights(args: &Args, redactor: &Redactor, report: &Report) {
    if report.took_rights {
        message!(
            "a setuid or setgid program (such as sudo) ran without its rights, because ptrace takes them; \
             with them, untraced: {} record --best-effort{}",
            program(),
            arguments(args, redactor),
        );
    }
}

fn tell_losses(report: &Report) {
    let kept = &report.tally.lost;
    let spans = kept.iter().filter_map(|event| match &event.kind {
        LifeKind::Lost(lost) => Some((event.time, lost.clone())),
        _ => None,
    });
    let more = report.tally.losses.saturating_sub(kept.len() as u64);
    let (losses, others) = warnings::lines(warnings::losses(spans), more);
    for loss in losses {
        message!(
            "{} ({}); times there are shown as unknown",
            loss.text(report.start),
            cause(loss.cause),
        );
    }
    if let Some(others) = others {
        message!("{others}");
    }
}

/// Prints how many execs have cut arguments, how many secrets were masked, which facts are not recorded, and which
/// processes outlive the recording, with the options that change this.
fn tell_limits(args: &Args, report: &Report) {
    let (cut, masked) = (&report.tally.cut_arguments, report.tally.masked);
    let limit = format!(
        "are cut at {} bytes (--argv-limit keeps more)",
        count(args.argv_limit)
    );
    let no_room = "are cut because the ring had no room for them (--buffer makes it larger)";
    for (number, why) in [
        (cut.limit, limit.as_str()),
        (cut.no_room, no_room),
        (cut.unreadable, "could not be read"),
    ] {
        if number > 0 {
            let execs = plural(number, "exec", "execs");
            message!("the arguments of {execs} {why}");
        }
    }
    if masked > 0 {
        let masked = count(masked);
        message!("secrets masked: {masked} (--no-redact keeps them)");
    }
    for what in &report.unmet {
        message!("not recorded: {what}");
    }
    let missing = report.tally.marks.missing();
    for what in report.no_marks.iter().chain(&missing) {
        message!("{what}");
    }
    if let Some(first) = report.alive.first() {
        let more = match report.alive.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        message!(
            "still running: {} ({}){more}; --wait-all records to the end of the last",
            tr_text::escape::text(first.comm.bytes()),
            first.pid,
        );
    }
}

/// Prints the CPU time that the recording itself cost, and the command by which the user can analyze it.
fn tell_cost(args: &Args, report: &Report) {
    let next = match last_file(args, report) {
        Some(name) if cfg!(feature = "report") => {
            let pattern = report.parts.as_ref().and_then(|parts| match &parts.first {
                Target::File(first) => pattern::of(first, name, parts.count),
                Target::Stdout => None,
            });
            let names =
                pattern.unwrap_or_else(|| tr_text::escape::command([name.as_os_str().as_bytes()]));
            format!(" · next: {TR} analyze {names}")
        }
        _ => String::new(),
    };
    let cost = report.cost.recorder_ns + report.cost.bpf_ns.unwrap_or(0);
    let what = if report.cost.bpf_ns.is_some() {
        ""
    } else {
        ", not counting the kernel's part"
    };
    let share = cost as f64 * 100.0 / report.command_cpu.max(1) as f64;
    // For a command of a few ms, the share is large and only shows the fixed cost of tracing.
    if share < 10.0 {
        message!("tracing took {share:.2} % of the command's CPU time{what}{next}");
    } else {
        message!(
            "tracing took {:.1} ms of CPU time{what}{next}",
            cost as f64 / 1e6
        );
    }
}

fn cause(cause: LossCause) -> &'static str {
    use LossCause::{BufferFull, FollowSet, Output, Recursion};
    match cause {
        BufferFull => "buffer full; --buffer makes it larger",
        Recursion => "the kernel did not run a program inside itself",
        Output => "the output was too slow or failed",
        FollowSet => {
            "task ids beyond kernel.pid_max at the start, or more than 1,024 threads of a process \
             that joined the cgroup"
        }
        _ => "unknown cause",
    }
}
