//! Writes spans of OpenTelemetry (OTLP 1.x): the recording, its steps, its processes. Names and attributes
//! are those of the semantic conventions `SCHEMA` (cicd, process, test, vcs); other attributes begin with
//! `tr.`. There are few names of spans, because a backend groups by them.

pub mod answer;
mod attributes;
pub mod ids;
mod metric_messages;
pub mod metrics;

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use tr_analyze::arena::Arena;
use tr_analyze::containers::Called;
use tr_analyze::model::{Analysis, Process, ProcessIx, Times};
use tr_analyze::status;
use tr_format::event::Ktime;

use self::attributes::{fact, int, job, resource, text, url, TASK_ID, TASK_NAME, TASK_PAGE};
use self::ids::Ids;
use prost::Message;
use serde::Serialize;
use serde_json::ser::CompactFormatter;
use tr_import::otlp::messages::{self, *};
use tr_insight::path;
use tr_insight::processes::ancestors::down;
use tr_insight::processes::exit;
use tr_insight::processes::label;
use tr_insight::recordings::ci::Ci;
use tr_insight::steps::result::StepResult;
use tr_insight::steps::{Step, StepIx};
use tr_insight::verdicts::StepVerdicts;
use tr_insight::views::query;
use tr_insight::views::view::View;
use tr_programs::steps::StepKind;
use tr_text::escape;
use tr_text::json::write_safe;
use tr_text::units::hex;

/// The least length of a step or a process that gets a span of its own in an OTLP export, unless the option `--min`
/// gives another length.
pub const SHORTEST_SPAN: Duration = Duration::from_millis(100);

const SCHEMA: &str = "https://opentelemetry.io/schemas/1.44.0";
/// The number of spans that an OTLP export encodes together, so that not all are in memory at once.
const CHUNK: usize = 512;
const INTERNAL: i32 = 1;
const ERROR: i32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The OTLP request is in the binary encoding of proto3.
    Protobuf,
    /// The OTLP request is in OTLP's JSON: ids are hexadecimal digits, and 64-bit integers are strings.
    Json,
}

/// An attribute, as its name and its value, that the user adds to the OpenTelemetry resource.
pub type Given = (String, String);

/// The kind of data that an OTLP request has: spans (traces) or metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    /// The name of the kind of OTLP data, `traces` or `metrics`. This name is the last part of the path of a receiver's
    /// URL, and a part of the names of OpenTelemetry's environment variables.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Metrics => "metrics",
        }
    }

    /// The nouns for one part of an OTLP request and for several: `span` and `spans`, or `data point` and `data
    /// points`.
    pub fn parts(self) -> [&'static str; 2] {
        match self {
            Signal::Traces => ["span", "spans"],
            Signal::Metrics => ["data point", "data points"],
        }
    }
}

/// Writes a recording as an OTLP request of spans. The attributes in `given` are added to the attributes of the
/// resource, and replace attributes of the recording that have the same name.
pub fn write(
    view: &View<'_>,
    encoding: Encoding,
    given: &[Given],
    ids: &Ids,
    out: &mut dyn Write,
) -> io::Result<()> {
    let spans = Spans::new(view, ids);
    let resource = resource(view.analysis, given);
    let mut all = spans.all().peekable();
    let parts = std::iter::from_fn(|| {
        all.peek()?;
        Some(ResourceSpans {
            resource: Some(resource.clone()),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope()),
                spans: all.by_ref().take(CHUNK).collect(),
                schema_url: SCHEMA.to_owned(),
            }],
            schema_url: SCHEMA.to_owned(),
        })
    });
    request("resourceSpans", parts, encoding, out)
}

/// Writes an OTLP request that consists of the given parts, one after the other. `name` is the name of the field that
/// has the parts in OTLP's JSON.
fn request<M: Message + Serialize>(
    name: &str,
    parts: impl Iterator<Item = M>,
    encoding: Encoding,
    out: &mut dyn Write,
) -> io::Result<()> {
    match encoding {
        Encoding::Protobuf => {
            for part in parts {
                let mut bytes = Vec::new();
                messages::field(&part, &mut bytes);
                out.write_all(&bytes)?;
            }
            Ok(())
        }
        Encoding::Json => {
            write!(out, "{{\"{name}\":[")?;
            for (at, part) in parts.enumerate() {
                if at > 0 {
                    out.write_all(b",")?;
                }
                write_safe(&part, CompactFormatter, out)?;
            }
            out.write_all(b"]}\n")
        }
    }
}

/// The instrumentation scope of OTLP data, which names the program that the data comes from: `tr` and its version.
fn scope() -> Scope {
    Scope {
        name: "tr".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Converts a point in time of the recording to ns since 1970.
fn unix(analysis: &Analysis, time: Ktime) -> u64 {
    let meta = &analysis.meta;
    meta.start_clock.real.saturating_add(time.since(meta.start))
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Thing {
    /// The recording as a whole. Its span also stands for the process of COMMAND.
    Recording,
    Step(StepIx),
    Process(ProcessIx),
}

struct Spans<'a> {
    view: View<'a>,
    ids: &'a Ids,
    judged: StepVerdicts<'a>,
    /// For each process in which a step with a span begins at an exec, the index of the first such step. The process
    /// and the step share a span.
    executions: HashMap<ProcessIx, StepIx>,
    /// For each process, whether it matches the user's filters. It gets a span of its own if it does, unless the span
    /// of the recording or of a step stands for it.
    chosen: Arena<ProcessIx, bool>,
    /// For each process, the innermost span that contains the process, and the process to which this span belongs: the
    /// contained process itself or an ancestor. `None` if no span contains the process.
    innermost: Arena<ProcessIx, Option<(ProcessIx, Thing)>>,
    /// For each step, the innermost step that contains this step and has a span. A step counts as contained in itself.
    /// `None` if there is no such step.
    innermost_step: Vec<Option<StepIx>>,
    /// For each process, the container in which it ran, if any.
    containers: Arena<ProcessIx, Option<&'a Called>>,
    root: Option<ProcessIx>,
    /// For each process, the time in ns that it has on the critical path; `None` without a critical path.
    path: Option<Arena<ProcessIx, u64>>,
}

impl<'a> Spans<'a> {
    fn new(view: &View<'a>, ids: &'a Ids) -> Spans<'a> {
        let analysis = view.analysis;
        let judged = StepVerdicts::new(view.recording);
        let steps = &judged.steps;
        let mut executions = HashMap::new();
        for (at, step) in steps.list().iter().enumerate() {
            let executed = |ix: &ProcessIx| {
                let mut execs = analysis.process(*ix).execs.iter();
                execs.any(|exec| exec.start == step.from)
            };
            let process = step.process.filter(|_| step.kind != StepKind::Mark);
            if let Some(process) = process.filter(executed).filter(|_| long(view, step)) {
                executions.entry(process).or_insert(at);
            }
        }
        let path = path::path_of(view).ok();
        let path = path.map(|path| path.by_process(analysis));
        let root = analysis.process_ids().find(|ix| {
            let process = analysis.process(*ix);
            process.parent.is_none() && Some(process.pid) == analysis.meta.root
        });
        let mut spans = Spans {
            view: *view,
            ids,
            judged,
            executions,
            chosen: view.is_chosen(),
            innermost: Arena::default(),
            innermost_step: Vec::new(),
            containers: query::containers(analysis),
            root,
            path,
        };
        spans.innermost = down(analysis, |ix, above: Option<&Option<_>>| {
            let own = spans.thing(ix).map(|thing| (ix, thing));
            own.or_else(|| above.copied().flatten())
        });
        // In the list of steps, each step comes before the steps that are inside of it.
        for (at, step) in spans.judged.steps.list().iter().enumerate() {
            let around = |parent: StepIx| spans.innermost_step.get(parent).copied().flatten();
            let own = long(view, step).then_some(at);
            let innermost = own.or_else(|| step.parent.and_then(around));
            spans.innermost_step.push(innermost);
        }
        spans
    }

    /// All spans of the OTLP export: the span of the recording, then the spans of steps, then those of processes.
    fn all(&self) -> impl Iterator<Item = Span> + '_ {
        let steps = self.judged.steps.list().iter().enumerate();
        let steps = steps.filter(|(_, step)| long(&self.view, step));
        let processes = self.view.analysis.process_ids();
        let own = processes.filter(|ix| self.thing(*ix) == Some(Thing::Process(*ix)));
        std::iter::once(self.recording())
            .chain(steps.map(|(at, step)| self.step(at, step)))
            .chain(own.map(|ix| self.process(ix)))
    }

    /// The thing (recording, step or process) whose span stands for the given process; `None` if the process has
    /// no span.
    fn thing(&self, process: ProcessIx) -> Option<Thing> {
        if Some(process) == self.root {
            return Some(Thing::Recording);
        }
        if let Some(step) = self.executions.get(&process) {
            return Some(Thing::Step(*step));
        }
        self.chosen[process].then_some(Thing::Process(process))
    }

    /// The thing (recording, step or process) whose span becomes the parent of a span in the given process and step.
    /// The first choice is the span of the process or, if the process has no span, of its nearest ancestor with one;
    /// this span must lie inside the step. Otherwise the step's span is the parent.
    fn around(&self, process: Option<ProcessIx>, step: Option<StepIx>) -> Thing {
        let step = step.and_then(|step| *self.innermost_step.get(step)?);
        let span = process.and_then(|process| self.innermost[process]);
        let Some(step) = step else {
            return span.map_or(Thing::Recording, |(_, thing)| thing);
        };
        let inside = |ix: ProcessIx, thing: Thing| match thing {
            Thing::Recording => false,
            Thing::Step(own) => self.judged.steps.is_within(Some(own), step),
            Thing::Process(_) => {
                let steps = &self.judged.steps;
                let own = steps.of_process(self.view.analysis, ix);
                steps.is_within(own, step)
            }
        };
        match span {
            Some((ix, thing)) if inside(ix, thing) => thing,
            _ => Thing::Step(step),
        }
    }

    fn id(&self, thing: Thing) -> Vec<u8> {
        let name = match thing {
            Thing::Recording => match self.ids.own {
                Some(own) => return own.to_vec(),
                None => "recording".to_owned(),
            },
            Thing::Step(at) => format!("step {at}"),
            Thing::Process(at) => format!("process {}", at.0),
        };
        self.ids.span(&self.view.analysis.meta, &name).to_vec()
    }

    fn unix(&self, time: Ktime) -> u64 {
        unix(self.view.analysis, time)
    }

    fn span(
        &self,
        thing: Thing,
        parent: Option<Thing>,
        name: String,
        times: (Ktime, Ktime),
    ) -> Span {
        Span {
            trace_id: self.ids.trace.to_vec(),
            span_id: self.id(thing),
            parent_span_id: parent
                .map_or_else(|| self.ids.parent.clone(), |process| self.id(process)),
            name,
            kind: INTERNAL,
            start_time_unix_nano: self.unix(times.0),
            end_time_unix_nano: self.unix(times.1),
            attributes: Vec::new(),
            status: None,
        }
    }

    fn recording(&self) -> Span {
        let analysis = self.view.analysis;
        let root = self.root.map(|ix| analysis.process(ix));
        let name = match root {
            Some(root) => label::program(root).to_string(),
            None => "tr record".to_owned(),
        };
        let times = (analysis.start, analysis.end);
        let mut span = self.span(Thing::Recording, None, name, times);
        span.attributes.extend(job(&analysis.meta));
        if let Some(ix) = self.root {
            self.describe(ix, &mut span);
        }
        span
    }

    fn step(&self, at: StepIx, step: &Step) -> Span {
        let thing = Thing::Step(at);
        let execution = step
            .process
            .filter(|process| self.executions.get(process) == Some(&at));
        let inside = match execution {
            Some(process) => self.view.analysis.process(process).parent,
            None => step.process,
        };
        let parent = self.around(inside, step.parent);
        let name = match (step.kind, execution) {
            (StepKind::Test | StepKind::Job | StepKind::Mark, _) => step.name.whole().to_owned(),
            (_, Some(process)) => label::program(self.view.analysis.process(process)).to_string(),
            (kind, None) => kind.name().to_owned(),
        };
        let mut span = self.span(thing, Some(parent), name, (step.from, step.to));
        // The span of the recording already has the figures of COMMAND. If another span had them, too, sums over spans
        // would count them twice.
        if let Some(process) = execution.filter(|process| Some(*process) != self.root) {
            self.describe(process, &mut span);
        }
        span.attributes.push(text("tr.step.kind", step.kind.name()));
        let passed = step.ended.then_some(!step.failed());
        let (name, result, words) = match step.kind {
            StepKind::Test => (
                "test.case.name",
                "test.case.result.status",
                ["fail", "pass"],
            ),
            StepKind::Job | StepKind::Target | StepKind::Unit | StepKind::Mark => (
                TASK_NAME,
                "cicd.pipeline.task.run.result",
                ["failure", "success"],
            ),
        };
        span.attributes.push(text(name, step.name.whole()));
        if name == TASK_NAME {
            span.attributes.push(text(TASK_ID, &hex(&span.span_id)));
            let ci = Ci::new(&self.view.analysis.meta);
            span.attributes.extend(url(&ci, TASK_PAGE, "job_page"));
        }
        if let Some(word) = passed.and_then(|passed| words.get(usize::from(passed))) {
            span.attributes.push(text(result, word));
        }
        if let Some(result) = &step.result {
            span.attributes.push(text("tr.step.result", result.word()));
        }
        if let Some(verdict) = self.judged.verdicts().of(at) {
            span.attributes
                .push(text("tr.step.verdict", &verdict.name()));
            if verdict.is_reported {
                span.attributes
                    .push(text("tr.step.held_back", &verdict.text()));
            }
        }
        if step.failed() {
            let result = step.result.as_ref().map(StepResult::word);
            fail(&mut span, step.status, result);
        }
        span
    }

    fn process(&self, ix: ProcessIx) -> Span {
        let analysis = self.view.analysis;
        let process = analysis.process(ix);
        let leader = process.threads.first();
        let step = leader.and_then(|leader| self.judged.steps.at(*leader, process.start));
        // If one of the steps around the process is the process itself, that step lies inside of the span of the
        // process and cannot be the parent of this span.
        let step = self.judged.steps.around(step).find(|at| {
            let step = self.judged.steps.list().get(*at);
            step.is_some_and(|step| step.process != Some(ix))
        });
        let parent = self.around(process.parent, step);
        let times = (process.start, process.end);
        let thing = Thing::Process(ix);
        let mut span = self.span(
            thing,
            Some(parent),
            label::program(process).to_string(),
            times,
        );
        self.describe(ix, &mut span);
        span
    }

    /// Adds the attributes and the status of a process to the OTLP span that stands for it.
    fn describe(&self, ix: ProcessIx, span: &mut Span) {
        let process = self.view.analysis.process(ix);
        let facts = &mut span.attributes;
        facts.push(int("process.pid", u64::from(process.pid.0)));
        facts.extend(
            process
                .ppid
                .map(|pid| int("process.parent_pid", u64::from(pid.0))),
        );
        // The start of a process that began before the analyzed span is not known. COMMAND begins with the recording.
        let analysis = self.view.analysis;
        let is_whole = analysis.start == analysis.meta.start;
        if process.start > analysis.start || is_whole && Some(ix) == self.root {
            let time = tr_text::units::rfc3339(self.unix(process.start));
            facts.push(text("process.creation.time", &time));
        }
        facts.extend(program(process));
        facts.extend(self.containers[ix].into_iter().flat_map(container));
        facts.extend(times(&process.times));
        if let Some(ns @ 1..) = self.path.as_ref().map(|path| path[ix]) {
            facts.push(int("tr.critical_path_ns", ns));
        }
        if let Some(code) = process.status.and_then(exit::code) {
            facts.push(int("process.exit.code", u64::from(code)));
        }
        if exit::failed(process.status) {
            fail(span, process.status, None);
        }
    }
}

/// Whether a step is exported with a span of its own: it is at least as long as `--min`, and not a single moment.
fn long(view: &View<'_>, step: &Step) -> bool {
    step.wall() >= view.ask.min && !step.is_moment()
}

fn program(process: &Process) -> Vec<KeyValue> {
    let args = process.argv.args().map(|arg| AnyValue {
        value: Some(Any::String(escape::raw(arg))),
    });
    let args = Any::Array(ArrayValue {
        values: args.collect(),
    });
    let mut facts = vec![
        text(
            "process.executable.name",
            &label::program(process).to_string(),
        ),
        fact("process.command_args", args),
    ];
    let file = process.execs.last().map(|exec| escape::raw(&exec.filename));
    let file = file.filter(|file| !file.is_empty());
    facts.extend(file.map(|file| text("process.executable.path", &file)));
    facts
}

/// The OpenTelemetry attributes of the container that a process is in, as far as they are known.
fn container(called: &Called) -> impl Iterator<Item = KeyValue> + '_ {
    let all = [
        ("container.id", &called.id),
        ("container.name", &called.name),
        ("container.image.name", &called.image),
    ];
    let known = all.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| text(name, &escape::raw(value)))
}

fn times(times: &Times) -> impl Iterator<Item = KeyValue> {
    let all = [
        ("tr.on_cpu_ns", times.on_cpu),
        ("tr.run_queue_ns", times.run_queue),
        ("tr.sleep_ns", times.sleep),
        ("tr.blocked_ns", times.blocked),
        ("tr.asleep_or_blocked_ns", times.asleep_or_blocked),
        ("tr.unknown_ns", times.unknown),
    ];
    let known = all.into_iter().filter(|(_, ns)| *ns > 0);
    known.map(|(name, ns)| int(name, ns))
}

/// Marks an OTLP span as failed. The class of the error is the exit code, or the name of the signal that killed the
/// process; `_OTHER` if there is neither.
fn fail(span: &mut Span, status: Option<u32>, result: Option<&str>) {
    let class = match status.filter(|status| *status != 0) {
        None => "_OTHER".to_owned(),
        Some(status) => match exit::killed_by(Some(status)) {
            Some(signal) => status::name(signal),
            None => exit::code(status).unwrap_or(0).to_string(),
        },
    };
    if !span
        .attributes
        .iter()
        .any(|attribute| attribute.key == "error.type")
    {
        span.attributes.push(text("error.type", &class));
    }
    let words = result.map(str::to_owned).or(status.map(exit::words));
    span.status = Some(Status {
        message: words.unwrap_or_default(),
        code: ERROR,
    });
}
