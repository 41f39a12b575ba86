//! Judges the failures of the children of a program of unknown kind: which failures the program tolerates, and which
//! ones explain its own failure.

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::status::KILL;
use tr_programs::script_words::is_script_option;
use tr_programs::tools::Role;

use super::finder::Finder;
use super::passes::{
    builds, code, fails, is_often_ignored, is_question, passes, program_start, Passes, LONG_CHILD,
    MOST_EXAMINED,
};
use super::passes::{is_optional, is_step};
use super::runs::{Runs, Scripts};
use tr_insight::processes::roles::role;
use tr_insight::processes::{exit, label};

/// The longest time in nanoseconds that a program usually needs to check something for a script. A guess: `grep -q` and
/// `test` take some milliseconds.
pub(super) const LONGEST_CHECK: u64 = 50_000_000;

impl Finder<'_> {
    /// Whether a program of unknown kind tolerates the failure of a child: an earlier child failed in an equal way, and
    /// the program still went on. One example is a test that expects a program's status 2. Another one is a script
    /// whose earlier check failed, too. An earlier run of the same command line counts as a first try and not as a
    /// tolerated failure.
    pub(super) fn is_tolerated_again(&self, child: &Process, above: ProcessIx) -> bool {
        let parent = self.analysis.process(above);
        let is_asked = is_question(child);
        let is_own = code(child) == code(parent);
        let may_be_passed = is_own && !(is_asked && code(child) == Some(1));
        let is_error = || code(child) == Some(1) && is_of_own_kind(child, parent);
        if may_be_passed || builds(child) || is_error() {
            return false;
        }
        let name = label::program(child);
        let before = || self.before_start(child, above).rev().take(MOST_EXAMINED);
        // Two runs of one command line are tries of the same action only if no other step runs between them.
        let is_step_between = |earlier: &Process| {
            let mut between = before().take_while(|other| other.start > earlier.start);
            between.any(|other| is_step(other) && other.argv != child.argv)
        };
        let mut failed = before().filter(|earlier| {
            let is_no_try = earlier.argv != child.argv || is_step_between(earlier);
            let is_other = is_no_try && !earlier.execs.is_empty();
            let was_waited_for =
                earlier.end <= child.start && earlier.start >= program_start(parent);
            is_other && was_waited_for && fails(earlier)
        });
        failed.any(|earlier| {
            let is_again = || code(earlier) == code(child) && label::program(earlier) == name;
            is_asked || is_again()
        })
    }

    /// Whether a failed child explains the exit status of its parent, a program of unknown kind. This is so if the
    /// parent ended with the child's status, and another child that ran the same program failed with a different
    /// status. The parent is then a test that expected the other child to fail, but not this child.
    fn has_the_status_of(&self, child: &Process, above: ProcessIx) -> bool {
        let is_wanted = |other: &Process| code(other) != code(child);
        has_the_error_of(child, self.analysis.process(above))
            && self.others_failed(child, above, is_wanted)
    }

    /// Whether a test probably expected the failure of a child. An earlier child that ran the same program failed with
    /// another status, and the test itself ended with that other status. So the earlier child is the likely reason for
    /// the test's failure.
    pub(super) fn is_wanted(&self, child: &Process, above: ProcessIx) -> bool {
        let runner = self.analysis.process(above);
        let is_reason =
            |other: &Process| has_the_error_of(other, runner) && other.end <= child.start;
        code(child) != code(runner) && self.others_failed(child, above, is_reason)
    }

    /// Whether another child of the process `above` ran the same program as `child` with other arguments, failed, and
    /// is accepted by `fits`.
    fn others_failed(
        &self,
        child: &Process,
        above: ProcessIx,
        fits: impl Fn(&Process) -> bool,
    ) -> bool {
        let runner = self.analysis.process(above);
        let name = label::program(child);
        let mut others = runner
            .children
            .iter()
            .rev()
            .take(MOST_EXAMINED)
            .map(|ix| self.analysis.process(*ix));
        others.any(|other| {
            let is_other = other.argv != child.argv && other.start >= program_start(runner);
            let is_run = is_other && !other.execs.is_empty() && fails(other);
            is_run && fits(other) && label::program(other) == name
        })
    }

    /// Whether a child's failure may explain why its parent, a program of unknown kind, failed in the end, although the
    /// parent first went on. Two examples are a child that was killed by a process other than an ancestor, and a child
    /// that is one of several scripts of the parent.
    pub(super) fn may_count(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let (child, runner) = (self.analysis.process(ix), self.analysis.process(above));
        if self.sure.by_a_neighbour(ix) {
            return exit::killed_by(child.status) == Some(KILL);
        }
        let by_signal = exit::killed_by(child.status).is_some();
        if by_signal && self.sure.on_purpose(ix, child) || is_question(child) {
            return false;
        }
        let is_own = by_signal || code(child) == code(runner);
        let is_one =
            is_own && self.is_script_of_many(child, above) || self.is_only_failed_run(child, above);
        let is_kept = || self.is_kept_failure(child, above) || self.stands_out(ix, above);
        let counts = is_one || is_kept() || is_own && self.has_the_status_of(child, above);
        counts && !self.succeeded_again(child, above)
    }

    /// Whether a program of unknown kind may have gone on after the failure of a child, and later failed because of
    /// this failure. There are two conditions. All other steps that the program started after the child succeeded. The
    /// child did more than a check: it is a build, was run again without success, or took a noticeable part of the
    /// program's time.
    fn is_kept_failure(&self, child: &Process, above: ProcessIx) -> bool {
        let is_counted = is_step(child) && !is_often_ignored(child) && !is_optional(child);
        let configures = role(self.analysis.process(above)) == Some(Role::Configure);
        if !is_counted || configures || self.is_tolerated_again(child, above) {
            return false;
        }
        let steps = self.after(child, above).take(MOST_EXAMINED);
        let steps = steps.filter(|next| is_step(next));
        let (tries, others): (Vec<&Process>, Vec<&Process>) =
            steps.partition(|next| next.argv == child.argv);
        let all_succeeded = others.iter().all(|next| next.status == Some(0));
        all_succeeded && (builds(child) || !tries.is_empty() || self.took_its_part(child, above))
    }

    /// Whether a process took so large a part of an ancestor's time that the process did real work. The failure of such
    /// a process is more than the result of a check.
    pub(super) fn took_its_part(&self, child: &Process, above: ProcessIx) -> bool {
        let all = self.analysis.process(above).wall();
        child.wall() >= LONGEST_CHECK && child.wall() >= all / LONG_CHILD
    }

    /// Whether a child is one of several scripts that its parent ran with the parent's own interpreter.
    fn is_script_of_many(&self, child: &Process, above: ProcessIx) -> bool {
        let runner = self.analysis.process(above);
        let mut kept = self.caches.scripts.borrow_mut();
        let scripts = kept.entry(above).or_insert_with(|| self.scripts(runner));
        is_of_own_kind(child, runner) && scripts.of_own_kind > 1
    }

    /// Whether a child is the only one that failed among many similar children of its parent. Similar children are runs
    /// of one script, scripts of one interpreter, or commands of one shell.
    pub(super) fn is_only_failed_run(&self, child: &Process, above: ProcessIx) -> bool {
        if !is_script(child) && !self.is_failed_command(child) {
            return false;
        }
        let runner = self.analysis.process(above);
        let mut kept = self.caches.scripts.borrow_mut();
        let scripts = kept.entry(above).or_insert_with(|| self.scripts(runner));
        let by_program = scripts.by_program.get(&label::program(child));
        let by_interpreter = file_name(child).and_then(|name| scripts.by_interpreter.get(name));
        let mut runs = by_program.into_iter().chain(by_interpreter);
        runs.any(Runs::has_one_failed)
    }

    /// Whether a process is a shell with a command as its argument (`sh -c`), in which a program failed that does more
    /// than a check.
    fn is_failed_command(&self, process: &Process) -> bool {
        let children = process.children.iter().take(MOST_EXAMINED);
        let mut children = children.map(|ix| self.analysis.process(*ix));
        is_command(process) && children.any(|child| fails(child) && !is_question(child))
    }

    /// Counts the scripts that a process ran, and the runs that failed.
    fn scripts(&self, runner: &Process) -> Scripts {
        let children = runner.children.iter().map(|ix| self.analysis.process(*ix));
        let is_run = |child: &&Process| is_script(child) || is_command(child);
        let own = children.filter(|child| child.start >= program_start(runner) && is_run(child));
        let mut scripts = Scripts::default();
        for child in own {
            scripts.of_own_kind += usize::from(is_of_own_kind(child, runner));
            let by_program = scripts.by_program.entry(label::program(child)).or_default();
            by_program.count(child);
            let interpreter = file_name(child).unwrap_or_default().to_vec();
            scripts
                .by_interpreter
                .entry(interpreter)
                .or_default()
                .count(child);
        }
        scripts
    }

    /// Whether the parent of a failed process later ran the same command line again successfully.
    fn succeeded_again(&self, child: &Process, above: ProcessIx) -> bool {
        let mut after = self.after(child, above).take(MOST_EXAMINED);
        after.any(|next| next.status == Some(0) && next.argv == child.argv)
    }
}

/// Whether two processes ended with the same exit status, so that one may have passed on the error of the other. If the
/// status is 1, the same interpreter must have run both, because failed tests have this status, too.
fn has_the_error_of(child: &Process, runner: &Process) -> bool {
    code(child) == code(runner) && (code(child) != Some(1) || is_of_own_kind(child, runner))
}

/// Whether the same interpreter runs both a process and its parent.
fn is_of_own_kind(child: &Process, parent: &Process) -> bool {
    let name = |process| file_name(process).map(<[u8]>::to_vec);
    is_script(child) && is_script(parent) && name(child) == name(parent)
}

/// Whether a process runs a script, or a program by a relative path such as `./x`.
pub(super) fn is_script(process: &Process) -> bool {
    if process.execs.is_empty() {
        return false;
    }
    let first = process.argv.args().next().unwrap_or_default();
    let program = label::program(process);
    let is_interpreted =
        file_name(process).is_some_and(|name| !program.name().as_bytes().starts_with(name));
    is_interpreted || first.contains(&b'/') && !first.starts_with(b"/")
}

/// Whether a process is a shell that runs a command which is given as an argument (`sh -c`).
fn is_command(process: &Process) -> bool {
    passes(process) == Passes::Status && process.argv.args().any(is_script_option)
}

/// The name of the program file in the first word (`argv[0]`) of a command line; for a script, the interpreter.
fn file_name(process: &Process) -> Option<&[u8]> {
    let first = process.argv.args().next()?;
    first.rsplit(|byte| *byte == b'/').next()
}
