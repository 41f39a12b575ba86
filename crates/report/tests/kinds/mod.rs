//! Tests that the times by kind (such as CPU or disk) are the same in every output, and add up.

#[path = "../../../analyze/tests/hand/mod.rs"]
pub mod hand;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use hand::{Hand, RUNNING, SLEEPS};
use serde_json::Value;
use tr_analyze::model::{Analysis, Basis};
use tr_analyze::{analyze, Options};
use tr_compare::diff::Run;
use tr_export::dataset;
use tr_export::dataset::Place;
use tr_format::event::LifeKind;
use tr_format::event::{Reason, SchedKind, Switch, Tgid, Tid, Timeout};
use tr_format::meta::{Extra, Scope};
use tr_format::network::{Address, Closed, Connect, Connected, ConnectionId, Ending, Endpoint};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_insight::Recording;
use tr_report::reports::{Ask, ReportKind};

use super::{with, STYLE};

const MS: i64 = 1_000_000;
const OPTIONS: Options = Options {
    from: None,
    to: None,
    cpu: None,
    timeline: true,
    scratch: None,
    samples: false,
    without_fast_path: false,
};

/// The columns in all tables that divide the critical path's time by kind.
const COLUMNS: [&str; 7] = [
    "on_cpu",
    "run_queue",
    "disk",
    "network",
    "sleep",
    "other",
    "unknown",
];

/// The kinds of time that the column `other` sums up.
const OTHER: [&str; 4] = ["terminal", "stopped", "blocked", "outside"];

type Times = BTreeMap<String, u64>;

/// The times by column, without those that are 0.
fn times<'a>(all: impl IntoIterator<Item = (&'a str, u64)>) -> Times {
    let mut sums = Times::new();
    for (kind, ns) in all.into_iter().filter(|(_, ns)| *ns > 0) {
        let column = if OTHER.contains(&kind) { "other" } else { kind };
        *sums.entry(column.to_owned()).or_default() += ns;
    }
    sums
}

fn json(analysis: &Analysis, kind: ReportKind) -> Value {
    with(analysis, &Ask::default(), |view| {
        kind.make(view).json().unwrap()
    })
}

/// The rows of a report's CSV by column.
fn csv(analysis: &Analysis, kind: ReportKind) -> Vec<BTreeMap<String, String>> {
    let csv = with(analysis, &Ask::default(), |view| {
        kind.make(view).sheet().csv().unwrap()
    });
    let csv = String::from_utf8(csv).unwrap();
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    // The columns before the name have no comma, so splitting at commas is enough.
    let row = |line: &str| {
        let cells = header.iter().zip(line.split(','));
        let cells = cells.map(|(column, cell)| ((*column).to_owned(), cell.to_owned()));
        cells.collect()
    };
    lines.map(row).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> u64 {
    row[column].parse().unwrap_or(0)
}

/// The critical path's times by column, once for each place that shows them: the JSON's shares and steps, the CSV, and
/// others.
fn times_shown(analysis: &Analysis) -> Vec<(&'static str, Times)> {
    let path = &json(analysis, ReportKind::CriticalPath)["path"];
    let shares = path["shares"].as_array().unwrap();
    let shares = shares.iter().map(|share| {
        (
            share["what"].as_str().unwrap(),
            share["time_ns"].as_u64().unwrap(),
        )
    });
    let steps = path["steps"].as_array().unwrap();
    let steps = steps.iter().flat_map(|step| {
        COLUMNS.map(|column| (column, step[format!("{column}_ns")].as_u64().unwrap()))
    });
    let rows = csv(analysis, ReportKind::CriticalPath);
    let rows = rows
        .iter()
        .flat_map(|row| COLUMNS.map(|column| (column, number(row, &format!("{column}_ns")))));
    let chosen: Vec<_> = analysis.process_ids().collect();
    let place = Place::of(&analysis.meta, None, None);
    let tables = dataset::tables(&Recording::from(analysis.clone()), &chosen, &place);
    let table = |name: &str| tables.iter().find(|table| table.name == name).unwrap();
    let at = |name: &str, column: &str| {
        let columns = table(name).columns.iter();
        columns
            .map(|column| column.0)
            .position(|name| name == column)
            .unwrap()
    };
    let int = |value: &Option<dataset::Value>| match value {
        Some(dataset::Value::Int(ns)) => u64::try_from(*ns).unwrap(),
        None => 0,
        other => panic!("{other:?}"),
    };
    let run = COLUMNS.map(|column| {
        let at = at("runs", &format!("path_{column}_ns"));
        (column, int(&table("runs").rows[0][at]))
    });
    let (kind, ns) = (at("path", "kind"), at("path", "ns"));
    let paths = table("path").rows.iter().map(|row| match &row[kind] {
        Some(dataset::Value::Text(kind)) => (kind.as_str(), int(&row[ns])),
        other => panic!("{other:?}"),
    });
    vec![
        ("shares", times(shares)),
        ("steps", times(steps)),
        ("CSV", times(rows)),
        ("runs", times(run)),
        ("path", times(paths)),
    ]
}

/// Verifies that all outputs of a recording have the same times by kind, and returns these times.
fn check(name: &str, analysis: &Analysis) -> Times {
    let mut shown = times_shown(analysis);
    let path = &json(analysis, ReportKind::CriticalPath)["path"];
    let (_, first) = &shown[0];
    assert_eq!(
        first.values().sum::<u64>(),
        path["wall_ns"].as_u64().unwrap(),
        "{name}"
    );
    for (output, times) in &shown {
        assert_eq!(times, first, "{name}: {output}");
    }
    let of = |kind: &str| first.get(kind).copied().unwrap_or(0);
    let demands = Run::new(name, &Recording::from(analysis.clone())).demands;
    let demands = demands.iter().map(|(demand, ns)| (demand.name(), *ns));
    let demands: BTreeMap<&str, u64> = demands.collect();
    assert_eq!(demands["disk-path"], of("disk"), "{name}");
    if analysis.meta.has(Extra::Network) {
        let waited = &json(analysis, ReportKind::Network)["path_wait_ns"];
        assert_eq!(waited.as_u64().unwrap(), of("network"), "{name}");
        assert_eq!(demands["network-path"], of("network"), "{name}");
    }
    for step in csv(analysis, ReportKind::Steps) {
        let kinds = step.keys().filter(|column| column.starts_with("path_"));
        let kinds: u64 = kinds.map(|column| number(&step, column)).sum();
        assert!(
            kinds == number(&step, "wall_ns") || step["path_on_cpu_ns"].is_empty(),
            "{name}: {step:?}"
        );
    }
    shown.swap_remove(0).1
}

/// The usual test run covers the small stored recordings (fixtures), and `make test-long` covers all of them.
#[test]
fn of_each_fixture() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let files = |directory: &str| {
        let files = std::fs::read_dir(fixtures.join(directory)).unwrap();
        files.map(|entry| entry.unwrap().path())
    };
    let files = ["advice", "format", "traces"].into_iter().flat_map(files);
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "bin"));
    let long = std::env::var_os("TR_LONG").is_some();
    let small = |path: &PathBuf| long || path.metadata().unwrap().len() < 12_000;
    let files = files.filter(small);
    let mut seen = BTreeMap::<String, u64>::new();
    let mut all: Vec<PathBuf> = files.collect();
    all.sort();
    for file in all {
        let trace = Trace::open(Source::file(std::fs::File::open(&file).unwrap()).unwrap());
        let analysis = analyze(&trace.unwrap(), &OPTIONS);
        let has_path = json(&analysis, ReportKind::CriticalPath)["path"].is_object();
        if analysis.basis() != Basis::Events || !has_path {
            continue;
        }
        for (kind, _) in check(&file.to_string_lossy(), &analysis) {
            *seen.entry(kind).or_default() += 1;
        }
    }
    for kind in COLUMNS {
        assert!(seen.contains_key(kind), "no fixture has {kind}: {seen:?}");
    }
}

/// Makes task 10 wait for a socket in a system call, for the given span in ms. The task `waker` ends the wait. If
/// `waker` is 0, a time-out ends the wait, and the call is one that waits for an answer with a time limit.
fn wait(hand: &mut Hand, span: Range<i64>, waker: u32) {
    let length = u64::try_from((span.end - span.start) * MS).unwrap();
    let timeout = match waker {
        0 => Timeout::after(length).asked(),
        _ => Timeout::UNKNOWN,
    };
    let sleep = SchedKind::Switch(Switch {
        prev: Tid(10),
        next: Tid(0),
        prev_state: SLEEPS,
        preempt: false,
        iowait: false,
        reason: Reason::SocketRead,
        timeout,
    });
    hand.sched(0, span.start * MS, sleep)
        .waking(0, span.end * MS, waker, 10)
        .switch(0, span.end * MS + 1, 0, RUNNING, 10);
}

/// A command that waits most of its time, while a connection is open.
fn client(begun: i64, established: Option<i64>, waited: (i64, i64), waker: u32) -> Analysis {
    let address = Address::V4(std::net::Ipv4Addr::LOCALHOST);
    let end = |port| Endpoint { address, port };
    let (tid, tgid, id) = (Tid(10), Tgid(10), ConnectionId(1));
    let mut hand = Hand::new(Scope::Command, 2_100 * MS);
    hand.meta.root = Some(tgid);
    hand.meta.extras = Some(vec![Extra::Network as u8]);
    hand.snapshot(-10, 10, 10, 1, None);
    let remote = end(8080);
    let connect = Connect {
        id,
        tid,
        tgid,
        remote,
    };
    hand.lives(0, begun * MS, LifeKind::Connect(connect));
    if let Some(at) = established {
        let local = end(40_000);
        hand.lives(0, at * MS, LifeKind::Connected(Connected { id, local }));
    }
    wait(&mut hand, waited.0..waited.1, waker);
    let closed = Closed {
        id,
        by: Some((tid, tgid)),
        ending: match established {
            Some(_) => Ending::Closed,
            None => Ending::TimedOut,
        },
        sent: 1,
        received: 1,
    };
    hand.lives(0, (waited.1 + 1) * MS, LifeKind::Closed(closed));
    analyze(&hand.trace(), &OPTIONS)
}

#[test]
fn a_server_that_is_not_recorded_and_a_time_out_are_network() {
    let server = client(50, Some(60), (100, 1_300), 99);
    let time_out = client(50, None, (60, 2_000), 0);
    for (name, analysis, ns) in [("server", server, 1_200), ("time-out", time_out, 1_940)] {
        check(name, &analysis);
        let waited = &json(&analysis, ReportKind::Network)["path_wait_ns"];
        assert_eq!(waited.as_i64().unwrap() / MS, ns, "{name}");
        let text = with(&analysis, &Ask::default(), |view| {
            ReportKind::CriticalPath.make(view).text(&STYLE)
        });
        let bar = text.lines().find(|line| line.contains('█')).unwrap();
        let words = ["network", "wait for 127.0.0.1:8080"];
        assert!(
            words.iter().any(|word| bar.contains(word)),
            "{name}: {text}"
        );
        let columns = text.lines().find(|line| line.contains("length")).unwrap();
        assert!(columns.contains("network"), "{name}: {text}");
        assert!(!columns.contains("sleep"), "{name}: {text}");
    }
}
