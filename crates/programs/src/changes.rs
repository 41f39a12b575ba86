//! The words by which the report's advice suggests a change to a program of a build. They come from
//! the program's row in [`crate::table`], or else from its role (compiler, package manager, …).

use crate::job_tools;
use crate::job_tools::JobTool;
use crate::program_name::ProgramName;
use crate::tools::{Change, Family, Role};

/// The words for a change that the report's advice suggests for any program with this role in a build (for configure
/// scripts: keep the results); empty if no change suits all programs with this role.
pub fn of_role(role: Role) -> &'static str {
    match role {
        Role::Configure => "keep its results (a cache file, the build directory)",
        Role::Packages => "keep the packages in a cache or an image",
        Role::Shell => "run them at once (make -j, xargs -P)",
        Role::Compiler | Role::Linker | Role::Jobs | Role::Tests => "",
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ToolChange {
    pub role: Role,
    pub family: Family,
    jobs: Option<JobTool>,
    pub action: &'static str,
    /// Whether a suggested number of jobs is appended to the words of the change, as in `-j4`.
    numbered: bool,
}

/// The facts that the report's advice needs about a program to suggest a change to it; `None` for a program that has no
/// known role in a build.
pub fn known(program: &ProgramName) -> Option<ToolChange> {
    let tool = program.tool()?;
    let role = program.role()?;
    // A tool that is called to configure a build or to handle packages starts no jobs.
    let starts = !matches!(role, Role::Configure | Role::Packages);
    let change = tool.change.filter(|_| starts);
    Some(ToolChange {
        role,
        family: tool.family,
        jobs: tool.jobs.filter(|_| starts),
        action: match change {
            Some(Change::Words(words) | Change::Numbered(words)) => words,
            None => of_role(role),
        },
        numbered: matches!(change, Some(Change::Numbered(_))),
    })
}

impl ToolChange {
    /// Whether the program has an option for the number of jobs that it runs at once, and this call starts jobs.
    pub fn takes_jobs(&self) -> bool {
        self.jobs.is_some()
    }

    /// Whether the program runs one job at a time if no argument sets a number. A program that is not known to have an
    /// option for this number counts as such a program.
    pub fn runs_one(&self) -> bool {
        self.jobs
            .is_none_or(|tool| tool.by_default == job_tools::DefaultJobs::One)
    }

    /// The text with which the report's advice suggests the change to the program; empty if no change is known. Some
    /// texts contain the suggested number of jobs, `jobs`, and others are about another change, such as a faster
    /// linker.
    pub fn change(&self, jobs: u64) -> String {
        if self.numbered {
            format!("{}{jobs}", self.action)
        } else {
            self.action.to_owned()
        }
    }

    /// The argument, such as `-l2`, with which the build tool starts jobs only while the machine's load is below a
    /// limit; `None` if the command line has no such argument, or if the program is not known to have one.
    pub fn load_limit<'a>(&self, args: &[&'a [u8]]) -> Option<&'a [u8]> {
        self.jobs?.load_limit(args)
    }

    /// The number of jobs that the program's command line sets, such as 4 for `-j4`. `Some(None)` is returned for an
    /// option without a number and for the number 0 (no limit), and `None` if the command line or the program has no
    /// such option.
    pub fn jobs(&self, args: &[&[u8]]) -> Option<Option<u64>> {
        self.jobs?.jobs(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::program_of_args;

    fn program(line: &str) -> ProgramName {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        program_of_args(&args)
    }

    #[test]
    fn a_role_has_words() {
        for (line, want) in [
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
            assert_eq!(
                known(&program(line)).map(|known| known.action),
                Some(want),
                "{line}"
            );
        }
        assert!(known(&program("cargo metadata")).is_none());
        assert!(known(&program("test_harness")).is_none());
    }

    #[test]
    fn some_run_one_job_by_default() {
        for (line, want) in [
            ("make", true),
            ("xargs", true),
            ("cargo build", false),
            ("ninja", false),
            ("meson test", false),
        ] {
            let one = known(&program(line)).map(|known| known.runs_one());
            assert_eq!(one, Some(want), "{line}");
        }
    }

    #[test]
    fn the_number_of_jobs_follows_where_it_can() {
        for (program, want) in [
            (program("make"), "give it -j4"),
            (
                ProgramName::with_verb("perl", "Test::Harness"),
                "set HARNESS_OPTIONS=j4",
            ),
            (program("ninja"), "let it run more jobs (-j)"),
            (program("xargs"), "give it -P"),
            (program("cc1"), ""),
        ] {
            let change = known(&program).map(|known| known.change(4));
            assert_eq!(change.as_deref(), Some(want), "{program}");
        }
    }
}
