//! Recognizes programs that only check source files and write none, such as linters, so that
//! several of them can run at once.

use crate::command_line::program_of_args;

/// The names of linters and type checkers, separated by spaces. These programs write no files
/// unless an option of [`WRITE_OPTIONS`] is given.
const LINTERS: &str = "ansible-lint bandit checkstyle clang-tidy codespell cppcheck dockerfilelint eslint flake8 golangci-lint \
    hadolint htmlhint jshint jsonlint luacheck markdownlint mypy phpcs phpstan psalm pycodestyle pydocstyle pyflakes pylint \
    pyright rubocop shellcheck standard staticcheck stylelint tflint vulture xmllint yamllint";

/// The options of linters and type checkers (`--fix`, …) that let them write their findings to a
/// file or change the files that they check.
const WRITE_OPTIONS: [&[u8]; 8] = [
    b"--fix",
    b"--fix-errors",
    b"-fix",
    b"--write",
    b"--autocorrect",
    b"--auto-correct",
    b"-A",
    b"--output-file",
];

/// Programs, such as `black`, that only check files and write none if one of the listed options is
/// given (`--check`).
const CHECK_OPTIONS: [(&str, &[&[u8]]); 12] = [
    ("bash", &[b"-n"]),
    ("black", &[b"--check"]),
    ("gofmt", &[b"-l", b"-d"]),
    ("isort", &[b"--check", b"--check-only", b"-c"]),
    ("node", &[b"--check", b"-c"]),
    ("perl", &[b"-c"]),
    ("php", &[b"-l"]),
    ("prettier", &[b"--check", b"-c", b"--list-different"]),
    ("ruby", &[b"-c", b"-wc"]),
    ("ruff", &[b"check", b"--check"]),
    ("sh", &[b"-n"]),
    ("tsc", &[b"--noEmit"]),
];

/// Whether this command is a known linter or a check of a program's syntax, and changes no file.
pub fn only_checks(args: &[&[u8]]) -> bool {
    let program = program_of_args(args);
    // For `npx eslint`, the linter is the verb. The name of a script of Node.js may have an extension (`eslint.js`),
    // which is removed.
    let name = program.verb().unwrap_or(program.name());
    let name = name.split('.').next();
    let has = |option: &[u8]| args.contains(&option);
    let first = args.first().and_then(|first| {
        let base = first.rsplit(|byte| *byte == b'/').next()?;
        std::str::from_utf8(base).ok()
    });
    let looks = |name: &str| {
        let options = CHECK_OPTIONS.iter().filter(|(program, _)| *program == name);
        options
            .flat_map(|(_, options)| options.iter())
            .any(|option| has(option))
    };
    let is_linter =
        name.is_some_and(|name| LINTERS.split_whitespace().any(|linter| linter == name));
    let looks = first.is_some_and(looks) || name.is_some_and(looks);
    (is_linter || looks) && !WRITE_OPTIONS.iter().any(|option| has(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linters_and_checks_of_a_syntax_change_nothing() {
        for (line, want) in [
            ("/usr/bin/shellcheck a.sh", true),
            ("/usr/bin/python3 /usr/bin/flake8 src", true),
            ("python3 -m mypy src", true),
            ("node /w/node_modules/.bin/eslint src", true),
            ("node /w/node_modules/eslint/bin/eslint.js .", true),
            ("eslint --fix src", false),
            ("php -l a.php", true),
            ("php a.php", false),
            ("perl -c a.pl", true),
            ("perl a.pl", false),
            ("node --check a.js", true),
            ("node a.js", false),
            ("prettier --check .", true),
            ("prettier --write .", false),
            ("tsc --noEmit", true),
            ("tsc", false),
            ("ruff check .", true),
            ("ruff format .", false),
            ("make lint", false),
        ] {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert_eq!(only_checks(&args), want, "{line}");
        }
    }
}
