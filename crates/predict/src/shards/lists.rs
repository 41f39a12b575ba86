//! Writes a plan of tests for several machines as the file that a test runner, or a line of shell before it, reads.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde_json::{Map, Value};
use tr_text::{escape, json, named, units};

use super::{Plan, Test};

named! {
    /// The formats in which a plan of tests for several machines can be written.
    pub enum Format {
        Json = "json", "tr.shards/1: the tests of each shard, with their costs";
        PytestSplit = "pytest-split", "a file of durations for pytest-split: the costs, which it splits itself";
        Pytest = "pytest", "lines of a shard's number and a node id";
        Files = "files", "lines of a shard's number and a file: jest, Playwright, vitest, node --test, pytest";
        Go = "go", "lines of a shard's number, -run, a pattern and a package: go test";
    }
}

impl Format {
    /// Whether the format lists files, so that the tests of one file all run on one machine.
    pub fn is_by_file(self) -> bool {
        self == Format::Files
    }

    /// Whether the plan may spread similar tests (of the same function, file or class) evenly over the machines. For
    /// Go it may not: each machine compiles the package of each of its tests, so spreading a package over the machines
    /// costs more than it brings. For files it may not either, because the tests of one file stay together.
    pub fn can_be_alike(self) -> bool {
        !matches!(self, Format::Files | Format::Go)
    }
}

/// The reason why a plan of tests for several machines cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlisted {
    /// The format lists files, but the files of this number of tests are not known.
    NoFile(usize),
    /// There are fewer than two tests to divide, or fewer than two files of tests if the value is true.
    TooFew(bool),
    /// The name of a test contains a control character. The value is the name.
    Control(String),
    /// The name of a test cannot be written in the format. The values are the name and the reason.
    Name(String, &'static str),
    /// The plan cannot be written as JSON. The value is the reason.
    Document(String),
}

impl Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unlisted::NoFile(count) => {
                let tests = units::plural(*count as u64, "test names", "tests name");
                write!(
                    f,
                    "{tests} no file; jest-junit writes it with addFileAttribute=true"
                )
            }
            Unlisted::TooFew(true) => f.write_str("there are no two files of tests"),
            Unlisted::TooFew(false) => {
                f.write_str("there are no two tests: give the runner's report by --with, or marks")
            }
            Unlisted::Control(name) => write!(
                f,
                "{}: a name with a control character fits into no line",
                escape::text(name.as_bytes())
            ),
            Unlisted::Name(name, what) => {
                write!(f, "{}: no {what}", escape::text(name.as_bytes()))
            }
            Unlisted::Document(why) => f.write_str(why),
        }
    }
}

impl Plan {
    /// The text of the plan in its format.
    ///
    /// # Errors
    /// The name of a test or a file cannot be written in the format, or the plan cannot be written as JSON.
    pub fn text(&self) -> Result<String, Unlisted> {
        match self.format {
            Format::Json => document(&self.json()),
            Format::PytestSplit => {
                self.check_nodes()?;
                let tests = self.tests.list.iter();
                let seconds = |test: &Test| Value::from(test.cost.ns as f64 / 1e9);
                let costs = tests.map(|test| (test.id.clone(), seconds(test)));
                document(&Value::Object(costs.collect::<Map<String, Value>>()))
            }
            Format::Pytest => {
                self.check_nodes()?;
                self.lines()
            }
            Format::Files => self.lines(),
            Format::Go => self.go(),
        }
    }

    /// Verifies that the ids of all tests are node ids of pytest: a file, or parts with `::` between them.
    fn check_nodes(&self) -> Result<(), Unlisted> {
        let mut tests = self.tests.list.iter();
        match tests.find(|test| !test.id.contains("::") && !test.id.ends_with(".py")) {
            Some(test) => Err(Unlisted::Name(test.id.clone(), "node id of pytest")),
            None => Ok(()),
        }
    }

    /// The plan as lines, each with the number of a machine and the name of a test or file. The lines are grouped by
    /// machine; within a machine, tests have the order of the report or recording, and files are sorted by name.
    fn lines(&self) -> Result<String, Unlisted> {
        let mut out = String::new();
        for part in 0..self.shards {
            let units = self.units.iter().zip(&self.parts);
            for ((name, _), _) in units.filter(|(_, of)| **of == part) {
                out += &format!("{} {}\n", part + 1, quoted(name)?);
            }
        }
        Ok(out)
    }

    /// The plan for Go: a line for each machine and package, with a pattern for `go test -run` that matches the names
    /// of its tests.
    fn go(&self) -> Result<String, Unlisted> {
        let mut packages: BTreeMap<(u64, &str), Vec<&str>> = BTreeMap::new();
        for (test, part) in self.tests.list.iter().zip(&self.parts) {
            let name = go_name(test)?;
            packages.entry((*part, &test.class)).or_default().push(name);
        }
        let mut out = String::new();
        for ((part, package), names) in packages {
            let pattern = quoted(&format!("^({})$", names.join("|")))?;
            out += &format!("{} -run {pattern} {}\n", part + 1, quoted(package)?);
        }
        Ok(out)
    }
}

fn document(value: &Value) -> Result<String, Unlisted> {
    json::document(value, true).map_err(|error| Unlisted::Document(error.to_string()))
}

/// The name of a Go test as the pattern of `go test -run` needs it; an error if the test does not belong to a Go
/// package.
fn go_name(test: &Test) -> Result<&str, Unlisted> {
    let begins = ["Test", "Example", "Fuzz"]
        .iter()
        .any(|prefix| test.id.starts_with(prefix));
    let is_word = test.id.chars().all(|c| c.is_alphanumeric() || c == '_');
    if begins && is_word && !test.class.is_empty() {
        Ok(&test.id)
    } else {
        Err(Unlisted::Name(test.id.clone(), "test of a package of Go"))
    }
}

/// Quotes a word so that shells and xargs read it as one word.
fn quoted(word: &str) -> Result<String, Unlisted> {
    if word.chars().any(char::is_control) {
        return Err(Unlisted::Control(word.to_owned()));
    }
    Ok(escape::word(word.as_bytes()))
}
