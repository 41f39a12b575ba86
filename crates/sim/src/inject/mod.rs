//! Injectors of the faults between an event and the file. Each changes a [`Recording`] and
//! returns its changes; the truth stays the same.
//!
//! A [`Plan`] applies one or several in the order of their causes: the clocks of the
//! stamps, the events that are not recorded, the order of the writes, the end of the file.
//!
//! Equal times are not injected: they come from [`crate::config::Config::grain`],
//! as they change the truth.

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

/// The guarantee for an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provable {
    /// Every number is equal to the truth.
    Exact,
    /// Known ≤ truth ≤ known + unknown.
    Bounds,
    /// Only the analysis's own sums are consistent.
    Sums,
}

/// The injectors to apply. The default does nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Wrong clocks.
    pub skew: Option<Skew>,
    /// Lost spans.
    pub loss: Vec<Loss>,
    /// Switches missing without a loss record.
    pub hidden: Option<Hidden>,
    /// Lifecycle events missing without a loss record.
    pub missing: Option<Missing>,
    /// Repeated lifecycle events.
    pub duplicates: Option<Duplicates>,
    /// Late writes.
    pub late: Option<Late>,
    /// Swapped neighbours.
    pub inversions: Option<Inversions>,
    /// A file that ends early.
    pub cut: Option<CutOff>,
    /// The seed of all draws.
    pub seed: u64,
}

impl Plan {
    /// Applies all injectors.
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

/// The guarantee for an analysis of a recording after these injections.
pub fn provable(done: &[Injected]) -> Provable {
    let late = done
        .iter()
        .any(|done| matches!(done, Injected::Late { .. }));
    let of = |done: &Injected| match done {
        Injected::Late { .. } | Injected::Inverted { .. } => Provable::Exact,
        // An event with a stamp before the last progress may be written after it.
        Injected::CutOff { .. } if late => Provable::Sums,
        Injected::Lost { .. } | Injected::CutOff { .. } => Provable::Bounds,
        Injected::Skewed { .. }
        | Injected::Hidden { .. }
        | Injected::Duplicated(_)
        | Injected::Missing(_) => Provable::Sums,
    };
    done.iter().map(of).max().unwrap_or(Provable::Exact)
}
