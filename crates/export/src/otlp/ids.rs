//! Makes the ids of exported spans. Programs that export parts of one trace make matching ids without asking each
//! other.
//!
//! A recording inside of a span has that span's context in TRACEPARENT (W3C Trace Context). A recording in a job of
//! GitHub Actions takes the ids that the OpenTelemetry collector's githubreceiver derives from the events of the same
//! run (trace_event_handling.go): parts of SHA-256 sums of the numbers of run, attempt and job.
//!
//! The collector's gitlabreceiver (traces_event_handling.go) makes the id of a trace from the number of the pipeline
//! and the time at which the pipeline ended. No job of the pipeline knows this time, so the user gives it after the
//! pipeline has ended. The id of a job's span is made from the number of the job and the time at which it began. Gitea
//! and Forgejo set the variables of GitHub Actions, and no receiver of their own events is known.

use std::str::FromStr;

use sha2::{Digest, Sha256};
use tr_format::ci::{JOB_STARTED_AT, SPAN_ID, TRACEPARENT};
use tr_format::meta::Metadata;
use tr_format::trace_context::{bytes, TraceContext};

use tr_insight::recordings::identity;

/// The source from which the ids of exported spans are made (`tr export --ids`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IdSource {
    /// The ids come from the recording: from its TRACEPARENT, or else from the job of GitHub Actions in which the
    /// recording was made. Without either, the ids are made from the identifier of the recording.
    #[default]
    Recording,
    /// The ids come from the run of GitHub Actions in which the recording was made, even if the recording has a
    /// TRACEPARENT.
    Github,
    /// The ids come from the GitLab pipeline in which the recording was made.
    Gitlab {
        /// The time at which the GitLab pipeline ended, as GitLab's webhook writes it: `2025-04-01 18:31:49 UTC`.
        finished_at: String,
    },
    /// The ids of the trace, and of the span around the recording if there is one, are given by the user.
    Given {
        trace: [u8; 16],
        parent: Option<[u8; 8]>,
    },
}

/// The texts that the option for the ids of spans accepts ([`IdSource`]), for help and errors.
pub const ID_SOURCES: &str =
    "github, gitlab:FINISHED_AT, or TRACE or TRACE-SPAN in hexadecimal digits";

impl FromStr for IdSource {
    type Err = String;

    fn from_str(text: &str) -> Result<IdSource, String> {
        match text {
            "github" => return Ok(IdSource::Github),
            "gitlab" => {
                return Err(
                    "the collector's gitlabreceiver makes its ids from the time at which the pipeline ended, \
                     which no job of it knows: once it has ended, give gitlab:FINISHED_AT"
                        .to_owned(),
                )
            }
            "otel-cicd" => {
                return Err(
                    "otel-cicd-action draws its ids at random: give its output traceId, TRACE in 32 digits"
                        .to_owned(),
                )
            }
            _ => {}
        }
        if let Some(time) = text.strip_prefix("gitlab:") {
            let finished_at = webhook_time(time).ok_or_else(|| {
                "the end of a pipeline is such a time: \"2025-04-01 18:31:49 UTC\" or \
                 2025-04-01T18:31:49.624Z"
                    .to_owned()
            })?;
            return Ok(IdSource::Gitlab { finished_at });
        }
        let (trace, span) = match text.split_once('-') {
            Some((trace, span)) => (trace, Some(span)),
            None => (text, None),
        };
        let given = || {
            let trace = bytes(trace).filter(|trace| *trace != [0; 16])?;
            let parent = match span {
                Some(span) => Some(bytes(span).filter(|span| *span != [0; 8])?),
                None => None,
            };
            Some(IdSource::Given { trace, parent })
        };
        given().ok_or_else(|| format!("expected {ID_SOURCES}"))
    }
}

/// A time as GitLab's webhook writes it. The API writes the same time as `2025-04-01T18:31:49.624Z`.
fn webhook_time(text: &str) -> Option<String> {
    let (day, rest) = text.split_once([' ', 'T'])?;
    let clock = rest.strip_suffix(" UTC").or_else(|| {
        let clock = rest.strip_suffix('Z')?;
        Some(clock.split_once('.').map_or(clock, |(whole, _)| whole))
    })?;
    let is_like = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text
                .bytes()
                .zip(pattern.bytes())
                .all(|(byte, wanted)| match wanted {
                    b'0' => byte.is_ascii_digit(),
                    other => byte == other,
                })
    };
    (is_like(day, "0000-00-00") && is_like(clock, "00:00:00")).then(|| format!("{day} {clock} UTC"))
}

/// The ids that connect the exported spans with others: those of the trace, of the span around the recording, and of
/// the recording itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    pub trace: [u8; 16],
    /// The id of the span that contains the recording, such as a CI job's; empty if there is none.
    pub parent: Vec<u8>,
    /// The id that the recording's own span must have, because COMMAND got this id in TRACEPARENT; `None` if the export
    /// may choose any id.
    pub own: Option<[u8; 8]>,
}

impl Ids {
    /// Makes the ids for the spans of a recording from the given source.
    ///
    /// # Errors
    /// The recording lacks a number that the ids are made of; the text names the variable.
    pub fn new(meta: &Metadata, source: &IdSource) -> Result<Ids, String> {
        let value = |wanted: &str| value(meta, wanted);
        let needed = |wanted: &str| {
            value(wanted)
                .ok_or_else(|| format!("{wanted} is not recorded, which its ids are made of"))
        };
        match source {
            IdSource::Recording => Ok(Ids::recorded(meta)),
            IdSource::Github => Ok(github(
                needed("GITHUB_RUN_ID")?,
                needed("GITHUB_RUN_ATTEMPT")?,
                value("CHECK_RUN_ID"),
            )),
            IdSource::Gitlab { finished_at } => {
                let started_at = value(JOB_STARTED_AT).and_then(webhook_time);
                let job = value("CI_JOB_ID").zip(started_at);
                Ok(gitlab(needed("CI_PIPELINE_ID")?, finished_at, job))
            }
            IdSource::Given { trace, parent } => Ok(Ids {
                trace: *trace,
                parent: parent.map_or_else(Vec::new, |span| span.to_vec()),
                own: None,
            }),
        }
    }

    /// The ids that follow from the recording alone ([`IdSource::Recording`]): from its TRACEPARENT, or else from the
    /// job of GitHub Actions in which the recording was made, or else from the recording's identifier.
    pub fn recorded(meta: &Metadata) -> Ids {
        let value = |wanted: &str| value(meta, wanted);
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

    /// The id of the span for something in the recording, such as a step, which `thing` names. Each export of the same
    /// recording gives this span the same id.
    pub fn span(&self, meta: &Metadata, thing: &str) -> [u8; 8] {
        part(&format!("{} {thing}", identity::id(meta)), 0)
    }
}

/// The recorded value of an environment variable that identifies the CI run, or of TRACEPARENT; `None` if it was not
/// recorded.
fn value<'a>(meta: &'a Metadata, wanted: &str) -> Option<&'a str> {
    let found = meta.ci.iter().find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.as_str())
}

/// The `N` bytes from the position `from` on in the SHA-256 sum of a text.
fn part<const N: usize>(text: &str, from: usize) -> [u8; N] {
    let sum = Sha256::digest(text.as_bytes());
    let mut part = [0; N];
    for (to, byte) in part.iter_mut().zip(sum.iter().skip(from)) {
        *to = *byte;
    }
    part
}

/// The ids for a recording in a job of GitHub Actions. If the number of the job's check run is known, the span of the
/// job contains the recording. Otherwise, the span of the workflow's run does.
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

/// The ids for a recording in a job of GitLab. If the number of the job and the time at which it began are known, the
/// span of the job contains the recording. Otherwise, the span of the pipeline does.
fn gitlab(pipeline: &str, finished_at: &str, job: Option<(&str, String)>) -> Ids {
    let parent = match job {
        Some((number, started_at)) => format!("{number}{started_at}"),
        None => format!("{pipeline}{finished_at}"),
    };
    Ids {
        trace: part(&format!("{pipeline}t{finished_at}"), 0),
        parent: part::<8>(&parent, 8).to_vec(),
        own: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::unwrap_used)]
    use super::*;
    use tr_text::units::hex;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn meta(ci: &[(&str, &str)]) -> Metadata {
        let ci = ci.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
        Metadata {
            ci: ci.collect(),
            ..Metadata::default()
        }
    }

    fn ids_of(ci: &[(&str, &str)], source: &str) -> Result<(String, String), String> {
        let source = match source {
            "" => IdSource::Recording,
            text => text.parse()?,
        };
        let ids = Ids::new(&meta(ci), &source)?;
        Ok((hex(&ids.trace), hex(&ids.parent)))
    }

    fn ids(ci: &[(&str, &str)]) -> (String, String) {
        ids_of(ci, "").unwrap()
    }

    #[test]
    fn a_context_is_taken_or_left() {
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

    /// Compares the ids for a run of GitHub Actions with SHA-256 sums that the program sha256sum has computed.
    #[test]
    fn ids_in_github_actions_are_the_collectors() {
        let run = [("GITHUB_RUN_ID", "17"), ("GITHUB_RUN_ATTEMPT", "2")];
        let (trace, parent) = ids(&run);
        assert_eq!(trace, "86c9da7f8004732f43c483d449e20b9b");
        assert_eq!(parent, "efe10a659718150d");
        let job = [run[0], run[1], ("CHECK_RUN_ID", "4")];
        let of_job = (trace, "b507932bd1e77f7a".to_owned());
        assert_eq!(ids(&job), of_job);
        // By default, TRACEPARENT decides about the ids. If the user requests the ids of GitHub's receiver, TRACEPARENT
        // is ignored.
        let context = format!("00-{TRACE}-{SPAN}-01");
        let inside = [job[0], job[1], job[2], ("TRACEPARENT", &context)];
        assert_eq!(ids(&inside).0, TRACE);
        assert_eq!(ids_of(&inside, "github"), Ok(of_job));
        let none = ids_of(&[], "github").unwrap_err();
        assert!(none.contains("GITHUB_RUN_ID"), "{none}");
    }

    /// Compares the ids for a pipeline of GitLab with SHA-256 sums that the program sha256sum has computed.
    #[test]
    fn ids_of_a_gitlab_pipeline_need_its_end() {
        let ci = [("CI_PIPELINE_ID", "31")];
        let ids = (
            "9dd5526a7a31e8a482869c2d0b61a779".to_owned(),
            "6561b45c4cd3e24a".to_owned(),
        );
        for end in [
            "2025-04-01 18:31:49 UTC",
            "2025-04-01T18:31:49.624Z",
            "2025-04-01T18:31:49Z",
        ] {
            assert_eq!(ids_of(&ci, &format!("gitlab:{end}")), Ok(ids.clone()));
        }
        // The parent is the job's own span if the time at which the job began is recorded.
        let job = [
            ci[0],
            ("CI_JOB_ID", "77"),
            ("CI_JOB_STARTED_AT", "2025-04-01T18:30:02Z"),
        ];
        let end = "gitlab:2025-04-01 18:31:49 UTC";
        let of_job = (ids.0.clone(), "7af4b1a6e6de1d8c".to_owned());
        assert_eq!(ids_of(&job, end), Ok(of_job));
        assert_eq!(ids_of(&job[..2], end), Ok(ids));
        for bad in [
            "",
            "today",
            "2025-04-01T18:31:49+02:00",
            "2025-04-01 18:31 UTC",
        ] {
            let why = ids_of(&ci, &format!("gitlab:{bad}")).unwrap_err();
            assert!(why.contains("2025-04-01 18:31:49 UTC"), "{why}");
        }
        let unknown = ids_of(&ci, "gitlab").unwrap_err();
        assert!(unknown.contains("which no job of it knows"), "{unknown}");
        let missing = ids_of(&[], "gitlab:2025-04-01 18:31:49 UTC").unwrap_err();
        assert!(missing.contains("CI_PIPELINE_ID"), "{missing}");
    }

    #[test]
    fn ids_are_taken_as_they_are_given() {
        let given = |text: &str| ids_of(&[], text);
        assert_eq!(given(TRACE), Ok((TRACE.to_owned(), String::new())));
        let both = format!("{TRACE}-{SPAN}");
        assert_eq!(given(&both), Ok((TRACE.to_owned(), SPAN.to_owned())));
        let zeros = "0".repeat(32);
        for bad in [
            &TRACE[1..],
            &format!("{TRACE}-"),
            &format!("{TRACE}-{TRACE}"),
            &zeros,
            "x",
        ] {
            let why = given(bad).unwrap_err();
            assert!(why.contains(ID_SOURCES), "{bad}: {why}");
        }
        assert!(given("otel-cicd").unwrap_err().contains("traceId"));
    }
}
