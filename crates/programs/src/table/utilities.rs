//! Small utility programs such as `grep` and `rm`, and what scripts use them for.

use crate::words::has;

/// The use that scripts make of a small utility program such as `grep`. It shows how serious the
/// program's failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UtilityUse {
    /// Scripts run the utility program to get an answer from its exit status.
    Question,
    /// Scripts use the utility program to clean up, to wait or to report.
    Report,
    /// Scripts use the utility program to clean up or to report. A configure script runs it at its
    /// end, whatever the reason for the end is.
    Tidying,
    /// The utility program sends signals to other processes.
    Kill,
    /// The utility program runs another program and exits with that program's status.
    Wrapper,
    /// Recipes and scripts often ignore the utility program's failure (`-mkdir out`), although the
    /// program does not just answer a question.
    Ignored,
    /// The utility program undoes what a script has set up before, as `rm` does.
    Undoing,
    /// The program compares files.
    Compare,
}

use UtilityUse::{Compare, Ignored, Kill, Question, Report, Tidying, Undoing, Wrapper};

/// A row of the table of utility programs: the names of programs, separated by spaces, and their
/// uses in scripts.
struct Utilities {
    names: &'static str,
    uses: &'static [UtilityUse],
}

const fn utilities(names: &'static str, uses: &'static [UtilityUse]) -> Utilities {
    Utilities { names, uses }
}

const ROWS: [Utilities; 16] = [
    utilities(
        "[ command egrep fgrep getent grep id pgrep pidof ping rg test type",
        &[Question],
    ),
    utilities("cmp diff", &[Question, Compare]),
    utilities("expr", &[Question, Tidying]),
    utilities("kill", &[Question, Report, Kill, Undoing]),
    utilities("pkill", &[Question, Report, Kill, Ignored]),
    utilities("killall", &[Report, Kill, Ignored]),
    utilities("skill", &[Kill]),
    utilities("ls", &[Question, Report]),
    utilities(
        "cp date echo hostname mv sed sort tr uname uniq",
        &[Tidying],
    ),
    utilities("cat", &[Tidying, Ignored]),
    utilities("rm", &[Tidying, Ignored, Undoing]),
    utilities(
        "basename dmesg free head less netstat printenv printf ps pwd seq sleep ss stat sync tail tee tput true wc",
        &[Report],
    ),
    utilities("df du touch", &[Report, Ignored]),
    utilities("rmdir umount", &[Report, Ignored, Undoing]),
    utilities("chmod ln mkdir unlink which", &[Ignored]),
    utilities(
        "chroot dbus-run-session doas env faketime flock ionice nice nohup script setpriv setsid stdbuf strace sudo \
         taskset time timeout unshare valgrind xvfb-run",
        &[Wrapper],
    ),
];

/// The uses in scripts of the utility program with exactly this name; empty for any other program.
pub fn uses(program: &str) -> &'static [UtilityUse] {
    let mut rows = ROWS.iter();
    let row = rows.find(|row| has(row.names, program.as_bytes()));
    row.map_or(&[], |row| row.uses)
}

#[cfg(test)]
mod lookups {
    use super::*;

    #[test]
    fn each_name_has_one_row() {
        let mut names: Vec<&str> = ROWS.iter().flat_map(|row| row.names.split(' ')).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn names_are_exact() {
        assert_eq!(uses("kill"), [Question, Report, Kill, Undoing]);
        assert_eq!(uses("test"), [Question]);
        // A test of cargo, and a script of a project.
        assert!(uses("test laws").is_empty());
        assert!(uses("run-all-test").is_empty());
    }
}
