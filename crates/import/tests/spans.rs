//! Tests the places of spans from the Chrome Trace Event format and from OTLP: in recordings of the builds that wrote
//! the files (`fixtures/spans/record.sh`), and in small recordings in which several places are possible.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)] // in a test

mod common;

use tr_analyze::model::{Analysis, Doubt, Imported};
use tr_analyze::{analyze, Options};
use tr_format::event::Ktime;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_import::read;
use tr_insight::recordings::imports::Import;
use tr_placing::File;

use common::{recording, tool_file, MS, REAL};

/// The spans of a file, placed in a recording.
struct Placed {
    analysis: Analysis,
    spans: Vec<Imported>,
    import: Import,
}

impl Placed {
    fn new(analysis: Analysis, bytes: &[u8]) -> Placed {
        let file = read(bytes).unwrap().expect("of a known tool");
        let file = tool_file(b"trace.json", file);
        let mut imports = tr_placing::place(&[file], &analysis);
        Placed {
            analysis,
            spans: imports.spans,
            import: imports.files.pop().unwrap(),
        }
    }

    /// The span with this name, of which there is only one.
    fn span(&self, name: &str) -> &Imported {
        let mut named = self
            .spans
            .iter()
            .filter(|span| &*span.name == name.as_bytes());
        let found = named
            .next()
            .unwrap_or_else(|| panic!("{name}: {:?}", self.spans));
        assert!(named.next().is_none(), "{name}");
        found
    }

    /// The command line of the process on which a span is placed.
    fn command(&self, name: &str) -> String {
        let argv = &self.analysis.process(self.span(name).process).argv;
        let args: Vec<_> = argv.args().map(String::from_utf8_lossy).collect();
        args.join(" ")
    }

    /// The places of all spans as words, each with the span's name, process, beginning and end in ms.
    fn places(&self) -> String {
        let since = |time: Ktime| time.since(self.analysis.start) / MS;
        let places = self.spans.iter().map(|span| {
            let name = String::from_utf8_lossy(&span.name);
            format!(
                "{name}:{}:{}-{}",
                span.process.0,
                since(span.from),
                since(span.to)
            )
        });
        places.collect::<Vec<String>>().join(" ")
    }

    fn note(&self) -> &str {
        self.import.note.as_deref().unwrap_or_default()
    }
}

fn recorded(bytes: &[u8]) -> Analysis {
    let trace = Trace::open(Source::bytes(bytes.to_vec())).unwrap();
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    analyze(&trace, &options)
}

#[test]
fn commands_of_cmake_are_the_processes_that_it_started() {
    let analysis = recorded(include_bytes!("../../../fixtures/spans/cmake.bin"));
    let file = include_bytes!("../../../fixtures/spans/cmake.json");
    let placed = Placed::new(analysis, file);
    for source in ["a.cc", "b.cc", "main.cc"] {
        let command = placed.command(&format!("compile: /tmp/project/{source}"));
        assert!(command.contains(&format!("{source}.o")), "{command}");
    }
    // The file of CMake has no path that occurs in the command line `cmake --build`. But it has this whole command
    // line, by which the span is placed.
    let command = placed.command("cmakeBuild");
    assert!(command.ends_with("/cmake --build build -j2"), "{command}");
    // The two spans of configuring ended before the recording.
    assert_eq!(placed.import.outside, 2);
    assert_eq!((placed.import.spans, placed.import.placed), (10, 8));
    let whole = placed.spans.iter().filter(|span| span.whole).count();
    assert_eq!(whole as u64, placed.import.placed);
}

/// The profile of Bazel does not say when the run began. It has only one pid, which occurs in each sandbox. An action
/// begins when it is ready, but its process starts later, when one of Bazel's workers is free.
#[test]
fn actions_of_bazel_are_their_sandboxes() {
    let analysis = recorded(include_bytes!("../../../fixtures/spans/bazel.bin"));
    let file = include_bytes!("../../../fixtures/spans/bazel.json.gz");
    let placed = Placed::new(analysis, file);
    for output in ["o1.txt", "o2.txt", "o3.txt", "o4.txt", "a.o", "main.o"] {
        let rule = match output.strip_suffix(".txt") {
            Some(rule) => rule.replace('o', "g"),
            None => format!("c{}", output.trim_end_matches(".o")),
        };
        let command = placed.command(&format!("Executing genrule //:{rule}"));
        assert!(
            command.contains(&format!("bin/{output}")),
            "{rule}: {command}"
        );
    }
    assert_eq!(placed.import.placed, 7);
    assert!(
        placed.note().contains("19 counter events"),
        "{}",
        placed.note()
    );
    let span = placed.span("Executing genrule //:g4");
    let length = span.to.since(span.from) / MS;
    assert!((900..1_300).contains(&length), "{length}");
}

/// The spans get the same places whether the OTLP file is JSON or protobuf. In the span `wait`, the program slept.
#[test]
fn spans_of_a_program_are_where_its_pid_was() {
    let recording = || recorded(include_bytes!("../../../fixtures/spans/otel.bin"));
    let json = include_bytes!("../../../fixtures/spans/otel.json");
    let json = Placed::new(recording(), json);
    let protobuf = include_bytes!("../../../fixtures/spans/otel.pb");
    let protobuf = Placed::new(recording(), protobuf);
    assert_eq!(json.spans, protobuf.spans);
    assert_eq!((json.import.placed, json.import.note.as_deref()), (4, None));
    assert!(json
        .spans
        .iter()
        .all(|span| span.doubt.is_none() && !span.whole));
    let wait = json.span("wait");
    assert!(
        json.command("wait").starts_with("python3"),
        "{}",
        json.command("wait")
    );
    let timeline = json.analysis.timeline.as_ref().unwrap();
    let leader = json.analysis.process(wait.process).threads[0];
    let asleep = timeline.of(leader).any(|stretch| {
        stretch.from >= wait.from
            && stretch.to <= wait.to
            && stretch.to.since(stretch.from) > 490 * MS
    });
    assert!(asleep, "{wait:?}");
}

/// The units in cargo's log are the same as on the page of `--timings`, and a recorded process is found for each of
/// them.
#[test]
fn units_of_the_log_of_cargo_are_its_processes() {
    let analysis = recorded(include_bytes!("../../../fixtures/spans/cargo.bin"));
    let log = include_bytes!("../../../fixtures/spans/cargo.jsonl");
    let placed = Placed::new(analysis, log);
    assert_eq!((placed.import.spans, placed.import.placed), (4, 4));
    let tool = placed.import.tool.as_ref().unwrap();
    assert_eq!((tool.tool, &*tool.version), ("rustc", "1.95.0"));
    for (name, part) in [
        ("small-package v1.2.3", " src/lib.rs"),
        ("small-package v1.2.3 small-package \"bin\"", "src/main.rs"),
        ("small-package v1.2.3 build-script", " build.rs"),
        (
            "small-package v1.2.3 build-script (run)",
            "/build-script-build",
        ),
    ] {
        let command = placed.command(name);
        assert!(command.contains(part), "{name}: {command}");
    }
    let frontend = placed.span("frontend");
    let codegen = placed.span("codegen");
    assert_eq!(frontend.to, codegen.from);
    // The log may end in the middle of a line, or before the end of a unit.
    let half = &log[..log.len() - 40];
    let analysis = recorded(include_bytes!("../../../fixtures/spans/cargo.bin"));
    assert_eq!(Placed::new(analysis, half).import.spans, 3);
}

/// BitBake runs the shell script of a task, whose path has the recipe and the pid. A task in Python has no process of
/// its own.
#[test]
fn tasks_of_bitbake_are_their_scripts() {
    let analysis = recording(&[
        (1, None, 0, 90_000, "bitbake-worker"),
        (
            2,
            Some(0),
            990,
            5_000,
            "/bin/sh /b/work/core2-64/zlib/1.3-r0/temp/run.do_compile.77",
        ),
        (3, Some(1), 1_100, 4_900, "make -j2"),
        (
            4,
            Some(0),
            1_000,
            5_010,
            "/bin/sh /b/work/core2-64/bzip2/1.0.8/temp/run.do_compile.78",
        ),
    ]);
    let task = |recipe: &str, task: &str, from: u64, to: u64| {
        let at = |ms: u64| (REAL / MS + ms) as f64 / 1e3;
        format!(
            "Event: TaskStarted \nStarted: {:.2} \n{recipe}: {task}\nElapsed time: 4.00 seconds\nStatus: PASSED \n\
             Ended: {:.2} \n",
            at(from),
            at(to)
        )
    };
    let mut files = Vec::new();
    for (path, text) in [
        (
            "stats/zlib-1.3-r0/do_compile",
            task("zlib-1.3-r0", "do_compile", 980, 5_010),
        ),
        (
            "stats/zlib-1.3-r0/do_unpack",
            task("zlib-1.3-r0", "do_unpack", 500, 600),
        ),
        (
            "stats/bzip2-1.0.8-r0/do_compile",
            task("bzip2-1.0.8-r0", "do_compile", 990, 5_020),
        ),
    ] {
        let file = read(text.as_bytes()).unwrap().expect("a task");
        tr_import::add(&mut files, tool_file(path.as_bytes(), file));
    }
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].path, b"stats");
    let imports = tr_placing::place(&files, &analysis);
    let mut places: Vec<(String, u32, bool)> = imports
        .spans
        .iter()
        .map(|span| {
            let name = String::from_utf8_lossy(&span.name).into_owned();
            (name, span.process.0, span.whole)
        })
        .collect();
    places.sort();
    assert_eq!(
        places,
        [
            ("bzip2-1.0.8-r0 do_compile".to_owned(), 3, true),
            ("zlib-1.3-r0 do_compile".to_owned(), 1, true)
        ]
    );
    assert_eq!((imports.files[0].spans, imports.files[0].placed), (3, 2));
}

/// Two compilations that begin at the same time. The second one ends a second later.
fn build() -> Analysis {
    recording(&[
        (1, None, 0, 90_000, "tool"),
        (2, Some(0), 1_000, 1_400, "cc -o out/a.o a.c"),
        (3, Some(0), 1_000, 2_400, "cc -o out/b.o b.c"),
    ])
}

fn complete(name: &str, from: u64, length: u64) -> String {
    format!(r#"{{"ph":"X","pid":0,"tid":0,"ts":{from},"dur":{length},"name":"{name}"}}"#)
}

#[test]
fn times_count_from_where_the_named_processes_agree() {
    let file = |zero: u64| {
        let a = complete("out/a.o", zero, 400_000);
        let b = complete("out/b.o", zero, 1_400_000);
        format!("[{a},{b}]")
    };
    let want = "out/a.o:1:1000-1400 out/b.o:2:1000-2400";
    // In turn, the times count from the tool's beginning, from 1970, and from the start of the machine.
    for zero in [5_000, REAL / 1000 + 1_000_000, 2_000_000] {
        let placed = Placed::new(build(), file(zero).as_bytes());
        assert_eq!(placed.places(), want, "{zero}");
    }
    // A single process does not prove when the tool began.
    let alone = format!("[{}]", complete("out/a.o", 5_000, 400_000));
    let placed = Placed::new(build(), alone.as_bytes());
    assert_eq!(placed.places(), "");
    assert!(
        placed.note().contains("beginning of its times"),
        "{}",
        placed.note()
    );
}

/// Without a word that names a process, the pids say when the file's times began. Clocks may differ by 20 ms.
#[test]
fn times_count_from_where_the_processes_with_the_pids_lived() {
    let placed = |late: u64| {
        let span = |pid: u32, from: u64, length: u64| {
            format!(r#"{{"ph":"X","pid":{pid},"tid":0,"ts":{from},"dur":{length},"name":"work"}}"#)
        };
        let spans = [span(2, 5_000, 400_000), span(3, 5_000 + late, 1_400_000)];
        Placed::new(build(), format!("[{}]", spans.join(",")).as_bytes())
    };
    assert_eq!(placed(10_000).places().split(' ').count(), 2);
    assert_eq!(placed(30_000).places(), "");
}

#[test]
fn between_equal_processes_nothing_is_decided() {
    let twice = recording(&[
        (1, None, 0, 90_000, "tool"),
        (2, Some(0), 1_000, 1_400, "cc -o x/a.o a.c"),
        (3, Some(0), 1_003, 1_404, "cc -o y/a.o a.c"),
        (4, Some(0), 3_000, 3_400, "sh -c cc -o b.o b.c"),
        (5, Some(3), 3_003, 3_399, "cc -o b.o b.c"),
    ]);
    let zero = REAL / 1000;
    let file = format!(
        "[{},{}]",
        complete("a.o", zero + 1_000_000, 400_000),
        complete("b.o", zero + 3_000_000, 400_000)
    );
    // A shell that only runs the program is not counted as a second process to which the span could belong.
    let placed = Placed::new(twice, file.as_bytes());
    assert_eq!(placed.places(), "b.o:3:3000-3400");
}

#[test]
fn events_that_begin_and_end_apart_are_spans() {
    let zero = REAL / 1000;
    let event = |phase: &str, rest: &str, at: u64| {
        let ts = zero + at * 1000;
        format!(r#"{{"ph":"{phase}","pid":"2","tid":7,"ts":{ts},{rest}}}"#)
    };
    // The end of the array is missing, as it is if the program that wrote the file was killed.
    let file = format!(
        "[{},{},{},{},{},{},{},{},{},",
        event("B", r#""name":"outer""#, 1_010),
        event("B", r#""name":"inner""#, 1_020),
        event("E", r#""args":{}"#, 1_030),
        event("b", r#""name":"one","cat":"c","id":"0x1""#, 1_040),
        event("b", r#""name":"two","cat":"c","id":2"#, 1_050),
        event("e", r#""name":"one","cat":"c","id":"0x1""#, 1_060),
        event("s", r#""name":"flow","id":3"#, 1_060),
        event("e", r#""name":"two","cat":"c","id":2"#, 1_070),
        event("E", r#""name":"outer""#, 1_080),
    );
    let placed = Placed::new(build(), file.as_bytes());
    assert_eq!(
        placed.places(),
        "inner:1:1020-1030 one:1:1040-1060 two:1:1050-1070 outer:1:1010-1080"
    );
    assert_eq!(placed.note(), "not read: 1 flow events");
}

/// Spans of a CI job for which no process is known are placed on COMMAND's process. These spans have no figures.
#[test]
fn spans_without_a_process_are_in_the_command_and_have_no_figures() {
    let span = |id: &str, parent: &str, name: &str, from: u64, to: u64| {
        let at = |ms: u64| REAL + ms * MS;
        format!(
            r#"{{"spanId":"{id}","parentSpanId":"{parent}","name":"{name}","startTimeUnixNano":"{}","endTimeUnixNano":"{}"}}"#,
            at(from),
            at(to)
        )
    };
    let line = |spans: &[String]| {
        format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#,
            spans.join(",")
        )
    };
    // OpenTelemetry's collector writes one JSON document in each line.
    let file = [
        line(&[span("01", "", "job", 0, 80_000)]),
        line(&[span("02", "01", "step", 10, 70_000)]),
    ]
    .join("\n");
    let placed = Placed::new(build(), file.as_bytes());
    assert_eq!(placed.places(), "job:0:0-80000 step:0:10-70000");
    let doubts = placed.spans.iter().map(|span| span.doubt);
    assert!(doubts.into_iter().all(|doubt| doubt == Some(Doubt::Runner)));
    // A span is placed on the process of its parent span.
    let file = line(&[
        span("02", "01", "step", 1_100, 1_200),
        span("01", "", "out/a.o", 1_000, 1_400),
    ]);
    let placed = Placed::new(build(), file.as_bytes());
    assert_eq!(placed.places(), "step:1:1100-1200 out/a.o:1:1000-1400");
}

/// An empty message takes two bytes in a file and hundreds in memory, so a large number of them is refused.
#[test]
fn very_many_empty_messages_are_refused() {
    let scope = |spans: usize| {
        let spans = [0x12, 0].repeat(spans);
        field(0x0a, &field(0x12, &spans))
    };
    assert!(read(&scope(1_000)).unwrap().is_some());
    let error = read(&scope(2_000_000)).unwrap_err().to_string();
    assert_eq!(error, "OTLP: more than 1000000 spans");
    let json = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}{{"spanId":""}}]}}]}}]}}"#,
        "{},".repeat(2_000_000)
    );
    let error = read(json.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("more than 1000000 spans"), "{error}");
}

/// Each word of each span occurs in the command lines of several hundred processes at once.
#[test]
fn very_many_spans_with_common_words_cost_seconds() {
    let line = format!("cc {} -o a.o", "x ".repeat(500));
    let lines: Vec<_> = (0..400)
        .map(|pid| (pid + 1, None, 1_000, 1_400, line.as_str()))
        .collect();
    let spans: Vec<String> = (0..100_000)
        .map(|_| complete("a.o", REAL / 1000 + 1_000_000, 400_000))
        .collect();
    let file = format!("[{}]", spans.join(","));
    let before = tr_sim::cpu_time::of_thread();
    let placed = Placed::new(recording(&lines), file.as_bytes());
    let took = tr_sim::cpu_time::of_thread() - before;
    assert!(took.as_secs() < 60, "{took:?}");
    assert!(placed.note().contains("more spans"), "{}", placed.note());
}

/// A field of a protobuf message, with its key and its length before the content.
fn field(key: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![key];
    let mut length = content.len();
    while length > 0x7f {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(content);
    bytes
}

/// Some tools write numbers as texts. An event without a time has no place.
#[test]
fn times_of_events_are_numbers_or_texts() {
    let event = |ts: &str| format!("{{\"ph\": \"X\", \"name\": \"n\"{ts}, \"dur\": \"2.5\"}}");
    let all = [
        ", \"ts\": \"1000.5\"",
        ", \"ts\": 2000",
        ", \"ts\": null",
        "",
    ]
    .map(event);
    let file = tr_import::read(format!("[{}]", all.join(",")).as_bytes());
    let Ok(Some(File::Spans(spans))) = file else {
        panic!("no spans: {file:?}")
    };
    let times: Vec<(i64, i64)> = spans
        .spans
        .iter()
        .map(|span| (span.from, span.to))
        .collect();
    assert_eq!(times, [(1_000_500, 1_003_000), (2_000_000, 2_002_500)]);
    assert_eq!(
        spans.note.as_deref(),
        Some("not read: 2 events without a time")
    );
}

/// Bazel writes its version into its profile, with a word before it.
#[test]
fn a_profile_of_bazel_has_its_version() {
    let profile = br#"{"otherData":{"bazel_version":"release 7.4.1"},"traceEvents":[
        {"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]}"#;
    let Some(File::Spans(spans)) = read(profile).unwrap() else {
        panic!("no spans");
    };
    let tool = spans.tool.unwrap();
    assert_eq!((tool.tool, &*tool.version), ("bazel", "7.4.1"));
}
