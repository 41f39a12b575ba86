//! Writes `tr summary`: a dozen lines for the page of a CI job.

mod chart;
mod ci;
mod json;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::Analysis;

use tr_advice::{advise, Advice};
use tr_failure::{Failure, Failures};
use tr_insight::cpus::shares::CpuShares;
use tr_insight::path;
use tr_insight::processes::{exit, who};
use tr_insight::recordings::imports::TestCount;
use tr_insight::recordings::{untraced, warnings};
use tr_insight::resources::servers;
use tr_insight::resources::size::RunnerSize;
use tr_insight::steps::{Step, StepIx, Steps};
use tr_insight::verdicts::StepVerdicts;
use tr_insight::views::view::View;
use tr_insight::Recording;
use tr_programs::steps::StepKind;
use tr_text::called::TR;
use tr_text::page::Page;
use tr_text::phrase::Phrase;
use tr_text::style::{Paint, Style};
use tr_text::words::RUN_QUEUE_WAIT;
use tr_text::{escape, units};

use crate::size;
use chart::Chart;

/// The largest number of entries in each list of a summary: changes, steps, parts of the critical path, warnings.
const MOST_ENTRIES: usize = 3;
/// The greatest width in columns of a name in a summary. Names can be long command lines.
const NAME: usize = 60;

/// The URLs of the pages to which a summary links: the HTML report and the recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links<'a> {
    pub page: Option<&'a str>,
    pub artifact: Option<&'a str>,
}

/// The facts about a job that `tr summary` prints. Their texts are not escaped.
#[derive(Default)]
pub struct Summary {
    command: Phrase,
    outcome: String,
    facts: Vec<String>,
    warnings: Vec<String>,
    verdict: Option<String>,
    /// The one word for who is responsible for the job's time, such as the code or the machine; `None` without a
    /// verdict.
    blame: Option<&'static str>,
    advice: Vec<Advice>,
    /// The text of the forecast for the case that all changes in `advice` are made together; `None` if fewer than two
    /// of them were simulated.
    combined: Option<String>,
    /// The advice about the machine, such as about time that other tasks took from the build.
    machine: Vec<Advice>,
    failures: Failures,
    /// The files of the failed tests in `failures`, as far as they are known.
    files: BTreeMap<StepIx, String>,
    /// The tests that passed but were delayed more than the other tests of their suite, for example by waits for a CPU.
    slow: Vec<SlowTest>,
    path: Option<Path>,
    steps: Vec<TimedPart>,
    /// The number of the job's tests and the number of failed ones. Tests are included that only a test runner's result
    /// file has and for which it is not known when they ran.
    tests: TestCount,
    /// The size of runner (CPUs, memory, disk) that the job needs, if it is known.
    size: Option<RunnerSize>,
    /// The size of runner that the job needs, in words.
    size_words: Vec<String>,
    chart: Option<Chart>,
    /// The time limit of the CI job in nanoseconds, with which the summary compares the recorded time; `None` if none
    /// is given.
    limit: Option<u64>,
}

/// A test that passed but was delayed.
struct SlowTest {
    name: Phrase,
    /// The path of the file that the test is in, if it is known.
    file: Option<String>,
    /// The words for what delayed the test.
    held: String,
}

struct Path {
    title: &'static str,
    /// The length in nanoseconds of the critical path, of which the shares in percent are computed.
    whole: u64,
    parts: Vec<TimedPart>,
}

impl Path {
    fn words(&self) -> Vec<String> {
        let words = self.parts.iter().map(|part| {
            let share = units::share(part.ns, self.whole);
            format!("{} {} ({share})", part.name.short(), units::time(part.ns))
        });
        words.collect()
    }
}

/// The name and the time of a part of the critical path or of a step, as a summary lists it.
struct TimedPart {
    name: Phrase,
    ns: u64,
    failed: bool,
}

impl TimedPart {
    fn words(&self) -> String {
        let failed = if self.failed { ", failed" } else { "" };
        format!("{} {}{failed}", self.name.short(), units::time(self.ns))
    }
}

impl Summary {
    /// Makes the summary of a recording. The analysis must have its timeline
    /// ([`Options::timeline`](tr_analyze::Options::timeline)).
    pub fn new(view: &View<'_>) -> Summary {
        let analysis = view.analysis;
        let command = Phrase::name(&who::headline(&analysis.meta), 2 * NAME);
        if let Some(reason) = untraced::reason(analysis) {
            return Summary {
                command,
                outcome: crate::untraced::facts(analysis).join(" · "),
                warnings: vec![format!("not traced: {reason}")],
                ..Summary::default()
            };
        }
        let path = path::path_of(view).ok();
        let advised = path.as_ref().map(|path| advise(view, path, None));
        let advised = advised.unwrap_or_default();
        let advice: Vec<Advice> = advised.to_change().take(MOST_ENTRIES).cloned().collect();
        let combined = advised.combined(advice.len());
        let combined = combined.map(|combined| combined.text(advice.len()));
        let machine = advised.machines().cloned().collect();
        let size = RunnerSize::new(view, advised.cpus);
        let all = StepVerdicts::new(view.recording);
        let failures = Failures::new(view.recording, view.chosen, Some(&all));
        let fails = |step: &Step| failures.counts(step);
        let mut warnings = warnings::warnings(view.recording);
        if warnings.len() > MOST_ENTRIES {
            let more = warnings.len() - MOST_ENTRIES;
            warnings.truncate(MOST_ENTRIES);
            warnings.push(format!("and {more} more: {TR} analyze --report quality"));
        }
        Summary {
            command,
            outcome: outcome(analysis),
            facts: facts(analysis),
            warnings,
            blame: advised.verdict.as_ref().map(|verdict| verdict.blame.name()),
            verdict: advised.verdict.map(|verdict| verdict.text()),
            advice,
            combined,
            machine,
            files: files(&failures, &all.steps),
            slow: slow(&all),
            path: path.as_ref().map(|path| parts(analysis, path)),
            steps: longest(analysis.wall(), all.steps.list(), fails),
            tests: tests(&all.steps, view.recording, fails),
            failures,
            size_words: size.map_or_else(Vec::new, |size| size::words(view, &size)),
            size,
            chart: None,
            limit: None,
        }
    }

    /// Adds the pictures, in mermaid, that the summary's Markdown shows.
    pub fn with_chart(mut self, view: &View<'_>) -> Summary {
        let steps = Steps::new(view.analysis, &view.recording.imports.spans);
        let path = path::path_of(view).ok();
        let title = self.command.short().to_owned();
        let fails = |step: &Step| self.failures.counts(step);
        let chart = Chart::new(view.analysis, title, &steps, path.as_ref(), fails);
        self.chart = Some(chart);
        self
    }

    /// Sets the time limit of the CI job in nanoseconds, with which the summary compares the recorded time.
    pub fn within(mut self, limit: u64, analysis: &Analysis) -> Summary {
        self.limit = Some(limit);
        if !warnings::is_blank(analysis) {
            let share = units::share(analysis.wall(), limit);
            self.facts
                .push(format!("{share} of the limit of {}", units::time(limit)));
        }
        self
    }

    /// The job's summary by `tr summary` as text for a terminal or a log.
    pub fn page(&self, style: &Style, links: Links<'_>) -> Page {
        let mut out = Page::new();
        for warning in &self.warnings {
            out.wrapped(Paint::Bad, "! ", warning);
        }
        let room = style.width.saturating_sub(units::width(&self.outcome) + 2);
        let command = units::shorten(self.command.short(), room.max(NAME / 2));
        let head = format!("{command}: {}", self.outcome);
        out.wrapped(Paint::Bold, "", &head);
        out.items("", &self.facts);
        for failure in self.failed(|name| name.to_owned(), |text| text.to_owned()) {
            out.wrapped(Paint::Bad, "Failed: ", &failure);
        }
        for test in self.slow.iter().take(MOST_ENTRIES) {
            let slow = format!("{}: {}", units::shorten(test.name.short(), NAME), test.held);
            out.wrapped(Paint::Plain, "Slow: ", &slow);
        }
        if let Some(verdict) = &self.verdict {
            out.wrapped(Paint::Plain, "Verdict: ", verdict);
        }
        for (at, advice) in self.advice.iter().enumerate() {
            let lead = if at == 0 { "Change: " } else { "        " };
            out.wrapped(Paint::Plain, lead, &said(advice));
        }
        if let Some(combined) = &self.combined {
            out.wrapped(Paint::Plain, "        ", combined);
        }
        if let Some(path) = &self.path {
            out.items(format!("{}: ", path.title), path.words());
        }
        if !self.steps.is_empty() {
            out.items("Longest steps: ", self.longest());
        }
        let size = size::lead(self.size.as_ref());
        out.items(format!("{size}: "), &self.size_words);
        for (name, link) in links.named() {
            out.spans([format!("{name}: {link}")]);
        }
        out
    }

    fn longest(&self) -> Vec<String> {
        self.steps.iter().map(TimedPart::words).collect()
    }

    /// The summary as Markdown for the page of a forge (GitHub or GitLab). No text of the trace can mention a user,
    /// make a link or end an element there.
    pub fn markdown(&self, links: Links<'_>) -> String {
        let list = |all: &[String]| {
            let all = all.iter().map(|text| escape::markdown(text));
            all.collect::<Vec<_>>().join(" · ")
        };
        let mut out = String::new();
        let _ = writeln!(
            out,
            "### {}: {}\n",
            escape::code(&units::shorten(self.command.short(), NAME)),
            escape::markdown(&self.outcome)
        );
        out += &crate::warnings::markdown(&self.warnings);
        let failed = self.failed(escape::code, escape::markdown);
        for failure in &failed {
            let _ = writeln!(out, "- ❌ {failure}");
        }
        for test in self.slow.iter().take(MOST_ENTRIES) {
            let name = escape::code(&units::shorten(test.name.short(), NAME));
            let _ = writeln!(out, "- Slow: {name}: {}", escape::markdown(&test.held));
        }
        if !failed.is_empty() || !self.slow.is_empty() {
            out.push('\n');
        }
        if let Some(verdict) = &self.verdict {
            let _ = writeln!(out, "**{}**\n", escape::markdown(verdict));
        }
        let mut facts = list(&self.facts);
        for (name, link) in links.named() {
            let between = if facts.is_empty() { "" } else { " · " };
            let _ = write!(facts, "{between}[{name}](<{}>)", address(link));
        }
        if !facts.is_empty() {
            let _ = writeln!(out, "{facts}\n");
        }
        for advice in &self.advice {
            let _ = writeln!(out, "- {}", escape::markdown(&said(advice)));
        }
        if let Some(combined) = &self.combined {
            let _ = writeln!(out, "- {}", escape::markdown(&units::sentence(combined)));
        }
        if let Some(path) = &self.path {
            let _ = writeln!(out, "- {}: {}", path.title, list(&path.words()));
        }
        if !self.steps.is_empty() {
            let _ = writeln!(out, "- Longest steps: {}", list(&self.longest()));
        }
        if !self.size_words.is_empty() {
            let size = size::lead(self.size.as_ref());
            let _ = writeln!(out, "- {size}: {}", list(&self.size_words));
        }
        if let Some(chart) = &self.chart {
            let _ = write!(out, "\n{}", chart.markdown());
        }
        out
    }
}

impl Summary {
    /// Lines of text in the summary about the failures that matter. `name` and `text` are functions that escape names
    /// and other texts for the output.
    fn failed(&self, name: fn(&str) -> String, text: fn(&str) -> String) -> Vec<String> {
        let label = |failed: &Failure| name(&units::shorten(failed.name().short(), NAME));
        let reported = &self.failures.reported;
        let shown = reported.iter().take(MOST_ENTRIES);
        let lines = shown.map(|failed| {
            let at = failed.at().map(|at| format!(" at {}", text(at.short())));
            let at = at.unwrap_or_default();
            let mut words = vec![format!(
                "{} {}{at}",
                label(failed),
                text(failed.fact().short())
            )];
            let above = failed.above.iter();
            words.extend(above.map(|above| {
                format!(
                    "{}{} {}",
                    above.lead(),
                    label(above),
                    text(above.ended().short())
                )
            }));
            let held = failed
                .held_by()
                .into_iter()
                .map(|held| format!(": {}", text(held.short())));
            words.join(" → ") + &held.collect::<String>()
        });
        let mut lines: Vec<String> = lines.collect();
        if let Some(more @ 1..) = reported.len().checked_sub(MOST_ENTRIES) {
            let more = units::count(more as u64);
            lines.push(text(&format!(
                "and {more} more: {TR} analyze --report execs --failed"
            )));
        }
        lines
    }
}

impl<'a> Links<'a> {
    fn named(self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let all = [("Page", self.page), ("Recording", self.artifact)];
        all.into_iter()
            .filter_map(|(name, link)| Some((name, link?)))
    }
}

/// The URL of a link in the form that Markdown has for it, between `<` and `>`.
fn address(link: &str) -> String {
    let mut out = String::new();
    for c in link.chars() {
        if c == '<' || c == '>' || c == '\\' || c == ' ' || escape::is_hidden(c) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn said(advice: &Advice) -> String {
    let gain = advice.saves("at most");
    format!(
        "{}: {} (saves {gain})",
        advice.finding.short(),
        advice.action
    )
}

/// The words for how COMMAND ended and how long it took, for example `exit 2 after 8.1 s`.
fn outcome(analysis: &Analysis) -> String {
    let wall = exit::wall(analysis);
    match analysis.summary.as_ref().map(|summary| summary.status) {
        Some(Some(status)) => format!("{} after {wall}", exit::words(status)),
        Some(None) => wall,
        None if warnings::is_blank(analysis) => "no end, nothing is known".into(),
        None => format!("no end, {wall} recorded"),
    }
}

fn facts(analysis: &Analysis) -> Vec<String> {
    if warnings::is_blank(analysis) {
        return Vec::new();
    }
    let times = &analysis.totals.times;
    let mut facts = CpuShares::of(analysis).used(analysis).to_vec();
    if times.run_queue > 0 {
        facts.push(format!("{RUN_QUEUE_WAIT} {}", units::time(times.run_queue)));
    }
    let processes = analysis.totals.processes;
    facts.push(units::plural(processes, "process", "processes"));
    facts.extend(servers::words(analysis, None));
    facts
}

/// The part of the summary about the critical path: its length, and the programs that have most of its time.
fn parts(analysis: &Analysis, path: &CriticalPath) -> Path {
    let groups = path::groups(analysis);
    let shares = path::shares(analysis, &groups, path);
    let parts = shares.iter().take(MOST_ENTRIES).map(|share| TimedPart {
        name: Phrase::name(&share.name, NAME),
        ns: share.time,
        failed: false,
    });
    Path {
        title: path::title(analysis),
        whole: path.length(),
        parts: parts.collect(),
    }
}

fn tests(steps: &Steps, recording: &Recording, fails: impl Fn(&Step) -> bool) -> TestCount {
    let unplaced = recording.imports.unplaced();
    let tests = steps.tests().map(|(_, step)| fails(step));
    tests.fold(unplaced, TestCount::and)
}

/// The known files of the failed tests among the failures, by the step of each test.
fn files(failures: &Failures, steps: &Steps) -> BTreeMap<StepIx, String> {
    let failed = failures.reported.iter().filter_map(|failed| failed.step);
    failed
        .filter_map(|step| Some((step, steps.list().get(step)?.file.clone()?)))
        .collect()
}

/// The longest tests that passed although they were delayed more than the other tests of their suite.
fn slow(judged: &StepVerdicts<'_>) -> Vec<SlowTest> {
    let steps = &judged.steps;
    if steps.list().iter().all(|step| step.kind != StepKind::Test) {
        return Vec::new();
    }
    let verdicts = judged.verdicts();
    let passed = steps
        .list()
        .iter()
        .enumerate()
        .filter(|(_, step)| !step.failed());
    let mut slow: Vec<_> = passed
        .filter_map(|(at, step)| Some((Reverse(step.wall()), at, verdicts.reported(at)?)))
        .collect();
    slow.sort_unstable_by_key(|(wall, at, _)| (*wall, *at));
    let tests = slow.into_iter().filter_map(|(_, at, verdict)| {
        let step = steps.list().get(at)?;
        Some(SlowTest {
            name: step.name.clone(),
            file: step.file.clone(),
            held: verdict.text(),
        })
    });
    tests.collect()
}

/// The steps that the summary lists: the longest steps, and the failed ones among the others. A step that takes at
/// least four fifths of the wall time is replaced by the steps inside it, if these have at least half of its time. A
/// replaced step is listed all the same if it failed and no step inside it did. `fails` returns whether a step failed
/// in a way that matters.
fn longest(wall: u64, list: &[Step], fails: impl Fn(&Step) -> bool) -> Vec<TimedPart> {
    let mut inside: HashMap<Option<usize>, Vec<(usize, &Step)>> = HashMap::new();
    for (at, step) in list
        .iter()
        .enumerate()
        .filter(|(_, step)| !step.is_moment())
    {
        inside.entry(step.parent).or_default().push((at, step));
    }
    let by_length = |found: &mut Vec<(usize, &Step)>| {
        found.sort_unstable_by_key(|(at, step)| (Reverse(step.wall()), *at));
    };
    let mut found = inside.remove(&None).unwrap_or_default();
    let mut failed = Vec::new();
    loop {
        by_length(&mut found);
        let others = found.split_off(MOST_ENTRIES.min(found.len()));
        failed.extend(others.into_iter().filter(|(_, step)| fails(step)));
        let Some((at, whole)) = found.first().copied() else {
            break;
        };
        let parts = inside.remove(&Some(at)).unwrap_or_default();
        let walls = parts.iter().map(|(_, step)| step.wall());
        let explained = walls.fold(0, u64::saturating_add);
        let fails_itself = fails(whole) && !parts.iter().any(|(_, step)| fails(step));
        let is_most = whole.wall() >= wall / 5 * 4 && explained >= whole.wall().div_ceil(2);
        if parts.is_empty() || !is_most {
            break;
        }
        let whole = found.remove(0);
        failed.extend(fails_itself.then_some(whole));
        found.extend(parts);
    }
    by_length(&mut failed);
    let shown = found
        .into_iter()
        .chain(failed.into_iter().take(MOST_ENTRIES));
    let shown = shown.map(|(_, step)| TimedPart {
        name: Phrase::new(
            step.name.whole().to_owned(),
            units::shorten(step.name.short(), NAME),
        ),
        ns: step.wall(),
        failed: fails(step),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use tr_format::event::Ktime;

    use super::*;

    fn step(name: &str, parent: Option<usize>, ms: u64, failed: bool) -> Step {
        Step {
            name: name.into(),
            brief: None,
            stable_name: None,
            file: None,
            kind: StepKind::Test,
            parent,
            depth: 0,
            from: Ktime(0),
            to: Ktime(ms * 1_000_000),
            started_before: false,
            ended: true,
            process: None,
            thread: None,
            has_work: true,
            place_error: Some(0),
            doubt: None,
            status: Some(u32::from(failed) << 8),
            result: None,
            is_worker: false,
            integration: None,
        }
    }

    fn shown(list: &[Step]) -> Vec<String> {
        longest(10_000_000_000, list, Step::failed)
            .iter()
            .map(TimedPart::words)
            .collect()
    }

    #[test]
    fn a_step_of_nearly_all_time_is_what_is_in_it() {
        let mut list = vec![
            step("make", None, 9500, false),
            step("a.o", Some(0), 4000, false),
            step("b.o", Some(0), 3000, false),
            step("lint", None, 400, false),
        ];
        assert_eq!(shown(&list), ["a.o 4.00 s", "b.o 3.00 s", "lint 400 ms"]);
        // `make` stays in the list, because the only step inside it explains little of its wall time.
        list.truncate(1);
        list.push(step("test", Some(0), 1, false));
        assert_eq!(shown(&list), ["make 9.50 s"]);
    }

    #[test]
    fn no_failure_is_left_out() {
        let list = [
            step("make", None, 9500, true),
            step("a", Some(0), 9000, false),
            step("lint", None, 1, true),
        ];
        let all = ["a 9.00 s", "lint 1.0 ms, failed", "make 9.50 s, failed"];
        assert_eq!(shown(&list), all);
        let list = [
            step("make", None, 9500, true),
            step("a", Some(0), 4000, false),
            step("b", Some(0), 3000, false),
            step("c", Some(0), 2000, false),
            step("d", Some(0), 20, false),
            step("e", Some(0), 10, true),
        ];
        let all = ["a 4.00 s", "b 3.00 s", "c 2.00 s", "e 10 ms, failed"];
        assert_eq!(shown(&list), all);
    }
}
