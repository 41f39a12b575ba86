//! Compares what the program prints about the fixtures with stored outputs. Each file of `fixtures/snapshots` is a
//! case: a command line, which runs in `fixtures/traces`, and its output. For a new case, write the first line, `$ tr
//! …`.
//!
//! After an intended change, `TR_UPDATE=1 cargo test --test snapshots` rewrites the outputs.
#![allow(clippy::expect_used, clippy::unwrap_used)] // of our own files

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed};

use common::{ensure, trial, unified_diff, TR};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Runs the command of a case, and compares its output with the stored one.
fn check(case: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(case)?;
    let (first, stored) = text.split_once('\n').unwrap_or((&text, ""));
    let command = first
        .strip_prefix("$ ")
        .ok_or("the first line is no `$ tr …`")?;
    let out = Command::new("sh")
        .args(["-c", &format!("tr() {{ '{TR}' \"$@\"; }}; {command}")])
        .current_dir(fixtures().join("traces"))
        .env_remove("COLUMNS")
        .output()?;
    let errors = String::from_utf8_lossy(&out.stderr);
    ensure(out.status.success() && errors.is_empty(), || {
        format!("{command}: {}: {errors}", out.status)
    })?;
    let now = String::from_utf8(out.stdout)?;
    if std::env::var_os("TR_UPDATE").is_some() {
        std::fs::write(case, format!("{first}\n{now}"))?;
        return Ok(());
    }
    if now != stored {
        let difference = unified_diff(stored, &now)?;
        return Err(format!("{}\n{command}\n{difference}", case.display()).into());
    }
    Ok(())
}

fn main() {
    let mut trials = Vec::new();
    for entry in std::fs::read_dir(fixtures().join("snapshots")).unwrap() {
        let case = entry.unwrap().path();
        let name = case.file_stem().unwrap().to_str().unwrap().to_owned();
        trials.push(trial(&name, None, move || check(&case)));
    }
    trials.sort_by(|first, second| first.name().cmp(second.name()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
