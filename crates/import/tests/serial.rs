//! Tests the places of tests that a recorded runner ran one after the other, with the reports of different tools.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

use tr_analyze::model::Doubt;
use tr_analyze::{analyze, Analysis, Options};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_import::read;
use tr_insight::recordings::imports::Imports;
use tr_placing::ToolFile;

const MS: i64 = 1_000_000;

/// The report of the recorded runner. Its attributes `began` and `written` are the true times in seconds since 1970.
const REPORT: &str = include_str!("../../../fixtures/junit/serial.xml");

fn recording() -> Analysis {
    let bytes = include_bytes!("../../../fixtures/junit/serial.bin").to_vec();
    let trace = Trace::open(Source::bytes(bytes)).unwrap();
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    analyze(&trace, &options)
}

/// The values of an attribute in the report, as texts.
fn texts(attribute: &str) -> Vec<&'static str> {
    let before = format!(" {attribute}=\"");
    let values = REPORT
        .match_indices(&before)
        .map(|(at, _)| &REPORT[at + before.len()..]);
    values
        .map(|value| value.split('"').next().unwrap())
        .collect()
}

/// The values of a time attribute in the report, converted to nanoseconds.
fn truth(attribute: &str) -> Vec<i64> {
    let values = texts(attribute).into_iter();
    values
        .map(|value| (value.parse::<f64>().unwrap() * 1e9) as i64)
        .collect()
}

/// A time of day in the form of RFC 3339, in whole seconds or with milliseconds.
fn stamp(unix: i64, has_ms: bool) -> String {
    let (seconds, ms) = (unix / 1_000_000_000, unix / MS % 1000);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let days = seconds / 86_400;
    // All times of the recording lie within one day. The date is computed from the number of days since 1970.
    let (year, month, day) = date(days);
    let ms = if has_ms {
        format!(".{ms:03}")
    } else {
        String::new()
    };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{ms}Z")
}

/// The date of a day that is given as the number of days since 1970. The date is found by trying all dates.
fn date(days: i64) -> (i64, i64, i64) {
    let all = (1970..2100).flat_map(|year| {
        (1..=12).flat_map(move |month| (1..=31).map(move |day| (year, month, day)))
    });
    all.into_iter()
        .find(|(year, month, day)| tr_text::units::days(*year, *month, *day) == days)
        .unwrap()
}

/// Places the suite and the tests of a report in a recording. `written` is the time at which the report was written, if
/// it is known.
fn place(report: &str, written: Option<i64>, analysis: &Analysis) -> Imports {
    let file = ToolFile {
        path: b"serial.xml".to_vec(),
        written,
        file: read(report.as_bytes()).unwrap().unwrap(),
    };
    tr_placing::place(&[file], analysis)
}

/// For each test of a report, whether the test's place in the recording is proven. Also asserts that the true time of
/// each test with a known place differs from this place by no more than the stated error. A place whose error is larger
/// than a tenth of the test's length does not count as proven.
fn proven(report: &str, written: Option<i64>, analysis: &Analysis) -> Vec<bool> {
    let imports = place(report, written, analysis);
    let real = analysis.meta.start_clock.real as i64;
    let names = texts("name");
    let began: Vec<i64> = truth("began");
    let tests = imports.spans.iter().filter(|span| span.result.is_some());
    let tests = tests.map(|span| {
        // The first name is that of the suite.
        let at = names
            .iter()
            .skip(1)
            .position(|name| name.as_bytes() == &*span.name);
        // Only tests with a known place are compared with the true times. A test without a known place can still have
        // figures (`doubt` is `None`), if the figures are the same at all possible places.
        let length = span.to.since(span.from);
        let is_proven = span.doubt.is_none() && span.error <= length / 10;
        let has_place = is_proven || span.doubt.is_some_and(Doubt::has_place);
        let off = span.from.since(analysis.meta.start) as i64 - (began[at.unwrap()] - real);
        let error = i64::try_from(span.error).unwrap() + MS;
        assert!(
            !has_place || off.abs() <= error,
            "{span:?} is off by {off} ns"
        );
        is_proven
    });
    tests.collect()
}

/// The report with a time of day for each test and for the suite, as the arguments give them.
fn with_stamps(tests: impl Fn(usize) -> Option<String>, suite: Option<String>) -> String {
    let attribute = |stamp: Option<String>| {
        stamp.map_or(String::new(), |stamp| format!(" timestamp=\"{stamp}\""))
    };
    let mut parts = REPORT.split("<testcase");
    let head = parts
        .next()
        .unwrap()
        .replace("<testsuite", &format!("<testsuite{}", attribute(suite)));
    let cases = parts
        .enumerate()
        .map(|(at, case)| format!("<testcase{}{case}", attribute(tests(at))));
    std::iter::once(head).chain(cases).collect()
}

#[test]
fn tests_are_in_their_places_whatever_times_the_report_has() {
    let analysis = recording();
    let began = truth("began");
    let [written] = truth("written")[..] else {
        panic!("one")
    };
    let lengths = truth("time");
    let all_but_first = [false, true, true, true, true];
    let all = [true; 5];
    // The report has no times. So work of the runner before the first test may belong to the first test.
    assert_eq!(proven(REPORT, Some(written), &analysis), all_but_first);
    // The time of the suite is either the time at which the report was written or the time at which the suite began.
    let at_writing = with_stamps(|_| None, Some(stamp(written, true)));
    assert_eq!(proven(&at_writing, Some(written), &analysis), all_but_first);
    let at_begin = with_stamps(|_| None, Some(stamp(began[0], true)));
    assert_eq!(proven(&at_begin, Some(written), &analysis), all);
    // In turn, the report has for each test the time of its beginning or of its end, in milliseconds or in whole
    // seconds.
    for has_ms in [true, false] {
        let begins = with_stamps(|at| Some(stamp(began[at], has_ms)), None);
        let ends = with_stamps(|at| Some(stamp(began[at] + lengths[at], has_ms)), None);
        let want = if has_ms { all } else { all_but_first };
        assert_eq!(
            proven(&begins, Some(written), &analysis),
            want,
            "begins, ms {has_ms}"
        );
        assert_eq!(
            proven(&ends, Some(written), &analysis),
            want,
            "ends, ms {has_ms}"
        );
    }
}

/// A reported time in whole seconds is rounded down, so the suite did not begin before the reported time. The clock is
/// set so that a full second begins just before the first test.
#[test]
fn a_suite_begins_in_the_second_that_its_time_names() {
    let mut analysis = recording();
    let began = truth("began")[0];
    let later = 1_000 * MS - began % (1_000 * MS) + 2 * MS;
    analysis.meta.start_clock.real += later as u64;
    analysis.summary.as_mut().unwrap().end_clock.real += later as u64;
    let report = with_stamps(|_| None, Some(stamp(began + later, false)));
    // With this length, the reported time cannot be the end of the suite, because the suite would then begin before the
    // recording.
    let report = report.replace("<testsuite ", "<testsuite time=\"1.600\" ");
    let tests = place(&report, Some(truth("written")[0] + later), &analysis);
    let tests = tests.spans.iter().filter(|span| span.result.is_some());
    let proven: Vec<bool> = tests.map(|span| span.doubt.is_none()).collect();
    assert_eq!(proven, [true; 5]);
}

/// In a long recording, a local time without a zone can belong to several time zones. Then the time at which the report
/// was written decides which zone is meant.
#[test]
fn local_times_are_in_the_zone_in_which_the_report_was_written_after_them() {
    let mut analysis = recording();
    let began = truth("began");
    let [written] = truth("written")[..] else {
        panic!("one")
    };
    // The local times are two hours ahead of UTC, and the recording lasts a day.
    let local = |at: usize| stamp(began[at] + 7_200_000_000_000, true);
    let report = with_stamps(|at| Some(local(at).trim_end_matches('Z').to_owned()), None);
    analysis.end.0 += 86_400_000_000_000;
    let all = [true; 5];
    assert_eq!(proven(&report, Some(written), &analysis), all);
    assert_eq!(proven(&report, None, &analysis), [false; 5]);
}

/// If a report lists failed tests first, the order of the report does not show when the tests ran.
#[test]
fn the_order_of_a_report_by_result_proves_nothing() {
    let analysis = recording();
    let written = truth("written").first().copied();
    let lines: Vec<&str> = REPORT.lines().collect();
    let moved = |failed: &str| {
        let (first, rest): (Vec<&str>, Vec<&str>) = lines
            .iter()
            .copied()
            .partition(|line| line.contains(&format!("\"{failed}\"")));
        let first = first.concat().replace("/>", "><failure/></testcase>");
        [rest[0], &first, &rest[1..].concat()].concat()
    };
    // The test that sleeps (a nap) fits into only one place of the recording, so its place is proven whatever the order
    // is.
    assert_eq!(
        proven(&moved("naps"), written, &analysis),
        [true, false, true, true, true]
    );
    // A test that computes fits into several places, in which other tests may have run instead.
    assert!(proven(&moved("computes"), written, &analysis).contains(&false));
}

/// The runner uses a CPU all the time before a test, and so does the test. So the figures of the test are the same at
/// each of its possible places, and the place need not be proven. For a test that naps, the figures differ between the
/// possible places.
#[test]
fn a_test_with_the_same_figures_everywhere_needs_no_place() {
    let analysis = recording();
    let written = truth("written").first().copied();
    // The runner computed for 40 ms before the test, so the suite began up to 40 ms earlier.
    let report = REPORT
        .replace(
            "computes_before\" time=\"0.100",
            "computes_before\" time=\"0.060",
        )
        .replace("<testsuite ", "<testsuite time=\"0.860\" ");
    let tests = |report: &str, written: Option<i64>| {
        let spans = place(report, written, &analysis).spans;
        let tests = spans.into_iter().filter(|span| span.result.is_some());
        let tests = tests.map(|span| (span.doubt.is_none(), span.error > 20_000_000));
        tests.collect::<Vec<_>>()
    };
    assert_eq!(tests(&report, written)[..2], [(true, true), (true, false)]);
    assert_eq!(tests(REPORT, None)[1], (false, true));
}

/// If it is not known when the report was written, the tests may also have run later in the runner's life.
#[test]
fn tests_that_can_be_elsewhere_have_no_place() {
    let analysis = recording();
    assert_eq!(proven(REPORT, None, &analysis), [false; 5]);
    let [written] = truth("written")[..] else {
        panic!("one")
    };
    // The file is a copy that was written after the recording.
    assert_eq!(
        proven(REPORT, Some(written + 86_400_000_000_000), &analysis),
        [false; 5]
    );
    // If the times are on another day, they belong to another run.
    let other = with_stamps(|_| Some(stamp(written - 86_400_000_000_000, true)), None);
    assert_eq!(proven(&other, Some(written), &analysis), Vec::<bool>::new());
}

/// A runner that repeats failed tests at the end runs them in another order than the runner's report lists them. Here
/// the reported tests do not sleep, so nothing in the recording shows the order.
#[test]
fn an_order_that_no_sleep_proves_proves_no_place() {
    let analysis = recording();
    let written = truth("written").first().copied();
    let lines: Vec<&str> = REPORT.lines().collect();
    let [suite, before, _, _, computes, _, end] = lines[..] else {
        panic!("five tests")
    };
    let report = [suite, computes, before, end].concat();
    assert_eq!(proven(&report, written, &analysis), [false; 2]);
    let places = place(&report, written, &analysis).spans;
    assert!(
        places
            .iter()
            .all(|span| span.doubt.is_some_and(Doubt::has_place)),
        "{places:?}"
    );
    // If it is not known when the report was written, the tests may not have run in the recording at all.
    let places = place(&report, None, &analysis).spans;
    assert!(
        places
            .iter()
            .all(|span| span.doubt.is_none_or(|doubt| !doubt.has_place())),
        "{places:?}"
    );
}

/// Some runners write a length of 0 for a test whose length they did not measure, such as a test that ran beside
/// others.
#[test]
fn a_length_of_zero_is_none() {
    let analysis = recording();
    let written = truth("written").first().copied();
    let report = REPORT.replace("time=\"0.250\"", "time=\"0\"");
    proven(&report, written, &analysis);
    let (began, length) = (truth("began")[1], truth("time")[1]);
    let real = analysis.meta.start_clock.real as i64;
    let places = place(&report, written, &analysis).spans;
    let naps = places.iter().find(|span| &*span.name == b"naps").unwrap();
    let end = naps.to.since(analysis.meta.start) + naps.error;
    assert!(end as i64 >= began + length - real, "{naps:?}");
    assert!(naps.doubt.is_some());
}

/// The file system's clock is up to 10 ms late, and the recording ends together with the runner.
#[test]
fn a_report_is_written_at_the_end_of_the_recording() {
    let mut analysis = recording();
    let [written] = truth("written")[..] else {
        panic!("one")
    };
    let real = analysis.meta.start_clock.real as i64;
    let since = u64::try_from(written - real + 2 * MS).unwrap();
    analysis.end = analysis.meta.start;
    analysis.end.0 += since;
    let want = [false, true, true, true, true];
    assert_eq!(proven(REPORT, Some(written), &analysis), want);
}

/// A failed test of a suite can have run at any point among the other tests, in any process. All these places are tried
/// for each suite.
#[test]
fn very_many_suites_cost_seconds() {
    let test = r#"<testcase name="t" time="0.000001"/>"#;
    let failed = r#"<testcase name="t" time="0.000001"><failure/></testcase>"#;
    let suite = format!(
        r#"<testsuite name="s">{}{failed}</testsuite>"#,
        test.repeat(199)
    );
    let text = format!("<testsuites>{}</testsuites>", suite.repeat(2_000));
    let files = [ToolFile {
        path: b"other.xml".to_vec(),
        written: None,
        file: read(text.as_bytes()).unwrap().unwrap(),
    }];
    let before = tr_sim::cpu_time::of_thread();
    let imports = tr_placing::place(&files, &recording());
    let took = tr_sim::cpu_time::of_thread() - before;
    assert!(took.as_secs() < 60, "{took:?}");
    let note = imports.files[0].note.as_deref().unwrap_or_default();
    assert!(note.contains("more suites"), "{note}");
}

/// Suites that are inside another suite ran in the order of the file. Suites that are not inside another suite may have
/// run at any time.
#[test]
fn suites_inside_one_suite_are_one_sequence() {
    let analysis = recording();
    let written = truth("written").first().copied();
    let lines: Vec<&str> = REPORT.lines().collect();
    let tests = |from: usize, to: usize| lines[from..to].concat();
    let (first, second) = (tests(1, 4), tests(4, 6));
    let suites = format!(
        "<testsuite name=\"a\">{first}</testsuite><testsuite name=\"b\">{second}</testsuite>"
    );
    let beside = proven(
        &format!("<testsuites>{suites}</testsuites>"),
        written,
        &analysis,
    );
    let inside =
        format!("<testsuites><testsuite name=\"serial\">{suites}</testsuite></testsuites>");
    let inside = proven(&inside, written, &analysis);
    assert_eq!(inside, [false, true, true, true, true]);
    let count = |all: &[bool]| all.iter().filter(|is| **is).count();
    assert!(count(&beside) < count(&inside), "{beside:?}");
}
