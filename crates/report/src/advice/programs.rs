//! Programs by the part that they have in a build, and the words for a change.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The part of a program in a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Links.
    Linker,
    /// Finds out about the machine, before all else.
    Configure,
    /// Fetches and unpacks packages.
    Install,
    /// Translates a source file.
    Compiler,
    /// Starts jobs, and can start several at once.
    Jobs,
    /// Starts tests, and can start several at once.
    Tests,
    /// Starts other programs.
    Shell,
}

/// Programs as [`crate::label::program_of`] names them, without version and target; the option
/// that sets the number of jobs; the words for a change.
const PROGRAMS: &[(Part, &str, &str, &str)] = &[
    (
        Part::Linker,
        "ld|ld.bfd|ld.gold|gold|ld64",
        "",
        "use a faster linker (mold, lld)",
    ),
    (
        Part::Linker,
        "mold|ld.mold|lld|ld.lld",
        "",
        "link less: shared libraries, fewer debug symbols",
    ),
    (
        Part::Configure,
        "configure|config.status|autoreconf|autoconf|automake|meson setup",
        "",
        "keep its results (a cache file, the build directory)",
    ),
    (
        Part::Install,
        "npm ci|npm install|pip download|yarn install|pnpm install|bun install|pip install|uv pip|uv sync\
         |poetry install|apt-get install|apt install|apt-get update|apk add|dnf install\
         |yum install|dpkg|gem install|bundle install|composer install|cargo fetch\
         |cargo install|go mod|conda install|brew install|dotnet restore",
        "",
        "keep the packages in a cache or an image",
    ),
    (
        Part::Compiler,
        "cc1|cc1plus|cc1obj|lto1|clang|clang++|rustc|javac|tsc|f951|gnat1|go compile|ghc|swiftc\
         |kotlinc|scalac|nvcc|cicc|as",
        "",
        "",
    ),
    (Part::Jobs, "make|gmake", "-j --jobs", "give it -j"),
    (Part::Jobs, "ninja|samu", "-j", "let it run more jobs (-j)"),
    (
        Part::Jobs,
        "cargo build|cargo test|cargo check",
        "-j --jobs",
        "let it run more jobs (-j)",
    ),
    (Part::Jobs, "xargs", "-P --max-procs", "give it -P"),
    (
        Part::Jobs,
        "parallel",
        "-j --jobs",
        "let it run more jobs (-j)",
    ),
    (Part::Tests, "ctest", "-j --parallel", "give it -j"),
    (Part::Tests, "prove", "-j --jobs", "give it -j"),
    (Part::Tests, "bats", "-j --jobs", "give it --jobs"),
    (
        Part::Tests,
        "pytest|py.test|pytest worker",
        "-n --numprocesses",
        "run them by pytest-xdist (-n auto)",
    ),
    (
        Part::Tests,
        "go test",
        "-p",
        "let it run more packages at once (-p)",
    ),
    (
        Part::Tests,
        "node --test",
        "--test-concurrency",
        "let it run more files at once (--test-concurrency)",
    ),
    (
        Part::Tests,
        "meson test",
        "--num-processes",
        "let it run more at once",
    ),
    (Part::Tests, "rspec", "", "run them by parallel_tests"),
    (
        Part::Tests,
        "jest|vitest",
        "--maxWorkers",
        "let it use more workers",
    ),
    (
        Part::Shell,
        "sh|bash|dash|zsh|ksh|mksh|ash|busybox",
        "",
        "run them at once (make -j, xargs -P)",
    ),
];

/// The row of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub part: Part,
    options: &'static str,
    /// The words for a change.
    pub action: &'static str,
}

/// The rows by name: a search for every name in every program took most of an analysis.
static KNOWN: LazyLock<HashMap<&str, Known>> = LazyLock::new(|| {
    let rows = PROGRAMS.iter().flat_map(|(part, names, options, action)| {
        let known = Known {
            part: *part,
            options,
            action,
        };
        names.split('|').map(move |name| (name, known))
    });
    rows.collect()
});

/// The row of a program, with a target before its name or a version behind; `None`: it is not known.
pub(super) fn known(program: &str) -> Option<Known> {
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let name = name.strip_suffix('-').unwrap_or(program);
    if let Some(known) = KNOWN.get(name) {
        return Some(*known);
    }
    let (_, system) = name.split_once("linux")?;
    let parts = system.match_indices('-');
    let mut names = parts.filter_map(|(at, _)| system.get(at + 1..));
    names.find_map(|name| KNOWN.get(name)).copied()
}

/// The part of a program.
pub(super) fn part(program: &str) -> Option<Part> {
    known(program).map(|known| known.part)
}

impl Known {
    /// The number of jobs among the arguments; `Some(None)`: the option without a number.
    pub fn jobs(&self, args: &[&[u8]]) -> Option<Option<u64>> {
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let arg = String::from_utf8_lossy(arg);
            for option in self.options.split_whitespace() {
                let Some(value) = arg.strip_prefix(option) else {
                    continue;
                };
                let value = value.strip_prefix('=').unwrap_or(value);
                if value.is_empty() {
                    let next = args.clone().next();
                    let next = next.and_then(|next| std::str::from_utf8(next).ok());
                    return Some(next.and_then(|next| next.parse().ok()));
                }
                if let Ok(jobs) = value.parse() {
                    return Some(Some(jobs));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_parts() {
        for (program, want) in [
            ("ld", Some(Part::Linker)),
            ("x86_64-linux-gnu-ld", Some(Part::Linker)),
            ("x86_64-linux-gnu-ld-2.40", Some(Part::Linker)),
            ("clang-15", Some(Part::Compiler)),
            ("lto1", Some(Part::Compiler)),
            ("apt-get install", Some(Part::Install)),
            ("old", None),
            ("bold", None),
            ("sh", Some(Part::Shell)),
            ("ash-3", Some(Part::Shell)),
            ("go test", Some(Part::Tests)),
        ] {
            assert_eq!(part(program), want, "{program}");
        }
    }

    #[test]
    fn the_number_of_jobs_is_read() {
        let jobs = |program: &str, args: &str| {
            let args: Vec<&[u8]> = args.split(' ').map(str::as_bytes).collect();
            known(program).unwrap().jobs(&args)
        };
        assert_eq!(jobs("make", "make all"), None);
        assert_eq!(jobs("make", "make -j4 all"), Some(Some(4)));
        assert_eq!(jobs("make", "make -j 4 all"), Some(Some(4)));
        assert_eq!(jobs("make", "make --jobs=16"), Some(Some(16)));
        assert_eq!(jobs("make", "make -j"), Some(None));
        assert_eq!(jobs("pytest", "pytest -n auto"), Some(None));
    }
}
