//! Reports on a recording that was not traced (`tr record --best-effort`), with the facts of
//! [`tr_insight::recordings::untraced`]. Everything else is unknown, and is `null` in JSON.

use serde_json::{json, Value};
use tr_analyze::model::Analysis;
use tr_format::meta::Usage;

use crate::ci;
use tr_insight::processes::{exit, who};
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::untraced;
use tr_text::page::{Page, Span};
use tr_text::style::Paint;
use tr_text::{escape, units};

/// The sentences about COMMAND's exit status, wall time and CPU time, as far as these are
/// known, for a recording that was not traced.
pub fn facts(analysis: &Analysis) -> Vec<String> {
    let facts = [
        exit::of_command(analysis),
        untraced::wall(analysis).map(units::time),
        untraced::usage(analysis).map(|usage| {
            let cpu = usage.user_ns.saturating_add(usage.system_ns);
            format!("{} of CPU", units::time(cpu))
        }),
    ];
    facts.into_iter().flatten().collect()
}

/// The words for the file, the date and the kernel of a recording.
pub fn origin(analysis: &Analysis, file: &str) -> [String; 4] {
    let meta = &analysis.meta;
    [
        escape::raw(file.as_bytes()),
        units::date(meta.start_unix()),
        who::kernel(meta),
        "not traced".into(),
    ]
}

/// The page that is shown in place of the reports of a recording that was not traced.
pub fn page(analysis: &Analysis, file: &str) -> Page {
    let usage = untraced::usage(analysis);
    let mut out = Page::new();
    let command = Span::new(Paint::Bold, who::headline(&analysis.meta));
    out.named::<Span, Span>([], command, 0, []);
    out.items("", facts(analysis));
    out.items("", origin(analysis, file));
    let reason = untraced::reason(analysis).unwrap_or_default();
    out.items("CI   ", ci::words(&Ci::new(&analysis.meta)));
    out.blank();
    out.wrapped(Paint::Bad, "Not traced   ", &reason);
    if usage.is_some() {
        out.spans(["Known of the command and the descendants that it waited for:"]);
    }
    for (name, value) in usage_lines(usage) {
        out.spans([format!("  {name:<12}{value}")]);
    }
    out
}

/// The lines for people with the resources that COMMAND used, each with a name and a value.
pub fn usage_lines(usage: Option<Usage>) -> Vec<(&'static str, String)> {
    let Some(usage) = usage else {
        return Vec::new();
    };
    let [user, system] = [usage.user_ns, usage.system_ns].map(units::time);
    let [minor, major] = [usage.minor_faults, usage.major_faults].map(units::count);
    let switches = [usage.voluntary_switches, usage.involuntary_switches];
    let [voluntary, involuntary] = switches.map(units::count);
    let memory = units::bytes(usage.max_rss);
    vec![
        ("CPU", format!("{user} user, {system} system")),
        ("memory", format!("{memory} in the largest process")),
        ("page faults", format!("{minor} minor, {major} major")),
        (
            "switches",
            format!("{voluntary} voluntary, {involuntary} involuntary"),
        ),
    ]
}

/// The resource usage of COMMAND as a JSON value; null if it is not known.
pub fn usage_json(usage: Option<Usage>) -> Value {
    usage.map_or(Value::Null, |usage| {
        json!({
            "user_ns": usage.user_ns,
            "system_ns": usage.system_ns,
            "max_rss_bytes": usage.max_rss,
            "minor_faults": usage.minor_faults,
            "major_faults": usage.major_faults,
            "voluntary_switches": usage.voluntary_switches,
            "involuntary_switches": usage.involuntary_switches,
        })
    })
}
