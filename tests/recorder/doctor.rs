//! Tests that `tr doctor` reports what `tr record` can do here: as root, as an ordinary user, in a user namespace, and
//! with filters of system calls.

use std::process::{Command, Output, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::rights::{elsewhere, without, NOBODY, USER_NAMESPACE};
use crate::support::{ensure, text, Test};

pub const TESTS: &[Test] = &[(DOCTOR, doctor)];

/// This test needs root.
pub const DOCTOR: &str = "doctor_knows_what_the_recorder_can_do";

/// Checks that `tr doctor` finds this method in this environment, and that `tr record` then works. The system calls in
/// `refused` all fail.
fn finds(
    program: &str,
    wrapper: &[&str],
    refused: &[libc::c_long],
    method: Option<&str>,
) -> Result<Value, Failed> {
    let run = |args: &[&str]| -> Result<Output, Failed> {
        let words = [wrapper, &[program], args].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        for call in refused {
            without(&mut command, *call, libc::EPERM);
        }
        Ok(command.output()?)
    };
    let out = run(&["doctor", "--format", "json"])?;
    let all = || format!("{wrapper:?} {refused:?}: {out:?}");
    let found: Value = serde_json::from_slice(&out.stdout).map_err(|_| all())?;
    ensure(found["schema"] == "tr.doctor/1", all)?;
    ensure(found["method"] == serde_json::json!(method), all)?;
    let words = found["missing"].to_string();
    let by_programs = method == Some("bpf");
    ensure(
        words.contains("(--all, --pid, --cgroup)") != by_programs,
        all,
    )?;
    let complete = found["missing"].as_array().is_some_and(Vec::is_empty);
    let code = match method {
        Some("bpf") if complete => 0,
        Some(_) => 1,
        None => 2,
    };
    ensure(out.status.code() == Some(code), all)?;
    ensure(found["improve"].is_null() == (method == Some("bpf")), all)?;
    let words = run(&["doctor"])?;
    let head = match method {
        Some("bpf") => "tr record uses BPF here",
        Some(_) => "tr record uses ptrace here",
        None => "tr record runs COMMAND untraced here",
    };
    let said = text(&words.stdout);
    ensure(said.starts_with(head), || said.clone())?;
    let command = found["improve"]["command"].as_str().unwrap_or_default();
    ensure(said.contains(command), || said.clone())?;
    // `tr record` must succeed in the environment that `tr doctor` has described.
    let out = run(&["record", "-q", "-o", "/dev/null", "--", "true"])?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    Ok(found)
}

fn doctor() -> Result<(), Failed> {
    let copy = elsewhere("doctor")?;
    let program = copy.to_string_lossy().into_owned();
    let checked = everywhere(&program);
    std::fs::remove_file(&copy)?;
    checked
}

fn everywhere(program: &str) -> Result<(), Failed> {
    let root = finds(program, &[], &[], Some("bpf"))?;
    ensure(root["bpf"]["allowed"] == true, || format!("{root:#}"))?;
    ensure(root["btf"] == true, || format!("{root:#}"))?;
    let nobody = finds(program, NOBODY, &[], None)?;
    let command = nobody["improve"]["command"].as_str().unwrap_or_default();
    ensure(command.starts_with("sudo setcap cap_bpf"), || {
        format!("{nobody:#}")
    })?;
    ensure(nobody["ptrace"]["allowed"] == true, || {
        format!("{nobody:#}")
    })?;
    let unshare = Command::new(USER_NAMESPACE[0])
        .args(&USER_NAMESPACE[1..])
        .arg("true")
        .status()?;
    if unshare.success() {
        let inside = finds(program, USER_NAMESPACE, &[], None)?;
        let why = inside["bpf"]["refusal"].as_str().unwrap_or_default();
        ensure(why.contains("user namespace"), || format!("{inside:#}"))?;
    }
    let refused = finds(program, &[], &[libc::SYS_bpf], None)?;
    let notes = refused["notes"].to_string();
    ensure(notes.contains("--method ptrace"), || format!("{refused:#}"))?;
    let both = [libc::SYS_ptrace, libc::SYS_bpf];
    let nothing = finds(program, &[], &both, None)?;
    ensure(nothing["ptrace"]["allowed"] == false, || {
        format!("{nothing:#}")
    })?;
    // A program with file capabilities may trace other programs, although an ordinary user may not trace that program.
    let mut setcap = Command::new("setcap");
    let set = setcap.args(["cap_bpf,cap_perfmon+p", program]).status()?;
    ensure(set.success(), || "setcap".into())?;
    let capable = finds(program, NOBODY, &[], Some("bpf"))?;
    ensure(capable["ptrace"]["allowed"] == true, || {
        format!("{capable:#}")
    })
}
