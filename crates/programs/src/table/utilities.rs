//! The small programs that build nothing, by the use that scripts make of them.

use crate::words::has;

/// The use that scripts make of a small program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UtilityUse {
    /// A script runs the program for its exit status.
    Question,
    /// A script cleans up, waits or reports with the program.
    Report,
    /// A script cleans up or reports with the program, and a configure script ends with it, whatever it ends for.
    Tidying,
    /// The program sends signals.
    Kill,
    /// The program runs another one and exits with its status.
    Wrapper,
    /// Recipes and scripts often ignore the failure of the program (`-mkdir out`), beside those of questions.
    Ignored,
    /// The program undoes what a script has set up.
    Undoing,
}

use UtilityUse::{Ignored, Kill, Question, Report, Tidying, Undoing, Wrapper};

/// A row of the table: the names of programs, separated by spaces, and their uses.
struct Utilities {
    names: &'static str,
    uses: &'static [UtilityUse],
}

const fn utilities(names: &'static str, uses: &'static [UtilityUse]) -> Utilities {
    Utilities { names, uses }
}

const ROWS: [Utilities; 15] = [
    utilities(
        "[ cmp command diff egrep fgrep getent grep id pgrep pidof ping rg test type",
        &[Question],
    ),
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

/// The uses of the program with exactly this name.
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
