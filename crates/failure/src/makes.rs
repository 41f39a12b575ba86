//! Judges whether the failed jobs of a make explain the make's own failure. make ignores the failure of a recipe line
//! that begins with `-`, and with the option `-k` make goes on after other failures.

use tr_analyze::model::{Process, ProcessIx};
use tr_programs::table::utilities::UtilityUse;
use tr_programs::tools::Family;

use super::files::{needs, outputs, Output};
use super::finder::{Explains, FailedJobs, Finder};
use super::passes::{
    builds, fails, family, goes_on, has_use, is_often_ignored, is_question, passes, program_start,
    Passes,
};
use tr_insight::processes::label;

/// Two limits that bound the work of searching a make's jobs. Whether make ignored the failure of a job is seen by
/// later jobs that use a file which the failed job should have written: the command lines of at most `MOST_JOBS` later
/// jobs are searched, and in each job those of at most `PROGRAMS` programs. The same limits bound the searches for
/// other failures.
const MOST_JOBS: usize = 256;
const PROGRAMS: usize = 4;

impl Finder<'_> {
    /// How the failure of a job explains the failure of the make that ran the job. The explanation is often uncertain
    /// for two reasons. A recording does not show whether make ignores the failure because the job's line begins with
    /// `-`. And with `-k`, make goes on after any failure.
    pub(super) fn explains_make(&self, ix: ProcessIx, make: ProcessIx) -> Option<Explains> {
        let job = self.analysis.process(ix);
        let goes_on = goes_on(self.analysis, make);
        let is_last = self.is_last(job, make);
        if is_question(job) && !goes_on {
            return self.gave_up(job, make).then_some(Explains::Maybe);
        }
        if !is_last && !goes_on {
            let counts = || !self.was_ignored(job, make) || self.lacks_rules(job, make);
            return counts().then_some(Explains::Maybe);
        }
        let certain = if is_last {
            Explains::Last
        } else {
            Explains::One
        };
        if self.is_build(job) {
            return Some(certain);
        }
        let failed = self.failed_jobs(make);
        if goes_on && self.was_needed(job, make) {
            return None;
        }
        if self.is_ignorable(job) {
            let is_best = !goes_on || failed.builds + failed.others == 0;
            return is_best.then_some(Explains::Maybe);
        }
        let is_alone = failed.builds == 0 && failed.others <= 1;
        // If several jobs failed and make began no job after these failures, the reason is uncertain, because make may
        // have ignored one of the failures.
        let has_rivals = || self.has_rivals(ix, make);
        Some(if is_alone || !goes_on && !has_rivals() {
            certain
        } else {
            Explains::Maybe
        })
    }

    /// Whether another job of a make also failed, and the make began no job after that failure.
    fn has_rivals(&self, ix: ProcessIx, make: ProcessIx) -> bool {
        let process = self.analysis.process(make);
        let others = process.children.iter().rev().take(MOST_JOBS);
        let mut others = others.filter(|other| **other != ix);
        others.any(|other| {
            let job = self.analysis.process(*other);
            let counts =
                fails(job) && job.start >= program_start(process) && self.is_last(job, make);
            counts && !self.sure.on_purpose(*other, job) && !self.reads(make, *other)
        })
    }

    /// Whether the only failed job of a make should have written a file of make rules. The make goes on without such a
    /// file if the makefile includes the file by `-include rules.mk`.
    fn lacks_rules(&self, job: &Process, make: ProcessIx) -> bool {
        let failed = self.failed_jobs(make);
        let outputs = outputs(&job.argv, &label::program(job));
        outputs.iter().any(Output::has_rules) && failed.builds + failed.others <= 1
    }

    /// Whether a make goes on after failures, and no failed job is a build. Then all failed jobs are equally likely
    /// reasons for the failure of the make, and none is certainly the reason.
    pub(super) fn has_equal_jobs(&self, make: ProcessIx) -> bool {
        let is_make = family(self.analysis.process(make)) == Some(Family::Make);
        is_make && goes_on(self.analysis, make) && self.failed_jobs(make).builds == 0
    }

    /// The numbers of failed jobs of a make, by kind. The numbers are computed at the first call and kept for later
    /// calls.
    fn failed_jobs(&self, make: ProcessIx) -> FailedJobs {
        if let Some(known) = self.caches.failed_jobs.borrow().get(&make) {
            return *known;
        }
        let process = self.analysis.process(make);
        let mut failed = FailedJobs::default();
        for ix in &process.children {
            let job = self.analysis.process(*ix);
            let counts = fails(job) && job.start >= program_start(process);
            if !counts || self.sure.on_purpose(*ix, job) || self.reads(make, *ix) {
                continue;
            }
            if self.is_build(job) {
                failed.builds += 1;
            } else if !self.is_ignorable(job) && !self.was_needed(job, make) {
                failed.others += 1;
            }
            // Only 0, 1 and more failed jobs of unknown kind are distinguished, so counting can stop.
            if failed.others > 1 {
                break;
            }
        }
        self.caches.failed_jobs.borrow_mut().insert(make, failed);
        failed
    }

    /// Whether a job of make is a build or a test run, or a shell in which a build or a test run failed. Recipes hardly
    /// ever ignore the failure of such a job.
    pub(super) fn is_build(&self, job: &Process) -> bool {
        builds(job) || self.failed_inside(job).is_some_and(builds)
    }

    /// Whether a job of make is a program whose failure recipes often ignore, or a shell whose last failed child is
    /// such a program.
    fn is_ignorable(&self, job: &Process) -> bool {
        let is_ignorable = |process: &Process| is_question(process) || is_often_ignored(process);
        is_ignorable(job) || self.failed_inside(job).is_some_and(is_ignorable)
    }

    /// The last failed child of a make's job, if the job is a shell.
    fn failed_inside(&self, job: &Process) -> Option<&Process> {
        let children = job.children.iter().rev().take(PROGRAMS);
        let mut children = children.map(|ix| self.analysis.process(*ix));
        let is_shell = passes(job) == Passes::Status;
        children.find(|child| is_shell && fails(child))
    }

    /// Whether a make that goes on after failures later used a file that the failed `job` should have written. Such a
    /// make builds nothing that needs a failed target. So if the file was used, the make must have ignored the failure
    /// of `job`.
    fn was_needed(&self, job: &Process, make: ProcessIx) -> bool {
        let outputs = outputs(&job.argv, &label::program(job));
        if outputs.is_empty() {
            return false;
        }
        let uses = |process: &Process| {
            let needs = |output: &Output| needs(&process.argv, output);
            !has_use(process, UtilityUse::Removal) && outputs.iter().any(needs)
        };
        self.after(job, make).take(MOST_JOBS).any(|next| {
            let inside = next.children.iter().take(PROGRAMS);
            let mut inside = inside.map(|ix| self.analysis.process(*ix));
            uses(next) || inside.any(uses)
        })
    }
}
