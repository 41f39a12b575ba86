//! Defaults of the command line, and the command lines that it proposes.
#![allow(clippy::unwrap_used)]

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
    // Another file that is absent gets no such advice.
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
    for name in names {
        std::fs::copy(demo(), dir.path().join(name)).unwrap();
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
    // Names without a common beginning: half on each side.
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
