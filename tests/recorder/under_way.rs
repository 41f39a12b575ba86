//! Tests reading a recording while it is being written.

use std::process::{Command, Stdio};

use libtest_mimic::Failed;

use crate::support::{ensure, eventually, recording, scratch, text, tr, Test, TR};

pub const TESTS: &[Test] = &[
    ("dump_follows_a_recording_to_its_end", followed),
    ("a_recording_under_way_says_so_and_what_runs", under_way),
    ("a_killed_recorder_ends_what_follows_it", killed),
];

/// A shell script that ends when the file `go` exists.
const WAITS: &str = "for i in 1 2 3; do /bin/true; done; : >ready; while ! test -e go; do sleep 0.1; done; /bin/false";

fn started(name: &str) -> Result<(std::path::PathBuf, std::process::Child), Failed> {
    let trace = scratch(name);
    let dir = trace.parent().ok_or("a directory")?.to_owned();
    for left in ["ready", "go", name] {
        let _ = std::fs::remove_file(dir.join(left));
    }
    let mut command = recording(&trace, &["-q"], &["sh", "-c", WAITS]);
    let recorder = command.current_dir(&dir).spawn()?;
    eventually("COMMAND runs", || dir.join("ready").exists())?;
    Ok((trace, recorder))
}

fn followed() -> Result<(), Failed> {
    let (trace, mut recorder) = started("followed.bin")?;
    let follower = Command::new(TR)
        .args(["dump", "--follow"])
        .arg(&trace)
        .stdout(Stdio::piped())
        .spawn()?;
    // The wait is longer than the recorder's interval of flushes, so that the follower reads several parts.
    std::thread::sleep(std::time::Duration::from_millis(900));
    std::fs::write(trace.with_file_name("go"), "")?;
    recorder.wait()?;
    let out = follower.wait_with_output()?;
    ensure(out.status.success(), || format!("{:?}", out.status))?;
    let (mut followed, whole) = (text(&out.stdout), text(&tr(&["dump"], &trace)?));
    ensure(whole.contains("/bin/false"), || whole.clone())?;
    if followed != whole {
        // The recorder may learn a fact late. The line of this fact then comes later in the followed output than in the
        // dump of the finished file. So only the sorted lines are compared.
        let sorted = |text: &str| {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            lines.join("\n")
        };
        ensure(sorted(&followed) == sorted(&whole), || {
            format!("{followed}\n\n{whole}")
        })?;
    }
    followed = text(&tr(&["dump", "--follow"], &trace)?);
    ensure(followed == whole, || "of a finished recording".into())
}

fn under_way() -> Result<(), Failed> {
    let (trace, mut recorder) = started("under-way.bin")?;
    let said = || {
        let out = Command::new(TR).arg("analyze").arg(&trace).output();
        out.map(|out| (text(&out.stderr), text(&out.stdout)))
            .unwrap_or_default()
    };
    eventually("the first flush", || said().1.contains("job runs"))?;
    let (error, report) = said();
    let info = text(&tr(&["info"], &trace)?);
    std::fs::write(trace.with_file_name("go"), "")?;
    recorder.wait()?;
    ensure(
        error.contains("under-way.bin: the recording is under way"),
        || error.clone(),
    )?;
    ensure(!error.contains("killed"), || error.clone())?;
    ensure(report.contains("! the recording is under way"), || {
        report.clone()
    })?;
    ensure(info.contains("the recording is under way"), || info.clone())?;
    let (error, report) = said();
    ensure(!(error + &report).contains("under way"), || report.clone())
}

fn killed() -> Result<(), Failed> {
    let (trace, mut recorder) = started("killed.bin")?;
    let follower = Command::new(TR)
        .args(["dump", "--follow"])
        .arg(&trace)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    std::thread::sleep(std::time::Duration::from_millis(900));
    recorder.kill()?;
    recorder.wait()?;
    let out = follower.wait_with_output()?;
    std::fs::write(trace.with_file_name("go"), "")?;
    ensure(text(&out.stderr).contains("recorder was killed"), || {
        text(&out.stderr)
    })
}
