//! Decides whether the failure of one process explains the failure of another process.

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::status::{INTERRUPT, KILL};
use tr_analyze::stopped::{may_have_sent, TimeOut};
use tr_analyze::timeline::Stretch;
use tr_format::event::{Ktime, Reason};
use tr_programs::outline::Options;
use tr_programs::tools::{Children, Family, Role};
use tr_programs::words;

use super::afterwards::until_the_end;
use super::ends::Stop;
use super::finder::{Explains, Finder};
use super::passes::{
    asks_for_packages, children, code, fails, family, goes_on, ignores_failures, is_killed_itself,
    is_named_job, is_probe, is_question, is_unstarted, passes, passes_status, program, role,
    runs_jobs, tool, Passes, AT_ONCE, LONG, NEAR,
};
use super::reactions::runs_tests;
use super::scripts;
use super::texts::Decided;
use crate::exit;
use crate::timeout::timed_out;

/// The exit statuses that a shell can have by itself: after a builtin or an expansion that failed (2 in dash), and
/// after a program that could not be started.
pub(super) const OF_SHELLS: [u32; 4] = [1, 2, 126, 127];

/// The signals with which a program may end itself, for any reason: SIGILL, SIGTRAP, SIGABRT, and also SIGINT, which a
/// shell sends to itself after SIGINT has ended a child.
const ABORTS: [u32; 4] = [4, 5, 6, INTERRUPT];

/// The shortest wait for a timer in nanoseconds that counts as planned by the program. A guess: shorter waits are
/// periodic timers of language runtimes.
const SLEEP: u64 = 20_000_000;

impl Finder<'_> {
    /// The process whose failure the failure of the given process can explain. This is the parent in most cases. If the
    /// parent is a worker of a pool, it is the owner of the pool, and if the parent is git's server, it is the client
    /// of git.
    pub(super) fn above(&self, ix: ProcessIx) -> Option<ProcessIx> {
        let parent = self.analysis.process(ix).parent?;
        if self.is_worker(parent) {
            return self.analysis.process(parent).parent;
        }
        self.client(parent).or(Some(parent))
    }

    /// The processes whose failures can explain the failure of the given process, such as its children.
    pub(super) fn below(&self, ix: ProcessIx) -> impl Iterator<Item = ProcessIx> + '_ {
        let children = self.analysis.process(ix).children.iter().copied();
        let workers = children.clone().filter(|child| self.is_worker(*child));
        let inside = workers.chain(self.server_of_git(ix));
        let inside = inside.flat_map(|worker| &self.analysis.process(worker).children);
        children.chain(inside.copied())
    }

    /// Whether the failure of a process is only a possible reason, and not a certain one, for the failure of the
    /// process above it (mostly its parent).
    pub(super) fn is_maybe(&self, ix: ProcessIx) -> bool {
        let above = self.above(ix);
        let explains = above.and_then(|above| self.explains(ix, above));
        explains == Some(Explains::Maybe)
    }

    /// Whether the failure of a descendant, such as a child, certainly explains the failure of a process.
    pub(super) fn is_explained(&self, ix: ProcessIx) -> bool {
        self.below(ix).any(|child| {
            let explains = self.explains(child, ix);
            matches!(explains, Some(Explains::One | Explains::Last))
        })
    }

    /// How the failure of a process may explain the failure of the process `above`, such as its parent; `None` if it
    /// does not.
    pub(super) fn explains(&self, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let child = self.analysis.process(ix);
        let parent = self.analysis.process(above);
        // A child that started before the parent's last exec belongs to an earlier program of the parent. So the child
        // cannot be the reason why the parent's last program failed.
        if !self.fails(ix) || !fails(parent) || child.start < program(parent) || timed_out(parent) {
            return None;
        }
        if is_killed_itself(parent) && !self.sure.out_of_memory.contains_key(&ix) {
            return None;
        }
        if self.was_killed_otherwise(ix, parent) {
            return None;
        }
        let by_script = self.by_script(ix, above);
        match by_script {
            Some(Decided::No) => return None,
            Some(Decided::Too) => return Some(Explains::One),
            Some(Decided::Yes) => return Some(Explains::Last),
            Some(Decided::Maybe) | None => {}
        }
        // The end of a worker explains nothing in three cases: the worker was stopped and another child of the owner
        // failed by itself, the worker was stopped together with another worker, or a child of the worker failed. In
        // the first and the last case, the other failure is a better explanation.
        if self.is_worker(ix) {
            let signal = exit::killed_by(child.status).filter(|number| *number != KILL);
            let is_end = signal.is_some() && self.unstopped.contains(&above);
            let is_closed = signal.is_some() && self.was_stopped_with_another(ix, above);
            if is_end || is_closed || child.children.iter().any(|ix| self.fails(*ix)) {
                return None;
            }
        }
        if let Some(stop) = self.sure.stop(ix) {
            if self.passes_on_a_kill(ix, above) {
                return Some(Explains::Maybe);
            }
            return self.stopped(*stop, ix, above);
        }
        if self.was_killed_for_another(ix, above) || self.was_stopped_for_another(ix, above) {
            return None;
        }
        // Here `above` is not the parent of the process: it is the owner of a pool and the parent is a worker of that
        // pool, or it is git's client and the parent is git's server. The failure counts if `above` started nothing
        // after it.
        if child.parent != Some(above) {
            let counts = self.is_last(child, above) && !is_question(child);
            return counts.then_some(Explains::Maybe);
        }
        if is_probe(child, parent) {
            let is_last = match family(parent) {
                Some(Family::Configure) => self.is_last_but_tidying(child, above),
                _ => self.is_last(child, above),
            };
            let gave_up = is_last && self.soon_ended(child, above);
            // A configuration fails if a package that it needs is missing. After any other negative answer, such as a
            // failed `git describe`, it goes on.
            let is_needed = !is_question(child) || asks_for_packages(child);
            return (gave_up && is_needed).then_some(Explains::Maybe);
        }
        let last = self.is_last(child, above);
        let mut gave_up = self.gave_up(child, above);
        if passes(parent) == Passes::Last {
            if self.is_failed_tidying(child, above) {
                return None;
            }
            gave_up |= self.gave_up_before_tidying(child, above);
        }
        let of_children = children(parent);
        let may_be_optional = of_children == Children::FailUnlessOptional;
        let of_make = family(parent) == Some(Family::Make);
        match passes(parent) {
            Passes::Status => {
                let explains = self.to_a_shell(ix, above);
                // The script's text shows that this child or another one made the script end.
                explains.or(by_script.map(|_| Explains::Maybe))
            }
            // A fork without an exec is no job but belongs to the tool itself.
            Passes::Any if child.execs.is_empty() && !gave_up && !is_unstarted(child) => None,
            Passes::Any if is_question(child) && !of_make || self.is_text(ix, above) => {
                gave_up.then_some(Explains::Maybe)
            }
            Passes::Any if ignores_failures(self.analysis, above) => {
                gave_up.then_some(Explains::Maybe)
            }
            Passes::Any if of_children == Children::FailIfNamed && !is_named_job(child, parent) => {
                gave_up.then_some(Explains::Maybe)
            }
            Passes::Any if of_make => self.explains_make(ix, above),
            // The tool can also fail by a step inside its own process, after it ignored the failure of a child.
            Passes::Any if of_children == Children::FailOrOwn && !self.is_build(child) => {
                (last || self.may_have_been_kept(child, above)).then_some(Explains::Maybe)
            }
            // npm continues after the failure of an optional step.
            Passes::Any
                if last && (!may_be_optional || self.gave_up_after_others(child, above)) =>
            {
                Some(Explains::Last)
            }
            Passes::Any if goes_on(self.analysis, above) => Some(Explains::One),
            // npm continues with other packages, and exits with the status of the script that failed.
            Passes::Any
                if may_be_optional && code(child) != Some(1) && code(child) == code(parent) =>
            {
                Some(Explains::One)
            }
            // The parent went on after the failure, so the failure perhaps did not count.
            Passes::Any => Some(Explains::Maybe),
            // In ctest and meson, a test can be declared as expected to fail. So a failed test is only a possible
            // reason for the failure of the runner.
            Passes::Tests
                if self.tests.is_failed.contains(&ix)
                    && exit::killed_by(child.status).is_none()
                    && may_want_failures(parent)
                    && !self.is_the_only_failure(ix, above) =>
            {
                Some(Explains::Maybe)
            }
            Passes::Tests => match role(child) {
                _ if self.tests.is_failed.contains(&ix) => Some(Explains::One),
                Some(Role::Tests) if self.tests.has_failed.contains(&ix) => Some(Explains::One),
                Some(Role::Compiler | Role::Linker) => Some(Explains::One),
                Some(Role::Jobs) if gave_up => Some(Explains::Last),
                _ if self.is_only_failed_run(child, above)
                    || self.stands_out(ix, above)
                    || self.broke_a_pool(ix, above) =>
                {
                    Some(Explains::Maybe)
                }
                _ => None,
            },
            Passes::Last if !gave_up => self.may_count(ix, above).then_some(Explains::Maybe),
            Passes::Last if self.is_tolerated_again(child, above) => None,
            Passes::Last if self.is_wanted(child, above) => None,
            // If a test program of Go panics, an error of its own is the reason, and not the status of a child.
            Passes::Last if has_panicked_in_go(parent) => None,
            // A program that makes the same check again and again waits for a positive answer. A program that makes the
            // check only once also accepts a negative answer. So the negative answer is no reason for the program's
            // failure.
            Passes::Last
                if is_question(child)
                    && !asks_for_packages(child)
                    && !self.is_asked_again(child, above) =>
            {
                None
            }
            // The child is a shell command that only makes a check. It is no reason if its parent ended with another
            // status.
            Passes::Last if self.asks_only(child) && code(child) != code(parent) => None,
            // The parent may have stopped the child itself, and it went on afterwards, so this is no failure.
            Passes::Last
                if self.sure.on_purpose(ix, child)
                    && may_have_sent(self.analysis, ix, above)
                    && self.waited_after(child, above) =>
            {
                None
            }
            Passes::Last => {
                let is_same = code(child) == code(parent);
                let is_distinct = is_same && code(child) != Some(1);
                let is_killed = self.was_killed_by_others(ix, above);
                let is_certain = is_distinct || is_killed || is_same && passes_status(parent);
                Some(if is_certain {
                    Explains::Last
                } else {
                    Explains::Maybe
                })
            }
        }
    }

    /// Whether the failure of a child is the reason for the failure of its shell, according to the text of the shell's
    /// script; `None` if the text does not decide it.
    pub(super) fn by_script(&self, ix: ProcessIx, shell: ProcessIx) -> Option<Decided> {
        if self.analysis.process(ix).parent != Some(shell) {
            return None;
        }
        let course = self.course(shell)?;
        let was_stopped = |child: ProcessIx| {
            self.sure.stop(child).is_some()
                || self.was_killed_for_another(child, shell)
                || self.was_stopped_for_another(child, shell)
        };
        // A shell may have stopped a child and then ended with the status of that child. The real reason for the
        // shell's failure is then why it stopped the child, and the text of the script does not show that.
        if course.reasons().any(was_stopped) {
            return None;
        }
        course.decides(ix)
    }

    /// Whether a parent had run the command line of a child before. A program does this if it waits for a state to
    /// change.
    fn is_asked_again(&self, child: &Process, above: ProcessIx) -> bool {
        let mut before = self.before_start(child, above).rev().take(NEAR);
        before.any(|other| other.argv == child.argv)
    }

    /// Whether a script killed a child with SIGKILL and then ended with the child's status. A script that enforces a
    /// time limit does this; a script that only ends a service stops it in an orderly way.
    fn passes_on_a_kill(&self, ix: ProcessIx, shell: ProcessIx) -> bool {
        let (child, above) = (self.analysis.process(ix), self.analysis.process(shell));
        let is_killed = exit::killed_by(child.status) == Some(KILL);
        let is_passed_on = is_killed && code(child) == code(above) && child.parent == Some(shell);
        let course = || self.course(shell);
        is_passed_on && course().is_some_and(|course| course.decides(ix) == Some(Decided::Yes))
    }

    /// Whether make runs a process by `$(shell …)`, which uses the output of the process and ignores its exit status.
    fn is_text(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        family(self.analysis.process(above)) == Some(Family::Make) && self.reads(above, ix)
    }

    /// Whether the parent of the failed process `ix` was killed by a signal that has nothing to do with the failure of
    /// `ix`.
    fn was_killed_otherwise(&self, ix: ProcessIx, parent: &Process) -> bool {
        let signal = exit::killed_by(parent.status);
        let is_own = code(self.analysis.process(ix)) == code(parent);
        let from_outside = signal.is_some_and(|number| !ABORTS.contains(&number));
        from_outside && !is_own && !self.sure.out_of_memory.contains_key(&ix)
    }

    /// Whether a process was killed by a signal that the process `above` cannot have sent.
    fn was_killed_by_others(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let child = self.analysis.process(ix);
        let by_parent =
            || self.sure.on_purpose(ix, child) && may_have_sent(self.analysis, ix, above);
        exit::killed_by(child.status).is_some() && !by_parent()
    }

    /// How the end of a child explains the failure of its parent, if an ancestor stopped the child. Being stopped is no
    /// failure of the child, unless the child had exceeded its time limit.
    fn stopped(&self, stop: Stop, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let child = self.analysis.process(ix);
        if self.is_hung_test(ix) {
            return Some(Explains::One);
        }
        let gave_up = self.gave_up(child, above);
        match stop.time_out {
            TimeOut::Proven if stop.is_proven && gave_up => Some(Explains::Last),
            TimeOut::Proven => Some(Explains::Maybe),
            TimeOut::Perhaps => {
                let is_reaction = self.was_killed_for_another(ix, above);
                let is_end = gave_up && !self.waited_after(child, above);
                // A test runner that kills a test goes on with the next test. So in this case the parent need not end
                // soon after the child.
                let is_killed = exit::killed_by(child.status) == Some(KILL);
                let in_a_test = is_killed && runs_tests(self.analysis.process(above));
                ((is_end || in_a_test) && !is_reaction).then_some(Explains::Maybe)
            }
            TimeOut::No => None,
        }
    }

    /// Whether a parent waited for a timer after a child's end, which shows that the parent went on.
    pub(super) fn waited_after(&self, child: &Process, above: ProcessIx) -> bool {
        let mut kept = self.last_naps.borrow_mut();
        let last = *kept.entry(above).or_insert_with(|| self.last_nap(above));
        last.is_some_and(|from| from >= child.end)
    }

    /// The start of a process's last wait for a timer.
    fn last_nap(&self, ix: ProcessIx) -> Option<Ktime> {
        let timeline = self.analysis.timeline.as_ref()?;
        let threads = self.analysis.process(ix).threads.iter();
        let stretches = threads.flat_map(|thread| timeline.of(*thread));
        let naps = stretches.filter(is_nap);
        naps.map(|stretch| stretch.from).max()
    }

    /// How the failure of a shell's child explains the failure of the shell.
    fn to_a_shell(&self, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let (child, shell) = (self.analysis.process(ix), self.analysis.process(above));
        let (last, gave_up) = (self.is_last(child, above), self.gave_up(child, above));
        let is_same = code(child) == code(shell);
        // The shell failed because it could not start a program, so the child is not the reason.
        if is_unstarted(shell) && !is_same {
            return None;
        }
        let is_distinct = is_same && code(child).is_some_and(|code| !OF_SHELLS.contains(&code));
        if self.is_tidying_after_a_failure(child, above) {
            return gave_up.then_some(Explains::Maybe);
        }
        // A trap may run programs after the failed child, so the shell may still have cleaned up and printed reports.
        if is_distinct && (gave_up || self.is_last_but_reports(child, above)) {
            return Some(Explains::Last);
        }
        if gave_up && is_same {
            return self.with_a_common_status(ix, above);
        }
        let is_piped = || !is_question(child) || self.has_run_beside_the_last(ix, above);
        if is_same && self.gave_up_in_a_pipe(child, above) && is_piped() {
            let explains = self.with_a_common_status(ix, above);
            return explains.map(|_| Explains::Maybe);
        }
        // A program of the trap may have failed while it cleaned up.
        if self.is_end_before_tidying(child, above) {
            return Some(Explains::Maybe);
        }
        // Two kinds of scripts remain: `make || exit 1`, and scripts that count failures and go on. In both, a short
        // child that ended long before the script may have been only a check.
        if is_question(child) || self.asks_only(child) {
            return None;
        }
        let at_once = until_the_end(child, shell) <= AT_ONCE && (last || is_same);
        let is_long = child.wall() >= shell.wall() / LONG;
        let is_job = self.alike.contains(&above) || is_long;
        let counts = at_once
            || runs_jobs(child)
            || is_job && !self.was_tolerated(child, above)
            || self.may_have_been_kept(child, above);
        // A child that an ancestor killed on purpose counts only if the shell ended with the same status. A child that
        // any other process killed counts, because that process may have enforced a time limit.
        let on_purpose = self.sure.on_purpose(ix, child) && !self.sure.by_a_neighbour(ix);
        (counts && (is_same || !on_purpose)).then_some(Explains::Maybe)
    }

    /// How the failure of a shell's last child explains the shell's failure, if the shell ended with a status such as 1
    /// that it can also have by itself. The explanation may be uncertain: the script may ignore the child's failure
    /// (`|| true`) and then fail by a builtin, and without `pipefail` only the last command of a pipe decides the
    /// status.
    fn with_a_common_status(&self, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let (child, shell) = (self.analysis.process(ix), self.analysis.process(above));
        let sets_pipefail = |word: &[u8]| words::contains(word, b"pipefail");
        let Some(reader) = self.reader(child, shell) else {
            return Some(if scripts::runs_programs_alone(shell) {
                Explains::Last
            } else {
                Explains::Maybe
            });
        };
        if shell.argv.args().any(sets_pipefail) && scripts::runs_programs_alone(shell) {
            return Some(Explains::Last);
        }
        // A plain sh (not bash) is assumed to have no `pipefail`, so only the last program of a pipe decides the
        // status. The success of this program, which read the child's output, hides the child's failure.
        let args: Vec<&[u8]> = shell.argv.args().collect();
        let is_plain = Options::of(&args).is_some_and(|options| !options.is_bash);
        let hides = is_plain && self.reads(reader, ix);
        (!hides).then_some(Explains::Maybe)
    }
}

/// Whether an entry in a thread's timeline is a wait for a timer that is long enough to be planned by the program.
pub(super) fn is_nap(stretch: &Stretch) -> bool {
    let is_timed = matches!(stretch.reason, Reason::Timer | Reason::Poll);
    is_timed && stretch.waker().is_timer() && stretch.length() >= SLEEP
}

/// Whether a process is a test program of Go that panicked. Such a program ends with status 2; after a failed test the
/// status is 1.
fn has_panicked_in_go(process: &Process) -> bool {
    let mut args = process.argv.args();
    code(process) == Some(2) && args.any(|arg| arg.starts_with(b"-test."))
}

/// Whether a test runner has a way to declare that a test is expected to fail, so that a failed process may be a
/// success.
fn may_want_failures(runner: &Process) -> bool {
    tool(runner).is_some_and(|tool| tool.wants_failures)
}

impl Finder<'_> {
    /// Whether no other child of a test runner failed than the process `ix`.
    fn is_the_only_failure(&self, ix: ProcessIx, runner: ProcessIx) -> bool {
        let children = self.analysis.process(runner).children.iter().take(NEAR);
        let mut others = children.filter(|other| **other != ix);
        !others.any(|other| self.fails(*other))
    }

    /// Whether a process ran at the same time as the last child of its shell, or the last child read what the process
    /// wrote.
    fn has_run_beside_the_last(&self, ix: ProcessIx, shell: ProcessIx) -> bool {
        let Some(last) = self.analysis.process(shell).children.last() else {
            return false;
        };
        self.analysis.process(*last).start < self.analysis.process(ix).end || self.reads(*last, ix)
    }

    /// Whether the command of a shell is only a check, such as `sh -c 'test -e x'`.
    fn asks_only(&self, child: &Process) -> bool {
        let mut inside = child.children.iter().map(|ix| self.analysis.process(*ix));
        let first = inside.next();
        passes(child) == Passes::Status && first.is_some_and(is_question) && inside.next().is_none()
    }
}

impl Finder<'_> {
    /// Whether the failure of a process leads to the failure of its parent. A reason that is only possible counts in
    /// two cases: the process was the last step of a shell that ended with the same status, or the parent is a make
    /// that goes on after failures and has no failed build.
    pub(super) fn leads_to(&self, ix: ProcessIx, parent: ProcessIx) -> bool {
        match self.explains(ix, parent) {
            None => false,
            Some(Explains::Maybe) => self.is_likely_step(ix, parent) || self.has_equal_jobs(parent),
            Some(Explains::One | Explains::Last) => true,
        }
    }

    /// Whether a process was the last step of a shell, and the shell ended with the exit status of this step. The step
    /// must have done more than a check for the script.
    fn is_likely_step(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let (child, shell) = (self.analysis.process(ix), self.analysis.process(above));
        let is_step = role(child).is_some() || child.wall() >= shell.wall() / LONG;
        passes(shell) == Passes::Status
            && code(child) == code(shell)
            && self.gave_up(child, above)
            && is_step
            && !is_question(child)
            && self.reader(child, shell).is_none()
    }
}
