//! The comparison of two sides of runs, from which every output format is written.

use super::ask::Ask;
use super::causes::Causes;
use super::functions::FunctionChange;
use super::machine::CallChange;
use super::processes::{Change, ChangeKind};
use super::programs::ProgramChange;
use super::run::{Figure, Run};
use super::sides::Sides;
use super::spread::Difference;
use super::steps::StepChange;
use tr_insight::resources::demands::Demand;
use tr_insight::resources::loads::Load;
use tr_text::units;

/// A comparison of builds: the runs of the base and the new runs, and all differences between the two sides.
#[derive(Clone, Debug)]
pub struct Diff {
    pub base: Vec<Run>,
    pub new: Vec<Run>,
    /// The failed runs of the base. They are left out of the comparison, because other runs of the base did not
    /// fail.
    pub left_out: Vec<Run>,
    /// Warnings about runs that are left out when the wall time is divided into parts, because too much of their
    /// time is unknown.
    pub(super) set_aside: Vec<String>,
    pub(super) ask: Ask,
    /// The differences of the figures of whole builds, such as the wall time, that both sides know.
    pub(super) whole: Vec<(Figure, Difference)>,
    /// The differences of single processes between the base and the new runs, with the largest difference of wall
    /// time first.
    pub(super) changes: Vec<Change>,
    /// The differences of programs (all their processes together) between the base and the new runs, with the
    /// largest difference first.
    pub(super) programs: Vec<ProgramChange>,
    /// The differences of the builds' steps, with the largest difference first.
    pub(super) steps: Vec<StepChange>,
    /// The figures of the machine's load that differ noticeably between the base and the new runs.
    pub(super) loads: Vec<(Load, Difference)>,
    /// The demands of the builds on disks, the network and memory that differ noticeably between the sides.
    pub(super) demands: Vec<(Demand, Difference)>,
    /// The system calls whose number or time differs noticeably between the base and the new runs, with the largest
    /// difference of time first.
    pub(super) calls: Vec<CallChange>,
    /// The functions whose sampled CPU time differs between the base and the new runs, with the largest difference
    /// first; `None` if a run has no stacks.
    pub(super) functions: Option<Vec<FunctionChange>>,
    /// The difference of the wall time divided into parts, and the causes that it is attributed to.
    pub(super) causes: Causes,
    /// The number of processes that exist on both sides of the comparison.
    pub(super) matched: usize,
    /// The number of processes, other than COMMAND itself, that exist on both sides of the comparison.
    pub(super) shared: usize,
}

impl Diff {
    pub(super) fn sides(&self) -> Sides<'_> {
        Sides {
            base: &self.base,
            new: &self.new,
        }
    }

    /// All runs that are compared: those of the base, then the new ones.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> + Clone {
        self.sides().runs()
    }

    /// The difference between the sides of one figure of whole builds, such as the wall time; `None` if a side does
    /// not know it.
    pub(super) fn whole(&self, figure: Figure) -> Option<&Difference> {
        let mut all = self.whole.iter();
        all.find(|(known, _)| *known == figure)
            .map(|(_, judged)| judged)
    }

    /// The differences of processes that are of one kind (slower, faster, new or gone). Processes that mostly wait for
    /// their children are left out.
    pub(super) fn of_kind(&self, kind: ChangeKind) -> impl Iterator<Item = &Change> {
        let all = self.changes.iter();
        all.filter(move |change| change.kind == kind && !change.through)
    }

    /// The sentence that no figure differs, and no process by enough to be shown; `None` if there is a difference.
    pub(super) fn unchanged(&self) -> Option<String> {
        let differs = |(_, judged): &(Figure, Difference)| judged.difference() != 0;
        let same = self.changes.is_empty() && !self.whole.iter().any(differs);
        let processes = units::count(self.matched as u64);
        same.then(|| format!("No difference in any of {processes} processes."))
    }
}
