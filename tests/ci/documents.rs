//! Tests the documents on CI: the shell lines of docs/other-ci.md run, the documents name all inputs of the action, and
//! versions agree.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::common::{trial, TR};
use crate::runner::{defaults, root, said};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("versions_agree", None, versions_agree),
        trial("every_input_is_documented", None, every_input),
        trial("documents_of_ci_say_tr_trace", None, names_tr_trace),
        trial("the_recipe_for_shells_runs", None, recipe_runs),
        trial("every_reading_command_has_limits", None, limits),
    ]
}

/// The release that the integrations and their documents name is in this repository and has the version of this
/// checkout.
fn versions_agree() -> Result<(), Failed> {
    let version = env!("CARGO_PKG_VERSION");
    let repository = env!("CARGO_PKG_REPOSITORY");
    let action = repository.trim_start_matches("https://github.com/");
    let role = "ci/ansible/roles/tr_record/defaults/main.yml";
    for (file, text) in [
        ("README.md", "uses: YOUR-ORG/tr@main".to_owned()),
        ("docs/ci.md", "uses: YOUR-ORG/tr@main".to_owned()),
        (
            "ci/gitlab/tr.yml",
            format!("\"{repository}/releases/download\""),
        ),
        ("ci/gitlab/tr.yml", format!("TR_VERSION: \"{version}\"")),
        (
            role,
            format!("{repository}/releases/download/v{version}/tr-{version}-"),
        ),
    ] {
        let all = fs::read_to_string(root().join(file))?;
        assert!(all.contains(&text), "{file} lacks {text}");
        let current = all.matches(&format!("uses: {action}@v{version}")).count();
        assert_eq!(all.matches("/tr@v").count(), current, "{file}");
    }
    Ok(())
}

fn every_input() -> Result<(), Failed> {
    let text = fs::read_to_string(root().join("docs/ci.md"))?;
    let (_, table) = text.split_once("| input | default |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    for name in defaults().keys() {
        assert!(table.contains(&format!("`{name}`")), "{name}");
    }
    Ok(())
}

/// Recordings may come from strangers, so the kits pass limits of memory and time to every command that reads a
/// recording.
fn limits() -> Result<(), Failed> {
    let reads = ["report", "summary", "diff", "info"];
    for (file, limits, begins) in [
        (
            "ci/gitlab/tr.yml",
            "$tr_bounds",
            reads.map(|name| format!("\"$TR\" {name} ")),
        ),
        (
            "ci/github/report.mjs",
            "...BOUNDS",
            reads.map(|name| format!("(tr, [\"{name}\",")),
        ),
    ] {
        let text = fs::read_to_string(root().join(file))?;
        assert!(text.contains("--max-memory=") && text.contains("--max-time="));
        let calls = text
            .lines()
            .filter(|line| begins.iter().any(|begin| line.contains(begin)));
        let calls: Vec<&str> = calls.collect();
        assert!(calls.len() > 3, "{file}: {calls:?}");
        for call in calls {
            assert!(call.contains(limits), "{file}: {call}");
        }
    }
    Ok(())
}

/// The subcommands of tr-trace that people write into scripts.
const OURS: [&str; 13] = [
    "record", "analyze", "report", "summary", "diff", "export", "pipeline", "info", "mark",
    "doctor", "predict", "redact", "mcp",
];

/// The lines of a text that call our program by the name `tr`. On a CI machine `tr` is the system's program, so such
/// lines are wrong.
fn calls_of_tr(text: &str) -> Vec<&str> {
    let is_call = |line: &str| {
        let words: Vec<&str> = line
            .split(|c: char| !(c.is_alphanumeric() || "-_./$".contains(c)))
            .collect();
        words
            .windows(2)
            .any(|pair| matches!(pair, ["tr", next] if OURS.contains(next)))
    };
    text.lines().filter(|line| is_call(line)).collect()
}

/// All files below a directory.
fn below(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failed> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            below(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// On a CI machine `tr` is the system's program, so all files that run there or are copied to it must say `tr-trace`.
fn names_tr_trace() -> Result<(), Failed> {
    assert_eq!(
        calls_of_tr("a\n$ tr record -- x\ntr-trace record\ntr a b").len(),
        1
    );
    let mut files = vec![root().join("action.yml")];
    files.extend(["ci", "other-ci", "SKILL"].map(|page| root().join(format!("docs/{page}.md"))));
    for directory in ["ci", "integrations"] {
        below(&root().join(directory), &mut files)?;
    }
    assert!(files.len() > 15, "{files:?}");
    for file in &files {
        // Files that are not UTF-8, such as Python's compiled files, are left out.
        let Ok(text) = fs::read_to_string(file) else {
            continue;
        };
        let wrong = calls_of_tr(&text);
        assert!(wrong.is_empty(), "{}: {wrong:?}", file.display());
    }
    // One line may match, because it is right: the first lines of docs/fleets.md are for the reader's own machine,
    // where `tr` is our program.
    let text = fs::read_to_string(root().join("docs/fleets.md"))?;
    let wrong = calls_of_tr(&text)
        .into_iter()
        .filter(|line| line.starts_with("    - run: ") || line.starts_with("    tr export"));
    assert!(wrong.count() <= 1);
    Ok(())
}

/// The shell lines in docs/other-ci.md for CI systems that have no kit of their own.
pub fn recipe() -> String {
    let text = fs::read_to_string(root().join("docs/other-ci.md")).unwrap();
    let lines = text.lines().skip_while(|line| *line != "    status=0");
    let lines = lines.take_while(|line| line.starts_with("    "));
    lines.map(|line| format!("{}\n", &line[4..])).collect()
}

/// Runs the shell lines for other CI systems with a `make` that fails. In one case our program is installed as
/// `tr-trace`, and `tr` is the system's. In the other case our program is not installed.
fn recipe_runs() -> Result<(), Failed> {
    let script = recipe();
    for (shell, installed) in [("bash", true), ("sh", true), ("bash", false), ("sh", false)] {
        let directory = tempfile::tempdir()?;
        let place = directory.path();
        fs::create_dir(place.join("bin"))?;
        if installed {
            symlink(TR, place.join("bin/tr-trace"))?;
        }
        fs::write(place.join("Makefile"), "test:\n\tsleep 0.1; exit 3\n")?;
        let path = std::env::var("PATH")?;
        let mut run = Command::new(shell);
        run.args(["-eu", "-c", &script]).current_dir(place);
        run.env("PATH", format!("{}/bin:{path}", place.display()));
        let out = run.output()?;
        // 2 is make's own exit status after a failed recipe.
        assert_eq!(out.status.code(), Some(2), "{}", said(&out));
        if installed {
            assert!(fs::read_to_string(place.join("report.html"))?.contains("<html"));
            let summary = fs::read_to_string(place.join("summary.md"))?;
            assert!(summary.contains("make test"), "{summary}");
        }
    }
    Ok(())
}
