//! Tests that the texts of shell scripts are recorded if the scripts run from files.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Output;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{ensure, info, int, recording, scratch, text, tr, write_program, Test};

pub const TESTS: &[Test] = &[
    ("scripts_in_files_are_kept", files),
    ("a_script_that_changes_has_no_text", changed),
    ("secrets_in_scripts_are_masked", secrets),
    ("scripts_are_not_kept_on_request", none),
    (OF_ROOT, of_root),
    (MOUNTED, mounted),
];

pub const MOUNTED: &str = "a_path_in_another_tree_of_mounts_names_another_script";

pub const OF_ROOT: &str = "a_user_gets_no_file_of_root_into_a_trace";

/// Makes a directory of this test with these files.
fn directory(name: &str, files: &[(&str, &str)]) -> Result<PathBuf, Failed> {
    let directory = scratch(name);
    fs::create_dir_all(&directory)?;
    for (name, text) in files {
        write_program(directory.join(name), text)?;
    }
    Ok(directory.canonicalize()?)
}

/// Records a bash script that runs in this directory.
fn record(place: &Path, options: &[&str], script: &str) -> Result<Output, Failed> {
    let trace = place.join("t.bin");
    let mut tr = recording(&trace, options, &["bash", "-c", script]);
    Ok(tr.current_dir(place).output()?)
}

/// The recorded scripts that lie in this directory: the name of each, and its text if it was kept.
fn kept(place: &Path) -> Result<Vec<(String, Option<String>)>, Failed> {
    let info = info(&place.join("t.bin"))?;
    let scripts = info["scripts"].as_array().ok_or("no scripts")?;
    let name = |script: &Value| {
        let path = Path::new(script["path"].as_str()?);
        Some(path.strip_prefix(place).ok()?.to_str()?.to_owned())
    };
    let scripts = scripts.iter().map(|script| {
        let text = script["text"].as_str().map(str::to_owned);
        (name(script).unwrap_or_default(), text)
    });
    Ok(scripts.collect())
}

fn is_kept(place: &Path, want: &[(&str, Option<&str>)]) -> Result<(), Failed> {
    let kept = kept(place)?;
    let own = |(name, text): &(&str, Option<&str>)| ((*name).to_owned(), text.map(str::to_owned));
    let want: Vec<_> = want.iter().map(own).collect();
    ensure(kept == want, || format!("{kept:?}, not {want:?}"))
}

const FILES: [(&str, &str); 5] = [
    ("relative", "echo relative\n"),
    ("options", "echo options; (exit 3) || true\n"),
    ("shebang", "#!/bin/bash -e\necho shebang \"$1\"\n"),
    ("env", "#!/usr/bin/env bash\necho env\n"),
    ("sourced", "echo sourced\n"),
];

/// Runs scripts in many ways. A script that is an argument (-c) or comes from a pipe has no file.
const RUN: &str = "sh relative; bash -eo pipefail ./options; ./shebang x; ./env; \
                   . ./sourced; bash <(echo echo substituted); echo echo piped | sh -s; \
                   head -c 70000 /dev/zero | tr '\\0' '#' > long; sh -e ./long; sh none; exit 5";

fn files() -> Result<(), Failed> {
    for method in ["bpf", "ptrace"] {
        let place = directory(method, &FILES)?;
        let mut plain = std::process::Command::new("bash");
        let plain = plain.args(["-c", RUN]).current_dir(&place).output()?;
        let out = record(&place, &["-q", "--method", method], RUN)?;
        ensure(out == plain, || format!("{out:?}, not {plain:?}"))?;
        let printed = text(&out.stdout);
        ensure(printed.contains("substituted\npiped\n"), || printed)?;
        let texts = ["env", "options", "relative", "shebang", "sourced"].map(|name| {
            let file = FILES.iter().find(|(other, _)| *other == name);
            (name, file.map(|(_, text)| *text))
        });
        is_kept(&place, &texts)?;
        let info = info(&place.join("t.bin"))?;
        let left_out = int(&info, "scripts_left_out");
        ensure(left_out == 1, || format!("{left_out} are left out"))?;
        let lines = text(&tr(&["info"], &place.join("t.bin"))?);
        let line = lines.lines().find(|line| line.starts_with("scripts "));
        let line = line.unwrap_or_default();
        ensure(line.ends_with("5 kept, 1 left out"), || lines.clone())?;
    }
    Ok(())
}

fn changed() -> Result<(), Failed> {
    let place = directory(
        "changed",
        &[("a", "exit 1"), ("b", "exit 1"), ("c", "exit 1")],
    )?;
    // The text of a script is not kept if the script changes between two of its runs. `a` and `b` change, `c` does not.
    let script = "sh a; echo exit 2 > a; sh a; sh b; sleep 1; echo exit 2 > b; sh b; sh c; true";
    record(&place, &["-q"], script)?;
    is_kept(&place, &[("a", None), ("b", None), ("c", Some("exit 1"))])
}

fn secrets() -> Result<(), Failed> {
    let script = "export DEPLOY_TOKEN=hunter2a\n\
                  curl -u me:hunter2b http://localhost:1 2>/dev/null\n\
                  cat > /dev/null <<END\n\
                  machine h login me password hunter2c\n\
                  AWS_SECRET_ACCESS_KEY=hunter2d/K7MDENG/bPxRfiCYzAMPLE\n\
                  END\n\
                  : https://me:hunter2e@host/x\n\
                  exit 3\n";
    let place = directory("secrets", &[("a", script)])?;
    let out = record(&place, &[], "sh ./a")?;
    ensure(text(&out.stderr).contains("secrets masked"), || {
        text(&out.stderr)
    })?;
    let text_of = || -> Result<String, Failed> {
        let text = kept(&place)?.pop().and_then(|(_, text)| text);
        Ok(text.ok_or("no text")?)
    };
    let masked = text_of()?;
    for whole in [
        "export DEPLOY_TOKEN=***\n",
        "\nexit 3\n",
        "/dev/null <<END\n",
    ] {
        ensure(masked.contains(whole), || masked.clone())?;
    }
    ensure(!masked.contains("hunter2"), || masked.clone())?;
    let bytes = fs::read(place.join("t.bin"))?;
    ensure(!text(&bytes).contains("hunter2"), || "in the file".into())?;

    // A recording with all secrets, masked afterwards by `tr redact`, has the same text.
    record(&place, &["--no-redact"], "sh ./a")?;
    ensure(text_of()? == script, || "changed without a mask".into())?;
    let trace = place.join("t.bin");
    let found = text(&tr(&["info", "--secrets"], &trace)?);
    ensure(
        found.contains("     end ") && found.contains(" scripts "),
        || found,
    )?;
    let out = trace.to_str().ok_or("a path in UTF-8")?;
    tr(&["redact", "-o", out], &trace)?;
    let later = text_of()?;
    ensure(later == masked, || later)
}

fn none() -> Result<(), Failed> {
    let place = directory("none", &[("a", "exit 3")])?;
    record(&place, &["-q", "--no-scripts"], "sh ./a")?;
    is_kept(&place, &[])?;
    record(&place, &["-q"], "sh ./a")?;
    is_kept(&place, &[("a", Some("exit 3"))])
}

/// COMMAND runs as another user. Files that only root can read must not be recorded, whether COMMAND names them by
/// their path or by a symbolic link.
fn of_root() -> Result<(), Failed> {
    let place = std::env::temp_dir().join(format!("tr-scripts-{}", std::process::id()));
    fs::create_dir_all(place.join("closed"))?;
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode))
    };
    for name in ["own", "secret", "closed/public"] {
        fs::write(place.join(name), "exit 3")?;
    }
    symlink("secret", place.join("link"))?;
    mode(".", 0o755)?;
    mode("own", 0o644)?;
    mode("secret", 0o600)?;
    mode("closed", 0o700)?;
    let script = "sh own; sh secret; sh link; sh closed/public; sh /etc/shadow; true";
    record(&place, &["-q", "--user", "nobody"], script)?;
    let found = is_kept(&place, &[("own", Some("exit 3"))]);
    fs::remove_dir_all(&place)?;
    found
}

/// Some programs run in a mount namespace or with another root directory. For such a program, the path of a script may
/// name another file than for the recorder. The recorder must not keep the text of the wrong file.
fn mounted() -> Result<(), Failed> {
    let place = directory("mounted", &[("a", "exit 1"), ("b", "exit 2")])?;
    for method in ["bpf", "ptrace"] {
        let script = "unshare -m sh -c 'mount --bind b a && sh a; true'; \
                      unshare -m sh -c 'mount --bind / /mnt && chroot /mnt sh \"$PWD/a\"; true'; sh b; true";
        let out = record(&place, &["-q", "--method", method], script)?;
        ensure(out.stderr.is_empty(), || text(&out.stderr))?;
        is_kept(&place, &[("b", Some("exit 2"))])?;
    }
    Ok(())
}
