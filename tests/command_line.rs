//! Tests the defaults of the command line, and the command lines that error messages propose.
#![allow(clippy::unwrap_used)]

#[path = "common/rewrite.rs"]
mod rewrite;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TR: &str = env!("CARGO_BIN_EXE_tr");

fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new(TR)
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin")
}

#[test]
fn without_a_file_trace_bin_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["analyze", "report", "info", "verify", "dump"] {
        let out = run(dir.path(), &[command]);
        let said = said(&out);
        assert_eq!(out.status.code(), Some(2), "{command}: {said}");
        assert!(
            said.contains("trace.bin: No such file"),
            "{command}: {said}"
        );
        assert!(said.contains("tr record -- COMMAND"), "{command}: {said}");
    }
    std::fs::copy(demo(), dir.path().join("trace.bin")).unwrap();
    for command in ["analyze", "report", "info", "verify", "dump"] {
        let (default, named) = (
            run(dir.path(), &[command]),
            run(dir.path(), &[command, "trace.bin"]),
        );
        assert!(default.status.success(), "{command}: {}", said(&default));
        assert_eq!(default.stdout, named.stdout, "{command}");
    }
    // The advice to record is given only for the default file, not for another absent file.
    let out = run(dir.path(), &["analyze", "other.bin"]);
    assert!(!said(&out).contains("tr record"), "{}", said(&out));
}

#[test]
fn recover_proposes_a_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(demo(), dir.path().join("trace.bin")).unwrap();
    let out = run(dir.path(), &["recover", "trace.bin"]);
    assert_eq!(out.status.code(), Some(2));
    let said = said(&out);
    let line = said.lines().last().unwrap().trim();
    assert_eq!(
        line, "tr recover trace.bin -o trace.recovered.bin",
        "{said}"
    );
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    assert!(run(dir.path(), &words).status.success());
    assert!(run(dir.path(), &["verify", "trace.recovered.bin"])
        .status
        .success());
}

#[test]
fn diff_of_many_files_says_how() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a-1.bin", "a-2.bin", "b-1.bin"];
    let mut file = std::fs::read(demo()).unwrap();
    for name in names {
        std::fs::write(dir.path().join(name), &file).unwrap();
        file = rewrite::later(&file);
    }
    let out = run(dir.path(), &[&["diff"][..], &names].concat());
    assert_eq!(out.status.code(), Some(2));
    let told = said(&out);
    let line = told.lines().last().unwrap().trim();
    assert_eq!(
        line, "tr diff --base a-1.bin a-2.bin --new b-1.bin",
        "{told}"
    );
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let done = run(dir.path(), &words);
    assert!(done.status.success(), "{}", said(&done));
    // If the names have no common beginning, the message proposes the first half as base and the second half as new.
    let four = ["1.bin", "2.bin", "3.bin", "4.bin"];
    let told = said(&run(dir.path(), &[&["diff"][..], &four].concat()));
    assert!(
        told.contains("tr diff --base 1.bin 2.bin --new 3.bin 4.bin"),
        "{told}"
    );
    let told = said(&run(dir.path(), &["diff", "a-1.bin"]));
    assert!(told.contains("give BASE and NEW"), "{told}");
    for wrong in [
        &["diff"][..],
        &["diff", "a-1.bin", "--base", "a-2.bin", "--new", "b-1.bin"],
    ] {
        assert_eq!(run(dir.path(), wrong).status.code(), Some(2), "{wrong:?}");
    }
}

/// Options and habits of other tools and shells are answered with tr's own option or command.
#[test]
fn other_tools_words_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.bin", "b.bin"] {
        std::fs::copy(demo(), dir.path().join(name)).unwrap();
    }
    for (line, tip) in [
        ("analyze a.bin --json", "tip: --format json"),
        ("info a.bin --json", "tip: --format json"),
        ("dump a.bin --json", "tip: --format ndjson"),
        ("analyze a.bin -n 5", "tip: --top N"),
        ("analyze a.bin b.bin", "tr diff BASE NEW"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let out = run(dir.path(), &words);
        let told = said(&out);
        assert_eq!(out.status.code(), Some(2), "{line}: {told}");
        assert!(
            told.contains(tip) && !told.contains("as a value"),
            "{line}: {told}"
        );
    }
    for (theirs, ours) in [("cpu", "on-cpu"), ("mem", "rss")] {
        let sorted = |by: &str| run(dir.path(), &["analyze", "a.bin", "--sort", by]);
        let (theirs, ours) = (sorted(theirs), sorted(ours));
        assert!(theirs.status.success(), "{}", said(&theirs));
        assert_eq!(theirs.stdout, ours.stdout);
    }
}

#[cfg(feature = "record")]
/// An option of another tool is answered with the option of tr that does the same; no option is taken for an operand.
#[test]
fn other_tools_options_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(demo(), dir.path().join("trace.bin")).unwrap();
    for (line, words) in [
        ("record -g -- true", Some("--stacks samples")),
        ("record -F 99 -- true", Some("--stacks=HZ samples")),
        ("record -t 12 -- true", Some("--pid N records")),
        ("record --runs 5 -- true", Some("tr diff --base FILE")),
        ("analyze trace.bin --timeout 3", Some("--max-time DUR")),
        ("analyze --stdio", Some("on standard output")),
        ("analyse -o a.txt", Some("tr report -o FILE")),
        ("analyze trace.bin -g", Some("--report flame")),
        ("predict -j 4", Some("--jobs N")),
        ("record --nothing-of-the-kind -- true", None),
        ("export -x", None),
        ("diff -k a b", None),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let out = run(dir.path(), &args);
        let text = said(&out);
        let status = if args[0] == "record" { 125 } else { 2 };
        assert_eq!(out.status.code(), Some(status), "{line}: {text}");
        assert!(!text.contains("as a value"), "{line}: {text}");
        match words {
            Some(words) => assert!(text.contains(words), "{line}: {text}"),
            None => assert!(!text.contains("tip:"), "{line}: {text}"),
        }
    }
}

/// Wrong values are reported in words, and a time without a unit is refused.
#[test]
fn wrong_values_are_answered_in_words() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(demo(), dir.path().join("trace.bin")).unwrap();
    for (line, words) in [
        (
            "analyze --top many",
            "not a number of rows such as 20, or all",
        ),
        (
            "diff a b --top x",
            "not a number of rows such as 20, or all",
        ),
        ("analyze --pid x", "not a number such as 4"),
        ("analyze --threads x", "not a number such as 4"),
        ("analyze --min 10", "a time needs a unit here: 10ms or 10s"),
        ("export --format otlp --min 1.5", "1.5ms or 1.5s"),
        ("diff a b --min 3", "3ms or 3s"),
    ] {
        let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
        assert_eq!(out.status.code(), Some(2), "{line}");
        assert!(said(&out).contains(words), "{line}: {}", said(&out));
    }
    let rows = |top: &str| {
        let out = run(dir.path(), &["analyze", "--top", top, "--width", "80"]);
        assert!(out.status.success(), "{}", said(&out));
        String::from_utf8_lossy(&out.stdout).lines().count()
    };
    assert!(rows("all") > 100 && rows("all") > rows("20"));
    let every = run(dir.path(), &["analyze", "--report", "all", "--top", "all"]);
    assert!(every.status.success(), "{}", said(&every));
}

/// A filter that no process matches is reported once: by the report of processes, or on standard error.
#[test]
fn no_match_is_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(demo(), dir.path().join("trace.bin")).unwrap();
    let reports = [
        "",
        "--format markdown",
        "--format json",
        "--format csv",
        "--report tree",
        "--report top,tree",
    ];
    let filters = ["--argv nosuchprogram", "--comm nosuch"];
    let lines = filters.iter().flat_map(|filter| {
        let line = move |report| format!("analyze {filter} {report}");
        reports.iter().map(line)
    });
    for line in lines {
        let out = run(dir.path(), &line.split_whitespace().collect::<Vec<_>>());
        let printed = String::from_utf8_lossy(&out.stdout).into_owned() + &said(&out);
        let text = printed.to_lowercase();
        assert_eq!(
            text.matches("none of the 127 processes matches").count(),
            1,
            "{line}: {text}"
        );
    }
}

/// A step is found by its whole name, or by the name as a table shortens it. Any other name is an error that lists
/// similar names.
#[test]
fn a_step_has_its_name_or_a_shortened_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(demo(), dir.path().join("trace.bin")).unwrap();
    let step = |name: &str| run(dir.path(), &["analyze", "--step", name, "--format", "csv"]);
    let whole = step("kernels_0.o");
    assert!(whole.status.success() && said(&whole).is_empty());
    let shortened = step("ker…_0.o");
    assert_eq!(shortened.stdout, whole.stdout, "{}", said(&shortened));
    // The second name is shortened, but fits several steps.
    for name in ["kernel_0.o", "kernels_…o"] {
        let out = step(name);
        assert_eq!(out.status.code(), Some(2));
        assert!(out.stdout.is_empty());
        let said = said(&out);
        let similar = said.split("; similar: ").nth(1).unwrap_or_default();
        assert!(said.contains(&format!("no step is named {name}")), "{said}");
        assert!(similar.contains("kernels_0.o"), "{said}");
        assert_eq!(similar.split(", ").count(), 5, "{said}");
    }
    let unlike = said(&step("zyxw"));
    assert!(unlike.contains("--report steps has the names"), "{unlike}");
}

/// If a filter is given, the first lines of the screen are still about all processes, and the screen says that they
/// are.
#[test]
fn a_filtered_screen_says_what_is_of_all_processes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(demo(), dir.path().join("trace.bin")).unwrap();
    let text = |options: &[&str]| {
        let out = run(dir.path(), &[&["analyze"][..], options].concat());
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let words = "of 127 processes match. The header and the next lines are of all processes:";
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined(&text(&["--step", "kernels_0.o"])).contains(words));
    assert!(!joined(&text(&[])).contains("are of all processes:"));
    // A grouping that the user chose may have more rows than fit on the screen.
    assert!(text(&["--by", "comm"]).contains("Top 10 of "));
}

#[cfg(feature = "record")]
#[test]
fn a_command_that_is_not_found_may_be_a_shells() {
    let dir = tempfile::tempdir().unwrap();
    for (words, line) in [
        (&["--", "a && b"][..], "tr record -- sh -c 'a && b'"),
        (&["FOO=1", "make"], "tr record -- env FOO=1 make"),
        (&["cd", "x"], "tr record -- sh -c 'cd x && make'"),
        (
            &["--stacks", "99", "--", "make"],
            "tr record --stacks=99 -- make",
        ),
        (
            &["--off-cpu-stacks", "2ms", "make"],
            "tr record --off-cpu-stacks=2ms -- make",
        ),
    ] {
        // PATH has only directories that every user may search. Otherwise the error would be "cannot execute", as in a
        // shell.
        let mut record = Command::new(TR);
        record.env("PATH", "/usr/bin:/bin").arg("record");
        let out = record.args(words).current_dir(dir.path()).output().unwrap();
        let told = said(&out);
        assert_eq!(out.status.code(), Some(127), "{told}");
        assert!(told.contains(&format!("did you mean: {line}\n")), "{told}");
    }
    let told = said(&run(dir.path(), &["record", "nonsense-of-tr"]));
    assert!(!told.contains("did you mean"), "{told}");
}

/// With a small limit for the stack of the main thread (`ulimit -s`) every command works, because tr runs on a stack
/// that it allocates.
#[test]
fn a_small_stack_is_enough() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(demo, dir.path().join("trace.bin")).unwrap();
    let mut lines = vec![
        ("info", 0),
        ("analyze", 0),
        ("report -o page.html", 0),
        ("summary", 0),
        ("verify", 0),
        ("dump", 0),
        ("export --format perfetto -o p.pf", 0),
        ("predict --cpus 4", 0),
        ("--help", 0),
        ("analyze --no-such-option", 2),
    ];
    if cfg!(feature = "record") {
        lines.push((
            "record --best-effort -o new.bin -- sh -c 'ulimit -s; exit 5'",
            5,
        ));
        lines.push(("info new.bin", 0));
    }
    for kib in [150, 512] {
        for (line, status) in &lines {
            let script = format!("ulimit -s {kib} && exec '{TR}' {line}");
            let mut shell = Command::new("sh");
            let out = shell.args(["-c", &script]).current_dir(dir.path()).output();
            let out = out.unwrap();
            assert_eq!(
                out.status.code(),
                Some(*status),
                "{kib} {line}: {}",
                said(&out)
            );
            if *status == 5 {
                // COMMAND gets the user's limit of the stack.
                assert_eq!(out.stdout, format!("{kib}\n").as_bytes());
            }
        }
    }
}

/// `--best-effort` runs the command even without the right to trace, so this test needs no right.
#[cfg(feature = "record")]
#[test]
fn a_recording_destroys_no_other_file_and_keeps_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let record = |options: &str| {
        let words = format!("record -q --best-effort {options} true");
        run(dir.path(), &words.split_whitespace().collect::<Vec<_>>())
    };
    std::fs::write(at("main.c"), "int main").unwrap();
    let words = ["record", "-o", "main.c", "touch", "ran"];
    let out = run(dir.path(), &words);
    let told = said(&out);
    assert_eq!(out.status.code(), Some(125), "{told}");
    assert!(
        told.contains("not a recording") && told.contains("--force"),
        "{told}"
    );
    assert!(!at("ran").exists());
    assert_eq!(std::fs::read(at("main.c")).unwrap(), b"int main");
    assert!(record("--force -o main.c").status.success());
    assert!(run(dir.path(), &["info", "main.c"]).status.success());

    assert!(record("").status.success());
    let before = std::fs::read(at("trace.bin")).unwrap();
    assert!(!at("trace.bin.old").exists());
    assert!(record("").status.success());
    assert!(std::fs::read(at("trace.bin.old")).unwrap() == before);
    let before = std::fs::read(at("trace.bin.old")).unwrap();
    assert!(record("-o trace.bin").status.success());
    assert!(std::fs::read(at("trace.bin.old")).unwrap() == before);
    std::fs::write(at("empty"), "").unwrap();
    assert!(record("-o empty").status.success());
    assert!(record("-o /dev/null").status.success());
}

#[test]
fn a_forecast_has_an_interval() {
    let demo = demo();
    let demo = demo.to_str().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let forecast = |options: &[&str]| {
        let args = [&["predict", demo, "--format", "json"], options].concat();
        let out = run(dir.path(), &args);
        assert!(out.status.success(), "{options:?}: {}", said(&out));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let wall = |key: &str| json["wall"][key].as_u64().unwrap();
        let (low, likely, high) = (wall("low_ns"), wall("likely_ns"), wall("high_ns"));
        assert!(low < likely && likely < high, "{options:?}: {json}");
        (likely, json)
    };
    let (same, json) = forecast(&[]);
    let recorded = json["recorded"]["wall_ns"].as_u64().unwrap();
    // If nothing is changed, the forecast equals the recorded time. So the forecast also contains the part of the
    // recorded time that the simulation leaves out.
    assert_eq!(same, recorded);
    let longer = [
        &["--cpus", "1"][..],
        &["--jobs", "1"],
        &["--quota", "100%"],
        &["--faster", "cc1=0.5"],
    ];
    let shorter = [
        &["--cpus", "8", "--jobs", "8"][..],
        &["--faster", "cc1=2"],
        &["--without", "^sleep "],
        &["--cached", "^cc =0.5"],
    ];
    for options in longer {
        assert!(forecast(options).0 > same + same / 5, "{options:?}");
    }
    for options in shorter {
        assert!(forecast(options).0 < same - same / 20, "{options:?}");
    }
    // More CPUs than jobs gain nothing.
    let [some, many] = ["16", "64"].map(|cpus| forecast(&["--jobs", "2", "--cpus", cpus]).0);
    assert_eq!(some, many);
    // Each of two machines runs one of the two tests, so the machine with the longer test sets the time.
    let (sharded, json) = forecast(&["--shards", "2", "--price", "0.5"]);
    let sleeps = ["--without", "tests/sleep"];
    assert!(sharded <= same + same / 100 && forecast(&sleeps).0 < sharded);
    let cost = json["cost"].as_f64().unwrap();
    assert!((cost - 2.0 * 2.0 * 0.5 * sharded as f64 / 60e9).abs() < 1e-9);
    let cheapest = json["cheapest"]["cost"].as_f64().unwrap();
    assert!(cheapest <= cost && json["cheapest"]["cpus"] == 1, "{json}");
    for wrong in [["--without", "no such"], ["--faster", "none=2"]] {
        let out = run(dir.path(), &[&["predict", demo][..], &wrong].concat());
        assert_eq!(out.status.code(), Some(2), "{wrong:?}");
        assert!(said(&out).contains("no program of the recording matches"));
    }
    // A change that removes the whole command is reported as a mistake.
    for wrong in [["--without", "make"], ["--cached", "^make.*=0.5"]] {
        let out = run(dir.path(), &[&["predict", demo][..], &wrong].concat());
        assert_eq!(out.status.code(), Some(2), "{wrong:?}");
        assert!(
            said(&out).contains("nothing would be left"),
            "{}",
            said(&out)
        );
    }
    for wrong in [
        ["--cpus", "0"],
        ["--faster", "cc1"],
        ["--cached", "x=2"],
        ["--quota", "0"],
        ["--shards", "1"],
    ] {
        let out = run(dir.path(), &[&["predict", demo][..], &wrong].concat());
        assert_eq!(out.status.code(), Some(2), "{wrong:?}");
    }
}

/// If the simulation of the unchanged run does not give nearly the recorded time, a forecast has a warning. The
/// forecast of a change is then compared with the simulated time of the unchanged run, not with the recorded time.
#[test]
fn a_forecast_is_told_against_what_it_takes_unchanged() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let forecast = |name: &str, options: &[&str]| {
        let file = fixtures.join(name);
        let args = [&["predict", file.to_str().unwrap()], options].concat();
        let out = run(&fixtures, &[&args[..], &["--format", "json"]].concat());
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let text = String::from_utf8(run(&fixtures, &args).stdout).unwrap();
        (json, text)
    };
    let (same, text) = forecast("advice/busy-tests.bin", &[]);
    let unchanged = same["unchanged_ns"].as_u64().unwrap();
    let recorded = same["recorded"]["wall_ns"].as_u64().unwrap();
    assert!(unchanged * 10 < recorded * 8, "{same}");
    assert_eq!(same["wall"]["likely_ns"], unchanged);
    assert!(
        same["wall"]["high_ns"].as_u64().unwrap() >= recorded,
        "{same}"
    );
    let said = same["warnings"][0].as_str().unwrap();
    assert!(
        said.starts_with("with nothing changed, the simulation takes "),
        "{said}"
    );
    assert!(
        text.starts_with("unchanged ") && text.contains("! with nothing changed"),
        "{text}"
    );
    let (more, _) = forecast("advice/busy-tests.bin", &["--cpus", "4"]);
    assert_eq!(more["unchanged_ns"], unchanged);
    // The simulated time is shorter than the recorded one, because it lacks the time that other tasks took. With these
    // options the user wants to leave that time out, so there is no warning.
    for options in [&["--alone"][..], &["--quota", "100%"]] {
        let (other, text) = forecast("advice/busy-tests.bin", options);
        assert!(
            other["unchanged_ns"].is_null() && !text.contains("with nothing changed"),
            "{text}"
        );
    }
    let (good, text) = forecast("traces/demo.bin", &["--cpus", "4"]);
    assert!(
        good["unchanged_ns"].is_null() && !text.contains('!'),
        "{text}"
    );
    assert_eq!(good["warnings"], serde_json::json!([]));
}

/// The page of a forecast has a schedule for each position of its sliders, and loads nothing.
#[test]
fn a_forecast_is_a_page() {
    let demo = demo();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "predict",
        demo.to_str().unwrap(),
        "--cpus",
        "6",
        "--format",
        "html",
    ];
    let out = run(dir.path(), &args);
    assert!(out.status.success(), "{}", said(&out));
    let page = String::from_utf8(out.stdout).unwrap();
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    let data = page.split(r#"id="data">"#).nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let bars = data["names"].as_array().unwrap().len() * 2;
    assert!(bars > 20);
    let runs = data["runs"].as_array().unwrap();
    let of = |cpus: u64, jobs: Option<u64>| {
        let mut runs = runs.iter();
        let run = runs.find(|run| run["cpus"] == cpus && run["jobs"].as_u64() == jobs);
        run.unwrap()
    };
    for cpus in [1, 2, 4, 6, 8, 16, 32, 64] {
        for jobs in [None, Some(1), Some(2), Some(64)] {
            let run = of(cpus, jobs);
            assert_eq!(run["bars"].as_array().unwrap().len(), bars);
            let last = run["bars"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| run.as_u64().unwrap());
            assert!(last.max().unwrap() <= run["wall"][1].as_u64().unwrap() / 1000);
        }
    }
    // Simulating the recorded machine does not give exactly the recorded ends of the bars. Each end may be up to 1.2 s
    // (a tenth of the whole time) earlier or later.
    let ends = |bars: &serde_json::Value| {
        let bars = bars.as_array().unwrap().iter().skip(1).step_by(2);
        bars.map(|bar| bar.as_u64().unwrap()).collect::<Vec<_>>()
    };
    let recorded = ends(&data["recorded"]["bars"]);
    for (is, was) in ends(&of(2, None)["bars"]).into_iter().zip(recorded) {
        assert!(is.abs_diff(was) < 1_200_000, "{is} {was}");
    }
}

/// The help of `tr analyze` has the option `--report` first, and lists the reports of one topic together.
#[test]
fn help_has_the_reports_by_topic() {
    let dir = tempfile::tempdir().unwrap();
    let out = run(dir.path(), &["analyze", "--help"]);
    let help = String::from_utf8_lossy(&out.stdout).into_owned();
    let (_, options) = help.split_once("\nOptions:\n").unwrap();
    assert!(options.trim_start().starts_with("--report "), "{options}");
    let (reports, _) = options.split_once("\n      --").unwrap();
    let values = reports.lines().filter_map(|line| {
        let (_, help) = line.trim().strip_prefix("- ")?.split_once(':')?;
        Some(help.trim().split(':').next()?.to_owned())
    });
    let mut topics: Vec<String> = values.collect();
    assert!(topics.len() > 20, "{topics:?}");
    assert_eq!(topics.pop().as_deref(), Some("All of them"));
    topics.dedup();
    assert_eq!(topics, ["time", "processes", "waits", "machine", "trust"]);
}

/// `--version --verbose` lists the formats, methods and schemas of this program, for bug reports and scripts. Each
/// listed schema can be printed.
#[test]
fn a_verbose_version_names_what_the_program_knows() {
    let dir = tempfile::tempdir().unwrap();
    let short = String::from_utf8(run(dir.path(), &["--version"]).stdout).unwrap();
    let out = run(dir.path(), &["--version", "--verbose"]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text.lines().next(), short.lines().next());
    let fact = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} {text}"))
            .trim()
            .to_owned()
    };
    let info = run(
        dir.path(),
        &["info", demo().to_str().unwrap(), "--format", "json"],
    );
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
    assert!(info.is_object() && fact("writes:").starts_with("traces of format 3."));
    for format in fact("exports:").split(' ') {
        let out = run(
            dir.path(),
            &["export", "absent.bin", "--format", format, "-o", "x"],
        );
        let said = said(&out);
        assert!(!said.contains("invalid value"), "{format}: {said}");
    }
    for schema in fact("schemas:").split(' ') {
        let out = run(dir.path(), &["schema", schema]);
        let schema: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert!(schema["$id"].is_string(), "{schema}");
    }
}

/// Job graphs and answers of CI systems are read up to 16 MiB, even from a device that never ends.
#[test]
fn files_of_jobs_have_a_largest_size() {
    let dir = tempfile::tempdir().unwrap();
    let trace = demo().to_string_lossy().into_owned();
    let file = |name: &str, size: u64| {
        let path = dir.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(size).unwrap();
        path.to_string_lossy().into_owned()
    };
    let largest = 16 << 20;
    let (fits, exceeds) = (file("fits", largest), file("exceeds", largest + 1));
    for option in ["--graph", "--jobs"] {
        for (path, is_too_large) in [(&*fits, false), (&exceeds, true), ("/dev/zero", true)] {
            let out = run(dir.path(), &["pipeline", &trace, option, path]);
            let said = said(&out);
            assert_eq!(out.status.code(), Some(2), "{option} {path}: {said}");
            let refused = said.contains("larger than 16 MiB");
            assert_eq!(refused, is_too_large, "{option} {path}: {said}");
            assert!(said.len() < 1000, "{option} {path}");
        }
    }
}
