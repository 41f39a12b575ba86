//! The table of the programs that `tr` knows. A row has everything that is known of one program:
//! how labels, build steps, forecasts, advice, causes of failures, versions and imports treat it.
//!
//! A new program is a row in the file with its topic. A function that recognizes its build steps
//! stands beside the row.

mod builders;
mod compilers;
mod documents;
mod files;
mod languages;
mod packages;
mod services;
mod tests;
pub mod utilities;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::tools::KnownProgram;

pub(crate) fn rows() -> impl Iterator<Item = &'static KnownProgram> {
    let topics: [&'static [KnownProgram]; 8] = [
        compilers::ROWS,
        builders::ROWS,
        tests::ROWS,
        packages::ROWS,
        services::ROWS,
        languages::ROWS,
        documents::ROWS,
        files::ROWS,
    ];
    topics.into_iter().flatten()
}

/// The row for the program with exactly this name in the table of known programs.
pub(crate) fn exact(name: &str) -> Option<&'static KnownProgram> {
    // The map makes the search fast: the row of every execution is looked up, and there may be a million executions.
    static KNOWN: LazyLock<HashMap<&str, &KnownProgram>> = LazyLock::new(|| {
        let named =
            |tool: &'static KnownProgram| tool.names.split(' ').map(move |name| (name, tool));
        rows().flat_map(named).collect()
    });
    KNOWN.get(name).copied()
}

/// The row for the program with this name in the table of known programs. If no row has exactly this name, a version
/// and a target in the name are ignored: `x86_64-linux-gnu-gcc-12` is found as `gcc`.
pub fn by_name(name: &str) -> Option<&'static KnownProgram> {
    if let Some(found) = exact(name) {
        return Some(found);
    }
    let plain = name
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
        .trim_end_matches('-');
    // A cross compiler's name starts with the target.
    let short = || {
        let parts = plain.bytes().filter(|byte| *byte == b'-').count();
        plain.rsplit('-').next().filter(|_| parts >= 2)
    };
    let versioned = (plain.len() < name.len()).then_some(plain);
    versioned.and_then(exact).or_else(|| exact(short()?))
}

/// The row, in the table of known programs, of the program whose file has this path.
pub fn by_path(path: &[u8]) -> Option<&'static KnownProgram> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    by_name(std::str::from_utf8(name).ok()?)
}

#[cfg(test)]
mod lookups {
    use super::*;
    use crate::tools::Role;

    #[test]
    fn each_name_has_one_row() {
        let names = rows().flat_map(|tool| tool.names.split(' '));
        let mut names: Vec<&str> = names.collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn programs_are_found_with_a_target_and_a_version() {
        let role = |name: &str| by_name(name).and_then(|tool| tool.role(None));
        for (name, want) in [
            ("ld", Some(Role::Linker)),
            ("x86_64-linux-gnu-ld", Some(Role::Linker)),
            ("x86_64-linux-gnu-ld-2.40", Some(Role::Linker)),
            ("ld.mold", Some(Role::Linker)),
            ("wild", Some(Role::Linker)),
            ("clang-15", Some(Role::Compiler)),
            ("lto1", Some(Role::Compiler)),
            ("x86_64-linux-gnu-gcc-12", None),
            ("old", None),
            ("bold", None),
            ("sh", Some(Role::Shell)),
            ("ash-3", Some(Role::Shell)),
            ("go", None),
        ] {
            assert_eq!(role(name), want, "{name}");
        }
        let handles = |name: &str| by_name(name).is_some_and(|tool| tool.handles_files);
        assert!(handles("rm") && handles("gmkdir") && !handles("cc1"));
        let converges = |name: &str| by_name(name).is_some_and(|tool| tool.converges);
        assert!(converges("pdflatex") && converges("lualatex") && !converges("make"));
        let name = |name: &str| by_name(name).map(KnownProgram::name);
        assert_eq!(name("gmake"), Some("make"));
        assert_eq!(name("n2"), Some("n2"));
        assert_eq!(name("x86_64-linux-gnu-gcc-12"), Some("gcc"));
    }

    #[test]
    fn a_verb_decides_the_role() {
        let role = |name, verb| by_name(name).and_then(|tool| tool.role(Some(verb)));
        assert_eq!(role("go", "test"), Some(Role::Tests));
        assert_eq!(role("go", "build"), None);
        assert_eq!(role("apt-get", "install"), Some(Role::Packages));
        assert_eq!(role("pytest", "worker"), Some(Role::Tests));
        assert_eq!(role("perl", "Test::Harness"), Some(Role::Tests));
        assert!(by_name("test_harness").is_none()); // a common name of programs in C
    }
}
