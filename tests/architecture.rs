//! Checks that the places in the code that ARCHITECTURE.md and CONTRIBUTING.md name exist, and that the code keeps to
//! the rules in them.
#![allow(clippy::unwrap_used)] // in a test

use std::collections::BTreeSet;
use std::path::Path;

use tr_report::reports::ReportKind;

const TEXT: &str = include_str!("../ARCHITECTURE.md");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The texts between back quotes in a line of Markdown.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// ARCHITECTURE.md describes five walks through the code. Each walk names the file and the function where it ends, and
/// the file has a function of this name.
#[test]
fn the_walks_end_where_the_code_does() {
    // The section about the walks is the last one of the document, so everything after its heading belongs to it.
    let (_, walks) = TEXT.split_once("## Five walks").unwrap();
    let rows: Vec<&str> = walks
        .lines()
        .filter(|line| line.starts_with("| where"))
        .collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let (file, function) = (cells[1].trim(), cells[2].trim());
        let file = std::fs::read_to_string(root().join(file.trim_matches('`'))).unwrap();
        let function = format!("fn {}(", function.trim_matches('`'));
        assert!(file.contains(&function), "{row}");
    }
}

/// ARCHITECTURE.md lists the files that handle an event on its way from the kernel to the reports. All of these files
/// exist. A name without a directory lies in the directory of the file before it.
#[test]
fn the_files_of_the_way_exist() {
    let (_, way) = TEXT.split_once("## The way of one event").unwrap();
    let (way, _) = way.split_once("\n## ").unwrap();
    let mut found = 0;
    for row in way
        .lines()
        .filter(|line| line.contains(".rs`") || line.contains("/`"))
    {
        let mut before = Path::new("");
        for name in quoted(row).filter(|name| name.contains('.') || name.ends_with('/')) {
            let name = name.split(['{', '*']).next().unwrap();
            let beside = before.parent().unwrap_or(before).join(name);
            let direct = root().join(name).exists();
            assert!(direct || root().join(&beside).exists(), "{name} in {row}");
            before = if direct { Path::new(name) } else { before };
            found += 1;
        }
    }
    assert!(found > 25, "{found}");
}

/// The section "One fact, one place" of ARCHITECTURE.md has a table. Each of its rows names one file or directory,
/// which exists, and the file contains the identifiers in the row.
#[test]
fn each_fact_has_one_place() {
    let (_, facts) = TEXT.split_once("## One fact, one place").unwrap();
    let (facts, _) = facts.split_once("\n## ").unwrap();
    let rows = facts.lines().filter(|line| line.starts_with("| "));
    let mut found = 0;
    for row in rows.skip(2) {
        let place = row.trim_end_matches(" |").rsplit("| ").next().unwrap();
        let (files, names): (Vec<&str>, Vec<&str>) =
            quoted(place).partition(|name| name.contains('/'));
        assert_eq!(files.len(), 1, "{row}");
        let path = root().join(files[0]);
        assert!(path.exists(), "{row}");
        for name in names {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            assert!(words.any(|word| word == name), "{row}");
        }
        found += 1;
    }
    assert!(found > 30, "{found}");
}

/// ARCHITECTURE.md stays short. Each decision has a page of its own, and the index names every page.
#[test]
fn each_decision_has_a_page() {
    assert!(TEXT.lines().count() <= 150);
    let folder = root().join("docs/decisions");
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let links = index.lines().filter_map(|line| line.strip_prefix("- ["));
    let mut listed: Vec<(&str, &str)> = links
        .map(|link| link.trim_end_matches(')').split_once("](").unwrap())
        .map(|(title, page)| (page, title))
        .collect();
    listed.sort_unstable();
    let mut pages = Vec::new();
    files(&folder, &mut pages);
    pages.retain(|page| !page.ends_with("README.md"));
    pages.sort_unstable();
    assert_eq!(listed.len(), pages.len());
    assert!(pages.len() > 80, "{}", pages.len());
    for ((page, title), path) in listed.into_iter().zip(pages) {
        assert_eq!(path, folder.join(page));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("# {title}\n")), "{page}");
        for part in ["**Context.**", "**Decision.**", "**Why.**"] {
            assert!(text.contains(part), "{part} in {page}");
        }
        // A name that begins with a directory of the repository must be an existing path.
        for name in quoted(&text).filter(|name| !name.contains([' ', '{'])) {
            let top = name.split_once('/').map_or("", |(top, _)| top);
            if [
                "crates", "src", "docs", "fleet", "scripts", "benches", "tests",
            ]
            .contains(&top)
            {
                assert!(root().join(name).exists(), "{name} in {page}");
            }
        }
    }
}

/// All files below a directory.
fn files(dir: &Path, into: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// The text of the section of CONTRIBUTING.md with this title.
fn section(title: &str) -> &'static str {
    let text = include_str!("../CONTRIBUTING.md");
    let (_, section) = text.split_once(title).unwrap();
    section.split_once("\n## ").unwrap().0
}

/// The names of files in the last columns of a text's tables, sorted.
fn places(text: &str) -> Vec<&str> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit("| ").next());
    let mut places: Vec<&str> = cells.flat_map(quoted).collect();
    places.sort_unstable();
    places
}

/// The product's files, without tests, that contain one of these words.
fn files_with(words: &[&str]) -> Vec<String> {
    let mut all = vec![root().join("fixtures/read.py")];
    all.push(root().join("crates/format/FORMAT.md"));
    files(&root().join("src"), &mut all);
    for krate in std::fs::read_dir(root().join("crates")).unwrap() {
        files(&krate.unwrap().path().join("src"), &mut all);
    }
    let has = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        let mut found = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        found.any(|word| words.contains(&word))
    };
    let tests = |path: &Path| path.iter().any(|part| part == "tests");
    all.retain(|path| !tests(path.strip_prefix(root()).unwrap()) && has(path));
    let path = |path: &std::path::PathBuf| path.strip_prefix(root()).unwrap().display().to_string();
    let mut found: Vec<String> = all.iter().map(path).collect();
    found.sort_unstable();
    found
}

/// CONTRIBUTING.md lists all files of the product in which one kind of events (`Pinned`) occurs. The list has at most
/// ten files, because a kind of events is declared once and the rest of the code is derived from the declaration.
#[test]
fn a_kind_of_events_is_in_few_files() {
    const MOST: usize = 10;
    let found = files_with(&["Pinned", "wire_pinned", "pinned_tid"]);
    assert_eq!(found, places(section("## Add an event kind")));
    assert!(found.len() <= MOST, "{found:?}");
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let format = read("crates/format/FORMAT.md");
    let (_, columns) = format.split_once("```columns\n").unwrap();
    let (columns, _) = columns.split_once("```").unwrap();
    let known = format!("\nCOLUMNS = {}\n", columns.split_whitespace().count());
    assert!(read("fixtures/read.py").contains(&known), "{known}");
}

/// A build tool is a row of one table: no other file of the product contains its name.
#[test]
fn a_build_tool_is_in_one_file() {
    let table = "crates/programs/src/table/";
    assert!(section("## Add a build tool").contains(table.trim_end_matches('/')));
    for tool in [
        "f951",
        "ld64",
        "icecc",
        "buck2",
        "gradlew",
        "bazelisk",
        "processChild",
        "virtualenv",
        "nodejs",
        "jruby",
    ] {
        let found = files_with(&[tool]);
        assert!(
            found.len() == 1 && found[0].starts_with(table),
            "{tool}: {found:?}"
        );
    }
}

/// The names of all programs in the table of known programs.
fn names_of_programs() -> BTreeSet<String> {
    let mut topics = Vec::new();
    files(&root().join("crates/programs/src/table"), &mut topics);
    let mut names = BTreeSet::new();
    for topic in topics {
        let text = std::fs::read_to_string(topic).unwrap();
        for begin in ["names: ", "utilities(", "writers("] {
            let rows = text.split(begin).skip(1);
            let lists =
                rows.filter_map(|row| row.trim_start().strip_prefix('"')?.split('"').next());
            let all = lists.flat_map(str::split_whitespace);
            names.extend(all.filter(|name| *name != "\\").map(str::to_owned));
        }
    }
    names
}

/// Crates that judge what a program does must look the program up in the table of known programs, so the names of
/// programs are not strings in their code. Exceptions are names that are ordinary words, and files about one other tool
/// or one rule of advice.
#[test]
fn names_of_programs_stand_in_the_table() {
    const ORDINARY: &str = "as command comm configure context cut diff free go id install join link make mix node paste script sleep snap \
                            sort stack stat task test time timeout tr tr-trace true type which";
    const ABOUT: [(&str, &str); 8] = [
        ("crates/advice/src/work/inputs.rs", "git"),
        ("crates/advice/src/caches.rs", "ccache sccache"),
        // The string "tar" is the end of an archiver's name here, as in `bsdtar`.
        ("crates/advice/src/depends.rs", "tar"),
        // Here the name of a program says where imported data comes from, for example from pytest's report.
        ("crates/placing/src/junit/schedule/workers.rs", "pytest"),
        ("crates/placing/src/spans.rs", "clang"),
        ("crates/predict/src/shards/lists.rs", "pytest"),
        ("crates/report/src/reports/steps.rs", "pytest"),
        // Here, the string "sudo" names the recording method and not the program.
        ("crates/compare/src/diff/methods.rs", "sudo"),
    ];
    let names = names_of_programs();
    assert!(names.len() > 300, "{}", names.len());
    assert!(names.contains("curl") && names.contains("gradlew") && names.contains("env"));
    let mut all = Vec::new();
    for krate in [
        "analyze", "insight", "failure", "advice", "placing", "report", "compare", "predict",
        "export",
    ] {
        files(&root().join("crates").join(krate).join("src"), &mut all);
    }
    all.retain(|path| {
        !path
            .iter()
            .any(|part| part == "tests" || part == "tests.rs")
    });
    for path in all {
        let file = path.strip_prefix(root()).unwrap().display().to_string();
        let known = ABOUT.iter().find(|(about, _)| *about == file);
        let known = known.map_or("", |(_, names)| names);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().filter_map(|line| line.split("//").next());
        for text in lines.flat_map(|line| line.split('"').skip(1).step_by(2)) {
            let words = || text.split_whitespace();
            let is_list = words().next().is_some() && words().all(|word| names.contains(word));
            let is_known = |word: &str| {
                [ORDINARY, known]
                    .iter()
                    .any(|list| list.split_whitespace().any(|known| known == word))
            };
            assert!(!is_list || words().all(is_known), "{text:?} in {file}");
        }
    }
}

/// Reports return structured pages, and one layout turns them into text. Other code must not take that text apart
/// again, for example to colour words or to count lines.
#[test]
fn nothing_parses_what_it_printed() {
    const SHAPES: [&str; 8] = [
        ".replacen(",
        "\\u{1}",
        ".lines().count()",
        ".replace('≤'",
        "time.split_once(' ')",
        ".paint(Paint::",
        "program.split(",
        "name.split(' ')",
    ];
    let mut all = Vec::new();
    for name in [
        "text", "insight", "failure", "advice", "placing", "report", "predict", "export",
        "compare", "mcp", "record",
    ] {
        files(&root().join("crates").join(name).join("src"), &mut all);
    }
    all.retain(|path| !path.iter().any(|part| part == "tests"));
    assert!(all.len() > 120, "{}", all.len());
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for shape in SHAPES {
            assert!(!code.contains(shape), "{shape} in {}", path.display());
        }
    }
}

/// The recorder and the analysis do not depend on each other. Both have a list of the clients of container daemons
/// (such as `docker`), and the lists must be equal.
#[test]
fn clients_of_daemons_have_the_same_names() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let sorted = |names: &str, by: char| {
        let mut names: Vec<String> = names.split(by).map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    let tools = read("crates/programs/src/table/services.rs");
    let rows = tools.split("names: \"").skip(1);
    let asks = rows.filter(|row| row.contains("asks_daemon: true"));
    let asks: Vec<&str> = asks.filter_map(|row| row.split('"').next()).collect();
    let names = read("crates/bpf/src/names.rs");
    let (_, clients) = names
        .split_once("        ProcessRole::Client,\n        \"")
        .unwrap();
    let (clients, _) = clients.split_once('"').unwrap();
    assert_eq!(sorted(&asks.join(" "), ' '), sorted(clients, ','));
}

/// CONTRIBUTING.md names three files that a new report changes. No other file of the product mentions a report.
#[test]
fn a_report_is_in_three_files() {
    let section = section("## Add a report");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let told: Vec<&str> = rows.filter_map(|line| quoted(line).next()).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    for file in &told {
        let there = file.replace("NAME.rs", "");
        assert!(root().join(there).exists(), "{file}");
    }
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&read(told[2])).unwrap();
    for kind in ReportKind::ALL {
        // The figures of these two reports are in every JSON document, outside of any property of their own. So the
        // schema has no property for them.
        let document = matches!(kind, ReportKind::Top | ReportKind::Audit);
        let value = schema["properties"].get(kind.key());
        assert!(value.is_some() || document, "{}", kind.name());
    }
    // Only the report's own file and the list of reports may name these types. Types that advice, options and
    // comparisons use, too, are not checked.
    for (name, file) in [
        ("AdviceReport", "advice"),
        ("PathReport", "critical_path"),
        ("MaxOffCpu", "max_off_cpu"),
        ("Histogram", "mod"),
        ("StepsReport", "steps"),
        ("ParallelismReport", "parallelism"),
        ("QualityReport", "quality"),
        ("MachineReport", "machine"),
    ] {
        let own = told[0].replace("NAME", file);
        let found = files_with(&[name]);
        let strange = found.iter().find(|file| **file != own && *file != told[1]);
        assert_eq!(strange, None, "{name}");
    }
    // Two modules may be used elsewhere: `ci_tracer`, which is also an output format, and `top::Top`, which is used
    // for the rows of `--by`.
    let known = ["ci_tracer", "top::Top"];
    let mut others = Vec::new();
    for dir in ["src", "crates/report/src"] {
        files(&root().join(dir), &mut others);
    }
    let own = root().join("crates/report/src/reports");
    others.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let test = |file: &Path| file.iter().any(|part| part == "tests");
    for file in others
        .iter()
        .filter(|path| !path.starts_with(&own) && !test(path))
    {
        let code = std::fs::read_to_string(file).unwrap();
        let code = code.split("#[cfg(test)]").next().unwrap();
        for line in code.lines().filter(|line| line.starts_with("use ")) {
            let Some((_, of)) = line.split_once("reports::") else {
                continue;
            };
            let of = of.trim_matches(|c| "{};".contains(c));
            let items = of.split(", ");
            let mut reports = items.filter(|item| item.starts_with(char::is_lowercase));
            let strange = reports.find(|report| !known.contains(report));
            assert_eq!(strange, None, "{}: {line}", file.display());
        }
    }
    assert!(others.len() > 100, "{}", others.len());
}

/// CONTRIBUTING.md names two files that a new subcommand changes. No other file in `src` contains the name of a
/// subcommand as a string, or uses its arguments.
#[test]
fn a_subcommand_is_in_two_files() {
    let section = section("## Add a subcommand");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let told: Vec<&str> = rows.filter_map(|line| quoted(line).next()).collect();
    assert_eq!(told, ["src/cmd/NAME.rs", "src/cmd/mod.rs"]);
    let mut all = Vec::new();
    files(&root().join("src"), &mut all);
    all.retain(|file| !file.iter().any(|part| part == "tests"));
    assert!(all.len() > 50, "{}", all.len());
    // Files that may contain the name of another file's subcommand. The word may also be an option, a key, a command of
    // a shell, or a guess at a mistyped word. The code may run before the table is used, or use a type of another
    // subcommand.
    const ALSO: [(&str, &str); 7] = [
        ("analyze", "src/mistyped.rs"),
        ("export", "src/cmd/record/hints.rs src/version.rs"),
        ("mark", "src/contents.rs src/passthrough.rs"),
        ("pipeline", "src/cmd/export/dataset.rs"),
        ("record", "src/mistyped.rs"),
        ("report", "src/cmd/analyze.rs src/cmd/diff/links.rs"),
        (
            "schema",
            "src/cmd/doctor.rs src/cmd/info.rs src/cmd/secrets.rs",
        ),
    ];
    let table = std::fs::read_to_string(root().join("src/cmd/mod.rs")).unwrap();
    let names = table.split("names: &[\"").skip(1);
    let names: Vec<&str> = names.filter_map(|row| row.split('"').next()).collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let known = [
            format!("\"{name}\""),
            format!("{name}::Args"),
            format!("cmd::{name}::"),
        ];
        let has = |file: &&std::path::PathBuf| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let lines = code.lines().filter(|line| !line.contains("feature = "));
            let mut lines = lines.filter_map(|line| line.split("//").next());
            lines.any(|line| known.iter().any(|word| line.contains(word)))
        };
        let below = format!("src/cmd/{name}/");
        for file in all.iter().filter(has) {
            let file = file.strip_prefix(root()).unwrap().display().to_string();
            let own = told.iter().any(|told| told.replace("NAME", name) == file);
            let mut also = ALSO.iter().filter(|(of, _)| *of == name);
            let is_known = also.any(|(_, files)| files.split(' ').any(|known| known == file));
            assert!(
                own || file.starts_with(&below) || is_known,
                "{name} in {file}"
            );
        }
    }
}

/// Builds and tests that need the path of an absent file use one below the target directory or in `/proc`, where no
/// other program makes files. A file in the root directory may exist: another program once made one by mistake.
#[test]
fn nothing_expects_a_path_at_the_root_to_be_absent() {
    let mut all = vec![root().join("Makefile")];
    for directory in ["tests", "scripts", "src", "ci"] {
        files(&root().join(directory), &mut all);
    }
    for krate in std::fs::read_dir(root().join("crates")).unwrap() {
        let krate = krate.unwrap().path();
        files(&krate.join("src"), &mut all);
        all.push(krate.join("build.rs"));
    }
    assert!(all.len() > 500, "{}", all.len());
    let absent = concat!("/non", "existent");
    for file in all {
        let text = std::fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().filter(|line| line.contains(absent));
        assert_eq!(lines.next(), None, "{}", file.display());
    }
}

/// The settings of cargo nextest and the project's own runner (`scripts/test.py`) have the same list of test programs
/// that need the right to trace. By default, nextest leaves them out; in its profile `record`, each of their tests runs
/// alone.
#[test]
fn both_runners_know_the_tests_that_record() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let runner = read("scripts/test.py");
    let (_, record) = runner.split_once("\nRECORD = {").unwrap();
    let (record, _) = record.split_once('}').unwrap();
    let record: BTreeSet<&str> = record.split('"').skip(1).step_by(2).collect();
    let settings = read(".config/nextest.toml");
    let filters = settings.lines().filter(|line| line.contains("filter = \""));
    let filters: Vec<BTreeSet<&str>> = filters
        .map(|filter| {
            let ids = filter.split("binary_id(").skip(1);
            ids.filter_map(|id| id.split(')').next()?.split("::").nth(1))
                .collect()
        })
        .filter(|names: &BTreeSet<&str>| !names.is_empty())
        .collect();
    assert_eq!(filters, [record.clone(), record]);
}
