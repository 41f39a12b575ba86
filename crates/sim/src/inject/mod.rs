//! Injectors: what can go wrong between the event and the file. Each changes a
//! [`Recording`] and says what it did; the truth stays what it is.
//!
//! They can be used alone and together, through a [`Plan`], which applies them
//! in the order in which the causes act: first the clocks that the stamps are
//! taken from, then events that are not recorded at all, then the order in
//! which the others are written, then the end of the file.
//!
//! Equal times are not injected: they come from [`crate::config::Config::grain`],
//! as they change the truth.

mod cut;
mod late;
mod lifecycle;
mod loss;
mod skew;

pub use cut::CutOff;
pub use late::{Inversions, Late};
pub use lifecycle::{Duplicates, LifeSort, Missing};
pub use loss::Loss;
pub use skew::{ClockError, Skew};

use tr_format::event::{CpuId, Ktime, LossCause, Stream, Tid};

use crate::draw::Draw;
use crate::recording::Recording;

/// What an injector did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injected {
    /// This CPU's stamps are off.
    Skewed {
        /// The CPU.
        cpu: CpuId,
        /// By how much at the span's start and at its end, ns.
        offset: (i64, i64),
    },
    /// Events were written late.
    Late {
        /// How many.
        events: u64,
        /// The longest delay, ns.
        longest: u64,
    },
    /// Neighbours in a ring changed places.
    Inverted {
        /// How many pairs.
        pairs: u64,
        /// The largest step back in time, ns.
        largest: u64,
    },
    /// Events are missing, and the trace says so.
    Lost {
        /// Of which stream.
        stream: Stream,
        /// The stamps of the first and the last of them.
        span: (Ktime, Ktime),
        /// How many.
        count: u64,
        /// Why.
        cause: LossCause,
    },
    /// The file ends early.
    CutOff {
        /// The time of the last progress: the span that can be analyzed ends here.
        end: Ktime,
        /// How many events are gone.
        events: u64,
    },
    /// An event of a task stands twice.
    Duplicated(Tid),
    /// An event of a task is missing, and nothing says so.
    Missing(Tid),
}

/// What can be said for sure of an analysis of what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provable {
    /// Every number is equal to the truth.
    Exact,
    /// Known ≤ truth ≤ known + unknown.
    Bounds,
    /// Only that its own sums are right.
    Sums,
}

/// Which injectors, and how much of each. The default does nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Clocks that are off.
    pub skew: Option<Skew>,
    /// Lost spans.
    pub loss: Vec<Loss>,
    /// Lifecycle events that are missing without a word.
    pub missing: Option<Missing>,
    /// Lifecycle events that stand twice.
    pub duplicates: Option<Duplicates>,
    /// Late writes.
    pub late: Option<Late>,
    /// Neighbours that change places.
    pub inversions: Option<Inversions>,
    /// A file that ends early.
    pub cut: Option<CutOff>,
    /// What everything is drawn from.
    pub seed: u64,
}

impl Plan {
    /// Does it all.
    pub fn apply(&self, recording: &mut Recording) -> Vec<Injected> {
        let mut draw = Draw::new(self.seed ^ 0x1213_1415_1617_1819);
        let mut done = Vec::new();
        if let Some(skew) = &self.skew {
            done.extend(skew.apply(recording));
        }
        for loss in &self.loss {
            done.extend(loss.apply(recording, &mut draw));
        }
        if let Some(missing) = &self.missing {
            done.extend(missing.apply(recording, &mut draw));
        }
        if let Some(duplicates) = &self.duplicates {
            done.extend(duplicates.apply(recording, &mut draw));
        }
        if let Some(late) = &self.late {
            done.extend(late.apply(recording, &mut draw));
        }
        if let Some(inversions) = &self.inversions {
            done.extend(inversions.apply(recording, &mut draw));
        }
        if let Some(cut) = &self.cut {
            done.extend(cut.apply(recording, &mut draw));
        }
        done
    }
}

/// What can be proved after all of this.
pub fn provable(done: &[Injected]) -> Provable {
    let late = done
        .iter()
        .any(|what| matches!(what, Injected::Late { .. }));
    let of = |what: &Injected| match what {
        Injected::Late { .. } | Injected::Inverted { .. } => Provable::Exact,
        Injected::Lost { .. } => Provable::Bounds,
        // What was stamped before the last progress may be written after it.
        Injected::CutOff { .. } if late => Provable::Sums,
        Injected::CutOff { .. } => Provable::Bounds,
        // Only the corrected intervals' uncertainty, which is the analysis's to say.
        Injected::Skewed { .. } => Provable::Sums,
        Injected::Duplicated(_) => Provable::Sums,
        Injected::Missing(_) => Provable::Sums,
    };
    done.iter().map(of).max().unwrap_or(Provable::Exact)
}
