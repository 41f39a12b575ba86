//! Compares two recordings of the same build, or several recordings from before a change and several from after it.

mod align;
mod ask;
pub mod benchmarks;
mod causes;
mod commands;
mod comparison;
mod conclusion;
mod demands;
mod end_words;
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
pub use comparison::Diff;
pub use run::{Figure, Figures, Run};
use sides::Sides;
pub use spread::{Difference, SpreadVerdict};

/// Compares the runs of the base with the new runs. `ask` has the user's settings, such as the least difference
/// that is shown.
pub fn compare(base: Vec<Run>, mut new: Vec<Run>, ask: Ask) -> Diff {
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
