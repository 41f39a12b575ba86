//! What the README shows is what this version prints.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;

use std::path::Path;
use std::process::Command;

use common::{ensure, Failure, TR};

/// A command of the README's and what it shows below.
struct Example {
    /// The line of the command, from 0.
    at: usize,
    command: String,
    shown: Vec<String>,
}

fn examples(readme: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut open = false;
    for (at, line) in readme.lines().enumerate() {
        let code = line.strip_prefix("    ");
        match code.and_then(|code| code.strip_prefix("$ ")) {
            Some(command) => {
                examples.push(Example {
                    at,
                    command: command.to_owned(),
                    shown: Vec::new(),
                });
                open = true;
            }
            // An empty line may be one of the output's.
            None if open && (code.is_some() || line.is_empty()) => {
                let shown = code.unwrap_or_default().to_owned();
                examples.last_mut().expect("open").shown.push(shown);
            }
            None => open = false,
        }
    }
    for example in &mut examples {
        while example.shown.last().is_some_and(String::is_empty) {
            example.shown.pop();
        }
    }
    examples
}

/// The lines of `shown` stand in `is`, in this order; without gaps but where it
/// says `…`.
fn agrees(shown: &[String], is: &[String]) -> bool {
    let mut rest = is;
    for (number, part) in shown.split(|line| line == "…").enumerate() {
        let fits = |from: usize| rest[from..].starts_with(part);
        let from = match number {
            0 => fits(0).then_some(0),
            _ => (0..=rest.len().saturating_sub(part.len())).find(|from| fits(*from)),
        };
        match from {
            Some(from) => rest = &rest[from + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || shown.last().is_some_and(|line| line == "…")
}

/// Each example that reads a recorded fixture. After a wanted change,
/// `TR_UPDATE=1 cargo test --test readme` writes those without `…` anew.
#[test]
fn examples_are_what_this_version_prints() -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md"))?;
    let mut lines: Vec<String> = readme.lines().map(str::to_owned).collect();
    let examples = examples(&readme);
    let of_fixtures = |example: &&Example| {
        let mut words = example.command.split(' ');
        let traces = root.join("fixtures/traces");
        words.next() == Some("tr") && words.any(|w| w.ends_with(".bin") && traces.join(w).exists())
    };
    let checked: Vec<&Example> = examples.iter().filter(of_fixtures).collect();
    assert!(checked.len() >= 8, "{} examples", checked.len());
    let mut wrong = Vec::new();
    // From the last one on, so that the places of the others stay right.
    for example in checked.into_iter().rev() {
        let out = Command::new("sh")
            .args(["-c", &example.command.replacen("tr", "\"$TR\"", 1)])
            .env("TR", TR)
            .env_remove("COLUMNS")
            .current_dir(root.join("fixtures/traces"))
            .output()?;
        ensure(out.status.code() != Some(2), || {
            format!(
                "{}: {}",
                example.command,
                String::from_utf8_lossy(&out.stderr)
            )
        })?;
        let is: Vec<String> = String::from_utf8(out.stdout)?
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        if agrees(&example.shown, &is) {
            continue;
        }
        wrong.push(format!("line {}: {}", example.at + 1, example.command));
        if !example.shown.iter().any(|line| line == "…") {
            let old = example.at + 1..example.at + 1 + example.shown.len();
            let new = is.iter().map(|line| match line.is_empty() {
                true => String::new(),
                false => format!("    {line}"),
            });
            lines.splice(old, new);
        }
    }
    if std::env::var_os("TR_UPDATE").is_some() {
        std::fs::write(root.join("README.md"), lines.join("\n") + "\n")?;
    }
    ensure(wrong.is_empty(), || wrong.join("\n"))
}
