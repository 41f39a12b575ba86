//! Tests reports of recordings in which a part of the facts is missing: the text says so, and JSON has null.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // of our own tables, in a test

mod common;

use serde_json::{json, Value};
use tr_analyze::memory::{MemoryEvent, MemoryKind};
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::network::Connection;
use tr_analyze::{analyze, Options};
use tr_format::counters::{Counter, Counters};
use tr_format::event::{Argv, CpuId, Ktime};
use tr_format::meta::{Extra, Known, Method, Origin, RecordingFacts};
use tr_format::network::{Address, Ending, Endpoint};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_insight::views::query;
use tr_insight::views::query::{By, Sort};
use tr_insight::Recording;
use tr_report::reports::ReportKind;
use tr_sim::config::Config;
use tr_sim::scenario;

use common::report;

const MIB: u64 = 1 << 20;
/// A simulated build. The use of memory and I/O by its processes is not known.
fn build(options: &Options) -> Analysis {
    let config = Config::new(scenario::make(4, 12), 3, 300_000_000).seed(7);
    let (file, ..) = tr_sim::file::record_to(&config, Vec::new()).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let mut analysis = analyze(&trace, options);
    for process in &mut analysis.processes {
        (process.resources.max_rss, process.resources.io) = (None, None);
    }
    analysis
}

fn whole() -> Analysis {
    build(&Options {
        timeline: true,
        ..Options::default()
    })
}

/// The lines of a text that begin with these words.
fn lines(text: &str, begin: &str) -> String {
    let lines = text.lines().filter(|line| line.starts_with(begin));
    lines.collect::<Vec<_>>().join("\n")
}

/// Gives an analysis samples of the machine's counters, a millisecond apart.
fn sample(analysis: &mut Analysis, samples: &[&[(Counter, u64)]]) {
    let start = analysis.start.0;
    let samples = samples.iter().zip(0..).map(|(values, at)| {
        let mut counters = Counters::default();
        for (counter, value) in *values {
            counters.set(*counter, *value);
        }
        (Ktime(start + at * 1_000_000), counters)
    });
    analysis.machine.counters = samples.collect();
}

#[test]
fn readings_of_resident_memory_may_miss_a_peak() {
    let mut analysis = whole();
    let found = |analysis: &Analysis| {
        let (text, json) = report(analysis, ReportKind::Memory);
        let lines = lines(&text, "All processes");
        (lines, json["resident_bytes"].clone())
    };
    // There is only one reading of the memory, after all processes have ended.
    sample(&mut analysis, &[&[], &[(Counter::Resident, 0)]]);
    assert_eq!(found(&analysis), (String::new(), Value::Null));
    analysis.processes[1].resources.max_rss = Some(30 * MIB);
    let least = "All processes together: at least 30 MiB resident";
    assert_eq!(found(&analysis), (least.into(), json!(30 * MIB)));
    // The process may have had its largest memory before the analyzed span.
    analysis.processes[1].started_before = true;
    assert_eq!(found(&analysis), (String::new(), Value::Null));
    sample(&mut analysis, &[&[], &[(Counter::Resident, 20 * MIB)]]);
    let least = "All processes together: at least 20 MiB resident";
    assert_eq!(found(&analysis), (least.into(), json!(20 * MIB)));
    analysis.memory.events.push(MemoryEvent {
        time: analysis.end,
        thread: ThreadIx(0),
        kind: MemoryKind::Killed(Some(60 * MIB)),
    });
    let least = "All processes together: at least 60 MiB resident";
    assert_eq!(found(&analysis), (least.into(), json!(60 * MIB)));
    sample(&mut analysis, &[&[], &[(Counter::Resident, 70 * MIB)]]);
    let most = "All processes together: at most 70 MiB resident, of readings a second apart";
    assert_eq!(found(&analysis), (most.into(), json!(70 * MIB)));
    // The recording has no readings of the machine's memory.
    analysis.machine.counters.clear();
    assert_eq!(found(&analysis), (String::new(), Value::Null));
}

#[test]
fn the_peak_of_a_cgroup_counts_if_it_grew() {
    use Counter::{CgroupMemory, CgroupMemoryLimit, CgroupMemoryPeak};
    let mut analysis = whole();
    let found = |analysis: &Analysis| {
        let (text, json) = report(analysis, ReportKind::Memory);
        let figures = ["bytes", "peak_bytes", "limit_bytes"];
        let figures = figures.map(|figure| json[format!("cgroup_{figure}")].clone());
        (lines(&text, "The cgroup"), figures)
    };
    let at = |used: u64, peak: u64| {
        [
            (CgroupMemory, used * MIB),
            (CgroupMemoryPeak, peak * MIB),
            (CgroupMemoryLimit, 60 * MIB),
        ]
    };
    // The cgroup had reached its limit already before the recording.
    sample(&mut analysis, &[&at(12, 60), &at(15, 60), &at(11, 60)]);
    let text = "The cgroup used at least 15 MiB of 60 MiB: 25 %";
    let figures = [json!(15 * MIB), Value::Null, json!(60 * MIB)];
    assert_eq!(found(&analysis), (text.into(), figures));
    sample(&mut analysis, &[&at(12, 20), &at(15, 30), &at(11, 30)]);
    let text = "The cgroup used 30 MiB of 60 MiB: 50 %";
    let figures = [json!(15 * MIB), json!(30 * MIB), json!(60 * MIB)];
    assert_eq!(found(&analysis), (text.into(), figures));
    // Without a limit, cgroup v1 shows the largest possible number of pages.
    let unlimited = [
        (CgroupMemory, 12 * MIB),
        (CgroupMemoryLimit, 9_223_372_036_854_771_712),
    ];
    sample(&mut analysis, &[&unlimited]);
    let figures = [json!(12 * MIB), Value::Null, Value::Null];
    assert_eq!(found(&analysis), (String::new(), figures));
}

#[test]
fn an_absent_peak_has_its_reason() {
    let mut analysis = whole();
    let head = |analysis: &Analysis| {
        let (text, _) = report(analysis, ReportKind::Memory);
        text.lines().next().unwrap_or_default().to_owned()
    };
    let exits = "Peak memory: not known before the processes' exits";
    assert_eq!(head(&analysis), exits);
    analysis.meta.origin = Some(Origin {
        method: Method::Ptrace,
        facts: RecordingFacts {
            memory: Known::Absent,
            ..RecordingFacts::default()
        },
    });
    let method = "Peak memory: not known of a recording by ptrace";
    assert_eq!(head(&analysis), method);
}

#[test]
fn the_bytes_of_a_living_process_are_unknown() {
    let mut analysis = whole();
    for process in &mut analysis.processes {
        (process.alive, process.resources.io) = (false, Some((MIB, 0)));
    }
    let sum = analysis.processes.len() as u64;
    let (text, json) = report(&analysis, ReportKind::Disk);
    let read = format!("\n{sum} MiB read from disks, 0 B written");
    assert!(text.contains(&read), "{text}");
    assert_eq!(
        (&json["read_bytes"], &json["written_bytes"]),
        (&json!(sum * MIB), &json!(0))
    );
    // One process has not exited, but one of its threads has. Another process has no figures at all.
    analysis.processes[1].alive = true;
    (
        analysis.processes[2].alive,
        analysis.processes[2].resources.io,
    ) = (true, None);
    let (text, json) = report(&analysis, ReportKind::Disk);
    assert!(text.contains("\nat least "), "{text}");
    assert_eq!(
        (&json["read_bytes"], &json["written_bytes"]),
        (&Value::Null, &Value::Null)
    );
    let rows = json["rows"].as_array().unwrap().iter();
    let unknown = rows.filter(|row| row["read_bytes"].is_null());
    assert!((1..=2).contains(&unknown.count()), "{json}");
    assert!(text.contains("≥ 1 MiB"), "{text}");
}

#[test]
fn the_bytes_of_an_open_connection_are_unknown() {
    let mut analysis = whole();
    analysis.meta.extras = Some(vec![Extra::Network as u8]);
    let end = |port| Endpoint {
        address: Address::V4([10, 0, 0, 1].into()),
        port,
    };
    let open = Connection {
        thread: Some(ThreadIx(0)),
        accepted: false,
        begun: analysis.start,
        established: Some(analysis.start),
        closed: None,
        ending: None,
        local: Some(end(40_000)),
        remote: end(443),
        bytes: None,
        peer: None,
    };
    let closed = Connection {
        closed: Some(analysis.end),
        ending: Some(Ending::Closed),
        remote: end(80),
        bytes: Some((2048, 4096)),
        ..open.clone()
    };
    // The connection was not established, so no bytes are known for it.
    let refused = Connection {
        established: None,
        ..open.clone()
    };
    let bytes = |json: &Value| {
        let rows = ["hosts", "processes"].into_iter();
        let rows = rows.flat_map(|of| json[of].as_array().unwrap());
        rows.map(|row| row["received_bytes"].clone())
            .collect::<Vec<_>>()
    };
    analysis.network.connections = vec![open.clone()];
    let (text, json) = report(&analysis, ReportKind::Network);
    let head = "1 TCP connection · bytes not known before they are closed\n";
    assert!(text.starts_with(head), "{text}");
    assert_eq!(bytes(&json), [Value::Null, Value::Null]);
    analysis.network.connections = vec![open, closed.clone()];
    let (text, json) = report(&analysis, ReportKind::Network);
    let head = "2 TCP connections · at least 4 KiB received, 2 KiB sent\n";
    assert!(text.starts_with(head) && text.contains("≥ 4 KiB"), "{text}");
    assert_eq!(bytes(&json), [json!(4096), Value::Null, Value::Null]);
    analysis.network.connections = vec![refused, closed];
    let (text, json) = report(&analysis, ReportKind::Network);
    let head = "2 TCP connections · 4 KiB received, 2 KiB sent\n";
    assert!(text.starts_with(head), "{text}");
    assert_eq!(bytes(&json), [json!(4096), json!(0), json!(4096)]);
}

/// In this recording of 100 ms, the number of running tasks is known for only 1 ms.
#[test]
fn shares_are_of_unknown_time_too() {
    let mut analysis = whole();
    let line = |analysis: &Analysis, kind, of: &str| {
        let (text, _) = report(analysis, kind);
        let mut lines = text.lines().filter(|line| line.contains(of));
        lines.next().unwrap_or_default().trim().to_owned()
    };
    assert!(!line(&analysis, ReportKind::Top, "CPUs  ").contains("least"));
    assert!(!line(&analysis, ReportKind::Top, "of CPU ").contains("least"));
    analysis.totals.times.unknown = analysis.totals.times.sum();
    let cpus = line(&analysis, ReportKind::Top, "CPUs  ");
    assert!(cpus.contains("at least "), "{cpus}");
    assert!(cpus.ends_with("others ? · idle ?"), "{cpus}");
    let head = line(&analysis, ReportKind::Top, " of CPU · ");
    assert_eq!(head.matches("· at least ").count(), 2, "{head}");
}

/// The number of running tasks is known as long as all running tasks are on CPU 0.
#[test]
fn averages_name_the_time_that_they_are_of() {
    let analysis = build(&Options {
        timeline: true,
        cpu: Some(CpuId(0)),
        ..Options::default()
    });
    let (text, json) = report(&analysis, ReportKind::Parallelism);
    let sum = |key: &str| {
        let times = json[key].as_array().unwrap().iter();
        times.map(|ns| ns.as_u64().unwrap()).sum::<u64>()
    };
    let unknown = json["unknown_ns"].as_u64().unwrap();
    let whole = sum("running_ns") + unknown;
    assert_eq!(whole, analysis.end.since(analysis.start));
    assert!(unknown * 10 > whole, "{json}");
    let share = format!("({:.0} %) unknown", unknown as f64 * 100.0 / whole as f64);
    assert!(text.contains(&share), "{share}: {text}");
    assert!(text.contains("(3) for at least "), "{text}");
    assert!(
        text.contains("could have been busy on average (over the "),
        "{text}"
    );
    let (text, _) = report(&analysis, ReportKind::RunQueue);
    assert!(text.contains("the table leaves that time out"), "{text}");
}

/// All reports propose the same larger machine.
#[test]
fn reports_tell_of_the_same_machines() {
    let analysis = whole();
    let (_, json) = report(&analysis, ReportKind::RunQueue);
    let machines = json["wanted"]["machines"].as_array().unwrap().iter();
    let machines: Vec<u64> = machines
        .map(|machine| machine["cpus"].as_u64().unwrap())
        .collect();
    assert_eq!(machines[..2], [3, 4], "{json}");
    let (text, _) = report(&analysis, ReportKind::Parallelism);
    for cpus in machines {
        assert!(text.contains(&format!(" of {cpus} CPUs")), "{cpus}: {text}");
    }
}

/// If several processes have the largest resident set, all reports name the first one.
#[test]
fn reports_name_the_same_largest_process() {
    let mut analysis = whole();
    for (at, name) in [(1, "one"), (2, "two")] {
        let process = &mut analysis.processes[at];
        process.resources.max_rss = Some(30 * MIB);
        process.argv = Argv::from_args([name]);
    }
    let (text, _) = report(&analysis, ReportKind::Memory);
    assert!(text.starts_with("Peak memory: 30 MiB, one"), "{text}");
    let (text, _) = report(&analysis, ReportKind::Top);
    assert!(text.contains("Peak memory   30 MiB in one"), "{text}");
}

/// The starts of processes count from the start of the recording, also if only a span of the recording is analyzed. All
/// other times count in the same way.
#[test]
fn starts_are_those_in_the_recording() {
    let analysis = build(&Options {
        from: Some(20_000_000),
        ..Options::default()
    });
    let chosen: Vec<_> = analysis.process_ids().collect();
    let rows = query::rows(
        &Recording::from(analysis.clone()),
        &chosen,
        By::Process,
        Sort::Pid,
        &[],
    );
    let mut rows: Vec<_> = rows.iter().map(|row| (row.pid, row.start)).collect();
    rows.sort_unstable();
    let processes = analysis.processes.iter();
    let since = |start: Ktime| start.since(analysis.meta.start);
    let mut want: Vec<_> = processes
        .map(|process| (Some(process.pid.0), since(process.start)))
        .collect();
    want.sort_unstable();
    assert_eq!(rows, want);
    assert!(
        want.iter().any(|(_, start)| *start > 20_000_000),
        "{want:?}"
    );
}

/// If only a part of a recording (a span) is analyzed, the critical path begins and ends with this part, and not with
/// the exec of COMMAND and the end of the recording.
#[test]
fn the_path_of_a_span_says_so() {
    let title = |options: &Options| {
        let (text, _) = report(&build(options), ReportKind::CriticalPath);
        text.lines().next().unwrap_or_default().to_owned()
    };
    let mut options = Options {
        timeline: true,
        ..Options::default()
    };
    let whole = title(&options);
    assert!(whole.contains("from the exec at"), "{whole}");
    options.from = Some(20_000_000);
    options.to = Some(40_000_000);
    let span = title(&options);
    let words = "from the span's begin at 0.020 s to the span's end at 0.040 s";
    assert!(span.contains(words), "{span}");
}
