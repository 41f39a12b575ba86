//! Names the build steps that a team's own tools run, by rules from the user's settings file. These
//! rules are tried before the built-in ones.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

use crate::steps::{FoundStep, StepKind, StepName};
use crate::words;
use tr_text::escape;
use tr_text::phrase::Phrase;

/// The largest size in bytes of the compiled regular expression of a user's step rule.
const LARGEST_EXPRESSION: usize = 1 << 20;
/// The number of bytes at the beginning of a command line that are matched with the user's step
/// rules.
const SEEN_BYTES: usize = 4096;
/// The longest name for people, in columns, of a step that a user's rule names. JSON, CSV and other machine formats
/// have the whole name.
const WIDTH: usize = 120;

/// The user's step rules, set once for this process. All analyses in a process use the same rules,
/// because there is one settings file.
static RULES: OnceLock<Vec<OwnRule>> = OnceLock::new();

/// A user's rule: processes whose command lines match its regular expression are build steps with
/// the rule's name.
#[derive(Clone, Debug)]
pub struct OwnRule {
    kind: StepKind,
    /// The name that the user's rule gives to a build step. `$1` in it stands for the first group
    /// of the regular expression.
    name: String,
    pattern: Regex,
}

impl OwnRule {
    /// Reads a user's step rule of the form `NAME=REGEX`.
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
        let compiled = builder
            .size_limit(LARGEST_EXPRESSION)
            .dfa_size_limit(LARGEST_EXPRESSION)
            .build();
        Ok(OwnRule {
            kind,
            name: name.to_owned(),
            pattern: compiled.map_err(|error| in_one_line(&error, pattern))?,
        })
    }

    fn named(&self, text: &str) -> StepName {
        let phrase = Phrase::name(text, WIDTH);
        // The last word of a unit's name may say of what kind the unit is: `zstd-sys (run build script)`.
        if self.kind == StepKind::Unit && text.contains(char::is_whitespace) {
            StepName::whole(phrase)
        } else {
            StepName::of_text(phrase)
        }
    }

    /// The build step that this user's rule recognizes in a command line, if the rule matches. `line` has the arguments
    /// separated by spaces.
    fn step(&self, line: &str) -> Option<FoundStep> {
        let groups = self.pattern.captures(line)?;
        let mut name = String::new();
        groups.expand(&self.name, &mut name);
        let name = escape::raw(name.trim().as_bytes());
        let file = words::file_of_test(&name).map(str::to_owned);
        (!name.is_empty()).then(|| FoundStep {
            file: file.filter(|_| self.kind == StepKind::Test),
            ..FoundStep::new(self.kind, self.named(&name))
        })
    }
}

/// Says in one line why a text is no regular expression. The message of the regex library has several lines, and the
/// last one has the reason.
fn in_one_line(error: &regex::Error, pattern: &str) -> String {
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default();
    let reason = reason.trim_start_matches("error: ");
    format!("{pattern:?} is no regular expression: {reason}")
}

/// Sets the user's step rules of this process, unless they were set before.
pub fn set(rules: Vec<OwnRule>) {
    let _ = RULES.set(rules);
}

/// The build step that the user's rules recognize in a command line. The first rule that matches decides.
pub(crate) fn step(args: &[&[u8]]) -> Option<FoundStep> {
    by(RULES.get()?, args)
}

fn by(rules: &[OwnRule], args: &[&[u8]]) -> Option<FoundStep> {
    if rules.is_empty() {
        return None;
    }
    let mut line = args.join(&b' ');
    line.truncate(SEEN_BYTES);
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
        by(&rules.collect::<Vec<_>>(), &args).map(|found| found.name.phrase.whole().to_owned())
    }

    /// A name made of a long command line is shortened for people alone.
    #[test]
    fn a_long_name_is_whole() {
        let args: Vec<&[u8]> = vec![b"suite"; 40];
        let rule = OwnRule::parse(StepKind::Test, "all of $1=^(.*)$").unwrap();
        let name = by(&[rule], &args).unwrap().name.phrase;
        assert_eq!(name.whole(), format!("all of {}", ["suite"; 40].join(" ")));
        assert_eq!(tr_text::units::width(name.short()), WIDTH);
    }

    #[test]
    fn a_wrong_pattern_is_refused_in_one_line() {
        let error = OwnRule::parse(StepKind::Test, "smoke=([").unwrap_err();
        let want = "\"([\" is no regular expression: unclosed character class";
        assert_eq!(error, want);
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
            // A rule whose name becomes empty names no step.
            ("y", None),
        ] {
            assert_eq!(named(&rules, line).as_deref(), want, "{line}");
        }
        assert_eq!(named(&[], "make"), None);
        // Text after the first `SEEN_BYTES` bytes is not matched. The name of a step has the matched text unchanged,
        // even if it contains control characters.
        let long = format!("x {}end", "a".repeat(SEEN_BYTES));
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
