//! Tests the commands on trace files (info, dump, verify, recover) with real recordings, and compares them with a
//! second reader that was written from the specification alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "../fuzz/src/pieces.rs"]
mod pieces;

mod common;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::Arguments;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

fn tr(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tr"))
        .args(args)
        .output()
        .unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The lines of a command's JSON output, each with its fields in sorted order, and all lines sorted.
fn canonical(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let line = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line)
            .unwrap()
            .to_string()
    };
    let mut lines: Vec<String> = text.lines().map(line).collect();
    lines.sort();
    lines
}

fn checksum(lines: &[String]) -> u32 {
    lines.iter().fold(0, |sum, line| {
        let mut hasher = crc32fast::Hasher::new_with_initial(sum);
        hasher.update(line.as_bytes());
        hasher.finalize()
    })
}

/// A Python that has the package zstandard. The first Python on PATH may lack it.
fn python() -> Option<&'static str> {
    let has = |python: &&str| {
        let import = ["-c", "import zstandard"];
        let tried = Command::new(python).args(import).output();
        tried.is_ok_and(|tried| tried.status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has)
}

fn main() {
    let args = Arguments::from_args();
    let lacks = python()
        .is_none()
        .then(|| "python3-zstandard is not installed".to_owned());
    let plain: [(&str, fn()); 8] = [
        (
            "frames_and_fields_of_a_later_version_are_counted",
            frames_and_fields_of_a_later_version_are_counted,
        ),
        (
            "a_recovered_trace_is_intact_and_has_the_same_events",
            a_recovered_trace_is_intact_and_has_the_same_events,
        ),
        (
            "scripts_of_a_fixture_are_read",
            scripts_of_a_fixture_are_read,
        ),
        ("other_files_are_refused", other_files_are_refused),
        ("a_trace_is_read_from_a_pipe", a_trace_is_read_from_a_pipe),
        (
            "info_of_a_large_trace_comes_from_its_summary",
            info_of_a_large_trace_comes_from_its_summary,
        ),
        (
            "truncation_while_reading_is_reported",
            truncation_while_reading_is_reported,
        ),
        (
            "a_trace_that_cannot_be_mapped_is_read",
            a_trace_that_cannot_be_mapped_is_read,
        ),
    ];
    let second_reader: [(&str, fn()); 3] = [
        (
            "a_short_reader_counts_the_events",
            a_short_reader_counts_the_events,
        ),
        (
            "fixtures_are_read_forever_and_by_both_readers",
            fixtures_are_read_forever_and_by_both_readers,
        ),
        (
            "summaries_of_real_recordings_are_right",
            summaries_of_real_recordings_are_right,
        ),
    ];
    let trial = |(name, test): (&str, fn()), reason| {
        common::trial(name, reason, move || {
            test();
            Ok(())
        })
    };
    let plain = plain.into_iter().map(|test| trial(test, None));
    let second_reader = second_reader
        .into_iter()
        .map(|test| trial(test, lacks.clone()));
    libtest_mimic::run(&args, plain.chain(second_reader).collect()).exit();
}

/// `reader.py` next to FORMAT.md has at most 60 lines and counts the same events as `tr info`, even in a damaged file.
fn a_short_reader_counts_the_events() {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/format/reader.py");
    assert!(std::fs::read_to_string(&reader).unwrap().lines().count() <= 60);
    let dir = tempfile::tempdir().unwrap();
    let damaged = dir.path().join("damaged.bin");
    let mut bytes = std::fs::read(fixture("traces/demo.bin")).unwrap();
    bytes.truncate(15_000);
    bytes[9_000] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    for path in [
        fixture("traces/demo.bin"),
        fixture("format/3.10.bin"),
        damaged,
    ] {
        let json = |output: &Output| -> serde_json::Value {
            assert!(output.status.success(), "{output:?}");
            serde_json::from_slice(&output.stdout).unwrap()
        };
        let info = json(&tr(&["info", text(&path), "--format", "json"]));
        let mut short = Command::new(python().expect("python3-zstandard"));
        let short = json(&short.arg(&reader).arg(&path).output().expect("python3"));
        let events = short["sched"].as_u64().unwrap() + short["life"].as_u64().unwrap();
        assert_eq!(Some(events), info["events"].as_u64(), "{short}");
        for field in ["format_version", "host", "kernel"] {
            assert_eq!(short[field], info[field], "{field}");
        }
    }
}

/// Every published version of the format stays readable, with exactly the same events for both readers.
fn fixtures_are_read_forever_and_by_both_readers() {
    for (name, events, sum) in [
        ("format/3.0.bin", 3000, 1_786_475_574),
        ("format/3.2.bin", 259, 1_698_529_372),
        ("format/3.3.bin", 262, 168_161_610),
        ("format/3.4.bin", 909, 2_407_975_475),
        ("format/3.5.bin", 319, 102_561_696),
        ("format/3.6.bin", 1041, 2_960_417_728),
        ("format/3.7.bin", 359, 2_215_359_424),
        ("format/3.8.bin", 273, 1_968_697_035),
        ("format/3.9.bin", 637, 1_628_173_855),
        ("format/3.10.bin", 418, 2_885_141_537),
        ("format/3.10-timeouts.bin", 241, 2_539_126_646),
        ("format/3.10-scripts.bin", 173, 1_551_913_751),
        ("traces/demo.bin", 2170, 3_612_610_818),
    ] {
        let path = fixture(name);
        let lines = canonical(&tr(&["dump", "--format", "json", text(&path)]));
        let python = Command::new(python().expect("python3-zstandard"))
            .arg(fixture("read.py"))
            .arg(&path)
            .env("PYTHONIOENCODING", "utf-8")
            .output()
            .expect("python3");
        let other = canonical(&python);
        assert_eq!(lines.len(), other.len(), "{name}");
        for (ours, theirs) in lines.iter().zip(&other) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!((lines.len(), checksum(&lines)), (events, sum), "{name}");
        let verified = tr(&["verify", text(&path)]);
        assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    }
}

fn scripts_of_a_fixture_are_read() {
    let path = fixture("format/3.10-scripts.bin");
    let output = tr(&["info", text(&path), "--format", "json"]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let step = "#!/bin/bash -e\n# A tolerated failure, a builtin that decides, and a secret.\n\
                false || true\nexport API_TOKEN=***\n[ -s out ] || exit 3\n";
    let want = serde_json::json!([
        {"path": "/tmp/tr-fixtures/w/changed.sh", "text": null},
        {"path": "/tmp/tr-fixtures/w/step.sh", "text": step},
    ]);
    assert_eq!(
        (&info["scripts"], &info["scripts_left_out"]),
        (&want, &1.into())
    );
}

fn frames_and_fields_of_a_later_version_are_counted() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&pieces::later()).unwrap();
    let output = tr(&["info", text(file.path()), "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(info["format_version"], "3.9");
    assert_eq!(
        info["unknown"],
        serde_json::json!({"frames": 1, "events": 1, "fields": 3})
    );
    for command in ["info", "verify"] {
        let output = tr(&[command, text(file.path())]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 frames, 1 events, 3 fields"), "{said}");
    }
}

/// Copies of a fixture that are damaged in different ways, each with a name for the damage.
fn damaged() -> Vec<(&'static str, Vec<u8>)> {
    let whole = std::fs::read(fixture("traces/demo.bin")).unwrap();
    let (half, most) = (whole.len() / 2, whole.len() * 9 / 10);
    let mut flipped = whole.clone();
    flipped[half] ^= 0x10;
    let mut zeros = whole.clone();
    zeros[half..half + 4000].fill(0);
    let mut both = zeros.clone();
    both.truncate(most);
    let mut gone = whole.clone();
    gone.drain(half..half + 3000);
    vec![
        ("cut", whole[..most].to_vec()),
        ("cut early", whole[..whole.len() / 10].to_vec()),
        ("flipped", flipped),
        ("zeros", zeros),
        ("zeros and cut", both),
        ("gone", gone),
        ("no trailer", whole[..whole.len() - 1].to_vec()),
    ]
}

fn a_recovered_trace_is_intact_and_has_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    for (what, bytes) in damaged() {
        let (bad, good) = (dir.path().join("bad.bin"), dir.path().join("good.bin"));
        std::fs::write(&bad, bytes).unwrap();
        let verified = tr(&["verify", text(&bad)]);
        assert_eq!(verified.status.code(), Some(1), "{what}: {verified:?}");
        assert!(
            String::from_utf8_lossy(&verified.stdout).contains("byte "),
            "{what}"
        );

        let recovered = tr(&["recover", text(&bad), "-o", text(&good)]);
        assert!(recovered.status.success(), "{what}: {recovered:?}");
        let verified = tr(&["verify", text(&good)]);
        assert_eq!(verified.status.code(), Some(0), "{what}: {verified:?}");

        let analyze = |path: &Path| {
            let output = tr(&["analyze", text(path), "--format", "json", "--top", "1000"]);
            assert!(output.status.success(), "{what}: {output:?}");
            serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
        };
        let (mut before, mut after) = (analyze(&bad), analyze(&good));
        // The recovered trace has additional events that report the losses, so the numbers of events are not compared.
        for analysis in [&mut before, &mut after] {
            analysis["trace"]["events"].take();
            // Only the end of the trace was missing, so all events are recovered and nothing is reported as lost.
            if what == "no trailer" {
                analysis["trace"]["truncated"].take();
                analysis["trace"]["warnings"].take();
            }
        }
        assert_eq!(before, after, "{what}");
        let warned = tr(&["analyze", text(&bad)]);
        assert!(!warned.stderr.is_empty(), "{what}: no warning");

        // A file is recovered onto itself. The file is replaced only when the output is complete.
        let recovered = tr(&["recover", text(&bad), "-o", text(&bad)]);
        assert!(recovered.status.success(), "{what}");
        assert_eq!(
            std::fs::read(&bad).unwrap(),
            std::fs::read(&good).unwrap(),
            "{what}"
        );
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing else is left behind: {left:?}");
}

fn other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut later = std::fs::read(fixture("traces/demo.bin")).unwrap();
    later[8] = 7;
    let sum = crc32fast::hash(&later[..12]);
    later[12..16].copy_from_slice(&sum.to_le_bytes());
    for (bytes, said) in [
        (&b""[..], "not a tr recording"),
        (b"#!/bin/sh\nexit 0\n", "not a tr recording"),
        (&later, "version 7"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        for command in ["verify", "analyze", "dump", "info"] {
            let output = tr(&[command, text(&path)]);
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command}: {error}");
            assert!(error.contains(said), "{command}: {error}");
        }
    }
}

fn a_trace_is_read_from_a_pipe() {
    let whole = std::fs::read(fixture("traces/demo.bin")).unwrap();
    let path = fixture("traces/demo.bin");
    for args in [
        &["analyze", "-", "--format", "json"][..],
        &["dump", "-"],
        &["verify", "-"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tr"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let _bound = common::bound::bound(&child);
        let mut stdin = child.stdin.take().unwrap();
        let bytes = whole.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes));
        let piped = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let named: Vec<&str> = args
            .iter()
            .map(|arg| if *arg == "-" { text(&path) } else { arg })
            .collect();
        let file = tr(&named);
        assert!(piped.status.success() && file.status.success(), "{args:?}");
        if args[0] != "verify" {
            assert_eq!(piped.stdout, file.stdout, "{args:?}");
        }
    }
}

/// Writes a simulated trace of two tasks that exchange messages (ping-pong), with about this number of events.
fn simulated(path: &Path, events: u64) {
    use tr_sim::config::{Config, Follow};
    let mut config = Config::new(tr_sim::scenario::pipe(), 2, u64::MAX >> 12);
    config.follow = Follow::All;
    config.max_events = events;
    let file = std::fs::File::create(path).unwrap();
    tr_sim::file::record_to(&config, std::io::BufWriter::new(file)).unwrap();
}

fn info(path: &Path, options: &[&str]) -> serde_json::Value {
    let output = tr(&[&["info", text(path), "--format", "json"], options].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The JSON document without these fields. The document must have had the fields.
fn but(mut one: serde_json::Value, fields: &[&str]) -> serde_json::Value {
    for field in fields {
        one.as_object_mut().unwrap().remove(*field).unwrap();
    }
    one
}

const BY_ANALYSIS: [&str; 4] = ["analyzed", "unknown_ns", "anomalies", "clocks"];

fn info_of_a_large_trace_comes_from_its_summary() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.bin");
    simulated(&path, 150_000);
    let (summary, full) = (info(&path, &[]), info(&path, &["--full"]));
    assert_eq!(
        (&summary["analyzed"], &full["analyzed"]),
        (&false.into(), &true.into())
    );
    assert!(full["events"].as_u64().unwrap() >= 150_000);
    assert!(full["unknown_ns"].is_u64() && full["anomalies"].is_object());
    for field in BY_ANALYSIS.iter().skip(1) {
        assert!(summary[field].is_null(), "{field}");
    }
    assert_eq!(but(summary, &BY_ANALYSIS), but(full.clone(), &BY_ANALYSIS));
    let said = |options: &[&str]| {
        let output = tr(&[&["info", text(&path)], options].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said(&[]).matches("not known without --full").count(), 3);
    assert!(!said(&["--full"]).contains("without --full"));

    // A truncated trace has no summary at its end, so `tr info` counts the events by analyzing it.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 16]).unwrap();
    let cut = info(&path, &[]);
    assert_eq!(cut["analyzed"], true);
    assert_eq!(cut["events"], full["events"]);
}

/// The counts in the summary of a trace, or of a recovered trace, equal the numbers of the trace's events. A reader
/// that was written from the specification alone gets the same counts.
fn summaries_of_real_recordings_are_right() {
    use tr_format::outline::Outline;
    use tr_format::source::Source;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anew.bin");
    let mut inverted = 0;
    for entry in std::fs::read_dir(fixture("traces")).unwrap() {
        let old = entry.unwrap().path();
        if old.extension().is_none_or(|extension| extension != "bin") {
            continue;
        }
        let read = |path: &Path| {
            let file = std::fs::File::open(path).unwrap();
            Outline::read(&Source::file(file).unwrap()).unwrap()
        };
        let recorded = read(&old).expect("a summary with counts").tally;
        let written = tr(&["recover", text(&old), "-o", text(&path)]);
        assert!(written.status.success(), "{written:?}");
        let tally = read(&path).unwrap().tally;
        assert_eq!(tally, recorded, "{}", old.display());
        let full = info(&old, &["--full"]);
        let of_kind = |name: &str| full["events_by_kind"][name].as_u64().unwrap();
        assert_eq!(tally.events.total(), full["events"].as_u64().unwrap());
        assert_eq!(tally.events.switches, of_kind("switch"));
        assert_eq!(tally.events.wakings, of_kind("waking"));
        assert_eq!(tally.events.of_kind("exec"), of_kind("exec"));
        assert_eq!(tally.frames, full["frames"].as_u64().unwrap());
        assert_eq!(
            tally.largest_inversion,
            full["largest_inversion_ns"].as_u64().unwrap()
        );
        inverted += u64::from(tally.largest_inversion > 0);
        let python = Command::new(python().expect("python3-zstandard"))
            .arg(fixture("read.py"))
            .arg(&path)
            .stdout(Stdio::null())
            .output()
            .expect("python3");
        let said = String::from_utf8_lossy(&python.stderr);
        assert!(python.status.success(), "{}: {said}", old.display());
    }
    assert!(inverted > 0, "no fixture has a step back in time");
}

/// A trace that becomes shorter while it is mapped raises SIGBUS on access; tr reports the truncation and exits with 2.
fn truncation_while_reading_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shrinks.bin");
    // The trace must be several times as long as what tr reads ahead.
    simulated(&path, 600_000);
    let mut child = Command::new(env!("CARGO_BIN_EXE_tr"))
        .args(["dump", text(&path)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _bound = common::bound::bound(&child);
    // Once tr has printed a byte, it has opened the trace. It then blocks, because nobody reads the pipe.
    let mut some = [0];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut some)
        .unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(10_000).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = "shrinks.bin: truncated while it was read\n";
    assert!(
        said.starts_with("tr: ") && said.ends_with(expected),
        "{said}"
    );
}

/// If the file cannot be mapped, here because of a limit of the address space, it is read by `pread`.
fn a_trace_that_cannot_be_mapped_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.bin");
    // The file has a trace and then zeros, 640 MiB together: more than the address space may have.
    std::fs::copy(fixture("traces/demo.bin"), &path).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(640 << 20).unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 524288; exec \"$0\" info \"$1\""])
        .args([env!("CARGO_BIN_EXE_tr"), text(&path)])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}
