//! The words for a change to a program, by its family.

use tr_analyze::model::Analysis;
use tr_analyze::tools::{self, Family, Role};

use crate::label;

/// Families; the options that set the number of jobs; the words for a change. Other families of
/// a role have [`of_role`]'s.
const WORDS: &[(&[Family], &str, &str)] = &[
    (&[Family::Linker], "", "use a faster linker (mold, lld)"),
    (
        &[Family::FastLinker],
        "",
        "link less: shared libraries, fewer debug symbols",
    ),
    (&[Family::Make], "-j --jobs", "give it -j"),
    (&[Family::Ninja], "-j", "let it run more jobs (-j)"),
    (
        &[Family::Cargo, Family::Parallel],
        "-j --jobs",
        "let it run more jobs (-j)",
    ),
    (&[Family::Xargs], "-P --max-procs", "give it -P"),
    (&[Family::Ctest], "-j --parallel", "give it -j"),
    (&[Family::Prove], "-j --jobs", "give it -j"),
    (&[Family::Harness], "-j", "set HARNESS_OPTIONS=j"),
    (
        &[Family::Bats, Family::BatsFile],
        "-j --jobs",
        "give it --jobs",
    ),
    (
        &[Family::Pytest],
        "-n --numprocesses",
        "run them by pytest-xdist (-n auto)",
    ),
    (&[Family::Go], "-p", "let it run more packages at once (-p)"),
    (
        &[Family::Node],
        "--test-concurrency",
        "let it run more files at once (--test-concurrency)",
    ),
    (
        &[Family::Meson],
        "--num-processes",
        "let it run more at once",
    ),
    (&[Family::Rspec], "", "run them by parallel_tests"),
    (&[Family::Jest], "--maxWorkers", "let it use more workers"),
];

/// The words for a change that a role has.
pub(super) fn of_role(role: Role) -> &'static str {
    match role {
        Role::Configure => "keep its results (a cache file, the build directory)",
        Role::Packages => "keep the packages in a cache or an image",
        Role::Shell => "run them at once (make -j, xargs -P)",
        Role::Compiler | Role::Linker | Role::Jobs | Role::Tests => "",
    }
}

/// What is known of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub role: Role,
    pub family: Family,
    options: &'static str,
    /// The words for a change.
    pub action: &'static str,
}

/// The outermost program with a number of jobs among its arguments, and that number, in words; of
/// several the first.
pub(crate) fn jobs_told(analysis: &Analysis) -> Option<String> {
    // Parents come before their children.
    let execs = analysis.processes.iter().flat_map(|it| &it.execs);
    let mut told = execs.filter_map(|exec| {
        let program = label::program_of(&exec.argv, &exec.comm);
        let args: Vec<&[u8]> = exec.argv.args().collect();
        let jobs = known(&program)?.jobs(&args)?;
        let jobs = jobs.map_or("any number of jobs".into(), |jobs| format!("{jobs} jobs"));
        Some(format!("{program}: {jobs}"))
    });
    told.next()
}

/// What is known of a program as [`crate::label::program_of`] names it, with its verb.
pub(crate) fn known(program: &str) -> Option<Known> {
    let (name, verb) = match program.split_once(' ') {
        Some((name, verb)) => (name, Some(verb)),
        None => (program, None),
    };
    let tool = tools::by_name(name)?;
    let role = tool.role(verb)?;
    let has = |(families, ..): &&(&[Family], _, _)| families.contains(&tool.family);
    let words = WORDS
        .iter()
        .find(has)
        .filter(|_| !matches!(role, Role::Configure | Role::Packages));
    let (options, action) = match words {
        Some((_, options, action)) => (*options, *action),
        None => ("", of_role(role)),
    };
    Some(Known {
        role,
        family: tool.family,
        options,
        action,
    })
}

/// The role of a program.
pub(crate) fn role(program: &str) -> Option<Role> {
    known(program).map(|known| known.role)
}

impl Known {
    /// It has an option for the number of jobs.
    pub fn takes_jobs(&self) -> bool {
        !self.options.is_empty()
    }

    /// The number of jobs among the arguments; `Some(None)`: the option without a number.
    pub fn jobs(&self, args: &[&[u8]]) -> Option<Option<u64>> {
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let arg = String::from_utf8_lossy(arg);
            for option in self.options.split_whitespace() {
                let Some(value) = self.value(&arg, option) else {
                    continue;
                };
                // 0: as many as there are.
                let number = |it: &str| it.parse().ok().filter(|jobs| *jobs > 0);
                if value.is_empty() {
                    let next = args.clone().next();
                    let next = next.and_then(|next| std::str::from_utf8(next).ok());
                    return Some(next.and_then(number));
                }
                if value.bytes().all(|it| it.is_ascii_digit()) {
                    return Some(number(value));
                }
            }
        }
        None
    }

    /// What follows the option in an argument. Short options without a value may stand before it: `-kj4`.
    fn value<'a>(&self, arg: &'a str, option: &str) -> Option<&'a str> {
        let flags = match self.family {
            Family::Make => "bBdehiklLmnpqrRsStvw",
            Family::Xargs => "0oprtx",
            _ => "",
        };
        let value = match arg.strip_prefix(option) {
            Some(value) => value,
            None => {
                let letter = option.strip_prefix('-').filter(|it| it.len() == 1)?;
                let (before, value) = arg.strip_prefix('-')?.split_once(letter)?;
                before
                    .chars()
                    .all(|it| flags.contains(it))
                    .then_some(value)?
            }
        };
        Some(value.strip_prefix('=').unwrap_or(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_words() {
        for (program, want) in [
            ("ld", "use a faster linker (mold, lld)"),
            ("wild", "link less: shared libraries, fewer debug symbols"),
            (
                "meson setup",
                "keep its results (a cache file, the build directory)",
            ),
            ("cargo fetch", "keep the packages in a cache or an image"),
            ("cargo build", "let it run more jobs (-j)"),
            ("samu", "let it run more jobs (-j)"),
            ("ash-3", "run them at once (make -j, xargs -P)"),
            ("cc1", ""),
        ] {
            assert_eq!(known(program).map(|it| it.action), Some(want), "{program}");
        }
        assert!(known("cargo metadata").is_none());
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
        assert_eq!(jobs("make", "make -skj4"), Some(Some(4)));
        assert_eq!(jobs("make", "make -kj 4"), Some(Some(4)));
        assert_eq!(jobs("make", "make -C project -f jam.mk"), None);
        assert_eq!(jobs("make", "make --jam -fj4"), None);
        assert_eq!(jobs("xargs", "xargs -0P8 -n1"), Some(Some(8)));
        assert_eq!(jobs("xargs", "xargs -P0 -n1"), Some(None));
        assert_eq!(jobs("ninja", "ninja -j0"), Some(None));
        assert_eq!(jobs("pytest", "pytest -n auto"), Some(None));
    }
}
