//! The ids of spans, by which parts of one trace find each other without coordination.
//!
//! A recording inside of a span has that span's context in TRACEPARENT (W3C Trace Context). A
//! recording in a job of GitHub Actions takes the ids that the OpenTelemetry collector's
//! githubreceiver derives from the events of the same run (trace_event_handling.go): parts of
//! SHA-256 sums of the numbers of run, attempt and job.

use sha2::{Digest, Sha256};
use tr_format::ci::{SPAN_ID, TRACEPARENT};
use tr_format::meta::Metadata;
use tr_format::trace_context::{bytes, TraceContext};

use tr_insight::identity;

/// The trace, and the span around the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    pub trace: [u8; 16],
    /// The id of the parent span; empty if there is none.
    pub parent: Vec<u8>,
    /// The span of the recording that COMMAND's TRACEPARENT named.
    pub own: Option<[u8; 8]>,
}

impl Ids {
    pub fn new(meta: &Metadata) -> Ids {
        let value = |wanted: &str| {
            let found = meta.ci.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_str())
        };
        let context = value(TRACEPARENT).and_then(TraceContext::parse);
        let inside = context.map(|context| Ids {
            trace: context.trace,
            parent: context.span.to_vec(),
            own: value(SPAN_ID).and_then(bytes),
        });
        inside.unwrap_or_else(
            || match (value("GITHUB_RUN_ID"), value("GITHUB_RUN_ATTEMPT")) {
                (Some(run), Some(attempt)) => github(run, attempt, value("CHECK_RUN_ID")),
                _ => Ids {
                    trace: part(&identity::id(meta), 0),
                    parent: Vec::new(),
                    own: None,
                },
            },
        )
    }

    /// The span of a thing of the recording.
    pub fn span(&self, meta: &Metadata, thing: &str) -> [u8; 8] {
        part(&format!("{} {thing}", identity::id(meta)), 0)
    }
}

/// Bytes of the SHA-256 sum of a text.
fn part<const N: usize>(text: &str, from: usize) -> [u8; N] {
    let sum = Sha256::digest(text.as_bytes());
    let mut part = [0; N];
    for (to, byte) in part.iter_mut().zip(sum.iter().skip(from)) {
        *to = *byte;
    }
    part
}

/// The ids of a GitHub job: its span where the number of its check run is known, else the
/// span of the workflow's run.
fn github(run: &str, attempt: &str, check_run: Option<&str>) -> Ids {
    let parent = match check_run {
        Some(number) => format!("{number}-j"),
        None => format!("{run}{attempt}s"),
    };
    Ids {
        trace: part(&format!("{run}{attempt}t"), 0),
        parent: part::<8>(&parent, 8).to_vec(),
        own: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;
    use tr_text::units::hex;

    fn ids(ci: &[(&str, &str)]) -> (String, String) {
        let ci = ci.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
        let ids = Ids::new(&Metadata {
            ci: ci.collect(),
            ..Metadata::default()
        });
        (hex(&ids.trace), hex(&ids.parent))
    }

    #[test]
    fn a_context_is_taken_or_left() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        const SPAN: &str = "b7ad6b7169203331";
        let whole = format!("00-{TRACE}-{SPAN}-01");
        let taken = (TRACE.to_owned(), SPAN.to_owned());
        assert_eq!(ids(&[("TRACEPARENT", &whole)]), taken);
        assert_eq!(
            ids(&[("TRACEPARENT", &format!("01-{TRACE}-{SPAN}-01-x"))]),
            taken
        );
        let own = ids(&[]);
        let bad = format!("00-{TRACE}-{SPAN}-01-x");
        assert_eq!(ids(&[("TRACEPARENT", &bad)]), own);
        assert_eq!(own.1, "");
    }

    /// The sums are those of sha256sum.
    #[test]
    fn ids_in_github_actions_are_the_collectors() {
        let run = [("GITHUB_RUN_ID", "17"), ("GITHUB_RUN_ATTEMPT", "2")];
        let (trace, parent) = ids(&run);
        assert_eq!(trace, "86c9da7f8004732f43c483d449e20b9b");
        assert_eq!(parent, "efe10a659718150d");
        let job = [run[0], run[1], ("CHECK_RUN_ID", "4")];
        assert_eq!(ids(&job), (trace, "b507932bd1e77f7a".to_owned()));
    }
}
