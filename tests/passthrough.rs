//! Tests that a build script's `tr a-z A-Z` keeps working if our `tr` comes first on PATH.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/usages.rs"]
mod usages;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{ABSENT, TR};
use usages::USAGES;

const SYSTEM: &str = "/usr/bin:/bin";

/// A directory with a symbolic link named `tr` to our binary.
struct Ours(tempfile::TempDir);

impl Ours {
    fn new() -> Ours {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(TR, dir.path().join("tr")).unwrap();
        Ours(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A PATH with this directory first, and then `rest`.
    fn before(&self, rest: &str) -> String {
        format!("{}:{rest}", self.path().display())
    }
}

fn script(dir: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    let file = dir.join("tr");
    common::write_program(&file, text).unwrap();
    file
}

/// Runs a command with `input` on its standard input.
fn run(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    end(&mut child, &format!("{command:?}"));
    child.wait_with_output().unwrap()
}

/// Waits until a child has ended, for at most 20 s.
fn end(child: &mut Child, what: &str) {
    let limit = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{what}: no end in 20 s");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn tr(path: &str) -> Command {
    let mut command = Command::new(TR);
    command.env("PATH", path);
    command
}

#[test]
fn arguments_input_output_and_status_are_those_of_the_systems_tr() {
    let ours = Ours::new();
    let done = run(
        Command::new(ours.path().join("tr"))
            .args(["a-z", "A-Z"])
            .env("PATH", ours.before(SYSTEM)),
        b"hello\n",
    );
    assert_eq!(done.stdout, b"HELLO\n");
    assert_eq!(done.status.code(), Some(0));
    let done = run(tr(&ours.before(SYSTEM)).args(["-d", "l\\n"]), b"hello\n");
    assert_eq!(done.stdout, b"heo");
    // A word that only resembles a subcommand is passed on to the system's `tr`. An option of ours, such as
    // `--version`, is not passed on.
    let done = run(tr(&ours.before(SYSTEM)).args(["recor", "x"]), b"record");
    assert_eq!(done.stdout, b"xxxxxd");
    let done = run(tr(&ours.before(SYSTEM)).arg("--version"), b"");
    assert!(done.stdout.starts_with(b"tr 0."), "{done:?}");
    // Without arguments, or with too few, the message is that of the system's tr.
    for args in [&[][..], &["a"][..]] {
        let done = run(tr(&ours.before(SYSTEM)).args(args), b"");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains("operand"), "{said}");
    }
}

/// Command lines that POSIX or GNU `tr` refuses, and that contain no word that resembles a subcommand.
const REFUSED: [&[&str]; 8] = [
    &[],
    &["a"],
    &["a", "b", "c"],
    &["-d"],
    &["-d", "a", "b"],
    &["-x", "a", "b"],
    &["--no-such-option", "a", "b"],
    &["-s", "a", "b", "c"],
];

#[test]
fn every_usage_of_tr_passes_through() {
    let ours = Ours::new();
    let input = "hello  World\t1 'x' \"y\" a-z \\ é\r\nlast line".as_bytes();
    for args in USAGES.iter().chain(&REFUSED) {
        let passed = run(tr(&ours.before(SYSTEM)).args(*args), input);
        // The messages of the system's tr contain the path by which it was started. So the system's tr is found on PATH
        // here, too.
        let mut system = Command::new("tr");
        let system = run(system.args(*args).env("PATH", SYSTEM), input);
        assert_eq!(passed.stdout, system.stdout, "{args:?}");
        assert_eq!(passed.stderr, system.stderr, "{args:?}");
        assert_eq!(passed.status, system.status, "{args:?}");
    }
    for args in &USAGES {
        let passed = run(tr(&ours.before(SYSTEM)).args(*args), input);
        assert!(passed.status.success(), "{args:?} is no usage: {passed:?}");
    }
}

/// The path of a recording, which the mistyped command lines name.
fn a_recording() -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    fixtures.join("demo.bin").display().to_string()
}

#[test]
fn mistyped_subcommands_are_answered() {
    let (ours, trace) = (Ours::new(), a_recording());
    let trace = trace.as_str();
    for (args, meant) in [
        (&["recrod", "--", "make", "test"][..], "record"),
        (&["recrod", "make", "-j8", "test"], "record"),
        (&["recrod", "-q"], "record"),
        (&["Record", "-o"], "record"),
        (&["recrod", "sh"], "record"),
        (&["recor", "/bin/sh"], "record"),
        (&["run", "--", "make"], "record"),
        (&["-q", "record", "--", "make"], "record"),
        (&["analyz"], "analyze"),
        (&["anaylze", "--json"], "analyze"),
        (&["anlyze", trace], "analyze"),
        (&["show", trace], "analyze"),
        (&["show"], "analyze"),
        (&["view", trace], "report"),
        (&["dif", trace, trace], "diff"),
        // The recording need not exist.
        (&["reprot", "x.bin"], "report"),
        // No word resembles a subcommand, but a recording is named.
        (&[trace], "analyze"),
        (&["a-z", trace], "analyze"),
        (&["-d", trace], "analyze"),
    ] {
        let done = run(tr(&ours.before(SYSTEM)).args(args), b"input");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let system = ["/usr/bin/tr", "/bin/tr"]
            .into_iter()
            .find(|tr| Path::new(tr).exists());
        let system = system.unwrap_or_default();
        let want = format!("tr: did you mean `tr {meant}`? (the system's tr: {system})\n");
        assert_eq!((said, done.status.code()), (want, Some(2)), "{args:?}");
        assert!(done.stdout.is_empty(), "{args:?}");
    }
    // `analyse` is an alternative spelling of our own subcommand.
    let done = run(tr(&ours.before(SYSTEM)).args(["analyse", trace]), b"");
    assert!(
        done.status.success() && String::from_utf8_lossy(&done.stdout).starts_with("make -s -j2 "),
        "{done:?}"
    );
}

/// An argument that names a file other than a recording is taken for a set of characters. A FIFO is not even opened.
#[test]
fn other_files_are_sets() {
    let (ours, dir) = (Ours::new(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("abc"), "not a recording").unwrap();
    fs::write(dir.path().join("abd"), "").unwrap();
    fs::create_dir(dir.path().join("abe")).unwrap();
    let mode = nix::sys::stat::Mode::S_IRWXU;
    nix::unistd::mkfifo(&dir.path().join("abf"), mode).unwrap();
    for set in ["abc", "abd", "abe", "abf"] {
        let mut command = tr(&ours.before(SYSTEM));
        let done = run(command.args([set, "xyz"]).current_dir(dir.path()), b"aabb");
        assert_eq!(done.stdout, b"xxyy", "{set}: {done:?}");
    }
}

/// On a terminal the system's `tr` would wait for typed input, so a word that resembles a subcommand is answered.
#[test]
fn on_a_terminal_a_word_near_a_subcommand_is_answered() {
    let ours = Ours::new();
    for (args, mistyped) in [
        (["recrod", "make"], true),
        (["run", "make"], true),
        (["rec", "make"], true),
        (["trace", "TRACE"], true),
        (["abc", "xyz"], false),
    ] {
        let pty = nix::pty::openpty(None, None).unwrap();
        let mut command = tr(&ours.before(SYSTEM));
        let child = command.args(args).stdin(Stdio::from(pty.slave));
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        drop(command);
        // If the system's `tr` runs, Ctrl-D ends its input.
        nix::unistd::write(&pty.master, b"aabb\n\x04").unwrap();
        let done = child.unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(
            said.contains("did you mean `tr record`?"),
            mistyped,
            "{said}"
        );
        assert_eq!(done.stdout, if mistyped { &b""[..] } else { b"xxyy\n" });
    }
}

/// If a command line on a terminal begins with the name of a program, `record --` is proposed. In a script, the command
/// line is passed on to the system's `tr`.
#[test]
fn on_a_terminal_a_program_is_a_command() {
    let ours = Ours::new();
    let own = script(&ours.path().join("project"), "#!/bin/sh\n");
    let tools = ours.path().join("tools");
    fs::create_dir_all(&tools).unwrap();
    for tool in ["make", "cargo"] {
        fs::copy(&own, tools.join(tool)).unwrap();
    }
    let path = ours.before(&format!("{}:{SYSTEM}", tools.display()));
    let own = own.to_str().unwrap();
    for (args, line) in [
        (&["sleep", "1"][..], Some("record -- sleep 1".to_owned())),
        (&["make", "test"], Some("record -- make test".to_owned())),
        (
            &["cargo", "build"],
            Some("record -- cargo build".to_owned()),
        ),
        (
            &["sh", "-c", "a b"],
            Some("record -- sh -c 'a b'".to_owned()),
        ),
        (&["sort"], Some("record -- sort".to_owned())),
        (&[own, "b"], Some(format!("record -- {own} b"))),
        (&["[", "("], None),
        (&["-d", "sleep"], None),
        (&["abc", "sleep"], None),
    ] {
        let pty = nix::pty::openpty(None, None).unwrap();
        let mut command = tr(&path);
        let child = command.args(args).stdin(Stdio::from(pty.slave));
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        drop(command);
        // If the system's `tr` runs, Ctrl-D ends its input.
        nix::unistd::write(&pty.master, b"abc\n\x04").unwrap();
        let mut child = child.unwrap();
        end(&mut child, &format!("{args:?}"));
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        match &line {
            Some(line) => {
                let words = format!("tr: did you mean `tr {line}`?");
                assert!(said.starts_with(&words) && done.stdout.is_empty(), "{said}");
                assert_eq!(done.status.code(), Some(2));
            }
            None => assert!(done.status.success() && said.is_empty(), "{args:?}: {said}"),
        }
    }
    let done = run(tr(&ours.before(SYSTEM)).args(["sleep", "sheep"]), b"lp");
    assert_eq!(done.stdout, b"hp", "{done:?}");
}

/// Under its second name, `tr-trace`, the program passes nothing on, and all its messages use that name.
#[test]
fn the_second_name_passes_nothing_on() {
    let (dir, trace) = (tempfile::tempdir().unwrap(), a_recording());
    let second = dir.path().join("tr-trace");
    std::os::unix::fs::symlink(TR, &second).unwrap();
    let said = |args: &[&str]| {
        let mut command = Command::new(&second);
        let command = command.args(args).current_dir(dir.path());
        let done = run(command.env("PATH", SYSTEM), b"input");
        let text = [done.stdout, done.stderr].concat();
        (
            done.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    for args in &USAGES {
        let (status, text) = said(args);
        // A command line that begins with an option of ours, such as -c, gets another message.
        let unknown =
            text.contains("unrecognized subcommand") || text.contains("unexpected argument");
        let asked = text.contains("tr-trace: did you mean `tr-trace ");
        assert!(status == Some(2) && (unknown || asked), "{args:?}: {text}");
    }
    for (word, meant) in [
        ("recrod", "record"),
        ("show", "analyze"),
        (&trace, "analyze"),
    ] {
        let want = format!("tr-trace: did you mean `tr-trace {meant}`?\n");
        assert_eq!(said(&[word]), (Some(2), want));
    }
    // No message or help may call the program `tr`, because that is the system's `tr` under this name.
    let names_tr = |text: &str| {
        let word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
        text.split(|c| !word(c)).any(|word| word == "tr")
    };
    let mut all = vec![
        said(&["--help"]),
        said(&["--version"]),
        said(&[]),
        said(&["mark"]),
        said(&["man", "--help"]),
    ];
    for name in [
        "record",
        "analyze",
        "report",
        "summary",
        "export",
        "diff",
        "predict",
        "pipeline",
        "info",
        "dump",
        "verify",
        "recover",
        "redact",
        "completions",
    ] {
        all.push(said(&[name, "--help"]));
        all.push(said(&[name]));
        all.push(said(&[name, ABSENT]));
    }
    for report in [
        "overview",
        "critical-path",
        "steps",
        "cpus",
        "syscalls",
        "flame",
    ] {
        all.push(said(&["analyze", &trace, "--report", report]));
    }
    all.push(said(&["analyze", &trace]));
    for shell in ["bash", "zsh", "fish"] {
        all.push(said(&["completions", shell]));
    }
    for (_, text) in &all {
        assert!(!text.is_empty() && !names_tr(text), "{text}");
    }
    assert!(all
        .iter()
        .any(|(_, text)| text.contains("next: tr-trace analyze ")));
}

/// Each manual page to which another one refers exists, under both names of the program.
#[test]
fn manual_pages_refer_to_pages_that_exist() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["tr", "tr-trace"] {
        let link = dir.path().join(name);
        std::os::unix::fs::symlink(TR, &link).unwrap();
        let pages = dir.path().join(format!("{name}.pages"));
        assert!(Command::new(&link)
            .arg("man")
            .arg(&pages)
            .status()
            .unwrap()
            .success());
        let first = fs::read_to_string(pages.join("tr-trace.1")).unwrap();
        let first = first.replace("\\-", "-");
        let named = first.lines().filter_map(|line| line.strip_suffix("(1)"));
        let named: Vec<&str> = named.collect();
        assert!(named.len() > 10, "{first}");
        for page in named {
            assert!(page.starts_with(&format!("{name}-")), "{page}");
            assert!(pages.join(format!("{page}.1")).is_file(), "{name}: {page}");
        }
    }
}

#[test]
fn an_unknown_option_of_record_is_an_error_of_ours() {
    for args in [
        &["record", "--bufer", "4M", "--", "true"][..],
        &["record", "-x", "true"],
    ] {
        let done = run(tr(SYSTEM).args(args), b"");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(125), "{said}");
        assert!(said.contains("unexpected argument"), "{said}");
    }
    // Options after COMMAND belong to COMMAND, so tr reports no error for an unknown option there.
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["record", "-q", "env", "--no-such"][..],
        &["record", "-q", "--", "env", "-q"],
    ] {
        let done = run(
            tr(SYSTEM).args(args).arg("true").current_dir(dir.path()),
            b"",
        );
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!said.contains("unexpected argument"), "{said}");
    }
}

#[test]
fn arguments_need_not_be_text() {
    let dir = tempfile::tempdir().unwrap();
    script(
        dir.path(),
        "#!/bin/sh\nfor a in \"$@\"; do printf '%s|' \"$a\"; done; exit 7\n",
    );
    let mut command = tr(&format!("{}:{SYSTEM}", dir.path().display()));
    command.args(["", "a b", "--", "\u{1b}[m"]);
    command.arg(OsStr::from_bytes(b"\xff"));
    let done = run(&mut command, b"");
    assert_eq!(done.stdout, b"|a b|--|\x1b[m|\xff|");
    assert_eq!(done.status.code(), Some(7));
}

#[test]
fn links_to_ourselves_are_not_the_next_one() {
    let (ours, hard) = (Ours::new(), tempfile::tempdir().unwrap());
    // A hard link to our program also counts as our program, and not as the system's `tr`. Some file systems do not
    // allow a hard link here.
    let _ = fs::hard_link(TR, hard.path().join("tr"));
    let path = ours.before(&format!("{}:{SYSTEM}", hard.path().display()));
    let done = run(tr(&path).args(["a-z", "A-Z"]), b"x");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.stdout, b"X", "{said}");
}

#[test]
fn copies_and_callers_of_ourselves_do_not_pass_on_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for copy in ["a", "b"] {
        fs::create_dir(at(copy)).unwrap();
        fs::copy(TR, at(copy).join("tr")).unwrap();
    }
    let copies = format!("{}:{}", at("a").display(), at("b").display());
    let with_system = format!("{copies}:{SYSTEM}");
    let done = run(tr(&with_system).args(["a-z", "A-Z"]), b"copies");
    assert_eq!(done.stdout, b"COPIES");
    let done = run(tr(&copies).args(["a-z", "A-Z"]), b"");
    assert_eq!(done.status.code(), Some(127));

    for (name, how) in [("exec", "exec "), ("fork", "")] {
        script(&at(name), &format!("#!/bin/sh\n{how}{TR} \"$@\"\n"));
        let path = format!("{}:{SYSTEM}", at(name).display());
        let done = run(tr(&path).args(["a-z", "A-Z"]), b"scripts");
        assert_eq!(done.stdout, b"SCRIPTS", "{name}");
    }
}

#[test]
fn files_that_cannot_be_executed_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("directory/tr")).unwrap();
    let plain = script(&at("plain"), "no program");
    fs::set_permissions(plain, fs::Permissions::from_mode(0o644)).unwrap();
    script(&at("lost"), "#!/no/such/interpreter\n");
    let names = ["directory", "plain", "lost", "absent"].map(|n| at(n).display().to_string());
    let path = format!("{}:{SYSTEM}", names.join(":"));
    let done = run(tr(&path).args(["a-z", "A-Z"]), b"x");
    assert_eq!(done.stdout, b"X");
}

#[test]
fn without_another_tr_it_says_so() {
    let ours = Ours::new();
    for args in [&["a-z", "A-Z"][..], &[][..]] {
        let done = run(tr(&ours.path().display().to_string()).args(args), b"");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(127), "{said}");
        assert!(said.starts_with("tr: "), "{said}");
        assert!(said.contains("no other tr on PATH"), "{said}");
    }
}

/// The masks `SigIgn` and `SigBlk` with which the system's `tr` would run, if the shell script `before` set them.
fn signals(before: &str) -> (u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    script(dir.path(), "#!/bin/sh\nexec cat /proc/self/status\n");
    let path = format!("{}:{SYSTEM}", dir.path().display());
    let line = format!("{before} env PATH='{path}' '{TR}' a-z A-Z");
    let mut shell = Command::new("/bin/sh");
    let done = run(shell.args(["-c", &line]).env("PATH", SYSTEM), b"");
    let status = String::from_utf8_lossy(&done.stdout).into_owned();
    let bits = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {status:?}"));
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    (bits("SigIgn:"), bits("SigBlk:"))
}

#[test]
fn signals_are_as_they_were() {
    const PIPE: u64 = 1 << 12;
    const USR1: u64 = 1 << 9;
    let (ignored, blocked) = signals("exec");
    assert_eq!(ignored & PIPE, 0, "SIGPIPE is as by default");
    assert_eq!(blocked & USR1, 0);
    let (ignored, _) = signals("trap '' PIPE; exec");
    assert_eq!(ignored & PIPE, PIPE, "SIGPIPE stays ignored");
    let (_, blocked) = signals("exec env --block-signal=USR1");
    assert_eq!(blocked & USR1, USR1, "the mask goes on");
}

#[test]
fn a_reader_that_has_had_enough_ends_it() {
    let ours = Ours::new();
    let mut child = tr(&ours.before(SYSTEM))
        .args(["a", "b"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let _ = child.stdin.take().unwrap().write_all(&vec![b'a'; 1 << 20]);
    end(&mut child, "a closed pipe");
    assert_eq!(child.wait().unwrap().signal(), Some(13));
}

#[cfg(not(feature = "record"))]
#[test]
fn without_the_feature_record_is_refused() {
    let ours = Ours::new();
    let args = ["record", "--best-effort", "-o", "x.bin", "--", "true"];
    let done = run(tr(&ours.before(SYSTEM)).args(args), b"");
    assert_eq!(done.status.code(), Some(125), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("built without recording"), "{said}");
}

/// Outside of a recording `tr mark` writes nothing, and its COMMAND keeps its exit status, streams and PATH.
#[test]
fn marks_outside_of_a_recording_do_nothing() {
    let status = |args: &[&str], input: &[u8]| {
        let out = run(tr(SYSTEM).args(args), input);
        (
            out.status.code(),
            out.stdout,
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    for args in [
        &["mark", "x"][..],
        &["mark", "--begin", "x y"],
        &["mark", "--end", "x"],
    ] {
        assert_eq!(
            status(args, b"input"),
            (Some(0), vec![], String::new()),
            "{args:?}"
        );
    }
    let copied = status(&["mark", "x", "--", "sh", "-c", "cat; exit 7"], b"input");
    assert_eq!(copied, (Some(7), b"input".to_vec(), String::new()));
    for (command, code) in [(ABSENT, 127), ("/etc/passwd", 126)] {
        let (is, _, said) = status(&["mark", "x", "--", command], b"");
        assert!(is == Some(code) && said.contains(command), "{is:?} {said}");
    }
    for args in [
        &["mark"][..],
        &["mark", "--"],
        &["mark", "x", "--"],
        &["mark", "a", "b"],
        &["mark", "--begin"],
    ] {
        let (is, out, said) = status(args, b"");
        assert!(
            is == Some(2) && out.is_empty() && said.contains("tr mark NAME -- COMMAND"),
            "{args:?}: {is:?} {said}"
        );
    }
}

/// The closing line of a recording names a command that the user can type: the path of the program, if the shell would
/// run another program of its name.
#[test]
fn the_next_command_runs_this_program() {
    let dir = tempfile::tempdir().unwrap();
    let next = |path: &Path| {
        let out = Command::new(TR)
            .args(["record", "--method", "ptrace", "-o"])
            .arg(dir.path().join("x.bin"))
            .args(["--", "/bin/true"])
            .env("PATH", path)
            .output()
            .unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        let next = said.split("next: ").nth(1);
        next.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let elsewhere = next(Path::new("/usr/bin:/bin"));
    assert!(
        elsewhere.starts_with(&format!("{TR} analyze ")),
        "{elsewhere}"
    );
    let found = next(Path::new(TR).parent().unwrap());
    assert!(found.starts_with("tr analyze "), "{found}");
}
