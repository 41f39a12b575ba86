//! Injects into a simulated recording the faults that can happen between an event and the trace file. Each injector
//! changes a [`Recording`] and returns its changes; the truth about the run stays the same.
//!
//! A [`Plan`] applies one or several injectors in the order in which real faults happen: wrong clocks, events that are
//! not recorded, a wrong order of writes, a missing end of the file.
//!
//! No injector gives several events the same time, because this would change the truth as well. Equal times come from
//! the resolution of the simulated clock, [`crate::config::Config::grain`].

mod cut;
mod hidden;
mod injected;
mod late;
mod lifecycle;
mod loss;
mod skew;

pub use cut::CutOff;
pub use hidden::Hidden;
pub use injected::Injected;
pub use late::{Inversions, Late};
pub use lifecycle::{Duplicates, LifeSort, Missing};
pub use loss::Loss;
pub use skew::{ClockError, Skew};

use crate::draw::Draw;
use crate::recording::Recording;

/// How close the analysis of a simulated recording with injected faults must come to the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provable {
    /// Every number of the analysis must be equal to the truth about the simulated run.
    Exact,
    /// Every true time must be at least the time that the analysis computes, and at most that time plus the time that
    /// the analysis reports as unknown.
    Bounds,
    /// Only the sums of the analysis must be consistent with each other. So much is missing in the recording that its
    /// times cannot be compared with the truth.
    Sums,
}

/// The fault injectors that are applied to a simulated recording. The default has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The fault injector that makes the clocks of some CPUs wrong, if it is used.
    pub skew: Option<Skew>,
    /// The fault injectors that remove a stretch of events and add a loss record.
    pub loss: Vec<Loss>,
    /// The fault injector that leaves switches out without a loss record, if it is used.
    pub hidden: Option<Hidden>,
    /// The fault injector that leaves lifecycle events (fork, exec, exit) out without a loss
    /// record, if it is used.
    pub missing: Option<Missing>,
    /// The fault injector that records lifecycle events (fork, exec, exit) twice, if it is used.
    pub duplicates: Option<Duplicates>,
    /// The fault injector that writes events late into their ring, if it is used.
    pub late: Option<Late>,
    /// The fault injector that swaps neighbouring events of a ring, if it is used.
    pub inversions: Option<Inversions>,
    /// The fault injector that lets the trace file end early, if it is used.
    pub cut: Option<CutOff>,
    /// The seed of all random numbers that the fault injectors draw.
    pub seed: u64,
}

impl Plan {
    /// Applies all fault injectors of the plan to a simulated recording. Returns the changes that
    /// they made.
    pub fn apply(&self, recording: &mut Recording) -> Vec<Injected> {
        let mut draw = Draw::new(self.seed ^ 0x1213_1415_1617_1819);
        let mut done = Vec::new();
        done.extend(self.skew.iter().flat_map(|skew| skew.apply(recording)));
        let hidden = self.hidden;
        done.extend(hidden.and_then(|hidden| hidden.apply(recording, &mut draw)));
        for loss in &self.loss {
            done.extend(loss.apply(recording, &mut draw));
        }
        if let Some(missing) = &self.missing {
            done.extend(missing.apply(recording, &mut draw));
        }
        if let Some(duplicates) = &self.duplicates {
            done.extend(duplicates.apply(recording, &mut draw));
        }
        let late = self.late.and_then(|late| late.apply(recording, &mut draw));
        let inversions = self.inversions;
        let inverted = inversions.and_then(|pairs| pairs.apply(recording, &mut draw));
        let cut = self.cut.and_then(|cut| cut.apply(recording, &mut draw));
        done.extend([late, inverted, cut].into_iter().flatten());
        done
    }
}

/// How close the analysis of a simulated recording must come to the truth after these injected
/// changes.
pub fn provable(done: &[Injected]) -> Provable {
    let late = done
        .iter()
        .any(|done| matches!(done, Injected::Late { .. }));
    let of = |done: &Injected| match done {
        Injected::Late { .. } | Injected::Inverted { .. } => Provable::Exact,
        // If events are written late into their ring, an event before the last watermark can be missing in the file
        // without a loss record. So the analysis cannot report bounds for the times of the tasks.
        Injected::CutOff { .. } if late => Provable::Sums,
        Injected::Lost { .. } | Injected::CutOff { .. } => Provable::Bounds,
        Injected::Skewed { .. }
        | Injected::Hidden { .. }
        | Injected::Duplicated(_)
        | Injected::Missing(_) => Provable::Sums,
    };
    done.iter().map(of).max().unwrap_or(Provable::Exact)
}
