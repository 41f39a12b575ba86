//! Recordings of several jobs of one CI run as one picture: which job, and which step in it, the
//! pipeline waited for.
//!
//! The jobs ran on other machines, with other clocks. A job's place is its clock's time of the day; how
//! far the clocks can be trusted is told beside the times. Between two jobs lies what no recording has:
//! the wait for a runner, the checkout.

mod html;
mod order;
mod told;

use std::collections::BTreeMap;

use serde_json::{json, Value};
use tr_analyze::model::Analysis;
use tr_analyze::sort::Rows;

use crate::ci::Ci;
use crate::dataset::{self, StepOnPath};
use crate::{escape, units};
pub use told::{of as told_of, Told};

/// The difference of clocks that network time leaves between two machines, in ns.
const CLOCKS: u64 = 100_000_000;
/// The steps of a job that are shown.
const SHOWN: usize = 3;
/// The most jobs of a pipeline.
pub const MOST: usize = 1_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its name: the CI system's, or the file's.
    pub name: String,
    /// Start and end of the recording, in ns since 1970.
    pub start: u64,
    /// See `start`.
    pub end: u64,
    /// It ended badly.
    pub failed: bool,
    /// The steps on its own critical path, the longest first.
    pub steps: Vec<StepOnPath>,
    /// By how much its clock was set during the recording, in ns.
    pub set: u64,
    /// Start and end of its recording, as `start`; `None`: only the CI system tells of it.
    pub recorded: Option<(u64, u64)>,
    /// Its wait for a runner, in ns, if the CI system tells it.
    pub queued: u64,
    /// By how much the CI system's times and the recording's may be apart, in ns; 0: it tells none.
    pub apart: u64,
}

impl Job {
    /// Of a recording with a timeline; `None` if it has no time of the day.
    pub fn of(analysis: &Analysis, file: &str) -> Option<Job> {
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
        // A step of the job's own length says nothing more: make.
        let mut steps = dataset::steps_on_path(analysis);
        if steps.iter().any(|step| step.ns < length / 10 * 9) {
            steps.retain(|step| step.ns < length / 10 * 9);
        }
        let name = Ci::new(meta).get("job").map(str::to_owned);
        Some(Job {
            name: name.unwrap_or_else(|| escape::text(file.as_bytes())),
            start,
            end,
            failed: summary
                .and_then(|it| it.status)
                .is_some_and(|status| status != 0),
            steps,
            set,
            recorded: Some((start, end)),
            ..Job::default()
        })
    }

    fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// What else is to be said of it, after its name.
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
        match notes.is_empty() {
            true => String::new(),
            false => format!(" ({})", notes.join(", ")),
        }
    }
}

/// The jobs that a job needs, by their names.
pub type Graph = BTreeMap<String, Vec<String>>;

/// A graph as JSON: `{"jobs": [{"name": "test", "needs": ["build"]}]}`.
///
/// # Errors
/// What is wrong, for the user.
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
        let shown = |name: &str| escape::text(name.as_bytes());
        Ok::<_, String>((shown(name), needs.map(shown).collect()))
    };
    let mut graph = Graph::new();
    for named in jobs.iter().map(job) {
        graph.extend([named?]);
    }
    Ok(graph)
}

/// All jobs, and who waited for whom.
#[derive(Debug)]
pub struct Pipeline {
    jobs: Vec<Job>,
    /// Indices of the jobs that each waited for, all of them smaller than its own.
    needs: Vec<Vec<usize>>,
    /// The graph was given; else the times are all that is known.
    given: bool,
    /// The jobs lie where the CI system's clock has them.
    told: bool,
    /// By how much a clock may be wrong, in ns.
    uncertain: u64,
    /// From the first job's start to the last one's end, in ns.
    length: u64,
    /// Where the graph and the recordings do not fit together, in words.
    warnings: Vec<String>,
}

/// A job on the path that set the pipeline's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    job: usize,
    /// The wait before it, in ns.
    wait: u64,
    /// What the pipeline would take less if the job did not wait for others, and if it took no time.
    alone: u64,
    gone: u64,
}

impl Pipeline {
    /// Of at least one job. The CI system's word on needs stands behind a graph.
    ///
    /// # Errors
    /// The graph has a cycle: in words.
    pub fn new(jobs: Vec<Job>, graph: Option<&Graph>, told: &[Told]) -> Result<Pipeline, String> {
        let (mut jobs, needed) = told::place(jobs, told);
        jobs.order_by(|a, b| (a.start, a.end, &a.name).cmp(&(b.start, b.end, &b.name)));
        number(&mut jobs);
        let mut warnings = Vec::new();
        let mut overlap = 0;
        let needs = match (graph, &needed) {
            (Some(graph), _) => {
                warnings.extend(order::strangers(&jobs, graph));
                let needs = order::given(&jobs, graph)?;
                let followed = order::follow(jobs, needs);
                jobs = followed.jobs;
                if let Some((by, words)) = followed.apart {
                    overlap = by;
                    warnings.extend((by > CLOCKS).then_some(words));
                }
                followed.needs
            }
            // The CI system's clock has no job before one that it needs.
            (None, Some(graph)) => order::earlier(&jobs, graph),
            (None, None) => (0..jobs.len()).map(|at| guessed(&jobs, at)).collect(),
        };
        let set = jobs.iter().map(|job| job.set).max().unwrap_or(0);
        let apart = jobs.iter().map(|job| job.apart).max().unwrap_or(0);
        let uncertain = CLOCKS.max(set).max(apart).max(overlap);
        let told = !jobs.is_empty() && jobs.iter().all(|job| job.apart > 0);
        let start = jobs.iter().map(|job| job.start).min().unwrap_or(0);
        let end = jobs.iter().map(|job| job.end).max().unwrap_or(0);
        Ok(Pipeline {
            jobs,
            needs,
            given: graph.is_some() || needed.is_some(),
            told,
            uncertain,
            length: end.saturating_sub(start),
            warnings,
        })
    }

    fn start(&self) -> u64 {
        self.jobs.iter().map(|job| job.start).min().unwrap_or(0)
    }

    /// The job that a job waited for last.
    fn before(&self, at: usize) -> Option<usize> {
        let needs = self.needs.get(at)?.iter().copied();
        needs.max_by_key(|need| (self.jobs.get(*need).map(|job| job.end), *need))
    }

    /// The wait of a job from the end of the last one that it needs, or from the pipeline's start.
    fn wait(&self, at: usize) -> u64 {
        let since = self
            .before(at)
            .and_then(|it| self.jobs.get(it))
            .map_or(self.start(), |job| job.end);
        self.jobs
            .get(at)
            .map_or(0, |job| job.start.saturating_sub(since))
    }

    /// The pipeline's length if one job needs nobody, and if one takes no time.
    fn without(&self, alone: Option<usize>, gone: Option<usize>) -> u64 {
        let mut ends: Vec<u64> = Vec::with_capacity(self.jobs.len());
        for (at, job) in self.jobs.iter().enumerate() {
            let needs = self.needs.get(at).into_iter().flatten();
            let needs = needs.filter_map(|need| ends.get(*need));
            let start = needs
                .max()
                .filter(|_| alone != Some(at))
                .copied()
                .unwrap_or(0);
            let length = if gone == Some(at) { 0 } else { job.length() };
            ends.push(start.saturating_add(self.wait(at)).saturating_add(length));
        }
        ends.into_iter().max().unwrap_or(0)
    }

    /// The jobs that set the pipeline's time, in their order.
    fn path(&self) -> Vec<Link> {
        let all = self.without(None, None);
        let mut path = Vec::new();
        let mut next =
            (0..self.jobs.len()).max_by_key(|at| (self.jobs.get(*at).map(|job| job.end), *at));
        while let Some(job) = next {
            path.push(Link {
                job,
                wait: self.wait(job),
                alone: all.saturating_sub(self.without(Some(job), None)),
                gone: all.saturating_sub(self.without(None, Some(job))),
            });
            next = self.before(job);
        }
        path.reverse();
        path
    }

    /// How many jobs, how long, and how exact that is.
    fn sum(&self) -> String {
        format!(
            "{} in {}, by {} (±{})",
            units::plural(self.jobs.len() as u64, "job", "jobs"),
            units::time(self.length),
            match self.told {
                true => "the CI system's clock",
                false => "the clocks of their machines",
            },
            units::time(self.uncertain),
        )
    }

    /// Where the needs come from.
    fn basis(&self) -> &'static str {
        match self.given {
            true => "what waited for what: the job graph",
            false => "what waited for what: guessed from the times; --graph FILE tells it",
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let path = self.path();
        let mut out = format!("{}\n{}\n", self.sum(), self.basis());
        out.extend(self.warnings.iter().map(|text| format!("! {text}\n")));
        out.push('\n');
        out += &format!(
            "{:>10} {:>10} {:>6}  the path that set the time\n",
            "wait", "job", "of all"
        );
        for link in &path {
            let Some(job) = self.jobs.get(link.job) else {
                continue;
            };
            let share = units::share(job.length(), self.length);
            out += &format!(
                "{:>10} {:>10} {share:>6}  {}{}\n",
                units::time(link.wait),
                units::time(job.length()),
                job.name,
                job.notes(),
            );
            for step in job.steps.iter().take(SHOWN) {
                out += &format!(
                    "{:>10} {:>10} {:>6}    {} {}\n",
                    "",
                    units::time(step.ns),
                    "",
                    step.kind,
                    step.name
                );
            }
        }
        let others = self.jobs.len().saturating_sub(path.len());
        if others > 0 {
            out += &format!(
                "\n{} beside the path\n",
                units::plural(others as u64, "job", "jobs")
            );
        }
        out + &self.savings(&path)
    }

    /// What to change first: what it saves in ns, and the change.
    fn gains(&self, path: &[Link]) -> Vec<(u64, String)> {
        let mut rows: Vec<(u64, String)> = Vec::new();
        for link in path {
            let Some(job) = self.jobs.get(link.job) else {
                continue;
            };
            if self.before(link.job).is_some() {
                rows.push((link.alone, format!("{} waits for no other job", job.name)));
            }
            rows.push((
                link.gone,
                format!(
                    "{} takes no time: the most that speeding it up gains",
                    job.name
                ),
            ));
        }
        rows.retain(|(saved, _)| *saved > self.uncertain);
        rows.order_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        rows.truncate(5);
        rows
    }

    fn savings(&self, path: &[Link]) -> String {
        let mut out = String::new();
        for (saved, what) in &self.gains(path) {
            out += if out.is_empty() { "\nsaves\n" } else { "" };
            out += &format!("{:>10}  if {what}\n", units::time(*saved));
        }
        out
    }

    /// The document in JSON; times in ns from the pipeline's start.
    pub fn json(&self) -> Value {
        let (start, path) = (self.start(), self.path());
        let name = |at: &usize| self.jobs.get(*at).map(|job| job.name.clone());
        let jobs = self.jobs.iter().enumerate().map(|(at, job)| {
            let needs: Vec<_> = self
                .needs
                .get(at)
                .into_iter()
                .flatten()
                .filter_map(name)
                .collect();
            let link = path.iter().find(|link| link.job == at);
            let steps = job.steps.iter().take(10);
            let steps =
                steps.map(|step| json!({"kind": step.kind, "name": step.name, "path_ns": step.ns}));
            json!({
                "name": job.name,
                "start_ns": job.start.saturating_sub(start),
                "end_ns": job.end.saturating_sub(start),
                "wait_ns": self.wait(at),
                "queued_ns": job.queued,
                "recorded": job.recorded.is_some(),
                "failed": job.failed,
                "needs": needs,
                "on_path": link.is_some(),
                "saved_without_waiting_ns": link.map(|link| link.alone),
                "saved_without_it_ns": link.map(|link| link.gone),
                "steps": steps.collect::<Vec<_>>(),
            })
        });
        json!({
            "schema": "tr.pipeline/1",
            "start_unix_ns": start,
            "duration_ns": self.length,
            "clock_uncertainty_ns": self.uncertain,
            "clock": if self.told { "ci" } else { "machines" },
            "warnings": self.warnings,
            "graph": if self.given { "given" } else { "times" },
            "path": path.iter().filter_map(|link| name(&link.job)).collect::<Vec<_>>(),
            "jobs": jobs.collect::<Vec<_>>(),
        })
    }
}

/// Jobs of one name, attempts or legs of a matrix, get numbers.
fn number(jobs: &mut [Job]) {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for job in jobs {
        let count = seen.entry(job.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            job.name = format!("{} #{count}", job.name);
        }
    }
}

/// By the times: a job can have waited for every one that had ended when it began.
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
