//! Scores `--report advice` on recorded builds, most of which have one planted fault (fixtures/advice), and checks the
//! first screen of `tr analyze`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The least percentage of all lines of advice about these builds that must be right.
const RIGHT: usize = 95;
/// The least percentage of planted faults that must be named by the first line of advice.
const FIRST: usize = 90;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/advice")
}

fn analyze(trace: &Path, args: &[&str]) -> String {
    let mut tr = Command::new(env!("CARGO_BIN_EXE_tr"));
    // The file is named without the checkout's path, which may be so long that the report breaks its lines.
    tr.arg("analyze").arg(trace.file_name().unwrap()).args(args);
    tr.current_dir(trace.parent().unwrap());
    let out = tr.output().unwrap();
    assert!(out.status.success(), "{}: {out:?}", trace.display());
    String::from_utf8(out.stdout).unwrap()
}

fn advice(trace: &Path) -> Vec<Value> {
    let json = analyze(trace, &["--report", "advice", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    json["advice"]["advice"].as_array().unwrap().clone()
}

/// A recorded build: its name, the kind of advice for its planted fault, and other kinds of advice that are right, too.
struct Build {
    name: String,
    planted: Option<String>,
    right: Vec<String>,
}

fn builds() -> Vec<Build> {
    let expected = std::fs::read_to_string(folder().join("expected.txt")).unwrap();
    let lines = expected.lines().filter(|line| !line.starts_with('#'));
    let builds = lines.map(|line| {
        let (name, kinds) = line.split_once(':').unwrap();
        let (planted, also) = kinds.split_once('+').unwrap_or((kinds, ""));
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        Build {
            name: name.to_owned(),
            planted: words(planted).pop(),
            right: words(also),
        }
    });
    builds.collect()
}

#[test]
fn planted_faults_are_found_and_little_else() {
    let (mut missed, mut wrong, mut lines) = (Vec::new(), Vec::new(), 0);
    let mut first = 0;
    let builds = builds();
    for build in &builds {
        let advice = advice(&folder().join(format!("{}.bin", build.name)));
        let kinds: Vec<&str> = advice
            .iter()
            .map(|advice| advice["kind"].as_str().unwrap())
            .collect();
        let is_planted = |kind: &&str| build.planted.as_deref() == Some(kind);
        if build.planted.is_some() && !kinds.iter().take(3).any(&is_planted) {
            missed.push(format!("{}: {kinds:?}", build.name));
        }
        first += usize::from(kinds.first().is_some_and(is_planted));
        let right = |kind: &&str| is_planted(kind) || build.right.iter().any(|right| right == kind);
        lines += kinds.len();
        let others = kinds.iter().zip(&advice).filter(|(kind, _)| !right(kind));
        wrong.extend(others.map(|(_, it)| format!("{}: {}", build.name, it["finding"])));
    }
    assert!(missed.is_empty(), "missed: {missed:#?}");
    assert!(
        wrong.len() * 100 <= lines * (100 - RIGHT),
        "{} of {lines} lines are wrong: {wrong:#?}",
        wrong.len()
    );
    let planted = builds
        .iter()
        .filter(|build| build.planted.is_some())
        .count();
    assert!(
        planted >= 24 && builds.len() - planted >= 12,
        "{planted} of {}",
        builds.len()
    );
    assert!(first * 100 >= planted * FIRST, "{first} of {planted}");
    println!(
        "{planted} faults found, {first} named first; {} of {lines} lines are wrong",
        wrong.len()
    );
}

/// If make starts several other makes one after the other, each of them may need the results of the make before. A
/// recording does not show that, so the least gain of starting the makes at once is 0. Compilers that one make starts
/// are independent, so their least gain is more than 0.
#[test]
fn builds_below_a_make_may_save_nothing() {
    for (build, some) in [("submakes", false), ("make-one", true)] {
        let trace = folder().join(format!("{build}.bin"));
        let args = ["--report", "advice", "--format", "json"];
        let json: Value = serde_json::from_str(&analyze(&trace, &args)).unwrap();
        let first = &json["advice"]["advice"][0];
        assert_eq!(first["kind"], "few-jobs", "{json}");
        let least = first["gain_at_least_ns"].as_u64();
        assert_eq!(least > Some(0), some, "{first}");
        // In `submakes` the makes run one after the other; in `make-one` the compilers do.
        let jobs = if some { "× cc1" } else { "× make" };
        assert!(first["finding"].as_str().unwrap().contains(jobs), "{first}");
    }
}

/// If one process does all of COMMAND's work, the advice is to divide its work. Starting COMMAND by timeout(1) changes
/// nothing.
#[test]
fn a_wrapper_changes_no_answer() {
    let line = &of_build("alone-below")[0];
    assert_eq!(
        line["action"], "divide its work among the CPUs, if its parts are independent",
        "{line}"
    );
    let gain = line["gain_at_most_ns"].as_f64().unwrap();
    assert!(gain < wall("alone-below").0 * 0.6e9, "{line}");
}

/// A make that is not called as `$(MAKE)` gets no job slots from the make that calls it. Its arguments do not show how
/// it was called, so the advice has a condition: "call it as $(MAKE), if it is not".
#[test]
fn a_make_without_job_slots_may_be_called_wrongly() {
    let line = &of_build("make-literal")[0];
    assert_eq!(line["action"], "call it as $(MAKE), if it is not");
    assert_eq!(line["gain_at_least_ns"], 0, "{line}");
    // A make that waits for a job slot was called as `$(MAKE)`, so it gets no such advice.
    let slots = of_build("slots");
    assert!(
        slots.iter().all(|slot| kind(slot) != "few-jobs"),
        "{slots:?}"
    );
}

/// A report has at most seven lines of advice. Each gain is between 2 % and 100 % of the critical path's time without
/// the time that other tasks or a quota took. Larger gains come first, except that work that runs alone comes last.
#[test]
fn gains_are_limits() {
    for build in builds() {
        let trace = folder().join(format!("{}.bin", build.name));
        let args = ["--report", "advice,critical-path", "--format", "json"];
        let json: Value = serde_json::from_str(&analyze(&trace, &args)).unwrap();
        let wall = json["critical_path"]["path"]["wall_ns"].as_u64().unwrap();
        let all = json["advice"]["advice"].as_array().unwrap();
        let machines =
            |value: &&Value| matches!(value["kind"].as_str(), Some("others" | "throttled"));
        let gain = |line: &Value| {
            let gain = |name: &str| line[name].as_u64().unwrap();
            let (least, most) = (gain("gain_at_least_ns"), gain("gain_at_most_ns"));
            assert!(least <= most, "{line}");
            (least, most)
        };
        let withheld: u64 = all.iter().filter(machines).map(|line| gain(line).1).sum();
        let gains = all.iter().filter(|line| !machines(line));
        let gains: Vec<(&str, (u64, u64))> = gains.map(|line| (kind(line), gain(line))).collect();
        assert!(all.len() <= 7, "{}", build.name);
        let wall = wall - withheld;
        // Sleeps may be longer without other tasks, as far as the forecast allows for it.
        let most = json["advice"]["verdict"]["alone_at_most_ns"].as_u64();
        let most = most.map_or(wall, |most| most.max(wall));
        assert!(
            gains.is_sorted_by_key(|(kind, gain)| (*kind == "alone", Reverse(gain.0 + gain.1))),
            "{}: {gains:?}",
            build.name
        );
        for (kind, (_, gain)) in gains {
            let most = if kind == "sleep" { most } else { wall };
            assert!(
                gain * 50 >= wall && gain <= most,
                "{}: {gain} of {wall}",
                build.name
            );
        }
    }
}

fn of_build(name: &str) -> Vec<Value> {
    advice(&folder().join(format!("{name}.bin")))
}

fn kind(line: &Value) -> &str {
    line["kind"].as_str().unwrap()
}

/// The length of the critical path in seconds, and the number of these seconds that other tasks and a quota took.
fn wall(name: &str) -> (f64, f64) {
    let trace = folder().join(format!("{name}.bin"));
    let args = ["--report", "advice,critical-path", "--format", "json"];
    let json: Value = serde_json::from_str(&analyze(&trace, &args)).unwrap();
    let lines = json["advice"]["advice"].as_array().unwrap();
    let lines = lines
        .iter()
        .filter(|line| matches!(kind(line), "others" | "throttled"));
    let withheld: f64 = lines
        .map(|value| value["gain_at_most_ns"].as_f64().unwrap())
        .sum();
    let wall = json["critical_path"]["path"]["wall_ns"].as_f64().unwrap();
    (wall / 1e9, withheld / 1e9)
}

/// If other load or a quota limits the CPUs, another number of jobs gains nothing or does harm. So no advice proposes
/// another number.
#[test]
fn beside_other_load_no_number_of_jobs_is_advised() {
    for build in builds() {
        let busy = build.name.starts_with("busy-") || build.name.starts_with("quota");
        // Two builds may have advice about jobs although other load limits the CPUs: a shell loop, for which no number
        // of jobs can be given, and a make that limits itself because of other load (`-l`).
        if !busy || ["busy-loop", "busy-load"].contains(&build.name.as_str()) {
            continue;
        }
        let lines = of_build(&build.name);
        assert!(!lines.is_empty(), "{}", build.name);
        for line in lines {
            let jobs = matches!(kind(&line), "few-jobs" | "tests" | "many-jobs");
            let action = line["action"].as_str().unwrap();
            assert!(!jobs && !action.contains("-j"), "{}: {line}", build.name);
        }
    }
    // Jobs of this build wait for each other's locks. These waits lose no time, because all CPUs are busy anyway. So
    // there is no advice about the locks.
    assert_eq!(of_build("many-jobs"), [] as [Value; 0]);
}

/// If the time that other tasks took is subtracted, a build on a busy machine took about as long as the same build on
/// an idle one.
#[test]
fn what_others_took_is_told_apart() {
    for (busy, idle) in [
        ("busy-jobs", "clean-make"),
        ("busy-repeated", "repeated-compiler"),
        ("busy-serial", "make-j1"),
        ("busy-generator", "generator"),
    ] {
        let ((wall, others), (alone, _)) = (self::wall(busy), self::wall(idle));
        let ratio = (wall - others) / alone;
        assert!(wall > alone * 1.2, "{busy}: {wall} s");
        assert!(
            (0.8..1.2).contains(&ratio),
            "{busy}: {wall} - {others}, not {alone}"
        );
    }
}

fn verdict(name: &str) -> Value {
    let trace = folder().join(format!("{name}.bin"));
    let json = analyze(&trace, &["--report", "advice", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    json["advice"]["verdict"].clone()
}

/// A build that a time-out killed waited for its own work, not for the process that sent the signal.
#[test]
fn a_time_out_is_no_cause() {
    for (name, what, program) in [
        ("killed-sleep", "sleep", Some("make")),
        ("killed-work", "on_cpu", Some("python3")),
        ("busy-killed", "run_queue", None),
    ] {
        let trace = folder().join(format!("{name}.bin"));
        let json = analyze(&trace, &["--report", "critical-path", "--format", "json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        let path = &json["critical_path"]["path"];
        let share = &path["shares"][0];
        let is = (share["what"].as_str().unwrap(), share["program"].as_str());
        assert_eq!(is, (what, program), "{name}");
        let part = share["time_ns"].as_f64().unwrap() / path["wall_ns"].as_f64().unwrap();
        assert!(part > 0.5, "{name}: {share}");
    }
}

/// If a failing command is tried again and again, the tries are neither parallel jobs nor repeated work, because each
/// try follows from the failure of the try before. If a program naps and then kills its child, the naps are reported as
/// a time-out.
#[test]
fn a_try_and_a_time_out_are_what_they_are() {
    let kinds = |name: &str| -> Vec<String> {
        let lines = of_build(name);
        lines.iter().map(|line| kind(line).to_owned()).collect()
    };
    assert_eq!(kinds("retry"), ["sleep"]);
    // A server that is ended after the tests is not reported as a child that was killed after a time-out.
    assert_eq!(kinds("server-tests"), ["poll"]);
    assert_eq!(kinds("time-out"), ["sleep"]);
    assert_eq!(kinds("time-out-kill"), Vec::<String>::new());
    let text = analyze(&folder().join("time-out.bin"), &[]);
    let waits = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        waits.contains("of its own, mostly sleep in wait.py (")
            && waits.contains("≤ 1.19 s wait.py sleeps 1.19 s, 29 times, and then kills sleep 30: find out why it does not end"),
        "{text}"
    );
}

/// Each of these findings follows from what the processes do, not from their names.
#[test]
fn waits_have_the_cause_that_the_recording_shows() {
    let finding = |name: &str| of_build(name)[0]["finding"].as_str().unwrap().to_owned();
    let gain = |name: &str| of_build(name)[0]["gain_at_most_ns"].as_u64().unwrap();
    let launcher = finding("launcher");
    assert!(
        launcher.starts_with("launch itself takes ") && launcher.ends_with(" to become 5 programs"),
        "{launcher}"
    );
    // The heartbeat process sleeps as well, but beside the tests, and no test waits for this process. So the reported
    // sum of the sleeps does not contain the heartbeat's sleeps.
    let heartbeat = finding("heartbeat");
    assert!(
        heartbeat.starts_with("ask.py 5 0.3 0 sleeps 1.50 s") && !heartbeat.contains("while"),
        "{heartbeat}"
    );
    assert!(gain("heartbeat") > 1_450_000_000);
    // The script stops its child every 100 ms, to keep the CPU usage low. The script does not wait for the child in
    // these times, so shorter intervals would not help. The gain is the child's CPU time, not the time in which the
    // child was stopped.
    let throttle = finding("throttle");
    assert!(
        throttle.starts_with("gentle.pl stops work.py 40 for "),
        "{throttle}"
    );
    assert!((200_000_000..400_000_000).contains(&gain("throttle")));
    let files = finding("files");
    assert!(
        files.starts_with("all.sh starts form.py 12 times, 20 ms of CPU time each"),
        "{files}"
    );
    // The program sleeps until another one has done its work, so checking more often saves at most one sleep.
    let held = finding("held");
    assert!(held.starts_with("try.py 20 checks every 50 ms, "), "{held}");
    assert!(gain("held") <= 60_000_000);
    let crowd = verdict("crowd");
    assert_eq!(crowd["blame"], "perhaps-both", "{crowd}");
    assert_eq!(crowd["not_judged"][0]["what"], "jobs", "{crowd}");
    // The recording ends during a wait for a CPU. That wait is not the build's own time.
    let cut = verdict("busy-cut");
    let ns = |key: &str| cut[key].as_u64().unwrap();
    assert!(ns("alone_ns") * 5 < ns("wall_ns"), "{cut}");
}

/// Each line of advice here follows from facts in the recording: what ended a wait, what was done after it, or what ran
/// beside it. The gain is the time that following the advice would save.
#[test]
fn a_gain_is_that_of_the_repair() {
    let first = |name: &str| {
        let line = &of_build(name)[0];
        let gain = line["gain_at_most_ns"].as_u64().unwrap() / 1_000_000;
        (line["finding"].as_str().unwrap().to_owned(), gain)
    };
    // The kernel's timer for delayed acknowledgements ended these waits, not the sender of the data.
    let (finding, gain) = first("nagle");
    let whole = "store.py waits 486 ms, 11 times, for data of ship.pl, which TCP holds back until a delayed acknowledgement";
    assert_eq!(finding, whole);
    assert!((450..500).contains(&gain), "{gain}");
    // The loop sleeps until a timer fires, and then starts a process. The advice counts the sleep as a delay of the
    // started process, not as a part of the loop's wait for that process.
    let (finding, gain) = first("ticks");
    assert!(
        finding.starts_with("loop.py waits 2.28 s for timers or time-outs, 5 × 448 ms"),
        "{finding}"
    );
    assert!((2200..2300).contains(&gain), "{gain}");
    // The longest job of the pool starts 518 ms late. Starting it first would save less than 518 ms, because the two
    // CPUs would still have to do all jobs of the pool.
    let (finding, gain) = first("pool-last");
    assert!(
        finding.starts_with("work.py 80, the longest, starts 518 ms late"),
        "{finding}"
    );
    assert!((330..400).contains(&gain), "{gain}");
    let (finding, gain) = first("requests");
    assert!(finding.starts_with("server.py computes 50"), "{finding}");
    assert!((390..=410).contains(&gain), "{gain}");
    // The program waits for 500 ms three times. In each wait its other thread works for 200 ms, so about 900 ms can be
    // saved.
    let (finding, gain) = first("signals");
    assert!(
        finding.starts_with("render waits 1.50 s for timers or time-outs, 3 × 500 ms"),
        "{finding}"
    );
    assert!((880..920).contains(&gain), "{gain}");
    // A recording does not show whether the jobs need each other's files, so the advice says "if independent".
    let lines = of_build("wrapper");
    let row = lines.iter().find(|line| kind(line) == "few-jobs").unwrap();
    assert_eq!(row["action"], "run them at once, if independent");
}

/// The text of the verdict on the first screen, on one line.
fn verdict_text(name: &str) -> String {
    let text = analyze(&folder().join(format!("{name}.bin")), &[]);
    let lines = text.lines().skip_while(|line| !line.starts_with("Verdict"));
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let words: Vec<&str> = lines
        .iter()
        .flat_map(|line| line.split_whitespace())
        .collect();
    words.join(" ")
}

/// Where no rule could judge something, the verdict names it, instead of blaming the machine alone or printing "nothing
/// stands out".
#[test]
fn what_was_not_judged_is_named() {
    for (name, blame, open, words) in [
        (
            "busy-serial",
            "perhaps-both",
            "jobs",
            "number of jobs: not judged beside this load (up to",
        ),
        (
            "busy-steps",
            "perhaps-both",
            "jobs",
            "less on free CPUs: give it -j2, if they are targets of their own)",
        ),
        (
            "quota-serial",
            "perhaps-both",
            "jobs",
            "number of jobs: not judged under this quota",
        ),
        (
            "linters",
            "code",
            "order",
            "order of 4 commands of checks.sh: not judged (at once up to",
        ),
    ] {
        let verdict = verdict(name);
        assert_eq!(verdict["blame"], blame, "{name}: {verdict}");
        assert_eq!(verdict["not_judged"][0]["what"], open, "{name}: {verdict}");
        assert!(
            verdict["not_judged"][0]["ns"].as_u64() > Some(50_000_000),
            "{verdict}"
        );
        let text = verdict_text(name);
        assert!(text.contains(words), "{name}: {text}");
        assert!(!text.contains("nothing stands out"), "{name}: {text}");
        assert!(!text.contains("no change is known"), "{name}: {text}");
        assert!(!text.contains("Verdict the machine: "), "{name}: {text}");
    }
    // No recording shows whether a program needs all of its work, so this is left of a build that uses its CPUs.
    for name in ["clean-make", "clean-xargs", "busy-jobs"] {
        let verdict = verdict(name);
        let points = verdict["not_judged"].as_array().unwrap();
        let open = points.iter().map(|point| point["what"].as_str().unwrap());
        assert_eq!(open.collect::<Vec<_>>(), ["work"], "{name}");
    }
}

/// Equal command lines are repeated work only if their inputs are equal as far as is known. Only the inputs of
/// compilers are recorded, so for other programs the least gain is 0.
#[test]
fn repeated_work_has_equal_inputs() {
    for name in ["converging", "changing", "stable"] {
        let lines = of_build(name);
        assert!(
            lines.iter().all(|line| kind(line) != "repeated"),
            "{name}: {lines:?}"
        );
        assert!(
            lines.iter().all(|line| kind(line) != "few-jobs"),
            "{name}: {lines:?}"
        );
    }
    for (name, sure) in [("repeated-compiler", true), ("repeated-generator", false)] {
        let lines = of_build(name);
        let line = lines.iter().find(|line| kind(line) == "repeated").unwrap();
        assert_eq!(line["gain_at_least_ns"].as_u64() > Some(0), sure, "{line}");
    }
}

/// If a second call of make compiles again what the first one compiled, the advice names both calls.
#[test]
fn a_make_that_compiles_again_is_named() {
    let lines = of_build("twice");
    let line = lines.iter().find(|line| kind(line) == "repeated").unwrap();
    let finding = line["finding"].as_str().unwrap();
    let named = "make -s install compiles again what make -s lib.a compiled: ";
    assert!(finding.starts_with(named), "{line}");
}

/// If a process signals another one, waits, and then kills it, the advice names both. Sleeps at a fixed rate (one
/// action in each interval) may be intended. They get no advice, and the first screen lists them as not judged.
#[test]
fn naps_before_a_kill_and_naps_of_a_rate_are_no_pauses() {
    let lines = of_build("grace");
    let of_kill = |line: &&Value| {
        let finding = line["finding"].as_str().unwrap();
        finding.starts_with("stop.sh ") && finding.ends_with("worker.py, and kills it")
    };
    let line = lines.iter().find(of_kill).unwrap();
    let gain = line["gain_ns"]
        .as_u64()
        .or(line["gain_at_most_ns"].as_u64());
    assert!(gain > Some(600_000_000), "{line}");
    assert!(
        !lines.iter().any(|line| line["action"]
            .as_str()
            .unwrap()
            .starts_with("wait for an event")),
        "{lines:?}"
    );
    let lines = of_build("rate");
    assert!(
        lines
            .iter()
            .all(|line| kind(line) != "sleep" && kind(line) != "poll"),
        "{lines:?}"
    );
    let screen = analyze(&folder().join("rate.bin"), &[]);
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        screen.contains("mostly sleep in sample.py") && screen.contains("not judged"),
        "{screen}"
    );
}

/// A program polls for the end of two children, which a quota makes slow, so the program sleeps for 12.7 s in total.
/// With free CPUs the children (0.6 s of work each) would end sooner, and the program's sleeps would last 1.5 s. The
/// forecast uses the 1.5 s.
#[test]
fn naps_for_work_without_cpus_are_fewer_on_free_ones() {
    let lines = of_build("quota-tries");
    let line = lines.iter().find(|line| kind(line) == "sleep").unwrap();
    let gain = line["gain_at_most_ns"].as_u64().unwrap();
    assert!((1_500_000_000..3_500_000_000).contains(&gain), "{line}");
    let screen = analyze(&folder().join("quota-tries.bin"), &[]);
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        screen.contains("with the CPUs to itself it takes 3."),
        "{screen}"
    );
}

/// If cargo ran its jobs one after the other, the verdict says that the number of jobs was not judged. It must not say
/// that the CPUs allow no more jobs.
#[test]
fn one_job_of_cargo_at_a_time_is_not_judged() {
    let screen = analyze(&folder().join("cargo-one.bin"), &[]);
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = "number of jobs: not judged (cargo build -q --offline runs ";
    assert!(screen.contains(named), "{screen}");
    assert!(!screen.contains("nothing stands out"), "{screen}");
}

/// If a wrapper such as npx takes CPU time itself to start other programs, the advice names that time. If a command
/// limits itself, as make does by `-l`, the advice names the limit.
#[test]
fn wrappers_and_limits_have_their_time() {
    let npx = &of_build("wrapper")[0];
    let finding = npx["finding"].as_str().unwrap();
    assert!(
        finding.starts_with("npx itself takes ") && finding.ends_with(" to start 3 programs"),
        "{npx}"
    );
    let shims = &of_build("shims")[0];
    let finding = shims["finding"].as_str().unwrap();
    assert!(
        finding.contains("shims of pyenv start 16 processes for each of 5 calls"),
        "{shims}"
    );
    let load = of_build("busy-load");
    let jobs = load.iter().find(|line| kind(line) == "few-jobs").unwrap();
    assert!(
        jobs["action"]
            .as_str()
            .unwrap()
            .contains("limit of the load (-l)"),
        "{jobs}"
    );
}

/// The kernel divides the CPUs among sessions and cgroups, but a recording of few tasks does not show how. So two jobs
/// at once beside other load may save a third of the time or nothing. A forecast of more jobs is refused with a
/// warning.
#[test]
fn a_forecast_beside_load_is_no_promise() {
    let forecast = |name: &str, options: &[&str]| -> Value {
        let mut tr = Command::new(env!("CARGO_BIN_EXE_tr"));
        tr.arg("predict").arg(folder().join(format!("{name}.bin")));
        let out = tr
            .args(options)
            .args(["--format", "json"])
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let ns = |json: &Value, key: &str| json["wall"][key].as_u64().unwrap();
    let recorded = |json: &Value| json["recorded"]["wall_ns"].as_u64().unwrap();
    let says = |json: &Value| {
        json["warnings"]
            .to_string()
            .contains("does not allow the forecast")
    };
    let beside = forecast("busy-serial", &["--jobs", "2"]);
    let many = forecast("busy-serial", &["--jobs", "8"]);
    let alone = forecast("busy-serial", &["--jobs", "8", "--alone"]);
    assert!(
        ns(&beside, "low_ns") * 3 <= recorded(&beside) * 2,
        "{beside}"
    );
    assert!(ns(&beside, "high_ns") >= recorded(&beside), "{beside}");
    assert!(says(&many) && !says(&alone), "{many} {alone}");
    let idle = forecast("make-j1", &["--jobs", "2"]);
    assert!(ns(&idle, "high_ns") < recorded(&idle), "{idle}");
    // The page has schedules for many numbers of jobs. Each schedule contains whether its own forecast is uncertain.
    let page = |options: &[&str]| {
        let mut tr = Command::new(env!("CARGO_BIN_EXE_tr"));
        tr.arg("predict").arg(folder().join("busy-serial.bin"));
        let out = tr.args(options).args(["--format", "html"]).output();
        String::from_utf8(out.unwrap().stdout).unwrap()
    };
    let wide = |page: &str| page.matches("\"wide\":true").count();
    let (beside, alone) = (page(&[]), page(&["--alone"]));
    assert!(wide(&beside) > 0, "{beside}");
    assert_eq!(wide(&alone), 0, "{alone}");
}

/// A loop sleeps until a task has done its work. While this task waits for a CPU that other tasks use, the loop's sleep
/// counts as time that the other tasks took.
#[test]
fn a_polled_jobs_wait_for_a_cpu_is_no_sleep() {
    let (busy, idle) = (verdict("busy-poll"), verdict("poll"));
    let ns = |json: &Value, key: &str| json[key].as_u64().unwrap();
    let wall = ns(&idle, "wall_ns");
    assert!(ns(&busy, "wall_ns") > wall * 5 / 4, "{busy}");
    assert!(ns(&busy, "alone_at_least_ns") <= wall, "{busy}");
    assert!(ns(&busy, "alone_at_most_ns") >= wall, "{busy}");
    assert!(ns(&busy, "alone_ns") <= wall * 5 / 4, "{busy}");
}

/// Only the test runner's own report (`--with`) names the test that takes the time.
#[test]
fn the_slowest_test_is_named_if_it_decides() {
    let trace = folder().join("slow-test.bin");
    let report = [
        "--report",
        "advice",
        "--format",
        "json",
        "--with",
        "slow-test.xml",
    ];
    let json: Value = serde_json::from_str(&analyze(&trace, &report)).unwrap();
    let lines = json["advice"]["advice"].as_array().unwrap();
    let line = lines.iter().find(|line| kind(line) == "slow-test").unwrap();
    let finding = line["finding"].as_str().unwrap();
    assert!(
        finding.starts_with("test test_all test_large, the slowest of 61, takes "),
        "{line}"
    );
    assert_eq!(line["gain_at_least_ns"], 0, "{line}");
    let without = of_build("slow-test");
    assert!(
        without.iter().all(|line| kind(line) != "slow-test"),
        "{without:?}"
    );
}

/// Make targets that run different programs may be able to run at once, so the advice proposes that. Calls of `rm` are
/// too small to count as such jobs.
#[test]
fn what_runs_in_a_row_is_judged_by_what_it_is() {
    let steps = &of_build("make-steps")[0];
    assert_eq!(kind(steps), "few-jobs");
    assert_eq!(steps["gain_at_least_ns"], 0, "{steps}");
    let finding = steps["finding"].as_str().unwrap();
    assert!(
        finding.contains("runs 5 steps one after the other"),
        "{steps}"
    );
    let removes = of_build("removes");
    assert!(
        removes.iter().all(|line| kind(line) != "few-jobs"),
        "{removes:?}"
    );
}

/// The verdict on a build that failed is about the build's time and says so. The verdict does not blame the machine for
/// the failure.
#[test]
fn a_failure_is_not_the_machines() {
    let text = analyze(&folder().join("busy-killed.bin"), &[]);
    assert!(
        text.contains("Failed   timeout 3 make -s -j2   timed out (exit 124)"),
        "{text}"
    );
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Verdict the machine: "), "{text}");
    assert!(
        words.contains("; this is about the time, not about the failure"),
        "{text}"
    );
}

/// Waits for a CPU can explain a failure only if the failed command had a time limit. A failed assertion of a test
/// would fail on a quiet machine, too, so this failure is shown without run-queue waits.
#[test]
fn what_held_a_failure_back_is_shown_only_where_it_can_be_the_reason() {
    let trace = folder().with_file_name("imports").join("all.bin");
    let text = analyze(&trace, &[]);
    assert!(text.contains("Failed   pytest   exit 1 after"), "{text}");
    assert!(!text.contains("went to run-queue wait"), "{text}");
}

/// The verdict says whether the code or the machine took the time. The seconds of the code and of the machine add up to
/// the wall time.
#[test]
fn the_verdict_tells_the_code_from_the_machine() {
    for (name, blame) in [
        ("clean-make", "code"),
        ("link", "code"),
        ("others", "machine"),
        ("quota", "machine"),
        ("busy-jobs", "machine"),
        ("busy-killed", "machine"),
        ("busy-repeated", "both"),
        ("busy-generator", "perhaps-both"),
    ] {
        let verdict = verdict(name);
        let ns = |key: &str| verdict[key].as_u64().unwrap();
        assert_eq!(verdict["blame"], blame, "{name}: {verdict}");
        let parts = ns("alone_ns") + ns("others_ns") + ns("nobody_ns") + ns("quota_ns");
        assert_eq!(parts, ns("wall_ns"), "{name}: {verdict}");
        assert!(
            ns("alone_at_least_ns") <= ns("alone_ns"),
            "{name}: {verdict}"
        );
        assert!(
            ns("alone_ns") <= ns("alone_at_most_ns"),
            "{name}: {verdict}"
        );
    }
    assert!(verdict("quota")["quota_ns"].as_u64() > Some(1_000_000_000));
    // A loop that polls for the end of a job sleeps less often if the job ends sooner. So without its quota, this build
    // would take as long as the fixture `poll`, which has no quota.
    let (alone, wall) = (verdict("quota-poll"), verdict("poll")["wall_ns"].as_u64());
    assert!(alone["alone_at_least_ns"].as_u64() < wall, "{alone}");
    assert!(alone["alone_at_most_ns"].as_u64() > wall, "{alone}");
    // The verdict names some of the other programs that took CPU time. Their times add up to at most the time of all
    // others.
    let busy = verdict("busy-generator");
    let names = busy["others"].as_array().unwrap();
    let sum: u64 = names.iter().map(|name| name["ns"].as_u64().unwrap()).sum();
    assert_eq!(names[0]["comm"], "sh", "{busy}");
    assert!(sum <= busy["others_ns"].as_u64().unwrap(), "{busy}");
}

/// The lines of the first screen have the order in which a user acts on them. Facts on which nobody can act are not
/// shown.
#[test]
fn the_first_screen_has_the_order_of_acting() {
    let trace = folder().with_file_name("traces").join("demo.bin");
    let text = analyze(&trace, &[]);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    let order = [
        "make -s",
        "exit 0",
        "Failed   tests/fails.sh",
        "Verdict  your code: ",
    ];
    let order = order.iter().chain(&[
        "What to change",
        "Critical path",
        "this build 78 %",
        "next: ",
    ]);
    let places: Vec<usize> = order.map(|what| at(what)).collect();
    assert!(places.is_sorted(), "{text}");
    assert!(!text.contains("anomal"), "{text}");
    // The checks of a configure script may fail in a build that succeeds, so they are not shown as failures.
    let text = analyze(&folder().join("configure.bin"), &[]);
    assert!(!text.contains("Failed"), "{text}");
}

/// Needless work of the build is reported even if other tasks on the machine make the build longer.
#[test]
fn contention_hides_no_work() {
    assert_eq!(kind(&of_build("busy-repeated")[0]), "repeated");
    // The step that runs alone takes a twentieth of the wall time, but a third of the build's own time.
    assert_eq!(kind(&of_build("busy-generator")[0]), "alone");
    // A loop that runs its jobs one by one gets advice, too. Other load may take the CPU time that more parallel jobs
    // would need, so the least gain is 0.
    let line = &of_build("busy-loop")[0];
    assert_eq!(kind(line), "few-jobs");
    assert_eq!(line["gain_at_least_ns"], 0, "{line}");
}

#[test]
fn two_jobs_save_at_most_the_half() {
    for name in [
        "make-j1",
        "make-one",
        "shell-loop",
        "tests-prove",
        "tests-pytest",
    ] {
        let gain = of_build(name)[0]["gain_at_most_ns"].as_f64().unwrap();
        assert!(gain <= wall(name).0 / 2.0 * 1e9, "{name}: {gain}");
    }
}

/// A program that executes itself again (exec) is one run, not two.
#[test]
fn an_exec_is_no_run() {
    let line = &of_build("configure-again")[0];
    let finding = line["finding"].as_str().unwrap();
    assert!(finding.starts_with("configure takes "), "{line}");
    assert_eq!(line["processes"], 1);
}

/// make and xargs start a simple command without a shell. If such a command sleeps, the sleep is reported with the
/// command line of the build.
#[test]
fn a_sleep_that_make_starts_is_somebodys() {
    let line = &of_build("make-sleep")[0];
    let finding = line["finding"].as_str().unwrap();
    assert!(finding.starts_with("make -s -j2 sleeps 1.0"), "{line}");
}

/// A polling loop notices the end of its wait at most one sleep late, so no more than one sleep can be saved.
#[test]
fn a_polling_loop_gains_one_sleep() {
    let gain = &of_build("poll-server")[0]["gain_at_most_ns"];
    assert!(gain.as_u64().unwrap() < 510_000_000, "{gain}");
    // The saving in the verdict is no larger than that of the lines of advice.
    let text = analyze(&folder().join("poll-server.bin"), &["--width", "120"]);
    let verdict = text.lines().find(|line| line.starts_with("Verdict  "));
    let ends =
        verdict.is_some_and(|verdict| verdict.ends_with("the changes below save up to 500 ms"));
    assert!(ends, "{text}");
}

/// The sleeps of each test file are judged separately: equal sleeps in several files are not one polling loop. The gain
/// of a polling loop is one of its sleep intervals. All runs of one test runner share a line of advice.
#[test]
fn the_sleeps_of_tests_are_judged_by_file() {
    let line = &of_build("tests-sleep")[0];
    assert_eq!((kind(line), &line["processes"]), ("sleep", &Value::from(9)));
    let gain = line["gain_at_most_ns"].as_u64().unwrap();
    assert!(gain > 2_500_000_000, "{line}");
    let line = &of_build("tests-poll")[0];
    assert_eq!(kind(line), "poll");
    let gain = line["gain_at_most_ns"].as_u64().unwrap();
    assert!((510_000_000..620_000_000).contains(&gain), "{line}");
}

/// The verdict on a build without faults says how near the build is to the shortest time that its CPUs allow, and that
/// the work itself is not judged.
#[test]
fn nothing_has_a_word() {
    for name in ["clean-make", "clean-library", "many-jobs"] {
        let trace = folder().join(format!("{name}.bin"));
        let text = analyze(&trace, &["--width", "120"]);
        let verdict = text
            .lines()
            .find(|line| line.starts_with("Verdict  "))
            .unwrap();
        let allow = " % of what 2 CPUs allow in this order; ";
        assert!(verdict.contains(allow), "{text}");
        assert!(text.contains("the work itself: not judged ("), "{text}");
    }
}

/// Each line of evidence names the processes that it is about.
#[test]
fn evidence_names_processes() {
    for build in builds() {
        let trace = folder().join(format!("{}.bin", build.name));
        let text = analyze(&trace, &["--report", "advice", "--width", "400"]);
        let mut lines = text.lines().map(str::trim_end);
        assert!(!lines.any(|line| line.ends_with(" s:")), "{text}");
    }
}

/// The first screen of each trace fits 30 lines of 80 columns and ends with the next command to try.
#[test]
fn the_first_screen_has_thirty_lines() {
    let traces = ["advice", "traces"].map(|name| folder().with_file_name(name));
    let files = traces
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
    let files = files.map(|entry| entry.path());
    for trace in files.filter(|path| path.extension().is_some_and(|extension| extension == "bin")) {
        let text = analyze(&trace, &["--width", "80"]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.len() <= 30,
            "{}: {} lines",
            trace.display(),
            lines.len()
        );
        let mut rest = lines.iter().filter(|line| !line.starts_with("next: "));
        let wide = rest.find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{}", trace.display());
        assert!(
            lines.last().unwrap().starts_with("next: tr analyze "),
            "{text}"
        );
    }
}

/// Advice is about the whole recording, so a report with a filter has none.
#[test]
fn a_part_has_no_advice() {
    let trace = folder().join("link.bin");
    assert!(!advice(&trace).is_empty());
    let text = analyze(&trace, &["--comm", "ld"]);
    assert!(!text.contains("What to change"), "{text}");
}
