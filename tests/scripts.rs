//! Tests the repository's shell scripts, with stubs in place of cargo, gcc and sudo.
#![allow(clippy::unwrap_used)] // in a test

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, killpg, Signal};
use nix::unistd::Pid;

mod common;

/// Writes an executable shell script, which stands in for a program.
fn stub(dir: &Path, name: &str, text: &str) {
    let file = dir.join(name);
    common::write_program(file, format!("#!/bin/bash\n{text}\n")).unwrap();
}

/// A command for one of the repository's scripts. Stubs are found in `dir` first, and write their arguments into the
/// file `$LOG`.
fn script(dir: &Path, name: &str) -> Command {
    let mut command = Command::new(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("scripts")
            .join(name),
    );
    command
        .env("PATH", format!("{}:/usr/bin:/bin", dir.display()))
        .env("LOG", dir.join("log"))
        .env("CARGO_TARGET_DIR", dir.join("target"));
    command
}

fn log(dir: &Path) -> String {
    fs::read_to_string(dir.join("log")).unwrap_or_default()
}

/// The beginning of a stub of cargo: it prints a version, and writes the arguments of all other calls into `$LOG`.
const CALL_OF_CARGO: &str =
    r#"if [ "$1" = --version ]; then echo cargo 1.88.0; exit; fi; echo "$@" >>"$LOG""#;

/// Runs `build.sh` where gcc finds the static libraries that match `has`. `cargo` is the rest of the stub of cargo.
/// Returns the output and the log.
fn build(has: &str, cargo: &str, args: &[&str]) -> (Output, String) {
    let dir = tempfile::tempdir().unwrap();
    let known = format!("case $1 in {has}) echo /dev/null ;; *) echo \"${{1#*=}}\" ;; esac");
    stub(dir.path(), "gcc", &known);
    stub(dir.path(), "cargo", &format!("{CALL_OF_CARGO}\n{cargo}"));
    let out = script(dir.path(), "build.sh").args(args).output().unwrap();
    (out, log(dir.path()))
}

const STATIC: &str = "-- -C target-feature=+crt-static -C relocation-model=static\n";

#[test]
fn tr_is_static_where_the_libraries_are() {
    let (out, log) = build("*", "", &[]);
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    assert_eq!(
        log,
        format!("rustc --locked --profile release --bin tr {STATIC}")
    );
    // Without `tr record` only the C library has to exist as a static one.
    let (_, log) = build("*libc.a", "", &["--without-record"]);
    let features = "--locked --profile release --no-default-features --features reading --bin tr";
    assert_eq!(log, format!("rustc {features} {STATIC}"));
    // The program without the reports, which only records, is copied to another name.
    let made = "tr=$CARGO_TARGET_DIR/release/tr; mkdir -p ${tr%/tr}; touch $tr; chmod +x $tr";
    let (out, log) = build("*", made, &["--record-only"]);
    assert!(out.status.success(), "{out:?}");
    let features = "--locked --profile release --no-default-features --features record --bin tr";
    assert_eq!(log, format!("rustc {features} {STATIC}"));
}

#[test]
fn tr_is_dynamic_where_they_are_not() {
    let (out, log) = build("*libc.a | *libz.a", "", &[]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(
        said,
        "build: tr is linked dynamically, as this machine lacks libelf.a\n"
    );
    assert_eq!(log, "build --locked --profile release --bin tr\n");
    // A static library exists, but linking it fails: the build is repeated dynamically.
    let (out, log) = build("*", "[ \"$1\" = build ]", &[]);
    assert!(out.status.success(), "{out:?}");
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("the static build failed"), "{said}");
    assert!(
        log.ends_with("\nbuild --locked --profile release --bin tr\n"),
        "{log}"
    );
    // An error in the source fails the dynamic build as well.
    let (out, _) = build("*", "exit 101", &[]);
    assert_eq!(out.status.code(), Some(101));
}

/// Runs `install.sh` with these variables. Returns its output, the calls of its stubs, and the mode of the installed
/// program.
fn install(variables: &[(&str, &str)]) -> (Output, String, u32) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["chown", "setcap", "groupadd"] {
        stub(dir.path(), name, &format!("echo {name} \"$@\" >>\"$LOG\""));
    }
    stub(dir.path(), "getent", "[ \"$2\" = known ]");
    let prefix = dir.path().join("to");
    let mut command = script(dir.path(), "install.sh");
    command.arg(env!("CARGO_BIN_EXE_tr")).env("PREFIX", &prefix);
    let out = command.envs(variables.iter().copied()).output().unwrap();
    let program = prefix.join("bin/tr");
    let mode = fs::metadata(&program).unwrap().permissions().mode() & 0o7777;
    let log = log(dir.path()).replace(&format!("{}.new", program.display()), "TR");
    (out, log, mode)
}

#[test]
fn a_group_alone_gets_the_capabilities() {
    let capable = "setcap cap_bpf,cap_perfmon+p TR\n";
    let (out, log, mode) = install(&[("SETCAP", "1"), ("GROUP", "tr-trace")]);
    assert!(out.status.success(), "{out:?}");
    // Changing the owner removes the capabilities, so chown must come before setcap.
    let made = "groupadd --system tr-trace\n";
    assert_eq!(log, format!("{made}chown root:tr-trace TR\n{capable}"));
    assert_eq!(mode, 0o750);
    let (_, log, mode) = install(&[("SETCAP", "1"), ("GROUP", "known")]);
    assert_eq!(log, format!("chown root:known TR\n{capable}"));
    assert_eq!(mode, 0o750);
    let (_, log, mode) = install(&[("SETCAP", "1")]);
    assert_eq!((log.as_str(), mode), (capable, 0o755));
    let (out, log, mode) = install(&[]);
    assert_eq!((log.as_str(), mode), ("", 0o755));
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(
        said.contains("sudo make install SETCAP=1 GROUP=tr-trace"),
        "{said}"
    );
}

/// Runs `demo.sh` as an ordinary user. `method` is the method that `tr doctor` finds, and `sudo` is the text of the
/// stub of sudo. Returns the recordings that the script made, and the last line of its output.
fn demo(method: &str, sudo: &str) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let built = dir.join("target/demo");
    fs::create_dir_all(&built).unwrap();
    let improve = r#"printf '"command": "setcap TR",\n"purpose": "To record everything"\n'"#;
    let doctor = format!("[ $1 != doctor ] || {{ echo '\"method\": {method}'; {improve}; }}");
    // A pager would wait for a key, so the stub fails if a pager may run.
    let paged = "[ $1 != analyze ] || [ -z \"${TR_PAGER-less}\" ] || exit 1";
    let refused = "case $* in *--sudo*refused*) exit 125 ;; esac";
    stub(
        &built,
        "tr",
        &format!("echo \"$@\" >>\"$LOG\"; {doctor}; {refused}; {paged}"),
    );
    stub(dir, "id", "echo 1234");
    stub(dir, "sudo", sudo);
    let out = script(dir, "demo.sh")
        .arg(dir.join("refused"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let log = log(dir);
    let recorded = log.lines().filter(|line| line.starts_with("record"));
    let recorded = recorded
        .map(|line| line.split(" -o").next().unwrap().to_owned())
        .collect();
    let printed = String::from_utf8(out.stdout).unwrap();
    (recorded, printed.lines().last().unwrap().to_owned())
}

#[test]
fn the_demo_records_by_sudo_where_that_asks_nothing() {
    // `demo.sh` first tries `record --sudo`, which the stub of tr refuses, and then records without it. The method is
    // null if there is no terminal.
    let advice = "To record everything: setcap TR";
    for method in ["\"ptrace\"", "null"] {
        let (recorded, last) = demo(method, "[ \"$1 $2\" = '-n true' ]");
        assert_eq!(recorded, ["record --sudo", "record"]);
        assert_eq!(last, advice);
        let (recorded, last) = demo(method, "exit 1");
        assert_eq!(recorded, ["record"]);
        assert_eq!(last, advice);
    }
    let (recorded, last) = demo("\"bpf\"", ":");
    assert_eq!(recorded, ["record"]);
    assert!(last.starts_with("Next: "), "{last}");
}

/// The programs of a machine on which `setup.sh` runs as root.
struct Machine {
    /// The version that cargo prints; `None` if cargo is not installed.
    cargo: Option<&'static str>,
    python: bool,
}

const MACHINE: Machine = Machine {
    cargo: Some("1.88.0"),
    python: true,
};

/// Runs `setup.sh`; `apt` is the text of the stub of apt-get. Returns the output and the calls of apt-get.
fn setup(machine: &Machine, part: &str, apt: &str) -> (Output, String) {
    let dir = tempfile::tempdir().unwrap();
    let out = setup_in(dir.path(), machine, part, apt).output().unwrap();
    (out, log(dir.path()))
}

/// The command `setup.sh` with its stubs in this directory.
fn setup_in(dir: &Path, machine: &Machine, part: &str, apt: &str) -> Command {
    let mut tools = vec![
        "bash", "env", "dirname", "cat", "grep", "sed", "sort", "realpath", "sleep",
    ];
    if machine.python {
        tools.push("python3");
    }
    for tool in tools {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(tool), dir.join(tool)).unwrap();
    }
    if let Some(version) = machine.cargo {
        stub(dir, "cargo", &format!("echo cargo {version} '(0 1970)'"));
    }
    stub(dir, "id", "echo 0");
    stub(dir, "apt-get", &format!("echo \"$@\" >>\"$LOG\"\n{apt}"));
    // The Python packages that the tests need count as installed.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lists = [
        "fleet/requirements.txt",
        "tests/requirements.txt",
        "tests/requirements-long.txt",
    ];
    let lists = lists.map(|list| fs::read_to_string(root.join(list)).unwrap());
    fs::create_dir_all(dir.join("target/python/bin")).unwrap();
    fs::write(dir.join("target/python/wanted"), lists.concat()).unwrap();
    let mut command = Command::new(dir.join("env"));
    command.arg("--default-signal").arg(dir.join("bash"));
    command.arg(root.join("scripts/setup.sh")).arg(part);
    command.env("PATH", dir).env("LOG", dir.join("log"));
    command.env("CARGO_TARGET_DIR", dir.join("target"));
    command.env("HOME", dir.join("home")).env_remove("SUDO_UID");
    command
}

/// Ctrl-C: apt-get handles the signal itself and exits. The script must then install nothing else, and end by the
/// signal, so that make stops.
#[test]
fn an_interrupt_ends_setup() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let apt = "case $* in update* | *--assume-no*) exit ;; esac
        trap 'echo interrupted >>\"$LOG\"; exit 1' INT; echo ready >>\"$LOG\"
        for _ in {1..600}; do sleep 0.1; done";
    let mut command = setup_in(dir, &MACHINE, "test", apt);
    let mut child = command.process_group(0).spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while !log(dir).contains("ready") && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(10));
    }
    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let status = ended(&mut child).expect("an end after the signal");
    assert_eq!(status.signal(), Some(libc::SIGINT), "{status:?}");
    let log = log(dir);
    assert!(
        log.ends_with("\nready\ninterrupted\n") && log.matches("update").count() == 1,
        "{log}"
    );
}

/// On a machine that cannot build, nothing is installed. Without Python the tests cannot run.
#[test]
fn setup_fails_first_where_nothing_can_be_built() {
    let run = |machine: &Machine, part: &str| {
        let (out, calls) = setup(machine, part, ":");
        (
            out.status.code(),
            String::from_utf8(out.stderr).unwrap(),
            calls,
        )
    };
    for cargo in [None, Some("1.70.0"), Some("1.87.1-nightly")] {
        for part in ["build", "test", "long"] {
            let machine = Machine { cargo, ..MACHINE };
            let (status, said, calls) = run(&machine, part);
            assert_eq!((status, calls.as_str()), (Some(2), ""), "{cargo:?}: {said}");
            let words = match cargo {
                None => "no Rust toolchain: ",
                Some(_) => "Rust 1.88 or later is needed, and ",
            };
            assert!(said.starts_with(words) && said.contains("rustup"), "{said}");
        }
    }
    for cargo in [Some("1.88.0"), Some("1.100.0"), Some("2.0.0")] {
        let machine = Machine { cargo, ..MACHINE };
        let (status, said, calls) = run(&machine, "build");
        assert!(
            status == Some(0) && calls.contains("clang"),
            "{cargo:?}: {said}"
        );
    }
    let machine = Machine {
        python: false,
        ..MACHINE
    };
    let (status, said, calls) = run(&machine, "test");
    assert_eq!(status, Some(2), "{said}");
    assert!(calls.contains(" python3 "), "{calls}");
    assert!(
        said.ends_with("setup: no python3, which runs the tests\n"),
        "{said}"
    );
    assert_eq!(run(&machine, "build").0, Some(0));
}

#[test]
fn setup_installs_what_the_tests_need_and_says_how_much() {
    let sizes = "case $* in *--assume-no*) echo '0 upgraded, 207 newly installed, 0 to remove.'; \
        echo 'Need to get 220 MB of archives.'; exit 1 ;; esac";
    let (out, calls) = setup(&MACHINE, "test", sizes);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(
        said.contains("setup: 207 newly installed, 220 MB to fetch\n"),
        "{said}"
    );
    let last = calls.lines().last().unwrap();
    assert!(
        last.contains("strace") && last.contains("-o DPkg::Lock::Timeout=600"),
        "{calls}"
    );
    let has = |what: &str| calls.split([' ', '\n']).any(|word| word == what);
    assert!(!has("npm") && !has("default-jre-headless"), "{calls}");
    let (_, calls) = setup(&MACHINE, "long", sizes);
    assert!(calls.contains(" default-jre-headless"), "{calls}");
}

/// docs/install.md names all packages that `make build` and `make install` need, and README begins with two commands.
#[test]
fn the_book_names_the_packages_of_setup() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let (readme, page, setup, makefile) = (
        read("README.md"),
        read("docs/install.md"),
        read("scripts/setup.sh"),
        read("Makefile"),
    );
    let build = setup
        .split("install \"building tr record\"")
        .next()
        .unwrap();
    let wanted = build.lines().filter_map(|line| line.split("want ").nth(1));
    let wanted = wanted.filter_map(|line| line.split(' ').next());
    let mut wanted: Vec<&str> = wanted
        .filter(|name| {
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        })
        .collect();
    let line = "    sudo apt-get install ";
    let mut named: Vec<&str> = page
        .lines()
        .find_map(|row| row.strip_prefix(line))
        .unwrap()
        .split(' ')
        .collect();
    wanted.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, wanted);
    let code = readme.lines().filter_map(|line| line.strip_prefix("    "));
    let first: Vec<&str> = code
        .filter(|line| line.starts_with("make ") && !line.starts_with("make -"))
        .take(2)
        .map(|line| line.split(" #").next().unwrap().trim())
        .collect();
    assert_eq!(first, ["make demo", "make test"]);
    assert!(makefile.contains("\ndemo:") && makefile.contains("\ntest:"));
}

/// Runs `test.py` as an ordinary user, with a stub of sudo. `recorder` is the text of a stub, which is the only test
/// program.
fn tests(dir: &Path, recorder: &str) -> Command {
    stub(dir, "recorder-0", recorder);
    let artifact = format!(
        r#"{{"manifest_path":"{0}/Cargo.toml","profile":{{"test":true}},"features":[],"executable":"{0}/recorder-0"}}"#,
        dir.display()
    );
    // The call of cargo that runs the examples in the documentation (doc tests) does nothing.
    stub(
        dir,
        "cargo",
        &format!(
            "case $* in --version) echo cargo 1.88.0 ;; *--no-run*) echo '{artifact}' ;; esac"
        ),
    );
    stub(dir, "id", "echo 1234");
    let sudo = "echo sudo \"$@\" >>\"$LOG\"; case $* in *chown*) ;; *) shift; exec \"$@\" ;; esac";
    stub(dir, "sudo", sudo);
    let script = script(dir, "test.py");
    // The process that runs this test may ignore signals, so they are reset.
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(script.get_program());
    for (name, value) in script.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.process_group(0).stdin(Stdio::null());
    command
}

/// The exit status of a process. If it runs for a minute, it is killed.
fn ended(child: &mut Child) -> Option<ExitStatus> {
    let limit = Instant::now() + Duration::from_secs(60);
    while Instant::now() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    None
}

/// The command lines of all processes that contain this word.
fn processes_with(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(word)).collect()
}

/// Ctrl-C while a test runs by sudo: the user becomes the owner of the files that root made, and no process remains.
#[test]
fn an_interrupted_test_gives_roots_files_back() {
    // Ctrl-C sends the signal to the whole process group; kill(1) sends it only to one process.
    let signals = [
        (Signal::SIGINT, true),
        (Signal::SIGINT, false),
        (Signal::SIGTERM, false),
        (Signal::SIGHUP, true),
    ];
    for (signal, to_group) in signals {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        // The stub ignores the signals. It also starts a process in another session, whose parent then ends. Both
        // processes must be killed.
        let mark = format!("mark-{}", dir.display());
        let recorder = format!(
            "trap '' INT TERM HUP; (setsid bash -c 'while :; do sleep 1; done' {mark} &)
            echo started >>\"$LOG\"; while :; do sleep 1; done"
        );
        let mut command = tests(dir, &recorder);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let limit = Instant::now() + Duration::from_secs(60);
        // The test program is started twice: for the tests that run alone, and for the others.
        while log(dir).matches("started\n").count() < 2 && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
        let pid = Pid::from_raw(child.id().cast_signed());
        if to_group {
            killpg(pid, signal).unwrap();
        } else {
            kill(pid, signal).unwrap();
        }
        let status = ended(&mut child).expect("an end after the signal");
        assert_eq!(status.signal(), Some(signal as i32), "{status:?}");
        let target = fs::canonicalize(dir.join("target/tmp")).unwrap();
        let chown = format!(" chown -R 1234:1234 {}\n", target.display());
        let log = log(dir);
        assert!(log.contains("started\n") && log.ends_with(&chown), "{log}");
        assert_eq!(processes_with(&mark), [""; 0]);
    }
}

/// Ctrl-C at ten moments, from the start of the test runner until well within the tests: each time the run ends by that
/// signal within a minute, and no process remains.
#[test]
fn an_interrupt_at_any_moment_ends_the_tests() {
    for number in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let mark = format!("mark-{}", dir.display());
        let recorder = format!("bash -c 'while :; do sleep 0.1; done' {mark}");
        let mut command = tests(dir, &recorder);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        // The square makes the moments irregular within a second.
        std::thread::sleep(Duration::from_millis(number * number * 137 % 1_000));
        killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
        let status = ended(&mut child).expect("an end after the interrupt");
        assert_eq!(
            status.signal(),
            Some(Signal::SIGINT as i32),
            "{number}: {status:?}"
        );
        assert_eq!(processes_with(&mark), [""; 0], "{number}");
    }
}

/// If a test hangs, the run ends with the names of the tests that have not ended, and with their processes.
#[test]
fn a_test_that_hangs_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let recorder = r#"if [ "$1" = --list ]; then printf '%s: test\n' good hung later; exit; fi
        echo "running 3 tests"; echo "test good ... ok"
        echo -n hung >/proc/$$/comm; cat <(sleep 1000)"#;
    let mut command = tests(dir, recorder);
    let out = fs::File::create(dir.join("out")).unwrap();
    let mut child = command.env("QUIET", "10").stdout(out).spawn().unwrap();
    let status = ended(&mut child).expect("an end at the bound");
    let said = fs::read_to_string(dir.join("out")).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    for words in [
        "recorder-0.alone: FAILED: no result, exit status -9: it has printed nothing for 10 s\n",
        "  2 tests have not ended; of these run: hung\n",
        ": sleep 1000 \n",
        "\n0 passed, 2 failed, 0 skipped\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// A test that fails once is repeated alone. If the test then passes three times, other load has disturbed the first
/// run. If the test fails again, it counts as failed.
#[test]
fn a_test_that_fails_once_is_run_alone() {
    let run = |again: i32| {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let recorder = format!(
            "if [ \"$1\" = --exact ]; then echo \"$*\" >>\"$LOG\"; exit {again}; fi
            printf '%s\\n' 'test frail ... FAILED' 'test absent (skipped: no moon) ... ignored' 'test good  ... ok' \
                failures: '' '---- frail stdout ----' 'it is frail' failures: \
                'test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out'; exit 101"
        );
        let out = tests(dir, &recorder).output().unwrap();
        let said = String::from_utf8(out.stdout).unwrap();
        let log = log(dir);
        let alone = log.lines().filter(|line| line.starts_with("--exact frail"));
        (out.status.code(), said, alone.count())
    };
    let (code, said, times) = run(0);
    assert_eq!((code, times), (Some(0), 6), "{said}");
    assert!(
        said.ends_with("\n4 passed, 0 failed, 2 skipped\n"),
        "{said}"
    );
    assert!(said.contains("      2 (skipped: no moon)\n"), "{said}");
    assert!(
        said.contains("frail: failed once, passed three times alone. The failure's output:\n---- frail stdout ----\nit is frail\n"),
        "{said}"
    );
    let (code, said, times) = run(1);
    assert_eq!((code, times), (Some(1), 2), "{said}");
    assert!(
        said.ends_with("\n2 passed, 2 failed, 2 skipped\n"),
        "{said}"
    );
}

/// A release that would lack a part is refused, and everything that is missing is reported before anything is built.
#[test]
fn a_release_in_part_needs_leave() {
    let tools = ["dpkg-deb", "rpmbuild", "apt-ftparchive", "createrepo_c"];
    let run = |without: &[&str], leave: &str| {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        // On some machines the directories of `PATH` also have the tools that must be missing here. So the test uses a
        // directory with links to the other tools alone.
        for tool in [
            "bash", "cat", "cut", "dirname", "env", "head", "mkdir", "mktemp", "realpath", "rm",
            "sed", "sort",
        ] {
            std::os::unix::fs::symlink(Path::new("/usr/bin").join(tool), dir.join(tool)).unwrap();
        }
        for tool in tools.iter().filter(|tool| !without.contains(tool)) {
            stub(dir, tool, "");
        }
        stub(dir, "gcc", "echo /dev/null");
        stub(dir, "uname", "echo x86_64");
        stub(
            dir,
            "rustc",
            &format!("echo {}", dir.join("absent").display()),
        );
        stub(dir, "cargo", &format!("{CALL_OF_CARGO}; exit 9"));
        let mut release = script(dir, "release.sh");
        release
            .env("PATH", dir)
            .env("SOURCE_DATE_EPOCH", "1")
            .env("ALLOW_PARTIAL", leave);
        let out = release.arg(dir.join("dist")).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        (out.status.code(), said, log(dir))
    };
    let other = "release: no release for another architecture: cannot build for aarch64: this \
        machine lacks aarch64-linux-gnu-gcc libc.a libelf.a libz.a Rust's aarch64-unknown-linux-gnu";
    let (status, said, calls) = run(&[], "");
    assert_eq!((status, calls.as_str()), (Some(1), ""), "{said}");
    assert!(said.starts_with(other), "{said}");
    assert!(said.contains("unless ALLOW_PARTIAL=1 is set"), "{said}");
    // Each missing program is named together with its package.
    let (status, said, calls) = run(&tools, "");
    assert_eq!((status, calls.as_str()), (Some(1), ""), "{said}");
    for words in ["dpkg-deb", "(rpm)", "(apt-utils)", "(createrepo-c)", other] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // With ALLOW_PARTIAL=1 the release is built nevertheless; here the build fails.
    let (status, said, calls) = run(&tools, "1");
    assert!(
        status != Some(1) && said.starts_with("release: no "),
        "{status:?} {said}"
    );
    assert!(
        calls.starts_with("rustc --locked --profile release"),
        "{calls}"
    );
}

/// In the list of parts (SBOM) each package has the checksum of the lock file, and a concluded licence.
#[test]
fn the_list_of_parts_has_checksums_and_licences() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = |name: &str, version: &str, source: &str| serde_json::json!({ "id": name, "name": name, "version": version, "license": "MIT/Apache-2.0", "source": source });
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let block = lock
        .split("[[package]]")
        .find(|block| block.contains("name = \"memchr\""))
        .unwrap();
    let value = |key: &str| {
        let line = block
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        line.unwrap().trim_end_matches('"').to_owned()
    };
    let memchr = package("memchr", &value("version"), "registry");
    let mut tr = package("tr", "0.1.0", "");
    tr["source"] = serde_json::Value::Null;
    let metadata = serde_json::json!({
        "packages": [memchr, tr],
        "resolve": { "root": "tr", "nodes": [
            { "id": "tr", "deps": [{ "pkg": "memchr", "dep_kinds": [{ "kind": null }] }] },
            { "id": "memchr", "deps": [] },
        ] },
    });
    let mut list = Command::new("python3");
    list.arg(root.join("scripts/sbom.py"))
        .args(["0.1.0", "1", "zlib=1.3=Zlib"]);
    let mut list = list
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    serde_json::to_writer(list.stdin.take().unwrap(), &metadata).unwrap();
    let out = list.wait_with_output().unwrap();
    let list: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let parts = list["packages"].as_array().unwrap();
    let part = |name: &str| parts.iter().find(|part| part["name"] == name).unwrap();
    assert_eq!(
        part("memchr")["checksums"][0]["checksumValue"],
        value("checksum"),
        "{list}"
    );
    assert_eq!(
        part("memchr")["licenseConcluded"],
        "MIT OR Apache-2.0",
        "{list}"
    );
    assert_eq!(part("zlib")["licenseConcluded"], "Zlib", "{list}");
    assert!(part("tr")["checksums"].is_null(), "{list}");
}

/// Checks a crate with these files by circles.py. Returns whether circles.py finds no large circle of files that use
/// each other, and its messages.
fn circles(files: &[(&str, &str)]) -> (bool, String) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = dir.path().join("town/src").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let out = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/circles.py"))
        .arg(dir.path().join("town/src"))
        .output()
        .unwrap();
    (out.status.success(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn a_circle_by_paths_in_the_midst_of_code_is_found() {
    let four = "layers: town: 4 files use each other: lib bakery mill mill::stone\n";
    let lib =
        "mod bakery;\nmod mill;\npub struct Flour;\nfn open() { bakery::bake(mill::grind()) }\n";
    let bakery = "pub fn bake(flour: crate::Flour) { crate::mill::stone::turn() }\n";
    let mill = "mod stone;\npub fn grind() -> crate::Flour { stone::turn() }\n";
    let stone = "pub fn turn() -> super::super::Flour { crate::Flour }\n";
    let calls = [
        ("lib.rs", lib),
        ("bakery.rs", bakery),
        ("mill.rs", mill),
        ("mill/stone.rs", stone),
    ];
    assert_eq!(circles(&calls), (false, four.to_owned()));
    // The type is moved into a file that uses no other file of the crate, so no circle is left.
    let below = lib.replace("pub struct Flour;", "mod flour;\npub use flour::Flour;");
    let split = [
        ("lib.rs", below.as_str()),
        ("flour.rs", "pub struct Flour;\n"),
        calls[1],
        calls[2],
        calls[3],
    ];
    assert_eq!(circles(&split), (true, String::new()));
    // `lib.rs` only re-exports the type. The type is declared in `town.rs`, which calls the other files, so they still
    // use each other in a circle.
    let hidden = "mod bakery;\nmod mill;\nmod town;\npub use town::Flour;\n";
    let town = lib.replace("mod bakery;\nmod mill;\n", "use crate::{bakery, mill};\n");
    let through = [
        ("lib.rs", hidden),
        ("town.rs", town.as_str()),
        calls[1],
        calls[2],
        calls[3],
    ];
    let four = "layers: town: 4 files use each other: bakery mill mill::stone town\n";
    assert_eq!(circles(&through), (false, four.to_owned()));
    // Uses in tests and comments do not count.
    let tests = "// crate::open()\npub struct Flour;\n#[cfg(test)]\nmod tests { fn f() { crate::open() } }\n";
    let tested = [
        ("lib.rs", below.as_str()),
        ("flour.rs", tests),
        calls[1],
        calls[2],
        calls[3],
    ];
    assert_eq!(circles(&tested), (true, String::new()));
}

#[test]
fn a_circle_by_methods_of_other_files_is_found() {
    let four = "layers: town: 4 files use each other: lib bakery mill shop\n";
    let lib = "mod bakery;\nmod mill;\nmod shop;\npub struct Town;\nimpl Town { pub fn open(&mut self) { self.bake(); } }\n";
    let method = |name: &str, calls: &str| {
        format!("use crate::Town;\nimpl Town {{ pub(crate) fn {name}(&mut self) {{ self.{calls}(); }} }}\n")
    };
    let (bakery, mill) = (method("bake", "grind"), method("grind", "sell"));
    let circle = |shop: &str| {
        let files = [
            ("lib.rs", lib),
            ("bakery.rs", &bakery),
            ("mill.rs", &mill),
            ("shop.rs", shop),
        ];
        circles(&files)
    };
    assert_eq!(circle(&method("sell", "count")), (false, four.to_owned()));
    // Two types in different files now have a method with this name. A call may mean either of them, so it counts as no
    // use of the other file.
    let other = format!(
        "{}pub struct Till;\nimpl Till {{ fn grind(&self) {{}} }}\n",
        method("sell", "count")
    );
    assert_eq!(circle(&other), (true, String::new()));
    // Types of the standard library have a method of this name, too, so it counts as no use.
    let common = method("push", "count");
    assert_eq!(
        circles(&[
            ("lib.rs", lib),
            ("bakery.rs", &bakery),
            ("mill.rs", &method("grind", "push")),
            ("shop.rs", &common),
        ]),
        (true, String::new())
    );
}
