//! Tests the outputs of the subcommands that read a trace: their names, file modes, symbolic links and streams.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

use std::fs::Permissions;
use std::os::unix::fs::{chown, lchown, symlink, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const TR: &str = env!("CARGO_BIN_EXE_tr");

/// The subcommands whose output is a single file.
const WRITERS: [&str; 4] = ["report", "recover", "redact", "predict --format html"];

fn demo(dir: &Path) -> PathBuf {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let path = dir.join("demo.bin");
    std::fs::copy(demo, &path).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

fn run(dir: &Path, script: &str) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).env("TR", TR).current_dir(dir);
    shell.stdin(Stdio::null()).output().unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_output_is_as_private_as_the_trace() {
    let dir = tempfile::tempdir().unwrap();
    let trace = demo(dir.path());
    for command in WRITERS {
        for (trace_mode, want) in [(0o600, 0o600), (0o644, 0o644)] {
            std::fs::set_permissions(&trace, Permissions::from_mode(trace_mode)).unwrap();
            let script = format!("umask 022; $TR {command} demo.bin -o out");
            let out = run(dir.path(), &script);
            assert!(out.status.success(), "{command}: {}", said(&out));
            assert_eq!(mode(&dir.path().join("out")), want, "{command}");
        }
        let out = run(
            dir.path(),
            &format!("umask 022; $TR {command} - < demo.bin -o out"),
        );
        assert!(out.status.success(), "{command}: {}", said(&out));
        assert_eq!(mode(&dir.path().join("out")), 0o600, "{command}");
        assert_eq!(names(dir.path()), ["demo.bin", "out"]);
        std::fs::remove_file(dir.path().join("out")).unwrap();
    }
}

#[test]
fn a_stream_and_a_descriptor_get_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    for command in WRITERS {
        let script = format!(
            "rm -f file; $TR {command} demo.bin -o file && $TR {command} demo.bin -o - > a && \
             $TR {command} demo.bin -o /dev/stdout > b && $TR {command} demo.bin -o /dev/fd/7 7> c && \
             $TR {command} demo.bin -o /dev/stdout | cat > d && \
             for f in a b c d; do cmp file $f || exit 9; done"
        );
        let out = run(dir.path(), &script);
        assert!(out.status.success(), "{command}: {}", said(&out));
        let full = run(dir.path(), &format!("$TR {command} demo.bin -o /dev/full"));
        assert!(
            !full.status.success() && said(&full).contains("No space"),
            "{}",
            said(&full)
        );
    }
    assert!(std::fs::symlink_metadata("/dev/stdout")
        .unwrap()
        .is_symlink());
}

#[test]
fn a_closed_standard_output_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let other = demo(dir.path()).with_file_name("build.bin");
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/build.bin");
    std::fs::copy(build, other).unwrap();
    for command in [
        "info demo.bin",
        "dump demo.bin",
        "verify demo.bin",
        "analyze demo.bin",
        "analyze demo.bin --format json",
        "diff demo.bin build.bin",
        "report demo.bin -o -",
        "recover demo.bin -o -",
        "redact demo.bin -o -",
        "info --secrets demo.bin",
        "completions bash",
    ] {
        let out = run(dir.path(), &format!("$TR {command} >&-"));
        assert!(!out.status.success(), "{command}");
        assert!(
            said(&out).contains("Bad file descriptor"),
            "{command}: {}",
            said(&out)
        );
    }
}

#[test]
fn a_trace_does_not_go_to_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    for command in ["recover", "redact", "export --format=perfetto"] {
        let pty = nix::pty::openpty(None, None).unwrap();
        let out = Command::new(TR)
            .args(command.split(' '))
            .args(["demo.bin", "-o", "-"])
            .current_dir(dir.path())
            .stdout(pty.slave)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        assert!(
            !out.status.success() && said(&out).contains("terminal"),
            "{}",
            said(&out)
        );
    }
}

#[test]
fn what_others_planted_is_refused_by_name() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = demo(dir.path());
    let open = dir.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let (link, fifo) = (open.join("link"), open.join("fifo"));
    symlink(&victim, &link).unwrap();
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    lchown(&link, Some(65534), None).unwrap();
    chown(&fifo, Some(65534), None).unwrap();
    for command in WRITERS {
        for planted in [&link, &fifo] {
            let out = Command::new(TR)
                .args(command.split(' '))
                .arg(&trace)
                .arg("-o")
                .arg(planted)
                .output();
            let out = out.unwrap();
            assert!(!out.status.success(), "{command}");
            let name = planted.to_str().unwrap();
            assert!(
                said(&out).contains(&format!("{name} is a ")),
                "{command}: {}",
                said(&out)
            );
        }
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    assert!(std::fs::metadata(&fifo).unwrap().file_type().is_fifo());
}

#[test]
fn a_directory_is_not_reached_through_another_users_link() {
    if !is_root() {
        eprintln!("skipped: it needs root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = demo(dir.path());
    let victim = dir.path().join("victim");
    for planted in ["", "runs", "runs/repo=r", "runs/repo=r/date=d"] {
        for user in [0, 65534] {
            let _ = std::fs::remove_dir_all(&victim);
            std::fs::create_dir(&victim).unwrap();
            let open = tempfile::tempdir_in(dir.path()).unwrap();
            let set = open.path().join("set");
            // The link is planted for the export of a dataset. The export meets it only if the link is named after the
            // recording's day, so `date=d` is replaced by this day.
            let day = "date=".to_owned() + &day(&trace);
            let link = set.join(planted.replace("date=d", &day));
            let link = link.components().collect::<PathBuf>();
            let around = link.parent().unwrap();
            std::fs::create_dir_all(around).unwrap();
            std::fs::set_permissions(around, Permissions::from_mode(0o1777)).unwrap();
            symlink(&victim, &link).unwrap();
            lchown(&link, Some(user), None).unwrap();
            let script = format!(
                "$TR export demo.bin --format parquet --repo r -o {}",
                set.display()
            );
            let out = run(dir.path(), &script);
            let said = said(&out);
            if user == 0 {
                assert!(out.status.success(), "{planted}: {said}");
                assert!(!names(&victim).is_empty(), "{planted}");
            } else {
                assert_eq!(out.status.code(), Some(1), "{planted}: {said}");
                assert!(said.contains("is a link of user 65534"), "{said}");
                assert_eq!(names(&victim), [""; 0], "{planted}");
            }
        }
    }
    // The output is a file in a directory that is a symbolic link of another user.
    let link = dir.path().join("open");
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    symlink(&victim, &link).unwrap();
    lchown(&link, Some(65534), None).unwrap();
    let out = run(dir.path(), "$TR report demo.bin -o open/page.html");
    assert!(
        said(&out).contains("open is a link of user 65534"),
        "{}",
        said(&out)
    );
}

/// The day of a recording as in the directory `date=...` of a dataset.
fn day(trace: &Path) -> String {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let script = format!(
        "$TR export {} --format parquet --repo r -o set",
        trace.display()
    );
    assert!(run(dir.path(), &script).status.success());
    let days = names(&set.join("runs/repo=r"));
    days[0].strip_prefix("date=").unwrap().to_owned()
}

/// Kills `command`, which writes the file `out`, after so many milliseconds. Returns the names in the directory after
/// the kill.
fn killed(dir: &Path, command: &str, after: u64) -> Vec<String> {
    let mut tr = Command::new(TR)
        .args([command, "demo.bin", "-o", "out"])
        .current_dir(dir)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(after));
    let _ = tr.kill();
    tr.wait().unwrap();
    names(dir)
}

/// A kill at any moment leaves the complete output file or none, and no temporary file.
#[test]
fn a_kill_leaves_no_other_file() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    for command in WRITERS {
        for after in [0, 2, 4, 8, 15, 30, 60] {
            let _ = std::fs::remove_file(dir.path().join("out"));
            let names = killed(dir.path(), command, after);
            assert!(
                names == ["demo.bin"] || names == ["demo.bin", "out"],
                "{names:?}"
            );
        }
    }
}

/// If a command is killed between the two system calls by which it replaces a file, a temporary file remains. The next
/// replacement uses and removes this temporary file.
#[test]
fn a_replacement_takes_over_what_a_kill_left() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    for command in WRITERS {
        let script = format!("$TR {command} demo.bin -o out");
        assert!(run(dir.path(), &script).status.success(), "{command}");
        for after in [0, 4, 15] {
            let names = killed(dir.path(), command, after);
            let others: Vec<_> = names
                .iter()
                .filter(|name| !["demo.bin", "out", ".out.tmp"].contains(&name.as_str()))
                .collect();
            assert!(
                names.contains(&"out".into()) && others.is_empty(),
                "{names:?}"
            );
        }
        std::fs::write(dir.path().join(".out.tmp"), "of a kill").unwrap();
        let out = run(dir.path(), &format!("$TR {command} demo.bin -o out"));
        assert!(out.status.success(), "{command}: {}", said(&out));
        assert_eq!(names(dir.path()), ["demo.bin", "out"], "{command}");
        let whole = std::fs::read(dir.path().join("out")).unwrap();
        assert!(whole.len() > 1000, "{command}");
        std::fs::remove_file(dir.path().join("out")).unwrap();
    }
}

/// A command replaces an output file that an earlier run of a `tr` command has written, but no file of another kind.
#[test]
fn a_file_of_another_kind_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    let trace = std::fs::read(dir.path().join("demo.bin")).unwrap();
    let at = |name: &str| dir.path().join(name);
    for (command, over) in [
        ("recover", "main.c"),
        ("redact", "main.c"),
        ("report", "main.c"),
        ("report", "demo.bin"),
        ("export --format perfetto", "main.c"),
        ("export --format otlp-json", "main.c"),
        ("export --format folded", "demo.bin"),
        ("export --format folded", "main.c"),
        ("export --format otlp-json", "package.json"),
        ("export --format otlp", "blank.txt"),
        ("report", "index.html"),
    ] {
        std::fs::write(at("main.c"), "int main").unwrap();
        for (name, text) in FOREIGN {
            std::fs::write(at(name), text).unwrap();
        }
        let out = run(dir.path(), &format!("$TR {command} demo.bin -o {over}"));
        let said = said(&out);
        assert!(!out.status.success(), "{command}");
        assert!(said.contains("the existing file is not "), "{said}");
        assert!(said.contains("--force"), "{said}");
        assert_eq!(std::fs::read(at("main.c")).unwrap(), b"int main");
        for (name, text) in FOREIGN {
            assert_eq!(std::fs::read(at(name)).unwrap(), text.as_bytes());
        }
        assert!(std::fs::read(at("demo.bin")).unwrap() == trace, "{command}");
        let twice = format!("$TR {command} demo.bin -o own && $TR {command} demo.bin -o own");
        let out = run(dir.path(), &twice);
        assert!(out.status.success(), "{command}: {out:?}");
        std::fs::remove_file(at("own")).unwrap();
        let forced = format!("$TR {command} demo.bin -o main.c --force");
        assert!(run(dir.path(), &forced).status.success(), "{command}");
        assert_ne!(std::fs::read(at("main.c")).unwrap(), b"int main");
    }
}

/// Files that none of our commands writes.
const FOREIGN: [(&str, &str); 3] = [
    ("package.json", "{\"name\": \"x\", \"scripts\": {}}\n"),
    ("blank.txt", "\nA text after a blank line 3\n"),
    ("index.html", "<!doctype html>\n<title>Home</title>\n"),
];

/// Each subcommand with several formats chooses the format by the ending of the output's name, unless `--format` names
/// another one.
#[test]
fn the_format_of_an_output_is_that_of_its_name() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/build.bin");
    std::fs::copy(build, dir.path().join("build.bin")).unwrap();
    for (command, name, format) in [
        ("predict demo.bin", "x.html", "html"),
        ("predict demo.bin", "x.json", "json"),
        ("predict demo.bin", "x.csv", "csv"),
        ("predict demo.bin", "x.txt", "text"),
        ("pipeline demo.bin build.bin", "y.html", "html"),
        ("pipeline demo.bin build.bin", "y.json", "json"),
        ("diff demo.bin build.bin", "z.html", "html"),
        ("diff demo.bin build.bin", "z.md", "markdown"),
    ] {
        let script = format!(
            "$TR {command} -o {name}; $TR {command} --format {format} -o other-{name}; cmp other-{name} {name}"
        );
        let out = run(dir.path(), &script);
        assert!(out.status.success(), "{name}: {out:?}");
    }
    let out = run(
        dir.path(),
        "$TR predict demo.bin --format text -o t.html; head -c 1 t.html",
    );
    assert!(out.stdout != b"<" && out.status.success(), "{out:?}");
}

#[test]
fn the_format_of_an_export_is_that_of_its_name() {
    let dir = tempfile::tempdir().unwrap();
    demo(dir.path());
    for (name, format) in [("x.pftrace", "perfetto"), ("x.folded", "folded")] {
        let script = format!(
            "$TR export demo.bin -o {name} && $TR export demo.bin --format {format} -o - | cmp - {name}"
        );
        let out = run(dir.path(), &script);
        assert!(out.status.success(), "{name}: {out:?}");
    }
    let out = run(dir.path(), "$TR export demo.bin -o x.other");
    assert_eq!(out.status.code(), Some(2));
    assert!(said(&out).contains("--format perfetto"), "{out:?}");
}
