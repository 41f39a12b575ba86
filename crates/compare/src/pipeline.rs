//! Joins the recordings of several jobs of one CI run: which job, and which step in it, the pipeline waited for.
//!
//! The jobs ran on different machines with different clocks. A job is placed by the time of day of its machine's clock;
//! the output says how far the clocks can be trusted. No recording has the time between two jobs: the wait for a
//! runner, the checkout.

mod ci_jobs;
mod html;
mod order;

use std::collections::BTreeMap;

use serde_json::{json, Value};
use tr_analyze::critical_path;

use tr_insight::processes::exit;
use tr_insight::recordings::ci::Ci;
use tr_insight::recordings::ci_jobs::CiJob;
use tr_insight::verdicts::step_sums;
use tr_insight::Recording;
use tr_text::page::Page;
use tr_text::phrase::Phrase;
use tr_text::{escape, units};

/// The difference in ns that is assumed between the clocks of two machines with network time, unless the recordings or
/// the graph of jobs prove a larger one. A guess, above the tens of milliseconds of NTP on the internet: with less, a
/// job would seem to start before the end of a job that it needs.
const CLOCKS: u64 = 100_000_000;
/// The largest number of steps that are shown for each job of the pipeline.
const SHOWN_STEPS: usize = 3;

/// The largest number of changes to jobs of the pipeline that are suggested.
const GAINS: usize = 5;

/// A change to one job of a CI run by which the whole pipeline would end earlier.
struct Gain {
    /// The time in ns by which the pipeline would be shorter with this change to a job.
    saved: u64,
    /// The change to a job as a clause that follows "if", for example "test waits for no other job".
    change: String,
}

/// The sum of all steps with one kind and name in a CI job, as far as they are on the job's critical path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOnPath {
    kind: &'static str,
    /// The name that these steps share, without the parts that differ between runs.
    name: Phrase,
    /// The sum in ns of the times that these steps have on the critical path of their job.
    ns: u64,
}

/// The steps on the critical path of a recorded job, each kind and name summed up, the longest first.
fn steps_on_path(recording: &Recording) -> Vec<StepOnPath> {
    let path = critical_path::of(&recording.analysis).ok();
    let path = path.as_ref().map_or(&[][..], |path| &path.segments);
    let sums = step_sums::sums(recording, path).into_iter();
    let steps = sums.filter_map(|((kind, name), sum)| {
        let (kind, ns) = (kind.name(), sum.path.filter(|ns| *ns > 0)?);
        Some(StepOnPath { kind, name, ns })
    });
    let mut steps: Vec<StepOnPath> = steps.collect();
    steps.sort_by(|a, b| (b.ns, a.kind, &a.name).cmp(&(a.ns, b.kind, &b.name)));
    steps
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The job's name from the CI system, or else the name of the recording's file; perhaps numbered (`test #2`).
    pub name: String,
    /// The start of the CI job in ns since 1970: by the CI system's clock if the CI system reports it, otherwise the
    /// start of the job's recording. A graph of the user may move it to the end of a needed job, together with `end`.
    pub start: u64,
    /// The end of the CI job in ns since 1970: by the CI system's clock if the CI system reports it, otherwise the end
    /// of the job's recording.
    pub end: u64,
    /// Whether the CI job failed: COMMAND of one of its recordings did, or the CI system says so.
    pub failed: bool,
    /// The steps on the critical path of this CI job, the longest first; empty if the job was not recorded. Steps that
    /// take nearly the whole job are left out.
    pub steps: Vec<StepOnPath>,
    /// The amount in ns by which the clock of the job's machine was set during the recording, all in all; of several
    /// recordings of the job, the largest such amount. 0 if the amount is not known.
    pub set: u64,
    /// The start of the first recording of this CI job and the end of the last one, in ns since 1970; `None` if the
    /// job was not recorded and only the CI system knows it.
    pub recorded: Option<(u64, u64)>,
    /// The time in ns for which this CI job waited for a runner; 0 if the CI system does not report it.
    pub queued: u64,
    /// The time in ns by which the recording reaches beyond the times that the CI system reports for this job, and at
    /// least the second to which the CI system rounds; 0 if the CI system's times are not known.
    pub apart: u64,
    /// The name of the CI job without the number that was added to it because an earlier job has the same name; `None`
    /// if no number was added.
    unnumbered: Option<String>,
    /// The indices, in the list of all jobs, of the jobs for which this job waited. These indices are smaller than this
    /// job's own index.
    needs: Vec<usize>,
    /// The time that a change to this job would save for the whole pipeline; `None` unless the job is on the chain of
    /// jobs that set the pipeline's time.
    saved: Option<Saving>,
}

/// The times in ns by which two different changes to one job would shorten the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Saving {
    /// The time in ns by which the pipeline would be shorter if the job waited for no other job.
    alone: u64,
    /// The time in ns by which the pipeline would be shorter if the job itself took no time.
    gone: u64,
}

impl Job {
    /// Makes the job of a recording; `None` if the recording does not have the time of day at which it began. The
    /// analysis must have a timeline if the job's steps are to be known.
    pub fn of(recording: &Recording, file: &str) -> Option<Job> {
        let analysis = &recording.analysis;
        let meta = &analysis.meta;
        let start = meta.start_unix()?;
        let length = analysis.wall();
        let end = start.checked_add(length)?;
        let summary = analysis.summary.as_ref();
        let clock = summary.map_or(0, |summary| summary.end_clock.real);
        let passed = summary.map_or(0, |summary| summary.end.since(meta.start));
        let set = match clock {
            0 => 0,
            clock => clock.abs_diff(start.saturating_add(passed)),
        };
        // A step with nine tenths of the job's time or more, such as `make`, says no more than the job itself. Such
        // steps are left out, unless the job has no other step.
        let mut steps = steps_on_path(recording);
        if steps.iter().any(|step| step.ns < length / 10 * 9) {
            steps.retain(|step| step.ns < length / 10 * 9);
        }
        let name = Ci::new(meta).get("job").map(str::to_owned);
        Some(Job {
            name: name.unwrap_or_else(|| escape::raw(file.as_bytes())),
            start,
            end,
            failed: exit::failed(summary.and_then(|summary| summary.status)),
            steps,
            set,
            recorded: Some((start, end)),
            ..Job::default()
        })
    }

    fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The name of this job without an added number. Other attempts of the job have the same name, and so have jobs of
    /// a matrix (one job with several sets of values) whose names do not show their values.
    fn shared_name(&self) -> &str {
        self.unnumbered.as_deref().unwrap_or(&self.name)
    }

    /// Remarks on the job for the text output, in parentheses: that it failed, was not recorded, or waited for a
    /// runner. Empty if there are none.
    fn notes(&self) -> String {
        let mut notes = Vec::new();
        if self.failed {
            notes.push("failed".to_owned());
        }
        if self.recorded.is_none() {
            notes.push("not recorded".to_owned());
        }
        if self.queued > 0 {
            notes.push(format!("waited {} for a runner", units::time(self.queued)));
        }
        if notes.is_empty() {
            String::new()
        } else {
            format!(" ({})", notes.join(", "))
        }
    }
}

/// A graph of CI jobs: for the name of each job, the names of the jobs that it needs.
pub type Graph = BTreeMap<String, Vec<String>>;

/// Reads a graph of CI jobs from JSON: `{"jobs": [{"name": "test", "needs": ["build"]}]}`.
///
/// # Errors
/// A text that says what is wrong with the JSON.
pub fn graph(text: &str) -> Result<Graph, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let jobs = value
        .get("jobs")
        .and_then(Value::as_array)
        .ok_or("no array `jobs`")?;
    let job = |job: &Value| {
        let name = job
            .get("name")
            .and_then(Value::as_str)
            .ok_or("a job without `name`")?;
        let needs = job.get("needs").and_then(Value::as_array);
        let needs = needs.into_iter().flatten().filter_map(Value::as_str);
        let shown = |name: &str| escape::raw(name.as_bytes());
        Ok::<_, String>((shown(name), needs.map(shown).collect()))
    };
    let mut graph = Graph::new();
    for named in jobs.iter().map(job) {
        graph.extend([named?]);
    }
    Ok(graph)
}

/// A CI run as a pipeline: its jobs, and which of them waited for which.
#[derive(Debug)]
pub struct Pipeline {
    jobs: Vec<Job>,
    /// Whether a graph, of the user or of the CI system, tells which job needs which. Without a graph, the needs are
    /// only guessed from the times of the jobs.
    given: bool,
    /// Whether the times of all jobs of the pipeline come from the CI system, and so from a single clock.
    by_ci_clock: bool,
    /// The amount in ns by which a time of a job may be wrong: the largest of `CLOCKS`, `apart_at_least` and the
    /// values `set` and `apart` of the jobs. Only for times by the CI system's clock is this amount an upper limit:
    /// the clocks of the jobs' machines may differ by more.
    uncertain: u64,
    /// The least amount in ns by which the clocks of the jobs' machines differ, because a job began before the end of
    /// one that it needs; 0 if no job did.
    apart_at_least: u64,
    /// The start of the first job of the CI run's pipeline, in ns since 1970.
    start: u64,
    /// The length of the pipeline in ns, from the start of its first job to the end of its last one.
    length: u64,
    /// The warnings that the user's graph of CI jobs does not fit the jobs: names that only one of the two has, or a
    /// job that began before the end of a job that it needs.
    warnings: Vec<String>,
}

impl Pipeline {
    /// Makes a pipeline of at least one job. The user's `graph` of jobs takes precedence over the needs that the CI
    /// system reports.
    ///
    /// # Errors
    /// A text that names a cycle in the user's graph.
    pub fn new(
        jobs: Vec<Job>,
        graph: Option<&Graph>,
        ci_jobs: &[CiJob],
    ) -> Result<Pipeline, String> {
        let (mut jobs, needed) = ci_jobs::place(jobs, ci_jobs);
        jobs.sort_by(|a, b| (a.start, a.end, &a.name).cmp(&(b.start, b.end, &b.name)));
        number(&mut jobs);
        let needs = match (graph, &needed) {
            (Some(graph), _) => order::given(&jobs, graph)?,
            // The graph comes from the CI system. By the CI system's clock, a job never begins before the jobs that it
            // needs have ended. So no job needs a job that comes later in the list.
            (None, Some(graph)) => order::earlier(&jobs, graph),
            (None, None) => (0..jobs.len()).map(|at| guessed(&jobs, at)).collect(),
        };
        for (job, needs) in jobs.iter_mut().zip(needs) {
            job.needs = needs;
        }
        let mut warnings = Vec::new();
        let mut overlap = 0;
        if let Some(graph) = graph {
            warnings.extend(order::strangers(&jobs, graph));
            if let Some((by, words)) = order::follow(&mut jobs) {
                overlap = by;
                warnings.extend((by > CLOCKS).then_some(words));
            }
        }
        let set = jobs.iter().map(|job| job.set).max().unwrap_or(0);
        let apart = jobs.iter().map(|job| job.apart).max().unwrap_or(0);
        let start = jobs.iter().map(|job| job.start).min().unwrap_or(0);
        let end = jobs.iter().map(|job| job.end).max().unwrap_or(0);
        let mut pipeline = Pipeline {
            given: graph.is_some() || needed.is_some(),
            by_ci_clock: !jobs.is_empty() && jobs.iter().all(|job| job.apart > 0),
            uncertain: CLOCKS.max(set).max(apart).max(overlap),
            apart_at_least: overlap,
            start,
            length: end.saturating_sub(start),
            warnings,
            jobs,
        };
        pipeline.find_path();
        Ok(pipeline)
    }

    /// The index of the job for which the given job waited last: of all jobs that it needs, the one that ended last;
    /// `None` if it needs no job.
    fn before(&self, job: &Job) -> Option<usize> {
        let needs = job.needs.iter().copied();
        needs.max_by_key(|need| (self.jobs.get(*need).map(|job| job.end), *need))
    }

    /// The time in ns from the end of the last job that the given job waited for to the given job's own start. If it
    /// waited for no job, the time is counted from the pipeline's start.
    fn wait(&self, job: &Job) -> u64 {
        let last = self.before(job).and_then(|at| self.jobs.get(at));
        job.start
            .saturating_sub(last.map_or(self.start, |job| job.end))
    }

    /// The names of the jobs of the pipeline that the given job waited for.
    fn needs<'a>(&'a self, job: &'a Job) -> impl Iterator<Item = &'a str> {
        let needs = job.needs.iter();
        needs.filter_map(|need| Some(self.jobs.get(*need)?.name.as_str()))
    }

    /// The length in ns that the pipeline would have with up to two changes: the job with the index `alone` needs no
    /// other job, and the job with the index `gone` takes no time. Each job keeps its own wait, also the job `alone`.
    fn without(&self, alone: Option<usize>, gone: Option<usize>) -> u64 {
        let mut ends: Vec<u64> = Vec::with_capacity(self.jobs.len());
        for (at, job) in self.jobs.iter().enumerate() {
            let needs = job.needs.iter().filter_map(|need| ends.get(*need));
            let last = needs.max().filter(|_| alone != Some(at));
            let start = last.copied().unwrap_or(0);
            let length = if gone == Some(at) { 0 } else { job.length() };
            ends.push(start.saturating_add(self.wait(job)).saturating_add(length));
        }
        ends.into_iter().max().unwrap_or(0)
    }

    /// Finds the chain of jobs that set the pipeline's time, backwards from the job that ended last. For each job of
    /// the chain, stores how much time changes to this job would save.
    fn find_path(&mut self) {
        let all = self.without(None, None);
        let jobs = self.jobs.iter().enumerate();
        let last = jobs.max_by_key(|(at, job)| (job.end, *at));
        let mut next = last.map(|(at, _)| at);
        while let Some(at) = next {
            let saved = Saving {
                alone: all.saturating_sub(self.without(Some(at), None)),
                gone: all.saturating_sub(self.without(None, Some(at))),
            };
            if let Some(job) = self.jobs.get_mut(at) {
                job.saved = Some(saved);
            }
            next = self.jobs.get(at).and_then(|job| self.before(job));
        }
    }

    /// The chain of jobs that set the pipeline's time, in the order of time.
    fn path(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.saved.is_some())
    }

    /// A line of text with the number of jobs, the length of the pipeline, and the clocks by which this length is
    /// measured.
    fn sum(&self) -> String {
        let jobs = units::plural(self.jobs.len() as u64, "job", "jobs");
        let doubt = units::time(self.uncertain);
        let clocks = if self.by_ci_clock {
            format!("the CI system's clock (±{doubt})")
        } else if self.apart_at_least > CLOCKS {
            let least = units::time(self.apart_at_least);
            format!("the clocks of their machines, which differ by at least {least}")
        } else {
            format!("the clocks of their machines (±{doubt} if network time keeps them)")
        };
        format!("{jobs} in {}, by {clocks}", units::time(self.length))
    }

    /// A line of text about how it is known which job waited for which, and for how long.
    fn basis(&self) -> &'static str {
        match (self.given, self.by_ci_clock) {
            (true, true) => "what waited for what: the job graph",
            (true, false) => {
                "what waited for what: the job graph; how long: not proven, because a wait has the \
                 difference of two clocks in it"
            }
            (false, true) => {
                "the order: the CI system's clock; what waited for what: guessed from it; \
                 --graph FILE tells it"
            }
            (false, false) => {
                "the order and what waited for what: not proven, guessed from these clocks; \
                 --graph FILE and --jobs FILE tell them"
            }
        }
    }

    /// The pipeline of CI jobs as text for a terminal.
    pub fn page(&self) -> Page {
        let mut out = Page::new();
        out.spans([self.sum()]);
        out.spans([self.basis()]);
        for text in &self.warnings {
            out.spans([format!("! {text}")]);
        }
        out.blank();
        out.spans([format!(
            "{:>10} {:>10} {:>6}  the path that set the time",
            "wait", "job", "of all"
        )]);
        for job in self.path() {
            let share = units::share(job.length(), self.length);
            out.spans([format!(
                "{:>10} {:>10} {share:>6}  {}{}",
                units::time(self.wait(job)),
                units::time(job.length()),
                job.name,
                job.notes(),
            )]);
            for step in job.steps.iter().take(SHOWN_STEPS) {
                out.spans([format!(
                    "{:>10} {:>10} {:>6}    {} {}",
                    "",
                    units::time(step.ns),
                    "",
                    step.kind,
                    step.name.short()
                )]);
            }
        }
        let others = self.jobs.len() - self.path().count();
        if others > 0 {
            out.blank();
            out.spans([format!(
                "{} beside the path",
                units::plural(others as u64, "job", "jobs")
            )]);
        }
        let gains = self.gains();
        if !gains.is_empty() {
            out.blank();
            out.spans(["saves"]);
        }
        for gain in gains {
            out.spans([format!(
                "{:>10}  if {}",
                units::time(gain.saved),
                gain.change
            )]);
        }
        out
    }

    /// The changes to single jobs that would shorten the pipeline most, the largest saving first. Savings that are not
    /// larger than the uncertainty of the times are left out.
    fn gains(&self) -> Vec<Gain> {
        let mut gains: Vec<Gain> = Vec::new();
        for job in &self.jobs {
            let (name, Some(saved)) = (&job.name, job.saved) else {
                continue;
            };
            if !job.needs.is_empty() {
                gains.push(Gain {
                    saved: saved.alone,
                    change: format!("{name} waits for no other job"),
                });
            }
            gains.push(Gain {
                saved: saved.gone,
                change: format!("{name} takes no time: the most that speeding it up gains"),
            });
        }
        gains.retain(|gain| gain.saved > self.uncertain);
        gains.sort_by(|a, b| (b.saved, &a.change).cmp(&(a.saved, &b.change)));
        gains.truncate(GAINS);
        gains
    }

    /// The pipeline of CI jobs as JSON. The start and the end of a job are in ns from the pipeline's start.
    pub fn json(&self) -> Value {
        let jobs = self.jobs.iter().map(|job| {
            let steps = job.steps.iter().take(10);
            let steps =
                steps.map(|step| json!({"kind": step.kind, "name": step.name, "path_ns": step.ns}));
            json!({
                "name": job.name,
                "start_ns": job.start.saturating_sub(self.start),
                "end_ns": job.end.saturating_sub(self.start),
                "wait_ns": self.wait(job),
                "queued_ns": job.queued,
                "recorded": job.recorded.is_some(),
                "failed": job.failed,
                "needs": self.needs(job).collect::<Vec<_>>(),
                "on_path": job.saved.is_some(),
                "saved_without_waiting_ns": job.saved.map(|saved| saved.alone),
                "saved_without_it_ns": job.saved.map(|saved| saved.gone),
                "steps": steps.collect::<Vec<_>>(),
            })
        });
        json!({
            "schema": "tr.pipeline/1",
            "start_unix_ns": self.start,
            "duration_ns": self.length,
            "clock_uncertainty_ns": self.by_ci_clock.then_some(self.uncertain),
            "clock_difference_at_least_ns": self.apart_at_least,
            "clock": if self.by_ci_clock { "ci" } else { "machines" },
            "warnings": self.warnings,
            "graph": if self.given { "given" } else { "times" },
            "path": self.path().map(|job| &job.name).collect::<Vec<_>>(),
            "jobs": jobs.collect::<Vec<_>>(),
        })
    }
}

/// Adds a number to the name of each CI job, such as ` #2`, if an earlier job has this name. Such jobs are attempts of
/// one job, or jobs of a matrix, which are one job with several sets of values.
fn number(jobs: &mut [Job]) {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for job in jobs {
        let count = seen.entry(job.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            let numbered = format!("{} #{count}", job.name);
            job.unnumbered = Some(std::mem::replace(&mut job.name, numbered));
        }
    }
}

/// The indices of the jobs for which the job with the index `at` may have waited, guessed from the times: all earlier
/// jobs in the list that ended at most `CLOCKS` ns after this job began.
fn guessed(jobs: &[Job], at: usize) -> Vec<usize> {
    let Some(job) = jobs.get(at) else {
        return Vec::new();
    };
    let before = jobs.iter().take(at).enumerate();
    let ended = before.filter(|(_, other)| other.end <= job.start.saturating_add(CLOCKS));
    ended.map(|(at, _)| at).collect()
}

#[cfg(test)]
#[path = "tests/pipeline.rs"]
mod tests;
