//! Small utility programs such as `grep` and `rm`, and what scripts use them for.

use crate::words::has;

/// The use that scripts make of a small utility program such as `grep`. This use shows how serious a failure of the
/// program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UtilityUse {
    /// Scripts run the utility program to get an answer from its exit status.
    Question,
    /// Scripts use the utility program to clean up, to wait or to report.
    Report,
    /// Scripts use the utility program to clean up or to report. A configure script runs this program when the script
    /// ends, whatever the reason for the end is.
    Tidying,
    /// The utility program sends signals to other processes.
    Kill,
    /// The utility program runs another program and exits with that program's status.
    Wrapper,
    /// Recipes and scripts often ignore the utility program's failure (`-mkdir out`), although they do not run the
    /// program just to get an answer.
    Ignored,
    /// The utility program undoes what a script has set up before, as `rm` does.
    Undoing,
    /// The program compares files.
    Compare,
    /// The program only reads files that other programs wrote, and writes to its standard output.
    Reader,
    /// The program fetches or requests something that a script can do without: `curl … || true`.
    Optional,
    /// The program makes or changes each file that its arguments name. So a job that runs the program makes these
    /// files.
    Maker,
    /// The program waits for the time that is its argument.
    Nap,
    /// The program removes the files that its arguments name.
    Removal,
    /// The program runs another program on a new terminal, and reads the output of that other program to the end.
    Terminal,
}

use UtilityUse::{
    Compare, Ignored, Kill, Maker, Nap, Optional, Question, Reader, Removal, Report, Terminal,
    Tidying, Undoing, Wrapper,
};

/// The arguments of a utility program that name the files which it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The program writes the file that its last argument names, if it has several arguments besides options
    /// (`cp A B`).
    LastOperand,
    /// The program writes each file that its arguments name, apart from options (`touch A B`).
    EachOperand,
    /// The program writes the file that its first argument names, apart from options (`zip A.zip FILE`).
    FirstOperand,
    /// The program writes the file that its second argument names, apart from options. The first argument is a group of
    /// letters (`ar rcs A.a FILE`).
    SecondOperand,
    /// The program writes the file that follows a group of letters which contains `c` and ends with `f`
    /// (`tar -czf A.tgz`).
    Packed,
    /// The program writes a file that is named like the end of a URL among its arguments, or the file after an option
    /// that ends with `O` (`wget -O FILE URL`).
    Fetched,
    /// With the option `-O`, the program writes a file that is named like the end of a URL among its arguments.
    /// Otherwise it writes to its standard output, which scripts mostly redirect to a file of that name (curl).
    FetchedByOption,
    /// With the verb `clone`, the program writes the directory that its command line names after a URL. If no directory
    /// follows the URL, the program writes a directory that is named like the URL's end without its extension (git).
    Cloned,
}

/// A row of the table of utility programs: the names of programs, separated by spaces; what scripts use them for; and
/// which of their arguments name the files that they write.
struct Utilities {
    names: &'static str,
    uses: &'static [UtilityUse],
    written: Option<Written>,
}

const fn utilities(names: &'static str, uses: &'static [UtilityUse]) -> Utilities {
    Utilities {
        names,
        uses,
        written: None,
    }
}

/// A row for programs that write files. `written` says which of their arguments name these files.
const fn writers(names: &'static str, uses: &'static [UtilityUse], written: Written) -> Utilities {
    Utilities {
        names,
        uses,
        written: Some(written),
    }
}

const ROWS: [Utilities; 35] = [
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
    utilities("date echo hostname sed sort tr uname uniq", &[Tidying]),
    writers("cp mv", &[Tidying, Maker], Written::LastOperand),
    utilities("cat", &[Tidying, Ignored]),
    utilities("rm", &[Tidying, Ignored, Undoing, Removal, Maker]),
    utilities(
        "basename dmesg free head less netstat printenv printf ps pwd seq ss stat sync tail tput true wc",
        &[Report],
    ),
    utilities("sleep", &[Report, Nap]),
    writers("tee", &[Report], Written::EachOperand),
    utilities("df du", &[Report, Ignored]),
    writers("touch", &[Report, Ignored, Maker], Written::EachOperand),
    utilities("rmdir umount", &[Report, Ignored, Undoing]),
    utilities("chmod", &[Ignored, Maker]),
    utilities("unlink which", &[Ignored]),
    writers("ln", &[Ignored, Maker], Written::LastOperand),
    writers("mkdir", &[Ignored, Maker], Written::EachOperand),
    utilities(
        "chroot dbus-run-session doas env faketime flock ionice nice nohup setpriv setsid stdbuf strace sudo \
         taskset time timeout unshare valgrind xvfb-run",
        &[Wrapper],
    ),
    utilities("script", &[Wrapper, Terminal]),
    utilities(
        "awk comm cut gawk join jq mawk paste unzip",
        &[Reader],
    ),
    writers("tar", &[Reader], Written::Packed),
    utilities("docker podman scp service ssh systemctl", &[Optional]),
    writers("rsync", &[Optional], Written::LastOperand),
    writers("curl", &[Optional], Written::FetchedByOption),
    writers("wget", &[Optional], Written::Fetched),
    writers("git", &[Optional], Written::Cloned),
    writers("install", &[Maker], Written::LastOperand),
    utilities("objcopy ranlib strip", &[Maker]),
    writers("zip", &[], Written::FirstOperand),
    writers("ar", &[], Written::SecondOperand),
];

/// The uses in scripts of the utility program with exactly this name; empty for any other program.
pub fn uses(program: &str) -> &'static [UtilityUse] {
    row(program).map_or(&[], |row| row.uses)
}

/// The arguments of the utility program with exactly this name that name the files which the program writes; `None` if
/// it writes no files, or if this is not known.
pub fn written(program: &str) -> Option<Written> {
    row(program)?.written
}

fn row(program: &str) -> Option<&'static Utilities> {
    let mut rows = ROWS.iter();
    rows.find(|row| has(row.names, program.as_bytes()))
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
        // A project's own script is no utility, whatever its name contains.
        assert!(uses("run-all-test").is_empty());
    }
}
