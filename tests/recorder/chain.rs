//! Tests the order in which methods of recording are tried: where BPF is refused, the command runs untraced and a
//! message gives the reason. If the recorder is killed, COMMAND goes on to its own exit status.

use std::process::Command;
use std::time::Duration;

use libtest_mimic::Failed;

use crate::rights::{elsewhere, refuse};
use crate::support::{analyze, ensure, eventually, info, list, recording, scratch, text, Test};

/// Tests that need root.
pub const TESTS: &[Test] = &[
    ("after_each_refusal_the_command_runs", refusals),
    ("a_refused_ptrace_is_explained", no_ptrace),
    ("without_a_listener_ptrace_records", no_listener),
];

/// This test needs the right to trace.
pub const KILLED: &[Test] = &[("a_killed_recorder_leaves_its_command_alone", killed)];

/// Changes of the machine after which BPF is refused. Each change is made in a mount namespace of its own, so that only
/// one program sees the change. An entry has the shell command for the change, whether ptrace still works, and a part
/// of the message that `tr record` prints.
const CHAIN: &[(&str, bool, &str)] = &[
    (
        "mount -t tmpfs none /sys/kernel/btf",
        true,
        "see whether the kernel was built with CONFIG_DEBUG_INFO_BTF=y, which makes BTF: grep BTF",
    ),
    (
        "mount -t tmpfs none /sys/kernel/btf && echo 5.4.0-1 >$DIR/release && \
         mount --bind $DIR/release /proc/sys/kernel/osrelease",
        true,
        "see the kernel's version (BPF is used from Linux 5.8 on): uname -r",
    ),
    (
        "umount -l /sys",
        true,
        "mount /sys, where the kernel's BTF is: mount -t sysfs sysfs /sys",
    ),
    (
        "umount -l /proc",
        false,
        "tr: cannot trace: /proc is not mounted",
    ),
];

fn refusals() -> Result<(), Failed> {
    let dir = scratch("chain");
    std::fs::create_dir_all(&dir)?;
    let trace = dir.join("x.bin");
    for (change, ptrace, words) in CHAIN {
        let script = format!("{change} && exec \"$@\"");
        let run = |options: &[&str]| {
            let tr = recording(&trace, options, &["sh", "-c", "exit 6"]);
            let mut unshare = Command::new("unshare");
            unshare.args(["--mount", "sh", "-c", &script, "sh"]);
            unshare.arg(tr.get_program()).args(tr.get_args());
            unshare.env("DIR", &dir).output()
        };
        let out = run(&[])?;
        let said = text(&out.stderr);
        let all = || format!("{change}: {out:?}");
        ensure(out.status.code() == Some(6) && said.contains(words), all)?;
        ensure(said.contains("the command runs untraced"), all)?;
        // Without /proc, a file that was made without a name (O_TMPFILE) cannot get a name, so there is no recording.
        ensure(!ptrace || info(&trace)?["not_traced"].is_string(), all)?;
        let out = run(&["--method", "ptrace"])?;
        let words = "cannot record by ptrace: /proc/PID/schedstat cannot be read";
        let good = if *ptrace {
            out.status.code() == Some(6) && info(&trace)?["method"] == "ptrace"
        } else {
            out.status.code() == Some(125) && text(&out.stderr).contains(words)
        };
        ensure(good, || format!("{change}: {out:?}"))?;
    }
    Ok(())
}

/// Yama or a seccomp filter refuses ptrace(2).
fn no_ptrace() -> Result<(), Failed> {
    let trace = scratch("chain-ptrace.bin");
    let copy = elsewhere("chain")?;
    // An empty scope makes no file `ptrace_scope`, as on a kernel without Yama.
    for (scope, words) in [
        ("", "to run the command without tracing: "),
        (
            "2",
            "kernel.yama.ptrace_scope is 2; to allow it: sudo sysctl kernel.yama.ptrace_scope=1",
        ),
        ("3", "kernel.yama.ptrace_scope is 3, until the next boot"),
    ] {
        let run = |options: &[&str]| {
            let script = "mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && \
                if [ -n \"$SCOPE\" ]; then echo $SCOPE >/proc/sys/kernel/yama/ptrace_scope; fi && exec \"$@\"";
            let mut tr = Command::new("unshare");
            tr.args(["--mount", "sh", "-c", script, "sh"])
                .arg(&copy)
                .arg("record");
            tr.args(options)
                .arg("-o")
                .arg(&trace)
                .args(["--", "sh", "-c", "exit 6"]);
            refuse(&mut tr, &[libc::SYS_ptrace, libc::SYS_bpf], libc::EPERM);
            tr.env("SCOPE", scope).output()
        };
        let out = run(&["--method", "ptrace"])?;
        let said = text(&out.stderr);
        ensure(
            out.status.code() == Some(125)
                && said.starts_with("tr: cannot trace with ptrace: ")
                && said.contains(words)
                && said.contains("record --best-effort -o ")
                && said.contains(" -- sh -c 'exit 6'"),
            || format!("{scope}: {out:?}"),
        )?;
        let out = run(&[])?;
        ensure(
            out.status.code() == Some(6) && info(&trace)?["not_traced"].is_string(),
            || format!("{scope}: {out:?}"),
        )?;
    }
    Ok(std::fs::remove_file(&copy)?)
}

/// If seccomp(2) is refused, ptrace records without the seccomp listener, and the recording says so.
fn no_listener() -> Result<(), Failed> {
    let trace = scratch("chain-listener.bin");
    let mut tr = recording(
        &trace,
        &["--method", "ptrace"],
        &["sh", "-c", "true; exit 6"],
    );
    refuse(&mut tr, &[libc::SYS_seccomp], libc::EPERM);
    let out = tr.output()?;
    ensure(out.status.code() == Some(6), || format!("{out:?}"))?;
    let found = info(&trace)?;
    let what = found["degraded"][0]["what"].as_str().unwrap_or_default();
    ensure(what.contains("there is no listener for ptrace"), || {
        format!("{found:#}")
    })?;
    ensure(
        found["facts"]["switches"] == "totals" && found["facts"]["wakings"] == "absent",
        || format!("{found:#}"),
    )
}

/// Kills the recorder by SIGKILL, with each method except sudo.
fn killed() -> Result<(), Failed> {
    for method in ["bpf", "ptrace"] {
        let trace = scratch(&format!("chain-{method}.bin"));
        let (begun, done) = (trace.with_extension("begun"), trace.with_extension("done"));
        for file in [&trace, &begun, &done] {
            let _ = std::fs::remove_file(file);
        }
        let inner = format!(
            "touch {}; for i in 1 2 3 4 5 6 7 8; do sleep 0.2; done; exit 7",
            begun.display()
        );
        let script = format!("sh -c '{inner}'; echo $? >{}", done.display());
        let options = ["-q", "--method", method];
        let mut tr = recording(&trace, &options, &["sh", "-c", &script]).spawn()?;
        eventually("COMMAND runs", || begun.exists())?;
        std::thread::sleep(Duration::from_millis(1000));
        tr.kill()?;
        tr.wait()?;
        let status = || std::fs::read_to_string(&done).is_ok_and(|status| status == "7\n");
        eventually("COMMAND ends with its status", status)?;
        let analysis = analyze(&trace)?;
        ensure(info(&trace)?["truncated"] == true, || method.into())?;
        let sleeps = list(&analysis, "processes")
            .iter()
            .filter(|process| process["comm"] == "sleep");
        ensure(sleeps.count() > 0, || format!("{method}: {analysis}"))?;
    }
    Ok(())
}
