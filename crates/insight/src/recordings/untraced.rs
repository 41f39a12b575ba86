//! Finds the facts about a recording that was not traced (`tr record --best-effort`): the reason, and what `wait` and
//! `getrusage` show about COMMAND. Everything else is unknown.

use tr_analyze::model::Analysis;
use tr_format::meta::Usage;

use tr_text::escape;

/// The line for people that says why nothing was traced; `None` if the recording is a normal trace.
pub fn reason(analysis: &Analysis) -> Option<String> {
    let reason = analysis.meta.not_traced.as_ref()?;
    Some(escape::raw(reason.as_bytes()))
}

/// The wall time of COMMAND in nanoseconds, for a recording that was not traced; `None` if COMMAND's end is not known.
pub fn wall(analysis: &Analysis) -> Option<u64> {
    let summary = analysis.summary.as_ref()?;
    Some(summary.end.since(analysis.meta.start))
}

/// The resource usage of COMMAND (`getrusage`), for a recording that was not traced; `None`
/// if COMMAND's end is not known.
pub fn usage(analysis: &Analysis) -> Option<Usage> {
    analysis.summary.as_ref().and_then(|summary| summary.usage)
}
