//! Puts raw `wait` statuses of processes into words.

pub use tr_analyze::status::{code, failed, killed_by};
use tr_analyze::status::{has_core, name};

use tr_analyze::critical_path;
use tr_analyze::model::Analysis;
use tr_format::event::Ktime;
use tr_format::meta::{CommandEnd, CommandLimit, EndReason, EndedByLimit, Metadata, Summary};

use tr_text::units;

/// A raw exit status in words, such as `exit 0` or `killed by SIGKILL`.
pub fn words(status: u32) -> String {
    let killed = match killed_by(Some(status)) {
        Some(_) => "killed by ",
        None => "",
    };
    format!("{killed}{}", signal_or_code(status))
}

/// A raw exit status in short words, such as `exit 0` or `SIGKILL`.
pub fn signal_or_code(status: u32) -> String {
    let Some(signal) = killed_by(Some(status)) else {
        return format!("exit {}", code(status).unwrap_or(0));
    };
    let core = if has_core(status) {
        " (core dumped)"
    } else {
        ""
    };
    format!("{}{core}", name(signal))
}

/// The exit status of COMMAND in words, or [`NO_END`] if the recording has no end. `None` if the recording has an end
/// but no status.
pub fn of_command(analysis: &Analysis) -> Option<String> {
    match &analysis.summary {
        Some(summary) => summary.status.map(words),
        None => Some(NO_END.to_owned()),
    }
}

/// The words that are shown in place of COMMAND's exit status if the recording has no end.
pub const NO_END: &str = "no end";

/// The words for a recording that ended while its command still ran ([`is_unfinished`]).
pub const UNFINISHED: &str = "ended before its command did";

/// The length of the recording in words. If the recording ended at its limit of size and COMMAND's end is known,
/// COMMAND's whole time follows.
pub fn wall(analysis: &Analysis) -> String {
    let recorded = units::time(analysis.wall());
    match command_after(analysis) {
        Some(end) => {
            let whole = end.time.since(analysis.meta.start);
            format!("{recorded} recorded of {}", units::time(whole))
        }
        None => recorded,
    }
}

/// The time at which COMMAND ended, and the resources that it used, if COMMAND ran on after the recording had ended at
/// its limit of size. `None` if the recording did not end so, or if COMMAND's end is not known.
fn command_after(analysis: &Analysis) -> Option<CommandEnd> {
    analysis.summary.as_ref()?.full?.command
}

/// The sentence that says that a recording ended at its size limit, and how long COMMAND ran on, if that is known.
/// `end` is the end of the recording. `None` if the recording did not end at its size limit.
pub fn full(meta: &Metadata, summary: &Summary, end: Ktime) -> Option<String> {
    let full = summary.full.as_ref()?;
    let after = units::time(end.since(meta.start));
    let limit = units::bytes(full.limit);
    let mut text =
        format!("the recording ended after {after}, at its limit of {limit} (--max-size)");
    if let Some(command) = &full.command {
        let status = summary.status.map(|status| format!("{}, ", words(status)));
        let whole = units::time(command.time.since(meta.start));
        let cpu = command
            .usage
            .user_ns
            .saturating_add(command.usage.system_ns);
        text += &format!(
            "; the command ran on ({}{whole} in all, {} of CPU): what it did then is unknown",
            status.unwrap_or_default(),
            units::time(cpu)
        );
    }
    Some(text)
}

/// The words for the limit by which the recorder ended COMMAND, such as `its limit of 10 min (--timeout)`.
pub fn limit(ended: EndedByLimit) -> String {
    let time = units::time(ended.ns);
    match ended.limit {
        CommandLimit::Timeout => format!("its limit of {time} (--timeout)"),
        CommandLimit::Stall => format!("its limit of {time} without activity (--stall)"),
    }
}

/// Whether the recording ended while COMMAND still ran, so that the figures describe only a part of COMMAND's run.
/// `false` if the recording has no end.
///
/// An imported recording may know that COMMAND ended without knowing its status.
pub fn is_unfinished(analysis: &Analysis) -> bool {
    let summary = analysis.summary.as_ref();
    let ran = summary.filter(|summary| {
        let unknown = summary.status.is_none() && summary.reason != EndReason::CommandEnded;
        unknown || summary.full.is_some()
    });
    !analysis.meta.command.is_empty() && ran.is_some()
}

/// Whether COMMAND failed.
pub fn command_failed(analysis: &Analysis) -> bool {
    let root = critical_path::root(analysis).ok();
    root.is_some_and(|root| failed(analysis.process(root).status))
}
