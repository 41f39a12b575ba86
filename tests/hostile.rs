//! Passes a trace whose texts are all hostile through every subcommand and format.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

mod common;
#[path = "common/rewrite.rs"]
mod rewrite;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tr_format::event::{Argv, Comm, LifeEvent, LifeKind, Mark, Stream};
use tr_format::mask::Masked;
use tr_format::meta::Metadata;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_format::writer::Writer;

const TR: &str = env!("CARGO_BIN_EXE_tr");

/// Texts that a terminal, a CI system, a browser or a spreadsheet would take for a command, markup, a formula or a
/// link, or would not show.
const HOSTILE: [&[u8]; 33] = [
    b"::error::x",
    b"\n::error::x",
    b"\r\n  ::warning file=a::x",
    b"##[error]x",
    b"a ##vso[task.setvariable variable=x]y",
    b"##teamcity[x]",
    b"section_start:1:x[collapsed=true]",
    b"\x1b[0Ksection_end:1:x\r\x1b[0K",
    b"\x1b[2J\x1b]0;x\x07",
    b"\x1b[31m::error::x",
    "\u{9b}31m".as_bytes(),
    b"=1+1",
    b"+1+1",
    b"-1+1",
    b"@SUM(1)",
    b"\t=1",
    b"@octocat",
    b"GH-1",
    b"#1",
    b"octo/repo#2",
    b"deadbeefdeadbeef",
    b"www.evil.example",
    b"https://evil.example",
    b"<img src=x onerror=alert(1)>",
    b"</script><script>alert(1)</script>",
    b"|a|`b`|[c](http://e)|",
    "zero\u{200b}width\u{2060}".as_bytes(),
    "\u{202e}right\u{2066}".as_bytes(),
    "\u{e0041}\u{e0042}tag".as_bytes(),
    "so\u{ad}ft\u{fe0f}\u{feff}".as_bytes(),
    "line\u{2028}line".as_bytes(),
    b"\xff\xfe\x00x",
    b"{{script}}",
];

/// A generator of hostile texts, which returns a different one for each call.
struct Texts(usize);

impl Texts {
    fn next(&mut self) -> Vec<u8> {
        self.0 += 1;
        let text = HOSTILE[self.0 % HOSTILE.len()];
        // A command-line argument cannot contain a NUL.
        text.iter().copied().filter(|b| *b != 0).collect()
    }

    fn string(&mut self) -> String {
        String::from_utf8_lossy(&self.next()).into_owned()
    }
}

enum End {
    Complete,
    Cut,
    Untraced,
}

/// A copy of a fixture's trace in which every text is hostile.
fn hostile(fixture: &str, first: usize, end: &End) -> Vec<u8> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(fixture);
    let trace = Trace::open(Source::bytes(std::fs::read(fixture).unwrap())).unwrap();
    let mut texts = Texts(first);
    let old = trace.meta();
    let mut meta = Metadata {
        tool_version: texts.string(),
        host: texts.string(),
        kernel: texts.string(),
        machine: texts.string(),
        command: (0..4).map(|_| texts.next()).collect(),
        cwd: texts.next(),
        missing: vec![texts.string().into(), texts.string().into()],
        ci: vec![(texts.string(), texts.string())],
        not_traced: matches!(end, End::Untraced).then(|| texts.string()),
        ..old.clone()
    };
    // With another start time, the copy counts as a different recording than the fixture. A comparison would refuse the
    // same recording twice.
    meta.start_clock.real += 1;
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta.clone())).unwrap();
    rewrite::copy(&trace, &mut writer, |stream, mut event| {
        let comm = Comm::new(&texts.next());
        match &mut event.kind {
            LifeKind::Fork(fork) => fork.comm = comm,
            LifeKind::Rename(rename) => rename.comm = comm,
            LifeKind::Snapshot(task) => task.comm = comm,
            LifeKind::CgroupPath(path) => path.path = texts.next().into(),
            LifeKind::Degraded(degraded) => degraded.what = texts.next().into(),
            LifeKind::Module(module) => module.path = texts.next().into(),
            LifeKind::Symbol(symbol) => {
                for function in &mut symbol.functions {
                    function.name = texts.next().into();
                    function.file = texts.next().into();
                }
            }
            LifeKind::SyncFile(file) => file.name = texts.next().into(),
            LifeKind::Exec(exec) => {
                exec.comm = comm;
                exec.filename = texts.next().into();
                // In some traces a hostile text replaces the program's name. In others the hostile text is an argument
                // after the program's name.
                let args = exec.argv.args().map(<[u8]>::to_vec);
                let args = args.skip(first % 2).chain((0..3).map(|_| texts.next()));
                exec.argv = Argv::from_args(args.collect::<Vec<_>>());
            }
            _ => {}
        }
        let mark = LifeKind::Mark(Mark {
            name: texts.next().into(),
            kind: texts.next().into(),
            result: texts.next().into(),
            id: texts.next().into(),
            ..Mark::default()
        });
        if stream != Stream::Recorder {
            return vec![event];
        }
        let marked = LifeEvent {
            kind: mark,
            ..event.clone()
        };
        vec![event, marked]
    });
    let done = match end {
        End::Cut => writer.finish_cut(7, 77, Masked::trusted(texts.string())),
        _ => writer.finish(&Masked::trusted(trace.summary().unwrap().clone())),
    };
    done.unwrap().0
}

fn run(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(TR);
    command.args(args).current_dir(dir).env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null()).output().unwrap()
}

/// Whether this character must be escaped in every output. The list here is independent of the list that the escaping
/// code uses.
fn hides(c: char) -> bool {
    c != '\n' && c.is_control()
        || "\u{ad}\u{feff}\u{2028}\u{2029}\u{61c}\u{180e}".contains(c)
        || matches!(c as u32, 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x2069 | 0xfe00..=0xfe0f)
        || matches!(c as u32, 0xe0000..=0xe01ef)
}

/// Checks the bytes that are printed on a terminal or into the log of a CI system.
fn check_log(bytes: &[u8], what: &str) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|_| panic!("{what}: no UTF-8"));
    for line in text.lines() {
        let bad = line.chars().find(|c| hides(*c));
        assert_eq!(bad, None, "{what}: {line:?}");
        assert!(!line.trim_start().starts_with("::"), "{what}: {line:?}");
        for command in [
            "##[",
            "##vso[",
            "##teamcity[",
            "section_start:",
            "section_end:",
        ] {
            assert!(!line.contains(command), "{what}: {line:?}");
        }
    }
}

fn check_csv(bytes: &[u8], what: &str) {
    check_log(bytes, what);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(bytes);
    for record in reader.records() {
        for cell in &record.unwrap() {
            let formula = cell.trim_start().starts_with(['=', '+', '-', '@']);
            assert!(!formula || cell.parse::<f64>().is_ok(), "{what}: {cell:?}");
        }
    }
}

/// The text outside of `<code>` with decoded entities: the text in which GitHub or GitLab would look for mentions and
/// links.
fn outside_code(markdown: &str) -> String {
    let mut out = String::new();
    for (at, part) in markdown.split("<code>").enumerate() {
        let rest = if at == 0 {
            part
        } else {
            part.split_once("</code>").unwrap().1
        };
        out.push(' ');
        out.push_str(rest);
    }
    let mut decoded = String::new();
    for (at, part) in out.split("&#").enumerate() {
        match part.split_once(';') {
            Some((number, rest)) if at > 0 => {
                decoded.push(char::from_u32(number.parse().unwrap()).unwrap());
                decoded.push_str(rest);
            }
            _ => decoded.push_str(part),
        }
    }
    decoded
}

fn check_markdown(bytes: &[u8], what: &str) {
    let text = std::str::from_utf8(bytes).unwrap();
    // The warning sign that tr prints contains a variation selector, which `check_log` forbids.
    check_log(text.replace("⚠\u{fe0f}", "").as_bytes(), what);
    let seen = outside_code(text).to_ascii_lowercase();
    // Tags are searched in the raw text, because an escaped `<` begins no tag. Mentions and links are searched in the
    // decoded text, because a forge finds them even if their characters are escaped.
    let tags = text.to_ascii_lowercase();
    assert!(
        !tags.contains("<img") && !tags.contains("<script"),
        "{what}: {text}"
    );
    for link in [
        "@octocat", "gh-1", "#1", "repo#2", "deadbeef", "www.", "://",
    ] {
        assert!(!seen.contains(link), "{what}: {link}: {text}");
    }
    let inside = text
        .split("<code>")
        .skip(1)
        .map(|part| part.split("</code>").next().unwrap());
    for code in inside {
        assert!(
            !code.contains(['<', '>', '|', '`', '@', '*', '[']),
            "{what}: {code}"
        );
    }
}

const REPORTS: [&str; 22] = [
    "top",
    "tree",
    "execs",
    "critical-path",
    "parallelism",
    "cpus",
    "run-queue",
    "off-cpu",
    "max-off-cpu",
    "histogram",
    "series",
    "audit",
    "flame",
    "disk",
    "network",
    "memory",
    "machine",
    "syscalls",
    "steps",
    "advice",
    "failed",
    "quality",
];

#[test]
fn no_subcommand_passes_hostile_text_on() {
    let dir = tempfile::tempdir().unwrap();
    let name = "x\n::error::\u{1b}[2J\u{202e}.bin";
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    std::fs::copy(demo, dir.path().join("demo.bin")).unwrap();
    let (demo, stacks) = ("traces/demo.bin", "format/3.6.bin");
    for (fixture, first, end) in [
        (demo, 0, End::Complete),
        (demo, 7, End::Complete),
        (demo, 11, End::Cut),
        (demo, 20, End::Untraced),
        (stacks, 3, End::Complete),
        (stacks, 18, End::Complete),
    ] {
        std::fs::write(dir.path().join(name), hostile(fixture, first, &end)).unwrap();
        let mut lines = vec![
            "info",
            "info --format json",
            "info --secrets",
            "info --secrets --format json",
            "dump",
            "dump --format ndjson",
            "verify",
            "recover -o out.bin",
            "redact -o out.bin",
            "report -o out.html",
            "analyze",
            "analyze --report all --top 1000",
            "analyze --report all --top 1000 --width 1000",
            "analyze --report all --by cgroup",
            "analyze --report all --by program",
            "analyze --format json --report all",
            "analyze --format ci-tracer",
            "analyze --from 2s --to 1s",
            "analyze --group x=argv:x --by group",
            "diff demo.bin",
            "diff demo.bin --format json",
            "summary",
            "export --format otlp --min 0ns -o out.otlp",
            "export --format otlp-json --min 0ns -o -",
            "export --format folded -o -",
            "export --format folded --weight stacks -o -",
            "export --format folded --weight waits -o -",
            "symbolize -o out.bin",
            "export --format perfetto -o out.pftrace",
            "recover",
        ];
        lines.extend([
            "info absent\u{1b}[2J.bin",
            "analyze --\u{1b}[2J",
            "analyze --top \u{202e}",
        ]);
        for line in lines {
            let mut args: Vec<&str> = line.split(' ').collect();
            args.push(name);
            let out = run(dir.path(), &args);
            check_log(&out.stderr, &format!("{line}, stderr"));
            check_log(&out.stdout, line);
        }
        for report in REPORTS {
            let out = run(
                dir.path(),
                &[
                    "analyze", name, "--format", "csv", "--report", report, "--top", "1000",
                ],
            );
            check_csv(&out.stdout, report);
            check_log(&out.stderr, report);
        }
        for chart in [&[][..], &["--chart"]] {
            let line = [&["summary", name, "--format", "markdown"], chart].concat();
            let out = run(dir.path(), &line);
            check_markdown(&out.stdout, &line.join(" "));
        }
        for order in [["demo.bin", name], [name, "demo.bin"]] {
            let line = [
                "diff", order[0], order[1], "--format", "markdown", "--top", "1000",
            ];
            let out = run(dir.path(), &line);
            check_markdown(&out.stdout, "diff --format markdown");
        }
        let page = run(dir.path(), &["report", name, "-o", "-"]).stdout;
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("<img") && !page.contains("<script>alert"));
        // The page has three scripts: the data, the packed script, and the script that unpacks it.
        let scripts = if matches!(end, End::Untraced) { 0 } else { 3 };
        assert_eq!(page.matches("</script").count(), scripts);
    }
}

/// The command lines that print a recording: every report in every format, every comparison, forecast, pipeline and
/// export. `X` is the recording, `Y` another one.
const PRINTED: &str = "\
analyze X --report all --top 100 --format text
analyze X --report all --top 100 --format text --color always --width 40
analyze X --report all --format markdown
analyze X --report all --format json
analyze X --format ndjson
analyze X --report all --by step --format markdown
analyze X --report all --by container
summary X --format json
summary X --format metrics
diff X Y --format html
diff X Y --format folded
diff X Y --format benchmark-action
diff X Y --format bencher
predict X --table
predict X --format json
predict X --format csv
predict X --format html
pipeline X Y
pipeline X Y --format json
pipeline X Y --format html
report X -o -
export X --format folded --weight cpu -o -
export X --format folded --weight wall -o -
export X --format folded --weight waiting -o -
export X --format parquet -o runs
info X --full
dump X --format ndjson";

#[test]
fn no_format_begins_a_line_with_a_command() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    std::fs::copy(demo, dir.path().join("y.bin")).unwrap();
    let name = "::error::x\u{1b}[2J.bin";
    for (fixture, first) in [("traces/demo.bin", 1), ("format/3.6.bin", 2)] {
        let recording = hostile(fixture, first, &End::Complete);
        std::fs::write(dir.path().join(name), recording).unwrap();
        for line in PRINTED.lines() {
            let word = |word| match word {
                "X" => name,
                "Y" => "y.bin",
                word => word,
            };
            let args: Vec<&str> = line.split(' ').map(word).collect();
            let out = run(dir.path(), &args);
            check_log(&out.stderr, &format!("{line}, stderr"));
            if line.contains("--color always") {
                let text = String::from_utf8(out.stdout).unwrap();
                check_log(uncoloured(&text).as_bytes(), line);
            } else if line.contains("markdown") {
                let text = String::from_utf8(out.stdout).unwrap();
                check_log(text.replace("⚠\u{fe0f}", "").as_bytes(), line);
            } else {
                check_log(&out.stdout, line);
            }
        }
        // In this format tr prints workflow commands of its own (`::warning`, `::notice`). A hostile text must not
        // begin another such command.
        let out = run(dir.path(), &["summary", name, "--format", "github"]);
        let text = String::from_utf8(out.stdout).unwrap();
        let own = |line: &&str| !line.starts_with("::warning") && !line.starts_with("::notice");
        let rest: Vec<&str> = text.lines().filter(own).collect();
        check_log(rest.join("\n").as_bytes(), "summary --format github");
    }
}

/// A text without the escape sequences for colours. It must not contain any other escape sequence.
fn uncoloured(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (colour, rest) = part.split_once('m').unwrap_or_else(|| panic!("{part:?}"));
        let digit = |c: char| c.is_ascii_digit() || c == ';';
        assert!(colour.chars().all(digit), "{colour:?}");
        out += rest;
    }
    out
}

/// The messages of `tr record` contain COMMAND, names of files and names of users. Each of these recordings fails, and
/// prints such a message.
#[cfg(feature = "record")]
#[test]
fn a_recording_that_fails_passes_no_hostile_text_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut texts = HOSTILE.map(|text| String::from_utf8_lossy(text).replace('\0', ""));
    texts.sort_unstable();
    for text in texts {
        let file = format!("absent/{text}");
        for args in [
            &["record", "--", &text][..],
            &["record", "--cpu", "60000", "--", "true", &text],
            &[
                "record",
                "--cpu",
                "60000",
                "--best-effort",
                "--",
                "true",
                &text,
            ],
            &[
                "record",
                "--cpu",
                "60000",
                "--best-effort",
                "-o",
                &file,
                "--",
                "true",
            ],
            &["record", "-o", &file, "--", "true", &text],
            &["record", "--cgroup", &file, "--", "true"],
            &["record", "--user", &text, "--", "true"],
            &["record", "--redact", &text, "--cpu", "60000", "--", "true"],
            &["record", "--duration", &text, "--", "true"],
        ] {
            let out = run(dir.path(), args);
            check_log(&out.stderr, &format!("{args:?}"));
        }
    }
}

/// The command lines that read and show a file, with the most expensive options. `OUT` is a new file, `SAME` the file
/// itself.
const WAYS: &str = "\
info --full --format json
verify
dump --format ndjson
summary --format markdown --chart
analyze --report all --by step --format json
report -o OUT
diff SAME --format html
recover -o OUT
redact -o OUT
export --format perfetto --flows -o OUT
export --format otlp -o OUT
export --format folded --weight stacks -o OUT
export --format parquet -o OUT";

/// Further command lines, which only `make test-long` runs.
const MORE: &str = "\
info
summary
analyze
analyze --report all
analyze --report all --by depth
analyze --report series --format csv
analyze --format ci-tracer
diff SAME
diff SAME --format json
diff SAME --format markdown
symbolize -o OUT
export --format otlp-json -o OUT
export --format folded -o OUT
export --format folded --weight wall -o OUT
export --format folded --weight waiting -o OUT
export --format folded --weight waits -o OUT";

/// The largest output in bytes that a command line may make of a file of 40 kB.
const MOST: u64 = 64 << 20;

#[test]
fn forged_files_cost_little_time_and_memory() {
    let forged = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/forged");
    let mut files = Vec::new();
    for file in std::fs::read_dir(forged).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            files.push(path);
        }
    }
    assert!(files.len() > 5);
    let more = if common::long() { MORE } else { "" };
    let lines = || WAYS.lines().chain(more.lines());
    let jobs = files
        .iter()
        .flat_map(|file| lines().map(move |line| (file, line)));
    let jobs = std::sync::Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                let next = jobs.lock().unwrap().next();
                let Some((file, line)) = next else { break };
                costs_little(file, line);
            });
        }
    });
}

fn costs_little(file: &Path, line: &str) {
    if line.starts_with("symbolize") && !cfg!(feature = "record") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let [name, out] = [file, &out].map(|path| path.to_str().unwrap());
    let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.replace("OUT", out).replace("SAME", name);
    let mut limited = Command::new("prlimit");
    limited.args(["--cpu=10", "--as=2147483648", TR, command, name]);
    limited.args(rest.split_whitespace()).stdin(Stdio::null());
    let stdout = std::fs::File::create(dir.path().join("stdout")).unwrap();
    let done = limited.stdout(stdout).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    let at = format!("tr {line}, {name}: {}: {said}", done.status);
    assert!(matches!(done.status.code(), Some(0..=2)), "{at}");
    assert!(
        !said.contains("panicked") && !said.contains("was reached"),
        "{at}"
    );
    for made in std::fs::read_dir(dir.path()).unwrap() {
        let length = made.unwrap().metadata().unwrap().len();
        assert!(length < MOST, "{length} bytes: {at}");
    }
}
