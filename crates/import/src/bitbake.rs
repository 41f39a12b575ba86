//! Reads BitBake's buildstats: a directory for each recipe, and in it a file for each task with the times of
//! the day at which the task began and ended (`buildstats.bbclass` of OpenEmbedded).

use tr_placing::spans::{Clock, Span, Spans};

use crate::error::Error;
use crate::limits::RECORDS;

const FORMAT: &str = "buildstats";

/// The bytes with which a BitBake buildstats file of a task begins.
pub(crate) const MAGIC: &[u8] = b"Event: TaskStarted";

/// Reads a BitBake buildstats file of one task. If the task ran several times, the file has the
/// data of each run, one after the other.
pub(crate) fn read(bytes: &[u8]) -> Result<Spans, Error> {
    let (mut spans, mut run) = (Vec::new(), Run::default());
    let mut unfinished = 0_u64;
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let time = || {
            nanoseconds(value.trim()).ok_or_else(|| Error::Damaged {
                format: FORMAT,
                what: format!("line {}: no time in seconds", at + 1),
            })
        };
        match key {
            "Event" => {
                unfinished += u64::from(run.start.is_some());
                run = Run::default();
            }
            "Started" => run.start = Some(time()?),
            "Ended" => {
                run.end = Some(time()?);
                spans.extend(std::mem::take(&mut run).span());
            }
            recipe if value.trim_start().starts_with("do_") => {
                run.task = Some((recipe.to_owned(), value.trim().to_owned()));
            }
            _ => {}
        }
        Error::at_most(RECORDS, spans.len(), FORMAT, "tasks")?;
    }
    unfinished += u64::from(run.start.is_some());
    Ok(Spans {
        clock: Clock::Since(0),
        spans,
        is_part: true,
        note: (unfinished > 0).then(|| "some tasks have no end".to_owned()),
        ..Spans::default()
    })
}

/// One run of a BitBake task, as far as its lines in the buildstats file were read.
#[derive(Default)]
struct Run {
    start: Option<i64>,
    end: Option<i64>,
    /// The BitBake recipe with its version, and the name of the task (`do_compile`).
    task: Option<(String, String)>,
}

impl Run {
    fn span(self) -> Option<Span> {
        let (recipe, task) = self.task?;
        let (from, to) = (self.start?, self.end?);
        Some(Span {
            name: format!("{recipe} {task}"),
            last_part: Some(task.clone()),
            from,
            to: to.max(from),
            words: scripts(&recipe, &task),
            ..Span::default()
        })
    }
}

/// The two places that the shell script of a BitBake task can have, as ends of its path, without the pid at the end
/// of its name. The recipe `zlib-1.2.13-r0` works in `zlib/1.2.13-r0`, or since 2024 in `zlib/1.2.13`.
fn scripts(recipe: &str, task: &str) -> Vec<String> {
    let mut parts = recipe.rsplitn(3, '-');
    let (revision, version, name) = (parts.next(), parts.next(), parts.next());
    let (Some(revision), Some(version), Some(name)) = (revision, version, name) else {
        return Vec::new();
    };
    vec![
        format!("{name}/{version}-{revision}/temp/run.{task}"),
        format!("{name}/{version}/temp/run.{task}"),
    ]
}

/// The nanoseconds of a buildstats time in seconds since 1970, such as `1669612800.25`.
fn nanoseconds(seconds: &str) -> Option<i64> {
    let seconds: f64 = seconds.parse().ok()?;
    let is_time = (0.0..9e9).contains(&seconds);
    is_time.then_some((seconds * 1e9) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_a_task_is_a_span() {
        let run = |start: &str, end: &str| {
            format!(
                "Event: TaskStarted \nStarted: {start} \nzlib-1.2.13-r0: do_compile\nElapsed time: 2.50 seconds\n\
                 utime: 12\nIO rchar: 99\nrusage ru_utime: 0.1\nStatus: PASSED \nEnded: {end} \n"
            )
        };
        let cut = "Event: TaskStarted \nStarted: 300.00 \n";
        let file = [&run("100.00", "102.50"), cut, &run("200.25", "202.75"), cut].concat();
        let spans = read(file.as_bytes()).expect("a task");
        let times = spans.spans.iter().map(|span| (span.from, span.to));
        let ms = 1_000_000;
        assert_eq!(
            times.collect::<Vec<_>>(),
            [(100_000 * ms, 102_500 * ms), (200_250 * ms, 202_750 * ms)]
        );
        let first = spans.spans.first().expect("a span");
        assert_eq!(first.name, "zlib-1.2.13-r0 do_compile");
        let words = [
            "zlib/1.2.13-r0/temp/run.do_compile",
            "zlib/1.2.13/temp/run.do_compile",
        ];
        assert_eq!(first.words, words);
        assert_eq!(spans.note.as_deref(), Some("some tasks have no end"));
        let error = read(b"Event: TaskStarted \nStarted: soon \n").expect_err("no time");
        assert_eq!(error.to_string(), "buildstats: line 2: no time in seconds");
    }
}
