//! Tests the page of `tr report` in Chromium, and with `make test-long` in Firefox, by
//! `crates/report/web/test/page.mjs`. Without Node, Chromium or Playwright these tests are reported as ignored, with
//! the reason.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // of our own files

mod common;

use std::collections::HashMap;
use std::fs::{read, write};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libtest_mimic::{Arguments, Failed};
use serde_json::Value;
use tr_format::event::{Argv, CpuId, LifeEvent, LifeKind};
use tr_format::meta::Extra;
use tr_format::stack::{Function, Module, Place, Sample, Symbol};
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::Config;
use tr_sim::program::{ms, Arg, Image, Op, World};
use tr_sim::recording::{Recording, Written};
use tr_sim::scenario::{self, Weights};

use common::{trial, TR};

/// The names of the tests, which are the functions of `tests` in `page.mjs`, each with whether the test needs
/// Chromium's own protocol.
fn names() -> impl Iterator<Item = (&'static str, bool)> {
    let script = include_str!("../crates/report/web/test/page.mjs");
    let (_, tests) = script.split_once("\nconst tests = {\n").expect("tests");
    let functions = tests.split("\n  async ");
    let first = functions
        .clone()
        .next()
        .and_then(|function| function.strip_prefix("  async "));
    let functions = first.into_iter().chain(functions.skip(1));
    functions.filter_map(|text| {
        let (name, body) = text.split_once("() {\n")?;
        let own = ["newCDPSession", ".pdf("];
        Some((name, own.iter().any(|own| body.contains(own))))
    })
}

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/report/web")
}

/// The path of Chromium, which has different names on PATH.
fn chromium() -> Option<PathBuf> {
    on_path(&[
        "chromium-headless-shell",
        "chromium",
        "chromium-browser",
        "google-chrome",
    ])
}

fn firefox() -> Option<PathBuf> {
    on_path(&["firefox-esr", "firefox"])
}

fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    names.iter().find_map(|name| {
        let mut files = std::env::split_paths(&path).map(|directory| directory.join(name));
        files.find(|file| file.is_file())
    })
}

/// The reason why pages cannot be tested in a browser here, if any.
fn why_not() -> Option<String> {
    let mut node = Command::new("node");
    let node = node
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let node = node.status();
    if !node.is_ok_and(|status| status.success()) {
        return Some("no Node".into());
    }
    if chromium().is_none() {
        return Some("no Chromium".into());
    }
    if !web().join("node_modules/playwright-core").is_dir() {
        return Some("no Playwright: scripts/setup.sh installs it".into());
    }
    None
}

fn run(args: &[&str]) -> Result<Vec<u8>, Failed> {
    let out = Command::new(TR).args(args).output()?;
    if out.status.success() {
        Ok(out.stdout)
    } else {
        Err(format!("{args:?}: {}", String::from_utf8_lossy(&out.stderr)).into())
    }
}

/// Writes the page and the JSON analysis of a trace.
fn page(trace: &Path, directory: &Path, name: &str) -> Result<(), Failed> {
    let page = directory.join(format!("{name}.html"));
    let trace = trace.to_string_lossy();
    run(&["report", &trace, "-o", &page.to_string_lossy()])?;
    let analysis = run(&[
        "analyze",
        &trace,
        "--report",
        "top,advice,critical-path,off-cpu,disk,network,machine,flame,steps",
        "--format",
        "json",
    ])?;
    Ok(write(directory.join(format!("{name}.json")), analysis)?)
}

/// Command-line arguments that try to inject HTML, scripts or terminal sequences.
fn hostile() -> Vec<Vec<u8>> {
    [
        &b"<script>window.owned=1</script>"[..],
        b"</script><img src=x onerror=window.owned=1>",
        b"</title><script>window.owned=1</script>",
        b"<!-- {{script}} {{data}} -->",
        "line\u{2028}paragraph\u{2029}".as_bytes(),
        "\u{202e}gnp.exe \u{2066}x\u{2069}\u{200f}".as_bytes(),
        b"\xff\xfe\x80 \xed\xa0\x80",
        b"\";alert(1);//'\\",
        b"=HYPERLINK(\"https://example.com\")",
        b"\x1b[31m\x00",
    ]
    .map(<[u8]>::to_vec)
    .into()
}

/// Adds a stack sample at each exec, with functions of these names.
fn sampled(recording: &mut Recording, names: &[Vec<u8>]) {
    let execs = recording
        .life
        .iter()
        .filter_map(|life| match &life.event.kind {
            LifeKind::Exec(exec) => Some((life.at, life.event.time, exec.tid, exec.tgid)),
            _ => None,
        });
    let execs: Vec<_> = execs.collect();
    let first = execs.first().map(|(at, time, ..)| (*at, *time));
    let (at, time) = first.expect("an exec");
    let numbers = 1..=names.len() as u32;
    let module = LifeKind::Module(Box::new(Module {
        number: 1,
        build_id: [1].into(),
        path: names[0].clone().into(),
        file: None,
    }));
    let mut events = vec![(at, time, module)];
    for (n, (at, time, tid, tgid)) in execs.into_iter().enumerate() {
        let (base, first, frames) = match n {
            0 => (0, 1, numbers.clone().collect()),
            _ => (names.len() as u32, 0, Box::default()),
        };
        let places = numbers
            .clone()
            .map(|number| Place::Module(1, number.into()));
        let sample = Sample {
            tid,
            tgid,
            ns: 10_000_000,
            base,
            first,
            frames,
            first_frame: 1,
            places: places.filter(|_| n == 0).collect(),
            ..Sample::default()
        };
        events.push((at, time, LifeKind::Sample(Box::new(sample))));
    }
    let symbols = numbers.clone().zip(names).map(|(frame, name)| {
        let function = Function {
            name: name.clone().into(),
            ..Function::default()
        };
        LifeKind::Symbol(Symbol {
            frame,
            functions: [function].into(),
        })
    });
    let end = events
        .last()
        .map(|event| (event.0, event.1))
        .expect("a sample");
    events.extend(symbols.map(|kind| (end.0, end.1, kind)));
    // The sequence numbers place the samples after recorded events of the same time.
    for (seq, (at, time, kind)) in (1 << 32..).zip(events) {
        let event = LifeEvent {
            time,
            cpu: Some(CpuId(0)),
            kind,
        };
        recording.life.push(Written { at, seq, event });
    }
    recording.life.sort_by_key(|life| (life.at, life.seq));
    recording.meta.extras = Some(vec![Extra::Stacks as u8]);
}

/// Writes all pages and analyses that the tests need.
fn prepare(directory: &Path) -> Result<(), Failed> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    for (file, name) in [
        ("demo", "demo"),
        ("build", "build"),
        ("linux-6.12-all", "machine"),
    ] {
        page(&fixtures.join(format!("{file}.bin")), directory, name)?;
    }
    let span = [3_000_000_000_u64, 7_000_000_000];
    let [from, to] = span.map(|ns| format!("{ns}ns"));
    let demo = fixtures.join("demo.bin");
    let demo = demo.to_string_lossy();
    let part = [
        "analyze", &demo, "--from", &from, "--to", &to, "--format", "json",
    ];
    write(directory.join("part.json"), run(&part)?)?;
    let [from, to] = span;
    let span = format!("{{\"from\":{from},\"to\":{to}}}");
    write(directory.join("part-span.json"), span)?;
    let fails = directory.join("fails.bin");
    let script = "sh -c 'sh -c \"exit 7\"; exit $?'; exit $?";
    let fail = Command::new(TR)
        .args(["record", "-q", "--method", "ptrace", "-o"])
        .arg(&fails)
        .args(["--", "sh", "-c", script])
        .env("GITHUB_RUN_ID", "1701")
        .status()?;
    assert_eq!(fail.code(), Some(7));
    page(&fails, directory, "fails")?;
    let forecast = run(&["predict", &demo, "--format", "html"])?;
    write(directory.join("predict.html"), forecast)?;
    let suite = directory.join("unplaced.xml");
    write(&suite, unplaced())?;
    let suite = suite.to_string_lossy();
    let out = directory.join("unplaced.html");
    let out = out.to_string_lossy();
    run(&["report", &demo, "--with", &suite, "-o", &out])?;
    let build = fixtures.join("build.bin");
    let build = build.to_string_lossy();
    for format in ["html", "json"] {
        let compared = run(&["diff", &demo, &build, "--format", format])?;
        write(directory.join(format!("diff.{format}")), compared)?;
    }
    let many = directory.join("many.bin");
    let file = many.to_string_lossy();
    let script = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done; sleep 0.01; true";
    let record = ["record", "-q", "--method", "ptrace", "-o", &file];
    run(&[&record[..], &["--", "sh", "-c", script]].concat())?;
    page(&many, directory, "many")?;
    let sleeper = directory.join("sleeper.bin");
    let file = sleeper.to_string_lossy();
    // The shell runs until the sleeper has slept for nearly all of the shell's lifetime. The rest is the sleeper's CPU
    // time and its waits for a CPU, which the shell reads from /proc. On a busy machine the rest is larger, so the
    // shell runs longer.
    let script = "read up _ </proc/uptime; begin=${up%.*}${up#*.}; sleep 9 >/dev/null 2>&1 & \
        i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; \
        while read on wait _ </proc/$!/schedstat && read up _ </proc/uptime && \
        [ $((${up%.*}${up#*.} - begin)) -lt $(((on * 120 + wait * 12) / 10000000)) ]; do :; done; sleep 0.1";
    let record = ["record", "-q", "--method", "ptrace", "-o", &file];
    run(&[&record[..], &["--", "sh", "-c", script]].concat())?;
    page(&sleeper, directory, "sleeper")?;
    // A failure inside of the script `configure` is an expected result of a probe. The failure after the script is a
    // real one.
    let configure = directory.join("configure");
    write(&configure, "#!/bin/sh\n/bin/false\nexit 0\n")?;
    let mut may = std::fs::metadata(&configure)?.permissions();
    may.set_mode(0o755);
    std::fs::set_permissions(&configure, may)?;
    let conf = directory.join("conf.bin");
    let script = format!("{}; exit 3", configure.display());
    let configured = Command::new(TR)
        .args(["record", "-q", "--method", "ptrace", "-o"])
        .arg(&conf)
        .args(["--", "sh", "-c", &script])
        .status()?;
    assert_eq!(configured.code(), Some(3));
    page(&conf, directory, "conf")?;
    let cargo = fixtures.with_file_name("advice/clean-cargo.bin");
    page(&cargo, directory, "cargo")?;
    let fsync = fixtures.with_file_name("advice/fsync.bin");
    page(&fsync, directory, "fsync")?;
    let network = fixtures.with_file_name("format/3.2.bin");
    page(&network, directory, "network")?;
    let facts = fixtures.with_file_name("format/3.4.bin");
    page(&facts, directory, "facts")?;
    let stacks = fixtures.with_file_name("format/3.6.bin");
    page(&stacks, directory, "stacks")?;
    let events = ["dump", &stacks.to_string_lossy(), "--format", "ndjson"];
    write(directory.join("stacks.ndjson"), run(&events)?)?;
    let totals = directory.join("totals.bin");
    let command = ["--", "sh", "-c", "/bin/true; sleep 0.05"];
    let mut args = vec!["record", "-q", "--method", "ptrace", "-o"];
    let file = totals.to_string_lossy();
    args.push(&file);
    run(&[&args[..], &command].concat())?;
    page(&totals, directory, "totals")?;
    // Two copies of a recording are cut off: `cut` has some of its events, `blank` ends before the first one.
    let whole = read(fixtures.join("demo.bin"))?;
    for (name, length) in [("cut", 20_000), ("blank", 4_000)] {
        let file = directory.join(format!("{name}.bin"));
        write(&file, whole.get(..length).ok_or("a longer fixture")?)?;
        page(&file, directory, name)?;
    }
    // This file has an earlier version of the format. Half of its processes ended before the recorder took their first
    // sample.
    let poll = directory.join("poll.bin");
    std::fs::copy(fixtures.with_file_name("methods").join("poll.bin"), &poll)?;
    page(&poll, directory, "poll")?;
    let simulate = |name: &str, recording: &Recording| -> Result<(), Failed> {
        let trace = directory.join(format!("{name}.bin"));
        let cut = Cut {
            largest: 4096,
            order: Order::Written,
            seed: 1,
        };
        write(&trace, recording.to_file(&cut)?)?;
        page(&trace, directory, name)
    };
    let mut config = Config::new(scenario::chaos(&Weights::default(), 6), 4, 60_000_000);
    config.follow = tr_sim::config::Follow::All;
    simulate("chaos", &Recording::record(&config).0)?;

    let config = Config::new(scenario::make(2, 8), 2, 2_000_000_000);
    let (mut recording, _) = Recording::record(&config);
    let names = hostile();
    let mut next = 0;
    for written in &mut recording.life {
        if let LifeKind::Exec(exec) = &mut written.event.kind {
            let name = &names[next % names.len()];
            exec.argv = Argv::from_args([name.as_slice(), b"-o", name]);
            exec.filename = name.clone().into();
            next += 1;
        }
    }
    recording.meta.command = names.clone();
    recording.meta.host = "<b>host</b>".into();
    sampled(&mut recording, &names);
    simulate("hostile", &recording)?;

    let config = Config::new(drivers(), 2, 5_000_000_000);
    simulate("driver", &Recording::record(&config).0)?;
    let config = Config::new(keeps_going(2), 2, 5_000_000_000);
    simulate("twice", &Recording::record(&config).0)?;
    let config = Config::new(keeps_going(12), 2, 5_000_000_000);
    simulate("crowd", &Recording::record(&config).0)?;
    let failing = directory.join("twice.bin");
    let forecast = run(&["predict", &failing.to_string_lossy(), "--format", "html"])?;
    write(directory.join("predict-failing.html"), forecast)?;

    // The recording has so many switches that the page cannot redraw its timeline in each frame while the user zooms.
    // It stretches the last picture instead.
    let config = Config::new(scenario::pipe(), 1, 100_000_000);
    simulate("pipes", &Recording::record(&config).0)?;

    // A recording without events.
    let mut config = Config::new(scenario::pipe(), 1, 1_000_000);
    config.max_events = 1;
    let (mut recording, _) = Recording::record(&config);
    recording.cpus.iter_mut().for_each(Vec::clear);
    recording.life.clear();
    simulate("empty", &recording)
}

/// A JUnit file without the times at which its tests began: 25 tests, of which the first passed.
fn unplaced() -> String {
    let failed = (1..25).map(|n| {
        format!("<testcase classname='api' name='test_{n}'><failure message='x'/></testcase>")
    });
    let passed = "<testcase classname='api' name='test_0'/>".to_owned();
    let cases: String = std::iter::once(passed).chain(failed).collect();
    format!("<testsuite name='pytest'>{cases}</testsuite>")
}

fn image(line: &str) -> Image {
    Image {
        path: format!("/usr/bin/{}", line.split(' ').next().unwrap_or_default()),
        args: line.split(' ').map(str::to_owned).collect(),
    }
}

/// A simulated `make -k`, which goes on after a failure. It starts the given number of linkers with very many object
/// files each, and all of them fail.
fn keeps_going(failures: u16) -> World {
    let objects: Vec<String> = (0..60).map(|n| format!("object-number-{n}.o")).collect();
    let link = |n| format!("ld -o prog{n} {}", objects.join(" "));
    let fail = |image| vec![Op::Exec(image), Op::Run(ms(20, 20)), Op::ExitGroup(1)];
    let mut make = vec![Op::Exec(0)];
    make.extend((1..=failures).flat_map(|n| [Op::Fork(n, Arg::Same), Op::Wait]));
    make.push(Op::ExitGroup(2));
    World {
        name: "keeps_going".to_owned(),
        programs: std::iter::once(make)
            .chain((1..=failures).map(fail))
            .collect(),
        images: std::iter::once(image("make -k"))
            .chain((1..=failures).map(|n| image(&link(n))))
            .collect(),
        cgroups: 1,
        ..World::default()
    }
}

/// Two compiler drivers that run one after the other. The first one waits for a disk itself, before it starts its
/// compiler.
fn drivers() -> World {
    let (disk, run) = (ms(239, 239), ms(1500, 1500));
    let child = [Op::Fork(3, Arg::Same), Op::Wait, Op::ExitGroup(0)];
    World {
        name: "drivers".to_owned(),
        programs: vec![
            vec![
                Op::Exec(0),
                Op::Fork(1, Arg::Same),
                Op::Wait,
                Op::Fork(2, Arg::Same),
                Op::Wait,
                Op::ExitGroup(0),
            ],
            [&[Op::Exec(1), Op::Io(disk)][..], &child].concat(),
            [&[Op::Exec(2)][..], &child].concat(),
            vec![Op::Exec(3), Op::Run(run), Op::ExitGroup(0)],
        ],
        images: ["make all", "gcc driver waits", "gcc driver", "cc1 a.c"]
            .map(image)
            .into(),
        cgroups: 1,
        ..World::default()
    }
}

type Outcome = Result<(), Failed>;

/// A Node process that runs `page.mjs` with one browser. All tests share it.
struct Browser {
    node: Mutex<Child>,
    /// The channels to the tests that wait for their outcome, by the name of the test.
    waiting: Arc<Mutex<HashMap<String, Sender<Outcome>>>>,
}

impl Browser {
    /// Starts `page.mjs` with this browser. The path of the browser is passed in an environment variable.
    fn start(
        directory: &Path,
        variable: &str,
        browser: Option<PathBuf>,
    ) -> Result<Browser, Failed> {
        let mut node = Command::new("node")
            .arg("test/page.mjs")
            .arg(directory)
            .current_dir(web())
            .env(variable, browser.unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ends = BufReader::new(node.stdout.take().ok_or("no stdout")?);
        let waiting = Arc::new(Mutex::new(HashMap::<String, Sender<Outcome>>::new()));
        let all = waiting.clone();
        std::thread::spawn(move || {
            for line in ends.lines().map_while(Result::ok) {
                let end: Value = serde_json::from_str(&line).expect("JSON");
                let test = end["test"]
                    .as_str()
                    .and_then(|test| lock(&all).remove(test));
                let failed = end["failed"].as_str().map(Failed::from);
                test.expect("a test")
                    .send(failed.map_or(Ok(()), Err))
                    .expect("who waits");
            }
            // Dropping the channels gives an error to each test that still waits.
            lock(&all).clear();
        });
        let node = Mutex::new(node);
        Ok(Browser { node, waiting })
    }

    fn run(&self, test: &str) -> Result<(), Failed> {
        let (sender, end) = channel();
        lock(&self.waiting).insert(test.to_owned(), sender);
        let node = lock(&self.node);
        writeln!(node.stdin.as_ref().ok_or("no stdin")?, "{test}")?;
        drop(node);
        end.recv().map_err(|_| "the browser has ended")?
    }
}

impl Drop for Browser {
    /// Closes the standard input of `page.mjs`, which makes it end, and waits for its end.
    fn drop(&mut self) {
        let _ = lock(&self.node).wait();
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One trace always gives the same bytes, and a failed report leaves no file behind.
fn the_same_bytes_whole_or_not_at_all() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let trace = trace.to_string_lossy();
    let out = directory.path().join("report.html");
    let name = out.to_string_lossy();
    run(&["report", &trace, "-o", &name])?;
    let first = read(&out)?;
    run(&["report", &trace, "-o", &name])?;
    assert!(first == read(&out)?, "other bytes");
    assert!(first == run(&["report", &trace, "-o", "-"])?, "to a pipe");
    assert!(first.len() < 1 << 20, "{} bytes", first.len());
    let files = std::fs::read_dir(directory.path())?.count();
    assert_eq!(files, 1);
    let status = |args: &[&str]| {
        Command::new(TR)
            .args(args)
            .output()
            .map(|o| o.status.code())
    };
    let nowhere = directory.path().join("no/such/place.html");
    assert_eq!(
        status(&["report", &trace, "-o", &nowhere.to_string_lossy()])?,
        Some(1)
    );
    assert_eq!(status(&["report", &name, "-o", &name])?, Some(2));
    assert!(first == read(&out)?, "kept when there is nothing to write");
    Ok(())
}

/// A page without the addresses of its links, because they depend on the place of the page.
fn without_links(page: Vec<u8>) -> Result<String, Failed> {
    let page = String::from_utf8(page)?;
    let parts = page.split("<a href=\"").enumerate();
    let parts = parts.map(|(at, part)| match part.split_once('"') {
        Some((_, rest)) if at > 0 => rest,
        _ => part,
    });
    Ok(parts.collect())
}

/// Each run of a comparison is a link to one of three things: the run's recording, the page next to the recording, or
/// the page that `--pages` writes. Each link leads to an existing file.
fn the_runs_lead_to_their_pages(directory: &Path, traces: [&str; 2]) -> Result<(), Failed> {
    let page = directory.join("linked").join("diff.html");
    std::fs::create_dir(directory.join("linked"))?;
    let [base, new] = ["a b.bin", "new.bin"].map(|name| directory.join(name));
    std::fs::copy(traces[0], &base)?;
    std::fs::copy(traces[1], &new)?;
    let [base, new, out] = [&base, &new, &page].map(|path| path.to_string_lossy().into_owned());
    let own = directory.join("new.html");
    run(&["report", &new, "-o", &own.to_string_lossy()])?;
    let links = |more: &[&str]| -> Result<Vec<String>, Failed> {
        let diff = ["diff", &base, &new, "--format", "html", "-o", &out];
        run(&[&diff[..], more].concat())?;
        let text = String::from_utf8(read(&page)?)?;
        let links = text.split("<a href=\"").skip(1);
        let links = links.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
        let mut links: Vec<String> = links.collect();
        links.sort();
        links.dedup();
        for link in &links {
            let to = page.with_file_name(link.replace("%20", " "));
            assert!(to.is_file(), "{link}");
        }
        Ok(links)
    };
    assert_eq!(links(&[])?, ["../a%20b.bin", "../new.html"]);
    let runs = directory.join("linked/runs");
    let with = ["--pages", &runs.to_string_lossy()];
    assert_eq!(links(&with)?, ["runs/a%20b.html", "runs/new.html"]);
    let written = String::from_utf8(read(runs.join("new.html"))?)?;
    assert!(written.contains(" \u{b7} tr</title>"));
    Ok(())
}

/// `tr diff -o` writes the same page that `tr diff` prints. The command replaces a page that it has written before, but
/// no other file.
fn a_comparison_goes_to_a_file() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let [base, new] = ["demo.bin", "build.bin"].map(|name| traces.join(name));
    let [base, new] = [base.to_string_lossy(), new.to_string_lossy()];
    let out = directory.path().join("diff.html");
    let name = out.to_string_lossy();
    let page = ["diff", &base, &new, "--format", "html"];
    for _ in 0..2 {
        run(&[&page[..], &["-o", &name]].concat())?;
        let [written, printed] = [read(&out)?, run(&page)?].map(without_links);
        assert!(written? == printed?, "other bytes");
    }
    let text = String::from_utf8(read(&out)?)?;
    the_runs_lead_to_their_pages(directory.path(), [&base, &new])?;
    // The page names both commands and has all rows, and the states in each bar add up to 100 %.
    assert!(text.contains("strace -f") && !text.contains("top 10 of"));
    let bars = text.split("<svg x=").skip(1);
    let bars = bars.filter(|bar| bar.contains("<rect class=\"s"));
    let mut count = 0;
    for bar in bars {
        let strips = bar.split("<rect class=\"s").skip(1);
        let width = |strip: &str| -> Option<f64> {
            let (_, width) = strip.split_once("width=\"")?;
            width.split_once('%')?.0.parse().ok()
        };
        let sum: f64 = strips.filter_map(width).sum();
        assert!((sum - 100.0).abs() < 0.5, "{sum}: {bar}");
        count += 1;
    }
    assert!(count > 10, "{count} bars");
    let source = directory.path().join("notes.txt");
    write(&source, "mine")?;
    let refused = Command::new(TR)
        .args(page)
        .arg("-o")
        .arg(&source)
        .output()?;
    assert!(!refused.status.success());
    assert_eq!(read(&source)?, b"mine");
    Ok(())
}

fn main() {
    let mut args = Arguments::from_args();
    // Each browser test draws pages, so no more than two run at the same time.
    args.test_threads = Some(args.test_threads.map_or(2, |n| n.min(2)));
    let reason = why_not();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = |failed: Failed| failed.message().unwrap_or("?").to_owned();
    let prepared = if reason.is_some() || args.list {
        Err(String::new())
    } else {
        prepare(directory.path()).map_err(said)
    };
    let start = |variable, browser| {
        let started = prepared.clone();
        Arc::new(
            started
                .and_then(|()| Browser::start(directory.path(), variable, browser).map_err(said)),
        )
    };
    let browser = start("CHROMIUM", chromium());
    // Without `make test-long` there is no second browser, because CI has no time for it.
    let second = (common::long() && !args.list).then(|| start("FIREFOX", firefox()));
    let mut trials = vec![trial(
        "the_same_bytes_whole_or_not_at_all",
        None,
        the_same_bytes_whole_or_not_at_all,
    )];
    trials.push(trial(
        "a_comparison_goes_to_a_file",
        None,
        a_comparison_goes_to_a_file,
    ));
    let look = |browser: &Arc<Result<Browser, String>>, test| {
        let browser = browser.clone();
        move || match &*browser {
            Ok(browser) => browser.run(test),
            Err(failed) => Err(failed.into()),
        }
    };
    trials.extend(names().map(|(test, _)| trial(test, reason.clone(), look(&browser, test))));
    if let Some(second) = &second {
        let reason = reason.or_else(|| firefox().is_none().then(|| "no Firefox".to_owned()));
        let names = names().filter(|(_, chromium)| !chromium);
        trials.extend(names.map(|(test, _)| {
            let name = format!("{test}_in_firefox");
            trial(&name, reason.clone(), look(second, test))
        }));
    }
    let conclusion = libtest_mimic::run(&args, trials);
    drop((browser, second));
    drop(directory);
    conclusion.exit();
}
