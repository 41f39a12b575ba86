//! Decides what a program did after one of its children had failed.

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::timeline::{Bucket, Wait};
use tr_format::event::Ktime;
use tr_programs::tools::Family;

use super::finder::{Finder, NumbersByName};
use super::passes::{
    code, fails, family, goes_on, is_often_ignored, is_optional, is_parallel, is_question,
    is_report, is_step, is_tidying, passes, soon, undoes, Passes,
};
use super::passes::{LONGEST_CHAIN, MOST_EXAMINED};

/// The exit status of a script that counts failures in a variable and, after any failure, ends with a fixed status.
const COUNTED_STATUS: u32 = 1;

/// The largest number of programs that a script may run after a failure to clean up.
const MOST_CLEANUPS: usize = 64;

impl Finder<'_> {
    /// The time at which the last thread of a process began to exit. The end of the process itself is later, because
    /// this thread still has to leave the CPU.
    pub(super) fn exit(&self, process: &Process) -> Ktime {
        let threads = process.threads.iter().map(|ix| self.analysis.thread(*ix));
        let exits = threads.filter_map(|thread| thread.exited);
        exits.max().unwrap_or(process.end)
    }

    /// The children that a process started after one of its children (`child`) had ended.
    pub(super) fn after<'a>(
        &'a self,
        child: &'a Process,
        parent: ProcessIx,
    ) -> impl Iterator<Item = &'a Process> {
        let after = self.divided(child, parent).1.iter();
        after.map(|ix| self.analysis.process(*ix))
    }

    /// The children that a parent had started before the given child started.
    pub(super) fn before_start<'a>(
        &'a self,
        child: &Process,
        parent: ProcessIx,
    ) -> impl DoubleEndedIterator<Item = &'a Process> {
        let children = self.analysis.process(parent).children.as_slice();
        let first = children.partition_point(|ix| self.analysis.process(*ix).start < child.start);
        let before = children.get(..first).unwrap_or_default().iter();
        before.map(|ix| self.analysis.process(*ix))
    }

    /// Two lists of a parent's children: the ones that started before the end of `child`, and the ones that started
    /// afterwards.
    fn divided(&self, child: &Process, parent: ProcessIx) -> (&[ProcessIx], &[ProcessIx]) {
        let children = self.analysis.process(parent).children.as_slice();
        let first = children.partition_point(|ix| self.analysis.process(*ix).start <= child.end);
        children.split_at_checked(first).unwrap_or((children, &[]))
    }

    /// Whether a parent started nothing more after one of its children had ended.
    pub(super) fn is_last(&self, child: &Process, parent: ProcessIx) -> bool {
        let last = self.analysis.process(parent).children.last();
        last.is_none_or(|ix| self.analysis.process(*ix).start <= child.end)
    }

    /// Whether a parent started nothing after the given child had ended, except the programs with which a configure
    /// script cleans up, and successful checks, such as the grep that filters the errors of a compiler.
    pub(super) fn is_last_but_tidying(&self, child: &Process, parent: ProcessIx) -> bool {
        self.is_last_but(child, parent, |next| {
            is_tidying(next) || is_question(next) && next.status == Some(0)
        })
    }

    /// Whether a shell started nothing after the given child had ended, except programs that clean up, print reports,
    /// or check something for the script (`test`, `grep -q`).
    pub(super) fn is_last_but_reports(&self, child: &Process, shell: ProcessIx) -> bool {
        self.is_last_but(child, shell, |next| is_report(next) || is_question(next))
    }

    /// Whether a shell ended because of a child's failure (`set -e`), so that only the shell's trap started programs
    /// afterwards. Two facts show this. First, after the child's end, the shell only cleaned up and reported. Second,
    /// the shell ended with the exit status of the child, or with the status of the shell's last program, which cleaned
    /// up and failed.
    pub(super) fn is_end_before_tidying(&self, child: &Process, above: ProcessIx) -> bool {
        let shell = self.analysis.process(above);
        let is_tidy = |process: &Process| !process.execs.is_empty() && tidies(process);
        let last = shell.children.last().map(|ix| self.analysis.process(*ix));
        let is_last_status = || last.is_some_and(|last| undoes(last) && code(last) == code(shell));
        passes(shell) == Passes::Status
            && (code(child) == code(shell) || is_last_status())
            && !is_question(child)
            && !is_tidy(child)
            && !self.is_last(child, above)
            && (self.is_last_but(child, above, tidies) || self.is_before_undoing(child, above))
    }

    /// Whether a shell first undid something after a child had ended, and after that only cleaned up, reported or ran
    /// checks such as `test`.
    fn is_before_undoing(&self, child: &Process, above: ProcessIx) -> bool {
        let first = self.after(child, above).next();
        let is_idle = |next: &Process| tidies(next) || is_question(next) || next.execs.is_empty();
        first.is_some_and(undoes) && self.is_last_but(child, above, is_idle)
    }

    /// Whether a child undoes what its shell had set up, after a step of the shell had failed. The child then perhaps
    /// belongs to a trap, and its failure is not the reason for the shell's failure.
    pub(super) fn is_tidying_after_a_failure(&self, child: &Process, shell: ProcessIx) -> bool {
        undoes(child) && self.follows_a_failed_step(child, shell)
    }

    /// Whether a failed child only cleaned up after an earlier step of its parent had failed, so that the child's
    /// failure is no reason for the parent's failure.
    pub(super) fn is_failed_tidying(&self, child: &Process, above: ProcessIx) -> bool {
        tidies(child) && self.follows_a_failed_step(child, above)
    }

    /// Whether a failed step came right before the given child among the children of a script or program. Children that
    /// only clean up are skipped.
    fn follows_a_failed_step(&self, child: &Process, above: ProcessIx) -> bool {
        let mut before = self.before_start(child, above).rev().take(MOST_CLEANUPS);
        let step = before.find(|earlier| !tidies(earlier));
        step.is_some_and(|step| fails(step) && is_step(step))
    }

    /// Whether a parent ended soon after a child had ended, and in between started only programs that clean up. At
    /// least one of these programs must have failed.
    pub(super) fn gave_up_before_tidying(&self, child: &Process, above: ProcessIx) -> bool {
        self.after(child, above).take(MOST_CLEANUPS).any(fails)
            && self.is_last_but(child, above, tidies)
            && self.soon_ended(child, above)
    }

    fn is_last_but(
        &self,
        child: &Process,
        parent: ProcessIx,
        is_nothing: fn(&Process) -> bool,
    ) -> bool {
        let mut after = self
            .after(child, parent)
            .take(MOST_CLEANUPS + 1)
            .enumerate();
        after.all(|(number, next)| number < MOST_CLEANUPS && is_nothing(next))
    }

    /// Whether a parent started nothing after one of its children had ended, and the parent ended soon after the last
    /// of all its children had ended.
    pub(super) fn gave_up_after_others(&self, child: &Process, parent: ProcessIx) -> bool {
        let above = self.analysis.process(parent);
        let last = self.last_ends[parent].max(child.end);
        self.is_last(child, parent) && above.end.since(last.min(above.end)) <= soon(above)
    }

    /// Whether a parent started nothing after one of its children had ended, and the parent itself ended soon after
    /// that child.
    pub(super) fn gave_up(&self, child: &Process, parent: ProcessIx) -> bool {
        self.is_last(child, parent) && self.soon_ended(child, parent)
    }

    /// Whether a parent ended soon after a child had ended. The time for which the parent waited for a CPU is not
    /// counted, because a busy machine delays any program.
    pub(super) fn soon_ended(&self, child: &Process, parent: ProcessIx) -> bool {
        let above = self.analysis.process(parent);
        // The parent's end is taken from the moment at which the parent began to exit, because an exiting process may
        // still wait for a CPU.
        let exit = self.exit(above).max(child.end);
        let (all, most) = (exit.since(child.end), soon(above));
        let queued = || self.queued_since(child.end, parent);
        all <= most || all.saturating_sub(queued()) <= most
    }

    /// The time in nanoseconds for which a process has waited for a CPU since the given time. The waits of each thread
    /// are summed up, and the largest of these sums counts.
    fn queued_since(&self, time: Ktime, ix: ProcessIx) -> u64 {
        let Some(timeline) = &self.analysis.timeline else {
            return 0;
        };
        let threads = self.analysis.process(ix).threads.iter().take(MOST_EXAMINED);
        let waits = threads.map(|thread| {
            let stretches = timeline.since(*thread, time);
            let queued = stretches.filter(|at| matches!(at.doing, Bucket::RunQueue { .. }));
            queued
                .map(|at| at.to.since(at.from.max(time).min(at.to)))
                .sum()
        });
        waits.max().unwrap_or(0)
    }

    /// Whether a parent started the child `next` after the child `child` without waiting in between. Then both
    /// children are members of one pipe, or one of them runs in the background. In both cases, `child` may have ended
    /// before `next` began. Without a timeline, the answer is yes only if `next` began before the end of `child`.
    pub(super) fn is_beside(&self, child: &Process, next: &Process) -> bool {
        if next.start < child.end {
            return true;
        }
        let Some(parent) = next.parent.filter(|_| self.analysis.timeline.is_some()) else {
            return false;
        };
        let mut kept = self.caches.sleeps.borrow_mut();
        let sleeps = kept.entry(parent).or_insert_with(|| self.sleeps(parent));
        let first = sleeps.partition_point(|from| *from < child.start);
        sleeps.get(first).is_none_or(|from| *from >= next.start)
    }

    /// The times at which the threads of a process began to sleep, for all its threads together, in ascending order.
    fn sleeps(&self, ix: ProcessIx) -> Vec<Ktime> {
        let threads = self.analysis.process(ix).threads.iter();
        let timeline = self.analysis.timeline.iter();
        let stretches = timeline.flat_map(|timeline| {
            let threads = threads.clone();
            threads.flat_map(|thread| timeline.of(*thread))
        });
        let sleeps = stretches.filter(|stretch| stretch.doing == Bucket::Wait(Wait::Sleep));
        let mut starts: Vec<Ktime> = sleeps.map(|stretch| stretch.from).collect();
        starts.sort_unstable();
        starts
    }

    /// Whether a shell started nothing after the given child, except other members of the child's pipe, and then soon
    /// ended.
    pub(super) fn gave_up_in_a_pipe(&self, child: &Process, above: ProcessIx) -> bool {
        let shell = self.analysis.process(above);
        let last = shell.children.last().map(|ix| self.analysis.process(*ix));
        let is_last = last.is_none_or(|last| self.is_beside(child, last));
        is_last && self.soon_ended(child, above)
    }

    /// Whether a make ignored the failure of a child, as for a recipe line `-rm core`. A make that does not ignore a
    /// failure begins no further job. So the failure was ignored if this make began another job afterwards. The next
    /// line of a job that was already running at the time of the failure does not count as another job.
    pub(super) fn was_ignored(&self, child: &Process, above: ProcessIx) -> bool {
        let make = self.analysis.process(above);
        if family(make) != Some(Family::Make) || goes_on(self.analysis, above) {
            return false;
        }
        let Some(next) = self.after(child, above).next() else {
            return false;
        };
        if self.is_only_job(child, above) {
            return true;
        }
        self.has_noticed(child, above, next.start) && !self.is_next_line(child, above, next.start)
    }

    /// Whether a make runs one job at a time, and none of its other jobs ran at the same time as the given job.
    fn is_only_job(&self, job: &Process, make: ProcessIx) -> bool {
        let is_serial = |ix: ProcessIx| !is_parallel(self.analysis.process(ix));
        let before = self.before_start(job, make).rev().take(MOST_EXAMINED);
        let mut others = before.filter(|other| other.end > job.start);
        self.analysis
            .lineage(make)
            .take(LONGEST_CHAIN)
            .all(is_serial)
            && others.next().is_none()
    }

    /// Whether a make already knew of the failure of `child` when the make started another child at the time `start`. A
    /// make with several job slots may have decided to start that other child before the failure.
    fn has_noticed(&self, child: &Process, above: ProcessIx, start: Ktime) -> bool {
        let make = self.analysis.process(above);
        let Some(timeline) = &self.analysis.timeline else {
            return !is_parallel(make);
        };
        // An exiting process wakes its parent. So if the make slept when the child exited, the make noticed the child's
        // exit.
        let died = self.exit(child);
        make.threads.iter().any(|thread| {
            let stretches = timeline.since(*thread, died).take(MOST_EXAMINED);
            let mut before = stretches.take_while(|stretch| stretch.from < start);
            before.any(|stretch| {
                let is_sleep = stretch.doing == Bucket::Wait(Wait::Sleep);
                is_sleep && (died..=start).contains(&stretch.to)
            })
        })
    }

    /// Whether the process that a make started at the time `start` can be the next line of a recipe that already ran at
    /// the same time as `child`. If so, the make need not have begun a new job after the end of `child`.
    fn is_next_line(&self, child: &Process, above: ProcessIx, start: Ktime) -> bool {
        let (before, _) = self.divided(child, above);
        let mut others = before.iter().rev().map(|ix| self.analysis.process(*ix));
        // If there are too many children to search, the answer is yes, because a child that is not searched may have
        // been the previous line of the same recipe.
        before.len() > MOST_EXAMINED
            || others.any(|other| {
                other.pid != child.pid && other.end >= child.start && other.end <= start
            })
    }

    /// Whether a shell tolerated the failure of a child: another useful program succeeded afterwards, and the shell
    /// ended with another status than the child. The answer is no for a shell that runs one program again and again,
    /// because the shell may count the failures of this program.
    pub(super) fn was_tolerated(&self, child: &Process, above: ProcessIx) -> bool {
        let shell = self.analysis.process(above);
        let is_useful = |next: &Process| {
            let is_idle = is_report(next) || is_question(next);
            next.status == Some(0) && !next.execs.is_empty() && !is_idle
        };
        let went_on = || self.after(child, above).take(MOST_EXAMINED).any(is_useful);
        code(child) != code(shell) && went_on() && !self.is_one_of_many(child, above)
    }

    /// Whether a shell may have remembered the failure of a child until the shell's own end (`|| failed=1`). One of
    /// three exit statuses of the shell shows this: the status of the child (`rc=$?`), the number of the shell's
    /// failed steps, or 1 if each step that the shell started after the child succeeded. Failures of steps that
    /// scripts often tolerate do not count.
    pub(super) fn may_have_been_kept(&self, child: &Process, above: ProcessIx) -> bool {
        let counts = |process: &Process| {
            is_step(process) && !is_often_ignored(process) && !is_optional(process)
        };
        let inside = || {
            let last = child.children.last().filter(|_| child.execs.is_empty());
            let last = last.map(|ix| self.analysis.process(*ix));
            last.is_some_and(|last| counts(last) && code(last) == code(child))
        };
        if !counts(child) && !inside() {
            return false;
        }
        let shell = self.analysis.process(above);
        let Some(status) = code(shell).filter(|status| *status != 0) else {
            return false;
        };
        if status == COUNTED_STATUS {
            let mut after = self.after(child, above).take(MOST_EXAMINED);
            return after.all(|next| !is_step(next) || next.status == Some(0));
        }
        if code(child) == Some(status) {
            return true;
        }
        let children = shell.children.iter().take(MOST_EXAMINED);
        let failed = children.map(|ix| self.analysis.process(*ix));
        let failed = failed.filter(|step| counts(step) && fails(step)).count();
        u32::try_from(failed) == Ok(status)
    }

    /// Whether a shell ran one program again and again, and the given child is one of these runs.
    fn is_one_of_many(&self, child: &Process, above: ProcessIx) -> bool {
        let mut kept = self.caches.programs.borrow_mut();
        let numbers = kept.entry(above).or_insert_with(|| {
            let children = self.analysis.process(above).children.iter();
            let children = children.map(|ix| self.analysis.process(*ix));
            let mut numbers = NumbersByName::new();
            for program in children.filter(|child| !child.execs.is_empty()) {
                *numbers.entry(first_argument(program).to_vec()).or_default() += 1;
            }
            numbers
        });
        let all = numbers.get(first_argument(child));
        let own = usize::from(!child.execs.is_empty());
        all.is_some_and(|all| *all > own)
    }

    /// Whether a shell perhaps saved the status of a failed member of a pipe (`${PIPESTATUS[0]}`) and ended with this
    /// status. The shell and the member must have ended with equal statuses, and after this member the shell only ran
    /// checks and reports.
    pub(super) fn is_end_by_a_pipe(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let (child, shell) = (self.analysis.process(ix), self.analysis.process(above));
        if passes(shell) != Passes::Status || code(child) != code(shell) || is_question(child) {
            return false;
        }
        let reader = self.reader(child, shell);
        let is_read = |reader| self.analysis.timeline.is_none() || self.reads(reader, ix);
        reader.is_some_and(is_read) && self.is_last_but_reports(child, above)
    }
}

/// Whether a process cleans up, reports, or undoes what a script has set up.
fn tidies(process: &Process) -> bool {
    is_report(process) || undoes(process)
}

/// The first word of a process's command line (`argv[0]`), which names the program; empty if there is none.
fn first_argument(process: &Process) -> &[u8] {
    process.argv.args().next().unwrap_or_default()
}

/// The time in nanoseconds from a child's end to the end of its parent.
pub(super) fn until_the_end(child: &Process, parent: &Process) -> u64 {
    parent.end.since(child.end.min(parent.end))
}
