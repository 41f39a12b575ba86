//! Tests that a file with any content is refused with an error, or gives spans inside of recorded processes, in bounded
//! time.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)] // in a test

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tr_analyze::{analyze, Analysis, Options};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_import::{read, Error};
use tr_placing::{File, ToolFile};

const CLANG: &[u8] = include_bytes!("../../../fixtures/imports/main.json");
const NINJA: &[u8] = include_bytes!("../../../fixtures/imports/.ninja_log");
const CARGO: &[u8] = include_bytes!("../../../fixtures/imports/cargo-timing.html");
const CMAKE: &[u8] = include_bytes!("../../../fixtures/spans/cmake.json");
const OTLP: &[u8] = include_bytes!("../../../fixtures/spans/otel.json");
const PROTOBUF: &[u8] = include_bytes!("../../../fixtures/spans/otel.pb");
const JUNIT: &[u8] = include_bytes!("../../../fixtures/imports/tests.xml");

/// A file of another tool, without the time at which the file was written.
fn tool_file(path: &[u8], file: File) -> ToolFile {
    ToolFile {
        path: path.to_vec(),
        written: None,
        file,
    }
}

/// A recording of the tools that wrote the files of these tests.
static RECORDING: LazyLock<Analysis> = LazyLock::new(|| {
    let bytes = include_bytes!("../../../fixtures/imports/all.bin").to_vec();
    let trace = Trace::open(Source::bytes(bytes)).expect("a trace");
    analyze(&trace, &Options::default())
});

/// Places the spans of a file in the recording. Verifies that each span lies within its process, and that the counts of
/// the spans agree. Returns the number of placed spans.
fn placed(file: File) -> u64 {
    let imports = tr_placing::place(&[tool_file(b"tests.xml", file)], &RECORDING);
    for span in &imports.spans {
        let process = RECORDING.process(span.process);
        assert!(process.start <= span.from && span.from <= span.to && span.to <= process.end);
    }
    let import = &imports.files[0];
    assert!(import.placed + import.outside + import.left_out <= import.spans.max(import.placed));
    import.placed
}

#[test]
fn the_files_as_they_are() {
    for (file, want) in [
        (CLANG, None),
        (NINJA, Some(4)),
        (CARGO, Some(4)),
        (JUNIT, Some(4)),
    ] {
        let count = placed(read(file).expect("a file").expect("of a known tool"));
        assert!(
            want.is_none_or(|want| want == count) && count > 0,
            "{count}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Reads files in which some bytes were replaced, removed or repeated.
    #[test]
    fn damaged_files(
        which in 0..7_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, prop::collection::vec(any::<u8>(), 0..12)), 1..6),
    ) {
        let mut bytes = [CLANG, NINJA, CARGO, JUNIT, CMAKE, OTLP, PROTOBUF][which].to_vec();
        for (at, length, with) in edits {
            let from = at.index(bytes.len());
            let to = (from + length).min(bytes.len());
            bytes.splice(from..to, with);
            bytes.push(b'\n');
        }
        if let Ok(Some(file)) = read(&bytes) {
            placed(file);
        }
    }

    /// Reads files whose times and other numbers have any size.
    #[test]
    fn any_times(start in any::<i64>(), length in any::<i64>(), pid in any::<u32>(), seconds in any::<f64>()) {
        let clang = format!(
            r#"{{"traceEvents":[{{"ph":"X","pid":{pid},"tid":1,"ts":{start},"dur":{length},"name":"a"}}],"beginningOfTime":{length}}}"#
        );
        let ninja = format!("# ninja log v7\n{}\t{}\t0\tout/a.o\tff\n", start as u32 / 2, u32::MAX);
        let cargo = format!(
            r#"<html>const UNIT_DATA = [{{"name":"small-package","version":"1.2.3","target":"","start":{:?},"duration":{:?},"sections":[["x",{{"start":{:?},"end":0.1}}]]}}]"#,
            if seconds.is_finite() { seconds } else { 0.5 }, length as f64, start as f64
        );
        let junit = format!(
            r#"<testsuite name="a" timestamp="2200-12-31T23:59:60" time="{seconds}"><testcase name="t" time="{length}"/></testsuite>"#
        );
        for text in [clang, ninja, cargo, junit] {
            if let Ok(Some(file)) = read(text.as_bytes()) {
                placed(file);
            }
        }
    }
}

#[test]
fn large_and_deep_files_end_soon() {
    let started = Instant::now();
    let deep_xml = "<testsuite>".repeat(1_000_000);
    let deep_json = format!(
        "{{\"beginningOfTime\":1,\"traceEvents\":{}",
        "[".repeat(1_000_000)
    );
    let attributes: String = (0..500_000).map(|n| format!(" a{n}=\"\"")).collect();
    let entities =
        "<!DOCTYPE x [<!ENTITY a \"&b;&b;\"><!ENTITY b \"&a;&a;\">]><testsuite name=\"&a;\"/>";
    for text in [deep_xml, deep_json, entities.to_owned()] {
        let error = read(text.as_bytes()).expect_err("damage").to_string();
        assert!(error.len() < 300, "{error}");
    }
    assert!(read(format!("<testsuite{attributes}/>").as_bytes()).is_ok());
    // Each record is small, so the reader refuses the number of records and not the file's size.
    let events = r#"{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"a"},"#.repeat(1_000_002);
    let events = format!("{{\"traceEvents\":[{}{{}}],\"beginningOfTime\":1}}", events);
    let error = read(events.as_bytes()).expect_err("too many");
    assert!(matches!(error, Error::Count { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(120));
}

#[test]
fn errors_name_the_place() {
    let cut = |bytes: &[u8], at: usize| [&bytes[..at], b"\"beginningOfTime\""].concat();
    for (bytes, want) in [
        (cut(CLANG, 300), "Chrome Trace Event format: "),
        (JUNIT[..300].to_vec(), "JUnit XML: "),
        (
            CARGO[..CARGO.len() - 200].to_vec(),
            "cargo --timings: UNIT_DATA in line ",
        ),
        (
            b"<testsuite name='\xff'/>".to_vec(),
            "JUnit XML: not UTF-8, at byte 17",
        ),
    ] {
        let error = read(&bytes).expect_err("damage").to_string();
        assert!(error.starts_with(want), "{error}");
        let numbers = error.chars().any(|letter| letter.is_ascii_digit());
        assert!(numbers, "{error}");
    }
    for other in [
        &b""[..],
        b"{}",
        b"<html></html>",
        b"x",
        b"<",
        b"{\"traceEvents\": []}",
    ] {
        assert!(matches!(read(other), Ok(None)), "{other:?}");
    }
}
