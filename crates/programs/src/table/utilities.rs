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
}

use UtilityUse::{Kill, Question, Report, Tidying, Wrapper};

/// A row of the table: the names of programs, separated by spaces, and their uses.
struct Utilities {
    names: &'static str,
    uses: &'static [UtilityUse],
}

const fn utilities(names: &'static str, uses: &'static [UtilityUse]) -> Utilities {
    Utilities { names, uses }
}

const ROWS: [Utilities; 9] = [
    utilities(
        "[ cmp command diff egrep fgrep getent grep id pgrep pidof ping rg test type",
        &[Question],
    ),
    utilities("expr", &[Question, Tidying]),
    utilities("kill pkill", &[Question, Report, Kill]),
    utilities("killall", &[Report, Kill]),
    utilities("skill", &[Kill]),
    utilities("ls", &[Question, Report]),
    utilities(
        "cat cp date echo hostname mv rm sed sort tr uname uniq",
        &[Tidying],
    ),
    utilities(
        "basename df dmesg du free head less netstat printenv printf ps pwd rmdir seq sleep ss stat sync tail tee \
         touch tput true umount wc",
        &[Report],
    ),
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
        assert_eq!(uses("kill"), [Question, Report, Kill]);
        assert_eq!(uses("test"), [Question]);
        // A test of cargo, and a script of a project.
        assert!(uses("test laws").is_empty());
        assert!(uses("run-all-test").is_empty());
    }
}
