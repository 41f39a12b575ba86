//! Runs the examples of README.md and docs/ at the root of the repository: each must print the output that its page
//! shows.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{ensure, Failure, TR};
use tr_report::reports::ReportKind;

/// A command and its output in a page.
struct Example {
    /// The number of the command's line, counted from 0.
    at: usize,
    /// The blanks before the lines of the example: four, or more inside of a list.
    indent: String,
    command: String,
    shown: Vec<String>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut open = false;
    for (at, line) in page.lines().enumerate() {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        if let Some(command) = text.strip_prefix("$ ").filter(|_| indent.len() >= 4) {
            examples.push(Example {
                at,
                indent: indent.to_owned(),
                command: command.to_owned(),
                shown: Vec::new(),
            });
            open = true;
            continue;
        }
        let Some(example) = examples.last_mut().filter(|_| open) else {
            continue;
        };
        let code = line.strip_prefix(example.indent.as_str());
        // An empty line may be a part of the output.
        open = code.is_some() || line.is_empty();
        if open {
            example.shown.push(code.unwrap_or_default().to_owned());
        }
    }
    for example in &mut examples {
        while example.shown.last().is_some_and(String::is_empty) {
            example.shown.pop();
        }
    }
    examples
}

/// The paths of README.md, SECURITY.md, CONTRIBUTING.md and the pages of docs/ and docs/tasks/.
fn pages() -> Result<Vec<PathBuf>, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let at_the_top = ["README.md", "SECURITY.md", "CONTRIBUTING.md"];
    let mut pages = at_the_top.map(|name| root.join(name)).to_vec();
    for folder in ["docs", "docs/tasks"] {
        for entry in std::fs::read_dir(root.join(folder))? {
            let page = entry?.path();
            pages.extend(Some(page).filter(|page| page.extension().is_some_and(|e| e == "md")));
        }
    }
    pages.sort();
    assert!(pages.len() >= 5, "{pages:?}");
    Ok(pages)
}

/// The output of a command that runs at the root of the repository, without blanks at the ends of lines.
fn output(command: &str) -> Result<Vec<String>, Failure> {
    let out = Command::new("sh")
        .args(["-c", &command.replacen("tr", "\"$TR\"", 1)])
        .env("TR", TR)
        .env_remove("COLUMNS")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    ensure(out.status.success(), || {
        format!("{command}: {}", String::from_utf8_lossy(&out.stderr))
    })?;
    let text = String::from_utf8(out.stdout)?;
    Ok(text
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect())
}

/// Every example reads a recorded fixture and prints what the page shows. After an intended change, `TR_UPDATE=1 cargo
/// test --test readme` rewrites the outputs.
#[test]
fn examples_print_the_shown_output() -> Result<(), Failure> {
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in pages()? {
        let text = std::fs::read_to_string(&page)?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // The examples are taken from the last one to the first, because a rewritten output changes the line numbers of
        // all later examples.
        for example in examples(&text).into_iter().rev() {
            ensure(example.command.contains(" fixtures/"), || {
                format!("{}: a reader cannot run it here", example.command)
            })?;
            checked += 1;
            let is = output(&example.command)?;
            if example.shown == is {
                continue;
            }
            let (name, at) = (page.display(), example.at + 1);
            wrong.push(format!("{name}:{at}: {}", example.command));
            let new = is
                .iter()
                .map(|line| format!("{}{line}", example.indent).trim_end().to_owned());
            lines.splice(at..at + example.shown.len(), new);
        }
        if std::env::var_os("TR_UPDATE").is_some() {
            std::fs::write(&page, lines.join("\n") + "\n")?;
        }
    }
    assert!(checked >= 10, "{checked} examples");
    ensure(wrong.is_empty(), || wrong.join("\n"))
}

/// Each link leads to a file and a heading that exist.
#[test]
fn links_lead_somewhere() -> Result<(), Failure> {
    let anchor = |heading: &str| -> String {
        let kept = |c: char| c.is_alphanumeric() || c == ' ' || c == '-';
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        heading
            .chars()
            .filter(|c| kept(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    let mut links = 0;
    for page in pages()? {
        let text = std::fs::read_to_string(&page)?;
        let by_parentheses = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        let by_attribute = text
            .split(" src")
            .skip(1)
            .filter_map(|rest| rest.split('"').nth(1));
        for link in by_parentheses
            .chain(by_attribute)
            .filter(|link| !link.contains("://"))
        {
            links += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.with_file_name(file),
            };
            ensure(target.exists(), || format!("{}: {link}", page.display()))?;
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target)?;
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                ensure(headings.any(|line| anchor(line) == heading), || {
                    format!("{}: {link}", page.display())
                })?;
            }
        }
    }
    assert!(links >= 15, "{links} links");
    Ok(())
}

/// The heading of the section of docs/reports.md that shows a report, by an example or in its first words.
fn section_of(page: &str, report: &str) -> Option<String> {
    let option = format!("--report {report}");
    let names = |line: &str| {
        let rest = line
            .split_once(&option)
            .map(|(_, rest)| rest.chars().next());
        rest.is_some_and(|next| next.is_none_or(|c| c != '-' && !c.is_alphanumeric()))
    };
    let top = report == "top";
    let example = |line: &str| {
        line.starts_with("    $ tr analyze") && (names(line) || top && !line.contains("--report"))
    };
    let words = |line: &str| line.trim_start_matches("- ").starts_with("`--report") && names(line);
    let lines: Vec<&str> = page.lines().collect();
    let shows = lines.iter().position(|line| example(line));
    let shows = shows.or_else(|| lines.iter().position(|line| words(line)))?;
    let headings = lines.iter().take(shows).rev();
    headings
        .filter(|line| line.starts_with("##"))
        .map(|line| line.trim_start_matches('#').trim().to_owned())
        .next()
}

/// The row of a report in the table of docs/reports.md. The row has the report's name, what the report shows, and what
/// a recording needs for the report. The name is a link if the page has a section about the report.
fn reference(page: &str, kind: ReportKind) -> String {
    let name = match section_of(page, kind.name()) {
        Some(title) => format!(
            "[{}](#{})",
            kind.name(),
            title.to_lowercase().replace(' ', "-")
        ),
        None => kind.name().to_owned(),
    };
    let needs = match kind.option() {
        Some(option) => format!("`{option}`"),
        None if kind.needs_events() => "bpf, sudo".to_owned(),
        None => String::new(),
    };
    format!("| {name} | {} | {needs} |", kind.title())
}

/// The table at the top of docs/reports.md is generated from the declarations of the reports, by topic. After a new row
/// of `ReportKind`, `TR_UPDATE=1 cargo test --test readme` writes the table.
#[test]
fn the_reference_has_every_report() -> Result<(), Failure> {
    const HEAD: &str = "| `--report` | shows | needs |\n| --- | --- | --- |\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reports.md");
    let page = std::fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(HEAD).expect("a table");
    let (_, after) = rest.split_once("\n\n").expect("text after the table");
    let rows: Vec<String> = ReportKind::by_topic()
        .map(|kind| reference(&page, kind))
        .collect();
    let is = format!("{before}{HEAD}{}\n\n{after}", rows.join("\n"));
    if std::env::var_os("TR_UPDATE").is_some() {
        std::fs::write(&path, is)?;
        return Ok(());
    }
    ensure(is == page, || {
        "docs/reports.md has another table; `TR_UPDATE=1 cargo test --test readme` writes it"
            .to_owned()
    })
}

/// The table of contents has exactly one line for each page.
#[test]
fn the_contents_have_every_page() -> Result<(), Failure> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let contents = std::fs::read_to_string(docs.join("README.md"))?;
    for page in pages()?.iter().filter(|page| page.starts_with(&docs)) {
        let name = page.strip_prefix(&docs)?.display().to_string();
        let link = format!("]({name})");
        let lines = contents.lines().filter(|line| line.contains(&link));
        let lines = lines.count();
        ensure(name == "README.md" || lines == 1, || {
            format!("{name}: {lines} lines")
        })?;
    }
    Ok(())
}

#[test]
fn the_readme_is_short() -> Result<(), Failure> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"))?;
    let lines = text.lines().count();
    ensure(lines <= 130, || {
        format!("{lines} lines; details belong into docs/")
    })
}

/// The pages of docs/ together have a limit of words: if one grows, another one is shortened. README has its own limit,
/// and SKILL.md is for agents.
#[test]
fn the_book_stays_short() -> Result<(), Failure> {
    let outside = [
        "README.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "docs/SKILL.md",
    ]
    .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
    let mut words = 0;
    for page in pages()?.iter().filter(|page| !outside.contains(page)) {
        words += std::fs::read_to_string(page)?.split_whitespace().count();
    }
    ensure((20_000..28_000).contains(&words), || {
        format!("{words} words")
    })
}

/// Words that must not be used because docs/glossary.md has another term for the fact. Each entry has the word and that
/// term.
const FOREIGN: [(&str, &str); 15] = [
    ("wait cpu", "run queue"),
    ("starved", "run queue"),
    ("waiting for a cpu", "run-queue wait"),
    ("waited for a cpu", "run-queue wait"),
    ("waits for a cpu", "run-queue wait"),
    ("wait for a cpu", "run-queue wait"),
    ("woken, waiting", "run queue"),
    ("runqueue", "run queue"),
    ("run-queue latency", "run-queue wait"),
    ("task waited for", "some tasks stalled on"),
    ("asleep or blocked", "sleep or blocked"),
    (" · asleep", "sleep"),
    ("cpus busy", "CPUs utilized"),
    ("behind the end", "after the end"),
    ("everything behind", "everything after"),
];

/// The words of [`FOREIGN`] that a text contains.
fn foreign(text: &str) -> Vec<String> {
    // `tr.starved_s` is the name of a property in JUnit XML, so it is allowed.
    let text = text.to_lowercase().replace("tr.starved_s", "");
    let words = FOREIGN.iter().filter(|(word, _)| text.contains(word));
    words
        .map(|(word, term)| format!("{word:?} is {term:?}"))
        .collect()
}

/// Collects the texts of a JSON document without its keys. If the document is a schema, only the descriptions are
/// collected.
fn values(value: &serde_json::Value, schema: bool, texts: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if !schema => texts.push(text.clone()),
        serde_json::Value::Array(all) => all.iter().for_each(|value| values(value, schema, texts)),
        serde_json::Value::Object(all) => {
            for (key, value) in all {
                values(value, schema && key != "description", texts);
            }
        }
        _ => {}
    }
}

/// No report of two recordings, no schema, no help and no page of the documents may use a word if the glossary has
/// another term for the fact.
#[test]
fn each_fact_has_one_term() -> Result<(), Failure> {
    assert_eq!(foreign("1 s Starved").len(), 1);
    let mut texts = Vec::new();
    let mut run = |command: String| -> Result<(), Failure> {
        texts.push((command.clone(), output(&command)?.join("\n")));
        Ok(())
    };
    for file in ["traces/demo.bin", "traces/linux-6.12-all.bin"] {
        run(format!("tr analyze fixtures/{file} --report all"))?;
        run(format!(
            "tr analyze fixtures/{file} --by program --width 160"
        ))?;
        run(format!("tr summary fixtures/{file}"))?;
    }
    let two = "fixtures/traces/build.bin fixtures/traces/demo.bin";
    for format in ["text", "markdown"] {
        run(format!("tr diff {two} --format {format}"))?;
    }
    run("tr --help".to_owned())?;
    let help = texts.last().map(|(_, text)| text.clone());
    let help = help.unwrap_or_default();
    let commands = help.lines().take_while(|line| *line != "Options:");
    let commands = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut helped = 0;
    for command in commands.filter(|command| !command.is_empty() && *command != "help") {
        let said = output(&format!("tr {command} --help"))?;
        texts.push((format!("{command} --help"), said.join("\n")));
        helped += 1;
    }
    assert!(helped >= 10, "{help}");
    for page in pages()? {
        // The page on datasets of many runs may use the word `starved`, because a sum in these datasets has this name.
        let text = std::fs::read_to_string(&page)?;
        let text = if page.ends_with("docs/fleets.md") {
            text.to_lowercase().replace("starved", "")
        } else {
            text
        };
        texts.push((page.display().to_string(), text));
    }
    let documents = [
        "tr schema analyze",
        "tr schema diff",
        "tr schema predict",
        "tr schema summary",
        "tr analyze fixtures/traces/demo.bin --report all --format json",
    ];
    for command in documents {
        let document = serde_json::from_str(&output(command)?.join("\n"))?;
        let mut said = Vec::new();
        values(&document, command.starts_with("tr schema"), &mut said);
        // The JSON document has steps named `starved: …`, which are allowed.
        texts.push((command.into(), said.join("\n").replace("starved: ", "")));
    }
    let web = "crates/report/web/dist/report.js";
    let web = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(web))?;
    texts.push(("the page".into(), web));
    let found: Vec<String> = texts
        .iter()
        .filter_map(|(name, text)| match foreign(text) {
            words if words.is_empty() => None,
            words => Some(format!("{name}: {}", words.join(", "))),
        })
        .collect();
    ensure(found.is_empty(), || found.join("\n"))
}
