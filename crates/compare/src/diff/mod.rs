//! Compares two recordings of the same build, or several recordings from before a change and several from after it.

mod align;
mod ask;
pub mod benchmarks;
mod causes;
mod commands;
mod conclusion;
mod demands;
pub mod ends;
pub mod explain;
mod flame;
mod functions;
pub mod gate;
pub mod html;
pub mod json;
mod lanes;
pub(crate) mod machine;
pub mod markdown;
mod methods;
mod parts;
mod processes;
mod profile;
mod programs;
pub(crate) mod run;
mod sides;
mod spread;
pub(crate) mod steps;
mod tables;
pub mod text;
mod warnings;

pub use ask::Ask;
use causes::Causes;
use functions::FunctionChange;
use machine::CallChange;
use processes::{Change, ChangeKind};
use programs::ProgramChange;
pub use run::{Figure, Figures, Run};
use sides::Sides;
use spread::{percent, signed};
pub use spread::{Difference, Verdict};
use steps::StepChange;
use tr_insight::demands::Demand;
use tr_insight::loads::Load;
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
    set_aside: Vec<String>,
    ask: Ask,
    /// The differences of the figures of whole builds, such as the wall time, that both sides know.
    whole: Vec<(Figure, Difference)>,
    /// The differences of single processes between the base and the new runs, with the largest difference of wall
    /// time first.
    changes: Vec<Change>,
    /// The differences of programs (all their processes together) between the base and the new runs, with the
    /// largest difference first.
    programs: Vec<ProgramChange>,
    /// The differences of the builds' steps, with the largest difference first.
    steps: Vec<StepChange>,
    /// The figures of the machine's load that differ noticeably between the base and the new runs.
    loads: Vec<(Load, Difference)>,
    /// The demands of the builds on disks, the network and memory that differ noticeably between the sides.
    demands: Vec<(Demand, Difference)>,
    /// The system calls whose number or time differs noticeably between the base and the new runs, with the largest
    /// difference of time first.
    calls: Vec<CallChange>,
    /// The functions whose sampled CPU time differs between the base and the new runs, with the largest difference
    /// first; `None` if a run has no stacks.
    functions: Option<Vec<FunctionChange>>,
    /// The difference of the wall time divided into parts, and the causes that it is attributed to.
    causes: Causes,
    /// The number of processes that exist on both sides of the comparison.
    matched: usize,
    /// The number of processes, other than COMMAND itself, that exist on both sides of the comparison.
    shared: usize,
}

impl Diff {
    /// Compares the runs of the base with the new runs. `ask` has the user's settings, such as the least difference
    /// that is shown.
    pub fn new(base: Vec<Run>, mut new: Vec<Run>, ask: Ask) -> Diff {
        let (mut base, left_out) = ends::sorted_out(base);
        methods::keep_common(&mut base, &mut new);
        let set_aside = causes::set_aside(&mut base, &mut new);
        let sides = Sides {
            base: &base,
            new: &new,
        };
        let slots = align::align(&sides.runs().collect::<Vec<_>>());
        let both = slots.iter().filter(|slot| slot.is_on_both(base.len()));
        let whole = Figure::ALL.into_iter().filter_map(|figure| {
            let judged = sides.judge(|run| run.figures.get(figure))?;
            Some((figure, judged))
        });
        let mut diff = Diff {
            causes: Causes::new(sides, processes::unmatched(&slots, base.len())),
            matched: both.clone().count(),
            shared: both.filter(|slot| !slot.is_command()).count(),
            whole: whole.collect(),
            loads: machine::loads_of(sides),
            demands: demands::changes(sides, ask.least),
            calls: machine::calls_of(sides, ask.least),
            functions: functions::changes(sides, &ask),
            changes: processes::changes(&slots, base.len(), &ask),
            programs: programs::changes(&slots, base.len(), &ask),
            steps: steps::changes(sides, &ask),
            base,
            new,
            left_out,
            set_aside,
            ask,
        };
        if commands::strangers(&diff).is_some() {
            diff.causes = Causes::default();
        }
        diff
    }

    fn sides(&self) -> Sides<'_> {
        Sides {
            base: &self.base,
            new: &self.new,
        }
    }

    /// All runs that are compared: those of the base, then the new ones.
    fn runs(&self) -> impl Iterator<Item = &Run> + Clone {
        self.sides().runs()
    }

    /// The difference between the sides of one figure of whole builds, such as the wall time; `None` if a side does
    /// not know it.
    fn whole(&self, figure: Figure) -> Option<&Difference> {
        let mut all = self.whole.iter();
        all.find(|(known, _)| *known == figure)
            .map(|(_, judged)| judged)
    }

    /// The differences of processes that are of one kind (slower, faster, new or gone). Processes that only wait
    /// for their children are left out.
    fn of_kind(&self, kind: ChangeKind) -> impl Iterator<Item = &Change> {
        let all = self.changes.iter();
        all.filter(move |change| change.kind == kind && !change.through)
    }

    /// The sentence that no process and no figure differs between the builds; `None` if something differs.
    fn unchanged(&self) -> Option<String> {
        let differs = |(_, judged): &(Figure, Difference)| judged.difference() != 0;
        let same = self.changes.is_empty() && !self.whole.iter().any(differs);
        let processes = units::count(self.matched as u64);
        same.then(|| format!("No difference in any of {processes} processes."))
    }
}
