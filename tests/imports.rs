//! Tests `--with`: files of real tools, recorded here if the tools are installed, and stored recordings with such
//! files.
#![allow(clippy::expect_used, clippy::indexing_slicing)] // a JSON value indexes to null

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed};
use serde_json::Value;

mod common;

use common::{int, lacks, list, said, why_not, TR};

fn main() {
    let args = Arguments::from_args();
    let reason = why_not();
    let recorded = |name: &str, needs: Option<String>, test: fn() -> Result<(), Failed>| {
        common::trial(name, reason.clone().or(needs), test)
    };
    let trials = vec![
        recorded("clang", lacks("clang++"), clang),
        recorded("ninja", lacks("ninja").or(lacks("cc")), ninja),
        recorded("cargo", lacks("cargo").or(lacks("cc")), cargo),
        recorded("pytest", common::lacks_module("pytest"), pytest),
        common::trial("stored", None, stored),
        common::trial("junit_out", None, junit_out),
        common::trial("plan", None, plan),
        common::trial("paths", None, paths),
        common::trial("directories", None, directories),
        common::trial("hostile_names", None, hostile),
    ];
    libtest_mimic::run(&args, trials).exit();
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/imports")
}

/// `tr predict --plan` distributes the tests of a report among machines, and its document matches the schema.
fn plan() -> Result<(), Failed> {
    let predict = |options: &[&str]| {
        let mut command = Command::new(TR);
        command.args(["predict", "--shards", "2", "--with"]);
        command.arg(fixtures().join("tests.xml")).args(options);
        command.arg(fixtures().join("all.bin")).output()
    };
    let done = predict(&["--plan", "-"])?;
    ensure(done.status.success(), || said(&done))?;
    let document: Value = serde_json::from_slice(&done.stdout)?;
    let schema = Command::new(TR).args(["schema", "shards"]).output()?;
    let schema: Value = serde_json::from_slice(&schema.stdout)?;
    common::schema::validate(&schema, &document)?;
    // The recording does not show when any of the four tests ran, so no duration comes from the recording. The report
    // has the durations of three tests. The test without a duration gets the median of the others.
    let counts = ["recording", "report", "median"].map(|name| int(&document["counts"], name));
    let tests = list(&document, "shards")
        .iter()
        .map(|shard| list(shard, "tests").len());
    ensure(counts.iter().sum::<u64>() == 4 && counts[0] == 0, || {
        document.to_string()
    })?;
    ensure(
        tests.clone().sum::<usize>() == 4 && tests.min() > Some(0),
        || document.to_string(),
    )?;
    // A plan for Jest distributes whole files, but all tests are in one Python file, so the plan is refused. A plan
    // also does not replace a file that is no plan.
    let place = scratch("plan")?;
    let other = place.join("other");
    std::fs::write(&other, "notes")?;
    let other = other.to_string_lossy();
    for (options, why) in [
        (
            &["--plan", "-", "--plan-format", "jest"][..],
            "no two files",
        ),
        (&["--plan", &other], "--force"),
    ] {
        let done = predict(options)?;
        ensure(!done.status.success() && said(&done).contains(why), || {
            said(&done)
        })?;
    }
    Ok(())
}

/// `--format junit` writes the test report again: the tests in it get properties, and everything else stays as it was.
fn junit_out() -> Result<(), Failed> {
    let place = scratch("junit-out")?;
    let trace = fixtures().join("all.bin");
    // The test that is added to the report is named "0.2". Exactly one recorded process has this argument, so that
    // process ran the test.
    let report = place.join("tests.xml");
    let written = std::fs::read_to_string(fixtures().join("tests.xml"))?;
    let own = "<testcase classname=\"x\" name=\"0.2\" time=\"0.200\" />";
    let with_own = written.replace("</testsuite>", &format!("{own}</testsuite>"));
    std::fs::write(&report, with_own)?;
    let export = |with: &Path, out: &Path| {
        let mut command = Command::new(TR);
        command.args(["export", "--format", "junit", "-o"]).arg(out);
        command.arg("--with").arg(with).arg(&trace).output()
    };
    let out = place.join("out.xml");
    let done = export(&report, &out)?;
    ensure(done.status.success(), || said(&done))?;
    let (before, after) = (
        std::fs::read_to_string(&report)?,
        std::fs::read_to_string(&out)?,
    );
    for wanted in [
        "<testcase classname=\"x\" name=\"0.2\" time=\"0.200\"><properties><property name=\"tr.place\" value=\"exact\"/>",
        "name=\"tr.verdict\" value=\"sleep\"",
        "name=\"tr.cpu_s\" value=\"0.002\"",
    ] {
        ensure(after.contains(wanted), || format!("no {wanted} in {after}"))?;
    }
    // For the other tests, the time is only known to lie within the life of one program, which has the report's name as
    // an argument.
    let unsure = after
        .matches("<properties><property name=\"tr.place\" value=\"±")
        .count();
    let counts = [unsure, after.matches("name=\"tr.cpu_s\"").count()];
    ensure(counts == [4, 1], || after.clone())?;
    let mut rest = after.clone();
    while let (Some(from), Some(to)) = (rest.find("<properties>"), rest.find("</properties>")) {
        rest.replace_range(from..to + "</properties>".len(), "");
    }
    // The original report has empty-element tags, such as `<testcase … />`. After the export such an element has an end
    // tag, which is undone for the comparison.
    let rest = rest.replace("\"></testcase>", "\" />");
    ensure(rest == before, || format!("{rest}\ninstead of\n{before}"))?;
    // Exporting the exported report once more changes nothing. For this test, the exported report first replaces the
    // original. The recorded command line has the original's path, which helps to find when the tests ran.
    std::fs::copy(&out, &report)?;
    let done = export(&report, &report)?;
    ensure(done.status.success(), || said(&done))?;
    ensure(std::fs::read_to_string(&report)? == after, || {
        "written twice".into()
    })?;
    // A damaged report and a file that is no report are refused.
    let damaged = place.join("damaged.xml");
    std::fs::write(&damaged, &before[..before.len() / 2])?;
    for with in [damaged, fixtures().join("main.json")] {
        let done = export(&with, &place.join("none.xml"))?;
        ensure(done.status.code() == Some(2), || said(&done))?;
        ensure(!place.join("none.xml").exists(), || "an output".into())?;
    }
    Ok(())
}

fn scratch(name: &str) -> std::io::Result<PathBuf> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("imports")
        .join(name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

fn ensure(good: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    Ok(common::ensure(good, what)?)
}

/// The result of an analysis with other tools' files (`--with`): the steps, the facts about each file, and the
/// messages on standard error.
struct Analyzed {
    steps: Vec<Value>,
    imports: Vec<Value>,
    said: String,
}

fn analyze(trace: &Path, with: &[&str], more: &[&str]) -> Result<Analyzed, Failed> {
    let with = with.iter().flat_map(|path| ["--with", path]);
    let out = Command::new(TR)
        .arg("analyze")
        .arg(trace)
        .args(["--report", "steps,quality", "--format", "json"])
        .args(with)
        .args(more)
        .current_dir(trace.parent().unwrap_or(Path::new(".")))
        .output()?;
    ensure(out.status.success(), || said(&out))?;
    let document: Value = serde_json::from_slice(&out.stdout)?;
    Ok(Analyzed {
        steps: list(&document["steps"], "steps").to_vec(),
        imports: list(&document["quality"], "imports").to_vec(),
        said: String::from_utf8_lossy(&out.stderr).into_owned(),
    })
}

/// Records the example project of one tool and analyzes the recording with the file that the tool wrote.
fn recorded(tool: &str, with: &str) -> Result<Analyzed, Failed> {
    let directory = scratch(tool)?;
    let out = Command::new(TR)
        .args(["record", "-q", "-o", "trace.bin", "--", "sh"])
        .arg(fixtures().join("project.sh"))
        .arg(tool)
        .current_dir(&directory)
        .env_remove("CARGO_TARGET_DIR")
        .output()?;
    ensure(out.status.success(), || said(&out))?;
    analyze(&directory.join("trace.bin"), &[with], &[])
}

/// All steps with this name.
fn named<'a>(steps: &'a [Value], name: &str) -> Vec<&'a Value> {
    steps.iter().filter(|step| step["name"] == name).collect()
}

/// The only step with this name; its kind must be the given one.
fn only<'a>(steps: &'a [Value], kind: &str, name: &str) -> Result<&'a Value, Failed> {
    match named(steps, name).as_slice() {
        [step] if step["kind"] == kind => Ok(step),
        found => Err(format!("{name}: {found:#?}").into()),
    }
}

/// Checks that every span of the only imported file was placed in the recording.
fn all_placed(analyzed: &Analyzed, at_least: u64) -> Result<(), Failed> {
    let [import] = analyzed.imports.as_slice() else {
        return Err(format!("{:?}", analyzed.imports).into());
    };
    let (spans, placed) = (int(import, "spans"), int(import, "placed"));
    ensure(spans == placed && spans >= at_least, || format!("{import}"))
}

/// The tolerance of times in ns: Cargo rounds to hundredths of a second, ninja to milliseconds.
const GRAIN: u64 = 10_000_000;

/// Checks that one step lies inside of another one, by its times and in the tree of steps.
fn inside(steps: &[Value], inner: &Value, outer: &Value) -> Result<(), Failed> {
    let times = |step: &Value| {
        (
            int(step, "start_ns"),
            int(step, "start_ns") + int(step, "wall_ns"),
        )
    };
    let ((from, to), (start, end)) = (times(inner), times(outer));
    let mut around = inner;
    let mut is_below = false;
    while let Some(id) = around["parent"].as_u64() {
        let parent = steps.iter().find(|step| int(step, "id") == id);
        around = parent.ok_or("no parent")?;
        is_below |= around == outer;
    }
    let good = is_below && start <= from + GRAIN && to <= end + GRAIN;
    ensure(good, || format!("{inner:#}\nis not inside of\n{outer:#}"))
}

/// clang's file names its pid, so its spans are placed inside of that process.
fn clang() -> Result<(), Failed> {
    let analyzed = recorded("clang", "out/main.json")?;
    all_placed(&analyzed, 3)?;
    let steps = &analyzed.steps;
    let object = only(steps, "target", "out/main.o")?;
    let compiler = only(steps, "unit", "ExecuteCompiler")?;
    inside(steps, compiler, object)?;
    let frontend = named(steps, "Frontend");
    let backend = only(steps, "unit", "Backend")?;
    inside(steps, backend, compiler)?;
    inside(steps, frontend.first().ok_or("no Frontend")?, compiler)?;
    // The time in clang's own file must not exceed the recorded time. The time in the file may be much less, because
    // loading a compiler that is not cached takes most of the time.
    let (part, whole) = (int(compiler, "wall_ns"), int(object, "wall_ns"));
    ensure(part * 20 > whole && part <= whole, || {
        format!("{part} of {whole}")
    })
}

/// ninja ran twice. For each output, ninja's log has only the last command that made the output. Commands of the second
/// run must lie inside of the second ninja process. Commands that only the first run executed must lie inside of the
/// first process.
fn ninja() -> Result<(), Failed> {
    let analyzed = recorded("ninja", ".ninja_log")?;
    let [import] = analyzed.imports.as_slice() else {
        return Err(analyzed.said.into());
    };
    // The log has four commands of two runs of ninja; each of them is placed in the run to which it belongs.
    let (spans, placed) = (int(import, "spans"), int(import, "placed"));
    ensure(spans == 4 && placed == 4, || format!("{import}"))?;
    let steps = &analyzed.steps;
    let runs = named(steps, "ninja");
    let [first, second] = runs.as_slice() else {
        return Err(format!("{runs:#?}").into());
    };
    let generated = only(steps, "target", "out/a.h and 1 more")?;
    inside(steps, generated, first)?;
    ensure(int(generated, "wall_ns") >= 200_000_000, || {
        format!("{generated:#}")
    })?;
    inside(steps, only(steps, "target", "out/a.o")?, first)?;
    for name in ["out/b.o", "out/program"] {
        let made = named(steps, name);
        let again = made.last().ok_or("not made")?;
        inside(steps, again, second)?;
    }
    Ok(())
}

fn cargo() -> Result<(), Failed> {
    let analyzed = recorded("cargo", "target/cargo-timings")?;
    all_placed(&analyzed, 4)?;
    let steps = &analyzed.steps;
    let build = only(steps, "target", "cargo build")?;
    for target in [
        "",
        " build-script",
        " build-script (run)",
        " small-package \"bin\"",
    ] {
        let unit = only(steps, "unit", &format!("small-package v1.2.3{target}"))?;
        inside(steps, unit, build)?;
    }
    // cargo's file and the compiler's command line both name the package. Only the name in cargo's file becomes a step.
    let again = named(steps, "small_package");
    let is_unit = |step: &&Value| step["kind"] == "unit";
    ensure(!again.iter().any(is_unit), || format!("{again:#?}"))?;
    let library = only(steps, "unit", "small-package v1.2.3")?;
    for part in ["frontend", "codegen"] {
        inside(steps, only(steps, "unit", part)?, library)?;
    }
    Ok(())
}

fn pytest() -> Result<(), Failed> {
    let analyzed = recorded("pytest", "tests.xml")?;
    all_placed(&analyzed, 4)?;
    tests(&analyzed.steps)
}

/// The tests of the project have their results, and have slept for as long as the recording shows.
fn tests(steps: &[Value]) -> Result<(), Failed> {
    let runner = only(steps, "test", "pytest")?;
    for (name, result, sleep) in [
        ("test_sleeps", "passed", 300),
        ("test_fails", "failed", 0),
        ("test_skipped", "skipped", 0),
        ("test_sleeps_less", "passed", 100),
    ] {
        let test = only(steps, "test", &format!("test_small {name}"))?;
        inside(steps, test, runner)?;
        ensure(test["result"] == result, || format!("{test:#}"))?;
        if test["no_figures"].is_string() {
            // Neither the file nor the recording shows when the tests began, so the tests have no figures from the
            // recording.
            ensure(test["spent"].is_null(), || format!("{test:#}"))?;
        } else {
            let slept = test["spent"]["sleep_ns"].as_u64().unwrap_or(0);
            // The begin of a test is computed by adding up the durations of the tests before, so the begin is not
            // exact. Therefore it suffices if 30 % of the test's sleep are found.
            ensure(slept >= sleep * 300_000, || format!("{test:#}"))?;
        }
    }
    Ok(())
}

/// Analyzes the stored recording of all four tools with the files of these tools.
fn stored() -> Result<(), Failed> {
    let trace = fixtures().join("all.bin");
    let analyzed = analyze(&trace, &["."], &[])?;
    let rows = analyzed.imports.iter().map(|import| {
        let file = import["file"].as_str().unwrap_or_default();
        let (spans, placed) = (int(import, "spans"), int(import, "placed"));
        format!("{file}: {placed} of {spans}")
    });
    let rows: Vec<String> = rows.collect();
    let want = [
        "./.ninja_log: 4 of 4",
        "./cargo-timing.html: 4 of 4",
        "./main.json: 67 of 67",
        "./tests.xml: 4 of 4",
    ];
    ensure(rows == want, || format!("{rows:#?}\n{}", analyzed.said))?;
    tests(&analyzed.steps)?;
    // Without the tools' files the recording has none of the steps that come from these files.
    let plain = analyze(&trace, &[], &[])?;
    ensure(named(&plain.steps, "ExecuteCompiler").is_empty(), || {
        "steps of no file".into()
    })?;
    // If only a part of the recording is analyzed, the report has the number of spans outside of this part.
    let part = analyze(&trace, &["main.json"], &["--from", "2s"])?;
    let outside = part.imports.first().map(|import| int(import, "outside"));
    ensure(outside == Some(67), || part.said.clone())?;
    ensure(
        part.said.contains("67 outside of the analyzed span"),
        || part.said.clone(),
    )
}

/// A path that cannot be read is an error. In a directory, a file of no known kind is skipped, and a damaged file is
/// named.
fn paths() -> Result<(), Failed> {
    let directory = scratch("paths")?;
    let trace = fixtures().join("all.bin");
    std::fs::write(directory.join("package.json"), "{\"name\": \"x\"}")?;
    std::fs::write(directory.join("page.xml"), "<html><body></html>")?;
    let cut = &std::fs::read(fixtures().join("main.json"))?[..400];
    let cut = [cut, b"\"beginningOfTime\"".as_slice()].concat();
    std::fs::write(directory.join("cut.json"), cut)?;
    let run = |path: &Path| {
        let analyze = ["analyze", "--report", "quality", "--with"];
        let mut command = Command::new(TR);
        command.args(analyze).arg(path).arg(&trace).output()
    };
    let out = run(&directory)?;
    let text = said(&out);
    ensure(out.status.success(), || text.clone())?;
    ensure(
        text.contains("cut.json: Chrome Trace Event format: "),
        || text.clone(),
    )?;
    ensure(
        !text.contains("package.json") && !text.contains("page.xml"),
        || text.clone(),
    )?;
    for path in ["missing.json", "package.json", "cut.json", "/dev/null"] {
        let out = run(&directory.join(path))?;
        ensure(out.status.code() == Some(2), || said(&out))?;
    }
    Ok(())
}

/// Files are found deep in the directories of a build. Symbolic links and files that lie too deep are named.
fn directories() -> Result<(), Failed> {
    let top = scratch("directories")?;
    let deep: PathBuf = (0..10).map(|level| format!("level{level}")).collect();
    let hidden = top.join(".git");
    let too_deep: PathBuf = (0..17).map(|level| format!("down{level}")).collect();
    for directory in [&top.join(&deep), &hidden, &top.join(&too_deep)] {
        std::fs::create_dir_all(directory)?;
        std::fs::copy(fixtures().join(".ninja_log"), directory.join(".ninja_log"))?;
    }
    let trace = fixtures().join("all.bin").canonicalize()?;
    // The path is relative and the page wide, because a long path would be broken across lines.
    let run = || -> Result<String, Failed> {
        let args = ["analyze", "--report", "quality", "--width", "200"];
        let mut command = Command::new(TR);
        command.args(args).args(["--with", "."]).arg(&trace);
        command.current_dir(&top);
        let out = command.output()?;
        ensure(out.status.success(), || said(&out))?;
        Ok(said(&out))
    };
    let text = run()?;
    let placed = |text: &str| {
        text.lines()
            .filter(|line| line.contains("of 4 spans found in the recording"))
            .count()
    };
    let named = text.lines().find(|line| line.contains("skipped"));
    ensure(
        text.contains("level9/.ninja_log") && !text.contains(".git"),
        || text.clone(),
    )?;
    ensure(
        named.is_some_and(|line| line.contains("1 directories more than 16 deep")),
        || text.clone(),
    )?;
    ensure(
        placed(&text) > 0 && !text.contains("down16/.ninja_log"),
        || text.clone(),
    )?;
    // Symbolic links are not followed, not even to a directory above.
    std::fs::remove_dir_all(top.join("down0"))?;
    std::os::unix::fs::symlink("..", top.join("level0/up"))?;
    std::os::unix::fs::symlink(top.join(&deep), top.join("again"))?;
    let text = run()?;
    ensure(text.contains("skipped: 2 symbolic links"), || text.clone())?;
    ensure(!text.contains("/up/") && !text.contains("/again/"), || text)
}

/// Names in an imported file must not act as commands for a terminal, or as markup.
fn hostile() -> Result<(), Failed> {
    let directory = scratch("hostile")?;
    let log = std::fs::read_to_string(fixtures().join(".ninja_log"))?;
    let evil = "\u{1b}]0;x\u{7}<script>alert(1)</script>";
    std::fs::write(
        directory.join(".ninja_log"),
        log.replace("out/a.h\t", &format!("{evil}\t")),
    )?;
    let trace = fixtures().join("all.bin");
    for (args, bad) in [
        (
            ["analyze", "--report", "steps", "--width", "200"].as_slice(),
            "\u{1b}",
        ),
        (
            ["analyze", "--report", "steps", "--format", "json"].as_slice(),
            "\u{1b}",
        ),
        (["report", "-o", "-"].as_slice(), "<script>alert"),
    ] {
        let mut command = Command::new(TR);
        let out = command
            .args(args)
            .arg("--with")
            .arg(&directory)
            .arg(&trace)
            .output()?;
        ensure(out.status.success(), || said(&out))?;
        let text = String::from_utf8_lossy(&out.stdout);
        ensure(!text.contains(bad), || text.clone().into_owned())?;
        if !bad.starts_with('<') {
            ensure(text.contains("alert(1)"), || {
                format!("{args:?}: not placed")
            })?;
        }
    }
    Ok(())
}
