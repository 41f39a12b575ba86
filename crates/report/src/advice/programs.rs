//! The words for a change to a program, by its family.

use tr_analyze::job_tools::{self, JobTool};
use tr_analyze::model::Analysis;
use tr_analyze::tools::{self, Family, Role};

use crate::label;

/// The words for a change by family. Other families of a role have [`of_role`]'s.
#[rustfmt::skip]
const WORDS: &[(Family, &str)] = &[
    (Family::Linker, "use a faster linker (mold, lld)"),
    (Family::FastLinker, "link less: shared libraries, fewer debug symbols"),
    (Family::Make, "give it -j"),
    (Family::Ninja, "let it run more jobs (-j)"),
    (Family::Cargo, "let it run more jobs (-j)"),
    (Family::Parallel, "let it run more jobs (-j)"),
    (Family::Xargs, "give it -P"),
    (Family::Ctest, "give it -j"),
    (Family::Prove, "give it -j"),
    (Family::Harness, "set HARNESS_OPTIONS=j"),
    (Family::Bats, "give it --jobs"),
    (Family::BatsFile, "give it --jobs"),
    (Family::Pytest, "run them by pytest-xdist (-n auto)"),
    (Family::Go, "let it run more packages at once (-p)"),
    (Family::Node, "let it run more files at once (--test-concurrency)"),
    (Family::Meson, "let it run more at once"),
    (Family::Rspec, "run them by parallel_tests"),
    (Family::Jest, "let it use more workers"),
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
    jobs: Option<&'static JobTool>,
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
    // Others do not start jobs.
    let starts = !matches!(role, Role::Configure | Role::Packages);
    let words = WORDS
        .iter()
        .find(|(family, _)| starts && *family == tool.family);
    Some(Known {
        role,
        family: tool.family,
        jobs: job_tools::of(tool.family).filter(|_| starts),
        action: words.map_or_else(|| of_role(role), |(_, action)| action),
    })
}

/// The role of a program.
pub(crate) fn role(program: &str) -> Option<Role> {
    known(program).map(|known| known.role)
}

impl Known {
    /// It has an option for the number of jobs.
    pub fn takes_jobs(&self) -> bool {
        self.jobs.is_some()
    }

    /// The number of jobs among the arguments; `Some(None)`: the option without a number.
    pub fn jobs(&self, args: &[&[u8]]) -> Option<Option<u64>> {
        self.jobs?.jobs(args)
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
}
