//! Tests reports of simulated builds: their sums are those of the analysis, hostile command lines do no harm, and large
//! trees are fast.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // of our own tables, in a test

#[path = "kinds/mod.rs"]
mod kinds;
#[path = "../../../tests/common/schema.rs"]
mod schema;
#[path = "waits/mod.rs"]
mod waits;

use std::collections::HashMap;

use serde_json::{json, Value};
use tr_analyze::model::{Analysis, ExecSpan, Process, ProcessIx, Resources, Times, Tree};
use tr_analyze::{analyze, Options};
use tr_export::otlp;
use tr_format::event::{Argv, Comm, Ktime, Tgid, Tid};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_insight::steps::Steps;
use tr_insight::views::query;
use tr_insight::views::query::{By, Filter, RowOrder, Sort};
use tr_insight::Recording;
use tr_report::json as renderer;
use tr_report::reports::{ci_tracer, Ask, Report, ReportKind, View};
use tr_sim::config::Config;
use tr_sim::program::World;
use tr_sim::scenario;
use tr_text::style::Style;

const STYLE: Style = Style {
    width: 80,
    color: false,
    ascii: false,
    markdown: false,
};

fn simulate(world: World, all: bool) -> Analysis {
    let config = Config::new(world, 3, 300_000_000).seed(7);
    let config = if all { config.all() } else { config };
    let (file, ..) = tr_sim::file::record_to(&config, Vec::new()).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    analyze(&trace, &options)
}

fn worlds() -> Vec<(&'static str, Analysis)> {
    vec![
        ("make", simulate(scenario::make(4, 12), false)),
        ("make, all", simulate(scenario::make(4, 12), true)),
        ("threads", simulate(scenario::pool(5), true)),
        ("short", simulate(scenario::short_processes(2, 200), false)),
    ]
}

fn with<T>(analysis: &Analysis, ask: &Ask, run: impl FnOnce(&View) -> T) -> T {
    let chosen: Vec<_> = analysis.process_ids().collect();
    let recording = Recording::from(analysis.clone());
    run(&View::new(&recording, &chosen, "x.bin", ask))
}

fn value(analysis: &Analysis, ask: &Ask, kind: ReportKind) -> Value {
    with(analysis, ask, |view| kind.make(view).json().unwrap())
}

fn sum(rows: &Value, key: &str) -> u64 {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[key].as_u64().unwrap()).sum()
}

/// The whole JSON document with these reports.
fn rendered<'a>(view: &View<'a>, reports: &[(String, Box<dyn Report + 'a>)]) -> String {
    let mut out = Vec::new();
    renderer::render(view, reports, true, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn series_add_up_to_the_processes_times() {
    for (name, analysis) in worlds() {
        assert!(
            analysis.totals.times.on_cpu > 50_000_000,
            "{name}: something ran"
        );
        for interval in [1_000_000_000, 10_000_000, 333_333] {
            let ask = Ask {
                interval: Some(interval),
                ..Ask::default()
            };
            let series = value(&analysis, &ask, ReportKind::Series);
            assert_eq!(series["interval_ns"], interval);
            let rows = series["processes"].as_array().unwrap();
            assert_eq!(rows.len(), analysis.processes.len());
            for (row, process) in rows.iter().zip(&analysis.processes) {
                let values = row["values"].as_array().unwrap();
                let sum: u64 = values.iter().map(|pair| pair[1].as_u64().unwrap()).sum();
                assert_eq!(sum, process.times.on_cpu, "{name}: {}", process.pid.0);
                let most = process.threads.len() as u64 * interval;
                assert!(values.iter().all(|pair| pair[1].as_u64().unwrap() <= most));
            }
        }
    }
}

/// Converts a decimal number of milliseconds to ns without rounding.
fn ns(decimal: &str) -> u64 {
    let (whole, part) = decimal.split_once('.').unwrap_or((decimal, ""));
    let digits = format!("{whole}{part:0<6}");
    digits.parse().unwrap()
}

#[test]
fn the_stream_is_what_the_viewers_read() {
    for (name, analysis) in worlds() {
        let ask = Ask {
            interval: Some(20_000_000),
            ..Ask::default()
        };
        let stream = with(&analysis, &ask, |view| ci_tracer::render(view).unwrap());
        let stream = String::from_utf8(stream).unwrap();
        let events: Vec<Value> = serde_json::from_str(&stream).expect("one JSON array");
        // The viewer of ci-tracer adds values to the last `ts` object before them, and draws these values only if
        // another `ts` object follows.
        let (mut cgroups, mut pids) = (Vec::new(), HashMap::new());
        let (mut last, mut open) = (-1.0, false);
        for event in &events {
            let number = |key: &str| event[key].as_f64();
            if let Some(id) = event["cgr"].as_u64() {
                cgroups.push(id);
            } else if let Some(pid) = event["pid"].as_u64() {
                assert!(cgroups.contains(&event["cg"].as_u64().unwrap()), "{name}");
                assert!(!event["v"].as_array().unwrap().is_empty());
                let known = pids.is_empty() || pids.contains_key(&event["ppid"].as_u64().unwrap());
                assert!(known || name != "make", "{name}: the parent comes first");
                pids.insert(pid, event["t"].as_f64().unwrap());
            } else if let Some(ts) = number("ts") {
                assert!(ts > last, "{name}: {ts} behind {last}");
                (last, open) = (ts, true);
            } else if let Some(pid) = event["cpu"].as_u64() {
                assert!(open && pids.contains_key(&pid), "{name}");
                assert!(pids[&pid] < last + 0.02, "{name}: ran before it began");
            }
        }
        let behind = events
            .iter()
            .rev()
            .take_while(|event| event["cpu"].is_null());
        assert!(behind.filter(|event| event["ts"].is_number()).count() >= 1);
        assert!(events[0]["interval"].as_f64() == Some(20.0) && events[1]["start"].is_number());
        let values = stream.lines().filter(|line| line.starts_with("{\"cpu\""));
        let values = values.map(|line| {
            let from = line.find("\"v\": ").unwrap() + 5;
            ns(&line[from..line.rfind('}').unwrap()])
        });
        assert_eq!(values.sum::<u64>(), analysis.totals.times.on_cpu, "{name}");
    }
}

#[test]
fn trees_and_cpus_add_up() {
    for (name, analysis) in worlds() {
        let on_cpu = analysis.totals.times.on_cpu;
        let tree = value(&analysis, &Ask::default(), ReportKind::Tree);
        assert_eq!(sum(&tree, "on_cpu_ns"), on_cpu, "{name}");
        let rows = tree.as_array().unwrap();
        let roots = rows.iter().filter(|row| row["parent"].is_null());
        let roots: u64 = roots
            .map(|row| row["tree_on_cpu_ns"].as_u64().unwrap())
            .sum();
        assert_eq!(roots, on_cpu, "{name}");
        assert_eq!(rows.len(), analysis.processes.len());
        for (at, row) in rows.iter().enumerate() {
            if let Some(parent) = row["parent"].as_u64() {
                assert!((parent as usize) < at);
                assert_eq!(rows[parent as usize]["pid"], row["ppid"]);
            }
        }
        let cpus = value(&analysis, &Ask::default(), ReportKind::Cpus);
        let span = cpus["span_ns"].as_u64().unwrap();
        let mut busy = 0;
        for cpu in cpus["cpus"].as_array().unwrap() {
            let part = |key: &str| cpu[key].as_u64().unwrap_or(0);
            busy += part("build_ns") + part("others_ns");
            if !cpu["cpu"].is_null() {
                let parts = ["build_ns", "others_ns", "idle_ns", "unknown_ns"].map(part);
                assert_eq!(parts.iter().sum::<u64>(), span, "{name}: {cpu}");
            }
            assert_eq!(cpu["idle_ns"].is_null(), name == "make" || name == "short");
        }
        assert_eq!(busy, on_cpu, "{name}");
        let switches = analysis.processes.iter().map(|p| p.resources.switches);
        let switches: u64 = switches.map(|s| s.voluntary + s.involuntary).sum();
        assert_eq!(sum(&cpus["cpus"], "switches"), switches, "{name}");
        let execs = value(&analysis, &Ask::default(), ReportKind::Execs);
        let count: usize = analysis.processes.iter().map(|p| p.execs.len()).sum();
        assert_eq!(execs.as_array().unwrap().len(), count, "{name}");
    }
}

fn rules() -> Value {
    serde_json::from_str(include_str!("../schema/analysis.schema.json")).unwrap()
}

/// A valid document is refused after one thing in it was changed.
#[test]
fn the_schema_refuses_what_does_not_fit() {
    let (_, analysis) = worlds().remove(0);
    let document = with(&analysis, &Ask::default(), |view| {
        let reports = ReportKind::ALL.map(|kind| (kind.key(), kind.make(view)));
        rendered(view, &reports)
    });
    let good: Value = serde_json::from_str(&document).unwrap();
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 9] = [
        ("required", |d| {
            drop(d.as_object_mut().unwrap().remove("trace"))
        }),
        ("required, deep", |d| {
            drop(d["processes"][0].as_object_mut().unwrap().remove("pid"));
        }),
        ("additionalProperties", |d| {
            d["trace"]["color"] = json!("red")
        }),
        ("type", |d| d["trace"]["truncated"] = json!(0)),
        ("type, by $ref", |d| d["totals"]["on_cpu_ns"] = json!("12")),
        ("integer", |d| d["totals"]["threads"] = json!(1.5)),
        ("minimum", |d| d["totals"]["forks"] = json!(-1)),
        ("const", |d| d["schema"] = json!("tr.analysis/2")),
        ("dependentRequired", |d| d["rows"] = json!([])),
    ];
    schema::validate(&rules(), &good).unwrap();
    for (what, change) in changes {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(schema::validate(&rules(), &bad).is_err(), "{what}");
    }
}

/// For each keyword that the schemas use: a value that the keyword accepts, and one that it refuses.
#[test]
fn every_keyword_of_a_schema_is_checked() {
    let cases = [
        (
            json!({"type": ["integer", "null"]}),
            json!(null),
            json!("x"),
        ),
        (json!({"enum": [1, "a"]}), json!("a"), json!("b")),
        (json!({"const": [1]}), json!([1]), json!([2])),
        (
            json!({"anyOf": [{"const": 1}, {"const": 2}]}),
            json!(2),
            json!(3),
        ),
        (json!({"minimum": 0}), json!(0), json!(-1)),
        (json!({"maximum": 100}), json!(100), json!(100.5)),
        (json!({"minItems": 2}), json!([1, 2]), json!([1])),
        (json!({"maxItems": 2}), json!([1, 2]), json!([1, 2, 3])),
        (
            json!({"items": {"type": "string"}}),
            json!(["a"]),
            json!(["a", 1]),
        ),
        (json!({"required": ["a"]}), json!({"a": 1}), json!({"b": 1})),
        (
            json!({"properties": {"a": {"const": 1}}}),
            json!({"b": 2}),
            json!({"a": 2}),
        ),
        (
            json!({"additionalProperties": false}),
            json!({}),
            json!({"a": 1}),
        ),
        (
            json!({"properties": {"a": true}, "additionalProperties": {"type": "null"}}),
            json!({"a": 1, "b": null}),
            json!({"b": 1}),
        ),
        (
            json!({"propertyNames": {"enum": ["a"]}}),
            json!({"a": 1}),
            json!({"b": 1}),
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"b": 1}),
            json!({"a": 1}),
        ),
        (
            json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}),
            json!(1),
            json!("1"),
        ),
    ];
    for (rule, good, bad) in cases {
        assert_eq!(schema::validate(&rule, &good), Ok(()), "{rule}");
        assert!(schema::validate(&rule, &bad).is_err(), "{rule} takes {bad}");
    }
    for unknown in [json!({"pattern": "x"}), json!({"$ref": "#/$defs/none"})] {
        assert!(
            schema::validate(&unknown, &json!("x")).is_err(),
            "{unknown}"
        );
    }
}

#[test]
fn every_document_fits_the_schema() {
    let rules = rules();
    for (name, analysis) in worlds() {
        let ask = Ask::default();
        let document = with(&analysis, &ask, |view| {
            let reports = ReportKind::ALL.map(|kind| (kind.key(), kind.make(view)));
            rendered(view, &reports)
        });
        let document: Value = serde_json::from_str(&document).unwrap();
        assert!(document["tree"].is_array() && document["series"].is_object());
        schema::validate(&rules, &document).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn hostile_command_lines_are_escaped_in_every_output() {
    let mut world = scenario::make(4, 12);
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{2066}\u{feff}\u{7f}\r\nx\t";
    let images = &mut world.images;
    assert!(!images.is_empty());
    for (at, image) in images.iter_mut().enumerate() {
        let tools = ["sh", "git", "python3", "gcc", "java", "ccache"];
        image.args = vec![format!("/bin/{}", tools[at % tools.len()])];
        image
            .args
            .extend([evil, "-c", evil, "-o", evil].map(str::to_owned));
        image.path = format!("/bin/{evil}");
    }
    let analysis = simulate(world, false);
    let hidden = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{2069}').contains(&c);
    let check = |what: &str, text: &str| {
        let bad = text.chars().find(|c| hidden(*c) || *c == '\u{feff}');
        assert_eq!(bad, None, "{what}: {text}");
        text.contains("[2J")
    };
    let ask = Ask::default();
    with(&analysis, &ask, |view| {
        for kind in ReportKind::ALL {
            let report = kind.make(view);
            let wide = Style {
                width: 400,
                ..STYLE
            };
            let shown = check(kind.name(), &report.text(&wide));
            let csv = String::from_utf8(report.sheet().csv().unwrap()).unwrap();
            let is_listed = check(kind.name(), &csv);
            if matches!(kind, ReportKind::Tree | ReportKind::Execs) {
                assert!(shown && is_listed, "{}: it is there", kind.name());
            }
        }
        let reports = ReportKind::ALL.map(|kind| (kind.key(), kind.make(view)));
        assert!(check("JSON", &rendered(view, &reports)));
        let stream = ci_tracer::render(view).unwrap();
        assert!(check("ci-tracer", &String::from_utf8(stream).unwrap()));
    });
}

/// A process that starts at `pid` milliseconds and runs for 1 ms.
fn process(pid: u32, parent: Option<u32>, args: &[&str]) -> Process {
    let times = Times {
        on_cpu: 1_000_000,
        ..Times::default()
    };
    let start = Ktime(u64::from(pid) * 1_000_000);
    let end = Ktime(start.0 + 1_000_000);
    Process {
        pid: Tgid(pid),
        ns_pid: Tid(pid),
        ppid: parent.map(Tgid),
        parent: parent.map(ProcessIx),
        comm: Comm::new(b"x"),
        argv: Argv::from_args(args),
        start,
        end,
        status: Some(0),
        times,
        resources: Resources {
            faults: Some((0, 0)),
            ..Resources::default()
        },
        tree: Tree {
            processes: 1,
            times,
            end,
        },
        ..Process::default()
    }
}

/// An analysis of processes with these parents. The pid of a process is its index.
fn forest(parents: impl Iterator<Item = Option<u32>>) -> Analysis {
    let mut analysis = Analysis::default();
    for (at, parent) in parents.enumerate() {
        let at = at as u32;
        if let Some(parent) = parent {
            if let Some(parent) = analysis.processes.get_mut(parent as usize) {
                parent.children.push(ProcessIx(at));
            }
        }
        let name = format!("program{}", at % 3);
        analysis
            .processes
            .push(process(at, parent, &[&name, "arg"]));
    }
    analysis.end = Ktime(analysis.processes.len() as u64 * 1_000_000);
    analysis
}

#[test]
fn large_trees_are_fast_and_few_lines() {
    let many = 100_000;
    type Parent = Box<dyn Fn(u32) -> Option<u32>>;
    let shapes: [(&str, Parent); 4] = [
        ("a chain", Box::new(|at: u32| at.checked_sub(1))),
        ("a fan", Box::new(|at| (at > 0).then_some(0))),
        (
            "a binary tree",
            Box::new(|at: u32| at.checked_sub(1).map(|at| at / 2)),
        ),
        ("all roots", Box::new(|_| None)),
    ];
    for (name, parent) in shapes {
        let analysis = forest((0..many).map(&*parent));
        for limit in [None, Some(5_000)] {
            let ask = Ask {
                top: limit,
                ..Ask::default()
            };
            let text = with(&analysis, &ask, |view| {
                ReportKind::Tree.make(view).text(&STYLE)
            });
            let lines = text.lines().count();
            assert!(
                (2..=limit.unwrap_or(40) + 1).contains(&lines),
                "{name}: {lines}"
            );
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{name}:\n{text}"
            );
        }
        let csv = with(&analysis, &Ask::default(), |view| {
            ReportKind::Tree.make(view).sheet().csv().unwrap()
        });
        assert_eq!(csv.iter().filter(|b| **b == b'\n').count() as u32, many + 1);
        let all: Vec<_> = analysis.process_ids().collect();
        let rows = query::rows(
            &Recording::from(analysis.clone()),
            &all,
            By::Depth,
            Sort::OnCpu,
            &[],
        );
        assert_eq!(
            rows.iter().map(|row| row.count).sum::<u64>(),
            u64::from(many)
        );
        let below = Filter {
            pid: Some(Tgid(0)),
            ..Filter::default()
        };
        let chosen = below.apply(&Recording::from(analysis.clone())).len();
        assert_eq!(
            chosen,
            if name == "all roots" {
                1
            } else {
                many as usize
            },
            "{name}"
        );
    }
}

/// The CPU time of this thread in ns.
fn cpu_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

/// An analysis of processes with these parents, each of which marks the beginning or the end of a span.
fn marked(parents: impl Iterator<Item = Option<u32>>) -> Analysis {
    let mut analysis = forest(parents);
    for (at, process) in analysis.processes.iter_mut().enumerate() {
        let (point, name) = match at % 2 {
            0 => ("--begin", format!("m{at}")),
            _ => ("--end", format!("m{}", at - 1)),
        };
        process.execs.push(ExecSpan {
            start: process.start,
            started_before: false,
            end: process.end,
            ended: true,
            filename: Default::default(),
            argv: Argv::from_args(["tr", "mark", point, &name]),
            comm: process.comm,
            times: process.times,
            ..ExecSpan::default()
        });
    }
    analysis
}

#[test]
fn a_span_is_in_the_nearest_common_ancestor_of_its_ends() {
    let mut state = 7u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below.max(1)
    };
    // There are two trees of processes, of which the second one has long chains.
    let parents = (0..400u32).map(|at| match at {
        0 | 200 => None,
        1..200 => Some(random(at)),
        _ => Some(at - 1 - random(3).min(at - 201)),
    });
    let mut analysis = marked(parents);
    for process in &mut analysis.processes {
        process.tree.processes = u64::from(process.pid.0 % 7);
    }
    let up = |from: ProcessIx| {
        std::iter::successors(Some(from), |ix| analysis.processes[ix.0 as usize].parent)
    };
    let mut found: HashMap<String, Option<ProcessIx>> = HashMap::new();
    for step in Steps::new(&analysis, &[]).list() {
        found.insert(step.name.whole().to_owned(), step.process);
    }
    let mut apart = 0;
    for at in (0..400).step_by(2) {
        let (begin, end) = (ProcessIx(at), ProcessIx(at + 1));
        let above: Vec<ProcessIx> = up(begin).skip(1).collect();
        let walked = up(end).find(|ix| above.contains(ix));
        assert_eq!(found[&format!("m{at}")], walked, "{at}");
        apart += u32::from(walked.is_some() && walked != above.first().copied());
    }
    assert!(apart > 50, "{apart}");
}

/// A pid is first looked up among the pids of the host, and only then among the pids inside of containers.
#[test]
fn a_pid_of_the_host_goes_before_that_of_a_container() {
    let mut analysis = forest([None, Some(0), Some(1), Some(1)].into_iter());
    for (at, inside) in [(2, 1), (3, 41)] {
        analysis.processes[at].ns_pid = Tid(inside);
    }
    let with = |pid| -> Vec<u32> {
        let is = analysis.has_pid(Tgid(pid));
        let found = analysis.processes.iter().filter(|process| is(process));
        found.map(|process| process.pid.0).collect()
    };
    assert_eq!(with(1), [1], "the host has it");
    assert_eq!(with(41), [3], "the container has it");
    assert_eq!(with(77), [0u32; 0]);
    let document = with_document(&analysis);
    let inside: Vec<&Value> = document["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| &process["ns_pid"])
        .collect();
    assert_eq!(inside, [&Value::Null, &Value::Null, &json!(1), &json!(41)]);
}

/// The JSON document without any report.
fn with_document(analysis: &Analysis) -> Value {
    let document = with(analysis, &Ask::default(), |view| rendered(view, &[]));
    serde_json::from_str(&document).unwrap()
}

/// A forged file may have a chain of all its processes. If each process were followed up to the root, the work would
/// take minutes.
#[test]
fn spans_in_a_chain_take_time_linear_in_it() {
    let cost = |many: u32| {
        let recording = Recording::from(marked((0..many).map(|at: u32| at.checked_sub(1))));
        let ask = Ask::default();
        let view = View::new(&recording, &[], "x.bin", &ask);
        let before = cpu_time();
        let mut json = Vec::new();
        let ids = otlp::ids::Ids::recorded(&view.analysis.meta);
        otlp::write(&view, otlp::Encoding::Json, &[], &ids, &mut json).unwrap();
        let took = cpu_time() - before;
        let text = String::from_utf8(json).unwrap();
        assert!(text.contains(&format!("m{}", many - 2)), "{many}");
        took
    };
    let (few, all) = (cost(10_000), cost(80_000));
    assert!(all < 30 * few, "{few} ns for 10,000, {all} ns for 80,000");
}

#[test]
fn small_siblings_of_one_kind_are_one_line() {
    // The driver has one heavy child and thirty light ones with the same program.
    let mut analysis = forest((0..32).map(|at| (at > 0).then_some(0)));
    for process in &mut analysis.processes {
        process.argv = Argv::from_args(["cc1", &format!("{}.c", process.pid.0)]);
    }
    analysis.processes[9].times.on_cpu = 5_000_000_000;
    analysis.processes[11].status = Some(1 << 8);
    let text = with(&analysis, &Ask::default(), |view| {
        ReportKind::Tree.make(view).text(&STYLE)
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[2].contains("├─ cc1 9.c"), "{text}");
    assert!(
        lines[3].contains("└─ × 30 cc1, longest 1.0 ms, 1 failed"),
        "{text}"
    );
    assert!(lines[3].contains("30 ms"), "{text}");
    let plain = Style {
        ascii: true,
        markdown: false,
        ..STYLE
    };
    let text = with(&analysis, &Ask::default(), |view| {
        ReportKind::Tree.make(view).text(&plain)
    });
    assert!(
        text.contains("|- cc1 9.c") && text.contains("`- "),
        "{text}"
    );
}

#[test]
fn the_first_rows_are_those_of_the_whole_table() {
    let mut worlds = worlds();
    // The processes differ only by their names and their indices.
    let mut alike = forest((0..40).map(|_| None));
    for (at, process) in alike.processes.iter_mut().enumerate() {
        (process.pid, process.start) = (Tgid(7), Ktime(0));
        process.argv = Argv::from_args([format!("p{}", at % 3)]);
    }
    worlds.push(("alike", alike));
    let worlds = worlds.into_iter();
    let mut worlds: Vec<(&str, Recording)> = worlds
        .map(|(name, analysis)| (name, analysis.into()))
        .collect();
    for (name, recording) in &worlds {
        let all: Vec<_> = recording.analysis.process_ids().collect();
        for by in By::ALL {
            for sort in Sort::ALL {
                let rows = query::rows(recording, &all, by, sort, &[]);
                for most in [0, 1, 7, rows.len(), usize::MAX] {
                    let (first, count) = query::first_rows(
                        recording,
                        &all,
                        RowOrder {
                            by,
                            sort,
                            groups: &[],
                        },
                        most,
                    );
                    assert_eq!(count, rows.len());
                    assert_eq!(
                        first,
                        rows[..most.min(rows.len())],
                        "{name} {by:?} {sort:?}"
                    );
                }
                assert!(rows.is_sorted_by(|a, b| match sort {
                    Sort::Pid => a.pid <= b.pid,
                    Sort::Start => a.start <= b.start,
                    Sort::OnCpu => a.times.on_cpu >= b.times.on_cpu,
                    _ => true,
                }));
            }
        }
    }
    let (_, alike) = worlds.pop().unwrap();
    let all: Vec<_> = alike.analysis.process_ids().collect();
    let by_start = RowOrder {
        by: By::Process,
        sort: Sort::Start,
        groups: &[],
    };
    let (rows, _) = query::first_rows(&alike, &all, by_start, 20);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert!(names.is_sorted() && names[13] == "p0 (forked)" && names[14] == "p1 (forked)");
}
