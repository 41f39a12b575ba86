//! In place of a report of events that the recording lacks.

use serde_json::Value;

use super::Kind;
use crate::called::TR;
use crate::escape;
use crate::style::{Paint, Style};
use crate::view::{Report, View};

/// The title of the report, and the method of the recording.
pub struct NotKnown {
    title: &'static str,
    why: String,
}

impl NotKnown {
    /// In place of a report of this kind.
    pub fn new(kind: Kind, view: &View<'_>) -> NotKnown {
        let method = view.analysis.meta.recorded_by();
        NotKnown {
            title: kind.title(),
            why: format!(
                "not known with --method {}: it records no scheduling events (--method bpf does)",
                escape::text(method.as_bytes())
            ),
        }
    }

    /// In place of the report of system calls.
    pub fn of_syscalls(view: &View<'_>) -> NotKnown {
        let missing = view.analysis.meta.missing.iter();
        let mut missing = missing.filter(|it| it.starts_with("system calls: "));
        let why = missing.next().map(|it| escape::text(it.as_bytes()));
        NotKnown {
            title: Kind::Syscalls.title(),
            why: why.unwrap_or_else(|| format!("not recorded: {TR} record --syscalls does")),
        }
    }

    /// In place of the report of stacks.
    pub fn of_stacks(view: &View<'_>) -> NotKnown {
        let missing = view.analysis.meta.missing.iter();
        let mut missing = missing.filter(|it| it.starts_with("stacks: "));
        let why = missing.next().map(|it| escape::text(it.as_bytes()));
        NotKnown {
            title: Kind::Flame.title(),
            why: why.unwrap_or_else(|| format!("not recorded: {TR} record --stacks does")),
        }
    }

    /// In place of the report of the machine: an older trace, or one of a single moment.
    pub fn of_machine() -> NotKnown {
        NotKnown {
            title: Kind::Machine.title(),
            why: "not known: the trace has no samples of the machine's counters".into(),
        }
    }

    /// In place of the report of connections: an older trace, or a kernel without them.
    pub fn of_network(view: &View<'_>) -> NotKnown {
        let missing = view.analysis.meta.missing.iter();
        let mut missing = missing.filter(|it| it.starts_with("TCP connections: "));
        let why = missing.next().map(|it| escape::text(it.as_bytes()));
        NotKnown {
            title: Kind::Network.title(),
            why: why
                .unwrap_or_else(|| "not known: the trace has no TCP connections' events".into()),
        }
    }
}

impl Report for NotKnown {
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        style.painted(&mut out, Paint::Bold, self.title);
        style.line(&mut out, &self.why);
        out
    }

    fn json(&self) -> Option<Value> {
        Some(Value::Null)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        Ok(Vec::new())
    }

    fn warning(&self) -> Option<String> {
        Some(format!("{}: {}", self.title, self.why))
    }
}
