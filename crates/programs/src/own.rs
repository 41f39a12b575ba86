//! Names steps of a team's own tools by rules from a file of settings. These rules are tried before those of the table.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use crate::steps::{found, Found, StepKind};
use tr_text::{escape, units};

/// The size in bytes of the largest compiled pattern of a rule.
const LARGEST: usize = 1 << 20;
/// The length in bytes of the part of a command line that is matched with a pattern.
const SEEN: usize = 4096;
/// The longest name of a step in columns.
const WIDTH: usize = 120;

/// The rules of this process. All analyses in a process have the same rules, because they have one file of settings.
static RULES: OnceLock<Vec<OwnRule>> = OnceLock::new();

/// A rule that names the executions whose command lines a pattern matches.
#[derive(Clone, Debug)]
pub struct OwnRule {
    kind: StepKind,
    /// The name of the step. `$1` stands for the pattern's first group.
    name: String,
    pattern: Regex,
}

impl OwnRule {
    /// Reads a rule: `NAME=REGEX`.
    ///
    /// # Errors
    /// The reason why the text is no rule.
    pub fn parse(kind: StepKind, text: &str) -> Result<OwnRule, String> {
        const HOW: &str = "write NAME=REGEX, e.g. \"smoke $1=^python3? smoke/run\\\\.py (\\\\w+)\"";
        let (name, pattern) = text
            .split_once('=')
            .ok_or_else(|| format!("no = in {text:?}: {HOW}"))?;
        if name.is_empty() || pattern.is_empty() {
            return Err(format!("the name or the pattern is empty: {HOW}"));
        }
        let mut builder = RegexBuilder::new(pattern);
        let pattern = builder.size_limit(LARGEST).dfa_size_limit(LARGEST).build();
        Ok(OwnRule {
            kind,
            name: name.to_owned(),
            pattern: pattern.map_err(|error| error.to_string())?,
        })
    }

    /// The step that a command line is by this rule. Spaces separate the arguments of the command line.
    fn step(&self, line: &str) -> Option<Found> {
        let groups = self.pattern.captures(line)?;
        let mut name = String::new();
        groups.expand(&self.name, &mut name);
        let name = escape::raw(name.trim().as_bytes());
        (!name.is_empty()).then(|| found(self.kind, units::shorten(&name, WIDTH)))?
    }
}

/// Makes these the rules of the process, unless it has others.
pub fn set(rules: Vec<OwnRule>) {
    let _ = RULES.set(rules);
}

/// The step that a command line is by the rules of the process. The first rule that matches counts.
pub(crate) fn step(args: &[&[u8]]) -> Option<Found> {
    by(RULES.get()?, args)
}

fn by(rules: &[OwnRule], args: &[&[u8]]) -> Option<Found> {
    if rules.is_empty() {
        return None;
    }
    let mut line = args.join(&b' ');
    line.truncate(SEEN);
    let line = String::from_utf8_lossy(&line);
    rules.iter().find_map(|rule| rule.step(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(rules: &[&str], line: &str) -> Option<String> {
        let rules = rules
            .iter()
            .map(|rule| OwnRule::parse(StepKind::Test, rule).unwrap());
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        by(&rules.collect::<Vec<_>>(), &args).map(|found| found.name)
    }

    #[test]
    fn a_pattern_over_the_command_line_names_a_step() {
        let rules = [
            r"smoke $1=^python3? smoke/run\.py (\w+)",
            "smoke=smoke",
            "$1=^(x?)y",
        ];
        for (line, want) in [
            ("python3 smoke/run.py login --slow", Some("smoke login")),
            ("python smoke/run.py", Some("smoke")),
            ("make -C smoke", Some("smoke")),
            ("make", None),
            // A name that is empty names nothing.
            ("y", None),
        ] {
            assert_eq!(named(&rules, line).as_deref(), want, "{line}");
        }
        assert_eq!(named(&[], "make"), None);
        // Nothing behind the limit is seen, and a name is one line.
        let long = format!("x {}end", "a".repeat(SEEN));
        assert_eq!(named(&["x=end"], &long), None);
        assert_eq!(
            named(&["$1=(?s)^x (.*)"], "x a\x1b[1m").as_deref(),
            Some("a\x1b[1m")
        );
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["smoke", "=x", "x=", "x=(", "x=((a{1000}){1000}){1000}"] {
            assert!(OwnRule::parse(StepKind::Target, text).is_err(), "{text}");
        }
    }
}
