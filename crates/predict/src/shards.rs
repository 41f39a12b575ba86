//! Plans which test runs on which of several machines (shards), so that each machine has equally much to do.

mod cost;
mod ids;
mod lists;
mod runner;
mod spread;
mod windows;

use std::collections::{BTreeMap, HashMap};

use serde_json::{json, Value};
use tr_analyze::{critical_path, share};
use tr_format::event::Ktime;
use tr_insight::steps::{StepIx, Steps};
use tr_insight::Recording;
use tr_placing::junit::cases::CaseSteps;
use tr_placing::junit::{Report, Suite};
use tr_programs::steps::StepKind;
use tr_text::page::Page;
use tr_text::style::Paint;
use tr_text::units;

pub use cost::{Cost, Costs, Source};
pub use lists::{Format, Unlisted};

pub(super) use spread::by_cost;
use windows::{Place, Work};

/// A recorded or reported test, which is the smallest unit that a plan assigns to one of several machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The name with which a test runner can run this test alone, as far as it is known: a node id of pytest, or the
    /// name of a test in a Go package.
    pub id: String,
    /// The class that the report of the runner gives for the test: a package, a module or a file.
    pub class: String,
    pub file: Option<String>,
    pub cost: Cost,
}

/// A file of tests and the cost of running it, which includes loading the file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    name: String,
    cost: Cost,
}

/// The tests of a recording, with their costs, that are to be divided among machines.
#[derive(Clone, Debug, Default)]
pub struct Tests {
    pub list: Vec<Test>,
    /// The costs of whole test files, as far as the runner's report shows them.
    files: BTreeMap<String, Cost>,
    /// The cost in ns that each machine has in addition to its tests: the start and the end of the runner. `None` if it
    /// is not known.
    start: Option<u64>,
}

/// A plan that says which tests run on which of several machines.
#[derive(Clone, Debug)]
pub struct Plan {
    pub tests: Tests,
    pub format: Format,
    /// The names and the costs of the units that the plan divides among machines: tests, or files of tests.
    units: Vec<(String, Cost)>,
    /// For each unit of the plan (a test or a file of tests), the number of the machine on which the unit runs, counted
    /// from 0.
    parts: Vec<u64>,
    pub shards: u64,
}

/// The sums of the costs of the units (tests, or files of tests) that a plan assigns to one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub count: u64,
    pub cost: u64,
    /// The CPU time in ns of the machine's tests or files of tests, as far as their CPU time is known.
    pub on_cpu: u64,
}

impl Tests {
    /// The tests of the given JUnit reports; without reports, the tests that the recording has as build steps and that
    /// contain no other test. The result is empty for a recording without a critical path.
    pub fn new(recording: &Recording, reports: &[&Report]) -> Tests {
        let analysis = &recording.analysis;
        let Ok(path) = critical_path::of(analysis) else {
            return Tests::default();
        };
        let steps = Steps::new(analysis, &recording.imports.spans);
        let costs = Costs::new(recording, &path, &steps);
        let mut tests = if reports.is_empty() {
            of_steps(&costs)
        } else {
            of_reports(&costs, reports)
        };
        tests.fill();
        tests
    }

    /// Gives tests whose length is not known the median cost of the other tests, or 1 ns if there are none.
    fn fill(&mut self) {
        let known = self
            .list
            .iter()
            .filter(|test| test.cost.source != Source::Median);
        let mut known: Vec<u64> = known.map(|test| test.cost.ns).collect();
        known.sort_unstable();
        let median = known.get(known.len() / 2).copied().unwrap_or(1);
        for test in &mut self.list {
            if test.cost.source == Source::Median {
                test.cost.ns = median;
            }
        }
    }

    /// The number of tests whose cost is known from this source (the recording, a report or the median).
    pub fn count(&self, source: Source) -> u64 {
        let tests = self.list.iter();
        tests.filter(|test| test.cost.source == source).count() as u64
    }

    /// The files of tests with their costs: the cost of the whole file or the sum of its tests, whichever is larger.
    /// The error value is the number of tests whose file is not known.
    fn by_file(&self) -> Result<Vec<File>, usize> {
        let mut files: BTreeMap<&str, Cost> = BTreeMap::new();
        let mut nameless = 0;
        for test in &self.list {
            let Some(file) = &test.file else {
                nameless += 1;
                continue;
            };
            files
                .entry(file)
                .and_modify(|cost| *cost = cost.and(test.cost))
                .or_insert(test.cost);
        }
        if nameless > 0 {
            return Err(nameless);
        }
        let files = files.into_iter().map(|(name, tests)| {
            let whole = self.files.get(name).copied();
            let cost = match whole {
                Some(whole) if whole.ns > tests.ns => whole,
                _ => tests,
            };
            File {
                name: name.to_owned(),
                cost,
            }
        });
        Ok(files.collect())
    }
}

impl Cost {
    /// The cost of a test that is known only from a runner's report. `ns` is the estimated cost, and `length` is the
    /// reported length of the test.
    fn reported(ns: u64, length: u64) -> Cost {
        Cost {
            ns,
            on_cpu: None,
            wall: length,
            source: Source::Report,
        }
    }

    /// The cost of a test including `ns` of the runner's own time for it.
    fn with_runner(self, ns: u64) -> Cost {
        Cost {
            ns: self.ns.saturating_add(ns),
            ..self
        }
    }

    /// The cost of two tests, or files of tests, that run one after the other.
    fn and(self, other: Cost) -> Cost {
        Cost {
            ns: self.ns.saturating_add(other.ns),
            on_cpu: self
                .on_cpu
                .zip(other.on_cpu)
                .map(|(a, b)| a.saturating_add(b)),
            wall: self.wall.saturating_add(other.wall),
            source: self.source.max(other.source),
        }
    }
}

/// The tests of a report while they are collected. The costs of tests with the same id in the same class and file are
/// added, because they are several runs of one test.
#[derive(Default)]
struct Merged {
    list: Vec<Test>,
    places: HashMap<TestKey, usize>,
}

/// The file, the class and the id by which two tests in a report are recognized as the same test.
type TestKey = (Option<String>, String, String);

impl Merged {
    fn add(&mut self, test: Test) {
        let key = (test.file.clone(), test.class.clone(), test.id.clone());
        let place = self.places.get(&key);
        if let Some(before) = place.and_then(|place| self.list.get_mut(*place)) {
            before.cost = before.cost.and(test.cost);
        } else {
            self.places.insert(key, self.list.len());
            self.list.push(test);
        }
    }
}

/// The tests that the recording has as build steps, without those that contain another test.
fn of_steps(costs: &Costs<'_>) -> Tests {
    let steps = costs.steps;
    let around = steps.with_any_inside(|_, step| step.kind == StepKind::Test);
    let mut tests = Merged::default();
    for (at, step) in steps.list().iter().enumerate() {
        let is_one = step.kind == StepKind::Test && !step.is_moment();
        if !is_one || around.get(at) == Some(&true) {
            continue;
        }
        let recorded = costs.recorded(at);
        tests.add(Test {
            file: step.file.clone().filter(|file| ids::is_path(file)),
            id: step.name.whole().to_owned(),
            class: String::new(),
            cost: recorded.unwrap_or_else(|| costs.reported(step.wall(), Some(at), 1000)),
        });
    }
    Tests {
        list: tests.list,
        ..Tests::default()
    }
}

/// The tests of the runner's JUnit reports, with their costs. A test inside another one, such as Go's `TestA/x`, runs
/// together with the outer one and is not listed.
fn of_reports(costs: &Costs<'_>, reports: &[&Report]) -> Tests {
    let suites = || reports.iter().flat_map(|report| &report.suites);
    let mut cases = CaseSteps::new(costs.steps, suites());
    let nodes = ids::Nodes::new(costs.steps);
    let mut tests = Merged::default();
    let mut files: BTreeMap<String, Cost> = BTreeMap::new();
    // `tested` is the span of time in which the tests of all reports ran. Each runner process does some work before
    // its first test. `before_tests` is the largest sum, in ns, of such work of the processes of one report.
    let mut tested: Option<(u64, u64)> = None;
    let mut before_tests = 0;
    for report in reports {
        let at_once = costs.at_once(report);
        let suites: Vec<Option<StepIx>> = report
            .suites
            .iter()
            .map(|suite| cases.find("", &suite.attributes.name))
            .collect();
        // The time of a suite is used only if the report has several suites. A single suite is placed less exactly than
        // its tests.
        let several = report.suites.len() > 1;
        let places = report.suites.iter().zip(&suites).map(|(suite, at)| {
            let step = costs.steps.list().get((*at).filter(|_| several)?)?;
            Place::new(suite, step.from)
        });
        let places: Vec<Option<Place>> = places.collect();
        let works = windows::works(&places, |time| costs.used(Ktime(time)));
        if let Some((from, to)) = works.span {
            let (first, last) = tested.unwrap_or((from, to));
            tested = Some((first.min(from), last.max(to)));
            before_tests = before_tests.max(works.start);
        }
        let between = costs
            .reported(runner::between_suites(report), None, at_once)
            .ns;
        let suites = report.suites.iter().zip(suites);
        for ((suite, at), work) in suites.zip(works.list) {
            let before = match work {
                Some(_) => works.between,
                None => between,
            };
            let placed = PlacedSuite { suite, at, work };
            if let Some((file, whole)) = only_file(suite).zip(placed.cost(costs, at_once)) {
                let whole = whole.with_runner(before);
                let sum = files.entry(file);
                sum.and_modify(|cost| *cost = cost.and(whole))
                    .or_insert(whole);
            }
            let between = match work {
                Some(work) => work.rest / (suite.cases.len() as u64).max(1),
                None => {
                    let between = runner::between_tests(suite);
                    costs.reported(between, None, at_once).ns
                }
            };
            let sum = suite.sum().unsigned_abs();
            let by_suite = |length| Some(share(work?.tests, length, sum));
            for (case, around) in suite.cases.iter().zip(suite.around()) {
                // A test inside another test is not listed, but its step is searched, too. Otherwise a later test with
                // the same name would get this step.
                let at = cases.find(&case.attributes.class, &case.attributes.name);
                if around.is_none() {
                    let length = case.attributes.length.map(i64::unsigned_abs);
                    let estimate = length.map(|length| match by_suite(length) {
                        Some(ns) => Cost::reported(ns, length),
                        None => costs.reported(length, at, at_once),
                    });
                    tests.add(Test {
                        id: nodes.id(suite, case),
                        class: case.attributes.class.clone(),
                        file: ids::file(suite, case),
                        cost: of_case(costs, at, estimate).with_runner(between),
                    });
                }
            }
        }
    }
    let outside = |span| costs.used_outside(span).saturating_add(before_tests);
    Tests {
        list: tests.list,
        files,
        start: tested.map(outside),
    }
}

/// The file of a JUnit report's suite, if all tests of the suite are in one file.
fn only_file(suite: &Suite) -> Option<String> {
    let file = ids::file(suite, suite.cases.first()?)?;
    let mut files = suite.cases.iter().map(|case| ids::file(suite, case));
    files
        .all(|other| other.as_ref() == Some(&file))
        .then_some(file)
}

/// The cost of a test from its recorded work, or else from the given estimate, which is based on its reported length.
fn of_case(costs: &Costs<'_>, at: Option<StepIx>, estimate: Option<Cost>) -> Cost {
    let recorded = at.and_then(|at| costs.recorded(at));
    recorded.or(estimate).unwrap_or(Cost {
        ns: 0,
        on_cpu: None,
        wall: 0,
        source: Source::Median,
    })
}

/// A suite of a JUnit report, with the recorded step and the recorded work that belong to it.
struct PlacedSuite<'a> {
    suite: &'a Suite,
    at: Option<StepIx>,
    /// The CPU time and waits of the build while this suite of tests ran, divided into tests and the rest.
    work: Option<Work>,
}

impl PlacedSuite<'_> {
    /// The cost of a whole suite of tests: from its recorded step, else from the build's work while it ran, else from
    /// its length in the report.
    fn cost(&self, costs: &Costs<'_>, at_once: u64) -> Option<Cost> {
        let length = self.suite.attributes.length.map(i64::unsigned_abs);
        let recorded = self.at.and_then(|at| costs.recorded(at));
        let by_work = || {
            let work = self.work?;
            Some(Cost::reported(
                work.tests.saturating_add(work.rest),
                length?,
            ))
        };
        recorded
            .or_else(by_work)
            .or_else(|| Some(costs.reported(length?, self.at, at_once)))
    }
}

impl Plan {
    /// Divides tests among machines so that all machines have nearly the same cost. If the format allows it, each
    /// machine also has an equal part of the tests that are alike.
    ///
    /// # Errors
    /// There are fewer than two tests, or the format lists files and the files of some tests are not known.
    pub fn new(tests: Tests, shards: u64, format: Format) -> Result<Plan, Unlisted> {
        let units: Vec<(String, Cost)> = if format.is_by_file() {
            let files = tests.by_file().map_err(Unlisted::NoFile)?;
            files
                .into_iter()
                .map(|file| (file.name, file.cost))
                .collect()
        } else {
            let units = tests.list.iter();
            units.map(|test| (test.id.clone(), test.cost)).collect()
        };
        let kinds: Vec<spread::TestKind<'_>> = if format.can_be_alike() {
            tests.list.iter().map(spread::TestKind::of).collect()
        } else {
            Vec::new()
        };
        if units.len() < 2 {
            return Err(Unlisted::TooFew(format.is_by_file()));
        }
        let costs: Vec<u64> = units.iter().map(|(_, cost)| cost.ns).collect();
        Ok(Plan {
            parts: spread::divide(&costs, &kinds, shards),
            tests,
            format,
            units,
            shards,
        })
    }

    /// For each machine, the sums of the costs of the units that the plan assigns to it.
    pub fn sums(&self) -> Vec<Sums> {
        let mut sums = vec![Sums::default(); usize::try_from(self.shards).unwrap_or(0)];
        for ((_, cost), part) in self.units.iter().zip(&self.parts) {
            let at = usize::try_from(*part).unwrap_or(usize::MAX);
            if let Some(sum) = sums.get_mut(at) {
                sum.count += 1;
                sum.cost = sum.cost.saturating_add(cost.ns);
                sum.on_cpu = sum.on_cpu.saturating_add(cost.on_cpu.unwrap_or(0));
            }
        }
        sums
    }

    /// A sentence with the number of tests: of how many the cost is known from the recording, of how many from reports,
    /// and for how many the median is taken.
    fn sources(&self) -> String {
        let count = |source| self.tests.count(source);
        let all = units::plural(self.tests.list.len() as u64, "test", "tests");
        let mut words = format!(
            "{all}: {} by their own work and waits",
            units::count(count(Source::Recording))
        );
        for (source, why) in [
            (
                Source::Report,
                "not proven, by their length and the CPU time meanwhile",
            ),
            (Source::Median, "without a length, at the median"),
        ] {
            let count @ 1.. = count(source) else { continue };
            words += &format!("; {} {why}", units::count(count));
        }
        words
    }

    /// The plan of tests for several machines as a page of text.
    pub fn page(&self) -> Page {
        let mut out = Page::new();
        let sums = self.sums();
        let costs = sums.iter().map(|sum| sum.cost);
        let (least, most) = (
            costs.clone().min().unwrap_or(0),
            costs.clone().max().unwrap_or(0),
        );
        let all = costs.fold(0, u64::saturating_add);
        let unit = if self.format.is_by_file() {
            "files"
        } else {
            "tests"
        };
        let range = units::range(least, most);
        out.painted(Paint::Bold, &format!("{} shards of {range}", self.shards));
        out.wrapped(Paint::Plain, "  ", &self.sources());
        for (number, sum) in (1..).zip(&sums) {
            let count = units::count(sum.count);
            let (cost, cpu) = (units::time(sum.cost), units::time(sum.on_cpu));
            let known = if sum.on_cpu == 0 {
                String::new()
            } else {
                format!(", {cpu} of CPU known")
            };
            out.line(&format!("  {number}: {cost}, {count} {unit}{known}"));
        }
        if let Some(start) = self.tests.start {
            let start = units::time(start);
            let words = format!("each has the start and the end of the runner besides: {start}");
            out.wrapped(Paint::Plain, "  ", &words);
        }
        let longest = self.units.iter().max_by_key(|(_, cost)| cost.ns);
        if let Some((name, cost)) = longest.filter(|(_, cost)| cost.ns > all / self.shards) {
            // The machine with the costliest test needs `cost` ns. If the other machines share all other tests evenly,
            // each of them needs only `others` ns.
            let others = (all - cost.ns) / (self.shards - 1).max(1);
            let (cost, apart) = (units::time(cost.ns), units::time(cost.ns - others));
            let words =
                format!("{name} alone takes {cost}: no plan has shards less than {apart} apart");
            out.wrapped(Paint::Bad, "  ! ", &words);
        }
        out
    }

    /// The plan of tests for several machines as the JSON document `tr.shards/1`.
    pub fn json(&self) -> Value {
        let part_of: HashMap<&str, u64> = self
            .units
            .iter()
            .map(|(name, _)| name.as_str())
            .zip(self.parts.iter().copied())
            .collect();
        let part = |place: usize, test: &Test| {
            if self.format.is_by_file() {
                part_of.get(test.file.as_deref()?).copied()
            } else {
                self.parts.get(place).copied()
            }
        };
        let mut tests = vec![Vec::new(); usize::try_from(self.shards).unwrap_or(0)];
        for (place, test) in self.tests.list.iter().enumerate() {
            let part =
                part(place, test).and_then(|part| tests.get_mut(usize::try_from(part).ok()?));
            part.into_iter().for_each(|part| part.push(test.json()));
        }
        let shards = self
            .sums()
            .into_iter()
            .zip(tests)
            .map(|(sum, tests)| json!({"cost_ns": sum.cost, "tests": tests}));
        json!({
            "schema": "tr.shards/1",
            "counts": {
                "recording": self.tests.count(Source::Recording),
                "report": self.tests.count(Source::Report),
                "median": self.tests.count(Source::Median),
            },
            "start_ns": self.tests.start,
            "shards": shards.collect::<Vec<Value>>(),
        })
    }
}

impl Test {
    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "class": (!self.class.is_empty()).then_some(&self.class),
            "file": self.file,
            "cost_ns": self.cost.ns,
            "on_cpu_ns": self.cost.on_cpu,
            "wall_ns": (self.cost.source != Source::Median).then_some(self.cost.wall),
            "cost_from": self.cost.source,
        })
    }
}

#[cfg(test)]
#[path = "shards/tests.rs"]
mod tests;
